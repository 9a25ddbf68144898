"""What a run is from the outside: its id, its status, its line in a list."""

from __future__ import annotations

import datetime
import enum
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from themis.exceptions import ConfigurationError

__all__ = [
    "RunMetadata",
    "RunStatus",
    "Standing",
    "ended_status",
    "is_storable",
    "new_run_id",
    "standing_of",
    "validate_run_id",
    "validate_text",
]

_LONGEST_RUN_ID = 200
_FORBIDDEN = re.compile(r'[/\\:*?"<>|@]')


class RunStatus(enum.StrEnum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Standing(NamedTuple):
    """How a run stands: a word, beside it what failed ("16 of 60 failed"), and the kind of badge that shows it."""

    word: str
    note: str
    kind: str

    def __str__(self) -> str:
        return f"{self.word}, {self.note}" if self.note else self.word


def ended_status(status: RunStatus, *, succeeded: int, failed: int) -> RunStatus:
    """A run of which nothing was answered has failed, whatever was noted when it ended."""
    return RunStatus.FAILED if status is RunStatus.COMPLETED and failed > 0 and succeeded == 0 else status


def standing_of(
    status: RunStatus, *, total: int, failed: int, metrics: Mapping[str, Any], is_abandoned: bool = False
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
    """One run, without its records. A struct, since lists of ten thousand are made of them."""

    run_id: str
    experiment_id: str
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

    @property
    def is_abandoned(self) -> bool:
        """Says it is under way, but nobody writes it: it was killed, and can be resumed."""
        return self.status is RunStatus.IN_PROGRESS and self.writer is None

    @property
    def standing(self) -> Standing:
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
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def new_run_id(now: datetime.datetime, token: str) -> str:
    """`run-20260131-235959-a1b2c3`: sortable by time; the token keeps two runs of one second apart."""
    return f"run-{now:%Y%m%d-%H%M%S}-{token}"
