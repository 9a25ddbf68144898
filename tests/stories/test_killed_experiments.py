"""An experiment of four runs, killed and stopped as real processes are: nothing paid for is lost, the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.endpoint import Endpoint, misbehaving_endpoint
from tests.waiting import wait_until
from themis.storage import ExperimentStorage, RunStatus

ROWS = 60
PROMPTS = ("p", "q", "r", "s")
WORKERS = 2


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with misbehaving_endpoint() as running:
        yield running


class Experiment:
    """Four prompts, a run each, asked of a model of the endpoint by a process of its own."""

    def __init__(self, folder: Path, endpoint: Endpoint, model: str, more: str = "") -> None:
        self.folder, self.endpoint = folder, endpoint
        rows = [{"id": str(n), "word": str(n), "answer": f"{n}"} for n in range(ROWS)]
        (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        # The endpoint says what stands behind "say "; which run asks is told by how the word is written.
        prompts = "\n".join(f'  {name}: "say {"{word}" + " " * (place + 1)}"' for place, name in enumerate(PROMPTS))
        (folder / "story.yml").write_text(
            f"""
name: story
datasets: [rows.jsonl]
prompts:
{prompts}
model: openai/{model}
provider_options: {{base_url: "{endpoint.url}", api_key: "${{STORY_KEY}}"}}
workers: {WORKERS}
baseline: p
{more}
""",
            encoding="utf-8",
        )

    def start(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "themis", "run", str(self.folder / "story.yml"), "--json", *options]
        return subprocess.Popen(
            [*words, "--storage", str(self.folder / "store")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder.parent,
            env={**os.environ, "STORY_KEY": "key-of-this-story", **environment},
        )

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, dict]:
        out, err = process.communicate(timeout=300)
        assert out, err
        return process.returncode, json.loads(out)

    @property
    def store(self) -> ExperimentStorage:
        return ExperimentStorage(self.folder / "store")

    def stored(self) -> Counter[str]:
        """How often each question has a stored answer."""
        store, found = self.store, Counter()
        for place, name in enumerate(PROMPTS):
            run_id = f"story--{name}--rows"
            if store.run_exists(run_id) and store.reader(run_id).has_dataset:
                answered = (key for key, one in store.load_cached_records(run_id).items() if one.error is None)
                found.update(f"say {key}{' ' * (place + 1)}" for key in answered)
        store.close()
        return found

    def calls(self) -> int:
        with self.endpoint.lock:
            return sum(self.endpoint.calls.values())


def test_killed_twice_an_experiment_goes_on_and_asks_no_answered_question_again(endpoint, tmp_path):
    experiment = Experiment(tmp_path, endpoint, "takes-its-time")
    for kill in (1, 2):
        process = experiment.start()
        wait_until(lambda kill=kill, process=process: experiment.calls() >= kill * ROWS or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        answered, asked = experiment.stored(), Counter(endpoint.calls)
        assert process.returncode == -signal.SIGKILL
        assert answered  # in the middle of all four

    code, report = experiment.finish(experiment.start())

    assert code == report["exit_code"] == 0
    assert all(endpoint.calls[question] == asked[question] for question in answered)
    # What lay in flight when it was killed, and nothing else, was asked more than once.
    assert experiment.calls() - len(PROMPTS) * ROWS <= 2 * len(PROMPTS) * WORKERS
    assert [(run["status"], run["items"], run["metrics"]["ExactMatch"]["mean"]) for run in report["runs"]] == [
        ("completed", ROWS, 1.0)
    ] * 4
    assert [(one["run_a"], one["run_b"], one["delta"], one["n"]) for one in report["comparisons"]] == [
        (f"story--{name}--rows", "story--p--rows", 0.0, ROWS) for name in PROMPTS[1:]
    ]
    assert set(experiment.stored().values()) == {1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_every_run_finish_and_save_its_calls(endpoint, tmp_path, number):
    experiment = Experiment(tmp_path, endpoint, "waits-at-the-gate")
    process = experiment.start()
    wait_until(lambda: experiment.calls() == len(PROMPTS) * WORKERS)
    process.send_signal(number)
    wait_until(lambda: "stopping" in (process.stderr.readline() if process.stderr else ""))
    endpoint.gate.set()

    code, report = experiment.finish(process)

    assert code == report["exit_code"] == 130
    assert experiment.stored() == endpoint.calls  # every call that was begun is saved
    assert {run["status"] for run in report["runs"]} == {"interrupted"}
    code, report = experiment.finish(experiment.start())
    assert (code, experiment.calls()) == (0, len(PROMPTS) * ROWS)  # not one call twice


def test_a_second_signal_does_not_wait_for_the_calls_under_way(endpoint, tmp_path):
    experiment = Experiment(tmp_path, endpoint, "waits-at-the-gate")
    process = experiment.start()
    wait_until(lambda: experiment.calls() == len(PROMPTS) * WORKERS)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "stopping" in (process.stderr.readline() if process.stderr else ""))
    time.sleep(0.3)  # two signals within a fifth of a second are one key press
    process.send_signal(signal.SIGINT)
    code, report = experiment.finish(process)

    assert code == report["exit_code"] == 130
    assert experiment.stored() == Counter()
    statuses = {experiment.store.get_run(f"story--{name}--rows").status for name in PROMPTS}
    assert statuses == {RunStatus.INTERRUPTED}
    endpoint.gate.set()
    assert experiment.finish(experiment.start())[0] == 0


def test_one_budget_holds_for_all_runs_and_all_sessions(endpoint, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"version": "story", "models": {"good": [0.0, 1_000.0]}}))
    # An answer costs two tokens, $0.002, and is set aside with at most eight, $0.008.
    experiment = Experiment(tmp_path, endpoint, "good", "budget_usd: 0.2\nmax_tokens: 8")

    code, first = experiment.finish(experiment.start(THEMIS_PRICES=str(prices)))
    spent = first["spent_usd"]
    again, second = experiment.finish(experiment.start(THEMIS_PRICES=str(prices)))

    assert code == again == 130
    assert 0.19 <= spent <= 0.2
    assert spent == pytest.approx(0.002 * experiment.calls()) == pytest.approx(second["spent_usd"])
    assert any("for all runs of the experiment together" in problem for problem in first["problems"])
    code, whole = experiment.finish(experiment.start("--budget-usd", "1", THEMIS_PRICES=str(prices)))
    assert (code, experiment.calls()) == (0, len(PROMPTS) * ROWS)
    assert whole["spent_usd"] == pytest.approx(0.002 * len(PROMPTS) * ROWS)
