"""What the store holds, as objects: runs, items, records and scores, made from their rows and turned into them.

A record's row holds what was said; the item it was said about is stored once; model, sampling and template are the run's.
`Frame` carries those and rebuilds the task.
"""

from __future__ import annotations

import datetime
import enum
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Required, TypedDict, TypeVar

import msgspec
import sqlalchemy as sa

from themis.core.codec import decode, decode_as, encode
from themis.core.entities import (
    EvaluationRecord,
    GenerationRecord,
    GenerationTask,
    MetricScore,
    ModelError,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    Reference,
    SamplingConfig,
    Step,
)
from themis.core.messages import ToolCall
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import schema
from themis.storage.database import clock, format_holder, holder_is_dead
from themis.storage.schema import AnyColumn

T = TypeVar("T")
# `partial` is the score of a panel of which some judge gave no verdict.
SCORED, PARTIAL, UNPARSED, FAILED = "scored", "partial", "unparsed", "failed"
# What the pipeline tells metrics beside the task's metadata.
_GIVEN = ("sample_id", "prompt", "generation_time_ms", "attempt_outcomes", "model_output")


# What the system says to every row of a run that says nothing of its own: under this name in a template's metadata, in a row
# and in a task.
SYSTEM_PROMPT = "system_prompt"
# The bytes that a task carries for the images and files in its messages; they are stored once, under their digests.
ATTACHED = "attachments"
# What is in the metadata of every task, or is stored elsewhere.
_NOT_IN_BODY = frozenset({"dataset_id", "manifest_hash", "attempts", ATTACHED, "tools", "tool_choice"})


class Attachment(msgspec.Struct, frozen=True):
    """An image or a file that a row names."""

    digest: str
    media_type: str
    content: bytes


class Item(msgspec.Struct, frozen=True):
    """A row on its way into a run."""

    position: int
    item_id: str
    fingerprint: str
    content: str
    cluster: str | None = None
    attachments: tuple[Attachment, ...] = ()


def explain_equal_ids(item_id: str, first: int, second: int) -> str:
    """What is said of two rows that have the same id."""
    return (
        f"two rows have the id {item_id!r}: rows {first} and {second}. Ids pair samples across runs, "
        "so each must be unique; name another column with dataset_id_field, or drop the id column to number the rows"
    )


class ScoreRow(msgspec.Struct):
    """One metric's row for one sample: a value, or the reason why there is none."""

    position: int
    metric: str
    ordinal: int
    value: float | None
    outcome: str
    details: str | None


class Turn(msgspec.Struct, frozen=True):
    """One exchange or event of a memory run; the body is JSON text."""

    seq: int
    kind: str
    test_id: str | None
    body: str


