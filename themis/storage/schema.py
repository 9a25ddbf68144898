"""The one SQL schema, for SQLite and PostgreSQL, and the migrations that lead to it.

    runs         one row a run: what it is, how it stands, what it has cost, who is writing it
    items        the content of a dataset row or a memory test, stored once however many runs use it
    samples      which items a run has, in which order
    records      one row a finished call: (run, position, attempt)
    evaluations  a way of judging a run; scores of an earlier way stay beside those of a later one
    scores       one row a verdict: (evaluation, position, metric, ordinal)
    judgements   replies of judges by what was asked, so that none is paid for twice
    turns        one row an exchange of a memory run
    artifacts    named files that belong to a run
    definitions  the memory tests of a configuration, every version of them, shared by the runs that play them

Everything of variable shape is JSON text, so that NUL characters and lone surrogates survive in either database.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Select,
    String,
    Table,
    Text,
    UniqueConstraint,
    delete,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import expression
from sqlalchemy.sql.compiler import SQLCompiler

from themis.core.codec import decode, encode, read_word
from themis.exceptions import ConfigurationError

# Statements, columns and rows of whatever shape.
AnySelect: TypeAlias = "Select[*tuple[Any, ...]]"
AnyColumn: TypeAlias = "ColumnElement[Any]"
AnyRow: TypeAlias = "Row[*tuple[Any, ...]]"

metadata = MetaData()


class clock(expression.FunctionElement[float]):
    """The database's own clock, in seconds since 1970: machines that share a store need not agree on the time."""

    type = Double()
    inherit_cache = True


@compiles(clock, "postgresql")
def _postgresql_clock(element: clock, compiler: SQLCompiler, **options: object) -> str:
    return "extract(epoch FROM clock_timestamp())::double precision"


@compiles(clock, "sqlite")
def _sqlite_clock(element: clock, compiler: SQLCompiler, **options: object) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


# SQLite only counts upwards by itself on a column declared INTEGER.
_Serial = BigInteger().with_variant(Integer(), "sqlite")

meta = Table("meta", metadata, Column("key", String(64), primary_key=True), Column("value", Text, nullable=False))

