"""Who watches a run: told of everything after it is stored, in the run's own thread, without being able to fail it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from themis.core.entities import EvaluationRecord, ExperimentReport, Result, mean_scores
from themis.storage import RunStatus

__all__ = ["Observer", "Progress", "RunStart", "Totals"]


@dataclass(frozen=True, kw_only=True)
class RunStart:
    """A run whose items are stored and which begins, or goes on.

    Args:
        run_id: The run.
        kind: `samples` or `memory`.
        total: Its items.
        done: How many of them are answered already.
        manifest_hash: Hash of its reproducibility manifest.
    """

    run_id: str
    kind: str
    total: int
    done: int
    # An earlier process has begun it.
    is_resumed: bool = False
    manifest_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How work stands between two answers: what is under way, and what takes long."""

    # In words, for a line that people watch.
    summary: str = ""
    # What nothing can be sent for, if the run waits.
    waiting: str = ""
    # Items that have been under way for long, each in words.
    late: Sequence[str] = ()


class Observer:
    """Watches a run of either kind: override what you want to hear of.

    It is told in the run's own thread, after what it hears of is stored. One that fails is reported and hears no more; the
    run goes on.

    >>> import themis
    >>> class Counting(Observer):
    ...     answers = 0
    ...     def on_answers(self, results):
    ...         self.answers += len(results)
    >>> counting = Counting()
    >>> report = themis.evaluate("demo", model="fake/perfect", observers=[counting], progress=False)
    >>> counting.answers
    10
    """

    def on_start(self, run: RunStart) -> None:
        """The items are stored; nothing has been asked yet.

        Args:
            run: Which run, and how much of it is done.
        """

    def on_answers(self, results: list[Result]) -> None:
        """Answers, or ended memory tests, were stored.

        Args:
            results: One a finished request.
        """

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        """Scores of items were stored.

        Args:
            records: One an item.
        """

    def on_progress(self, progress: Callable[[], Progress]) -> None:
        """Work goes on: an exchange was stored, or nothing was finished for a moment.

        Args:
            progress: Call it for how work stands.
        """

    def on_stop(self, in_flight: int) -> None:
        """Nothing new is started any more.

        Args:
            in_flight: Calls that are still being finished.
        """

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        """The run is over, for whatever reason.

        Args:
            status: How it ended.
            report: What `evaluate` returns; None where there is none.
        """


@dataclass(slots=True)
class Totals:
    """Sums of a run under way, from what an observer hears."""

    answered: int = 0
    failed: int = 0
    calls: int = 0
    tokens: int = 0
    # None once a price was not known.
    cost_usd: float | None = 0.0
    # Sum of the samples' scores and number of samples by metric, in the order in which they came.
    scores: dict[str, tuple[float, int]] = field(default_factory=dict)

    def add_results(self, results: Sequence[Result]) -> None:
        for result in results:
            self.answered += result.record.error is None
            self.failed += result.record.error is not None
            self.calls += result.calls
            self.tokens += result.prompt_tokens + result.completion_tokens
            known = self.cost_usd is not None and result.cost_usd is not None
            self.cost_usd = (self.cost_usd or 0.0) + (result.cost_usd or 0.0) if known else None

    def add_scores(self, records: Sequence[EvaluationRecord]) -> None:
        for record in records:
            for name, value in mean_scores(record.scores).items():
                total, count = self.scores.get(name, (0.0, 0))
                self.scores[name] = (total + value, count + 1)

    def means(self) -> dict[str, tuple[float, int]]:
        """Mean over the samples that are scored so far, and how many they are, by metric."""
        return {name: (total / count, count) for name, (total, count) in self.scores.items()}
