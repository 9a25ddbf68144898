"""The scores of stored runs, one number an item, lined up on the items that two runs share.

Attempts at an item are averaged first, so that three tries at one question never count as three questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from themis.core.intervals import Floats, ScoreRange
from themis.core.registry import nearest, snake_case
from themis.exceptions import ConfigurationError, MetricError
from themis.runs.resuming import how_to_resume_stored
from themis.storage import ExperimentStorage
from themis.storage.queries import RunReader

__all__ = [
    "RunScores",
    "SharedScores",
    "common_metrics",
    "direction_of",
    "evaluation_of",
    "find_metric",
    "line_up",
    "read_scores",
    "shared_by_all",
]


@dataclass(frozen=True)
class RunScores:
    """One metric of one run by item, in the order of the item ids; `clusters` is None if the run has none."""

    run_id: str
    metric: str
    item_ids: list[str]
    values: Floats
    clusters: list[str] | None
    score_range: ScoreRange | None = None


@dataclass(frozen=True)
class SharedScores:
    """Two runs' scores of the items that both have, in one order."""

    item_ids: list[str]
    a: Floats
    b: Floats
    clusters: list[str] | None
    score_range: ScoreRange | None = None

    @property
    def n(self) -> int:
        return len(self.item_ids)

    @property
    def is_binary(self) -> bool:
        return all(bool(((scores == 0) | (scores == 1)).all()) for scores in (self.a, self.b))

    @property
    def difference_range(self) -> ScoreRange | None:
        """What the difference of two scores can be, where both have a least and a most and keep to them."""
        low, high = self.score_range or (None, None)
        if low is None or high is None or self.n == 0:
            return None
        seen = (min(self.a.min(), self.b.min()), max(self.a.max(), self.b.max()))
        return (low - high, high - low) if low <= seen[0] and seen[1] <= high else None

    @property
    def units(self) -> int:
        """What was drawn independently: clusters, or items."""
        return self.n if self.clusters is None else len(set(self.clusters))


def evaluation_of(store: ExperimentStorage, run_id: str) -> tuple[RunReader, int]:
    """Where the current scores of a run are read."""
    reader = store.reader(run_id)
    if reader.evaluation is None:
        raise MetricError(f"run {run_id!r} has no scores; judge it with: themis rejudge {run_id}")
    return reader, reader.evaluation


def common_metrics(store: ExperimentStorage, run_ids: Sequence[str], wanted: Iterable[str] | None = None) -> list[str]:
    """The metrics that all runs have, or those of them that are wanted, in the stored spelling."""
    names = {run_id: _metrics_of(store, run_id) for run_id in run_ids}
    shared = [name for name in names[run_ids[0]] if all(name in known for known in names.values())]
    if not shared:
        shown = "; ".join(f"{run_id!r} has {', '.join(known)}" for run_id, known in names.items())
        raise MetricError(f"the runs have no metric in common: {shown}")
    if wanted is None:
        return shared
    if isinstance(wanted, str):
        raise ConfigurationError(f"metrics is a list of names, such as ['ExactMatch'], got {wanted!r}")
    found = [find_metric(name, shared, f"the metrics of {', '.join(map(repr, run_ids))}") for name in wanted]
    if not found:
        raise ConfigurationError("metrics is an empty list; name a metric, or leave it out to compare them all")
    return list(dict.fromkeys(found))


def find_metric(name: str, known: Sequence[str], where: str) -> str:
    """The stored spelling of a metric: exact, or in snake case whatever the letters' case."""
    if name in known:
        return name
    for candidate in known:
        if snake_case(candidate) == snake_case(name):
            return candidate
    raise MetricError(f"no metric {name!r} among {where}{nearest(name, known)}; there is {', '.join(known)}")


def direction_of(store: ExperimentStorage, run_ids: Sequence[str], metric: str) -> bool | None:
    """Whether a higher value is better, as the metric itself says in any of the runs; None if it is neither."""
    for run_id in run_ids:
        reader, evaluation = evaluation_of(store, run_id)
        said = reader.evaluation_config(evaluation).get("higher_is_better", {})
        if metric in said:
            direction: bool | None = said[metric]
            return direction
    return True


