"""Makes the runs of an experiment, several at once in threads of this process, from one budget; a signal stops all of them.

Each run has a life of its own (`runs.lifecycle`): what is finished is stored, and one that fails leaves the others alone.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from themis.api import perform
from themis.config.specification import MemorySpecification
from themis.core.redaction import redact_text
from themis.exceptions import RunBusyError, RunFailedError, ThemisError
from themis.experiments.checking import CheckedRun
from themis.experiments.expanding import PlannedRun
from themis.memory import definitions
from themis.memory.assembling import load_config
from themis.runs.lifecycle import CURRENT_HANDLE, RunHandle, gc_paused, stop_on_signals
from themis.runs.observers import Observer
from themis.runs.prices import Budget
from themis.storage import ExperimentStorage, RunStatus

__all__ = ["EndedRun", "Together", "Watch", "run_together"]

_LOOK_SECONDS = 0.1
# How long runs that are stopped at once have to save what they hold.
_LEAVE_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class EndedRun:
    """How a run came out.

    Args:
        run: Which.
        status: `completed`, `failed` or `interrupted`; None for one that was not begun.
        reason: Why it is not complete.
        larger_budget_usd: With which it would go on, where a budget ended it.
        is_busy: Another process was making it, so this one left it alone.
    """

    run: PlannedRun
    status: RunStatus | None
    reason: str = ""
    larger_budget_usd: float | None = None
    is_busy: bool = False


class Watch:
    """Hears of an experiment while it goes on: override what you want to hear of. Runs tell it from their own threads.

    >>> import themis
    >>> class Telling(Watch):
    ...     def on_end(self, ended):
    ...         print(ended.run.name, ended.status.value)
    >>> experiment = {"name": "sums", "dataset": "demo", "subjects": ["fake/perfect"]}
    >>> result = themis.run_experiment(experiment, watch=Telling())
    perfect completed
    """

    def observers(self, run: PlannedRun) -> Sequence[Observer]:
        """Who watches a run that begins.

        Args:
            run: Which.
        """
        return ()

    def on_stop(self) -> None:
        """The user stops the experiment: what is in flight is finished and saved, nothing new begins."""

    def on_end(self, ended: EndedRun) -> None:
        """A run is over.

        Args:
            ended: Which, and how.
        """


def run_together(
    runs: Sequence[CheckedRun],
    store: ExperimentStorage,
    *,
    budget: Budget,
    parallel: int,
    watch: Watch,
    committed: Mapping[str, float] | None = None,
) -> Together:
    """Makes the runs, or what is left of them, so many at once.

    What is `committed` to runs, which batches of theirs may cost that were sent before, no other run may spend.

    A signal stops all of them as it stops one: after the first what is in flight is finished and saved, after the second it is
    given up.
    """
    # Before there are threads: two of them would make the same tests at once.
    for run in runs:
        if isinstance(asked := run.planned.specification, MemorySpecification) and asked.definitions is None:
            definitions.prepare(load_config(asked), store, reuse=lambda question: True, regenerate=asked.regenerate)
    together = Together(store, budget, watch, committed or {})
    with gc_paused():
        together.make(runs, parallel)
    return together


class Together:
    """Runs that go on beside each other, and how each ended."""

    def __init__(self, store: ExperimentStorage, budget: Budget, watch: Watch, committed: Mapping[str, float]) -> None:
        self.is_stopped = False
        self._committed = dict(committed)
        budget.reserve_spent(sum(committed.values()))
        self._store = store
        self._budget = budget
        self._watch = watch
        self._ended: dict[str, EndedRun] = {}
        self._handles: dict[str, RunHandle] = {}
        self._threads: list[threading.Thread] = []

    @property
    def ended(self) -> list[EndedRun]:
        return list(self._ended.values())

    def make(self, runs: Sequence[CheckedRun], parallel: int) -> None:
        has_committed = bool(self._committed)
        if (handle := CURRENT_HANDLE.get()) is not None:
            handle.attach(lambda at_once: self.stop())
        try:
            with stop_on_signals(self.stop):
                self._make_each([run for run in runs if not run.moves_clock], parallel)
                # The clock of the process is theirs while they reply.
                self._make_each([run for run in runs if run.moves_clock], 1)
                if parallel > 1 or has_committed:
                    # What was set aside for calls of others is free now, or spent.
                    refused = [one.run for one in self.ended if one.larger_budget_usd is not None]
                    self._make_each([CheckedRun(planned=run.to_be_made(resume=True)) for run in refused], 1)
        except KeyboardInterrupt:
            self.stop()
            self._wait(_LEAVE_SECONDS)

    def stop(self) -> None:
        """Called from any thread, and where a signal finds the main one: takes no lock."""
        is_first, self.is_stopped = not self.is_stopped, True
        for handle in list(self._handles.values()):
            handle.stop()
        if is_first:
            self._watch.on_stop()

    def _make_each(self, runs: Sequence[CheckedRun], at_once: int) -> None:
        waiting = deque(runs)
        for _ in range(min(at_once, len(runs))):
            # Daemons: one that hangs in a call does not keep the process from ending when it is stopped at once.
            thread = threading.Thread(target=self._work_off, args=(waiting,), daemon=True)
            self._threads.append(thread)
            thread.start()
        self._wait()

    def _wait(self, seconds: float = float("inf")) -> None:
        end = time.monotonic() + seconds
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < end:
                thread.join(_LOOK_SECONDS)  # for short, so that signals are heard

    def _work_off(self, waiting: deque[CheckedRun]) -> None:
        while True:
            try:
                run = waiting.popleft()
            except IndexError:
                return
            handle = self._handles[run.planned.run_id] = RunHandle()
            if self.is_stopped:  # looked at after the handle is known: whoever stops reads them the other way round
                self._ended.setdefault(run.planned.run_id, EndedRun(run=run.planned, status=None, reason="not begun"))
                continue
            ended = contextvars.copy_context().run(self._make, run.planned, handle)
            self._ended[run.planned.run_id] = ended
            # Until now it was set aside twice, for the run has done so itself.
            self._budget.spend(0.0, reserved_usd=self._committed.pop(run.planned.run_id, 0.0))
            del self._handles[run.planned.run_id]
            self._watch.on_end(ended)

    def _make(self, run: PlannedRun, handle: RunHandle) -> EndedRun:
        CURRENT_HANDLE.set(handle)
        try:
            if run.kind == MemorySpecification.kind and self._is_complete(run):
                return EndedRun(run=run, status=RunStatus.COMPLETED)  # a conversation that is over is not played again
            report = perform(
                run.specification,
                self._store,
                progress=False,
                observers=list(self._watch.observers(run)),
                within=self._budget,
            )
        except KeyboardInterrupt:
            return EndedRun(run=run, status=RunStatus.INTERRUPTED, reason="stopped by the user")
        except RunFailedError as failed:
            return EndedRun(run=run, status=RunStatus.FAILED, reason=redact_text(failed.reason))
        except ThemisError as error:
            is_busy = isinstance(error, RunBusyError)
            return EndedRun(run=run, status=RunStatus.FAILED, reason=redact_text(str(error)), is_busy=is_busy)
        except (
            Exception
        ) as error:  # boundary: a provider, a metric or an agent is the user's code; the other runs go on
            return EndedRun(run=run, status=RunStatus.FAILED, reason=redact_text(f"{type(error).__name__}: {error}"))
        return EndedRun(
            run=run,
            status=RunStatus(report.metadata["status"]),
            reason=str(report.metadata.get("stopped", "")),
            larger_budget_usd=report.metadata.get("larger_budget_usd"),
        )

    def _is_complete(self, run: PlannedRun) -> bool:
        stored = self._store.find_run(run.run_id) if run.specification.resume else None
        return stored is not None and stored.metadata.status is RunStatus.COMPLETED
