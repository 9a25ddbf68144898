"""`report.md` and `report.tex`: the metrics as a table for a pull request or a paper."""

from __future__ import annotations

import math
import os
import re
from itertools import islice
from pathlib import Path

from themis.core.entities import ExperimentReport, MetricAggregate
from themis.experiment.export.as_html import visible
from themis.experiment.export.as_json import failed_samples, report_run_id
from themis.experiment.export.samples import all_failures
from themis.experiment.export.whole_files import whole_file
from themis.runs.report import report_standing

__all__ = ["export_latex", "export_markdown", "in_latex", "in_markdown"]

_SHOWN_FAILURES = 10
_LONGEST_FAILURE = 300
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip


def export_markdown(
    report: ExperimentReport, path: str | os.PathLike[str], *, run_id: str | None = None, picture: str | None = None
) -> Path:
    """Facts, metrics and first failures; `picture` is a line of Markdown to put under the heading."""
    cost = (report.metadata.get("cost") or {}).get("total_cost")
    failed = failed_samples(report)
    facts = {
        "model": report.metadata.get("model"),
        "samples": report.metadata.get("total_samples", len(report.generation_results)),
        "failed": failed,
        "cost": "price unknown" if cost is None else f"${cost:.4f}",
        "status": report_standing(report),
        "manifest": report.metadata.get("manifest_hash"),
    }
    lines = [f"# {in_markdown(report_run_id(report, run_id))}", "", *((picture, "") if picture else ())]
    lines += [f"- {name}: {in_markdown(str(value))}" for name, value in facts.items() if value is not None]
    lines += ["", "| metric | mean | 95 % interval | scored | failed |", "|---|---:|---|---:|---:|"]
    for name, metric in report.evaluation_report.metrics.items():
        lines.append(
            f"| {in_markdown(name)} | {_mean(metric)} | {_interval(metric, '–')} | {metric.count} | {metric.failed} |"
        )
    if failed:
        lines += ["", "## Failures", ""]
        for failure in islice(all_failures(report), _SHOWN_FAILURES):
            message = in_markdown(failure.message[:_LONGEST_FAILURE])
            lines.append(f"- {in_markdown(str(failure.sample_id))}: {message}")
        if failed > _SHOWN_FAILURES:
            lines.append(f"- … {failed} samples in all")
    return _write(path, lines)


def export_latex(report: ExperimentReport, path: str | os.PathLike[str], *, run_id: str | None = None) -> Path:
    """A `tabular` to \\input; it uses the rules of the package booktabs."""
    name = in_latex(report_run_id(report, run_id))
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"Metric & Mean & 95\,\% interval & Scored & Failed \\",
        r"\midrule",
    ]
    lines += [
        f"{in_latex(metric_name)} & {_mean(metric)} & {_interval(metric, '--')} & {metric.count} & {metric.failed} \\\\"
        for metric_name, metric in report.evaluation_report.metrics.items()
    ]
    model = in_latex(str(report.metadata.get("model") or ""))
    lines += [r"\bottomrule", r"\end{tabular}", f"% run {name}, model {model}"]
    return _write(path, lines)


def in_markdown(text: str) -> str:
    """Text that stays text: no markup, no HTML, no second table cell, no second line."""
    text = re.sub(r"([\\`*_{}\[\]()#|~!])", r"\\\1", visible(" ".join(text.split())))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def in_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in visible(" ".join(text.split())))


def _mean(metric: MetricAggregate) -> str:
    return "n/a" if math.isnan(metric.mean) else f"{metric.mean:.4f}"


def _interval(metric: MetricAggregate, dash: str) -> str:
    return f"{metric.ci[0]:.4f} {dash} {metric.ci[1]:.4f}" if metric.ci else "n/a"


def _write(path: str | os.PathLike[str], lines: list[str]) -> Path:
    with whole_file(path) as file:
        file.write("\n".join([*lines, ""]).encode("utf-8", "backslashreplace"))
    return Path(path)