def read_scores(store: ExperimentStorage, run_id: str, metric: str) -> RunScores:
    """Every scored item of a run; what failed has no score and is not here."""
    reader, evaluation = evaluation_of(store, run_id)
    totals: dict[str, float] = {}
    counts: dict[str, int] = {}
    clusters: dict[str, str] = {}
    for item_id, cluster, value in reader.values(evaluation, metric):
        # A column without a number reads as None, whatever its type says.
        if value is None or not math.isfinite(value):
            raise MetricError(
                f"run {run_id!r} has a score of {metric} for item {item_id!r} that is not a finite number"
            )
        if item_id in totals:
            totals[item_id] += value
            counts[item_id] = counts.get(item_id, 1) + 1
        else:
            totals[item_id] = value
            if cluster is not None:
                clusters[item_id] = cluster
    for item_id, count in counts.items():
        totals[item_id] /= count
    item_ids = sorted(totals)
    return RunScores(
        run_id=run_id,
        metric=metric,
        item_ids=item_ids,
        values=np.fromiter((totals[item_id] for item_id in item_ids), dtype=np.float64, count=len(item_ids)),
        clusters=[clusters[item_id] for item_id in item_ids] if totals and len(clusters) == len(totals) else None,
        score_range=reader.evaluation_config(evaluation).get("score_range", {}).get(metric),
    )


def line_up(a: RunScores, b: RunScores) -> SharedScores:
    """The items that both runs have a score of; none at all is an error."""
    if a.item_ids == b.item_ids:
        clusters = _clusters(a, b, a.item_ids, a.clusters, b.clusters)
        shared = SharedScores(a.item_ids, a.values, b.values, clusters, a.score_range or b.score_range)
    else:
        places = {item_id: place for place, item_id in enumerate(b.item_ids)}
        mine = [place for place, item_id in enumerate(a.item_ids) if item_id in places]
        item_ids = [a.item_ids[place] for place in mine]
        theirs = [places[item_id] for item_id in item_ids]
        shared = SharedScores(
            item_ids,
            a.values[mine],
            b.values[theirs],
            _clusters(a, b, item_ids, _picked(a.clusters, mine), _picked(b.clusters, theirs)),
            a.score_range or b.score_range,
        )
    if shared.n == 0:
        raise MetricError(
            f"runs {a.run_id!r} and {b.run_id!r} have no item with a score of {a.metric} in common: "
            f"{len(a.item_ids)} and {len(b.item_ids)} items are scored{_examples(a, b)}"
        )
    return shared


def shared_by_all(runs: Sequence[RunScores]) -> list[RunScores]:
    """The same runs on the items that every one of them has a score of."""
    if all(run.item_ids == runs[0].item_ids for run in runs):
        return list(runs)
    common = set(runs[0].item_ids).intersection(*(run.item_ids for run in runs[1:]))
    kept = []
    for run in runs:
        places = [place for place, item_id in enumerate(run.item_ids) if item_id in common]
        item_ids = [run.item_ids[place] for place in places]
        kept.append(RunScores(run.run_id, run.metric, item_ids, run.values[places], _picked(run.clusters, places)))
    return kept


def _metrics_of(store: ExperimentStorage, run_id: str) -> list[str]:
    reader, evaluation = evaluation_of(store, run_id)
    names = reader.metric_names(evaluation)
    if not names:
        answered, failed = reader.count_records()
        raise MetricError(
            f"run {run_id!r} has no scores: {answered} of its {reader.count_samples()} samples are answered, "
            f"{failed} failed. {how_to_resume_stored(store, store.get_run(run_id))}"
        )
    return names


def _picked(labels: list[str] | None, places: list[int]) -> list[str] | None:
    return None if labels is None else [labels[place] for place in places]


def _clusters(
    a: RunScores, b: RunScores, item_ids: list[str], first: list[str] | None, second: list[str] | None
) -> list[str] | None:
    """The clusters of the shared items, which are a property of the data: one run's labels serve for both."""
    if first is None or second is None or first == second:
        return first if first is not None else second
    item_id = next(item_id for item_id, one, other in zip(item_ids, first, second, strict=True) if one != other)
    raise MetricError(
        f"runs {a.run_id!r} and {b.run_id!r} put item {item_id!r} into different clusters; "
        "evaluate both with the same cluster_field"
    )


def _examples(a: RunScores, b: RunScores) -> str:
    if not a.item_ids or not b.item_ids:
        return ""
    return f", with ids such as {a.item_ids[0]!r} and {b.item_ids[0]!r}"
