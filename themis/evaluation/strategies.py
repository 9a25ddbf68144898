"""How several attempts at one sample become its scores.

A strategy prepares what is judged and reduces what comes out; `strategy_from_name` gives the built-in ones short names
(`evaluate(..., reducer="pass@3")`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from themis.core.codec import canonical_json
from themis.core.entities import EvaluationItem, GenerationRecord, MetricScore
from themis.core.intervals import pass_at_k, pass_hat_k
from themis.core.registry import nearest
from themis.evaluation.corpus import OF_ATTEMPTS, STATISTICS
from themis.evaluation.resolve import resolve_aggregation
from themis.exceptions import ConfigurationError, EvaluationError
from themis.interfaces import Metric

__all__ = [
    "AnyAttempt",
    "AttemptAwareEvaluationStrategy",
    "BestAttempt",
    "DefaultEvaluationStrategy",
    "EvaluationStrategy",
    "FirstAttempt",
    "FixedStrategy",
    "MajorityVote",
    "PassAtK",
    "PassHatK",
    "strategy_from_name",
]


class EvaluationStrategy(Protocol):
    """How the answers to one sample become its scores.

    >>> class LastAttempt:
    ...     def prepare(self, record):
    ...         return [EvaluationItem(record.attempts[-1], record.task.reference)]
    ...     def aggregate(self, record, scores):
    ...         return list(scores)
    >>> from themis.evaluation.extractors import IdentityExtractor
    >>> from themis.evaluation.metrics import ExactMatch
    >>> from themis.evaluation.pipeline import EvaluationPipeline
    >>> EvaluationPipeline(
    ...     extractor=IdentityExtractor(), metrics=[ExactMatch()], strategy_resolver=lambda record: LastAttempt()
    ... ).metric_names
    ['ExactMatch']
    """

    def prepare(self, record: GenerationRecord) -> Sequence[EvaluationItem]:
        """The answers to judge: the record's own, or each attempt's.

        Args:
            record: A sample with all its attempts.
        """

    def aggregate(self, record: GenerationRecord, scores: Sequence[MetricScore]) -> list[MetricScore]:
        """The sample's scores from its answers' scores.

        Args:
            record: The sample.
            scores: Of every metric on every answer that `prepare` gave.
        """


@dataclass(frozen=True)
class DefaultEvaluationStrategy:
    """Judges the record's own answer: the first attempt without an error.

    >>> DefaultEvaluationStrategy().aggregate(None, [MetricScore("F1", 0.5)])[0].value
    0.5
    """

    def prepare(self, record: GenerationRecord) -> Sequence[EvaluationItem]:
        """The record itself.

        Args:
            record: A sample with all its attempts.
        """
        return (EvaluationItem(record, record.task.reference),)

    def aggregate(self, record: GenerationRecord, scores: Sequence[MetricScore]) -> list[MetricScore]:
        """The scores as they are.

        Args:
            record: The sample.
            scores: One a metric.
        """
        return list(scores)


class _OverAttempts:
    """Judges every attempt that has an answer, and takes the first one's score."""

    def prepare(self, record: GenerationRecord) -> Sequence[EvaluationItem]:
        """The attempts that have an answer."""
        attempts = [attempt for attempt in record.attempts or [record] if attempt.error is None]
        return [EvaluationItem(attempt, attempt.task.reference) for attempt in attempts]

    def aggregate(self, record: GenerationRecord, scores: Sequence[MetricScore]) -> list[MetricScore]:
        """One score a metric."""
        by_metric: dict[str, list[MetricScore]] = {}
        for score in scores:
            by_metric.setdefault(score.metric_name, []).append(score)
        return [self.reduce(name, group) for name, group in by_metric.items()]

    def reduce(self, name: str, scores: Sequence[MetricScore]) -> MetricScore:
        """One metric's scores of several attempts as one."""
        return scores[0]

    def check_attempts(self, attempts: int) -> None:
        """Raises where so many attempts at a sample are too few for any score."""


