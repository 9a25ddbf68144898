"""Whether what is said of judges holds: intervals of scores corrected by people's labels, and by an audit of the judge.

    python benchmarks/judge_calibration.py [simulations]

Prints Markdown tables and exits with 1 if an interval covers less than 93 % of the time, within the simulation's own error.
2000 simulations take some two minutes of CPU.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from themis.evaluation.agreement import prediction_powered_mean
from themis.evaluation.audit_answers import AuditItem, make_audit_answers
from themis.evaluation.judge_rates import (
    Judgment,
    Rate,
    correct_score,
    corrected_difference,
    judge_rates,
)

Rng = np.random.Generator
# A judge's verdicts or grades, and what people say of the same items.
Judged = tuple[np.ndarray, np.ndarray]

ITEMS = 500
LABELS = (5, 10, 20, 50, 200, ITEMS)
SHARES = (0.5, 0.8, 0.95)
LEAST = 0.93


def main() -> int:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    lines = [f"{count} labels" if count < ITEMS else "all labelled" for count in LABELS]
    tables = {
        f"Mean corrected by labels: {simulations} samples of {ITEMS} items, covered % (mean width)": (
            ("judge", "right", *lines),
            by_labels(simulations),
        ),
        f"Score corrected by an audit: {simulations} audits, covered % (mean width)": (
            (
                "sensitivity, specificity",
                "items",
                "answers audited",
                *(f"{share:.0%} right" for share in AUDITED_SHARES),
            ),
            by_audit(simulations),
        ),
        f"Audits from made answers: {simulations // 4} lenient judges": (
            ("judge", "score covered %", "accepted as it is covered %", "specificity covered %", "of vague covered %"),
            by_made_answers(simulations // 4),
        ),
        f"Differences of two runs corrected by an audit: {simulations} comparisons": (
            ("sensitivity, specificity", "items", "right in A, B", "covered %", "survives %"),
            differences(simulations),
        ),
    }
    broken = 0
    for title, (header, rows) in tables.items():
        print(f"\n### {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
        for cells, coverages in rows:
            # Two standard errors of a simulated 93 % below it.
            bad = [found for found, runs in coverages if found < LEAST - 2 * math.sqrt(LEAST * (1 - LEAST) / runs)]
            broken += len(bad)
            print(f"| {' | '.join(cells)} |{' **broken**' if bad else ''}", flush=True)
    print("\nEvery interval covers." if not broken else f"\n{broken} intervals cover less than {LEAST:.0%}.")
    return 1 if broken else 0


Line = tuple[Sequence[str], Sequence[tuple[float, int]]]


# --- people's labels ------------------------------------------------------------------------------------------------------


def flipping(missed: float, passed: float) -> Callable[[Rng, float], Judged]:
    """Says right or wrong, misses a share of the right answers and lets a share of the wrong ones pass."""

    def draw(rng: Rng, share: float) -> Judged:
        truth = rng.random(ITEMS) < share
        return (truth ^ (rng.random(ITEMS) < np.where(truth, missed, passed))).astype(float), truth.astype(float)

    return draw


def grading(rng: Rng, share: float) -> Judged:
    truth = rng.random(ITEMS) < share
    return np.where(truth, rng.beta(5, 2, ITEMS), rng.beta(2, 4, ITEMS)), truth.astype(float)


def compressing(rng: Rng, share: float) -> Judged:
    truth = rng.beta(4 * share, 4 * (1 - share), ITEMS)
    return 0.4 + 0.2 * truth, truth


def mostly_full(rng: Rng, share: float) -> Judged:
    """People's grades are 1 or, in twice the missing share, anything."""
    truth = np.where(rng.random(ITEMS) < 2 * (1 - share), rng.random(ITEMS), 1.0)
    return np.clip(truth + rng.normal(0, 0.1, ITEMS), 0, 1), truth


JUDGES: dict[str, Callable[[Rng, float], Judged]] = {
    "always right": flipping(0, 0),
    "5 % wrong": flipping(0.05, 0.05),
    "20 % wrong": flipping(0.2, 0.2),
    "lenient: misses 5 %, passes 40 %": flipping(0.05, 0.4),
    "strict: misses 30 %, passes 2 %": flipping(0.3, 0.02),
    "graded, labels right or wrong": grading,
    "compresses grades": compressing,
    "graded, labels mostly 1": mostly_full,
}


def by_labels(simulations: int) -> Iterator[Line]:
    rng = np.random.default_rng(1)
    for name, draw in JUDGES.items():
        for share in SHARES:
            found = [_labelled_coverage(rng, draw, share, labels, simulations) for labels in LABELS]
            shown = [f"{100 * covered:.1f} ({width:.2f})" for covered, width in found]
            yield (name, f"{share:g}", *shown), [(covered, simulations) for covered, _ in found]


def _labelled_coverage(
    rng: Rng, draw: Callable[[Rng, float], Judged], share: float, labels: int, simulations: int
) -> tuple[float, float]:
    covered, width = 0, 0.0
    for _ in range(simulations):
        judged, truth = draw(rng, share)
        known = list(zip(judged[:labels].tolist(), truth[:labels].tolist(), strict=True))
        low, high = prediction_powered_mean(judged.tolist(), known).ci
        covered += low <= share <= high
        width += high - low
    return covered / simulations, width / simulations


# --- audits ---------------------------------------------------------------------------------------------------------------

