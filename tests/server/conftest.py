"""Stores with runs in them, and servers: one in this process for most tests, a real one for browsers and streams."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import themis
from themis.server import create_app

HERE = "http://127.0.0.1"


def questions(count: int) -> list[dict[str, str]]:
    return [{"id": f"q{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(count)]


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that tests only read: `baseline` and `variant` on forty questions, and `perfect` on ten."""
    root = tmp_path_factory.mktemp("runs")
    for run_id, model, count in (
        ("baseline", "fake/noisy-0.4", 40),
        ("variant", "fake/noisy-0.1", 40),
        ("perfect", "fake/perfect", 10),
    ):
        themis.evaluate(
            questions(count),
            model=model,
            prompt="{question}",
            metrics=["exact_match", "f1"],
            run_id=run_id,
            storage=root,
            tags={"team": "lab"} if run_id != "perfect" else None,
        )
    return root


@pytest.fixture
def client(two_runs: Path) -> Iterator[TestClient]:
    with TestClient(create_app(two_runs), base_url=HERE) as client:
        yield client


@dataclass(frozen=True)
class RunningServer:
    address: str
    banner: str
    process: subprocess.Popen[str]

    @property
    def token(self) -> str:
        return re.search(r"token +(\S+)", self.banner)[1]  # type: ignore[index]


@pytest.fixture
def start_server() -> Iterator[Callable[..., RunningServer]]:
    """Starts `themis serve` as its users do, on a free port."""
    with servers() as start:
        yield start


@pytest.fixture(scope="session")
def start_lasting_server() -> Iterator[Callable[..., RunningServer]]:
    """The same for servers that several tests only read from."""
    with servers() as start:
        yield start


@pytest.fixture(scope="session")
def reading_server(start_lasting_server: Callable[..., RunningServer], two_runs: Path) -> RunningServer:
    """One server for all tests that only look at `two_runs`."""
    return start_lasting_server(two_runs)


@contextlib.contextmanager
def servers() -> Iterator[Callable[..., RunningServer]]:
    started: list[subprocess.Popen[str]] = []

    def start(storage: Path | str, *options: str) -> RunningServer:
        command = [sys.executable, "-c", "from themis.cli.serving import serve; serve()"]
        process = subprocess.Popen(
            [*command, "--storage", str(storage), "--port", "0", *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        started.append(process)
        assert process.stderr is not None
        banner = "".join(process.stderr.readline() for _ in range(4))
        found = re.search(r"http://\S+", banner)
        assert found, banner
        _wait_until_up(found[0])
        return RunningServer(found[0], banner, process)

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=300)


def _wait_until_up(address: str) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{address}/api/health", timeout=300).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"no server at {address}")
