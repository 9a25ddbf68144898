"""Stored things as the JSON that the API answers; the first fields are the contract's, the rest came later."""

from __future__ import annotations

from typing import Any

from themis.core.entities import EvaluationRecord, GenerationRecord
from themis.core.redaction import Redactor
from themis.storage import RunMetadata, RunStatus
from themis.storage.search import NewRecord, SampleLine, Score

__all__ = ["run_line", "run_progress", "sample_event", "sample_line", "whole_sample"]


def run_line(run: RunMetadata, answered: int | None = None, error: str | None = None) -> dict[str, Any]:
    """A run in a list. `error` says why it failed where the run itself does not."""
    summary = run.summary.get("metrics", {})
    return {
        "run_id": run.run_id,
        "experiment_id": run.experiment,
        "status": run.status.value,
        "num_samples": run.total_samples,
        "metrics": {name: metric["mean"] for name, metric in summary.items()},
        "created_at": run.created_at.isoformat(),
        "kind": run.kind,
        "model": run.model,
        "benchmark": run.benchmark,
        "tags": run.tags,
        "updated_at": run.updated_at.isoformat(),
        "completed_at": run.completed_at.isoformat() if run.completed_at else None,
        "metric_details": summary,
        "num_answered": _answered(run, answered),
        "failed": run.failed_generations,
        "num_cut_off": run.cut_off,
        "cost_usd": run.total_cost_usd,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        "calls": run.calls,
        "error": run.error_message if error is None else error,
        "is_abandoned": run.is_abandoned,
        # Only while somebody waits: one that was killed meanwhile does not.
        "waiting": run.waiting if run.status is RunStatus.IN_PROGRESS and run.writer is not None else None,
        # As people are told it: "completed", "16 of 60 failed".
        "standing": run.standing._asdict(),
        **({"memory": run.summary["memory"]} if "memory" in run.summary else {}),
    }


def _answered(run: RunMetadata, counted: int | None) -> int:
    return run.successful_generations + run.failed_generations if counted is None else counted


def run_progress(run: RunMetadata, answered: int, means: dict[str, tuple[float, int]]) -> dict[str, Any]:
    """What changes while a run is under way."""
    line = run_line(run, answered)
    if means and run.status is RunStatus.IN_PROGRESS:
        line["metrics"] = {name: mean for name, (mean, _) in means.items()}
        line["metric_details"] = {name: {"mean": mean, "count": count} for name, (mean, count) in means.items()}
    return {"type": "run", **line}


def sample_line(line: SampleLine, redactor: Redactor) -> dict[str, Any]:
    """A sample in a list."""
    return {
        "id": line.item_id,
        "prompt": _text(line.prompt, redactor),
        "response": _text(line.text, redactor),
        "scores": {score.metric: score.value for score in line.scores if score.value is not None},
        "error": _error(line.error, redactor),
        "outcomes": {score.metric: score.outcome for score in line.scores},
        "attempts": line.attempts,
        "seconds": line.seconds,
        "prompt_tokens": line.prompt_tokens,
        "completion_tokens": line.completion_tokens,
        "cost_usd": line.cost_usd,
        "position": line.position,
        "is_cut": line.is_cut,
    }


def whole_sample(
    position: int, record: GenerationRecord, judged: EvaluationRecord | None, scores: list[Score], redactor: Redactor
) -> dict[str, Any]:
    """A sample with everything that is stored of it."""
    task = record.task
    return {
        "id": str(task.metadata.get("dataset_id", "")),
        "position": position,
        "prompt": redactor.values(task.prompt.text),
        "response": None if record.output is None else redactor.values(record.output.text),
        "reference": None if task.reference is None else _data(task.reference.value, redactor),
        "row": _data(task.prompt.context, redactor),
        "scores": {score.metric: score.value for score in scores if score.value is not None},
        "outcomes": {score.metric: score.outcome for score in scores},
        "verdicts": [
            {
                "metric": score.metric_name,
                "value": score.value,
                "details": _data(score.details, redactor),
                "metadata": _data(score.metadata, redactor),
            }
            for score in (judged.scores if judged is not None else ())
        ],
        "failures": [redactor.text(reason) for reason in (judged.failures if judged is not None else ())],
        "attempts": [_attempt(attempt, redactor) for attempt in record.attempts or [record]],
        "metrics": _data({k: v for k, v in record.metrics.items() if k != "attempt_outcomes"}, redactor),
    }


def _attempt(attempt: GenerationRecord, redactor: Redactor) -> dict[str, Any]:
    output = attempt.output
    return {
        "response": None if output is None else redactor.values(output.text),
        "usage": None if output is None else output.usage,
        "raw": None if output is None else _data(output.raw, redactor),
        "error": _error(attempt.error, redactor),
        "metrics": _data(attempt.metrics, redactor),
    }


def sample_event(run_id: str, record: NewRecord) -> dict[str, Any]:
    return {
        "type": "sample",
        "run_id": run_id,
        "id": record.item_id,
        "position": record.position,
        "attempt": record.attempt,
        "ok": record.ok,
        "seconds": record.seconds,
        "scores": {score.metric: score.value for score in record.scores if score.value is not None},
    }


def _data(value: Any, redactor: Redactor) -> Any:
    """Rows and answers without this process's secrets; what only looks like one, or is called one, is the user's data."""
    if isinstance(value, str):
        return redactor.values(value)
    if isinstance(value, dict):
        return {key: _data(item, redactor) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_data(item, redactor) for item in value]
    return value


def _text(text: str | None, redactor: Redactor) -> str | None:
    return None if text is None else redactor.values(text)


def _error(error: Any, redactor: Redactor) -> dict[str, Any] | None:
    return None if error is None else {"kind": error.kind, "message": redactor.text(error.message)}
