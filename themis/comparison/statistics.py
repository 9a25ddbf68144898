"""Tests of whether two runs differ on the same items.

Each takes the two runs' scores in one order and returns a `PairedTest`; what cannot be tested is refused with a
`MetricError`, and what has an answer without evidence is not significant, with a note that says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from themis.comparison.bootstrap import Method, bootstrap_of_units
from themis.comparison.effects import risk_difference_interval
from themis.comparison.pairs import Pairs, Units, pair, stderr_of_mean
from themis.comparison.signflips import exact_p_value, sampled_p_value, smallest_p_value
from themis.core.intervals import Floats, Labels, Scores, student_quantile
from themis.exceptions import ConfigurationError, MetricError

__all__ = [
    "PairedTest",
    "benjamini_hochberg",
    "bootstrap_test",
    "holm",
    "mcnemar_test",
    "paired_permutation_test",
    "paired_t_test",
    "wilcoxon_test",
]


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
    degrees_of_freedom: int | None = None
    clusters: int | None = None
    exact: bool = True
    resamples: int | None = None
    seed: int | None = None
    note: str = ""

    @property
    def significant(self) -> bool:
        if self.p_value is not None:
            return self.p_value <= self.alpha
        return self.ci is not None and not self.ci[0] <= 0 <= self.ci[1]


def paired_t_test(a: Scores, b: Scores, *, alpha: float = 0.05, clusters: Labels | None = None) -> PairedTest:
    """Student's test of the mean difference; with clusters, their robust standard error and their number minus one."""
    pairs, units = _prepared(a, b, alpha, clusters)
    stderr = stderr_of_mean(pairs.differences, clusters)
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
            degrees_of_freedom=units.count - 1,
            clusters=units.clusters,
            note=_without_spread(pairs),
        )
    from scipy.special import stdtr

    statistic = pairs.difference / stderr
    half = student_quantile(1 - alpha / 2, units.count - 1) * stderr
    return PairedTest(
        name="paired_t",
        n=pairs.n,
        difference=pairs.difference,
        statistic=statistic,
        p_value=2 * float(stdtr(units.count - 1, -abs(statistic))),
        alpha=alpha,
        ci=(pairs.difference - half, pairs.difference + half),
        stderr=stderr,
        degrees_of_freedom=units.count - 1,
        clusters=units.clusters,
        note=f"{few}, so this p-value rests on their being normal" if (few := _too_few(units, alpha)) else "",
    )


