"""The gates of an experiment: limits that every run of it must keep, beside its baseline or by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import get_type_hints

from themis.comparison.gate import Gate, GateCheck, GateOutcome, GateVerdict
from themis.comparison.scores import find_metric
from themis.core.redaction import redact
from themis.exceptions import ConfigurationError, MetricError
from themis.experiments.mistakes import Mistakes, ValuePath
from themis.experiments.values import Settings, explain_unknown, fits
from themis.storage import ExperimentStorage, RunStatus

__all__ = ["GateRule", "gate_fields", "read_gates"]


@dataclass(frozen=True, kw_only=True)
class GateRule:
    """One gate: rules of `Gate` for a run beside its baseline, bounds of a mean for any run.

    Args:
        metric: What is judged by.
        at_least: The least mean.
        at_most: The greatest mean.
        only: Only runs whose id or a label of theirs matches this pattern.
        beside_baseline: Rules of `Gate`, by name.
    """

    metric: str
    at_least: float | None = None
    at_most: float | None = None
    only: str | None = None
    beside_baseline: Settings = field(default_factory=dict)

    @property
    def is_comparative(self) -> bool:
        """Whether a baseline is needed: bounds alone need none."""
        return bool(self.beside_baseline) or (self.at_least is None and self.at_most is None)

    def judge(self, candidate: str, baseline: str | None, storage: ExperimentStorage) -> GateVerdict | None:
        """The verdict on a stored run; None where the rule asks nothing of it: it is the baseline itself."""
        verdict = None
        if self.is_comparative and baseline is not None:
            gate = Gate(baseline=baseline, metric=self.metric, **self.beside_baseline)
            verdict = gate.judge(candidate, storage=storage)
        if self.at_least is None and self.at_most is None:
            return verdict
        bounds = tuple(self._check_bounds(candidate, storage))
        alone = verdict or GateVerdict(candidate=candidate, baseline="", metric=self.metric, alpha=0.05, checks=())
        return replace(alone, checks=(*alone.checks, *bounds))

    def _check_bounds(self, candidate: str, storage: ExperimentStorage) -> list[GateCheck]:
        run = storage.find_run(candidate)
        if run is None or run.metadata.status is not RunStatus.COMPLETED:
            return [GateCheck("runs", GateOutcome.UNKNOWN, f"run {candidate!r} is not completed")]
        metrics = run.metadata.summary.get("metrics", {})
        try:
            found = metrics[find_metric(self.metric, list(metrics), f"the metrics of {candidate!r}")]
        except MetricError as error:
            return [GateCheck("mean", GateOutcome.UNKNOWN, str(error))]
        mean = found["mean"]
        if mean is None or mean != mean:
            return [GateCheck("mean", GateOutcome.UNKNOWN, f"nothing of {candidate!r} has a score of {self.metric}")]
        failed, total = int(found.get("failed", 0)), run.metadata.total_samples
        of_how_many = f" ({failed} of {total} items failed)" if failed else ""
        least = float(self.beside_baseline.get("min_overlap", Gate.min_overlap))
        if total - failed < least * total:
            reason = f"{self.metric} {mean:.4f}: {failed} of {total} items failed, wanted at least {least:.0%} scored"
            return [GateCheck("mean", GateOutcome.UNKNOWN, reason)]
        checks = []
        for name, bound, is_kept in (
            ("at-least", self.at_least, self.at_least is None or mean >= self.at_least - 1e-12),
            ("at-most", self.at_most, self.at_most is None or mean <= self.at_most + 1e-12),
        ):
            if bound is not None:
                outcome = GateOutcome.PASS if is_kept else GateOutcome.FAIL
                wanted = f"{self.metric} {mean:.4f}{of_how_many}, wanted {name.replace('-', ' ')} {bound:g}"
                checks.append(GateCheck(name, outcome, wanted))
        return checks


def gate_fields() -> dict[str, object]:
    """What a gate may say in an experiment, with types: everything that `Gate` takes but the baseline, which is the run's."""
    hints = get_type_hints(Gate)
    own = get_type_hints(GateRule)
    of_gate = {one.name: hints[one.name] for one in fields(Gate) if one.name != "baseline"}
    return {**of_gate, **{name: own[name] for name in ("at_least", "at_most", "only")}}


def read_gates(given: object, path: ValuePath, mistakes: Mistakes) -> list[GateRule]:
    """The gates of a list; what is wrong with them is added to the mistakes."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        mistakes.add(path, f"gates is a list, such as [{{metric: ExactMatch, at_least: 0.8}}], got {redact(given)!r}")
        return []
    return [rule for place, entry in enumerate(given) if (rule := _read_gate(entry, (*path, place), mistakes))]


def _read_gate(entry: object, path: ValuePath, mistakes: Mistakes) -> GateRule | None:
    if not isinstance(entry, Mapping):
        mistakes.add(path, f"a gate is a mapping, such as {{metric: ExactMatch, at_least: 0.8}}, got {redact(entry)!r}")
        return None
    known = gate_fields()
    if isinstance(only := entry.get("only"), int | float) and not isinstance(only, bool):
        entry = {**entry, "only": str(only)}  # what is called by a number
    is_good = True
    for name, value in entry.items():
        if name not in known:
            mistakes.add((*path, str(name)), explain_unknown(str(name), list(known)))
            is_good = False
        elif not fits(value, known[name]):
            mistakes.add((*path, name), f"{name} of a gate cannot be {redact(value)!r}")
            is_good = False
    if "metric" not in entry:
        mistakes.add(path, "a gate names the metric that it judges by: metric: ExactMatch")
        is_good = False
    if not is_good:
        return None
    own = {name: entry[name] for name in ("metric", "at_least", "at_most", "only") if name in entry}
    rules: Settings = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items() if name not in own
    }
    try:
        Gate(baseline="", metric=entry["metric"], **rules)
    except ConfigurationError as error:
        mistakes.add(path, str(error))
        return None
    return GateRule(**own, beside_baseline=rules)
