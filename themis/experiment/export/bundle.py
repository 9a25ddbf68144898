"""A report as the files people ask for: the tutorial's four at once."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from themis.core.entities import ExperimentReport
from themis.experiment.export.as_csv import export_csv
from themis.experiment.export.as_html import export_html
from themis.experiment.export.as_json import export_json, export_summary
from themis.experiment.export.charts import Chart

__all__ = ["export_report_bundle"]

FilePath = str | os.PathLike[str]


def export_report_bundle(
    report: ExperimentReport,
    *,
    csv_path: FilePath | None = None,
    html_path: FilePath | None = None,
    json_path: FilePath | None = None,
    summary_path: FilePath | None = None,
    run_id: str | None = None,
    charts: Iterable[Chart | Mapping[str, Any]] | None = None,
    title: str = "Experiment report",
    sample_limit: int = 100,
    indent: int | None = 2,
) -> OrderedDict[str, Path]:
    """Writes the files that a path is given for, and returns their paths as csv, html, json, summary.

    CSV and JSON hold every sample of the report, the page as many as a browser opens. `sample_limit` bounds only the
    page's plain table, which is printed and shown where no script runs; the JSON hands it on as `rendered_sample_limit`.
    """
    drawn = list(charts or ())
    written: OrderedDict[str, Path] = OrderedDict()
    if csv_path is not None:
        written["csv"] = export_csv(report, csv_path)
    if html_path is not None:
        written["html"] = export_html(
            report, html_path, run_id=run_id, charts=drawn, title=title, sample_limit=sample_limit
        )
    if json_path is not None:
        written["json"] = export_json(
            report, json_path, run_id=run_id, charts=drawn, title=title, sample_limit=sample_limit, indent=indent
        )
    if summary_path is not None:
        written["summary"] = export_summary(report, summary_path, run_id=run_id, indent=indent)
    return written
