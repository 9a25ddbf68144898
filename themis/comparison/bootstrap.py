"""Bootstrap intervals for a mean, resampling items or whole clusters.

Resamples are drawn as counts of equal rows where values repeat (0/1 scores: three binomials a resample instead of a
hundred thousand draws), so that cost follows the number of different values rather than the number of items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from themis.core.intervals import Floats, Labels, Scores, cluster_totals, finite_scores, normal_quantile
from themis.exceptions import ConfigurationError, MetricError

__all__ = ["BootstrapInterval", "Method", "bootstrap_interval", "bootstrap_of_units", "resampled_sums"]

Method = Literal["bca", "percentile"]

# A chunk of drawn row numbers stays within a few megabytes, whatever the number of resamples.
_CHUNK = 2**18
# A binomial draw costs about as much as sixteen row draws.
_ROWS_PER_CELL = 16
# Above this many different values they are gathered into cells.
_LARGEST_UNBINNED = 4096
_CELLS = 256


@dataclass(frozen=True, kw_only=True)
class BootstrapInterval:
    """A mean with its bootstrap interval; `method` is what was used, which `note` explains if it is not what was asked."""

    n: int
    clusters: int | None
    estimate: float
    ci: tuple[float, float]
    stderr: float
    level: float
    method: str
    resamples: int
    seed: int
    note: str = ""


def bootstrap_interval(
    values: Scores,
    *,
    clusters: Labels | None = None,
    level: float = 0.95,
    method: Method = "bca",
    resamples: int = 10_000,
    seed: int = 0,
) -> BootstrapInterval:
    """Interval for the mean of values: BCa (corrected for bias and skewness) or plain percentiles."""
    scores = finite_scores(values)
    if scores.size < 2:
        raise MetricError(f"a bootstrap needs at least two values, got {scores.size}")
    if clusters is None:
        return bootstrap_of_units(
            scores, np.ones(scores.size), level=level, method=method, resamples=resamples, seed=seed
        )
    totals = cluster_totals(scores, clusters)
    if totals.sums.size < 2:
        raise MetricError(f"a cluster bootstrap needs at least two clusters, got {totals.sums.size}")
    return bootstrap_of_units(
        totals.sums, totals.sizes, level=level, method=method, resamples=resamples, seed=seed, clustered=True
    )


def bootstrap_of_units(
    sums: Floats,
    sizes: Floats,
    *,
    level: float,
    method: Method,
    resamples: int,
    seed: int,
    clustered: bool = False,
) -> BootstrapInterval:
    """The same for units that hold `sizes` items with these sums: the mean of items, resampling units."""
    _check_options(level, method, resamples)
    items, total = float(sizes.sum()), float(sums.sum())
    estimate = float(sums[0]) / float(sizes[0]) if _all_equal(sums) and _all_equal(sizes) else total / items
    # Comparing B with A must mirror comparing A with B: resample the orientation that does not depend on the order.
    mirrored = estimate < 0 or (estimate == 0 and float((sums**3).sum()) < 0)
    replicates = _resampled_means(-sums if mirrored else sums, sizes, resamples, np.random.default_rng(seed))
    if mirrored:
        replicates = -replicates
    ends: tuple[float, float] | None = None
    if method == "bca":
        ends = _bca_shares(replicates, estimate, _jackknife(sums, sizes), level)
    low, high = np.quantile(replicates, ends or ((1 - level) / 2, (1 + level) / 2))
    return BootstrapInterval(
        n=int(items),
        clusters=int(sums.size) if clustered else None,
        estimate=estimate,
        ci=(float(low), float(high)),
        stderr=float(replicates.std(ddof=1)),
        level=level,
        method="percentile" if ends is None else "bca",
        resamples=resamples,
        seed=seed,
        note="BCa is not defined for these values; percentiles were used" if method == "bca" and ends is None else "",
    )


def resampled_sums(rows: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Column sums of as many rows as there are, drawn with replacement, once a resample."""
    n = len(rows)
    # numpy sorts plain numbers several times faster than rows.
    cells, counts = np.unique(rows[:, 0] if rows.shape[1] == 1 else rows, axis=0, return_counts=True)
    cells = cells.reshape(-1, rows.shape[1])
    if len(cells) * _ROWS_PER_CELL <= max(n, 32 * _ROWS_PER_CELL):
        return _sums_of_counts(cells, counts / n, n, resamples, rng)
    if rows.shape[1] == 1 and n > _LARGEST_UNBINNED:
        return _sums_of_cells(np.sort(rows[:, 0]), resamples, rng)[:, None]
    return _sums_of_draws(np.repeat(cells, counts, axis=0), resamples, rng)


