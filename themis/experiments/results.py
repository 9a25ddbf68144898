"""What came of an experiment: its runs, each beside its baseline, memory agents against each other, gates, one exit code.

Read from the store, so that it tells of every session, and of runs that another process has made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from themis.comparison.baselines import BaselineComparison, compare_to_baselines
from themis.comparison.gate import GateOutcome, GateVerdict
from themis.comparison.reports import TIE, ComparisonResult, format_p_cell
from themis.config.specification import MemorySpecification
from themis.core.notebook import render_block, render_lines, render_table
from themis.experiments.expanding import PlannedRun
from themis.experiments.planning import read_spent
from themis.experiments.running import EndedRun
from themis.experiments.specification import ExperimentSpecification
from themis.memory.assembling import load_config
from themis.memory.report.pages import span_sentences
from themis.memory.sweep import SweepReport, SweepRun, read_runs
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.batches import read_open_batches
from themis.storage.queries import RunReader

__all__ = ["ExperimentResult", "RunResult", "Table", "read_result"]

_INTERRUPTED, _BROKEN, _FAILED = 130, 3, 1


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run as it is stored.

    Args:
        run: Which.
        stored: What the store says of it; None where it was not begun.
        reason: Why it is not complete.
        is_broken: It ended with an error.
        baseline: The id of the run that it is compared with.
        larger_budget_usd: With which it would go on, where a budget ended it.

    >>> import themis
    >>> result = themis.run_experiment({"name": "sums", "dataset": "demo", "subjects": ["fake/perfect"]}, progress=False)
    >>> result.runs[0].metrics["ExactMatch"]["mean"], result.runs[0].standing
    (1.0, 'completed')
    """

    run: PlannedRun
    stored: RunMetadata | None = None
    reason: str = ""
    is_broken: bool = False
    baseline: str | None = None
    larger_budget_usd: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all its items have been worked off."""
        return self.stored is not None and self.stored.status is RunStatus.COMPLETED

    @property
    def metrics(self) -> Mapping[str, Mapping[str, Any]]:
        """Mean, interval and counts by metric."""
        return {} if self.stored is None else self.stored.summary.get("metrics", {})

    @property
    def failed(self) -> int:
        """Items that were not answered, or that some metric could not judge."""
        answered = 0 if self.stored is None else self.stored.failed_generations
        return max((int(metric.get("failed", 0)) for metric in self.metrics.values()), default=answered)

    @property
    def standing(self) -> str:
        """How it stands, in words."""
        return "not begun" if self.stored is None else str(self.stored.standing)

    @property
    def cost_usd(self) -> float | None:
        """What it has cost, judges included; None where a price is not known."""
        return 0.0 if self.stored is None else self.stored.total_cost_usd

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "run_id": self.run.run_id,
            "labels": dict(self.run.labels),
            "kind": self.run.kind,
            "status": None if self.stored is None else self.stored.status.value,
            "reason": self.reason,
            "items": 0 if self.stored is None else self.stored.total_samples,
            "failed": self.failed,
            "cost_usd": self.cost_usd,
            "metrics": dict(self.metrics),
            "baseline": self.baseline,
        }


@dataclass(frozen=True, kw_only=True)
class Table:
    """A part of the report, for a terminal, a page or Markdown alike.

    `plotted` are the differences that it is about, of runs by their names.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    plotted: Sequence[ComparisonResult] = ()


