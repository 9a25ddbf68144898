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
from themis.experiment.run import SampleDriver
from themis.experiments.checking import complete_run, locate
from themis.experiments.expanding import PlannedRun
from themis.experiments.mistakes import Mistakes
from themis.experiments.specification import ExperimentSpecification
from themis.memory.estimating import estimate_memory
from themis.memory.runner import read_spent_usd
from themis.runs.estimate import Estimate
from themis.runs.lifecycle import find_changed_inputs
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.batches import read_open_batches
from themis.storage.queries import RunReader

__all__ = ["ExperimentPlan", "RunPlan", "plan_runs", "read_committed", "read_spent"]


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run: the whole of it, and how much of that is done.

    Args:
        run: Which.
        estimate: What the whole run takes.
        done: Its items that are answered, with all their attempts.
        answered: The share of its answers that is stored, of all attempts.
        judged: The share of its items that is judged as it would be now.
        is_complete: Nothing is left of it.

    >>> import themis
    >>> plan = themis.plan_experiment({"name": "sums", "dataset": "demo", "subjects": ["fake/perfect"]})
    >>> plan.runs[0].calls, plan.runs[0].standing
    (10, 'new')
    """

    run: PlannedRun
    estimate: Estimate
    done: int = 0
    answered: float = 0.0
    judged: float = 0.0
    is_complete: bool = False

    @property
    def share_left(self) -> float:
        """The part of the answers that is still to be got."""
        return 0.0 if self.is_complete else 1 - min(1.0, self.answered)

    @property
    def share_unjudged(self) -> float:
        """The part of the items that judges are still to be asked about."""
        return 0.0 if self.is_complete else 1 - min(1.0, self.judged)

    @property
    def calls(self) -> int:
        """Calls that are left, of the model and of judges."""
        return round(self.estimate.calls * self.share_left) + round(self.estimate.judge_calls * self.share_unjudged)

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers that are left, as long as they are likely to be, those of judges too."""
        own = self.estimate.prompt_tokens + self.estimate.likely_completion_tokens
        return round(own * self.share_left + self.estimate.judge_tokens * self.share_unjudged)

    @property
    def likely_usd(self) -> float | None:
        """What is left costs, with answers of the likely length; None where a price is not known."""
        return self._cost_left(self.estimate.likely_usd, self.estimate.judge_likely_usd)

    @property
    def most_usd(self) -> float | None:
        """What is left costs at most; None where that is not known."""
        return self._cost_left(self.estimate.most_usd, self.estimate.judge_most_usd)

    def _cost_left(self, whole_usd: float | None, judges_usd: float | None) -> float | None:
        """Of the whole, in which the judges' part is."""
        if self.is_complete:
            return 0.0
        if self.share_left == 0 and judges_usd is not None:
            return judges_usd * self.share_unjudged
        if whole_usd is None or judges_usd is None:
            return None
        return (whole_usd - judges_usd) * self.share_left + judges_usd * self.share_unjudged

    @property
    def standing(self) -> str:
        """How far it is, in words."""
        if self.is_complete:
            return "complete"
        if not self.answered:
            return "new"
        unjudged = " answered" if self.done >= self.estimate.rows else ""
        return f"{self.done:,} of {self.estimate.rows:,}{unjudged}"

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "run_id": self.run.run_id,
            "labels": dict(self.run.labels),
            "kind": self.run.kind,
            "rows": self.estimate.rows,
            "done": self.done,
            "complete": self.is_complete,
            "takes_steps": self.estimate.takes_steps,
            "calls": self.calls,
            "tokens": self.tokens,
            "likely_usd": self.likely_usd,
            "most_usd": self.most_usd,
        }


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
    return _count_done(run, asked, estimate, stored, store)


def _count_done(
    run: PlannedRun, asked: Specification, estimate: Estimate, stored: RunReader, store: ExperimentStorage
) -> RunPlan:
    """What of a run is stored: a memory run's tests, or a sample run's answers and verdicts."""
    is_complete = stored.metadata.status is RunStatus.COMPLETED and not stored.metadata.failed_generations
    if not isinstance(asked, SampleSpecification):
        done = stored.count_records()[0]
        share = done / max(1, estimate.rows)
        return RunPlan(run=run, estimate=estimate, done=done, answered=share, judged=share, is_complete=is_complete)
    attempts = max(1, estimate.calls // max(1, estimate.rows))
    evaluation = _find_evaluation(asked, stored, store) if estimate.judge_calls else stored.evaluation
    done = estimate.rows - min(estimate.rows, stored.count_unfinished(attempts))
    answers = stored.count_attempts()
    judged = 0 if evaluation is None else _count_judged(stored, evaluation)
    is_judged = not estimate.judge_calls or judged >= estimate.rows
    return RunPlan(
        run=run,
        estimate=estimate,
        done=done,
        answered=(answers.made - answers.failed) / max(1, estimate.calls),
        judged=judged / max(1, estimate.rows),
        is_complete=is_complete and done >= estimate.rows and is_judged,
    )


def _count_judged(stored: RunReader, evaluation: int) -> int:
    """Items with verdicts, none of which failed."""
    failed = sum(1 for _ in stored.evaluations(evaluation, only_failed=True))
    return stored.count_evaluated(evaluation) - failed


def _find_evaluation(asked: SampleSpecification, stored: RunReader, store: ExperimentStorage) -> int | None:
    """The stored way of judging that is asked for; the current one where nobody can tell, for want of a key perhaps."""
    try:
        with contextlib.closing(make_driver(asked, store, keep=False)) as driver:
            if not isinstance(driver, SampleDriver):
                return stored.evaluation
            wanted = driver.evaluation[0]
    except ThemisError:
        return stored.evaluation
    return next((one.evaluation for one in stored.list_evaluations() if one.fingerprint == wanted), None)


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
            spent += read_spent_usd(store, run.run_id, _find_bound(run, "agent_options"))
        else:
            spent += run.count_spent_usd(_find_bound(run, "provider_options"))
    return spent


def _find_bound(run: RunMetadata, options: str) -> float | None:
    """The most that an answer may cost, where the run was told."""
    given = run.config_snapshot.get("specification", {}).get(options) or {}
    most = given.get("most_cost_usd")
    return float(most) if isinstance(most, int | float) else None
