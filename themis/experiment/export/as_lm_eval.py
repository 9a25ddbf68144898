"""Files as lm-evaluation-harness writes them with `--log_samples`: `results_*.json` and `samples_*.jsonl`."""

from __future__ import annotations

import datetime
import hashlib
import math
import os
from pathlib import Path
from typing import Any

from themis.core.entities import ExperimentReport
from themis.core.redaction import redact
from themis.experiment.export.as_json import report_run_id, sampling_of
from themis.experiment.export.json_text import as_text, json_bytes
from themis.experiment.export.names import file_word
from themis.experiment.export.samples import Sample, joined, score_values
from themis.experiment.export.whole_files import whole_file

__all__ = ["export_lm_eval"]


def export_lm_eval(
    report: ExperimentReport,
    directory: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    created_at: datetime.datetime | None = None,
) -> list[Path]:
    """That format knows no failures: samples without a verdict are left out and show in `n-samples` as the difference."""
    task = file_word(report_run_id(report, run_id))
    created = created_at or datetime.datetime.now(datetime.UTC)
    stamp = created.replace(tzinfo=None).isoformat().replace(":", "-")
    samples = Path(directory) / f"samples_{task}_{stamp}.jsonl"
    results = Path(directory) / f"results_{stamp}.json"
    sampling = sampling_of(report)
    written = 0
    with whole_file(samples) as file:
        for number, sample in enumerate(joined(report)):
            if sample.scores:
                file.write(json_bytes(_line(number, sample, sampling)) + b"\n")
                written += 1
    with whole_file(results) as file:
        file.write(json_bytes(redact(_results(report, task, created, written, sampling)), 2) + b"\n")
    return [samples, results]


def _line(number: int, sample: Sample, sampling: dict[str, Any]) -> dict[str, Any]:
    record = sample.record
    row: dict[str, Any] = {} if record is None else dict(record.task.prompt.context)
    # Rows without an id are numbered; the number must survive, because scores are paired by it.
    row.setdefault("id", sample.sample_id)
    target, scores = as_text(sample.reference if sample.reference is not None else ""), score_values(sample.scores)
    answers = [attempt.output.text for attempt in (record.attempts if record else ()) if attempt.output is not None]
    return {
        "doc_id": number,
        "doc": row,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": sample.prompt, "arg_1": {**sampling, "do_sample": _samples(sampling)}}},
        "resps": [answers],
        "filtered_resps": [sample.output],
        "filter": "none",
        "metrics": list(scores),
        "doc_hash": _sha(json_bytes(row)),
        "prompt_hash": _sha(sample.prompt.encode("utf-8", "surrogatepass")),
        "target_hash": _sha(target.encode("utf-8", "surrogatepass")),
        # A metric may not hide one of the fields above.
        **{name if name not in _FIELDS else f"metric_{name}": value for name, value in scores.items()},
    }


_FIELDS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)


def _results(
    report: ExperimentReport, task: str, created: datetime.datetime, written: int, sampling: dict[str, Any]
) -> dict[str, Any]:
    provider, _, model = str(report.metadata.get("model") or ":").partition(":")
    numbers: dict[str, Any] = {"alias": task}
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
                "output_type": "generate_until",
                "generation_kwargs": sampling,
                "repeats": int(manifest.get("num_samples") or 1),
            }
        },
        "versions": {task: 1},
        "n-shot": {task: 0},
        "n-samples": {task: {"original": report.metadata.get("total_samples", written), "effective": written}},
        "config": {"model": provider, "model_args": f"model={model}"},
        "git_hash": manifest.get("git_commit_hash"),
        "date": created.timestamp(),
        "model_source": provider,
        "model_name": model,
        "model_name_sanitized": file_word(model),
    }


def _samples(sampling: dict[str, Any]) -> bool:
    return bool(sampling.get("temperature"))


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