class _StoredBody(TypedDict, total=False):
    """The JSON of a stored answer: what has no value is left out."""

    prompt: Required[str]
    text: str | None
    reasoning: str | None
    tool_calls: list[ToolCall]
    refusal: str | None
    finish_reason: str | None
    logprobs: Any
    parts: list[dict[str, Any]]
    transcript: list[dict[str, Any]]
    raw: Any
    usage: dict[str, Any] | None
    error: ModelError | None
    metrics: dict[str, Any]
    metadata: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What all tasks of a run have in common."""

    model: ModelSpec
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    prompt: PromptSpec = field(default_factory=lambda: PromptSpec("default", ""))
    id_field: str = "id"
    reference_field: str | None = None
    manifest_hash: str | None = None
    # With more than one, every attempt's task says which it is.
    attempts: int = 1
    # Runs of before rows had a sampling of their own may have data in a field of that name.
    rows_have_sampling: bool = True

    def task(self, item_id: str, row: Mapping[str, object], text: str, attempt: int = 0) -> GenerationTask:
        metadata = dict(row)
        metadata.pop(self.id_field, None)
        reference = None
        if self.reference_field is not None and self.reference_field in row:
            reference = Reference(self.reference_field, row[self.reference_field])
            metadata.pop(self.reference_field, None)
        metadata["dataset_id"] = item_id
        if self.manifest_hash:
            metadata["manifest_hash"] = self.manifest_hash
        if self.attempts > 1:
            metadata["attempts"] = attempt
        if SYSTEM_PROMPT in self.prompt.metadata and not metadata.get(SYSTEM_PROMPT):
            metadata[SYSTEM_PROMPT] = self.prompt.metadata[SYSTEM_PROMPT]
        prompt = PromptRender(self.prompt, text, dict(row))
        return GenerationTask(prompt, self.model, self.sampling_of(row), metadata, reference)

    def sampling_of(self, row: Mapping[str, object]) -> SamplingConfig:
        """The run's, or with what the row's own field `sampling` says."""
        own = row.get("sampling") if self.rows_have_sampling else None
        return self.sampling if own is None else self.sampling.override(own)

    def read(self, body: str, item_id: str, row: Mapping[str, object], attempt: int = 0) -> GenerationRecord:
        """One stored call as the record it was."""
        stored = decode_as(body, _StoredBody)
        task = self.task(item_id, row, stored["prompt"], attempt)
        task.metadata.update(stored.get("metadata", {}))
        return GenerationRecord(
            task=task, output=_read_output(stored), error=stored.get("error"), metrics=stored.get("metrics", {})
        )

    def to_config(self) -> dict[str, Any]:
        return {
            "model": {
                "identifier": self.model.identifier,
                "provider": self.model.provider,
                "metadata": self.model.metadata,
            },
            "sampling": asdict(self.sampling),
            # Examples before the question are part of the template.
            "prompt": {
                "name": self.prompt.name,
                "template": self.prompt.template,
                **_stored_template(self.prompt.metadata),
            },
            "id_field": self.id_field,
            "reference_field": self.reference_field,
            "attempts": self.attempts,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], manifest_hash: str | None = None) -> Frame:
        model, sampling, prompt = config.get("model", {}), config.get("sampling", {}), config.get("prompt", {})
        return cls(
            model=ModelSpec(model.get("identifier", ""), model.get("provider", ""), metadata=model.get("metadata", {})),
            sampling=SamplingConfig(**{**sampling, "stop": tuple(sampling.get("stop", ()))}),
            prompt=PromptSpec(prompt.get("name", "default"), prompt.get("template", ""), _stored_template(prompt)),
            id_field=config.get("id_field", "id"),
            reference_field=config.get("reference_field"),
            manifest_hash=manifest_hash,
            attempts=config.get("attempts", 1),
            rows_have_sampling="stop" in sampling,
        )


def _read_output(stored: _StoredBody) -> ModelOutput | None:
    text = stored.get("text")
    if text is None:
        return None
    return ModelOutput(
        text=text,
        raw=stored.get("raw"),
        usage=stored.get("usage"),
        reasoning=stored.get("reasoning"),
        tool_calls=tuple(stored.get("tool_calls", ())),
        refusal=stored.get("refusal"),
        finish_reason=stored.get("finish_reason"),
        logprobs=stored.get("logprobs"),
        parts=tuple(stored.get("parts", ())),
        transcript=tuple(stored.get("transcript", ())),
    )


def _stored_template(given: Mapping[str, object]) -> dict[str, object]:
    """What is stored of a template beside its text: what decides the messages that it makes."""
    names = ("examples", "syntax", "messages", SYSTEM_PROMPT, "attach")
    return {name: given[name] for name in names if name in given}


def encode_body(record: GenerationRecord) -> str:
    """What is stored of an answer: what was said, without the row and the run it belongs to."""
    output, task = record.output, record.task
    body: _StoredBody = {"prompt": task.prompt.text}
    if output is not None:
        body["text"] = output.text
        if output.finish_reason is not None:
            body["finish_reason"] = output.finish_reason
        if output.raw is not None:
            body["raw"] = output.raw
        if output.usage is not None:
            body["usage"] = output.usage
        _add_parts(body, output)
    if record.error is not None:
        body["error"] = record.error
    if record.metrics:
        body["metrics"] = record.metrics
    # What the executor added to the task's metadata beyond the row (a system prompt, say) is not in the item.
    row = task.prompt.context
    added = {
        name: value
        for name, value in task.metadata.items()
        if name not in _NOT_IN_BODY and (name not in row or row[name] != value)
    }
    if SYSTEM_PROMPT in added and added[SYSTEM_PROMPT] == task.prompt.spec.metadata.get(SYSTEM_PROMPT):
        del added[SYSTEM_PROMPT]
    if added:
        body["metadata"] = added
    return encode(body)


def encode_step(step: Step) -> str:
    """What is stored of a step beside where it belongs."""
    body: dict[str, object] = {"message": step.message}
    for name in ("calls", "prompt_tokens", "completion_tokens", "seconds", "cost_usd"):
        body[name] = getattr(step, name)
    body.update({name: count for name in ("cached_tokens", "cache_write_tokens") if (count := getattr(step, name))})
    return encode(body)


def _add_parts(body: _StoredBody, output: ModelOutput) -> None:
    """What most answers do not have."""
    if output.reasoning is not None:
        body["reasoning"] = output.reasoning
    if output.tool_calls:
        body["tool_calls"] = list(output.tool_calls)
    if output.refusal is not None:
        body["refusal"] = output.refusal
    if output.logprobs is not None:
        body["logprobs"] = output.logprobs
    if output.parts:
        body["parts"] = list(output.parts)
    if output.transcript:
        body["transcript"] = list(output.transcript)


def is_whole_body(body: str) -> bool:
    """Whether a stored body can be read. A flipped bit in a field's name leaves an answer without its text."""
    try:
        decode_as(body, _StoredBody)
        # Decoding into the type leaves out names that it does not know.
        return decode_as(body, dict).keys() <= _StoredBody.__annotations__.keys()
    except (ValueError, msgspec.MsgspecError):
        return False


