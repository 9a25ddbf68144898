"""Two runs under a number that is no mean (corpus BLEU, macro-F1): whether they differ, and by how much.

An item's statistics in both runs stay together: a permutation swaps whole items between the runs, a bootstrap draws whole items,
and the jackknife leaves whole items out of both; whole clusters where there are clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from themis.comparison.resampling import bca_shares
from themis.core.intervals import Floats, Labels, ScoreRange, clip
from themis.evaluation.aggregations import Aggregation, Rows
from themis.evaluation.corpus import dense_chunks, group_units, jackknife_interval, weigh
from themis.evaluation.resolve import resolve_aggregation

# Up to so many units all ways of swapping them are tried.
_ENUMERABLE = 12
# So many weights are drawn at a time, and so many in all: beyond, there are fewer resamples.
_CHUNK = 2**21
_MOST_WEIGHTS = 2**28
_FEWEST_RESAMPLES = 1_000
# Where each value takes as long as a look at all items.
_COSTLY_RESAMPLES = 500


@dataclass(frozen=True)
class PairedCorpora:
    """Two runs' statistics of the same units, a row each, in the same columns; `build` makes them."""

    aggregation: Aggregation
    a: Rows
    b: Rows

    @classmethod
    def build(
        cls,
        aggregation: str,
        a: Sequence[Sequence[object]],
        b: Sequence[Sequence[object]],
        clusters: Labels | None = None,
    ) -> PairedCorpora:
        """Both runs' statistics, item by item.

        Args:
            aggregation: As the metric names it, with parameters.
            a: For each shared item what the first run's attempts at it left.
            b: The second run's, of the same items in the same order.
            clusters: One label an item, where items are not independent.
        """
        found = resolve_aggregation(aggregation)
        labels: Labels | None = (
            group_units(range(len(a)) if clusters is None else clusters) if found.costly else clusters
        )
        first, second = tabulate_runs(found, [a, b], labels)
        return cls(found, first, second)

    @property
    def units(self) -> int:
        """Items, or whole clusters of them."""
        return int(self.a.shape[0])

    @cached_property
    def values(self) -> tuple[float, float]:
        """Both runs' numbers on the shared items."""
        everything = np.ones((1, self.units))
        return self._value(self.a, everything), self._value(self.b, everything)

    @property
    def difference(self) -> float:
        """First minus second; zero where only rounding separates them."""
        first, second = self.values
        return 0.0 if abs(first - second) <= 1e-12 * max(abs(first), abs(second)) else first - second

    @property
    def difference_range(self) -> ScoreRange | None:
        """What the difference of two values can be."""
        low, high = self.aggregation.value_range or (None, None)
        return None if low is None or high is None else (low - high, high - low)

    @cached_property
    def left_out(self) -> Floats:
        """The difference without each unit in turn."""
        return leave_out(self.aggregation, self.a) - leave_out(self.aggregation, self.b)

    @property
    def stderr(self) -> float:
        """Of the difference, by the jackknife."""
        n = self.units
        spread = float(((self.left_out - self.left_out.mean()) ** 2).sum())
        return 0.0 if spread <= 1e-24 else math.sqrt((n - 1) / n * spread)

    def interval(self, alpha: float) -> tuple[float, float] | None:
        """Of the difference, by the jackknife; None where nothing bounds what unseen items could differ by."""
        return jackknife_interval(self.difference, self.stderr, self.units, self.difference_range, 1 - alpha)

    def bootstrap_interval(self, alpha: float, resamples: int, seed: int) -> tuple[float, float]:
        """Of the difference, by BCa over resampled units; percentiles where that is not defined."""
        replicates = self._replicates(draw_units(self.a, self.count_resamples(resamples), np.random.default_rng(seed)))
        ends = bca_shares(replicates, self.difference, self.left_out, 1 - alpha)
        low, high = np.quantile(replicates, ends or (alpha / 2, 1 - alpha / 2))
        return clip((float(low), float(high)), self.difference_range)

    def permute(self, resamples: int, seed: int) -> tuple[float, bool]:
        """How rarely the runs differ as much when items are swapped between them, and whether all ways were tried."""
        exact = self.units <= _ENUMERABLE
        rng = np.random.default_rng(seed)
        made = _all_swaps(self.units) if exact else _random_swaps(self.a, self.count_resamples(resamples), rng)
        # The first run's sums where some units are swapped: the second's of those, its own of the others.
        reached, total = 0, 0
        threshold = abs(self.difference) - 1e-12 * max(1.0, *map(abs, self.values))
        for chunk in made:
            kept = 1.0 - chunk
            first = self.aggregation.compute(weigh(self.a, kept) + weigh(self.b, chunk))
            second = self.aggregation.compute(weigh(self.b, kept) + weigh(self.a, chunk))
            reached += int(np.count_nonzero(np.abs(first - second) >= threshold))
            total += len(chunk)
        return (reached / total if exact else (reached + 1) / (total + 1)), exact

    def count_resamples(self, wanted: int) -> int:
        """As many as wanted, or fewer where there are so many units that these tell as much."""
        if self.aggregation.costly:
            return min(wanted, _COSTLY_RESAMPLES)
        return min(wanted, max(_FEWEST_RESAMPLES, _MOST_WEIGHTS // max(self.units, 1)))

    def _value(self, rows: Rows, weights: Floats) -> float:
        return float(self.aggregation.compute(weigh(rows, weights))[0])

    def _replicates(self, draws: Iterator[Floats]) -> Floats:
        compute = self.aggregation.compute
        return np.concatenate([compute(weigh(self.a, drawn)) - compute(weigh(self.b, drawn)) for drawn in draws])


def tabulate_runs(
    aggregation: Aggregation, runs: Sequence[Sequence[Sequence[object]]], clusters: Labels | None
) -> list[Rows]:
    """A row a unit for each run; together, so that a column means the same in all (a class that only one has predicted)."""
    rows = aggregation.tabulate([one for run in runs for item in run for one in item])
    ends = list(accumulate((sum(map(len, run)) for run in runs), initial=0))
    return [_add_up(rows[start:end], run, clusters) for run, (start, end) in zip(runs, pairwise(ends), strict=True)]


def leave_out(aggregation: Aggregation, rows: Rows) -> Floats:
    """The value without each unit in turn."""
    total = weigh(rows, np.ones((1, rows.shape[0])))
    return np.concatenate([aggregation.compute(total - chunk) for chunk in dense_chunks(rows)])


def _add_up(rows: Rows, items: Sequence[Sequence[object]], clusters: Labels | None) -> Rows:
    """A row a unit from one an attempt; the attempts at an item share its weight."""
    from scipy.sparse import csr_array

    numbers: dict[object, int] = {}
    labels = range(len(items)) if clusters is None else clusters
    of_item = [numbers.setdefault(label, len(numbers)) for label in labels]
    units = [unit for unit, item in zip(of_item, items, strict=True) for _ in item]
    weights = [1 / len(item) for item in items for _ in item]
    return csr_array((weights, (units, np.arange(len(units)))), shape=(len(numbers), len(units))) @ rows


def _chunks(resamples: int, rows: Rows) -> Iterator[int]:
    step = max(1, _CHUNK // max(rows.shape))
    yield from (min(step, resamples - start) for start in range(0, resamples, step))


def draw_units(rows: Rows, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """How often each unit is drawn, a line a resample."""
    units = rows.shape[0]
    for size in _chunks(resamples, rows):
        drawn = rng.integers(0, units, size=(size, units)) + units * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units).astype(np.float64)


def _random_swaps(rows: Rows, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    for size in _chunks(resamples, rows):
        yield (rng.random((size, rows.shape[0])) < 0.5).astype(np.float64)


def _all_swaps(units: int) -> Iterator[Floats]:
    yield ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)
