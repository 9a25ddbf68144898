"""Several stores in one place, in one process and in others."""

from __future__ import annotations

import gc
import subprocess
import sys
import time

import psycopg
import pytest

from themis.storage import ExperimentStorage

OTHER = """
import sys
from themis.storage import ExperimentStorage
storage = ExperimentStorage(sys.argv[1])
storage.start_run(sys.argv[2])
print([run.run_id for run in storage.list_runs()])
"""


def elsewhere(root, run_id):
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(root), run_id], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout


def test_opening_a_store_twice_keeps_it_safe_from_other_processes(tmp_path):
    # A process that closes a file by itself loses its locks on it; SQLite in another process would then drop the log.
    first = ExperimentStorage(tmp_path)
    first.start_run("one")
    second = ExperimentStorage(tmp_path)
    assert [run.run_id for run in second.list_runs()] == ["one"]

    elsewhere(tmp_path, "two")
    second.start_run("three")
    ExperimentStorage(tmp_path).start_run("four")

    wanted = {"one", "two", "three", "four"}
    assert {run.run_id for run in first.list_runs()} == wanted
    seen = elsewhere(tmp_path, "five")
    assert all(run_id in seen for run_id in wanted)


@pytest.mark.postgres
def test_a_forgotten_store_gives_its_connections_back(empty_postgres):
    def connections() -> int:
        with psycopg.connect(empty_postgres) as watching:
            counted = watching.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchone()
        return counted[0]

    store = ExperimentStorage(empty_postgres)
    assert store.list_runs() == []
    assert connections() == 1
    del store
    gc.collect()

    # The server takes a moment to see that the other end has gone.
    until = time.monotonic() + 60
    while connections() and time.monotonic() < until:
        time.sleep(0.01)
    assert connections() == 0
