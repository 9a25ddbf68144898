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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from themis.api import perform
from themis.config.specification import MemorySpecification
from themis.memory.results import load_results, points_of, summarise_results
from themis.memory.spans import EffectiveSpan, Point, effective_span, group_by_distance
from themis.memory.sweep import Sweep, read_sweep, run_sweep
from themis.storage import ExperimentStorage

CONFIGURATIONS = Path(__file__).parents[1] / "configurations"
PROMISED = 0.93
SWEPT = ("2k", "8k", "32k")


class Place(NamedTuple):
    """A question: its kind of test, how far back its needle lies, its conversation, its test."""

    kind: str
    distance: int
    talk: int | None = None
    test: str | None = None


Random = random.Random


@dataclass(frozen=True)
class Memory:
    """What is left at a distance, and the distance at which half is."""

    span_tokens: float
    left: Callable[[float], float]


@dataclass(frozen=True)
class Agent:
    """How a simulated agent answers: are kinds equally hard, are scores graded, do conversations differ.

    The questions of a test have a mood in common where it has several.
    """

    hard_kinds: bool
    graded: bool
    conversations_differ: bool = False

    def answer(self, places: Sequence[Place], memory: Memory, chance: Random) -> list[Point]:
        kinds = sorted({place.kind for place in places})
        near = {kind: 0.5 if self.hard_kinds and number % 2 else 0.95 for number, kind in enumerate(kinds)}
        talks = sorted({place.talk for place in places if place.talk is not None})
        moods: dict[int | str | None, float] = {talk: chance.gauss(0, 0.8) for talk in talks}
        asked = Counter(place.test for place in places if place.test is not None)
        moods |= {test: chance.gauss(0, 0.8) for test in sorted(test for test in asked if asked[test] > 1)}
        points = []
        for kind, distance, talk, test in places:
            expected = near[kind] * memory.left(distance)
            mood = moods.get(test, 0.0) + (moods.get(talk, 0.0) if self.conversations_differ else 0.0)
            if mood and 0 < expected < 1:
                expected = 1 / (1 + math.exp(-math.log(expected / (1 - expected)) - mood))
            points.append(Point(kind, distance, self._score(expected, chance), talk, test))
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
    groups = group_by_distance([Point(place.kind, place.distance, 0.0) for place in places])
    if chance.random() < 0.5:
        group = chance.choice(groups)
        return max(1, chance.choice((group.low - 1, group.high + 1)))
    return math.exp(chance.uniform(math.log(groups[0].low), math.log(groups[-1].high)))


MEMORIES: dict[str, Callable[[Sequence[Place], Random], Memory]] = {
    "window": lambda places, chance: window(draw_span(places, chance)),
    "exponential": lambda places, chance: exponential(draw_span(places, chance)),
    "logistic": lambda places, chance: logistic(draw_span(places, chance)),
    "beyond the longest": lambda places, chance: chance.choice((exponential, logistic))(
        chance.uniform(1.1, 4) * max(place.distance for place in places)
    ),
    "flat": lambda places, chance: flat(chance),
}
WITH_END = ("window", "exponential", "logistic")


# --- distances --------------------------------------------------------------------------------------------------------


def designs(folder: Path) -> dict[str, list[Place]]:
    """The distances and kinds of every shipped configuration, of sweeps over spans, and of plain series."""
    runs = {path.stem: places_of(path, folder) for path in sorted(CONFIGURATIONS.glob("*.yml"))}
    found = dict(runs)
    # Each span and seed is a conversation; in the other every conversation holds every distance.
    per_span = [place._replace(talk=span) for span, of in enumerate(SWEPT) for place in runs[f"benchmark-{of}"]]
    found["sweep 2k, 8k, 32k"] = [place._replace(talk=None, test=f"{place.talk} {place.test}") for place in per_span]
    longest = max(place.distance for place in per_span)
    seeds = range(3)
    found["the same, 3 seeds"] = [
        place._replace(talk=10 * seed + (place.talk or 0)) for seed in seeds for place in per_span
    ]
    found["3 conversations of all"] = [
        place._replace(talk=seed, test=f"{place.talk} {place.test}") for seed in seeds for place in per_span
    ]
    for tests in (3, 5, 10):
        ladder = (longest // 16, longest // 4, longest // 2, 3 * longest // 4, longest)
        # As in real runs, tests that should be equally far are a few tokens apart.
        found[f"5 distances x {tests}"] = [
            Place("one kind", d + d * (7 * n % 5) // 100) for d in ladder for n in range(tests)
        ]
    found["16 distances x 2"] = [Place("one kind", 2_000 * n) for n in range(1, 17) for _ in range(2)]
    found["20 distances x 1"] = [Place("one kind", 1_600 * n) for n in range(1, 21)]
    for tests, questions in ((3, 8), (6, 8), (12, 4)):
        found[f"{tests} tests of {questions} questions"] = [
            Place("one kind", (longest * (n + 1) + 37 * test) // questions, None, str(test))
            for test in range(tests)
            for n in range(questions)
        ]
    return found


def places_of(configuration: Path, folder: Path) -> list[Place]:
    """Kinds and distances of a real run, with an agent that takes no time."""
    storage = ExperimentStorage(folder / configuration.stem)
    asked = MemorySpecification(configuration=str(configuration), agent="oracle", run_id="run")
    perform(asked, storage, progress=False)
    points = points_of(load_results(storage, "run").results)
    return [Place(point.kind, point.distance_tokens, None, point.test_id) for point in points]


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
    talks = any(place.talk is not None for place in places)
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
        groups = group_by_distance([Point(place.kind, place.distance, 0.0) for place in places])
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
                ("distances", "questions", *MEMORIES, "end not seen", "width / span"),
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
