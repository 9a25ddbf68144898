"""Whether a model is as often right as it says: expected calibration error and Brier score of stated confidences.

Correctness is another metric's score; the confidence is read from all that the model said, or from its log-probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from themis.core.entities import MetricScore, ModelOutput
from themis.evaluation.corpus import STATISTICS
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.parts import read_part
from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Extractor, Metric, Row

LOGPROBS = "logprobs"


@dataclass
class _OfConfidence(Metric):
    """Correctness by another metric, and where the confidence is read."""

    metric: str | Metric = "exact_match"
    confidence: str | Extractor = "confidence"
    score_range = (0.0, 1.0)
    higher_is_better = False
    pass_fail = False
    reads_output = True

    def __post_init__(self) -> None:
        self._correct = self.metric = resolve_metric(self.metric)
        self._read = self.confidence if self.confidence == LOGPROBS else resolve_extractor(self.confidence)
        self.confidence = self._read
        if self._correct.higher_is_better is not True:
            raise ConfigurationError(
                f"{self.name}: correctness is a metric of which 1 is right and 0 wrong, {self._correct.name} is none"
            )
        self.requires_reference = self._correct.requires_reference
        self.slow = getattr(self._correct, "slow", False)

    def check_machine(self) -> None:
        self._correct.check_machine()

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        self._correct.check_row(references, row)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        confidence = self._confidence(prediction, (metadata or {}).get("model_output"))
        correct = 0.0
        if prediction is not None:
            correct = self._correct.compute(prediction=prediction, references=references, metadata=metadata).value
        if not 0 <= correct <= 1:
            raise MetricError(f"{self.name} needs a correctness from 0 to 1, {self._correct.name} says {correct:g}")
        return MetricScore(self.name, self._value(confidence, correct), {STATISTICS: [confidence, correct]})

    def _value(self, confidence: float, correct: float) -> float:
        raise NotImplementedError

    def _confidence(self, prediction: object, output: object) -> float:
        if not isinstance(output, ModelOutput):
            output = ModelOutput(prediction if isinstance(prediction, str) else "")
        if self._read == LOGPROBS:
            return _confidence_of_tokens(self.name, output.logprobs)
        if isinstance(self._read, str):
            raise TypeError(self._read)
        try:
            found = self._read.extract(read_part(output, getattr(self._read, "part", "text")))
        except FieldExtractionError as error:
            raise MetricError(f"{self.name} needs the answer's confidence: {error}") from error
        return _as_share(self.name, found)


def _as_share(name: str, found: object) -> float:
    """What an extractor of the user's found: a number up to 1, or percent."""
    text = found.strip() if isinstance(found, str) else found
    try:
        share = float(text.removesuffix("%")) / 100 if isinstance(text, str) and text.endswith("%") else float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise MetricError(f"{name} needs a confidence from 0 to 1, the extractor found {found!r:.80}") from None
    share = share / 100 if 1 < share <= 100 else share
    if not 0 <= share <= 1:
        raise MetricError(f"{name} needs a confidence from 0 to 1, the extractor found {found!r:.80}")
    return share


def _confidence_of_tokens(name: str, told: object) -> float:
    """The mean probability of a token (geometric, so that long answers are not less likely for their length)."""
    content = told.get("content") if isinstance(told, Mapping) else None
    values = [token.get("logprob") for token in content or () if isinstance(token, Mapping)]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if not numbers:
        raise MetricError(f"{name} needs log-probabilities, and this answer came without: ask for them (logprobs=True)")
    return min(1.0, math.exp(math.fsum(numbers) / len(numbers)))


@dataclass
class Ece(_OfConfidence):
    """Expected calibration error: how far confidence and correctness are apart, in bins of equal width; less is better.

    Small samples make it too large: a perfectly calibrated model has about 0.15 with 30 answers and 0.06 with 200. The
    interval allows for that and may lie below the value. An item's own score is the distance of its confidence from its
    correctness.

    Args:
        metric: What says whether an answer is right: a metric from 0 to 1, by name or as an object.
        confidence: What reads the confidence from all that the model said: an extractor, by name (`json_field('confidence')`)
            or as an object; or `logprobs`, the mean probability of the answer's tokens.
        bins: How many; a confidence on an edge belongs to the bin below.
        name: What the scores are reported as.

    >>> Ece("includes").compute(prediction="Paris, I am 80% sure", references=["Paris"]).details
    {'statistics': [0.8, 1.0]}
    """

    bins: int = 10
    name: str = "ece"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.bins, int) or self.bins < 1:
            raise ConfigurationError(f"ece: bins is a number of at least 1 (10 is usual), got {self.bins!r}")
        self.aggregation = f"ece(bins={self.bins})"

    def _value(self, confidence: float, correct: float) -> float:
        return abs(confidence - correct)


@dataclass
class Brier(_OfConfidence):
    """Brier score: the mean squared distance of confidence from correctness, from 0 to 1; less is better.

    Args:
        metric: What says whether an answer is right: a metric from 0 to 1, by name or as an object.
        confidence: What reads the confidence from all that the model said: an extractor, by name or as an object; or
            `logprobs`, the mean probability of the answer's tokens.
        name: What the scores are reported as.

    >>> Brier("includes").compute(prediction="Paris. Confidence: 0.5", references=["Paris"]).value
    0.25
    """

    name: str = "brier"
    aggregation = "brier"

    def _value(self, confidence: float, correct: float) -> float:
        return (confidence - correct) ** 2
