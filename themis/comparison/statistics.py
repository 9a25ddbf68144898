"""Two runs' scores on the same items: whether they differ, and by how much.

A difference is always the first run minus the second. Every function takes the two columns of scores in one order, or the
`Pairs` that `pair` (or `scores.align`) has made of them, and what cannot be computed is refused with a `MetricError`. A test
returns a `PairedTest`; what has an answer without evidence is not significant, with a note that says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from themis.comparison.corpus import PairedCorpora
from themis.comparison.resampling import (
    Method,
    bootstrap_interval,
    exact_p_value,
    sampled_p_value,
    smallest_p_value,
)
from themis.core.intervals import (
    ClusterTotals,
    Floats,
    Labels,
    ScoreRange,
    Scores,
    Summary,
    check_level,
    cluster_totals,
    estimate_mean,
    finite_scores,
    normal_quantile,
    student_quantile,
    summarise,
)
from themis.exceptions import ConfigurationError, MetricError


@dataclass(frozen=True)
class Pairs:
    """Two runs on the items that both have a score of, in one order.

    `clusters` has one label an item (the passage, the conversation), None if items are independent; `score_range` is the
    least and the most that a score can be.
    """

    a: Floats
    b: Floats
    clusters: Labels | None = None
    score_range: ScoreRange | None = None
    # Where the runs' numbers are no means of these scores: what they are computed from.
    corpora: PairedCorpora | None = None

    @property
    def means(self) -> tuple[float, float]:
        """Both runs' numbers on these items: the means of the scores, unless the metric has another."""
        if self.corpora is not None:
            return self.corpora.values
        return float(self.a.mean()), float(self.b.mean())

    @property
    def n(self) -> int:
        return int(self.a.size)

    @cached_property
    def differences(self) -> Floats:
        """First minus second, free of the noise that subtracting decimals leaves."""
        return _remove_noise(self.a - self.b, np.maximum(np.abs(self.a), np.abs(self.b)))

    @property
    def difference(self) -> float:
        """Mean of the first run minus the second."""
        return float(self.differences[0]) if self.constant else float(self.differences.mean())

    @property
    def constant(self) -> bool:
        return bool(self.differences.min() == self.differences.max())

    @property
    def cohens_dz(self) -> float | None:
        """The difference in standard deviations of the differences; None if those do not vary around another value."""
        if self.constant:
            return 0.0 if self.difference == 0 else None
        return self.difference / float(self.differences.std(ddof=1))

    @property
    def wins_and_losses(self) -> tuple[int, int]:
        """On how many items the first run scored higher, and on how many lower."""
        return int(np.count_nonzero(self.differences > 0)), int(np.count_nonzero(self.differences < 0))

    @property
    def binary(self) -> bool:
        return all(bool(((scores == 0) | (scores == 1)).all()) for scores in (self.a, self.b))

    @cached_property
    def units(self) -> ClusterTotals:
        """The differences of what was drawn independently: items or whole clusters."""
        if self.clusters is None:
            return ClusterTotals(sums=self.differences, sizes=np.ones(self.n))
        totals = cluster_totals(self.differences, self.clusters)
        reach = cluster_totals(np.abs(self.differences), self.clusters).sums
        return ClusterTotals(sums=_remove_noise(totals.sums, reach), sizes=totals.sizes)

    @property
    def unit_count(self) -> int:
        return int(self.units.sums.size)

    @property
    def cluster_count(self) -> int | None:
        return None if self.clusters is None else self.unit_count

    @property
    def difference_range(self) -> ScoreRange | None:
        """What the difference of two scores can be, where both have a least and a most and keep to them."""
        low, high = self.score_range or (None, None)
        if low is None or high is None or self.n == 0:
            return None
        seen = (min(self.a.min(), self.b.min()), max(self.a.max(), self.b.max()))
        return (low - high, high - low) if low <= seen[0] and seen[1] <= high else None


