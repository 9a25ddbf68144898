"""The scores of stored runs, one number an item, aligned on the items that two runs share.

Attempts at an item are averaged first, so that three tries at one question never count as three questions. A run is opened
once (`open_scores`); everything that compares runs reads their scores here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np

from themis.comparison.corpus import PairedCorpora
from themis.comparison.statistics import Pairs
from themis.core.intervals import Floats, ScoreRange
from themis.core.redaction import redact_text
from themis.core.registry import nearest, snake_case
from themis.evaluation.corpus import OF_ATTEMPTS, Corpus, Observation, statistics_of
from themis.evaluation.resolve import resolve_aggregation
from themis.exceptions import ConfigurationError, MetricError, StorageError
from themis.runs.resuming import how_to_resume_stored
from themis.storage import ExperimentStorage
from themis.storage.queries import RunReader


class StorageOwner(Protocol):
    """A storage backend: it holds the store."""

    @property
    def experiment_storage(self) -> ExperimentStorage: ...


StoreLocation: TypeAlias = str | Path | ExperimentStorage | StorageOwner


def open_store(storage: StoreLocation | None = None, storage_path: StoreLocation | None = None) -> ExperimentStorage:
    """A store by its place, or one that is open already. One that is not there is an error, not a new and empty store."""
    if storage is not None and storage_path is not None:
        raise ConfigurationError("storage and storage_path mean the same; give one of them")
    given = storage if storage is not None else storage_path
    if given is None:
        raise ConfigurationError("a comparison needs to know where the runs are: give storage or storage_path")
    if not isinstance(given, ExperimentStorage):
        given = ExperimentStorage(given) if isinstance(given, str | Path) else given.experiment_storage
    if not given.exists():
        raise StorageError(f"there is no store at {redact_text(str(given.location))}")
    return given


@dataclass(frozen=True)
class RunScores:
    """One metric of one run by item, in the order of the item ids; `clusters` is None if the run has none.

    A value is the mean of the item's `attempts`; `positions` are the items' places in the run.
    """

    run_id: str
    metric: str
    item_ids: list[str]
    values: Floats
    clusters: list[str] | None
    score_range: ScoreRange | None = None
    positions: Sequence[int] = ()
    attempts: Sequence[Sequence[float]] = ()
    # Where the run's number is no mean: how it is computed, and of what, for each item what each attempt left.
    aggregation: str | None = None
    statistics: Sequence[Sequence[object]] = ()

    @property
    def mean(self) -> float:
        """The run's number on these items."""
        if self.aggregation is None:
            return float(self.values.mean())
        found = (
            Observation(place, None, {OF_ATTEMPTS: list(made)})
            for place, made in zip(self.item_ids, self.statistics, strict=True)
        )
        return Corpus.build(self.aggregation, self.metric, found).value


@dataclass(frozen=True)
class ScoredRun:
    """A stored run that has scores: where the current ones are read, and what their metrics say of themselves."""

    run_id: str
    reader: RunReader
    evaluation: int
    metrics: list[str]
    directions: dict[str, bool | None]
    score_ranges: dict[str, ScoreRange]
    aggregations: dict[str, str]

    def read(self, metric: str) -> RunScores:
        """Every scored item of a metric; what failed has no score and is not here."""
        attempts: dict[str, list[float]] = {}
        clusters: dict[str, str] = {}
        positions: dict[str, int] = {}
        for position, item_id, cluster, value in self.reader.values(self.evaluation, metric):
            # A column without a number reads as None, whatever its type says.
            if value is None or not math.isfinite(value):
                raise MetricError(
                    f"run {self.run_id!r} has a score of {metric} for item {item_id!r} that is not a finite number"
                )
            if item_id in attempts:
                attempts[item_id].append(value)
                continue
            attempts[item_id] = [value]
            positions[item_id] = position
            if cluster is not None:
                clusters[item_id] = cluster
        item_ids = sorted(attempts)
        aggregation = self.find_aggregation(metric)
        statistics = {} if aggregation is None else self._read_statistics(metric)
        means = (reduce(add, attempts[item_id]) / len(attempts[item_id]) for item_id in item_ids)
        return RunScores(
            run_id=self.run_id,
            metric=metric,
            item_ids=item_ids,
            values=np.fromiter(means, dtype=np.float64, count=len(item_ids)),
            clusters=[clusters[item_id] for item_id in item_ids]
            if clusters and len(clusters) == len(attempts)
            else None,
            score_range=self.score_ranges.get(metric),
            positions=[positions[item_id] for item_id in item_ids],
            attempts=[attempts[item_id] for item_id in item_ids],
            aggregation=aggregation,
            statistics=[statistics[positions[item_id]] for item_id in item_ids] if statistics else (),
        )

    def find_aggregation(self, metric: str) -> str | None:
        """How a metric's scores become one number, where that is no mean."""
        named: str | None = self.aggregations.get(metric)
        return None if named is None or resolve_aggregation(named).is_mean else named

    def _read_statistics(self, metric: str) -> dict[int, list[object]]:
        """What the attempts at each item left to be added up, by the item's place."""
        found: dict[int, list[object]] = {}
        for one in self.reader.score_details(self.evaluation, metric):
            found.setdefault(one.position, []).extend(statistics_of(one.details, metric))
        return found


def open_scores(store: ExperimentStorage, run_ids: Iterable[str]) -> list[ScoredRun]:
    """Opens runs of a store; one that is not there is a StorageError, one without scores a MetricError."""
    readers = {run_id: store.reader(run_id) for run_id in run_ids}
    return [_open(store, run_id, reader) for run_id, reader in readers.items()]


