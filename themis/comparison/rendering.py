"""A comparison as a Markdown or LaTeX table."""

from __future__ import annotations

from themis.comparison.reports import ComparisonReport, ComparisonResult, format_p_value
from themis.core.markup import Raw, escape_markdown, format_table


def markdown_table(report: ComparisonReport) -> str:
    """A table a pull request or a README can hold, with how it was computed below."""
    columns = (
        *("Metric", "First", "Second", "Means", "Difference"),
        *("Interval", "p", "Corrected p", "Items", "Better"),
    )
    rows = [
        (
            result.metric_name,
            result.run_a_id,
            result.run_b_id,
            f"{result.run_a_mean:.4f} / {result.run_b_mean:.4f}",
            f"{result.delta:+.4f}",
            _interval(result),
            _p_value(result.test_result.p_value if result.test_result else None),
            _p_value(result.corrected_p_value),
            str(len(result.run_a_samples)),
            result.winner,
        )
        for result in report.pairwise_results
    ]
    notes = [f"{escape_markdown(report.method_line())}.", *(f"- {escape_markdown(note)}" for note in report.notes())]
    return "\n".join([format_table(columns, rows), "", *notes])


def latex_table(report: ComparisonReport) -> str:
    r"""A table for a paper; needs \usepackage{booktabs}. The better mean of a separated pair is bold."""
    columns = ("Metric", "First", "Second", "Mean", "Mean", "Difference", "Interval", Raw("$p$"), "Items")
    rows = []
    for result in report.pairwise_results:
        p_value = result.corrected_p_value
        if p_value is None and result.test_result is not None:
            p_value = result.test_result.p_value
        means = [
            Raw(rf"\textbf{{{mean:.4f}}}" if result.winner == run_id else f"{mean:.4f}")
            for run_id, mean in ((result.run_a_id, result.run_a_mean), (result.run_b_id, result.run_b_mean))
        ]
        rows.append(
            (
                *(result.metric_name, result.run_a_id, result.run_b_id),
                *means,
                Raw(f"${result.delta:+.4f}$"),
                "--" if result.interval is None else Raw(f"$[{result.interval[0]:+.4f}, {result.interval[1]:+.4f}]$"),
                "--" if p_value is None else Raw("$<0.0001$" if p_value < 0.0001 else f"${p_value:.4f}$"),
                str(len(result.run_a_samples)),
            )
        )
    table = format_table(columns, rows, "latex", right=range(3, 9))
    return f"{table}\n% {' '.join(report.method_line().split())}"


def _interval(result: ComparisonResult) -> str:
    return "–" if result.interval is None else f"{result.interval[0]:+.4f} to {result.interval[1]:+.4f}"


def _p_value(p_value: float | None) -> str:
    return "–" if p_value is None else format_p_value(p_value).removeprefix("p = ").removeprefix("p ")