def pair(a: Scores | Pairs, b: Scores | None = None, *, clusters: Labels | None = None) -> Pairs:
    """Checks that two columns of scores can be compared item by item.

    Args:
        a: The first run's scores, or pairs that are made already.
        b: The second run's scores of the same items, in the same order.
        clusters: One label an item; items of one cluster are not independent of each other.

    Raises:
        MetricError: A score is not a finite number, the columns differ in length, or there are fewer than two items or
            clusters.
    """
    if isinstance(a, Pairs):
        pairs = a
    else:
        pairs = Pairs(a=finite_scores(a), b=finite_scores(() if b is None else b), clusters=clusters)
    if pairs.a.size != pairs.b.size:
        raise MetricError(
            f"cannot pair {pairs.a.size} scores with {pairs.b.size}: give both runs' scores of the shared items, in one order"
        )
    if pairs.n < 2:
        raise MetricError(f"a paired comparison needs at least two shared items, got {pairs.n}")
    if pairs.unit_count < 2:
        raise MetricError(
            f"all {pairs.n} items are in one cluster; a comparison needs at least two clusters to see any spread"
        )
    return pairs


# --- tests ------------------------------------------------------------------------------------------------------------

# Simulated coverage of a bootstrap's 95 % interval is 93 % or more from here on.
_FEWEST_RESAMPLED = 30


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """One test of two runs on `n` shared items; `difference` is the mean of the first run minus the second.

    `p_value` is two-sided; None for the bootstrap, whose verdict is its interval. It is 1.0 where the data hold no
    evidence, and `note` says so. `exact` means neither an approximation nor chance is in it; `resamples` is None then.
    """

    name: str
    n: int
    difference: float
    statistic: float | None
    p_value: float | None
    alpha: float
    ci: tuple[float, float] | None = None
    stderr: float | None = None
    degrees_of_freedom: float | None = None
    clusters: int | None = None
    exact: bool = True
    resamples: int | None = None
    seed: int | None = None
    note: str = ""
    # The evidence points the other way than the difference of the means: ranks may.
    opposes_mean: bool = False

    @property
    def significant(self) -> bool:
        if self.p_value is not None:
            return self.p_value <= self.alpha
        return self.ci is not None and not self.ci[0] <= 0 <= self.ci[1]


def paired_t_test(
    a: Scores | Pairs, b: Scores | None = None, *, alpha: float = 0.05, clusters: Labels | None = None
) -> PairedTest:
    """Student's test of the mean difference; with clusters, their robust standard error and degrees of freedom.

    Those are CR2 and Satterthwaite's, which hold for few clusters of unequal sizes too.

    Args:
        a: The first run's scores, or both runs' as `Pairs`.
        b: The second run's scores of the same items, in the same order.
        alpha: Accepted rate of false alarms; one minus the level of the interval.
        clusters: One label an item, where items are not independent.

    >>> test = paired_t_test([0.9, 0.8, 0.7, 0.9], [0.5, 0.7, 0.4, 0.6])
    >>> round(test.difference, 3), round(test.p_value, 3), test.significant
    (0.275, 0.022, True)
    """
    pairs = _prepare(a, b, alpha, clusters)
    estimate = estimate_mean(pairs.differences, pairs.clusters)
    assert estimate is not None, "pair() refuses fewer than two items or clusters"
    stderr, degrees_of_freedom = estimate.stderr, estimate.degrees_of_freedom
    # Differences that cancel within every cluster leave rounding, not spread.
    if stderr <= 1e-14 * float(np.abs(pairs.differences).max()):
        return PairedTest(
            name="paired_t",
            n=pairs.n,
            difference=pairs.difference,
            statistic=0.0 if pairs.difference == 0 else None,
            p_value=1.0,
            alpha=alpha,
            stderr=0.0,
            degrees_of_freedom=degrees_of_freedom,
            clusters=pairs.cluster_count,
            note=_why_no_spread(pairs),
        )
    from scipy.special import stdtr

    statistic = pairs.difference / stderr
    half = student_quantile(1 - alpha / 2, degrees_of_freedom) * stderr
    return PairedTest(
        name="paired_t",
        n=pairs.n,
        difference=pairs.difference,
        statistic=statistic,
        p_value=2 * float(stdtr(degrees_of_freedom, -abs(statistic))),
        alpha=alpha,
        ci=(pairs.difference - half, pairs.difference + half),
        stderr=stderr,
        degrees_of_freedom=degrees_of_freedom,
        clusters=pairs.cluster_count,
        note=f"{few}, so this p-value rests on their being normal" if (few := _too_few(pairs, alpha)) else "",
    )


