r"""Whether two expressions are equal, as far as calculating with numbers can tell: most are, or clearly are not.

What cannot be read here, or comes too close to tell, is left to the computer algebra system (`algebra`), which takes a
hundred times as long. Expressions with variables are calculated at a few points, on both sides of zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from themis.evaluation.metrics.algebra import split_list

# Closer than the first they are the same number, further apart than the second they are not; rounded ones lie between.
_SAME = 1e-11
_DIFFERENT = 2e-2
# For variables: no special values, and each variable gets others.
_POINTS = (0.7310585786, 2.2360679775, -1.6487212707, -3.1622776602)
_LONGEST = 300

Number = Fraction | float


def equal_in_numbers(expected: str, answer: str) -> bool | None:
    r"""Whether two expressions in LaTeX are equal; None where numbers do not tell.

    >>> equal_in_numbers(r"\frac{1}{2}", "0.5"), equal_in_numbers("x^2-1", "(x-1)(x+1)"), equal_in_numbers(r"\sqrt{2}", "5")
    (True, True, False)
    """
    if max(len(expected), len(answer)) > _LONGEST or "%" in expected + answer:
        return None
    try:
        return _equal(*(_plain(side) for side in (expected, answer)))
    except (_Unreadable, ArithmeticError, ValueError, RecursionError):
        return None


def _plain(latex: str) -> str:
    return re.sub(r"\s+", " ", _LEFT_OUT.sub(" ", latex)).strip()


_LEFT_OUT = re.compile(r"\\(?:left|right|[,;:! ]|q?quad(?![A-Za-z])|displaystyle)|~")


def _equal(expected: str, answer: str) -> bool | None:
    if "=" in expected or "=" in answer:
        return _equal_equations(expected, answer)
    brackets = _BRACKETS.fullmatch(expected), _BRACKETS.fullmatch(answer)
    if brackets[0] and brackets[1]:
        return _equal_tuples(*(found for found in brackets if found))
    if brackets[0] or brackets[1] or "," in expected + answer:
        return _equal_lists(expected, answer)
    names = _names(expected)
    if names != _names(answer):
        return None
    return _equal_at_points(expected, answer, names) if names else _compare(_value(expected), _value(answer))


def _equal_equations(expected: str, answer: str) -> bool | None:
    """`x = 5` and 5, `y = 2x` and `y = 2x`, or a calculation and what it comes to."""
    ours, theirs = (side.split("=") for side in (expected, answer))
    if len(ours) == 1 and not _names(ours[0]) and not _BRACKETS.fullmatch(ours[0]):
        value = _value(ours[0])
        equal = _compare(value, _value(theirs[-1]))
        is_named = len(theirs) == 2 and _VARIABLE.fullmatch(theirs[0].strip())
        return equal if equal or is_named else None
    if len(ours) == 1 and len(theirs) == 2 and _VARIABLE.fullmatch(theirs[0].strip()):
        return _equal(ours[0].strip(), theirs[1].strip()) or None
    if len(ours) == len(theirs) == 2 and ours[0].strip() == theirs[0].strip() and _VARIABLE.fullmatch(ours[0].strip()):
        return _equal(ours[1].strip(), theirs[1].strip())
    return None


_VARIABLE = re.compile(r"[A-Za-z](?:_\{?\w\}?|\s?\(\s?[a-z]\s?\))?")
_BRACKETS = re.compile(
    r"(?P<opens>[(\[]|\\\{)(?P<inside>[^()\[\]{}]*(?:\{[^()\[\]]*\}[^()\[\]{}]*)*,[^()\[\]]*?)(?P<closes>[)\]]|\\\})"
)


def _equal_tuples(expected: re.Match[str], answer: re.Match[str]) -> bool | None:
    if (expected["opens"], expected["closes"]) != (answer["opens"], answer["closes"]):
        return None
    return _equal_parts(expected["inside"], answer["inside"], ordered=expected["opens"] != r"\{")


def _equal_lists(expected: str, answer: str) -> bool | None:
    """Solutions in any order, with or without braces; what looks like a number with a decimal comma is none of them."""
    inside = [_BRACES.sub(r"\1", side) for side in (expected, answer)]
    if any("(" in side or "[" in side or _DECIMAL_COMMA.fullmatch(side) for side in inside):
        return None
    return _equal_parts(inside[0], inside[1], ordered=False) or None


_BRACES = re.compile(r"\A\\\{(.*)\\\}\Z")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")


def _equal_parts(expected: str, answer: str, *, ordered: bool) -> bool | None:
    ours, theirs = split_list(expected), split_list(answer)
    if len(ours) != len(theirs):
        return None
    if any(_names(part) for part in (*ours, *theirs)):
        return None
    values = [[_value(part) for part in side] for side in (ours, theirs)]
    if not ordered:
        values = [sorted(side) for side in values]
    equal = [_compare(one, other) for one, other in zip(*values, strict=True)]
    return None if None in equal else all(equal)


def _equal_at_points(expected: str, answer: str, names: Sequence[str]) -> bool | None:
    equal = []
    for place in range(len(_POINTS)):
        at = {name: _POINTS[(place + other) % len(_POINTS)] + other / 7 for other, name in enumerate(names)}
        equal.append(_compare(_value(expected, at), _value(answer, at)))
    if all(one is True for one in equal):
        return True
    # What differs by a rounded coefficient differs little somewhere.
    return False if any(one is False for one in equal) else None


def _compare(one: Number, other: Number) -> bool | None:
    if isinstance(one, Fraction) and isinstance(other, Fraction) and one == other:
        return True
    difference, size = abs(float(one) - float(other)), max(abs(float(one)), abs(float(other)))
    if not math.isfinite(difference):
        return None
    if difference <= _SAME * size:
        return True
    return False if difference > _DIFFERENT * size else None


# --- reading ----------------------------------------------------------------------------------------------------------


class _Unreadable(Exception):
    """More than numbers, variables and the usual functions."""


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<command>\\[A-Za-z]+)|(?P<letter>[A-Za-z])|(?P<sign>[-+*/^(){}!]))"
)
_FUNCTIONS = {
    r"\sin": math.sin, r"\cos": math.cos, r"\tan": math.tan, r"\ln": math.log, r"\arctan": math.atan, r"\arcsin": math.asin,
    r"\arccos": math.acos, r"\exp": math.exp,
}  # fmt: skip
_CONSTANTS = {r"\pi": math.pi, "e": math.e}
_GREEK = re.compile(r"\\(?:alpha|beta|gamma|delta|theta|lambda|mu|phi|omega|varphi)")
# The imaginary unit, and the d of a differential.
_NO_VARIABLES = frozenset("id")
_LARGEST_FACTORIAL = 40
_LARGEST_POWER = 400
_LARGEST_POWER_BITS = 10_000


def _names(latex: str) -> list[str]:
    """The variables of an expression, in order."""
    bare = re.sub(r"\\[A-Za-z]+", lambda found: found[0] if _GREEK.fullmatch(found[0]) else " ", latex)
    names = sorted(
        {
            *re.findall(r"\\[a-z]+", bare),
            *re.findall(r"(?<![\\A-Za-z])[A-Za-z](?![A-Za-z])|[A-Za-z]", re.sub(r"\\[a-z]+", " ", bare)),
        }
    )
    return [name for name in names if name not in _CONSTANTS]


def _value(latex: str, at: Mapping[str, float] | None = None) -> Number:
    return _Reader(latex, at or {}).read()


class _Reader:
    """Recursive descent over the tokens of one expression, which it calculates as it reads."""

    def __init__(self, latex: str, at: Mapping[str, float]) -> None:
        self._tokens = _tokens(latex)
        self._place = 0
        self._at = at

    def read(self) -> Number:
        value = self._sum()
        if self._next():
            raise _Unreadable
        return value

    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, expected: str | None = None) -> str:
        token = self._next()
        if not token or (expected is not None and token != expected):
            raise _Unreadable
        self._place += 1
        return token

    def _sum(self) -> Number:
        value = self._product()
        while self._next() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        return value

    def _product(self) -> Number:
        if self._next() in ("+", "-"):
            return self._product() if self._take() == "+" else -self._product()
        is_integer = self._next().isdigit()
        value = self._power()
        if is_integer and self._next() == r"\frac":
            if not isinstance(value, Fraction) or value.denominator != 1:
                raise _Unreadable
            part = self._power()
            if not isinstance(part, Fraction) or not 0 < part < 1:
                raise _Unreadable
            value = value + part  # a mixed number
        while token := self._next():
            if token in ("*", r"\cdot", r"\times"):
                self._take()
                value = value * self._signed_power()
            elif token in ("/", r"\div"):
                self._take()
                value = _divide(value, self._signed_power())
            elif token in ("+", "-", ")", "}"):
                break
            elif token[0].isdigit():
                raise _Unreadable  # two numbers side by side
            else:
                value = value * self._power()
        return value

    def _signed_power(self) -> Number:
        if self._next() == "-":
            self._take()
            return -self._power()
        return self._power()

    def _power(self) -> Number:
        value = self._atom()
        while self._next() in ("!", "^"):
            if self._take() == "!":
                value = _factorial(value)
                continue
            value = _raise(value, self._exponent())
        return value

    def _exponent(self) -> Number:
        if self._next() == "{":
            return self._braced()
        token = self._next()
        if token[:1].isdigit() and len(token) > 1:
            raise _Unreadable  # 2^10 means 2^1 0 to some, and 1024 to others
        return self._atom()

    def _braced(self) -> Number:
        self._take("{")
        value = self._sum()
        self._take("}")
        return value

    def _argument(self) -> Number:
        r"""Of \frac or \sqrt: in braces, or one digit or letter."""
        token = self._next()
        if token == "{":
            return self._braced()
        if token.isdigit():
            self._tokens[self._place : self._place + 1] = list(token)
            return Fraction(self._take())
        return self._atom()

    def _atom(self) -> Number:
        token = self._take()
        if token[0].isdigit() or token[0] == ".":
            return Fraction(token)
        if token in self._at:
            return self._at[token]
        if token in _CONSTANTS:
            return _CONSTANTS[token]
        if token in ("(", "{"):
            value = self._sum()
            self._take(")" if token == "(" else "}")
            return value
        if token == r"\frac":
            return _divide(self._argument(), self._argument())
        if token == r"\sqrt":
            return math.sqrt(self._argument())
        if token == r"\binom":
            return _choose(self._argument(), self._argument())
        if token in _FUNCTIONS and self._next() not in ("^", ""):
            return _FUNCTIONS[token](self._function_argument())
        raise _Unreadable

    def _function_argument(self) -> Number:
        r"""In brackets, or a product without them: \sin 2x."""
        if self._next() in ("(", "{"):
            return self._atom()
        value = self._power()
        while self._next() and (self._next() in self._at or self._next() in _CONSTANTS):
            value = value * self._power()
        return value


def _tokens(latex: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    latex = latex.rstrip()
    while position < len(latex):
        found = _TOKEN.match(latex, position)
        if not found:
            raise _Unreadable
        tokens.append(found.group().strip())
        position = found.end()
    if not tokens or any(token in _NO_VARIABLES for token in tokens):
        raise _Unreadable
    return tokens


def _divide(one: Number, other: Number) -> Number:
    return one / other if isinstance(one, Fraction) == isinstance(other, Fraction) else float(one) / float(other)


def _raise(base: Number, exponent: Number) -> Number:
    if abs(float(exponent)) > _LARGEST_POWER:
        raise _Unreadable
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        if isinstance(base, Fraction):
            digits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if digits * abs(exponent.numerator) > _LARGEST_POWER_BITS:
                raise _Unreadable
            return base**exponent.numerator
        return math.pow(base, exponent.numerator)
    return math.pow(base, exponent)  # which refuses roots of negative numbers


def _factorial(value: Number) -> Number:
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= _LARGEST_FACTORIAL:
        raise _Unreadable
    return Fraction(math.factorial(int(value)))


def _choose(one: Number, other: Number) -> Number:
    if not isinstance(one, Fraction) or not isinstance(other, Fraction):
        raise _Unreadable
    if one.denominator != 1 or other.denominator != 1 or not 0 <= other <= one <= _LARGEST_POWER:
        raise _Unreadable
    return Fraction(math.comb(one.numerator, other.numerator))
