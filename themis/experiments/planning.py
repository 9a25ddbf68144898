"""What an experiment will take: for each run its rows, calls, tokens and dollars, what of it is done, and the whole.

Nothing is called and nothing is written; no key is needed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from themis.api import make_driver
from themis.config.specification import MemorySpecification, SampleSpecification, Specification
from themis.exceptions import ThemisError
from themis.experiment.estimating import estimate_samples
from themis.experiments.checking import complete_run, locate
from themis.experiments.expanding import PlannedRun
from themis.experiments.mistakes import Mistakes
from themis.experiments.specification import ExperimentSpecification
from themis.memory.estimating import estimate_memory
from themis.memory.runner import read_spent_usd
from themis.runs.estimate import Estimate
from themis.runs.lifecycle import find_changed_inputs
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.batches import read_open_batches

__all__ = ["ExperimentPlan", "RunPlan", "plan_runs", "read_committed", "read_spent"]


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run: the whole of it, and how much of that is done.

    Args:
        run: Which.
        estimate: What the whole run takes.
        done: Its items that are answered.
        is_complete: Nothing is left of it.

    >>> import themis
    >>> plan = themis.plan_experiment({"name": "sums", "dataset": "demo", "subjects": ["fake/perfect"]})
    >>> plan.runs[0].calls, plan.runs[0].standing
    (10, 'new')
    """

    run: PlannedRun
    estimate: Estimate
    done: int = 0
    is_complete: bool = False

    @property
    def share_left(self) -> float:
        """The part of the run that is still to be made."""
        return 0.0 if self.is_complete else 1 - min(1.0, self.done / max(1, self.estimate.rows))

    @property
    def calls(self) -> int:
        """Calls that are left, of the model and of judges."""
        return round((self.estimate.calls + self.estimate.judge_calls) * self.share_left)

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers that are left, as long as they are likely to be."""
        return round((self.estimate.prompt_tokens + self.estimate.likely_completion_tokens) * self.share_left)

    @property
    def likely_usd(self) -> float | None:
        """What is left costs, with answers of the likely length; None where a price is not known."""
        return _share(self.estimate.likely_usd, self.share_left)

    @property
    def most_usd(self) -> float | None:
        """What is left costs at most; None where that is not known."""
        return _share(self.estimate.most_usd, self.share_left)

    @property
    def standing(self) -> str:
        """How far it is, in words."""
        if self.is_complete:
            return "complete"
        return f"{self.done:,} of {self.estimate.rows:,}" if self.done else "new"

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "run_id": self.run.run_id,
            "labels": dict(self.run.labels),
            "kind": self.run.kind,
            "rows": self.estimate.rows,
            "done": self.done,
            "complete": self.is_complete,
            "calls": self.calls,
            "tokens": self.tokens,
            "likely_usd": self.likely_usd,
            "most_usd": self.most_usd,
        }


def _share(usd: float | None, share: float) -> float | None:
    return 0.0 if share == 0 else None if usd is None else usd * share


@dataclass(frozen=True, kw_only=True)
class ExperimentPlan:
    """All runs of an experiment before they are made.

    Args:
        name: Of the experiment.
        runs: What each takes.
        budget_usd: The most that all may cost, earlier sessions included.
        spent_usd: What has been spent on them.

    >>> import themis
    >>> plan = themis.plan_experiment({"name": "sums", "dataset": "demo", "subjects": ["fake/perfect", "fake/echo"]})
    >>> plan.calls, plan.likely_usd
    (20, 0.0)
    """

    name: str
    runs: Sequence[RunPlan]
    budget_usd: float | None = None
    spent_usd: float = 0.0

    @property
    def calls(self) -> int:
        """Of all runs that are left."""
        return sum(run.calls for run in self.runs)

    @property
    def tokens(self) -> int:
        """Of all runs that are left."""
        return sum(run.tokens for run in self.runs)

    @property
    def likely_usd(self) -> float | None:
        """Of all runs that are left; None where one is not known."""
        return _total(run.likely_usd for run in self.runs)

    @property
    def most_usd(self) -> float | None:
        """Of all runs that are left; None where one is not known."""
        return _total(run.most_usd for run in self.runs)

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "experiment": self.name,
            "runs": [run.to_dict() for run in self.runs],
            "calls": self.calls,
            "tokens": self.tokens,
            "likely_usd": self.likely_usd,
            "most_usd": self.most_usd,
            "budget_usd": self.budget_usd,
            "spent_usd": self.spent_usd,
        }


def _total(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else sum(cost or 0.0 for cost in known)


def plan_runs(
    experiment: ExperimentSpecification, runs: Sequence[PlannedRun], store: ExperimentStorage
) -> ExperimentPlan:
    """What runs of an experiment take, and what of them is done.

    Raises:
        ConfigurationError: Rows, prompts, metrics or configurations cannot be used; lists all with their lines.
    """
    mistakes = Mistakes(experiment.places)
    planned = []
    for run in runs:
        try:
            planned.append(_plan(run, store))
        except ThemisError as error:
            mistakes.add(locate(run, error), str(error))
    mistakes.raise_any()
    return ExperimentPlan(
        name=experiment.name,
        runs=planned,
        budget_usd=experiment.budget_usd,
        spent_usd=read_spent(experiment.name, store),
    )


def _estimate(asked: Specification) -> Estimate:
    if isinstance(asked, MemorySpecification):
        return estimate_memory(asked)
    assert isinstance(asked, SampleSpecification)
    return estimate_samples(asked)


def _plan(run: PlannedRun, store: ExperimentStorage) -> RunPlan:
    asked = complete_run(run).specification
    estimate = _estimate(asked)
    stored = store.find_run(run.run_id) if asked.resume else None
    if stored is None or not stored.has_dataset or (asked.allow_drift and _begins_anew(asked, store)):
        return RunPlan(run=run, estimate=estimate)
    is_complete = stored.metadata.status is RunStatus.COMPLETED and not stored.metadata.failed_generations
    return RunPlan(run=run, estimate=estimate, done=stored.count_records()[0], is_complete=is_complete)


def _begins_anew(asked: Specification, store: ExperimentStorage) -> bool:
    """Whether inputs have changed; how many stored answers still fit is not known before. So also where nobody can tell."""
    try:
        with contextlib.closing(make_driver(asked, store, keep=False)) as driver:
            return bool(find_changed_inputs(driver, store))
    except ThemisError:
        return True


def read_committed(runs: Iterable[PlannedRun], store: ExperimentStorage) -> dict[str, float]:
    """What the batches may cost at most that providers still work off, by the ids of their runs."""
    committed = {}
    for run in runs:
        stored = store.find_run(run.run_id)
        if stored is None or not (items := sum(len(batch.items) for batch in read_open_batches(stored))):
            continue
        estimate = _estimate(complete_run(run).specification)
        committed[run.run_id] = (estimate.most_usd or 0.0) * min(1.0, items / max(1, estimate.calls))
    return committed


def read_spent(name: str, store: ExperimentStorage) -> float:
    """What all runs of an experiment have cost so far, archived ones too."""
    spent = 0.0
    for run in store.list_runs(name):
        if run.kind == MemorySpecification.kind:
            spent += read_spent_usd(store, run.run_id)
        else:
            spent += (run.cost_usd or 0.0) + (run.judge_cost_usd or 0.0)
    return spent