@dataclass(frozen=True)
class AttemptAwareEvaluationStrategy(_OverAttempts):
    """The mean over attempts, or every attempt's score for itself.

    Args:
        average_attempts: False for every attempt's own score.

    >>> strategy_from_name("average").reduce("F1", [MetricScore("F1", 1.0), MetricScore("F1", 0.5)]).value
    0.75
    """

    average_attempts: bool = True

    def aggregate(self, record: GenerationRecord, scores: Sequence[MetricScore]) -> list[MetricScore]:
        return super().aggregate(record, scores) if self.average_attempts else list(scores)

    def reduce(self, name: str, scores: Sequence[MetricScore]) -> MetricScore:
        mean = math.fsum(score.value for score in scores) / len(scores)
        details = {**_protection_details(scores), **_statistics_of_attempts(scores)}
        return MetricScore(name, mean, details, _reduced_metadata(scores))


@dataclass(frozen=True)
class FirstAttempt(_OverAttempts):
    """Only the first attempt that has an answer.

    >>> FirstAttempt().reduce("F1", [MetricScore("F1", 0.5), MetricScore("F1", 1.0)]).value
    0.5
    """

    def prepare(self, record: GenerationRecord) -> Sequence[EvaluationItem]:
        return super().prepare(record)[:1]


@dataclass(frozen=True)
class BestAttempt(_OverAttempts):
    """The best score of any attempt: what a perfect selector would have got.

    Args:
        lower_is_better: Names of metrics of which the least is the best.

    >>> BestAttempt().reduce("F1", [MetricScore("F1", 0.5), MetricScore("F1", 1.0)]).value
    1.0
    """

    lower_is_better: tuple[str, ...] = ()

    def reduce(self, name: str, scores: Sequence[MetricScore]) -> MetricScore:
        best = (min if name in self.lower_is_better else max)(scores, key=lambda score: score.value)
        return MetricScore(name, best.value, best.details, _reduced_metadata(scores))


@dataclass(frozen=True)
class AnyAttempt(_OverAttempts):
    """1 if any attempt reaches the threshold, else 0.

    Args:
        threshold: The score at which an attempt passes.
        only_pass_fail: Whether a score that is neither 0 nor 1 is a failure, for nobody has said at which one passes.

    >>> AnyAttempt(threshold=0.5).reduce("F1", [MetricScore("F1", 0.2), MetricScore("F1", 0.6)]).value
    1.0
    """

    threshold: float = 1.0
    only_pass_fail: bool = field(default=False, repr=False)

    def reduce(self, name: str, scores: Sequence[MetricScore]) -> MetricScore:
        hits = _count_passed("any", scores, self.threshold, self.only_pass_fail)
        return MetricScore(
            name, float(hits > 0), {"passed": hits, **_protection_details(scores)}, _reduced_metadata(scores)
        )


@dataclass(frozen=True)
class MajorityVote(_OverAttempts):
    """Judges the answer that most attempts gave; the earliest of them where several are equally common.

    >>> MajorityVote().select(["5", "4", "4"])
    [1]
    """

    def select(self, predictions: Sequence[object]) -> list[int]:
        """Which of the extracted answers to judge, by position.

        Args:
            predictions: What the extractor found in each attempt.
        """
        if not predictions:
            return []
        keys = [_vote_key(prediction) for prediction in predictions]
        votes = Counter(keys)
        return [max(range(len(keys)), key=lambda index: (votes[keys[index]], -index))]


