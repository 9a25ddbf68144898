"""Judges records: extracts the answer, lets each metric score it, keeps what failed.

Second half of a sample's path; `experiment.run` calls `judge` once per record.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from themis.core.entities import (
    UNSCORED_ATTEMPTS,
    EvaluationFailure,
    EvaluationRecord,
    EvaluationReport,
    GenerationRecord,
    GenerationTask,
    MetricAggregate,
    MetricScore,
    ModelSpec,
    PromptRender,
    PromptSpec,
    Reference,
    SamplingConfig,
    mean_scores,
)
from themis.core.identity import describe_object
from themis.core.registry import snake_case
from themis.core.transcripts import ATTEMPT_SCORES, OF_ATTEMPT, reason_of
from themis.core.user_code import format_error
from themis.evaluation.corpus import Observation, put_aggregation
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.parts import check_part, read_part
from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.evaluation.strategies import EvaluationStrategy
from themis.exceptions import ConfigurationError
from themis.interfaces import Extractor, Metric, Row

__all__ = ["EvaluationPipeline", "aggregations", "score_ranges", "slices_of"]

logger = logging.getLogger(__name__)

ReferenceSelector = Callable[[GenerationRecord], object]
# What each attempt at a sample gave, for metrics that look at several.
Attempts = Sequence[Mapping[str, object]]
StrategyResolver = Callable[[GenerationRecord], EvaluationStrategy]

# Beyond this, sums of squares overflow and no mean has a standard error.
_LARGEST = 1e100
# Of why an attempt was given its score.
_LONGEST_REASON = 300
# What arithmetic may put a score beyond the end of its range by.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _NoAnswer:
    """Why an extractor gave no answer, and whether that is the model's fault."""

    reason: str
    unparsed: bool = False


