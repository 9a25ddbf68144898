"""`ExperimentStorage`: the runs in one storage root (or PostgreSQL database), to start, read, check and remove.

The public face of this package; `experiment.run` and the memory runner write through the `RunWriter` it hands out.
"""

from __future__ import annotations

import datetime
import itertools
import math
import os
import shutil
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from themis.core.codec import decode, encode, jsonable
from themis.core.entities import EvaluationRecord, GenerationRecord, Result
from themis.core.fingerprint import canonical_json, digest
from themis.core.redaction import redact_text
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, MetricError, RunBusyError, StorageError
from themis.storage import schema
from themis.storage.database import Durability, database_file, is_url, open_database
from themis.storage.outage import outlast
from themis.storage.reading import LazyMapping, RunReader
from themis.storage.records import Frame, Item, Turn, verdicts
from themis.storage.retention import RetentionPolicy, expired
from themis.storage.runs import RunMetadata, RunStatus, ended_status, is_storable, validate_run_id, validate_text
from themis.storage.writing import RunWriter, is_gone, show_holder

__all__ = [
    "DEFAULT_STORAGE",
    "ExperimentStorage",
    "metadata_columns",
    "metadata_of",
    "remove_unused_items",
    "status_column",
]

DEFAULT_STORAGE = ".cache/experiments"

# What a line of a list is made of, in the order in which `metadata_of` takes it.
_METADATA = (
    *("run_id", "experiment_id", "status", "created_at", "updated_at", "completed_at", "total", "succeeded", "failed"),
    *("config", "error", "kind", "model", "benchmark", "tags", "manifest_hash", "summary", "calls", "prompt_tokens"),
    *("completion_tokens", "cost_usd", "judge_calls", "judge_cost_usd", "seconds", "unpriced_calls"),
    *("unpriced_judge_calls", "cut_off", "waiting", "lease_holder", "lease_seconds"),
)
# Columns of a run that start at zero.
_COUNTERS = (
    *("planned", "total", "succeeded", "failed", "calls", "unpriced_calls", "prompt_tokens", "completion_tokens"),
    *("cost_usd", "judge_calls", "judge_cost_usd", "unpriced_judge_calls", "seconds", "cut_off"),
)


_NOTHING: LazyMapping[Any] = LazyMapping(lambda: iter(()), lambda: 0, lambda key: None)
_UNNAMED = "unnamed"


