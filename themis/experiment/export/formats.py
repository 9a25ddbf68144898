"""The names of export formats, and one function that writes any of them into a directory."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from themis.core.entities import ExperimentReport
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.experiment.export.as_csv import export_csv
from themis.experiment.export.as_html import export_html
from themis.experiment.export.as_inspect import export_inspect
from themis.experiment.export.as_json import export_json, export_summary
from themis.experiment.export.as_jsonl import export_jsonl
from themis.experiment.export.as_junit import export_junit
from themis.experiment.export.as_lm_eval import export_lm_eval
from themis.experiment.export.as_parquet import export_parquet
from themis.experiment.export.as_tables import export_latex, export_markdown

__all__ = ["DEFAULT_FORMATS", "FORMATS", "export_formats"]

DEFAULT_FORMATS = ("csv", "json", "html", "summary")


@dataclass(frozen=True)
class _Order:
    """What is to be written, and where."""

    report: ExperimentReport
    directory: Path
    run_id: str | None
    created_at: datetime.datetime | None
    pass_at: float


FORMATS: dict[str, Callable[[_Order], list[Path]]] = {
    "csv": lambda order: [export_csv(order.report, order.directory / "report.csv")],
    "json": lambda order: [export_json(order.report, order.directory / "report.json", run_id=order.run_id)],
    "html": lambda order: [export_html(order.report, order.directory / "report.html", run_id=order.run_id)],
    "summary": lambda order: [export_summary(order.report, order.directory / "summary.json", run_id=order.run_id)],
    "parquet": lambda order: [export_parquet(order.report, order.directory / "report.parquet")],
    "jsonl": lambda order: [export_jsonl(order.report, order.directory / "samples.jsonl")],
    "markdown": lambda order: [export_markdown(order.report, order.directory / "report.md", run_id=order.run_id)],
    "latex": lambda order: [export_latex(order.report, order.directory / "report.tex", run_id=order.run_id)],
    "junit": lambda order: [
        export_junit(order.report, order.directory / "junit.xml", run_id=order.run_id, pass_at=order.pass_at)
    ],
    "inspect": lambda order: [
        export_inspect(order.report, order.directory, run_id=order.run_id, created_at=order.created_at)
    ],
    "lm-eval": lambda order: export_lm_eval(
        order.report, order.directory, run_id=order.run_id, created_at=order.created_at
    ),
}


def export_formats(
    report: ExperimentReport,
    directory: str | os.PathLike[str],
    formats: Iterable[str] = DEFAULT_FORMATS,
    *,
    run_id: str | None = None,
    created_at: datetime.datetime | None = None,
    pass_at: float = 0.5,
) -> dict[str, list[Path]]:
    """Writes a report into a directory in each of the formats; format -> the files it made.

    `created_at` is when the run was made, for the formats that say so. `pass_at` is the score at which JUnit passes.
    """
    wanted = list(dict.fromkeys(formats))
    for name in wanted:
        if name not in FORMATS:
            raise ConfigurationError(
                f"unknown export format {name!r}{nearest(name, FORMATS)}; known: {', '.join(FORMATS)}"
            )
    if not wanted:
        raise ConfigurationError(f"no export format given; known: {', '.join(FORMATS)}")
    order = _Order(report, Path(directory), run_id, created_at, pass_at)
    return {name: FORMATS[name](order) for name in wanted}