def paired_permutation_test(
    a: Scores | Pairs,
    b: Scores | None = None,
    *,
    alpha: float = 0.05,
    clusters: Labels | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Swaps the two runs' scores item by item (whole clusters together) and asks how rarely the means differ as much.

    Exact for 0/1 scores, for graded scores and for few items; otherwise from random swaps.

    Args:
        a: The first run's scores, or both runs' as `Pairs`.
        b: The second run's scores of the same items, in the same order.
        alpha: Accepted rate of false alarms.
        clusters: One label an item, where items are not independent.
        resamples: Number of random swaps, where the test is not exact.
        seed: Of the random swaps.
    """
    pairs = _prepare(a, b, alpha, clusters)
    if resamples < 1:
        raise ConfigurationError(f"a permutation test needs at least one resample (10000 is usual), got {resamples}")
    exact = exact_p_value(pairs.units.sums)
    p_value = sampled_p_value(pairs.units.sums, resamples=resamples, seed=seed) if exact is None else exact
    return PairedTest(
        name="paired_permutation",
        n=pairs.n,
        difference=pairs.difference,
        statistic=pairs.difference,
        p_value=p_value,
        alpha=alpha,
        clusters=pairs.cluster_count,
        exact=exact is not None,
        resamples=resamples if exact is None else None,
        seed=seed,
        note=_why_out_of_reach(pairs, alpha),
    )


def bootstrap_test(
    a: Scores | Pairs,
    b: Scores | None = None,
    *,
    alpha: float = 0.05,
    clusters: Labels | None = None,
    method: Method = "bca",
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Bootstrap interval of the mean difference, resampling items or whole clusters; significant if it excludes zero.

    With few differing items a resample seldom meets the opposite sign, and the bare interval would exclude zero where no
    exact test can: it is then stretched to zero. Fewer than 30 items or clusters are too few to stand for all others, and
    resamples of them vary too little: the interval then holds that of `summarise_difference` too. The note says so.

    Args:
        a: The first run's scores, or both runs' as `Pairs`.
        b: The second run's scores of the same items, in the same order.
        alpha: One minus the level of the interval.
        clusters: One label an item, where items are not independent.
        method: BCa (corrected for bias and skewness) or plain percentiles.
        resamples: Number of resamples, at least 100.
        seed: Of the random draws.
    """
    pairs = _prepare(a, b, alpha, clusters)
    interval = bootstrap_interval(pairs.units, level=1 - alpha, method=method, resamples=resamples, seed=seed)
    (low, high), note = interval.ci, interval.note
    if pairs.unit_count < _FEWEST_RESAMPLED and (wider := _mean_difference(pairs, 1 - alpha).ci) is not None:
        low, high = min(low, wider[0]), max(high, wider[1])
        noun = "items" if pairs.clusters is None else "clusters"
        note = f"resamples of {pairs.unit_count} {noun} vary too little, so the interval holds that of the mean too"
    out_of_reach = _why_no_spread(pairs) if pairs.constant else _why_out_of_reach(pairs, alpha)
    if out_of_reach:
        low, high, note = min(low, 0.0), max(high, 0.0), out_of_reach
    return PairedTest(
        name=f"bootstrap_{interval.method}",
        n=pairs.n,
        difference=pairs.difference,
        statistic=pairs.difference,
        p_value=None,
        alpha=alpha,
        ci=(low, high),
        stderr=interval.stderr,
        clusters=pairs.cluster_count,
        exact=False,
        resamples=resamples,
        seed=seed,
        note=note,
    )


def mcnemar_test(a: Scores | Pairs, b: Scores | None = None, *, alpha: float = 0.05) -> PairedTest:
    """Exact McNemar test of two runs scored 0 or 1: of the items that only one got right, are half the first run's?

    `statistic` is the smaller of the two discordant counts; the interval is Tango's for the difference of proportions, as
    far as it goes with the exact test (`agree_with_test`).

    Args:
        a: The first run's scores, or both runs' as `Pairs`.
        b: The second run's scores of the same items, in the same order.
        alpha: Accepted rate of false alarms; one minus the level of the interval.
    """
    pairs = _prepare(a, b, alpha)
    if not pairs.binary:
        raise MetricError("McNemar's test needs scores that are 0 or 1; use the permutation test for graded scores")
    only_a, only_b = pairs.wins_and_losses
    from scipy.special import bdtr

    discordant = only_a + only_b
    p_value = min(1.0, 2 * float(bdtr(min(only_a, only_b), discordant, 0.5))) if discordant else 1.0
    interval = risk_difference_interval(only_a, only_b, pairs.n, level=1 - alpha)
    return PairedTest(
        name="mcnemar",
        n=pairs.n,
        difference=pairs.difference,
        statistic=float(min(only_a, only_b)),
        p_value=p_value,
        alpha=alpha,
        ci=agree_with_test(interval, pairs.difference, is_significant=p_value <= alpha),
        note=_why_out_of_reach(pairs, alpha),
    )


def wilcoxon_test(a: Scores | Pairs, b: Scores | None = None, *, alpha: float = 0.05) -> PairedTest:
    """Wilcoxon's signed-rank test: equal pairs are left out, equal magnitudes share their mean rank.

    Exact, ties included, up to some 250 differing items; above that the normal approximation corrected for ties. It asks
    whether the differences lie symmetrically around zero. Where they are skewed that is another question than whether
    their mean is zero, and the note says so.

    Args:
        a: The first run's scores, or both runs' as `Pairs`.
        b: The second run's scores of the same items, in the same order.
        alpha: Accepted rate of false alarms.
    """
    pairs = _prepare(a, b, alpha)
    differing = pairs.differences[pairs.differences != 0]
    ranks, tie_counts = _mid_ranks(np.abs(differing))
    signed = np.copysign(ranks, differing)
    positive, negative = float(ranks[differing > 0].sum()), float(ranks[differing < 0].sum())
    p_value = exact_p_value(signed)
    exact = p_value is not None
    if p_value is None:
        m = differing.size
        variance = m * (m + 1) * (2 * m + 1) / 24 - float((tie_counts**3 - tie_counts).sum()) / 48
        p_value = math.erfc(abs(positive - negative) / 2 / math.sqrt(2 * variance))
    return PairedTest(
        name="wilcoxon",
        n=pairs.n,
        difference=pairs.difference,
        statistic=min(positive, negative),
        p_value=p_value,
        alpha=alpha,
        exact=exact,
        note=_why_out_of_reach(pairs, alpha) or _why_not_the_mean(pairs, positive - negative, p_value, alpha),
        opposes_mean=(positive - negative) * pairs.difference < 0,
    )


def _why_not_the_mean(pairs: Pairs, rank_sum: float, p_value: float, alpha: float) -> str:
    """Why a verdict on ranks is not one on the difference of the means; empty where both say the same."""
    if p_value <= alpha and rank_sum * pairs.difference < 0:
        return "the ranks favour the other run than the means do: this test weighs ranks, and its verdict is not on the means"
    of_means = paired_t_test(pairs, alpha=alpha)
    if of_means.p_value is not None and (p_value <= alpha) != (of_means.p_value <= alpha):
        return (
            f"this test weighs ranks; on the difference of the means Student's test has p = {of_means.p_value:.2g}, "
            f"{'significant' if of_means.significant else 'not significant'}"
        )
    return "the differences are skewed, so a verdict on ranks need not hold for the means" if _is_skewed(pairs) else ""


def _is_skewed(pairs: Pairs) -> bool:
    """Whether mean and median of the differences lie farther apart than chance puts them where both are one."""
    differences = pairs.differences
    spread = float(differences.std(ddof=1))
    gap = abs(float(differences.mean() - np.median(differences)))
    # Three standard errors of mean minus median, 0.756 of the mean's for normal differences.
    return gap > 3 * 0.756 * spread / math.sqrt(pairs.n)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted so that testing all of them at alpha raises any false alarm with probability alpha at most."""
    ordered, order = _order(p_values)
    factors = np.arange(ordered.size, 0, -1)
    return _restore(np.minimum(np.maximum.accumulate(ordered * factors), 1.0), order)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted so that at most a share alpha of what is called significant is expected to be false."""
    ordered, order = _order(p_values)
    scaled = ordered * ordered.size / np.arange(1, ordered.size + 1)
    return _restore(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0), order)


