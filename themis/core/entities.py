"""The nouns of a sample run, from the row's task to the report, as plain data classes.

Users construct the first ones in their providers and metrics and read the last ones; everything between passes them on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from themis.core.intervals import Labels, Scores, summarise
from themis.core.registry import nearest, snake_case
from themis.exceptions import ConfigurationError, MetricError

__all__ = [
    "EvaluationFailure",
    "EvaluationItem",
    "EvaluationRecord",
    "EvaluationReport",
    "EvaluationSummary",
    "ExperimentFailure",
    "ExperimentReport",
    "GenerationRecord",
    "GenerationTask",
    "MetricAggregate",
    "MetricScore",
    "ModelError",
    "ModelOutput",
    "ModelSpec",
    "PromptRender",
    "PromptSpec",
    "Reference",
    "Result",
    "SamplingConfig",
    "mean_scores",
]

T = TypeVar("T")

# In a score's metadata: why some of the sample's answers are not in it, a sentence each.
UNSCORED_ATTEMPTS = "unscored_attempts"


@dataclass
class SamplingConfig:
    """How the model draws its tokens.

    Args:
        temperature: 0 for the likeliest token each time.
        top_p: Draw from the likeliest tokens that together have this probability; None leaves it to the provider.
        max_tokens: Longest answer; negative for no limit of ours.
        stop: Texts at which the answer ends, none of them in it.

    >>> SamplingConfig.from_params(temperature=0.8)
    SamplingConfig(temperature=0.8, top_p=None, max_tokens=2048, stop=())
    """

    temperature: float = 0.0
    top_p: float | None = None
    max_tokens: int = 512
    stop: tuple[str, ...] = ()

    @classmethod
    def from_params(
        cls,
        temperature: float = 0.0,
        top_p: float | None = None,
        max_tokens: int = 2048,
        stop: Sequence[str] = (),
    ) -> SamplingConfig:
        """As the constructor, with room for longer answers.

        Args:
            temperature: 0 for the likeliest token each time.
            top_p: Draw from the likeliest tokens that together have this probability; None leaves it to the provider.
            max_tokens: Longest answer; negative for no limit of ours.
            stop: Texts at which the answer ends.
        """
        return cls(temperature=temperature, top_p=top_p, max_tokens=max_tokens, stop=tuple(stop))

    def override(self, given: object) -> SamplingConfig:
        """With what a row's field `sampling` says in place of what is said here.

        Args:
            given: A dict with some of `temperature`, `top_p`, `max_tokens` and `stop`.

        Raises:
            ConfigurationError: It is something else; says what to do with a field that only has that name.

        >>> SamplingConfig().override({"max_tokens": 64, "stop": ["\\n\\n"]})
        SamplingConfig(temperature=0.0, top_p=None, max_tokens=64, stop=('\\n\\n',))
        """
        if not isinstance(given, Mapping) or not given.keys() <= _SAMPLING.keys():
            raise _no_sampling(given)
        for name, value in given.items():
            if not _SAMPLING[name](value):
                raise _no_sampling(given)
        stop = given.get("stop")
        told = {} if stop is None else {"stop": (stop,) if isinstance(stop, str) else tuple(stop)}
        return replace(self, **{**given, **told})


def _no_sampling(given: object) -> ConfigurationError:
    return ConfigurationError(
        "the field 'sampling' of a row says how its answer is drawn, as a dict with some of temperature, top_p, max_tokens "
        f"and stop, got {str(given)[:80]!r}; if it is data, rename the field"
    )


def _is_number(value: object, most: float = math.inf) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


_SAMPLING: dict[str, Callable[[Any], bool]] = {
    "temperature": _is_number,
    "top_p": lambda value: value is None or _is_number(value, 1.0),
    "max_tokens": lambda value: isinstance(value, int) and not isinstance(value, bool) and (value > 0 or value == -1),
    "stop": lambda value: (
        isinstance(value, str)
        or (isinstance(value, list | tuple) and all(isinstance(text, str) and text for text in value))
    ),
}


@dataclass(frozen=True)
class ModelSpec:
    """Which model, and who serves it.

    Args:
        identifier: The model's name at its provider, such as `gpt-4o`.
        provider: A registered provider, such as `openai`.
        default_sampling: What it is sampled with unless a task says otherwise.
        metadata: Whatever else is worth keeping of it.

    >>> ModelSpec("gpt-4o", "openai").model_key
    'openai:gpt-4o'
    """

    identifier: str
    provider: str
    default_sampling: SamplingConfig | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def model_key(self) -> str:
        """`provider:identifier`, as runs are listed by."""
        return f"{self.provider}:{self.identifier}"


@dataclass(frozen=True)
class PromptSpec:
    """A named template, before any row is put into it.

    Args:
        name: What reports call it.
        template: The text with `{fields}`.
        metadata: Whatever else is worth keeping of it.
    """

    name: str
    template: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptRender:
    """The text that is sent, with the row it was made from.

    Args:
        spec: The template.
        text: The template with the row's fields in it.
        context: The row.
        metadata: The template's.
    """

    spec: PromptSpec
    text: str
    context: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def prompt_text(self) -> str:
        """The text that is sent."""
        return self.text

    @property
    def template_name(self) -> str:
        """The name of the template."""
        return self.spec.name


@dataclass(frozen=True)
class Reference(Generic[T]):
    """The expected answer.

    Args:
        kind: The row's field that it came from.
        value: What is expected; a list where any of several will do.
        schema: What the value looks like, for metrics that ask.
    """

    kind: str
    value: T
    schema: Any = None


@dataclass(frozen=True)
class ModelOutput:
    """What the model said.

    Args:
        text: The answer.
        raw: The provider's reply as it came, for whoever needs more of it.
        usage: `prompt_tokens`, `completion_tokens` and `total_tokens`, where known.

    >>> ModelOutput("The answer is", raw={"finish_reason": "length"}).is_cut_off
    True
    """

    text: str
    raw: Any = None
    usage: dict[str, Any] | None = None

    @property
    def is_cut_off(self) -> bool:
        """Whether the model had more to say than `max_tokens` let it, as far as its provider tells."""
        return isinstance(self.raw, dict) and self.raw.get("finish_reason") in ("length", "max_tokens")


@dataclass(frozen=True)
class ModelError:
    """Why there is no output. A failure of the world, never a score.

    Args:
        message: What happened, for people.
        kind: A short code for it, by which failures are counted.
        details: What else is known, such as the HTTP status.
    """

    message: str
    kind: str = "model_error"
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class GenerationTask:
    """One question to one model.

    Args:
        prompt: What is asked, with the row it was made from.
        model: Who is asked.
        sampling: How the answer is drawn.
        metadata: The row's other fields, and `dataset_id`, which names the row.
        reference: The expected answer, if there is one.
    """

    prompt: PromptRender
    model: ModelSpec
    sampling: SamplingConfig
    metadata: dict[str, Any] = field(default_factory=dict)
    reference: Reference[Any] | None = None


@dataclass
class GenerationRecord:
    """A task and what became of it.

    Args:
        task: What was asked.
        output: The answer; None where there is none.
        error: Why there is none; None where there is one.
        metrics: Measurements, such as `generation_time_ms`.
        attempts: After a run one record for each answer drawn, at least one.

    >>> task = GenerationTask(
    ...     PromptRender(PromptSpec("sum", "{question}"), "2 + 2?"), ModelSpec("gpt-4o", "openai"), SamplingConfig()
    ... )
    >>> GenerationRecord(task, ModelOutput("4"), error=None).output.text
    '4'
    """

    task: GenerationTask
    output: ModelOutput | None
    error: ModelError | None
    metrics: dict[str, Any] = field(default_factory=dict)
    attempts: list[GenerationRecord] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """A finished request: what the engine yields, what is committed, what observers get.

    Args:
        position: Of the sample in its run.
        attempt: Which of the sample's answers it is, from 0.
        key: Under which the answer is stored: a hash of everything that could change it.
        record: The answer or the error.
        calls: Calls that it took, retries included; the tokens and seconds are theirs together.
        prompt_tokens: Sent.
        completion_tokens: Received.
        seconds: From the first call to the answer.
        cost_usd: None where the price is not known.
        reused: Taken from another run's answer: nothing was spent.
    """

    position: int
    attempt: int
    key: str
    record: GenerationRecord
    calls: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cost_usd: float | None = 0.0
    reused: bool = False


@dataclass(frozen=True)
class EvaluationItem:
    """What a strategy hands to the metrics: one answer and what was expected.

    Args:
        record: The answer.
        reference: What was expected, if anything.
    """

    record: GenerationRecord
    reference: Reference[Any] | None


@dataclass(frozen=True)
class MetricScore:
    """One metric's verdict on one answer.

    Args:
        metric_name: The metric's name.
        value: The score, a finite number.
        details: What explains it, shown with the sample.
        metadata: What the pipeline adds, such as `outcome` of an answer that could not be read.

    >>> MetricScore("ExactMatch", 1.0, details={"matched": "4"}).value
    1.0
    """

    metric_name: str
    value: float
    details: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


def mean_scores(scores: Iterable[MetricScore]) -> dict[str, float]:
    """A sample's one number a metric; where every attempt keeps its score, their mean.

    Args:
        scores: Of one sample.

    >>> mean_scores([MetricScore("F1", 1.0), MetricScore("F1", 0.5), MetricScore("ExactMatch", 1.0)])
    {'F1': 0.75, 'ExactMatch': 1.0}
    """
    found: dict[str, list[float]] = {}
    for score in scores:
        found.setdefault(score.metric_name, []).append(score.value)
    return {name: values[0] if len(values) == 1 else math.fsum(values) / len(values) for name, values in found.items()}


@dataclass
class EvaluationSummary:
    """Scores and failure messages of one answer, before a strategy reduces them."""

    scores: list[MetricScore]
    failures: list[str] = field(default_factory=list)


@dataclass
class EvaluationRecord:
    """All scores of one sample, and what failed while judging it.

    Args:
        sample_id: The sample.
        scores: One a metric.
        failures: Why scores are missing, a sentence each.
    """

    sample_id: str | None
    scores: list[MetricScore]
    failures: list[str] = field(default_factory=list)


@dataclass
class ExperimentFailure:
    """A sample for which there is no answer.

    Args:
        sample_id: The sample.
        message: Why.
    """

    sample_id: str | None
    message: str


@dataclass
class EvaluationFailure:
    """A sample that has an answer but no verdict, and why.

    Args:
        sample_id: The sample.
        message: Why.
    """

    sample_id: str | None
    message: str


@dataclass
class MetricAggregate:
    """One metric over a run. With nothing scored the mean is NaN.

    Args:
        name: The metric's name.
        count: Samples that have a score.
        mean: Over those. Where every attempt keeps its score, a sample counts with the mean of its own, so that one with
            fewer answers does not weigh less; of a metric with an aggregation (corpus
            BLEU, macro-F1) the value that all samples have together.
        per_sample: Their scores, as many as the report keeps.
        per_sample_complete: Whether that is all of them.
        truncated_count: How many are not kept.
        failed: Samples without a score, counted beside the mean and never in it.
        unparsed: Those among the scored whose answer no extractor could read, in none of the attempts.
        partial: Those among the scored on which some judge of a panel gave no verdict.
        stderr: Standard error of the mean.
        ci: 95 % interval, inside the metric's `score_range`; None for fewer than two samples, and for equal scores that
            nothing bounds.
        ci_method: How it was computed (`core.intervals.Summary`): "mid-p" for scores that are all 0 or 1, "beta" for
            others in a `score_range`, "hall" for those without one, "clustered" where a cluster field was given,
            "jackknife" for an aggregation.
        attempts: Answers that were asked for, over all samples.
        failed_attempts: Those of them that no score holds: the call failed, or the metric did on one of several answers.
        successes: The sum of the samples' scores, where they lie from 0 to 1 and more is better: of scores that are 0 or 1,
            how many samples passed. None of any other measure.
        details: What explains an aggregation: the confusion matrix, the bins of a reliability diagram.

    >>> exact = MetricAggregate.from_scores("ExactMatch", [MetricScore("ExactMatch", value) for value in (1, 1, 0, 1)])
    >>> exact.mean, exact.count, exact.ci_method
    (0.75, 4, 'mid-p')
    """

    name: str
    count: int
    mean: float
    per_sample: Sequence[MetricScore] = ()
    per_sample_complete: bool = True
    truncated_count: int = 0
    failed: int = 0
    unparsed: int = 0
    partial: int = 0
    stderr: float | None = None
    ci: tuple[float, float] | None = None
    ci_method: str | None = None
    attempts: int = 0
    failed_attempts: int = 0
    successes: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_values(
        cls,
        name: str,
        values: Scores,
        *,
        clusters: Labels | None = None,
        score_range: tuple[float | None, float | None] | None = None,
    ) -> MetricAggregate:
        """The mean of one number a sample, with its standard error and interval.

        Args:
            name: The metric's name.
            values: One a sample.
            clusters: The group of each sample, where samples are not independent.
            score_range: The least and the most that a score can be, which the interval does not leave.
        """
        summary = summarise(values, clusters=clusters, score_range=score_range)
        return cls(
            name=name,
            count=summary.count,
            mean=summary.mean,
            stderr=summary.stderr,
            ci=summary.ci,
            ci_method=summary.method,
        )

    @classmethod
    def from_scores(
        cls,
        name: str,
        scores: Sequence[MetricScore],
        *,
        score_range: tuple[float | None, float | None] | None = None,
    ) -> MetricAggregate:
        """The aggregate of scores that are in memory.

        Args:
            name: The metric's name.
            scores: One a sample.
            score_range: The least and the most that a score can be, which the interval does not leave.
        """
        found = cls.from_values(name, [score.value for score in scores], score_range=score_range)
        found.per_sample = list(scores)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything but the samples' scores and the details, as every file, list and page tells it; a mean of nothing is None.

        >>> MetricAggregate("ExactMatch", count=0, mean=math.nan, failed=3).to_dict()["mean"] is None
        True
        """
        return {
            "mean": None if math.isnan(self.mean) else self.mean,
            "count": self.count,
            "failed": self.failed,
            "unparsed": self.unparsed,
            "partial": self.partial,
            "stderr": self.stderr,
            "ci": list(self.ci) if self.ci else None,
            "ci_method": self.ci_method,
            "attempts": self.attempts,
            "failed_attempts": self.failed_attempts,
        }


