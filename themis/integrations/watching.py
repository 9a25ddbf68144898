"""Lets a tracker watch a run without being able to fail it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from themis.core.entities import EvaluationRecord, ExperimentReport, Result
from themis.core.redaction import redact_text
from themis.experiment.experiment import Observer
from themis.generation.engine import Engine
from themis.storage import RunStatus

__all__ = ["Guarded", "Tracker"]

logger = logging.getLogger(__name__)


class Tracker(Protocol):
    """Somewhere a run can be shown: afterwards with `publish`, or while it goes on with its `observer`."""

    def publish(self, report: ExperimentReport) -> str:
        """Sends a finished run and says where it is to be found."""
        ...

    def observer(self) -> Observer: ...


class Guarded(Observer):
    """An observer that hands everything on to another. The first failure is reported, and ends its part in the run."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer = observer
        self._name = name
        self._works = True

    def started(self, run_id: str, total: int, done: int, engine: Engine) -> None:
        self._try(self._observer.started, run_id, total, done, engine)

    def advanced(self, calls: list[Result]) -> None:
        self._try(self._observer.advanced, calls)

    def judged(self, records: list[EvaluationRecord]) -> None:
        self._try(self._observer.judged, records)

    def idle(self) -> None:
        self._try(self._observer.idle)

    def stopping(self, under_way: int) -> None:
        self._try(self._observer.stopping, under_way)

    def ended(self, status: RunStatus, report: ExperimentReport | None) -> None:
        self._try(self._observer.ended, status, report)

    def _try(self, tell: Callable[..., Any], *news: Any) -> None:
        if not self._works:
            return
        try:
            tell(*news)
        except Exception as error:  # boundary: a tracker is another system
            self._works = False
            logger.warning(
                "%s failed and hears no more of this run, which goes on: %s: %s",
                self._name, type(error).__name__, redact_text(str(error)),
            )  # fmt: skip
