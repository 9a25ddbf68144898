"""Runs are grouped by experiment: lists and retention look at one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from themis.storage import ExperimentStorage


@pytest.fixture
def storage(tmp_path: Path) -> str:
    store = ExperimentStorage(tmp_path)
    for n in range(4):
        store.start_run(f"r{n}", experiment="prompts" if n % 2 else "models")
        store.complete_run(f"r{n}")
    store.close()
    return str(tmp_path)


def test_runs_of_one_experiment_are_listed(call, storage):
    listed = call("list", "runs", "--experiment", "prompts", "--verbose", "--storage", storage).out

    assert [line.split()[1] for line in listed.splitlines()[1:]] == ["r3", "r1"]
    assert "experiment=prompts" in listed
    assert "No runs found" in call("list", "runs", "--experiment", "none", "--storage", storage).out


def test_what_is_kept_of_one_experiment_says_nothing_of_the_others(call, storage):
    rules = ("--max-runs", "1", "--keep-latest", "1", "--dry-run", "--storage", storage)

    one = call("store", "prune", "--experiment", "prompts", *rules).out
    every = call("store", "prune", *rules).out

    assert one.splitlines() == ["would remove r1"]
    assert every.splitlines() == ["would remove r0", "would remove r1"]
