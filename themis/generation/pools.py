"""Where single calls happen: an event loop, or worker threads.

A pool takes work, makes one call for each, and gives back what came of it. It knows nothing of retries. Its caller lives in
one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from themis.core.entities import GenerationTask
from themis.exceptions import ProviderCallError
from themis.interfaces import StatelessTaskExecutor

__all__ = ["Answer", "Assignment", "AsyncPool", "LocalPool", "Pool", "ThreadPool", "open_pool"]

W = TypeVar("W")

# A thread takes several calls at a time when they are short; together they should not take longer than this.
_CHUNK_SECONDS = 0.005
_LARGEST_CHUNK = 64
_PARKED_SECONDS = 0.05
_NEVER = float("inf")


@dataclass(slots=True)
class Assignment(Generic[W]):
    """One call to make, and how long it may take."""

    work: W
    task: GenerationTask
    timeout_seconds: float


@dataclass(slots=True)
class Answer(Generic[W]):
    """What one call gave: a record, an exception, or something else that a provider returned."""

    work: W
    result: Any
    seconds: float


class Pool(Protocol[W]):
    # Calls taken and not given back, and how many of them it takes: more than are made at once.
    in_flight: int
    room: int

    @property
    def active(self) -> int:
        """Calls that are being made now."""

    def __enter__(self) -> Pool[W]: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def submit(self, calls: Sequence[Assignment[W]]) -> None:
        """Queues calls; more than can run at once, so that none waits for the caller."""

    def withdraw(self) -> None:
        """Forgets the calls that have not started."""

    def collect(self, timeout: float, most: int) -> list[Answer[W]]:
        """Answers that are there; waits for the first one up to the timeout."""

    def set_limit(self, limit: int, resume_at: float) -> None:
        """At most so many calls at once, and none before that moment (monotonic seconds)."""


class LocalPool(Pool[W], Protocol[W]):
    """A pool of this process."""

    def wake(self) -> None:
        """Has `collect` return, if it waits; for other threads than the caller's."""


def open_pool(executor: StatelessTaskExecutor, workers: int) -> LocalPool[Any]:
    """The pool in this process that fits a provider."""
    if not inspect.iscoroutinefunction(executor.execute):
        return ThreadPool(executor, workers)
    hint = getattr(executor, "set_concurrency", None)
    if hint is not None:
        hint(workers)
    return AsyncPool(executor, workers)


