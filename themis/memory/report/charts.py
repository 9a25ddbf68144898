"""The other figures: score against distance, score against span, datasets with intervals, agents on a radar."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from themis.memory.report.drawing import at, colour, figure, label, round_ticks, short_tokens
from themis.memory.results import DatasetScore, bounded_interval
from themis.memory.spans import EffectiveSpan, Point, bin_by_distance, fit_decreasing

__all__ = [
    "Axis",
    "DistanceSeries",
    "SpanPoint",
    "SpanSeries",
    "draw_datasets",
    "draw_distances",
    "draw_radar",
    "draw_spans",
]

_WIDTH, _HEIGHT = 480, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 12, 12, 38


@dataclass(frozen=True)
class DistanceSeries:
    """One agent's tests as (distance, score)."""

    name: str
    points: Sequence[Point]
    span: EffectiveSpan | None = None


def draw_distances(series: Sequence[DistanceSeries]) -> Markup:
    """Each test as a dot, groups of tests as means with intervals, and the fading curve; overlaid for several agents."""
    longest = max((distance for one in series for distance, _ in one.points), default=0)
    ticks = round_ticks(longest)
    high = max(longest, ticks[-1], 1)
    parts = list(
        _frame([(tick / high, short_tokens(tick)) for tick in ticks], "tokens between what is needed and the answer")
    )
    alone = len(series) == 1
    for number, one in enumerate(series):
        parts.append(Markup('<g class="{}"><title>{}</title>{}</g>').format(
            colour(number), one.name, Markup("").join(_distance_parts(one, high, number, len(series), alone))
        ))  # fmt: skip
    return figure(_WIDTH, _HEIGHT, "Score against distance", parts)


def _distance_parts(one: DistanceSeries, high: float, number: int, of: int, alone: bool) -> Iterator[Markup]:
    line = " ".join(_point(distance / high, score) for distance, score in fit_decreasing(one.points))
    yield Markup('<polyline class="curve" points="{}"/>').format(line)
    if alone:
        for distance, score in one.points:
            yield Markup('<circle class="dot faint" cx="{}" cy="{}" r="4"/>').format(
                at(_x(distance / high)), at(_y(score))
            )
    # Side by side, so that agents with equal scores do not hide each other.
    aside = (number - (of - 1) / 2) * 3
    for group in bin_by_distance(one.points):
        low, up = bounded_interval(group.scores)
        mean = sum(group.scores) / len(group.scores)
        x = _x(group.distance / high) + aside
        yield Markup('<line class="whisker" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
            at(x), at(_y(low)), at(_y(up))
        )
        told = f"{one.name}: {len(group.scores)} tests at {group.low:,} to {group.high:,} tokens, mean {mean:.3f}"
        yield _dot(x, _y(mean), told)
    if alone and one.span is not None and one.span.tokens > 0:
        x = _x(one.span.tokens / high)
        yield Markup('<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(at(x), at(_y(0)), at(_y(1)))


@dataclass(frozen=True)
class SpanPoint:
    """The mean score of the runs of one span, with its interval."""

    span_tokens: int
    mean: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class SpanSeries:
    name: str
    points: Sequence[SpanPoint]


def draw_spans(series: Sequence[SpanSeries]) -> Markup:
    """Score against the memory span of the runs, with a band for the interval. Spans are evenly spaced."""
    spans = sorted({point.span_tokens for one in series for point in one.points})
    places = {span: (index + 0.5) / len(spans) for index, span in enumerate(spans)}
    parts = list(_frame([(places[span], short_tokens(span)) for span in spans], "memory span of the run in tokens"))
    for number, one in enumerate(series):
        points = sorted(one.points, key=lambda point: point.span_tokens)
        upper = [_point(places[point.span_tokens], point.high) for point in points]
        lower = [_point(places[point.span_tokens], point.low) for point in reversed(points)]
        inside = [Markup('<polygon class="band" points="{}"/>').format(" ".join([*upper, *lower]))]
        line = " ".join(_point(places[point.span_tokens], point.mean) for point in points)
        inside.append(Markup('<polyline class="curve" points="{}"/>').format(line))
        for point in points:
            ends = f"{point.mean:.3f} [{point.low:.3f}, {point.high:.3f}]"
            told = f"{one.name} at {point.span_tokens:,} tokens: {ends}, {point.runs} runs"
            inside.append(_dot(_x(places[point.span_tokens]), _y(point.mean), told))
        parts.append(Markup('<g class="{}">{}</g>').format(colour(number), Markup("").join(inside)))
    return figure(_WIDTH, _HEIGHT, "Score against span", parts)


def _frame(ticks: Sequence[tuple[float, str]], x_label: str) -> Iterator[Markup]:
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = at(_y(value))
        yield Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, _WIDTH - _RIGHT, y, y)
        if value in (0.0, 0.5, 1.0):
            yield label(_LEFT - 6, _y(value) + 4, f"{value:g}", anchor="end", kind="soft")
    for share, text in ticks:
        yield label(_x(share), _HEIGHT - _BOTTOM + 16, text, kind="soft")
    yield label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, x_label, kind="soft")


