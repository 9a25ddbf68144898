"""Execution on a Ray cluster: this machine's processes, or many machines'."""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from themis.backends.execution import ExecutionBackend
from themis.core.redaction import redact_text
from themis.core.registry import import_extra
from themis.exceptions import ConfigurationError, EvaluationError
from themis.generation.attempts import Request
from themis.generation.remote import CallMaker, Greeting

T = TypeVar("T")
R = TypeVar("R")
Said = Greeting | list[Request] | BaseException

_ray_package = partial(import_extra, "ray", "ray", "running on a Ray cluster")

_WAIT_SECONDS = 0.25
# How long a task has to end after it was interrupted.
_CANCEL_SECONDS = 10.0
_CONNECT_SECONDS = 20
# A process with nothing to tell says so this often.
_HEARTBEAT_SECONDS = 5.0
_HEADLESS_SECONDS = 30.0


class RayExecutionBackend(ExecutionBackend):
    """Processes of a Ray cluster: the one at `address` or RAY_ADDRESS, or else one that is started on this machine.

    What was started here is stopped in `shutdown`; a cluster that was there before is left running, and one that this
    process is already connected to is used whatever the address. `processes` is how many are used at once, by default
    one for each CPU of the cluster; `init_options` go to `ray.init`. Nothing that was sent to a process that is lost is
    sent again here: a run asks again for what was under way there.
    """

    def __init__(self, address: str | None = None, *, processes: int | None = None, **init_options: object) -> None:
        if processes is not None and processes < 1:
            raise ConfigurationError(f"processes is at least 1, got {processes}")
        self._ray = _ray_package()
        _keep_off_stdout(self._ray)
        self._started_here = not self._ray.is_initialized()
        if self._started_here:
            _start(self._ray, address or os.environ.get("RAY_ADDRESS") or "local", init_options)
        self.processes = processes or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    @property
    def is_on_one_machine(self) -> bool:
        return on_one_machine(self._ray.nodes())

    @property
    def address(self) -> str:
        """Under which the other machines of the cluster reach this one."""
        return str(self._ray.util.get_node_ip_address())

    def map(
        self,
        func: Callable[[T], R],
        items: Iterable[T],
        *,
        max_workers: int | None = None,
        timeout: float | None = None,
        **options: object,
    ) -> Iterator[R]:
        """One task for each item; results in completion order. An exception of `func` is raised here."""
        ray = self._ray
        sent, task = self._send(func), ray.remote(max_retries=0)(_call)
        at_once = min(self.processes, max_workers or self.processes)
        running: list[object] = []
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
        running: dict[object, T] = {}
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
                    except ray.exceptions.RayTaskError as error:
                        yield running.pop(generator), error.cause or error
                    except ray.exceptions.RayError as error:
                        yield running.pop(generator), error
        finally:
            self._cancel(running)

    def open_workers(self, served: CallMaker) -> RayWorkers:
        """Processes that each hold a copy of an object with `greet`, `take` and `give`, for as long as they are not closed."""
        return RayWorkers(self._ray, self._send(served))

    def shutdown(self) -> None:
        if self._started_here:
            self._ray.shutdown()

    def _send(self, func: object) -> object:
        try:
            return self._ray.put(self._ray.cloudpickle.dumps((func, os.getcwd())))
        except Exception as error:  # boundary: whatever the user's object says when it is pickled
            # Without its cause: Ray tells of everything that the object holds, keys too.
            raise ConfigurationError(
                f"what is to run on Ray cannot be sent to another process ({type(error).__name__}); a provider must be "
                "built from its options alone, and replayed runs need this process's store"
            ) from None

    def _first(self, running: list[object], timeout: float | None) -> Any:
        done, left = self._ray.wait(running, num_returns=1, timeout=timeout)
        if not done:
            raise TimeoutError(f"no result within {timeout} s")
        running[:] = left
        return self._ray.get(done[0])

    def _cancel(self, running: Iterable[object]) -> None:
        """Interrupts what is under way, and kills what does not mind: it would hold its place in the cluster for ever."""
        ends = {one.completed() if hasattr(one, "completed") else one: one for one in running}
        for force in (False, True):
            for one in ends.values():
                with contextlib.suppress(Exception):  # it may be over by now
                    self._ray.cancel(one, force=force)
            if ends:
                _, left = self._ray.wait(list(ends), num_returns=len(ends), timeout=_CANCEL_SECONDS)
                ends = {end: ends[end] for end in left}


def on_one_machine(nodes: Iterable[Mapping[str, object]]) -> bool:
    """Whether all nodes of a cluster that are alive (`ray.nodes()`) have one address."""
    return len({node["NodeManagerAddress"] for node in nodes if node["Alive"]}) <= 1


def _start(ray: ModuleType, address: str, options: Mapping[str, object]) -> None:
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a run tells nobody that it is made
        ray.init(address, **{"include_dashboard": False, **quiet, **options})
        return
    if address.startswith("ray://"):
        raise ConfigurationError(
            f"Ray's client, which {address!r} asks for, cannot stream results; start Themis on a machine of the cluster "
            "and give 'auto' or the head's address, such as 'head:6379'"
        )
    try:
        # Ray itself would go on trying for minutes.
        _connect(address, _CONNECT_SECONDS)
    except OSError as error:
        raise ConfigurationError(f"no Ray cluster was found at {address!r}: {error}") from error
    try:
        ray.init(address, **{**quiet, **options})
    except (OSError, RuntimeError, ray.exceptions.RayError) as error:
        raise ConfigurationError(_why_not_connected(address, error)) from error


