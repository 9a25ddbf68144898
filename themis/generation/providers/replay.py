"""Answers from a stored run: judging again without paying again."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from themis.core.entities import GenerationRecord, GenerationTask
from themis.exceptions import ProviderCallError
from themis.generation.providers.conversation import item_name
from themis.interfaces import StatelessTaskExecutor

__all__ = ["Replay", "StoredAnswers"]

# The record that a run stored for a task, or None. Handed in by whoever can read the store.
StoredAnswers = Callable[[GenerationTask], GenerationRecord | None]


class Replay(StatelessTaskExecutor):
    """Looks every answer up, and calls nobody; an item that the run did not answer is a failure that names it."""

    is_local: ClassVar[bool] = True

    def __init__(self, *, answers: StoredAnswers, model_identifier: str = "") -> None:
        self._answers = answers
        self._run = model_identifier

    def execute(self, task: GenerationTask) -> GenerationRecord:
        stored = self._answers(task)
        run = self._run or task.model.identifier
        if stored is None:
            raise _no_answer(f"run {run!r} has no stored answer for item {item_name(task)}")
        if stored.output is None:
            reason = stored.error.message if stored.error else "without a reason"
            raise _no_answer(f"run {run!r} failed on item {item_name(task)}: {reason}")
        return GenerationRecord(
            task=task, output=stored.output, error=None, metrics={**stored.metrics, "replayed": run}
        )


def _no_answer(message: str) -> ProviderCallError:
    return ProviderCallError(message, kind="not_recorded", retryable=False)
