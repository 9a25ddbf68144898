"""Stores with runs in them, and servers: one in this process for most tests, a real one for browsers and streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import themis
from tests.running_server import RunningServer, StartServer, servers
from themis.server import create_app

HERE = "http://127.0.0.1"


def questions(count: int) -> list[dict[str, str]]:
    return [{"id": f"q{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(count)]


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Servers that are started in this process keep their token where the developer's own is not."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


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


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Starts `themis serve` as its users do, on a free port."""
    with servers() as start:
        yield start


@pytest.fixture(scope="session")
def start_lasting_server() -> Iterator[StartServer]:
    """The same for servers that several tests only read from."""
    with servers() as start:
        yield start


@pytest.fixture(scope="session")
def reading_server(start_lasting_server: StartServer, two_runs: Path) -> RunningServer:
    """One server for all tests that only look at `two_runs`."""
    return start_lasting_server(two_runs)
