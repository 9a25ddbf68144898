"""The Ray backend on a real cluster: nothing but where calls are made differs from a run in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import throwaway_ray

import themis
from tests.waiting import wait_until
from themis.backends.ray import RayExecutionBackend, on_one_machine
from themis.core.entities import GenerationRecord, ModelOutput
from themis.exceptions import ConfigurationError, RunFailedError
from themis.generation.providers import PROVIDERS

ROWS = [{"id": str(n), "question": f"{n}?", "answer": str(n)} for n in range(40)]
KEY = "sk-not-to-be-seen-0123456789"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """Registers a provider until the test ends."""
    PROVIDERS.names()  # plugins are read once, into the table that stays
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    return themis.register_provider


def ask(storage: Path, **given: Any) -> Any:
    given = {"model": "mine/m", "execution_backend": "ray", "workers": 2, "run_id": "one", **given}
    return themis.evaluate(ROWS, prompt="{question}", storage=storage, progress=False, **given)


def answering(before: Callable[[str], None]) -> type:
    """A provider that repeats what stands before the question mark. A class of a function travels with its code."""

    class Mine(themis.interfaces.StatelessTaskExecutor):
        def __init__(self, api_key: str = "") -> None:
            self.api_key = api_key

        def execute(self, task: Any) -> GenerationRecord:
            asked = task.prompt.text.rstrip("?")
            before(asked)
            usage = {"prompt_tokens": 10, "completion_tokens": 100}
            return GenerationRecord(task, ModelOutput(asked, usage=usage), None)

    return Mine


def noted_in(log: Path) -> Callable[[str], None]:
    def note(asked: str) -> None:
        with log.open("a") as file:
            file.write(f"{asked}\n")

    return note


def outcomes(report: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (
            one.task.metadata["dataset_id"],
            one.task.prompt.text,
            one.output and one.output.text,
            one.error and one.error.kind,
        )
        for one in report.generation_results
    )


# --- the backend ----------------------------------------------------------------------------------------------------


def test_a_function_is_mapped_over_items_by_a_cluster_that_is_left_running(ray_cluster):
    import ray

    with RayExecutionBackend() as backend:
        assert backend.processes == 2
        assert sorted(backend.map(lambda number: 2 * number, range(5))) == [0, 2, 4, 6, 8]
        there = set(backend.map(lambda _: (os.getpid(), os.getcwd()), range(4)))
    assert os.getpid() not in {pid for pid, _ in there}
    assert {folder for _, folder in there} == {os.getcwd()}
    assert ray.is_initialized()


def test_results_are_streamed_and_what_went_wrong_comes_last(ray_cluster):
    def up_to(number: int) -> Iterator[int]:
        yield from range(number)
        if number == 3:
            raise ValueError("three")

    found = list(RayExecutionBackend().stream(up_to, [2, 3, 1]))
    by_item = {item: [result for one, result in found if one == item] for item in (1, 2, 3)}
    assert (by_item[1], by_item[2], by_item[3][:-1]) == ([0], [0, 1], [0, 1, 2])
    assert repr(by_item[3][-1]) == "ValueError('three')"


def test_a_process_that_is_killed_ends_its_item_alone(ray_cluster):
    def perhaps(number: int) -> Iterator[int]:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        yield number

    found = dict(RayExecutionBackend().stream(perhaps, [0, 1, 2, 3]))
    assert type(found.pop(1)).__name__ == "WorkerCrashedError"
    assert found == {0: 0, 2: 2, 3: 3}


def test_closing_cancels_what_is_under_way(ray_cluster, tmp_path):
    began, cancelled = tmp_path / "began", tmp_path / "cancelled"

    def endless(number: int) -> Iterator[int]:
        yield number
        try:
            began.touch()
            while True:
                time.sleep(0.02)
        except KeyboardInterrupt:
            cancelled.touch()
            raise

    results = RayExecutionBackend().stream(endless, [5])
    assert next(results) == (5, 5)
    wait_until(began.exists)
    results.close()
    wait_until(cancelled.exists)


def test_what_does_not_mind_being_interrupted_is_killed_and_gives_its_place_back(ray_cluster, tmp_path):
    began = tmp_path / "began"

    def stubborn(number: int) -> Iterator[int]:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield os.getpid()
        began.touch()
        while True:
            time.sleep(0.02)

    results = RayExecutionBackend().stream(stubborn, [1])
    _, process = next(results)
    # Before, Ray itself would end it where it hands on what was yielded.
    wait_until(began.exists)
    results.close()
    wait_until(lambda: not Path(f"/proc/{process}").exists())


def test_a_task_can_be_interrupted_in_a_process_where_another_has_switched_that_off(ray_cluster, tmp_path):
    def switch_off(number: int) -> int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return os.getpid()

    def endless(number: int) -> Iterator[int]:
        yield os.getpid()
        try:
            began.touch()
            while True:
                time.sleep(0.02)
        except KeyboardInterrupt:
            cancelled.touch()
            raise

    backend, began, cancelled = RayExecutionBackend(), tmp_path / "began", tmp_path / "cancelled"
    assert set(backend.map(switch_off, range(8)))
    results = backend.stream(endless, [1])
    next(results)
    wait_until(began.exists)
    results.close()
    wait_until(cancelled.exists)


def test_a_result_that_does_not_come_in_time_is_an_error(ray_cluster, tmp_path):
    def when_allowed(path: Path) -> None:
        while not path.exists():
            time.sleep(0.02)

    with pytest.raises(TimeoutError, match=r"no result within 0\.1 s"):
        list(RayExecutionBackend().map(when_allowed, [tmp_path / "never"], timeout=0.1))


def test_a_cluster_is_of_one_machine_while_no_node_that_is_alive_has_another_address(ray_cluster):
    import ray

    assert RayExecutionBackend().is_on_one_machine
    there = {**ray.nodes()[0], "NodeManagerAddress": "192.0.2.7"}
    assert not on_one_machine([*ray.nodes(), there])
    assert on_one_machine([*ray.nodes(), {**there, "Alive": False}])


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_equals_the_local_one_record_by_record(ray_cluster, tmp_path):
    model = "fake/flaky-0.3"
    there = ask(tmp_path / "ray", model=model, workers=4, max_retries=1)
    here = ask(tmp_path / "local", model=model, workers=4, max_retries=1, execution_backend=None)
    assert outcomes(there) == outcomes(here)
    exact = there.metric("exact_match")
    assert (exact.mean, exact.count, exact.failed) == (
        here.metric("exact_match").mean,
        here.metric("exact_match").count,
        here.metric("exact_match").failed,
    )
    assert 0 < exact.failed < 40


def test_what_a_killed_process_leaves_is_asked_again_by_the_run_itself(ray_cluster, registered, tmp_path):
    log, killed = tmp_path / "calls", tmp_path / "killed"
    note = noted_in(log)

    def once_killed(asked: str) -> None:
        note(asked)
        if asked == "5" and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    registered("mine", answering(once_killed))
    report = ask(tmp_path / "store")
    exact = report.metric("exact_match")
    assert (exact.mean, exact.count, exact.failed) == (1.0, 40, 0)
    calls = Counter(log.read_text().split())
    assert calls["5"] == 2
    # Answers that had not come out of the process are asked for again too.
    assert report.metadata["cost"]["api_calls"] == sum(calls.values())


def test_a_budget_is_kept_over_all_processes(ray_cluster, registered, tmp_path, monkeypatch):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"version": "mine", "models": {"m": [1.0, 10.0]}}))
    monkeypatch.setenv("THEMIS_PRICES", str(prices))
    registered("mine", answering(noted_in(tmp_path / "calls")))
    # A call costs 0.00101 dollars.
    report = ask(tmp_path / "store", budget_usd=0.0205, max_tokens=100)
    asked = (tmp_path / "calls").read_text().split()
    assert len(asked) == 20
    assert report.metadata["cost"]["total_cost"] == pytest.approx(0.00101 * len(asked))
    assert "budget_usd=0.0205 allows no further call" in report.metadata["stopped"]


def test_a_provider_that_cannot_be_sent_is_refused_without_showing_its_key(ray_cluster, registered, tmp_path, capfd):
    lock = threading.Lock()

    def locked(asked: str) -> None:
        with lock:
            pass

    registered("mine", answering(locked))
    with pytest.raises(ConfigurationError, match="cannot be sent to another process") as refused:
        ask(tmp_path / "store", provider_options={"api_key": KEY})
    said = capfd.readouterr()
    assert KEY not in "".join(traceback.format_exception(refused.value)) + said.out + said.err


def test_a_key_shows_neither_in_failures_nor_in_the_cluster_s_logs(ray_cluster, registered, tmp_path):
    def refused(asked: str) -> None:
        raise PermissionError(f"the key {KEY} is not valid")

    registered("mine", answering(refused))
    with pytest.raises(RunFailedError) as caught:
        ask(tmp_path / "store", provider_options={"api_key": KEY}, max_retries=1, keep_going=True)
    report = caught.value.report
    assert (report.metric("exact_match").count, report.metric("exact_match").failed) == (0, 40)
    assert KEY not in str(caught.value)
    assert "is not valid" in report.generation_results[0].error.message
    assert KEY not in repr(report.generation_results)
    assert list(ray_cluster.folder.rglob("*.log"))
    found = subprocess.run(["grep", "-rlsF", "-D", "skip", KEY, ray_cluster.folder], capture_output=True, check=False)
    assert found.stdout == b""


# --- programs of users' own -----------------------------------------------------------------------------------------


PROVIDER = """
import time
from pathlib import Path