@dataclass(frozen=True, kw_only=True)
class ExperimentResult:
    """The one report of an experiment.

    Args:
        name: Of the experiment.
        runs: Every run that was asked for.
        comparison: Sample runs beside their baselines.
        sweeps: Memory runs by agent, one report a configuration.
        gates: The verdict of each gate on each run.
        budget_usd: The most that all may cost.
        spent_usd: What the experiment has cost, earlier sessions and archived runs included.
        fail_on_errors: The share of a run's items that may fail.
        is_interrupted: The user stopped it.

    >>> import themis
    >>> result = themis.run_experiment({"name": "sums", "dataset": "demo", "subjects": ["fake/perfect"]}, progress=False)
    >>> result.exit_code, result.headline()
    (0, 'sums: 1 of 1 runs complete, $0.0000 spent')
    """

    name: str
    runs: Sequence[RunResult]
    comparison: BaselineComparison = field(default_factory=BaselineComparison)
    sweeps: Mapping[str, SweepReport] = field(default_factory=dict)
    gates: Sequence[GateVerdict] = ()
    budget_usd: float | None = None
    spent_usd: float = 0.0
    fail_on_errors: float | None = None
    is_interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """0 all done and every gate passes; 1 a gate fails, or too much failed; 3 a run is broken, or a gate cannot tell;
        130 stopped by the user or a budget."""
        outcomes = {verdict.outcome for verdict in self.gates}
        if self.is_interrupted:
            return _INTERRUPTED
        if any(run.is_broken for run in self.runs):
            return _BROKEN
        if not all(run.is_complete for run in self.runs):
            return _INTERRUPTED
        if GateOutcome.FAIL in outcomes or self.too_many_failed:
            return _FAILED
        return _BROKEN if GateOutcome.UNKNOWN in outcomes else 0

    @property
    def too_many_failed(self) -> list[RunResult]:
        """Runs of which more items failed than may."""
        if self.fail_on_errors is None:
            return []
        return [
            run
            for run in self.runs
            if run.stored is not None and run.failed > self.fail_on_errors * run.stored.total_samples
        ]

    def headline(self) -> str:
        """How far it is and what it has cost, in a line."""
        done = sum(run.is_complete for run in self.runs)
        of_budget = "" if self.budget_usd is None else f" of ${self.budget_usd:g}"
        unpriced = sum(run.cost_usd is None for run in self.runs)
        beside = f" beside {unpriced} of unknown price" if unpriced else ""
        return f"{self.name}: {done} of {len(self.runs)} runs complete, ${self.spent_usd:.4f}{of_budget} spent{beside}"

    def __repr__(self) -> str:
        return f"ExperimentResult({self.headline()})"

    def _repr_html_(self) -> str:
        parts = [
            render_block(table.title, [], [], [render_table(table.columns, table.rows), render_lines(table.notes)])
            for table in self.tables()
        ]
        return render_block("Experiment", [self.headline()], self.problems(), [*parts, render_lines(self.notes())])

    @property
    def names(self) -> dict[str, str]:
        """What the runs are called within the experiment, by id."""
        return {run.run.run_id: run.run.name for run in self.runs}

    def notes(self) -> list[str]:
        """How differences were weighed, and what limits the verdicts and the means."""
        compared = self.comparison
        weighed = [compared.method_line(), *compared.notes(self.names)] if compared.results or compared.left_out else []
        caveats = (
            f"{run.run.name}: {caveat}"
            for run in self.runs
            if run.stored is not None
            for caveat in run.stored.summary.get("caveats", ())
        )
        return [*caveats, *weighed]

    def problems(self) -> list[str]:
        """What is not as it should be, a line each: runs that are not complete, gates that do not pass."""
        names = self.names
        lines = [
            f"{run.run.name}: {run.reason or run.standing}" for run in self.runs if run.is_broken or not run.is_complete
        ]
        lines += [
            f"{run.run.name}: {run.failed} of {run.stored.total_samples if run.stored else 0} items failed, more than "
            f"fail_on_errors {self.fail_on_errors:g} allows"
            for run in self.too_many_failed
        ]
        for verdict in self.gates:
            if not verdict.passed:
                what = "fails" if verdict.outcome is GateOutcome.FAIL else "cannot tell"
                reasons = "; ".join(verdict.reasons)
                lines.append(
                    f"gate of {verdict.metric} {what}, {names.get(verdict.candidate, verdict.candidate)}: {reasons}"
                )
        return lines

    def tables(self) -> list[Table]:
        """The report's parts: runs, each dataset's metrics beside the baseline, memory, gates."""
        tables = [self._runs_table(), *self._metric_tables()]
        for name, sweep in self.sweeps.items():
            tables += _sweep_tables(name, sweep)
        return [*tables, *self._gates_table()]

    def to_dict(self) -> dict[str, object]:
        """The report as plain values."""
        return {
            "experiment": self.name,
            "exit_code": self.exit_code,
            "budget_usd": self.budget_usd,
            "spent_usd": self.spent_usd,
            "runs": [run.to_dict() for run in self.runs],
            "comparisons": [result.to_dict() for result in self.comparison.results],
            "notes": self.notes(),
            "memory": {
                name: {
                    "agents": [view.summary.to_dict() for view in sweep.agents],
                    "spans": {one.name: [vars(point) for point in one.points] for one in sweep.spans},
                    "comparisons": [result.to_dict() for result in sweep.comparisons],
                }
                for name, sweep in self.sweeps.items()
            },
            "gates": [verdict.to_dict() for verdict in self.gates],
            "problems": self.problems(),
        }

    # --- parts --------------------------------------------------------------------------------------------------------

    def _runs_table(self) -> Table:
        rows = [
            (
                run.run.name,
                run.standing,
                "0" if run.stored is None else f"{run.stored.total_samples:,}",
                f"{run.failed:,}",
                "0" if run.stored is None else f"{run.stored.calls + run.stored.judge_calls:,}",
                "n/a" if run.cost_usd is None else f"${run.cost_usd:.4f}",
            )
            for run in self.runs
        ]
        return Table(title="Runs", columns=("run", "status", "items", "failed", "calls", "cost"), rows=rows)

    def _metric_tables(self) -> Iterator[Table]:
        samples = [run for run in self.runs if run.run.kind != MemorySpecification.kind and run.metrics]
        compared = {(one.run_a_id, one.metric_name): one for one in self.comparison.results}
        bases = {run.baseline for run in samples if run.baseline is not None}
        called = {run.run.run_id: _name_on_dataset(run.run) for run in self.runs}
        for dataset in dict.fromkeys(run.run.labels.get("datasets", "") for run in samples):
            members = [run for run in samples if run.run.labels.get("datasets", "") == dataset]
            for metric in dict.fromkeys(name for run in members for name in run.metrics):
                rows = [
                    _metric_row(run, metric, compared.get((run.run.run_id, metric)), run.run.run_id in bases)
                    for run in members
                    if metric in run.metrics
                ]
                plotted = [
                    replace(one, run_a_id=called[one.run_a_id], run_b_id=called.get(one.run_b_id, one.run_b_id))
                    for run in members
                    if (one := compared.get((run.run.run_id, metric))) is not None
                ]
                yield Table(
                    title=f"{metric} on {dataset}" if dataset else metric,
                    columns=("run", "mean [95 %]", "items", "difference", "p", "verdict"),
                    rows=rows,
                    plotted=plotted,
                )

    def _gates_table(self) -> Iterator[Table]:
        names = self.names
        rows = [
            (verdict.metric, names.get(verdict.candidate, verdict.candidate), verdict.outcome.value, _why(verdict))
            for verdict in self.gates
        ]
        if rows:
            yield Table(title="Gates", columns=("gate", "run", "outcome", "why"), rows=rows)


