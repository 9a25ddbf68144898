"""Care of a whole store: check it, copy it to another, give space back, and repair it where its file is damaged.

A repair salvages a SQLite store into a new file, and says of every run what was lost and what brings it back. Rows are read
from the pages themselves (`storage.pages`), so that a file which SQLite refuses gives back what it holds. Then each run is
made to fit what is left of it (`storage.salvage`): what is missing is missing for all who read the run, and resuming asks for
just that.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from themis.core.batches import BatchState
from themis.core.codec import decode, digest
from themis.core.redaction import redact_text
from themis.exceptions import RunBusyError, StorageError
from themis.storage import schema
from themis.storage.database import (
    database_file,
    format_holder,
    holder_is_dead,
    is_url,
    open_sqlite,
    process_runs,
    refuse_newer,
)
from themis.storage.migrations import (
    MIGRATIONS,
    move_definitions,
    separate_parts,
    separate_reasoning,
    store_specifications,
    store_system_prompts,
)
from themis.storage.pages import INDEX, TABLE, DamagedText, Page, PageFile, Row, SqliteValue, Tree
from themis.storage.runs import FAILED, PARTIAL, SCORED, UNPARSED, Frame, RunStatus, find_digests, is_whole_body
from themis.storage.salvage import Loss, salvage_runs
from themis.storage.schema import AnySelect
from themis.storage.store import ExperimentStorage
from themis.storage.writing import insert_into, remove_unused_items

_BATCH = 1_000
# Columns of a run that mean something only in its own store.
_NOT_COPIED = ("run", "evaluation", "lease_holder", "lease_until")

_TABLES = (
    *(schema.runs, schema.items, schema.samples, schema.records, schema.evaluations, schema.scores, schema.turns),
    schema.steps,
    schema.batches,
    schema.attachments,
    schema.artifacts,
    schema.judgements,
    schema.definitions,
)
_JSON = {
    "runs": ("identity", "config", "tags", "summary"),
    "items": ("content",),
    "records": ("body",),
    "evaluations": ("config",),
    "scores": ("details",),
    "judgements": ("body",),
    "steps": ("body",),
    "batches": ("files", "requests"),
    "turns": ("body",),
    "definitions": ("content",),
}
# The index behind the primary key of `records`: it tells of calls whose rows are gone.
_CALLS_INDEX = "sqlite_autoindex_records_1"
_PARTS = ("", "-wal", "-shm")


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
        outside.exec_driver_sql("VACUUM")
        if storage.engine.dialect.name == "sqlite":
            outside.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return before, storage.get_storage_size()


def _require(storage: ExperimentStorage) -> None:
    if not storage.exists():
        raise StorageError(f"there is no store at {redact_text(str(storage.location))}")


# --- copy -------------------------------------------------------------------------------------------------------------


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
        named = reading.execute(items.where(schema.items.c.content.contains('"digest"'))).mappings()
        for one in {one for item in named.all() for one in find_digests(item["content"])}:
            attached = sa.select(schema.attachments).where(schema.attachments.c.digest == one)
            copy(attached, insert_into(target.engine, schema.attachments).on_conflict_do_nothing())
        for table in (
            schema.samples,
            schema.records,
            schema.steps,
            schema.batches,
            schema.turns,
            schema.artifacts,
        ):
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


# --- repair -----------------------------------------------------------------------------------------------------------


@dataclass
class Repair:
    """What was saved, what was lost, and where the damaged file is kept.

    `rows` are the rows saved by table, `broken` the places by table that could not be read, `altered` the rows that were kept
    although a text in them has bytes that are no text (U+FFFD stands for each), `runs` the runs that lost something.
    """

    kept: Path
    rows: dict[str, int] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)
    altered: list[str] = field(default_factory=list)
    runs: list[Loss] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether everything that the store held was saved, as far as can be told."""
        return not (self.runs or self.altered or any(self.broken.values()))


