"""Estimates from scores: a column's mean with its standard error and interval, and pass@k and pass^k of attempts.

Every aggregate of a report is made here, so numpy is imported only when something is summarised, and of scipy only
`scipy.special`: `scipy.stats` would cost a command more than its work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from themis.exceptions import ConfigurationError, MetricError

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
Scores: TypeAlias = "Sequence[float] | npt.NDArray[Any]"
# The least and the most that a score can be; None for no limit on that side.
ScoreRange: TypeAlias = "tuple[float | None, float | None]"
Labels: TypeAlias = "Sequence[Hashable] | npt.NDArray[Any]"


@dataclass(frozen=True)
class Summary:
    """A mean and how far to trust it.

    `method` is "mid-p" (scores that are all 0 or 1), "beta" (scores between two bounds), "hall" (scores without them) or
    "clustered" (the latter two on whole clusters); None where there is no interval.
    """

    count: int
    mean: float
    stderr: float | None
    ci: tuple[float, float] | None
    method: str | None


@dataclass(frozen=True)
class MeanEstimate:
    """A mean of things that were drawn independently, items or whole clusters.

    `units` is how many of them there are; for clusters of unequal size, how many equal ones would know the standard error
    as well (Satterthwaite), which is no whole number. `skewness` is that of the units.
    """

    mean: float
    stderr: float
    units: float
    skewness: float = 0.0

    @property
    def degrees_of_freedom(self) -> float:
        return self.units - 1


@dataclass(frozen=True)
class ClusterTotals:
    """Sum of the values and number of items of each cluster, clusters in the order of their first item."""

    sums: Floats
    sizes: Floats


def summarise(
    values: Scores, *, clusters: Labels | None = None, level: float = 0.95, score_range: ScoreRange | None = None
) -> Summary:
    """Mean, standard error and interval of scores; refuses values that are not finite.

    Scores that are all 0 or 1, and scores whose least and most are known, get an interval that allows for what was not
    seen (`bounded_interval`): it stays within the bounds and has a width however alike the scores are. Others get
    Student's, stretched where they are skewed (`unbounded_interval`); those have none when all are equal, for then nothing
    tells what the unseen ones are like. Where no range is given, scores that are all 0 or 1, or equal and between, are
    taken to be from 0 to 1.

    Args:
        values: The scores.
        clusters: One label an item (the passage, the conversation; the item where the scores are attempts): whole clusters
            count as drawn independently, and one cluster alone says nothing about its own spread.
        level: Confidence level.
        score_range: The least and the most that a score can be. It is set aside where a score lies outside.

    >>> found = summarise([1, 1, 1, 0])
    >>> found.mean, [round(end, 3) for end in found.ci], found.method
    (0.75, [0.242, 0.987], 'mid-p')
    """
    scores = finite_scores(values)
    check_level(level)
    if clusters is not None and len(clusters) != scores.size:
        raise MetricError(f"got {len(clusters)} cluster labels for {scores.size} values; every value needs one")
    if scores.size == 0:
        return Summary(0, math.nan, None, None, None)
    estimate = estimate_mean(scores, clusters)
    if estimate is None:
        return Summary(scores.size, _mean(scores), None, None, None)
    if score_range is None and (_is_binary(scores) or 0 <= scores.min() == scores.max() <= 1):
        score_range = (0.0, 1.0)
    bounds = _bounds(score_range, scores)
    if bounds is not None:
        method, ci = "beta", bounded_interval(estimate, bounds, level)
        if bounds == (0.0, 1.0) and _is_binary(scores):
            method = "mid-p"
    elif estimate.stderr > 0:
        method, ci = "hall", clip(unbounded_interval(estimate, level), score_range, scores)
    else:
        return Summary(scores.size, estimate.mean, 0.0, None, None)
    # Clusters of one item each are none.
    method = method if estimate.units == scores.size else "clustered"
    return Summary(scores.size, estimate.mean, estimate.stderr, ci, method)


def estimate_mean(values: Scores, clusters: Labels | None = None) -> MeanEstimate | None:
    """The mean with its standard error; None for fewer than two items or clusters.

    With clusters the standard error is the cluster-robust one whose bias for few and unequal clusters is taken out (CR2),
    and its degrees of freedom are Satterthwaite's (Bell and McCaffrey 2002): both in their closed form for a mean.
    """
    scores = finite_scores(values)
    if scores.size < 2:
        return None
    mean = _mean(scores)
    if clusters is None:
        spread = scores - mean if scores.min() < scores.max() else scores * 0.0
        squares = float((spread * spread).sum())
        stderr = math.sqrt(squares / (scores.size - 1) / scores.size)
        return MeanEstimate(mean, stderr, scores.size, _skewness(spread))
    totals = cluster_totals(scores - mean, clusters)
    if totals.sums.size < 2:
        return None
    if totals.sums.size == scores.size:
        return estimate_mean(scores)
    residuals = totals.sums / (1 - totals.sizes / scores.size) ** 0.5
    stderr = math.sqrt(float((residuals * residuals).sum())) / scores.size
    return MeanEstimate(mean, stderr, 1 + cluster_degrees_of_freedom(totals.sizes), _skewness(residuals))


def cluster_degrees_of_freedom(sizes: Floats) -> float:
    """Satterthwaite's degrees of freedom of CR2 for a mean: one less than the number of clusters if they are equal."""
    share = sizes / sizes.sum()
    return 1 / (
        float((share**2 * (1 - 2 * share) / (1 - share) ** 2).sum()) + float((share**2 / (1 - share)).sum()) ** 2
    )


