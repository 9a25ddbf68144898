"""Judges stored answers again, without calling the model. Earlier scores stay under their own evaluation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

from themis.core.entities import ExperimentReport
from themis.exceptions import RunFailedError
from themis.generation.engine import EngineSettings
from themis.runs.judging import JudgingQueue, connect_judges
from themis.runs.lifecycle import gc_paused
from themis.runs.manifest import evaluation_identity
from themis.runs.report import build_report, summarise_run, why_not_judged
from themis.runs.stopping import stop_on_signals
from themis.storage import ExperimentStorage, RunStatus

__all__ = ["rejudge"]


def rejudge(
    storage: ExperimentStorage, run_id: str, pipeline: Any, tell: Callable[[int], None] = lambda judged: None
) -> ExperimentReport:
    """Makes the pipeline's evaluation the run's current one, judging what it has not judged yet."""
    if hasattr(pipeline, "check_machine"):
        pipeline.check_machine()
    if hasattr(pipeline, "check_attempts"):
        pipeline.check_attempts(storage.reader(run_id).frame.attempts)
    stored = storage.get_run(run_id)
    # A run that failed because nothing could be judged is whole once it is.
    answered = stored.status is RunStatus.FAILED and stored.successful_generations == stored.total_samples
    status = RunStatus.COMPLETED if answered else stored.status
    with (
        storage.open_run(run_id) as writer,
        connect_judges(pipeline.metrics, storage, writer, EngineSettings()),
        gc_paused(),
    ):
        # Not before the judges can be asked: the run keeps the scores it has if they cannot.
        evaluation = writer.open_evaluation(*evaluation_identity(pipeline))
        queue = JudgingQueue(
            pipeline, writer, evaluation, EngineSettings().workers, on_stored=lambda judged: tell(len(judged))
        )
        # A flag, for an interrupt in the midst of a future's lock would leave its thread waiting for ever.
        stopped = threading.Event()
        with stop_on_signals(stopped.set), closing(queue):
            for position, record in storage.reader(run_id).unjudged(evaluation):
                queue.add_when_room(position, record, stopped.is_set)
                if stopped.is_set():
                    break
            queue.finish(stopped.is_set)
        if stopped.is_set():
            raise KeyboardInterrupt
        report = build_report(storage, run_id, evaluation, pipeline=pipeline)
        not_judged = why_not_judged(report)
        status = RunStatus.FAILED if not_judged else status
        writer.finish(status, summary=summarise_run(report), error=not_judged or None)
    if not_judged:
        report.metadata.update(status=status.value, stopped=not_judged)
        raise RunFailedError(run_id, not_judged, report)
    return report