def repair_store(location: str | Path) -> Repair:
    """Salvages what can be read into a new file, which takes the store's place; the damaged one is kept under another name.

    Where nothing can be read the file stays as it is, and that is an error. So is a run that a live process is writing.
    """
    if is_url(location):
        raise StorageError("a PostgreSQL store is repaired with the server's own tools")
    path = database_file(Path(location))
    if not path.is_file():
        raise StorageError(f"there is no store at {path}")
    _remove_leftovers(path)
    # Of an earlier repair that was killed while it put the new file into place: the log lies beside that name already.
    kept = next((one for one in path.parent.glob(f"{path.name}.damaged-*") if one.samefile(path)), None)
    repair = Repair(kept=kept or path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"))
    made = path.with_name(f".{path.stem}-repaired-{os.getpid()}.db")
    try:
        open_sqlite(made).dispose()
        with PageFile(kept or path) as pages, contextlib.closing(_open(made)) as new:
            _Salvage(pages, new, repair).run()
            if not any(repair.rows[table.name] for table in (schema.runs, schema.records, schema.turns)):
                raise StorageError(
                    f"nothing of {path} can be read; it was left as it is. Restore a backup, or move the file away to "
                    "begin a new store"
                )
            _refuse_live_writers(new)
            new.commit()
            if pages.user_version < len(MIGRATIONS):
                _migrate_rows(made)
            repair.runs = salvage_runs(new, location, has_lost_runs=repair.broken["runs"] > 0)
            new.commit()
            new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _replace_file(path, made, repair.kept)
    except OSError as error:
        raise StorageError(f"cannot repair {path}: {error.strerror or error}; it was left as it is") from error
    except sqlite3.Error as error:
        raise StorageError(f"cannot write the repaired file beside {path}: {error}; it was left as it is") from error
    finally:
        _remove(made)
    return repair


def _migrate_rows(made: Path) -> None:
    """Brings rows of a store of fewer migrations up to date: the new file has had all of them when it was empty."""
    engine = open_sqlite(made)
    try:
        with engine.begin() as connection:
            move_definitions(connection)
            store_specifications(connection)
            separate_parts(connection)
            separate_reasoning(connection)
            store_system_prompts(connection)
    finally:
        engine.dispose()


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TEMP TABLE seen (run INTEGER, position INTEGER, attempt INTEGER)")
    return connection


def _refuse_live_writers(new: sqlite3.Connection) -> None:
    query = "SELECT run_id, lease_holder FROM runs WHERE lease_holder IS NOT NULL AND lease_until > ?"
    for run_id, holder in new.execute(query, (time.time(),)):
        if not holder_is_dead(holder):
            raise RunBusyError(
                f"run {run_id!r} is being written by {format_holder(holder)}; stop it first. Nothing was changed"
            )


def _replace_file(path: Path, made: Path, kept: Path) -> None:
    """Puts the new file into the damaged one's place, which has another name before: killed at any moment, nothing is gone."""
    # The log first: by the file's second name the next repair knows that the log has one too.
    for suffix in ("-wal", ""):
        part, other = Path(f"{path}{suffix}"), Path(f"{kept}{suffix}")
        if part.exists() and not other.exists():
            os.link(part, other)
    # A log is believed by whatever file it lies beside, so it must be gone before the new one comes.
    for suffix in _PARTS[1:]:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    made.replace(path)


def _remove_leftovers(path: Path) -> None:
    """Removes what a repair left that was killed."""
    for leftover in path.parent.glob(f".{path.stem}-repaired-*.db"):
        number = leftover.stem.rpartition("-")[2]
        if number.isdigit() and not process_runs(int(number)):
            _remove(leftover)


def _remove(path: Path) -> None:
    for suffix in _PARTS:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


# --- rows -------------------------------------------------------------------------------------------------------------


class _Salvage:
    """Copies rows from pages into a new database; the first row of a key wins."""

    def __init__(self, pages: PageFile, new: sqlite3.Connection, repair: Repair) -> None:
        self._pages = pages
        self._new = new
        self._repair = repair
        objects = _schema_objects(pages)
        self._roots = {one.name: one.root for one in objects}
        declared = {one.name: one.sql for one in objects if one.kind == TABLE and one.sql}
        if pages.user_version > len(MIGRATIONS) and _has_unknown_columns(declared):
            refuse_newer(pages.user_version, str(repair.kept))
        self._shapes = {table.name: _Shape(table, declared.get(table.name)) for table in _TABLES}

    def run(self) -> None:
        rows, broken = self._repair.rows, self._repair.broken
        rows.update(dict.fromkeys(self._shapes, 0))
        broken.update(dict.fromkeys(self._shapes, 0))
        behind = self._pages.behind_break
        # The oldest of them is where the log broke: it is believed last.
        self._copy_pages(self._pages.read_pages(behind[:-1]), set(self._shapes))
        for shape in self._shapes.values():
            self._copy_tree(shape)
        self._note_calls(self._tree(_CALLS_INDEX, INDEX) or ())
        # A damaged list of free pages cannot tell what was lost from what was deleted: then only tables with gaps are filled.
        free = self._pages.free_pages()
        wanted = set(self._shapes) if free is not None else {name for name, count in broken.items() if count}
        self._copy_pages(self._pages.loose_pages(free or set()), wanted)
        self._copy_pages(self._pages.read_pages(behind[-1:]), wanted)

    def _tree(self, name: str, kind: str) -> Tree | None:
        return Tree(self._pages, self._roots[name], kind) if name in self._roots else None

    def _copy_tree(self, shape: _Shape) -> None:
        tree = self._tree(shape.name, shape.kind)
        if tree is None:
            self._repair.broken[shape.name] += self._pages.user_version >= shape.since
            return
        for row in tree:
            if not self._copy_row(shape, row):
                self._repair.broken[shape.name] += 1
        self._repair.broken[shape.name] += tree.broken

    def _copy_pages(self, pages: Iterable[Page], wanted: set[str]) -> None:
        """Rows of pages of which it is not known whose they are: every table's rows look different."""
        for page in pages:
            shapes = [shape for shape in self._shapes.values() if shape.kind == page.kind and shape.name in wanted]
            for row in page.rows:
                any(self._copy_row(shape, row) for shape in shapes)
            if page.kind == INDEX:
                self._note_calls(page.rows)

    def _copy_row(self, shape: _Shape, row: Row) -> bool:
        """Whether the row is one of the table and can be used; then it is stored, unless its key is there already."""
        found = shape.read(row)
        if found is None:
            return False
        added = self._new.execute(shape.insert, [found.values[name] for name in shape.columns]).rowcount
        self._repair.rows[shape.name] += max(0, added)
        if added > 0 and found.altered:
            where = ", ".join(f"{name} {found.values[name]!r}" for name in shape.key)
            self._repair.altered.append(f"{shape.name}: {where}: {', '.join(found.altered)}")
        return True

    def _note_calls(self, rows: Iterable[Row]) -> None:
        calls = (row.values[:3] for row in rows if [type(value) for value in row.values] == [int] * 4)
        self._new.executemany("INSERT INTO seen VALUES (?, ?, ?)", calls)


class _SchemaObject(NamedTuple):
    """A table or index as the file itself declares it."""

    kind: str
    name: str
    root: int
    sql: str | None


def _schema_objects(pages: PageFile) -> list[_SchemaObject]:
    """What the table of tables names. Lost with the first page, its rows may lie on another."""
    reached = list(_read_schema_objects(Tree(pages, 1, TABLE)))
    if len(reached) < len(_TABLES):
        reached += [one for page in pages.loose_pages(set()) for one in _read_schema_objects(page.rows)]
    return reached


def _read_schema_objects(rows: Iterable[Row]) -> Iterator[_SchemaObject]:
    for row in rows:
        match row.values:
            case (str(kind), str(name), str(), int(root), sql) if kind in (TABLE, INDEX):
                yield _SchemaObject(kind, name, root, sql if isinstance(sql, str) else None)


@dataclass
class _SalvagedRow:
    """A row by its columns, and the columns that are not as they were."""

    values: dict[str, SqliteValue]
    altered: list[str]


class _Shape:
    """What a row of one table looks like."""

    def __init__(self, table: sa.Table, declared: str | None) -> None:
        self.name = table.name
        self.kind = TABLE if table.dialect_options["sqlite"]["with_rowid"] else INDEX
        self.columns = [column.name for column in table.columns]
        # Migrations that a store has had which has this table.
        self.since: int = table.info.get("since", 0)
        self.key = [column.name for column in table.primary_key.columns]
        marks = ", ".join("?" for _ in self.columns)
        names = ", ".join(f'"{name}"' for name in self.columns)
        self.insert = f'INSERT OR IGNORE INTO "{self.name}" ({names}) VALUES ({marks})'
        self._table = table
        self._layouts = [order] if (order := _declared_order(table, declared)) else list(_orders(table))
        # SQLite keeps a lone whole-number key as the row's number.
        is_number = self.kind == TABLE and isinstance(table.c[self.key[0]].type, sa.Integer)
        self._row_number = self.key[0] if is_number and len(self.key) == 1 else None

    def read(self, row: Row) -> _SalvagedRow | None:
        for layout in self._layouts:
            if (values := self._named(layout, row)) is not None:
                return self._check(values)
        return None

    def _named(self, layout: Sequence[str], row: Row) -> dict[str, SqliteValue] | None:
        """The row's values by column, if they are of the columns' types."""
        if len(row.values) > len(layout):
            return None
        # A row that is older than a column lacks it.
        younger = {name: _default(self._table.c[name]) for name in layout[len(row.values) :]}
        values = {**dict(zip(layout, row.values, strict=False)), **younger}
        if self._row_number is not None and values[self._row_number] is None:
            values[self._row_number] = row.rowid
        return values if all(_fits(self._table.c[name], value) for name, value in values.items()) else None

    def _check(self, values: dict[str, SqliteValue]) -> _SalvagedRow | None:
        """Nothing that nobody could read later: what may be empty is emptied, anything else makes the row a lost one."""
        altered = [name for name, value in values.items() if isinstance(value, DamagedText)]
        values.update({name: str(values[name]) for name in altered})
        for name in _JSON.get(self.name, ()):
            if values[name] is not None and not _is_json(str(values[name])):
                if not self._table.c[name].nullable:
                    return None
                values[name] = None
                altered += [] if name in altered else [name]
        return _SalvagedRow(values, altered) if _is_usable(self.name, values) else None


def _declared_order(table: sa.Table, sql: str | None) -> list[str] | None:
    """The order of the columns as the damaged file's own schema gives it."""
    names = _declared_columns(table.name, sql)
    known = {column.name for column in table.columns}
    required = {column.name for column in table.columns if column.server_default is None}
    return names if required <= set(names) <= known else None


def _has_unknown_columns(declared: dict[str, str]) -> bool:
    return any(
        not set(_declared_columns(table.name, declared.get(table.name))) <= {column.name for column in table.columns}
        for table in _TABLES
    )


def _declared_columns(table: str, sql: str | None) -> list[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as scratch:
        try:
            scratch.execute(sql or "")
            return [row[1] for row in scratch.execute(f'PRAGMA table_info("{table}")')]
        except (sqlite3.Error, UnicodeEncodeError):
            return []


def _orders(table: sa.Table) -> Iterator[list[str]]:
    """The orders that a store may have: columns that were added to an older one stand at its end."""
    names = [column.name for column in table.columns]
    added = [column.name for column in table.columns if column.server_default is not None]
    for count in range(len(added) + 1):
        last = added[len(added) - count :]
        yield [name for name in names if name not in last] + last


def _default(column: sa.Column[object]) -> int | None:
    return None if column.server_default is None else 0


def _fits(column: sa.Column[object], value: SqliteValue) -> bool:
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, sa.Integer):
        return type(value) is int
    if isinstance(column.type, sa.Float):
        return type(value) in (int, float)
    if isinstance(column.type, sa.LargeBinary):
        return type(value) is bytes
    return isinstance(value, str) and len(value) <= (getattr(column.type, "length", None) or len(value))


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_usable(table: str, values: dict[str, SqliteValue]) -> bool:
    match table:
        case "items":
            # Its name is a hash of its content: an altered question is no longer the one that was answered.
            return digest(str(values["content"])) == str(values["fingerprint"])
        case "records":
            return values["ok"] in (0, 1) and is_whole_body(str(values["body"]))
        case "definitions":
            return digest(str(values["content"])) == str(values["digest"])
        case "batches":
            return values["state"] in set(BatchState)
        case "scores":
            return values["outcome"] in (SCORED, PARTIAL, UNPARSED, FAILED)
        case "runs":
            if values["status"] not in set(RunStatus):
                values["status"] = RunStatus.INTERRUPTED.value
            return _has_frame(str(values["config"]))
    return True


def _has_frame(config: str) -> bool:
    try:
        Frame.from_config(decode(config).get("task", {}))
    except (TypeError, AttributeError, ValueError):
        return False
    return True
