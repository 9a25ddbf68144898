"""Writes one run: holds its lease, commits batches, keeps its sums.

A batch is one transaction that also renews the lease, so a writer that has lost its run cannot add to it. Whoever is told of
a result is told after `commit` returned.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection, Engine

from themis.core.batches import Batch
from themis.core.codec import encode
from themis.core.entities import Result, Step
from themis.core.redaction import Redactor, redact_text
from themis.exceptions import ConfigurationError, RunBusyError, StorageError
from themis.storage import schema
from themis.storage.batches import to_row
from themis.storage.database import (
    DatabaseAwayError,
    Durability,
    clock,
    find_outage,
    format_holder,
    holder_is_dead,
    process_identity,
    retry_read,
)
from themis.storage.runs import (
    Item,
    RunStatus,
    ScoreRow,
    Turn,
    batched,
    encode_body,
    encode_step,
    explain_equal_ids,
    find_digests,
)

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

T = TypeVar("T")

LEASE_SECONDS = 60.0
_DATASET_BATCH = 2_000
# What finished calls add to the row of their run, in the order of `_add_sums`. As text: building the statement anew for every
# commit would cost more than the commit.
_SUMS = (
    *("calls", "unpriced_calls", "prompt_tokens", "completion_tokens", "cost_usd", "seconds", "cut_off"),
    *("cached_tokens", "cache_write_tokens"),
)
# The wall clock when this module was loaded: a memory run may move time for the whole process while an agent replies.
_CLOCK_OFFSET = time.time() - time.monotonic()


@dataclass(frozen=True, kw_only=True)
class RunDescription:
    """What a run is: what decides its results, what it was made of, and the hash of its manifest."""

    identity: Mapping[str, str]
    config: Mapping[str, object]
    manifest_hash: str | None

    def columns(self) -> dict[str, str | None]:
        return {
            "identity": encode(dict(self.identity)),
            "config": encode(dict(self.config)),
            "manifest_hash": self.manifest_hash,
        }


class _Bulk:
    """An insert of many rows as tuples: building a dict and its parameters for every row costs more than the database does.

    `replaces` turns a conflict on the primary key into an update of the other columns, `ignores` into nothing.
    """

    # Compiling a statement costs more than a small transaction.
    _compiled: ClassVar[dict[tuple[str, str, bool], str]] = {}

    def __init__(self, engine: Engine, table: sa.Table, *, replaces: bool = False, ignores: bool = False) -> None:
        place = (engine.dialect.name, table.name, ignores)
        if place not in self._compiled:
            self._compiled[place] = _insert_sql(engine, table, replaces=replaces, ignores=ignores)
        self._sql = self._compiled[place]

    def __call__(self, connection: Connection, rows: list[tuple[object, ...]]) -> None:
        """Rows in the order of the table's columns."""
        if rows:
            connection.exec_driver_sql(self._sql, rows)


def _insert_sql(engine: Engine, table: sa.Table, *, replaces: bool, ignores: bool) -> str:
    columns, key = [column.name for column in table.columns], [column.name for column in table.primary_key.columns]
    statement = insert_into(engine, table).values({name: sa.bindparam(name) for name in columns})
    if replaces:
        changed = {name: statement.excluded[name] for name in columns if name not in key}
        statement = statement.on_conflict_do_update(index_elements=key, set_=changed)
    elif ignores:
        statement = statement.on_conflict_do_nothing()
    compiled = statement.compile(dialect=engine.dialect)
    assert list(compiled.positiontup or ()) == columns
    return str(compiled)


