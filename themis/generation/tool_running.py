"""Runs tools beside whoever waits for them: plain functions in threads, coroutines on one event loop.

A function cannot be stopped from outside: one that takes too long keeps its thread until it ends, and nobody waits for
it, not even the end of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from typing import TypeVar

__all__ = ["ToolRunner"]

T = TypeVar("T")

_CLOSE_SECONDS = 10.0


class ToolRunner:
    """The threads and the event loop of one set of tools; both are made when they are first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def start(self, function: Callable[[], T]) -> Future[T]:
        """Begins to run a function in a thread.

        Args:
            function: Takes nothing.
        """
        with self._lock:
            worker = self._idle.pop() if self._idle else _Worker()
        done: Future[T] = Future()
        run = functools.partial(contextvars.copy_context().run, function)
        worker.jobs.put(functools.partial(_settle, done, run, functools.partial(self._take_back, worker)))
        return done

    def start_async(self, function: Callable[[], object]) -> Future[object]:
        """Begins to await on the event loop what a function returns.

        Args:
            function: Takes nothing; is called on the event loop.
        """
        return self.start_coroutine(_await(function))

    def start_coroutine(self, coroutine: Coroutine[object, object, object]) -> Future[object]:
        """Begins to run a coroutine on the event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())

    def close(self) -> None:
        """Ends the threads that do nothing, and the event loop with all that runs on it."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        for worker in idle:
            worker.jobs.put(None)
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(_cancel_all(), loop).add_done_callback(
                lambda _: loop.call_soon_threadsafe(loop.stop)
            )
            thread.join(_CLOSE_SECONDS)

    def _take_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(worker)
                return
        worker.jobs.put(None)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._loop,), name="themis-tools-loop", daemon=True
                )
                self._thread.start()
            return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _await(function: Callable[[], object]) -> object:
    try:
        value = function()
        return await value if isinstance(value, Awaitable) else value
    except SystemExit as error:
        # It would end the event loop, and with it all tools of the run.
        raise RuntimeError(f"SystemExit: {error}") from error


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class _Worker:
    """A thread that makes one call after another, until it is given None."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # Not waited for at the end: whatever hangs in it has had its time.
        threading.Thread(target=self._work, name="themis-tool", daemon=True).start()

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            job()
            del job


def _settle(done: Future[T], function: Callable[[], T], take_back: Callable[[], None]) -> None:
    """Runs a function for its future, unless nobody wants it any more; what was given up meanwhile stays so."""
    # From here on it cannot be cancelled: what runs in a thread runs to its end.
    if not done.set_running_or_notify_cancel():
        take_back()
        return
    # The thread is given back before the result is known, so that who asks for the next call at once finds it.
    try:
        value = function()
    except BaseException as error:  # boundary: a tool is the user's code, and who waits is told what it raised
        take_back()
        with contextlib.suppress(InvalidStateError):
            done.set_exception(error)
    else:
        take_back()
        with contextlib.suppress(InvalidStateError):
            done.set_result(value)
