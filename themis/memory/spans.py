"""How far back an agent remembers: tests in groups of about one distance, and the effective span with its interval.

A point is a question of a test: its kind, how many tokens ago the oldest thing was said that it needs, and its score. Kinds
are not equally hard, so a score is only compared with what the same kind scores nearer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from themis.core.intervals import normal_quantile, student_quantile
from themis.memory.fading import HALF, Fading, Tally, fit_fading

# Distances within so large a factor of each other are one group; a larger one where that would make more groups than this.
_SPREAD = 1.1
_MOST_GROUPS = 24
# A kind was asked both near and far if one distance is so many times the other.
_FAR = 2.0
_TAIL = 0.025
# How much likelier than an end the best one must be before that end is ruled out; chosen by benchmarks/memory_spans.py.
_CRITICAL = 6.0


class Point(NamedTuple):
    """A question of a test."""

    kind: str
    distance_tokens: int
    score: float
    # Points of one conversation may rise and fall together; None where all points are of the same.
    conversation: Hashable = None
    # So may those of one test; None where each point is a test of its own.
    test_id: str | None = None


class SpanStatus(StrEnum):
    """What the tests could tell of an effective span."""

    MEASURED = "measured"
    NO_END_SEEN = "no_end_seen"
    NOT_MEASURED = "not_measured"
    NOTHING_REMEMBERED = "nothing_remembered"


@dataclass(frozen=True, kw_only=True)
class EffectiveSpan:
    """The longest distance, in tokens, at which the score is still half of that at distance zero, at equal kinds of test.

    `tokens` is the longest tested distance at which the curve that fits best has half or more left; None if not measured.
    `low` and `high` are the ends of the 95 % interval: `high` is None where it is open. `near_score` is the mean over
    kinds of the score at their nearest tests, None if no kind was asked at two distances.
    """

    status: SpanStatus
    tokens: int | None
    low: int
    high: int | None
    near_score: float | None
    shortest_tokens: int
    longest_tokens: int
    # What is left of the near score at each distance, at equal kinds.
    curve: tuple[tuple[float, float], ...] = ()

    @property
    def interval(self) -> str:
        """Both ends in words; empty where nothing was remembered."""
        if self.status is SpanStatus.NOTHING_REMEMBERED:
            return ""
        return f"{self.low:,} to {'no end seen' if self.high is None else f'{self.high:,}'}"

    @property
    def sentence(self) -> str:
        """What every report says of it."""
        tested = f"{self.shortest_tokens:,} to {self.longest_tokens:,} tokens"
        match self.status:
            case SpanStatus.NOTHING_REMEMBERED:
                return f"0 tokens: nothing was remembered at any distance tested ({tested})"
            case SpanStatus.NOT_MEASURED:
                known = f"; it is at least {self.low:,} tokens" if self.low else ""
                spans = ",".join(f"{max(1, float(f'{self.longest_tokens / part:.2g}')):.0f}" for part in (16, 4, 1))
                return (
                    "not measured: no kind of test was asked both near and far, so that forgetting cannot be told from "
                    f"difficulty{known}; to measure it, run the same configuration at several spans: "
                    f"themis memory sweep --spans {spans}"
                )
            case SpanStatus.NO_END_SEEN:
                least = f"at least {self.low:,} tokens, " if self.low else ""
                return f"{least}no end seen (tested {tested}; 95 % interval {self.interval})"
        return f"{self.tokens:,} tokens (95 % interval {self.interval}; half of a near score of {self.near_score:.2f})"

    def to_dict(self) -> dict[str, object]:
        """Its fields and its sentence, for JSON."""
        return {**asdict(self), "sentence": self.sentence}


def effective_span(points: Iterable[Point]) -> EffectiveSpan | None:
    """The effective span of an agent, with a 95 % interval by profile likelihood; None without any point.

    For every distance at which memory might end, the likeliest memory that ends there is found: each kind of test has a
    score of its own at distance zero, of which a share is left that never rises with distance. Ends that are far less
    likely than the best one are ruled out.

    Args:
        points: A point for each question with a score of its own. With several conversations, differences between them
            widen the interval.

    >>> near = [Point("Colours", 1_000, 1.0)] * 8
    >>> far = [Point("Colours", 30_000, 0.0)] * 8
    >>> effective_span(near + far).sentence
    '1,000 tokens (95 % interval 1,000 to 30,000; half of a near score of 1.00)'
    >>> effective_span(near + [Point("Names", 30_000, 0.0)] * 8).sentence[:59]
    'not measured: no kind of test was asked both near and far, '
    """
    groups = group_by_distance(points)
    if not groups:
        return None
    ends = (groups[0].low, groups[-1].high)
    if not any(point.score > 0 for group in groups for point in group.points):
        return EffectiveSpan(
            status=SpanStatus.NOTHING_REMEMBERED,
            tokens=0,
            low=0,
            high=None,
            near_score=0.0,
            shortest_tokens=ends[0],
            longest_tokens=ends[1],
        )
    low, high = _interval(groups)
    # An end that was seen was seen within some kind; that there is none takes a kind that was asked near and far.
    near_score, curve, tokens = _estimate(groups, apart=_FAR if high is None else 1.0)
    if high is None and low >= groups[-1].low:
        tokens = ends[1]
    elif tokens is not None:
        tokens = max(low, tokens if high is None else min(tokens, high))
    if high is not None:
        status = SpanStatus.MEASURED
    else:
        status = SpanStatus.NOT_MEASURED if tokens is None else SpanStatus.NO_END_SEEN
    return EffectiveSpan(
        status=status,
        tokens=tokens,
        low=low,
        high=high,
        near_score=near_score,
        shortest_tokens=ends[0],
        longest_tokens=ends[1],
        curve=curve,
    )


# --- groups of distances ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DistanceGroup:
    """Points of about one distance."""

    points: tuple[Point, ...]

    @property
    def low(self) -> int:
        return self.points[0].distance_tokens

    @property
    def high(self) -> int:
        return self.points[-1].distance_tokens

    @property
    def distance_tokens(self) -> float:
        return sum(point.distance_tokens for point in self.points) / len(self.points)

    @property
    def mean(self) -> float:
        return sum(point.score for point in self.points) / len(self.points)


def group_by_distance(points: Iterable[Point]) -> list[DistanceGroup]:
    """Points in groups of nearly equal distances, nearest first: cut at the widest gaps until no group spreads over a tenth.

    Args:
        points: In any order.

    >>> [(group.low, group.high) for group in group_by_distance([Point("a", d, 1.0) for d in (960, 28_800, 29_050)])]
    [(960, 960), (28800, 29050)]
    """
    ordered = sorted(points, key=lambda point: point.distance_tokens)
    if not ordered:
        return []
    widest = max(1, ordered[-1].distance_tokens) / max(1, ordered[0].distance_tokens)
    spread = max(_SPREAD, widest ** (1 / _MOST_GROUPS))
    groups, waiting = [], [ordered]
    while waiting:
        group = waiting.pop()
        if group[-1].distance_tokens <= spread * max(1, group[0].distance_tokens):
            groups.append(DistanceGroup(tuple(group)))
            continue
        steps = [after.distance_tokens / max(1, before.distance_tokens) for before, after in pairwise(group)]
        cut = steps.index(max(steps)) + 1
        # The nearer part is taken up first.
        waiting += [group[cut:], group[:cut]]
    return groups


def _tallies(groups: Sequence[DistanceGroup]) -> list[list[Tally]]:
    found: list[list[Tally]] = []
    for group in groups:
        by_kind: dict[str, list[float]] = {}
        for point in group.points:
            # A published score may lie beyond 1.
            by_kind.setdefault(point.kind, []).append(min(1.0, max(0.0, point.score)))
        found.append([Tally(kind, sum(scores), len(scores) - sum(scores)) for kind, scores in sorted(by_kind.items())])
    return found


# --- the estimate and its interval ------------------------------------------------------------------------------------


def _estimate(
    groups: Sequence[DistanceGroup], apart: float
) -> tuple[float | None, tuple[tuple[float, float], ...], int | None]:
    """Near score, curve, and the longest distance with half of it left, by the kinds asked at distances so far apart."""
    tallies = _tallies(groups)
    asked: dict[str, list[DistanceGroup]] = {}
    for group, found in zip(groups, tallies, strict=True):
        for tally in found:
            asked.setdefault(tally.kind, []).append(group)
    linked = {kind for kind, found in asked.items() if found[-1].low > apart * found[0].high}
    chosen = [
        (group, [tally for tally in found if tally.kind in linked])
        for group, found in zip(groups, tallies, strict=True)
        if any(tally.kind in linked for tally in found)
    ]
    if not chosen:
        return None, (), None
    best: Fading = fit_fading([found for _, found in chosen])
    # Distance zero is as near as was asked.
    nearest = best.left[0]
    left = [share / nearest if nearest > 0 else 0.0 for share in best.left]
    near_score = nearest * sum(best.near.values()) / len(best.near)
    curve = tuple((group.distance_tokens, share) for (group, _), share in zip(chosen, left, strict=True))
    held = [group.high for (group, _), share in zip(chosen, left, strict=True) if share >= HALF - 1e-6]
    return near_score, curve, max(held, default=0)


def _interval(groups: Sequence[DistanceGroup]) -> tuple[int, int | None]:
    """The ends of memory that are not ruled out: before which group it may end at the nearest, at the farthest."""
    tallies = _tallies(groups)
    fits = [fit_fading(tallies, end).likelihood for end in range(len(groups) + 1)]
    best, widening = max(fits), _widening(groups)
    lacking = [2 * (best - fit) / widening for fit in fits]
    top = fits.index(best)
    first = next(end for end, lack in enumerate(lacking) if end >= top or lack <= _critical_nearer(tallies, end))
    last = next(end for end in range(len(groups), -1, -1) if end <= top or lacking[end] <= _CRITICAL)
    low = groups[first - 1].low if first > 0 else 0
    return low, groups[last].high if last < len(groups) else None


def _critical_nearer(tallies: Sequence[Sequence[Tally]], end: int) -> float:
    """The critical value for an end that is nearer than the best one.

    A kind that was never asked nearer than that end may be as easy as it likes in a memory that reaches farther, and only
    half as easy in one that does not: by chance each of them speaks for the farther one.
    """
    near = {tally.kind for group in tallies[:end] for tally in group}
    free = {tally.kind for group in tallies[end:] for tally in group} - near
    return max(_CRITICAL, 4.5 + len(free))


def _widening(groups: Sequence[DistanceGroup]) -> float:
    """How much more conversations and tests differ than their points alone would make them."""
    talks: dict[tuple[int, Hashable], list[float]] = {}
    tests: dict[tuple[str, Hashable, str], list[float]] = {}
    for place, group in enumerate(groups):
        by_kind: dict[str, list[Point]] = {}
        for point in group.points:
            by_kind.setdefault(point.kind, []).append(point)
        for kind, members in by_kind.items():
            mean = DistanceGroup(tuple(members)).mean
            for point in members:
                rest = point.score - mean
                talks.setdefault((place, point.conversation), []).append(rest)
                if point.test_id is not None:
                    tests.setdefault((kind, point.conversation, point.test_id), []).append(rest)
    several = {test: rests for test, rests in tests.items() if len(rests) > 1}
    seen = _design_effect(list(talks.values()), len(talks) - len({place for place, _ in talks}))
    if not several:
        return seen or 1.0
    by_tests = _design_effect(list(several.values()), len(several) - len({kind for kind, _, _ in several}))
    # Where it cannot be seen how much the questions of a test have in common, they may have everything in common.
    alike = sum(map(len, several.values())) / len(several)
    return max(seen or 1.0, by_tests or alike)


def _design_effect(clusters: Sequence[Sequence[float]], freedom: int) -> float | None:
    """How much wider than for independent points, by the spread of the clusters' sums; None where it cannot be seen."""
    if freedom < 1:
        return None
    alone = sum(rest * rest for found in clusters for rest in found)
    together = sum(sum(found) ** 2 for found in clusters) * len(clusters) / freedom
    ratio = max(1.0, together / alone) if alone > 0 else 1.0
    return ratio * (student_quantile(1 - _TAIL, freedom) / normal_quantile(1 - _TAIL)) ** 2