def insert_into(engine: Engine, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An insert of the database's own kind, which can be told what a row becomes whose key is there."""
    if engine.dialect.name == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # a twentieth of a second, for those who have such a database

    return postgresql.insert(table)


class RunWriter:
    """The one writer of a run. Use as a context manager: the lease is let go at the end, whatever happened."""

    def __init__(self, engine: Engine, run: int, run_id: str, *, durability: Durability = Durability.PROCESS) -> None:
        self.run = run
        self.run_id = run_id
        self._engine = engine
        self._outage = find_outage(engine)
        # The token tells two writers of one process apart.
        self._name = f"{process_identity()}:{secrets.token_hex(4)}"
        # How many commits are known to have been made; the number is in the lease, so that the store can be asked.
        self._commits = 0
        self._put_items = _Bulk(engine, schema.items, ignores=True)
        self._put_samples = _Bulk(engine, schema.samples)
        self._put_lost_samples = _Bulk(engine, schema.samples, ignores=True)
        self._put_calls = _Bulk(engine, schema.records, replaces=True)
        self._put_scores = _Bulk(engine, schema.scores, replaces=True)
        self._put_steps = _Bulk(engine, schema.steps, replaces=True)
        self._put_batches = _Bulk(engine, schema.batches, replaces=True)
        self._put_attachments = _Bulk(engine, schema.attachments, ignores=True)
        self._put_turns = _Bulk(engine, schema.turns)
        self._put_judgements = _Bulk(engine, schema.judgements, replaces=True)
        self._put_artifacts = _Bulk(engine, schema.artifacts, replaces=True)
        mark = "?" if engine.dialect.name == "sqlite" else "%s"
        sums = ", ".join(f"{name} = {name} + {mark}" for name in _SUMS)
        self._addition = f"UPDATE runs SET updated_at = {mark}, {sums} WHERE run = {mark}"
        self._step_removal = f"DELETE FROM steps WHERE run = {mark} AND position = {mark} AND attempt = {mark}"
        self._renewal = (
            f"UPDATE runs SET lease_until = {clock().compile(dialect=engine.dialect)} + {mark}, "
            f"lease_holder = {mark} WHERE run = {mark} AND lease_holder = {mark}"
        )
        self._connection = engine.connect()
        self._durability = durability
        self._set_synchronous(durability)
        self._redactor = Redactor()
        self._lock = threading.Lock()
        self._stop_heartbeat = threading.Event()
        self._take_lease()
        if self._outage is not None:
            self._outage.is_retried = True
        self._heartbeat = threading.Thread(target=self._send_heartbeats, name=f"lease-{run_id}", daemon=True)
        self._heartbeat.start()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._stop_heartbeat.is_set():
            return
        self._stop_heartbeat.set()
        self._heartbeat.join()
        with self._lock:
            # A full disk must not hide what went wrong before it; the lease lapses by itself.
            with contextlib.suppress(StorageError):
                retry_read(self._engine, self._release)
            if not self._connection.closed:
                self._set_synchronous(Durability.PROCESS)
                self._connection.close()

    def _release(self, connection: Connection) -> None:
        runs = schema.runs
        mine = runs.c.lease_holder.startswith(f"{self._name}:", autoescape=True)
        connection.execute(
            sa.update(runs).where(runs.c.run == self.run, mine).values(lease_holder=None, lease_until=None)
        )
        connection.commit()

    def _set_synchronous(self, durability: Durability) -> None:
        """In a file; of a server's commits its own settings decide."""
        if self._engine.dialect.name == "sqlite" and self._durability is not Durability.PROCESS:
            self._connection.rollback()
            self._connection.exec_driver_sql(f"PRAGMA synchronous = {durability.synchronous}")

    # --- what a run writes, in the order it does ---------------------------------------------------------------------

    def store_dataset(self, items: Iterable[Item], description: Callable[[], RunDescription] | None = None) -> int:
        """Stores the dataset and returns its length. Two rows of one id are refused.

        Args:
            items: The rows, of any number.
            description: Asked for when the last row is read; the dataset counts as stored when this is stored with it.

        Raises:
            ConfigurationError: Two rows have one id.
        """
        total = 0
        for batch in batched(items, _DATASET_BATCH):
            self._commit(partial(self._insert_items, batch=batch))
            total += len(batch)
        described = {} if description is None else description().columns()
        self._commit(lambda connection: self._update(connection, planned=1, total=total, **described))
        return total

    def clear_dataset(self) -> None:
        """Removes a dataset that was cut off half-way, so that it can be stored again."""
        self._commit(
            lambda connection: connection.execute(sa.delete(schema.samples).where(schema.samples.c.run == self.run))
        )

    def restore_rows(self, items: Iterable[Item]) -> None:
        """Stores again those of a dataset's rows that were lost."""
        for batch in batched(items, _DATASET_BATCH):
            self._commit(partial(self._insert_items, batch=batch, only_lost=True))

    def commit_results(
        self,
        results: Sequence[Result],
        *,
        invalidates: tuple[int, Sequence[int]] | None = None,
        totals: Mapping[str, float] | None = None,
    ) -> None:
        """Makes finished requests durable, with what they cost. A later one for the same attempt replaces a failure.

        `invalidates` names an evaluation and samples on which its verdicts no longer hold, because an attempt was added.
        `totals` are the run's sums as they stand, where they are not the sums of its results.
        """
        if not results:
            return
        now = _now()
        rows: list[tuple[Any, ...]] = [
            (
                self.run,
                result.position,
                result.attempt,
                result.key,
                int(result.record.error is None),
                encode_body(result.record),
                *(_add_steps(result) if result.steps else _spent_on(result)),
                now,
            )
            for result in results
        ]
        # What led to an answer is in its transcript from now on.
        whole = [(self.run, result.position, result.attempt) for result in results if result.steps]

        def write(connection: Connection) -> None:
            self._put_calls(connection, rows)
            if totals is None:
                self._add_sums(connection, results)
            else:
                self._update(connection, **totals)
            if invalidates is not None:
                evaluation, positions = invalidates
                scores = schema.scores
                connection.execute(
                    sa.delete(scores).where(scores.c.evaluation == evaluation, scores.c.position.in_(positions))
                )
            if whole:
                connection.exec_driver_sql(self._step_removal, whole)

        self._commit(write)

    def commit_steps(self, steps: Sequence[Step]) -> None:
        """Makes steps of unfinished answers durable, with what they cost."""
        now = _now()
        rows: list[tuple[object, ...]] = [
            (
                *(self.run, one.position, one.attempt, one.number, one.kind),
                *(self._redactor.values(encode_step(one)), now),
            )
            for one in steps
        ]

        def write(connection: Connection) -> None:
            self._put_steps(connection, rows)
            sums = (
                sum(one.calls for one in steps),
                sum(one.calls > 0 and one.cost_usd is None for one in steps),
                sum(one.prompt_tokens for one in steps),
                sum(one.completion_tokens for one in steps),
                sum(one.cost_usd or 0.0 for one in steps),
                sum(one.seconds for one in steps),
                0,
                sum(one.cached_tokens for one in steps),
                sum(one.cache_write_tokens for one in steps),
            )
            connection.exec_driver_sql(self._addition, (now, *sums, self.run))

        self._commit(write)

    def save_batch(self, batch: Batch) -> None:
        """Makes durable how far a batch has come."""
        row = to_row(self.run, batch, _now())
        self._commit(lambda connection: self._put_batches(connection, [row]))

    def open_evaluation(self, fingerprint: str, config: Mapping[str, object]) -> int:
        """The id of a way of judging this run; it becomes the current one."""

        def write(connection: Connection) -> int:
            table = schema.evaluations
            connection.execute(
                insert_into(self._engine, table)
                .values(run=self.run, fingerprint=fingerprint, config=encode(config), created_at=_now())
                # What is told of it beside its identity may be more than was told the first time.
                .on_conflict_do_update(index_elements=["run", "fingerprint"], set_={"config": encode(config)})
            )
            evaluation = connection.execute(
                sa.select(table.c.evaluation).where(table.c.run == self.run, table.c.fingerprint == fingerprint)
            ).scalar_one()
            self._update(connection, evaluation=evaluation)
            return int(evaluation)

        return self._commit(write)

    def commit_scores(self, evaluation: int, rows: Sequence[ScoreRow]) -> None:
        """Makes verdicts durable. A sample judged again replaces its rows of the same evaluation."""
        if not rows:
            return
        values: list[tuple[object, ...]] = [
            (
                *(evaluation, row.position, row.metric, row.ordinal, row.value, row.outcome),
                row.details and self._redactor.values(row.details),
            )
            for row in rows
        ]
        self._commit(lambda connection: self._put_scores(connection, values))

    def save_judgement(self, key: str, body: str, *, calls: int, cost_usd: float | None) -> None:
        """Makes a judge's reply durable, with what it cost; a reply to the same question takes an earlier one's place."""

        def write(connection: Connection) -> None:
            self._put_judgements(connection, [(key, body, _now())])
            self._add_judging(connection, calls, cost_usd)

        self._commit(write)

    def add_judge_cost(self, calls: int, cost_usd: float | None) -> None:
        """Counts judge calls that gave nothing."""
        self._commit(lambda connection: self._add_judging(connection, calls, cost_usd))

    def append_turns(self, turns: Sequence[Turn]) -> None:
        """Adds exchanges of a memory run; they are on the disk when this returns."""
        now = _now()
        rows: list[tuple[object, ...]] = [
            (self.run, turn.seq, turn.kind, turn.test_id, turn.body, now) for turn in turns
        ]
        self._commit(lambda connection: self._put_turns(connection, rows))

    def save_artifact(self, name: str, content: bytes, media_type: str) -> None:
        row = (self.run, name, media_type, content, _now())
        self._commit(lambda connection: self._put_artifacts(connection, [row]))

    def describe(self, *, identity: Mapping[str, str], config: Mapping[str, object], manifest_hash: str | None) -> None:
        """What the run is, where that is known apart from its rows."""
        self.update(**RunDescription(identity=identity, config=config, manifest_hash=manifest_hash).columns())

    def update(self, **values: object) -> None:
        """Sets columns of the run's row."""
        self._commit(lambda connection: self._update(connection, **values))

    def finish(
        self, status: RunStatus, *, summary: Mapping[str, object] | None = None, error: str | None = None
    ) -> None:
        message = None if error is None else _make_storable(redact_text(error))
        values: dict[str, object] = {"status": status.value, "error": message, "waiting": None}
        if summary is not None:
            values["summary"] = encode(summary)
        if status is RunStatus.COMPLETED:
            values["completed_at"] = _now()
        self.update(**values)

    # --- the transaction ---------------------------------------------------------------------------------------------

    def _commit(self, write: Callable[[Connection], T]) -> T:
        """One transaction, made exactly once: if the server goes away, it is asked afterwards whether it had it."""
        with self._lock:
            results: list[T] = []
            while True:
                try:
                    if not results or not self._was_committed():
                        self._transact(write, results)
                    break
                except DatabaseAwayError as error:
                    self._reconnect(error)
            self._commits += 1
            if self._outage is not None:
                self._outage.end()
        return results[-1]

    def _transact(self, write: Callable[[Connection], T], results: list[T]) -> None:
        """Adds what the transaction gives to `results` before its commit: from then on it may have been made."""
        try:
            self._renew(self._connection)
            results.append(write(self._connection))
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise

    def _was_committed(self) -> bool:
        """Whether the store has the commit that was under way; waits for a transaction of ours that still runs there."""
        runs = schema.runs
        query = sa.select(runs.c.lease_holder).where(runs.c.run == self.run).with_for_update()
        was_made = bool(self._connection.execute(query).scalar() == self._holder(self._commits + 1))
        self._connection.rollback()
        return was_made

    def _reconnect(self, error: DatabaseAwayError) -> None:
        if self._outage is None:
            raise error
        self._connection.close()
        self._outage.wait(error)
        self._connection = self._engine.connect()

    def _insert_items(self, connection: Connection, batch: Sequence[Item], *, only_lost: bool = False) -> None:
        put = self._put_lost_samples if only_lost else self._put_samples
        # Deduplicated: equal rows of any number of runs are stored once, under their fingerprint.
        self._put_items(connection, [(item.fingerprint, item.content) for item in batch])
        named = {one.digest: one for item in batch for one in item.attachments}
        self._put_attachments(connection, [(one.digest, one.media_type, one.content, _now()) for one in named.values()])
        try:
            put(connection, [(self.run, one.position, one.item_id, one.fingerprint, one.cluster) for one in batch])
        except sa.exc.IntegrityError as error:
            connection.rollback()
            raise ConfigurationError(self._explain_duplicate_id(connection, batch)) from error

    def _explain_duplicate_id(self, connection: Connection, batch: Sequence[Item]) -> str:
        seen: dict[str, int] = {}
        for item in batch:
            first = seen.setdefault(item.item_id, item.position)
            if first != item.position:
                break
        else:
            samples = schema.samples
            for item in batch:
                found = connection.execute(
                    sa.select(samples.c.position).where(samples.c.run == self.run, samples.c.item_id == item.item_id)
                ).scalar()
                if found is not None:
                    first = int(found)
                    break
        return explain_equal_ids(item.item_id, first, item.position)

    def _add_sums(self, connection: Connection, results: Sequence[Result]) -> None:
        calls = unpriced = prompt = completion = truncated = cached = written = 0
        cost = seconds = 0.0
        for result in results:
            output = result.record.output
            truncated += output is not None and output.is_cut_off
            if result.reused:
                continue
            calls += result.calls
            # As a budget counts them: an answer once, with all its retries.
            unpriced += result.calls > 0 and result.cost_usd is None
            prompt += result.prompt_tokens
            completion += result.completion_tokens
            cached += result.cached_tokens
            written += result.cache_write_tokens
            cost += result.cost_usd or 0.0
            seconds += result.seconds
        sums = (calls, unpriced, prompt, completion, cost, seconds, truncated, cached, written)
        connection.exec_driver_sql(self._addition, (_now(), *sums, self.run))

    def _add_judging(self, connection: Connection, calls: int, cost_usd: float | None) -> None:
        runs = schema.runs.c
        self._update(
            connection,
            judge_calls=runs.judge_calls + calls,
            judge_cost_usd=runs.judge_cost_usd + (cost_usd or 0.0),
            unpriced_judge_calls=runs.unpriced_judge_calls + (calls if cost_usd is None else 0),
        )

    def _update(self, connection: Connection, **values: object) -> None:
        connection.execute(
            sa.update(schema.runs).where(schema.runs.c.run == self.run).values(updated_at=_now(), **values)
        )

    # --- the lease ---------------------------------------------------------------------------------------------------

    def _take_lease(self) -> None:
        """Takes the run if nobody has it, the holder's process is gone, or its lease has lapsed."""
        runs = schema.runs
        try:
            left = (runs.c.lease_until - clock()).label("left")
            row = self._connection.execute(sa.select(runs.c.lease_holder, left).where(runs.c.run == self.run)).one()
            self._connection.rollback()
            holder, seconds = row.lease_holder, row.left or 0.0
            if holder is not None and seconds > 0 and not holder_is_dead(holder):
                raise RunBusyError(
                    f"run {self.run_id!r} is being written by {format_holder(holder)}; wait for it, stop it, or use "
                    f"another run id. If that process is gone, its hold ends in {seconds:.0f} s"
                )
            taken = self._connection.execute(
                sa.update(runs)
                .where(runs.c.run == self.run, runs.c.lease_holder.is_not_distinct_from(holder))
                .values(lease_holder=self._holder(0), lease_until=clock() + LEASE_SECONDS)
            )
            self._connection.commit()
            if taken.rowcount != 1:
                raise RunBusyError(f"run {self.run_id!r} was taken by another process this very moment")
        except BaseException:
            self._connection.close()
            raise

    def _holder(self, commits: int) -> str:
        return f"{self._name}:{commits}"

    def _renew(self, connection: Connection) -> None:
        now, then = self._holder(self._commits), self._holder(self._commits + 1)
        kept = connection.exec_driver_sql(self._renewal, (LEASE_SECONDS, then, self.run, now))
        if kept.rowcount != 1:
            raise RunBusyError(
                f"run {self.run_id!r} was taken over by another process, or deleted; this one stops writing"
            )

    def _send_heartbeats(self) -> None:
        while not self._stop_heartbeat.wait(LEASE_SECONDS / 4):
            try:
                self._commit(lambda connection: None)
            except StorageError:
                # The next commit meets the same trouble where it can be reported.
                continue


def remove_unused_items(connection: Connection) -> None:
    """Deletes the contents that no run has."""
    if connection.dialect.name == "postgresql":
        # A run whose dataset is being stored may count on an item that it found here and has not referred to yet: wait for it.
        connection.exec_driver_sql("LOCK TABLE items IN SHARE ROW EXCLUSIVE MODE")
    unused = ~sa.exists().where(schema.samples.c.fingerprint == schema.items.c.fingerprint)
    connection.execute(sa.delete(schema.items).where(unused))
    _remove_unused_attachments(connection)


def _remove_unused_attachments(connection: Connection) -> None:
    """Deletes the images and files that no item names."""
    attachments = schema.attachments.c
    stored = set(connection.execute(sa.select(attachments.digest)).scalars())
    if not stored:
        return
    items = sa.select(schema.items.c.content).where(schema.items.c.content.contains('"digest"'))
    for content in connection.execute(items.execution_options(yield_per=_DATASET_BATCH)).scalars():
        stored.difference_update(find_digests(content))
    for batch in batched(sorted(stored), _DATASET_BATCH // 4):
        connection.execute(sa.delete(schema.attachments).where(attachments.digest.in_(batch)))


def _spent_on(one: Result | Step) -> tuple[int, int, float | None, float]:
    return one.prompt_tokens, one.completion_tokens, one.cost_usd, one.seconds


def _add_steps(result: Result) -> tuple[int, int, float | None, float]:
    """What an answer took together with the steps before it; the cost is None where a price is not known."""
    spent = [_spent_on(result), *map(_spent_on, result.steps)]
    costs = [cost for _, _, cost, _ in spent if cost is not None]
    return (
        sum(prompt for prompt, _, _, _ in spent),
        sum(completion for _, completion, _, _ in spent),
        math.fsum(costs) if len(costs) == len(spent) else None,
        math.fsum(seconds for _, _, _, seconds in spent),
    )


def _make_storable(text: str) -> str:
    """A message in characters that every database can store: what a failure said must not keep it from being noted."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")


def _now() -> float:
    return _CLOCK_OFFSET + time.monotonic()
