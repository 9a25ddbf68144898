"""Execution on a Ray cluster: this machine's processes, or many machines'."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from themis.backends.execution import ExecutionBackend
from themis.exceptions import ConfigurationError, DependencyError

__all__ = ["RayExecutionBackend"]

T = TypeVar("T")
R = TypeVar("R")

_WAIT_SECONDS = 0.25


class RayExecutionBackend(ExecutionBackend):
    """Processes of a Ray cluster. Without an address it starts one on this machine, and stops it in `shutdown`.

    `processes` is how many are used at once, by default one for each CPU of the cluster; `init_options` go to `ray.init`.
    Nothing that was sent to a process that is lost is sent again here: the run stores it as a failure, and its resume asks again.
    """

    def __init__(self, address: str | None = None, *, processes: int | None = None, **init_options: Any) -> None:
        if processes is not None and processes < 1:
            raise ConfigurationError(f"processes is at least 1, got {processes}")
        self._ray = _ray()
        self._started_here = not self._ray.is_initialized()
        if self._started_here:
            # Without an address of its own Ray joins whatever cluster it finds.
            quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "warning"}
            self._ray.init(address=address or "local", **({} if address else quiet), **init_options)
        self.processes = processes or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def map(
        self,
        func: Callable[[T], R],
        items: Iterable[T],
        *,
        max_workers: int | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Iterator[R]:
        """One task for each item; results in completion order. An exception of `func` is raised here."""
        ray = self._ray
        sent, task = self._send(func), ray.remote(max_retries=0)(_call)
        at_once = min(self.processes, max_workers or self.processes)
        running: list[Any] = []
        try:
            for item in items:
                running.append(task.remote(sent, item))
                if len(running) >= at_once:
                    yield self._first(running, timeout)
            while running:
                yield self._first(running, timeout)
        finally:
            self._cancel(running)

    def stream(
        self, func: Callable[[T], Iterable[R]], items: Iterable[T], *, max_workers: int | None = None
    ) -> Iterator[tuple[T, R | BaseException]]:
        """`func` of every item in a process each: (item, result) as results come, or (item, what went wrong) at its end."""
        ray = self._ray
        sent = self._send(func)
        task = ray.remote(max_retries=0)(_each).options(num_returns="streaming")
        at_once = min(self.processes, max_workers or self.processes)
        waiting = iter(items)
        running: dict[Any, T] = {}
        try:
            while True:
                while len(running) < at_once and (item := next(waiting, None)) is not None:
                    running[task.remote(sent, item)] = item
                if not running:
                    return
                ready, _ = ray.wait(list(running), num_returns=1, timeout=_WAIT_SECONDS)
                for generator in ready:
                    try:
                        yield running[generator], ray.get(next(generator))
                    except StopIteration:
                        del running[generator]
                    except ray.exceptions.RayError as error:
                        yield running.pop(generator), error
        finally:
            self._cancel(running)

    def shutdown(self) -> None:
        if self._started_here:
            self._ray.shutdown()

    def _send(self, func: Any) -> Any:
        try:
            return self._ray.put(func)
        except Exception as error:  # boundary: whatever the user's object says when it is pickled
            raise ConfigurationError(
                f"what is to run on Ray cannot be sent to another process ({type(error).__name__}); a provider must be "
                "built from its options alone, and replayed runs need this process's store"
            ) from error

    def _first(self, running: list[Any], timeout: float | None) -> Any:
        done, left = self._ray.wait(running, num_returns=1, timeout=timeout)
        if not done:
            raise TimeoutError(f"no result within {timeout} s")
        running[:] = left
        return self._ray.get(done[0])

    def _cancel(self, running: Iterable[Any]) -> None:
        for one in running:
            with contextlib.suppress(Exception):  # it may be over by now
                self._ray.cancel(one)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise DependencyError.for_extra("ray", "ray", "running on a Ray cluster") from error
    return ray


def _call(func: Callable[[T], R], item: T) -> R:
    return func(item)


def _each(func: Callable[[T], Iterable[R]], item: T) -> Iterator[R]:
    yield from func(item)