_DIGEST = re.compile(r'"digest":\s*"([0-9a-f]{64})"')


def find_digests(content: str) -> list[str]:
    """The attachments that an item's stored content names."""
    return _DIGEST.findall(content)


def whole_record(attempts: list[GenerationRecord]) -> GenerationRecord:
    """A sample's record from its attempts: the first without an error speaks for it."""
    chosen = next((attempt for attempt in attempts if attempt.error is None), attempts[0])
    if len(attempts) == 1:
        return GenerationRecord(chosen.task, chosen.output, chosen.error, chosen.metrics, attempts)
    task = chosen.task
    metadata = {name: value for name, value in task.metadata.items() if name != "attempts"}
    outcomes = [
        {
            "output": attempt.output.text if attempt.output else None,
            "error": attempt.error.message if attempt.error else None,
        }
        for attempt in attempts
    ]
    metrics = {**chosen.metrics, "attempt_count": len(attempts), "attempt_outcomes": outcomes}
    return GenerationRecord(
        task=GenerationTask(task.prompt, task.model, task.sampling, metadata, task.reference),
        output=chosen.output,
        error=chosen.error,
        metrics=metrics,
        attempts=attempts,
    )


def score_rows(
    position: int, record: EvaluationRecord, metric_names: Iterable[str], known: Mapping[str, object]
) -> list[ScoreRow]:
    """The rows of one judged sample. A metric without a score has failed: its row holds the reasons.

    `known` is the task's metadata: metrics often hand it on in their scores, and it is stored with the item already. A value
    of the metric's own is kept, whatever its name.
    """
    rows: list[ScoreRow] = []
    seen: dict[str, int] = {}
    for score in record.scores:
        ordinal = seen.get(score.metric_name, 0)
        seen[score.metric_name] = ordinal + 1
        outcome = score.metadata.get("outcome")
        outcome = outcome if outcome in (PARTIAL, UNPARSED) else SCORED
        metadata = score.metadata
        if metadata:
            metadata = {
                name: value
                for name, value in metadata.items()
                if not (name in known and known[name] is value) and name not in _GIVEN
            }
        details = encode({"details": score.details, "metadata": metadata}) if score.details or metadata else None
        rows.append(ScoreRow(position, score.metric_name, ordinal, float(score.value), outcome, details))
    missing = [name for name in metric_names if name not in seen]
    if missing:
        reasons = encode({"failures": record.failures or ["no score and no reason given"]})
        rows.extend(ScoreRow(position, name, 0, None, FAILED, reasons) for name in missing)
    return rows