def _why(verdict: GateVerdict) -> str:
    """What kept it from passing, or what it passed by."""
    return "; ".join(verdict.reasons) or (verdict.checks[-1].reason if verdict.checks else "")


def _metric_row(run: RunResult, metric: str, compared: ComparisonResult | None, is_baseline: bool) -> tuple[str, ...]:
    found = run.metrics[metric]
    failed = f" ({found['failed']:,} failed)" if found.get("failed") else ""
    cells = (
        _name_on_dataset(run.run),
        _format_estimate(found.get("mean"), found.get("ci")),
        f"{found.get('count', 0):,}{failed}",
    )
    if compared is None:
        return (*cells, "baseline" if is_baseline else "", "", "" if run.is_complete else "not complete")
    p_value = compared.corrected_p_value
    if p_value is None and compared.test_result is not None:
        p_value = compared.test_result.p_value
    difference = _format_estimate(compared.delta, compared.interval, "+.3f")
    return (*cells, difference, format_p_cell(p_value), _say_verdict(compared))


def _name_on_dataset(run: PlannedRun) -> str:
    """What a run is called among those of its dataset."""
    return " · ".join(label for axis, label in run.labels.items() if axis != "datasets") or run.name


def _format_estimate(value: float | None, interval: Sequence[float] | None, form: str = ".3f") -> str:
    """A number with its interval."""
    if value is None or value != value:
        return "n/a"
    return f"{value:{form}}" + (f" [{interval[0]:{form}}, {interval[1]:{form}}]" if interval else "")


def _say_verdict(compared: ComparisonResult) -> str:
    if compared.winner is None:
        return "no verdict"
    if compared.winner == TIE:
        return "differs" if compared.higher_is_better is None and compared.is_significant() else "tie"
    return "better" if compared.winner == compared.run_a_id else "worse"


