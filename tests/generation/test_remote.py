"""Calls in processes of a backend, played by objects of this one: the engine here keeps its promises over all of them."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import themis
from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    SamplingConfig,
)
from themis.exceptions import EvaluationError, ProviderError
from themis.generation.attempts import Request
from themis.generation.engine import Engine, EngineSettings
from themis.generation.providers import PROVIDERS
from themis.generation.remote import CallMaker, RemotePool, code_travels, find_differences, identify
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage, RunStatus

ROWS = [{"id": n, "question": f"{n}?", "answer": str(n)} for n in range(40)]


class Same(StatelessTaskExecutor):
    """Says what stands before the question mark, and counts what it was asked wherever it was built."""

    asked: ClassVar[Counter[str]] = Counter()
    built = 0
    where = "http://here"

    def __init__(self, **_: Any) -> None:
        type(self).built += 1
        self.endpoint = self.where

    def execute(self, task: Any) -> GenerationRecord:
        said = task.prompt.text.rstrip("?")
        self.asked[said] += 1
        time.sleep(0.002)
        return GenerationRecord(task, ModelOutput(said, usage={"prompt_tokens": 10, "completion_tokens": 100}), None)


class Telling(Same):
    """Leaves something out wherever it is built, and tells it there."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.sent_parameters: dict[str, object] = {}
        self.left_out: dict[str, str] = {}

    def execute(self, task: Any) -> GenerationRecord:
        self.sent_parameters["max_tokens"], self.left_out["temperature"] = 512, "refused"
        return super().execute(task)


