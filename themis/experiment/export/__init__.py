"""A report as files: for spreadsheets, programs, people, papers, build servers and other evaluation systems."""

from themis.experiment.export.as_csv import export_csv
from themis.experiment.export.as_html import export_html
from themis.experiment.export.as_inspect import export_inspect
from themis.experiment.export.as_json import export_json, export_summary
from themis.experiment.export.as_jsonl import export_jsonl
from themis.experiment.export.as_junit import export_junit
from themis.experiment.export.as_lm_eval import export_lm_eval
from themis.experiment.export.as_parquet import export_parquet
from themis.experiment.export.as_tables import export_latex, export_markdown
from themis.experiment.export.bundle import export_report_bundle
from themis.experiment.export.charts import Chart, ChartPoint
from themis.experiment.export.formats import DEFAULT_FORMATS, FORMATS, export_formats

__all__ = [
    "DEFAULT_FORMATS",
    "FORMATS",
    "Chart",
    "ChartPoint",
    "export_csv",
    "export_formats",
    "export_html",
    "export_inspect",
    "export_json",
    "export_jsonl",
    "export_junit",
    "export_latex",
    "export_lm_eval",
    "export_markdown",
    "export_parquet",
    "export_report_bundle",
    "export_summary",
]
