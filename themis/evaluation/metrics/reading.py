"""How metrics read what they are given: a prediction that cannot be read is the model's zero, a reference an error."""

from __future__ import annotations

import importlib.util
from abc import abstractmethod
from collections.abc import Sequence

from themis.core.codec import format_value
from themis.core.entities import MetricScore
from themis.core.markup import truncate
from themis.exceptions import DependencyError, MetricError
from themis.interfaces import Metric, Row


class TextMetric(Metric):
    """A metric that compares the answer's text with those of the references; a share unless it says otherwise."""

    score_range: tuple[float | None, float | None] | None = (0.0, 1.0)
    pass_fail: bool | None = False

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        return zero(self.name, prediction) if answer is None else self.compare(answer, texts)

    @abstractmethod
    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        """The score of a text against at least one other."""


def text_or_none(value: object) -> str | None:
    """Strings as they are and numbers as text; None for what is not text."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value)
    return None


def zero(name: str, prediction: object, expected: str = "text") -> MetricScore:
    """The score of an answer that is not of the expected kind."""
    given = "no answer" if prediction is None else f"a {type(prediction).__name__}"
    return MetricScore(name, 0.0, {"reason": f"expected {expected}, got {given}"})


_KINDS = {dict: "an object of several fields", list: "a list in a list", type(None): "missing"}


def reference_texts(name: str, references: Sequence[object]) -> list[str]:
    """The references as texts; a row without one, or with one that is not text, cannot be scored."""
    texts = [text_or_none(reference) for reference in references]
    if not texts:
        raise MetricError(f"{name} compares with a reference, and this sample has none")
    if None in texts:
        wrong = references[texts.index(None)]
        raise MetricError(
            f"{name} compares with text or numbers, but a reference is {_KINDS.get(type(wrong), 'something else')}: "
            f"{truncate(format_value(wrong), 80)}"
        )
    return [text for text in texts if text is not None]


def need_package(module: str, package: str, extra: str, purpose: str) -> None:
    """Says so before the first model call where an optional package is missing."""
    if importlib.util.find_spec(module) is None:
        raise DependencyError.for_extra(package, extra, purpose)
