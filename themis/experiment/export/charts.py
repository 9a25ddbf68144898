"""Charts that a user adds to a report: a metric over some axis of the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from themis.core.registry import nearest
from themis.exceptions import ConfigurationError

__all__ = ["Chart", "ChartPoint", "as_charts"]


@dataclass(frozen=True)
class ChartPoint:
    """One value of a chart; `count` is how many samples it stands for."""

    label: str
    x: float
    value: float
    count: int = 0


@dataclass(frozen=True)
class Chart:
    """A line of points in the order of x."""

    title: str
    points: Sequence[ChartPoint]
    x_label: str = ""
    y_label: str = ""
    metric: str = ""


def as_charts(charts: Iterable[Chart | Mapping[str, Any]] | None) -> list[Chart]:
    """Charts as given, or from dicts of the same fields."""
    return [chart if isinstance(chart, Chart) else _chart(chart) for chart in charts or ()]


def _chart(given: Mapping[str, Any]) -> Chart:
    fields = dict(given)
    points = [
        point if isinstance(point, ChartPoint) else _made(ChartPoint, point, "a chart's point")
        for point in fields.pop("points", ())
    ]
    made: Chart = _made(Chart, {**fields, "points": points}, "a chart")
    return made


def _made(kind: Any, fields: Mapping[str, Any], what: str) -> Any:
    known = list(kind.__dataclass_fields__)
    for name in fields:
        if name not in known:
            raise ConfigurationError(f"{what} has no field {name!r}{nearest(name, known)}; it has {', '.join(known)}")
    try:
        return kind(**fields)
    except TypeError as error:
        raise ConfigurationError(f"{what} needs {', '.join(known)}, got {', '.join(fields) or 'nothing'}") from error
