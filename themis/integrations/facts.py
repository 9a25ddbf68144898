"""What every tracker is told of a run, as flat names and values."""

from __future__ import annotations

import math
from typing import Any

from themis.core.entities import ExperimentReport
from themis.core.fingerprint import digest
from themis.core.redaction import redact
from themis.experiment.export.as_json import failed_samples
from themis.runs.manifest import SCIENTIFIC_KEYS
from themis.runs.observers import Totals

__all__ = ["key_of", "numbers_of", "parameters_of", "progress_numbers"]


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
        "failed_samples": failed_samples(report),
        "cost_usd": cost.get("total_cost"),
        "calls": cost.get("api_calls"),
        "tokens": (cost.get("token_counts") or {}).get("total_tokens"),
    }
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}


def key_of(run_id: str, manifest_hash: str | None) -> str:
    """What a tracker knows a run by. Ids such as `baseline` are common; with the manifest two of them do not meet."""
    return digest(run_id, manifest_hash or "")


def progress_numbers(totals: Totals) -> dict[str, float]:
    """Sums of a run under way, and its means so far."""
    sums = {
        "progress/answered": totals.answered,
        "progress/failed_calls": totals.failed,
        "progress/calls": totals.calls,
        "progress/tokens": totals.tokens,
    }
    cost = {} if totals.cost_usd is None else {"progress/cost_usd": totals.cost_usd}
    return {**sums, **cost, **{f"progress/{name}": mean for name, mean in totals.means().items()}}
