"""Metrics made of other metrics or of several answers: composites, means of groups, consistency across attempts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from themis.core.entities import MetricScore
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.metrics.structured import canonical_text
from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Extractor, Metric, Row


@dataclass
class CompositeMetric(Metric):
    """The weighted mean of other metrics, given by name or as objects; each one's value is in the details.

    Args:
        metrics: Metrics with their weights, or a list of metrics.
        weights: Those of a list of metrics, in its order; equal ones by default.
        name: What the scores are reported as.

    >>> CompositeMetric({"exact_match": 3, "f1": 1}).compute(prediction="big cat sat", references=["cat"]).value
    0.125
    """

    # Names become metrics, and a mapping a list: what they stand for belongs to the fingerprint, not only their names.
    metrics: Mapping[str | Metric, float] | Sequence[str | Metric] = ()
    weights: Sequence[float] | None = None
    name: str = "CompositeMetric"
    pass_fail = False

    def __post_init__(self) -> None:
        if isinstance(self.metrics, Mapping):
            self.weights = list(self.metrics.values())
        elif self.weights is None:
            self.weights = [1.0] * len(self.metrics)
        if not self.metrics or len(self.weights) != len(self.metrics):
            raise ConfigurationError(
                "composite needs metrics with weights, e.g. composite(metrics={'exact_match': 0.7, 'f1': 0.3}); "
                f"got {len(self.metrics)} metrics and {len(self.weights)} weights"
            )
        if not all(isinstance(weight, int | float) and 0 <= weight < math.inf for weight in self.weights):
            raise ConfigurationError(f"composite: weights must be numbers of at least 0, got {self.weights}")
        if not sum(self.weights):
            raise ConfigurationError("composite: at least one weight must be more than 0")
        self.metrics = self._parts = [resolve_metric(metric) for metric in self.metrics]
        # What is good for one part and not for another makes a sum that is neither.
        directions = {metric.higher_is_better for metric in self._parts}
        self.higher_is_better = directions.pop() if len(directions) == 1 else None
        # A weighted mean lies where its parts do.
        ranges = {getattr(metric, "score_range", None) for metric in self._parts}
        self.score_range = ranges.pop() if len(ranges) == 1 else None
        self.requires_reference = any(metric.requires_reference for metric in self._parts)
        self.slow = any(getattr(metric, "slow", False) for metric in self._parts)
        self.expected_fields = tuple(field for metric in self._parts for field in metric.expected_fields)

    def check_machine(self) -> None:
        for metric in self._parts:
            metric.check_machine()

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        for metric in self._parts:
            metric.check_row(references, row)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        scores = [
            metric.compute(prediction=prediction, references=references, metadata=metadata) for metric in self._parts
        ]
        weights = self.weights or ()
        value = sum(score.value * weight for score, weight in zip(scores, weights, strict=True)) / sum(weights)
        return MetricScore(self.name, value, {"parts": {score.metric_name: score.value for score in scores}})


@dataclass
class GroupMean(Metric):
    """Another metric's mean over groups of rows, each of which counts alike however many rows it has.

    Args:
        metric: The metric, a name or an object.
        field: The row's field that names its group, such as `subject`.
        name: What the scores are reported as; by default the metric's name with the field's.

    >>> GroupMean("exact_match", field="subject").compute(prediction="4", references=["4"], metadata={"subject": "sums"}).value
    1.0
    """

    metric: str | Metric
    field: str
    name: str = ""
    aggregation = "mean_of_groups"

    def __post_init__(self) -> None:
        self.metric = self._part = resolve_metric(self.metric)
        if getattr(self._part, "aggregation", None) is not None:
            raise ConfigurationError(
                f"group_mean: {self._part.name} is a number over a whole run, of which there is no mean"
            )
        self.name = self.name or f"{self._part.name}_by_{self.field}"
        for taken in ("higher_is_better", "score_range", "requires_reference", "pass_fail"):
            setattr(self, taken, getattr(self._part, taken))
        low, high = self.score_range or (None, None)
        if (low, high) != (0, 1):
            self.aggregation = f"mean_of_groups(low={low}, high={high})"
        self.slow = getattr(self._part, "slow", False)
        self.expected_fields = self._part.expected_fields

    def check_machine(self) -> None:
        self._part.check_machine()

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        if row.get(self.field) in (None, ""):
            raise MetricError(f"{self.name}: the row has no {self.field!r}, by which rows are grouped")
        self._part.check_row(references, row)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        group = str((metadata or {}).get(self.field))
        # An answer that cannot be read counts as zero in its group.
        value, details = 0.0, dict[str, Any]()
        if prediction is not None:
            score = self._part.compute(prediction=prediction, references=references, metadata=metadata)
            value, details = score.value, score.details
        return MetricScore(self.name, value, {**details, "statistics": [group, value]})


@dataclass
class ConsistencyMetric(Metric):
    """Share of the attempts at one sample that give its most common answer; needs at least two attempts.

    The attempts are a list given as the prediction, else the texts in the metadata's `attempt_outcomes`. An answer that
    cannot be read agrees with none; a failed call is left out.

    Args:
        extractor: Reads each attempt, where the prediction is not already its answer.
        name: What the scores are reported as.

    >>> ConsistencyMetric().compute(prediction=["4", "4", "5", "4"], references=[]).value
    0.75
    """

    extractor: str | Extractor | None = None
    name: str = "ConsistencyMetric"
    score_range = (0.0, 1.0)
    pass_fail = False
    requires_reference = False
    requires_answer = False

    def __post_init__(self) -> None:
        self._extractor = None if self.extractor is None else resolve_extractor(self.extractor)
        self.extractor = self._extractor
        if (part := getattr(self._extractor, "part", "text")) != "text":
            raise ConfigurationError(
                f"{self.name} has the attempts' texts alone, and its extractor asks for their {part}"
            )

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        if isinstance(prediction, list | tuple):
            attempts = list(prediction)
        else:
            outcomes = (metadata or {}).get("attempt_outcomes")
            # A call that failed is no answer of the model, neither a different one nor the same.
            stored = outcomes if isinstance(outcomes, Sequence) else ()
            attempts = [outcome["output"] for outcome in stored if outcome.get("error") is None]
        if len(attempts) < 2:
            raise MetricError(
                f"{self.name} needs at least two attempts, got {len(attempts)}: run with num_samples=2 or more"
            )
        answers = [self._answer(attempt) for attempt in attempts]
        counts = Counter(answer for answer in answers if answer is not None)
        majority, agreeing = counts.most_common(1)[0] if counts else (None, 0)
        pairs = sum(count * (count - 1) for count in counts.values()) / (len(answers) * (len(answers) - 1))
        flips = sum(one is None or one != other for one, other in pairwise(answers))
        details = {"majority": majority, "pairwise_agreement": pairs, "flip_rate": flips / (len(answers) - 1)}
        return MetricScore(self.name, agreeing / len(answers), {**details, "attempts": len(answers)})

    def _answer(self, attempt: Any) -> str | None:
        if attempt is None:
            return None
        try:
            found = attempt if self._extractor is None else self._extractor.extract(attempt)
            return " ".join(found.split()).casefold() if isinstance(found, str) else canonical_text(found)
        except (FieldExtractionError, ValueError):
            return None
