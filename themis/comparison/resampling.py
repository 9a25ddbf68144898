"""What chance alone would do to a mean: bootstrap intervals, and how often random signs make a sum as large.

A bootstrap resamples items or whole clusters. Resamples are drawn as counts of equal rows where values repeat (0/1 scores:
three binomials a resample instead of a hundred thousand draws), so that cost follows the number of different values rather
than the number of items.

Random signs are behind the paired permutation test and Wilcoxon's: under the null hypothesis a difference could as well
have had the other sign. They are exact wherever that is cheap, by three means: a binomial for differences of one size, a
Fourier transform for differences that are multiples of one unit, enumeration for few differences of any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from themis.core.intervals import ClusterTotals, Floats, check_level, normal_quantile
from themis.exceptions import ConfigurationError

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

    estimate: float
    ci: tuple[float, float]
    stderr: float
    method: str
    note: str = ""


def bootstrap_interval(
    units: ClusterTotals, *, level: float = 0.95, method: Method = "bca", resamples: int = 10_000, seed: int = 0
) -> BootstrapInterval:
    """Interval of the mean over all items of these units, resampling whole units.

    Args:
        units: What was drawn independently, items or clusters: the sum of the values in each, and its number of items.
        level: Confidence level.
        method: BCa (corrected for bias and skewness) or plain percentiles; those too where BCa is not defined.
        resamples: Number of resamples, at least 100.
        seed: Of the random draws.

    Raises:
        ConfigurationError: An option is out of its range.
    """
    _check_options(level, method, resamples)
    sums, sizes = units.sums, units.sizes
    equal = _all_equal(sums) and _all_equal(sizes)
    estimate = float(sums[0]) / float(sizes[0]) if equal else float(sums.sum()) / float(sizes.sum())
    # Comparing B with A must mirror comparing A with B: resample the orientation that does not depend on the order.
    mirrored = estimate < 0 or (estimate == 0 and float((sums**3).sum()) < 0)
    replicates = _resample_means(-sums if mirrored else sums, sizes, resamples, np.random.default_rng(seed))
    if mirrored:
        replicates = -replicates
    ends: tuple[float, float] | None = None
    if method == "bca":
        ends = bca_shares(replicates, estimate, _jackknife(sums, sizes), level)
    low, high = np.quantile(replicates, ends or ((1 - level) / 2, (1 + level) / 2))
    return BootstrapInterval(
        estimate=estimate,
        ci=(float(low), float(high)),
        stderr=float(replicates.std(ddof=1)),
        method="percentile" if ends is None else "bca",
        note="BCa is not defined for these values; percentiles were used" if method == "bca" and ends is None else "",
    )


def resample_sums(rows: Floats, resamples: int, rng: np.random.Generator) -> Floats:
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


def _resample_means(sums: Floats, sizes: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    if _all_equal(sizes):
        # Centred, so that a large mean does not cost the digits of a small spread.
        centre = float(sums.mean())
        centred = resample_sums((sums - centre)[:, None], resamples, rng)[:, 0]
        return (centre + centred / sums.size) / float(sizes[0])
    drawn = resample_sums(np.column_stack([sums, sizes]), resamples, rng)
    means: Floats = drawn[:, 0] / drawn[:, 1]
    return means


def _jackknife(sums: Floats, sizes: Floats) -> Floats:
    """The mean without each unit in turn."""
    means: Floats = (sums.sum() - sums) / (sizes.sum() - sizes)
    return means


def bca_shares(replicates: Floats, estimate: float, jackknife: Floats, level: float) -> tuple[float, float] | None:
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
    check_level(level)
    if method not in ("bca", "percentile"):
        raise ConfigurationError(f"unknown bootstrap method {method!r}; it is 'bca' or 'percentile'")
    if resamples < 100:
        raise ConfigurationError(f"a bootstrap needs at least 100 resamples (10000 is usual), got {resamples}")


# --- random signs -----------------------------------------------------------------------------------------------------

# Half of the values are enumerated against the other half, so 36 values cost two lists of 2**18 sums.
_ENUMERABLE = 36
_LARGEST_LATTICE = 2**20
# Sizes times lattice points of the transform: about half a second.
_LARGEST_TRANSFORM = 2**23


def exact_p_value(values: Floats) -> float | None:
    """Two-sided probability that random signs give a sum at least as far from zero; None if that is not cheap to know."""
    magnitudes = np.abs(values[values != 0])
    if magnitudes.size == 0:
        return 1.0
    steps = _multiples(magnitudes)
    if steps is not None:
        signs = np.sign(values[values != 0]).astype(np.int64)
        p_value = _lattice_p_value(steps, abs(int((signs * steps).sum())))
        if p_value is not None:
            return p_value
    if magnitudes.size <= _ENUMERABLE:
        return _enumerated_p_value(magnitudes, abs(float(values.sum())))
    return None


def sampled_p_value(values: Floats, *, resamples: int, seed: int) -> float:
    """The same probability from random signs; the observed signs count as one of them, so it is never zero."""
    magnitudes = np.abs(values[values != 0])
    threshold = abs(float(values.sum())) - _noise(magnitudes)
    sums = _random_sums(magnitudes, resamples, np.random.default_rng(seed))
    return (int(np.count_nonzero(np.abs(sums) >= threshold)) + 1) / (resamples + 1)


def smallest_p_value(values: Floats) -> float:
    """What the test would say if every non-zero value had the same sign: nothing is stronger evidence at this size."""
    return math.ldexp(2.0, -int(np.count_nonzero(values))) if values.any() else 1.0


def _multiples(magnitudes: Floats) -> npt.NDArray[np.int64] | None:
    """The magnitudes as whole multiples of their greatest common divisor, if they have one that is not tiny."""
    sizes = np.unique(magnitudes)
    noise = 1e-11 * sizes[-1]
    unit = float(sizes[0])
    smallest_unit = float(magnitudes.sum()) / _LARGEST_LATTICE
    for size in sizes[1:]:
        rest = float(size)
        while rest > noise:
            # The remainder nearest to zero, so that a quotient just below a whole number is not mistaken.
            unit, rest = rest, abs(math.remainder(unit, rest))
        if unit < smallest_unit:
            return None
    if unit < smallest_unit:
        return None
    steps = np.rint(magnitudes / unit)
    # Euclid's unit carries the errors of its subtractions; the sum of all magnitudes knows it better.
    unit = float(magnitudes.sum() / steps.sum())
    if float(np.abs(magnitudes - steps * unit).max()) > noise:
        return None
    return steps.astype(np.int64)


def _lattice_p_value(steps: npt.NDArray[np.int64], observed: int) -> float | None:
    """With Y the steps that are turned negative, the sum is total - 2Y: twice the lower tail of Y."""
    if observed == 0:
        return 1.0
    sizes, counts = np.unique(steps, return_counts=True)
    total = int(steps.sum())
    turned = (total - observed) // 2
    if sizes.size == 1:
        from scipy.special import bdtr

        return min(1.0, 2 * float(bdtr(turned // int(sizes[0]), steps.size, 0.5)))
    if turned == 0:
        return math.ldexp(2.0, -steps.size)
    if sizes.size * total > _LARGEST_TRANSFORM:
        return None
    return min(1.0, 2 * _lower_tail(sizes, counts, turned))


def _lower_tail(sizes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], bound: int) -> float:
    """P(Y <= bound) for Y = sum of size * Binomial(count, 1/2), by Fourier transform.

    The transform is of Y tilted so that its mean is the bound: there its errors are small against the probabilities, and
    tilting back keeps that, so that a p-value of 1e-40 is as exact as one of 0.4.
    """
    sizes_float = sizes.astype(np.float64)
    tilt = _tilt_with_mean(sizes_float, counts, bound)
    weight = np.exp(-tilt * sizes_float)
    turned = weight / (1 + weight)
    length = 1 << int((sizes * counts).sum()).bit_length()
    angle = -2j * np.pi / length * np.arange(length // 2 + 1)
    characteristic = np.ones(length // 2 + 1, dtype=np.complex128)
    for size, count, share in zip(sizes_float, counts, turned, strict=True):
        characteristic *= (1 - share + share * np.exp(angle * size)) ** int(count)
    tilted = np.maximum(np.fft.irfft(characteristic, length)[: bound + 1], 0.0)
    # Each term is at most its tilted probability: the exponent is largest at the bound.
    log_scale = tilt * bound + float((counts * (np.log1p(weight) - math.log(2))).sum())
    back = np.exp(tilt * (np.arange(bound + 1) - bound))
    return float((tilted * back).sum()) * math.exp(log_scale)


def _tilt_with_mean(sizes: Floats, counts: npt.NDArray[np.int64], mean: int) -> float:
    """The exponential tilt under which Y has this mean; found by halving, for the mean falls steadily with the tilt."""
    low, high = 0.0, 1.0
    while float((counts * sizes / (1 + np.exp(np.minimum(high * sizes, 700.0)))).sum()) > mean:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        tilted_mean = float((counts * sizes / (1 + np.exp(np.minimum(middle * sizes, 700.0)))).sum())
        low, high = (middle, high) if tilted_mean > mean else (low, middle)
    return high


def _enumerated_p_value(magnitudes: Floats, observed: float) -> float:
    threshold = observed - _noise(magnitudes)
    if threshold <= 0:
        return 1.0
    half = magnitudes.size // 2
    left, right = _all_sums(magnitudes[:half]), np.sort(_all_sums(magnitudes[half:]))
    reaching = right.size - np.searchsorted(right, threshold - np.sort(left), side="left")
    # The sums lie symmetrically around zero, so the other tail is as large.
    return min(1.0, math.ldexp(2.0 * float(reaching.sum()), -magnitudes.size))


def _all_sums(magnitudes: Floats) -> Floats:
    sums = np.zeros(1)
    for magnitude in magnitudes:
        sums = np.concatenate([sums - magnitude, sums + magnitude])
    return sums


def _random_sums(magnitudes: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Sums under random signs. A random byte picks one of the 256 ready sums of eight values: no sign is ever stored."""
    padded = np.pad(magnitudes, (0, -magnitudes.size % 8)).reshape(-1, 8)
    sums = np.zeros(resamples)
    # As many groups of eight at a time as keep the picks within some megabytes.
    step = max(1, min(64, 2**20 // resamples))
    for start in range(0, len(padded), step):
        block = padded[start : start + step]
        table = np.zeros((len(block), 1))
        for column in range(8):
            table = np.concatenate([table - block[:, column, None], table + block[:, column, None]], axis=1)
        picks = np.frombuffer(rng.bytes(len(block) * resamples), dtype=np.uint8).astype(np.intp)
        for row, pick in zip(table, picks.reshape(len(block), resamples), strict=True):
            sums += row.take(pick)
    return sums


def _noise(magnitudes: Floats) -> float:
    """Sums closer than this are ties: adding in another order moves a sum by about as much."""
    return 16 * float(np.finfo(np.float64).eps) * float(magnitudes.sum())
