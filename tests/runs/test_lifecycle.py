"""Every promise of a run's life, over both kinds: a behaviour that only one kind has would show here as a gap."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from themis.api import perform, resume
from themis.cli import themis as command_line
from themis.config.specification import MemorySpecification, SampleSpecification, Specification, load_specification
from themis.core.entities import EvaluationRecord, ExperimentReport, GenerationRecord, GenerationTask, ModelOutput
from themis.exceptions import (
    ConfigurationError,
    EvaluationError,
    RunBusyError,
    RunFailedError,
    RunInterrupted,
    ThemisError,
)
from themis.experiment.reproduce import reproduction
from themis.generation.providers import register_provider
from themis.interfaces import StatelessTaskExecutor
from themis.memory import (
    Agent,
    DatasetInterface,
    Grade,
    Reply,
    TestExample,
    register_agent,
    register_memory_test,
)
from themis.runs.observers import Observer, RunStart
from themis.runs.progress import ProgressBar
from themis.storage import ExperimentStorage, RetentionPolicy, RunStatus

CONFIGURATION = """
config: {run_name: small}
datasets:
  args: {memory_span: 400, dataset_examples: 2}
  datasets: [{name: names}, {name: colours}]
"""
COST_USD = 0.01


@dataclass
class Subject:
    """Whoever is asked in these tests, as a model or as an agent: remembers what it was asked, and does as it is told."""

    asked: list[str] = field(default_factory=list)
    fails_from: int = 10**9
    answer: str = "Noted."
    # Called with the number of each question before it is answered.
    before: Callable[[int], None] = lambda number: None

    def reply(self, message: str) -> str:
        self.asked.append(message)
        self.before(len(self.asked))
        if len(self.asked) >= self.fails_from:
            raise ConnectionError("the line is dead")
        return self.answer


@pytest.fixture
def subject() -> Subject:
    found = Subject()

    class Model(StatelessTaskExecutor):
        is_local = False

        def __init__(self, **_: Any) -> None:
            pass

        def execute(self, task: GenerationTask) -> GenerationRecord:
            text = found.reply(task.prompt.text)
            # A million answer tokens of gpt-4o-mini cost 0.6 dollars.
            usage = {"prompt_tokens": 0, "completion_tokens": round(COST_USD / 0.6e-6)}
            return GenerationRecord(task, ModelOutput(text, None, usage), None)

    class Someone(Agent):
        def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply | str:
            if presupplied is not None:
                return Reply(presupplied)
            return Reply(found.reply(message), cost_usd=COST_USD, calls=1)

        def reset(self) -> None:
            pass

        def most_cost_usd(self, message: str) -> float | None:
            return COST_USD

    register_provider("asked", Model)
    register_agent("asked", Someone)
    return found


@dataclass
class Kind:
    """A run of one kind over a few items, in a folder of its own."""

    name: str
    asked: Specification
    store: ExperimentStorage
    # Items, and how they are called.
    items: int

    def run(self, *, observers: tuple[Observer, ...] = (), **changes: Any) -> ExperimentReport:
        return perform(replace(self.asked, **changes), self.store, progress=False, observers=observers)

    @property
    def stored(self) -> Any:
        return self.store.get_run("r")

    def change_input(self) -> dict[str, Any]:
        """Something that decides answers."""
        return {"temperature": 0.7} if self.name == "samples" else {"isolated": True}

    def answered_alone(self) -> dict[str, Any]:
        """One call at a time."""
        return {"workers": 1} if self.name == "samples" else {}


@pytest.fixture(params=["samples", "memory"])
def kind(request: pytest.FixtureRequest, tmp_path: Path, subject: Subject, monkeypatch: pytest.MonkeyPatch) -> Kind:
    monkeypatch.chdir(tmp_path)
    store = ExperimentStorage(tmp_path / "store")
    if request.param == "samples":
        rows = [{"id": str(n), "question": f"question {n}", "answer": "Noted."} for n in range(6)]
        Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        asked: Specification = SampleSpecification(
            dataset="rows.jsonl",
            model="asked/gpt-4o-mini",
            prompt="{question}",
            run_id="r",
            max_retries=1,
            max_tokens=16_700,
        )
        return Kind("samples", asked, store, items=6)
    Path("small.yml").write_text(CONFIGURATION, encoding="utf-8")
    return Kind("memory", MemorySpecification(configuration="small.yml", agent="asked", run_id="r"), store, items=4)


# --- start and resume -------------------------------------------------------------------------------------------------


def test_a_run_ends_completed_with_a_report_of_all_its_items(kind, subject):
    report = kind.run()

    assert (report.run_id, report.status, kind.stored.status) == ("r", "completed", RunStatus.COMPLETED)
    assert report.metadata["total_samples"] == report.metadata["successful_generations"] == kind.items
    assert kind.stored.calls == len(subject.asked) > 0
    assert kind.stored.summary["metrics"].keys() == report.evaluation_report.metrics.keys()


def test_the_same_again_asks_nothing_and_reports_the_same(kind, subject):
    first = kind.run()
    asked, scores = len(subject.asked), {name: m.mean for name, m in first.evaluation_report.metrics.items()}

    second = kind.run()

    assert len(subject.asked) == asked
    assert {name: m.mean for name, m in second.evaluation_report.metrics.items()} == scores
    assert kind.stored.cost_usd == pytest.approx(asked * COST_USD, rel=1e-3)


def test_other_inputs_are_refused_before_the_first_call_with_the_ways_on(kind, subject):
    kind.run()
    asked = len(subject.asked)

    with pytest.raises(ConfigurationError) as refused:
        kind.run(**kind.change_input())

    assert len(subject.asked) == asked
    for words in ("exists with other inputs", "another run_id", "--no-resume"):
        assert words in str(refused.value)


def test_without_resume_the_earlier_run_is_archived_and_all_is_asked_again(kind, subject):
    kind.run()
    asked = len(subject.asked)

    kind.run(resume=False, **kind.change_input())

    assert len(subject.asked) >= 2 * asked - 2
    assert {run.run_id for run in kind.store.list_runs()} >= {"r"}
    assert kind.store.run_exists("r@1")


def test_a_run_of_the_other_kind_under_this_id_is_refused(kind, subject):
    other = "memory" if kind.name == "samples" else "samples"
    kind.store.start_run("r", kind=other)

    with pytest.raises(ConfigurationError, match=f"is a run of kind '{other}'"):
        kind.run()
    assert subject.asked == []


def test_what_is_refused_before_its_items_are_stored_leaves_nothing_behind(kind, subject, tmp_path):
    wrong = {"metrics": ["rubric_judge(model='nobody/x')"]} if kind.name == "samples" else {"agent": "nobody"}

    with pytest.raises(ThemisError):
        kind.run(**wrong)

    assert (kind.store.list_runs(), subject.asked) == ([], [])


def test_a_second_writer_is_refused_while_the_first_one_writes(kind, subject):
    refused = []

    def begin_again(number: int) -> None:
        if number == 2:
            with pytest.raises(RunBusyError) as busy:
                perform(kind.asked, ExperimentStorage(kind.store.location), progress=False)
            refused.append(busy.value)

    subject.before = begin_again
    kind.run(**kind.answered_alone())

    assert len(refused) == 1
    assert kind.stored.status is RunStatus.COMPLETED


# --- the specification ------------------------------------------------------------------------------------------------


def test_the_stored_run_says_what_it_was_asked_to_be(kind):
    kind.run(tags={"team": "a"}, experiment="trial", budget_usd=5.0)

    loaded = load_specification(kind.stored)

    assert type(loaded) is type(kind.asked)
    settled = {"temperature": 0.0, "num_samples": 1} if loaded.kind == "samples" else {}
    assert replace(loaded, needs_program="") == replace(
        kind.asked, tags={"team": "a"}, experiment="trial", budget_usd=5.0, **settled
    )


def test_the_command_that_is_printed_asks_for_the_same(kind, subject, monkeypatch):
    kind.run(tags={"team": "a"}, experiment="trial")
    printed = list(reproduction(kind.store, "r").command)
    performed = []
    monkeypatch.setattr("themis.api.perform", lambda asked, *_, **__: performed.append(asked) or kind.run())

    command_line.main([*printed, "--storage", str(kind.store.location)], standalone_mode=False)

    (again,) = performed
    expected = load_specification(kind.stored)
    for name in ("experiment", "tags", "seed", "workers", "budget_usd"):
        assert getattr(again, name) == getattr(expected, name), name
    assert again.run_id == "r-again"


def test_tags_and_experiment_are_kept_and_found_and_pruned_by_experiment(kind):
    kind.run(tags={"team": "a"}, experiment="trial")
    kind.run(run_id="other")

    assert (kind.stored.tags, kind.stored.experiment) == ({"team": "a"}, "trial")
    assert [run.run_id for run in kind.store.list_runs(experiment="trial")] == ["r"]
    kind.store.apply_retention_policy(RetentionPolicy(max_runs_per_experiment=1, keep_latest_n=0))
    assert {run.run_id for run in kind.store.list_runs()} == {"r", "other"}


# --- money ------------------------------------------------------------------------------------------------------------


def test_a_budget_is_never_passed_and_a_larger_one_goes_on(kind, subject):
    report = kind.run(budget_usd=2.5 * COST_USD, **kind.answered_alone())

    assert (report.status, len(subject.asked)) == ("interrupted", 2)
    assert "budget_usd=0.025 allows no further call" in report.metadata["stopped"]
    larger = resume("r", storage=kind.store, budget_usd=100.0, progress=False)
    assert larger.status == "completed"
    assert kind.stored.cost_usd == pytest.approx(len(subject.asked) * COST_USD, rel=1e-3)


def test_a_budget_over_an_unknown_price_is_refused_before_the_first_call(kind, subject):
    nameless = {"model": "asked/nobody-knows"} if kind.name == "samples" else {"agent": "http://127.0.0.1:9/"}

    with pytest.raises(ConfigurationError, match="a budget needs the price of"):
        kind.run(budget_usd=1.0, **nameless)
    assert (kind.store.list_runs(), subject.asked) == ([], [])


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Handlers as a program finds them: a library that other tests used may have left its own for SIGTERM."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_what_is_in_flight_and_the_hint_goes_on(kind, subject, number, own_signals):
    subject.before = lambda asked: os.kill(os.getpid(), number) if asked == 2 else None

    with pytest.raises(RunInterrupted) as stopped:
        kind.run(**kind.answered_alone())

    assert kind.stored.status is RunStatus.INTERRUPTED
    assert kind.stored.error_message == "stopped by the user"
    assert "'r'" in stopped.value.resume or " r" in stopped.value.resume
    before = list(subject.asked)
    assert kind.run().status == "completed"
    assert not set(before) & set(subject.asked[len(before) :])


def test_an_error_of_the_subject_that_ends_everything_is_a_failed_run_that_goes_on_later(kind, subject):
    subject.fails_from = 1

    with pytest.raises((RunFailedError, EvaluationError)):
        kind.run()

    assert kind.stored.status is RunStatus.FAILED
    assert "the line is dead" in kind.stored.error_message
    subject.fails_from = 10**9
    assert kind.run().status == "completed"


def test_every_record_is_handed_over_once_it_is_stored_and_again_on_resume(kind):
    seen: list[str] = []

    def take(record: GenerationRecord) -> None:
        seen.append(str(record.task.metadata["dataset_id"]))
        assert kind.store.reader("r").record(seen[-1]) is not None

    perform(kind.asked, kind.store, progress=False, on_result=take)
    assert len(seen) == len(set(seen)) == kind.items
    perform(kind.asked, kind.store, progress=False, on_result=take)
    assert sorted(seen[kind.items :]) == sorted(seen[: kind.items])


def test_a_rule_of_the_users_ends_the_run_and_the_next_call_goes_on(kind, subject):
    # An answer takes a moment, so that the verdict on one comes before the last is asked for.
    subject.before = lambda number: time.sleep(0.05)
    heard: list[str] = []

    def enough(judged: EvaluationRecord) -> str | None:
        heard.append(str(judged.sample_id))
        return "one is enough"

    report = perform(replace(kind.asked, **kind.answered_alone()), kind.store, progress=False, stop_when=enough)
    assert (report.status, report.metadata["stopped"]) == ("interrupted", "one is enough")
    assert 1 <= len(heard) < kind.items
    assert "themis resume r" in report.metadata["resume"] or "'r'" in report.metadata["resume"]
    assert kind.run().status == "completed"


# --- observers --------------------------------------------------------------------------------------------------------


class Hearing(Observer):
    def __init__(self, store: ExperimentStorage, fails_at: str = "") -> None:
        self.store, self.fails_at = store, fails_at
        self.heard: list[str] = []
        self.items: set[int] = set()
        self.scored: set[str] = set()
        self.lost: list[int] = []

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if what == self.fails_at:
            raise ConnectionError("the tracker is down")

    def on_start(self, run: RunStart) -> None:
        self.start = run
        self._hear("start")

    def on_answers(self, results: list[Any]) -> None:
        stored = {position for position, _ in self.store.reader("r").records()}
        self.lost += [result.position for result in results if result.position not in stored]
        self.items |= {result.position for result in results}
        self._hear("answers")

    def on_scores(self, records: list[Any]) -> None:
        self.scored |= {record.sample_id for record in records}
        self._hear("scores")

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        self.report = report
        self._hear("end")


def test_observers_hear_of_everything_after_it_is_stored(kind):
    hearing = Hearing(kind.store)
    kind.run(observers=(hearing,))

    assert (hearing.heard[0], hearing.heard[-1]) == ("start", "end")
    assert (hearing.start.kind, hearing.start.total, hearing.start.done) == (kind.name, kind.items, 0)
    assert hearing.start.manifest_hash == kind.stored.manifest_hash
    assert len(hearing.items) == len(hearing.scored) == kind.items
    assert hearing.lost == []
    assert hearing.report.status == "completed"


@pytest.mark.parametrize("at", ["start", "answers", "scores", "end"])
def test_an_observer_that_fails_hears_no_more_and_the_run_goes_on(kind, caplog, at):
    hearing = Hearing(kind.store, fails_at=at)

    assert kind.run(observers=(hearing,)).status == "completed"
    assert hearing.heard[-1] == at
    assert "Hearing failed and hears no more of this run" in caplog.text


def test_the_progress_bar_draws_a_run_of_either_kind(kind, capfd):
    kind.run(observers=(ProgressBar(),))

    assert f"{kind.items}/{kind.items}" in capfd.readouterr().err


def test_a_tracker_shows_a_run_of_either_kind(kind, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    uri = f"file:{tmp_path}/mlruns"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    perform(kind.asked, kind.store, progress=False, observers=["mlflow"])

    client = mlflow.MlflowClient(tracking_uri=uri)
    (shown,) = client.search_runs([client.get_experiment_by_name("themis").experiment_id])
    assert shown.data.tags["themis.run_id"] == "r"
    assert shown.data.metrics["samples"] == kind.items


# --- the command line -------------------------------------------------------------------------------------------------


def call(kind: Kind, *more: str) -> int:
    words = [*kind.asked.command(), "--run-id", "r", "--storage", str(kind.store.location), "--json", "-y", *more]
    return command_line.main(words, standalone_mode=False) or 0


def test_the_command_prints_one_shape_of_json_for_both_kinds(kind, capsys):
    assert call(kind) == 0

    printed = json.loads(capsys.readouterr().out)
    assert (printed["run_id"], printed["kind"], printed["status"]) == ("r", kind.name, "completed")
    assert {"metrics", "cost", "samples", "failed", "tags", "error"} <= printed.keys()


@register_memory_test("unmeasurable")
@dataclass(kw_only=True)
class Unmeasurable(DatasetInterface):
    """Nobody can say whether an answer is right."""

    name = "Unmeasurable"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        script = ["I am well.", "How am I?"]
        return [
            TestExample(dataset=self, example_id=str(number), script=script, expected_responses=["well"])
            for number in range(num_examples)
        ]

    def evaluate(self, questions: list[str], responses: list[str], expected: list[str]) -> Grade:
        return Grade.failure("a mood cannot be measured")


def test_too_many_failures_are_an_exit_code_where_that_is_asked_for(kind, subject):
    def fail_once(number: int) -> None:
        if kind.name == "samples" and number == 3:
            raise ConnectionError("once")

    subject.before = fail_once
    Path("small.yml").write_text(CONFIGURATION.replace("colours", "unmeasurable"), encoding="utf-8")

    assert call(kind, "--fail-on-errors", "0") == 1


def test_a_run_can_be_stopped_from_another_thread(kind, subject):
    """As `evaluate_async` does when it is cancelled."""
    from themis.runs.lifecycle import CURRENT_HANDLE, RunHandle

    handle = RunHandle()
    subject.before = lambda number: handle.stop() if number == 2 else time.sleep(0.01)
    outcome: list[BaseException] = []

    def work() -> None:
        CURRENT_HANDLE.set(handle)
        try:
            kind.run(**kind.answered_alone())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert isinstance(outcome[0], RunInterrupted)
    assert kind.stored.status is RunStatus.INTERRUPTED
