"""Whether the interval of the effective span holds the true one: simulated memories at the distances of real runs.

    python benchmarks/memory_spans.py [simulations]

A simulated agent scores of each kind of test (easy ones 0.95, hard ones 0.5) the share that its memory keeps at the test's
distance. Its true span is where that share falls to half; half of them lie within a token of a distance that is tested,
where it is hardest to tell. Prints Markdown tables and exits with 1 if a promise is broken: every interval holds the true
span in at least 93 of 100 simulations, and the window agent's window lies in the interval that a sweep reports. 400
simulations take some ten minutes of CPU.
"""

from __future__ import annotations

import logging
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from themis.api import perform
from themis.config.specification import MemorySpecification
from themis.memory.results import load_results, summarise_results
from themis.memory.spans import EffectiveSpan, Point, effective_span, group_by_distance
from themis.memory.sweep import Sweep, read_sweep, run_sweep
from themis.storage import ExperimentStorage

CONFIGURATIONS = Path(__file__).parents[1] / "configurations"
PROMISED = 0.93
SWEPT = ("2k", "8k", "32k")
Place = tuple[str, int, int | None]
Random = random.Random


@dataclass(frozen=True)
class Memory:
    """What is left at a distance, and the distance at which half is."""

    span_tokens: float
    left: Callable[[float], float]


@dataclass(frozen=True)
class Agent:
    """How a simulated agent answers: are kinds equally hard, are scores graded, do conversations differ."""

    hard_kinds: bool
    graded: bool
    conversations_differ: bool = False

    def answer(self, places: Sequence[Place], memory: Memory, chance: Random) -> list[Point]:
        kinds = sorted({kind for kind, _, _ in places})
        near = {kind: 0.5 if self.hard_kinds and number % 2 else 0.95 for number, kind in enumerate(kinds)}
        moods = {talk: chance.gauss(0, 0.8) for talk in sorted({talk for _, _, talk in places if talk is not None})}
        points = []
        for kind, distance, talk in places:
            expected = near[kind] * memory.left(distance)
            if self.conversations_differ and talk is not None and 0 < expected < 1:
                expected = 1 / (1 + math.exp(-math.log(expected / (1 - expected)) - moods[talk]))
            points.append(Point(kind, distance, self._score(expected, chance), talk))
        return points

    def _score(self, expected: float, chance: Random) -> float:
        if not self.graded or not 0 < expected < 1:
            return float(chance.random() < expected)
        return chance.betavariate(2 * expected, 2 * (1 - expected))


# --- memories ---------------------------------------------------------------------------------------------------------


def window(span: float) -> Memory:
    return Memory(span, lambda distance: 1.0 if distance <= span else 0.0)


def exponential(span: float) -> Memory:
    return Memory(span, lambda distance: 2 ** (-distance / span))


def logistic(span: float) -> Memory:
    """Falls from nine tenths to a tenth around `span`, over nine tenths of it."""
    width = span / 5
    whole = 1 / (1 + math.exp(-span / width))
    half = span + width * math.log(2 / whole - 1)
    return Memory(half, lambda distance: 1 / (1 + math.exp(min(500.0, (distance - span) / width))) / whole)


def flat(chance: Random) -> Memory:
    share = chance.choice((0.3, 0.5, 0.7, 0.9, 1.0))
    return Memory(math.inf, lambda distance: share)


def draw_span(places: Sequence[Place], chance: Random) -> float:
    """Half of the time a token from a group of distances, otherwise anywhere between the nearest and the farthest."""
    groups = group_by_distance([Point(kind, distance, 0.0) for kind, distance, _ in places])
    if chance.random() < 0.5:
        group = chance.choice(groups)
        return max(1, chance.choice((group.low - 1, group.high + 1)))
    return math.exp(chance.uniform(math.log(groups[0].low), math.log(groups[-1].high)))