import themis
from themis.core.entities import GenerationRecord, ModelOutput
from themis.interfaces import StatelessTaskExecutor


class Mine(StatelessTaskExecutor):
    def __init__(self, blocked_from=10_000):
        self.blocked_from = blocked_from

    def execute(self, task):
        asked = task.prompt.text.rstrip("?")
        with open("calls", "a") as log:
            log.write(asked + "\\n")
        while int(asked) >= self.blocked_from and not Path("go").exists():
            time.sleep(0.02)
        return GenerationRecord(task, ModelOutput(asked), None)


themis.register_provider("mine", Mine)
"""
PROGRAM = """
import sys

import themis
import provider
from themis.backends.ray import RayExecutionBackend
from themis.exceptions import RunInterrupted

rows = [{"id": n, "question": f"{n}?", "answer": str(n)} for n in range(60)]
execution, blocked_from = sys.argv[1:]
backend = RayExecutionBackend(**OPTIONS) if execution == "ray" else None
try:
    report = themis.evaluate(rows, model="mine/m", prompt="{question}", storage="store", run_id="one", workers=2,
                             provider_options={"blocked_from": int(blocked_from)}, execution_backend=backend)
except RunInterrupted:
    sys.exit(130)
print(report.metric("exact_match").mean, report.metric("exact_match").count)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "provider.py").write_text(PROVIDER)
    file = tmp_path / "program.py"
    file.write_text(f"OPTIONS = {{}}\n{PROGRAM}")
    return file


