"""Where single calls happen: an event loop, or worker threads.

A pool takes requests, makes one call for each, and gives them back with the reply. It knows nothing of retries. Its caller
lives in one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from themis.core.entities import GenerationRecord, GenerationTask
from themis.exceptions import ProviderCallError
from themis.generation.attempts import Request, provider_call
from themis.interfaces import StatelessTaskExecutor

logger = logging.getLogger(__name__)

# A thread takes several calls at a time when they are short; together they should not take longer than this.
_CHUNK_SECONDS = 0.005
_LARGEST_CHUNK = 64
_PARKED_SECONDS = 0.05
_NEVER = float("inf")


class Pool(Protocol):
    @property
    def in_flight(self) -> int:
        """Calls taken and not given back."""

    @property
    def room(self) -> int:
        """How many of them it takes: more than are made at once."""

    @property
    def active(self) -> int:
        """Calls that are being made now."""

    def __enter__(self) -> Pool: ...
    def __exit__(self, *_: object) -> None: ...
    def submit(self, requests: Sequence[Request]) -> None:
        """Queues calls; more than can run at once, so that none waits for the caller."""

    def withdraw(self) -> None:
        """Forgets the calls that have not started."""

    def collect(self, timeout: float, most: int) -> list[Request]:
        """Requests whose reply is there; waits for the first one up to the timeout."""

    def set_limit(self, limit: int, resume_at: float) -> None:
        """At most so many calls at once, and none before that moment (monotonic seconds)."""


class LocalPool(Pool, Protocol):
    """A pool of this process."""

    def wake(self) -> None:
        """Has `collect` return, if it waits; for other threads than the caller's."""


def open_pool(executor: StatelessTaskExecutor, workers: int) -> LocalPool:
    """The pool in this process that fits a provider."""
    if not inspect.iscoroutinefunction(executor.execute):
        return ThreadPool(executor, workers)
    hint = getattr(executor, "set_concurrency", None)
    if hint is not None:
        hint(workers)
    return AsyncPool(executor, workers)


class AsyncPool:
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
        self._backlog: deque[Request] = deque()
        self._answered: deque[Request] = deque()
        self._loop = asyncio.new_event_loop()
        self._callers: set[_Caller] = set()
        self._others: set[asyncio.Task[None]] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._is_collecting = False

    def __enter__(self) -> AsyncPool:
        return self

    def __exit__(self, *_: object) -> None:
        with no_loop_running():
            self._loop.run_until_complete(self._close())
            self._loop.close()

    @property
    def active(self) -> int:
        return self._active

    def submit(self, requests: Sequence[Request]) -> None:
        self.in_flight += len(requests)
        self._backlog.extend(requests)
        self._pump()

    def withdraw(self) -> None:
        self.in_flight -= len(self._backlog)
        self._backlog.clear()

    def collect(self, timeout: float, most: int) -> list[Request]:
        # Also when answers are there: calls that were just submitted are to be sent.
        ending = self._loop.call_later(0.0 if self._answered else max(0.0, timeout), self._loop.stop)
        self._is_collecting = True
        with no_loop_running():
            self._loop.run_forever()
        self._is_collecting = False
        ending.cancel()
        answered = [self._answered.popleft() for _ in range(min(most, len(self._answered)))]
        self.in_flight -= len(answered)
        return answered

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is closed, and nobody waits
            self._loop.call_soon_threadsafe(self.end_waiting)

    def end_waiting(self) -> None:
        """Has `collect` return when this round of the loop is over; for what runs on the loop."""
        # Not what runs on the loop while the pool closes, which is to come to its end.
        if self._is_collecting:
            self._loop.stop()

    def start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Has other work done beside the calls, while answers are waited for; it is given up when the pool closes."""
        task = self._loop.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task

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
        execute: Any = provider_call(self._executor)
        try:
            while self._backlog and self._active <= self._limit:
                pause = self._resume_at - time.monotonic()
                if pause > 0:
                    await asyncio.sleep(pause)
                    continue
                request = self._backlog.popleft()
                began = time.perf_counter()
                self._watch_over(caller, request.timeout_seconds)
                try:
                    request.reply = await execute(request.task)
                except asyncio.CancelledError:
                    if caller.is_late:
                        caller.task.uncancel()
                        request.reply = _timed_out(request)
                    elif caller.task.cancelling():
                        raise  # the pool closes
                    else:
                        request.reply = _cancelled_within()
                except (Exception, SystemExit) as error:  # boundary: a provider is the user's code
                    request.reply = error
                caller.due = _NEVER
                request.reply_seconds = time.perf_counter() - began
                self._answered.append(request)
                self.end_waiting()
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
        await close_calls(self._executor, [*(caller.task for caller in self._callers), *self._others])
        self._set_watch(_NEVER)


async def close_calls(executor: StatelessTaskExecutor, calls: Collection[asyncio.Task[object]]) -> None:
    """Gives up what is under way on this loop, then closes the provider's connections."""
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    close = getattr(executor, "aclose", None)
    if close is not None:
        await close()
    # Transports close in the next rounds of the loop.
    await asyncio.sleep(0.01)


