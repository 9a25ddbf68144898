"""Measures of an answer that ask for its size or its time, not for its truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.core.entities import MetricScore
from themis.evaluation.metrics.reading import reference_texts, text_or_none, zero
from themis.exceptions import MetricError
from themis.interfaces import Metric

__all__ = ["Latency", "LengthDifferenceTolerance", "ResponseLength"]


@dataclass
class ResponseLength(Metric):
    """Number of characters of the answer."""

    example: ClassVar[str] = 'ResponseLength().compute(prediction="Paris", references=[]).value == 5.0'

    name: str = "ResponseLength"
    score_range = (0.0, None)
    requires_reference = False
    higher_is_better = None

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        return MetricScore(self.name, float(0 if prediction is None else len(str(prediction))))


@dataclass
class LengthDifferenceTolerance(Metric):
    """1 if the answer is at most `max_delta` characters longer or shorter than a reference."""

    example: ClassVar[str] = (
        'LengthDifferenceTolerance(max_delta=2).compute(prediction="abcd", references=["ab"]).value == 1.0'
    )

    max_delta: int = 0
    name: str = "LengthDifferenceTolerance"
    score_range = (0.0, 1.0)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        delta = min(abs(len(answer) - len(text)) for text in texts)
        return MetricScore(self.name, float(delta <= self.max_delta), {"delta": delta})


@dataclass
class Latency(Metric):
    """Milliseconds that the generation took, from the metadata's `generation_time_ms`."""

    example: ClassVar[str] = (
        'Latency().compute(prediction="", references=[], metadata={"generation_time_ms": 12.5}).value == 12.5'
    )

    name: str = "Latency"
    score_range = (0.0, None)
    requires_reference = False
    requires_answer = False
    higher_is_better = False

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        elapsed = (metadata or {}).get("generation_time_ms")
        if isinstance(elapsed, bool) or not isinstance(elapsed, int | float) or not math.isfinite(elapsed):
            raise MetricError(f"{self.name}: the sample has no generation_time_ms (it is {elapsed!r})")
        return MetricScore(self.name, float(elapsed))
