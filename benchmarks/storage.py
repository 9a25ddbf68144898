"""What it costs to store a record: CPU per record with its score, listing and opening large stores.

python benchmarks/storage.py [records]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from themis.core.codec import encode
from themis.core.entities import (
    EvaluationRecord,
    GenerationRecord,
    MetricScore,
    ModelOutput,
    ModelSpec,
    SamplingConfig,
)
from themis.core.fingerprint import canonical_json, digest
from themis.storage import ExperimentStorage
from themis.storage.records import Call, Frame, Item, verdicts

BATCH = 200


def store_records(root: Path, count: int) -> float:
    storage = ExperimentStorage(root)
    frame = Frame(model=ModelSpec("m", "fake"), sampling=SamplingConfig(), reference_field="answer")
    storage.start_run("bench", config={"task": frame.to_config()}, model="fake:m")
    answer = "word " * 100
    began = time.process_time()
    with storage.open_run("bench") as writer:
        rows = ({"id": str(n), "question": f"what is {n}? " + "x" * 300, "answer": str(n)} for n in range(count))
        writer.plan(_item(n, row) for n, row in enumerate(rows))
        evaluation = writer.open_evaluation("f" * 64, {})
        calls: list[Call] = []
        for n in range(count):
            row = {"id": str(n), "question": f"what is {n}? " + "x" * 300, "answer": str(n)}
            task = frame.task(str(n), row, row["question"])
            record = GenerationRecord(task, ModelOutput(answer, usage={"total_tokens": 300}), None)
            calls.append(Call(n, 0, digest("k", row["question"]), record, prompt_tokens=100, completion_tokens=200))
            if len(calls) == BATCH:
                writer.commit_calls(calls)
                judged = [
                    verdict
                    for call in calls
                    for verdict in verdicts(
                        call.position,
                        EvaluationRecord(str(call.position), [MetricScore("ExactMatch", 1.0, {"matched": "yes"})]),
                        ["ExactMatch"],
                        call.record.task.metadata,
                    )
                ]
                writer.commit_verdicts(evaluation, judged)
                calls = []
    return (time.process_time() - began) / count


def _item(position: int, row: dict[str, str]) -> Item:
    content = canonical_json(row)
    return Item(position, row["id"], digest(content), content)


def list_many_runs(root: Path, count: int) -> float:
    storage = ExperimentStorage(root)
    manifest = {"schema_version": "1", "model": {"identifier": "m"}, "filler": "x" * 1_000}
    from sqlalchemy import insert

    from themis.storage import schema
    from themis.storage.store import _COUNTERS

    now = time.time()
    with storage.engine.begin() as connection:
        connection.execute(
            insert(schema.runs),
            [
                {
                    "run_id": f"run-{n}", "kind": "samples", "experiment_id": "default", "status": "completed", "model": "m",
                    "created_at": now + n, "updated_at": now, "identity": "{}", "tags": "{}",
                    "config": encode({"reproducibility_manifest": manifest, "manifest_hash": "0" * 64}),
                    **dict.fromkeys(_COUNTERS, 0),
                }
                for n in range(count)
            ],
        )  # fmt: skip
    began = time.process_time()
    assert len(storage.list_runs()) == count
    return time.process_time() - began


def open_store(root: Path) -> float:
    began = time.process_time()
    storage = ExperimentStorage(root)
    storage.list_runs(limit=5)
    return time.process_time() - began


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        per_record = store_records(Path(folder) / "records", count)
        opening = open_store(Path(folder) / "records")
        listing = list_many_runs(Path(folder) / "runs", 10_000)
        size = sum(path.stat().st_size for path in (Path(folder) / "records").iterdir())
    print("| what | measured |\n|---|---|")
    print(f"| CPU per record of 1 KB with its score ({count:,} records) | {per_record * 1e6:.0f} µs |")
    print(f"| bytes per record on disk | {size / count:,.0f} |")
    print(f"| open that store and list 5 runs | {opening * 1e3:.1f} ms CPU |")
    print(f"| list_runs() with 10,000 runs | {listing * 1e3:.0f} ms CPU |")


if __name__ == "__main__":
    main()
