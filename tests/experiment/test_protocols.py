"""What a run is asked with: its benchmark's protocol, a row's own sampling, and what older runs were started with."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import themis
from themis import api
from themis.core.entities import GenerationRecord, ModelOutput
from themis.exceptions import ConfigurationError
from themis.experiment.reproduce import reproduction
from themis.generation.providers import PROVIDERS
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage

ROWS = [{"id": str(n), "question": f"{n}+1", "answer": str(n + 1)} for n in range(4)]


@pytest.fixture
def echo(monkeypatch):
    """A provider that remembers the tasks it was given; its answer is the prompt."""
    tasks = []

    class Echo(StatelessTaskExecutor):
        prompt_only = True

        def execute(self, task):
            tasks.append(task)
            return GenerationRecord(task, ModelOutput(task.prompt.text), error=None)

    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    themis.register_provider("echo", Echo)
    return tasks


def ask(rows, tmp_path, **changes):
    settings = {"model": "echo/it", "prompt": "{question}", "storage": tmp_path, "progress": False, "workers": 1}
    return themis.evaluate(rows, **{**settings, **changes})


# --- a row's own sampling -----------------------------------------------------------------------------------------------


def test_a_row_s_sampling_takes_the_place_of_the_run_s(echo, tmp_path):
    own = {"sampling": {"max_tokens": 64, "stop": ["\n"], "temperature": 0.5}}

    ask([ROWS[0], {**ROWS[1], **own}], tmp_path, max_tokens=32, run_id="run")

    plain, changed = (task.sampling for task in echo)
    assert (plain.temperature, plain.top_p, plain.max_tokens, plain.stop) == (0.0, None, 32, ())
    assert (changed.temperature, changed.top_p, changed.max_tokens, changed.stop) == (0.5, None, 64, ("\n",))
    _, stored = ExperimentStorage(tmp_path).reader("run").record("1")
    assert stored.task.sampling == changed


def test_an_answer_is_shared_only_with_a_row_of_the_same_sampling(echo, tmp_path):
    for run_id, most in (("a", 64), ("b", 64), ("c", 65)):
        ask([{**ROWS[0], "sampling": {"max_tokens": most}}], tmp_path, run_id=run_id, cache="store")

    assert [task.sampling.max_tokens for task in echo] == [64, 65]


@pytest.mark.parametrize(
    "given", ["stratified", {"size": 3}, {"max_tokens": 0}, {"stop": [""]}, {"temperature": "hot"}]
)
def test_a_field_that_is_no_sampling_is_refused_before_the_first_call(echo, tmp_path, given):
    with pytest.raises(ConfigurationError, match=r"row 0: the field 'sampling' .* if it is data, rename the field"):
        ask([{**ROWS[0], "sampling": given}], tmp_path)

    assert echo == []


# --- runs that were started before benchmarks had protocols -----------------------------------------------------------------


@pytest.fixture
def older(tmp_path):
    """Four runs, each with answers to its first two rows only."""
    (tmp_path / "store").mkdir()
    with sqlite3.connect(tmp_path / "store" / "themis.db") as database:
        database.executescript(Path(__file__).with_name("older_store.sql").read_text(encoding="utf-8"))
    return ExperimentStorage(tmp_path / "store")


@pytest.mark.parametrize("run_id", ["own", "warm", "labelled", "benchmark"])
def test_an_older_run_is_resumed_as_it_was_started(older, run_id):
    before = older.reader(run_id).frame

    report = api.resume(run_id, storage=older, progress=False)

    assert (report.metadata["status"], report.evaluation_report.metrics.popitem()[1].mean) == ("completed", 1.0)
    assert {record.task.sampling.top_p for record in report.generation_results} == {0.95}
    assert older.reader(run_id).frame == before


@pytest.mark.parametrize(
    ("run_id", "given"), [("own", {}), ("warm", {"temperature": 0.7, "max_tokens": 64, "num_samples": 2})]
)
def test_the_call_that_started_an_older_run_goes_on_with_it(older, run_id, given):
    report = themis.evaluate(
        ROWS, model="fake/perfect", prompt="{question}", run_id=run_id, storage=older, progress=False, **given
    )

    assert (report.metadata["status"], len(report.generation_results)) == ("completed", 4)
    assert older.archived_versions(run_id) == []


def test_an_older_run_is_made_again_with_what_it_was_sampled_with(older):
    assert " ".join(reproduction(older, "own").command).endswith(
        "--temperature 0 --top-p 0.95 --max-tokens 512 --num-samples 1 --run-id own-again"
    )