class EvaluationPipeline:
    """One extractor, some metrics, and how attempts are reduced.

    Args:
        extractor: Finds the answer in the model's text; an object, or a registered name.
        metrics: Score the answer, objects or registered names; each has a name of its own.
        reference_selector: Takes a record and returns what its answer is compared with, instead of the row's reference.
        strategy_resolver: Takes a record and returns how its attempts become scores (`themis.evaluation.strategies`); by
            default the record's own answer is judged.
        unparsed: What an answer that the extractor cannot read counts for: "zero" (the model's fault, 0.0; no score from
            metrics for which zero is not the worst) or "exclude" (no score, counted as failed).

    Raises:
        ConfigurationError: Two metrics have one name, or something is no extractor.
        MetricError: There is no such metric.

    >>> from themis.evaluation.metrics import Numeric
    >>> EvaluationPipeline(extractor="last_number", metrics=["exact_match", Numeric(tolerance=0.1)]).metric_names
    ['ExactMatch', 'Numeric']
    """

    # Whether scores may have other names than `metric_names` says, which are known only when answers are scored.
    names_metrics_late: ClassVar[bool] = False

    def __init__(
        self,
        *,
        extractor: Extractor | str,
        metrics: Sequence[Metric | str],
        reference_selector: ReferenceSelector | None = None,
        strategy_resolver: StrategyResolver | None = None,
        unparsed: str = "zero",
    ) -> None:
        self.extractor = resolve_extractor(extractor)
        self.metrics = [resolve_metric(metric) for metric in metrics]
        self._reads_output = any(getattr(metric, "reads_output", False) for metric in self.metrics)
        names = self.metric_names
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"two metrics have the name {doubled[0]!r}; give one of them another `name`")
        if unparsed not in ("zero", "exclude"):
            raise ConfigurationError(f"unparsed is 'zero' or 'exclude', got {unparsed!r}")
        if reference_selector is not None and strategy_resolver is None:
            warnings.warn(
                "a reference_selector without a strategy_resolver: the default strategy judges the record's own answer",
                UserWarning,
                stacklevel=2,
            )
        if (part := getattr(self.extractor, "part", "text")) != "text":
            check_part(part, f"extractor {type(self.extractor).__name__}")
        self.unparsed = unparsed
        self.slices: dict[str, Callable[[GenerationRecord], bool]] = {}
        self._select_reference = reference_selector
        self._resolve_strategy = strategy_resolver

    @property
    def metric_names(self) -> list[str]:
        """The metrics' names, in their order."""
        return [metric.name for metric in self.metrics]

    def expected_metrics(self, record: GenerationRecord, judged: EvaluationRecord) -> Iterable[str]:
        """The metrics that a sample has a score of unless they failed: all of them.

        Args:
            record: The answers.
            judged: What came of judging them.
        """
        return self.metric_names

    @property
    def compared_with_rows(self) -> list[str]:
        """The metrics that take their reference from the row, and from nowhere else."""
        if self._select_reference is not None or self._resolve_strategy is not None:
            return []
        return [metric.name for metric in self.metrics if getattr(metric, "requires_reference", True)]

    def check_machine(self) -> None:
        """Raises where one of the metrics cannot be computed on this machine."""
        for metric in self._with_own("check_machine"):
            metric.check_machine()

    def check_attempts(self, attempts: int) -> None:
        """Raises where so many attempts at a sample are too few for a score.

        Args:
            attempts: How many answers each row gets.
        """
        if self._resolve_strategy is None:
            return
        task = GenerationTask(PromptRender(PromptSpec("", ""), ""), ModelSpec("", ""), SamplingConfig())
        try:
            strategy = self._resolve_strategy(GenerationRecord(task, None, None))
        except Exception:  # boundary: a resolver is the user's code, and may need a real record to choose by
            return
        check = getattr(strategy, "check_attempts", None)
        if check is not None:
            check(attempts)

    @property
    def row_check(self) -> Callable[[object, Mapping[str, object]], None] | None:
        """Raises where one of the metrics could score no answer to a row; None where all of them take what comes."""
        picky = self._with_own("check_row")
        if self._select_reference is not None or not picky:
            return None

        def check(reference: object, row: Mapping[str, object]) -> None:
            for metric in picky:
                metric.check_row(_as_list(reference), row)

        return check

    def _with_own(self, check: str) -> list[Metric]:
        """The metrics with a check of their own: that of `Metric` finds nothing."""
        with_one = [metric for metric in self.metrics if hasattr(metric, check)]
        inherited = getattr(Metric, check)
        return [metric for metric in with_one if getattr(getattr(metric, check), "__func__", None) is not inherited]

    @property
    def is_slow(self) -> bool:
        """Whether a metric does more than compute (runs programs, asks models), so that judging gains from threads."""
        return any(getattr(metric, "slow", False) for metric in self.metrics)

    def register_slice(self, name: str, predicate: Callable[[GenerationRecord], bool]) -> None:
        """Adds aggregates over the records for which the predicate holds.

        Args:
            name: What reports call the slice.
            predicate: Takes a record and says whether it belongs to it.
        """
        self.slices[name] = predicate

    def evaluation_fingerprint(self) -> dict[str, object]:
        """Class, parameters, code and what it reads, of everything that decides a score."""
        described: dict[str, object] = {
            "extractor": describe_object(self.extractor),
            "metrics": [describe_object(metric) for metric in self.metrics],
            "unparsed": self.unparsed,
        }
        if self._select_reference is not None:
            described["reference_selector"] = describe_object(self._select_reference)
        if self._resolve_strategy is not None:
            described["strategy"] = describe_object(self._resolve_strategy)
        if type(self) is not EvaluationPipeline:
            described["pipeline"] = describe_object(self)
        return described

    def __themis_identity__(self) -> dict[str, object]:
        """What a class of the user's own adds to the parts that are described one by one."""
        known = ("extractor", "metrics", "unparsed", "slices")
        return {name: value for name, value in vars(self).items() if name not in known and not name.startswith("_")}

    def judge(self, record: GenerationRecord) -> EvaluationRecord:
        """The scores of one record. Whatever a user's extractor or metric does, the run goes on.

        Args:
            record: An answer, or why there is none.
        """
        sample_id = record.task.metadata.get("dataset_id")
        result = EvaluationRecord(None if sample_id is None else str(sample_id), [])
        if record.error is not None and not any(attempt.error is None for attempt in record.attempts):
            result.failures.append(f"no answer: {record.error.message}")
            return result
        attempts = record.metrics.get("attempt_outcomes")
        try:
            if self._resolve_strategy is None:
                self._score(record, record.task.reference, self._extract(record), attempts, result)
                if len(record.attempts) > 1:
                    result.scores = _AttemptScores(record).note(record, result)
            else:
                self._score_by(self._resolve_strategy(record), record, attempts, result)
        except Exception as error:  # boundary: a strategy is the user's code
            result.failures.append(f"strategy: {format_error(error)}")
        return result

    def evaluate(self, records: Iterable[GenerationRecord]) -> EvaluationReport:
        """Judges records that are in memory.

        Args:
            records: Answers, with what was expected in their tasks.
        """
        pairs = [(record, self.judge(record)) for record in records]
        failures = [EvaluationFailure(judged.sample_id, message) for _, judged in pairs for message in judged.failures]
        sliced: dict[str, list[tuple[GenerationRecord, EvaluationRecord]]] = {name: [] for name in self.slices}
        for pair in pairs:
            for name in slices_of(self, pair[0]):
                sliced[name].append(pair)
        return EvaluationReport(
            metrics=_aggregate(pairs, self),
            failures=failures,
            records=[judged for _, judged in pairs],
            slices={name: _aggregate(judged, self) for name, judged in sliced.items()},
            metadata={"metric_ids": {name: snake_case(name) for name in self.metric_names}},
        )

    # --- one record --------------------------------------------------------------------------------------------------

    def _score_by(
        self,
        strategy: EvaluationStrategy,
        record: GenerationRecord,
        attempts: Attempts | None,
        result: EvaluationRecord,
    ) -> None:
        items = strategy.prepare(record)
        answers = [self._extract(item.record) for item in items]
        select = getattr(strategy, "select", None)
        if select is not None:
            readable = [index for index, answer in enumerate(answers) if not isinstance(answer, _NoAnswer)]
            chosen = [readable[index] for index in select([answers[index] for index in readable])] or [0]
            items, answers = [items[index] for index in chosen], [answers[index] for index in chosen]
        scores: list[MetricScore] = []
        unscored: dict[str, list[str]] = {}
        told = _AttemptScores(record) if len(record.attempts) > 1 else None
        for item, answer in zip(items, answers, strict=True):
            judged = EvaluationRecord(None, [])
            self._score(item.record, item.reference, answer, attempts, judged)
            missing = set(self.metric_names) - {score.metric_name for score in judged.scores}
            scores += judged.scores if told is None else told.note(item.record, judged, missing)
            result.failures += judged.failures
            for name in missing:
                unscored.setdefault(name, []).append("; ".join(judged.failures))
        for score in _reduce(strategy, record, scores, result.failures) if scores else ():
            score = score if told is None else told.tell(score)
            # Of several scores that a metric keeps, the first says it for all.
            if reasons := unscored.pop(score.metric_name, None):
                score = replace(score, metadata={**score.metadata, UNSCORED_ATTEMPTS: reasons})
            result.scores.append(score)

    def _extract(self, record: GenerationRecord) -> object:
        output, part = record.output, getattr(self.extractor, "part", "text")
        if output is not None and output.stopped_by and part == "text":
            # What was said last was on the way to an answer, whatever can be read in it.
            return _NoAnswer(f"not answered: stopped by {output.stopped_by}", unparsed=True)
        try:
            if output is not None and part != "text":
                return self.extractor.extract(read_part(output, part))
            return self.extractor.extract(output.text if output is not None else "")
        except FieldExtractionError as error:
            return _NoAnswer(str(error) or "no answer found", unparsed=True)
        except Exception as error:  # boundary: an extractor is the user's code
            return _NoAnswer(format_error(error))

    def _score(
        self,
        record: GenerationRecord,
        reference: object,
        answer: object,
        attempts: Attempts | None,
        result: EvaluationRecord,
    ) -> None:
        if isinstance(answer, _NoAnswer) and not answer.unparsed:
            result.failures.append(f"extractor: {answer.reason}")
            return
        references, metadata = self._inputs(record, reference, attempts)
        if not isinstance(answer, _NoAnswer):
            for metric in self.metrics:
                _add_score(metric, answer, references, metadata, result)
            return
        unscored = False
        # Of an answer that cannot be read: zero where that is the worst there is, and what does not need the answer.
        for metric in self.metrics:
            is_comparable = bool(references) or not getattr(metric, "requires_reference", True)
            if not getattr(metric, "requires_answer", True):
                _add_score(metric, None, references, metadata, result)
            elif self.unparsed == "zero" and getattr(metric, "aggregation", None) is not None:
                _add_score(metric, None, references, metadata, result, unparsed=answer.reason)
            elif self.unparsed == "zero" and getattr(metric, "higher_is_better", True) and is_comparable:
                result.scores.append(MetricScore(metric.name, 0.0, {"error": answer.reason}, {"outcome": "unparsed"}))
            else:
                unscored = True
        if unscored:
            result.failures.append(f"extractor: {answer.reason}")

    def _inputs(
        self, record: GenerationRecord, reference: object, attempts: Attempts | None
    ) -> tuple[list[object], Row]:
        """What every metric gets beside the answer: the references, and the row's other fields."""
        selected = reference if self._select_reference is None else self._select_reference(record)
        task = record.task
        metadata: Row = {**task.metadata, "sample_id": task.metadata.get("dataset_id"), "prompt": task.prompt.text}
        if "generation_time_ms" in record.metrics:
            metadata["generation_time_ms"] = record.metrics["generation_time_ms"]
        if attempts is not None:
            metadata["attempt_outcomes"] = attempts
        if self._reads_output:
            metadata["model_output"] = record.output
        return _as_list(selected), metadata


