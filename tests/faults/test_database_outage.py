"""A PostgreSQL server that restarts, crashes or drops connections while runs are written: waited out, told, nothing twice."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import throwaway_postgres

from tests.faults.conftest import CommandLine, Fault
from tests.storage.stored_runs import FRAME, answered, call, item, rows
from tests.stories.endpoint import Endpoint
from themis.exceptions import StorageError
from themis.storage import ExperimentStorage, RunStatus

pytestmark = pytest.mark.postgres
PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[throwaway_postgres.Restartable]:
    """A server of these tests' own, since they stop it."""
    programs = throwaway_postgres.find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL of our own here: a server that is given by URL cannot be stopped")
    started = throwaway_postgres.Restartable(programs)
    yield started
    started.close()


@pytest.fixture
def database(server: throwaway_postgres.Restartable, request: pytest.FixtureRequest) -> str:
    """The URL of an empty schema."""
    import psycopg

    name = f"test_{abs(hash(request.node.name))}"
    with psycopg.connect(server.url) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.url}?options=-csearch_path%3D{name}"


def wait_until(true: object, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def start(words: list[str], cwd: Path, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "themis", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "NO_COLOR": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_sample_run(tmp_path: Path, endpoint: Endpoint, database: str, **variables: str) -> subprocess.Popen[str]:
    """A run of 400 questions; the endpoint forgets what it was asked before."""
    endpoint.calls.clear()
    data = tmp_path / "rows.jsonl"
    data.write_text(
        "".join(json.dumps({"id": str(n), "question": f"say {n}", "answer": str(n)}) + "\n" for n in range(400))
    )
    words = ["eval", str(data), "-m", "openai/good", "--prompt", "{question}", "--metric", "exact_match", "-j", "4"]
    return start(
        [*words, "--run-id", "run", "--storage", database],
        tmp_path,
        **{"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "sk-none", **variables},
    )


@pytest.mark.fault(
    area="Storage",
    wrong="The PostgreSQL server restarts, or crashes and comes back, while a run is written",
    does="Waits for it (at most 5 minutes), says so, and goes on; no answered call is made again",
    status="completed",
    exit_code=0,
)
def test_a_sample_run_waits_out_a_server_that_crashes(tmp_path, server, database, endpoint, fault: Fault):
    process = start_sample_run(tmp_path, endpoint, database)
    wait_until(lambda: len(endpoint.calls) > 40)
    server.stop("immediate")
    time.sleep(0.3)
    server.start()
    _, said = process.communicate(timeout=300)

    assert process.returncode == fault.exit_code, said
    assert "waiting for the database postgresql://" in said
    assert "is back after" in said
    assert (len(endpoint.calls), sum(endpoint.calls.values())) == (400, 400)
    run = ExperimentStorage(database).get_run("run")
    assert (run.status.value, run.successful_generations, run.calls) == (fault.status, 400, 400)


@pytest.mark.fault(
    area="Storage",
    wrong="The PostgreSQL server goes away and stays away longer than a run waits",
    does="Ends with one sentence; everything committed is safe and the same command goes on when the server is back",
    status="in_progress",
    exit_code=3,
)
def test_a_server_that_stays_away_ends_the_run(tmp_path, server, database, endpoint, fault: Fault):
    process = start_sample_run(tmp_path, endpoint, database, THEMIS_DATABASE_WAIT_SECONDS="0.5")
    wait_until(lambda: len(endpoint.calls) > 40)
    server.stop("fast")
    try:
        _, said = process.communicate(timeout=300)
    finally:
        server.start()

    assert process.returncode == fault.exit_code, said
    assert "has been away for" in said
    assert "Run the same command again when it is back: it goes on where it stopped" in said
    storage = ExperimentStorage(database)
    assert storage.get_run("run").status.value == fault.status
    assert 0 < sum(storage.reader("run").count_records()) < 400


AGENT = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "message":
        with open(sys.argv[1], "a") as file:
            print(asked["turn"], file=file)
        time.sleep(0.02)
    print(json.dumps({"reply": "Noted."}), flush=True)
"""
CONFIGURATION = """
config: {run_name: outage}
datasets:
  args: {memory_span: 1000, dataset_examples: 2}
  datasets: [{name: names}, {name: colours}]
"""


def test_a_memory_run_waits_out_a_restart(tmp_path, server, database):
    (tmp_path / "c.yml").write_text(CONFIGURATION)
    (tmp_path / "agent.py").write_text(AGENT)
    asked = tmp_path / "asked"
    agent = f"command:{sys.executable} {tmp_path / 'agent.py'} {asked}"
    words = ["memory", "run", "-c", "c.yml", "-a", agent, "-l", "-y", "--run-id", "r", "--storage", database]
    process = start(words, tmp_path)
    wait_until(lambda: asked.exists() and asked.read_text().count("\n") >= 3)
    server.stop("fast")
    time.sleep(0.3)
    server.start()
    _, said = process.communicate(timeout=300)

    assert process.returncode == 0, said
    assert "waiting for the database postgresql://" in said
    turns = asked.read_text().split()
    assert len(turns) == len(set(turns)), "a message was sent again"
    assert ExperimentStorage(database).get_run("r").status is RunStatus.COMPLETED


# --- exactly once -----------------------------------------------------------------------------------------------------


class Wire:
    """Stands between a program and the server, and cuts every connection at the next COMMIT that goes over it, if told to."""

    def __init__(self, url: str) -> None:
        target = urlsplit(url)
        self._server = (target.hostname, target.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{target.port}/", f":{self._listener.getsockname()[1]}/")
        # "before" the server has it, or "after" it was made and before anyone hears of it.
        self.cut: str | None = None
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            doomed = threading.Event()
            threading.Thread(target=self._upwards, args=(client, server, doomed), daemon=True).start()
            threading.Thread(target=self._downwards, args=(client, server, doomed), daemon=True).start()

    def _upwards(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        while data := _receive(client):
            if b"COMMIT" in data and self.cut is not None:
                when, self.cut = self.cut, None
                self.cuts += 1
                if when == "before":
                    break
                doomed.set()
            server.sendall(data)
        _end(client, server)

    def _downwards(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        while data := _receive(server):
            if doomed.is_set():
                break
            client.sendall(data)
        _end(client, server)

    def close(self) -> None:
        self._listener.close()


def _receive(source: socket.socket) -> bytes:
    try:
        return source.recv(65_536)
    except OSError:
        return b""


def _end(*ends: socket.socket) -> None:
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


@contextmanager
def writing(database: str, wire: Wire | None = None) -> Iterator[tuple[ExperimentStorage, object]]:
    storage = ExperimentStorage(database if wire is None else wire.url)
    storage.start_run("run", config={"task": FRAME.to_config()})
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(rows(50)))
        yield storage, writer
    storage.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_cut_off_at_its_end_is_made_exactly_once(database, when):
    wire = Wire(database)
    with writing(database, wire) as (storage, writer):
        for n in range(5):
            wire.cut = when
            writer.commit_results([call(n, answered(rows(n + 1)[n]), prompt_tokens=7)])
            assert storage.get_run("run").prompt_tokens == 7 * (n + 1)
        wire.cut = when
        evaluation = writer.open_evaluation("e" * 32, {})
        assert storage.reader("run").evaluation == evaluation
    wire.close()

    assert wire.cuts == 6
    storage = ExperimentStorage(database)
    assert (storage.get_run("run").calls, storage.reader("run").count_records()) == (5, (5, 0))
    assert storage.get_run("run").writer is None


def test_connections_dropped_again_and_again_lose_and_double_nothing(database, server):
    import psycopg

    done, committed, chance = threading.Event(), threading.Semaphore(0), random.Random(1)

    def drop() -> None:
        """Drops all connections once after every commit, somewhere in the next."""
        with psycopg.connect(server.url, autocommit=True) as connection:
            while committed.acquire() and not done.wait(chance.uniform(0, 0.01)):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND backend_type = 'client backend'"
                )

    dropper = threading.Thread(target=drop)
    with writing(database) as (storage, writer):
        dropper.start()
        try:
            for n in range(25):
                writer.commit_results([call(n, answered(rows(n + 1)[n]), prompt_tokens=1)])
                committed.release()
                assert sum(storage.reader("run").count_records()) == n + 1
        finally:
            done.set()
            committed.release()
            dropper.join()

    run = ExperimentStorage(database).get_run("run")
    assert (run.calls, run.prompt_tokens) == (25, 25)


def test_a_run_that_another_took_during_the_outage_is_not_written_to(database):
    import psycopg

    with writing(database) as (_, writer), psycopg.connect(database) as other:
        other.execute("UPDATE runs SET lease_holder = 'elsewhere:1:2:abcd:0'")
        other.commit()
        with pytest.raises(StorageError, match="taken over by another process, or deleted; this one stops writing"):
            writer.commit_results([call(0, answered(rows(1)[0]))])
    assert ExperimentStorage(database).reader("run").count_records() == (0, 0)


def test_whoever_only_looks_is_told_at_once(database, server):
    storage = ExperimentStorage(database)
    storage.start_run("run")
    server.stop("fast")
    try:
        began = time.monotonic()
        with pytest.raises(StorageError, match="themis doctor"):
            storage.list_runs()
        assert time.monotonic() - began < 30
    finally:
        server.start()


def test_a_wait_that_is_no_number_is_refused(themis: CommandLine, database):
    said = themis("list", "runs", "--storage", database, THEMIS_DATABASE_WAIT_SECONDS="long")

    assert said.returncode == 2
    assert "THEMIS_DATABASE_WAIT_SECONDS is a number of seconds, got 'long'" in said.stderr
