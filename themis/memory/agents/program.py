"""An agent as a program: it reads a JSON object a line on its standard input and writes one a line on its output.

The objects are those of the HTTP protocol. The program lives as long as this process talks to it; a resumed run starts it anew
and tells it what was said (`observe`). With `faketime` a program that reads the clock sees the virtual time too, where
libfaketime is installed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

from themis.core.processes import JsonProcess, parse_command
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
        self._clock_file: Path | None = _clock_file() if faketime else None
        self._program = JsonProcess(
            parse_command(argument),
            timeout_seconds=timeout_seconds,
            environment={} if self._clock_file is None else _faked_clock(self._clock_file),
        )
        self.name = self._program.name

    def close(self) -> None:
        self._program.close()
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
        answer = self._program.ask(content)
        if not isinstance(answer, dict):
            raise ProviderCallError(f"{self.name} wrote {self._excerpt(repr(answer))}, expected a JSON object")
        return answer

    def _excerpt(self, text: str) -> str:
        return redact_text(text[:LONGEST_READ])[:200]


def _faked_clock(file: Path) -> dict[str, str]:
    return {
        "LD_PRELOAD": libfaketime(),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        # Its own waiting and timeouts are no part of virtual time.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def libfaketime() -> str:
    found = next((path for path in FAKETIME_PLACES if Path(path).exists()), None)
    if found is None:
        raise ConfigurationError("faketime needs libfaketime on this machine (Debian: apt-get install faketime)")
    return found


def _clock_file() -> Path:
    libfaketime()
    with NamedTemporaryFile(prefix="themis-clock-", delete=False) as file:
        return Path(file.name)
