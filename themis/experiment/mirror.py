"""Hands what a run commits on to a storage backend of the user's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from themis.core.entities import EvaluationRecord, ExperimentReport, GenerationRecord, Result
from themis.experiment.experiment import Observer
from themis.generation.engine import Engine
from themis.storage import RunStatus

__all__ = ["BackendMirror"]

logger = logging.getLogger(__name__)


class BackendMirror(Observer):
    """An observer. A backend that fails is reported and left out; the run has everything in its own store."""

    def __init__(self, backend: Any, pipeline: Any) -> None:
        self._backend = backend
        self._pipeline = pipeline
        self._run_id = ""
        self._records: dict[str, GenerationRecord] = {}

    def started(self, run_id: str, total: int, done: int, engine: Engine) -> None:
        self._run_id = run_id
        if not (hasattr(self._backend, "run_exists") and self._backend.run_exists(run_id)):
            self._try(lambda: self._backend.start_run(run_id))

    def advanced(self, calls: list[Result]) -> None:
        for call in calls:
            self._records[str(call.record.task.metadata["dataset_id"])] = call.record
            self._try(partial(self._backend.append_generation_record, self._run_id, call.record, cache_key=call.key))

    def judged(self, records: list[EvaluationRecord]) -> None:
        for record in records:
            generation = self._records.pop(record.sample_id or "", None)
            if generation is not None:
                self._try(partial(self._backend.append_evaluation_record, self._run_id, generation, record))

    def ended(self, status: RunStatus, report: ExperimentReport | None) -> None:
        if status is RunStatus.COMPLETED:
            self._try(lambda: self._backend.complete_run(self._run_id))
            if report is not None and hasattr(self._backend, "save_report"):
                self._try(lambda: self._backend.save_report(self._run_id, report))
        else:
            self._try(lambda: self._backend.fail_run(self._run_id, status.value))

    def _try(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except Exception as error:  # boundary: an observer is the user's code
            logger.warning("the storage backend %s failed: %s", type(self._backend).__name__, error)
