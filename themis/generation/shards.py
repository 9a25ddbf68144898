"""Runs the engine in other processes: each is given a shard of the jobs and streams back what is finished.

For execution backends that have processes of their own (`stream`). The run stays in the hands of this process, which alone
starts jobs, keeps the budget and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from themis.core.entities import GenerationRecord, ModelError
from themis.core.redaction import redact_text
from themis.generation.engine import Engine, EngineSettings, Job, Outcome
from themis.generation.limits import RateLimit
from themis.interfaces import StatelessTaskExecutor

__all__ = ["ShardRunner", "run_on_shards"]

# A shard holds so many rounds of the calls that its process makes at once: fewer, and processes wait for each other at its end.
_ROUNDS = 8


@dataclass(frozen=True)
class ShardRunner:
    """What is sent to a process: how to make the provider there, and how to call it."""

    # Not shown: the options in it may hold a key.
    make_executor: Callable[[], StatelessTaskExecutor] = field(repr=False)
    settings: EngineSettings

    def __call__(self, shard: list[Job]) -> Iterator[list[Outcome]]:
        return (batch for batch in Engine(self.make_executor(), self.settings).run(shard) if batch)


def run_on_shards(
    engine: Engine, backend: Any, make_executor: Callable[[], StatelessTaskExecutor], jobs: Iterable[Job]
) -> Generator[list[Outcome]]:
    """Finished jobs in batches. A process that is lost leaves its unfinished jobs as failures, to be retried on resume."""
    processes = max(1, min(engine.settings.workers, backend.processes))
    settings = _share(engine.settings, processes)
    under_way: dict[tuple[int, int], Job] = {}

    def shards() -> Iterator[list[Job]]:
        admitted = engine.admitted(jobs)
        while shard := list(islice(admitted, _ROUNDS * settings.workers)):
            under_way.update({_place(job): job for job in shard})
            yield shard

    runner = ShardRunner(make_executor, settings)
    for shard, result in backend.stream(runner, shards(), max_workers=processes):
        if isinstance(result, BaseException):
            lost = [job for job in shard if _place(job) in under_way]
            outcomes = [_lost(job, result) for job in lost]
        else:
            outcomes = result
        for outcome in outcomes:
            # What came back is a copy; the budget knows this process's own job.
            outcome.job = under_way.pop(_place(outcome.job))
            outcome.record.task = outcome.job.task
            engine.settled(outcome)
        yield outcomes


def _share(settings: EngineSettings, processes: int) -> EngineSettings:
    """One process's part of the calls at once and of the rates."""
    rate = settings.rate
    return replace(
        settings,
        workers=-(-settings.workers // processes),
        rate=RateLimit(
            requests_per_minute=rate.requests_per_minute and rate.requests_per_minute / processes,
            tokens_per_minute=rate.tokens_per_minute and rate.tokens_per_minute / processes,
        ),
    )


def _place(job: Job) -> tuple[int, int]:
    return job.position, job.attempt


def _lost(job: Job, reason: BaseException) -> Outcome:
    said = f"the process of this call ended before its answer: {type(reason).__name__}: {reason}"
    error = ModelError(redact_text(said)[:2000], kind="worker_lost")
    record = GenerationRecord(task=job.task, output=None, error=error)
    return Outcome(job, record, calls=1, prompt_tokens=0, completion_tokens=0, seconds=0.0)
