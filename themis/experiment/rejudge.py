"""Judges stored answers again, without calling the model. Earlier scores stay under their own evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from themis.core.entities import ExperimentReport, GenerationRecord
from themis.experiment.judging import bound_judges, collecting_less, judge_together
from themis.experiment.manifest import evaluation_identity
from themis.experiment.report import build_report, summarise_run
from themis.generation.engine import EngineSettings
from themis.storage import ExperimentStorage
from themis.storage.records import verdicts

__all__ = ["rejudge"]

_TOGETHER = 256


def rejudge(
    storage: ExperimentStorage, run_id: str, pipeline: Any, tell: Callable[[int], None] = lambda judged: None
) -> ExperimentReport:
    """Makes the pipeline's evaluation the run's current one, judging what it has not judged yet."""
    if hasattr(pipeline, "check_machine"):
        pipeline.check_machine()
    status = storage.get_run(run_id).status
    reader, names = storage.reader(run_id), pipeline.metric_names
    with (
        storage.open_run(run_id) as writer,
        bound_judges(pipeline.metrics, storage, writer, EngineSettings()),
        collecting_less(),
    ):
        # Not before the judges can be asked: the run keeps the scores it has if they cannot.
        evaluation = writer.open_evaluation(*evaluation_identity(pipeline))
        batch: list[tuple[int, GenerationRecord]] = []

        def commit() -> None:
            judged = judge_together(pipeline, [record for _, record in batch], EngineSettings().workers)
            rows = [
                row
                for (position, record), result in zip(batch, judged, strict=True)
                for row in verdicts(position, result, names, record.task.metadata)
            ]
            writer.commit_verdicts(evaluation, rows)
            tell(len(batch))
            batch.clear()

        for pair in reader.unjudged(evaluation):
            batch.append(pair)
            if len(batch) >= _TOGETHER:
                commit()
        commit()
        report = build_report(storage, run_id, evaluation, pipeline=pipeline)
        writer.finish(status, summary=summarise_run(report))
    return report
