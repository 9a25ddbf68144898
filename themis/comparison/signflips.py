"""How often random signs would make a sum as large as the one observed.

The engine of the paired permutation test and of Wilcoxon's: under the null hypothesis a difference could as well have had
the other sign. Exact wherever that is cheap, by three means: a binomial for differences of one size, a Fourier transform
for differences that are multiples of one unit, enumeration for few differences of any size.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from themis.core.intervals import Floats

__all__ = ["exact_p_value", "sampled_p_value", "smallest_p_value"]

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
