"""`report.json` (everything, a sample a line) and `summary.json` (the few numbers)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from themis.core.entities import ExperimentReport, MetricAggregate
from themis.core.redaction import redact
from themis.experiment.export.charts import Chart, as_charts
from themis.experiment.export.json_text import JsonObject, json_bytes, strict
from themis.experiment.export.samples import Sample, all_failures, joined
from themis.experiment.export.whole_files import whole_file

__all__ = ["export_json", "export_summary", "failed_samples", "metric_numbers", "report_run_id", "sampling_of"]


def export_json(
    report: ExperimentReport,
    path: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    charts: Iterable[Chart | Mapping[str, Any]] | None = None,
    title: str = "Experiment report",
    sample_limit: int = 100,
    indent: int | None = 2,
) -> Path:
    """The whole report. All samples are in it; `sample_limit` is only handed on as what a page shows of them."""
    drawn = as_charts(charts)
    with whole_file(path) as file:
        fields = JsonObject(file, indent)
        fields.put("title", title)
        fields.put("summary", _summary(report, run_id))
        fields.put("metrics", [{"name": n, **metric_numbers(m)} for n, m in report.evaluation_report.metrics.items()])
        total = fields.put_each("samples", (_sample(sample) for sample in joined(report)))
        fields.put("rendered_sample_limit", sample_limit)
        fields.put("total_samples", total)
        fields.put("charts", [dataclasses.asdict(chart) for chart in drawn])
        fields.put_each("run_failures", (_failure(f.sample_id, f.message) for f in report.failures))
        fields.put_each(
            "evaluation_failures", (_failure(f.sample_id, f.message) for f in report.evaluation_report.failures)
        )
        fields.put("metrics_rendered", list(report.evaluation_report.metrics))
        fields.end()
    return Path(path)


def export_summary(
    report: ExperimentReport, path: str | os.PathLike[str], *, run_id: str | None = None, indent: int | None = 2
) -> Path:
    """What a dashboard or a gate reads: means, counts, cost, failures."""
    failures = failed_samples(report)
    total = _total_samples(report)
    summary = {
        "run_id": report_run_id(report, run_id),
        "total_samples": total,
        "metrics": {name: metric_numbers(metric) for name, metric in report.evaluation_report.metrics.items()},
        "metadata": {
            "model": report.metadata.get("model"),
            "prompt_template": report.metadata.get("prompt_template"),
            "sampling": sampling_of(report),
        },
        "cost_usd": (report.metadata.get("cost") or {}).get("total_cost"),
        "failures": failures,
        "failure_rate": round(failures / total, 4) if total else 0.0,
    }
    with whole_file(path) as file:
        file.write(json_bytes(redact(summary), indent) + b"\n")
    return Path(path)


def metric_numbers(metric: MetricAggregate) -> dict[str, Any]:
    """A metric without its scores; a mean of nothing is null."""
    return {
        "count": metric.count,
        "mean": strict(float(metric.mean)),
        "failed": metric.failed,
        "unparsed": metric.unparsed,
        "stderr": metric.stderr,
        "ci": list(metric.ci) if metric.ci else None,
        "ci_method": metric.ci_method,
    }


def failed_samples(report: ExperimentReport) -> int:
    """Samples without an answer or without a verdict; one that failed twice is one."""
    return len({failure.sample_id for failure in all_failures(report)})


def report_run_id(report: ExperimentReport, run_id: str | None = None) -> str:
    return run_id or str(report.metadata.get("run_id") or "run")


def sampling_of(report: ExperimentReport) -> dict[str, Any]:
    manifest = report.metadata.get("reproducibility_manifest") or {}
    if manifest.get("sampling"):
        return dict(manifest["sampling"])
    first = next(iter(report.generation_results), None)
    return {} if first is None else dict(vars(first.task.sampling))


def _total_samples(report: ExperimentReport) -> int:
    known = report.metadata.get("total_samples")
    return len(report.generation_results) if known is None else int(known)


def _summary(report: ExperimentReport, run_id: str | None) -> dict[str, Any]:
    return {
        **redact(strict(report.metadata)),
        "run_id": report_run_id(report, run_id),
        "run_failures": len(report.failures),
        "evaluation_failures": len(report.evaluation_report.failures),
    }


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        "sample_id": sample.sample_id,
        "metadata": sample.metadata,
        "scores": [
            {"metric": score.metric_name, "value": score.value, "details": score.details, "metadata": score.metadata}
            for score in sample.scores
        ],
        "failures": sample.failures,
    }


def _failure(sample_id: str | None, message: str) -> dict[str, Any]:
    return {"sample_id": sample_id, "message": message}