runs = Table(
    "runs",
    metadata,
    Column("run", _Serial, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("experiment_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("benchmark", Text),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("completed_at", Double),
    # What decides the results, one short text per dimension; a resumed run must have the same.
    Column("identity", Text, nullable=False),
    Column("manifest_hash", Text),
    Column("config", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("summary", Text),
    Column("error", Text),
    # True once every row of the dataset is in `samples`.
    Column("planned", Integer, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("succeeded", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("evaluation", _Serial),
    # Sums over every call ever made for this run, failed and replaced ones included.
    Column("calls", BigInteger, nullable=False),
    Column("unpriced_calls", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cost_usd", Double, nullable=False),
    Column("judge_calls", BigInteger, nullable=False),
    Column("judge_cost_usd", Double, nullable=False),
    Column("unpriced_judge_calls", BigInteger, nullable=False, server_default="0"),
    Column("seconds", Double, nullable=False),
    # Answers that ended because they had become as long as they may.
    Column("cut_off", BigInteger, nullable=False, server_default="0"),
    # What a run that is being written waits for, in words; empty while it does not.
    Column("waiting", Text),
    Column("lease_holder", Text),
    Column("lease_until", Double),
    Index("runs_by_age", "created_at"),
    # What is new, for those who watch.
    Index("runs_by_change", "updated_at"),
)

# What stands in the columns of a new run that must not be empty; texts and times are set with it.
RUN_DEFAULTS = {column.name: 0 for column in runs.columns if not column.nullable and not column.primary_key}

items = Table(
    "items",
    metadata,
    Column("fingerprint", String(32), primary_key=True),
    Column("content", Text, nullable=False),
)

samples = Table(
    "samples",
    metadata,
    Column("run", _Serial, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("item_id", Text, nullable=False),
    Column("fingerprint", String(32), nullable=False),
    Column("cluster", Text),
    UniqueConstraint("run", "item_id", name="samples_by_id"),
    sqlite_with_rowid=False,
)

records = Table(
    "records",
    metadata,
    Column("run", _Serial, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("key", String(32), nullable=False),
    Column("ok", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cost_usd", Double),
    Column("seconds", Double, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("records_by_key", "key"),
    # Counting, finding the new, the slow and the failed without going through the bodies.
    Index("records_overview", "run", "created_at", "attempt", "ok", "seconds", "position"),
)

evaluations = Table(
    "evaluations",
    metadata,
    Column("evaluation", _Serial, primary_key=True, autoincrement=True),
    Column("run", _Serial, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("config", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("run", "fingerprint", name="evaluations_by_fingerprint"),
)

scores = Table(
    "scores",
    metadata,
    Column("evaluation", _Serial, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("metric", Text, primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    # Empty where there is no verdict: a failure is never a score.
    Column("value", Double),
    Column("outcome", String(8), nullable=False),
    Column("details", Text),
    sqlite_with_rowid=False,
)

judgements = Table(
    "judgements",
    metadata,
    Column("key", String(32), primary_key=True),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("run", _Serial, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("test_id", Text),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    sqlite_with_rowid=False,
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("run", _Serial, primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("media_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
)

definitions = Table(
    "definitions",
    metadata,
    Column("name", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    # Fingerprint of the configuration that they were generated from.
    Column("configuration", Text, nullable=False),
    # Of the content: tests that were changed in the store are noticed.
    Column("digest", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    # Stores of fewer migrations do not have it.
    info={"since": 6},
)


def _create_tables(connection: Connection) -> None:
    metadata.create_all(connection)


def _create_indexes(connection: Connection) -> None:
    """Indexes that were added to tables which older stores have already."""
    for table in (runs, records):
        for index in table.indexes:
            index.create(connection, checkfirst=True)


def _add_column(name: str, declared: str, connection: Connection) -> None:
    """A column that was added to a table which older stores have already."""
    if name not in {column["name"] for column in inspect(connection).get_columns("runs")}:
        connection.exec_driver_sql(f"ALTER TABLE runs ADD COLUMN {name} {declared}")


def _create_definitions(connection: Connection) -> None:
    definitions.create(connection, checkfirst=True)
    move_definitions(connection)


def move_definitions(connection: Connection) -> None:
    """Moves definitions out of the runs `definitions NAME` and `definitions NAME@n` that older stores keep them in."""
    archived: dict[str, int] = {}
    query = (
        select(runs.c.run_id, runs.c.benchmark, runs.c.config, runs.c.created_at, artifacts.c.content)
        .join(artifacts, (artifacts.c.run == runs.c.run) & (artifacts.c.name == "definitions.json"))
        .where(runs.c.kind == "definitions", runs.c.status == "completed")
    )
    found = [(row, row.run_id.rpartition("@")[2]) for row in connection.execute(query)]
    # The one without a number is the newest.
    for row, number in sorted(found, key=lambda one: (not one[1].isdigit(), one[1].zfill(9))):
        name = row.benchmark or ""
        version = archived[name] = int(number) if number.isdigit() else archived.get(name, 0) + 1
        config = decode(row.config)
        values = {
            "name": name,
            "version": version,
            "created_at": row.created_at,
            "configuration": config.get("configuration", ""),
            "digest": config.get("digest", ""),
            "content": bytes(row.content).decode("utf-8", "replace"),
        }
        connection.execute(insert(definitions).values(**values))
    theirs = select(runs.c.run).where(runs.c.kind == "definitions")
    connection.execute(delete(artifacts).where(artifacts.c.run.in_(theirs)))
    connection.execute(delete(runs).where(runs.c.kind == "definitions"))


# Options of the commands that older stores keep for memory runs, and the setting that each is.
_COMMAND_SETTINGS = {
    "-c": "configuration",
    "-a": "agent",
    "-m": "max_prompt_tokens",
    "--span": "span_tokens",
    "--seed": "seed",
    "--judge": "judge",
    "--filler": "filler",
    "--clock": "clock",
    "--max-message-tokens": "max_message_tokens",
    "--budget-usd": "budget_usd",
    "--definitions": "definitions",
    "--parallel": "workers",
}
_WHOLE_SETTINGS = ("max_prompt_tokens", "span_tokens", "seed", "max_message_tokens", "workers")


def store_specifications(connection: Connection) -> None:
    """What a run was asked to be, where older stores keep arguments of a call or the words of a command."""
    for row in connection.execute(select(runs.c.run, runs.c.kind, runs.c.config)).all():
        config = decode(row.config)
        given = config.pop("invocation", None)
        if not isinstance(given, dict):
            continue
        if row.kind == "memory":
            try:
                specification = _read_command(given)
            except (ValueError, StopIteration, ConfigurationError):
                continue  # damaged: it stays as it is
        else:
            specification = {name: value for name, value in given.items() if name != "custom_pipeline"}
            if given.get("custom_pipeline"):
                specification["made_in_python"] = ["evaluation_pipeline"]
        if specification:
            config["specification"] = {"kind": row.kind, **specification}
            connection.execute(update(runs).where(runs.c.run == row.run).values(config=encode(config)))


def _read_command(given: dict[str, Any]) -> dict[str, object]:
    """The settings in the words behind `themis`; none where no command started the run."""
    words, settings = iter(given.get("command") or ()), dict[str, Any]()
    options: dict[str, dict[str, object]] = {"--option": {}, "--judge-option": {}}
    for word in words:
        if word in _COMMAND_SETTINGS:
            name, value = _COMMAND_SETTINGS[word], next(words)
            settings[name] = int(value) if name in _WHOLE_SETTINGS else float(value) if name == "budget_usd" else value
        elif word in ("-i", "-l"):
            settings["isolated" if word == "-i" else "is_local"] = True
        elif word in options:
            name, _, text = next(words).partition("=")
            options[word][name] = read_word(text)
        elif word == "--load":
            settings.setdefault("load", []).append(next(words))
    if settings:
        settings |= {"agent_options": options["--option"], "judge_options": options["--judge-option"]}
        settings["needs_program"] = str(given.get("needs_program") or "")
    return {name: value for name, value in settings.items() if value not in ("", {})}


# Applied in order on opening; a store remembers how many it has had. Append only.
MIGRATIONS: list[Callable[[Connection], None]] = [
    _create_tables,
    _create_indexes,
    partial(_add_column, "unpriced_judge_calls", "BIGINT NOT NULL DEFAULT 0"),
    partial(_add_column, "cut_off", "BIGINT NOT NULL DEFAULT 0"),
    partial(_add_column, "waiting", "TEXT"),
    _create_definitions,
    store_specifications,
]
