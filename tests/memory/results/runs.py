"""Small memory runs with agents whose scores are known, made once for many tests."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from themis.config import load_memory_config
from themis.memory import definitions
from themis.memory.agents import AgentSettings, agent_maker
from themis.memory.agents.agent import Agent, Reply
from themis.memory.benchmark import Benchmark
from themis.memory.driver import run
from themis.memory.filler import create_filler
from themis.storage import ExperimentStorage

CONFIGURATION = """
config: {run_name: small}
datasets:
  args: {memory_span: 700, dataset_examples: 2}
  datasets: [{name: colours}, {name: names}, {name: shopping}, {name: prospective_memory}, {name: jokes}]
"""
HOSTILE = "<script>alert('x')</script><img src=https://example.org/x.png>\u202e\x1b[31m"


class Hostile(Agent):
    """Says what would harm a careless page."""

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        return Reply(presupplied or HOSTILE)

    def reset(self) -> None:
        pass


def small_run(
    storage: ExperimentStorage, agent: str, run_id: str | None = None, *, isolated: bool = False, **changes: Any
) -> str:
    """Runs the small configuration with an agent of a name, or with a hostile one; returns the run id."""
    file = Path(storage.root) / "small.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(CONFIGURATION)
    config = load_memory_config(file)
    defined = definitions.prepare(config, storage, reuse=lambda _: True)
    run_id = run_id or f"small - {agent}"
    made = agent_maker(agent, AgentSettings(), {}) if agent != "hostile" else lambda session: Hostile()
    settings = {
        "run_id": run_id,
        "name": "small",
        "tests": [one.example for one in defined],
        "kinds": {one.example.test_id: one.kind for one in defined},
        "conflicts": definitions.conflicts_of(defined, ()),
        "agent_name": agent,
        "make_agent": made,
        "filler": create_filler("facts", seed=0),
        "start": datetime(2030, 1, 1, tzinfo=UTC),
        "isolated": isolated,
    }
    if isolated:
        settings["introduction"] = None
    run(Benchmark(**{**settings, **changes}), storage)
    return run_id
