"""The scores of stored runs, one number an item, aligned on the items that two runs share.

Attempts at an item are averaged first, so that three tries at one question never count as three questions. A run is opened
once (`open_scores`); everything that compares runs reads their scores here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from themis.comparison.corpus import PairedCorpora
from themis.comparison.pairing import Overlap, RunItems, overlap_of, refuse_without_pairs
from themis.comparison.statistics import Pairs
from themis.core.intervals import Floats, ScoreRange
from themis.core.redaction import redact_text
from themis.core.registry import nearest, snake_case
from themis.evaluation.corpus import OF_ATTEMPTS, Corpus, Observation, statistics_of
from themis.evaluation.resolve import resolve_aggregation
from themis.exceptions import ConfigurationError, MetricError, StorageError
from themis.runs.resuming import how_to_resume_stored
from themis.storage import ExperimentStorage
from themis.storage.queries import AttemptCounts, RunReader


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

    Items of two runs with one key are one item (`pairing.RunItems`). A value is the mean of the item's `attempts`;
    `positions` are the items' places in the run.
    """

    run_id: str
    metric: str
    item_ids: list[str]
    keys: list[str]
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


@dataclass
class ScoredRun:
    """A stored run that has scores: where the current ones are read, and what their metrics say of themselves.

    With `across`, its items are paired with another run's by id instead of by content.
    """

    run_id: str
    reader: RunReader
    evaluation: int
    metrics: list[str]
    config: Mapping[str, Any]
    across: bool = False
    # Read in one go: the items, and the scores of the metric that was looked at first, by position.
    _items: RunItems | None = field(default=None, init=False, repr=False)
    _first: tuple[str, dict[int, list[float]]] = field(default=("", {}), init=False, repr=False)

    @property
    def directions(self) -> Mapping[str, bool | None]:
        found: Mapping[str, bool | None] = self.config.get("higher_is_better", {})
        return found

    @property
    def items(self) -> RunItems:
        """What the run was asked."""
        return self._items or self._load(self.metrics[0] if self.metrics else "")

    @cached_property
    def attempts(self) -> AttemptCounts:
        return self.reader.count_attempts()

    @property
    def caveats(self) -> list[str]:
        """What must be said of the run before its mean is."""
        return list(self.reader.metadata.summary.get("caveats", ()))

    def read(self, metric: str) -> RunScores:
        """Every scored item of a metric; what failed has no score and is not here."""
        items = self._items or self._load(metric)
        attempts = self._first[1] if self._first[0] == metric else self._read_attempts(metric)
        places = [place for place in items.by_id if items.positions[place] in attempts]
        scored = [attempts[items.positions[place]] for place in places]
        item_ids = [items.item_ids[place] for place in places]
        aggregation = self.find_aggregation(metric)
        statistics = {} if aggregation is None else self._read_statistics(metric)
        clusters = [cluster for place in places if (cluster := items.clusters[place]) is not None]
        return RunScores(
            run_id=self.run_id,
            metric=metric,
            item_ids=item_ids,
            keys=[items.keys[place] for place in places],
            values=self._means(metric, item_ids, scored),
            clusters=clusters if clusters and len(clusters) == len(places) else None,
            score_range=self.config.get("score_range", {}).get(metric),
            positions=[items.positions[place] for place in places],
            attempts=scored,
            aggregation=aggregation,
            statistics=[statistics[items.positions[place]] for place in places] if statistics else (),
        )

    def _means(self, metric: str, item_ids: Sequence[str], scored: Sequence[Sequence[float]]) -> Floats:
        # A column without a number reads as None, whatever its type says, and becomes NaN here.
        every = np.array([value for made in scored for value in made], dtype=np.float64)
        if not np.isfinite(every).all():
            lengths = [len(made) for made in scored]
            item_id = item_ids[int(np.repeat(np.arange(len(scored)), lengths)[~np.isfinite(every)][0])]
            raise MetricError(
                f"run {self.run_id!r} has a score of {metric} for item {item_id!r} that is not a finite number"
            )
        if every.size == len(scored):
            return every
        return np.fromiter((reduce(add, made) / len(made) for made in scored), np.float64, len(scored))

    def find_aggregation(self, metric: str) -> str | None:
        """How a metric's scores become one number, where that is no mean."""
        named: str | None = self.config.get("aggregation", {}).get(metric)
        return None if named is None or resolve_aggregation(named).is_mean else named

    def _read_statistics(self, metric: str) -> dict[int, list[object]]:
        """What the attempts at each item left to be added up, by the item's place."""
        found: dict[int, list[object]] = {}
        for one in self.reader.score_details(self.evaluation, metric):
            found.setdefault(one.position, []).extend(statistics_of(one.details, metric))
        return found

    def _load(self, metric: str) -> RunItems:
        positions, item_ids, fingerprints, clusters = list[int](), list[str](), list[str](), list[str | None]()
        attempts: dict[int, list[float]] = {}
        rows = self.reader.items_with_scores(self.evaluation, metric)
        for position, item_id, fingerprint, cluster, outcome, value in rows:
            if not positions or position != positions[-1]:
                positions.append(position)
                item_ids.append(item_id)
                fingerprints.append(fingerprint)
                clusters.append(cluster)
            if outcome is not None:
                attempts.setdefault(position, []).append(value)
        self._first = metric, attempts
        self._items = RunItems(positions, item_ids, fingerprints, clusters, self.across)
        return self._items

    def _read_attempts(self, metric: str) -> dict[int, list[float]]:
        attempts: dict[int, list[float]] = {}
        for position, value in self.reader.scores_by_position(self.evaluation, metric):
            attempts.setdefault(position, []).append(value)
        return attempts