@contextlib.contextmanager
def no_loop_running() -> Iterator[None]:
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
class _Worker:
    """A thread's state. The lock decides between the thread and the watch who answers for the call under way."""

    number: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    current: Request | None = None
    began: float = 0.0
    rest: deque[Request] = field(default_factory=deque)
    abandoned: bool = False


class ThreadPool:
    """Calls in threads. A call that outlives its timeout is given up, and its thread replaced."""

    def __init__(self, executor: StatelessTaskExecutor, workers: int) -> None:
        self.in_flight = 0
        self.room = 2 * workers + 2
        self._executor = executor
        self._limit = workers
        self._resume_at = 0.0
        self._closed = False
        self._workers: list[_Worker] = []
        self._chunks: queue.SimpleQueue[deque[Request] | None] = queue.SimpleQueue()
        self._answered: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._usual_seconds: float | None = None

    def __enter__(self) -> ThreadPool:
        for number in range(self._limit):
            self._start_worker(number)
        return self

    def __exit__(self, *reason: object) -> None:
        self._closed = True
        for _ in self._workers:
            self._chunks.put(None)
        close = getattr(self._executor, "close", None)
        if close is not None:
            close()

    @property
    def active(self) -> int:
        return sum(worker.current is not None for worker in list(self._workers))

    def submit(self, requests: Sequence[Request]) -> None:
        if not requests:
            return
        self.in_flight += len(requests)
        size = 1
        if self._usual_seconds is not None:
            size = max(1, min(_LARGEST_CHUNK, int(_CHUNK_SECONDS / max(self._usual_seconds, 1e-9))))
        # Room for a few chunks a thread, so that short calls are handed over together.
        self.room = max(2, 3 * size) * len(self._workers) + 2
        for start in range(0, len(requests), size):
            self._chunks.put(deque(requests[start : start + size]))

    def withdraw(self) -> None:
        with contextlib.suppress(queue.Empty):
            while chunk := self._chunks.get_nowait():
                self.in_flight -= len(chunk)
        for worker in self._workers:
            with contextlib.suppress(IndexError):
                while True:
                    worker.rest.pop()
                    self.in_flight -= 1

    def collect(self, timeout: float, most: int) -> list[Request]:
        self._give_up_late_calls()
        answered = _drain(self._answered, timeout, most)
        self.in_flight -= len(answered)
        if answered:
            mean = sum(request.reply_seconds for request in answered) / len(answered)
            self._usual_seconds = mean if self._usual_seconds is None else 0.8 * self._usual_seconds + 0.2 * mean
        return answered

    def wake(self) -> None:
        self._answered.put(None)

    def set_limit(self, limit: int, resume_at: float) -> None:
        self._limit, self._resume_at = limit, resume_at

    # --- the threads -------------------------------------------------------------------------------------------------

    def _start_worker(self, number: int) -> None:
        worker = _Worker(number)
        self._workers.append(worker)
        threading.Thread(target=self._work_off, args=(worker,), name=f"themis-call-{number}", daemon=True).start()

    def _work_off(self, worker: _Worker) -> None:
        execute = provider_call(self._executor)
        while True:
            while worker.number >= self._limit and not self._closed:
                time.sleep(_PARKED_SECONDS)
            chunk = self._chunks.get()
            if chunk is None:
                return
            worker.rest = chunk
            while chunk:
                pause = self._resume_at - time.monotonic()
                if pause > 0:
                    time.sleep(pause)
                    continue
                try:
                    request = chunk.popleft()
                except IndexError:
                    break  # withdrawn
                worker.began, worker.current = time.monotonic(), request
                began = time.perf_counter()
                reply: object
                try:
                    reply = execute(request.task)
                except (
                    BaseException
                ) as error:  # boundary: a provider is the user's code, and no thread may die silently
                    reply = error
                seconds = time.perf_counter() - began
                with worker.lock:
                    if worker.abandoned:
                        return  # too late: the watch has given this call up and another thread has the rest
                    worker.current = None
                request.reply, request.reply_seconds = reply, seconds
                self._answered.put(request)

    def _give_up_late_calls(self) -> None:
        now = time.monotonic()
        for worker in list(self._workers):
            with worker.lock:
                request = worker.current
                if request is None or now - worker.began <= request.timeout_seconds:
                    continue
                worker.abandoned = True
            self._workers.remove(worker)
            request.reply, request.reply_seconds = _timed_out(request), now - worker.began
            self._answered.put(request)
            if worker.rest:
                self._chunks.put(worker.rest)
            self._start_worker(worker.number)


