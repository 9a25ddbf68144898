"""What a run is from the outside: its id, its status, its line in a list."""

from __future__ import annotations

import datetime
import enum
import re
import unicodedata
from typing import Any

import msgspec

from themis.exceptions import ConfigurationError

__all__ = ["RunMetadata", "RunStatus", "is_storable", "new_run_id", "validate_run_id", "validate_text"]

_LONGEST_RUN_ID = 200
_FORBIDDEN = re.compile(r'[/\\:*?"<>|@]')


class RunStatus(enum.StrEnum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    CANCELLED = "cancelled"


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
