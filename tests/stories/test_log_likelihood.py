"""A log-likelihood benchmark on the embedded model is killed in its middle and taken up again: nothing is asked twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from themis.core.continuations import option_continuations
from themis.exceptions import StorageError
from themis.storage import ExperimentStorage

SHOTS = "".join(f"Question: What is {n} plus {n}?\nAnswer: {2 * n}\n\n" for n in range(2, 5))
QUESTIONS = [
    ("The capital of France is", ["Paris", "Rome"], "A"),
    ("Two plus two is", ["five", "four"], 1),
    ("The opposite of hot is", ["green", "cold"], "cold"),
    ("The sun rises in the", ["east", "kitchen"], 0),
    ("A week has", ["seven days", "no days"], 0),
    ("Bees make", ["honey", "glass"], "honey"),
]


def write_rows(path: Path) -> Path:
    rows = [
        {
            "id": f"q{number}",
            "question": SHOTS + question,
            **option_continuations(options, baseline=""),
            "answer": answer,
        }
        for number, (question, options, answer) in enumerate(QUESTIONS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def start(rows: Path, storage: Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "themis",
        "eval",
        str(rows),
        "--model",
        "local/smollm2",
        "--storage",
        str(storage),
    ]
    command += ["--run-id", "story", "--option", "context_tokens=1024", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish(rows: Path, storage: Path) -> Any:
    process = start(rows, storage)
    said, complaint = process.communicate(timeout=300)
    assert process.returncode == 0, complaint
    return json.loads(said)


def stored(storage: Path) -> dict[str, Any]:
    """What is committed of each row: the log-probabilities, and how long its call took."""
    try:
        records = list(ExperimentStorage(storage).reader("story").records())
    except StorageError:
        return {}
    return {
        record.task.metadata["dataset_id"]: (record.output.raw, record.metrics["generation_time_ms"])
        for _, record in records
    }


@pytest.mark.model
def test_a_killed_run_of_log_probabilities_goes_on_where_it_was_and_ends_as_if_nothing_had_happened(tmp_path):
    rows = write_rows(tmp_path / "options.jsonl")
    killed = start(rows, tmp_path / "killed")
    deadline = time.monotonic() + 120
    while not len(before := stored(tmp_path / "killed")) >= 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    before = stored(tmp_path / "killed")

    resumed = finish(rows, tmp_path / "killed")
    whole = finish(rows, tmp_path / "whole")

    assert 2 <= len(before) < len(QUESTIONS)
    after, uninterrupted = stored(tmp_path / "killed"), stored(tmp_path / "whole")
    # A row that was asked again would have taken another time.
    assert {item: after[item] for item in before} == before
    assert {item: raw for item, (raw, _) in after.items()} == {item: raw for item, (raw, _) in uninterrupted.items()}
    assert len(after) == len(QUESTIONS)
    assert resumed["metrics"] == whole["metrics"]
    assert set(resumed["metrics"]) == {"acc", "acc_norm", "acc_mutual_info"}
    # The questions are ones that even so small a model knows.
    assert resumed["metrics"]["acc"]["mean"] > 0.5
