"""Whether the statistics keep their promises: p-values under the null, coverage of intervals, false alarms, and CPU time.

    python benchmarks/statistics_coverage.py [simulations]

Prints Markdown tables and exits with 1 if a promise is broken. 2000 simulations take some eight minutes of CPU.

The promise of an interval is to cover the truth in 93 to 99 of 100 samples at a nominal 95. Two kinds of rows promise less.
"at least": few scores of few values allow only some coverages (five right or wrong ones of which 98 % are right: 90.4 or
99.6 %), and few differences cannot rule out rare large ones, so only 93 % from below is held. "as far as possible": nothing
bounds scores and they are skewed, so that no interval is sure to cover; 90 % is held from ten items on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from themis.comparison.effects import proportion_effects
from themis.comparison.engine import StatisticalTest, TestSettings, difference_with_interval, run_test
from themis.comparison.power import PairedProportions, attempt_agreement
from themis.comparison.ranking import rank_runs
from themis.comparison.resampling import bootstrap_interval
from themis.comparison.sequential import ConfidenceSequence
from themis.comparison.statistics import (
    PairedTest,
    Pairs,
    bootstrap_test,
    mcnemar_test,
    pair,
    paired_permutation_test,
    paired_t_test,
    wilcoxon_test,
)
from themis.core.intervals import pass_at_k, summarise
from themis.memory.results import ScoredTest, interval_of_sum

Rng = np.random.Generator


@dataclass(frozen=True)
class Row:
    """One line of a table: its cells, and whether the promise was kept."""

    cells: tuple[str, ...]
    kept: bool


def main() -> int:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    tables = {
        f"p-values of {simulations} comparisons in which nothing differs": (
            ("test", "scores", "KS p-value", "share at or below 0.05", ""),
            null_p_values(simulations),
        ),
        f"Coverage of 95 % intervals of a mean in {simulations} samples, with their mean width": (
            ("scores", *(f"{n} items" for n in SIZES), "promise", ""),
            mean_coverage(simulations),
        ),
        f"Coverage of 95 % intervals of a mean over clusters in {simulations} samples, with their mean width": (
            ("scores", *CLUSTERS, "promise", ""),
            clustered_coverage(simulations),
        ),
        f"Coverage of 95 % intervals of a difference in {simulations} samples, with their mean width": (
            ("differences", *(f"{n} items" for n in SIZES), "promise", ""),
            difference_coverage(simulations),
        ),
        f"Coverage of 95 % intervals of a memory total in {simulations} samples, with their mean width": (
            ("tests", *(f"{name} datasets" for name in TOTALS), "promise", ""),
            total_coverage(simulations),
        ),
        f"Coverage of 95 % intervals of the agreement of attempts in {simulations} samples, with their mean width": (
            ("attempts", *(f"{items} x {made}" for items, made in ATTEMPTS), "promise", ""),
            agreement_coverage(simulations),
        ),
        f"Coverage of the other 95 % intervals in {simulations} samples": (
            ("interval", "scores", "covered", ""),
            coverage(simulations),
        ),
        f"Sequential test at alpha 0.05, looked at after every item, {simulations} streams": (
            ("stream", "items", "verdicts", "median items to a verdict", ""),
            sequential(simulations),
        ),
        "CPU seconds of one comparison, 10,000 resamples": (
            ("test", "scores", "10,000 items", "100,000 items", ""),
            timings(),
        ),
    }
    kept = True
    for title, (header, rows) in tables.items():
        print(f"\n### {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
        for row in rows:
            kept &= row.kept
            print(f"| {' | '.join(row.cells)} | {'ok' if row.kept else '**broken**'} |", flush=True)
    return 0 if kept else 1


def null_p_values(simulations: int) -> Iterator[Row]:
    clusters = np.repeat(np.arange(40), 5)
    continuous: list[tuple[str, str, Callable[[Rng, int], PairedTest]]] = [
        ("paired t", "normal, 50 items", lambda rng, seed: paired_t_test(*normal_pair(rng, 50))),
        (
            "paired t, clustered",
            "40 clusters of 5",
            lambda rng, seed: paired_t_test(*clustered_pair(rng, clusters), clusters=clusters),
        ),
        (
            "permutation, sampled",
            "skewed, 50 items",
            lambda rng, seed: paired_permutation_test(*skewed_pair(rng, 50), resamples=1999, seed=seed),
        ),
        (
            "permutation, clustered",
            "40 clusters of 5",
            lambda rng, seed: paired_permutation_test(
                *clustered_pair(rng, clusters), clusters=clusters, resamples=1999, seed=seed
            ),
        ),
        (
            "permutation, exact",
            "continuous, 20 items",
            lambda rng, seed: paired_permutation_test(*skewed_pair(rng, 20)),
        ),
        ("Wilcoxon, exact", "skewed, 100 items", lambda rng, seed: wilcoxon_test(*skewed_pair(rng, 100))),
        ("Wilcoxon, approximate", "skewed, 1000 items", lambda rng, seed: wilcoxon_test(*skewed_pair(rng, 1000))),
    ]
    for name, scores, test in continuous:
        p_values = simulated_p_values(test, simulations)
        uniform = stats.kstest(p_values, "uniform").pvalue
        share = np.mean(p_values <= 0.05)
        yield Row(
            (name, scores, f"{uniform:.3f}", f"{share:.3f}"), uniform > 0.01 and share <= 0.05 + slack(simulations)
        )
    discrete: list[tuple[str, str, Callable[[Rng, int], PairedTest]]] = [
        ("McNemar, exact", "0/1, 200 items", lambda rng, seed: mcnemar_test(*binary_pair(rng, 200))),
        (
            "permutation, exact",
            "graded in tenths, 500",
            lambda rng, seed: paired_permutation_test(*graded_pair(rng, 500)),
        ),
        ("permutation, exact", "0/1, 30 items", lambda rng, seed: paired_permutation_test(*binary_pair(rng, 30))),
    ]
    for name, scores, test in discrete:
        # Sums of grades take few values, and so do p-values: they can only lie above uniform ones.
        p_values = simulated_p_values(test, simulations)
        too_small = stats.kstest(p_values, "uniform", alternative="greater").pvalue
        share = np.mean(p_values <= 0.05)
        kept = too_small > 0.01 and share <= 0.05 + slack(simulations)
        yield Row((name, scores, f"{too_small:.3f} (one-sided)", f"{share:.3f}"), kept)


def simulated_p_values(test: Callable[[Rng, int], PairedTest], simulations: int) -> Any:
    rng = np.random.default_rng(2024)
    return np.array([test(rng, seed).p_value for seed in range(simulations)])


def slack(simulations: int) -> float:
    """Three standard errors of a share of 5 %."""
    return 3 * (0.05 * 0.95 / simulations) ** 0.5


# --- coverage -----------------------------------------------------------------------------------------------------------

SIZES = (5, 10, 30, 200)
# What a row promises: the least and the most that it covers, in words and numbers.
PROMISES = {"93 to 99 %": (0.93, 0.99), "at least 93 %": (0.93, 1.0), "as far as possible": (0.85, 1.0)}
CLUSTERS: dict[str, Callable[[Rng], Any]] = {
    "4 of 5": lambda rng: np.full(4, 5),
    "10 of 5": lambda rng: np.full(10, 5),
    "40 of 5": lambda rng: np.full(40, 5),
    "5 unequal": lambda rng: rng.geometric(0.2, size=5),
    "20 unequal": lambda rng: rng.geometric(0.2, size=20),
}
TOTALS = {
    "11 x 3": [3] * 11,
    "18 x 1": [1] * 18,
    "11 x 10": [10] * 11,
    "11 x 1 to 20": [1, 1, 2, 3, 3, 5, 5, 8, 10, 10, 20],
}
ATTEMPTS = ((30, 2), (30, 4), (150, 2), (150, 4))


@dataclass
class Cell:
    """How often an interval held the truth, and how wide it was."""

    simulations: int
    covered: int = 0
    width: float = 0.0

    def add(self, interval: tuple[float, float] | None, truth: float) -> None:
        assert interval is not None
        self.covered += interval[0] - 1e-12 <= truth <= interval[1] + 1e-12
        self.width += interval[1] - interval[0]

    def __str__(self) -> str:
        return f"{100 * self.covered / self.simulations:.1f} ({self.width / self.simulations:.3f})"

    def keeps(self, promise: str) -> bool:
        low, high = PROMISES[promise]
        share = self.covered / self.simulations
        # Two and a half standard errors of the simulation itself.
        chance = 2.5 * (0.05 * 0.95 / self.simulations) ** 0.5
        return low - chance <= share <= high + chance


def covering_row(name: str, promise: str, cells: list[Cell]) -> Row:
    return Row((name, *map(str, cells), promise), all(cell.keeps(promise) for cell in cells))


def mean_coverage(simulations: int) -> Iterator[Row]:
    bounded, safe, unbounded = "93 to 99 %", "at least 93 %", "as far as possible"
    kinds: list[tuple[str, str, float, Callable[[Rng, int], Any]]] = [
        ("50 % right", bounded, 0.5, lambda rng, n: (rng.random(n) < 0.5).astype(float)),
        ("70 % right", bounded, 0.7, lambda rng, n: (rng.random(n) < 0.7).astype(float)),
        ("90 % right", safe, 0.9, lambda rng, n: (rng.random(n) < 0.9).astype(float)),
        ("98 % right", safe, 0.98, lambda rng, n: (rng.random(n) < 0.98).astype(float)),
        ("graded: beta(2, 2)", bounded, 0.5, lambda rng, n: rng.beta(2, 2, size=n)),
        ("graded in quarters", bounded, 0.725, lambda rng, n: quarters(rng, n)),
        ("skewed: beta(0.5, 4)", bounded, 1 / 9, lambda rng, n: rng.beta(0.5, 4, size=n)),
        ("at both ends: beta(0.5, 0.5)", bounded, 0.5, lambda rng, n: rng.beta(0.5, 0.5, size=n)),
        ("90 % exactly 1, others uniform", bounded, 0.95, lambda rng, n: mostly_one(rng, n, 0.9)),
        ("97 % exactly 1, others uniform", safe, 0.985, lambda rng, n: mostly_one(rng, n, 0.97)),
        ("pass@2 of four attempts", bounded, pass_at_two(), lambda rng, n: passes(rng, n)),
        ("alike: beta(50, 50)", safe, 0.5, lambda rng, n: rng.beta(50, 50, size=n)),
        ("no range: normal", bounded, 0.0, lambda rng, n: rng.normal(size=n)),
        ("no range: uniform", bounded, 0.5, lambda rng, n: rng.random(n)),
        ("no range: exponential", unbounded, 1.0, lambda rng, n: rng.exponential(size=n)),
        ("no range: beta(0.5, 4)", unbounded, 1 / 9, lambda rng, n: rng.beta(0.5, 4, size=n)),
        ("no range: lognormal", unbounded, np.exp(0.5), lambda rng, n: rng.lognormal(size=n)),
    ]
    for name, promise, truth, draw in kinds:
        cells = []
        for n in SIZES:
            rng, cell = np.random.default_rng(2025), Cell(simulations)
            score_range = None if name.startswith("no range") else (0.0, 1.0)
            for _ in range(simulations):
                cell.add(summarise(draw(rng, n), score_range=score_range).ci, truth)
            cells.append(cell)
        yield covering_row(name, promise, cells)


def clustered_coverage(simulations: int) -> Iterator[Row]:
    """Scores of one cluster have a correlation of 0.3."""
    kinds: list[tuple[str, str, float, Callable[[Rng, Any], Any]]] = [
        *(
            (f"{share:.0%} right", "93 to 99 %" if share < 0.9 else "at least 93 %", share, shares_right(share))
            for share in (0.5, 0.7, 0.9, 0.98)
        ),
        ("graded around their cluster's mean, 0.5", "93 to 99 %", 0.5, graded_in_clusters(0.5)),
        ("skewed: the same, 0.11", "93 to 99 %", 1 / 9, graded_in_clusters(1 / 9)),
        ("mostly exactly 1", "93 to 99 %", 0.95, mostly_one_in_clusters),
        ("no range: normal", "93 to 99 %", 0.0, normal_in_clusters),
    ]
    for name, promise, truth, draw in kinds:
        cells = []
        for design in CLUSTERS.values():
            rng, cell = np.random.default_rng(2030), Cell(simulations)
            score_range = None if name.startswith("no range") else (0.0, 1.0)
            for _ in range(simulations):
                sizes = design(rng)
                clusters = np.repeat(np.arange(sizes.size), sizes)
                cell.add(summarise(draw(rng, clusters), clusters=clusters, score_range=score_range).ci, truth)
            cells.append(cell)
        yield covering_row(name, promise, cells)


def difference_coverage(simulations: int) -> Iterator[Row]:
    """What `auto` shows: the test that fits, with the interval that goes with it."""
    safe, unbounded = "at least 93 %", "as far as possible"
    kinds: list[tuple[str, str, float, Callable[[Rng, int], tuple[Any, Any, Any]]]] = [
        ("0/1, 30 % discordant, +0.1", safe, 0.1, lambda rng, n: (*outcomes_with_difference(rng, n), None)),
        ("graded, none", safe, 0.0, lambda rng, n: (*graded_around(rng, n, 4), None)),
        ("graded and close, none", safe, 0.0, lambda rng, n: (*graded_around(rng, n, 30), None)),
        ("skewed scores, none", safe, 0.0, lambda rng, n: (*rng.beta(0.5, 4, size=(2, n)), None)),
        ("skewed gain, +0.06", safe, 1 / 9 - 0.05, lambda rng, n: (rng.beta(0.5, 4, size=n), np.full(n, 0.05), None)),
        (
            "mostly 1 in both, +0.05",
            safe,
            0.05,
            lambda rng, n: (mostly_one(rng, n, 0.9), mostly_one(rng, n, 0.8), None),
        ),
        ("a tenth gains, +0.05", safe, 0.05, lambda rng, n: (1 - mostly_one(rng, n, 0.9), np.zeros(n), None)),
        ("graded in pairs that share a passage", safe, 0.0, lambda rng, n: clustered_grades(rng, n)),
        ("no range: normal, none", "93 to 99 %", 0.0, lambda rng, n: (*normal_pair(rng, n), None)),
        ("no range: exponential gain", unbounded, 1.0, lambda rng, n: (rng.exponential(size=n), np.zeros(n), None)),
    ]
    for name, promise, truth, draw in kinds:
        cells = []
        for n in SIZES:
            rng, cell = np.random.default_rng(2031), Cell(simulations)
            for _ in range(simulations):
                a, b, clusters = draw(rng, n)
                score_range = None if name.startswith("no range") else (0.0, 1.0)
                pairs = Pairs(a.astype(float), b.astype(float), clusters, score_range)
                verdict = run_test(pairs, TestSettings(test=StatisticalTest.AUTO, n_permutations=499))
                interval = difference_with_interval(pairs, verdict).ci
                assert interval is not None
                assert not (verdict.significant and interval[0] < 0 < interval[1])
                cell.add(interval, truth)
            cells.append(cell)
        yield covering_row(name, promise, cells)


def total_coverage(simulations: int) -> Iterator[Row]:
    kinds: list[tuple[str, Callable[[int], Any], Callable[[Rng, float, int], Any]]] = [
        *(
            (f"{share:.0%} right", lambda count, share=share: np.full(count, share), right_or_wrong)
            for share in (0.5, 0.7, 0.9, 0.98)
        ),
        ("20 or 95 % right by dataset", lambda count: np.where(np.arange(count) % 2, 0.95, 0.2), right_or_wrong),
        ("graded, mean 0.7", lambda count: np.full(count, 0.7), graded_tests),
        ("mostly exactly 1", lambda count: np.full(count, 0.95), lambda rng, share, n: mostly_one(rng, n, 0.9)),
    ]
    for name, shares_of, draw in kinds:
        cells = []
        for sizes in TOTALS.values():
            rng, cell = np.random.default_rng(2032), Cell(simulations)
            shares = shares_of(len(sizes))
            for _ in range(simulations):
                datasets = [
                    [ScoredTest(float(score)) for score in draw(rng, share, n)]
                    for share, n in zip(shares, sizes, strict=True)
                ]
                cell.add(interval_of_sum(datasets), float(shares.sum()))
            cells.append(cell)
        yield covering_row(name, "at least 93 %", cells)


def agreement_coverage(simulations: int) -> Iterator[Row]:
    kinds: list[tuple[str, str, float, Callable[[Rng, int, int], Any]]] = [
        ("right or wrong, chances beta(2, 1)", "93 to 99 %", 1 / 4, chances(2, 1)),
        ("right or wrong, chances beta(4, 1)", "93 to 99 %", 1 / 6, chances(4, 1)),
        ("right or wrong, chances beta(0.5, 0.5)", "93 to 99 %", 1 / 2, chances(0.5, 0.5)),
        ("normal", "93 to 99 %", 0.3, lambda rng, items, made: correlated_normal(rng, items, made)),
    ]
    for name, promise, truth, draw in kinds:
        cells = []
        for items, made in ATTEMPTS:
            rng, cell = np.random.default_rng(2033), Cell(simulations)
            for _ in range(simulations):
                cell.add(attempt_agreement(list(draw(rng, items, made))).ci, truth)
            cells.append(cell)
        yield covering_row(name, promise, cells)


def coverage(simulations: int) -> Iterator[Row]:
    cases: list[tuple[str, str, float, Callable[[Rng, int], Any]]] = [
        (
            "bootstrap, percentile",
            "normal, 50 items",
            0.0,
            lambda rng, seed: boot(rng.normal(size=50), seed, "percentile"),
        ),
        ("bootstrap, BCa", "normal, 50 items", 0.0, lambda rng, seed: boot(rng.normal(size=50), seed)),
        ("bootstrap, BCa", "skewed, 200 items", 1.0, lambda rng, seed: boot(rng.exponential(size=200), seed)),
        ("bootstrap, BCa", "difference of 0/1, 200 items", 0.1, lambda rng, seed: paired_boot(rng, 200, seed)),
        (
            "bootstrap, BCa",
            "continuous, 6000 items",
            1.0,
            lambda rng, seed: boot(rng.exponential(size=6000), seed, resamples=500),
        ),
        (
            "bootstrap of clusters",
            "100 clusters of 1 to 8",
            0.0,
            lambda rng, seed: cluster_boot(rng, np.repeat(np.arange(100), np.resize([1, 2, 3, 5, 8], 100)), seed),
        ),
        ("Tango", "difference of 0/1, 100 items", 0.1, lambda rng, seed: tango(rng, 100)),
    ]
    for name, scores, truth, interval in cases:
        rng = np.random.default_rng(2025)
        ends = np.array([interval(rng, seed) for seed in range(simulations)])
        covered = np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        yield Row((name, scores, f"{covered:.3f}"), 0.93 <= covered <= 0.97)
    for n in SIZES:
        rng = np.random.default_rng(2034)
        covered = np.mean([holds(small_bootstrap(rng, n, seed), 0.0) for seed in range(simulations)])
        yield Row(("the bootstrap's test", f"graded, {n} items", f"{covered:.3f}"), covered >= 0.92)
    for n in (*SIZES[:3], 100):
        for kind, draw in (("normal", equal_runs), ("0/1", equal_right)):
            rng = np.random.default_rng(2026)
            covered = np.mean([ranks_hold(draw(rng, n), seed) for seed in range(simulations)])
            yield Row(("ranks of five runs, all at once", f"{n} items, {kind}", f"{covered:.3f}"), covered >= 0.93)


def sequential(simulations: int) -> Iterator[Row]:
    streams: list[tuple[str, int, float, int | None]] = [
        ("0/1 scores, 30 % discordant, no difference", 400, 0.0, None),
        ("the same, horizon known", 400, 0.0, 400),
        ("difference 0.1, horizon known", 600, 0.1, 600),
    ]
    for name, items, difference, horizon in streams:
        rng = np.random.default_rng(2027)
        shares = [0.15 - difference / 2, 0.7, 0.15 + difference / 2]
        stops = []
        for values in rng.choice([-1.0, 0.0, 1.0], p=shares, size=(simulations, items)):
            sequence = ConfidenceSequence(horizon=horizon)
            if sequence.extend(values) != "undecided":
                stops.append(sequence.count)
        share = len(stops) / simulations
        if difference == 0:
            yield Row((name, str(items), f"{share:.3f}", "-"), share <= 0.05)
        else:
            fixed = PairedProportions(discordant=0.3).required_n(difference=difference, power=min(share, 0.999)).n
            median = f"{np.median(stops):.0f} (one look at the end: {fixed} for the same power)"
            yield Row((name, str(items), f"{share:.3f}", median), share > 0.5)


def timings() -> Iterator[Row]:
    kinds: dict[str, Callable[[Rng, int], tuple[Any, Any]]] = {
        "0/1": binary_pair,
        "graded in tenths": graded_pair,
        "continuous": skewed_pair,
    }
    tests: dict[str, Callable[..., PairedTest]] = {
        "paired t": paired_t_test,
        "permutation": paired_permutation_test,
        "bootstrap, BCa": bootstrap_test,
        "Wilcoxon": wilcoxon_test,
        "McNemar": mcnemar_test,
    }
    for test_name, test in tests.items():
        for kind, make in kinds.items():
            if test is mcnemar_test and kind != "0/1":
                continue
            yield timed(test_name, kind, test, make, {})
    for test_name in ("permutation", "bootstrap, BCa"):
        clustered = {size: {"clusters": np.arange(size) // 4} for size in (10_000, 100_000)}
        yield timed(f"{test_name}, clustered", "continuous", tests[test_name], skewed_pair, clustered)


def timed(
    test_name: str,
    kind: str,
    test: Callable[..., PairedTest],
    make: Callable[[Rng, int], tuple[Any, Any]],
    options: Any,
) -> Row:
    test([1, 0, 1], [0, 1, 1])  # the first call loads scipy
    seconds = []
    for size in (10_000, 100_000):
        a, b = make(np.random.default_rng(2028), size)
        began = time.process_time()
        test(a, b, **options.get(size, {}))
        seconds.append(time.process_time() - began)
    return Row((test_name, kind, *(f"{second:.3f}" for second in seconds)), seconds[0] <= 1 and seconds[1] <= 5)


def normal_pair(rng: Rng, n: int) -> tuple[Any, Any]:
    difficulty = rng.normal(size=n)
    return difficulty + rng.normal(size=n), difficulty + rng.normal(size=n)


def skewed_pair(rng: Rng, n: int) -> tuple[Any, Any]:
    difficulty = rng.normal(size=n)
    return difficulty + rng.exponential(size=n), difficulty + rng.exponential(size=n)


def graded_pair(rng: Rng, n: int) -> tuple[Any, Any]:
    difficulty = rng.random(n)
    return rng.binomial(10, difficulty) / 10, rng.binomial(10, difficulty) / 10


def binary_pair(rng: Rng, n: int) -> tuple[Any, Any]:
    difficulty = rng.random(n)
    return rng.random(n) < difficulty, rng.random(n) < difficulty


def clustered_pair(rng: Rng, clusters: Any) -> tuple[Any, Any]:
    shared = rng.normal(size=clusters.max() + 1)[clusters]
    return shared + rng.normal(size=clusters.size), rng.normal(size=clusters.size)


def mostly_one(rng: Rng, n: int, share: float) -> Any:
    return np.where(rng.random(n) < share, 1.0, rng.random(n))


def quarters(rng: Rng, n: int) -> Any:
    return rng.choice([0, 0.25, 0.5, 0.75, 1], p=[0.05, 0.1, 0.15, 0.3, 0.4], size=n)


def passes(rng: Rng, n: int) -> Any:
    """pass@2 of items with chances from beta(1, 2), each tried four times."""
    passed = rng.binomial(4, rng.beta(1, 2, size=n))
    return np.array([pass_at_k(int(count), 4, 2) for count in passed])


def pass_at_two() -> float:
    """The mean of 1 - (1 - p)^2 over beta(1, 2)."""
    return 1 - 2 * 3 / (3 * 4)


def shares_right(share: float) -> Callable[[Rng, Any], Any]:
    def draw(rng: Rng, clusters: Any) -> Any:
        own = rng.beta(share * 7 / 3, (1 - share) * 7 / 3, size=clusters.max() + 1)
        return (rng.random(clusters.size) < own[clusters]).astype(float)

    return draw


def graded_in_clusters(mean: float) -> Callable[[Rng, Any], Any]:
    def draw(rng: Rng, clusters: Any) -> Any:
        own = rng.beta(mean * 7 / 3, (1 - mean) * 7 / 3, size=clusters.max() + 1)[clusters]
        return rng.beta(np.maximum(3.5 * own, 1e-6), np.maximum(3.5 * (1 - own), 1e-6))

    return draw


def mostly_one_in_clusters(rng: Rng, clusters: Any) -> Any:
    own = rng.beta(3.6, 0.4, size=clusters.max() + 1)[clusters]
    return np.where(rng.random(clusters.size) < own, 1.0, rng.random(clusters.size))


def normal_in_clusters(rng: Rng, clusters: Any) -> Any:
    own = rng.normal(size=clusters.max() + 1)[clusters]
    return 0.3**0.5 * own + 0.7**0.5 * rng.normal(size=clusters.size)


def graded_around(rng: Rng, n: int, closeness: float) -> tuple[Any, Any]:
    difficulty = rng.beta(2, 2, size=n)
    shape = closeness * difficulty + 0.01, closeness * (1 - difficulty) + 0.01
    return rng.beta(*shape), rng.beta(*shape)


def clustered_grades(rng: Rng, n: int) -> tuple[Any, Any, Any]:
    clusters = np.arange(n) // 2
    shift = rng.uniform(-0.3, 0.3, size=n)[clusters]
    a, b = graded_around(rng, n, 30)
    return np.clip(a + shift, 0, 1) * 0.5 + 0.25, np.clip(b - shift, 0, 1) * 0.5 + 0.25, clusters


def right_or_wrong(rng: Rng, share: float, n: int) -> Any:
    return (rng.random(n) < share).astype(float)


def graded_tests(rng: Rng, share: float, n: int) -> Any:
    return rng.beta(3 * share, 3 * (1 - share), size=n)


def chances(a: float, b: float) -> Callable[[Rng, int, int], Any]:
    def draw(rng: Rng, items: int, made: int) -> Any:
        # Attempts that never differ have no interval, and are drawn again.
        while True:
            scores = (rng.random((items, made)) < rng.beta(a, b, size=items)[:, None]).astype(float)
            if (scores.min(axis=1) < scores.max(axis=1)).any():
                return scores

    return draw


def correlated_normal(rng: Rng, items: int, made: int) -> Any:
    return 0.3**0.5 * rng.normal(size=(items, 1)) + 0.7**0.5 * rng.normal(size=(items, made))


def small_bootstrap(rng: Rng, n: int, seed: int) -> Any:
    return bootstrap_test(*graded_around(rng, n, 4), resamples=500, seed=seed).ci


def holds(interval: tuple[float, float], truth: float) -> bool:
    return interval[0] <= truth <= interval[1]


def boot(values: Any, seed: int, method: Any = "bca", resamples: int = 2000) -> Any:
    units = pair(values, np.zeros(len(values))).units
    return bootstrap_interval(units, method=method, resamples=resamples, seed=seed).ci


def cluster_boot(rng: Rng, clusters: Any, seed: int) -> Any:
    values = clustered_pair(rng, clusters)[0]
    units = pair(values, np.zeros(len(values)), clusters=clusters).units
    return bootstrap_interval(units, resamples=2000, seed=seed).ci


def outcomes_with_difference(rng: Rng, n: int) -> tuple[Any, Any]:
    """Right or wrong answers of two runs, discordant on 30 % of the items, with a true difference of 0.1."""
    outcome = rng.choice([-1, 0, 1, 2], p=[0.1, 0.3, 0.2, 0.4], size=n)
    return outcome > 0, (outcome == -1) | (outcome == 2)


def paired_boot(rng: Rng, n: int, seed: int) -> Any:
    return bootstrap_test(*outcomes_with_difference(rng, n), resamples=2000, seed=seed).ci


def tango(rng: Rng, n: int) -> Any:
    return proportion_effects(*outcomes_with_difference(rng, n)).risk_difference_ci


def equal_runs(rng: Rng, n: int) -> Any:
    return rng.normal(size=(n, 1)) + rng.normal(size=(n, 5))


def equal_right(rng: Rng, n: int) -> Any:
    return (rng.random((n, 5)) < rng.beta(2, 1, size=(n, 1))).astype(float)


def ranks_hold(scores: Any, seed: int) -> bool:
    """All five runs are equal, so any place is true of each and none may be ruled out."""
    places = rank_runs(dict(zip("01234", scores.T, strict=True)), resamples=200, seed=seed).runs
    return all(place.best == 1 and place.worst == 5 for place in places)


if __name__ == "__main__":
    sys.exit(main())