def open_scores(store: ExperimentStorage, run_ids: Iterable[str], *, across: bool = False) -> list[ScoredRun]:
    """Opens runs of a store; one that is not there is a StorageError, one without scores a MetricError."""
    readers = {run_id: store.reader(run_id) for run_id in run_ids}
    return [_open(store, run_id, reader, across) for run_id, reader in readers.items()]


def _open(store: ExperimentStorage, run_id: str, reader: RunReader, across: bool) -> ScoredRun:
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
    return ScoredRun(run_id, reader, reader.evaluation, metrics, config, across)


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


def overlap_of_runs(a: ScoredRun, b: ScoredRun) -> Overlap:
    """Which items two runs share; none at all is an error."""
    overlap = overlap_of(a.items, b.items, (a.reader, b.reader))
    refuse_without_pairs(a.run_id, b.run_id, a.items, b.items, overlap)
    return overlap


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
    if a.keys != b.keys:
        places = {key: place for place, key in enumerate(b.keys)}
        both = [(place, places[key]) for place, key in enumerate(a.keys) if key in places]
        # Items without ids have other numbers in the two runs: the order must not depend on which of them is the first.
        both.sort(key=lambda pair: (min(a.item_ids[pair[0]], b.item_ids[pair[1]]), a.keys[pair[0]]))
        one, other = _pick(a, [place for place, _ in both]), _pick(b, [place for _, place in both])
    if not one.keys:
        raise MetricError(
            f"runs {a.run_id!r} and {b.run_id!r} have no item with a score of {a.metric} in common: "
            f"{len(a.item_ids)} and {len(b.item_ids)} items are scored"
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
    if all(run.keys == runs[0].keys for run in runs):
        return list(runs)
    common = set(runs[0].keys).intersection(*(run.keys for run in runs[1:]))
    order = [key for key in runs[0].keys if key in common]
    restricted = []
    for run in runs:
        places = {key: place for place, key in enumerate(run.keys)}
        restricted.append(_pick(run, [places[key] for key in order]))
    return restricted


def _pick(run: RunScores, places: list[int]) -> RunScores:
    return RunScores(
        run_id=run.run_id,
        metric=run.metric,
        item_ids=[run.item_ids[place] for place in places],
        keys=[run.keys[place] for place in places],
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
