"""The command itself, as a process: Ctrl-C, exit codes, a damaged store, another database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.memory.small_tests import Diary, benchmark, rows_of, store_in
from themis.exceptions import StorageError
from themis.memory.driver import run
from themis.storage import ExperimentStorage

ROOT = Path(__file__).parents[2]

# An agent that notes every turn it is asked, and takes its time.
SLOW = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "message":
        with open(sys.argv[1], "a") as file:
            print(asked["turn"], file=file)
        time.sleep(0.05)
    print(json.dumps({"reply": "Noted."}), flush=True)
"""
CONFIGURATION = """
config: {run_name: interrupted}
datasets:
  args: {memory_span: 400, dataset_examples: 2}
  datasets: [{name: names}, {name: colours}]
"""


def command(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "c.yml").write_text(CONFIGURATION)
    (tmp_path / "slow.py").write_text(SLOW)
    agent = f"command:{sys.executable} {tmp_path / 'slow.py'} {tmp_path / 'asked'}"
    door = [sys.executable, str(ROOT / "run_benchmark.py"), "-c", str(tmp_path / "c.yml"), "-a", agent, "-l"]
    return [*door, "--run-id", "r", "--storage", str(tmp_path / "store"), *more]


def test_ctrl_c_finishes_the_exchange_and_the_same_command_goes_on(tmp_path):
    process = subprocess.Popen(
        command(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    asked = tmp_path / "asked"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and (not asked.exists() or asked.read_text().count("\n") < 3):
        time.sleep(0.01)
    # As a terminal does: to the whole group. The agent's program must live until its reply is read.
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)

    assert process.returncode == 130
    assert "everything finished is saved" in said
    first = asked.read_text().split()
    replies = [row[3]["turn"] for row in rows_of(store_in(tmp_path)) if row[1] == "reply"]
    assert [str(turn) for turn in replies] == first

    done = subprocess.run(command(tmp_path), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    turns = asked.read_text().split()
    assert len(turns) == len(set(turns)), "an answered message was sent again"
    assert turns[: len(first)] == first


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-a", "orakle"), 2, "did you mean 'oracle'"),
        (("-c", "nowhere.yml"), 2, "there is no configuration"),
        (("--clock", "sundial"), 2, "jump"),
        (("-a", "http://127.0.0.1:9", "--option", "attempts=1"), 3, "did not answer"),
    ],
)
def test_what_goes_wrong_has_its_exit_code_and_a_line(tmp_path, arguments, code, message):
    done = subprocess.run(command(tmp_path, *arguments), capture_output=True, text=True, check=False, timeout=300)

    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_torn_database_is_said_to_be_one_and_left_as_it_is(tmp_path):
    storage = store_in(tmp_path)
    run(benchmark({"cities": 1}), storage)
    storage.close()
    file = tmp_path / "store" / "themis.db"
    with file.open("r+b") as handle:
        handle.seek(4096)
        handle.write(os.urandom(os.path.getsize(file) - 4096))
    before = file.read_bytes()

    with pytest.raises(StorageError, match="damaged"):
        run(benchmark({"cities": 1}), store_in(tmp_path))

    assert file.read_bytes() == before


def test_a_run_is_resumed_from_either_database(store_location, source):
    storage = ExperimentStorage(store_location)

    class Dying(Diary):
        def reply(self, message, *, turn, now, presupplied=None):
            if turn == 5:
                raise ConnectionError("gone")
            return super().reply(message, turn=turn, now=now, presupplied=presupplied)

    with pytest.raises(Exception, match="gone"):
        run(benchmark(agent_name="diary", make_agent=lambda session: Dying(), **source(storage)), storage)
    report = run(benchmark(agent_name="diary", make_agent=lambda session: Diary(), **source(storage)), storage)

    assert len(report.item_scores("memory")) == len(benchmark().tests)
    turns = [row[3]["turn"] for row in rows_of(storage) if row[1] == "reply"]
    assert turns == list(range(1, len(turns) + 1))
    storage.close()
