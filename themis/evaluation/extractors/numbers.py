"""Numbers as people and models write them, with their exact values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import last_of, shorten, text_of


@dataclass(frozen=True)
class LastNumberExtractor:
    """The last number in the text, as plain digits: separators, currency, percent signs and units are left out.

    >>> LastNumberExtractor().extract("So 3 x 400 is $1,200.00 in all.")
    '1200'
    """

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        last = last_of(find_numbers(text))
        if last is None:
            raise FieldExtractionError(f"no number in {shorten(text)}")
        return str(last)


@dataclass(frozen=True)
class WrittenNumber:
    """A number with its exact value, and whether a percent sign followed it."""

    value: Fraction
    percent: bool = False

    def __str__(self) -> str:
        numerator, denominator = self.value.as_integer_ratio()
        twos_and_fives = denominator
        for prime in (2, 5):
            while twos_and_fives % prime == 0:
                twos_and_fives //= prime
        if twos_and_fives > 1:
            return f"{numerator}/{denominator}"
        places = max(denominator.bit_length(), 1)
        digits = f"{abs(numerator) * 10**places // denominator:0{places + 1}d}"
        sign = "-" if numerator < 0 else ""
        return sign + f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


def find_numbers(text: str) -> Iterator[WrittenNumber]:
    """Every number, from left to right; digits that are part of a word or an exponent (x2, m^2, H2O) are not numbers."""
    for found in _NUMBER.finditer(_plain_digits(text)):
        value = _exact_value(found)
        if value is not None:
            yield WrittenNumber(value, percent=found["percent"] is not None)


_NUMBER = re.compile(
    r"""
    (?<![A-Za-z0-9_^.])                                           # not inside a word, an exponent or a version
    (?P<sign>(?<![)\]])[-+])? (?:[$€£¥₹]\s?)? (?P<inner_sign>-)?
    (?P<digits>(?:\d{1,3}(?:[,'_\u00a0\u2009\u202f]\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)
    (?:e(?P<exponent>[-+]?\d+)(?!\w))?
    (?:(?:\^|\*\*)\{?(?P<raised>\d+)\}?(?P<tower>(?:\^|\*\*)\S*)?)?
    (?:\s*(?:×|x|\*|·)\s*10\s*(?:\^|\*\*)\s*\{?(?P<power>-?\d+)\}?)?
    (?:\s*/\s*(?P<denominator>\d+(?:\.\d+)?)(?![\w/]))?
    (?P<percent>\s*(?:%|percent\b|per\scent\b|pct\b))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER_TYPESETTING = [
    (re.compile(r"\\[dt]?frac\s?\{\s*(-?\d+)\s*\}\s?\{\s*(\d+)\s*\}"), r"\1/\2"),
    (re.compile(r"\{,\}|,\\!"), ","),
    (re.compile(r"\\[!,;:]"), ""),
    (re.compile(r"\\(?:times|cdot)"), "×"),
    (re.compile(r"\\([$%])"), r"\1"),
    (re.compile("[−‐‑–]"), "-"),
]
_MAX_DIGITS = 400  # of a number, whether written out or by an exponent


def _plain_digits(text: str) -> str:
    for pattern, replacement in _NUMBER_TYPESETTING:
        text = pattern.sub(replacement, text)
    return text


def _exact_value(found: re.Match[str]) -> Fraction | None:
    """Exact; None for numbers beyond all use, which would only cost time."""
    digits = re.sub(r"[^\d.]", "", found["digits"])
    denominator = found["denominator"] or "1"
    if found["tower"] or max(len(found[name] or "") for name in ("exponent", "power", "raised")) > 6:
        return None
    exponent = int(found["exponent"] or 0) + int(found["power"] or 0)
    raised = int(found["raised"] or 1)
    if max(len(digits) * raised, len(denominator), abs(exponent)) > _MAX_DIGITS or not Fraction(denominator):
        return None
    negative = "-" in ((found["sign"] or "") + (found["inner_sign"] or ""))
    return (-1 if negative else 1) * Fraction(digits) ** raised * Fraction(10) ** exponent / Fraction(denominator)
