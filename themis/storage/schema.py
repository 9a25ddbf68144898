"""The one SQL schema, for SQLite and PostgreSQL; `migrations` lead older stores to it.

    runs         one row a run: what it is, how it stands, what it has cost, who is writing it
    items        the content of a dataset row or a memory test, stored once however many runs use it
    samples      which items a run has, in which order
    records      one row a finished call: (run, position, attempt)
    evaluations  a way of judging a run; scores of an earlier way stay beside those of a later one
    scores       one row a verdict: (evaluation, position, metric, ordinal)
    judgements   replies of judges by what was asked, so that none is paid for twice
    steps        one row a step of an answer that takes several, until the answer is whole
    batches      one row a batch that a provider works off: written before it is sent, until its results are stored
    turns        one row an exchange of a memory run
    attachments  images and files that rows name, stored once however many rows and runs use them
    artifacts    named files that belong to a run
    definitions  the memory tests of a configuration, every version of them, shared by the runs that play them

Everything of variable shape is JSON text, so that NUL characters and lone surrogates survive in either database.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
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
)

# Statements, columns and rows of whatever shape.
AnySelect: TypeAlias = "Select[*tuple[Any, ...]]"
AnyColumn: TypeAlias = "ColumnElement[Any]"
AnyRow: TypeAlias = "Row[*tuple[Any, ...]]"

metadata = MetaData()

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
    # Of the prompts' tokens, those read from a provider's cache and those written to it.
    Column("cached_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cache_write_tokens", BigInteger, nullable=False, server_default="0"),
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

steps = Table(
    "steps",
    metadata,
    Column("run", _Serial, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    info={"since": 8},
    sqlite_with_rowid=False,
)

batches = Table(
    "batches",
    metadata,
    Column("run", _Serial, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    # Ours, which the provider is given with the batch.
    Column("token", String(32), nullable=False),
    Column("provider", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("state", String(16), nullable=False),
    # The provider's, once it is known.
    Column("batch_id", Text),
    Column("files", Text, nullable=False),
    # [position, attempt, key] of every item.
    Column("requests", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    info={"since": 10},
)

attachments = Table(
    "attachments",
    metadata,
    # SHA-256 of the content.
    Column("digest", String(64), primary_key=True),
    Column("media_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
    info={"since": 8},
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
