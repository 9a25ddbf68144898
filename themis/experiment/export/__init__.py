"""A report as files: for spreadsheets, programs, people, papers, build servers and other evaluation systems."""

from __future__ import annotations

import datetime
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from themis.core.entities import ExperimentReport
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.experiment.export.as_html import export_html
from themis.experiment.export.as_json import export_json, export_jsonl, export_summary
from themis.experiment.export.as_junit import export_junit
from themis.experiment.export.as_logs import export_inspect, export_lm_eval
from themis.experiment.export.as_tables import export_csv, export_latex, export_markdown, export_parquet
from themis.experiment.export.charts import Chart, ChartPoint
from themis.experiment.export.measures import export_confusion, report_details

__all__ = [
    "DEFAULT_FORMATS",
    "FORMATS",
    "Chart",
    "ChartPoint",
    "export_csv",
    "export_file",
    "export_formats",
    "export_html",
    "export_html_report",
    "export_inspect",
    "export_json",
    "export_jsonl",
    "export_junit",
    "export_latex",
    "export_lm_eval",
    "export_markdown",
    "export_parquet",
    "export_report_bundle",
    "export_report_csv",
    "export_report_json",
    "export_summary",
    "export_summary_json",
    "find_writer",
]

# What is written where no formats are named.
DEFAULT_FORMATS = ("csv", "json", "html", "summary")

FilePath = str | os.PathLike[str]

# The same functions by the names that programs for Themis 1.x call them by.
export_report_csv, export_report_json = export_csv, export_json
export_html_report, export_summary_json = export_html, export_summary


@dataclass(frozen=True)
class _Export:
    """What is to be written, and where."""

    report: ExperimentReport
    directory: Path
    run_id: str | None
    created_at: datetime.datetime | None
    pass_at: float


# How each format is written, by its name.
FORMATS: dict[str, Callable[[_Export], list[Path]]] = {
    "csv": lambda to: [export_csv(to.report, to.directory / "report.csv"), *_confusions(to)],
    "json": lambda to: [export_json(to.report, to.directory / "report.json", run_id=to.run_id)],
    "html": lambda to: [export_html(to.report, to.directory / "report.html", run_id=to.run_id)],
    "summary": lambda to: [export_summary(to.report, to.directory / "summary.json", run_id=to.run_id)],
    "parquet": lambda to: [export_parquet(to.report, to.directory / "report.parquet")],
    "jsonl": lambda to: [export_jsonl(to.report, to.directory / "samples.jsonl")],
    "markdown": lambda to: [export_markdown(to.report, to.directory / "report.md", run_id=to.run_id)],
    "latex": lambda to: [export_latex(to.report, to.directory / "report.tex", run_id=to.run_id)],
    "junit": lambda to: [export_junit(to.report, to.directory / "junit.xml", run_id=to.run_id, pass_at=to.pass_at)],
    "inspect": lambda to: [export_inspect(to.report, to.directory, run_id=to.run_id, created_at=to.created_at)],
    "lm-eval": lambda to: export_lm_eval(to.report, to.directory, run_id=to.run_id, created_at=to.created_at),
}


def _confusions(to: _Export) -> list[Path]:
    """A file for each confusion matrix of the report; several metrics mostly have one in common."""
    found = [details for details in report_details(to.report).values() if "confusion" in details]
    names = ["confusion.csv", *(f"confusion-{number}.csv" for number in range(2, len(found) + 1))]
    return [export_confusion(details, to.directory / name) for details, name in zip(found, names, strict=False)]


