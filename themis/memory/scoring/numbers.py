"""Reads the number that a reply gives as its answer."""

from __future__ import annotations

import re

from themis.core.json_repair import parse_json
from themis.memory.actions import Grade
from themis.memory.scoring.words import folded, shortened

__all__ = ["grade_number", "in_figures", "numbers"]


def grade_number(reply: str, expected: float, *, tolerance: float = 0.0) -> Grade:
    """1 if the number that the reply settles on lies within the tolerance of the expected one."""
    given = _settled(reply)
    allowed = f"{expected:g}" if not tolerance else f"{expected:g} ± {tolerance:g}"
    if given is None:
        return Grade(0.0, (f"expected the number {allowed}, found none or several in: {shortened(reply)}",))
    return Grade.when(abs(given - expected) <= tolerance, f"expected {allowed}, got {given:g}")


def numbers(text: str) -> list[float]:
    """The numbers of a text in order, in figures or in English words up to ninety-nine.

    The word `one` is left out: it is a pronoun more often than a number.
    """
    return [float(match.group().replace(",", "")) for match in _FIGURES.finditer(in_figures(text))]


def _settled(reply: str) -> float | None:
    """The only number; else the one that the reply calls its total or sets in bold; else None."""
    try:
        parsed = parse_json(reply)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and len(parsed) == 1:
        parsed = next(iter(parsed.values()))
        if not isinstance(parsed, int | float):
            return _only(numbers(parsed)) if isinstance(parsed, str) else None
    if isinstance(parsed, int | float) and not isinstance(parsed, bool) and abs(parsed) < _TOO_LARGE:
        return float(parsed)
    text = in_figures(reply)
    for stated in (_FIGURES.findall(text), _BOLD.findall(text), _total(text)):
        if (number := _only([float(figures.replace(",", "")) for figures in stated])) is not None:
            return number
    return None


def _total(text: str) -> list[str]:
    return [before or after for before, after in _TOTAL.findall(text)]


def _only(found: list[float]) -> float | None:
    return found[0] if found and len(set(found)) == 1 else None


def in_figures(text: str) -> str:
    """The folded text with number words written in figures."""

    def figures(match: re.Match[str]) -> str:
        return str(_TENS.get(match["tens"], 0) + _UNITS.get(match["unit"] or match["alone"], 0))

    return _NUMBER_WORDS.sub(figures, folded(text))


_TOO_LARGE = 10**15
_FIGURES = re.compile(r"(?<![\w.,])-?\d{1,3}(?:,\d{3}){1,3}(?![\w,])|(?<![\w.])-?\d{1,12}(?:\.\d{1,6})?(?![\d]|[.,]\d)")
_BOLD = re.compile(r"\*\*\s*(\d{1,12})\b[^*\n]{0,40}\*\*")
_TOTAL = re.compile(
    r"(?:=|\b(?:total|altogether|in all|sum is|makes|overall|answer)\b)[^\d\n]{0,30}(\d{1,12})\b"
    r"|\b(\d{1,12})\b[^\d\n.]{0,30}\b(?:in total|altogether|in all|overall)\b"
)
_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_NUMBER_WORDS = re.compile(
    rf"\b(?P<tens>{'|'.join(_TENS)})(?:[\s-](?P<unit>{'|'.join(list(_UNITS)[1:10])}))?\b"
    rf"|\b(?P<alone>{'|'.join(word for word in _UNITS if word != 'one')})\b"
)
