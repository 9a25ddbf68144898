"""What another system published about a run, in the few words that all of them have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from themis.core.entities import ModelSpec, SamplingConfig
from themis.storage import RunStatus

__all__ = ["Answer", "Broken", "Header", "PublishedLog", "PublishedSample", "PublishedScore"]


@dataclass(frozen=True, kw_only=True)
class Header:
    """The run as a whole. `sha256` is of the file, so that it is imported once."""

    source: str
    task: str
    sha256: str
    model: ModelSpec
    status: RunStatus = RunStatus.COMPLETED
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str = "unknown"
    # What the reader should know of how numbers were taken over.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """One answer of the model, or why there is none."""

    text: str | None
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class PublishedScore:
    """A score as a number (None where it is not one), and as it was written."""

    value: float | None
    published: Any
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PublishedSample:
    """One item with its answers, and one score a metric."""

    item_id: str
    row: Mapping[str, Any]
    prompt: str
    answers: tuple[Answer, ...]
    scores: Mapping[str, PublishedScore]


@dataclass(frozen=True)
class Broken:
    """A part of the file that cannot be read: where, and why."""

    where: str
    reason: str


class PublishedLog(Protocol):
    """A file of another system. `samples` can be gone through more than once."""

    @property
    def header(self) -> Header: ...
    def samples(self) -> Iterator[PublishedSample | Broken]: ...
