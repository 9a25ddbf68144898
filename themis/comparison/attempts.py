"""What several attempts at each item say: pass@k, pass^k, and how much attempts at one item resemble each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from themis.core.draws import all_pass, some_pass
from themis.core.intervals import Floats, Labels, Scores, finite_scores, summarise
from themis.exceptions import ConfigurationError, MetricError

__all__ = ["AttemptAgreement", "PassEstimate", "attempt_agreement", "pass_at_k", "pass_hat_k"]


@dataclass(frozen=True, kw_only=True)
class PassEstimate:
    """Mean over items of an unbiased estimate for each, with an interval over items; None with a single item."""

    k: int
    items: int
    estimate: float
    stderr: float | None
    ci: tuple[float, float] | None
    method: str | None
    level: float


@dataclass(frozen=True, kw_only=True)
class AttemptAgreement:
    """Intraclass correlation of attempts: the share of all variance that lies between items.

    1 means that attempts at an item always agree, 0 that items do not matter; the estimate itself can fall below 0, and
    is None if no score varies. `within` is the variance of attempts at one item, `between` that of the items' true
    means: the two numbers that `PairedMeans.from_variances` plans with. `ci` is exact for equally many attempts.
    """

    items: int
    attempts: int
    icc: float | None
    ci: tuple[float, float] | None
    between: float
    within: float
    level: float
    note: str = ""


def pass_at_k(
    successes: Scores, attempts: Scores | int, k: int, *, clusters: Labels | None = None, level: float = 0.95
) -> PassEstimate:
    """Probability that at least one of k attempts succeeds, from `successes` among `attempts` at each item."""
    right, made = _counts(successes, attempts, k)
    return _estimate(some_pass(right, made, k), k, clusters, level)


def pass_hat_k(
    successes: Scores, attempts: Scores | int, k: int, *, clusters: Labels | None = None, level: float = 0.95
) -> PassEstimate:
    """Probability that all of k attempts succeed (pass^k), from `successes` among `attempts` at each item."""
    right, made = _counts(successes, attempts, k)
    return _estimate(all_pass(right, made, k), k, clusters, level)


def attempt_agreement(scores: Sequence[Scores], *, level: float = 0.95) -> AttemptAgreement:
    """One-way intraclass correlation, from one sequence of attempts' scores for each item."""
    columns = [finite_scores(item) for item in scores]
    sizes = np.array([column.size for column in columns], dtype=np.float64)
    if len(columns) < 2 or sizes.min() < 1 or sizes.max() < 2:
        raise MetricError(
            f"agreement of attempts needs at least two items with an attempt each and an item with two, got "
            f"{len(columns)} items with {int(sizes.sum())} attempts"
        )
    values = np.concatenate(columns)
    items, attempts = len(columns), int(values.size)
    if values.min() == values.max():
        return AttemptAgreement(
            items=items,
            attempts=attempts,
            icc=None,
            ci=None,
            between=0.0,
            within=0.0,
            level=level,
            note=f"all {attempts} scores are {values[0]:g}, so there is no variance to divide",
        )
    df_between, df_within = items - 1, attempts - items
    centred = [column - values.mean() for column in columns]
    item_means = np.array([column.mean() for column in centred])
    mean_between = float((sizes * item_means**2).sum()) / df_between
    within = sum(float(((column - column.mean()) ** 2).sum()) for column in centred) / df_within
    typical_size = (attempts - float((sizes**2).sum()) / attempts) / df_between
    between = (mean_between - within) / typical_size
    return AttemptAgreement(
        items=items,
        attempts=attempts,
        icc=between / (between + within),
        ci=_agreement_interval(mean_between, within, typical_size, df_between, df_within, level),
        between=between,
        within=within,
        level=level,
    )


def _counts(successes: Scores, attempts: Scores | int, k: int) -> tuple[Floats, Floats]:
    right = finite_scores(successes)
    made = np.full(right.size, float(attempts)) if isinstance(attempts, int) else finite_scores(attempts)
    if right.size == 0 or right.size != made.size:
        raise MetricError(
            f"got successes of {right.size} items and attempts of {made.size}; both need one number an item"
        )
    if k < 1:
        raise ConfigurationError(f"k is a number of attempts, at least 1, got {k}")
    wrong = int(np.count_nonzero((right < 0) | (right > made) | (right % 1 != 0) | (made % 1 != 0)))
    if wrong:
        raise MetricError(f"{wrong} of {right.size} items do not have a whole number of successes up to their attempts")
    short = int(np.count_nonzero(made < k))
    if short:
        raise MetricError(f"k={k} needs {k} attempts an item, but {short} of {right.size} items have fewer")
    return right, made


def _estimate(values: Floats, k: int, clusters: Labels | None, level: float) -> PassEstimate:
    summary = summarise(values, clusters=clusters, level=level, score_range=(0.0, 1.0))
    return PassEstimate(
        k=k,
        items=summary.count,
        estimate=summary.mean,
        stderr=summary.stderr,
        ci=summary.ci,
        method=summary.method,
        level=level,
    )


def _agreement_interval(
    mean_between: float, within: float, size: float, df_between: int, df_within: int, level: float
) -> tuple[float, float] | None:
    """The F ratio's interval, turned into one for the correlation; None where attempts never differ."""
    from scipy.special import fdtri

    # Attempts that always agree leave at most rounding.
    if within <= 1e-14 * mean_between:
        return None
    ratio = mean_between / within
    tail = (1 - level) / 2
    low = ratio / float(fdtri(df_between, df_within, 1 - tail))
    high = ratio / float(fdtri(df_between, df_within, tail))
    return (low - 1) / (low + size - 1), (high - 1) / (high + size - 1)