def _prepare(a: Scores | Pairs, b: Scores | None, alpha: float, clusters: Labels | None = None) -> Pairs:
    if not 0 < alpha < 1:
        raise ConfigurationError(f"alpha lies between 0 and 1 (0.05 is usual), got {alpha}")
    return pair(a, b, clusters=clusters)


def _why_no_spread(pairs: Pairs) -> str:
    """Why differences that do not vary are no evidence to a test that weighs them by their spread."""
    if not pairs.differences.any():
        return f"all {pairs.n} pairs are equal"
    return (
        f"all {pairs.n} differences are {pairs.difference:g}: without spread this test cannot weigh them; "
        "the permutation test can"
        if pairs.constant
        else "the differences have no spread between clusters, so this test cannot weigh them"
    )


def _why_out_of_reach(pairs: Pairs, alpha: float) -> str:
    """Why no test of signs could be significant here; empty if one could."""
    if not pairs.differences.any():
        return f"all {pairs.n} pairs are equal"
    few = _too_few(pairs, alpha)
    return f"{few}: too few for any verdict at alpha {alpha:g}" if few else ""


def _too_few(pairs: Pairs, alpha: float) -> str:
    sums = pairs.units.sums
    if smallest_p_value(sums) <= alpha:
        return ""
    noun = "items" if pairs.clusters is None else "clusters"
    return f"only {int(np.count_nonzero(sums))} of {pairs.unit_count} {noun} differ"


