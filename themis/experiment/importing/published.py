"""What another system published about a run, in the few words that all of them have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from themis.core.bounded_reading import Broken
from themis.core.entities import ModelSpec, SamplingConfig
from themis.storage import RunStatus

# Metrics of lm-eval and scorers of Inspect whose score of one sample is a share.
_SHARES = frozenset(
    (
        *("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "em", "f1", "contains"),
        *("pass@1", "pass_at_1", "prompt_level_strict_acc", "prompt_level_loose_acc", "quasi_exact_match"),
        *("match", "includes", "pattern", "answer", "choice", "exact", "model_graded_qa", "model_graded_fact"),
    )
)
_SIGNED = frozenset(("mcc",))


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
    """A score as a number (None where it is not one, or cannot be one of its metric), and as it was written."""

    value: float | None
    published: object
    details: Mapping[str, object] = field(default_factory=dict)
    # What is wrong with a number that is none of its metric.
    problem: str = ""


def check_score(
    name: str, number: float | None, published: object, details: Mapping[str, object] | None = None
) -> PublishedScore:
    """A score of a metric, refused where the metric has a range and the number is outside."""
    lowest, highest = metric_range(name) or (-math.inf, math.inf)
    if number is None or lowest <= number <= highest:
        return PublishedScore(number, published, details or {})
    problem = f"published as {number:g}, outside its range from {lowest:g} to {highest:g}"
    return PublishedScore(None, published, details or {}, problem)


def metric_range(name: str) -> tuple[float, float] | None:
    """The range of a metric that both systems' own documentation gives, whatever filter it went through."""
    plain = name.partition(",")[0].lower()
    return (-1.0, 1.0) if plain in _SIGNED else (0.0, 1.0) if plain in _SHARES else None


@dataclass(frozen=True, kw_only=True)
class PublishedSample:
    """One item with its answers, and one score a metric."""

    item_id: str
    row: Mapping[str, object]
    prompt: str
    answers: tuple[Answer, ...]
    scores: Mapping[str, PublishedScore]


class PublishedLog(Protocol):
    """A file of another system. `samples` can be gone through more than once."""

    @property
    def header(self) -> Header: ...
    def samples(self) -> Iterator[PublishedSample | Broken]: ...
