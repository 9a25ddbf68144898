"""Whether keys are true, and what agents of known ability score: every kind of test, in one conversation with all others.

    python benchmarks/memory_keys.py [seeds] [span]

Plays all built-in kinds together, three examples each, for so many seeds, with `perfect`, `retrieval`, `amnesiac` and
`parrot`; and every shipped configuration with `perfect`. Prints the mean score of each kind as a Markdown table and exits
with 1 if `perfect` does not score 1 on every test, or if an agent without memory scores more than nothing. A hundred
seeds take some ten minutes of CPU.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator

from themis.config import load_memory_config
from themis.config.loading import shipped_configurations
from themis.config.schema import MemoryConfig, MemoryTestConfig
from themis.memory.agents import create_agent
from themis.memory.definitions import Defined, conflicts_of, generate
from themis.memory.examples import MEMORY_TESTS, find_kinds
from themis.memory.filler import create_filler
from themis.memory.rehearsal import rehearse

AGENTS = ("perfect", "retrieval", "amnesiac", "parrot")
EXAMPLES = 3
# Agents other than `perfect` are played on so many of the seeds.
FEW_SEEDS = 5


def readable_kinds() -> list[str]:
    return [
        name for name in sorted(find_kinds("themis.memory.tests")) if MEMORY_TESTS.get(name).make_reader() is not None
    ]


def play(agent: str, config: MemoryConfig, defined: list[Defined]) -> Iterator[tuple[str, float]]:
    """The kind and the score of every test; a test without a verdict scores nothing here."""
    kinds = {one.example.test_id: one.kind for one in defined}
    filler = create_filler(config.filler, seed=config.seed)
    conflicts = conflicts_of(defined, config.incompatibilities)
    for test_id, outcome in rehearse(create_agent(agent), defined, conflicts, filler).items():
        yield kinds[test_id], 0.0 if outcome.grade.failed else outcome.grade.score


def rows(seeds: Iterable[int], span: int) -> Iterator[tuple[str, dict[str, list[float]]]]:
    kinds = readable_kinds()
    scores: dict[str, dict[str, list[float]]] = {kind: defaultdict(list) for kind in kinds}
    for number, seed in enumerate(seeds):
        tests = [MemoryTestConfig(name=name, examples=EXAMPLES, arguments={"memory_span": span}) for name in kinds]
        config = MemoryConfig(run_name="keys", tests=tests, seed=seed)
        defined = generate(config)
        for agent in AGENTS if number < FEW_SEEDS else AGENTS[:1]:
            for kind, score in play(agent, config, defined):
                scores[kind][agent].append(score)
    yield from scores.items()


def main() -> int:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    span = int(sys.argv[2]) if len(sys.argv) > 2 else 12_000
    kept = True
    print(f"| kind | {' | '.join(AGENTS)} |\n|---|{'---|' * len(AGENTS)}")
    for kind, scores in rows(range(seeds), span):
        means = {agent: sum(found) / len(found) for agent, found in scores.items()}
        kept &= min(scores["perfect"]) == 1.0 and means["amnesiac"] == means["parrot"] == 0.0
        print(f"| `{kind}` | {' | '.join(f'{means[agent]:.3f}' for agent in AGENTS)} |", flush=True)
    print("\n| configuration | tests | perfect |\n|---|---|---|")
    for name in shipped_configurations():
        config = load_memory_config(name)
        found = [score for _, score in play("perfect", config, generate(config))]
        kept &= min(found) == 1.0
        print(f"| {name} | {len(found)} | {sum(found) / len(found):.3f} |", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
