"""The nouns of a sample run, from the row's task to the report, as plain data classes.

Users construct the first ones in their providers and metrics and read the last ones; everything between passes them on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from themis.core.frames import DataFrame
from themis.core.messages import PROVIDER_DATA, Message, Part, ToolCall
from themis.core.notebook import render_record, render_report
from themis.core.registry import Registry, nearest, snake_case
from themis.core.thresholds import MetricAggregate
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
    "Step",
    "ToolCall",
    "mean_scores",
]

T = TypeVar("T")

# What a report can be seen as beyond what is known here; looked up when it is asked for.
VIEWS: Registry[Callable[..., DataFrame]] = Registry("view", {"frame": "themis.experiment.export.frames:make_frame"})

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


# The limits of a sample that may take several steps, which are also why such an answer ended.
SAMPLE_LIMITS = ("max_turns", "max_sample_tokens", "max_sample_seconds", "max_sample_usd")
# Why an answer ended before the model was done.
_CUT_OFF = frozenset({"length", *SAMPLE_LIMITS})


@dataclass(frozen=True)
class ModelOutput:
    """What the model said, in parts.

    Args:
        text: The answer, without reasoning: what extractors and metrics see.
        raw: What else the provider sent that is worth keeping, such as `id` and `model`.
        usage: `prompt_tokens`, `completion_tokens` and `total_tokens`, where known; where there are any, `cached_tokens` and
            `cache_write_tokens` of the prompt, and `reasoning_tokens` of the answer.
        reasoning: What the model thought before it answered, where that is shown.
        tool_calls: Tools that it wants to be called.
        refusal: Its words, where it refused.
        finish_reason: Why it ended: `stop`, `length`, `tool_calls`, `content_filter`, `refusal`, or a word of the provider's.
        logprobs: Of the answer's tokens, as the provider tells them, where they were asked for.
        parts: What it said beside the text, such as images, as parts of a message.
        transcript: Where an answer took several steps, all that was said after the prompt: the model's messages, what tools
            returned, what a user said.
        cost_usd: What the answer cost, where whoever answered says so.

    >>> ModelOutput("The answer is", finish_reason="length").is_cut_off
    True
    """

    text: str
    raw: Any = None
    usage: dict[str, Any] | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    refusal: str | None = None
    finish_reason: str | None = None
    logprobs: Any = None
    parts: tuple[Part, ...] = ()
    transcript: tuple[Message, ...] = ()
    cost_usd: float | None = None

    @property
    def is_cut_off(self) -> bool:
        """Whether the model had more to say than `max_tokens`, or a limit of its sample, let it; as far as is known."""
        return self.finish_reason in _CUT_OFF

    @property
    def stopped_by(self) -> str:
        """The limit of its sample that ended it before it was answered: its text is what was said on the way. Empty for others.

        >>> ModelOutput("Let me look", finish_reason="max_turns").stopped_by
        'max_turns'
        """
        reason = self.finish_reason or ""
        return reason if reason in SAMPLE_LIMITS else ""

    def to_message(self) -> Message:
        """The answer as a message of a conversation."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.parts:
            message["content"] = [*([{"type": "text", "text": self.text}] if self.text else []), *self.parts]
        for name in ("reasoning", "refusal"):
            if value := getattr(self, name):
                message[name] = value
        if self.tool_calls:
            message["tool_calls"] = [call.to_plain() for call in self.tool_calls]
        if isinstance(self.raw, Mapping) and self.raw.get(PROVIDER_DATA):
            message[PROVIDER_DATA] = self.raw[PROVIDER_DATA]
        return message


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
        scores: In a report, what each metric gave the sample; empty where it has no verdict.

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
    scores: dict[str, float] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return render_record(self)


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
        steps: The steps that led to it, which are stored and counted already.
        batch_prompt_tokens: Of those sent, the ones in batches, which cost less.
        batch_completion_tokens: Of those received, likewise.
        cached_tokens: Of those sent, read from the provider's cache.
        cache_write_tokens: Of those sent, written to it.
        told_usd: The dollars that its calls say they cost, failed ones included; None where none says so.
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
    steps: Sequence[Step] = ()
    batch_prompt_tokens: int = 0
    batch_completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    told_usd: float | None = None


@dataclass(slots=True)
class Step:
    """One step of an answer that takes several: what was said in it, stored before the next one is made.

    Args:
        position: Of the sample in its run.
        attempt: Which of the sample's answers it belongs to, from 0.
        number: Of the step, from 0.
        kind: `answer` (the model's), `tool` or `user`.
        message: What was said.
        calls: Calls that it took, retries included.
        prompt_tokens: Sent.
        completion_tokens: Received.
        seconds: From the first call to the answer.
        cost_usd: None where the price is not known.
        cached_tokens: Of those sent, read from the provider's cache.
        cache_write_tokens: Of those sent, written to it.
    """

    position: int
    attempt: int
    number: int
    kind: str
    message: Message
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cost_usd: float | None = 0.0
    cached_tokens: int = 0
    cache_write_tokens: int = 0


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
        read_attachment: Reads an image or a file that samples name by its digest; None where there is no store to read from.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/noisy-0.5", limit=3, run_id="first", progress=False)
    >>> report, report.status
    (ExperimentReport(first: 3 samples; ExactMatch=0.6667), 'completed')
    >>> report.item_scores("ExactMatch")
    {'0': 1.0, '1': 0.0, '2': 1.0}
    >>> report.generation_results[0].output.text
    '4'
    >>> report.to_frame()["ExactMatch"].tolist()
    [1.0, 0.0, 1.0]
    """

    generation_results: Sequence[GenerationRecord]
    evaluation_report: EvaluationReport
    failures: Sequence[ExperimentFailure]
    metadata: dict[str, Any]
    read_attachment: Callable[[str], bytes | None] | None = field(default=None, compare=False)

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

    def to_frame(self, library: str = "pandas", *, attempts: bool = False) -> DataFrame:
        """The samples as a data frame: id, prompt, answer, reference, a column a metric, error, tokens, cost, seconds, fields.

        Args:
            library: `pandas` or `polars`, which `pip install 'themis-eval[frames]'` installs.
            attempts: One row for each attempt. A metric's column then has what the attempt itself scored; where a reducer
                takes one of several (`majority`, `first`), only that one was judged.

        Raises:
            DependencyError: The library is not installed.
        """
        return VIEWS.get("frame")(self, library, attempts=attempts)

    def _repr_html_(self) -> str:
        return render_report(self)

    def __repr__(self) -> str:
        run_id, samples = self.metadata.get("run_id", "?"), self.metadata.get("total_samples", 0)
        means = ", ".join(
            f"{name}={'n/a' if math.isnan(aggregate.mean) else format(aggregate.mean, '.4f')}"
            # Of every sample, unless it says of how many.
            f"{'' if aggregate.count == samples else f' (n={aggregate.count:,})'}"
            for name, aggregate in self.evaluation_report.metrics.items()
        )
        return f"ExperimentReport({run_id}: {samples} samples; {means or 'no metrics'})"
