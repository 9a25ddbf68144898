"""An agent as a program: it reads a JSON object a line on its standard input and writes one a line on its output.

The objects are those of the HTTP protocol. The program lives as long as this process talks to it; a resumed run starts it anew
and tells it what was said (`observe`). With `faketime` a program that reads the clock sees the virtual time too, where
libfaketime is installed.
"""

from __future__ import annotations

import json
import math
import os
import select
import shlex
import subprocess
import time
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, ClassVar

from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.memory.agents.agent import BOUND_BY_OPTION, Agent, Reply, told_cost

__all__ = ["FAKETIME_PLACES", "CommandAgent", "libfaketime"]

_LONGEST_READ = 16_384
FAKETIME_PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)


class CommandAgent(Agent):
    """Runs a program and speaks with it line by line. The command is split as a shell would, but no shell runs it."""

    reads_clock: ClassVar[bool] = False
    how_to_bound_cost: ClassVar[str] = BOUND_BY_OPTION

    def __init__(
        self,
        command: str,
        session: str,
        *,
        timeout_seconds: float = 120.0,
        faketime: bool = False,
        is_local: bool = False,
        most_cost_usd: float | None = None,
    ) -> None:
        arguments = shlex.split(command)
        if not arguments:
            raise ConfigurationError("the command agent needs a command: command:./my-agent --option")
        self.name = f"command:{Path(arguments[0]).name}"
        self._arguments = arguments
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._is_local = is_local
        if most_cost_usd is not None and not most_cost_usd >= 0:
            raise ConfigurationError(f"most_cost_usd is a sum of US dollars, got {most_cost_usd!r}")
        self._most_cost_usd = 0.0 if is_local else most_cost_usd
        self._clock_file: Path | None = _clock_file() if faketime else None
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._now: datetime | None = None

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        self._show_time(now)
        answer = self._say("message", turn=turn, message=message, presupplied=presupplied)
        text = answer.get("reply")
        if not isinstance(text, str):
            raise ProviderCallError(
                f"its answer has no text in `reply`: {redact_text(str(answer)[:_LONGEST_READ])[:200]}"
            )
        cost = told_cost(answer, is_free=self._is_local or presupplied is not None)
        return Reply(text, cost_usd=cost, calls=1)

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        self._show_time(now)
        self._say("observe", turn=turn, message=message, reply=reply)

    def most_cost_usd(self, message: str) -> float | None:
        return self._most_cost_usd

    def reset(self) -> None:
        self._say("reset")

    def time_passes(self, now: datetime) -> None:
        self._show_time(now)
        self._say("time")

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        if self._clock_file is not None:
            self._clock_file.unlink(missing_ok=True)

    def _show_time(self, now: datetime) -> None:
        self._now = now
        if self._clock_file is not None:
            # As a distance from the real time: a moment would be counted from the program's start, and run ahead.
            # Rounded up: no program is told of a moment before the message.
            ahead = math.ceil((now.timestamp() - time.time()) * 1e6) / 1e6
            self._clock_file.write_text(f"{ahead:+.6f}\n", encoding="ascii")

    def _say(self, kind: str, **fields: Any) -> dict[str, Any]:
        process = self._process or self._start()
        now = None if self._now is None else self._now.isoformat()
        line = json.dumps({"type": kind, "session": self._session, "now": now, **fields}).encode("ascii") + b"\n"
        try:
            assert process.stdin is not None
            process.stdin.write(line)
            process.stdin.flush()
            answer = self._read_line(process)
        except OSError as error:
            raise ProviderCallError(f"{self.name} has ended: {error}") from error
        try:
            parsed = json.loads(answer.decode("utf-8", "replace"))
        except ValueError as error:
            raise ProviderCallError(f"{self.name} wrote a line that is not JSON: {_excerpt(answer)!r}") from error
        if not isinstance(parsed, dict):
            raise ProviderCallError(f"{self.name} wrote {_excerpt(answer)!r}, expected a JSON object")
        return parsed

    def _start(self) -> subprocess.Popen[bytes]:
        environment = dict(os.environ)
        if self._clock_file is not None:
            environment |= {
                "LD_PRELOAD": libfaketime(),
                "FAKETIME_TIMESTAMP_FILE": str(self._clock_file),
                "FAKETIME_NO_CACHE": "1",
                # Its own waiting and timeouts are no part of virtual time.
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        try:
            # In a session of its own, so that Ctrl-C in the terminal does not end it before its reply is stored.
            self._process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigurationError(
                f"the agent's command cannot be started: {redact_text(shlex.join(self._arguments))}: {error.strerror}"
            ) from error
        return self._process

    def _read_line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + self._timeout_seconds
        while b"\n" not in self._unread:
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ProviderCallError(f"{self.name} wrote nothing for {self._timeout_seconds:g} s", kind="timeout")
            piece = os.read(process.stdout.fileno(), 65_536)
            if not piece:
                raise ProviderCallError(f"{self.name} has ended with exit code {process.wait()}")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line


def _excerpt(line: bytes) -> str:
    """Its beginning, cut after secrets are taken out: half a key is known to nobody."""
    return redact_text(line[:_LONGEST_READ].decode("utf-8", "replace"))[:200]


def libfaketime() -> str:
    found = next((path for path in FAKETIME_PLACES if Path(path).exists()), None)
    if found is None:
        raise ConfigurationError("faketime needs libfaketime on this machine (Debian: apt-get install faketime)")
    return found


def _clock_file() -> Path:
    libfaketime()
    with NamedTemporaryFile(prefix="themis-clock-", delete=False) as file:
        return Path(file.name)
