"""A comparison as a table for a paper."""

from __future__ import annotations

from themis.comparison.reports import ComparisonReport
from themis.core.markup import Raw, format_table


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
    told = [report.method_line(), *report.pairing_lines(), *report.notes()]
    return "\n".join([table, *(f"% {' '.join(line.split())}" for line in told)])