def start(program: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, program.name, *words], cwd=program.parent, stdout=subprocess.PIPE, text=True
    )


def test_a_program_joins_the_cluster_that_the_environment_names_and_leaves_it_running(
    ray_cluster, program, monkeypatch
):
    monkeypatch.setenv("RAY_ADDRESS", ray_cluster.address)
    joined = start(program, "ray", "60")
    assert joined.communicate()[0].split() == ["1.0", "60"]
    assert len(program.with_name("calls").read_text().split()) == 60
    assert sorted(RayExecutionBackend().map(abs, [-1, 2])) == [1, 2]


def test_ctrl_c_keeps_what_is_paid_for_and_leaves_no_process_behind(ray_cluster, program):
    calls = program.with_name("calls")
    with throwaway_ray.surroundings() as folder:
        program.write_text(f"OPTIONS = {throwaway_ray.OPTIONS}\n{PROGRAM}")
        stopped = _started_on_ray(program, calls)
        try:
            assert str(folder) in _processes()
            stopped.send_signal(signal.SIGINT)
            program.with_name("go").touch()
            assert stopped.wait() == 130
        finally:
            stopped.kill()
        wait_until(lambda: str(folder) not in _processes())
    assert 5 < len(calls.read_text().split()) < 60

    resumed = start(program, "local", "5")
    assert resumed.communicate()[0].split() == ["1.0", "60"]
    assert set(Counter(calls.read_text().split()).values()) == {1}


def _started_on_ray(program: Path, calls: Path) -> subprocess.Popen[str]:
    """The program when it has made its sixth call."""
    for _ in range(throwaway_ray.ATTEMPTS):
        started = start(program, "ray", "5")
        wait_until(lambda one=started: one.poll() is not None or (calls.exists() and "\n5\n" in calls.read_text()))
        if started.poll() is None:
            return started
    raise AssertionError(f"the program ended with {started.returncode}")


def _processes() -> str:
    return subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
