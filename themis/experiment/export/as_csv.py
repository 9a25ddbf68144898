"""`report.csv`: one row a sample, for spreadsheets."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

from themis.core.entities import ExperimentReport
from themis.experiment.export.json_text import as_text
from themis.experiment.export.samples import Sample, joined, score_values
from themis.experiment.export.whole_files import whole_file

__all__ = ["export_csv", "neutral"]

# A spreadsheet takes a cell that starts so for a formula, and runs it.
# The wide forms too: some spreadsheets read them as the narrow ones.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def export_csv(report: ExperimentReport, path: str | os.PathLike[str]) -> Path:
    """sample_id, the rows' fields, one column a metric, failures. A missing score is an empty cell."""
    fields, metrics = _columns(report)
    with whole_file(path) as file:
        # Half a surrogate pair cannot be written in UTF-8; it is spelled out.
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        # Lines end as RFC 4180 says; with another ending the writer would leave a bare return in a cell unquoted.
        table = csv.writer(text, lineterminator="\r\n")
        header = ["sample_id", *fields, *(f"metric:{name}" for name in metrics), "failures"]
        table.writerow([neutral(name) for name in header])
        for sample in joined(report):
            table.writerow(_row(sample, fields, metrics))
        text.flush()
        text.detach()
    return Path(path)


def _columns(report: ExperimentReport) -> tuple[list[str], list[str]]:
    """Fields and metrics that any sample has; rows need not all have the same."""
    fields: set[str] = set()
    metrics = set(report.evaluation_report.metrics)
    for sample in joined(report):
        fields.update(sample.metadata)
        metrics.update(score.metric_name for score in sample.scores)
    return sorted(fields), sorted(metrics)


def _row(sample: Sample, fields: list[str], metrics: list[str]) -> list[Any]:
    metadata, scores = sample.metadata, score_values(sample.scores)
    return [
        neutral(sample.sample_id),
        *(neutral(metadata.get(name)) for name in fields),
        *(scores.get(name, "") for name in metrics),
        neutral("; ".join(sample.failures)),
    ]


def neutral(value: Any) -> Any:
    """A cell that no spreadsheet runs: text that starts like a formula gets an apostrophe before it."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return value
    text = as_text(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
