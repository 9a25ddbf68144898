"""Nothing paid for is lost, whatever kills the process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from themis.storage import ExperimentStorage, RunStatus

PROGRAM = Path(__file__).with_name("killed_run.py")
ROWS = 2_000
KILLS = 30


def _start(root: Path, log: str = "calls.log", held_by: Path | None = None) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(PROGRAM), str(root / "store"), str(ROWS)]
    environment = {**os.environ, "CALLS_LOG": str(root / log), "HELD_BY": str(held_by or "")}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def _stored(root: Path) -> set[str]:
    storage = ExperimentStorage(root / "store")
    if not storage.exists() or not storage.run_exists("story"):
        return set()
    found = set(storage.load_cached_records("story"))
    storage.close()
    return found


def _calls(root: Path) -> list[str]:
    log = root / "calls.log"
    return log.read_text().split() if log.exists() else []


def test_after_thirty_kills_the_numbers_are_those_of_a_whole_run_and_no_stored_answer_was_asked_for_again(tmp_path):
    chance = random.Random(20260131)
    kills = 0
    while True:
        stored_before, called_before = _stored(tmp_path), len(_calls(tmp_path))
        process = _start(tmp_path)
        if kills < KILLS:
            # Mostly let it get going, then kill it in the middle of whatever it does; else while it starts and plans.
            deadline = time.monotonic() + (chance.random() * 1.5 if kills % 3 == 0 else 30)
            while len(_calls(tmp_path)) == called_before and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(chance.random() * 0.06)
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0
        called_again = set(_calls(tmp_path)[called_before:]) & stored_before
        assert not called_again
        if process.returncode == 0:
            break
    assert kills == KILLS
    mean, count, failed = output.split()
    right = sum(n % 3 != 0 for n in range(ROWS))
    assert (float(mean), int(count), int(failed)) == (right / ROWS, ROWS, 0)
    storage = ExperimentStorage(tmp_path / "store")
    assert storage.get_run("story").status is RunStatus.COMPLETED
    assert storage.validate_integrity("story") == {"run_id": "story", "valid": True, "errors": [], "warnings": []}
    evaluations = storage.load_cached_evaluations("story")
    assert {key: record.scores[0].value for key, record in evaluations.items()} == {
        str(n): float(n % 3 != 0) for n in range(ROWS)
    }


def test_a_second_process_on_the_same_run_is_refused_and_the_first_goes_on(tmp_path):
    held = tmp_path / "held"
    held.touch()
    first = _start(tmp_path, held_by=held)
    while not _calls(tmp_path):
        time.sleep(0.01)
    second = _start(tmp_path, log="other.log")
    _, said = second.communicate(timeout=300)
    held.unlink()
    output, _ = first.communicate(timeout=300)
    assert second.returncode != 0
    assert f"being written by process {first.pid} on" in said
    assert not (tmp_path / "other.log").exists() or not (tmp_path / "other.log").read_text()
    assert first.returncode == 0
    assert int(output.split()[1]) == ROWS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_a_friendly_kill_save_what_is_under_way_and_the_run_can_be_resumed(tmp_path, number):
    held = tmp_path / "held"
    held.touch()
    process = _start(tmp_path, held_by=held)
    while not _calls(tmp_path):
        time.sleep(0.01)
    process.send_signal(number)
    held.unlink()
    process.wait(timeout=300)
    stored = _stored(tmp_path)
    assert set(_calls(tmp_path)) == stored  # every call that was started is saved
    storage = ExperimentStorage(tmp_path / "store")
    assert storage.get_run("story").status is RunStatus.INTERRUPTED
    storage.close()
    again = _start(tmp_path)
    output, _ = again.communicate(timeout=300)
    assert int(output.split()[1]) == ROWS
    assert len(_calls(tmp_path)) == ROWS  # not one call twice
