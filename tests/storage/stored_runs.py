"""Rows, records and whole runs for the storage tests, put together by hand as a user's own code would."""

from __future__ import annotations

from typing import Any

from themis.core.codec import canonical_json, digest, to_plain
from themis.core.entities import (
    EvaluationRecord,
    GenerationRecord,
    MetricScore,
    ModelError,
    ModelOutput,
    ModelSpec,
    PromptSpec,
    Result,
    SamplingConfig,
)
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import Frame, Item, ScoreRow, score_rows

FRAME = Frame(
    model=ModelSpec("m", "fake"),
    sampling=SamplingConfig(temperature=0.5),
    prompt=PromptSpec("plain", "{question}"),
    reference_field="answer",
)


def item(position: int, row: dict[str, Any]) -> Item:
    content = canonical_json(to_plain(row))
    return Item(position, str(row["id"]), digest(content), content)


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": f"item-{n}", "question": f"what is {n}?", "answer": str(n), "level": n % 3} for n in range(count)]


def answered(row: dict[str, Any], text: str | None = None, attempt: int = 0, **output: Any) -> GenerationRecord:
    task = FRAME.task(str(row["id"]), row, row["question"], attempt)
    return GenerationRecord(task, ModelOutput(text if text is not None else row["answer"], **output), None)


def failed(row: dict[str, Any], message: str = "timed out", attempt: int = 0) -> GenerationRecord:
    return GenerationRecord(FRAME.task(str(row["id"]), row, row["question"], attempt), None, ModelError(message))


def call(position: int, record: GenerationRecord, attempt: int = 0, **spent: Any) -> Result:
    return Result(position, attempt, digest("key", str(position), str(attempt)), record, **spent)


def judged(position: int, record: GenerationRecord, *scores: MetricScore) -> list[ScoreRow]:
    """The rows of one sample's verdicts."""
    names = [score.metric_name for score in scores]
    whole = EvaluationRecord(record.task.metadata["dataset_id"], list(scores))
    return score_rows(position, whole, names, record.task.metadata)


def fill(storage: ExperimentStorage, run_id: str, count: int = 3, **start: Any) -> None:
    """A finished run of so many answered and judged samples."""
    storage.start_run(run_id, config={"task": FRAME.to_config()}, **start)
    records = [answered(row) for row in rows(count)]
    with storage.open_run(run_id) as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(rows(count)))
        evaluation = writer.open_evaluation("f" * 32, {})
        writer.commit_results([call(n, record) for n, record in enumerate(records)])
        found = [judged(n, record, MetricScore("ExactMatch", 1.0)) for n, record in enumerate(records)]
        writer.commit_scores(evaluation, [verdict for verdicts_ in found for verdict in verdicts_])
        writer.update(succeeded=count)
        writer.finish(RunStatus.COMPLETED)
