"""What is left of a difference between runs when the errors of the judge that saw it are taken into account.

A judge that was audited (`themis judge audit`) is known by its identity; `engine.ComparisonEngine` asks here for every pair
of runs that one judge has scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from themis.comparison.scores import ScoredRun
from themis.core.intervals import student_interval
from themis.evaluation.judge_rates import CorrectedDifference, JudgeRates, corrected_difference
from themis.runs.judge_audits import ACCEPTED_FROM, StoredAudit, find_audit, stored_judge
from themis.storage import ExperimentStorage

__all__ = ["JudgeCorrection", "correct_for_judges"]


class _Compared(Protocol):
    """What is read of a comparison: two runs' scores of the same items, and the interval of their difference."""

    metric_name: str
    run_a_id: str
    run_b_id: str
    run_a_samples: list[float]
    run_b_samples: list[float]
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class JudgeCorrection:
    """A difference that an audited judge saw, corrected for its errors.

    Args:
        metric: The judge's metric.
        run_a: One run.
        run_b: The other.
        audit: The stored audit of the judge.
        rates: What that found.
        found: The corrected difference.
    """

    metric: str
    run_a: str
    run_b: str
    audit: str
    rates: JudgeRates
    found: CorrectedDifference

    def summary(self) -> str:
        """One line for people."""
        found, right, wrong = self.found, self.rates.sensitivity.value, 1 - self.rates.specificity.value
        about = (
            f"{self.metric}, {self.run_a} - {self.run_b}, corrected for its judge (accepts {right:.0%} of right and {wrong:.0%} "
            f"of wrong answers, {self.audit}): "
        )
        if self.rates.informedness <= 0:
            return f"{about}the judge's scores say nothing about the answers"
        told = f"{found.corrected:+.4f} [{found.ci[0]:+.4f}, {found.ci[1]:+.4f}], "
        if not found.survives:
            return f"{about}{told}no difference beyond the judge's errors and chance"
        if found.survives_any_kind is False:
            return (
                f"{about}{told}survives if both runs' wrong answers are of the same kinds, not if one's are of those that the "
                "judge lets pass most"
            )
        return f"{about}{told}survives"

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "metric": self.metric,
            "run_a": self.run_a,
            "run_b": self.run_b,
            "audit": self.audit,
            "sensitivity": self.rates.sensitivity.value,
            "specificity": self.rates.specificity.value,
            **asdict(self.found),
        }


def correct_for_judges(
    store: ExperimentStorage, runs: Sequence[ScoredRun], results: Iterable[_Compared]
) -> list[JudgeCorrection]:
    """One for every result that one audited judge saw in both runs."""
    by_id = {run.run_id: run for run in runs}
    audits: dict[str, StoredAudit | None] = {}
    corrections = []
    for result in results:
        judges = {
            stored_judge(run.reader, run.evaluation, result.metric_name)
            for run in (by_id[result.run_a_id], by_id[result.run_b_id])
        }
        identity = judges.pop()
        if judges or identity is None:
            continue
        if identity not in audits:
            audits[identity] = find_audit(store, identity)
        audit, interval = audits[identity], _accepted_interval(result)
        if audit is None or interval is None:
            continue
        found = corrected_difference(
            _accepted(result.run_a_samples), _accepted(result.run_b_samples), interval, audit.rates
        )
        names = (result.metric_name, result.run_a_id, result.run_b_id)
        corrections.append(JudgeCorrection(*names, audit.run_id, audit.rates, found))
    return corrections


def _accepted(scores: Sequence[float]) -> float:
    return sum(score >= ACCEPTED_FROM for score in scores) / len(scores)


def _accepted_interval(result: _Compared) -> tuple[float, float] | None:
    """Of the difference in what was accepted: the comparison's own, unless the judge gives grades."""
    pairs = list(zip(result.run_a_samples, result.run_b_samples, strict=True))
    if len(pairs) < 2 or result.interval is None:
        return None
    if all(score in (0, 1) for pair in pairs for score in pair):
        return result.interval
    return student_interval([float(a >= ACCEPTED_FROM) - float(b >= ACCEPTED_FROM) for a, b in pairs])
