"""`report.json` (everything, a sample a line), `summary.json` (the few numbers) and `samples.jsonl` (a stream of samples)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from themis.core.codec import JsonObjectWriter, json_bytes, to_plain
from themis.core.entities import ExperimentReport, GenerationRecord, MetricAggregate
from themis.core.files import atomic_write
from themis.core.redaction import redact
from themis.experiment.export.charts import Chart, as_charts
from themis.experiment.export.samples import (
    Sample,
    answer_parts,
    count_failed,
    join_samples,
    report_run_id,
    report_sampling,
)


def export_json(
    report: ExperimentReport,
    path: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    charts: Iterable[Chart | Mapping[str, object]] | None = None,
    title: str = "Experiment report",
    sample_limit: int = 100,
    indent: int | None = 2,
) -> Path:
    """Writes the whole report, with all its samples, and returns the path.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.
        run_id: What the run is called in the file; by default the report's own id.
        charts: Charts of your own, as `Chart` or as dicts of the same fields.
        title: Its heading.
        sample_limit: Only handed on, as what a page shows of the samples.
        indent: Spaces by which a level is moved in; None for fields on one line.

    >>> import json, themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> json.loads(export_json(report, "report.json").read_text())["metrics"][0]["name"]
    'ExactMatch'
    """
    drawn = as_charts(charts)
    evaluation = report.evaluation_report
    with atomic_write(path) as file:
        fields = JsonObjectWriter(file, indent)
        fields.put("title", title)
        fields.put("summary", _summary(report, run_id))
        fields.put("metrics", [{"name": name, **_numbers(metric)} for name, metric in evaluation.metrics.items()])
        total = fields.put_each("samples", (_sample(sample) for sample in join_samples(report)))
        fields.put("rendered_sample_limit", sample_limit)
        fields.put("total_samples", total)
        fields.put("charts", [dataclasses.asdict(chart) for chart in drawn])
        for name, failures in (("run_failures", report.failures), ("evaluation_failures", evaluation.failures)):
            fields.put_each(name, ({"sample_id": one.sample_id, "message": one.message} for one in failures))
        fields.put("metrics_rendered", list(evaluation.metrics))
        fields.end()
    return Path(path)


def export_summary(
    report: ExperimentReport, path: str | os.PathLike[str], *, run_id: str | None = None, indent: int | None = 2
) -> Path:
    """Writes what a dashboard or a gate reads: means, counts, cost, failures.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.
        run_id: What the run is called in the file; by default the report's own id.
        indent: Spaces by which a level is moved in; None for fields on one line.

    >>> import json, themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> json.loads(export_summary(report, "summary.json").read_text())["total_samples"]
    1
    """
    failures = count_failed(report)
    known = report.metadata.get("total_samples")
    total = len(report.generation_results) if known is None else int(known)
    summary = {
        "run_id": report_run_id(report, run_id),
        "total_samples": total,
        "metrics": {name: _numbers(metric) for name, metric in report.evaluation_report.metrics.items()},
        "metadata": {
            "model": report.metadata.get("model"),
            "prompt_template": report.metadata.get("prompt_template"),
            "sampling": report_sampling(report),
        },
        "cost_usd": (report.metadata.get("cost") or {}).get("total_cost"),
        "performance": report.metadata.get("performance"),
        "caveats": report.metadata.get("caveats", []),
        "failures": failures,
        "failure_rate": round(failures / total, 4) if total else 0.0,
    }
    with atomic_write(path) as file:
        file.write(json_bytes(redact(summary), indent) + b"\n")
    return Path(path)


def export_jsonl(report: ExperimentReport, path: str | os.PathLike[str]) -> Path:
    """Writes everything of every sample, a line each, for programs that read as a stream.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.

    >>> import json, themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> json.loads(export_jsonl(report, "samples.jsonl").read_text())["output"]
    '4'
    """
    with atomic_write(path) as file:
        for sample in join_samples(report):
            file.write(json_bytes(describe_sample(sample)) + b"\n")
    return Path(path)


def describe_sample(sample: Sample) -> dict[str, object]:
    """A sample with prompt, answer in its parts, reference, attempts, usage and verdicts."""
    record = sample.record
    return {
        "sample_id": sample.sample_id,
        "prompt": sample.prompt,
        **({"messages": messages} if (messages := sample.messages) else {}),
        "output": sample.output,
        **answer_parts(None if record is None else record.output),
        "reference": sample.reference,
        "error": None
        if record is None or record.error is None
        else {"kind": record.error.kind, "message": record.error.message},
        "scores": _scores(sample),
        "failures": sample.failures,
        "usage": None if record is None or record.output is None else record.output.usage,
        "seconds": None if record is None else _seconds(record),
        "attempts": [
            {
                "output": attempt.output.text if attempt.output else None,
                # The only one's are the sample's.
                **(answer_parts(attempt.output) if len(sample.attempts) > 1 else {}),
                "error": attempt.error.message if attempt.error else None,
                "scores": {verdict.metric: verdict.value for verdict in verdicts},
            }
            for attempt, verdicts in zip(sample.attempts, sample.verdicts, strict=True)
        ],
        "metadata": sample.metadata,
    }


def _seconds(record: GenerationRecord) -> float | None:
    milliseconds: float | None = record.metrics.get("generation_time_ms")
    return None if milliseconds is None else milliseconds / 1000


def _numbers(metric: MetricAggregate) -> dict[str, object]:
    return {**metric.to_dict(), **({"details": metric.details} if metric.details else {})}


def _summary(report: ExperimentReport, run_id: str | None) -> dict[str, object]:
    return {
        **redact(to_plain(report.metadata, portable=True)),
        "run_id": report_run_id(report, run_id),
        "run_failures": len(report.failures),
        "evaluation_failures": len(report.evaluation_report.failures),
    }


def _sample(sample: Sample) -> dict[str, object]:
    return {
        "sample_id": sample.sample_id,
        "metadata": sample.metadata,
        **answer_parts(None if sample.record is None else sample.record.output),
        "scores": _scores(sample),
        "failures": sample.failures,
    }


def _scores(sample: Sample) -> list[dict[str, object]]:
    return [
        {"metric": score.metric_name, "value": score.value, "details": score.details, "metadata": score.metadata}
        for score in sample.scores
    ]
