"""Questions whose answers are computed, from ranges so wide that hardly any is ever asked twice."""

from __future__ import annotations

import datetime

from themis.memory.filler.facts import UNITS, WEEKDAYS, format_roman
from themis.memory.filler.grammar import Draw
from themis.memory.tests.word_lists import MONTHS


def draw_pair(draw: Draw) -> tuple[str, str]:
    """A question and its answer."""
    question, answer = _FAMILIES[int(draw() * len(_FAMILIES))](draw)
    return question, str(answer)


def _number(draw: Draw, first: int, last: int) -> int:
    return first + int(draw() * (last - first + 1))


def _product(draw: Draw) -> tuple[str, object]:
    first, second = _number(draw, 112, 9_899), _number(draw, 12, 989)
    return f"What is {first} times {second}?", first * second


def _remainder(draw: Draw) -> tuple[str, object]:
    first, second = _number(draw, 1_000, 98_999), _number(draw, 12, 989)
    return f"What is left over when {first} is divided by {second}?", first % second


def _binary(draw: Draw) -> tuple[str, object]:
    number = _number(draw, 1_000_000, 260_000_000)
    return f"Which number is written {number:b} in binary?", number


def _roman(draw: Draw) -> tuple[str, object]:
    first, second = _number(draw, 14, 3_999), _number(draw, 12, 989)
    return f"What is {format_roman(first)} plus {second}, in figures?", first + second


def _weekday(draw: Draw) -> tuple[str, object]:
    day = datetime.date(1601, 1, 1) + datetime.timedelta(days=int(draw() * 290_000))
    later = _number(draw, 2, 90)
    shown = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    return (
        f"Which weekday is {later} days after {shown}?",
        WEEKDAYS[(day + datetime.timedelta(days=later)).weekday()],
    )


def _seconds(draw: Draw) -> tuple[str, object]:
    hours, minutes, seconds = _number(draw, 2, 98_999), _number(draw, 2, 59), _number(draw, 2, 59)
    return (
        f"How many seconds are {hours} hours, {minutes} minutes and {seconds} seconds?",
        (hours * 60 + minutes) * 60 + seconds,
    )


def _units(draw: Draw) -> tuple[str, object]:
    larger, smaller, factor = UNITS[int(draw() * len(UNITS))]
    amount, rest = _number(draw, 2, 9_999), _number(draw, 2, 989)
    return f"How many {smaller} are {amount} {larger} and {rest} {smaller}?", amount * factor + rest


_FAMILIES = (_product, _remainder, _binary, _roman, _weekday, _seconds, _units)
