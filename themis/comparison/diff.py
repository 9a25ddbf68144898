"""Which items a second run fixed and which it broke, with what was asked and what both answered.

Scores are read first, as numbers; texts are read from the store only for the items that are looked at, a page at a time.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.comparison.scores import common_metrics, direction_of, evaluation_of, find_metric
from themis.comparison.store import open_store
from themis.core.entities import GenerationRecord
from themis.exceptions import ConfigurationError, MetricError
from themis.storage import ExperimentStorage
from themis.storage.lazy import batched
from themis.storage.queries import RunReader

__all__ = ["Change", "DiffItem", "MetricDiff", "RunDiff", "diff_runs", "parse_change"]

_PAGE = 200


class Change(enum.StrEnum):
    """What became of an item between the first run and the second."""

    BROKEN = "broken"
    FIXED = "fixed"
    BOTH_WRONG = "both-wrong"
    BOTH_RIGHT = "both-right"


@dataclass(frozen=True, kw_only=True)
class DiffItem:
    """One item in both runs. The outputs are those of all attempts; in place of a failed one stands why it failed."""

    metric: str
    item_id: str
    change: Change
    score_a: float
    score_b: float
    input_a: str
    input_b: str
    reference: Any
    outputs_a: tuple[str, ...]
    outputs_b: tuple[str, ...]


@dataclass(frozen=True)
class MetricDiff:
    """How many items changed on one metric, and how many could not be compared because a run has no score of them."""

    metric: str
    counts: dict[Change, int]
    unscored_a: int
    unscored_b: int

    @property
    def shared(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class _Scored:
    position: int
    score: float


class RunDiff:
    """The differences of two runs by metric. Counting needs scores only; `items` reads the texts as it goes."""

    def __init__(
        self, store: ExperimentStorage, run_a: str, run_b: str, metrics: Iterable[str] | None, threshold: float
    ) -> None:
        if run_a == run_b:
            raise ConfigurationError(f"run {run_a!r} is given twice; a run does not differ from itself")
        self.run_a, self.run_b, self.threshold = run_a, run_b, threshold
        for run_id in (run_a, run_b):
            store.get_run(run_id)
        names = common_metrics(store, [run_a, run_b], metrics)
        self._directions = {metric: direction_of(store, [run_a, run_b], metric) for metric in names}
        # A length is neither right nor wrong.
        self.metrics = [metric for metric in names if self._directions[metric] is not None]
        if not self.metrics:
            raise MetricError(
                f"more {' or '.join(names)} is neither better nor worse, so no item is fixed or broken by it"
            )
        self._reader_a, scores_a = _scores(store, run_a, self.metrics)
        self._reader_b, scores_b = _scores(store, run_b, self.metrics)
        self.by_metric: dict[str, MetricDiff] = {}
        # Places of the items in both runs, in the first run's order.
        self._places: dict[tuple[str, Change], list[tuple[str, _Scored, _Scored]]] = {}
        for metric in self.metrics:
            self._sort_out(metric, scores_a[metric], scores_b[metric])

    def items(
        self,
        *,
        only: Change | str | Iterable[Change | str] | None = None,
        metric: str | None = None,
        limit: int | None = None,
    ) -> Iterator[DiffItem]:
        """Broken items first, then fixed, both wrong, both right; each group in the first run's order."""
        left = limit
        for name in self.metrics if metric is None else [find_metric(metric, self.metrics, "those of this diff")]:
            for change in _wanted(only):
                places = self._places[name, change]
                for batch in batched(places if left is None else places[:left], _PAGE):
                    yield from self._read(name, change, batch)
                if left is not None:
                    left = max(0, left - len(places))

    def _sort_out(self, metric: str, first: dict[str, _Scored], second: dict[str, _Scored]) -> None:
        groups: dict[Change, list[tuple[str, _Scored, _Scored]]] = {change: [] for change in Change}
        for item_id, one in first.items():
            other = second.get(item_id)
            if other is not None:
                groups[self._change(metric, one.score, other.score)].append((item_id, one, other))
        shared = sum(map(len, groups.values()))
        if shared == 0:
            raise MetricError(
                f"runs {self.run_a!r} and {self.run_b!r} have no item with a score of {metric} in common: "
                f"{len(first)} and {len(second)} items are scored"
            )
        self._places.update({(metric, change): places for change, places in groups.items()})
        self.by_metric[metric] = MetricDiff(
            metric=metric,
            counts={change: len(places) for change, places in groups.items()},
            unscored_a=len(second) - shared,
            unscored_b=len(first) - shared,
        )

    def _change(self, metric: str, first: float, second: float) -> Change:
        if self._directions[metric]:
            was_right, is_right = first >= self.threshold, second >= self.threshold
        else:
            was_right, is_right = first <= self.threshold, second <= self.threshold
        if was_right and is_right:
            return Change.BOTH_RIGHT
        if was_right:
            return Change.BROKEN
        return Change.FIXED if is_right else Change.BOTH_WRONG

    def _read(self, metric: str, change: Change, places: list[tuple[str, _Scored, _Scored]]) -> Iterator[DiffItem]:
        records_a = dict(self._reader_a.records(positions=[one.position for _, one, _ in places]))
        records_b = dict(self._reader_b.records(positions=[other.position for _, _, other in places]))
        for item_id, one, other in places:
            record_a, record_b = records_a[one.position], records_b[other.position]
            reference = record_b.task.reference or record_a.task.reference
            yield DiffItem(
                metric=metric,
                item_id=item_id,
                change=change,
                score_a=one.score,
                score_b=other.score,
                input_a=record_a.task.prompt.text,
                input_b=record_b.task.prompt.text,
                reference=None if reference is None else reference.value,
                outputs_a=_outputs(record_a),
                outputs_b=_outputs(record_b),
            )


