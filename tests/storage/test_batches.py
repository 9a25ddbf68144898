"""Batches in a store: kept whole, gone with their run, copied and salvaged with it."""

import sqlite3

import pytest
import sqlalchemy as sa

from tests.storage.stored_runs import fill
from themis.core.batches import Batch, BatchItem, BatchState
from themis.storage import ExperimentStorage, RetentionPolicy, schema
from themis.storage.batches import read_batch_ids, read_batches, read_open_batches
from themis.storage.database import DATABASE_NAME
from themis.storage.maintenance import copy_store, repair_store


def intend(number: int = 0, **changes) -> Batch:
    items = [BatchItem(position, attempt, f"key-{position}") for position in range(3) for attempt in range(2)]
    values = {
        "number": number,
        "token": f"token{number}",
        "provider": "OpenAI",
        "endpoint": "https://x/v1",
        "items": items,
    }
    return Batch(**{**values, "created_at": 1_760_000_000.25, **changes})


def save(storage: ExperimentStorage, *batches: Batch, run_id: str = "run") -> None:
    with storage.open_run(run_id) as writer:
        for batch in batches:
            writer.save_batch(batch)


def test_a_batch_comes_back_as_it_was_saved_last(storage):
    fill(storage, "run")
    save(storage, intend(), intend(1))
    later = intend(state=BatchState.SUBMITTED, id="batch_abc", files={"input": "file-1"})
    save(storage, later)

    assert read_batches(storage.reader("run")) == [later, intend(1)]
    assert read_batch_ids(storage.reader("run")) == {"batch_abc"}


def test_only_batches_whose_items_may_be_answered_are_open(storage):
    fill(storage, "run")
    save(storage, *(intend(number, state=state) for number, state in enumerate(BatchState)))

    assert [one.state for one in read_open_batches(storage.reader("run"))] == [
        BatchState.INTENDED,
        BatchState.SUBMITTED,
    ]


def test_a_deleted_run_takes_its_batches_along(storage):
    fill(storage, "run")
    save(storage, intend())

    storage.delete_run("run")

    with storage.engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(schema.batches)).scalar_one() == 0


def test_retention_leaves_a_run_alone_that_a_provider_still_answers(storage):
    for run_id in ("old", "older"):
        fill(storage, run_id)
    save(storage, intend(state=BatchState.SUBMITTED, id="batch_abc"), run_id="old")

    assert storage.apply_retention_policy(RetentionPolicy(max_runs_per_experiment=0, keep_latest_n=0)) == ["older"]


def test_a_copied_run_has_its_batches(storage, tmp_path):
    fill(storage, "run")
    save(storage, intend(state=BatchState.SUBMITTED, id="batch_abc"))
    target = ExperimentStorage(tmp_path / "copy")

    copy_store(storage, target)

    assert read_batches(target.reader("run")) == read_batches(storage.reader("run"))
    target.close()


def test_a_store_from_before_batches_gets_their_table(sqlite_storage, tmp_path):
    fill(sqlite_storage, "run")
    sqlite_storage.close()
    path = tmp_path / "store" / DATABASE_NAME
    with sqlite3.connect(path) as older:
        older.execute("DROP TABLE batches")
        older.execute("PRAGMA user_version = 9")
    older.close()

    storage = ExperimentStorage(tmp_path / "store")
    save(storage, intend())

    assert len(read_open_batches(storage.reader("run"))) == 1
    storage.close()


@pytest.mark.parametrize("is_older", [False, True])
def test_a_repaired_store_has_the_batches_that_can_be_read(sqlite_storage, tmp_path, is_older):
    fill(sqlite_storage, "run")
    save(sqlite_storage, intend(state=BatchState.SUBMITTED, id="batch_abc"))
    sqlite_storage.close()
    if is_older:
        with sqlite3.connect(tmp_path / "store" / DATABASE_NAME) as older:
            older.execute("DROP TABLE batches")
            older.execute("PRAGMA user_version = 9")
        older.close()

    repair = repair_store(tmp_path / "store")

    assert repair.is_complete
    storage = ExperimentStorage(tmp_path / "store")
    assert len(read_open_batches(storage.reader("run"))) == (0 if is_older else 1)
    storage.close()
