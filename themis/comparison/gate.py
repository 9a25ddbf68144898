"""Whether a candidate may replace a baseline: passes, fails, or cannot be told, with a reason for every check.

A gate never passes on missing evidence: a run that is not there, not finished, or shares too few items is "unknown". Runs
that were judged differently fail it: what they differ by may be the judges' doing. The
verdict can be written for machines that read files: JUnit XML, and the summary page of a GitHub job.
"""

from __future__ import annotations

import enum
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from themis.comparison.engine import StatisticalTest, TestSettings, difference_with_interval, run_test, why_untestable
from themis.comparison.judging import describe_differences, how_to_judge_alike, judging_differences
from themis.comparison.pairing import Pairing
from themis.comparison.reports import StatisticalTestResult, format_interval
from themis.comparison.scores import (
    ScoredRun,
    StoreLocation,
    align,
    common_metrics,
    is_higher_better,
    open_scores,
    open_store,
    overlap_of_runs,
)
from themis.comparison.statistics import Pairs
from themis.core.markup import escape_markdown, format_table, truncate
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, MetricError, StorageError
from themis.runs.resuming import how_to_resume_stored
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.queries import AttemptCounts
from themis.storage.runs import FAILED


class GateOutcome(enum.StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


_SIDES = ("candidate", "baseline")
_EXIT_CODES = {GateOutcome.PASS: 0, GateOutcome.FAIL: 1, GateOutcome.UNKNOWN: 3}


@dataclass(frozen=True)
class GateCheck:
    """One condition, what came of it, and why."""

    name: str
    outcome: GateOutcome
    reason: str


@dataclass(frozen=True, kw_only=True)
class GateVerdict:
    """All checks of a candidate.

    Args:
        candidate: The run that is to replace the baseline.
        baseline: The run to be as good as.
        metric: What they are judged by.
        checks: Each condition with its outcome and reason.
        alpha: One minus the level of the interval.
        n: Items that both have a score of.
        candidate_mean: Over those; None where they could not be compared, as for the rest.
        baseline_mean: Over those.
        delta: Candidate minus baseline.
        interval: Of the difference.
        test: The test that was taken, with its p-value.
        pairing: How many items of candidate and baseline were paired, and why others were left out.
        attempts: Of candidate and baseline, with how many have no answer.

    >>> check = GateCheck("overlap", GateOutcome.UNKNOWN, "only 3 of 100 items are shared")
    >>> verdict = GateVerdict(candidate="new", baseline="old", metric="ExactMatch", alpha=0.05, checks=(check,))
    >>> verdict.passed, verdict.exit_code, verdict.reasons
    (False, 3, ['only 3 of 100 items are shared'])
    """

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
    pairing: Pairing | None = None
    attempts: tuple[AttemptCounts, AttemptCounts] | None = None

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
        """Whether every check passed."""
        return self.outcome is GateOutcome.PASS

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 could not tell."""
        return _EXIT_CODES[self.outcome]

    @property
    def reasons(self) -> list[str]:
        """Why it did not pass; empty if it did."""
        return [check.reason for check in self.checks if check.outcome is not GateOutcome.PASS]

    def told(self) -> list[str]:
        """How many items were paired and what was left out, how many attempts failed, and what limits the test."""
        lines = []
        if self.pairing is not None:
            lines.append(f"paired: {self.pairing.describe('the candidate', 'the baseline')}")
        if self.attempts is not None:
            made = [f"{name} {one.made} ({one.failed} failed)" for name, one in zip(_SIDES, self.attempts, strict=True)]
            lines.append(f"attempts: {', '.join(made)}")
        return [*lines, *([self.test.note] if self.test is not None and self.test.note else [])]

    def to_dict(self) -> dict[str, object]:
        """The verdict as plain values."""
        attempts = None if self.attempts is None else dict(zip(_SIDES, map(vars, self.attempts), strict=True))
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
            "note": "" if self.test is None else self.test.note,
            "pairing": None if self.pairing is None else self.pairing.to_dict(),
            "attempts": attempts,
            "checks": [{**vars(check), "outcome": check.outcome.value} for check in self.checks],
        }


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What a candidate must meet. A gain is candidate minus baseline, or the opposite where a smaller value is better.

    Args:
        baseline: The run to be as good as.
        metric: The metric to judge by.
        min_delta: Least observed gain; 0 if neither it nor `non_inferiority` is given.
        significant: The whole interval of the gain must lie above `min_delta`, too.
        non_inferiority: The interval must lie above minus this margin.
        alpha: One minus the level of the interval.
        min_overlap: Least share of the candidate's items that must be comparable.
        budget_usd: Most that the candidate may have cost.
        max_failed: Most items of the candidate without a score.
        require_same: Dimensions in which the two runs must not differ, such as dataset or model.
        lower_is_better: Which way the metric is good; None for as it says itself.
        across: Pair items by id, whatever their content, and weigh runs that were judged differently; the verdict says so.

    Raises:
        ConfigurationError: A number is out of its range.

    >>> import themis
    >>> for run_id, model in (("baseline", "fake/noisy-0.9"), ("candidate", "fake/perfect")):
    ...     report = themis.evaluate("demo", model=model, run_id=run_id, storage="runs", progress=False)
    >>> gate = Gate(baseline="baseline", metric="ExactMatch", non_inferiority=0.02)
    >>> gate.judge("candidate", storage_path="runs").outcome.value
    'pass'
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
    across: bool = False

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

    def judge(
        self, candidate: str, *, storage: StoreLocation | None = None, storage_path: StoreLocation | None = None
    ) -> GateVerdict:
        """The verdict on a stored run. A missing run or store is an unknown verdict, not an error.

        Args:
            candidate: The run that is to replace the baseline.
            storage: A store that is open already, or a storage backend.
            storage_path: Instead of it, where the store is.

        Raises:
            ConfigurationError: Candidate and baseline are one run, a dimension is unknown, or nobody says which way the
                metric is good.
        """
        if candidate == self.baseline:
            raise ConfigurationError(f"candidate and baseline are the same run, {candidate!r}")
        verdict = GateVerdict(
            candidate=candidate, baseline=self.baseline, metric=self.metric, alpha=self.alpha, checks=()
        )
        try:
            store = open_store(storage, storage_path)
            runs = store.get_run(candidate), store.get_run(self.baseline)
        except StorageError as error:
            return replace(verdict, checks=(GateCheck("runs", GateOutcome.UNKNOWN, str(error)),))
        finished = _check_finished(store, *runs)
        verdict = replace(
            verdict, checks=(finished, *(self._check_same(store, *runs, name) for name in self.require_same))
        )
        if finished.outcome is GateOutcome.PASS:
            verdict = self._compare(store, verdict)
        if self.budget_usd is not None:
            verdict = replace(verdict, checks=(*verdict.checks, _check_budget(runs[0], self.budget_usd)))
        return verdict

    # --- the difference ----------------------------------------------------------------------------------------------

    def _compare(self, store: ExperimentStorage, verdict: GateVerdict) -> GateVerdict:
        """Adds the checks that need scores, and what they rest on."""
        checks = list(verdict.checks)
        try:
            runs = open_scores(store, [verdict.candidate, self.baseline], across=self.across)
            metric = common_metrics(runs, [self.metric])[0]
            mine, theirs = runs[0].read(metric), runs[1].read(metric)
            if self.max_failed is not None:
                failed = _count_failed(runs[0], metric)
                reason = f"{failed} of the candidate's items have no score, allowed are {self.max_failed}"
                checks.append(_decide("max-failed", failed <= self.max_failed, reason))
            overlap = overlap_of_runs(*runs)
            pairs = align(mine, theirs)
        except MetricError as error:
            return replace(verdict, checks=(*checks, GateCheck("overlap", GateOutcome.UNKNOWN, str(error))))
        pairing = overlap.count(runs[0].items, runs[1].items, mine.keys, theirs.keys)
        checks += [self._check_overlap(pairs, pairing), self._check_judging(runs, metric)]
        means = pairs.means
        interval, test = None, None
        if all(check.outcome is GateOutcome.PASS for check in checks[-2:]):
            test = run_test(pairs, TestSettings(test=StatisticalTest.AUTO, alpha=self.alpha))
            interval = difference_with_interval(pairs, test).ci
            checks += self._gain_checks(metric, means, interval, self._is_lower_better(runs, metric))
        return replace(
            verdict,
            checks=tuple(checks),
            n=pairs.n,
            candidate_mean=means[0],
            baseline_mean=means[1],
            delta=means[0] - means[1],
            interval=interval,
            test=test,
            pairing=pairing,
            attempts=(runs[0].attempts, runs[1].attempts),
        )

    def _check_overlap(self, pairs: Pairs, pairing: Pairing) -> GateCheck:
        reason = f"{pairs.n} of the candidate's {pairing.items_a} items are scored in both runs"
        if left_out := pairing.reasons("the candidate", "the baseline"):
            reason += f"; left out: {', '.join(left_out)}"
        if pairing.across:
            reason += f"; {pairing.mark}"
        if hindrance := why_untestable(pairs):
            return GateCheck("overlap", GateOutcome.UNKNOWN, f"{reason}: {hindrance}")
        if pairs.n < self.min_overlap * pairing.items_a:
            return GateCheck("overlap", GateOutcome.UNKNOWN, f"{reason}; wanted at least {self.min_overlap:.0%}")
        return GateCheck("overlap", GateOutcome.PASS, reason)

    def _check_judging(self, runs: Sequence[ScoredRun], metric: str) -> GateCheck:
        """A difference between two judges is none between two runs."""
        differences = judging_differences(runs[0], runs[1], metric)
        if not differences:
            return GateCheck("judging", GateOutcome.PASS, "both runs were judged alike")
        reason = f"judged differently: {describe_differences(differences)}"
        if self.across:
            return GateCheck("judging", GateOutcome.PASS, f"{reason}; compared all the same (across)")
        return GateCheck("judging", GateOutcome.FAIL, f"{reason}; {how_to_judge_alike(runs[0], runs[1])}")

    def _is_lower_better(self, runs: Sequence[ScoredRun], metric: str) -> bool:
        if self.lower_is_better is not None:
            return self.lower_is_better
        direction = is_higher_better(runs, metric)
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
            reason = (
                f"{metric} {means[0]:.4f} against {means[1]:.4f}: a gain of {gain:+.4f}, wanted at least {least:+.4f}"
            )
            # Rounding in a mean is not a regression.
            checks.append(_decide("min-delta", gain >= least - 1e-12, reason))
        if self.significant:
            checks.append(self._check_above("significant", span, 0.0 if least is None else least))
        if self.non_inferiority is not None:
            checks.append(self._check_above("non-inferiority", span, -self.non_inferiority))
        return checks

    def _check_above(self, name: str, interval: tuple[float, float] | None, bound: float) -> GateCheck:
        if interval is None:
            reason = "the differences have no spread and the scores no bounds, so there is no interval to judge by"
            return GateCheck(name, GateOutcome.UNKNOWN, reason)
        is_above = interval[0] > bound
        where = f"{'lies' if is_above else 'does not lie'} above {bound:+.4f}"
        reason = f"the {1 - self.alpha:.0%} interval of the gain, {format_interval(interval)}, {where}"
        return _decide(name, is_above, reason)

    # --- the runs ----------------------------------------------------------------------------------------------------

    def _check_same(
        self, store: ExperimentStorage, candidate: RunMetadata, baseline: RunMetadata, name: str
    ) -> GateCheck:
        sides = [_dimensions(store, run) for run in (candidate, baseline)]
        if not any(name in side for side in sides):
            known = {key for side in sides for key in side}
            shown = ", ".join(sorted(key for key in known if "." not in key))
            raise ConfigurationError(f"unknown dimension {name!r}{nearest(name, known)}; known: {shown}")
        mine, theirs = (side.get(name) for side in sides)
        differs = f"{name} differs: candidate {_format_value(mine)}, baseline {_format_value(theirs)}"
        is_same = mine == theirs
        return _decide(f"same-{name}", is_same, f"{name} is the same in both runs" if is_same else differs)


def _decide(name: str, is_met: bool, reason: str) -> GateCheck:
    return GateCheck(name, GateOutcome.PASS if is_met else GateOutcome.FAIL, reason)


def _check_finished(store: ExperimentStorage, candidate: RunMetadata, baseline: RunMetadata) -> GateCheck:
    for run in (candidate, baseline):
        if run.status is not RunStatus.COMPLETED:
            reason = f"run {run.run_id!r} is {run.status.value}. {how_to_resume_stored(store, run)}"
            return GateCheck("runs", GateOutcome.UNKNOWN, reason)
    return GateCheck("runs", GateOutcome.PASS, "both runs are completed")


def _count_failed(run: ScoredRun, metric: str) -> int:
    """Items without a score: no answer came, or judging it failed."""
    _, unanswered = run.reader.count_records()
    return unanswered + run.reader.outcomes(run.evaluation).get(metric, {}).get(FAILED, 0)


def _check_budget(candidate: RunMetadata, budget_usd: float) -> GateCheck:
    cost = candidate.total_cost_usd
    if cost is None:
        whose = f"of {candidate.model!r}" if candidate.cost_usd is None else "of a judge"
        reason = f"the price {whose} is not known; name a price file in THEMIS_PRICES"
        return GateCheck("budget", GateOutcome.UNKNOWN, reason)
    return _decide("budget", cost <= budget_usd, f"the candidate cost ${cost:.4f}, allowed are ${budget_usd:.4f}")


def _dimensions(store: ExperimentStorage, run: RunMetadata) -> dict[str, object]:
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


def _flat(value: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, item in value.items():
        found[prefix + key] = item
        if isinstance(item, Mapping):
            found.update(_flat(item, f"{prefix}{key}."))
    return found


def _format_value(value: object) -> str:
    return repr(truncate(str(value), 60))


# --- files ------------------------------------------------------------------------------------------------------------


_SIGNS = {GateOutcome.PASS: "✅ pass", GateOutcome.FAIL: "❌ fail", GateOutcome.UNKNOWN: "❔ could not tell"}
# XML 1.0 has no way to write these.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(verdict: GateVerdict) -> str:
    """One test case a check; what could not be told is an error rather than a failure."""
    failed = [check for check in verdict.checks if check.outcome is GateOutcome.FAIL]
    unknown = [check for check in verdict.checks if check.outcome is GateOutcome.UNKNOWN]
    suite = ElementTree.Element(
        "testsuite",
        name="themis gate",
        tests=str(len(verdict.checks)),
        failures=str(len(failed)),
        errors=str(len(unknown)),
        skipped="0",
    )
    suite_name = f"themis.gate.{verdict.candidate}"
    for check in verdict.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml_text(suite_name), name=_xml_text(check.name))
        if check.outcome is GateOutcome.PASS:
            ElementTree.SubElement(case, "system-out").text = _xml_text(check.reason)
        else:
            kind = "failure" if check.outcome is GateOutcome.FAIL else "error"
            ElementTree.SubElement(case, kind, message=_xml_text(check.reason), type=check.name)
    if told := verdict.told():
        ElementTree.SubElement(suite, "system-out").text = _xml_text("\n".join(told))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def write_junit(verdict: GateVerdict, path: str | Path) -> None:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(junit_xml(verdict), encoding="utf-8")


def github_summary(verdict: GateVerdict) -> str:
    """The verdict as Markdown."""
    lines = [
        f"### Gate: {_SIGNS[verdict.outcome]}",
        "",
        f"{escape_markdown(verdict.candidate)} against {escape_markdown(verdict.baseline)} on {escape_markdown(verdict.metric)}",
        "",
    ]
    if verdict.candidate_mean is not None and verdict.baseline_mean is not None and verdict.delta is not None:
        interval = (
            "" if verdict.interval is None else f", interval {escape_markdown(format_interval(verdict.interval))}"
        )
        lines += [
            f"{verdict.candidate_mean:.4f} − {verdict.baseline_mean:.4f} = {verdict.delta:+.4f}{interval}, "
            f"{verdict.n} items",
            "",
            *(f"- {escape_markdown(line)}" for line in verdict.told()),
            "",
        ]
    rows = [(check.name, _SIGNS[check.outcome], check.reason) for check in verdict.checks]
    lines.append(format_table(("Check", "Outcome", "Why"), rows))
    return "\n".join([*lines, ""])


def append_github_summary(verdict: GateVerdict, path: str | Path) -> None:
    """Adds to the file that GITHUB_STEP_SUMMARY names; earlier steps have written there too."""
    with Path(path).open("a", encoding="utf-8") as handle:
        handle.write(github_summary(verdict) + "\n")


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