def _sums_of_counts(cells: Floats, shares: Floats, n: int, resamples: int, rng: np.random.Generator) -> Floats:
    sums = np.empty((resamples, cells.shape[1]))
    for chunk in _chunks(resamples, len(cells)):
        sums[chunk] = rng.multinomial(n, shares, size=chunk.stop - chunk.start) @ cells
    return sums


def _sums_of_draws(rows: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    sums = np.empty((resamples, rows.shape[1]))
    for chunk in _chunks(resamples, len(rows)):
        drawn = rng.integers(0, len(rows), size=(chunk.stop - chunk.start, len(rows)))
        for column in range(rows.shape[1]):
            sums[chunk, column] = rows[:, column][drawn].sum(axis=1)
    return sums


def _sums_of_cells(ordered: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Counts of draws in narrow cells of neighbouring values are exact; what a cell's draws add up to is taken as normal.

    A cell is at most 1/256 of the range wide and holds at most 1/256 of the values, so the normal part carries about
    a hundred-thousandth of the variance, far below the error of any number of resamples.
    """
    n = ordered.size
    by_count = np.arange(0, n, max(1, n // _CELLS))
    by_width = np.searchsorted(ordered, np.linspace(ordered[0], ordered[-1], _CELLS, endpoint=False))
    starts = np.unique(np.concatenate([by_count, by_width]))
    counts = np.diff(np.append(starts, n))
    means = np.add.reduceat(ordered, starts) / counts
    spread = np.add.reduceat((ordered - np.repeat(means, counts)) ** 2, starts) / counts
    moments = _sums_of_counts(np.column_stack([means, spread]), counts / n, n, resamples, rng)
    sums: Floats = moments[:, 0] + np.sqrt(moments[:, 1]) * rng.standard_normal(resamples)
    return sums


def _resampled_means(sums: Floats, sizes: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    if _all_equal(sizes):
        # Centred, so that a large mean does not cost the digits of a small spread.
        centre = float(sums.mean())
        centred = resampled_sums((sums - centre)[:, None], resamples, rng)[:, 0]
        return (centre + centred / sums.size) / float(sizes[0])
    drawn = resampled_sums(np.column_stack([sums, sizes]), resamples, rng)
    means: Floats = drawn[:, 0] / drawn[:, 1]
    return means


def _jackknife(sums: Floats, sizes: Floats) -> Floats:
    """The mean without each unit in turn."""
    means: Floats = (sums.sum() - sums) / (sizes.sum() - sizes)
    return means


def _bca_shares(replicates: Floats, estimate: float, jackknife: Floats, level: float) -> tuple[float, float] | None:
    """The two shares of the replicates that bound the interval; None where the correction has no finite value."""
    # A replicate equal to the estimate but for rounding counts half.
    noise = 1e-12 * float(np.abs(replicates).max())
    at_most = np.count_nonzero(replicates <= estimate + noise)
    below = (np.count_nonzero(replicates < estimate - noise) + at_most) / (2 * replicates.size)
    pull = jackknife.mean() - jackknife
    spread = float((pull**2).sum())
    if not 0 < below < 1 or spread == 0:
        return None
    bias = normal_quantile(float(below))
    acceleration = float((pull**3).sum()) / (6 * spread**1.5)
    shares = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + normal_quantile(share)
        if acceleration * shifted >= 1:
            return None
        shares.append(0.5 * math.erfc(-(bias + shifted / (1 - acceleration * shifted)) / math.sqrt(2)))
    return shares[0], shares[1]


def _chunks(resamples: int, width: int) -> list[slice]:
    step = max(1, _CHUNK // width)
    return [slice(start, min(start + step, resamples)) for start in range(0, resamples, step)]


def _all_equal(values: Floats) -> bool:
    return bool(values.min() == values.max())


def _check_options(level: float, method: str, resamples: int) -> None:
    if not 0 < level < 1:
        raise ConfigurationError(f"a confidence level lies between 0 and 1 (0.95 is usual), got {level}")
    if method not in ("bca", "percentile"):
        raise ConfigurationError(f"unknown bootstrap method {method!r}; it is 'bca' or 'percentile'")
    if resamples < 100:
        raise ConfigurationError(f"a bootstrap needs at least 100 resamples (10000 is usual), got {resamples}")
