"""A comparison as a Markdown or LaTeX table."""

from __future__ import annotations

import re

from themis.comparison.reports import ComparisonReport, ComparisonResult, format_p_value

__all__ = ["latex_table", "markdown_table", "markdown_text"]


def markdown_table(report: ComparisonReport) -> str:
    """A table a pull request or a README can hold, with how it was computed below."""
    lines = [
        "| Metric | First | Second | Means | Difference | Interval | p | Corrected p | Items | Better |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in report.pairwise_results:
        p_value = result.test_result.p_value if result.test_result else None
        cells = (
            result.metric_name,
            result.run_a_id,
            result.run_b_id,
            f"{result.run_a_mean:.4f} / {result.run_b_mean:.4f}",
            f"{result.delta:+.4f}",
            _interval(result),
            _p_value(p_value),
            _p_value(result.corrected_p_value),
            str(len(result.run_a_samples)),
            result.winner,
        )
        lines.append("| " + " | ".join(markdown_text(cell) for cell in cells) + " |")
    return "\n".join(
        [
            *lines,
            "",
            f"{markdown_text(report.method_line())}.",
            *(f"- {markdown_text(note)}" for note in report.notes()),
        ]
    )


def latex_table(report: ComparisonReport) -> str:
    r"""A table for a paper; needs \usepackage{booktabs}. The better mean of a separated pair is bold."""
    rows = []
    for result in report.pairwise_results:
        p_value = result.corrected_p_value
        if p_value is None and result.test_result is not None:
            p_value = result.test_result.p_value
        means = [
            rf"\textbf{{{mean:.4f}}}" if result.winner == run_id else f"{mean:.4f}"
            for run_id, mean in ((result.run_a_id, result.run_a_mean), (result.run_b_id, result.run_b_mean))
        ]
        cells = (
            *map(_latex_text, (result.metric_name, result.run_a_id, result.run_b_id)),
            *means,
            f"${result.delta:+.4f}$",
            "--" if result.interval is None else f"$[{result.interval[0]:+.4f}, {result.interval[1]:+.4f}]$",
            "--" if p_value is None else "$<0.0001$" if p_value < 0.0001 else f"${p_value:.4f}$",
            str(len(result.run_a_samples)),
        )
        rows.append("  " + " & ".join(cells) + r" \\")
    return "\n".join(
        [
            r"\begin{tabular}{lllrrrrrr}",
            r"  \toprule",
            r"  Metric & First & Second & Mean & Mean & Difference & Interval & $p$ & Items \\",
            r"  \midrule",
            *rows,
            r"  \bottomrule",
            r"\end{tabular}",
            f"% {' '.join(report.method_line().split())}",
        ]
    )


def markdown_text(text: str) -> str:
    """Text that cannot become markup, nor end its cell."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", " ".join(text.split()))


def _interval(result: ComparisonResult) -> str:
    return "–" if result.interval is None else f"{result.interval[0]:+.4f} to {result.interval[1]:+.4f}"


def _p_value(p_value: float | None) -> str:
    return "–" if p_value is None else format_p_value(p_value).removeprefix("p = ").removeprefix("p ")


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))
