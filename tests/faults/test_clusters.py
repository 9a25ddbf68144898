"""What goes wrong on a Ray cluster: one real cluster for all tests, started with an environment of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import throwaway_ray

import themis
from tests.faults.conftest import Fault
from tests.stories.endpoint import Endpoint
from tests.waiting import wait_until
from themis.backends.ray import RayExecutionBackend
from themis.cli import main
from themis.generation.attempts import TRIPS_AFTER
from themis.storage import ExperimentStorage

AGENT_THAT_KILLS = """
import os
import signal

from themis.memory.agents import Agent, register_agent


class Killing(Agent):
    def reply(self, message, *, turn, now, presupplied=None):
        os.kill(os.getpid(), signal.SIGKILL)

    def reset(self):
        pass


register_agent("killing", Killing)
"""
MEMORY = """
config: {run_name: tiny}
datasets:
  args: {memory_span: 400, dataset_examples: 1}
  datasets: [{name: colours}]
"""
PROGRAM = """
import sys
import themis

rows = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(12)]
themis.evaluate(rows, model="stub/waits-at-the-gate", prompt="{question}", storage=sys.argv[1], run_id="one", workers=4,
                execution_backend="ray", progress=False)
"""


@pytest.fixture(scope="module")
def known_endpoint(endpoint: Endpoint) -> Iterator[None]:
    with mock.patch.dict(os.environ, {"STUB_BASE_URL": endpoint.url}):
        yield


@pytest.fixture(scope="module")
def cluster(known_endpoint: None, ray_cluster: throwaway_ray.Cluster) -> throwaway_ray.Cluster:
    """A cluster whose machines know where the endpoint is."""
    return ray_cluster


@pytest.fixture(autouse=True)
def _counted_anew(endpoint: Endpoint) -> None:
    endpoint.calls.clear()
    endpoint.gate.clear()


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`themis WORDS` in this process, which is connected to the cluster; the exit code."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(words)
        return int(ended.value.code or 0)

    return run


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(count)]


def in_file(folder: Path, count: int) -> str:
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows(count)))
    return "rows.jsonl"


def on_ray(folder: Path, count: int, model: str) -> list[str]:
    words = ["eval", in_file(folder, count), "-m", f"stub/{model}", "--prompt", "{question}", "--run-id", "one"]
    return [*words, "--storage", "store", "--execution", "ray", "--workers", "4"]


def processes_of(cluster: throwaway_ray.Cluster) -> list[int]:
    """The processes of the cluster that make calls."""
    lines = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    found = [line.split(maxsplit=2) for line in lines.splitlines()[1:]]
    nodes = {pid for pid, _, args in found if str(cluster.folder) in args and "raylet" in args}
    return [int(pid) for pid, parent, args in found if parent in nodes and "ray::_Process" in args]


@pytest.mark.fault(
    area="Clusters",
    wrong="A process of the cluster is killed with calls under way",
    does="Starts another, asks again what was under way, and counts every call that was made",
    status="completed",
    exit_code=0,
)
def test_what_a_killed_process_had_under_way_is_asked_again_and_all_calls_are_counted(
    cluster, endpoint, command, fault: Fault, tmp_path
):
    def kill_one_and_open_the_gate() -> None:
        wait_until(lambda: endpoint.calls.total() == 4)
        os.kill(processes_of(cluster)[0], signal.SIGKILL)
        endpoint.gate.set()

    killer = threading.Thread(target=kill_one_and_open_the_gate)
    killer.start()
    assert command(*on_ray(tmp_path, 20, "waits-at-the-gate")) == fault.exit_code
    killer.join()
    stored = ExperimentStorage(tmp_path / "store").get_run("one")
    assert (stored.status.value, stored.successful_generations, stored.failed_generations) == (fault.status, 20, 0)
    # Each process had two of the four.
    assert Counter(endpoint.calls.values()) == {1: 18, 2: 2}
    assert stored.calls == endpoint.calls.total()


@pytest.mark.fault(
    area="Clusters",
    wrong="The key is refused",
    does="Stops after 5 equal failures over all processes together",
    status="failed",
    exit_code=3,
)
def test_a_refused_key_costs_a_few_calls_on_a_cluster_too(cluster, endpoint, command, fault: Fault, tmp_path):
    assert command(*on_ray(tmp_path, 200, "refuses-the-key")) == fault.exit_code
    assert ExperimentStorage(tmp_path / "store").get_run("one").status.value == fault.status
    assert endpoint.calls.total() <= 4 + TRIPS_AFTER


@pytest.mark.fault(
    area="Clusters",
    wrong="A machine of the cluster has another endpoint, option or code than the program",
    does="Says what differs, with both values, and asks nothing",
    status="failed",
    exit_code=3,
)
def test_a_process_that_would_ask_another_endpoint_is_refused_with_both_addresses(
    cluster, endpoint, command, fault: Fault, tmp_path, monkeypatch, capsys
):
    elsewhere = endpoint.url.replace("127.0.0.1", "localhost")
    monkeypatch.setenv("STUB_BASE_URL", elsewhere)
    assert command(*on_ray(tmp_path, 4, "good")) == fault.exit_code
    said = capsys.readouterr().err
    assert f"endpoint is {endpoint.url}/chat/completions there and {elsewhere}/chat/completions here" in said
    assert ExperimentStorage(tmp_path / "store").get_run("one").status.value == fault.status
    assert not endpoint.calls


@pytest.mark.fault(
    area="Clusters",
    wrong="A machine of the cluster cannot build the provider",
    does="Says which machine and why, and asks nothing",
    status="failed",
    exit_code=3,
)
def test_a_machine_without_the_endpoint_s_variable_is_named(
    cluster, endpoint, command, fault: Fault, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("ONLYHERE_BASE_URL", endpoint.url)
    words = [word.replace("stub/", "onlyhere/") for word in on_ray(tmp_path, 4, "good")]
    assert command(*words) == fault.exit_code
    assert (
        "cannot build the provider: ProviderError: provider 'onlyhere' needs to know where" in capsys.readouterr().err
    )
    assert ExperimentStorage(tmp_path / "store").get_run("one").status.value == fault.status
    assert not endpoint.calls


@pytest.mark.fault(
    area="Clusters",
    wrong="A budget runs out on a cluster",
    does="Spends what it may, over all processes, and stops; no call more",
    status="interrupted",
    exit_code=130,
)
def test_a_budget_is_spent_and_not_passed_over_all_processes(
    cluster, endpoint, command, fault: Fault, tmp_path, monkeypatch
):
    (tmp_path / "prices.json").write_text(json.dumps({"version": "mine", "models": {"good": [0.0, 1_000.0]}}))
    monkeypatch.setenv("THEMIS_PRICES", str(tmp_path / "prices.json"))
    # A call costs 0.002 dollars and could cost 0.02.
    words = [*on_ray(tmp_path, 60, "good"), "--budget-usd", "0.1", "--max-tokens", "20"]
    assert command(*words) == fault.exit_code
    stored = ExperimentStorage(tmp_path / "store").get_run("one")
    assert stored.status.value == fault.status
    assert stored.cost_usd == pytest.approx(0.002 * endpoint.calls.total())
    assert 0.1 - 0.02 < stored.cost_usd <= 0.1


@pytest.mark.fault(
    area="Clusters",
    wrong="The processes of a cluster could together pass a rate limit",
    does="Starts every call from one place, so that all processes together keep it",
    status="completed",
    exit_code=0,
)
def test_a_rate_limit_is_kept_over_all_processes(cluster, endpoint, command, fault: Fault, tmp_path):
    # At most ten seconds' worth, fifty, may come at once; the rest take two seconds.
    began = time.monotonic()
    words = [*on_ray(tmp_path, 60, "good"), "--rpm", "300", "--workers", "30"]
    assert command(*words) == fault.exit_code
    assert time.monotonic() - began > 0.9 * (60 - 50) / 5
    assert ExperimentStorage(tmp_path / "store").get_run("one").status.value == fault.status
    assert set(endpoint.calls.values()) == {1}


@pytest.mark.fault(
    area="Clusters",
    wrong="The program is killed while a cluster makes its calls",
    does="The cluster's processes end with it; the same command asks only what was under way again",
    status="in_progress",
    exit_code=-9,
)
def test_a_killed_program_leaves_no_process_on_the_cluster_and_is_resumed(
    cluster, endpoint, fault: Fault, tmp_path, monkeypatch
):
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    before = processes_of(cluster)
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / "store")])
    try:
        wait_until(lambda: program.poll() is not None or endpoint.calls.total() == 4)
    finally:
        program.kill()
    assert program.wait() == fault.exit_code
    wait_until(lambda: set(processes_of(cluster)) <= set(before))
    assert ExperimentStorage(tmp_path / "store").get_run("one").status.value == fault.status
    endpoint.gate.set()
    report = themis.evaluate(
        rows(12), model="stub/waits-at-the-gate", prompt="{question}", storage=tmp_path / "store", run_id="one",
        workers=4, execution_backend=RayExecutionBackend(), progress=False,
    )  # fmt: skip
    assert report.metric("exact_match").count == 12
    assert Counter(endpoint.calls.values()) == {1: 8, 2: 4}


@pytest.mark.fault(
    area="Clusters",
    wrong="A run of a memory sweep ends its process every time",
    does="Finishes the others, names the run that is not complete and says how to go on",
    status="in_progress",
    exit_code=3,
)
def test_a_sweep_with_a_run_that_cannot_be_finished_names_it(cluster, command, fault: Fault, tmp_path, capsys):
    (tmp_path / "agent.py").write_text(AGENT_THAT_KILLS)
    (tmp_path / "tiny.yml").write_text(MEMORY)
    words = ["memory", "sweep", "-c", "tiny.yml", "-a", "killing", "-a", "oracle", "--spans", "400", "--json"]
    words += ["--load", "agent.py", "--storage", "store", "--execution", "ray"]
    assert command(*words) == fault.exit_code
    said = capsys.readouterr()
    assert "1 of 2 runs are not complete (tiny 400 s0 - killing); run the same command again" in said.err
    assert list(json.loads(said.out)["failed"]) == ["tiny 400 s0 - killing"]
    storage = ExperimentStorage(tmp_path / "store")
    assert storage.get_run("tiny 400 s0 - killing").status.value == fault.status
    assert storage.get_run("tiny 400 s0 - oracle").status.value == "completed"