def bounded_interval(
    estimate: MeanEstimate, bounds: tuple[float, float] = (0.0, 1.0), level: float = 0.95
) -> tuple[float, float]:
    """Interval of a mean of values that lie between two bounds: never outside, and never without width.

    One more value is imagined, at the upper bound for the upper end and at the lower bound for the lower end: what a
    distribution may hold that the sample has not shown. The mean of the values so extended, under Dirichlet weights, is
    taken as a beta distribution of the same mean and variance, and the interval leaves out equal tails of the two such
    distributions together. For values that are all 0 or 1 this is exactly the mid-p interval of a proportion, where the two
    are Clopper and Pearson's; for others it is the mid-p form of Gaffke's bound (2005). Values that vary within the bounds
    rather than between them say more about their tails, and the imagined one counts down to half a value then.

    Args:
        estimate: The mean; one of a single value may be given too, whose spread is not known.
        bounds: The least and the most that a value can be.
        level: Confidence level.

    >>> low, high = bounded_interval(MeanEstimate(mean=1.0, stderr=0.0, units=10))
    >>> round(low, 3), high
    (0.741, 1.0)
    """
    low, high = bounds
    share = min(1.0, max(0.0, (estimate.mean - low) / (high - low)))
    n = estimate.units
    # Nothing between two bounds varies more than right and wrong do.
    most = n * share * (1 - share)
    squares = min(most, n * (n - 1) * (estimate.stderr / (high - low)) ** 2)
    weight = 0.5 + 0.5 * squares / most if squares > 0 else 1.0
    ends = _mixture_quantiles(
        _extended_beta(n, share, squares, weight, 0.0),
        _extended_beta(n, share, squares, weight, 1.0),
        check_level(level),
    )
    # What is seen is possible, at whatever level.
    return low + (high - low) * min(ends[0], share), low + (high - low) * max(ends[1], share)


