"""Logs that other systems' own tools read: Inspect's JSON eval log, and lm-evaluation-harness's results and samples."""

from __future__ import annotations

import datetime
import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from themis.core.codec import JsonObjectWriter, format_value, json_bytes, to_plain
from themis.core.continuations import ScoredContinuation, list_scored
from themis.core.entities import ExperimentReport, GenerationRecord, MetricScore
from themis.core.files import atomic_write, safe_filename
from themis.core.redaction import redact
from themis.core.transcripts import OF_ATTEMPT, list_answered, list_asked, without_retold
from themis.experiment.export.inspect_messages import ReadAttachment, write_answer, write_messages
from themis.experiment.export.samples import Sample, join_samples, report_run_id, report_sampling

_STATUS = {"completed": "success", "failed": "error", "in_progress": "started"}
# What Inspect calls the reasons for which models stop.
_STOP_REASONS = {
    "length": "max_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "tool_calls": "tool_calls",
}
# What a line of lm-eval has besides its metrics.
LM_EVAL_FIELDS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "schema_hash"),
    )
)


# --- Inspect ----------------------------------------------------------------------------------------------------------


def export_inspect(
    report: ExperimentReport,
    directory: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    created_at: datetime.datetime | None = None,
) -> Path:
    """Writes `<time>_<task>_<run>.json`, the name by which Inspect's viewer finds it: its JSON eval log, version 2.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        directory: Where the file goes; it is made.
        run_id: What the run is called in it; by default the report's own id.
        created_at: When the run was made; by default now.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, run_id="first", progress=False)
    >>> export_inspect(report, "logs", created_at=datetime.datetime(2030, 1, 1)).name
    '2030-01-01T00-00-00_demo_first.json'
    """
    run_id = report_run_id(report, run_id)
    created = (created_at or datetime.datetime.now(datetime.UTC)).replace(microsecond=0).isoformat()
    task = _task(report)
    # Underscores part the name for Inspect: time, task, id.
    words = (safe_filename(task).replace("_", "-"), safe_filename(run_id).replace("_", "-"))
    path = Path(directory) / f"{created.replace(':', '-')}_{'_'.join(words)}.json"
    manifest = redact(report.metadata.get("reproducibility_manifest") or {})
    status = _STATUS.get(str(report.metadata.get("status", "completed")), "cancelled")
    model = _model(report)
    with atomic_write(path) as file:
        log = JsonObjectWriter(file)
        log.put("version", 2)
        log.put("status", status)
        log.put("eval", _eval(report, run_id, task, model, created, manifest))
        log.put("plan", {"name": "plan", "steps": [], "config": _generate_config(report)})
        log.put("results", _results(report))
        log.put("stats", {"started_at": created, "completed_at": created, "model_usage": _usage_of_run(report, model)})
        if status == "error":
            log.put("error", _error(str(report.metadata.get("stopped") or "the run failed")))
        read = report.read_attachment
        log.put_each("samples", (entry for sample in join_samples(report) for entry in _epochs(sample, model, read)))
        log.end()
    return path


def _task(report: ExperimentReport) -> str:
    manifest = report.metadata.get("reproducibility_manifest") or {}
    return str((manifest.get("dataset") or {}).get("benchmark_id") or "themis")


def _model(report: ExperimentReport) -> str:
    provider, _, name = str(report.metadata.get("model") or "none:none").partition(":")
    return f"{provider}/{name}"


def _eval(
    report: ExperimentReport, run_id: str, task: str, model: str, created: str, manifest: Mapping[str, Any]
) -> dict[str, object]:
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


def _generate_config(report: ExperimentReport) -> dict[str, float | None]:
    sampling = report_sampling(report)
    limit = sampling.get("max_tokens")
    config = {"temperature": sampling.get("temperature"), "top_p": sampling.get("top_p")}
    return {**config, "max_tokens": limit} if limit is not None and limit > 0 else config


def _results(report: ExperimentReport) -> dict[str, object]:
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


def _usage_of_run(report: ExperimentReport, model: str) -> dict[str, object]:
    tokens = (report.metadata.get("cost") or {}).get("token_counts") or {}
    return {model: _usage(tokens)} if tokens else {}


