"""Real processes, really killed: the run goes on as if nothing had happened, and no answered message is sent again."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.memory.small_tests import rows_of, store_in
from themis.storage import ExperimentStorage, RunStatus

ROOT = Path(__file__).parents[2]
KILLS = 25


class CountingServer:
    """The example server, with a list of every message it was sent."""

    def __init__(self) -> None:
        location = ROOT / "examples" / "memory" / "http_agent_server.py"
        specification = importlib.util.spec_from_file_location("http_agent_server", location)
        assert specification is not None
        assert specification.loader is not None
        example = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(example)
        sent = self.sent = list[tuple[str, int]]()

        class Counting(example.Memory):
            def message(self, turn, text, presupplied):
                sent.append((self.session, turn))
                return super().message(turn, text, presupplied)

        class Sessions(dict[str, Any]):
            def setdefault(self, session, memory):
                if session not in self:
                    self[session] = Counting()
                    self[session].session = session
                return self[session]

        self.sessions = Sessions()
        handler = type("Handler", (example.Handler,), {"sessions": self.sessions})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[CountingServer]:
    counting = CountingServer()
    yield counting
    counting.close()


@pytest.fixture
def zygote() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.memory.zygote"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=300)
    assert process.stdout is not None
    process.stdout.close()


def start(
    zygote: subprocess.Popen[str], url: str, folder: Path, source: str = "given", *, dies_before_commit: int = 0
) -> int:
    assert zygote.stdin is not None
    zygote.stdin.write(f"{url} {folder} {source} {dies_before_commit}\n")
    zygote.stdin.flush()
    return int(heard(zygote))


def heard(zygote: subprocess.Popen[str]) -> str:
    assert zygote.stdout is not None
    return zygote.stdout.readline().strip()


def answered(storage: ExperimentStorage) -> set[int]:
    if not storage.exists() or not storage.run_exists("r"):
        return set()
    return {row[3]["turn"] for row in rows_of(storage) if row[1] == "reply"}


@pytest.mark.parametrize("source", ["given", "generating"])
def test_killed_at_random_moments_the_run_is_the_same_and_nothing_is_sent_twice(tmp_path, server, zygote, source):
    whole = tmp_path / "whole"
    start(zygote, server.url, whole, source)
    assert heard(zygote) == "ended 0"
    expected = rows_of(store_in(whole))
    scores = store_in(whole).get_run("r").summary["metrics"]
    memory = server.sessions["r"].messages

    chance, kills, runs = random.Random(7), 0, 0
    while kills < KILLS:
        folder = tmp_path / f"run-{runs}"
        runs += 1
        server.sessions.clear()
        finished = False
        while not finished:
            done = answered(store_in(folder))
            before = len(server.sent)
            child = start(zygote, server.url, folder, source)
            if kills < KILLS:
                time.sleep(chance.uniform(0.0, 0.3))
                try:
                    os.kill(child, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            ended = heard(zygote)
            kills += ended == "ended -9"
            finished = ended == "ended 0"
            assert finished or ended == "ended -9"
            again = {turn for _, turn in server.sent[before:]} & done
            assert not again, f"answered turns {again} were sent again"
        storage = store_in(folder)
        assert rows_of(storage) == expected
        assert storage.get_run("r").status is RunStatus.COMPLETED
        assert storage.get_run("r").summary["metrics"] == scores
        assert server.sessions["r"].messages == memory
        storage.close()

    assert kills >= KILLS


def test_killed_before_any_commit_of_its_beginning_a_generating_run_goes_on(tmp_path, zygote):
    whole = tmp_path / "whole"
    start(zygote, "oracle", whole, "generating")
    assert heard(zygote) == "ended 0"
    expected = rows_of(store_in(whole))

    left_behind: list[dict[str, str]] = []
    has_begun, commit = False, 0
    while not has_begun:
        commit += 1
        folder = tmp_path / str(commit)
        start(zygote, "oracle", folder, "generating", dies_before_commit=commit)
        assert heard(zygote) == "ended -9"
        has_begun = bool(answered(store_in(folder)))
        left_behind.append(what_is_stored(store_in(folder)))

        start(zygote, "oracle", folder, "generating")

        assert heard(zygote) == "ended 0", f"killed before commit {commit}"
        storage = store_in(folder)
        assert rows_of(storage) == expected
        assert storage.get_run("r").status is RunStatus.COMPLETED
        assert [one.version for one in storage.list_definitions()] == [1]
        storage.close()

    assert left_behind[0] == {}
    assert {"definitions": "stored"} in left_behind
    assert left_behind[-1] == {"definitions": "stored", "memory": "in_progress"}


def what_is_stored(storage: ExperimentStorage) -> dict[str, str]:
    found = {run.kind: run.status.value for run in storage.list_runs()}
    found |= {"definitions": "stored"} if storage.list_definitions() else {}
    storage.close()
    return found


@pytest.mark.parametrize("source", ["given", "generating"])
def test_a_server_that_lost_its_memory_is_told_everything_again(tmp_path, server, zygote, source):
    whole, folder = tmp_path / "whole", tmp_path / "cut"
    start(zygote, server.url, whole, source)
    assert heard(zygote) == "ended 0"
    expected, memory = rows_of(store_in(whole)), server.sessions["r"].messages
    server.sessions.clear()
    child = start(zygote, server.url, folder, source)
    while len(answered(store_in(folder))) < 3:
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    assert heard(zygote) == "ended -9"

    server.sessions.clear()
    start(zygote, server.url, folder, source)

    assert heard(zygote) == "ended 0"
    assert rows_of(store_in(folder)) == expected
    assert server.sessions["r"].messages == memory