def paired_permutation_test(
    a: Scores,
    b: Scores,
    *,
    alpha: float = 0.05,
    clusters: Labels | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Swaps the two runs' scores item by item (whole clusters together) and asks how rarely the means differ as much.

    Exact for 0/1 scores, for graded scores and for few items; otherwise from random swaps.
    """
    pairs, units = _prepared(a, b, alpha, clusters)
    if resamples < 1:
        raise ConfigurationError(f"a permutation test needs at least one resample (10000 is usual), got {resamples}")
    exact = exact_p_value(units.sums)
    p_value = sampled_p_value(units.sums, resamples=resamples, seed=seed) if exact is None else exact
    return PairedTest(
        name="paired_permutation",
        n=pairs.n,
        difference=pairs.difference,
        statistic=pairs.difference,
        p_value=p_value,
        alpha=alpha,
        clusters=units.clusters,
        exact=exact is not None,
        resamples=resamples if exact is None else None,
        seed=seed,
        note=_beyond_reach(pairs, units, alpha),
    )


def bootstrap_test(
    a: Scores,
    b: Scores,
    *,
    alpha: float = 0.05,
    clusters: Labels | None = None,
    method: Method = "bca",
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Bootstrap interval of the mean difference, resampling items or whole clusters; significant if it excludes zero.

    With few differing items a resample seldom meets the opposite sign, and the bare interval would exclude zero where no
    exact test can: it is then stretched to zero, and the note says so.
    """
    pairs, units = _prepared(a, b, alpha, clusters)
    interval = bootstrap_of_units(
        units.sums, units.sizes, level=1 - alpha, method=method, resamples=resamples, seed=seed
    )
    (low, high), note = interval.ci, interval.note
    beyond_reach = _without_spread(pairs) if pairs.constant else _beyond_reach(pairs, units, alpha)
    if beyond_reach:
        low, high, note = min(low, 0.0), max(high, 0.0), beyond_reach
    return PairedTest(
        name=f"bootstrap_{interval.method}",
        n=pairs.n,
        difference=pairs.difference,
        statistic=pairs.difference,
        p_value=None,
        alpha=alpha,
        ci=(low, high),
        stderr=interval.stderr,
        clusters=units.clusters,
        exact=False,
        resamples=resamples,
        seed=seed,
        note=note,
    )


def mcnemar_test(a: Scores, b: Scores, *, alpha: float = 0.05) -> PairedTest:
    """Exact McNemar test of two runs scored 0 or 1: of the items that only one got right, are half the first run's?

    `statistic` is the smaller of the two discordant counts; the interval is Tango's for the difference of proportions.
    """
    pairs, units = _prepared(a, b, alpha, None)
    if not pairs.binary:
        raise MetricError("McNemar's test needs scores that are 0 or 1; use the permutation test for graded scores")
    only_a = int(np.count_nonzero(pairs.differences > 0))
    only_b = int(np.count_nonzero(pairs.differences < 0))
    from scipy.special import bdtr

    discordant = only_a + only_b
    p_value = min(1.0, 2 * float(bdtr(min(only_a, only_b), discordant, 0.5))) if discordant else 1.0
    return PairedTest(
        name="mcnemar",
        n=pairs.n,
        difference=pairs.difference,
        statistic=float(min(only_a, only_b)),
        p_value=p_value,
        alpha=alpha,
        ci=risk_difference_interval(only_a, only_b, pairs.n, level=1 - alpha),
        note=_beyond_reach(pairs, units, alpha),
    )


def wilcoxon_test(a: Scores, b: Scores, *, alpha: float = 0.05) -> PairedTest:
    """Wilcoxon's signed-rank test: equal pairs are left out, equal magnitudes share their mean rank.

    Exact, ties included, up to some 250 differing items; above that the normal approximation corrected for ties.
    """
    pairs, units = _prepared(a, b, alpha, None)
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
        note=_beyond_reach(pairs, units, alpha),
    )


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted so that testing all of them at alpha raises any false alarm with probability alpha at most."""
    ordered, order = _ordered(p_values)
    factors = np.arange(ordered.size, 0, -1)
    return _restored(np.minimum(np.maximum.accumulate(ordered * factors), 1.0), order)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted so that at most a share alpha of what is called significant is expected to be false."""
    ordered, order = _ordered(p_values)
    scaled = ordered * ordered.size / np.arange(1, ordered.size + 1)
    return _restored(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0), order)


def _prepared(a: Scores, b: Scores, alpha: float, clusters: Labels | None) -> tuple[Pairs, Units]:
    if not 0 < alpha < 1:
        raise ConfigurationError(f"alpha lies between 0 and 1 (0.05 is usual), got {alpha}")
    pairs = pair(a, b)
    return pairs, pairs.units(clusters)


def _without_spread(pairs: Pairs) -> str:
    """Why differences that do not vary are no evidence to a test that weighs them by their spread."""
    if not pairs.differences.any():
        return f"all {pairs.n} pairs are equal"
    return (
        f"all {pairs.n} differences are {pairs.difference:g}: without spread this test cannot weigh them; "
        "the permutation test can"
        if pairs.constant
        else "the differences have no spread between clusters, so this test cannot weigh them"
    )


def _beyond_reach(pairs: Pairs, units: Units, alpha: float) -> str:
    """Why no test of signs could be significant here; empty if one could."""
    if not pairs.differences.any():
        return f"all {pairs.n} pairs are equal"
    few = _too_few(units, alpha)
    return f"{few}: too few for any verdict at alpha {alpha:g}" if few else ""


def _too_few(units: Units, alpha: float) -> str:
    if smallest_p_value(units.sums) <= alpha:
        return ""
    differing, noun = int(np.count_nonzero(units.sums)), "clusters" if units.clustered else "items"
    return f"only {differing} of {units.count} {noun} differ"


def _mid_ranks(magnitudes: Floats) -> tuple[Floats, Floats]:
    """Ranks from 1, ties sharing their mean, with the size of each group of ties."""
    _, group, counts = np.unique(magnitudes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[group], counts.astype(np.float64)


def _ordered(p_values: Sequence[float]) -> tuple[Floats, npt.NDArray[np.intp]]:
    given = np.asarray(p_values, dtype=np.float64)
    bad = int(np.count_nonzero(~((given >= 0) & (given <= 1))))
    if bad:
        raise MetricError(f"{bad} of {given.size} p-values are not between 0 and 1; leave out tests without a p-value")
    order = np.argsort(given, kind="stable")
    return given[order], order


def _restored(adjusted: Floats, order: npt.NDArray[np.intp]) -> tuple[float, ...]:
    restored = np.empty_like(adjusted)
    restored[order] = adjusted
    return tuple(restored.tolist())
