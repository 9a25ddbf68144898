"""Whether a candidate may replace a baseline: passes, fails, or cannot be told, with a reason for every check.

A gate never passes on missing evidence: a run that is not there, not finished, or shares too few items is "unknown".
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.comparison.effects import risk_difference_interval
from themis.comparison.hypotheses import StatisticalTest, TestSettings, beyond_testing, difference_interval, examine
from themis.comparison.reports import StatisticalTestResult, show_interval
from themis.comparison.scores import (
    RunScores,
    SharedScores,
    common_metrics,
    direction_of,
    evaluation_of,
    line_up,
    read_scores,
)
from themis.comparison.store import open_store
from themis.core.intervals import normal_quantile
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, MetricError, StorageError
from themis.runs.resuming import how_to_resume_stored
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.records import FAILED

__all__ = ["Gate", "GateCheck", "GateOutcome", "GateVerdict"]


class GateOutcome(enum.StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


_EXIT_CODES = {GateOutcome.PASS: 0, GateOutcome.FAIL: 1, GateOutcome.UNKNOWN: 3}


@dataclass(frozen=True)
class GateCheck:
    """One condition, what came of it, and why."""

    name: str
    outcome: GateOutcome
    reason: str


@dataclass(frozen=True, kw_only=True)
class GateVerdict:
    """All checks of a candidate; `delta` is candidate minus baseline, None where they could not be compared."""

    candidate: str
    baseline: str
    metric: str
    checks: tuple[GateCheck, ...]
    alpha: float
    n: int = 0
    candidate_mean: float | None = None
    baseline_mean: float | None = None
    delta: float | None = None
    interval: tuple[float, float] | None = None
    test: StatisticalTestResult | None = None

    @property
    def outcome(self) -> GateOutcome:
        """A failed check fails the gate, whatever could not be told besides."""
        outcomes = {check.outcome for check in self.checks}
        for outcome in (GateOutcome.FAIL, GateOutcome.UNKNOWN):
            if outcome in outcomes:
                return outcome
        return GateOutcome.PASS

    @property
    def passed(self) -> bool:
        return self.outcome is GateOutcome.PASS

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 could not tell."""
        return _EXIT_CODES[self.outcome]

    @property
    def reasons(self) -> list[str]:
        """Why it did not pass; empty if it did."""
        return [check.reason for check in self.checks if check.outcome is not GateOutcome.PASS]

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.outcome.value,
            "exit_code": self.exit_code,
            "reasons": self.reasons,
            "candidate": self.candidate,
            "baseline": self.baseline,
            "metric": self.metric,
            "n": self.n,
            "candidate_mean": self.candidate_mean,
            "baseline_mean": self.baseline_mean,
            "delta": self.delta,
            "interval": None if self.interval is None else list(self.interval),
            "alpha": self.alpha,
            "test": None if self.test is None else self.test.test_name,
            "p_value": None if self.test is None else self.test.p_value,
            "checks": [
                {"name": check.name, "outcome": check.outcome.value, "reason": check.reason} for check in self.checks
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What a candidate must meet. A gain is candidate minus baseline, or the opposite where a smaller value is better.

    `min_delta` bounds the observed gain (0 if neither it nor `non_inferiority` is given); `significant` asks that the
    whole 1 - alpha interval of the gain lies above it. `non_inferiority` asks that the interval lies above minus this
    margin. `min_overlap` is the least share of the candidate's items that must be comparable. `require_same` names
    dimensions in which the two runs must not differ, such as dataset or model. Which way the metric is good it says
    itself, unless `lower_is_better` does.
    """

    baseline: str
    metric: str
    min_delta: float | None = None
    significant: bool = False
    non_inferiority: float | None = None
    alpha: float = 0.05
    min_overlap: float = 0.5
    budget_usd: float | None = None
    max_failed: int | None = None
    require_same: tuple[str, ...] = ()
    lower_is_better: bool | None = None

    def __post_init__(self) -> None:
        TestSettings(alpha=self.alpha)
        if self.non_inferiority is not None and not self.non_inferiority > 0:
            raise ConfigurationError(f"a non-inferiority margin is greater than 0, got {self.non_inferiority}")
        if not 0 <= self.min_overlap <= 1:
            raise ConfigurationError(f"min_overlap is a share from 0 to 1, got {self.min_overlap}")
        if self.budget_usd is not None and self.budget_usd < 0:
            raise ConfigurationError(f"budget_usd is not negative, got {self.budget_usd}")
        if self.max_failed is not None and self.max_failed < 0:
            raise ConfigurationError(f"max_failed is a number of items, not negative, got {self.max_failed}")

    def judge(self, candidate: str, *, storage: Any = None, storage_path: str | Path | None = None) -> GateVerdict:
        """The verdict on a stored run. A missing run or store is an unknown verdict, not an error."""
        if candidate == self.baseline:
            raise ConfigurationError(f"candidate and baseline are the same run, {candidate!r}")
        try:
            store = open_store(storage, storage_path)
            runs = store.get_run(candidate), store.get_run(self.baseline)
        except StorageError as error:
            return self._verdict(candidate, [GateCheck("runs", GateOutcome.UNKNOWN, str(error))])
        checks = [_finished(store, *runs), *(self._same(store, *runs, name) for name in self.require_same)]
        evidence: dict[str, Any] = {}
        if checks[0].outcome is GateOutcome.PASS:
            evidence = self._compare(store, candidate, checks)
        if self.budget_usd is not None:
            checks.append(_within_budget(runs[0], self.budget_usd))
        return self._verdict(candidate, checks, **evidence)

    def _verdict(self, candidate: str, checks: list[GateCheck], **evidence: Any) -> GateVerdict:
        return GateVerdict(
            candidate=candidate,
            baseline=self.baseline,
            metric=self.metric,
            alpha=self.alpha,
            checks=tuple(checks),
            **evidence,
        )

    # --- the difference ----------------------------------------------------------------------------------------------

    def _compare(self, store: ExperimentStorage, candidate: str, checks: list[GateCheck]) -> dict[str, Any]:
        """Adds the checks that need scores, and returns what they rest on."""
        try:
            metric = common_metrics(store, [candidate, self.baseline], [self.metric])[0]
            mine = read_scores(store, candidate, metric)
            failed = _failed(store, candidate, metric)
            if self.max_failed is not None:
                checks.append(_few_failed(failed, self.max_failed))
            shared = line_up(mine, read_scores(store, self.baseline, metric))
        except MetricError as error:
            checks.append(GateCheck("overlap", GateOutcome.UNKNOWN, str(error)))
            return {}
        overlap = self._overlap(shared, mine, failed)
        checks.append(overlap)
        means = float(shared.a.mean()), float(shared.b.mean())
        evidence: dict[str, Any] = {
            "n": shared.n,
            "candidate_mean": means[0],
            "baseline_mean": means[1],
            "delta": means[0] - means[1],
        }
        if overlap.outcome is GateOutcome.PASS:
            evidence["interval"] = _interval(shared, self.alpha)
            evidence["test"] = examine(shared, StatisticalTest.AUTO, TestSettings(alpha=self.alpha))
            is_lower_better = self._is_lower_better(store, candidate, metric)
            checks += self._gain_checks(metric, means, evidence["interval"], is_lower_better)
        return evidence

    def _overlap(self, shared: SharedScores, mine: RunScores, failed: int) -> GateCheck:
        total = len(mine.item_ids) + failed
        reason = f"{shared.n} of the candidate's {total} items are scored in both runs"
        if hindrance := beyond_testing(shared):
            return GateCheck("overlap", GateOutcome.UNKNOWN, f"{reason}: {hindrance}")
        if shared.n < self.min_overlap * total:
            return GateCheck("overlap", GateOutcome.UNKNOWN, f"{reason}, wanted at least {self.min_overlap:.0%}")
        return GateCheck("overlap", GateOutcome.PASS, reason)

    def _is_lower_better(self, store: ExperimentStorage, candidate: str, metric: str) -> bool:
        if self.lower_is_better is not None:
            return self.lower_is_better
        direction = direction_of(store, [candidate, self.baseline], metric)
        if direction is None:
            raise ConfigurationError(
                f"more {metric} is neither better nor worse by itself; say which way it is good: "
                "lower_is_better=True or False (--lower-is-better or --higher-is-better)"
            )
        return not direction

    def _gain_checks(
        self, metric: str, means: tuple[float, float], interval: tuple[float, float] | None, is_lower_better: bool
    ) -> list[GateCheck]:
        sign = -1 if is_lower_better else 1
        gain = sign * (means[0] - means[1])
        span = None if interval is None else (interval if sign > 0 else (-interval[1], -interval[0]))
        least = 0.0 if self.min_delta is None and self.non_inferiority is None else self.min_delta
        checks = []
        if least is not None:
            # Rounding in a mean is not a regression.
            outcome = GateOutcome.PASS if gain >= least - 1e-12 else GateOutcome.FAIL
            shown = (
                f"{metric} {means[0]:.4f} against {means[1]:.4f}: a gain of {gain:+.4f}, wanted at least {least:+.4f}"
            )
            checks.append(GateCheck("min-delta", outcome, shown))
        if self.significant:
            checks.append(self._above("significant", span, 0.0 if least is None else least))
        if self.non_inferiority is not None:
            checks.append(self._above("non-inferiority", span, -self.non_inferiority))
        return checks

    def _above(self, name: str, interval: tuple[float, float] | None, bound: float) -> GateCheck:
        if interval is None:
            reason = "the differences have no spread and the scores no bounds, so there is no interval to judge by"
            return GateCheck(name, GateOutcome.UNKNOWN, reason)
        outcome = GateOutcome.PASS if interval[0] > bound else GateOutcome.FAIL
        where = "lies above" if outcome is GateOutcome.PASS else "does not lie above"
        return GateCheck(
            name,
            outcome,
            f"the {1 - self.alpha:.0%} interval of the gain, {show_interval(interval)}, {where} {bound:+.4f}",
        )

    # --- the runs ----------------------------------------------------------------------------------------------------

    def _same(self, store: ExperimentStorage, candidate: RunMetadata, baseline: RunMetadata, name: str) -> GateCheck:
        sides = [_dimensions(store, run) for run in (candidate, baseline)]
        if not any(name in side for side in sides):
            known = {key for side in sides for key in side}
            shown = ", ".join(sorted(key for key in known if "." not in key))
            raise ConfigurationError(f"unknown dimension {name!r}{nearest(name, known)}; known: {shown}")
        mine, theirs = (side.get(name) for side in sides)
        if mine == theirs:
            return GateCheck(f"same-{name}", GateOutcome.PASS, f"{name} is the same in both runs")
        reason = f"{name} differs: candidate {_shown(mine)}, baseline {_shown(theirs)}"
        return GateCheck(f"same-{name}", GateOutcome.FAIL, reason)


def _finished(store: ExperimentStorage, candidate: RunMetadata, baseline: RunMetadata) -> GateCheck:
    for run in (candidate, baseline):
        if run.status is not RunStatus.COMPLETED:
            reason = f"run {run.run_id!r} is {run.status.value}. {how_to_resume_stored(store, run)}"
            return GateCheck("runs", GateOutcome.UNKNOWN, reason)
    return GateCheck("runs", GateOutcome.PASS, "both runs are completed")


def _failed(store: ExperimentStorage, run_id: str, metric: str) -> int:
    """Items without a score: no answer came, or judging it failed."""
    reader, evaluation = evaluation_of(store, run_id)
    _, unanswered = reader.count_records()
    return unanswered + reader.outcomes(evaluation).get(metric, {}).get(FAILED, 0)


def _few_failed(failed: int, most: int) -> GateCheck:
    outcome = GateOutcome.PASS if failed <= most else GateOutcome.FAIL
    return GateCheck("max-failed", outcome, f"{failed} of the candidate's items have no score, allowed are {most}")


def _within_budget(candidate: RunMetadata, budget_usd: float) -> GateCheck:
    cost = candidate.total_cost_usd
    if cost is None:
        whose = f"of {candidate.model!r}" if candidate.cost_usd is None else "of a judge"
        reason = f"the price {whose} is not known; name a price file in THEMIS_PRICES"
        return GateCheck("budget", GateOutcome.UNKNOWN, reason)
    outcome = GateOutcome.PASS if cost <= budget_usd else GateOutcome.FAIL
    return GateCheck("budget", outcome, f"the candidate cost ${cost:.4f}, allowed are ${budget_usd:.4f}")


def _interval(shared: SharedScores, alpha: float) -> tuple[float, float] | None:
    """Interval of candidate minus baseline; None if nothing bounds what the unseen items could differ by."""
    if shared.is_binary and shared.clusters is None:
        only_a, only_b = int((shared.a > shared.b).sum()), int((shared.a < shared.b).sum())
        return risk_difference_interval(only_a, only_b, shared.n, level=1 - alpha)
    interval = difference_interval(shared, alpha)
    if interval is not None:
        return interval
    if min(shared.a.min(), shared.b.min()) < 0 or max(shared.a.max(), shared.b.max()) > 1:
        return None
    # Every unit differs by the same amount. Units that differ otherwise, by 1 at most, may still make up the share that
    # a score interval allows after seeing none of them.
    square = normal_quantile(1 - alpha / 2) ** 2
    unseen = square / (shared.units + square)
    centre = float(shared.a.mean() - shared.b.mean()) * (1 - unseen)
    return centre - unseen, centre + unseen


def _dimensions(store: ExperimentStorage, run: RunMetadata) -> dict[str, Any]:
    """What decides a run's results by name: its identity, and its manifest by dotted keys."""
    manifest = run.config_snapshot.get("reproducibility_manifest", {})
    found = {**manifest, **_flat(manifest)}
    for name, key in (
        ("dataset", "dataset.fingerprint"),
        ("model", "model.identifier"),
        ("prompt", "prompt.template_hash"),
    ):
        found[name] = found.get(key)
    return {**found, **store.reader(run.run_id).identity}


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        found[prefix + key] = item
        if isinstance(item, Mapping):
            found.update(_flat(item, f"{prefix}{key}."))
    return found


def _shown(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
