"""Reads the number that a reply gives as its answer, and distances with directions: `three`, `3 km north`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from themis.core.json_repair import parse_json
from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade
from themis.memory.scoring.languages import translate
from themis.memory.scoring.prominence import is_prominent
from themis.memory.scoring.words import find_correction, fold, shorten


def grade_number(reply: str, expected: float, *, tolerance: float = 0.0, unit: str = "") -> Grade:
    """1 if the number that the reply settles on lies within the tolerance of the expected one."""
    given = parse_number(reply, unit)
    allowed = f"{expected:g}" if not tolerance else f"{expected:g} ± {tolerance:g}"
    if given is None and (_leaves_open(reply, expected) or _is_prominent(reply, expected)):
        return Grade.failure(f"it is not clear whether this gives {allowed}: {shorten(reply)}")
    if given is None:
        return Grade(0.0, (f"expected the number {allowed}, found none or several in: {shorten(reply)}",))
    if abs(given - expected) > tolerance and _is_prominent(reply, expected):
        return Grade.failure(f"it is not clear whether this gives {allowed} or {given:g}: {shorten(reply)}")
    return Grade.when(abs(given - expected) <= tolerance, f"expected {allowed}, got {given:g}")


def _is_prominent(reply: str, expected: float) -> bool:
    """Whether the number stands where answers stand, dates and the like apart."""
    text = remove_non_answers(reply)
    return is_prominent(text, f"{expected:g}", _FIGURES.findall(text))


def _leaves_open(reply: str, expected: float) -> bool:
    """Whether the reply gives a span that holds the number, or the number for one case out of two."""
    text = to_figures(reply)
    if _CLUELESS.search(text):
        return False
    if _WORDED.search(text) and len(text.split()) <= _FEW_WORDS:
        return True
    spans = [sorted((float(first), float(last))) for first, last in _NUMBER_SPAN.findall(text)]
    if any(low <= expected <= high for low, high in spans):
        return True
    return any(expected in (float(first), float(last)) for first, last in _IN_ONE_CASE.findall(text))


_CLUELESS = lazy_pattern(r"(?:n't|\bnot|\bnever) (?:know|recall|remember|tell|told|sure|said|say|mention)|\bno idea\b")
# A number in words that are not read here.
_WORDED = lazy_pattern(r"\b(?:dozen|hundred|thousand|[ivxl]{2,}|\w{3,}zig|vingt\w*|veint\w+|trent\w*)\b")
_FEW_WORDS = 6
_NUMBER_SPAN = lazy_pattern(r"\b(?:between|from)? ?(\d{1,9}) ?(?:and|to|–|-|until) ?(\d{1,9})\b(?= (?!=)|\W*\Z)")
_IN_ONE_CASE = lazy_pattern(
    r"\b(\d{1,9})\b[^.!?\n]{0,40}\b(?:or|unless)\b (?:\w{1,12} ){0,3}(\d{1,9})\b[^.!?\n]{0,30}\bif\b"
)


def parse_number(reply: str, unit: str = "") -> float | None:
    """The only number of a reply, in figures or English words up to ninety-nine; None where there is none or several.

    Of several it is the one after a correction, or else the only one outside brackets, in bold, called the total,
    concluded with, or of the `unit` that was asked for. Dates, ordinals, numbered lines and what is denied (`not 3`, `more
    than 3`, `3 or 4`) do not count.
    """
    try:
        parsed = parse_json(reply)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and len(parsed) == 1:
        parsed = next(iter(parsed.values()))
        if not isinstance(parsed, int | float):
            return _single_value(_FIGURES.findall(to_figures(parsed))) if isinstance(parsed, str) else None
    if isinstance(parsed, int | float) and not isinstance(parsed, bool) and abs(parsed) < _TOO_LARGE:
        return float(parsed)
    text = remove_non_answers(reply)
    # A number that held before is no answer, unless there is no other.
    text = current if _FIGURES.search(current := _PAST.sub(" ", text)) else text
    text = text if _FIGURES.search(text) else to_figures(translate(text))
    for part in (find_correction(text), text):
        for stated in _list_readings(part, unit):
            if (number := _single_value(stated)) is not None:
                return number
    return _find_sum([float(figures.replace(",", "")) for figures in _FIGURES.findall(text)])


def _find_sum(numbers: Sequence[float]) -> float | None:
    """The first or the last number if it is the sum of all the others, of which there are at least two."""
    if len(numbers) > 2:
        if numbers[0] == math.fsum(numbers[1:]):
            return numbers[0]
        if numbers[-1] == math.fsum(numbers[:-1]):
            return numbers[-1]
    return None


def parse_unit(question: str) -> str:
    """What a question wants to be counted: `times` in `how many times`."""
    asked = re.search(r"\bhow many (?!of\b)(\w+)", fold(question))
    return asked[1] if asked else ""


def remove_non_answers(reply: str) -> str:
    """The reply in figures, without the numbers that cannot be its answer."""
    return _NO_ANSWER.sub(" ", _SHARE.sub(r"\1 ", _ADDENDS.sub(r" = ", to_figures(reply))))


def parse_count(value: object) -> int | None:
    """A count as JSON may hold it: 2, 2.0, "2", "two" or "2 jars"."""
    if isinstance(value, str):
        counted = re.fullmatch(r"\s*(\d{1,9})(?: ?[a-z×]{1,12})?\s*", to_figures(value), re.ASCII)
        return int(counted[1]) if counted else _UNITS.get(value.strip().lower())
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value // 1:
        return None
    return int(value) if abs(value) < _TOO_LARGE else None


def to_figures(text: str) -> str:
    """The folded text with number words written in figures, except `one`, which is a pronoun more often."""

    def figures(match: re.Match[str]) -> str:
        return str(_TENS.get(match["tens"], 0) + _UNITS.get(match["unit"] or match["alone"], 0))

    return _NUMBER_WORDS.sub(figures, fold(text))


def write_years(text: str) -> str:
    """The folded text with years in words written in figures.

    >>> write_years("Eighteen forty-six")
    '1846'
    """
    return _YEAR_IN_TWO.sub(lambda year: f"{year[1]}{int(year[2]):02}", to_figures(text.replace("hundred and ", "")))


_YEAR_IN_TWO = lazy_pattern(r"\b(1[0-9]|20)[ -](?:oh[ -]|hundred )?(\d{1,2})\b(?! ?(?:km|days|%))")


def _list_readings(text: str, unit: str) -> tuple[list[str], ...]:
    """What the answer might be, the plainest way of giving it first."""
    return (
        _FIGURES.findall(text),
        _FIGURES.findall(_BRACKETS.sub(" ", text)),
        _FIGURES.findall(_remove_line_numbers(text)),
        _BOLD.findall(text),
        [before or after for before, after in _TOTAL.findall(text)],
        _LEFT_AT_LAST.findall(text)[-1:],
        _FIRST_OF_ALL.findall(text),
        # Whoever concludes with several numbers has not concluded.
        [*_LAST.findall(text[-200:]), *(_STATED.findall(text) if _LAST.search(text[-200:]) else [])],
        re.findall(rf"(?<![\w.])(\d{{1,12}}) {re.escape(unit)}\b", text) if unit and " or " not in text else [],
    )


def _remove_line_numbers(text: str) -> str:
    """The text without the numbers before its lines; a single one that is no 1 opens a sentence: `Four. All in March.`"""
    numbers = _LINE_NUMBER.findall(text)
    return text if len(numbers) == 1 and not numbers[0].strip().startswith("1") else _LINE_NUMBER.sub(" ", text)


def _single_value(found: list[str]) -> float | None:
    values = {float(figures.replace(",", "")) for figures in found}
    return values.pop() if len(values) == 1 else None


_TOO_LARGE = 10**15
# `... so it's 32.` and `That leaves 3 with umbrellas.` as the last that is said, `11 – that is 6 and 5` as the first.
_LEFT_AT_LAST = lazy_pattern(
    r"(?<=[.!?;:,] )(?:(?:so|hence|thus|therefore) (?:it's|it is|that's|that is|that makes|i get)|(?:that|which) leaves)"
    r" (?:just |only )?(\d{1,9})\b(?=[^\d]*\Z)"
)
_FIRST_OF_ALL = lazy_pattern(r"\A\W{0,4}(\d{1,9})(?= ?[–—:] | - | \(|[.!] )")
_FIGURES = lazy_pattern(
    r"(?<![\w.,])-?\d{1,3}(?:,\d{3}){1,3}(?![\w,])|(?<![\w.])-?\d{1,12}(?:\.\d{1,6})?(?![\d]|[.,]\d)"
)  # fmt: skip
_MONTHS = (
    "january|february|march|april|may(?! (?:be|have|not|well))|june|july|august|september|october|november|december"
)
_NO_ANSWER = lazy_pattern(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?,? (?:and )?){{0,12}}\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})\b"
    rf"|\b(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?\b"
    r"|\b\d{1,12}(?:st|nd|rd|th)\b|\b(?:step|report|session|chapter) \d{1,4}\b"
    r"|\b(?:not|n't|never|than|except|but not|at least|at most) (?:(?:option|exactly|just) )?-?\d[\d.,]{0,15}"
    r"|\b\d{1,12} ?(?:or|to|–|/) ?(?:perhaps |maybe )?\d{1,12}\b|\bbetween \d{1,12} and \d{1,12}\b"
    r"|\b\d{1,12} is (?:wrong|incorrect|not)\b|\b(?:anything|everything|all) but \d{1,12}\b"
)
# `9 + 12 = 21` and `9 and 12, which add up to 21` say 21.
_ADDENDS = lazy_pattern(
    r"(?<![\w.])\d{1,9}(?: ?\([^()\n]{1,40}\)| [a-z]{1,20}){0,3}"
    r"(?:,? ?(?:\+|\bplus\b|\band\b|&|,) ?\d{1,9}(?: ?\([^()\n]{1,40}\)| [a-z]{1,20}){0,3}?){1,30}[ ,]{0,2}"
    r"(?:=|(?:\b(?:which|that|and|they|together) ){0,2}\b(?:makes?|adds? up to|gives?|is|comes? to|sums? to|totals?)\b)"
)
_PAST = lazy_pattern(
    r"\b(?:it was|used to be|originally|formerly|previously|initially|at first|before that)(?: (?:it was|just|only|you said))?"
    r"[ :,]{1,3}-?\d[\d.,]{0,15}"
    r"|\bused to (?:say|read|have|give) (?:just |only )?-?\d[\d.,]{0,15}"
    r"|(?<![\w.])-?\d{1,12}(?: [a-z]{1,12})? (?:used to be|was (?:the )?(?:right|true|valid|correct|old|former"
    r"|what it was|before)"
    r"|(?:is|was) (?:out of date|outdated|obsolete|superseded|the old|the former|no longer)|no longer|before (?:that|the)"
    r"|(?:is|was) what (?:it|you|they) (?:was|were|said|had|used))\b"
    r"|\b(?:old|former|previous|earlier|original) (?:value|number|figure|count|one)?[ :]{0,3}(?:was |is |of )?-?\d[\d.,]{0,15}"
    r"|\b(?:instead of|rather than|replac(?:es|ed|ing)) (?:the )?-?\d[\d.,]{0,15}"
)
# `3 of your 4 reports` says 3.
_SHARE = lazy_pattern(r"\b(\d{1,12}) (?:out )?of (?:\w{1,12} ){0,3}\d{1,12}\b")
_BRACKETS = lazy_pattern(r"\([^()]{0,200}\)")
_LINE_NUMBER = lazy_pattern(r"^\s{0,10}\d{1,3}[.)](?=\s)", re.MULTILINE)
_BOLD = lazy_pattern(r"\*\*\s?(\d{1,12})\b[^*\n]{0,40}\*\*")
_TOTAL = lazy_pattern(
    r"(?:=|\b(?:total|altogether|in all|sum is|makes|gives|comes? to|adds? up to|overall|answer)\b)[^\d\n]{0,30}(\d{1,12})\b"
    r"|\b(\d{1,12})\b[^\d\n.]{0,30}\b(?:in total|altogether|in all|overall)\b"
)
_STATING = r"(?:\b(?:so|thus|therefore|hence|that is|that's|which is|is|equals|leaves|choose|pick|go with|get|count)\b|→|⇒|[-=]>)"
_STATED = lazy_pattern(rf"{_STATING}\W{{0,6}}(?:option )?(\d{{1,12}})\b")
_LAST = lazy_pattern(
    rf"(?:{_STATING}|:|\n\s?\n)\W{{0,6}}(?:option )?(\d{{1,12}})(?: \w{{1,20}}){{0,3}}\W{{0,5}}\Z"
)  # fmt: skip
_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_NUMBER_WORDS = lazy_pattern(
    rf"\b(?P<tens>{'|'.join(_TENS)})(?:[\s-](?P<unit>{'|'.join(list(_UNITS)[1:10])}))?\b"
    rf"|\b(?P<alone>{'|'.join(word for word in _UNITS if word != 'one')}"
    r"|(?<=\A)one(?=\W*\Z)|(?<=\bnumber )one|(?<=\boption )one|(?<=\bnumber is )one(?=\W)|(?<=\banswer is )one(?=\W*\Z|:))\b"
)


# --- distances with directions ----------------------------------------------------------------------------------------


def read_ways(text: str) -> list[tuple[float, str]]:
    """Kilometres and direction of every leg, in the order of the text.

    A text with one distance and one direction gives one way, however far apart they stand.
    """
    text = _METRES.sub(lambda metres: f"{int(metres[1]) / 1000:g} km", _ONE.sub("1 ", to_figures(translate(text))))
    ways = [
        (float(way["km1"] or way["km2"]), way["to1"] or way["to2"] or _LETTERS[way["letter"]])
        for way in _WAY.finditer(text)
        if not way["denied"]
    ]
    if ways or _WAY.search(text):
        return ways
    distances, directions = _DISTANCE.findall(text), _DIRECTION.findall(text)
    return [(float(distances[0]), directions[0])] if len(distances) == len(directions) == 1 else []


def read_distances(text: str) -> tuple[list[float], list[str]]:
    """All kilometres of a text and all its directions, each in order.

    >>> read_distances("Walk south; after 2 km turn east for 3 km.")
    ([2.0, 3.0], ['south', 'east'])
    """
    text = _ONE.sub("1 ", to_figures(translate(text)))
    return [float(km) for km in _DISTANCE.findall(text)], _DIRECTION.findall(text)


def count_directions(text: str) -> int:
    """How many times a text names a direction, be it by turning to a side."""
    text = to_figures(translate(text))
    return len(_DIRECTION.findall(text)) + len(_SIDE.findall(text))


_KM = r"(?<![-\d.])(?P<{0}>\d{{1,4}}(?:\.\d{{1,3}})?)\s?(?:km|kms|kilomet(?:re|er)s?)\b"
_TO = r"\b(?:due\s)?(?P<{0}>north|south|east|west)(?:wards?|erly|ern)?\b(?![-\s]?(?:north|south|east|west)\b)"
_GAP = r"[\s,*:(|]{1,4}"
_BETWEEN_KM_AND_TO = (
    r"(?:(?:to|towards?|in|due|straight|the|a|direction|heading|of|nach|richtung|vers|le|l|au|al|hacia|verso|para)"
    rf"{_GAP}){{0,4}}"
)
_BETWEEN_TO_AND_KM = (
    r"(?:(?:for|by|about|exactly|direction|a|an|another|additional|further|extra|more|distance|of|and|go|walk|travel|continue|drive"
    rf"|head|from(?: the)? \w{{1,20}}){_GAP}){{0,4}}"
)
_WAY = lazy_pattern(
    rf"(?P<denied>\bnot\s)?(?:{_KM.format('km1')}[\s,*|]{{0,4}}"
    rf"(?:{_BETWEEN_KM_AND_TO}{_TO.format('to1')}|(?P<letter>[nesw])\b)"
    rf"|{_TO.format('to2')}[\s,:*(|]{{0,4}}{_BETWEEN_TO_AND_KM}{_KM.format('km2')})"
)
_ONE = lazy_pattern(r"\b(?:one|another|an?)(?: single| further| more)? (?=km|kilomet)")
_METRES = lazy_pattern(r"(?<![\d.,])(\d{3,5}) ?(?:m|met(?:re|er)s?)\b")
_DISTANCE, _DIRECTION = lazy_pattern(_KM.format("km")), lazy_pattern(_TO.format("to"))
_SIDE = lazy_pattern(r"\b(?:left|right|straight|ahead|up|down)\b")
_LETTERS = {"n": "north", "e": "east", "s": "south", "w": "west"}