MEMORIES: dict[str, Callable[[Sequence[Place], Random], Memory]] = {
    "window": lambda places, chance: window(draw_span(places, chance)),
    "exponential": lambda places, chance: exponential(draw_span(places, chance)),
    "logistic": lambda places, chance: logistic(draw_span(places, chance)),
    "beyond the longest": lambda places, chance: chance.choice((exponential, logistic))(
        chance.uniform(1.1, 4) * max(distance for _, distance, _ in places)
    ),
    "flat": lambda places, chance: flat(chance),
}
WITH_END = ("window", "exponential", "logistic")


# --- distances --------------------------------------------------------------------------------------------------------


def designs(folder: Path) -> dict[str, list[Place]]:
    """The distances and kinds of every shipped configuration, of sweeps over spans, and of plain series."""
    runs = {path.stem: places_of(path, folder) for path in sorted(CONFIGURATIONS.glob("*.yml"))}
    found = dict(runs)
    sweep = [(kind, distance) for span in SWEPT for kind, distance, _ in runs[f"benchmark-{span}"]]
    found["sweep 2k, 8k, 32k"] = [(kind, distance, None) for kind, distance in sweep]
    longest = max(distance for _, distance in sweep)
    # Each span and seed is a conversation; in the other every conversation holds every distance.
    per_span = [(kind, d, span) for span, of in enumerate(SWEPT) for kind, d, _ in runs[f"benchmark-{of}"]]
    found["the same, 3 seeds"] = [(kind, d, 10 * seed + span) for seed in range(3) for kind, d, span in per_span]
    found["3 conversations of all"] = [(kind, d, seed) for seed in range(3) for kind, d, _ in per_span]
    for tests in (3, 5, 10):
        ladder = (longest // 16, longest // 4, longest // 2, 3 * longest // 4, longest)
        # As in real runs, tests that should be equally far are a few tokens apart.
        places = [("one kind", d + d * (7 * n % 5) // 100, None) for d in ladder for n in range(tests)]
        found[f"5 distances x {tests}"] = places
    found["16 distances x 2"] = [("one kind", 2_000 * n, None) for n in range(1, 17) for _ in range(2)]
    found["20 distances x 1"] = [("one kind", 1_600 * n, None) for n in range(1, 21)]
    return found


def places_of(configuration: Path, folder: Path) -> list[Place]:
    """Kinds and distances of a real run, with an agent that takes no time."""
    storage = ExperimentStorage(folder / configuration.stem)
    asked = MemorySpecification(configuration=str(configuration), agent="oracle", run_id="run")
    perform(asked, storage, progress=False)
    return [(result.dataset_name, result.distance_tokens, None) for result in load_results(storage, "run").results]


# --- simulations ------------------------------------------------------------------------------------------------------


@dataclass
class Count:
    """What became of the intervals of one memory at one design."""

    simulations: int = 0
    held: int = 0
    open: int = 0
    widths: list[float] = field(default_factory=list)

    def add(self, low: float, high: float | None, true_span: float) -> None:
        self.simulations += 1
        self.held += low <= true_span and (high is None or true_span <= high)
        self.open += high is None
        if high is not None and true_span < math.inf:
            self.widths.append((high - low) / true_span)

    @property
    def coverage(self) -> float:
        return self.held / self.simulations


Interval = Callable[[list[Point]], tuple[float, float | None]]


def estimate(points: list[Point]) -> tuple[float, float | None]:
    span = effective_span(points)
    assert span is not None
    return span.low, span.high


def simulate(places: Sequence[Place], name: str, simulations: int, interval: Interval = estimate) -> Count:
    chance, count = Random(f"{name} {len(places)}"), Count()
    talks = any(talk is not None for _, _, talk in places)
    agents = [Agent(hard, graded, talks) for hard, graded in ((False, False), (True, False), (True, True))]
    for number in range(simulations):
        memory = MEMORIES[name](places, chance)
        low, high = interval(agents[number % len(agents)].answer(places, memory, chance))
        count.add(low, high, memory.span_tokens)
    return count


def coverage_rows(
    found: dict[str, list[Place]], simulations: int, interval: Interval = estimate
) -> Iterator[tuple[list[str], bool]]:
    for design, places in found.items():
        counts = {name: simulate(places, name, simulations, interval) for name in MEMORIES}
        ending = [counts[name] for name in WITH_END]
        widths = sorted(width for count in ending for width in count.widths)
        unseen = sum(count.open for count in ending) / sum(count.simulations for count in ending)
        yield (
            [
                design,
                str(len(places)),
                *(f"{100 * count.coverage:.1f}" for count in counts.values()),
                f"{100 * unseen:.0f} %",
                f"{widths[len(widths) // 2]:.1f}" if widths else "–",
            ],
            all(count.coverage >= PROMISED for count in counts.values()),
        )


def edge_rows(found: dict[str, list[Place]], simulations: int) -> Iterator[tuple[list[str], bool]]:
    """The hardest agents: half is left a token before or after a tested distance, answers are right or wrong."""
    agent = Agent(hard_kinds=True, graded=False)
    for design, places in found.items():
        groups = group_by_distance([Point(kind, distance, 0.0) for kind, distance, _ in places])
        chosen = [groups[round(share * (len(groups) - 1))] for share in (0, 0.5, 1)]
        covered: dict[str, float] = {}
        for fading in (exponential, logistic):
            for span in sorted({max(1, edge) for group in chosen for edge in (group.low - 1, group.high + 1)}):
                memory, chance, count = fading(span), Random(f"{span} {len(places)}"), Count()
                for _ in range(simulations):
                    count.add(*estimate(agent.answer(places, memory, chance)), memory.span_tokens)
                covered[f"{fading.__name__}, half at {span:,}"] = count.coverage
        worst = min(covered, key=lambda name: covered[name])
        yield [design, str(len(covered)), f"{100 * covered[worst]:.1f}", worst], covered[worst] >= PROMISED


# --- real runs --------------------------------------------------------------------------------------------------------

AGENTS = {"window(20000)": 20_000, "window(8000)": 8_000, "oracle": math.inf, "amnesiac": 0}


def real_rows(folder: Path) -> Iterator[tuple[list[str], bool]]:
    """Agents of known memory: in a run at one span, in a run at several, and in a sweep."""
    storage = ExperimentStorage(folder / "real")
    for name in ("benchmark-32k", "span-32k"):
        for agent in AGENTS:
            asked = MemorySpecification(
                configuration=str(CONFIGURATIONS / f"{name}.yml"), agent=agent, run_id=f"{name} {agent}"
            )
            perform(asked, storage, progress=False)
            span = summarise_results(load_results(storage, f"{name} {agent}")).effective_span
            assert span is not None
            yield [agent, name, span.sentence], holds(span, AGENTS[agent])
    sweep = Sweep(
        configuration=str(CONFIGURATIONS / "benchmark-32k.yml"),
        agents=list(AGENTS),
        spans=[2_000, 8_000, 16_000, 32_000],
    )
    assert run_sweep(sweep, storage) == []
    for view in read_sweep(sweep, storage).agents:
        span = view.summary.effective_span
        assert span is not None
        yield [view.name, "benchmark-32k at 2k, 8k, 16k, 32k", span.sentence], holds(span, AGENTS[view.name])


def holds(span: EffectiveSpan, true_span: float) -> bool:
    return span.low <= true_span and (span.high is None or true_span <= span.high)


def main() -> int:
    logging.disable(logging.WARNING)
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = designs(folder)
        tables = {
            f"Intervals that hold the true span, in % of {simulations} simulations": (
                ("distances", "tests", *MEMORIES, "end not seen", "width / span"),
                coverage_rows(found, simulations),
            ),
            f"The worst of the memories that end beside a tested distance, {simulations // 2} simulations each": (
                ("distances", "memories", "covered", "which"),
                edge_rows(found, simulations // 2),
            ),
            "Agents of known memory": (("agent", "configuration", "effective span"), real_rows(folder)),
        }
        kept = True
        for title, (header, rows) in tables.items():
            print(f"\n### {title}\n\n| {' | '.join(header)} | |\n|{'---|' * (len(header) + 1)}")
            for cells, holds_promise in rows:
                kept &= holds_promise
                print(f"| {' | '.join(cells)} | {'ok' if holds_promise else '**broken**'} |", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