def evaluation_record(sample_id: str, rows: Iterable[tuple[str, float | None, str, str | None]]) -> EvaluationRecord:
    """The opposite of `score_rows`: rows of (metric, value, outcome, details)."""
    scores: list[MetricScore] = []
    failures: list[str] = []
    for metric, value, outcome, text in rows:
        stored: dict[str, Any] = decode_as(text, dict) if text else {}
        if outcome == FAILED or value is None:
            failures.extend(reason for reason in stored.get("failures", ()) if reason not in failures)
            continue
        details, metadata = stored.get("details", {}), stored.get("metadata", {})
        if outcome in (PARTIAL, UNPARSED):
            metadata = {**metadata, "outcome": outcome}
        scores.append(MetricScore(metric_name=metric, value=value, details=details, metadata=metadata))
    return EvaluationRecord(sample_id=sample_id, scores=scores, failures=failures)


# --- many at a time ---------------------------------------------------------------------------------------------------


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


# --- runs --------------------------------------------------------------------------------------------------------------

DEFAULT_EXPERIMENT = "default"
_LONGEST_RUN_ID = 200
_FORBIDDEN = re.compile(r'[/\\:*?"<>|@]')


class RunStatus(enum.StrEnum):
    """How a run ended, or that it is under way."""

    # Under way, or killed: then nobody writes it, and it can be resumed.
    IN_PROGRESS = "in_progress"
    # Every item was tried; some may have failed.
    COMPLETED = "completed"
    # Stopped by the user, a budget or a rule; can be resumed.
    INTERRUPTED = "interrupted"
    # Nothing worked, or nothing more would.
    FAILED = "failed"
    # An imported run that was given up elsewhere.
    CANCELLED = "cancelled"


class Standing(NamedTuple):
    """How a run stands: a word, beside it what failed ("16 of 60 failed"), and the kind of badge that shows it."""

    word: str
    note: str
    kind: str

    def __str__(self) -> str:
        return f"{self.word}, {self.note}" if self.note else self.word


def standing_of(
    status: RunStatus, *, total: int, failed: int, metrics: Mapping[str, Mapping[str, int]], is_abandoned: bool = False
) -> Standing:
    """What every list, page, report and badge says of a run. `metrics` has `count` and `failed` of each metric."""
    unjudged = max((metric.get("failed", 0) - failed for metric in metrics.values()), default=0)
    notes = [f"{failed:,} of {total:,} failed"] if failed else []
    notes += [f"{unjudged:,} not judged"] if unjudged > 0 else []
    note = ", ".join(notes)
    if is_abandoned:
        return Standing("stopped", note, "stopped")
    if status is RunStatus.COMPLETED and note:
        is_judged = any(metric.get("count", 0) for metric in metrics.values())
        return (
            Standing("completed", note, "partial")
            if is_judged or not metrics
            else Standing("not judged", note, "failed")
        )
    return Standing(status.value.replace("_", " "), note, status.value)