def unbounded_interval(estimate: MeanEstimate, level: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean, stretched on the side to which the values are skewed.

    The stretched end is that of Hall's transformation (1992), which takes the skewness out of Student's statistic.
    """
    quantile = student_quantile(0.5 + check_level(level) / 2, estimate.degrees_of_freedom)
    below, above = (max(quantile, abs(_skewed_quantile(estimate, sign * quantile))) for sign in (1, -1))
    return estimate.mean - below * estimate.stderr, estimate.mean + above * estimate.stderr


def proportion_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Mid-p interval of a share: Clopper and Pearson's with half the probability of what was seen in each tail.

    Args:
        successes: How many succeeded.
        n: Of how many.
        level: Confidence level.

    >>> low, high = proportion_interval(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.48, 0.965)
    """
    if n < 1 or not 0 <= successes <= n:
        raise MetricError(f"a share needs 0 <= successes <= n and n >= 1, got {successes} of {n}")
    share = successes / n
    stderr = math.sqrt(share * (1 - share) / (n - 1)) if n > 1 else 0.0
    return bounded_interval(MeanEstimate(share, stderr, n), (0.0, 1.0), level)


def clip(
    interval: tuple[float, float], score_range: ScoreRange | None, scores: Floats | None = None
) -> tuple[float, float]:
    """The part of an interval that lies in a range, unless some of these scores do not."""
    if score_range is None:
        return interval
    low, high = (-math.inf if score_range[0] is None else score_range[0]), score_range[1]
    high = math.inf if high is None else high
    if scores is not None and scores.size and (scores.min() < low or scores.max() > high):
        return interval
    return max(interval[0], low), min(interval[1], high)


def exact_interval(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval for a proportion: covers at least as often as it says, however few there are.

    `successes` may be a sum of grades from 0 to 1, which vary less than successes do. Of nothing it is everything.
    """
    from scipy.special import betaincinv

    if not 0 <= successes <= n:
        raise MetricError(f"an exact interval needs 0 <= successes <= n, got {successes} of {n}")
    tail = (1 - check_level(level)) / 2
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return low, high


def student_interval(values: Scores, level: float = 0.95) -> tuple[float, float]:
    """Student's t interval for a mean of independent values."""
    estimate = estimate_mean(values)
    if estimate is None:
        raise MetricError(f"an interval for a mean needs at least two values, got {len(values)}")
    half = student_quantile(0.5 + check_level(level) / 2, estimate.degrees_of_freedom) * estimate.stderr
    return estimate.mean - half, estimate.mean + half


def cluster_totals(values: Scores, clusters: Labels) -> ClusterTotals:
    """Adds values up within their clusters."""
    import numpy as np

    scores = finite_scores(values)
    if len(clusters) != scores.size:
        raise MetricError(f"got {len(clusters)} cluster labels for {scores.size} values; every value needs one")
    labels = clusters.tolist() if isinstance(clusters, np.ndarray) else clusters
    # A label that differs from itself is a NaN.
    missing = sum(1 for label in labels if label is None or label != label)
    if missing:
        raise MetricError(f"{missing} of {scores.size} cluster labels are missing; name a cluster for every item")
    numbers: dict[Hashable, int] = {}
    codes = np.fromiter((numbers.setdefault(label, len(numbers)) for label in labels), dtype=np.intp, count=scores.size)
    return ClusterTotals(
        sums=np.bincount(codes, weights=scores, minlength=len(numbers)).astype(np.float64),
        sizes=np.bincount(codes, minlength=len(numbers)).astype(np.float64),
    )


def finite_scores(values: Scores) -> Floats:
    """The values as one array of floats, or a refusal that counts those that are no finite numbers."""
    import numpy as np

    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MetricError(f"scores must be numbers: {error}") from error
    if scores.ndim != 1:
        raise MetricError(f"scores must be one flat sequence, got {scores.ndim} dimensions {scores.shape}")
    bad = scores.size - int(np.count_nonzero(np.isfinite(scores)))
    if bad:
        raise MetricError(f"{bad} of {scores.size} scores are not finite numbers (NaN, infinite or missing)")
    return scores


def normal_quantile(share: float) -> float:
    """The point below which this share of a standard normal lies."""
    # The standard library's answer is as exact as scipy's and spares the import for binary metrics.
    from statistics import NormalDist

    return NormalDist().inv_cdf(share)


def student_quantile(share: float, degrees_of_freedom: float) -> float:
    """The point below which this share of Student's t lies."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, share))


def _mean(scores: Floats) -> float:
    # Rounding in the sum would otherwise move the mean of equal scores, and invent a spread.
    return float(scores[0]) if scores.min() == scores.max() else float(scores.mean())


def _skewness(spread: Floats) -> float:
    """Third moment over the second to the power of 3/2, of values around their mean; 0 without spread."""
    largest = float(abs(spread).max())
    if largest == 0:
        return 0.0
    scaled = spread / largest
    return float((scaled**3).mean()) / math.pow(float((scaled**2).mean()), 1.5)


def _bounds(score_range: ScoreRange | None, scores: Floats) -> tuple[float, float] | None:
    """The least and the most of these scores, where both are known and no score lies outside."""
    low, high = score_range or (None, None)
    if low is None or high is None or low >= high or scores.min() < low or scores.max() > high:
        return None
    return float(low), float(high)


def _skewed_quantile(estimate: MeanEstimate, quantile: float) -> float:
    """Hall's transformation undone: where Student's statistic of skewed values has this quantile of Student's t."""
    skewness, root = estimate.skewness, math.sqrt(estimate.units)
    if abs(skewness) < 1e-8:
        return quantile
    inner = 1 + skewness * (quantile / root - skewness / (6 * estimate.units))
    return 3 * root / skewness * (math.copysign(abs(inner) ** (1 / 3), inner) - 1)


def _extended_beta(n: float, mean: float, squares: float, weight: float, end: float) -> tuple[float, float] | None:
    """The two parameters of the mean's distribution with one more value at an end; None if all values are that one.

    Args:
        n: Number of values.
        mean: Their mean, between 0 and 1.
        squares: Sum of their squared distances from it.
        weight: How much the imagined value counts, as a share of a real one.
        end: Where it is: 0 or 1.
    """
    total = n + weight
    centre = (n * mean + weight * end) / total
    spread = squares + n * (mean - centre) ** 2 + weight * (end - centre) ** 2
    if spread <= 0 or not 0 < centre < 1:
        return None
    concentration = centre * (1 - centre) * total * (total + 1) / spread - 1
    return centre * concentration, (1 - centre) * concentration


def _mixture_quantiles(
    lower: tuple[float, float] | None, upper: tuple[float, float] | None, level: float
) -> tuple[float, float]:
    """What cuts equal tails off two beta distributions together; None stands for all of one at 0, or at 1."""

    def below(point: float) -> float:
        at_lower = 1.0 if lower is None else beta_below(*lower, point)
        return (at_lower + (0.0 if upper is None else beta_below(*upper, point))) / 2

    tail = (1 - level) / 2
    return (0.0 if lower is None else _solve(below, tail)), (1.0 if upper is None else _solve(below, 1 - tail))


def _solve(below: Callable[[float], float], share: float) -> float:
    """Where a distribution on 0 to 1 reaches a share: by false position, whose idle end counts half (Illinois)."""
    low, high, at_low, at_high = 0.0, 1.0, -share, 1 - share
    side = 0
    for step in range(200):
        # Every third time the middle, so that a curve that is flat at one end costs no more than halving does.
        point = (low + high) / 2 if step % 3 == 0 else low + (high - low) * at_low / (at_low - at_high)
        value = below(point) - share
        if value == 0:
            return point
        if value < 0:
            low, at_low, at_high, side = point, value, at_high / 2 if side == -1 else at_high, -1
        else:
            high, at_high, at_low, side = point, value, at_low / 2 if side == 1 else at_low, 1
        if high - low <= 1e-15 + 4e-16 * high:
            break
    return (low + high) / 2


def beta_below(first: float, second: float, point: float) -> float:
    """The share of a beta distribution below a point, by the continued fraction of the incomplete beta function.

    As exact as scipy's, whose import would cost a command more than its work.

    Args:
        first: Its parameter at 1.
        second: Its parameter at 0.
        point: Between 0 and 1.

    >>> round(beta_below(2.0, 3.0, 0.4), 4)
    0.5248
    """
    if point <= 0 or point >= 1:
        return float(point >= 1)
    if point > (first + 1) / (first + second + 2):
        return 1 - beta_below(second, first, 1 - point)
    scale = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
    front = math.exp(scale + first * math.log(point) + second * math.log1p(-point)) / first
    if front == 0:
        return 0.0
    # Lentz's way of computing the fraction, from the front on.
    ratio = 1 / (1 - (first + second) * point / (first + 1))
    before, fraction = 1.0, ratio
    for n in range(1, 100_000):
        for term in (
            n * (second - n) * point / ((first + 2 * n - 1) * (first + 2 * n)),
            -(first + n) * (first + second + n) * point / ((first + 2 * n) * (first + 2 * n + 1)),
        ):
            ratio, before = 1 / (1 + term * ratio), 1 + term / before
            fraction *= ratio * before
        if abs(ratio * before - 1) < 1e-15:
            break
    return min(1.0, front * fraction)


def _is_binary(scores: Floats) -> bool:
    return bool(((scores == 0) | (scores == 1)).all())


def check_level(level: float) -> float:
    """The level itself, if it is a share."""
    if not 0 < level < 1:
        raise ConfigurationError(f"a confidence level lies between 0 and 1 (0.95 is usual), got {level}")
    return level


# --- attempts ----------------------------------------------------------------------------------------------------------


def pass_at_k(passed: int, attempts: int, k: int) -> float:
    """1 - C(n-c, k) / C(n, k): the unbiased estimate of the chance that at least one of k attempts passes.

    Args:
        passed: How many of the attempts at an item passed, c.
        attempts: How many were made, n; at least k.
        k: How many are drawn.

    >>> pass_at_k(2, 4, 2)
    0.8333333333333334
    """
    return 1.0 - pass_hat_k(attempts - passed, attempts, k)


def pass_hat_k(passed: int, attempts: int, k: int) -> float:
    """C(c, k) / C(n, k): the unbiased estimate of the chance that all of k attempts pass (pass^k).

    Args:
        passed: How many of the attempts at an item passed, c.
        attempts: How many were made, n; at least k.
        k: How many are drawn.

    >>> pass_hat_k(2, 4, 2)
    0.16666666666666666
    """
    share = 1.0
    for drawn in range(k):
        # With fewer than k passed ones a factor is zero, and no later one takes the share from there.
        share = share * (passed - drawn) / (attempts - drawn)
    # Adding zero turns a negative zero into a plain one.
    return share + 0.0
