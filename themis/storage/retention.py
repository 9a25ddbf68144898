"""Which runs may go: a pure decision over the list of runs."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from themis.storage.runs import RunMetadata, RunStatus

__all__ = ["RetentionPolicy", "expired"]

_GIB = 1024**3


@dataclass(frozen=True)
class RetentionPolicy:
    """What to keep. The newest `keep_latest_n` runs of every experiment, and runs being written, always stay.

    `max_storage_gb` removes the oldest of the others until the records of what is left fit.
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
        index = rank.get(run.experiment_id, 0)
        rank[run.experiment_id] = index + 1
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
