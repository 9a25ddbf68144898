"""Execution backends: how a function is mapped over items, in completion order, without reading all items first."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Self, TypeVar

from themis.core.registry import Registry
from themis.exceptions import ConfigurationError

__all__ = ["EXECUTION_BACKENDS", "ExecutionBackend", "LocalExecutionBackend", "SequentialExecutionBackend"]

T = TypeVar("T")
R = TypeVar("R")


class ExecutionBackend(ABC):
    """Maps a function over items. `evaluate` uses one but never shuts it down: it belongs to whoever made it.

    A backend of your own is a subclass with `map`; `EXECUTION_BACKENDS.register(name, kind)` gives it a name.

    >>> class Twice(ExecutionBackend):
    ...     def map(self, func, items, *, max_workers=None, timeout=None, **options):
    ...         return (func(func(item)) for item in items)
    >>> list(Twice().map(lambda n: n + 1, [1, 2]))
    [3, 4]
    """

    @abstractmethod
    def map(
        self,
        func: Callable[[T], R],
        items: Iterable[T],
        *,
        max_workers: int | None = None,
        timeout: float | None = None,
        **options: object,
    ) -> Iterator[R]:
        """The results in the order in which they are finished.

        Args:
            func: Called with each item.
            items: Read as workers become free, so they may have no end.
            max_workers: At most so many at once; by default all that the backend has.
            timeout: Seconds to wait for the next result; no limit by default.
            **options: What only some backends know.

        Raises:
            TimeoutError: No result came in time.
        """

    def shutdown(self) -> None:  # noqa: B027 - most backends hold nothing
        """Waits for what is running and lets go of workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


class SequentialExecutionBackend(ExecutionBackend):
    """One after the other, in order, in the caller's thread.

    >>> list(SequentialExecutionBackend().map(str.upper, "ab"))
    ['A', 'B']
    """

    workers = 1

    def map(
        self,
        func: Callable[[T], R],
        items: Iterable[T],
        *,
        max_workers: int | None = None,
        timeout: float | None = None,
        **options: object,
    ) -> Iterator[R]:
        return (func(item) for item in items)


class LocalExecutionBackend(ExecutionBackend):
    """Threads of this process. Items are taken as threads become free, so an endless iterator is no problem.

    Args:
        max_workers: Threads; 4 suits calls that wait for a server.

    Raises:
        ConfigurationError: There is less than one thread.

    >>> with LocalExecutionBackend(max_workers=2) as backend:
    ...     sorted(backend.map(str.upper, "abc"))
    ['A', 'B', 'C']
    """

    def __init__(self, max_workers: int = 4) -> None:
        if max_workers < 1:
            raise ConfigurationError(f"max_workers is at least 1, got {max_workers}")
        self.workers = max_workers
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def map(
        self,
        func: Callable[[T], R],
        items: Iterable[T],
        *,
        max_workers: int | None = None,
        timeout: float | None = None,
        **options: object,
    ) -> Iterator[R]:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="themis-map")
        at_once = min(self.workers, max_workers or self.workers)
        running: set[Future[R]] = set()
        try:
            for item in items:
                running.add(self._threads.submit(func, item))
                if len(running) >= at_once:
                    done, running = wait(running, timeout, FIRST_COMPLETED)
                    yield from _results(done, timeout)
            while running:
                done, running = wait(running, timeout, FIRST_COMPLETED)
                yield from _results(done, timeout)
        finally:
            for future in running:
                future.cancel()

    def shutdown(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=True)


def _results(done: set[Future[R]], timeout: float | None) -> Iterator[R]:
    if not done:
        raise TimeoutError(f"no result within {timeout} s")
    return (future.result() for future in done)


# Backends by the names that `evaluate(execution_backend=...)` takes: local, ray, sequential.
EXECUTION_BACKENDS: Registry[type[ExecutionBackend]] = Registry(
    "execution backend",
    {
        "local": "themis.backends.execution:LocalExecutionBackend",
        "ray": "themis.backends.ray:RayExecutionBackend",
        "sequential": "themis.backends.execution:SequentialExecutionBackend",
    },
)