@dataclass(frozen=True)
class PassAtK(_OverAttempts):
    """The chance that at least one of k attempts passes, estimated without bias from n >= k attempts.

    Args:
        k: Attempts that one may make.
        threshold: The score at which an attempt passes.
        only_pass_fail: Whether a score that is neither 0 nor 1 is a failure, for nobody has said at which one passes.

    >>> scores = [MetricScore("ExactMatch", value) for value in (1.0, 0.0, 0.0)]
    >>> round(PassAtK(k=2).reduce("ExactMatch", scores).value, 4)
    0.6667
    """

    k: int = 1
    threshold: float = 1.0
    only_pass_fail: bool = field(default=False, repr=False)
    sign: ClassVar[str] = "@"

    @property
    def name(self) -> str:
        """As `strategy_from_name` knows it."""
        return f"pass{self.sign}{self.k}"

    def check_attempts(self, attempts: int) -> None:
        if self.k > attempts:
            raise ConfigurationError(
                f"reducer {self.name!r} needs {self.k} answers per row, and there are {attempts}: "
                f"give num_samples={self.k} (--num-samples {self.k}) or more, or a smaller k"
            )

    def reduce(self, name: str, scores: Sequence[MetricScore]) -> MetricScore:
        n, passed = len(scores), _count_passed(self.name, scores, self.threshold, self.only_pass_fail)
        if n < self.k:
            raise EvaluationError(
                f"{self.name} needs {self.k} answered attempts, this sample has {n}; raise num_samples"
            )
        details = {"passed": passed, "attempts": n, "k": self.k, **_protection_details(scores)}
        return MetricScore(name, self._estimate(passed, n), details, _reduced_metadata(scores))

    def _estimate(self, passed: int, attempts: int) -> float:
        return pass_at_k(passed, attempts, self.k)


class PassHatK(PassAtK):
    """The chance that all of k attempts pass, estimated without bias from n >= k attempts.

    Args:
        k: Attempts that must all pass.
        threshold: The score at which an attempt passes.
        only_pass_fail: Whether a score that is neither 0 nor 1 is a failure, for nobody has said at which one passes.

    >>> scores = [MetricScore("ExactMatch", value) for value in (1.0, 1.0, 0.0)]
    >>> round(PassHatK(k=2).reduce("ExactMatch", scores).value, 4)
    0.3333
    """

    sign = "^"

    def _estimate(self, passed: int, attempts: int) -> float:
        return pass_hat_k(passed, attempts, self.k)


_REDUCERS: dict[str, Callable[[Sequence[Metric]], EvaluationStrategy]] = {
    "average": lambda metrics: AttemptAwareEvaluationStrategy(),
    "keep": lambda metrics: AttemptAwareEvaluationStrategy(average_attempts=False),
    "first": lambda metrics: FirstAttempt(),
    "best": lambda metrics: BestAttempt(
        tuple(m.name for m in metrics if getattr(m, "higher_is_better", True) is False)
    ),
    "majority": lambda metrics: MajorityVote(),
    "any": lambda metrics: AnyAttempt(only_pass_fail=True),
}
# What `strategy_from_name` knows; k is a number.
REDUCERS = (*_REDUCERS, "pass@k", "pass^k")


@dataclass(frozen=True)
class FixedStrategy:
    """Resolves the same strategy for every sample, and can be read in a description of how a run was judged.

    Args:
        strategy: How every sample's answers become its scores.

    >>> FixedStrategy(FirstAttempt())(None)
    FirstAttempt()
    """

    strategy: EvaluationStrategy

    def __call__(self, record: GenerationRecord) -> EvaluationStrategy:
        return self.strategy


def strategy_from_name(name: str, metrics: Sequence[Metric] = (), *, attempts: int | None = None) -> EvaluationStrategy:
    """The built-in strategy of a name.

    Args:
        name: `average`, `keep`, `first`, `best`, `majority`, `any`, `pass@k` or `pass^k` with a number for k.
        metrics: What is reduced. Of some less is better, which `best` goes by; those that a reducer makes no sense of are
            refused: `pass@k`, `pass^k` and `any` count attempts that passed, and `best` needs a better and a worse.
        attempts: How many answers a row gets; a reducer that needs more of them is refused, for it could score nothing.

    Raises:
        ConfigurationError: There is no such reducer, it needs more attempts, or a metric does not fit it.

    >>> strategy_from_name("pass@3")
    PassAtK(k=3, threshold=1.0)
    """
    if match := re.fullmatch(r"pass([@^])(\d+)", name.strip()):
        k = int(match[2])
        if k < 1:
            raise ConfigurationError(f"reducer {name!r}: k must be at least 1")
        counting = (PassAtK if match[1] == "@" else PassHatK)(k, only_pass_fail=True)
        if attempts is not None:
            counting.check_attempts(attempts)
        _refuse_unfit(name, metrics, _why_not_pass_fail)
        return counting
    if name not in _REDUCERS:
        raise ConfigurationError(f"unknown reducer {name!r}{nearest(name, REDUCERS)}; known: {', '.join(REDUCERS)}")
    if name in _FITS:
        _refuse_unfit(name, metrics, _FITS[name])
    return _REDUCERS[name](metrics)


