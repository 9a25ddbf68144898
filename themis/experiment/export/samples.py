"""The samples of a report, each answer joined with its verdicts by item id, and the few facts that every format tells.

Every export format goes through `join_samples`; none of them ever holds more than a window of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from themis.core.continuations import ScoredContinuation, list_scored, read_likelihoods
from themis.core.entities import (
    EvaluationFailure,
    EvaluationRecord,
    ExperimentFailure,
    ExperimentReport,
    GenerationRecord,
    MetricAggregate,
    MetricScore,
    ModelOutput,
    mean_scores,
)
from themis.core.messages import Message
from themis.core.transcripts import AttemptVerdict, ShownCall, list_asked, verdicts_by_attempt
from themis.storage.lazy import LazySequence

# Both streams of a stored report are in dataset order, so an answer's verdict is the next one, unless the run is being
# written while it is read. So many verdicts may wait for an answer that was stored after its page was read.
_WINDOW = 4_096


@dataclass(frozen=True)
class Sample:
    """One item: what was asked and answered, how it was judged, what failed. A failure has no score."""

    sample_id: str | None
    record: GenerationRecord | None
    scores: list[MetricScore] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def metadata(self) -> dict[str, object]:
        """The row's fields, and how the sample was asked."""
        if self.record is None:
            return {}
        task = self.record.task
        return {
            **task.metadata,
            "model_identifier": task.model.identifier,
            "model_provider": task.model.provider,
            "prompt_template": task.prompt.spec.name,
            "sampling_temperature": task.sampling.temperature,
            "sampling_top_p": task.sampling.top_p,
            "sampling_max_tokens": task.sampling.max_tokens,
            **self._likelihoods(),
        }

    def _likelihoods(self) -> dict[str, object]:
        """Of continuations that were scored, a list each, in their order."""
        found = read_likelihoods(self.record.output) if self.record is not None else []
        if not found:
            return {}
        return {
            "continuation_logprobs": [one.logprob for one in found],
            "continuation_greedy": [one.greedy for one in found],
            "continuation_tokens": [one.tokens for one in found],
        }

    @property
    def attempts(self) -> list[GenerationRecord]:
        """Every answer that was asked for, one that failed too."""
        return [] if self.record is None else self.record.attempts or [self.record]

    @property
    def prompt(self) -> str:
        return "" if self.record is None else self.record.task.prompt.text

    @property
    def output(self) -> str | None:
        return None if self.record is None or self.record.output is None else self.record.output.text

    @property
    def shown_output(self) -> str | None:
        """The answer as people read it; of continuations that were scored, or tools that were called, a line each."""
        scored = list_scored(self.record) if self.record is not None else []
        if scored:
            return "\n".join(map(_format_scored, scored))
        output = self.record.output if self.record is not None else None
        if output is None or output.text or not output.tool_calls:
            return self.output
        calls = [ShownCall(call.name, call.arguments, call.invalid).written for call in output.tool_calls]
        return "\n".join(f"calls {call}" for call in calls)

    @property
    def verdicts(self) -> list[list[AttemptVerdict]]:
        """What each attempt was given, as far as that is known, in the attempts' order."""
        attempts = self.attempts
        if len(attempts) == 1:
            return [verdicts_by_attempt(self.scores, [0])[0]]
        numbers = [int(one.task.metadata.get("attempts", place)) for place, one in enumerate(attempts)]
        found = verdicts_by_attempt(self.scores, numbers)
        return [found[number] for number in numbers]

    @property
    def messages(self) -> list[Message]:
        """What was asked, where that is more than the prompt."""
        asked = [] if self.record is None else list_asked(self.record.task)
        return [] if len(asked) == 1 and asked[0].get("content") == self.prompt else asked

    @property
    def reference(self) -> object:
        return None if self.record is None or self.record.task.reference is None else self.record.task.reference.value

    @property
    def mean_scores(self) -> dict[str, float]:
        return mean_scores(self.scores)


