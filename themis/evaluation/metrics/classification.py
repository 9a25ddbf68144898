"""Answers as classes: accuracy, F1 over classes, Matthews' correlation and Cohen's kappa, with the confusion matrix.

An item's score is 1 where its class is right. What the run's number is computed from is which class was expected and which was
predicted, so all of these show one confusion matrix.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from themis.core.entities import MetricScore
from themis.core.markup import truncate
from themis.evaluation.corpus import STATISTICS
from themis.evaluation.metrics.reading import reference_texts, text_or_none
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric, Row

# A label that is longer is shown and counted by its beginning.
_LONGEST_LABEL = 100


@dataclass
class _OfClasses(Metric):
    """How labels are read; which number is made of them is the aggregation of the same name."""

    labels: Sequence[str] | None = None
    case_sensitive: bool = False
    ignore_punctuation: bool = True
    score_range = (0.0, 1.0)
    pass_fail = True
    named: ClassVar[str]

    def __post_init__(self) -> None:
        self._known: set[str] | None = None
        if self.labels is None:
            self.aggregation = self.named
            return
        if isinstance(self.labels, str) or len(self.labels) < 2:
            raise ConfigurationError(f"{self.name}: labels is a list of at least two classes, got {self.labels!r}")
        normalised = [self._normalise(str(label)) for label in self.labels]
        if len(set(normalised)) < len(normalised):
            raise ConfigurationError(f"{self.name}: two of the labels read the same: {', '.join(normalised)}")
        self._known = set(normalised)
        self.aggregation = f"{self.named}(labels={normalised!r})"

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        """A reference that is none of the labels is a mistake in the data."""
        self._expected(references)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        expected = self._expected(references)
        answer = text_or_none(prediction)
        predicted = None if answer is None else self._normalise(answer)
        # Of several right classes the one that was given is what was asked for.
        right = predicted if predicted is not None and predicted in expected else expected[0]
        value = float(predicted == right)
        classes = [None if label is None else truncate(label, _LONGEST_LABEL) for label in (right, predicted)]
        return MetricScore(self.name, value, {STATISTICS: classes})

    def _expected(self, references: Sequence[object]) -> list[str]:
        expected = [self._normalise(text) for text in reference_texts(self.name, references)]
        unknown = [label for label in expected if self._known is not None and label not in self._known]
        if unknown:
            raise MetricError(
                f"{self.name}: the reference {unknown[0]!r} is none of the labels {list(self.labels or ())}"
            )
        return expected

    def _normalise(self, label: str) -> str:
        label = " ".join(unicodedata.normalize("NFC", label).split())
        if not self.case_sensitive:
            label = label.casefold()
        return (label.strip(string.punctuation + " ") or label) if self.ignore_punctuation else label


@dataclass
class Accuracy(_OfClasses):
    """Share of the answers whose class is right, with the confusion matrix.

    Args:
        labels: All classes, in the order of the confusion matrix; by default those that are expected somewhere. Any other answer
            counts as one more column, `(other)`.
        case_sensitive: Whether `Yes` and `yes` are two classes.
        ignore_punctuation: Whether punctuation around a label is left out, so that `Yes.` is `yes`.
        name: What the scores are reported as.

    >>> Accuracy().compute(prediction="Cat.", references=["cat"]).details
    {'statistics': ['cat', 'cat']}
    """

    name: str = "accuracy"
    named = "accuracy"


@dataclass
class BalancedAccuracy(_OfClasses):
    """Mean over the classes of the share of their items that are recognised: rare classes count as much.

    Args:
        labels: All classes, in the order of the confusion matrix; by default those that are expected somewhere. Any other answer
            counts as one more column, `(other)`.
        case_sensitive: Whether `Yes` and `yes` are two classes.
        ignore_punctuation: Whether punctuation around a label is left out, so that `Yes.` is `yes`.
        name: What the scores are reported as.

    >>> BalancedAccuracy().compute(prediction="Cat.", references=["cat"]).details
    {'statistics': ['cat', 'cat']}
    """

    name: str = "balanced_accuracy"
    named = "balanced_accuracy"


@dataclass
class MacroF1(_OfClasses):
    """Mean over the classes of their F1: rare classes count as much as frequent ones.

    A class that is neither expected nor predicted anywhere does not count, as in scikit-learn. An answer that is none of the
    classes is wrong for the class that was expected and makes no class of its own.

    Args:
        labels: All classes, in the order of the confusion matrix; by default those that are expected somewhere. Any other answer
            counts as one more column, `(other)`.
        case_sensitive: Whether `Yes` and `yes` are two classes.
        ignore_punctuation: Whether punctuation around a label is left out, so that `Yes.` is `yes`.
        name: What the scores are reported as.

    >>> MacroF1().compute(prediction="Cat.", references=["cat"]).details
    {'statistics': ['cat', 'cat']}
    """

    name: str = "macro_f1"
    named = "macro_f1"


@dataclass
class WeightedF1(_OfClasses):
    """Mean over the classes of their F1, weighted by how often each is expected.

    Args:
        labels: All classes, in the order of the confusion matrix; by default those that are expected somewhere. Any other answer
            counts as one more column, `(other)`.
        case_sensitive: Whether `Yes` and `yes` are two classes.
        ignore_punctuation: Whether punctuation around a label is left out, so that `Yes.` is `yes`.
        name: What the scores are reported as.

    >>> WeightedF1().compute(prediction="Cat.", references=["cat"]).details
    {'statistics': ['cat', 'cat']}
    """

    name: str = "weighted_f1"
    named = "weighted_f1"


@dataclass
class Mcc(_OfClasses):
    """Matthews' correlation coefficient of expected and predicted classes, from -1 to 1, for any number of classes.

    0 where the answers say nothing about the classes, however frequent one of them is, and where all answers are one class.

    Args:
        labels: All classes, in the order of the confusion matrix; by default those that are expected somewhere. Any other answer
            counts as one more column, `(other)`.
        case_sensitive: Whether `Yes` and `yes` are two classes.
        ignore_punctuation: Whether punctuation around a label is left out, so that `Yes.` is `yes`.
        name: What the scores are reported as.

    >>> Mcc().compute(prediction="Cat.", references=["cat"]).details
    {'statistics': ['cat', 'cat']}
    """

    name: str = "mcc"
    named = "mcc"


@dataclass
class Kappa(_OfClasses):
    """Cohen's kappa of expected and predicted classes: agreement beyond chance, from -1 to 1.

    Args:
        labels: All classes, in the order of the confusion matrix; by default those that are expected somewhere. Any other answer
            counts as one more column, `(other)`.
        case_sensitive: Whether `Yes` and `yes` are two classes.
        ignore_punctuation: Whether punctuation around a label is left out, so that `Yes.` is `yes`.
        name: What the scores are reported as.

    >>> Kappa().compute(prediction="Cat.", references=["cat"]).details
    {'statistics': ['cat', 'cat']}
    """

    name: str = "kappa"
    named = "kappa"
