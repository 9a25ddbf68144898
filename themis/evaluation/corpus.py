"""A number over a whole corpus from its items' statistics: its value, its standard error, its interval.

`Corpus` adds statistics up within what was drawn independently (items, or whole clusters of them) and computes the
aggregation for any weights of those. Reports stand on it, and comparisons, which weigh the items of two runs together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from themis.core.entities import MetricAggregate
from themis.core.intervals import Floats, ScoreRange, Summary, check_level, clip, normal_quantile, student_quantile
from themis.evaluation.resolve import resolve_aggregation
from themis.exceptions import MetricError

if TYPE_CHECKING:
    from themis.evaluation.aggregations import Aggregation, Rows

# Under this name a score's details hold the item's statistics, and under the second, where attempts are averaged, each one's.
STATISTICS = "statistics"
OF_ATTEMPTS = "statistics_of_attempts"
# So many numbers are computed at a time.
_CHUNK = 2**21
# So many groups of units are left out in turn where each value is costly.
_MOST_GROUPS = 50


class Observation(NamedTuple):
    """What the score of one answer adds: whose item it is, in which cluster, with the details of the score."""

    item_id: str
    cluster: str | None
    details: Mapping[str, object]


@dataclass(frozen=True)
class Corpus:
    """Items' statistics under an aggregation; `build` makes one.

    `rows` has a row a unit, or a kind of unit that occurs `counts` times: what was drawn independently, an item or a cluster.
    """

    aggregation: Aggregation
    rows: Rows
    counts: Floats
    items: int
    clustered: bool
    # As the scores hold them, with the weight of each: several attempts at an item share its weight.
    statistics: Sequence[object]
    weights: Floats

    @classmethod
    def build(cls, aggregation: str, metric: str, observations: Iterable[Observation]) -> Corpus:
        """The corpus of stored or computed scores.

        Args:
            aggregation: As the metric names it, with parameters: `ece(bins=15)`.
            metric: The metric's name, for messages.
            observations: One a score, in any order.

        Raises:
            ConfigurationError: No such aggregation is registered.
            MetricError: A score holds no statistics.
        """
        import numpy as np

        found = resolve_aggregation(aggregation)
        given = list(observations)
        statistics, owners = [], []
        for owner, one in enumerate(given):
            of_attempts = list(statistics_of(one.details, metric))
            statistics += of_attempts
            owners += [owner] * len(of_attempts)
        items = [given[owner].item_id for owner in owners]
        attempts = Counter(items)
        weights: Floats = 1 / np.array([attempts[item] for item in items], dtype=np.float64)
        clusters = [given[owner].cluster for owner in owners]
        clustered = bool(clusters) and None not in clusters
        labels: Sequence[Hashable] = clusters if clustered else items
        rows, counts = _units(found, statistics, weights, group_units(labels) if found.costly else labels)
        return cls(found, rows, counts, len(set(items)), clustered, statistics, weights)

    @property
    def units(self) -> int:
        """How many were drawn independently: items, or clusters."""
        return int(self.counts.sum())

    @cached_property
    def totals(self) -> Floats:
        """The statistics summed over all items."""
        totals: Floats = weigh(self.rows, self.counts[None])[0]
        return totals

    @cached_property
    def value(self) -> float:
        """The number itself; NaN of nothing."""
        return float(self.aggregation.compute(self.totals[None])[0]) if self.items else math.nan

    @cached_property
    def left_out(self) -> Floats:
        """The value without one of each kind of unit in turn."""
        import numpy as np

        found = [self.aggregation.compute(self.totals - chunk) for chunk in dense_chunks(self.rows)]
        return np.concatenate(found)

    @property
    def stderr(self) -> float | None:
        """By the jackknife over units; None of fewer than two."""
        n = self.units
        if n < 2:
            return None
        mean = float(self.counts @ self.left_out) / n
        spread = float(self.counts @ (self.left_out - mean) ** 2)
        # Rounding is no spread.
        return 0.0 if spread <= 1e-24 * max(1.0, mean * mean) else math.sqrt((n - 1) / n * spread)

    def summarise(self, level: float = 0.95) -> Summary:
        """The value with its standard error and interval, as `core.intervals.summarise` gives them of a mean."""
        interval = self.interval(level)
        method = (
            None if interval is None else f"{self.aggregation.interval_name}{'_clustered' if self.clustered else ''}"
        )
        return Summary(self.items, self.value, self.stderr, interval, method)

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Where the number lies for all items of this kind, with this confidence; None of fewer than two units."""
        check_level(level)
        return None if self.units < 2 else self.aggregation.interval(self, level)

    def describe(self) -> dict[str, object]:
        """What explains the value: a confusion matrix, a reliability diagram, precisions."""
        return self.aggregation.describe(self.statistics, self.weights) if self.items else {}


