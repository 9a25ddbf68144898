"""What every figure is drawn with: escaped SVG parts, round ticks, short numbers.

All text goes through `Markup.format`, which escapes it. Colours are classes that the page's style sheet knows for light and
dark; an agent's colour is its place in the list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta

from markupsafe import Markup

__all__ = ["COLOURS", "at", "colour", "figure", "label", "round_ticks", "short_duration", "short_tokens"]

COLOURS = 8


def figure(width: int | str, height: int, title: str, parts: Iterable[Markup], *, fluid: bool = False) -> Markup:
    """An SVG element. A fluid one has places in percent and takes the width of the page, with letters of one size."""
    frame = (
        Markup('<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" role="img">').format(width, height)
        if fluid
        else Markup('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img">').format(width, height)
    )
    return frame + Markup("<title>{}</title>{}</svg>").format(title, Markup("\n").join(parts))


def label(x: float | str, y: float, text: str, *, anchor: str = "middle", kind: str = "") -> Markup:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, x if isinstance(x, str) else at(x), at(y), anchor, text
    )


def at(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def colour(index: int) -> str:
    return f"c{index % COLOURS}"


def round_ticks(high: float, most: int = 5) -> list[float]:
    """Zero and a few multiples of 1, 2 or 5 times a power of ten, up to `high`."""
    if high <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(high / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * most >= high * (1 - 1e-9))
    return [step * number for number in range(math.floor(high / step + 1e-9) + 1)]


def short_tokens(tokens: float) -> str:
    if tokens < 1_000:
        return f"{tokens:.0f}"
    if tokens < 1_000_000:
        return f"{tokens / 1_000:.3g}k"
    return f"{tokens / 1_000_000:.3g}M"


def short_duration(duration: timedelta) -> str:
    seconds = duration.total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
