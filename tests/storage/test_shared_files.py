"""Several stores on one file, in one process and in others."""

from __future__ import annotations

import subprocess
import sys

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
