"""`themis serve` as a process, as its users start it, on a free port and with a token file of its own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

__all__ = ["RunningServer", "StartServer", "servers"]


@dataclass(frozen=True)
class RunningServer:
    address: str
    banner: str
    process: subprocess.Popen[str]
    token_file: Path

    @property
    def token(self) -> str:
        return self.token_file.read_text(encoding="ascii").strip()

    @property
    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def link(self, path: str = "/") -> str:
        """What is opened in a browser to come to a page: the link of the banner, where there is one."""
        found = re.search(r"open +(\S+)", self.banner)
        return f"{found[1]}&next={quote(path, safe='')}" if found else self.address + path

    def open(self, path: str, timeout: float = 300, **headers: str):  # type: ignore[no-untyped-def]
        """The answer to a request with the token."""
        asked = urllib.request.Request(self.address + path, headers={**self.bearer, **headers})
        return urllib.request.urlopen(asked, timeout=timeout)


StartServer = Callable[..., RunningServer]


@contextlib.contextmanager
def servers() -> Iterator[StartServer]:
    """A function that starts servers with the given storage, options and environment; all are stopped at the end."""
    started: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory(prefix="themis-state-") as state:

        def start(storage: Path | str, *options: str, **variables: str) -> RunningServer:
            command = [sys.executable, "-c", "from themis.cli.serving import serve; serve()"]
            process = subprocess.Popen(
                [*command, "--storage", str(storage), "--port", "0", *options],
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "XDG_STATE_HOME": state, **variables},
            )
            started.append(process)
            banner = _read_banner(process)
            found = re.search(r"http://\S+", banner)
            assert found, banner
            _wait_until_up(found[0])
            return RunningServer(found[0], banner, process, Path(state) / "themis" / "server-token")

        yield start
        for process in started:
            process.terminate()
            process.communicate(timeout=300)


def _read_banner(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    banner = ""
    for line in process.stderr:
        banner += line
        if line.startswith("  token"):
            break
    return banner


def _wait_until_up(address: str) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{address}/api/health", timeout=300).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"no server at {address}")
