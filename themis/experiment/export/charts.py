"""Charts in a report: those a user adds, and the page's own pictures, as inline SVG.

Colours are classes that the page's style sheet knows for light and dark. All text goes through `Markup.format`, which
escapes it.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup

from themis.core.registry import nearest
from themis.exceptions import ConfigurationError

_FEW = 6
_BINS = 20

T = TypeVar("T", "Chart", "ChartPoint")


@dataclass(frozen=True)
class ChartPoint:
    """One value of a chart.

    Args:
        label: What stands under it.
        x: Its place.
        value: Its height.
        count: How many samples it stands for.
    """

    label: str
    x: float
    value: float
    count: int = 0


@dataclass(frozen=True)
class Chart:
    """A line of points in the order of x.

    Args:
        title: Above the chart.
        points: In any order.
        x_label: Below it.
        y_label: Beside it; by default the metric.
        metric: Which metric the values are of.

    >>> Chart("By length", [ChartPoint("short", 1, 0.9), ChartPoint("long", 2, 0.4)], metric="ExactMatch").points[1].value
    0.4
    """

    title: str
    points: Sequence[ChartPoint]
    x_label: str = ""
    y_label: str = ""
    metric: str = ""


def as_charts(charts: Iterable[Chart | Mapping[str, object]] | None) -> list[Chart]:
    """Charts as given, or from dicts of the same fields."""
    return [chart if isinstance(chart, Chart) else _chart(chart) for chart in charts or ()]


def _chart(given: Mapping[str, object]) -> Chart:
    fields = dict(given)
    points = fields.pop("points", ())
    if not isinstance(points, Iterable):
        raise ConfigurationError(f"a chart's points are a list, got {points!r}")
    made = [
        point if isinstance(point, ChartPoint) else _build(ChartPoint, point, "a chart's point") for point in points
    ]
    return _build(Chart, {**fields, "points": made}, "a chart")


def _build(kind: type[T], fields: Mapping[str, object], what: str) -> T:
    known = [field.name for field in dataclasses.fields(kind)]
    for name in fields:
        if name not in known:
            raise ConfigurationError(f"{what} has no field {name!r}{nearest(name, known)}; it has {', '.join(known)}")
    factory: Callable[..., T] = kind
    try:
        return factory(**fields)
    except TypeError as error:
        raise ConfigurationError(f"{what} needs {', '.join(known)}, got {', '.join(fields) or 'nothing'}") from error


# --- drawing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """How many scores have one value, or lie in one bin."""

    label: str
    count: int


def histogram(values: Sequence[float]) -> list[Bar]:
    """One bar a value where there are few values; else bins of equal width, over 0 to 1 where all scores lie there."""
    if not values:
        return []
    counted = Counter(values)
    if len(counted) <= _FEW:
        return [Bar(short_number(value), count) for value, count in sorted(counted.items())]
    low, high = min(values), max(values)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    width = (high - low) / _BINS
    binned = Counter(min(int((value - low) / width), _BINS - 1) for value in values)
    return [
        Bar(f"{short_number(low + n * width)}–{short_number(low + (n + 1) * width)}", binned[n]) for n in range(_BINS)
    ]


def draw_bars(title: str, bars: Sequence[Bar]) -> Markup:
    width, height, left, bottom, top = 460, 190, 8, 26, 22
    total, most = sum(bar.count for bar in bars), max((bar.count for bar in bars), default=1)
    step = (width - 2 * left) / max(len(bars), 1)
    parts = []
    for n, bar in enumerate(bars):
        tall = (height - top - bottom) * bar.count / most
        x, y = left + n * step, height - bottom - tall
        parts.append(
            Markup(
                '<rect class="bar" x="{}" y="{}" width="{}" height="{}"><title>{}: {} of {} ({})</title></rect>'
            ).format(svg_place(x + step * 0.08), svg_place(y), svg_place(step * 0.84), svg_place(tall),
                     bar.label, bar.count, total, f"{bar.count / total:.1%}")
        )  # fmt: skip
        if len(bars) <= _FEW:
            parts.append(svg_text(x + step / 2, y - 6, f"{bar.count:,} ({bar.count / total:.0%})"))
            parts.append(svg_text(x + step / 2, height - 8, bar.label))
    if len(bars) > _FEW:
        ends = (bars[0].label.partition("–")[0], bars[-1].label.partition("–")[2])
        parts.append(svg_text(left, height - 8, ends[0], anchor="start"))
        parts.append(svg_text(width - left, height - 8, ends[1], anchor="end"))
        parts.append(svg_text(left, 14, f"most in one bin: {most:,}", anchor="start"))
    base = Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
        left, width - left, height - bottom, height - bottom
    )
    return svg(width, height, title, [*parts, base])


def draw_interval(name: str, mean: float, ci: tuple[float, float] | None) -> Markup:
    """Mean and interval on a line from 0 to 1; nothing where they lie outside."""
    ends = (mean, *(ci or ()))
    if any(math.isnan(end) or end < -1e-9 or end > 1 + 1e-9 for end in ends):
        return Markup("")
    width, height = 160, 20
    left, right = 6, width - 6

    def x(value: float) -> str:
        return svg_place(left + (right - left) * min(max(value, 0.0), 1.0))

    parts = [Markup('<line class="axis" x1="{}" x2="{}" y1="10" y2="10"/>').format(left, right)]
    if ci:
        parts.append(Markup('<line class="whisker" x1="{}" x2="{}" y1="10" y2="10"/>').format(x(ci[0]), x(ci[1])))
    parts.append(Markup('<circle class="dot" cx="{}" cy="10" r="4"/>').format(x(mean)))
    return svg(width, height, f"{name} from 0 to 1", parts)


def draw_chart(chart: Chart) -> Markup:
    width, height, left, right, top, bottom = 460, 220, 52, 14, 14, 44
    points = sorted((p for p in chart.points if math.isfinite(p.x) and math.isfinite(p.value)), key=lambda p: p.x)
    if not points:
        return svg(width, 40, chart.title, [svg_text(width / 2, 24, "no points")])
    xs, ys = [point.x for point in points], [point.value for point in points]
    low, high = min(0.0, *ys), max(*ys, 1.0 if max(ys) <= 1 else max(ys))

    def place(point_x: float, value: float) -> tuple[float, float]:
        across = (point_x - xs[0]) / ((xs[-1] - xs[0]) or 1.0)
        up = (value - low) / ((high - low) or 1.0)
        return left + across * (width - left - right), height - bottom - up * (height - top - bottom)

    places = [place(point.x, point.value) for point in points]
    line = " ".join(f"{svg_place(x)},{svg_place(y)}" for x, y in places)
    parts = [
        Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            left, width - right, height - bottom, height - bottom
        ),
        Markup('<polyline class="line" points="{}"/>').format(line),
        svg_text(left - 6, height - bottom + 4, short_number(low), anchor="end"),
        svg_text(left - 6, top + 8, short_number(high), anchor="end"),
        svg_text((left + width - right) / 2, height - 6, chart.x_label),
        svg_text(left, top - 2, chart.y_label or chart.metric, anchor="start"),
    ]
    every = math.ceil(len(points) / _FEW)
    for n, (point, (x, y)) in enumerate(zip(points, places, strict=True)):
        parts.append(
            Markup('<circle class="dot" cx="{}" cy="{}" r="4"><title>{}: {} (n={})</title></circle>').format(
                svg_place(x), svg_place(y), point.label, short_number(point.value), point.count
            )
        )
        if n % every == 0:
            parts.append(svg_text(x, height - bottom + 18, point.label))
    return svg(width, height, chart.title, parts)


def short_number(value: float) -> str:
    return f"{value:.3g}"


def svg(width: int, height: int, title: str, parts: Iterable[Markup]) -> Markup:
    """A picture of these parts."""
    return Markup('<svg viewBox="0 0 {} {}" role="img"><title>{}</title>{}</svg>').format(
        width, height, title, Markup("").join(parts)
    )


def svg_text(x: float, y: float, text: str, *, anchor: str = "middle") -> Markup:
    """A text at a place."""
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(svg_place(x), svg_place(y), anchor, text)


def svg_place(value: float) -> str:
    """A length, to a tenth."""
    return f"{value:.1f}"