def _refuse_unfit(reducer: str, metrics: Sequence[Metric], why_not: Callable[[Metric], str]) -> None:
    for metric in metrics:
        if reason := why_not(metric):
            raise ConfigurationError(
                f"reducer {reducer!r} {reason}: leave {metric.name} out, or use reducer 'average', which fits every metric"
            )


def _why_not_best(metric: Metric) -> str:
    if getattr(metric, "higher_is_better", True) is not None:
        return ""
    return f"takes the best of the attempts, and {metric.name} is neither good nor bad"


def _why_not_pass_fail(metric: Metric) -> str:
    low, high = getattr(metric, "score_range", None) or (0, 1)
    counts = f"counts the attempts that passed, and {metric.name}"
    if (direction := getattr(metric, "higher_is_better", True)) is not True:
        return f"{counts} is {'neither good nor bad' if direction is None else 'better the less it is'}"
    named = getattr(metric, "aggregation", None)
    if named is not None and not resolve_aggregation(named).is_mean:
        return f"{counts} is a number over all samples"
    if getattr(metric, "pass_fail", None) is False:
        return f"{counts} grades answers, with scores between passed and not"
    if (low, high) != (0, 1):
        limits = " ".join([*([] if low is None else [f"from {low:g}"]), *([] if high is None else [f"to {high:g}"])])
        return f"{counts} has scores {limits or 'without limits'}, not 0 and 1"
    return ""


_FITS = {"best": _why_not_best, "any": _why_not_pass_fail}


def _count_passed(reducer: str, scores: Sequence[MetricScore], threshold: float, only_pass_fail: bool) -> int:
    if only_pass_fail:
        for score in scores:
            if score.value not in (0, 1):
                raise EvaluationError(
                    f"{reducer} counts attempts that passed, and a score of {score.value:g} says neither; let the metric "
                    "return 0 or 1, or use reducer 'average'"
                )
    return sum(score.value >= threshold for score in scores)


def _reduced_metadata(scores: Sequence[MetricScore]) -> dict[str, object]:
    metadata: dict[str, object] = {"attempts": len(scores)}
    if all(score.metadata.get("outcome") == "unparsed" for score in scores):
        metadata["outcome"] = "unparsed"
    elif any(score.metadata.get("outcome") == "partial" for score in scores):
        metadata["outcome"] = "partial"
    return metadata


def _protection_details(scores: Sequence[MetricScore]) -> dict[str, object]:
    """How far the attempts' code was confined, the same for all that were run: it is recorded in every score."""
    confined = next((score.details for score in scores if "sandbox" in score.details), {})
    return {name: confined[name] for name in ("sandbox", "not_protected") if name in confined}


def _statistics_of_attempts(scores: Sequence[MetricScore]) -> dict[str, object]:
    """What each attempt adds to a number over the whole run, for metrics that have such."""
    found = [score.details[STATISTICS] for score in scores if STATISTICS in score.details]
    return {OF_ATTEMPTS: found} if found else {}


def _vote_key(prediction: object) -> str:
    if isinstance(prediction, str):
        return prediction.strip().casefold()
    try:
        return canonical_json(prediction)
    except TypeError:
        return repr(prediction)
