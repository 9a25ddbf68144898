"""How far back an agent remembers: score against distance, and the effective span with its interval.

A point is a test: how many tokens ago the oldest thing was said that it needs, and its score. Memory is taken to fade and
never to return, so the curve through the points is the decreasing one that fits them best.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Point = tuple[int, float]

# The shortest distance stands for none at all if it is at most this share of the longest.
_NEAR_SHARE = 1 / 8
# In a picture, distances nearer to each other than the first share of the longest are one group, farther ones never.
_APART_SHARE, _FAR_SHARE = 0.04, 0.12
_RESAMPLES = 1_000
_LEVEL = 0.95


@dataclass(frozen=True)
class EffectiveSpan:
    """The longest distance, in tokens, at which the score is still half of that at distance zero.

    `beyond` says that this is the longest distance tested: the true one may be longer. `near_score` is the score at
    distance zero: measured where tests lie near, otherwise taken as 1. Between two distances that were tested nothing is
    known, so `high` is one at which the score was lost; it is None where no end was seen.
    """

    tokens: int
    low: int | None
    high: int | None
    beyond: bool
    near_score: float
    near_is_measured: bool


def effective_span(points: Sequence[Point], clusters: Sequence[Hashable] | None = None) -> EffectiveSpan | None:
    """The effective span of an agent, with an interval by bootstrap; None without any point.

    Args:
        points: Of each test, how many tokens back it reaches, and its score.
        clusters: The conversation of each point; whole conversations are then resampled.
    """
    if not points:
        return None
    longest, shortest = max(distance for distance, _ in points), min(distance for distance, _ in points)
    measured = shortest <= _NEAR_SHARE * longest
    tokens, near = _reach(points, measured)
    low, high = _interval(points, clusters, measured)
    return EffectiveSpan(
        tokens=tokens,
        low=low,
        high=high,
        beyond=tokens >= longest and near > 0,
        near_score=near,
        near_is_measured=measured,
    )


def _reach(points: Sequence[Point], measured: bool) -> tuple[int, float]:
    curve = fit_decreasing(points)
    near = curve[0][1] if measured else 1.0
    held = [distance for distance, score in curve if near > 0 and score >= near / 2 - 1e-12]
    return max(held, default=0), near


def _interval(
    points: Sequence[Point], clusters: Sequence[Hashable] | None, measured: bool
) -> tuple[int | None, int | None]:
    groups: dict[Hashable, list[Point]] = {}
    for index, point in enumerate(points):
        groups.setdefault(index if clusters is None else clusters[index], []).append(point)
    if len(groups) < 4:
        return None, None
    units, chance = list(groups.values()), random.Random(0)
    reached = sorted(
        _reach([point for unit in chance.choices(units, k=len(units)) for point in unit], measured)[0]
        for _ in range(_RESAMPLES)
    )
    tail = (1 - _LEVEL) / 2
    most = reached[min(_RESAMPLES - 1, int((1 - tail) * _RESAMPLES))]
    return reached[int(tail * _RESAMPLES)], min((distance for distance, _ in points if distance > most), default=None)


def fit_decreasing(points: Sequence[Point]) -> list[Point]:
    """The decreasing curve nearest to the points in least squares (isotonic regression, by pooling adjacent violators).

    Args:
        points: Of each test, the distance and the score.

    Returns:
        (distance, score), one entry a distance.
    """
    sums: dict[int, list[float]] = {}
    for distance, score in points:
        sums.setdefault(distance, []).append(score)
    # Blocks of (sum, count, distances); a block that lies above the one before it is joined with it.
    blocks: list[tuple[float, int, list[int]]] = []
    for distance in sorted(sums):
        block = (sum(sums[distance]), len(sums[distance]), [distance])
        while blocks and blocks[-1][0] * block[1] < block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1], before[2] + block[2])
        blocks.append(block)
    return [(distance, total / count) for total, count, distances in blocks for distance in distances]


@dataclass(frozen=True)
class Bin:
    """Tests of about one distance: its ends, the mean distance, and the scores."""

    low: int
    high: int
    distance: float
    scores: list[float]


def bin_by_distance(points: Sequence[Point], most: int = 6) -> list[Bin]:
    """Points in groups of about equal size by distance; distances that are nearly equal stay together."""
    ordered = sorted(points)
    size = max(1, -(-len(ordered) // most))
    longest = max((distance for distance, _ in ordered), default=0)
    groups: list[list[Point]] = []
    for point in ordered:
        gap = point[0] - groups[-1][-1][0] if groups else 0
        full = bool(groups) and len(groups[-1]) >= size
        if not groups or gap > _FAR_SHARE * longest or (full and gap > _APART_SHARE * longest):
            groups.append([])
        groups[-1].append(point)
    return [
        Bin(group[0][0], group[-1][0], sum(d for d, _ in group) / len(group), [score for _, score in group])
        for group in groups
    ]
