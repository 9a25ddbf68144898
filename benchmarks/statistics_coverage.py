"""Whether the statistics keep their promises: p-values under the null, coverage of intervals, false alarms, and CPU time.

    python benchmarks/statistics_coverage.py [simulations]

Prints Markdown tables and exits with 1 if a promise is broken. 2000 simulations take some four minutes of CPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from themis.comparison.power import PairedProportions
from themis.comparison.ranking import rank_runs
from themis.comparison.resampling import bootstrap_interval
from themis.comparison.sequential import ConfidenceSequence
from themis.comparison.statistics import (
    PairedTest,
    bootstrap_test,
    mcnemar_test,
    pair,
    paired_permutation_test,
    paired_t_test,
    proportion_effects,
    wilcoxon_test,
)
from themis.core.intervals import student_interval, summarise, wilson_interval

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
        f"Coverage of 95 % intervals in {simulations} samples": (
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


def coverage(simulations: int) -> Iterator[Row]:
    clusters = np.repeat(np.arange(40), 5)
    uneven = np.repeat(np.arange(40), np.resize([1, 2, 3, 5, 8], 40))
    cases: list[tuple[str, str, float, Callable[[Rng, int], Any]]] = [
        ("Wilson", "80 % right, 100 items", 0.8, lambda rng, seed: wilson_interval(rng.binomial(100, 0.8), 100)),
        ("Wilson", "95 % right, 200 items", 0.95, lambda rng, seed: wilson_interval(rng.binomial(200, 0.95), 200)),
        ("Student", "normal, 10 items", 0.0, lambda rng, seed: student_interval(rng.normal(size=10))),
        ("clustered", "40 clusters of 5", 0.0, lambda rng, seed: clustered_ci(rng, clusters)),
        ("clustered", "40 clusters of 1 to 8", 0.0, lambda rng, seed: clustered_ci(rng, uneven)),
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
    rng = np.random.default_rng(2026)
    covered = np.mean([ranks_hold(rng, seed) for seed in range(simulations)])
    yield Row(("ranks of five runs, all at once", "100 items, four runs equal", f"{covered:.3f}"), covered >= 0.93)


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
            fixed = PairedProportions(discordant=0.3).required_n(difference=difference, power=share).n
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


def clustered_ci(rng: Rng, clusters: Any) -> Any:
    return summarise(clustered_pair(rng, clusters)[0], clusters=clusters).ci


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


def ranks_hold(rng: Rng, seed: int) -> bool:
    """Run 0 is the best; the other four are equal, so any of the places 2 to 5 is true of each."""
    scores = rng.normal(size=(100, 1)) + rng.normal(size=(100, 5)) + [0.2, 0, 0, 0, 0]
    places = {
        run.run: run for run in rank_runs(dict(zip("01234", scores.T, strict=True)), resamples=200, seed=seed).runs
    }
    return places["0"].best == 1 and all(places[run].best <= 2 and places[run].worst == 5 for run in "1234")


if __name__ == "__main__":
    sys.exit(main())
