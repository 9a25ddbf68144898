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
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.memory.agents.agent import AgentSettings
from themis.memory.agents.http import LONGEST_READ, Answer, JsonAgent

FAKETIME_PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)


class ProgramAgent(JsonAgent):
    """A program that reads and writes a JSON object a line: `command:PROGRAM ARGUMENTS`.

    The command is split as a shell would, but no shell runs it.
    """

    def __init__(
        self,
        argument: str,
        settings: AgentSettings,
        *,
        timeout_seconds: float = 120.0,
        faketime: bool = False,
        most_cost_usd: float | None = None,
    ) -> None:
        super().__init__(settings, most_cost_usd)
        arguments = shlex.split(argument)
        if not arguments:
            raise ConfigurationError("the command agent needs a command: command:./my-agent --option")
        self.name = f"command:{Path(arguments[0]).name}"
        self._arguments = arguments
        self._timeout_seconds = timeout_seconds
        self._clock_file: Path | None = _clock_file() if faketime else None
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""

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
        super()._show_time(now)
        if self._clock_file is not None:
            # As a distance from the real time: a moment would be counted from the program's start, and run ahead.
            # Rounded up: no program is told of a moment before the message.
            ahead = math.ceil((now.timestamp() - time.time()) * 1e6) / 1e6
            self._clock_file.write_text(f"{ahead:+.6f}\n", encoding="ascii")

    def _request(self, content: Mapping[str, object]) -> Answer:
        process = self._process or self._start()
        line = json.dumps(content).encode("ascii") + b"\n"
        try:
            assert process.stdin is not None
            process.stdin.write(line)
            process.stdin.flush()
            answer = self._read_line(process)
        except OSError as error:
            raise ProviderCallError(f"{self.name} has ended: {error}") from error
        text = answer.decode("utf-8", "replace")
        try:
            parsed = json.loads(text)
        except ValueError as error:
            raise ProviderCallError(f"{self.name} wrote a line that is not JSON: {self._excerpt(text)!r}") from error
        if not isinstance(parsed, dict):
            raise ProviderCallError(f"{self.name} wrote {self._excerpt(text)!r}, expected a JSON object")
        return parsed

    def _excerpt(self, text: str) -> str:
        return redact_text(text[:LONGEST_READ])[:200]

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


def libfaketime() -> str:
    found = next((path for path in FAKETIME_PLACES if Path(path).exists()), None)
    if found is None:
        raise ConfigurationError("faketime needs libfaketime on this machine (Debian: apt-get install faketime)")
    return found


def _clock_file() -> Path:
    libfaketime()
    with NamedTemporaryFile(prefix="themis-clock-", delete=False) as file:
        return Path(file.name)
