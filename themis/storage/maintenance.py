"""Care of a whole store: check it, copy it to another, give space back. A damaged one is for `storage.repair`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial

import sqlalchemy as sa

from themis.core.fingerprint import digest
from themis.core.redaction import redact_text
from themis.exceptions import StorageError
from themis.storage import schema
from themis.storage.schema import AnySelect
from themis.storage.store import ExperimentStorage
from themis.storage.writing import insert_into, remove_unused_items

_BATCH = 1_000
# Columns of a run that mean something only in its own store.
_NOT_COPIED = ("run", "evaluation", "lease_holder", "lease_until")


@dataclass
class CheckResult:
    """What a check found: problems that need repair, and remarks that do not."""

    runs: int = 0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check_store(storage: ExperimentStorage) -> CheckResult:
    """Reads everything once: the database's own check, then every run's."""
    _require(storage)
    result = CheckResult()
    if storage.engine.dialect.name == "sqlite":
        with storage.engine.connect() as connection:
            found = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        result.problems.extend(line for line in found if line != "ok")
    for one in storage.list_definitions():
        if digest(one.content) != one.digest:
            result.problems.append(f"version {one.version} of the definitions {one.name!r} is not what was stored")
    for run in storage.list_runs():
        result.runs += 1
        checked = storage.validate_integrity(run.run_id)
        result.problems.extend(f"{run.run_id}: {error}" for error in checked["errors"])
        result.warnings.extend(f"{run.run_id}: {warning}" for warning in checked["warnings"])
    return result


def vacuum_store(storage: ExperimentStorage) -> tuple[int, int]:
    """Removes items that no run uses and gives the space back; sizes before and after, in bytes."""
    _require(storage)
    before = storage.get_storage_size()
    with storage.engine.begin() as connection:
        remove_unused_items(connection)
    with storage.engine.connect() as connection:
        outside = connection.execution_options(isolation_level="AUTOCOMMIT")
        if storage.engine.dialect.name == "sqlite":
            outside.exec_driver_sql("VACUUM")
            outside.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            outside.exec_driver_sql("VACUUM")
    return before, storage.get_storage_size()


def _require(storage: ExperimentStorage) -> None:
    if not storage.exists():
        raise StorageError(f"there is no store at {redact_text(str(storage.location))}")


# --- copy -----------------------------------------------------------------------------------------------------------


def copy_store(
    source: ExperimentStorage, target: ExperimentStorage, report: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Copies every run that the target does not have; between SQLite and PostgreSQL in either direction.

    Definitions of memory tests go with them, all versions of those names that the target does not have.
    """
    _require(source)
    _copy_definitions(source, target)
    present = {run.run_id for run in target.list_runs()}
    copied = []
    for run in reversed(source.list_runs()):
        if run.run_id in present:
            report(f"{run.run_id}: there already")
            continue
        if run.writer is not None:
            report(f"{run.run_id}: being written by {run.writer}, left out")
            continue
        _copy_run(source, target, run.run_id)
        copied.append(run.run_id)
        report(f"{run.run_id}: copied")
    return copied


def _copy_definitions(source: ExperimentStorage, target: ExperimentStorage) -> None:
    known = {one.name for one in target.list_definitions()}
    missing = [asdict(one) for one in source.list_definitions() if one.name not in known]
    if missing:
        with target.engine.begin() as connection:
            connection.execute(sa.insert(schema.definitions), missing)


def _copy_run(source: ExperimentStorage, target: ExperimentStorage, run_id: str) -> None:
    with source.engine.connect() as reading, target.engine.begin() as writing:
        row = reading.execute(sa.select(schema.runs).where(schema.runs.c.run_id == run_id)).mappings().one()
        old = row["run"]
        values = {name: value for name, value in row.items() if name not in _NOT_COPIED}
        new = _new_key(writing, sa.insert(schema.runs).values(**values))
        copy = partial(_copy_rows, reading, writing)
        used = sa.select(schema.samples.c.fingerprint).where(schema.samples.c.run == old)
        items = sa.select(schema.items).where(schema.items.c.fingerprint.in_(used))
        copy(items, insert_into(target.engine, schema.items).on_conflict_do_nothing())
        for table in (schema.samples, schema.records, schema.turns, schema.artifacts):
            copy(sa.select(table).where(table.c.run == old), sa.insert(table), run=new)
        mine = sa.select(schema.evaluations).where(schema.evaluations.c.run == old)
        for evaluation in reading.execute(mine).mappings().all():
            values = {**evaluation, "run": new}
            number = values.pop("evaluation")
            made = _new_key(writing, sa.insert(schema.evaluations).values(**values))
            scores = sa.select(schema.scores).where(schema.scores.c.evaluation == number)
            copy(scores, sa.insert(schema.scores), evaluation=made)
            if number == row["evaluation"]:
                writing.execute(sa.update(schema.runs).where(schema.runs.c.run == new).values(evaluation=made))


def _new_key(connection: sa.Connection, insert: sa.Insert) -> int:
    key = connection.execute(insert).inserted_primary_key
    assert key is not None
    return int(key[0])


def _copy_rows(
    reading: sa.Connection, writing: sa.Connection, query: AnySelect, insert: sa.Insert, **changed: object
) -> None:
    result = reading.execution_options(yield_per=_BATCH).execute(query).mappings()
    for page in result.partitions():
        writing.execute(insert, [{**row, **changed} for row in page])
