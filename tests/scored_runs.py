"""Stored runs whose scores a test decides: the model says a number, and the metric believes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import themis
from themis.core.entities import GenerationRecord, MetricScore, ModelOutput
from themis.interfaces import Metric, StatelessTaskExecutor


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


class Scripted(StatelessTaskExecutor):
    """Says of each item what its options say: two runs over the same rows can have any scores."""

    is_local = True

    def __init__(self, says: Mapping[str, str] = {}, **_: Any) -> None:
        self.says = dict(says)

    def execute(self, task: Any) -> GenerationRecord:
        return GenerationRecord(task, ModelOutput(self.says[task.metadata["dataset_id"]]), None)


themis.register_provider("scored", Scripted)


def scored_run(
    storage: str | Path,
    run_id: str,
    scores: Sequence[Any] | Mapping[str, Any],
    *,
    clusters: Sequence[str] | None = None,
    metrics: Sequence[Any] | None = None,
    fields: Mapping[str, Sequence[Any]] | None = None,
    **arguments: Any,
) -> themis.core.entities.ExperimentReport:
    """A completed run in which item `i` (or the item of each key) has the i-th score.

    `fields` adds fields to the rows; `clusters` is the field `passage`, by which the run is clustered.
    """
    by_id = scores if isinstance(scores, Mapping) else {str(number): score for number, score in enumerate(scores)}
    rows: list[dict[str, Any]] = [{"id": item_id, "question": f"How much is {item_id}?"} for item_id in by_id]
    if clusters is not None:
        fields = {**(fields or {}), "passage": clusters}
        arguments["cluster_field"] = "passage"
    for name, values in (fields or {}).items():
        rows = [{**row, name: value} for row, value in zip(rows, values, strict=True)]
    return themis.evaluate(
        rows,
        model="scored/numbers",
        provider_options={"says": {item_id: str(score) for item_id, score in by_id.items()}},
        prompt="{question}",
        metrics=list(metrics or [Number()]),
        run_id=run_id,
        storage=storage,
        progress=False,
        **arguments,
    )
