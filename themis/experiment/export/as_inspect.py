"""A log that Inspect's own tools read: its JSON eval log, version 2."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from themis.core.entities import ExperimentReport, GenerationRecord, MetricScore
from themis.core.redaction import redact
from themis.experiment.export.as_json import report_run_id, sampling_of
from themis.experiment.export.json_text import JsonObject, as_text, strict
from themis.experiment.export.names import file_word
from themis.experiment.export.samples import Sample, joined
from themis.experiment.export.whole_files import whole_file

__all__ = ["export_inspect"]

_STATUS = {"completed": "success", "failed": "error", "in_progress": "started"}
# What Inspect calls the reasons for which models stop.
_STOP_REASONS = {"length": "max_tokens", "content_filter": "content_filter", "tool_calls": "tool_calls"}


def export_inspect(
    report: ExperimentReport,
    directory: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    created_at: datetime.datetime | None = None,
) -> Path:
    """Writes `<time>_<task>_<run>.json`, the name by which Inspect's viewer finds it."""
    run_id = report_run_id(report, run_id)
    created = (created_at or datetime.datetime.now(datetime.UTC)).replace(microsecond=0).isoformat()
    task = _task(report)
    # Underscores part the name for Inspect: time, task, id.
    words = (file_word(task).replace("_", "-"), file_word(run_id).replace("_", "-"))
    path = Path(directory) / f"{created.replace(':', '-')}_{'_'.join(words)}.json"
    manifest = redact(report.metadata.get("reproducibility_manifest") or {})
    status = _STATUS.get(str(report.metadata.get("status", "completed")), "cancelled")
    model = _model(report)
    with whole_file(path) as file:
        log = JsonObject(file)
        log.put("version", 2)
        log.put("status", status)
        log.put("eval", _eval(report, run_id, task, model, created, manifest))
        log.put("plan", {"name": "plan", "steps": [], "config": _generate_config(report)})
        log.put("results", _results(report))
        log.put("stats", {"started_at": created, "completed_at": created, "model_usage": _usage_of_run(report, model)})
        if status == "error":
            log.put("error", _error(str(report.metadata.get("stopped") or "the run failed")))
        log.put_each("samples", (entry for sample in joined(report) for entry in _samples(sample, model)))
        log.end()
    return path


def _task(report: ExperimentReport) -> str:
    manifest = report.metadata.get("reproducibility_manifest") or {}
    return str((manifest.get("dataset") or {}).get("benchmark_id") or "themis")


def _model(report: ExperimentReport) -> str:
    provider, _, name = str(report.metadata.get("model") or "none:none").partition(":")
    return f"{provider}/{name}"


def _eval(
    report: ExperimentReport, run_id: str, task: str, model: str, created: str, manifest: dict[str, Any]
) -> dict[str, Any]:
    dataset = manifest.get("dataset") or {}
    return {
        "eval_id": run_id,
        "run_id": run_id,
        "created": created,
        "task": task,
        "task_id": run_id,
        "task_version": 0,
        "task_attribs": {},
        "task_args": {},
        "dataset": {
            "name": dataset.get("benchmark_id") or dataset.get("fingerprint"),
            "samples": report.metadata.get("total_samples"),
            "shuffled": False,
        },
        "model": model,
        "model_args": {},
        "config": {"epochs": int(manifest.get("num_samples") or 1), "fail_on_error": False},
        "packages": manifest.get("package_versions") or {},
        "metadata": {"manifest_hash": report.metadata.get("manifest_hash"), "exported_by": "themis"},
        "scorers": [{"name": name} for name in report.evaluation_report.metrics],
    }


def _generate_config(report: ExperimentReport) -> dict[str, Any]:
    sampling = sampling_of(report)
    limit = sampling.get("max_tokens")
    config = {"temperature": sampling.get("temperature"), "top_p": sampling.get("top_p")}
    return {**config, "max_tokens": limit} if limit is not None and limit > 0 else config


def _results(report: ExperimentReport) -> dict[str, Any]:
    scores = []
    for name, metric in report.evaluation_report.metrics.items():
        numbers = {"mean": metric.mean, "stderr": metric.stderr}
        scores.append(
            {
                "name": name,
                "scorer": name,
                "scored_samples": metric.count,
                "unscored_samples": metric.failed,
                "params": {},
                "metrics": {
                    key: {"name": key, "value": value, "params": {}}
                    for key, value in numbers.items()
                    if value is not None and not math.isnan(value)
                },
            }
        )
    return {
        "total_samples": report.metadata.get("total_samples", len(report.generation_results)),
        "completed_samples": report.metadata.get("successful_generations", len(report.generation_results)),
        "scores": scores,
    }


def _usage_of_run(report: ExperimentReport, model: str) -> dict[str, Any]:
    tokens = (report.metadata.get("cost") or {}).get("token_counts") or {}
    return {model: _usage(tokens)} if tokens else {}


def _usage(tokens: dict[str, Any]) -> dict[str, Any]:
    prompt, completion = tokens.get("prompt_tokens") or 0, tokens.get("completion_tokens") or 0
    return {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}


# --- samples ----------------------------------------------------------------------------------------------------------


def _samples(sample: Sample, model: str) -> Iterator[dict[str, Any]]:
    """One entry; where every attempt was scored by itself, one an attempt, as epochs."""
    record = sample.record
    by_metric: dict[str, list[MetricScore]] = {}
    for score in sample.scores:
        by_metric.setdefault(score.metric_name, []).append(score)
    attempts = record.attempts if record is not None else []
    most = max((len(scores) for scores in by_metric.values()), default=1)
    if most > 1 and len(attempts) == most:
        for epoch, attempt in enumerate(attempts):
            scores = {name: found[epoch] for name, found in by_metric.items() if epoch < len(found)}
            yield _entry(sample, attempt, epoch + 1, scores, model)
    else:
        yield _entry(sample, record, 1, {name: found[0] for name, found in by_metric.items()}, model)


def _entry(
    sample: Sample, record: GenerationRecord | None, epoch: int, scores: dict[str, MetricScore], model: str
) -> dict[str, Any]:
    question = {"role": "user", "content": sample.prompt, "source": "input"}
    output = record.output if record is not None else None
    entry: dict[str, Any] = {
        "id": sample.sample_id or "",
        "epoch": epoch,
        "input": sample.prompt,
        "target": _target(sample.reference),
        "messages": [question],
        "output": {"model": model, "choices": []},
        "scores": {name: _score(score) for name, score in scores.items()},
        "metadata": {} if record is None else strict(record.task.metadata),
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }
    if output is not None:
        answer = {"role": "assistant", "content": output.text, "source": "generate"}
        usage = _usage(output.usage or {})
        entry["messages"].append(answer)
        entry["output"] = {
            "model": model,
            "choices": [{"message": answer, "stop_reason": _stop_reason(output.raw)}],
            "usage": usage,
        }
        entry["model_usage"] = {model: usage}
    if record is not None and record.error is not None:
        entry["error"] = _error(record.error.message)
    elif sample.failures:
        entry["metadata"]["themis_failures"] = sample.failures
    return entry


def _target(reference: Any) -> str | list[str]:
    if reference is None:
        return ""
    return [as_text(one) for one in reference] if isinstance(reference, list | tuple) else as_text(reference)


def _score(score: MetricScore) -> dict[str, Any]:
    return {"value": score.value, "metadata": strict({**score.metadata, **score.details})}


def _stop_reason(raw: Any) -> str:
    reason = raw.get("finish_reason") if isinstance(raw, dict) else None
    return _STOP_REASONS.get(str(reason), "stop")


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": message, "traceback_ansi": message}
