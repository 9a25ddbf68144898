"""Whether a table of comparisons keeps its promise: equal runs are called different in few tables, whatever test is chosen.

    python benchmarks/comparison_families.py [families]

Four equal runs with three metrics are eighteen comparisons; a table is wrong if any of them has a winner. The second table is
of Wilcoxon's test on differences whose means are equal and whose ranks are not: how often it is significant, and how often
the result says that its verdict is not one on the means. Prints Markdown and exits with 1 if a promise is broken. 400 tables
take some ten minutes of CPU, most of them for the bootstrap.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from themis.comparison.engine import Hypothesis, StatisticalTest, TestSettings, run_tests
from themis.comparison.reports import TIE
from themis.comparison.statistics import Pairs, paired_t_test, wilcoxon_test

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
RUNS = 4
TESTS = (
    *(StatisticalTest.AUTO, StatisticalTest.BOOTSTRAP, StatisticalTest.T_TEST),
    *(StatisticalTest.PERMUTATION, StatisticalTest.WILCOXON),
)


def main() -> int:
    families = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    kept = True
    print(f"\n### Tables with a false winner: four equal runs, three metrics, {families} tables each, alpha 0.05\n")
    print("| test | 30 items | 100 items | |\n|---|---|---|---|")
    for test in TESTS:
        shares = [false_winners(test, items, families) for items in (30, 100)]
        held = all(share <= 0.05 + slack(families) for share in shares)
        kept &= held
        cells = " | ".join(f"{share:.1%}" for share in shares)
        print(f"| {test.value} | {cells} | {'ok' if held else '**broken**'} |", flush=True)
    print("\n### Wilcoxon's test where the means are equal\n")
    print(
        "| differences | items | significant | of these with a note | note where not significant | |\n|---|---|---|---|---|---|"
    )
    for name, items, significant, noted, idle, held in wilcoxon_notes(10 * families):
        kept &= held
        print(
            f"| {name} | {items} | {significant:.1%} | {noted} | {idle:.1%} | {'ok' if held else '**broken**'} |",
            flush=True,
        )
    return 0 if kept else 1


def slack(simulations: int) -> float:
    """Two standard errors of a share of 5 %."""
    return 2 * (0.05 * 0.95 / simulations) ** 0.5


def false_winners(test: StatisticalTest, items: int, families: int) -> float:
    rng = np.random.default_rng(2030)
    settings = TestSettings(test=test)
    wrong = 0
    for _ in range(families):
        results = run_tests(list(equal_runs(rng, items)), settings)
        wrong += any(result.winner != TIE for result in results)
    return wrong / families


def equal_runs(rng: Rng, items: int) -> Iterator[Hypothesis]:
    """Right or wrong, graded and skewed scores of runs that are equally good on items of different difficulty."""
    difficulty = rng.beta(2, 1, size=(items, 1))
    scores = {
        "right": (rng.random((items, RUNS)) < difficulty).astype(np.float64),
        "graded": rng.binomial(5, difficulty, size=(items, RUNS)) / 5,
        "skewed": difficulty * rng.exponential(size=(items, RUNS)),
    }
    for metric, columns in scores.items():
        for one, other in itertools.combinations(range(RUNS), 2):
            yield Hypothesis(metric, str(one), str(other), Pairs(columns[:, one], columns[:, other]))


def wilcoxon_notes(simulations: int) -> Iterator[tuple[str, int, float, str, float, bool]]:
    """Rank tests of differences with a mean of zero: those that are called significant must say that means are another matter."""
    kinds: dict[str, Callable[[Rng, int], Floats]] = {
        "skewed": lambda rng, n: rng.exponential(size=n) - 1,
        "mostly small losses, few large gains": lambda rng, n: np.where(rng.random(n) < 0.1, 0.9, -0.1),
        "symmetric, normal": lambda rng, n: rng.normal(size=n),
        "symmetric, heavy tails": lambda rng, n: rng.standard_t(3, size=n),
    }
    for name, draw in kinds.items():
        for items in (10, 30, 200):
            rng = np.random.default_rng(2031)
            tests = [wilcoxon_test(draw(rng, items), np.zeros(items)) for _ in range(simulations)]
            significant = [test for test in tests if test.significant]
            others = [test for test in tests if not test.significant]
            noted = sum("mean" in test.note for test in significant)
            idle = sum("mean" in test.note for test in others) / max(1, len(others))
            # Without a word no more is called significant than a test of the means calls so, which few skewed items mislead.
            rng = np.random.default_rng(2031)
            of_means = [paired_t_test(draw(rng, items), np.zeros(items)).significant for _ in range(simulations)]
            silent = (len(significant) - noted) / simulations
            share = f"{noted / len(significant):.0%}" if significant else "–"
            held = silent <= max(0.05, sum(of_means) / simulations) + slack(simulations)
            yield name, items, len(significant) / simulations, share, idle, held


if __name__ == "__main__":
    sys.exit(main())