class _AttemptScores:
    """What each attempt at a sample was given: of several, a reduced score does not tell which of them passed."""

    def __init__(self, record: GenerationRecord) -> None:
        numbers = [attempt.task.metadata.get("attempts", place) for place, attempt in enumerate(record.attempts)]
        self._numbers = {id(attempt): number for attempt, number in zip(record.attempts, numbers, strict=True)}
        # The sample's own answer is that of its first attempt without an error.
        answered = (id(attempt) for attempt in record.attempts if attempt.error is None)
        self._numbers[id(record)] = self._numbers.get(next(answered, 0))
        self._by_metric: dict[str, list[dict[str, object]]] = {}

    def note(
        self, attempt: GenerationRecord, judged: EvaluationRecord, missing: Iterable[str] = ()
    ) -> list[MetricScore]:
        """The scores of one attempt, with its number; one that a strategy made itself has none."""
        number = self._numbers.get(id(attempt))
        if number is None:
            return judged.scores
        for score in judged.scores:
            entry: dict[str, object] = {"attempt": number, "value": score.value}
            if outcome := score.metadata.get("outcome"):
                entry["outcome"] = outcome
            if reason := reason_of(score):
                entry["reason"] = reason[:_LONGEST_REASON]
            self._by_metric.setdefault(score.metric_name, []).append(entry)
        for name in missing:
            failed = {"attempt": number, "value": None, "reason": "; ".join(judged.failures)[:_LONGEST_REASON]}
            self._by_metric.setdefault(name, []).append(failed)
        return [replace(score, metadata={**score.metadata, OF_ATTEMPT: number}) for score in judged.scores]

    def tell(self, score: MetricScore) -> MetricScore:
        """The score with what each attempt was given, unless it is one attempt's own."""
        found = self._by_metric.get(score.metric_name)
        if OF_ATTEMPT in score.metadata or not found:
            return score
        return replace(score, metadata={**score.metadata, ATTEMPT_SCORES: found})


