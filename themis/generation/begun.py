"""Counts the calls that processes elsewhere have begun, so that it is known what a lost one had made.

A process writes a byte to a connection of its own before every call. What its kernel has taken arrives here, even if the
process is killed the moment after.
"""

from __future__ import annotations

import contextlib
import hmac
import inspect
import secrets
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from themis.interfaces import StatelessTaskExecutor

__all__ = ["BegunCounter", "BegunReporter"]

_CONNECT_SECONDS = 10.0
# How long what a lost process has written may be on its way.
_ARRIVING_SECONDS = 2.0
_SECRET_BYTES = 16
_NAME_BYTES = 16


@dataclass(frozen=True)
class BegunReporter:
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
            execute: Any = executor.execute
            # On the object: whatever else it has stays as it is.
            setattr(executor, "execute", _reported(execute, line))  # noqa: B010
        except (OSError, AttributeError):
            return b""
        return name


def _reported(execute: Callable[[Any], Any], line: socket.socket) -> Callable[[Any], Any]:
    def tell() -> None:
        with contextlib.suppress(OSError):
            line.send(b".")

    async def execute_there(task: Any) -> Any:
        tell()
        return await execute(task)

    def execute_here(task: Any) -> Any:
        tell()
        return execute(task)

    return execute_there if inspect.iscoroutinefunction(execute) else execute_here


@dataclass
class _Line:
    """A connection: what introduces it, and how many calls have been told of since."""

    opening: bytes = b""
    begun: int = 0
    is_over: bool = False


class BegunCounter:
    """Listens at an address of this machine; everything happens in `poll` and `count`, in the caller's thread."""

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._listener.setblocking(False)
        self.reporter = BegunReporter(host, self._listener.getsockname()[1], secrets.token_bytes(_SECRET_BYTES))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._lines: dict[bytes, _Line] = {}

    def poll(self, timeout_seconds: float = 0.0) -> None:
        """Takes what has arrived."""
        for key, _ in self._selector.select(timeout_seconds):
            if key.data is None:
                with contextlib.suppress(OSError):
                    line, _ = self._listener.accept()
                    line.setblocking(False)
                    self._selector.register(line, selectors.EVENT_READ, _Line())
            else:
                self._read(key.fileobj, key.data)

    def count(self, name: bytes) -> int | None:
        """All calls that a process which is lost has told of; None if it never did, or may have told of more."""
        until = time.monotonic() + _ARRIVING_SECONDS
        while not (line := self._lines.get(name, _Line())).is_over and name and time.monotonic() < until:
            self.poll(0.05)
        return line.begun if line.is_over else None

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _read(self, connection: Any, line: _Line) -> None:
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
