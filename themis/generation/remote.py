"""A pool whose calls are made in the processes of an execution backend, on this machine or on others.

For backends that have such processes (`open_workers`). The engine stays here: it alone starts calls, keeps rates and budget,
retries, stops and commits, so what it promises holds over all processes together. A process does nothing but single calls.
"""

from __future__ import annotations

import contextlib
import heapq
import hmac
import inspect
import logging
import os
import secrets
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from themis import __version__
from themis.core.codec import canonical_json
from themis.core.entities import GenerationRecord, GenerationTask
from themis.core.identity import code_fingerprint
from themis.core.redaction import Redactor
from themis.core.secrets import REDACTED, is_secret_name
from themis.exceptions import EvaluationError, ProviderCallError, ProviderError, ThemisError
from themis.generation.attempts import Request, record_of
from themis.generation.pools import LocalPool, open_pool
from themis.interfaces import StatelessTaskExecutor

logger = logging.getLogger(__name__)

# How long the first process that is ready waits for the others, so that one that differs is found before the first call.
_GATHERING_SECONDS = 30.0
# How long none may be ready.
_STARTING_SECONDS = 300.0
# Calls wait in a process so that its slots are busy while answers are on their way here and are committed.
_AHEAD_SECONDS = 0.05
# How long after its timeout a call may still be answered, before its process is given up as frozen.
_GRACE_SECONDS = 60.0
# So many processes in a row may be lost in one place without an answer.
_MOST_LOST = 3
_LARGEST_BATCH = 512
_LATE_CALLS_SECONDS = 0.25
# What providers tell of the parameters that they sent, and under what it travels.
_PARAMETERS = ("sent_parameters", "left_out")
_TOLD = "parameters"


class Workers(Protocol):
    """Processes of a backend, each with an object of ours in it (`CallMaker`): what `open_workers(make)` returns."""

    def start(self) -> Hashable:
        """Starts one more process and returns its name; the first that it says is what `greet` returns there."""

    def send(self, name: Hashable, calls: list[Request]) -> None:
        """Has `take(calls)` called there."""

    def receive(self, timeout_seconds: float) -> list[tuple[Hashable, Greeting | list[Request] | BaseException]]:
        """Who said what since: results of `greet` and then of `give`, or the exception by which a process was lost."""

    def stop(self, name: Hashable) -> None:
        """Ends a process, whatever it is doing."""

    def close(self) -> None:
        """Ends all of them."""


# --- in a process of the backend's ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Greeting:
    """What a process says first: where it is, and what it would ask or why it cannot."""

    where: str
    identity: dict[str, str] = field(default_factory=dict)
    refusal: str = ""
    # Under which it reports the calls that it begins; empty if it does not.
    reports_as: bytes = b""


class CallMaker:
    """Builds the provider in the process that it is sent to, and makes the calls that it is given there."""

    def __init__(
        self, make_executor: Callable[[], StatelessTaskExecutor], slots: int, reporter: CallReporter | None = None
    ) -> None:
        self._make_executor = make_executor
        self._slots = slots
        self._reporter = reporter
        self._pool: LocalPool | None = None

    def greet(self) -> Greeting:
        where = f"{socket.gethostname()} (pid {os.getpid()})"
        try:
            executor = self._make_executor()
        except Exception as error:  # boundary: a provider is the user's code
            return Greeting(where, refusal=Redactor().text(f"{type(error).__name__}: {error}"))
        # Calls are taken in one thread and made in another.
        self._incoming: deque[list[Request]] = deque()
        self._executor = executor
        self._told: dict[str, dict[str, object]] = {name: {} for name in _PARAMETERS}
        identity = identify(executor)
        reports_as = self._reporter.report(executor) if self._reporter else b""
        self._pool = open_pool(executor, self._slots)
        self._pool.__enter__()
        return Greeting(where, identity, reports_as=reports_as)

    def take(self, calls: list[Request]) -> None:
        assert self._pool is not None
        self._incoming.append(calls)
        self._pool.wake()

    def give(self, timeout_seconds: float) -> list[Request]:
        """Answers as soon as there are any; none after so long a time."""
        assert self._pool is not None
        until = time.monotonic() + timeout_seconds
        while True:
            while self._incoming:
                self._pool.submit(self._incoming.popleft())
            answered = self._pool.collect(min(timeout_seconds, _LATE_CALLS_SECONDS), _LARGEST_BATCH)
            if answered or time.monotonic() >= until:
                return self._add_parameters([_without_task(request) for request in answered])

    def _add_parameters(self, answered: list[Request]) -> list[Request]:
        """With what the provider tells of its parameters, where that has changed: only here it knows what it sent."""
        told: dict[str, dict[str, object]] = {name: dict(getattr(self._executor, name, {})) for name in _PARAMETERS}
        if answered and told != self._told and isinstance(answered[0].reply, GenerationRecord):
            answered[0].reply.metrics[_TOLD] = self._told = told
        return answered


