"""What the examples share: runs one kind of test with some agents and prints the scores."""

import tempfile

from themis.config import parse_memory_config
from themis.memory import Benchmark, create_agent, create_filler, run
from themis.memory.definitions import conflicts_of, generate
from themis.storage import ExperimentStorage


def play(kind, *, agents, span=1_000, examples=3):
    config = parse_memory_config(
        {
            "config": {"run_name": kind},
            "datasets": {"args": {"memory_span": span, "dataset_examples": examples}, "datasets": [{"name": kind}]},
        }
    )
    defined = generate(config)
    with tempfile.TemporaryDirectory() as folder:
        for agent in agents:
            report = run(
                Benchmark(
                    run_id=agent,
                    name=kind,
                    tests=[one.example for one in defined],
                    kinds={one.example.test_id: one.kind for one in defined},
                    conflicts=conflicts_of(defined, []),
                    agent_name=agent,
                    make_agent=lambda session, agent=agent: create_agent(agent, session=session),
                    filler=create_filler("mixed"),
                ),
                ExperimentStorage(folder),
            )
            scores = report.item_scores("memory")
            print(f"{agent:<14} mean {report.metric('memory').mean:.2f}  {scores}")