def _sweep_tables(name: str, sweep: SweepReport) -> Iterator[Table]:
    spans = sorted({point.span_tokens for one in sweep.spans for point in one.points})
    rows = []
    for span in spans:
        points = [next((point for point in one.points if point.span_tokens == span), None) for one in sweep.spans]
        cells = [
            "n/a" if point is None else f"{point.mean:.3f} [{point.low:.3f}, {point.high:.3f}]" for point in points
        ]
        rows.append((f"{span:,}", *cells))
    yield Table(
        title=f"Memory: {name}",
        columns=("span", *(one.name for one in sweep.spans)),
        rows=rows,
        notes=span_sentences(sweep.agents),
    )
    pairs = [
        (
            f"{pair.run_a_id} - {pair.run_b_id}",
            f"{pair.delta:+.3f}",
            format_p_cell(pair.corrected_p_value),
            "undecided" if pair.winner == TIE else pair.verdict(),
            "; ".join(pair.remarks),
        )
        for pair in sweep.comparisons
    ]
    if pairs:
        yield Table(title=f"Agents on {name}", columns=("agents", "difference", "p", "verdict", "note"), rows=pairs)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_result(
    experiment: ExperimentSpecification,
    runs: Sequence[PlannedRun],
    store: ExperimentStorage,
    *,
    ended: Iterable[EndedRun] = (),
    is_interrupted: bool = False,
) -> ExperimentResult:
    """What the store holds of these runs, compared and held to the gates; `ended` says why runs are not complete."""
    endings = {one.run.run_id: one for one in ended}
    baselines = experiment.baselines
    results = [
        RunResult(
            run=run,
            stored=None if (found := store.find_run(run.run_id)) is None else found.metadata,
            reason=_explain_end(endings[run.run_id], found) if run.run_id in endings else "",
            is_broken=run.run_id in endings and _is_broken(endings[run.run_id], found),
            larger_budget_usd=endings[run.run_id].larger_budget_usd if run.run_id in endings else None,
            baseline=baselines.get(run.run_id),
        )
        for run in runs
    ]
    pairs = [
        (run.run.run_id, run.baseline)
        for run in results
        if run.is_complete
        and run.run.kind != MemorySpecification.kind
        and run.baseline
        and _is_done(run.baseline, store)
    ]
    compared = compare_to_baselines(store, pairs, settings=experiment.test_settings) if pairs else None
    return ExperimentResult(
        name=experiment.name,
        runs=results,
        comparison=compared or BaselineComparison(settings=experiment.test_settings),
        sweeps=_read_sweeps([run for run in results if run.is_complete], store),
        gates=_judge_gates(experiment, results, store),
        budget_usd=experiment.budget_usd,
        spent_usd=read_spent(experiment.name, store),
        fail_on_errors=experiment.fail_on_errors,
        is_interrupted=is_interrupted,
    )


def _is_broken(ended: EndedRun, stored: RunReader | None) -> bool:
    """Whether it ended with an error; what another process was making is none once that has completed it."""
    is_made = ended.is_busy and stored is not None and stored.metadata.status is RunStatus.COMPLETED
    return ended.status is RunStatus.FAILED and not is_made


def _explain_end(ended: EndedRun, stored: RunReader | None) -> str:
    """Why a run is not complete, and what a provider still works off for it."""
    batches = [] if stored is None else read_open_batches(stored)
    going_on = "; ".join(f"{batch.named} goes on at {batch.provider}" for batch in batches)
    if not going_on or ended.status is RunStatus.FAILED:
        return ended.reason
    them = "it" if len(batches) == 1 else "them"
    how = f"going on collects {them}, `themis resume {ended.run.run_id} --cancel-batches` cancels {them}"
    return f"{ended.reason}; {going_on}: {how}"


def _is_done(run_id: str, store: ExperimentStorage) -> bool:
    found = store.find_run(run_id)
    return found is not None and found.metadata.status is RunStatus.COMPLETED


def _judge_gates(
    experiment: ExperimentSpecification, runs: Sequence[RunResult], store: ExperimentStorage
) -> list[GateVerdict]:
    return [
        verdict
        for run in runs
        if run.is_complete  # what is not is told by itself
        for rule in experiment.gates_of(run.run.kind)
        if (rule.only is None or run.run.matches(rule.only))
        and (verdict := rule.judge(run.run.run_id, run.baseline, store)) is not None
    ]


def _read_sweeps(runs: Sequence[RunResult], store: ExperimentStorage) -> dict[str, SweepReport]:
    """The memory runs by configuration, and in each by agent."""
    swept: dict[str, list[SweepRun]] = {}
    for one in runs:
        asked = one.run.specification
        if not isinstance(asked, MemorySpecification):
            continue
        config = load_config(asked)
        longest = max((int(test.arguments["memory_span"]) for test in config.tests), default=0)
        swept.setdefault(asked.configuration, []).append(
            SweepRun(
                run_id=one.run.run_id,
                run_name=config.run_name,
                agent=one.run.labels.get("agents", asked.shown_agent),
                span_tokens=asked.span_tokens or longest,
                seed=asked.seed or 0,
            )
        )
    return {name: read_runs(members, store) for name, members in swept.items()}
