"""Where things are drawn: numbers become places in an SVG, in percent of its width; the templates draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from themis.storage.search import Histogram

__all__ = ["Bar", "Dot", "GanttRow", "Interval", "TestSpan", "bars", "dots", "gantt", "interval_bar", "sparkline"]

_COLUMN_HEIGHT = 90.0


@dataclass(frozen=True)
class Bar:
    """A column of a histogram."""

    x: float
    width: float
    y: float
    height: float
    title: str


def bars(histogram: Histogram) -> list[Bar]:
    """Columns of a histogram, the highest filling the height; a small one is still seen."""
    most = max(histogram.counts, default=0) or 1
    width = 100 / len(histogram.counts)
    step = (histogram.high - histogram.low) / len(histogram.counts)
    found = []
    for number, count in enumerate(histogram.counts):
        if not count:
            continue
        height = max(count / most * _COLUMN_HEIGHT, 2.0)
        low = histogram.low + number * step
        title = f"{low:.3g} to {low + step:.3g}: {count:,}"
        found.append(
            Bar(round(number * width + width * 0.1, 2), round(width * 0.8, 2), round(100 - height, 1), height, title)
        )
    return found


@dataclass(frozen=True)
class Interval:
    """A mean with the ends of its interval."""

    point: float
    low: float | None
    high: float | None


def interval_bar(
    mean: float | None, ci: Sequence[float] | None, low: float = 0.0, high: float = 1.0
) -> Interval | None:
    """A mean and its interval between two ends, in percent; None where there is no mean."""
    if mean is None or not math.isfinite(mean):
        return None
    low, high = min(low, mean, *(ci or [mean])), max(high, mean, *(ci or [mean]))
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return round((value - low) / span * 100, 2)

    return Interval(place(mean), place(ci[0]) if ci else None, place(ci[1]) if ci else None)


@dataclass(frozen=True)
class Dot:
    """A point of a scatter plot; larger where several lie on each other."""

    x: float
    y: float
    radius: float
    title: str
    side: str


def dots(pairs: Iterable[tuple[float, float]]) -> tuple[list[Dot], float, float]:
    """Paired scores: the first run to the right, the second upwards; and the ends of both axes."""
    counted: dict[tuple[float, float], int] = {}
    for pair in pairs:
        counted[pair] = counted.get(pair, 0) + 1
    if not counted:
        return [], 0.0, 1.0
    values = [value for pair in counted for value in pair]
    low, high = min(0.0, *values), max(1.0, *values)
    most = max(counted.values())
    found = []
    for (first, second), count in sorted(counted.items(), key=lambda entry: -entry[1])[:2_000]:
        side = "same" if first == second else "first" if first > second else "second"
        radius = 1.3 + 3 * math.sqrt(count / most) if most > 1 else 1.6
        x, y = ((value - low) / (high - low) * 84 + 8 for value in (first, second))
        title = f"{first:.4g} and {second:.4g}: {count:,} item{'s' if count > 1 else ''}"
        found.append(Dot(round(x, 2), round(100 - y, 2), round(radius, 2), title, side))
    return found, low, high


def sparkline(means: Sequence[float]) -> str:
    """The points of a line through earlier runs' means, for a box of 100 by 24."""
    if len(means) < 2:
        return ""
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    step = 100 / (len(means) - 1)
    return " ".join(f"{n * step:.1f},{22 - (mean - low) / span * 20:.1f}" for n, mean in enumerate(means))


@dataclass(frozen=True, kw_only=True)
class TestSpan:
    """What a test took of a conversation, in tokens; `ended` is None while it is under way, `score` if it has none."""

    __test__ = False

    test_id: str
    dataset: str
    began: float
    ended: float | None = None
    score: float | None = None
    says: Sequence[float] = ()
    asks: Sequence[float] = ()

    @property
    def state(self) -> str:
        if self.ended is None:
            return "open"
        return "failed" if self.score is None else "good" if self.score >= 0.5 else "bad"


@dataclass(frozen=True)
class GanttRow:
    """A test's stretch of the conversation, in percent of its tokens, with the places where it spoke."""

    span: TestSpan
    x: float
    width: float
    y: int
    says: list[float]
    asks: list[float]
    title: str


def gantt(spans: Iterable[TestSpan], total_tokens: float) -> list[GanttRow]:
    """One row a test, in the order in which they began."""
    total = max(total_tokens, 1.0)

    def places(tokens: Sequence[float]) -> list[float]:
        return [round(min(one / total * 100, 100.0), 2) for one in tokens]

    rows = []
    for number, span in enumerate(sorted(spans, key=lambda one: (one.began, one.test_id))):
        end = total if span.ended is None else span.ended
        shown = "under way" if span.ended is None else "no verdict" if span.score is None else f"score {span.score:.2f}"
        rows.append(
            GanttRow(
                span=span,
                x=round(span.began / total * 100, 2),
                width=round(max((end - span.began) / total * 100, 0.4), 2),
                y=number * 22,
                says=places(span.says),
                asks=places(span.asks),
                title=f"{span.test_id}: tokens {span.began:,.0f} to {end:,.0f}, {shown}",
            )
        )
    return rows