def _usage(tokens: Mapping[str, int | None]) -> dict[str, int]:
    prompt, completion = tokens.get("prompt_tokens") or 0, tokens.get("completion_tokens") or 0
    return {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}


def _epochs(sample: Sample, model: str, read: ReadAttachment | None) -> Iterator[dict[str, object]]:
    """One entry; where every attempt was scored by itself, one an attempt, as epochs."""
    record = sample.record
    by_metric: dict[str, list[MetricScore]] = {}
    for score in sample.scores:
        by_metric.setdefault(score.metric_name, []).append(score)
    attempts = record.attempts if record is not None else []
    most = max((len(scores) for scores in by_metric.values()), default=1)
    if 1 < most <= len(attempts):
        for place, attempt in enumerate(attempts):
            number = attempt.task.metadata.get("attempts", place)
            scores = {
                name: score
                for name, found in by_metric.items()
                for nth, score in enumerate(found)
                if score.metadata.get(OF_ATTEMPT, nth) == number
            }
            yield _entry(sample, attempt, number + 1, scores, model, read)
    else:
        yield _entry(sample, record, 1, {name: found[0] for name, found in by_metric.items()}, model, read)


def _entry(
    sample: Sample,
    record: GenerationRecord | None,
    epoch: int,
    scores: dict[str, MetricScore],
    model: str,
    read: ReadAttachment | None,
) -> dict[str, object]:
    asked = [] if record is None else list_asked(record.task)
    metadata = {} if record is None else to_plain(record.task.metadata, portable=True)
    output = record.output if record is not None else None
    entry: dict[str, object] = {
        "id": sample.sample_id or "",
        "epoch": epoch,
        "input": write_messages(asked, read, source="input") if sample.messages else sample.prompt,
        "target": _target(sample.reference),
        "messages": write_messages(asked, read, source="input"),
        "output": {"model": model, "choices": []},
        "scores": {name: _score(score) for name, score in scores.items()},
        "metadata": metadata,
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }
    if output is not None:
        answer, usage = write_answer(output, read), _usage(output.usage or {})
        said = list_answered(output)
        entry["messages"] = [
            *write_messages(without_retold(asked, [said]), read, source="input"),
            *write_messages(said, read, source="generate"),
        ]
        entry["output"] = {
            "model": model,
            "choices": [{"message": answer, "stop_reason": _STOP_REASONS.get(str(output.finish_reason), "stop")}],
            "usage": usage,
        }
        entry["model_usage"] = {model: usage}
    if record is not None and record.error is not None:
        entry["error"] = _error(record.error.message)
    elif sample.failures:
        metadata["themis_failures"] = sample.failures
    return entry


def _target(reference: object) -> str | list[str]:
    if reference is None:
        return ""
    return [format_value(one) for one in reference] if isinstance(reference, list | tuple) else format_value(reference)


def _score(score: MetricScore) -> dict[str, object]:
    return {"value": score.value, "metadata": to_plain({**score.metadata, **score.details}, portable=True)}


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": message, "traceback_ansi": message}


# --- lm-evaluation-harness --------------------------------------------------------------------------------------------


def export_lm_eval(
    report: ExperimentReport,
    directory: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    created_at: datetime.datetime | None = None,
) -> list[Path]:
    """Writes `samples_*.jsonl` and `results_*.json`, as the harness does with `--log_samples`.

    That format knows no failures: samples without a verdict are left out and show in `n-samples` as the difference.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        directory: Where the files go; it is made.
        run_id: What the run is called in them; by default the report's own id.
        created_at: When the run was made; by default now.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, run_id="first", progress=False)
    >>> [path.name for path in export_lm_eval(report, "logs", created_at=datetime.datetime(2030, 1, 1))]
    ['samples_first_2030-01-01T00-00-00.jsonl', 'results_2030-01-01T00-00-00.json']
    """
    task = safe_filename(report_run_id(report, run_id))
    created = created_at or datetime.datetime.now(datetime.UTC)
    stamp = created.replace(tzinfo=None).isoformat().replace(":", "-")
    samples = Path(directory) / f"samples_{task}_{stamp}.jsonl"
    results = Path(directory) / f"results_{stamp}.json"
    sampling = report_sampling(report)
    written = 0
    with atomic_write(samples) as file:
        for number, sample in enumerate(join_samples(report)):
            if sample.scores:
                file.write(json_bytes(_line(number, sample, sampling)) + b"\n")
                written += 1
    with atomic_write(results) as file:
        file.write(json_bytes(redact(_lm_eval_results(report, task, created, written, sampling)), 2) + b"\n")
    return [samples, results]


