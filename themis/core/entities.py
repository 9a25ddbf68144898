"""The nouns of a sample run, from the row's task to the report, as plain data classes.

Users construct the first ones in their providers and metrics and read the last ones; everything between passes them on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from themis.core.intervals import summarise
from themis.core.registry import nearest, snake_case
from themis.exceptions import MetricError

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
]

T = TypeVar("T")


@dataclass
class SamplingConfig:
    """How the model draws its tokens. A negative `max_tokens` means no limit of ours."""

    temperature: float = 0.0
    top_p: float = 0.95
    max_tokens: int = 512


@dataclass(frozen=True)
class ModelSpec:
    """Which model, and who serves it."""

    identifier: str
    provider: str
    default_sampling: SamplingConfig | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def model_key(self) -> str:
        return f"{self.provider}:{self.identifier}"


@dataclass(frozen=True)
class PromptSpec:
    """A named template, before any row is put into it."""

    name: str
    template: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptRender:
    """The text that is sent, with the row it was made from."""

    spec: PromptSpec
    text: str
    context: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reference(Generic[T]):
    """The expected answer; `kind` is the row's field that it came from."""

    kind: str
    value: T
    schema: Any = None


@dataclass(frozen=True)
class ModelOutput:
    """What the model said. `usage` holds prompt_tokens, completion_tokens and total_tokens where known."""

    text: str
    raw: Any = None
    usage: dict[str, Any] | None = None

    @property
    def is_cut_off(self) -> bool:
        """Whether the model had more to say than `max_tokens` let it, as far as its provider tells."""
        return isinstance(self.raw, dict) and self.raw.get("finish_reason") in ("length", "max_tokens")


@dataclass(frozen=True)
class ModelError:
    """Why there is no output. A failure of the world, never a score."""

    message: str
    kind: str = "model_error"
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class GenerationTask:
    """One question to one model."""

    prompt: PromptRender
    model: ModelSpec
    sampling: SamplingConfig
    metadata: dict[str, Any] = field(default_factory=dict)
    reference: Reference[Any] | None = None


@dataclass
class GenerationRecord:
    """A task and what became of it. After a run `attempts` holds one record for each sample drawn, at least one."""

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
    """What a strategy hands to the metrics: one answer and what was expected."""

    record: GenerationRecord
    reference: Reference[Any] | None


@dataclass(frozen=True)
class MetricScore:
    """One metric's verdict on one answer."""

    metric_name: str
    value: float
    details: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class EvaluationSummary:
    """Scores and failure messages of one answer, before a strategy reduces them."""

    scores: list[MetricScore]
    failures: list[str] = field(default_factory=list)


@dataclass
class EvaluationRecord:
    """All scores of one sample, and what failed while judging it."""

    sample_id: str | None
    scores: list[MetricScore]
    failures: list[str] = field(default_factory=list)


@dataclass
class ExperimentFailure:
    """A sample for which there is no answer."""

    sample_id: str | None
    message: str


@dataclass
class EvaluationFailure:
    """A sample that has an answer but no verdict, and why."""

    sample_id: str | None
    message: str


@dataclass
class MetricAggregate:
    """One metric over a run.

    `mean` is over the `count` samples that have a score; `failed` ones have none and are counted beside it, `unparsed`
    ones are those among the scored whose answer no extractor could read. With nothing scored the mean is NaN.
    `ci` is a 95 % interval: Wilson for scores that are all 0 or 1, Student's t otherwise, clustered where a cluster
    field was given; `ci_method` names it. It does not leave the metric's `score_range`, and is None where it cannot be
    computed (fewer than two samples).
    """

    name: str
    count: int
    mean: float
    per_sample: Sequence[MetricScore] = ()
    per_sample_complete: bool = True
    truncated_count: int = 0
    failed: int = 0
    unparsed: int = 0
    stderr: float | None = None
    ci: tuple[float, float] | None = None
    ci_method: str | None = None

    @classmethod
    def from_scores(
        cls,
        name: str,
        scores: Sequence[MetricScore],
        *,
        score_range: tuple[float | None, float | None] | None = None,
    ) -> MetricAggregate:
        summary = summarise([score.value for score in scores], score_range=score_range)
        return cls(
            name=name,
            count=summary.count,
            mean=summary.mean,
            per_sample=list(scores),
            stderr=summary.stderr,
            ci=summary.ci,
            ci_method=summary.method,
        )


@dataclass
class EvaluationReport:
    """The judging half of a run."""

    metrics: dict[str, MetricAggregate]
    failures: Sequence[EvaluationFailure]
    records: Sequence[EvaluationRecord]
    slices: dict[str, dict[str, MetricAggregate]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    def metric(self, name: str) -> MetricAggregate:
        """By report name (`ExactMatch`), or in snake case whatever the letters' case (`exact_match`)."""
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
    """What `themis.evaluate` returns. Its sequences read from the store as they are looked at."""

    generation_results: Sequence[GenerationRecord]
    evaluation_report: EvaluationReport
    failures: Sequence[ExperimentFailure]
    metadata: dict[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.metadata["run_id"])

    @property
    def status(self) -> str:
        """How the run ended: `completed`, `interrupted` or `failed`."""
        return str(self.metadata["status"])

    def metric(self, name: str) -> MetricAggregate:
        """By report name, or in snake case whatever the letters' case; an unknown name is a `MetricError`."""
        return self.evaluation_report.metric(name)

    def item_scores(self, metric: str) -> dict[str, float | None]:
        """What each judged item scored under a metric; None where that could not be told."""
        return {
            str(record.sample_id): next((one.value for one in record.scores if one.metric_name == metric), None)
            for record in self.evaluation_report.records
        }

    def __repr__(self) -> str:
        means = ", ".join(
            f"{name}={'n/a' if math.isnan(aggregate.mean) else format(aggregate.mean, '.4f')}"
            for name, aggregate in self.evaluation_report.metrics.items()
        )
        run_id, samples = self.metadata.get("run_id", "?"), self.metadata.get("total_samples", 0)
        return f"ExperimentReport({run_id}: {samples} samples; {means or 'no metrics'})"