@dataclass
class EvaluationReport:
    """The judging half of a run.

    Args:
        metrics: Means with intervals, by the metrics' names.
        failures: Samples without a verdict.
        records: The scores of each sample.
        slices: The same means over parts of the samples, by the parts' names.
        metadata: What else the pipeline says of it.

    >>> scores = [MetricScore("ExactMatch", 1.0)]
    >>> report = EvaluationReport({"ExactMatch": MetricAggregate.from_scores("ExactMatch", scores)}, [], [])
    >>> report.metric("exact_match").mean
    1.0
    """

    metrics: dict[str, MetricAggregate]
    failures: Sequence[EvaluationFailure]
    records: Sequence[EvaluationRecord]
    slices: dict[str, dict[str, MetricAggregate]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    def metric(self, name: str) -> MetricAggregate:
        """One metric of the report.

        Args:
            name: As it is reported (`ExactMatch`), or in snake case whatever the letters' case (`exact_match`).

        Raises:
            MetricError: The report has no such metric; names the nearest.
        """
        if name in self.metrics:
            return self.metrics[name]
        wanted = snake_case(name)
        for known, aggregate in self.metrics.items():
            if snake_case(known) == wanted:
                return aggregate
        raise MetricError(
            f"no metric {name!r} in this report{nearest(name, self.metrics)}; it has {', '.join(self.metrics) or 'none'}"
        )


@dataclass(repr=False)
class ExperimentReport:
    """What `themis.evaluate` returns. Its sequences read from the store as they are looked at.

    Args:
        generation_results: The records, in the order of the rows.
        evaluation_report: Metrics and verdicts.
        failures: Samples without an answer.
        metadata: `run_id`, `status`, counts, `cost`, `model`, `manifest_hash` and the `reproducibility_manifest`.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/noisy-0.5", limit=3, run_id="first", progress=False)
    >>> report, report.status
    (ExperimentReport(first: 3 samples; ExactMatch=0.6667), 'completed')
    >>> report.item_scores("ExactMatch")
    {'0': 1.0, '1': 0.0, '2': 1.0}
    >>> report.generation_results[0].output.text
    '4'
    """

    generation_results: Sequence[GenerationRecord]
    evaluation_report: EvaluationReport
    failures: Sequence[ExperimentFailure]
    metadata: dict[str, Any]

    @property
    def run_id(self) -> str:
        """The run's name in the store."""
        return str(self.metadata["run_id"])

    @property
    def status(self) -> str:
        """How the run ended: `completed`, `interrupted` or `failed`."""
        return str(self.metadata["status"])

    def metric(self, name: str) -> MetricAggregate:
        """One metric of the report.

        Args:
            name: As it is reported, or in snake case whatever the letters' case.

        Raises:
            MetricError: The report has no such metric; names the nearest.
        """
        return self.evaluation_report.metric(name)

    def item_scores(self, metric: str) -> dict[str, float | None]:
        """What each judged item scored under a metric; None where that could not be told.

        Args:
            metric: As it is reported.
        """
        return {
            str(record.sample_id): mean_scores(record.scores).get(metric) for record in self.evaluation_report.records
        }

    def __repr__(self) -> str:
        run_id, samples = self.metadata.get("run_id", "?"), self.metadata.get("total_samples", 0)
        means = ", ".join(
            f"{name}={'n/a' if math.isnan(aggregate.mean) else format(aggregate.mean, '.4f')}"
            # Of every sample, unless it says of how many.
            f"{'' if aggregate.count == samples else f' (n={aggregate.count:,})'}"
            for name, aggregate in self.evaluation_report.metrics.items()
        )
        return f"ExperimentReport({run_id}: {samples} samples; {means or 'no metrics'})"
