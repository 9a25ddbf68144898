"""What a run is from the outside: its id, its status, its line in a list, and whether it may go."""

from __future__ import annotations

import datetime
import enum
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from themis.core.codec import decode
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import schema
from themis.storage.database import format_holder, holder_is_dead
from themis.storage.schema import AnyColumn

DEFAULT_EXPERIMENT = "default"
_LONGEST_RUN_ID = 200
_FORBIDDEN = re.compile(r'[/\\:*?"<>|@]')
_GIB = 1024**3


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
        *(runs.cut_off, runs.waiting, runs.lease_holder),
        # How long the lease still holds, by the database's clock.
        runs.lease_until - schema.clock(),
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


# --- retention --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RetentionPolicy:
    """What to keep. The newest runs of every experiment, and runs being written, always stay.

    Args:
        max_runs_per_experiment: At most so many of each experiment; no limit by default.
        max_age_days: None older than this; no limit by default.
        max_storage_gb: The oldest go until the records of what is left fit into so many GiB; no limit by default.
        keep_completed_only: Runs that did not complete go too.
        keep_latest_n: So many of the newest runs of an experiment always stay.

    >>> from themis.storage import ExperimentStorage
    >>> ExperimentStorage("runs").apply_retention_policy(RetentionPolicy(max_age_days=90), dry_run=True)
    []
    """

    max_runs_per_experiment: int | None = None
    max_age_days: float | None = None
    max_storage_gb: float | None = None
    keep_completed_only: bool = True
    keep_latest_n: int = 5


def expired(
    runs: Sequence[RunMetadata], sizes: dict[str, int], policy: RetentionPolicy, now: datetime.datetime
) -> list[str]:
    """Ids of the runs that the policy lets go, oldest first. `sizes` are bytes by run id."""
    newest_first = sorted(runs, key=lambda run: run.created_at, reverse=True)
    rank: dict[str, int] = {}
    removable: list[RunMetadata] = []
    gone: set[str] = set()
    for run in newest_first:
        index = rank.get(run.experiment, 0)
        rank[run.experiment] = index + 1
        if index < policy.keep_latest_n or run.writer is not None:
            continue
        removable.append(run)
        too_old = policy.max_age_days is not None and now - run.created_at > datetime.timedelta(
            days=policy.max_age_days
        )
        too_many = policy.max_runs_per_experiment is not None and index >= policy.max_runs_per_experiment
        unfinished = policy.keep_completed_only and run.status is not RunStatus.COMPLETED
        if too_old or too_many or unfinished:
            gone.add(run.run_id)
    if policy.max_storage_gb is not None:
        left = sum(sizes.get(run.run_id, 0) for run in runs if run.run_id not in gone)
        for run in reversed(removable):
            if left <= policy.max_storage_gb * _GIB:
                break
            if run.run_id not in gone:
                gone.add(run.run_id)
                left -= sizes.get(run.run_id, 0)
    return [run.run_id for run in reversed(newest_first) if run.run_id in gone]
