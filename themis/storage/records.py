"""How records lie in the store, and how they are put together again, a page of them at a time.

A row holds what was said; the item it was said about is stored once; model, sampling and template are the run's.
`Frame` carries those and rebuilds the task.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, Generic, Required, TypedDict, TypeVar, overload

import msgspec

from themis.core.codec import decode_as, encode
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
)

T = TypeVar("T")
# So many records are read ahead.
_PAGE = 500
# `partial` is the score of a panel of which some judge gave no verdict.
SCORED, PARTIAL, UNPARSED, FAILED = "scored", "partial", "unparsed", "failed"
# What the pipeline tells metrics beside the task's metadata.
_GIVEN = ("sample_id", "prompt", "generation_time_ms", "attempt_outcomes")


# What `Frame.task` puts into the metadata of every task.
_OF_EVERY_TASK = frozenset({"dataset_id", "manifest_hash", "attempts"})


class Item(msgspec.Struct, frozen=True):
    """A row on its way into a run."""

    position: int
    item_id: str
    fingerprint: str
    content: str
    cluster: str | None = None


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

    def task(self, item_id: str, row: Mapping[str, Any], text: str, attempt: int = 0) -> GenerationTask:
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
        prompt = PromptRender(self.prompt, text, dict(row))
        return GenerationTask(prompt, self.model, self.sampling, metadata, reference)

    def read(self, body: str, item_id: str, row: Mapping[str, Any], attempt: int = 0) -> GenerationRecord:
        """One stored call as the record it was."""
        stored = decode_as(body, _StoredBody)
        task = self.task(item_id, row, stored["prompt"], attempt)
        task.metadata.update(stored.get("metadata", {}))
        text = stored.get("text")
        output = None if text is None else ModelOutput(text=text, raw=stored.get("raw"), usage=stored.get("usage"))
        return GenerationRecord(task=task, output=output, error=stored.get("error"), metrics=stored.get("metrics", {}))

    def to_config(self) -> dict[str, Any]:
        return {
            "model": {
                "identifier": self.model.identifier,
                "provider": self.model.provider,
                "metadata": self.model.metadata,
            },
            "sampling": asdict(self.sampling),
            "prompt": {"name": self.prompt.name, "template": self.prompt.template},
            "id_field": self.id_field,
            "reference_field": self.reference_field,
            "attempts": self.attempts,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], manifest_hash: str | None = None) -> Frame:
        model, sampling, prompt = config.get("model", {}), config.get("sampling", {}), config.get("prompt", {})
        return cls(
            model=ModelSpec(model.get("identifier", ""), model.get("provider", ""), metadata=model.get("metadata", {})),
            sampling=SamplingConfig(**sampling),
            prompt=PromptSpec(prompt.get("name", "default"), prompt.get("template", "")),
            id_field=config.get("id_field", "id"),
            reference_field=config.get("reference_field"),
            manifest_hash=manifest_hash,
            attempts=config.get("attempts", 1),
        )


def encode_body(record: GenerationRecord) -> str:
    """What is stored of an answer: what was said, without the row and the run it belongs to."""
    output, task = record.output, record.task
    body: _StoredBody = {"prompt": task.prompt.text}
    if output is not None:
        body["text"] = output.text
        if output.raw is not None:
            body["raw"] = output.raw
        if output.usage is not None:
            body["usage"] = output.usage
    if record.error is not None:
        body["error"] = record.error
    if record.metrics:
        body["metrics"] = record.metrics
    # What the executor added to the task's metadata beyond the row (a system prompt, say) is not in the item.
    row = task.prompt.context
    added = {
        name: value
        for name, value in task.metadata.items()
        if name not in _OF_EVERY_TASK and (name not in row or row[name] != value)
    }
    if added:
        body["metadata"] = added
    return encode(body)


def is_whole_body(body: str) -> bool:
    """Whether a stored body can be read. A flipped bit in a field's name leaves an answer without its text."""
    try:
        decode_as(body, _StoredBody)
        # Decoding into the type leaves out names that it does not know.
        return decode_as(body, dict).keys() <= _StoredBody.__annotations__.keys()
    except (ValueError, msgspec.MsgspecError):
        return False


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

    `known` is the task's metadata: metrics often hand it on in their scores, and it is stored with the item already.
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
            metadata = {name: value for name, value in metadata.items() if name not in known and name not in _GIVEN}
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


class LazySequence(Sequence[T], Generic[T]):
    """A list that reads from the store. `stream` gives its elements from the first one on; going forwards is cheap."""

    def __init__(self, length: int | None, stream: Callable[[], Iterator[T]]) -> None:
        self._length = length
        self._stream = stream
        self._ahead: Iterator[T] = iter(())
        self._start = 0
        self._page: list[T] = []

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self._stream())
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step > 0:
                return list(islice(self._stream(), start, stop, step))
            return [self[place] for place in range(start, stop, step)]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"index {index} of a sequence of {len(self)}")
        if place < self._start or not self._page:
            self._ahead, self._start, self._page = self._stream(), 0, []
        while place >= self._start + len(self._page):
            self._start += len(self._page)
            self._page = list(islice(self._ahead, _PAGE))
            if not self._page:
                raise IndexError(f"index {index}: the stored run has fewer entries than when this was made")
        return self._page[place - self._start]

    def __iter__(self) -> Iterator[T]:
        return self._stream()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} stored entries>"


class LazyMapping(Mapping[str, T], Generic[T]):
    """A dict that reads from the store, in dataset order."""

    def __init__(
        self,
        entries: Callable[[], Iterator[tuple[str, T]]],
        length: Callable[[], int],
        find: Callable[[str], T | None],
    ) -> None:
        self._entries = entries
        self._length = length
        self._find = find

    @classmethod
    def empty(cls) -> LazyMapping[T]:
        return cls(lambda: iter(()), lambda: 0, lambda key: None)

    def __len__(self) -> int:
        return self._length()

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._entries())

    def __getitem__(self, key: str) -> T:
        value = self._find(key) if isinstance(key, str) else None
        if value is None:
            raise KeyError(key)
        return value

    def values(self) -> ValuesView[T]:
        return _Values(self)

    def items(self) -> ItemsView[str, T]:
        return _Items(self)

    def entries(self) -> Iterator[tuple[str, T]]:
        """Keys and values in one pass."""
        return self._entries()

    def __repr__(self) -> str:
        return f"<{len(self)} stored entries>"


class _Values(ValuesView[T]):
    _mapping: LazyMapping[T]

    def __iter__(self) -> Iterator[T]:
        return (value for _, value in self._mapping.entries())


class _Items(ItemsView[str, T]):
    _mapping: LazyMapping[T]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return self._mapping.entries()