def export_formats(
    report: ExperimentReport,
    directory: FilePath,
    formats: Iterable[str] = DEFAULT_FORMATS,
    *,
    run_id: str | None = None,
    created_at: datetime.datetime | None = None,
    pass_at: float = 0.5,
) -> dict[str, list[Path]]:
    """Writes a report into a directory in each of the formats.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        directory: Where the files go; it is made.
        formats: Names out of `FORMATS`.
        run_id: What the run is called in the files; by default the report's own id.
        created_at: When the run was made, for the formats that say so; by default now.
        pass_at: The score at which a test of JUnit passes.

    Returns:
        format -> the files it made.

    Raises:
        ConfigurationError: A format is not known, or none is given.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> {name: [str(path) for path in paths] for name, paths in export_formats(report, "out", ["csv", "junit"]).items()}
    {'csv': ['out/report.csv'], 'junit': ['out/junit.xml']}
    """
    wanted = list(dict.fromkeys(formats))
    for name in wanted:
        if name not in FORMATS:
            raise ConfigurationError(
                f"unknown export format {name!r}{nearest(name, FORMATS)}; known: {', '.join(FORMATS)}"
            )
    if not wanted:
        raise ConfigurationError(f"no export format given; known: {', '.join(FORMATS)}")
    export = _Export(report, Path(directory), run_id, created_at, pass_at)
    return {name: FORMATS[name](export) for name in wanted}


Writer = Callable[[ExperimentReport, FilePath, str | None], Path]
# How a file of its own is written, by its suffix.
_WRITERS: dict[str, Writer] = {
    ".csv": lambda report, path, run_id: export_csv(report, path),
    ".htm": lambda report, path, run_id: export_html(report, path, run_id=run_id),
    ".html": lambda report, path, run_id: export_html(report, path, run_id=run_id),
    ".json": lambda report, path, run_id: export_json(report, path, run_id=run_id),
    ".jsonl": lambda report, path, run_id: export_jsonl(report, path),
    ".md": lambda report, path, run_id: export_markdown(report, path, run_id=run_id),
    ".parquet": lambda report, path, run_id: export_parquet(report, path),
    ".tex": lambda report, path, run_id: export_latex(report, path, run_id=run_id),
    ".xml": lambda report, path, run_id: export_junit(report, path, run_id=run_id),
}


def find_writer(path: FilePath) -> Writer:
    """What writes a report to a file of this suffix: a function of the report, the path and the run's name.

    Args:
        path: The file.

    Raises:
        ConfigurationError: No format has that suffix.

    >>> find_writer("outputs/REPORT.CSV") is find_writer("table.csv")
    True
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        *most, last = _WRITERS
        raise ConfigurationError(
            f"a report is written as {', '.join(most)} or {last}{nearest(suffix, _WRITERS)}, got {str(path)!r}"
        )
    return _WRITERS[suffix]


def export_file(report: ExperimentReport, path: FilePath, *, run_id: str | None = None) -> Path:
    """Writes a report to one file, in the format that its suffix says.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file, ending in .csv, .html, .json, .jsonl, .md, .parquet, .tex or .xml (JUnit); its folder is made.
        run_id: What the run is called in the file; by default the report's own id.

    Raises:
        ConfigurationError: No format has that suffix.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> export_file(report, "out/report.md").name
    'report.md'
    """
    return find_writer(path)(report, path, run_id)


def export_report_bundle(
    report: ExperimentReport,
    *,
    csv_path: FilePath | None = None,
    html_path: FilePath | None = None,
    json_path: FilePath | None = None,
    summary_path: FilePath | None = None,
    run_id: str | None = None,
    charts: Iterable[Chart | Mapping[str, object]] | None = None,
    title: str = "Experiment report",
    sample_limit: int = 100,
    indent: int | None = 2,
) -> OrderedDict[str, Path]:
    """Writes the files that a path is given for, and returns their paths as csv, html, json, summary.

    CSV and JSON hold every sample of the report, the page as many as a browser opens.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        csv_path: One row a sample.
        html_path: A page that needs nothing else.
        json_path: Everything.
        summary_path: Means, counts, cost and failures, as JSON.
        run_id: What the run is called in the files; by default the report's own id.
        charts: Charts of your own for the page and the JSON, as `Chart` or as dicts of the same fields.
        title: The heading of the page.
        sample_limit: Bounds only the page's plain table, which is printed and shown where no script runs; the JSON hands
            it on as `rendered_sample_limit`.
        indent: Of the JSON files; None for fields on one line.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> list(export_report_bundle(report, csv_path="out/report.csv", json_path="out/report.json"))
    ['csv', 'json']
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