def _without_task(request: Request) -> Request:
    """With a reply that can be sent: errors as data, and not the task, which the engine has."""
    nothing: Any = None
    request.task, request.reply = nothing, replace(record_of(request.reply, nothing), task=nothing)
    return request


# --- in the run's own process -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Sent:
    """A call that a process has been sent, and when it should have been answered at the latest."""

    request: Request
    due: float


@dataclass(eq=False)
class _Worker:
    """A process, and the calls that it has been sent and not answered, in that order."""

    name: Hashable
    # How many before it, in its place, were lost without an answer.
    lost_before: int = 0
    is_ready: bool = False
    reports_as: bytes = b""
    answered: int = 0
    held: dict[tuple[int, int], _Sent] = field(default_factory=dict)


class RemotePool:
    """Calls in `processes` processes of a backend, `workers` at once over all of them.

    A process whose provider is not the one that this process has built is refused before its first call. What a lost one
    had under way comes out as errors of the kind `worker_lost`, which the engine asks again; what it had not begun is sent
    to another.
    """

    def __init__(
        self,
        backend: Any,
        make_executor: Callable[[], StatelessTaskExecutor],
        executor: StatelessTaskExecutor,
        workers: int,
    ) -> None:
        self.in_flight = 0
        # One, to have the engine wait; the rest is not taken from its limits before there is somebody to send it to.
        self.room = 1
        self._processes = max(1, min(workers, backend.processes))
        self._slots = -(-workers // self._processes)
        self._executor = executor
        self._identity = identify(executor)
        # A class that travels with its code is the same everywhere, but may not keep its name.
        self._ignored = ("provider", "code") if code_travels(type(executor)) else ()
        self._most = self._limit = workers
        self._resume_at = 0.0
        self._backlog: deque[Request] = deque()
        self._members: dict[Hashable, _Worker] = {}
        self._began = time.monotonic()
        self._first_ready_at: float | None = None
        self._has_warned = False
        self._failure: ThemisError | None = None
        self._usual_seconds: float | None = None
        self._counter = _open_counter(backend)
        reporter = None if self._counter is None else self._counter.reporter
        self._workers: Workers = backend.open_workers(CallMaker(make_executor, self._slots, reporter))

    def __enter__(self) -> RemotePool:
        for _ in range(self._processes):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.close()
        if self._counter is not None:
            self._counter.close()

    @property
    def active(self) -> int:
        return sum(len(worker.held) for worker in self._members.values())

    def submit(self, requests: Sequence[Request]) -> None:
        self.in_flight += len(requests)
        self._backlog.extend(requests)
        self._send()

    def withdraw(self) -> None:
        self.in_flight -= len(self._backlog)
        self._backlog.clear()

    def collect(self, timeout: float, most: int) -> list[Request]:
        """All answers that have come, be they more than `most`: they are here, and to be committed."""
        self._give_up_frozen()
        self._send()
        if self._counter is not None:
            self._counter.poll()
        answers: list[Request] = []
        for name, said in self._workers.receive(timeout):
            worker = self._members.get(name)
            if worker is None:
                continue
            if isinstance(said, BaseException):
                answers += self._lose(worker, said)
            elif isinstance(said, Greeting):
                self._admit_worker(worker, said)
            else:
                answers += self._take_replies(worker, said)
        self.in_flight -= len(answers)
        if self._usual_seconds is not None:
            # Before the engine commits these; but while nothing has succeeded, not before it has seen them.
            self._send()
        if self._failure is not None and not answers and not self.active:
            raise self._failure
        return answers

    def set_limit(self, limit: int, resume_at: float) -> None:
        self._limit, self._resume_at = limit, resume_at

    # --- sending -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        now = time.monotonic()
        if not self._is_open(now) or self._failure is not None or now < self._resume_at:
            return
        ahead = self._count_ahead()
        free = self._limit + ahead - self.active
        ready = [worker for worker in self._members.values() if worker.is_ready]
        most_each = self._slots + -(-ahead // max(1, len(ready)))
        least_busy = [(len(worker.held), number, worker) for number, worker in enumerate(ready)]
        heapq.heapify(least_busy)
        parcels: dict[Hashable, list[Request]] = {}
        while self._backlog and free > 0 and least_busy and least_busy[0][0] < most_each:
            held, number, worker = least_busy[0]
            parcels.setdefault(worker.name, []).append(self._hold(worker, self._backlog.popleft(), now))
            heapq.heapreplace(least_busy, (held + 1, number, worker))
            free -= 1
        for name, calls in parcels.items():
            self._workers.send(name, calls)

    def _hold(self, worker: _Worker, request: Request, now: float) -> Request:
        """The request as it is sent: without the history of its retries."""
        position, attempt, timeout = request.position, request.attempt, request.timeout_seconds
        # It may wait there for another one first.
        worker.held[position, attempt] = _Sent(request, now + 2 * timeout + _GRACE_SECONDS)
        return Request(position, attempt, request.key, request.task, timeout_seconds=timeout)

    def _count_ahead(self) -> int:
        """Calls that may wait in processes; none before a first success, nor while the provider is throttling."""
        if self._usual_seconds is None or self._limit < self._most:
            return 0
        return int(self._limit * min(2.0, _AHEAD_SECONDS / max(self._usual_seconds, 1e-9)))

    def _is_open(self, now: float) -> bool:
        if self.room > 1:
            return True
        waited = now - (self._first_ready_at or now)
        if all(worker.is_ready for worker in self._members.values()) or waited > _GATHERING_SECONDS:
            self.room = 3 * self._most + 8
            return True
        waited = now - self._began
        if self._first_ready_at is None and waited > _STARTING_SECONDS:
            self._failure = EvaluationError(
                f"no process of the cluster was ready within {_STARTING_SECONDS:g} s, so nothing was asked; "
                "see with `ray status` whether it has a free CPU, and run the same command again"
            )
        elif waited > 10 and not self._has_warned:
            self._has_warned = True
            logger.warning("waiting for the cluster: %d of %d processes are ready", *self._count_ready())
        return False

    def _count_ready(self) -> tuple[int, int]:
        return sum(worker.is_ready for worker in self._members.values()), len(self._members)

    # --- receiving ---------------------------------------------------------------------------------------------------

    def _admit_worker(self, worker: _Worker, greeting: Greeting) -> None:
        if refusal := self._find_refusal(greeting):
            self._failure = self._failure or ProviderError(
                f"the process on {greeting.where} {refusal}. It was asked nothing; start the machines of the cluster with "
                "the same code, packages and variables as this program, or give what differs as an option"
            )
            return
        worker.is_ready, worker.reports_as = True, greeting.reports_as
        self._first_ready_at = self._first_ready_at or time.monotonic()

    def _find_refusal(self, greeting: Greeting) -> str:
        if greeting.refusal:
            return f"cannot build the provider: {greeting.refusal}"
        differences = find_differences(self._identity, greeting.identity, self._ignored)
        return f"would not ask what this one asks: {'; '.join(differences)}" if differences else ""

    def _take_replies(self, worker: _Worker, said: list[Request]) -> list[Request]:
        answers = []
        good = []
        for answer in said:
            request = worker.held.pop((answer.position, answer.attempt)).request
            request.reply, request.reply_seconds = answer.reply, answer.reply_seconds
            if isinstance(answer.reply, GenerationRecord) and (told := answer.reply.metrics.pop(_TOLD, None)):
                for name in _PARAMETERS:
                    getattr(self._executor, name, {}).update(told[name])
            answers.append(request)
            if isinstance(answer.reply, GenerationRecord) and answer.reply.error is None:
                good.append(answer.reply_seconds)
        worker.answered += len(answers)
        if good:
            mean = sum(good) / len(good)
            self._usual_seconds = mean if self._usual_seconds is None else 0.8 * self._usual_seconds + 0.2 * mean
            worker.lost_before = 0
        return answers

    # --- losing ------------------------------------------------------------------------------------------------------

    def _start(self, lost_before: int = 0) -> None:
        name = self._workers.start()
        self._members[name] = _Worker(name, lost_before)

    def _lose(self, worker: _Worker, reason: BaseException) -> list[Request]:
        """What was begun there and not answered, as errors. A process begins calls in the order in which it was sent them."""
        del self._members[worker.name]
        held = [sent.request for sent in worker.held.values()]
        count = self._count_begun(worker)
        begun, waiting = held[:count], held[count:]
        self._backlog.extendleft(reversed(waiting))
        said = " ".join(f"{type(reason).__name__}: {reason}".split())[:300]
        logger.warning("a process was lost with %d calls under way, which are asked again: %s", len(begun), said)
        if worker.lost_before < _MOST_LOST:
            self._start(worker.lost_before + 1)
        elif not self._members:
            self._failure = EvaluationError(
                f"every process of the cluster was lost, again and again; the last by {said}. "
                "What was answered is stored; find the cause in Ray's logs and run the same command again"
            )
        error = ProviderCallError(
            f"the process of this call ended before its answer: {said}", kind="worker_lost", retryable=True
        )
        for request in begun:
            request.reply, request.reply_seconds = error, 0.0
        return begun

    def _count_begun(self, worker: _Worker) -> int:
        told = self._counter.count(worker.reports_as) if self._counter is not None else None
        # Where it has not told: so many as it makes at once.
        return self._slots if told is None else max(0, told - worker.answered)

    def _give_up_frozen(self) -> None:
        now = time.monotonic()
        for worker in self._members.values():
            if worker.held and now > next(iter(worker.held.values())).due:
                with contextlib.suppress(Exception):
                    # Comes out of `receive` as a lost one.
                    self._workers.stop(worker.name)


def _open_counter(backend: Any) -> CallCounter | None:
    """At the address under which the processes of the backend reach this machine, if it has one."""
    try:
        return CallCounter(backend.address)
    except (AttributeError, OSError):
        return None


# --- how many calls a process has begun: a byte of a connection for each, which arrives though the process is killed ----

_CONNECT_SECONDS = 10.0
# How long what a lost process has written may be on its way.
_ARRIVING_SECONDS = 2.0
_SECRET_BYTES = 16
_NAME_BYTES = 16


@dataclass(frozen=True)
class CallReporter:
    """Sent to a process: where it tells of its calls."""

    host: str
    port: int
    secret: bytes = field(repr=False)

    def report(self, executor: StatelessTaskExecutor) -> bytes:
        """Has every later call of this provider reported; the name under which that is done, or nothing if it cannot be."""
        name = secrets.token_bytes(_NAME_BYTES)
        try:
            line = socket.create_connection((self.host, self.port), _CONNECT_SECONDS)
            line.sendall(self.secret + name)
            line.setblocking(False)
            # On the object: whatever else it has stays as it is.
            for method in ("execute", "score_continuations"):
                if callable(call := getattr(executor, method, None)):
                    setattr(executor, method, _report_calls(call, line))
        except (OSError, AttributeError):
            return b""
        return name


Execute = Callable[[GenerationTask], object]


def _report_calls(execute: Execute, line: socket.socket) -> Execute:
    def tell() -> None:
        with contextlib.suppress(OSError):
            line.send(b".")

    async def execute_async(task: GenerationTask) -> object:
        tell()
        reply = execute(task)
        return await reply if inspect.isawaitable(reply) else reply

    def execute_sync(task: GenerationTask) -> object:
        tell()
        return execute(task)

    return execute_async if inspect.iscoroutinefunction(execute) else execute_sync


@dataclass
class _Connection:
    """A connection: what introduces it, and how many calls have been told of since."""

    opening: bytes = b""
    begun: int = 0
    is_over: bool = False


class CallCounter:
    """Listens at an address of this machine; everything happens in `poll` and `count`, in the caller's thread."""

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._listener.setblocking(False)
        self.reporter = CallReporter(host, self._listener.getsockname()[1], secrets.token_bytes(_SECRET_BYTES))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._lines: dict[bytes, _Connection] = {}

    def poll(self, timeout_seconds: float = 0.0) -> None:
        """Takes what has arrived."""
        for key, _ in self._selector.select(timeout_seconds):
            if key.data is None:
                with contextlib.suppress(OSError):
                    line, _ = self._listener.accept()
                    line.setblocking(False)
                    self._selector.register(line, selectors.EVENT_READ, _Connection())
            else:
                assert isinstance(key.fileobj, socket.socket)
                self._read(key.fileobj, key.data)

    def count(self, name: bytes) -> int | None:
        """All calls that a process which is lost has told of; None if it never did, or may have told of more."""
        until = time.monotonic() + _ARRIVING_SECONDS
        while not (line := self._lines.get(name, _Connection())).is_over and name and time.monotonic() < until:
            self.poll(0.05)
        return line.begun if line.is_over else None

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _read(self, connection: socket.socket, line: _Connection) -> None:
        try:
            said = connection.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        missing = _SECRET_BYTES + _NAME_BYTES - len(line.opening)
        if missing:
            line.opening += said[:missing]
            if len(line.opening) == _SECRET_BYTES + _NAME_BYTES:
                if hmac.compare_digest(line.opening[:_SECRET_BYTES], self.reporter.secret):
                    self._lines[line.opening[_SECRET_BYTES:]] = line
                else:
                    said = b""
        line.begun += len(said[missing:])
        if not said:
            line.is_over = True
            self._selector.unregister(connection)
            connection.close()


# --- what a provider is where it was built -----------------------------------------------------------------------------


def identify(executor: StatelessTaskExecutor) -> dict[str, str]:
    """Its endpoint, options and code, and the Themis around it, as they may be shown: without keys.

    The options are what the object has under the names of its constructor's parameters, and every address that it holds:
    what the environment of one machine has decided shows there.
    """
    kind = type(executor)
    # Behind the # is a digest of the key.
    endpoint = str(getattr(executor, "account", "")).partition("#")[0]
    return {
        "themis": __version__,
        "provider": f"{kind.__module__}.{kind.__qualname__}",
        "code": code_fingerprint(kind)[:12],
        "endpoint": Redactor().text(endpoint),
        **dict(_options(executor)),
    }


def find_differences(here: Mapping[str, str], there: Mapping[str, str], ignored: Collection[str] = ()) -> list[str]:
    """Each as a clause with both values."""
    names = [*here, *(name for name in there if name not in here)]
    return [
        f"{name} is {there.get(name, 'nothing')} there and {here.get(name, 'nothing')} here"
        for name in names
        if name not in ignored and here.get(name) != there.get(name)
    ]


def code_travels(kind: type) -> bool:
    """Whether a class is sent with its code, because another process could not import it under its name."""
    if kind.__module__ == "__main__":
        return True
    found: object = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not kind


def _options(executor: StatelessTaskExecutor) -> Iterator[tuple[str, str]]:
    try:
        parameters = set(inspect.signature(type(executor)).parameters)
    except (TypeError, ValueError):  # built in C
        parameters = set()
    redactor = Redactor()
    for attribute, value in sorted(getattr(executor, "__dict__", {}).items()):
        name = attribute.lstrip("_")
        is_option = name in parameters or (isinstance(value, str) and "://" in value)
        shown = redactor.deep(value) if is_option else REDACTED
        # Keys may be each machine's own.
        if not is_secret_name(name) and REDACTED not in str(shown) and _is_plain(shown):
            yield f"option {name}", canonical_json(shown)


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)