def _open(store: ExperimentStorage, run_id: str, reader: RunReader) -> ScoredRun:
    if reader.evaluation is None:
        raise MetricError(f"run {run_id!r} has no scores; judge it with: themis rejudge {run_id}")
    metrics = reader.metric_names(reader.evaluation)
    if not metrics:
        answered, failed = reader.count_records()
        raise MetricError(
            f"run {run_id!r} has no scores: {answered} of its {reader.count_samples()} samples are answered, "
            f"{failed} failed. {how_to_resume_stored(store, store.get_run(run_id))}"
        )
    config = reader.evaluation_config(reader.evaluation)
    return ScoredRun(
        run_id=run_id,
        reader=reader,
        evaluation=reader.evaluation,
        metrics=metrics,
        directions=config.get("higher_is_better", {}),
        score_ranges=config.get("score_range", {}),
        aggregations=config.get("aggregation", {}),
    )


def common_metrics(runs: Sequence[ScoredRun], wanted: Iterable[str] | None = None) -> list[str]:
    """The metrics that all runs have, or those of them that are wanted, in the stored spelling."""
    shared = [name for name in runs[0].metrics if all(name in run.metrics for run in runs)]
    if not shared:
        shown = "; ".join(f"{run.run_id!r} has {', '.join(run.metrics)}" for run in runs)
        raise MetricError(f"the runs have no metric in common: {shown}")
    if wanted is None:
        return shared
    if isinstance(wanted, str):
        raise ConfigurationError(f"metrics is a list of names, such as ['ExactMatch'], got {wanted!r}")
    found = [
        find_metric(name, shared, f"the metrics of {', '.join(repr(run.run_id) for run in runs)}") for name in wanted
    ]
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


def is_higher_better(runs: Iterable[ScoredRun], metric: str) -> bool | None:
    """As the metric itself says in any of the runs; None if more of it is neither better nor worse."""
    return next((run.directions[metric] for run in runs if metric in run.directions), True)


def refuse_no_mean(run: ScoredRun, metric: str, purpose: str) -> None:
    """Raises where a run's number is no mean of its items' scores, for what knows means only."""
    if run.find_aggregation(metric) is not None:
        raise MetricError(
            f"{purpose} goes by the mean of items' scores, and {metric} is none; take a metric that is one, such as "
            "accuracy or exact_match"
        )


def align(a: RunScores, b: RunScores) -> Pairs:
    """The items that both runs have a score of; none at all is an error."""
    one, other = a, b
    if a.item_ids != b.item_ids:
        places = {item_id: place for place, item_id in enumerate(b.item_ids)}
        mine = [place for place, item_id in enumerate(a.item_ids) if item_id in places]
        one, other = _pick(a, mine), _pick(b, [places[a.item_ids[place]] for place in mine])
    if not one.item_ids:
        raise MetricError(
            f"runs {a.run_id!r} and {b.run_id!r} have no item with a score of {a.metric} in common: "
            f"{len(a.item_ids)} and {len(b.item_ids)} items are scored{_examples(a, b)}"
        )
    clusters = _common_clusters(one, other)
    return Pairs(
        one.values, other.values, clusters, a.score_range or b.score_range, _pair_corpora(one, other, clusters)
    )


def _pair_corpora(a: RunScores, b: RunScores, clusters: list[str] | None) -> PairedCorpora | None:
    if a.aggregation is None and b.aggregation is None:
        return None
    if a.aggregation != b.aggregation:
        raise MetricError(
            f"runs {a.run_id!r} and {b.run_id!r} compute {a.metric} in two ways, {a.aggregation or 'mean'} and "
            f"{b.aggregation or 'mean'}; judge one of them as the other with: themis rejudge"
        )
    return PairedCorpora.build(str(a.aggregation), a.statistics, b.statistics, clusters)


def restrict_to_shared(runs: Sequence[RunScores]) -> list[RunScores]:
    """The values of the same runs on the items that every one of them has a score of."""
    if all(run.item_ids == runs[0].item_ids for run in runs):
        return list(runs)
    common = set(runs[0].item_ids).intersection(*(run.item_ids for run in runs[1:]))
    return [_pick(run, [place for place, item_id in enumerate(run.item_ids) if item_id in common]) for run in runs]


def _pick(run: RunScores, places: list[int]) -> RunScores:
    return RunScores(
        run_id=run.run_id,
        metric=run.metric,
        item_ids=[run.item_ids[place] for place in places],
        values=run.values[places],
        clusters=None if run.clusters is None else [run.clusters[place] for place in places],
        score_range=run.score_range,
        aggregation=run.aggregation,
        statistics=[run.statistics[place] for place in places] if run.statistics else (),
    )


def _common_clusters(a: RunScores, b: RunScores) -> list[str] | None:
    """The clusters of the shared items, which are a property of the data: one run's labels serve for both."""
    if a.clusters is None or b.clusters is None or a.clusters == b.clusters:
        return a.clusters if a.clusters is not None else b.clusters
    labelled = zip(a.item_ids, a.clusters, b.clusters, strict=True)
    item_id = next(item_id for item_id, one, other in labelled if one != other)
    raise MetricError(
        f"runs {a.run_id!r} and {b.run_id!r} put item {item_id!r} into different clusters; "
        "evaluate both with the same cluster_field"
    )


def _examples(a: RunScores, b: RunScores) -> str:
    if not a.item_ids or not b.item_ids:
        return ""
    return f", with ids such as {a.item_ids[0]!r} and {b.item_ids[0]!r}"
