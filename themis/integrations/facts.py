"""What every tracker is told of a run, as flat names and values."""

from __future__ import annotations

import math
from typing import Any

from themis.core.entities import EvaluationRecord, ExperimentReport
from themis.core.fingerprint import digest
from themis.core.redaction import redact
from themis.experiment.export.samples import count_failed
from themis.experiment.manifest import SCIENTIFIC_KEYS
from themis.storage.records import Call

__all__ = ["Progress", "key_of", "manifest_of_calls", "numbers_of", "parameters_of"]


def parameters_of(report: ExperimentReport) -> dict[str, Any]:
    """What decides the run's results, by the manifest's dotted names."""
    manifest = redact(report.metadata.get("reproducibility_manifest") or {})
    found = {}
    for key in SCIENTIFIC_KEYS:
        value: Any = manifest
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found[key] = value
    if report.metadata.get("manifest_hash"):
        found["manifest_hash"] = report.metadata["manifest_hash"]
    return found


def numbers_of(report: ExperimentReport) -> dict[str, float]:
    """Means under the metrics' own names, what belongs to them under `name.what`, and the run's sums. No NaN."""
    found: dict[str, float | None] = {}
    for name, metric in report.evaluation_report.metrics.items():
        low, high = metric.ci or (None, None)
        found[name] = metric.mean
        found |= {f"{name}.count": metric.count, f"{name}.failed": metric.failed, f"{name}.stderr": metric.stderr}
        found |= {f"{name}.ci_low": low, f"{name}.ci_high": high}
    cost = report.metadata.get("cost") or {}
    found |= {
        "samples": report.metadata.get("total_samples"),
        "failed_samples": count_failed(report),
        "cost_usd": cost.get("total_cost"),
        "calls": cost.get("api_calls"),
        "tokens": (cost.get("token_counts") or {}).get("total_tokens"),
    }
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}


def key_of(run_id: str, manifest_hash: str | None) -> str:
    """What a tracker knows a run by. Ids such as `baseline` are common; with the manifest two of them do not meet."""
    return digest(run_id, manifest_hash or "")


def manifest_of_calls(calls: list[Call]) -> str | None:
    """The manifest's hash, which a run's observer first sees in its calls."""
    found = calls[0].record.task.metadata.get("manifest_hash") if calls else None
    return None if found is None else str(found)


class Progress:
    """Sums of a run under way, from what an observer hears."""

    def __init__(self, done: int = 0) -> None:
        self.answered = done
        self._failed = self._calls = self._tokens = 0
        self._cost: float | None = 0.0
        self._scores: dict[str, tuple[float, int]] = {}

    def add_calls(self, calls: list[Call]) -> None:
        for call in calls:
            self.answered += call.record.error is None
            self._failed += call.record.error is not None
            self._calls += call.calls
            self._tokens += call.prompt_tokens + call.completion_tokens
            self._cost = None if self._cost is None or call.cost_usd is None else self._cost + call.cost_usd

    def add_scores(self, records: list[EvaluationRecord]) -> None:
        for record in records:
            for score in record.scores:
                total, count = self._scores.get(score.metric_name, (0.0, 0))
                self._scores[score.metric_name] = (total + score.value, count + 1)

    def numbers(self) -> dict[str, float]:
        sums = {
            "progress/answered": self.answered,
            "progress/failed_calls": self._failed,
            "progress/calls": self._calls,
            "progress/tokens": self._tokens,
        }
        cost = {} if self._cost is None else {"progress/cost_usd": self._cost}
        means = {f"progress/{name}": total / count for name, (total, count) in self._scores.items()}
        return {**sums, **cost, **means}
