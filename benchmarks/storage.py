"""What it costs to store a record: CPU per record with its score, listing and opening large stores.

python benchmarks/storage.py [records]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from themis.core.codec import canonical_json, digest, encode
from themis.core.entities import (
    EvaluationRecord,
    GenerationRecord,
    MetricScore,
    ModelOutput,
    ModelSpec,
    Result,
    SamplingConfig,
)
from themis.storage import ExperimentStorage
from themis.storage.runs import Frame, Item, score_rows

BATCH = 200


@dataclass
class Cost:
    """CPU seconds of storing, the making of the objects that are stored not counted."""

    rows: float = 0.0
    records: float = 0.0
    scores: float = 0.0


def store_records(root: Path, count: int) -> Cost:
    storage = ExperimentStorage(root)
    frame = Frame(model=ModelSpec("m", "fake"), sampling=SamplingConfig(), reference_field="answer")
    storage.start_run("bench", config={"task": frame.to_config()}, model="fake:m")
    cost = Cost()
    with storage.open_run("bench") as writer:
        began = time.process_time()
        writer.store_dataset(_item(n, _row(n)) for n in range(count))
        cost.rows = time.process_time() - began
        evaluation = writer.open_evaluation("f" * 64, {})
        for first in range(0, count, BATCH):
            positions = range(first, min(first + BATCH, count))
            records = [_record(frame, n) for n in positions]
            judged = [EvaluationRecord(str(n), [MetricScore("ExactMatch", 1.0, {"matched": "yes"})]) for n in positions]

            began = time.process_time()
            writer.commit_results(
                [
                    Result(n, 0, digest("k", record.task.prompt.text), record, prompt_tokens=100, completion_tokens=200)
                    for n, record in zip(positions, records, strict=True)
                ]
            )
            cost.records += (ended := time.process_time()) - began
            writer.commit_scores(
                evaluation,
                [
                    verdict
                    for n, record, scored in zip(positions, records, judged, strict=True)
                    for verdict in score_rows(n, scored, ["ExactMatch"], record.task.metadata)
                ],
            )
            cost.scores += time.process_time() - ended
    return cost


def _row(n: int) -> dict[str, str]:
    return {"id": str(n), "question": f"what is {n}? " + "x" * 300, "answer": str(n)}


def _record(frame: Frame, n: int) -> GenerationRecord:
    row = _row(n)
    task = frame.task(str(n), row, row["question"])
    return GenerationRecord(task, ModelOutput(f"{n} " + "word " * 180, usage={"total_tokens": 300}), None)


def _item(position: int, row: dict[str, str]) -> Item:
    content = canonical_json(row)
    return Item(position, row["id"], digest(content), content)


def list_many_runs(root: Path, count: int) -> float:
    storage = ExperimentStorage(root)
    manifest = {"schema_version": "1", "model": {"identifier": "m"}, "filler": "x" * 1_000}
    from sqlalchemy import Double, Integer, insert

    from themis.storage import schema

    counted = [
        column for column in schema.runs.columns if isinstance(column.type, Integer | Double) and not column.nullable
    ]
    counters = [column.name for column in counted if column.name not in ("run", "created_at", "updated_at")]
    now = time.time()
    with storage.engine.begin() as connection:
        connection.execute(
            insert(schema.runs),
            [
                {
                    "run_id": f"run-{n}", "kind": "samples", "experiment_id": "default", "status": "completed", "model": "m",
                    "created_at": now + n, "updated_at": now, "identity": "{}", "tags": "{}",
                    "config": encode({"reproducibility_manifest": manifest, "manifest_hash": "0" * 64}),
                    **dict.fromkeys(counters, 0),
                }
                for n in range(count)
            ],
        )  # fmt: skip
    return statistics.median(_cpu_of_listing(storage, count) for _ in range(7))


def _cpu_of_listing(storage: ExperimentStorage, count: int) -> float:
    began = time.process_time()
    assert len(storage.list_runs()) == count
    return time.process_time() - began


def open_store(root: Path) -> float:
    began = time.process_time()
    storage = ExperimentStorage(root)
    storage.list_runs(limit=5)
    return time.process_time() - began


def _both(cost: Cost) -> float:
    return cost.records + cost.scores


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        cost = store_records(Path(folder) / "records", count)
        opening = open_store(Path(folder) / "records")
        listing = list_many_runs(Path(folder) / "runs", 10_000)
        size = sum(path.stat().st_size for path in (Path(folder) / "records").iterdir())
    print("| what | measured |\n|---|---|")
    per = 1e6 / count
    print(f"| CPU per record of 1 KB with its score ({count:,}): encode, hash, insert | {_both(cost) * per:.0f} µs |")
    print(f"| of it the record, the score | {cost.records * per:.0f} µs, {cost.scores * per:.0f} µs |")
    print(f"| CPU per dataset row stored before the first call | {cost.rows * per:.0f} µs |")
    print(f"| bytes per record on disk | {size / count:,.0f} |")
    print(f"| open that store and list 5 runs | {opening * 1e3:.1f} ms CPU |")
    print(f"| list_runs() with 10,000 runs, median of 7 | {listing * 1e3:.0f} ms CPU |")


if __name__ == "__main__":
    main()
