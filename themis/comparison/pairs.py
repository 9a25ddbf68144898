"""The scores of two runs on the same items, checked once for every statistic that compares them.

A difference is always the first run minus the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from themis.core.intervals import Floats, Labels, Scores, cluster_totals, finite_scores, summarise
from themis.exceptions import MetricError

__all__ = ["Pairs", "Units", "pair", "stderr_of_mean"]


@dataclass(frozen=True)
class Units:
    """What was drawn independently, items or whole clusters: the sum of differences in each, and its number of items."""

    sums: Floats
    sizes: Floats
    clustered: bool

    @property
    def count(self) -> int:
        return int(self.sums.size)

    @property
    def clusters(self) -> int | None:
        return self.count if self.clustered else None


@dataclass(frozen=True)
class Pairs:
    """Two runs on `n` shared items; `differences` are free of the noise that subtracting decimals leaves."""

    a: Floats
    b: Floats
    differences: Floats

    @property
    def n(self) -> int:
        return int(self.differences.size)

    @property
    def difference(self) -> float:
        """Mean of the first run minus the second."""
        return float(self.differences[0]) if self.constant else float(self.differences.mean())

    @property
    def constant(self) -> bool:
        return bool(self.differences.min() == self.differences.max())

    @property
    def binary(self) -> bool:
        return all(bool(((scores == 0) | (scores == 1)).all()) for scores in (self.a, self.b))

    def units(self, clusters: Labels | None) -> Units:
        """The differences by cluster, or each on its own; refuses fewer than two clusters."""
        if clusters is None:
            return Units(sums=self.differences, sizes=np.ones(self.n), clustered=False)
        totals = cluster_totals(self.differences, clusters)
        if totals.sums.size < 2:
            raise MetricError(
                f"all {self.n} items are in one cluster; a comparison needs at least two clusters to see any spread"
            )
        reach = cluster_totals(np.abs(self.differences), clusters).sums
        return Units(sums=_without_noise(totals.sums, reach), sizes=totals.sizes, clustered=True)


def pair(a: Scores, b: Scores) -> Pairs:
    """Checks that two columns of scores can be compared item by item."""
    first, second = finite_scores(a), finite_scores(b)
    if first.size != second.size:
        raise MetricError(
            f"cannot pair {first.size} scores with {second.size}: give both runs' scores of the shared items, in one order"
        )
    if first.size < 2:
        raise MetricError(f"a paired comparison needs at least two shared items, got {first.size}")
    reach = np.maximum(np.abs(first), np.abs(second))
    return Pairs(a=first, b=second, differences=_without_noise(first - second, reach))


def stderr_of_mean(scores: Floats, clusters: Labels | None) -> float:
    """Standard error of a mean of independent scores, or of scores that come in clusters."""
    stderr = summarise(scores, clusters=clusters).stderr
    if stderr is None:
        raise MetricError(f"a standard error needs at least two items and two clusters, got {scores.size} items")
    return stderr


def _without_noise(values: Floats, reach: Floats) -> Floats:
    """Makes magnitudes equal that differ only by rounding: 0.3 - 0.2 and 0.2 - 0.1 are a tie, not a ranking.

    `reach` is the size of the numbers that each value was computed from, which is what its rounding error scales with.
    """
    magnitudes = np.abs(values)
    order = np.argsort(magnitudes, kind="stable")
    ranked = magnitudes[order]
    noise = 2 * np.finfo(np.float64).eps * reach[order]
    starts = np.concatenate([[True], np.diff(ranked) > np.maximum(noise[1:], noise[:-1])])
    group = np.cumsum(starts) - 1
    representative = ranked[starts][group]
    # The first group is zero when its smallest member could be.
    representative[(group == 0) & bool(ranked[0] <= noise[0])] = 0.0
    cleaned = np.empty_like(values)
    cleaned[order] = representative
    # Adding zero turns the negative zeros into plain ones.
    return np.copysign(cleaned, values) + 0.0
