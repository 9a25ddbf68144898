"""The likelihood of fading memories: what a kind of test scores at no distance, times what is left of that at a distance.

A score is taken for right and wrong with a share in between: nothing between 0 and 1 varies more, so what follows for
graded scores is on the careful side. What is left never rises with distance; no other form is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

# An end of memory is where half is left.
HALF = 0.5
_SWEEPS = 60
_ENOUGH = 2e-3


class Tally(NamedTuple):
    """The tests of one kind at about one distance: points reached, points missed."""

    kind: str
    reached: float
    missed: float


@dataclass(frozen=True)
class Fading:
    """The best fit: what each kind scores at no distance, what is left at each group, and the logarithm of its likelihood."""

    near: dict[str, float]
    left: list[float]
    likelihood: float


def fit_fading(groups: Sequence[Sequence[Tally]], ends_before: int | None = None) -> Fading:
    """The likeliest fading memory, by turns the kinds' scores and the curve; the problem is concave, so turns suffice.

    Args:
        groups: The tests by distance, nearest first.
        ends_before: At least half is left in the groups before this one and at most half from it on; free when None.
    """
    cut = len(groups) if ends_before is None else ends_before
    lowest = 0.0 if ends_before is None else HALF
    by_kind: dict[str, list[tuple[int, Tally]]] = {}
    for place, tallies in enumerate(groups):
        for tally in tallies:
            by_kind.setdefault(tally.kind, []).append((place, tally))
    near = {kind: max(0.05, max(_smoothed(tally) for _, tally in found)) for kind, found in by_kind.items()}
    left = [0.75 if place < cut else 0.25 for place in range(len(groups))]
    best = -math.inf
    for _ in range(_SWEEPS):
        left = [
            *_fit_curve(groups[:cut], near, left[:cut], lowest, 1.0),
            *_fit_curve(groups[cut:], near, left[cut:], 0.0, HALF),
        ]
        for kind, found in by_kind.items():
            terms = [(tally.reached, tally.missed, left[place]) for place, tally in found]
            near[kind] = _likeliest(terms, 0.0, 1.0, near[kind])
        reached = _likelihood(groups, near, left)
        if reached - best < _ENOUGH:
            break
        best = reached
    return Fading(near, left, max(best, reached))


def _smoothed(tally: Tally) -> float:
    return (tally.reached + 0.5) / (tally.reached + tally.missed + 1)


def _likelihood(groups: Sequence[Sequence[Tally]], near: Mapping[str, float], left: Sequence[float]) -> float:
    total = 0.0
    for tallies, share in zip(groups, left, strict=True):
        for kind, reached, missed in tallies:
            expected = near[kind] * share
            if reached:
                total += reached * math.log(max(expected, 1e-300))
            if missed:
                total += missed * math.log(max(1 - expected, 1e-12))
    return total


Term = tuple[float, float, float]


def _fit_curve(
    groups: Sequence[Sequence[Tally]], near: Mapping[str, float], start: Sequence[float], low: float, high: float
) -> list[float]:
    """The likeliest curve that never rises, between two bounds: groups that would rise are joined."""
    blocks: list[tuple[list[Term], int, float]] = []
    for tallies, first in zip(groups, start, strict=True):
        terms = [(tally.reached, tally.missed, near[tally.kind]) for tally in tallies]
        block = (terms, 1, _likeliest(terms, low, high, first))
        while blocks and blocks[-1][2] < block[2] - 1e-12:
            before = blocks.pop()
            terms = before[0] + block[0]
            block = (terms, before[1] + block[1], _likeliest(terms, low, high, (before[2] + block[2]) / 2))
        blocks.append(block)
    return [share for _, count, share in blocks for _ in range(count)]


def _likeliest(terms: Sequence[Term], low: float, high: float, start: float) -> float:
    """The share x in [low, high] that makes the terms likeliest, each a score expected to be its factor times x."""
    reached = sum(term[0] for term in terms)
    if reached <= 0:
        return low
    if _slope(terms, reached, high)[0] >= 0:
        return high
    if low > 0 and _slope(terms, reached, low)[0] <= 0:
        return low
    below, above = low, high
    share = min(max(start, below + 1e-6), above - 1e-9)
    for _ in range(30):
        slope, bend = _slope(terms, reached, share)
        if abs(slope) < 1e-4:
            break
        below, above = (share, above) if slope > 0 else (below, share)
        # Newton's step in the logarithm, in which the likelihood is concave; halving where it would leave the bounds.
        step = share * math.exp(max(-2.0, min(2.0, slope / bend))) if bend > 0 else above
        share = step if below < step < above else (below + above) / 2
    return share


def _slope(terms: Sequence[Term], reached: float, share: float) -> tuple[float, float]:
    """First derivative of the likelihood in the logarithm of the share, and how fast it falls."""
    slope, bend = reached, 0.0
    for _, missed, factor in terms:
        if missed:
            rest = max(1 - factor * share, 1e-12)
            odds = factor * share / rest
            slope -= missed * odds
            bend += missed * odds / rest
    return slope, bend