class AsyncPool(Generic[W]):
    """All calls on one event loop, which runs in the caller's own thread while it waits for answers.

    So an answer reaches whoever commits it without a change of threads: what has arrived in one round of the loop is given
    out at once.
    """

    def __init__(self, executor: StatelessTaskExecutor, workers: int) -> None:
        self.in_flight = 0
        # More wait here, so that no slot is idle while the caller commits.
        self.room = 3 * workers + 8
        self._executor = executor
        self._limit = workers
        self._resume_at = 0.0
        self._active = 0
        self._backlog: deque[Assignment[W]] = deque()
        self._answers: deque[Answer[W]] = deque()
        self._loop = asyncio.new_event_loop()
        self._callers: set[_Caller] = set()
        self._watch: asyncio.TimerHandle | None = None

    def __enter__(self) -> AsyncPool[W]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _no_loop_running():
            self._loop.run_until_complete(self._close())
            self._loop.close()

    @property
    def active(self) -> int:
        return self._active

    def submit(self, calls: Sequence[Assignment[W]]) -> None:
        self.in_flight += len(calls)
        self._backlog.extend(calls)
        self._pump()

    def withdraw(self) -> None:
        self.in_flight -= len(self._backlog)
        self._backlog.clear()

    def collect(self, timeout: float, most: int) -> list[Answer[W]]:
        # Also when answers are there: calls that were just submitted are to be sent.
        ending = self._loop.call_later(0.0 if self._answers else max(0.0, timeout), self._loop.stop)
        with _no_loop_running():
            self._loop.run_forever()
        ending.cancel()
        answers = [self._answers.popleft() for _ in range(min(most, len(self._answers)))]
        self.in_flight -= len(answers)
        return answers

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def set_limit(self, limit: int, resume_at: float) -> None:
        if limit != self._limit or resume_at != self._resume_at:
            self._limit, self._resume_at = limit, resume_at
            self._pump()

    # --- while the loop runs -----------------------------------------------------------------------------------------

    def _pump(self) -> None:
        for _ in range(min(self._limit - self._active, len(self._backlog))):
            self._active += 1
            caller = _Caller()
            caller.task = self._loop.create_task(self._work_off(caller))
            self._callers.add(caller)

    async def _work_off(self, caller: _Caller) -> None:
        """Makes one call after another while there is work and the limit allows it."""
        execute: Any = self._executor.execute
        try:
            while self._backlog and self._active <= self._limit:
                pause = self._resume_at - time.monotonic()
                if pause > 0:
                    await asyncio.sleep(pause)
                    continue
                call = self._backlog.popleft()
                began = time.perf_counter()
                self._watch_over(caller, call.timeout_seconds)
                result: Any
                try:
                    result = await execute(call.task)
                except asyncio.CancelledError:
                    if not caller.is_late:
                        raise  # the pool closes
                    caller.task.uncancel()
                    result = _timed_out(call)
                except Exception as error:  # boundary: a provider is the user's code
                    result = error
                caller.due = _NEVER
                self._answers.append(Answer(call.work, result, time.perf_counter() - began))
                self._loop.stop()  # when this round is over
        finally:
            self._active -= 1
            self._callers.discard(caller)

    def _watch_over(self, caller: _Caller, seconds: float) -> None:
        """Notes when the call is to be given up. One timer stands for all calls: one for each would cost more than the rest."""
        caller.due, caller.is_late = self._loop.time() + seconds, False
        if self._watch is None or caller.due < self._watch.when():
            self._set_watch(caller.due)

    def _give_up_late_calls(self) -> None:
        # The loop may wake a little early.
        now = self._loop.time() + 0.001
        for caller in self._callers:
            if caller.due <= now:
                caller.due, caller.is_late = _NEVER, True
                caller.task.cancel()
        self._set_watch(min((caller.due for caller in self._callers), default=_NEVER))

    def _set_watch(self, when: float) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = None if when == _NEVER else self._loop.call_at(when, self._give_up_late_calls)

    async def _close(self) -> None:
        tasks = [caller.task for caller in self._callers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._set_watch(_NEVER)
        close = getattr(self._executor, "aclose", None)
        if close is not None:
            await close()
        # Transports close in the next rounds of the loop.
        await asyncio.sleep(0.01)


@contextlib.contextmanager
def _no_loop_running() -> Iterator[None]:
    """Lets a loop of ours run in a thread whose own loop has called us, as in a notebook; that one waits meanwhile."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(running)


class _Caller:
    """A task that makes calls, and the moment (of the loop's clock) when the one under way is given up."""

    __slots__ = ("due", "is_late", "task")

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.due = _NEVER
        self.is_late = False


@dataclass(eq=False)
class _Worker(Generic[W]):
    """A thread's state. The lock decides between the thread and the watch who settles the call under way."""

    number: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    current: Assignment[W] | None = None
    began: float = 0.0
    rest: deque[Assignment[W]] = field(default_factory=deque)
    abandoned: bool = False


class ThreadPool(Generic[W]):
    """Calls in threads. A call that outlives its timeout is given up, and its thread replaced."""

    def __init__(self, executor: StatelessTaskExecutor, workers: int) -> None:
        self.in_flight = 0
        self.room = 2 * workers + 2
        self._executor = executor
        self._limit = workers
        self._resume_at = 0.0
        self._closed = False
        self._workers: list[_Worker[W]] = []
        self._jobs: queue.SimpleQueue[deque[Assignment[W]] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer[W] | None] = queue.SimpleQueue()
        self._usual_seconds: float | None = None

    def __enter__(self) -> ThreadPool[W]:
        for number in range(self._limit):
            self._start_worker(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        for _ in self._workers:
            self._jobs.put(None)
        close = getattr(self._executor, "close", None)
        if close is not None:
            close()

    @property
    def active(self) -> int:
        return sum(worker.current is not None for worker in list(self._workers))

    def submit(self, calls: Sequence[Assignment[W]]) -> None:
        if not calls:
            return
        self.in_flight += len(calls)
        size = 1
        if self._usual_seconds is not None:
            size = max(1, min(_LARGEST_CHUNK, int(_CHUNK_SECONDS / max(self._usual_seconds, 1e-9))))
        # Room for a few chunks a thread, so that short calls are handed over together.
        self.room = max(2, 3 * size) * len(self._workers) + 2
        for start in range(0, len(calls), size):
            self._jobs.put(deque(calls[start : start + size]))

    def withdraw(self) -> None:
        with contextlib.suppress(queue.Empty):
            while chunk := self._jobs.get_nowait():
                self.in_flight -= len(chunk)
        for worker in self._workers:
            with contextlib.suppress(IndexError):
                while True:
                    worker.rest.pop()
                    self.in_flight -= 1

    def collect(self, timeout: float, most: int) -> list[Answer[W]]:
        self._give_up_late_calls()
        answers = _drain(self._answers, timeout, most)
        self.in_flight -= len(answers)
        if answers:
            mean = sum(answer.seconds for answer in answers) / len(answers)
            self._usual_seconds = mean if self._usual_seconds is None else 0.8 * self._usual_seconds + 0.2 * mean
        return answers

    def wake(self) -> None:
        self._answers.put(None)

    def set_limit(self, limit: int, resume_at: float) -> None:
        self._limit, self._resume_at = limit, resume_at

    # --- the threads -------------------------------------------------------------------------------------------------

    def _start_worker(self, number: int) -> None:
        worker: _Worker[W] = _Worker(number)
        self._workers.append(worker)
        threading.Thread(target=self._work_off, args=(worker,), name=f"themis-call-{number}", daemon=True).start()

    def _work_off(self, worker: _Worker[W]) -> None:
        execute: Any = self._executor.execute
        while True:
            while worker.number >= self._limit and not self._closed:
                time.sleep(_PARKED_SECONDS)
            chunk = self._jobs.get()
            if chunk is None:
                return
            worker.rest = chunk
            while chunk:
                pause = self._resume_at - time.monotonic()
                if pause > 0:
                    time.sleep(pause)
                    continue
                try:
                    call = chunk.popleft()
                except IndexError:
                    break  # withdrawn
                worker.began, worker.current = time.monotonic(), call
                began = time.perf_counter()
                result: Any
                try:
                    result = execute(call.task)
                except (
                    BaseException
                ) as error:  # boundary: a provider is the user's code, and no thread may die silently
                    result = error
                seconds = time.perf_counter() - began
                with worker.lock:
                    if worker.abandoned:
                        return  # too late: the watch has settled this call and another thread has the rest
                    worker.current = None
                self._answers.put(Answer(call.work, result, seconds))

    def _give_up_late_calls(self) -> None:
        now = time.monotonic()
        for worker in list(self._workers):
            with worker.lock:
                call = worker.current
                if call is None or now - worker.began <= call.timeout_seconds:
                    continue
                worker.abandoned = True
            self._workers.remove(worker)
            self._answers.put(Answer(call.work, _timed_out(call), now - worker.began))
            if worker.rest:
                self._jobs.put(worker.rest)
            self._start_worker(worker.number)


def _drain(answers: queue.SimpleQueue[Answer[W] | None], timeout: float, most: int) -> list[Answer[W]]:
    """What is there, or the first that comes within the timeout; None in the queue only wakes whoever waits."""
    found: list[Answer[W] | None] = []
    with contextlib.suppress(queue.Empty):
        found.append(answers.get(timeout=max(0.0, timeout)))
        while len(found) < most:
            found.append(answers.get_nowait())
    return [answer for answer in found if answer is not None]


def _timed_out(call: Assignment[Any]) -> ProviderCallError:
    return ProviderCallError(f"no answer within {call.timeout_seconds:g} s", kind="timeout", retryable=True)