def put_aggregation(found: MetricAggregate, aggregation: str, observations: Iterable[Observation]) -> None:
    """Puts a run's number in the place of the mean of its items' scores, with what explains it.

    Args:
        found: The aggregate of the items' own scores.
        aggregation: As the metric names it.
        observations: One a score.
    """
    if resolve_aggregation(aggregation).is_mean:
        found.details = describe_aggregation(aggregation, found.name, observations)
        return
    corpus = Corpus.build(aggregation, found.name, observations)
    summary = corpus.summarise()
    found.mean, found.stderr, found.ci, found.ci_method = summary.mean, summary.stderr, summary.ci, summary.method
    # Samples have no shares of a number that all make together.
    found.details, found.successes = corpus.describe(), None


def describe_aggregation(aggregation: str, metric: str, observations: Iterable[Observation]) -> dict[str, object]:
    """What explains a run's number; nothing where it is a mean whose attempts were counted instead of added up."""
    observed = list(observations)
    is_whole = all(STATISTICS in one.details or OF_ATTEMPTS in one.details for one in observed)
    if not is_whole and resolve_aggregation(aggregation).is_mean:
        return {}
    return Corpus.build(aggregation, metric, observed).describe()


def jackknife_interval(
    value: float, stderr: float, units: int, value_range: ScoreRange | None, level: float
) -> tuple[float, float] | None:
    """Student's interval around a jackknifed value, on a scale on which the value's range has no ends.

    A value between two ends is put on the logit scale, one with a least on the logarithmic one: there its distribution is
    about symmetric, and the interval stays inside. Where no unit moves the value, units that would may still make up the
    share that a score interval allows after seeing none of them.
    """
    low, high = value_range or (None, None)
    if stderr == 0:
        if low is None and high is None:
            return None
        square = normal_quantile(0.5 + level / 2) ** 2
        reach = square / (units + square) * (1.0 if low is None or high is None else high - low)
        return clip((value - reach, value + reach), value_range)
    half = student_quantile(0.5 + level / 2, units - 1) * stderr
    below, above = (math.inf if low is None else value - low), (math.inf if high is None else high - value)
    if min(below, above) <= 0 or (low is None and high is None):
        return clip((value - half, value + half), value_range)
    if low is not None and high is not None:
        middle, half = math.log(below / above), half * (high - low) / (below * above)
        ends = (middle - half, middle + half)
        return low + (high - low) * _expit(ends[0]), low + (high - low) * _expit(ends[1])
    factor = math.exp(min(half / min(below, above), 700.0))
    if low is not None:
        return low + below / factor, low + below * factor
    return value + above - above * factor, value + above - above / factor


def weigh(rows: Rows, weights: Floats) -> Floats:
    """Sums of rows for many weightings of them at once, a line each."""
    import numpy as np

    return np.ascontiguousarray((rows.T @ weights.T).T)


def statistics_of(details: Mapping[str, object], metric: str) -> Iterator[object]:
    """What a score of this metric holds to be added up: one attempt's, or each of several.

    Raises:
        MetricError: It holds none.
    """
    if STATISTICS in details:
        yield details[STATISTICS]
        return
    of_attempts = details.get(OF_ATTEMPTS)
    if not isinstance(of_attempts, list) or not of_attempts:
        raise MetricError(
            f"a score of {metric} holds no statistics to add up; judge the run again, with a reducer that keeps them "
            "(average, first, best, majority or keep)"
        )
    yield from of_attempts


def _units(
    aggregation: Aggregation, statistics: Sequence[object], weights: Floats, labels: Sequence[object]
) -> tuple[Rows, Floats]:
    """A row a unit; where a unit is one answer, equal ones are one row with its count."""
    import numpy as np
    from scipy.sparse import csr_array

    numbers: dict[object, int] = {}
    units = [numbers.setdefault(label, len(numbers)) for label in labels]
    if len(numbers) < len(statistics):
        shape = (len(numbers), len(statistics))
        return csr_array((weights, (units, np.arange(len(units)))), shape=shape) @ aggregation.tabulate(
            statistics
        ), np.ones(len(numbers))
    kinds: dict[str, int] = {}
    of_kind = [kinds.setdefault(repr(one), len(kinds)) for one in statistics]
    seen = dict(zip(reversed(of_kind), reversed(statistics), strict=True))
    rows = aggregation.tabulate([seen[kind] for kind in range(len(kinds))])
    return rows, np.bincount(of_kind, minlength=len(kinds)).astype(np.float64)


def group_units(labels: Iterable[Hashable]) -> list[Hashable]:
    """At most 50 labels: units dealt out to groups in turn, which are then left out or drawn whole.

    >>> group_units(["a", "b", "a"])
    [0, 1, 0]
    """
    numbers: dict[object, int] = {}
    return [numbers.setdefault(label, len(numbers)) % _MOST_GROUPS for label in labels]


def dense_chunks(rows: Rows) -> Iterator[Floats]:
    """The rows as plain arrays, some megabytes at a time."""
    step = max(1, _CHUNK // max(rows.shape[1], 1))
    for start in range(0, rows.shape[0], step):
        chunk = rows[start : start + step]
        yield chunk.toarray() if hasattr(chunk, "toarray") else chunk


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0