def slices_of(pipeline: object, record: GenerationRecord) -> list[str]:
    """The slices that a record belongs to. Where a predicate raises it does not, and the log says why."""
    found = []
    for name, predicate in getattr(pipeline, "slices", {}).items():
        try:
            if predicate(record):
                found.append(name)
        except Exception as error:  # boundary: a predicate is the user's code
            sample_id = record.task.metadata.get("dataset_id")
            logger.warning("sample %s is left out of the slice %s: %s", sample_id, name, format_error(error))
    return found


def score_ranges(pipeline: object) -> dict[str, tuple[float | None, float | None]]:
    """What the scores of each metric can be, as far as the metrics say."""
    ranges = {metric.name: getattr(metric, "score_range", None) for metric in getattr(pipeline, "metrics", ())}
    return {name: (found[0], found[1]) for name, found in ranges.items() if found is not None}


def aggregations(pipeline: object) -> dict[str, str]:
    """How the scores of each metric become one number, where that is more than their mean."""
    named = {metric.name: getattr(metric, "aggregation", None) for metric in getattr(pipeline, "metrics", ())}
    return {name: found for name, found in named.items() if found is not None}


def _aggregate(
    pairs: Sequence[tuple[GenerationRecord, EvaluationRecord]], pipeline: EvaluationPipeline
) -> dict[str, MetricAggregate]:
    """Every metric over judged samples in memory; one that a sample has no score of has failed there."""
    means = [mean_scores(judged.scores) for _, judged in pairs]
    attempts = [attempt for record, _ in pairs for attempt in record.attempts or [record]]
    aggregates: dict[str, MetricAggregate] = {}
    ranges, named = score_ranges(pipeline), aggregations(pipeline)
    directions = {metric.name: getattr(metric, "higher_is_better", True) for metric in pipeline.metrics}
    for name in pipeline.metric_names:
        scores = [[score for score in judged.scores if score.metric_name == name] for _, judged in pairs]
        values = [of_sample[name] for of_sample in means if name in of_sample]
        aggregates[name] = found = MetricAggregate.from_values(name, values, score_range=ranges.get(name))
        found.higher_is_better = directions.get(name, True)
        found.per_sample = [score for of_sample in scores for score in of_sample]
        found.failed = len(pairs) - len(values)
        found.unparsed = sum(
            bool(of_sample) and all(score.metadata.get("outcome") == "unparsed" for score in of_sample)
            for of_sample in scores
        )
        found.partial = sum(
            any(score.metadata.get("outcome") == "partial" for score in of_sample) for of_sample in scores
        )
        found.attempts = len(attempts)
        found.failed_attempts = sum(attempt.error is not None for attempt in attempts) + sum(
            len(score.metadata.get(UNSCORED_ATTEMPTS, ())) for score in found.per_sample
        )
        if name in named:
            observed = [Observation(str(n), None, one.details) for n, made in enumerate(scores) for one in made]
            put_aggregation(found, named[name], observed)
    return aggregates