class RunMetadata(msgspec.Struct, frozen=True):
    """One run, without its records. A struct, since lists of ten thousand are made of them.

    Args:
        run_id: Its id.
        experiment: The group that it belongs to.
        status: How it ended, or that it is under way.
        created_at: When it was begun, in UTC.
        updated_at: When something of it was last stored.
        completed_at: When it ended; None if it has not.
        total_samples: Its items.
        successful_generations: Those with an answer.
        failed_generations: Those that have none, after all retries.
        config_snapshot: What it is made of, with its specification and manifest.
        error_message: Why it failed, if it did.
        kind: `samples` or `memory`.
        model: Who answers, such as `openai:gpt-4o`.
        benchmark: What is asked, if that has a name.
        tags: Names and values that people gave it.
        manifest_hash: Hash of its reproducibility manifest.
        calls: Calls made, retries included.
        prompt_tokens: Sent.
        completion_tokens: Received.
        cost_usd: Of the answers; None where a price is not known.
        judge_calls: Calls of judges.
        judge_cost_usd: Of those; None where a price is not known.
        seconds: Of work, over all sessions.

    >>> import themis
    >>> from themis.storage import ExperimentStorage
    >>> report = themis.evaluate("demo", model="fake/perfect", run_id="first", progress=False)
    >>> run = ExperimentStorage().get_run("first")
    >>> run.status.value, run.total_samples, run.total_cost_usd
    ('completed', 10, 0.0)
    """

    run_id: str
    experiment: str
    status: RunStatus
    created_at: datetime.datetime
    updated_at: datetime.datetime
    completed_at: datetime.datetime | None = None
    total_samples: int = 0
    successful_generations: int = 0
    failed_generations: int = 0
    config_snapshot: dict[str, Any] = {}
    error_message: str | None = None
    kind: str = "samples"
    model: str = ""
    benchmark: str | None = None
    tags: dict[str, str] = {}
    manifest_hash: str | None = None
    # Means, intervals and counts by metric as of the last report; empty while a run has none.
    summary: dict[str, Any] = {}
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    judge_calls: int = 0
    judge_cost_usd: float | None = 0.0
    seconds: float = 0.0
    # Answers that ended at `max_tokens`, of all attempts.
    cut_off: int = 0
    # Of the prompts' tokens: read from a provider's cache, and written to it.
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    # Of answers and judging together, as far as prices are known.
    known_cost_usd: float = 0.0
    # Answers of which they are not.
    unpriced_answers: int = 0
    # What a run that is being written waits for, if for more than a moment.
    waiting: str | None = None
    # Who is writing the run now, if anyone.
    writer: str | None = None

    @property
    def total_cost_usd(self) -> float | None:
        """Of answers and judging together; None where a price is not known."""
        if self.cost_usd is None or self.judge_cost_usd is None:
            return None
        return self.cost_usd + self.judge_cost_usd

    def count_spent_usd(self, most_usd: float | None) -> float:
        """What a budget has been used for: what answers and judges say that they cost, and what the others may have.

        Args:
            most_usd: The most that an answer may cost whose price is not known.
        """
        return self.known_cost_usd + self.unpriced_answers * (most_usd or 0.0)

    @property
    def is_abandoned(self) -> bool:
        """Says it is under way, but nobody writes it: it was killed, and can be resumed."""
        return self.status is RunStatus.IN_PROGRESS and self.writer is None

    @property
    def standing(self) -> Standing:
        """How the run stands, as every list and page says it."""
        return standing_of(
            self.status,
            total=self.total_samples,
            failed=self.failed_generations,
            metrics=self.summary.get("metrics", {}),
            is_abandoned=self.is_abandoned,
        )


