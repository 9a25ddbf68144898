"""Makes the calls of a run: bounded, rate-limited, retried, each with a hard deadline.

`Engine.run` is a generator in the caller's thread. It hands jobs to a pool, which does nothing but single calls (on one event
loop for async providers, in threads for sync ones, on the spot for instant ones), takes the answers back and decides here, in
one thread, what each means: finished, or to be tried again and when. Finished jobs come out at once, those that finished
meanwhile together, so that the caller commits what has arrived and never waits for more.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import itertools
import random
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from themis.core.entities import GenerationRecord, GenerationTask, ModelError
from themis.core.tokens import count_tokens, count_told
from themis.generation.attempts import Retry, final_error, is_lost, is_rate_limit, record_of, retry_delay
from themis.generation.breaker import TRIPS_AFTER, CircuitBreaker
from themis.generation.limits import LONGEST_WAIT_SECONDS, Limiter, RateLimit
from themis.generation.pools import Answer, Assignment, Pool, open_pool
from themis.interfaces import StatelessTaskExecutor

__all__ = ["Caller", "Engine", "EngineSettings", "Job", "Late", "Outcome", "Waiting"]

_LARGEST_BATCH = 512
# Answers that cost nothing (instant providers) are committed together for this long.
_BATCH_SECONDS = 0.05
_NEVER = 1e9
# How long nothing need happen before the caller is given a turn.
_TURN_SECONDS = 0.25
# A wait that is longer is told to the user.
_TOLD_SECONDS = 3.0
# Answers that have come meanwhile are taken up before more calls than these are prepared.
_STARTED_TOGETHER = 64
# How long an answer is taken to be, of the tokens a minute, before any has come.
_FIRST_ESTIMATE_TOKENS = 256


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
    # So many equal permanent failures in a row end the run; None goes on whatever happens.
    stop_after_failures: int | None = TRIPS_AFTER


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


@dataclass(frozen=True)
class Waiting:
    """Nothing is sent until that moment (monotonic seconds), and why."""

    until: float
    why: str
    # Told in the log too: not what the user asked for, as with a rate of their own.
    unasked: bool

    @property
    def seconds(self) -> float:
        return max(0.0, self.until - time.monotonic())

    def __str__(self) -> str:
        return f"waiting {self.seconds:.0f} s: {self.why}"


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
    # Of the tokens a minute: what was taken for the call under way.
    estimated_tokens: int = 0
    # How often the provider asked for a longer wait than the deadline leaves.
    asked_too_long: int = 0

    @property
    def calls(self) -> int:
        return self.tries + self.rate_limited + self.lost


class Caller:
    """What the caller of `Engine.run` has to do between batches; here, nothing."""

    def is_busy(self) -> bool:
        """Whether it has work of its own, so that the engine need not wait for answers."""
        return False

    def is_full(self) -> bool:
        """Whether it can take no more work: nothing new is started until it can."""
        return False


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
        caller: Caller | None = None,
        seed: int = 0,
    ) -> None:
        self.executor = executor
        self.settings = settings or EngineSettings()
        self.limiter = Limiter(
            self.settings.workers,
            self.settings.rate,
            account=str(getattr(executor, "account", "") or ""),
            longest_wait_seconds=min(LONGEST_WAIT_SECONDS, self.settings.deadline_seconds),
        )
        self.breaker = CircuitBreaker(self.settings.stop_after_failures)
        self.waiting: Waiting | None = None
        self._caller = caller or Caller()
        self._usual_answer_tokens: float | None = None
        # For those who ask one by one in threads of their own (`complete`).
        self._lock = threading.Lock()
        self._admit = admit
        self._settled = settled
        self._chance = random.Random(seed)
        self._count_tokens: Callable[[str], int] | None = getattr(executor, "count_tokens", None)
        self._pool: Pool[_Work] | None = None
        self._delayed: list[tuple[float, int, _Work]] = []
        self._order = itertools.count()
        self._under_way: dict[int, _Work] = {}
        self._stopping = False
        self._giving_up = False

    def run(self, jobs: Iterable[Job], pool: Pool[_Work] | None = None) -> Generator[list[Outcome]]:
        """Finished jobs in batches, in the order in which they finish; an empty batch while nothing does.

        `pool` is where the calls are made, if not here.
        """
        if pool is None and self.executor.instant:
            yield from self._run_here(iter(jobs))
            return
        with pool or open_pool(self.executor, self.settings.workers) as opened:
            self._pool = opened
            yield from self._run_pooled(iter(jobs), opened)

    def run_through(self, backend: Any, jobs: Iterable[Job]) -> Generator[list[Outcome]]:
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
        """One job from first call to outcome, in the thread that asks; many threads may."""
        work = _Work(job, began=time.monotonic())
        while True:
            self._throttle(work)
            began = time.perf_counter()
            answer = _called(self.executor.execute, job.task)
            if inspect.isawaitable(answer):
                answer = asyncio.run(_bounded(answer, self.settings.timeout_seconds))
            with self._lock:
                settled = self._settle(work, answer, time.perf_counter() - began)
            if isinstance(settled, Outcome):
                return settled
            time.sleep(settled)

    def _throttle(self, work: _Work) -> None:
        """Waits until the limits let the call start."""
        while True:
            with self._lock:
                now = time.monotonic()
                work.estimated_tokens = self._estimate_tokens(work.job)
                wait = self.limiter.wait(now, work.estimated_tokens)
                if wait <= 1e-6:
                    self.limiter.started(now, work.estimated_tokens)
                    return
            time.sleep(min(wait, _TURN_SECONDS))

    def settled(self, outcome: Outcome) -> None:
        """Notes a finished job, wherever its calls were made; equal permanent failures in a row stop the engine."""
        if outcome.record.error is None:
            self.breaker.on_success()
        else:
            self.breaker.on_failure(outcome.record.error)
            if self.breaker.tripped_by is not None:
                self._stopping = True
        if self._settled is not None:
            self._settled(outcome)

    def stop(self, *, at_once: bool = False) -> None:
        """Starts nothing more; what is under way is finished and comes out of `run`, or, at once, is given up."""
        self._stopping = True
        self._giving_up = at_once

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
            while self._caller.is_full() and not self._stopping:
                yield batch
                batch = []
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
        held: _Work | None = None  # not admitted yet
        while not self._giving_up:
            now = time.monotonic()
            pause, wait = self._resubmit(pool, now), 0.0
            ready: list[Assignment[_Work]] = []
            full = self._caller.is_full()
            while not (exhausted or self._stopping or full) and self._has_room(pool, len(ready)):
                held = held or self._next_work(jobs)
                if held is None:
                    exhausted = True
                    break
                wait = self.limiter.wait(now, held.estimated_tokens)
                if wait > 1e-6 or (self._admit is not None and not self._admit(held.job)):
                    pause = min(pause, wait or pause)
                    break
                self._start(held, now)
                ready.append(self._assign(held, now))
                held = None
                if len(ready) >= _STARTED_TOGETHER:
                    pause = 0.0
                    break
            pool.submit(ready)
            self._note_waiting(now, wait, pause, idle=pool.in_flight == 0)
            if pool.in_flight == 0:
                if self._stopping or (pause >= _NEVER and not full):
                    return  # nothing left, or nothing more is admitted
                if not self._caller.is_busy():
                    time.sleep(min(max(pause, 0.001), _TURN_SECONDS))
                yield []
                continue
            answers = pool.collect(0.0 if self._caller.is_busy() else min(pause, _TURN_SECONDS), _LARGEST_BATCH)
            # An empty batch gives the caller a turn, and tells it that time passes.
            yield self._settle_all(answers, pool)

    def _has_room(self, pool: Pool[_Work], ready: int) -> bool:
        """While it is not known that calls succeed, none is handed out ahead of its turn, nor beside one that is retried."""
        if self.breaker.is_calm:
            return pool.in_flight + ready < pool.room
        return len(self._under_way) < min(self.settings.workers, pool.room)

    def _next_work(self, jobs: Iterator[Job]) -> _Work | None:
        job = next(jobs, None)
        return None if job is None else _Work(job, estimated_tokens=self._estimate_tokens(job))

    def _start(self, work: _Work, now: float) -> None:
        self.limiter.started(now, work.estimated_tokens)
        work.began = now
        self._under_way[id(work)] = work

    def _estimate_tokens(self, job: Job) -> int:
        """How many of the tokens a minute a call will use: its prompt, and an answer as long as they usually are."""
        if not self.limiter.counts_tokens:
            return 0
        usual = self._usual_answer_tokens
        if usual is None:
            most = job.task.sampling.max_tokens
            usual = min(most, _FIRST_ESTIMATE_TOKENS) if most >= 0 else _FIRST_ESTIMATE_TOKENS
        return count_told(job.task.prompt.text, job.task.metadata) + round(usual)

    def _note_waiting(self, now: float, wait: float, pause: float, *, idle: bool) -> None:
        """Keeps what the run is waiting for, where it is for more than a moment."""
        wait = max(wait, self.limiter.resume_at - now)
        known = self.waiting
        # One that is told of is told of to its end.
        moment = _TOLD_SECONDS if known is None else 0.0
        if wait > moment:
            waiting = Waiting(now + wait, self.limiter.reason(now), unasked=self.limiter.resume_at > now)
        elif idle and self._delayed and moment < pause < _NEVER:
            waiting = Waiting(now + pause, f"trying again after {self._delayed[0][2].last}", unasked=True)
        else:
            self.waiting = None
            return
        if known is None or known.why != waiting.why or abs(known.until - waiting.until) > 1.0:
            self.waiting = waiting

    def _resubmit(self, pool: Pool[_Work], now: float) -> float:
        """Sends the retries that are due; seconds until the next one is (a very long time if there is none)."""
        if self._stopping:
            # Unfinished, not failed: the next resume takes them up.
            self._delayed.clear()
            pool.withdraw()
        while self._delayed and self._delayed[0][0] <= now:
            work = self._delayed[0][2]
            wait = self.limiter.wait(now, work.estimated_tokens)
            if wait > 1e-6:
                return wait
            if self._admit is not None and not self._admit(work.job):
                return _NEVER
            heapq.heappop(self._delayed)
            self.limiter.started(now, work.estimated_tokens)
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
            self.limiter.on_rate_limited(now, error.details.get("retry_after_seconds"))
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
        if delay is not None and work.began:
            error, delay = self._within_deadline(work, error, delay, now)
        if delay is not None:
            return delay
        failed = GenerationRecord(task=task, output=None, error=final_error(task, error, made), metrics=record.metrics)
        return self._outcome(work, failed)

    def _within_deadline(
        self, work: _Work, error: ModelError, delay: float, now: float
    ) -> tuple[ModelError, float | None]:
        """The delay if it can be waited for; otherwise what became of the answer."""
        deadline = self.settings.deadline_seconds
        left = deadline - (now - work.began)
        asked = error.details.get("retry_after_seconds")
        if isinstance(asked, int | float) and asked > left:
            # Once may be a slip of the provider's; twice it means it.
            work.asked_too_long += 1
            if work.asked_too_long > 1 or delay > left:
                said = f"the provider asks to wait {asked:,.0f} s, longer than deadline_seconds={deadline:g} leaves"
                return ModelError(f"{said}: {error.message}", kind="wait_too_long", details=error.details), None
        if delay > left:
            said = f"no answer within deadline_seconds={deadline:g}; last: {error.message}"
            return ModelError(said, kind="deadline", details=error.details), None
        return error, delay

    def _learn(self, record: GenerationRecord) -> None:
        self.limiter.on_success()
        quota = record.metrics.pop("rate_limit", None)
        if quota:
            self.limiter.on_quota_headers(time.monotonic(), quota)

    def _add_usage(self, work: _Work, record: GenerationRecord) -> None:
        output = record.output
        usage = output.usage if output is not None else record.metrics.get("usage")
        prompt = completion = 0
        if usage:
            prompt, completion = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
        limited = self.limiter.counts_tokens
        if output is not None and (self.settings.counts_tokens or limited):
            prompt = prompt or count_told(work.job.task.prompt.text, work.job.task.metadata)
            completion = completion or count_tokens(output.text)
        if limited:
            self.limiter.used(time.monotonic(), prompt + completion, estimated=work.estimated_tokens)
            if output is not None:
                usual = self._usual_answer_tokens
                self._usual_answer_tokens = completion if usual is None else 0.9 * usual + 0.1 * completion
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