class ExperimentStorage:
    """The runs under one root. Opening is quick whatever it holds; the database is opened on first use."""

    def __init__(self, root: str | Path = DEFAULT_STORAGE, *, durability: str | None = None) -> None:
        """`durability` says what a committed answer outlives: "process", its death at any moment, or "power", a power cut too.

        Without it THEMIS_DURABILITY decides, or else the kind of run: "power" for memory runs, "process" for others.
        """
        self._durability = durability
        if not isinstance(root, str | Path) or not str(root):
            raise ConfigurationError(f"storage is a directory or a postgresql:// URL, got {root!r}")
        self.location: str | Path = root if is_url(root) else Path(root)
        # Files made on demand (run folders, share badges) lie beside the database, or here for a remote one.
        self.root = (
            Path(DEFAULT_STORAGE) if is_url(root) else (root if (root := Path(root)).suffix != ".db" else root.parent)
        )

    def __repr__(self) -> str:
        return f"ExperimentStorage({redact_text(str(self.location))!r})"

    @cached_property
    def engine(self) -> Engine:
        engine = open_database(self.location)
        # A store that nobody closed gives its connections back when it is forgotten.
        self._forgotten = weakref.finalize(self, engine.dispose)
        return engine

    def exists(self) -> bool:
        """Whether there is a store; asking does not make one."""
        return is_url(self.location) or database_file(Path(self.location)).exists()

    def close(self) -> None:
        if "engine" in self.__dict__:
            self._forgotten()
            del self.__dict__["engine"]

    # --- runs --------------------------------------------------------------------------------------------------------

    def list_runs(
        self,
        experiment_id: str | None = None,
        status: RunStatus | str | None = None,
        limit: int | None = None,
        *,
        kind: str | None = None,
        model: str | None = None,
        benchmark: str | None = None,
        offset: int = 0,
    ) -> list[RunMetadata]:
        """Newest first. Where there is no store there are no runs; asking does not make one."""
        known = [one.value for one in RunStatus]
        if status is not None and status not in known:
            raise ConfigurationError(
                f"unknown run status {status!r}{nearest(status, known)}; known: {', '.join(known)}"
            )
        if not self.exists():
            return []
        runs = schema.runs
        query = (
            sa.select(*metadata_columns()).order_by(runs.c.created_at.desc(), runs.c.run.desc()).offset(offset or None)
        )
        wanted = {
            "experiment_id": experiment_id,
            "status": status,
            "kind": kind,
            "model": model,
            "benchmark": benchmark,
        }
        for column, value in wanted.items():
            if value is not None:
                query = query.where((status_column() if column == "status" else runs.c[column]) == value)
        if limit is not None:
            query = query.limit(limit)
        with self.engine.connect() as connection:
            return [metadata_of(row) for row in connection.execute(query)]

    def get_run(self, run_id: str) -> RunMetadata:
        """The run of an id; an unknown one is an error that names the nearest."""
        row = self._row(run_id)
        return metadata_of([getattr(row, name) for name in _METADATA])

    def run_exists(self, run_id: str) -> bool:
        return self._find(run_id) is not None

    run_metadata_exists = run_exists

    def start_run(
        self,
        run_id: str,
        experiment_id: str = "default",
        config: Mapping[str, Any] | None = None,
        *,
        kind: str = "samples",
        model: str = "",
        benchmark: str | None = None,
        identity: Mapping[str, str] | None = None,
        manifest_hash: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> RunMetadata:
        """Makes a run. One of this id must not exist."""
        validate_run_id(run_id)
        for what, text in {"experiment id": experiment_id, "model": model, "benchmark": benchmark or ""}.items():
            validate_text(what, text)
        now = time.time()
        zeros = dict.fromkeys(_COUNTERS, 0)
        try:
            with self.engine.begin() as connection:
                connection.execute(
                    sa.insert(schema.runs).values(
                        run_id=run_id,
                        kind=kind,
                        experiment_id=experiment_id,
                        status=RunStatus.IN_PROGRESS.value,
                        model=model,
                        benchmark=benchmark,
                        created_at=now,
                        updated_at=now,
                        identity=encode(dict(identity or {})),
                        manifest_hash=manifest_hash,
                        config=encode(jsonable(config or {})),
                        tags=encode(dict(tags or {})),
                        **zeros,
                    )
                )
        except sa.exc.IntegrityError as error:
            raise StorageError(
                f"run {run_id!r} exists already; resume it, delete it with `themis delete`, or use another id"
            ) from error
        return self.get_run(run_id)

    def open_run(self, run_id: str) -> RunWriter:
        """Takes the lease of a run for writing."""
        row = self._row(run_id)
        # An exchange of a conversation cannot be had again: a memory that lives elsewhere would hear it twice.
        usual = Durability.POWER if row.kind == "memory" else Durability.PROCESS
        return RunWriter(self.engine, row.run, run_id, durability=Durability.choose(self._durability, usual))

    def reader(self, run_id: str) -> RunReader:
        row = self._row(run_id)
        config = decode(row.config)
        return RunReader(self.engine, row.run, Frame.from_config(config.get("task", {}), row.manifest_hash))

    def identity(self, run_id: str) -> dict[str, str]:
        """What decides the run's results, by dimension."""
        found: dict[str, str] = decode(self._row(run_id).identity)
        return found

    def is_planned(self, run_id: str) -> bool:
        return bool(self._row(run_id).planned)

    def count_lost_rows(self, run_id: str) -> int:
        """Rows of the dataset that the run was planned with and a repair could not save."""
        row = self._row(run_id)
        return max(0, row.total - self.reader(run_id).count_samples()) if row.planned else 0

    def current_evaluation(self, run_id: str) -> int | None:
        evaluation = self._row(run_id).evaluation
        return None if evaluation is None else int(evaluation)

    def archive_run(self, run_id: str) -> str:
        """Renames a run to `id@n`, so that a new generation can have the id; nothing of the old one is lost."""
        runs = schema.runs
        with RunWriter(self.engine, self._row(run_id).run, run_id), self.engine.connect() as connection:
            taken = self._archived(connection, run_id)
            archived = next(name for n in itertools.count(1) if (name := f"{run_id}@{n}") not in taken)
            connection.execute(sa.update(runs).where(runs.c.run_id == run_id).values(run_id=archived))
            connection.commit()
        return archived

    def complete_run(self, run_id: str) -> None:
        with self.open_run(run_id) as writer:
            writer.finish(RunStatus.COMPLETED)

    def fail_run(self, run_id: str, message: str) -> None:
        with self.open_run(run_id) as writer:
            writer.finish(RunStatus.FAILED, error=message)

    def update_run_progress(
        self, run_id: str, *, total_samples: int, successful_generations: int, failed_generations: int
    ) -> None:
        with self.open_run(run_id) as writer:
            writer.update(total=total_samples, succeeded=successful_generations, failed=failed_generations)

    def delete_run(self, run_id: str) -> None:
        """Removes a run and everything that only it uses. One that is being written is refused."""
        row = self._row(run_id)
        if writer := _writer_of(row.lease_holder, row.lease_seconds):
            raise RunBusyError(f"run {run_id!r} is being written by {writer}; stop it first")
        runs = schema.runs
        unchanged = runs.c.lease_holder.is_not_distinct_from(row.lease_holder)
        with self.engine.begin() as connection:
            if connection.execute(sa.delete(runs).where(runs.c.run == row.run, unchanged)).rowcount != 1:
                raise RunBusyError(f"run {run_id!r} was taken or removed by another process this very moment")
            mine = sa.select(schema.evaluations.c.evaluation).where(schema.evaluations.c.run == row.run)
            connection.execute(sa.delete(schema.scores).where(schema.scores.c.evaluation.in_(mine)))
            for table in (schema.evaluations, schema.records, schema.samples, schema.turns, schema.artifacts):
                connection.execute(sa.delete(table).where(table.c.run == row.run))
            remove_unused_items(connection)
        shutil.rmtree(self._folder(run_id), ignore_errors=True)

    # --- records and scores ------------------------------------------------------------------------------------------

    def append_record(self, run_id: str, record: GenerationRecord, *, cache_key: str | None = None) -> None:
        """Adds one sample's record, for code that generates without `evaluate`."""
        task = record.task
        item_id = validate_text("item id", str(task.metadata.get("dataset_id", "")))
        row = dict(task.prompt.context) or {k: v for k, v in task.metadata.items() if k != "dataset_id"}
        if task.reference is not None:
            row.setdefault(task.reference.kind, task.reference.value)
        content = canonical_json(jsonable(row))
        frame = Frame(
            model=task.model,
            sampling=task.sampling,
            prompt=task.prompt.spec,
            reference_field=task.reference.kind if task.reference else None,
        )
        key = cache_key or digest(task.model.model_key, task.prompt.text, content)
        attempts = record.attempts or [record]
        with self.open_run(run_id) as writer:
            self._settle_frame(writer, frame)
            reader = self.reader(run_id)
            position = reader.position(item_id) if item_id else None
            was_good = None if position is None else reader.is_answered(position)
            is_new = position is None
            if position is None:
                position = reader.next_position()
                writer.add_item(Item(position, item_id or str(position), digest(content), content))
            writer.commit_calls([Result(position, n, key[:32], attempt) for n, attempt in enumerate(attempts)])
            is_good = bool(was_good) or any(attempt.error is None for attempt in attempts)
            runs = schema.runs.c
            writer.update(
                total=runs.total + int(is_new),
                succeeded=runs.succeeded + (int(is_good) - int(was_good is True)),
                failed=runs.failed + (int(not is_good) - int(was_good is False)),
            )

    def append_evaluation(
        self,
        run_id: str,
        record: GenerationRecord,
        evaluation: EvaluationRecord,
        *,
        eval_id: str = "default",
        evaluation_config: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds one sample's scores, for code that judges without `evaluate`."""
        item_id = evaluation.sample_id or str(record.task.metadata.get("dataset_id", ""))
        for score in evaluation.scores:
            if not math.isfinite(score.value):
                raise MetricError(
                    f"{score.metric_name} of item {item_id!r} is {score.value}, expected a finite number; what could not be "
                    "judged is a failure, not a score"
                )
        names = {score.metric_name for score in evaluation.scores}
        if evaluation.failures:
            # Which metric failed is not said; a name of its own keeps the failure from being lost.
            names.add(_UNNAMED)
        with self.open_run(run_id) as writer:
            position = self.reader(run_id).position(item_id)
            if position is None:
                raise StorageError(f"run {run_id!r} has no record of item {item_id!r}; append the record first")
            number = writer.open_evaluation(_evaluation_name(eval_id, evaluation_config), dict(evaluation_config or {}))
            writer.commit_verdicts(number, verdicts(position, evaluation, names, record.task.metadata))

    def load_cached_records(self, run_id: str) -> LazyMapping[GenerationRecord]:
        """item id -> record, read from the store as it is gone through. Empty for an unknown run."""
        if self._find(run_id) is None:
            return _NOTHING
        reader = self.reader(run_id)
        return LazyMapping(
            lambda: ((record.task.metadata["dataset_id"], record) for _, record in reader.records()),
            lambda: sum(reader.count_records()),
            lambda item_id: found[1] if (found := reader.record(item_id)) else None,
        )

    def load_cached_evaluations(
        self, run_id: str, eval_id: str = "default", evaluation_config: Mapping[str, Any] | None = None
    ) -> LazyMapping[EvaluationRecord]:
        """item id -> evaluation record of the run's current evaluation, or of the one named."""
        if self._find(run_id) is None:
            return _NOTHING
        evaluation = self._evaluation(run_id, eval_id, evaluation_config)
        if evaluation is None:
            return _NOTHING
        reader = self.reader(run_id)
        return LazyMapping(
            lambda: ((record.sample_id or "", record) for _, record in reader.evaluations(evaluation)),
            lambda: reader.count_evaluated(evaluation),
            lambda item_id: reader.evaluation(evaluation, item_id),
        )

    def load_dataset(self, run_id: str) -> Iterator[dict[str, Any]]:
        """The rows of a run, in order."""
        return (sample.row for sample in self.reader(run_id).samples())

    def find_answer(self, key: str, among: Sequence[int] | None = None) -> GenerationRecord | None:
        """A good answer stored under a key by any run, or by the given ones: the cache across runs."""
        records = schema.records
        query = sa.select(records.c.run, records.c.position, records.c.attempt).where(
            records.c.key == key, records.c.ok == 1
        )
        if among is not None:
            query = query.where(records.c.run.in_(among))
        named = query.add_columns(schema.runs.c.run_id).join(schema.runs, schema.runs.c.run == records.c.run)
        row = outlast(self.engine, lambda connection: connection.execute(named.limit(1)).first())
        return None if row is None else self.reader(row.run_id).call(row.position, row.attempt)

    def find_judgement(self, key: str) -> str | None:
        """A judge's stored reply, as JSON text."""
        table = schema.judgements
        query = sa.select(table.c.body).where(table.c.key == key)
        return outlast(self.engine, lambda connection: connection.execute(query).scalar())

    def generations(self, run_id: str) -> list[int]:
        """Numbers of the archived generations of a run (`id@1`, ...)."""
        with self.engine.connect() as connection:
            return list(self._archived(connection, run_id).values())

    @staticmethod
    def _archived(connection: sa.Connection, run_id: str) -> dict[str, int]:
        """Archived id -> its number in the tables."""
        runs, prefix = schema.runs, f"{run_id}@"
        found = connection.execute(
            sa.select(runs.c.run_id, runs.c.run).where(runs.c.run_id.startswith(prefix, autoescape=True))
        )
        # SQLite's LIKE knows no case; ids do.
        return {row.run_id: int(row.run) for row in found if row.run_id.startswith(prefix)}

    # --- memory runs -------------------------------------------------------------------------------------------------

    def turns(self, run_id: str, *, after: int = -1, test_id: str | None = None) -> Iterator[Turn]:
        """The exchanges of a memory run in order, a page at a time."""
        table = schema.turns
        run = self._row(run_id).run
        while True:
            query = sa.select(table).where(table.c.run == run, table.c.seq > after).order_by(table.c.seq).limit(1_000)
            if test_id is not None:
                query = query.where(table.c.test_id == test_id)
            rows = outlast(self.engine, partial(_all, query=query))
            for row in rows:
                yield Turn(row.seq, row.kind, row.test_id, row.body)
            if len(rows) < 1_000:
                return
            after = rows[-1].seq

    def artifact(self, run_id: str, name: str) -> bytes | None:
        table = schema.artifacts
        query = sa.select(table.c.content).where(table.c.run == self._row(run_id).run, table.c.name == name)
        found = outlast(self.engine, lambda connection: connection.execute(query).scalar())
        return None if found is None else bytes(found)

    # --- care --------------------------------------------------------------------------------------------------------

    def validate_integrity(self, run_id: str) -> dict[str, Any]:
        """`{run_id, valid, errors, warnings}`: whether what is stored of a run fits together."""
        row = self._find(run_id)
        if row is None:
            return {"run_id": run_id, "valid": False, "errors": [self._unknown(run_id)], "warnings": []}
        errors, warnings = [], []
        reader = self.reader(run_id)
        samples, (good, failed) = reader.count_samples(), reader.count_records()
        if not row.planned and row.kind == "samples":
            warnings.append("the dataset was not stored completely; resume the run")
        if row.planned and samples != row.total:
            errors.append(f"{row.total} samples were planned but {samples} are stored")
        if good + failed < samples:
            warnings.append(f"{samples - good - failed} samples have no record yet")
        if failed:
            warnings.append(f"{failed} samples failed; resume to try them again")
        errors.extend(reader.broken_rows())
        if row.manifest_hash is None:
            warnings.append("the run has no reproducibility manifest")
        return {"run_id": run_id, "valid": not errors, "errors": errors, "warnings": warnings}

    def get_storage_size(self, experiment_id: str | None = None) -> int:
        """Bytes on disk; of one experiment, the bytes of its runs' stored texts."""
        if experiment_id is not None:
            sizes = self.run_sizes()
            return sum(sizes.get(run.run_id, 0) for run in self.list_runs(experiment_id=experiment_id))
        if is_url(self.location):
            with self.engine.connect() as connection:
                return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar() or 0)
        base = database_file(Path(self.location))
        return sum(path.stat().st_size for path in base.parent.glob(f"{base.name}*"))

    def run_sizes(self) -> dict[str, int]:
        """Bytes of stored records and turns by run id."""
        runs, total = schema.runs, dict[str, int]()
        in_sqlite = self.engine.dialect.name == "sqlite"
        with self.engine.connect() as connection:
            for table in (schema.records, schema.turns):
                body = table.c.body
                octets = sa.func.length(sa.cast(body, sa.LargeBinary)) if in_sqlite else sa.func.octet_length(body)
                query = (
                    sa.select(runs.c.run_id, sa.func.coalesce(sa.func.sum(octets), 0).label("bytes"))
                    .join(table, table.c.run == runs.c.run)
                    .group_by(runs.c.run_id)
                )
                for row in connection.execute(query):
                    total[row.run_id] = total.get(row.run_id, 0) + int(row.bytes)
        return total

    def apply_retention_policy(self, policy: RetentionPolicy | None = None, *, dry_run: bool = False) -> list[str]:
        """Deletes what the policy lets go and returns the ids; with `dry_run` only returns them."""
        policy = policy or RetentionPolicy()
        sizes = self.run_sizes() if policy.max_storage_gb is not None else {}
        gone = expired(self.list_runs(), sizes, policy, datetime.datetime.now(datetime.UTC))
        return gone if dry_run else [run_id for run_id in gone if self._deleted(run_id)]

    def _deleted(self, run_id: str) -> bool:
        try:
            self.delete_run(run_id)
        except RunBusyError:
            return False  # somebody has begun to write it since the list was made
        return True

    def get_run_path(self, run_id: str) -> Path:
        """A folder with the run's manifest, report and records, written now from the store."""
        run = self.get_run(run_id)
        folder = self._folder(run_id)
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(folder / "manifest.json", encode(run.config_snapshot.get("reproducibility_manifest", {})))
        _write_whole(folder / "report.json", encode({"run_id": run_id, "status": run.status.value, **run.summary}))
        reader = self.reader(run_id)
        partial = folder / ".records.jsonl.partial"
        with partial.open("w", encoding="utf-8", errors="surrogatepass") as handle:
            for _, record in reader.records():
                handle.write(encode({"item_id": record.task.metadata["dataset_id"], "record": record}) + "\n")
        os.replace(partial, folder / "records.jsonl")
        return folder

    # --- inside ------------------------------------------------------------------------------------------------------

    def _folder(self, run_id: str) -> Path:
        """Where files of a run are put; ids of archived runs are the only ones with an `@`."""
        validate_run_id(run_id.replace("@", "-"))
        return self.root / "runs" / run_id

    def _settle_frame(self, writer: RunWriter, frame: Frame) -> None:
        """The first record decides what all records of the run have in common; another one's must not be lost silently."""
        config = decode(self._row(writer.run_id).config)
        mine, stored = jsonable(frame.to_config()), config.get("task")
        if stored is None:
            writer.update(config=encode({**config, "task": mine}))
            return
        for part in ("model", "sampling", "prompt"):
            if mine[part] != stored.get(part):
                raise StorageError(
                    f"run {writer.run_id!r} holds records of {part} {stored.get(part)}, this one is of {mine[part]}; "
                    "put it into another run"
                )

    def _evaluation(self, run_id: str, eval_id: str, config: Mapping[str, Any] | None) -> int | None:
        if eval_id == "default" and config is None:
            return self.current_evaluation(run_id)
        table = schema.evaluations
        with self.engine.connect() as connection:
            return connection.execute(
                sa.select(table.c.evaluation).where(
                    table.c.run == self._row(run_id).run, table.c.fingerprint == _evaluation_name(eval_id, config)
                )
            ).scalar()

    def _find(self, run_id: str) -> Any:
        if not is_storable(run_id) or not self.exists():
            return None
        query = sa.select(schema.runs, _lease_seconds()).where(schema.runs.c.run_id == run_id)
        return outlast(self.engine, lambda connection: connection.execute(query).first())

    def _row(self, run_id: str) -> Any:
        row = self._find(run_id)
        if row is None:
            raise StorageError(self._unknown(run_id))
        return row

    def _unknown(self, run_id: str) -> str:
        if not self.exists():
            return f"no run {run_id!r}: there is no store at {redact_text(str(self.location))}"
        known = [run.run_id for run in self.list_runs(limit=1_000)]
        return f"no run {run_id!r} in {redact_text(str(self.location))}{nearest(run_id, known)}"


def _all(connection: sa.Connection, query: sa.Select[Any]) -> Sequence[Any]:
    return connection.execute(query).all()


def remove_unused_items(connection: sa.Connection) -> None:
    """Deletes the contents that no run has."""
    if connection.dialect.name == "postgresql":
        # A run being planned may count on an item that it found here and has not referred to yet: wait for it.
        connection.exec_driver_sql("LOCK TABLE items IN SHARE ROW EXCLUSIVE MODE")
    unused = ~sa.exists().where(schema.samples.c.fingerprint == schema.items.c.fingerprint)
    connection.execute(sa.delete(schema.items).where(unused))


def _evaluation_name(eval_id: str, config: Mapping[str, Any] | None) -> str:
    return digest(eval_id, canonical_json(config or {}))


def metadata_columns(*, with_config: bool = True) -> list[sa.ColumnElement[Any]]:
    """What `metadata_of` makes a run of; the configuration, which may be large, can be left out."""
    columns: list[sa.ColumnElement[Any]] = [schema.runs.c[name] for name in _METADATA[:-1]]
    if not with_config:
        columns[_METADATA.index("config")] = sa.literal("{}").label("config")
    return [*columns, _lease_seconds()]


def _lease_seconds() -> sa.ColumnElement[Any]:
    """How long the run's lease still holds, by the database's clock."""
    return (schema.runs.c.lease_until - schema.clock()).label("lease_seconds")


def status_column() -> sa.ColumnElement[str]:
    """The status as `metadata_of` tells it, for filters and orders."""
    runs = schema.runs.c
    has_failed = (runs.status == RunStatus.COMPLETED.value) & (runs.failed > 0) & (runs.succeeded == 0)
    return sa.case((has_failed, RunStatus.FAILED.value), else_=runs.status)


def metadata_of(row: Sequence[Any]) -> RunMetadata:
    """A run from the values of `metadata_columns`."""
    try:
        return _metadata_of(row)
    except ValueError as error:
        raise StorageError(
            f"the row of run {row[0]!r} is damaged ({error}); `themis store repair` salvages what can be read into a new file"
        ) from error


def _metadata_of(row: Sequence[Any]) -> RunMetadata:
    run_id, experiment_id, status, created_at, updated_at, completed_at, total, succeeded, failed, *others = row
    config, error, kind, model, benchmark, tags, manifest_hash, summary, calls, prompt_tokens, *others = others
    completion_tokens, cost_usd, judge_calls, judge_cost_usd, seconds, unpriced_calls, *others = others
    unpriced_judge_calls, cut_off, waiting, holder, lease_seconds = others
    return RunMetadata(
        run_id,
        experiment_id,
        ended_status(RunStatus(status), succeeded=succeeded, failed=failed),
        _moment(created_at),
        _moment(updated_at),
        None if completed_at is None else _moment(completed_at),
        total,
        succeeded,
        failed,
        decode(config),
        error,
        kind,
        model,
        benchmark,
        decode(tags) if tags != "{}" else {},
        manifest_hash,
        decode(summary) if summary else {},
        calls,
        prompt_tokens,
        completion_tokens,
        None if unpriced_calls else cost_usd,
        judge_calls,
        None if unpriced_judge_calls else judge_cost_usd,
        seconds,
        cut_off,
        waiting,
        _writer_of(holder, lease_seconds),
    )


def _writer_of(holder: str | None, lease_seconds: float | None) -> str | None:
    """The live process that is writing the run."""
    if holder is None or (lease_seconds or 0) < 0 or is_gone(holder):
        return None
    return show_holder(holder)


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def _write_whole(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8", errors="surrogatepass")
    os.replace(partial, path)
