"""Care of a whole store: check it, salvage a damaged one, copy it to another, give space back."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from themis.core.redaction import redact_text
from themis.exceptions import StorageError
from themis.storage import schema
from themis.storage.database import database_file, is_url, open_sqlite
from themis.storage.store import ExperimentStorage, remove_unused_items

__all__ = ["CheckResult", "Repair", "check_store", "copy_store", "repair_store", "vacuum_store"]

_TABLES = (
    *(schema.runs, schema.items, schema.samples, schema.records, schema.evaluations, schema.scores, schema.turns),
    schema.artifacts,
    schema.judgements,
)
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
    source: ExperimentStorage, target: ExperimentStorage, tell: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Copies every run that the target does not have; between SQLite and PostgreSQL in either direction."""
    _require(source)
    present = {run.run_id for run in target.list_runs()}
    copied = []
    for run in reversed(source.list_runs()):
        if run.run_id in present:
            tell(f"{run.run_id}: there already")
            continue
        if run.writer is not None:
            tell(f"{run.run_id}: being written by {run.writer}, left out")
            continue
        _copy_run(source, target, run.run_id)
        copied.append(run.run_id)
        tell(f"{run.run_id}: copied")
    return copied


def _copy_run(source: ExperimentStorage, target: ExperimentStorage, run_id: str) -> None:
    with source.engine.connect() as reading, target.engine.begin() as writing:
        row = reading.execute(sa.select(schema.runs).where(schema.runs.c.run_id == run_id)).mappings().one()
        old = row["run"]
        values = {name: value for name, value in row.items() if name not in _NOT_COPIED}
        new = _new_key(writing, sa.insert(schema.runs).values(**values))
        known = _known_items(writing, reading, old)
        used = sa.select(schema.samples.c.fingerprint).where(schema.samples.c.run == old)
        items = sa.select(schema.items).where(schema.items.c.fingerprint.in_(used))
        _pump(
            reading, writing, items, schema.items, lambda values: values if values["fingerprint"] not in known else None
        )
        for table in (schema.samples, schema.records, schema.turns, schema.artifacts):
            query = sa.select(table).where(table.c.run == old)
            _pump(reading, writing, query, table, partial(_with, run=new))
        for evaluation in reading.execute(
            sa.select(schema.evaluations).where(schema.evaluations.c.run == old)
        ).mappings():
            values = {**evaluation, "run": new}
            number = values.pop("evaluation")
            made = _new_key(writing, sa.insert(schema.evaluations).values(**values))
            query = sa.select(schema.scores).where(schema.scores.c.evaluation == number)
            _pump(reading, writing, query, schema.scores, partial(_with, evaluation=made))
            if number == row["evaluation"]:
                writing.execute(sa.update(schema.runs).where(schema.runs.c.run == new).values(evaluation=made))


def _new_key(connection: sa.Connection, insert: sa.Insert) -> int:
    key = connection.execute(insert).inserted_primary_key
    assert key is not None
    return int(key[0])


def _with(values: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {**values, **changed}


def _known_items(writing: sa.Connection, reading: sa.Connection, run: int) -> set[str]:
    """Which of a run's items the target has already."""
    wanted = list(reading.execute(sa.select(schema.samples.c.fingerprint).where(schema.samples.c.run == run)).scalars())
    known: set[str] = set()
    for start in range(0, len(wanted), _BATCH):
        query = sa.select(schema.items.c.fingerprint).where(
            schema.items.c.fingerprint.in_(wanted[start : start + _BATCH])
        )
        known.update(writing.execute(query).scalars())
    return known


def _pump(
    reading: sa.Connection,
    writing: sa.Connection,
    query: sa.Select[Any],
    table: sa.Table,
    change: Callable[[dict[str, Any]], dict[str, Any] | None],
) -> None:
    result = reading.execution_options(yield_per=_BATCH).execute(query).mappings()
    for page in result.partitions():
        rows = [changed for row in page if (changed := change(dict(row))) is not None]
        if rows:
            writing.execute(sa.insert(table), rows)


# --- repair ---------------------------------------------------------------------------------------------------------


@dataclass
class Repair:
    """What was salvaged into which file; the damaged one is kept under `kept`."""

    kept: Path
    rows: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)


def repair_store(location: str | Path) -> Repair:
    """Salvages what SQLite can read into a new file. The damaged file is renamed, never deleted."""
    if is_url(location):
        raise StorageError("a PostgreSQL store is repaired with the server's own tools")
    path = database_file(Path(location))
    if not path.is_file():
        raise StorageError(f"there is no store at {path}")
    made = path.with_name(f".{path.stem}-repaired-{os.getpid()}.db")
    engine = open_sqlite(made)
    repair = Repair(kept=path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"))
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as damaged:
            damaged.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            for table in _TABLES:
                repair.rows[table.name], repair.lost[table.name] = _salvage(damaged, engine, table)
    except sqlite3.Error as error:
        engine.dispose()
        _remove(made)
        raise StorageError(
            f"nothing of {path} can be read ({error}); it was left as it is. Restore a backup"
        ) from error
    with engine.begin() as connection:
        connection.execute(sa.update(schema.runs).values(lease_holder=None, lease_until=None))
    engine.dispose()
    for suffix in ("", "-wal", "-shm"):
        part = Path(f"{path}{suffix}")
        if part.exists():
            part.rename(f"{repair.kept}{suffix}")
    made.rename(path)
    return repair


def _salvage(damaged: sqlite3.Connection, engine: Engine, table: sa.Table) -> tuple[int, int]:
    """Copies a table row by row over the broken places; how many rows were saved, and how many places were broken."""
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    marks = ", ".join("?" for _ in table.columns)
    saved = broken = 0
    with engine.begin() as connection:
        raw: Any = connection.connection.driver_connection
        for direction in ("ASC", "DESC"):
            order = ", ".join(f'"{column.name}" {direction}' for column in table.primary_key.columns)
            try:
                for row in damaged.execute(f'SELECT {columns} FROM "{table.name}" ORDER BY {order}'):
                    added = raw.execute(f'INSERT OR IGNORE INTO "{table.name}" ({columns}) VALUES ({marks})', row)
                    saved += added.rowcount
                return saved, broken
            except sqlite3.Error:
                broken += 1  # read on from the other end, up to the same place
    return saved, broken


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