class Rooms:
    """A backend of two processes. One that is sent a poisonous question is lost with all that it has."""

    processes = 2

    def __init__(self, poison: str = "", doses: int = 1, arrive: Callable[[], None] = lambda: None) -> None:
        self.poison, self.doses, self.arrive = poison, doses, arrive
        self.sent: list[list[str]] = []

    def map(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("not used")

    def open_workers(self, served: CallMaker) -> RoomsOfARun:
        return RoomsOfARun(self, served)


class RoomsOfARun:
    def __init__(self, backend: Rooms, served: CallMaker) -> None:
        self.backend, self.served = backend, served
        self.rooms: dict[int, CallMaker] = {}
        self.said: list[tuple[int, Any]] = []
        self.started = 0

    def start(self) -> int:
        self.started += 1
        self.backend.arrive()
        self.rooms[self.started] = copy.copy(self.served)
        self.said.append((self.started, self.rooms[self.started].greet()))
        return self.started

    def send(self, name: int, calls: list[Any]) -> None:
        if name not in self.rooms:
            return
        self.backend.sent.append([call.task.prompt.text for call in calls])
        if self.backend.doses and f"{self.backend.poison}?" in self.backend.sent[-1]:
            self.backend.doses -= 1
            self.stop(name)
        else:
            self.rooms[name].take(calls)

    def receive(self, timeout_seconds: float) -> list[tuple[int, Any]]:
        heard, self.said = self.said, []
        for name, room in self.rooms.items():
            if not any(one == name for one, _ in heard):
                heard.append((name, room.give(0.002)))
        return heard

    def stop(self, name: int) -> None:
        del self.rooms[name]
        self.said.append((name, RuntimeError("killed")))

    def close(self) -> None:
        self.rooms.clear()


@pytest.fixture(autouse=True)
def same(monkeypatch: pytest.MonkeyPatch) -> type[Same]:
    PROVIDERS.names()
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    monkeypatch.setattr(Same, "asked", Counter())
    monkeypatch.setattr(Same, "built", 0)
    monkeypatch.setattr(Same, "where", "http://here")
    themis.register_provider("same", Same)
    return Same


def ask(storage: Path, backend: Any, **given: Any) -> Any:
    arguments: dict[str, Any] = {"model": "same/m", "workers": 4, "run_id": "run", "max_retries": 1, **given}
    return themis.evaluate(
        ROWS, prompt="{question}", storage=storage, execution_backend=backend, progress=False, **arguments
    )


def test_each_process_builds_one_provider_and_this_one_commits(same, tmp_path):
    report = ask(tmp_path, Rooms())
    assert report.metric("exact_match").count == 40
    assert same.built == 1 + 2  # one here, to find mistakes
    assert set(same.asked.values()) == {1}
    assert len(ExperimentStorage(tmp_path).load_cached_records("run")) == 40


def test_what_processes_left_out_is_told_by_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    themis.register_provider("telling", Telling)
    report = ask(tmp_path, Rooms(), model="telling/any")

    assert report.metadata["parameters"] == {"sent": {"max_tokens": 512}, "left_out": {"temperature": "refused"}}
    assert all("parameters" not in record.metrics for record in report.generation_results)


def test_what_a_lost_process_had_is_asked_again_though_nothing_is_to_be_retried(same, tmp_path):
    report = ask(tmp_path, Rooms(poison="20"))
    exact = report.metric("exact_match")
    assert (exact.mean, exact.count, exact.failed) == (1.0, 40, 0)
    # What was sent to the lost process and may have been asked there is counted, at most one call for each of its two slots.
    assert 41 <= report.metadata["cost"]["api_calls"] <= 42


def test_a_row_that_ends_its_process_every_time_is_a_failure_in_the_end(tmp_path):
    report = ask(tmp_path, Rooms(poison="20", doses=1_000))
    exact = report.metric("exact_match")
    assert (exact.count, exact.failed) == (39, 1)
    assert "ended before its answer: RuntimeError: killed" in report.failures[0].message


def test_a_run_fails_when_processes_do_nothing_but_end(same, tmp_path):
    backend = Rooms()
    backend.poison, backend.doses = "0", 1_000
    everything_kills = [{"id": n, "question": "0?", "answer": "0"} for n in range(400)]
    with pytest.raises(
        EvaluationError, match="every process of the cluster was lost, again and again; the last by Runt"
    ):
        themis.evaluate(
            everything_kills, model="same/m", prompt="{question}", storage=tmp_path, run_id="run", workers=4,
            execution_backend=backend, progress=False,
        )  # fmt: skip
    assert ExperimentStorage(tmp_path).get_run("run").status is RunStatus.FAILED
    assert len(backend.sent) <= 2 * 4 + 1


def test_a_process_that_would_ask_elsewhere_is_refused_before_anything_is_asked(same, tmp_path, monkeypatch):
    def move() -> None:
        monkeypatch.setattr(Same, "where", "http://there")

    with pytest.raises(ProviderError, match='endpoint is "http://there" there and "http://here" here'):
        ask(tmp_path, Rooms(arrive=move))
    assert not same.asked
    assert ExperimentStorage(tmp_path).get_run("run").status is RunStatus.FAILED


def test_a_process_that_cannot_build_the_provider_says_why(same, tmp_path, monkeypatch):
    def break_down() -> None:
        monkeypatch.setattr(Same, "__init__", lambda self: 1 / 0)

    with pytest.raises(ProviderError, match="cannot build the provider: ZeroDivisionError"):
        ask(tmp_path, Rooms(arrive=break_down))
    assert not same.asked


def test_the_budget_is_spent_and_not_passed_over_all_processes(same, tmp_path, monkeypatch):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"version": "mine", "models": {"m": [1.0, 10.0]}}))
    monkeypatch.setenv("THEMIS_PRICES", str(prices))
    # A call costs 0.00101 dollars, and could cost four times as much.
    report = ask(tmp_path / "store", Rooms(), budget_usd=0.0205, max_tokens=400)
    assert sum(same.asked.values()) == 17
    assert report.metadata["cost"]["total_cost"] == pytest.approx(17 * 0.00101)


def test_a_lost_call_is_taken_to_have_cost_the_most_it_could(same, tmp_path, monkeypatch):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"version": "mine", "models": {"m": [1.0, 10.0]}}))
    monkeypatch.setenv("THEMIS_PRICES", str(prices))
    ask(tmp_path / "store", Rooms(poison="0"), budget_usd=0.0205, max_tokens=100, workers=1)
    assert sum(same.asked.values()) == 19  # twenty with the one that nobody saw answered