def _dot(x: float, y: float, told: str) -> Markup:
    return Markup('<circle class="dot" cx="{}" cy="{}" r="4.5"><title>{}</title></circle>').format(at(x), at(y), told)


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(score: float) -> float:
    return _HEIGHT - _BOTTOM - min(1.0, max(0.0, score)) * (_HEIGHT - _TOP - _BOTTOM)


def _point(share: float, score: float) -> str:
    return f"{at(_x(share))},{at(_y(score))}"


# --- datasets ---------------------------------------------------------------------------------------------------------


def draw_datasets(agents: Sequence[tuple[str, Sequence[DatasetScore]]]) -> Markup:
    """A bar with its interval for each dataset; for several agents, a bar each."""
    names = list(dict.fromkeys(dataset.name for _, datasets in agents for dataset in datasets))
    scores = [{dataset.name: dataset for dataset in datasets} for _, datasets in agents]
    parts: list[Markup] = []
    bar, y = (12 if len(agents) == 1 else 9), 0
    for name in names:
        parts.append(label(0, y + 12, name, anchor="start", kind="name"))
        if len(agents) == 1 and name in scores[0]:
            parts.append(label("100%", y + 12, _told(scores[0][name]), anchor="end", kind="soft"))
        y += 18
        for number, (agent, _) in enumerate(agents):
            if (dataset := scores[number].get(name)) is not None:
                parts.append(_bar(agent, dataset, number, y, bar))
            y += bar + 3
        y += 7
    return figure("100%", max(1, y), "Score of each dataset", parts, fluid=True)


def _bar(agent: str, dataset: DatasetScore, number: int, y: int, tall: int) -> Markup:
    mean = 0.0 if math.isnan(dataset.mean) else min(1.0, max(0.0, dataset.mean))
    parts = [
        Markup('<rect class="ground" x="0" width="100%" y="{}" height="{}"/>').format(y, tall),
        Markup('<rect class="bar" x="0" width="{}%" y="{}" height="{}"/>').format(at(100 * mean), y, tall),
    ]
    if dataset.interval is not None:
        low, high = (at(100 * end) for end in dataset.interval)
        middle = at(y + tall / 2)
        parts.append(
            Markup('<line class="whisker over" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format(low, high, middle, middle)
        )
    told = f"{agent}, {dataset.name}: {_told(dataset)}"
    return Markup('<g class="{}"><title>{}</title>{}</g>').format(colour(number), told, Markup("").join(parts))


def _told(dataset: DatasetScore) -> str:
    if dataset.interval is None:
        return "no verdict"
    low, high = dataset.interval
    extra = f", {dataset.undecided} undecided" if dataset.undecided else ""
    return f"{dataset.mean:.2f} [{low:.2f}, {high:.2f}] of {dataset.scored} tests{extra}"


# --- radar ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """A quality from 0 (worst) to 1 (best) of each agent; None where it is not known."""

    name: str
    values: Sequence[float | None]


def draw_radar(agents: Sequence[str], axes: Sequence[Axis]) -> Markup:
    width, height, radius = 420, 300, 104
    middle_x, middle_y = width / 2, height / 2 + 4

    def place(axis: int, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * axis / len(axes) - math.pi / 2
        return middle_x + radius * share * math.cos(angle), middle_y + radius * share * math.sin(angle)

    def outline(shares: Sequence[float]) -> str:
        return " ".join(f"{at(x)},{at(y)}" for x, y in (place(axis, share) for axis, share in enumerate(shares)))

    parts = [
        Markup('<polygon class="ring" points="{}"/>').format(outline([share] * len(axes)))
        for share in (0.25, 0.5, 0.75, 1)
    ]
    for number, axis in enumerate(axes):
        x, y = place(number, 1.0)
        parts.append(Markup('<line class="grid" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
            at(middle_x), at(middle_y), at(x), at(y)
        ))  # fmt: skip
        text_x, text_y = place(number, 1.14)
        anchor = "middle" if abs(text_x - middle_x) < 8 else "start" if text_x > middle_x else "end"
        parts.append(label(text_x, text_y + 4, axis.name, anchor=anchor))
    for number, agent in enumerate(agents):
        shares = [axis.values[number] or 0.0 for axis in axes]
        parts.append(Markup('<polygon class="shape {}" points="{}"><title>{}</title></polygon>').format(
            colour(number), outline(shares), agent
        ))  # fmt: skip
    return figure(width, height, "Qualities of the agents, each relative to the best", parts)