def _line(number: int, sample: Sample, sampling: Mapping[str, object]) -> dict[str, object]:
    record = sample.record
    row: dict[str, object] = {} if record is None else dict(record.task.prompt.context)
    # Rows without an id are numbered; the number must survive, because scores are paired by it.
    row.setdefault("id", sample.sample_id)
    target, scores = format_value(sample.reference if sample.reference is not None else ""), sample.mean_scores
    arguments = {**sampling, "do_sample": bool(sampling.get("temperature"))}
    answers = [attempt.output.text for attempt in (record.attempts if record else ()) if attempt.output is not None]
    asked: dict[str, object] = {
        "arguments": {"gen_args_0": {"arg_0": sample.prompt, "arg_1": arguments}},
        "resps": [answers],
        "filtered_resps": [sample.output],
    }
    if record is not None and (scored := list_scored(record)):
        asked = _scored_requests(scored)
    return {
        "doc_id": number,
        "doc": row,
        "target": target,
        **asked,
        "filter": "none",
        "metrics": list(scores),
        "doc_hash": _sha(json_bytes(row)),
        "prompt_hash": _sha(sample.prompt.encode("utf-8", "surrogatepass")),
        "target_hash": _sha(target.encode("utf-8", "surrogatepass")),
        # A metric may not hide one of the fields above.
        **{name if name not in LM_EVAL_FIELDS else f"metric_{name}": value for name, value in scores.items()},
    }


def _scored_requests(scored: list[ScoredContinuation]) -> dict[str, object]:
    """A request a continuation, as the harness writes them: the log-probability and whether it was greedy, as texts."""
    told = [[str(one.found.logprob), str(one.found.greedy)] for one in scored]
    return {
        "arguments": {
            f"gen_args_{place}": {"arg_0": one.pair.context, "arg_1": one.pair.text} for place, one in enumerate(scored)
        },
        "resps": [[one] for one in told],
        "filtered_resps": told,
    }


def _output_type(report: ExperimentReport) -> str:
    first = next(iter(report.generation_results), None)
    scored = list_scored(first) if first is not None else []
    if not scored:
        return "generate_until"
    if len(scored) > 1:
        return "multiple_choice"
    return "loglikelihood" if scored[0].pair.context else "loglikelihood_rolling"


def _lm_eval_results(
    report: ExperimentReport, task: str, created: datetime.datetime, written: int, sampling: Mapping[str, object]
) -> dict[str, object]:
    provider, _, model = str(report.metadata.get("model") or ":").partition(":")
    numbers: dict[str, object] = {"alias": task}
    for name, metric in report.evaluation_report.metrics.items():
        numbers[f"{name},none"] = None if math.isnan(metric.mean) else metric.mean
        numbers[f"{name}_stderr,none"] = "N/A" if metric.stderr is None else metric.stderr
    manifest = report.metadata.get("reproducibility_manifest") or {}
    return {
        "results": {task: numbers},
        "group_subtasks": {task: []},
        "configs": {
            task: {
                "task": task,
                "dataset_path": (manifest.get("dataset") or {}).get("benchmark_id"),
                "output_type": _output_type(report),
                "generation_kwargs": sampling,
                "repeats": int(manifest.get("num_samples") or 1),
            }
        },
        "versions": {task: 1},
        "n-shot": {task: int((manifest.get("prompt") or {}).get("shots") or 0)},
        "n-samples": {task: {"original": report.metadata.get("total_samples", written), "effective": written}},
        "config": {"model": provider, "model_args": f"model={model}"},
        "git_hash": manifest.get("git_commit_hash"),
        "date": created.timestamp(),
        "model_source": provider,
        "model_name": model,
        "model_name_sanitized": safe_filename(model),
    }


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