def _drain(answered: queue.SimpleQueue[Request | None], timeout: float, most: int) -> list[Request]:
    """What is there, or the first that comes within the timeout; None in the queue only wakes whoever waits."""
    found: list[Request | None] = []
    with contextlib.suppress(queue.Empty):
        found.append(answered.get(timeout=max(0.0, timeout)))
        while len(found) < most:
            found.append(answered.get_nowait())
    return [request for request in found if request is not None]


def _timed_out(request: Request) -> ProviderCallError:
    return ProviderCallError(f"no answer within {request.timeout_seconds:g} s", kind="timeout", retryable=True)


def _cancelled_within() -> ProviderCallError:
    return ProviderCallError(
        "CancelledError: the call was cancelled, and not by this run: something that it waited for was",
        kind="cancelled",
        retryable=True,
    )


# --- for callers that wait for each answer in a thread of their own -----------------------------------------------------

_CLOSE_SECONDS = 5.0


class BlockingProvider(StatelessTaskExecutor):
    """The calls of an async provider are made on one event loop, to which its connections belong, until `close`."""

    def __init__(self, provider: StatelessTaskExecutor, timeout_seconds: float) -> None:
        self._provider = provider
        self._timeout_seconds = timeout_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        if inspect.iscoroutinefunction(provider.execute):
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="themis-blocking", daemon=True)
            self._thread.start()

    def execute(self, task: GenerationTask) -> GenerationRecord:
        answer: Any = self._provider.execute(task)
        if self._loop is not None:
            waiting = asyncio.wait_for(answer, self._timeout_seconds)
            answer = asyncio.run_coroutine_threadsafe(waiting, self._loop).result()
        record: GenerationRecord = answer
        return record

    def close(self) -> None:
        if self._loop is not None:
            self._close_loop(self._loop)
        elif (close := getattr(self._provider, "close", None)) is not None:
            close()

    def _close_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends the thread once connections are closed; what hangs is left to end with the process."""
        if not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._close_connections(), loop).result(timeout=_CLOSE_SECONDS)
        except TimeoutError:
            logger.warning("%s did not end within %g s and is left to itself", self._thread.name, _CLOSE_SECONDS)
        except Exception as error:  # boundary: a provider closes its own connections
            logger.warning("%s did not close: %s: %s", self._thread.name, type(error).__name__, error)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(timeout=_CLOSE_SECONDS)
        # When the interpreter ends, threads stop where they are: not alive, and their loop still running.
        if not self._thread.is_alive() and not loop.is_running():
            loop.close()

    async def _close_connections(self) -> None:
        # Where the caller was interrupted its call is still under way.
        await close_calls(self._provider, asyncio.all_tasks() - {asyncio.current_task()})