# What most answers end with.
_USUAL_ENDING = "stop"


def answer_parts(output: ModelOutput | None) -> dict[str, object]:
    """What an answer is beside its text, as far as there is anything.

    Args:
        output: The answer.

    >>> answer_parts(ModelOutput("91", reasoning="7 x 13", finish_reason="stop"))
    {'reasoning': '7 x 13'}
    """
    if output is None:
        return {}
    found = {
        "reasoning": output.reasoning,
        "tool_calls": [call.to_plain() for call in output.tool_calls],
        "refusal": output.refusal,
        "finish_reason": None if output.finish_reason == _USUAL_ENDING else output.finish_reason,
        "parts": list(output.parts),
        "transcript": list(output.transcript),
    }
    return {name: value for name, value in found.items() if value}


def _format_scored(one: ScoredContinuation) -> str:
    marks = [
        mark
        for mark, holds in (
            ("likeliest", one.is_likeliest),
            ("baseline", one.is_baseline),
            ("greedy", one.found.greedy),
        )
        if holds
    ]
    what_it_is = f" ({', '.join(marks)})" if marks else ""
    return f"{one.found.logprob:10.4f}  {one.pair.text.strip()}{what_it_is}"


def join_samples(report: ExperimentReport) -> Iterator[Sample]:
    """Every sample of a report in its order: judged, failed, or not judged yet; then verdicts without an answer."""
    verdicts = report.evaluation_report.records
    window = _WINDOW if isinstance(verdicts, LazySequence) else len(verdicts)
    stream = iter(verdicts)
    ahead: dict[str | None, EvaluationRecord] = {}
    for record in report.generation_results:
        ahead.update((verdict.sample_id, verdict) for verdict in islice(stream, window - len(ahead)))
        sample_id = _item_id(record)
        yield _sample(sample_id, record, ahead.pop(sample_id, None))
    for verdict in chain(ahead.values(), stream):
        yield _sample(verdict.sample_id, None, verdict)


def _item_id(record: GenerationRecord) -> str | None:
    found = record.task.metadata.get("dataset_id")
    return None if found is None else str(found)


def _sample(sample_id: str | None, record: GenerationRecord | None, verdict: EvaluationRecord | None) -> Sample:
    failures = list(verdict.failures) if verdict is not None else []
    if record is not None and record.error is not None:
        failures.insert(0, record.error.message)
    return Sample(sample_id, record, list(verdict.scores) if verdict is not None else [], failures)


# --- facts of a report ------------------------------------------------------------------------------------------------


def all_failures(report: ExperimentReport) -> Iterator[ExperimentFailure | EvaluationFailure]:
    """What has no answer, then what has no verdict."""
    yield from report.failures
    yield from report.evaluation_report.failures


def count_failed(report: ExperimentReport) -> int:
    """Samples without an answer or without a verdict; one that failed twice is one."""
    return len({failure.sample_id for failure in all_failures(report)})


def report_run_id(report: ExperimentReport, run_id: str | None = None) -> str:
    return run_id or str(report.metadata.get("run_id") or "run")


def report_sampling(report: ExperimentReport) -> Mapping[str, Any]:
    """The sampling of the manifest; of a report without one, of its first sample."""
    manifest = report.metadata.get("reproducibility_manifest") or {}
    if manifest.get("sampling"):
        return dict(manifest["sampling"])
    first = next(iter(report.generation_results), None)
    return {} if first is None else {name: value for name, value in vars(first.task.sampling).items() if value != ()}


def format_mean(metric: MetricAggregate, digits: int = 4) -> str:
    return "n/a" if math.isnan(metric.mean) else f"{metric.mean:.{digits}f}"


def format_interval(metric: MetricAggregate, dash: str = "–") -> str:
    return f"{metric.ci[0]:.4f} {dash} {metric.ci[1]:.4f}" if metric.ci else "n/a"
