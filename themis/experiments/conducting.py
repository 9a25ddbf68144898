"""The doors of experiments: plan one, run one, both from a file, a dict or a specification."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, RunInterrupted
from themis.experiments.checking import CheckedRun, check_runs, in_folder, load_code
from themis.experiments.expanding import PlannedRun
from themis.experiments.planning import ExperimentPlan, plan_runs, read_committed, read_spent
from themis.experiments.progress import ExperimentProgress
from themis.experiments.results import ExperimentResult, read_result
from themis.experiments.running import Together, Watch, run_together
from themis.experiments.specification import ExperimentSpecification, MistakenExperimentError, load_experiment
from themis.experiments.values import Settings
from themis.runs.prices import Budget
from themis.runs.progress import is_interactive
from themis.storage import DEFAULT_STORAGE, ExperimentStorage
from themis.storage.leases import ExperimentLease

__all__ = ["OpenExperiment", "choose_runs", "open_experiment", "plan_experiment", "run_experiment"]

Source = str | Path | Mapping[str, object] | ExperimentSpecification


def run_experiment(
    source: Source,
    *,
    storage: str | Path | ExperimentStorage = DEFAULT_STORAGE,
    only: Sequence[str] = (),
    budget_usd: float | None = None,
    parallel: int | None = None,
    resume: bool = True,
    allow_drift: bool = False,
    progress: bool | None = None,
    watch: Watch | None = None,
) -> ExperimentResult:
    """Makes all runs of an experiment, or what is left of them, and compares them.

    The same call goes on where an earlier one stopped: no finished call is made again. Before the first call of any run all are
    checked. While it runs, the working directory is the folder of the experiment's file.

    Args:
        source: A YAML file, a dict of the same keys, or an `ExperimentSpecification`.
        storage: Where its runs are kept; `.cache/experiments` by default.
        only: Patterns such as `*terse*`: only runs whose id, name or label matches one.
        budget_usd: The most that all runs may cost, in place of the experiment's own.
        parallel: Runs at once, in place of the experiment's own.
        resume: With False stored runs are archived and start anew.
        allow_drift: Where inputs have changed, start anew but take every stored answer that still fits.
        progress: Whether to tell of the runs on stderr; by default if someone is watching.
        watch: Hears of the runs in place of that.

    Returns:
        The report: runs, comparisons with the baseline, gates, exit code.

    Raises:
        ConfigurationError: Lists everything that is wrong with it; nothing was called.
        RunBusyError: Another process is spending its budget.
        RunInterrupted: The user stopped it; everything finished is stored.

    >>> experiment = {"name": "sums", "datasets": ["demo"], "subjects": ["fake/perfect", "fake/noisy-0.9"]}
    >>> result = run_experiment({**experiment, "baseline": "noisy-0.9"}, progress=False)
    >>> result.exit_code, [one.summary() for one in result.comparison.results][0][:44]
    (0, 'ExactMatch: sums--perfect--demo 1.0000 - sum')
    """
    with open_experiment(
        source,
        storage=storage,
        only=only,
        budget_usd=budget_usd,
        parallel=parallel,
        resume=resume,
        allow_drift=allow_drift,
    ) as opened:
        checked = opened.check()
        shown = None
        if watch is None and (is_interactive() if progress is None else progress):
            watch = shown = ExperimentProgress(opened.experiment.name, checked, opened.store, is_live=is_interactive())
        with contextlib.closing(shown) if shown is not None else contextlib.nullcontext():
            result = opened.run(checked, watch or Watch())
    if result.is_interrupted:
        raise RunInterrupted(opened.experiment.name, "To go on, run the same program again")
    return result


def plan_experiment(
    source: Source, *, storage: str | Path | ExperimentStorage = DEFAULT_STORAGE, only: Sequence[str] = ()
) -> ExperimentPlan:
    """What an experiment would take: calls, tokens and dollars of each run, and what of them is done. Nothing is called.

    Args:
        source: As for `run_experiment`.
        storage: Where its runs are kept.
        only: As for `run_experiment`.

    Raises:
        ConfigurationError: Lists what is wrong with it.

    >>> plan = plan_experiment({"name": "sums", "dataset": "demo", "subjects": ["openai/gpt-4o", "fake/perfect"]})
    >>> plan.calls, [run.standing for run in plan.runs]
    (20, ['new', 'new'])
    """
    with open_experiment(source, storage=storage, only=only) as opened:
        return opened.plan()


@dataclass(frozen=True, kw_only=True)
class OpenExperiment:
    """An experiment that is being worked on: its chosen runs, and the store."""

    experiment: ExperimentSpecification
    runs: Sequence[PlannedRun]
    store: ExperimentStorage

    def plan(self) -> ExperimentPlan:
        return plan_runs(self.experiment, self.runs, self.store)

    def check(self) -> list[CheckedRun]:
        return check_runs(self.experiment, self.runs, self.store)

    def run(self, checked: Sequence[CheckedRun], watch: Watch) -> ExperimentResult:
        if self.experiment.budget_usd is None:
            made = self._make(checked, watch, Budget(None))
        else:
            # Two processes that each count what they spend themselves would spend the budget twice.
            with ExperimentLease(self.store.engine, self.experiment.name):
                spent = read_spent(self.experiment.name, self.store)
                committed = read_committed(self.runs, self.store)
                made = self._make(checked, watch, Budget(self.experiment.budget_usd, spent), committed)
        return read_result(self.experiment, self.runs, self.store, ended=made.ended, is_interrupted=made.is_stopped)

    def _make(
        self, checked: Sequence[CheckedRun], watch: Watch, budget: Budget, committed: Mapping[str, float] | None = None
    ) -> Together:
        return run_together(
            checked, self.store, budget=budget, parallel=self.experiment.parallel, watch=watch, committed=committed
        )


@contextlib.contextmanager
def open_experiment(
    source: Source,
    *,
    storage: str | Path | ExperimentStorage = DEFAULT_STORAGE,
    only: Sequence[str] = (),
    budget_usd: float | None = None,
    parallel: int | None = None,
    resume: bool = True,
    allow_drift: bool = False,
) -> Iterator[OpenExperiment]:
    """An experiment in its folder, its code loaded and its runs chosen."""
    store = (storage if isinstance(storage, ExperimentStorage) else ExperimentStorage(storage)).absolute()
    try:
        experiment = load_experiment(source)
    except MistakenExperimentError as wrong:
        with in_folder(wrong.experiment):
            load_code(wrong.experiment)
            check_runs(wrong.experiment, wrong.experiment.runs, store, wrong.mistakes)
        raise
    changes: Settings = {"budget_usd": budget_usd, "parallel": parallel}
    given = {name: value for name, value in changes.items() if value is not None}
    experiment = replace(experiment, **given) if given else experiment
    with in_folder(experiment):
        load_code(experiment)
        chosen = choose_runs(experiment.runs, only)
        runs = [run.to_be_made(resume=resume, allow_drift=allow_drift) for run in chosen]
        yield OpenExperiment(experiment=experiment, runs=runs, store=store)


def choose_runs(runs: Sequence[PlannedRun], only: Sequence[str]) -> list[PlannedRun]:
    """The runs that a pattern names; all where there is no pattern."""
    if isinstance(only, str):
        raise ConfigurationError(f"only is a list of patterns, got the text {only!r}")
    for pattern in only:
        if not any(run.matches(pattern) for run in runs):
            known = [run.run_id for run in runs] + [label for run in runs for label in run.labels.values()]
            raise ConfigurationError(
                f"no run is called {pattern!r}{nearest(pattern, known)}; there are {', '.join(run.run_id for run in runs)}"
            )
    return [run for run in runs if not only or any(run.matches(pattern) for pattern in only)]