AUDITED_SHARES = (0.05, 0.2, 0.5, 0.8, 0.95)
RATES = ((1.0, 1.0), (0.95, 0.4), (0.95, 0.37), (0.95, 0.89), (0.8, 0.8), (0.9, 0.3), (0.6, 0.5))


def by_audit(simulations: int) -> Iterator[Line]:
    rng = np.random.default_rng(2)
    for sensitivity, specificity in RATES:
        for items in (50, 200, 1000):
            for audited in (20, 100):
                found = [
                    _audited_coverage(rng, share, sensitivity, specificity, items, audited, simulations)
                    for share in AUDITED_SHARES
                ]
                shown = [f"{100 * covered:.1f} ({width:.2f})" for covered, width in found]
                cells = (f"{sensitivity:g}, {specificity:g}", str(items), str(2 * audited), *shown)
                yield cells, [(covered, simulations) for covered, _ in found]


def _audited_coverage(
    rng: Rng, share: float, sensitivity: float, specificity: float, items: int, audited: int, simulations: int
) -> tuple[float, float]:
    accepted = share * sensitivity + (1 - share) * (1 - specificity)
    covered, width = 0, 0.0
    for _ in range(simulations):
        found = correct_score(
            int(rng.binomial(items, accepted)),
            items,
            _rate(int(rng.binomial(audited, sensitivity)), audited),
            _rate(int(rng.binomial(audited, specificity)), audited),
        )
        covered += found.ci[0] - 1e-9 <= share <= found.ci[1] + 1e-9
        width += found.ci[1] - found.ci[0]
    return covered / simulations, width / simulations


def _rate(count: int, n: int) -> Rate:
    return Rate.of([True] * count + [False] * (n - count))


def by_made_answers(simulations: int) -> Iterator[Line]:
    """Judges that let a share of wrong answers pass, each question with a leniency of its own."""
    rng = np.random.default_rng(3)
    names = [
        f"{first} {last}"
        for first in ["Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gil", "Hal", "Ida", "Jon"]
        for last in range(100, 115)
    ]
    items = [AuditItem(str(n), f"Who won race {n}?", (name,)) for n, name in enumerate(names)]
    judges = {"passes 60 % of all wrong answers": (0.6, 0.6), "passes 63 % of vague, 11 % of others": (0.63, 0.11)}
    for name, (vague, other) in judges.items():
        counts = np.zeros(4)
        for seed in range(simulations):
            passing = {"vague": vague}
            # Answers to one question fare alike: half of what decides is the question's.
            mood = {item.item_id: rng.random() for item in items}
            judged = []
            for answer in make_audit_answers(items, 200, seed=seed):
                rate = 0.97 if answer.kind.is_right else passing.get(answer.kind.value, other)
                drawn = mood[answer.item_id] if rng.random() < 0.5 else rng.random()
                judged.append(Judgment(answer.kind.is_right, bool(drawn < rate), answer.kind.value, answer.item_id))
            rates = judge_rates(judged)
            mixture = 0.25 * vague + 0.75 * other
            share = float(rng.choice([0.3, 0.5, 0.7]))
            accepted = int(rng.binomial(300, share * 0.97 + (1 - share) * mixture))
            score = correct_score(accepted, 300, rates.sensitivity, rates.specificity)
            raw = _rate(accepted, 300).ci
            counts += [
                score.ci[0] <= share <= score.ci[1],
                raw[0] <= share <= raw[1],
                rates.specificity.ci[0] <= 1 - mixture <= rates.specificity.ci[1],
                rates.by_kind["vague"].ci[0] <= vague <= rates.by_kind["vague"].ci[1],
            ]
        shares = counts / simulations
        yield (name, *(f"{100 * found:.1f}" for found in shares)), [(float(shares[n]), simulations) for n in (0, 2, 3)]


def differences(simulations: int) -> Iterator[Line]:
    rng = np.random.default_rng(4)
    for sensitivity, specificity in ((0.95, 0.4), (0.9, 0.8)):
        for items in (100, 500):
            for a, b in ((0.8, 0.8), (0.6, 0.5), (0.9, 0.5)):
                covered = survived = 0
                for _ in range(simulations):
                    seen = [_verdicts(rng, share, sensitivity, specificity, items) for share in (a, b)]
                    gaps = seen[0] - seen[1]
                    reach = 1.98 * gaps.std(ddof=1) / math.sqrt(items)
                    judged = [Judgment(True, bool(rng.random() < sensitivity)) for _ in range(100)]
                    judged += [Judgment(False, bool(rng.random() >= specificity)) for _ in range(100)]
                    means = (float(seen[0].mean()), float(seen[1].mean()))
                    interval = (float(gaps.mean() - reach), float(gaps.mean() + reach))
                    found = corrected_difference(*means, interval, judge_rates(judged))
                    covered += found.ci[0] <= a - b <= found.ci[1]
                    survived += found.survives
                cells = (
                    *(f"{sensitivity:g}, {specificity:g}", str(items), f"{a:g}, {b:g}"),
                    *(f"{100 * covered / simulations:.1f}", f"{100 * survived / simulations:.1f}"),
                )
                yield cells, [(covered / simulations, simulations)]


def _verdicts(rng: Rng, share: float, sensitivity: float, specificity: float, items: int) -> np.ndarray:
    truth = rng.random(items) < share
    return np.where(truth, rng.random(items) < sensitivity, rng.random(items) >= specificity).astype(float)


if __name__ == "__main__":
    sys.exit(main())