def test_while_nothing_succeeds_the_engine_sees_every_failure_before_more_is_sent(monkeypatch):
    def refuse(self: Any, task: Any) -> GenerationRecord:
        raise PermissionError("unauthorized")

    backend = Rooms()
    monkeypatch.setattr(Same, "execute", refuse)
    engine = Engine(Same(), EngineSettings(workers=4))
    for batch in engine.run(requests(40), RemotePool(backend, Same, Same(), 4)):
        if batch:
            engine.stop()  # as after a wrong key
    assert 0 < sum(map(len, backend.sent)) <= 4


def requests(count: int) -> list[Request]:
    return [Request(n, 0, str(n), task(n)) for n in range(count)]


def task(number: int) -> GenerationTask:
    prompt = PromptRender(PromptSpec("default", "{n}"), f"{number}?")
    return GenerationTask(prompt, ModelSpec("m", "same"), SamplingConfig())


def test_a_rate_is_kept_over_all_processes(same, tmp_path):
    # Of 400 a minute at most 67 may come at once, in ten seconds' worth; the other 13 take two seconds.
    rows = [{"id": n, "question": f"{n}?", "answer": str(n)} for n in range(80)]
    began = time.monotonic()
    report = themis.evaluate(
        rows, model="same/m", prompt="{question}", storage=tmp_path, run_id="run", workers=8, progress=False,
        execution_backend=Rooms(), rate_limit={"requests_per_minute": 400},
    )  # fmt: skip
    assert report.metric("exact_match").count == 80
    assert time.monotonic() - began > 0.9 * (80 - 400 / 6) * 60 / 400


def test_a_backend_that_maps_keeps_budget_and_rate_too(same, tmp_path, monkeypatch):
    class Reading:
        """Reads what it can get before it does anything."""

        def map(self, func: Any, items: Any, **_: Any) -> Any:
            return map(func, list(items))

    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"version": "mine", "models": {"m": [1.0, 10.0]}}))
    monkeypatch.setenv("THEMIS_PRICES", str(prices))
    began = time.monotonic()
    ask(tmp_path / "store", Reading(), budget_usd=0.0205, max_tokens=400, rate_limit={"requests_per_minute": 90})
    assert sum(same.asked.values()) == 17
    # Ten seconds' worth, fifteen, may come at once.
    assert time.monotonic() - began > 0.9 * (17 - 15) / 1.5


# --- what a process would ask -----------------------------------------------------------------------------------------


PROVIDER = """
from themis.interfaces import StatelessTaskExecutor


class Mine(StatelessTaskExecutor):
    def __init__(self, temperature=0, api_key=""):
        self._temperature = temperature
        self.api_key = api_key

    def execute(self, task):
        return {answer}
"""


def built(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, **options: Any) -> dict[str, str]:
    """The identity of a provider as a machine has it whose module says that answer."""
    file = folder / f"{answer}.py"
    file.write_text(PROVIDER.replace("{answer}", answer))
    spec = importlib.util.spec_from_file_location("mine", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mine", module)
    spec.loader.exec_module(module)
    assert not code_travels(module.Mine)
    return identify(module.Mine(**options))


def test_other_code_and_other_options_are_differences_and_other_keys_are_not(tmp_path, monkeypatch):
    here = built(tmp_path, monkeypatch, "1", api_key="sk-of-this-machine-0123456789")
    there = built(tmp_path, monkeypatch, "1", api_key="sk-of-that-machine-0123456789")
    assert find_differences(here, there) == []
    assert "sk-of" not in repr(here)
    other = built(tmp_path, monkeypatch, "2", temperature=1)
    assert find_differences(here, other) == [
        f"code is {other['code']} there and {here['code']} here",
        "option temperature is 1 there and 0 here",
    ]


def test_a_class_that_cannot_be_imported_by_its_name_travels_with_its_code():
    class Local(Same):
        pass

    assert code_travels(Local)
    assert not code_travels(Same)
