"""Sizes of the difference between two runs' scores on the same items, beside the tests of `statistics`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from themis.comparison.statistics import Pairs, pair, risk_difference_interval, stderr_of_mean
from themis.core.intervals import Labels, Scores, summarise
from themis.exceptions import MetricError


@dataclass(frozen=True, kw_only=True)
class PairedEffects:
    """The difference of the means (first minus second) and what pairing bought.

    `stderr_unpaired` is what the difference would have without knowing which scores belong together; `correlation` is
    None if a run's scores do not vary. `cohens_dz` and `hedges_g` (its correction for small n) are in standard
    deviations of the differences, None if those do not vary. `win_rate` counts a tie as half a win.
    """

    n: int
    clusters: int | None
    mean_a: float
    mean_b: float
    difference: float
    stderr_a: float
    stderr_b: float
    stderr_difference: float
    stderr_unpaired: float
    correlation: float | None
    cohens_dz: float | None
    hedges_g: float | None
    wins: int
    losses: int
    ties: int
    win_rate: float
    win_rate_ci: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class ProportionEffects:
    """Two runs scored 0 or 1: the four counts, the risk difference (Tango's interval) and the odds ratio (exact interval).

    The odds ratio is that of matched pairs, `only_a / only_b`: infinite if the second run alone was never right, None if
    the runs agree everywhere.
    """

    n: int
    both_right: int
    only_a: int
    only_b: int
    both_wrong: int
    risk_difference: float
    risk_difference_ci: tuple[float, float]
    odds_ratio: float | None
    odds_ratio_ci: tuple[float, float] | None


def paired_effects(
    a: Scores | Pairs, b: Scores | None = None, *, clusters: Labels | None = None, level: float = 0.95
) -> PairedEffects:
    """Effect sizes, standard errors and correlation of two runs; with clusters the standard errors rest on those."""
    pairs = pair(a, b, clusters=clusters)
    clusters = pairs.clusters
    stderr_a, stderr_b, stderr_difference = (
        stderr_of_mean(scores, clusters) for scores in (pairs.a, pairs.b, pairs.differences)
    )
    wins, losses = pairs.wins_and_losses
    won = summarise((np.sign(pairs.differences) + 1) / 2, clusters=clusters, level=level, score_range=(0.0, 1.0))
    dz = pairs.cohens_dz
    return PairedEffects(
        n=pairs.n,
        clusters=pairs.cluster_count,
        mean_a=float(pairs.a.mean()),
        mean_b=float(pairs.b.mean()),
        difference=pairs.difference,
        stderr_a=stderr_a,
        stderr_b=stderr_b,
        stderr_difference=stderr_difference,
        stderr_unpaired=math.hypot(stderr_a, stderr_b),
        correlation=_correlation(pairs),
        cohens_dz=dz,
        # With one degree of freedom the expectation of the ratio does not exist, so nothing is unbiased.
        hedges_g=None if dz is None or pairs.n < 3 else dz * _small_sample_factor(pairs.n - 1),
        wins=wins,
        losses=losses,
        ties=pairs.n - wins - losses,
        win_rate=won.mean,
        win_rate_ci=won.ci,
    )


def proportion_effects(a: Scores | Pairs, b: Scores | None = None, *, level: float = 0.95) -> ProportionEffects:
    """Counts, risk difference and odds ratio of two runs scored 0 or 1."""
    pairs = pair(a, b)
    if not pairs.binary:
        raise MetricError("a risk difference needs scores that are 0 or 1; use paired_effects for graded scores")
    only_a, only_b = pairs.wins_and_losses
    both_right = int(np.count_nonzero((pairs.a == 1) & (pairs.b == 1)))
    return ProportionEffects(
        n=pairs.n,
        both_right=both_right,
        only_a=only_a,
        only_b=only_b,
        both_wrong=pairs.n - both_right - only_a - only_b,
        risk_difference=pairs.difference,
        risk_difference_ci=risk_difference_interval(only_a, only_b, pairs.n, level=level),
        odds_ratio=None if only_a == only_b == 0 else math.inf if only_b == 0 else only_a / only_b,
        odds_ratio_ci=_odds_ratio_interval(only_a, only_b, level),
    )


def _odds_ratio_interval(only_a: int, only_b: int, level: float) -> tuple[float, float] | None:
    """Clopper and Pearson's interval for the share of discordant pairs that are the first run's, as odds."""
    if only_a == only_b == 0:
        return None
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(only_a, only_b + 1, tail)) if only_a else 0.0
    high = float(betaincinv(only_a + 1, only_b, 1 - tail)) if only_b else 1.0
    return low / (1 - low), high / (1 - high) if high < 1 else math.inf


def _correlation(pairs: Pairs) -> float | None:
    if pairs.a.min() == pairs.a.max() or pairs.b.min() == pairs.b.max():
        return None
    return float(np.corrcoef(pairs.a, pairs.b)[0, 1])


def _small_sample_factor(degrees_of_freedom: int) -> float:
    """Hedges' exact factor that makes a standardised mean unbiased."""
    half = degrees_of_freedom / 2
    return math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)
