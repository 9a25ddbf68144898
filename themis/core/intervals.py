"""Estimates from scores: a column's mean with its standard error and interval, and pass@k and pass^k of attempts.

Every aggregate of a report is made here, so numpy and scipy are imported only when something is summarised, and only
`scipy.special`: `scipy.stats` would cost a command more than its work.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
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
    """A mean and how far to trust it. `method` is "wilson", "student" or "clustered"; None where there is no interval."""

    count: int
    mean: float
    stderr: float | None
    ci: tuple[float, float] | None
    method: str | None


@dataclass(frozen=True)
class ClusterTotals:
    """Sum of the values and number of items of each cluster, clusters in the order of their first item."""

    sums: Floats
    sizes: Floats


def summarise(
    values: Scores, *, clusters: Labels | None = None, level: float = 0.95, score_range: ScoreRange | None = None
) -> Summary:
    """Mean, standard error and interval of scores; refuses values that are not finite.

    Scores that are all 0 or 1 get Wilson's interval, others Student's. With `clusters` (one label an item: the passage,
    the conversation) both rest on whole clusters, and one cluster alone says nothing about its own spread. A mean cannot
    lie outside the range of what it is of, so the interval ends with it.
    """
    scores = finite_scores(values)
    check_level(level)
    if clusters is not None and len(clusters) != scores.size:
        raise MetricError(f"got {len(clusters)} cluster labels for {scores.size} values; every value needs one")
    if scores.size == 0:
        return Summary(0, math.nan, None, None, None)
    if scores.size == 1:
        return Summary(1, float(scores[0]), None, None, None)
    if clusters is not None:
        return _clustered_summary(scores, clusters, level, score_range)
    mean, stderr = _mean_and_stderr(scores)
    if _is_binary(scores):
        return Summary(scores.size, mean, stderr, wilson_interval(float(scores.sum()), scores.size, level), "wilson")
    around = clip(_around(mean, stderr, scores.size - 1, level), score_range, scores)
    return Summary(scores.size, mean, stderr, around, "student")


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


def wilson_interval(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion: stays inside [0, 1] and keeps a width when all or none succeed."""
    if n < 1 or not 0 <= successes <= n:
        raise MetricError(f"Wilson's interval needs 0 <= successes <= n and n >= 1, got {successes} of {n}")
    z = normal_quantile(0.5 + check_level(level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # The ends are exactly 0 and 1 when nothing or everything succeeded; arithmetic would miss them by an ulp.
    return (0.0 if successes == 0 else centre - half, 1.0 if successes == n else centre + half)


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
    scores = finite_scores(values)
    if scores.size < 2:
        raise MetricError(f"an interval for a mean needs at least two values, got {scores.size}")
    mean, stderr = _mean_and_stderr(scores)
    return _around(mean, stderr, scores.size - 1, level)


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


def _clustered_summary(scores: Floats, clusters: Labels, level: float, score_range: ScoreRange | None) -> Summary:
    mean, _ = _mean_and_stderr(scores)
    totals = cluster_totals(scores - mean, clusters)
    count = totals.sums.size
    if count < 2:
        return Summary(scores.size, mean, None, None, None)
    # With the correction G/(G-1) for G clusters: clusters of one item each give the ordinary standard error exactly.
    squares = float((totals.sums * totals.sums).sum())
    stderr = math.sqrt(squares * count / (count - 1)) / float(totals.sizes.sum())
    low, high = _around(mean, stderr, count - 1, level)
    if _is_binary(scores):
        if mean in (0.0, 1.0):
            # No spread was seen, which is not certainty: count each cluster as one observation.
            low, high = wilson_interval(mean * count, count, level)
        score_range = score_range or (0.0, 1.0)
    return Summary(scores.size, mean, stderr, clip((low, high), score_range, scores), "clustered")


def _mean_and_stderr(scores: Floats) -> tuple[float, float]:
    if scores.min() == scores.max():
        # Rounding in the sum would otherwise invent a spread.
        return float(scores[0]), 0.0
    return float(scores.mean()), float(scores.std(ddof=1)) / math.sqrt(scores.size)


def _around(mean: float, stderr: float, degrees_of_freedom: int, level: float) -> tuple[float, float]:
    half = student_quantile(0.5 + check_level(level) / 2, degrees_of_freedom) * stderr
    return mean - half, mean + half


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
