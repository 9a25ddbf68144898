"""A run that is killed in the middle of samples goes on in the middle of them: no stored step is made again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from themis.storage import ExperimentStorage

PROGRAM = Path(__file__).with_name("killed_loop.py")
ROWS, KILLS, WORKERS = 60, 12, 6


def start(root: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(PROGRAM), str(root / "store"), str(ROWS)]
    environment = {**os.environ, "CALLS_LOG": str(root / "calls.log")}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def read_calls(root: Path) -> list[str]:
    log = root / "calls.log"
    return log.read_text().split() if log.exists() else []


def read_stored(root: Path) -> set[str]:
    """The calls whose outcome is in the store, as the program writes them down."""
    storage = ExperimentStorage(root / "store")
    if not storage.exists() or not storage.run_exists("story"):
        return set()
    reader, found = storage.reader("story"), set()
    for position, attempt in reader.started():
        kinds: Counter[str] = Counter()
        for step in reader.steps(position, attempt):
            kind = "model" if step.kind == "answer" else "tool"
            found.add(f"{kind}:{position}:{kinds[kind]}")
            kinds[kind] += 1
    for _, record in reader.records():
        item, climbed = record.task.metadata["dataset_id"], int(record.task.prompt.context["stairs"])
        found |= {f"tool:{item}:{stair}" for stair in range(climbed)}
        found |= {f"model:{item}:{stair}" for stair in range(climbed + 1)}
    storage.close()
    return found


def test_no_stored_step_is_made_again_however_often_the_run_is_killed(tmp_path):
    chance = random.Random(20261118)
    for _ in range(KILLS):
        stored, called = read_stored(tmp_path), len(read_calls(tmp_path))
        process = start(tmp_path)
        deadline = time.monotonic() + 60
        while len(read_calls(tmp_path)) == called and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(chance.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not set(read_calls(tmp_path)[called:]) & stored
    process = start(tmp_path)
    output, errors = process.communicate(timeout=300)

    assert process.returncode == 0, errors
    mean, count, failed, prompt_tokens = output.split()
    assert (float(mean), int(count), int(failed)) == (1.0, ROWS, 0)
    again = [call for call, times in Counter(read_calls(tmp_path)).items() if times > 1]
    # Only what was under way when the process died: its outcome was never seen.
    assert len(again) <= KILLS * WORKERS
    answers = sum(4 + n % 5 for n in range(ROWS))
    assert int(prompt_tokens) == 10 * answers