def _keep_off_stdout(ray: ModuleType) -> None:
    """Has Ray write to stderr what its daemons report, such as a killed process: stdout is the program's, and may be JSON."""
    worker = ray._private.worker
    write = getattr(worker, "print_to_stdstream", None)  # it has no public switch
    if write is not None and not isinstance(write, partial):
        worker.print_to_stdstream = partial(_write_as_error, write)


def _write_as_error(write: Callable[..., None], data: Mapping[str, object], ignore_prefix: bool = False) -> None:
    write({**data, "is_err": True}, ignore_prefix=ignore_prefix)


def _connect(address: str, timeout_seconds: float) -> None:
    """Sees that somebody listens at `host:port`; anything else, such as `auto`, is for Ray to find."""
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout_seconds).close()


def _why_not_connected(address: str, error: BaseException) -> str:
    """What Ray gives as the reason: it stands in the last line of the first error, under those that followed from it."""
    reason = error
    while reason.__cause__ is not None:
        reason = reason.__cause__
    said = str(reason).strip().rsplit("\n", 1)[-1]
    if "Auth" in type(reason).__name__ or "InvalidAuthToken" in said:
        return (
            f"the Ray cluster at {address!r} refuses this program's token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (or "
            "write ~/.ray/auth_token) as on the machines of the cluster"
        )
    return f"no connection to the Ray cluster at {address!r}: {said}"


def _unpack(sent: bytes) -> Any:
    """What was sent, in a process with the working directory of the one that sent it, if there is such a folder."""
    func, folder = _ray_package().cloudpickle.loads(sent)
    with contextlib.suppress(OSError):  # another machine
        os.chdir(folder)
    return func


def _heed_interrupts() -> None:
    """Ray cancels by an interrupt, which children of a shell's background job, or a task before in this process, may ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _call(sent: bytes, item: object) -> object:
    _heed_interrupts()
    return _unpack(sent)(item)


def _each(sent: bytes, item: object) -> Iterator[object]:
    _heed_interrupts()
    for result in _unpack(sent)(item):  # noqa: UP028 - Ray sends values into a generator, which not every iterator can take
        yield result


class RayWorkers:
    """Processes that stay for a run, each with a copy of one object (see `themis.generation.remote.Workers`)."""

    def __init__(self, ray: ModuleType, sent: object) -> None:
        self._ray = ray
        self._sent = sent
        # Two threads of a process wait with `give` and are handed calls by `take`. On all machines, whoever else is there.
        options = {"max_restarts": 0, "max_concurrency": 2, "scheduling_strategy": "SPREAD"}
        self._process = ray.remote(**options)(_Process)
        self._numbers = itertools.count()
        self._actors: dict[int, Any] = {}
        self._pending: dict[object, int] = {}
        self._head = ray.get_runtime_context().gcs_address
        self._head_seen = time.monotonic()

    def start(self) -> int:
        number = next(self._numbers)
        self._actors[number] = actor = self._process.remote()
        self._pending[actor.greet.remote(self._sent)] = number
        return number

    def send(self, name: int, calls: list[Request]) -> None:
        self._actors[name].take.remote(calls)

    def receive(self, timeout_seconds: float) -> list[tuple[int, Said]]:
        self._look_for_head()
        if not self._pending:
            time.sleep(timeout_seconds)
            return []
        ready, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=timeout_seconds)
        if ready and len(self._pending) > 1:
            ready, _ = self._ray.wait(list(self._pending), num_returns=len(self._pending), timeout=0)
        return [self._receive(reply) for reply in ready]

    def stop(self, name: int) -> None:
        self._ray.kill(self._actors[name])

    def close(self) -> None:
        for name in list(self._actors):
            with contextlib.suppress(Exception):  # it may be over by now, and the cluster too
                self.stop(name)

    def _look_for_head(self) -> None:
        """Ends the run in time to say so: Ray ends a program that has been without the cluster's head for a minute."""
        absent = time.monotonic() - self._head_seen
        if absent < _HEARTBEAT_SECONDS:
            return
        try:
            _connect(self._head, timeout_seconds=1.0)
            self._head_seen = time.monotonic()
        except OSError as error:
            if absent > _HEADLESS_SECONDS:
                raise EvaluationError(
                    f"the head of the Ray cluster at {self._head} has been gone for {absent:.0f} s ({error}); what was "
                    "answered is stored: start the cluster again and run the same command"
                ) from error

    def _receive(self, reply: object) -> tuple[int, Said]:
        name = self._pending.pop(reply)
        try:
            said = self._ray.get(reply)
        except self._ray.exceptions.RayError as error:
            # Out of reach is not over: it must not go on asking.
            with contextlib.suppress(Exception):
                self.stop(name)
            del self._actors[name]
            return name, error
        self._pending[self._actors[name].give.remote()] = name
        return name, said


class _Process:
    """The object in a process of its own; it is unpacked there, so that what goes wrong can be told."""

    _served: CallMaker

    def greet(self, sent: bytes) -> Greeting:
        try:
            self._served = _unpack(sent)
        except Exception as error:  # boundary: whatever the user's code does when it is imported
            return Greeting(platform.node(), refusal=redact_text(f"{type(error).__name__}: {error}"))
        return self._served.greet()

    def take(self, calls: list[Request]) -> None:
        self._served.take(calls)

    def give(self) -> list[Request]:
        return self._served.give(_HEARTBEAT_SECONDS)
