"""`samples.jsonl`: everything of every sample, a line each, for programs that read as a stream."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from themis.core.entities import ExperimentReport, GenerationRecord
from themis.experiment.export.json_text import json_bytes
from themis.experiment.export.samples import Sample, joined
from themis.experiment.export.whole_files import whole_file

__all__ = ["export_jsonl", "full_sample"]


def export_jsonl(report: ExperimentReport, path: str | os.PathLike[str]) -> Path:
    with whole_file(path) as file:
        for sample in joined(report):
            file.write(json_bytes(full_sample(sample)) + b"\n")
    return Path(path)


def full_sample(sample: Sample) -> dict[str, Any]:
    """A sample with prompt, answer, reference, attempts, usage and verdicts."""
    record = sample.record
    return {
        "sample_id": sample.sample_id,
        "prompt": sample.prompt,
        "output": sample.output,
        "reference": sample.reference,
        "error": None
        if record is None or record.error is None
        else {"kind": record.error.kind, "message": record.error.message},
        "scores": [
            {"metric": score.metric_name, "value": score.value, "details": score.details, "metadata": score.metadata}
            for score in sample.scores
        ],
        "failures": sample.failures,
        "usage": None if record is None or record.output is None else record.output.usage,
        "seconds": None if record is None else _seconds(record),
        "attempts": [
            {
                "output": attempt.output.text if attempt.output else None,
                "error": attempt.error.message if attempt.error else None,
            }
            for attempt in (record.attempts if record is not None else ())
        ],
        "metadata": sample.metadata,
    }


def _seconds(record: GenerationRecord) -> float | None:
    milliseconds = record.metrics.get("generation_time_ms")
    return None if milliseconds is None else milliseconds / 1000