def _mid_ranks(magnitudes: Floats) -> tuple[Floats, Floats]:
    """Ranks from 1, ties sharing their mean, with the size of each group of ties."""
    _, group, counts = np.unique(magnitudes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[group], counts.astype(np.float64)


def _order(p_values: Sequence[float]) -> tuple[Floats, npt.NDArray[np.intp]]:
    given = np.asarray(p_values, dtype=np.float64)
    bad = int(np.count_nonzero(~((given >= 0) & (given <= 1))))
    if bad:
        raise MetricError(f"{bad} of {given.size} p-values are not between 0 and 1; leave out tests without a p-value")
    order = np.argsort(given, kind="stable")
    return given[order], order


def _restore(adjusted: Floats, order: npt.NDArray[np.intp]) -> tuple[float, ...]:
    restored = np.empty_like(adjusted)
    restored[order] = adjusted
    return tuple(restored.tolist())


# --- intervals of the difference --------------------------------------------------------------------------------------


def summarise_difference(pairs: Pairs, *, level: float = 0.95) -> Summary:
    """The mean difference with its interval, for whichever scores: what a test without an interval is shown with.

    Tango's for scores of 0 or 1; within the differences that are possible, where the metric says what its scores can be;
    Student's stretched for skewness otherwise; over whole clusters where there are any. None where all items differ by the
    same amount and nothing bounds what the unseen ones differ by.

    >>> found = summarise_difference(pair([1, 1, 0, 1, 1, 1], [0, 1, 0, 0, 1, 0]))
    >>> found.method, [round(end, 2) for end in found.ci]
    ('tango', [-0.02, 0.81])
    """
    if pairs.corpora is not None:
        return Summary(pairs.n, pairs.corpora.difference, None, pairs.corpora.interval(1 - level), "jackknife")
    if not pairs.binary:
        return _mean_difference(pairs, level)
    found = _mean_difference(replace(pairs, score_range=(0.0, 1.0)), level)
    if pairs.clusters is not None:
        return found
    interval = risk_difference_interval(*pairs.wins_and_losses, pairs.n, level=level)
    return replace(found, ci=interval, method="tango")


def _mean_difference(pairs: Pairs, level: float) -> Summary:
    # Differences are not 0 or 1 by their nature, so two open ends say more than no range.
    possible = pairs.difference_range or (None, None)
    found = summarise(pairs.differences, clusters=pairs.clusters, level=level, score_range=possible)
    if found.ci is None and min(pairs.a.min(), pairs.b.min()) >= 0 and max(pairs.a.max(), pairs.b.max()) <= 1:
        # Every item differs by the same amount, so only what scores can be tells of the unseen ones.
        return summarise(pairs.differences, clusters=pairs.clusters, level=level, score_range=(-1.0, 1.0))
    return found


def agree_with_test(interval: tuple[float, float], difference: float, *, is_significant: bool) -> tuple[float, float]:
    """The interval, moved to zero where it and a test of the mean difference say otherwise of zero: the test rules.

    Args:
        interval: Of the difference.
        difference: The one that was seen.
        is_significant: What the test says at one minus the interval's level.

    >>> agree_with_test((-0.01, 0.4), 0.2, is_significant=True)
    (0.0, 0.4)
    >>> agree_with_test((0.02, 0.4), 0.2, is_significant=False)
    (0.0, 0.4)
    """
    low, high = interval
    if not is_significant:
        return min(low, 0.0), max(high, 0.0)
    return (max(low, 0.0), high) if difference > 0 else (low, min(high, 0.0))


def risk_difference_interval(only_a: int, only_b: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Tango's score interval for the difference of two paired proportions: wide enough for few discordant pairs."""
    if n < 1 or min(only_a, only_b) < 0 or only_a + only_b > n:
        raise MetricError(f"{only_a} + {only_b} discordant pairs of {n} is not possible")
    z = normal_quantile(0.5 + check_level(level) / 2)
    # Swapping the runs mirrors the interval, so the upper end is the mirrored lower end of the swapped counts.
    return _lowest_difference(only_a, only_b, n, z), -_lowest_difference(only_b, only_a, n, z)


def _lowest_difference(only_a: int, only_b: int, n: int, z: float) -> float:
    """The smallest difference that a score test does not reject; the score falls as the difference grows."""
    low, high = -1.0, (only_a - only_b) / n
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _score(only_a, only_b, n, middle) > z else (low, middle)
    return high


def _score(only_a: int, only_b: int, n: int, difference: float) -> float:
    """Standardised distance between the observed difference and this one, variance fitted under this one."""
    # The share of items that only b gets right has a quadratic likelihood equation once the difference is fixed.
    linear = (2 * n - only_a + only_b) * difference - only_a - only_b
    constant = -only_b * difference * (1 - difference)
    share_b = (math.sqrt(max(linear * linear - 8 * n * constant, 0.0)) - linear) / (4 * n)
    variance = n * (2 * share_b + difference * (1 - difference))
    distance = only_a - only_b - n * difference
    return distance / math.sqrt(variance) if variance > 0 else math.inf if distance > 0 else 0.0


def stderr_of_mean(scores: Floats, clusters: Labels | None) -> float:
    """Standard error of a mean of independent scores, or of scores that come in clusters."""
    estimate = estimate_mean(scores, clusters)
    if estimate is None:
        raise MetricError(f"a standard error needs at least two items and two clusters, got {scores.size} items")
    return estimate.stderr


def _remove_noise(values: Floats, reach: Floats) -> Floats:
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
