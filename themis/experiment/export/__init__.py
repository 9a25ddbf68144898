"""A report as files: for spreadsheets, programs, people, papers, build servers and other evaluation systems."""

from themis.experiment.export.as_csv import export_csv
from themis.experiment.export.as_html import export_html
from themis.experiment.export.as_json import export_json, export_summary
from themis.experiment.export.bundle import export_report_bundle
from themis.experiment.export.charts import Chart, ChartPoint

__all__ = [
    "Chart",
    "ChartPoint",
    "export_csv",
    "export_html",
    "export_json",
    "export_report_bundle",
    "export_summary",
]