def validate_run_id(run_id: object) -> str:
    """A run id names rows, files and links, so it is one visible word of a path."""
    if not isinstance(run_id, str) or not run_id.strip():
        raise ConfigurationError(f"a run id is a non-empty string, got {run_id!r}")
    if len(run_id) > _LONGEST_RUN_ID:
        raise ConfigurationError(f"a run id has at most {_LONGEST_RUN_ID} characters, this one has {len(run_id)}")
    if run_id != run_id.strip() or run_id.startswith("."):
        raise ConfigurationError(f"a run id does not start with a dot nor start or end with a space: {run_id!r}")
    bad = _FORBIDDEN.search(run_id) or next(
        (character for character in run_id if unicodedata.category(character)[0] == "C"), None
    )
    if bad:
        shown = bad if isinstance(bad, str) else bad.group()
        raise ConfigurationError(f"a run id has no path separators or control characters; {run_id!r} has {shown!r}")
    return run_id


def validate_text(what: str, text: str) -> str:
    """Text that is stored as it is and looked up by, unlike contents, which are JSON."""
    if not is_storable(text):
        raise ConfigurationError(f"the {what} {text[:80]!r} holds a NUL or half a character, which cannot be stored")
    return text


def is_storable(text: str) -> bool:
    """Whether every database can hold the text: it has no NUL and no lone surrogate."""
    if "\x00" in text:
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def new_run_id(now: datetime.datetime, token: str) -> str:
    """`run-20260131-235959-a1b2c3`: sortable by time; the token keeps two runs of one second apart."""
    return f"run-{now:%Y%m%d-%H%M%S}-{token}"


# --- a run's row --------------------------------------------------------------------------------------------------------


def metadata_columns(*, with_config: bool = True) -> list[AnyColumn]:
    """The fields of `RunMetadata` in their order, then the lease; the configuration, which may be large, can be left out."""
    runs = schema.runs.c
    return [
        *(runs.run_id, runs.experiment_id, status_column().label("status")),
        *(runs.created_at, runs.updated_at, runs.completed_at, runs.total, runs.succeeded, runs.failed),
        *(runs.config if with_config else sa.literal("{}").label("config"), runs.error, runs.kind, runs.model),
        *(runs.benchmark, runs.tags, runs.manifest_hash, runs.summary, runs.calls),
        *(runs.prompt_tokens, runs.completion_tokens, sa.case((runs.unpriced_calls == 0, runs.cost_usd))),
        *(runs.judge_calls, sa.case((runs.unpriced_judge_calls == 0, runs.judge_cost_usd)), runs.seconds),
        *(runs.cut_off, runs.cached_tokens, runs.cache_write_tokens),
        *(runs.cost_usd + runs.judge_cost_usd, runs.unpriced_calls, runs.waiting, runs.lease_holder),
        # How long the lease still holds, by the database's clock.
        runs.lease_until - clock(),
    ]


def status_column() -> sa.ColumnElement[str]:
    """A run of which nothing was answered has failed, whatever was noted when it ended."""
    runs = schema.runs.c
    has_failed = (runs.status == RunStatus.COMPLETED.value) & (runs.failed > 0) & (runs.succeeded == 0)
    return sa.case((has_failed, RunStatus.FAILED.value), else_=runs.status)


def metadata_of(row: Sequence[Any]) -> RunMetadata:
    """A run from the values of `metadata_columns`."""
    values = dict(zip(RunMetadata.__struct_fields__, row, strict=False))
    try:
        values["status"] = RunStatus(values["status"])
        for name in ("created_at", "updated_at", "completed_at"):
            values[name] = None if values[name] is None else datetime.datetime.fromtimestamp(values[name], datetime.UTC)
        for name in ("config_snapshot", "tags", "summary"):
            values[name] = decode(values[name] or "{}")
    except ValueError as error:
        raise StorageError(
            f"the row of run {row[0]!r} is damaged ({error}); `themis store repair` salvages what can be read into a new file"
        ) from error
    holder, lease_seconds = row[-2:]
    is_held = holder is not None and (lease_seconds or 0) >= 0 and not holder_is_dead(holder)
    values["writer"] = format_holder(holder) if is_held else None
    return RunMetadata(**values)
