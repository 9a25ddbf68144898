"""Makes the calls of a run: bounded, rate-limited, retried, each with a hard deadline.

`Engine.run` is a generator in the caller's thread. It hands jobs to a pool, which does nothing but single calls (on one event
loop for async providers, in threads for sync ones, on the spot for instant ones), takes the answers back and decides here, in
one thread, what each means: finished, or to be tried again and when. Finished jobs come out in batches, so that the caller can
commit them together.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import itertools
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from themis.core.entities import GenerationRecord, GenerationTask, ModelError
from themis.core.tokens import count_tokens, count_told
from themis.generation.attempts import Retry, final_error, is_lost, is_rate_limit, record_of, retry_delay
from themis.generation.limits import Limiter, RateLimit
from themis.generation.pools import Answer, Assignment, Pool, open_pool
from themis.interfaces import StatelessTaskExecutor

__all__ = ["Engine", "EngineSettings", "Job", "Late", "Outcome"]

_LARGEST_BATCH = 512
_BATCH_SECONDS = 0.1
_NEVER = 1e9


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """How to make calls; none of it changes what a call returns."""

    workers: int = 4
    retry: Retry = field(default_factory=Retry)
    # For one call, and for one answer with all its retries.
    timeout_seconds: float = 600.0
    deadline_seconds: float = 1800.0
    rate: RateLimit = field(default_factory=RateLimit)
    # Where tokens cost money, those that an answer says nothing of are counted here; they were not free.
    counts_tokens: bool = False


@dataclass(slots=True)
class Job:
    """One answer to get: which sample, which attempt, under which key it is stored."""

    position: int
    attempt: int
    key: str
    task: GenerationTask


@dataclass(slots=True)
class Outcome:
    """A finished job: the record, and what all calls for it took together."""

    job: Job
    record: GenerationRecord
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


@dataclass(frozen=True)
class Late:
    """A job that has been under way for long, and what it is waiting for."""

    item_id: str
    seconds: float
    waiting_for: str


@dataclass(slots=True)
class _Work:
    """A job on its way, with its history."""

    job: Job
    began: float = 0.0
    tries: int = 0
    rate_limited: int = 0
    # Calls whose process was lost.
    lost: int = 0
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    errors: list[dict[str, Any]] | None = None
    last: str = ""

    @property
    def calls(self) -> int:
        return self.tries + self.rate_limited + self.lost


Admit = Callable[[Job], bool]


class Engine:
    """Drives one provider.

    `admit` is asked before every call; while it says no, nothing starts. `settled` hears of every finished job at once,
    before its batch comes out.
    """

    def __init__(
        self,
        executor: StatelessTaskExecutor,
        settings: EngineSettings | None = None,
        *,
        admit: Admit | None = None,
        settled: Callable[[Outcome], None] | None = None,
        seed: int = 0,
    ) -> None:
        self.executor = executor
        self.settings = settings or EngineSettings()
        self.limiter = Limiter(self.settings.workers, self.settings.rate)
        self._admit = admit
        self._settled = settled
        self._chance = random.Random(seed)
        self._pacing = threading.Lock()
        self._count_tokens: Callable[[str], int] | None = getattr(executor, "count_tokens", None)
        self._pool: Pool[_Work] | None = None
        self._delayed: list[tuple[float, int, _Work]] = []
        self._order = itertools.count()
        self._under_way: dict[int, _Work] = {}
        self._stopping = False

    def run(self, jobs: Iterable[Job], pool: Pool[_Work] | None = None) -> Iterator[list[Outcome]]:
        """Finished jobs in batches, in the order in which they finish; an empty batch while nothing does.

        `pool` is where the calls are made, if not here.
        """
        if pool is None and self.executor.instant:
            yield from self._run_here(iter(jobs))
            return
        with pool or open_pool(self.executor, self.settings.workers) as opened:
            self._pool = opened
            yield from self._run_pooled(iter(jobs), opened)

    def run_through(self, backend: Any, jobs: Iterable[Job]) -> Iterator[list[Outcome]]:
        """The same through an execution backend of the user's: `backend.map(function, jobs, max_workers=...)`."""
        rest = iter(jobs)
        refused: list[Job] = []

        def admitted() -> Iterator[Job]:
            while not self._stopping and (job := refused.pop() if refused else next(rest, None)) is not None:
                if self._admit is not None and not self._admit(job):
                    refused.append(job)
                    return
                yield job

        while True:
            made = 0
            for outcome in backend.map(self.complete, admitted(), max_workers=self.settings.workers):
                made += 1
                yield [outcome]
            # What was set aside for calls that are over now may do for the one that was refused.
            if not (refused and made) or self._stopping:
                return

    def complete(self, job: Job) -> Outcome:
        """One job from first call to outcome, in the thread that asks."""
        work = _Work(job, began=time.monotonic())
        while True:
            self._pace()
            began = time.perf_counter()
            answer = _called(self.executor.execute, job.task)
            if inspect.isawaitable(answer):
                answer = asyncio.run(_bounded(answer, self.settings.timeout_seconds))
            settled = self._settle(work, answer, time.perf_counter() - began)
            if isinstance(settled, Outcome):
                return settled
            time.sleep(settled)

    def _pace(self) -> None:
        """Waits until the rate allows one more call, in whatever thread."""
        wait = 1.0
        while wait > 1e-6:
            with self._pacing:
                now = time.monotonic()
                wait = self.limiter.wait(now)
                if wait <= 1e-6:
                    self.limiter.started(now)
            time.sleep(wait)

    def settled(self, outcome: Outcome) -> None:
        if self._settled is not None:
            self._settled(outcome)

    def stop(self) -> None:
        """Starts nothing more; what is under way is finished and comes out of `run`."""
        self._stopping = True

    @property
    def in_flight(self) -> int:
        """Calls that are being made now."""
        return self._pool.active if self._pool else 0

    def late(self, after_seconds: float) -> list[Late]:
        """Jobs that have been under way for longer than that, the latest first."""
        now = time.monotonic()
        waiting = {id(work): due for due, _, work in self._delayed}
        late = []
        for work in list(self._under_way.values()):
            age = now - work.began
            if age < after_seconds:
                continue
            due = waiting.get(id(work))
            if due is not None:
                reason = f"call {work.tries + 1}, in {max(0.0, due - now):.0f} s, after {work.last}"
            else:
                reason = f"the answer to call {work.tries + 1}"
            late.append(Late(str(work.job.task.metadata.get("dataset_id", "")), age, reason))
        return sorted(late, key=lambda entry: -entry.seconds)

    # --- instant providers: called on the spot -----------------------------------------------------------------------

    def _run_here(self, jobs: Iterator[Job]) -> Iterator[list[Outcome]]:
        execute: Any = self.executor.execute
        batch: list[Outcome] = []
        opened = time.monotonic()
        for job in jobs:
            if self._stopping or (self._admit is not None and not self._admit(job)):
                break
            work = _Work(job)
            outcome: Outcome | None = None
            while outcome is None:
                began = time.perf_counter()
                answer = _called(execute, job.task)
                settled = self._settle(work, answer, time.perf_counter() - began)
                if isinstance(settled, Outcome):
                    outcome = settled
                elif settled > 0:
                    time.sleep(settled)
            batch.append(outcome)
            if len(batch) >= _LARGEST_BATCH or time.monotonic() - opened > _BATCH_SECONDS:
                yield batch
                batch, opened = [], time.monotonic()
        if batch:
            yield batch

    # --- everything else: through a pool -----------------------------------------------------------------------------

    def _run_pooled(self, jobs: Iterator[Job], pool: Pool[_Work]) -> Iterator[list[Outcome]]:
        exhausted = False
        held: Job | None = None  # not admitted yet
        while True:
            now = time.monotonic()
            pause = self._resubmit(pool, now)
            ready: list[Assignment[_Work]] = []
            while not (exhausted or self._stopping) and pool.in_flight + len(ready) < pool.room:
                job = held or next(jobs, None)
                held = None
                if job is None:
                    exhausted = True
                    break
                wait = self.limiter.wait(now)
                if wait > 1e-6 or (self._admit is not None and not self._admit(job)):
                    held, pause = job, min(pause, wait or pause)
                    break
                self.limiter.started(now)
                work = _Work(job, began=now)
                self._under_way[id(work)] = work
                ready.append(self._assign(work, now))
            pool.submit(ready)
            if pool.in_flight == 0:
                if self._stopping or pause >= _NEVER:
                    return  # nothing left, or nothing more is admitted
                time.sleep(min(max(pause, 0.001), 0.25))
                continue
            answers = pool.collect(min(pause, 0.25), _LARGEST_BATCH)
            # An empty batch tells the caller that time passes.
            yield self._settle_all(answers, pool)

    def _resubmit(self, pool: Pool[_Work], now: float) -> float:
        """Sends the retries that are due; seconds until the next one is (a very long time if there is none)."""
        if self._stopping:
            # Unfinished, not failed: the next resume takes them up.
            self._delayed.clear()
            pool.withdraw()
        while self._delayed and self._delayed[0][0] <= now:
            wait = self.limiter.wait(now)
            if wait > 1e-6:
                return wait
            if self._admit is not None and not self._admit(self._delayed[0][2].job):
                return _NEVER
            _, _, work = heapq.heappop(self._delayed)
            self.limiter.started(now)
            pool.submit([self._assign(work, now)])
        return self._delayed[0][0] - now if self._delayed else _NEVER

    def _assign(self, work: _Work, now: float) -> Assignment[_Work]:
        left = self.settings.deadline_seconds - (now - work.began)
        return Assignment(work, work.job.task, max(0.001, min(self.settings.timeout_seconds, left)))

    def _settle_all(self, answers: list[Answer[_Work]], pool: Pool[_Work]) -> list[Outcome]:
        finished: list[Outcome] = []
        for answer in answers:
            settled = self._settle(answer.work, answer.result, answer.seconds)
            if isinstance(settled, Outcome):
                self._under_way.pop(id(answer.work), None)
                finished.append(settled)
            else:
                heapq.heappush(self._delayed, (time.monotonic() + settled, next(self._order), answer.work))
        pool.set_limit(self.limiter.limit, self.limiter.resume_at)
        return finished

    # --- what an answer means ----------------------------------------------------------------------------------------

    def _settle(self, work: _Work, result: GenerationRecord | BaseException, seconds: float) -> Outcome | float:
        """The outcome of a job, or the seconds to wait before it is tried again."""
        task = work.job.task
        work.seconds += seconds
        record = record_of(result, task)
        self._add_usage(work, record)
        error = record.error
        if error is None:
            work.tries += 1
            self._learn(record)
            return self._outcome(work, record)
        now = time.monotonic()
        if is_rate_limit(error):
            work.rate_limited += 1
            self.limiter.turned_away(now, error.details.get("retry_after_seconds"))
        elif is_lost(error):
            work.lost += 1
            # At once: it may have been paid for.
            self.settled(Outcome(work.job, record, 1, 0, 0, 0.0))
        else:
            work.tries += 1
        made = work.calls
        work.last = f"{error.kind}: {error.message[:120]}"
        work.errors = work.errors or []
        work.errors.append(
            {"attempt": made, "error": error.message[:500], "exception_type": error.details.get("exception_type")}
        )
        delay = retry_delay(
            error,
            tries=work.tries,
            rate_limited=work.rate_limited,
            lost=work.lost,
            retry=self.settings.retry,
            chance=self._chance,
        )
        if delay is not None and work.began and now + delay - work.began > self.settings.deadline_seconds:
            error = ModelError(
                f"no answer within deadline_seconds={self.settings.deadline_seconds:g}; last: {error.message}",
                kind="deadline",
                details=error.details,
            )
            delay = None
        if delay is not None:
            return delay
        failed = GenerationRecord(task=task, output=None, error=final_error(task, error, made), metrics=record.metrics)
        return self._outcome(work, failed)

    def _learn(self, record: GenerationRecord) -> None:
        self.limiter.answered()
        quota = record.metrics.pop("rate_limit", None)
        if quota:
            self.limiter.told(time.monotonic(), quota)

    def _add_usage(self, work: _Work, record: GenerationRecord) -> None:
        output = record.output
        usage = output.usage if output is not None else record.metrics.get("usage")
        prompt = completion = 0
        if usage:
            prompt, completion = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
        if output is not None and self.settings.counts_tokens:
            prompt = prompt or count_told(work.job.task.prompt.text, work.job.task.metadata)
            completion = completion or count_tokens(output.text)
        work.prompt_tokens += prompt
        work.completion_tokens += completion

    def _outcome(self, work: _Work, record: GenerationRecord) -> Outcome:
        task = work.job.task
        record.task = task
        calls = work.calls
        text, metrics = task.prompt.text, record.metrics
        metrics["generation_time_ms"] = round(work.seconds * 1000, 3)
        metrics["prompt_chars"] = len(text)
        metrics["generation_attempts"] = calls
        if work.errors:
            metrics["retry_errors"] = work.errors
        output = record.output
        if output is not None:
            usage = output.usage or {}
            metrics["response_chars"] = len(output.text)
            metrics["prompt_tokens"] = usage.get("prompt_tokens") or self._tokens(text)
            metrics["response_tokens"] = usage.get("completion_tokens") or self._tokens(output.text)
        outcome = Outcome(work.job, record, calls, work.prompt_tokens, work.completion_tokens, work.seconds)
        self.settled(outcome)
        return outcome

    def _tokens(self, text: str) -> int:
        if self._count_tokens is not None:
            return self._count_tokens(text)
        return len(text.split())


def _called(execute: Callable[[GenerationTask], Any], task: GenerationTask) -> Any:
    try:
        return execute(task)
    except Exception as error:  # boundary: a provider is the user's code
        return error


async def _bounded(answer: Awaitable[Any], seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except Exception as error:  # boundary: a provider is the user's code
        return error
