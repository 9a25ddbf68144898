"""Whether intervals and tests of numbers that are no means keep their promises: coverage, false alarms, and CPU time.

    python benchmarks/corpus_metrics.py [simulations]

Prints Markdown tables. 1000 simulations take some ten minutes of CPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from themis.comparison.corpus import PairedCorpora
from themis.evaluation.aggregations import OfClasses
from themis.evaluation.corpus import Corpus, Observation
from themis.evaluation.resolve import resolve_aggregation

Rng = np.random.Generator
Statistics = list[list[object]]

SIZES = (30, 200)


@dataclass(frozen=True)
class World:
    """Items as they are drawn, and the number that all of them together have."""

    name: str
    aggregation: str
    draw: Callable[[int, Rng], Statistics]
    truth: float


def main() -> None:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    found = list(worlds())
    print(f"### Coverage of 95 % intervals in {simulations} samples\n")
    print(
        "| number | true value | mean of the values, n = 30 | n = 30 | width | n = 200 | width |\n|---|---|---|---|---|---|---|"
    )
    for world in found:
        cells = [coverage(world, n, simulations) for n in SIZES]
        shown = " | ".join(f"{100 * cell.covered:.1f} % | {cell.width:.2f}" for cell in cells)
        print(f"| {world.name} | {world.truth:.3f} | {cells[0].mean:.3f} | {shown} |", flush=True)
    print(f"\n### Coverage in clusters of five, {simulations} samples\n")
    print("| number | 10 clusters | 40 clusters |\n|---|---|---|")
    for world in found:
        if world.name in CLUSTERED:
            cells = [coverage(world, 5 * groups, simulations, size=5) for groups in (10, 40)]
            print(f"| {world.name} | {' | '.join(f'{100 * cell.covered:.1f} %' for cell in cells)} |", flush=True)
    pairs = max(200, simulations // 2)
    print(f"\n### Two runs that do not differ, {pairs} pairs: significant at 0.05, and intervals that hold 0\n")
    print("| number | n = 30: permutation | interval | n = 200: permutation | interval |\n|---|---|---|---|---|")
    for world in found:
        told = [differences(world, n, pairs) for n in SIZES]
        shown = " | ".join(f"{100 * alarms:.1f} % | {100 * covered:.1f} %" for alarms, covered in told)
        print(f"| {world.name} | {shown} |", flush=True)
    timings()


# --- what is drawn ------------------------------------------------------------------------------------------------------

CLUSTERED = ("macro-F1, 3 classes, 80 % right", "corpus BLEU, 0.34", "ECE, over-confident")


def worlds() -> Iterator[World]:
    for name, aggregation, accuracy, shares in (
        ("macro-F1, 3 classes, 80 % right", "macro_f1", 0.8, (5, 3, 2)),
        ("macro-F1, 5 classes, 95 % right", "macro_f1", 0.95, (1, 1, 1, 1, 1)),
        ("macro-F1, a class of 5 %", "macro_f1", 0.85, (80, 15, 5)),
        ("MCC, 2 classes, 80 % right", "mcc", 0.8, (1, 1)),
        ("MCC, a class of 10 %", "mcc", 0.9, (9, 1)),
        ("kappa, 4 classes, 70 % right", "kappa", 0.7, (4, 3, 2, 1)),
        ("kappa, 2 classes, 97 % right", "kappa", 0.97, (1, 1)),
    ):
        yield of_classes(name, aggregation, accuracy, np.array(shares, dtype=float))
    for name, power in (("ECE, calibrated", 1.0), ("ECE, slightly over-confident", 1.3), ("ECE, over-confident", 2.5)):
        yield of_confidences(name, power)
    yield World("TER, 0.29", "ter", draw_edits, 2 / 7)
    for share in (0.6, 0.3):
        yield of_words(share)


def of_classes(name: str, aggregation: str, accuracy: float, shares: np.ndarray) -> World:
    count = len(shares)
    table = np.full((count, count), (1 - accuracy) / (count - 1))
    np.fill_diagonal(table, accuracy)
    table *= (shares / shares.sum())[:, None]

    def draw(n: int, rng: Rng) -> Statistics:
        cells = rng.choice(count * count, size=n, p=table.ravel())
        return [[str(cell // count), str(cell % count)] for cell in cells]

    found = resolve_aggregation(aggregation)
    assert isinstance(found, OfClasses)
    counts = (np.diag(table), table.sum(axis=1), np.append(table.sum(axis=0), 0.0))
    return World(name, aggregation, draw, float(found.of_counts(*(one[None] for one in counts))[0]))


def of_confidences(name: str, power: float) -> World:
    def draw(n: int, rng: Rng) -> Statistics:
        confidence = rng.beta(4, 1.5, size=n)
        right = rng.random(n) < confidence**power
        return [[float(one), float(other)] for one, other in zip(confidence, right, strict=True)]

    confidence = np.random.default_rng(0).beta(4, 1.5, size=2_000_000)
    bins = np.clip(np.ceil(confidence * 10).astype(int) - 1, 0, 9)
    gaps = np.bincount(bins, weights=confidence - confidence**power, minlength=10)
    return World(name, "ece(bins=10)", draw, float(np.abs(gaps).sum() / confidence.size))


def draw_edits(n: int, rng: Rng) -> Statistics:
    words = rng.poisson(20, size=n) + 3
    edits = rng.binomial(words, rng.beta(2, 5, size=n))
    return [[int(one), int(other)] for one, other in zip(edits, words, strict=True)]


def of_words(share: float) -> World:
    def draw(n: int, rng: Rng) -> Statistics:
        found: Statistics = []
        for _ in range(n):
            words = int(rng.poisson(15)) + 4
            right = rng.random(words) < rng.beta(6 * share, 6 * (1 - share))
            matches = [
                int(np.lib.stride_tricks.sliding_window_view(right, order).all(axis=1).sum()) for order in (1, 2, 3, 4)
            ]
            found.append([words, words + int(rng.integers(-2, 3)), *matches, *(words - order for order in range(4))])
        return found

    sums = np.asarray(draw(60_000, np.random.default_rng(5)), dtype=float).sum(axis=0, keepdims=True)
    truth = float(resolve_aggregation("corpus_bleu").compute(sums)[0])
    return World(f"corpus BLEU, {truth:.2f}", "corpus_bleu", draw, truth)


# --- what is measured ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coverage:
    covered: float
    width: float
    mean: float


def coverage(world: World, n: int, simulations: int, size: int = 1) -> Coverage:
    rng = np.random.default_rng(11)
    hits, widths, values = 0, 0.0, 0.0
    for _ in range(simulations):
        corpus = Corpus.build(world.aggregation, world.name, observed(world.draw, n, rng, size))
        interval = corpus.interval()
        assert interval is not None
        hits += interval[0] - 1e-12 <= world.truth <= interval[1] + 1e-12
        widths += interval[1] - interval[0]
        values += corpus.value
    return Coverage(hits / simulations, widths / simulations, values / simulations)


def observed(draw: Callable[[int, Rng], Statistics], n: int, rng: Rng, size: int) -> list[Observation]:
    """In clusters three of five items are alike: the first one's statistics again."""
    drawn = draw(n, rng)
    alike = [drawn[place - place % size] if 0 < place % size < 3 else drawn[place] for place in range(n)]
    return [
        Observation(str(place), None if size == 1 else str(place // size), {"statistics": one})
        for place, one in enumerate(alike)
    ]


def differences(world: World, n: int, simulations: int) -> tuple[float, float]:
    """How often two runs of one world are told apart, and how often the interval of their difference holds 0."""
    rng = np.random.default_rng(12)
    alarms, covered = 0, 0
    for _ in range(simulations):
        a, b = pair_of_runs(world, n, rng)
        corpora = PairedCorpora.build(world.aggregation, a, b)
        alarms += corpora.permute(500, 0)[0] <= 0.05
        interval = corpora.interval(0.05)
        covered += interval is not None and interval[0] <= 0 <= interval[1]
    return alarms / simulations, covered / simulations


def pair_of_runs(world: World, n: int, rng: Rng) -> tuple[list[Statistics], list[Statistics]]:
    """Two runs that agree on half of the items, as runs on the same questions do."""
    first, second = world.draw(n, rng), world.draw(n, rng)
    same = rng.random(n) < 0.5
    if isinstance(first[0][0], str):
        # The class is the item's: both runs are asked for the same one.
        second = [one if one[0] == mine[0] else mine for mine, one in zip(first, second, strict=True)]
    # Who answers first must not be told by who keeps the item.
    swapped = rng.random(n) < 0.5
    pairs = [(one, one if kept else other) for one, other, kept in zip(first, second, same, strict=True)]
    pairs = [(other, one) if swap else (one, other) for (one, other), swap in zip(pairs, swapped, strict=True)]
    return [[one] for one, _ in pairs], [[other] for _, other in pairs]


def timings() -> None:
    print("\n### CPU seconds of one number with its interval, and of one comparison\n")
    print("| number | items | interval | comparison |\n|---|---|---|---|")
    for name, aggregation, kinds in (("corpus BLEU", "corpus_bleu", 0), ("macro-F1, 1,000 classes", "macro_f1", 1000)):
        for n in (1_000, 100_000):
            rng = np.random.default_rng(3)
            if kinds:
                expected, said = rng.integers(kinds, size=(2, n)), rng.random(n) < 0.8
                drawn = [
                    [str(one), str(one if right else other)] for one, other, right in zip(*expected, said, strict=True)
                ]
            else:
                drawn = [[int(w), int(w), *(int(w * 0.8**k) for k in (1, 2, 3, 4)), w, w - 1, w - 2, w - 3]
                         for w in (rng.poisson(15, size=n) + 4).tolist()]  # fmt: skip
            start = time.process_time()
            given = [Observation(str(place), None, {"statistics": one}) for place, one in enumerate(drawn)]
            Corpus.build(aggregation, name, given).summarise()
            middle = time.process_time()
            corpora = PairedCorpora.build(aggregation, [[one] for one in drawn], [[one] for one in reversed(drawn)])
            corpora.permute(10_000, 0)
            corpora.interval(0.05)
            print(f"| {name} | {n:,} | {middle - start:.2f} | {time.process_time() - middle:.1f} |", flush=True)


if __name__ == "__main__":
    main()