def diff_runs(
    run_a: str,
    run_b: str,
    *,
    storage: Any = None,
    storage_path: str | Path | None = None,
    metrics: Iterable[str] | None = None,
    threshold: float = 0.5,
) -> RunDiff:
    """What changed from the first run to the second.

    An item is right if its score is at least the threshold, or at most, where a lower value is better.
    """
    return RunDiff(open_store(storage, storage_path), run_a, run_b, metrics, threshold)


def _wanted(only: Change | str | Iterable[Change | str] | None) -> list[Change]:
    if only is None:
        return list(Change)
    asked = {parse_change(name) for name in ([only] if isinstance(only, str) else only)}
    return [change for change in Change if change in asked]


def parse_change(name: Change | str) -> Change:
    try:
        return Change(str(name).replace("_", "-"))
    except ValueError:
        raise ConfigurationError(f"a change is one of {', '.join(Change)}, got {name!r}") from None


def _scores(
    store: ExperimentStorage, run_id: str, metrics: list[str]
) -> tuple[RunReader, dict[str, dict[str, _Scored]]]:
    """metric -> item id -> where the item lies in the run and its mean score over attempts."""
    reader, evaluation = evaluation_of(store, run_id)
    found: dict[str, dict[str, _Scored]] = {metric: {} for metric in metrics}
    for metric, scored in found.items():
        attempts: dict[str, list[float]] = {}
        for position, item_id, _, value in reader.values_with_positions(evaluation, metric):
            if item_id in scored:
                attempts.setdefault(item_id, [scored[item_id].score]).append(value)
            else:
                scored[item_id] = _Scored(position, value)
        for item_id, values in attempts.items():
            scored[item_id] = _Scored(scored[item_id].position, sum(values) / len(values))
    return reader, found


def _outputs(record: GenerationRecord) -> tuple[str, ...]:
    return tuple(_said(attempt) for attempt in record.attempts or [record])


def _said(attempt: GenerationRecord) -> str:
    if attempt.output is not None:
        return attempt.output.text
    return f"[no answer: {attempt.error.message if attempt.error else 'no reason given'}]"
