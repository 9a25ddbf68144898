"""Equality of numbers, however they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from themis.core.entities import MetricScore
from themis.evaluation.extractors.numbers import WrittenNumber
from themis.evaluation.extractors.stated_number import find_stated_number
from themis.evaluation.metrics.reading import text_or_none
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric, Row


@dataclass
class Numeric(Metric):
    r"""1 if the number in the answer equals a reference's, exactly or within a tolerance.

    In a longer text a formal answer counts (`#### 1,234`, `\boxed{7}`, `the answer is 7`), else what it concludes, else
    the last number that it states. 50% equals both 50 and 0.5.

    Args:
        tolerance: How far the numbers may lie apart.
        relative_tolerance: The same as a share of the reference; either suffices.
        name: What the scores are reported as.

    >>> Numeric(tolerance=0.01).compute(prediction="$1,234.50", references=["1234.505"]).value
    1.0
    """

    tolerance: float = 0.0
    relative_tolerance: float = 0.0
    name: str = "Numeric"
    score_range = (0.0, 1.0)
    pass_fail = True

    def __post_init__(self) -> None:
        for parameter in ("tolerance", "relative_tolerance"):
            given = getattr(self, parameter)
            if not isinstance(given, int | float) or not math.isfinite(given) or given < 0:
                raise ConfigurationError(f"numeric: {parameter} must be a number of at least 0, got {given!r}")

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        if not references:
            raise MetricError(f"{self.name} compares with a reference, and this sample has none")
        expected = [self._expected(reference) for reference in references]
        said = stated_number(prediction)
        if said is None:
            return MetricScore(self.name, 0.0, {"reason": "no number in the answer"})
        value = float(any(self._equal(said, number) for number in expected))
        return MetricScore(self.name, value, {"answer": str(said)[:100]})

    def _expected(self, reference: object) -> WrittenNumber:
        number = stated_number(reference)
        if number is None:
            raise MetricError(f"{self.name}: no number in the reference {reference!r:.80}")
        return number

    def _equal(self, said: WrittenNumber, expected: WrittenNumber) -> bool:
        readings = [said.value]
        if said.percent != expected.percent:
            readings.append(said.value / 100 if said.percent else said.value * 100)
        return any(self._close(value, expected.value) for value in readings)

    def _close(self, value: Fraction, expected: Fraction) -> bool:
        allowed = max(Fraction(self.tolerance), Fraction(self.relative_tolerance) * abs(expected))
        # Binary floats round (0.1 + 0.2); whole numbers do not.
        if value.denominator > 1 or expected.denominator > 1:
            allowed = max(allowed, abs(expected) / 10**12)
        return abs(value - expected) <= allowed


def stated_number(given: object) -> WrittenNumber | None:
    """The number that a text states as its answer, or a number itself; None where there is none."""
    if isinstance(given, float) and not math.isfinite(given):
        return None
    if isinstance(given, int | float) and not isinstance(given, bool):
        return WrittenNumber(Fraction(str(given)))
    text = text_or_none(given)
    if text is None or isinstance(given, bool):
        return None
    return find_stated_number(text)