def _reduce(
    strategy: EvaluationStrategy, record: GenerationRecord, scores: list[MetricScore], failures: list[str]
) -> list[MetricScore]:
    """The sample's scores. What a strategy cannot make of one metric's scores costs the others nothing."""
    try:
        return strategy.aggregate(record, scores)
    except Exception as error:  # boundary: a strategy is the user's code
        names = list(dict.fromkeys(score.metric_name for score in scores))
        if len(names) == 1:
            failures.append(f"strategy: {names[0]}: {format_error(error)}")
            return []
    by_metric = [[score for score in scores if score.metric_name == name] for name in names]
    return [reduced for group in by_metric for reduced in _reduce(strategy, record, group, failures)]


def _add_score(
    metric: Metric,
    answer: object,
    references: list[object],
    metadata: Row,
    result: EvaluationRecord,
    *,
    unparsed: str | None = None,
) -> None:
    if not references and getattr(metric, "requires_reference", True):
        found: MetricScore | str = "needs a reference, and this sample has none; set reference_field"
    else:
        found = _compute(metric, answer, references, metadata)
    if isinstance(found, str):
        result.failures.append(f"{metric.name}: {found}")
    elif unparsed is not None:
        details = {**found.details, "error": unparsed}
        result.scores.append(replace(found, details=details, metadata={**found.metadata, "outcome": "unparsed"}))
    else:
        result.scores.append(found)


def _compute(metric: Metric, answer: object, references: list[object], metadata: Row) -> MetricScore | str:
    """The score, or why there is none; a failure is data and never a number."""
    try:
        score = metric.compute(prediction=answer, references=references, metadata=metadata)
    except Exception as error:  # boundary: a metric is the user's code
        return format_error(error)
    if not isinstance(score, MetricScore):
        return f"compute returned {type(score).__name__}, expected a MetricScore"
    value = score.value
    if type(value) is float and -_LARGEST <= value <= _LARGEST and _is_within(value, metric):
        return score
    try:
        number = float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not -_LARGEST <= number <= _LARGEST:
        return f"compute returned the value {str(value)[:80]!r}, expected a number that a mean can be made of"
    if not _is_within(number, metric):
        return f"compute returned {number:g}, outside the metric's own score_range {metric.score_range}"
    return MetricScore(score.metric_name, number, score.details, score.metadata)


def _is_within(value: float, metric: Metric) -> bool:
    found = getattr(metric, "score_range", None)
    return found is None or (
        (found[0] is None or value >= found[0] - _ROUNDING) and (found[1] is None or value <= found[1] + _ROUNDING)
    )


def _as_list(reference: object) -> list[object]:
    """List and tuple references are spread, anything else is wrapped."""
    value = reference.value if isinstance(reference, Reference) else reference
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
