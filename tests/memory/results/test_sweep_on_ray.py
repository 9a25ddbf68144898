"""Sweeps on a real Ray cluster, with stores on both databases."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from themis.backends.execution import ExecutionBackend
from themis.backends.ray import RayExecutionBackend
from themis.cli import themis
from themis.exceptions import ConfigurationError
from themis.memory.results import load_results
from themis.memory.sweep import Sweep, plan_sweep, read_sweep, run_sweep
from themis.storage import ExperimentStorage

CONFIGURATION = """
config: {run_name: tiny}
datasets:
  args: {memory_span: 400, dataset_examples: 2}
  datasets: [{name: colours}, {name: names}]
"""

# Notes what it is asked. The first time, its process is killed in the midst of the conversation.
KILLED_ONCE = """
import os
import signal
from pathlib import Path

from themis.memory.agents import Agent, register_agent

FOLDER = Path(__file__).parent


class KilledOnce(Agent):
    def reply(self, message, *, turn, now, presupplied=None):
        if presupplied is None:
            with (FOLDER / "asked").open("a") as file:
                file.write(f"{turn}\\n")
            if not (FOLDER / "killed").exists() and len((FOLDER / "asked").read_text().split()) == 3:
                (FOLDER / "killed").write_text(str(turn))
                os.kill(os.getpid(), signal.SIGKILL)
        return "I see."

    def reset(self):
        pass


register_agent("killed_once", KilledOnce)
"""


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    file = tmp_path / "tiny.yml"
    file.write_text(CONFIGURATION)
    return str(file)


def run_command(*words: str) -> Any:
    return CliRunner().invoke(themis, ["memory", "sweep", "--execution", "ray", *words])


def test_a_sweep_on_ray_equals_one_that_is_made_here(
    ray_cluster: object, configuration: str, store_location: str, tmp_path: Path
) -> None:
    sweep = Sweep(configuration=configuration, agents=["oracle", "window(300)"], spans=[400, 1_500], seeds=1)
    there, here = ExperimentStorage(store_location), ExperimentStorage(tmp_path / "here")
    told = []
    assert run_sweep(sweep, there, backend=RayExecutionBackend(), tell=lambda one, error: told.append(one)) == []
    assert run_sweep(sweep, here) == []

    assert sorted(told, key=repr) == sorted(plan_sweep(sweep), key=repr)
    for one in plan_sweep(sweep):
        assert scores(there, one.run_id) == scores(here, one.run_id)
    assert read_sweep(sweep, there).spans == read_sweep(sweep, here).spans
    there.close()


def scores(storage: ExperimentStorage, run_id: str) -> list[tuple[str, float | None, int]]:
    return [(one.test_id, one.score, one.distance_tokens) for one in load_results(storage, run_id).results]


def test_a_run_whose_process_is_lost_is_taken_up_again_exactly(
    ray_cluster: object, configuration: str, store_location: str, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(KILLED_ONCE)
    words = ["-c", configuration, "-a", "killed_once", "-a", "oracle", "--spans", "400", "--storage", store_location]
    words += ["--load", str(tmp_path / "agent.py")]
    made = run_command(*words)
    assert made.exit_code == 0, made.output
    assert "/2] tiny 400 s0 - killed_once\n" in made.stderr
    asked = Counter((tmp_path / "asked").read_text().split())
    # What it had answered it was not asked again.
    assert [turn for turn, times in asked.items() if times > 1] == [(tmp_path / "killed").read_text()]
    assert len(asked) > 3


class SeveralMachines(ExecutionBackend):
    """A cluster as it looks from afar."""

    is_on_one_machine = False

    def map(self, func: Any, items: Any, **options: Any) -> Any:
        raise AssertionError("nothing may be sent")

    stream = map


def test_a_file_cannot_be_the_store_of_several_machines(configuration: str, tmp_path: Path) -> None:
    sweep = Sweep(configuration=configuration, agents=["oracle"], spans=[400])
    with pytest.raises(ConfigurationError, match=r"give a PostgreSQL database: --storage postgresql://"):
        run_sweep(sweep, ExperimentStorage(tmp_path / "store"), backend=SeveralMachines())
