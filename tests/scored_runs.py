"""Stored runs whose scores a test decides: the model says a number, and the metric believes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import themis
from themis.core.entities import MetricScore
from themis.interfaces import Metric


class Number(Metric):
    """The number that the model said; anything else it says makes the metric fail."""

    requires_reference = False

    def __init__(self, name: str = "Number", higher_is_better: bool | None = True) -> None:
        self.name = name
        self.higher_is_better = higher_is_better

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        return MetricScore(self.name, float(prediction))


def scored_run(
    storage: str | Path,
    run_id: str,
    scores: Sequence[Any] | Mapping[str, Any],
    *,
    clusters: Sequence[str] | None = None,
    metrics: Sequence[Any] | None = None,
    **arguments: Any,
) -> themis.core.entities.ExperimentReport:
    """A completed run in which item `i` (or the item of each key) has the i-th score."""
    by_id = scores if isinstance(scores, Mapping) else {str(number): score for number, score in enumerate(scores)}
    rows = [{"id": item_id, "said": str(score)} for item_id, score in by_id.items()]
    if clusters is not None:
        rows = [{**row, "passage": label} for row, label in zip(rows, clusters, strict=True)]
        arguments["cluster_field"] = "passage"
    return themis.evaluate(
        rows,
        model="fake/echo",
        prompt="{said}",
        metrics=list(metrics or [Number()]),
        run_id=run_id,
        storage=storage,
        progress=False,
        **arguments,
    )
