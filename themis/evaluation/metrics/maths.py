"""Equality of mathematical expressions, however they are written.

They are compared by math-verify, which is sympy, in a process of its own (`algebra`) that can be stopped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from themis.core.entities import MetricScore
from themis.evaluation.extractors.number_words import find_number_words
from themis.evaluation.extractors.numbers import find_numbers
from themis.evaluation.metrics.algebra import compare, split_list
from themis.evaluation.metrics.arithmetic import equal_in_numbers
from themis.evaluation.metrics.expressions import formal_text, stated_expression, stated_number, states_words
from themis.evaluation.metrics.notation import is_text, set_in_words, to_latex, words_of
from themis.evaluation.metrics.reading import need_package, reference_texts, text_or_none, zero
from themis.evaluation.metrics.sentences import is_prose
from themis.exceptions import MetricError
from themis.interfaces import Metric, Row


@dataclass
class MathVerifyAccuracy(Metric):
    r"""1 if the answer is mathematically equal to a reference: numbers, expressions, sets, intervals, matrices, units.

    In a longer text a formal answer counts (the last \boxed{...}, #### 7, <answer>, "Answer: ..."), else an announced one,
    else the last sentence with a formula or number; of a reference likewise, so that worked solutions can be references.
    Units and prose are left out on both sides. Answers in words (`\text{Tuesday}`) are compared as words.

    Args:
        timeout_seconds: Processor time for one comparison; an answer that takes longer scores 0, with the reason in the
            details.
        name: What the scores are reported as.

    >>> MathVerifyAccuracy().compute(prediction=r"\boxed{\frac{1}{2}}", references=["0.5"]).value
    1.0
    """

    # The work is done in other processes, so judging gains from threads.
    slow: ClassVar[bool] = True

    timeout_seconds: float = 5.0
    name: str = "MathVerifyAccuracy"
    score_range = (0.0, 1.0)
    pass_fail = True

    def __post_init__(self) -> None:
        need_package("math_verify", "math-verify", "math", "the metric math_verify")

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        keys = [self._key(text) for text in reference_texts(self.name, references)]
        text = text_or_none(prediction)
        if text is None:
            return zero(self.name, prediction)
        for key in keys:
            if key.words and states_words(text, key.words):
                return MetricScore(self.name, 1.0, {"answer": key.words})
        expected = [key.latex for key in keys if key.latex]
        answer = stated_expression(text)
        number = stated_number(text) if answer and all(map(_NUMBER.fullmatch, expected)) else None
        answer = number or answer
        found = self._compare(expected, answer)
        if found.value == 0.0 and number and _RESTATED.search(text):
            found = self._compare(expected, stated_expression(text))
        if found.value == 0.0 and answer and any(_counts(latex, answer, text) for latex in expected):
            return MetricScore(self.name, 1.0, {"answer": answer[:_MAX_EXPRESSION]})
        if found.value == 0.0 and _ROUNDED.search(text) and any(_NUMBER.fullmatch(latex) for latex in expected):
            # Of a value that is given exactly and rounded, the reference asks for the rounded one.
            rounded = self._compare(expected, stated_expression(_ROUNDED.sub("=", text)))
            return rounded if rounded.value else found
        return found

    def _compare(self, expected: list[str], answer: str | None) -> MetricScore:
        if answer is None:
            return MetricScore(self.name, 0.0, {"reason": "no mathematical expression in the answer"})
        known = [_equal_at_sight(latex, answer) for latex in expected]
        if True in known or all(equal is False for equal in known):
            return MetricScore(self.name, float(True in known), {"answer": answer[:_MAX_EXPRESSION]})
        if len(answer) > _MAX_EXPRESSION or _ABSURD.search(answer):
            return MetricScore(self.name, 0.0, {"reason": "the expression is too large", "answer": answer[:200]})
        reply = compare(expected, answer, self.timeout_seconds)
        value = float(reply.pop("equal", False) is True)
        return MetricScore(self.name, value, {"answer": answer, **reply})

    def _key(self, text: str) -> _Key:
        key = _read_key(text)
        if not 0 < len(key.words or key.latex or "") <= _MAX_EXPRESSION:
            raise MetricError(
                f"{self.name}: the reference {text!r:.80} holds no expression of up to {_MAX_EXPRESSION} characters"
            )
        return key


@dataclass(frozen=True)
class _Key:
    """What a reference asks for: words, or an expression."""

    words: str | None = None
    latex: str | None = None


_MAX_EXPRESSION = 1_000
# Words without a formula are an answer ("no solution") while they are few, else prose.
_MAX_WORDS = 3
# Exponents of five digits, towers of powers and nested factorials: nobody's answer, and more than a machine can hold.
_ABSURD = re.compile(r"\^\s*\{?\s*-?\d{5,}|(?:\d\s*\^\s*\{?\s*){3,}|\d{5,}\s*\}?\s*!|!\s*\)*!\s*\)*!")


def _read_key(text: str) -> _Key:
    stated = formal_text(text)
    if is_text(stated) and ("\\" in stated or len(stated.split()) <= _MAX_WORDS):
        return _Key(words=stated, latex=set_in_words(words_of(stated)))
    return _Key(latex=stated_expression(text) if is_prose(stated) else to_latex(stated))


def _counts(expected: str, answer: str, text: str) -> bool:
    """Whether a number is asked for, and the answer lists as many as the text says there are: "five points: (0,0), ..."."""
    if not re.fullmatch(r"[1-9]\d?", expected) or expected == "1":
        return False
    head, colon, _ = text.rpartition(":")
    said = (str(number) for number in (*find_numbers(head[-100:]), *find_number_words(head[-100:])))
    return bool(colon) and len(split_list(answer)) == int(expected) and expected in said


def _equal_at_sight(expected: str, answer: str) -> bool | None:
    """Whether two expressions are equal where no algebra is needed to see it, else None."""
    if _compact(expected) == _compact(answer):
        return True
    if "=" in answer and "=" not in expected and len(split_list(answer)) == 1:
        first, last = answer.partition("=")[0], answer.rpartition("=")[2]
        known = set(_LETTER.findall(first)) <= set(_LETTER.findall(expected)) or _A_NAME.fullmatch(first)
        if known and (_compact(expected) == _compact(last) or equal_in_numbers(expected, last)):
            return True  # what a chain of equations comes to
    base = _IN_BASE.fullmatch(expected)
    if base and base[1] == answer:
        return True  # the question asked for it in that base
    if _NUMBER.fullmatch(expected) and _are_several(answer):
        return False
    bare = _without_names(expected), _without_names(answer)
    if bare != (expected, answer) and equal_in_numbers(*bare):
        return True
    answer = _with_parameter_of(expected, answer)
    if (ratio := _is_ratio(expected, answer)) is not None:
        return ratio
    numbers = _NUMBER.fullmatch(expected), _NUMBER.fullmatch(answer)
    if numbers[0] is None or numbers[1] is None:
        return equal_in_numbers(expected, answer)
    values = [Fraction(number["digits"].replace(",", "")) for number in numbers if number]
    if values[0] == values[1]:
        return True
    integers = all(value.denominator == 1 for value in values) and not any(
        number["percent"] for number in numbers if number
    )
    return False if integers else equal_in_numbers(expected, answer)


_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
_A_NAME = re.compile(r"\s*\\?[A-Za-z]+(?:_\{?\w+\}?|'|\([^()]*\))*\s*")


def _compact(latex: str) -> str:
    return "".join(latex.split()).replace("+\\infty", "\\infty")


def _are_several(answer: str) -> bool:
    """Whether an answer gives one variable several numbers: x = 0 and x = 5."""
    values = [_ASSIGNED.fullmatch(part) for part in split_list(answer)] if answer.count("=") > 1 else []
    given = {(one["name"], Fraction(one["value"])) for one in values if one}
    return len(values) > 1 and all(values) and len({name for name, _ in given}) == 1 and len(given) == len(values)


def _without_names(latex: str) -> str:
    """Solutions without what is solved for: x = 5 or x = -2, (x, y) = (1, 3); relations of several names as they are."""
    if named := _NAMED_TUPLE.fullmatch(latex):
        return named[1]
    values = [_SOLVED_FOR.fullmatch(part) for part in split_list(latex)] if latex.count("=") > 1 else []
    names = {one["name"] for one in values if one}
    return ", ".join(one["value"] for one in values if one) if all(values) and len(names) == 1 else latex


_NAMED_TUPLE = re.compile(r"\(\s*[A-Za-z](?:\s*,\s*[A-Za-z])+\s*\)\s*=\s*(\([^()=]*\))")
_SOLVED_FOR = re.compile(r"(?P<name>[A-Za-z]|\\[a-z]+)(?:_\{?\d\}?)?\s*=\s*(?P<value>[^=<>]+)")
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z])\s*=\s*(?P<value>-?\d{1,30}(?:\.\d{1,30})?)")


def _with_parameter_of(expected: str, answer: str) -> str:
    """The answer with the integer of a family of solutions called as the reference calls it: k in one, n in the other."""
    ours, theirs = (set(_PARAMETER.findall(side)) for side in (expected, answer))
    if len(ours) != 1 or len(theirs) != 1 or ours == theirs:
        return answer
    return _PARAMETER.sub(ours.pop(), answer)


_PARAMETER = re.compile(r"(?<![A-Za-z\\])[kmn](?![A-Za-z])")


def _is_ratio(expected: str, answer: str) -> bool | None:
    """Whether two ratios are the same, 12:16 and 3:4; None where one of them is none, or a time of day is asked for."""
    if not (_RATIO.fullmatch(expected) and _RATIO.fullmatch(answer)) or _CLOCK.fullmatch(expected):
        return None
    ours, theirs = ([int(term) for term in ratio.split(":")] for ratio in (expected, answer))
    if len(ours) != len(theirs) or not (any(ours) and any(theirs)):
        return False
    return all(ours[0] * other == theirs[0] * one for one, other in zip(ours, theirs, strict=True))


_RATIO = re.compile(r"\d{1,9}(?:\s?:\s?\d{1,9})+")
_CLOCK = re.compile(r"(?:[01]?\d|2[0-4])\s?:\s?[0-5]\d")
_NUMBER = re.compile(r"(?P<digits>-?(?:\d{1,3}(?:,\d{3})+|\d{1,300})(?:\.\d{1,300})?)(?P<percent>\s?\\%)?")
# The same in another unit or form: "2.5 m³, that is 2500 litres".
_RESTATED = re.compile(r"\b(?:that is|i\.\s?e\.|which is|or) ", re.IGNORECASE)
_ROUNDED = re.compile(r"\\(?:approx|simeq)\b|≈")
_IN_BASE = re.compile(r"([0-9A-Fa-f]+)\s?_\s?\{?\s?\w+\s?\}?")
