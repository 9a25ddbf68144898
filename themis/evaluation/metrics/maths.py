"""Equality of mathematical expressions, however they are written.

They are compared by math-verify, which is sympy, in a process of its own (`algebra`) that can be stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from themis.core.entities import MetricScore
from themis.evaluation.extractors.answers import find_announced_line, find_boxes
from themis.evaluation.extractors.numbers import find_numbers
from themis.evaluation.extractors.text import strip_thinking
from themis.evaluation.metrics.algebra import compare
from themis.evaluation.metrics.reading import need_package, reference_texts, text_or_none, zero
from themis.exceptions import MetricError
from themis.interfaces import Metric, Row


@dataclass
class MathVerifyAccuracy(Metric):
    r"""1 if the answer is mathematically equal to a reference: numbers, expressions, sets, intervals, matrices, units.

    In a longer text the last \boxed{...} counts, else what follows #### or "answer is", else the last formula or
    number; of a reference likewise, so that worked solutions can be references.

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
        expected = [self._expected(text) for text in reference_texts(self.name, references)]
        text = text_or_none(prediction)
        if text is None:
            return zero(self.name, prediction)
        answer = stated_expression(text)
        if answer is None:
            return MetricScore(self.name, 0.0, {"reason": "no mathematical expression in the answer"})
        if _compact(answer) in map(_compact, expected):
            return MetricScore(self.name, 1.0, {"answer": answer})
        if len(answer) > _MAX_EXPRESSION or _ABSURD.search(answer):
            return MetricScore(self.name, 0.0, {"reason": "the expression is too large", "answer": answer[:200]})
        reply = compare(expected, answer, self.timeout_seconds)
        value = float(reply.pop("equal", False) is True)
        return MetricScore(self.name, value, {"answer": answer, **reply})

    def _expected(self, text: str) -> str:
        expression = stated_expression(text)
        if not expression or len(expression) > _MAX_EXPRESSION:
            raise MetricError(
                f"{self.name}: the reference {text!r:.80} holds no expression of up to {_MAX_EXPRESSION} characters"
            )
        return expression


# Answers stand at the end; what is longer than this is not one.
_MAX_TEXT = 10_000
_MAX_EXPRESSION = 1_000
# Exponents of five digits, towers of powers and nested factorials: nobody's answer, and more than a machine can hold.
_ABSURD = re.compile(r"\^\s*\{?\s*-?\d{5,}|(?:\d\s*\^\s*\{?\s*){3,}|\d{5,}\s*\}?\s*!|!\s*\)*!\s*\)*!")


def stated_expression(text: str) -> str | None:
    """The LaTeX of the answer that a text states, without dollar signs; None where it states none."""
    text = strip_thinking(text)[-_MAX_TEXT:].strip()
    boxed = _join_neighbours(text, [(box.start, box.end, box.inside) for box in find_boxes(text)])
    if boxed:
        return _to_latex(boxed[-1])
    announced = find_announced_line(text)
    found = _find_formula(announced, first=True) if announced else None
    return found or _find_formula(text, first=False)


def _join_neighbours(text: str, places: Iterable[tuple[int, int, slice]]) -> list[str]:
    r"""What stands at the places, those that only a comma or "and" separates taken together: \boxed{1} and \boxed{2}."""
    runs: list[str] = []
    end = None
    for start, stop, inside in places:
        if end is not None and end <= start <= end + 20 and _CONNECTS.fullmatch(text, end, start):
            runs[-1] += f",{text[inside]}"
        else:
            runs.append(text[inside])
        end = stop
    return runs


_CONNECTS = re.compile(r"[\s$,;]*(?:and|or)?[\s$]*")
_FORMULA = re.compile(
    r"\$\$(.+?)\$\$|(?<![\\\d])\$(?!\s)([^$\n]+)(?<!\s)\$(?!\d)|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
# Two words in a row, or one that no formula holds.
_PROSE = re.compile(
    r"[A-Za-z]{2,}[\s,]+(?:[A-Za-z]+[\s,]+)*[A-Za-z]{2,}|\b(?:not|but|because|since|where|when|instead|rather)\b"
)
_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{[^{}]*\}|\\[A-Za-z]+")
_QUANTITY = re.compile(
    r"(?P<number>[-+−]?(?:[$€£]\s?)?\d[\d,]*(?:\.\d+)?(?:\s?/\s?\d+)?)\s+"
    r"(?!(?:pi|sqrt|sin|cos|tan|log|ln|exp|and|or|percent|pct|percentage|inf|infinity|mod|choose)\b)"
    r"[A-Za-z]{2,}[A-Za-z°./ ]*(?:\^?\{?[23]\}?|[²³])?"
)


def _find_formula(text: str, *, first: bool) -> str | None:
    """The text itself where it is a formula; else the first or last formula or number in it."""
    text = text.strip().rstrip(".").strip("*_` ")
    if not text:
        return None
    found = list(_FORMULA.finditer(text))
    formulas = _join_neighbours(
        text, [(match.start(), match.end(), slice(*match.span(match.lastindex or 0))) for match in found]
    )
    if not formulas and "\n" not in text and len(text) <= _MAX_EXPRESSION:
        quantity = _QUANTITY.fullmatch(text)
        if quantity:
            return _to_latex(quantity["number"])
        if not _PROSE.search(_COMMAND.sub("", text)):
            return _to_latex(text)
    if formulas:
        after = text[found[-1].end() :]
        # A number after the last formula is nearer to the end of the reasoning.
        if first or next(find_numbers(after), None) is None:
            return _to_latex(formulas[0 if first else -1])
        text = after
    numbers = list(find_numbers(text))
    if not numbers:
        return None
    number = numbers[0 if first else -1]
    return f"{number}\\%" if number.percent else str(number)


_SPELLINGS = [
    (re.compile(r"\\?\$|\\[()\[\]](?=\s*$)|^\s*\\[(\[]"), ""),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"(?<![\w.\\])(\d+(?:\.\d+)?)[eE]([+-]?\d+)(?![\w.])"), r"\1 \\cdot 10^{\2}"),
    (re.compile(r"√\s*(\d+|\w)"), r"\\sqrt{\1}"),
    (re.compile("∞"), r"\\infty "),
    (re.compile("×|⋅|·"), r"\\cdot "),
    (re.compile("÷"), "/"),
    (re.compile("∪"), r"\\cup "),
    (re.compile("≤"), r"\\le "),
    (re.compile("≥"), r"\\ge "),
]


def _to_latex(expression: str) -> str | None:
    if "\\begin" not in expression:
        # Escaped once too often, as in JSON. In a matrix two backslashes begin a row.
        expression = expression.replace("\\\\", "\\")
    for pattern, replacement in _SPELLINGS:
        expression = pattern.sub(replacement, expression)
    return expression.strip().rstrip(".").strip() or None


def _compact(expression: str) -> str:
    return re.sub(r"\s+", " ", expression)
