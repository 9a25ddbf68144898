"""`ExperimentStorage`: the runs in one storage root (or PostgreSQL database), to start, read, check and remove.

The public face of this package: drivers write through the `RunWriter` it hands out, everyone reads through its `RunReader`.
"""

from __future__ import annotations

import datetime
import itertools
import shutil
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from themis.core.codec import digest, encode, to_plain
from themis.core.entities import EvaluationRecord, GenerationRecord
from themis.core.files import atomic_write
from themis.core.redaction import redact_text
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, RunBusyError, RunNotFoundError, StorageError
from themis.storage import schema
from themis.storage.batches import find_runs_with_open_batches
from themis.storage.database import Durability, database_file, is_url, open_database, retry_read
from themis.storage.lazy import LazyMapping
from themis.storage.queries import RunReader, find_run, has_experiment, run_columns
from themis.storage.runs import (
    DEFAULT_EXPERIMENT,
    RunMetadata,
    RunStatus,
    validate_run_id,
    validate_text,
)
from themis.storage.search import RunFilter, list_runs
from themis.storage.writing import RunWriter, remove_unused_items

# Where runs are kept unless a folder or a database is named.
DEFAULT_STORAGE = ".cache/experiments"
_GIB = 1024**3


class Integrity(TypedDict):
    """Whether what is stored of a run fits together."""

    run_id: str
    valid: bool
    errors: list[str]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class StoredDefinitions:
    """The memory tests of a configuration as JSON text, the fingerprint of that configuration, and the text's digest."""

    name: str
    version: int
    configuration: str
    digest: str
    content: str
    created_at: float


class ExperimentStorage:
    """The runs under one root. Opening is quick whatever it holds; the database is opened on first use.

    >>> import themis
    >>> for run_id in ("prompts-1", "prompts-2"):
    ...     report = themis.evaluate("demo", model="fake/perfect", run_id=run_id, experiment="prompts", progress=False)
    >>> storage = ExperimentStorage(".cache/experiments")
    >>> [run.run_id for run in storage.list_runs(experiment="prompts", limit=2)]
    ['prompts-2', 'prompts-1']
    >>> storage.load_cached_records("prompts-1")["0"].output.text
    '4'
    """

    def __init__(self, root: str | Path = DEFAULT_STORAGE, *, durability: str | None = None) -> None:
        """Names a store without opening it.

        Args:
            root: A directory (or a `.db` file in it), or a `postgresql://` URL.
            durability: What a committed answer outlives: "process", its death at any moment, or "power", a power cut too.
                Without it THEMIS_DURABILITY decides, or else the kind of run: "power" for memory runs, "process" for others.

        Raises:
            ConfigurationError: `root` is neither a directory nor a URL.
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

    def absolute(self) -> ExperimentStorage:
        """The same store by its whole path, for whoever changes the working directory."""
        whole = self.location if is_url(self.location) else Path(self.location).absolute()
        return ExperimentStorage(whole, durability=self._durability)

    @cached_property
    def engine(self) -> Engine:
        """SQLAlchemy's engine of the database; made on first use."""
        engine = open_database(self.location)
        # A store that nobody closed gives its connections back when it is forgotten.
        self._forgotten = weakref.finalize(self, engine.dispose)
        return engine

    def exists(self) -> bool:
        """Whether there is a store; asking does not make one."""
        return is_url(self.location) or database_file(Path(self.location)).exists()

    def close(self) -> None:
        """Gives the connections back; the store opens again on its next use."""
        if "engine" in self.__dict__:
            self._forgotten()
            del self.__dict__["engine"]

    # --- runs --------------------------------------------------------------------------------------------------------

    def list_runs(
        self,
        experiment: str | None = None,
        status: RunStatus | str | None = None,
        limit: int | None = None,
        *,
        kind: str | None = None,
        model: str | None = None,
        benchmark: str | None = None,
        offset: int = 0,
    ) -> list[RunMetadata]:
        """The runs, newest first. Where there is no store there are none; asking does not make one.

        Args:
            experiment: Only runs of this experiment.
            status: Only runs of this status.
            limit: At most so many.
            kind: Only "samples" or "memory" runs.
            model: Only runs of this model, such as "openai:gpt-4o".
            benchmark: Only runs of this benchmark, or of this configuration's run name.
            offset: Leave out the first so many.

        Raises:
            ConfigurationError: There is no such status.
        """
        wanted = RunFilter(experiment=experiment, status=status, kind=kind, model=model, benchmark=benchmark)
        wanted.check()
        return list_runs(self.engine, wanted, limit=limit, offset=offset) if self.exists() else []

    def get_run(self, run_id: str) -> RunMetadata:
        """What is stored of a run, without its records.

        Args:
            run_id: The run.

        Raises:
            RunNotFoundError: There is no such run; names the nearest.
        """
        return self.reader(run_id).metadata

    def run_exists(self, run_id: str) -> bool:
        """Whether there is such a run.

        Args:
            run_id: The run.
        """
        return self.find_run(run_id) is not None

    def has_experiment(self, name: str) -> bool:
        """Whether any run belongs to an experiment.

        Args:
            name: The experiment's.
        """
        return self.exists() and has_experiment(self.engine, name)

    def find_run(self, run_id: str) -> RunReader | None:
        """The run of an id to read from; None where there is none.

        Args:
            run_id: The run.
        """
        return find_run(self.engine, run_id) if self.exists() else None

    def reader(self, run_id: str) -> RunReader:
        """The run of an id to read from, its row read once.

        Args:
            run_id: The run.

        Raises:
            RunNotFoundError: There is no such run; names the nearest.
        """
        found = self.find_run(run_id)
        if found is None:
            raise RunNotFoundError(self._explain_unknown(run_id))
        return found

    def start_run(
        self,
        run_id: str,
        experiment: str = DEFAULT_EXPERIMENT,
        config: Mapping[str, object] | None = None,
        *,
        kind: str = "samples",
        model: str = "",
        benchmark: str | None = None,
        identity: Mapping[str, str] | None = None,
        manifest_hash: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> RunMetadata:
        """Makes a run.

        Args:
            run_id: Its id, which no run has yet.
            experiment: The named group that it belongs to, for lists and retention.
            config: What it is made of; `task` describes what its records have in common.
            kind: "samples" or "memory".
            model: What answers, such as "openai:gpt-4o".
            benchmark: What is asked, if that has a name.
            identity: What decides its results, by dimension; a resumed run must have the same.
            manifest_hash: Hash of its reproducibility manifest.
            tags: Names and values that people give it.

        Raises:
            ConfigurationError: The id or a name cannot be stored.
            StorageError: A run of this id exists.
        """
        validate_run_id(run_id)
        for what, text in {"experiment": experiment, "model": model, "benchmark": benchmark or ""}.items():
            validate_text(what, text)
        if not experiment.strip():
            raise ConfigurationError(f"the name of an experiment is a non-empty string, got {experiment!r}")
        now = time.time()
        values = {
            **schema.RUN_DEFAULTS,
            "run_id": run_id,
            "kind": kind,
            "experiment_id": experiment,
            "status": RunStatus.IN_PROGRESS.value,
            "model": model,
            "benchmark": benchmark,
            "created_at": now,
            "updated_at": now,
            "identity": encode(dict(identity or {})),
            "manifest_hash": manifest_hash,
            "config": encode(to_plain(config or {})),
            "tags": encode(dict(tags or {})),
        }
        try:
            with self.engine.begin() as connection:
                connection.execute(sa.insert(schema.runs).values(**values))
        except sa.exc.IntegrityError as error:
            raise StorageError(
                f"run {run_id!r} exists already; resume it, delete it with `themis delete`, or use another id"
            ) from error
        return self.get_run(run_id)

    def open_run(self, run_id: str) -> RunWriter:
        """Takes the lease of a run for writing.

        Args:
            run_id: The run.

        Raises:
            RunBusyError: Another process writes it.
        """
        reader = self.reader(run_id)
        # An exchange of a conversation cannot be had again: a memory that lives elsewhere would hear it twice.
        usual = Durability.POWER if reader.kind == "memory" else Durability.PROCESS
        return RunWriter(self.engine, reader.run, run_id, durability=Durability.choose(self._durability, usual))

    def archive_run(self, run_id: str) -> str:
        """Renames a run to `id@n`, so that a new version can have the id; nothing of the old one is lost.

        Args:
            run_id: The run.

        Returns:
            Its new id.

        Raises:
            RunBusyError: Another process writes it.
        """
        runs = schema.runs
        with RunWriter(self.engine, self.reader(run_id).run, run_id), self.engine.connect() as connection:
            taken = _find_archived(connection, run_id)
            archived = next(name for n in itertools.count(1) if (name := f"{run_id}@{n}") not in taken)
            connection.execute(sa.update(runs).where(runs.c.run_id == run_id).values(run_id=archived))
            connection.commit()
        return archived

    def archived_versions(self, run_id: str) -> list[int]:
        """Numbers in the tables of the archived versions of a run (`id@1`, ...).

        Args:
            run_id: The run, without a version.
        """
        with self.engine.connect() as connection:
            return list(_find_archived(connection, run_id).values())

    def complete_run(self, run_id: str) -> None:
        """Notes that a run is done.

        Args:
            run_id: The run.
        """
        with self.open_run(run_id) as writer:
            writer.finish(RunStatus.COMPLETED)

    def fail_run(self, run_id: str, message: str) -> None:
        """Notes that a run has failed.

        Args:
            run_id: The run.
            message: Why.
        """
        with self.open_run(run_id) as writer:
            writer.finish(RunStatus.FAILED, error=message)

    def delete_run(self, run_id: str) -> None:
        """Removes a run and everything that only it uses.

        Args:
            run_id: The run.

        Raises:
            RunBusyError: It is being written.
            RunNotFoundError: There is no such run, or no store yet; also a `FileNotFoundError`.
        """
        reader = self.reader(run_id)
        if writer := reader.metadata.writer:
            raise RunBusyError(f"run {run_id!r} is being written by {writer}; stop it first")
        runs = schema.runs
        unchanged = runs.c.lease_holder.is_not_distinct_from(reader.lease_holder)
        with self.engine.begin() as connection:
            if connection.execute(sa.delete(runs).where(runs.c.run == reader.run, unchanged)).rowcount != 1:
                raise RunBusyError(f"run {run_id!r} was taken or removed by another process this very moment")
            mine = sa.select(schema.evaluations.c.evaluation).where(schema.evaluations.c.run == reader.run)
            connection.execute(sa.delete(schema.scores).where(schema.scores.c.evaluation.in_(mine)))
            theirs = (schema.evaluations, schema.records, schema.steps, schema.samples, schema.turns, schema.artifacts)
            for table in (*theirs, schema.batches):
                connection.execute(sa.delete(table).where(table.c.run == reader.run))
            remove_unused_items(connection)
        shutil.rmtree(self._folder(run_id), ignore_errors=True)

    # --- records and scores ------------------------------------------------------------------------------------------

    def load_cached_records(self, run_id: str) -> LazyMapping[GenerationRecord]:
        """item id -> record, read from the store as it is gone through. Empty for an unknown run.

        Args:
            run_id: The run.
        """
        reader = self.find_run(run_id)
        if reader is None:
            return LazyMapping.empty()
        return LazyMapping(
            lambda: ((record.task.metadata["dataset_id"], record) for _, record in reader.records()),
            lambda: sum(reader.count_records()),
            lambda item_id: found[1] if (found := reader.record(item_id)) else None,
        )

    def load_cached_evaluations(self, run_id: str) -> LazyMapping[EvaluationRecord]:
        """item id -> evaluation record of the run's current evaluation. Empty for a run that is unknown or not judged.

        Args:
            run_id: The run.
        """
        reader = self.find_run(run_id)
        if reader is None or reader.evaluation is None:
            return LazyMapping.empty()
        evaluation = reader.evaluation
        return LazyMapping(
            lambda: ((record.sample_id or "", record) for _, record in reader.evaluations(evaluation)),
            lambda: reader.count_evaluated(evaluation),
            lambda item_id: reader.evaluation_of(evaluation, item_id),
        )

    def load_dataset(self, run_id: str) -> Iterator[dict[str, Any]]:
        """The rows of a run, in order.

        Args:
            run_id: The run.
        """
        return (sample.row for sample in self.reader(run_id).samples())

    def find_answer(self, key: str, among: Sequence[int] | None = None) -> GenerationRecord | None:
        """A good answer stored under a key by any run, or by the given ones: the cache across runs.

        Args:
            key: A hash of everything that could change the answer.
            among: Numbers of runs in the tables; all by default.
        """
        records, runs = schema.records, schema.runs
        query = (
            sa.select(*run_columns(), records.c.position, records.c.attempt)
            .select_from(records.join(runs, runs.c.run == records.c.run))
            .where(records.c.key == key, records.c.ok == 1)
        )
        if among is not None:
            query = query.where(records.c.run.in_(among))
        row = retry_read(self.engine, lambda connection: connection.execute(query.limit(1)).first())
        return None if row is None else RunReader(self.engine, row).call(row.position, row.attempt)

    def find_judgement(self, key: str) -> str | None:
        """A judge's stored reply, as JSON text.

        Args:
            key: A hash of everything that could change the reply.
        """
        table = schema.judgements
        query = sa.select(table.c.body).where(table.c.key == key)
        return retry_read(self.engine, lambda connection: connection.execute(query).scalar())

    # --- definitions of memory tests ---------------------------------------------------------------------------------

    def list_definitions(self, name: str | None = None) -> list[StoredDefinitions]:
        """Every version of the definitions of a name, or of all names one after the other, the newest first.

        Args:
            name: What runs of the configuration are called after; all by default.
        """
        if not self.exists():
            return []
        table = schema.definitions
        query = sa.select(table).order_by(table.c.name, table.c.version.desc())
        if name is not None:
            query = query.where(table.c.name == name)
        rows = retry_read(self.engine, lambda connection: connection.execute(query).all())
        return [StoredDefinitions(**row._mapping) for row in rows]

    def store_definitions(self, name: str, content: str, *, configuration: str) -> None:
        """Stores the tests of a configuration as the newest version of a name; earlier versions stay.

        Args:
            name: What runs of the configuration are called after.
            content: The tests, as JSON text.
            configuration: Fingerprint of what they were generated from.

        Raises:
            StorageError: Another process has stored the same version this very moment.
        """
        version = max((one.version for one in self.list_definitions(name)), default=0) + 1
        values = {"name": validate_text("run name", name), "version": version, "created_at": time.time()}
        values |= {"configuration": configuration, "digest": digest(content), "content": content}
        try:
            with self.engine.begin() as connection:
                connection.execute(sa.insert(schema.definitions).values(**values))
        except sa.exc.IntegrityError as error:
            raise StorageError(
                f"the definitions of {name!r} were stored by another process this very moment; run the same command again"
            ) from error

    # --- care --------------------------------------------------------------------------------------------------------

    def validate_integrity(self, run_id: str) -> Integrity:
        """`{run_id, valid, errors, warnings}`: whether what is stored of a run fits together.

        Args:
            run_id: The run.
        """
        reader = self.find_run(run_id)
        if reader is None:
            return {"run_id": run_id, "valid": False, "errors": [self._explain_unknown(run_id)], "warnings": []}
        errors, warnings = reader.find_problems()
        return {"run_id": run_id, "valid": not errors, "errors": errors, "warnings": warnings}

    def get_storage_size(self, experiment: str | None = None) -> int:
        """Bytes on disk; of one experiment, the bytes of its runs' stored texts.

        Args:
            experiment: Only its runs; the whole store by default.
        """
        if experiment is not None:
            sizes = self.run_sizes()
            return sum(sizes.get(run.run_id, 0) for run in self.list_runs(experiment))
        if is_url(self.location):
            with self.engine.connect() as connection:
                return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar() or 0)
        base = database_file(Path(self.location))
        return sum(path.stat().st_size for path in base.parent.glob(f"{base.name}*"))

    def run_sizes(self) -> dict[str, int]:
        """Bytes of stored records and turns by run id."""
        runs, total = schema.runs, Counter[str]()
        in_sqlite = self.engine.dialect.name == "sqlite"
        with self.engine.connect() as connection:
            for table in (schema.records, schema.turns):
                body = table.c.body
                octets = sa.func.length(sa.cast(body, sa.LargeBinary)) if in_sqlite else sa.func.octet_length(body)
                query = sa.select(runs.c.run_id, sa.func.coalesce(sa.func.sum(octets), 0))
                query = query.join(table, table.c.run == runs.c.run).group_by(runs.c.run_id)
                total.update({run_id: int(size) for run_id, size in connection.execute(query)})
        return total

    def apply_retention_policy(
        self, policy: RetentionPolicy | None = None, *, experiment: str | None = None, dry_run: bool = False
    ) -> list[str]:
        """Deletes what the policy lets go and returns the ids; not what a provider still answers in a batch.

        Args:
            policy: What to keep. Every count in it is of one experiment's runs.
            experiment: Only look at the runs of this experiment.
            dry_run: Delete nothing, only return the ids.
        """
        policy = policy or RetentionPolicy()
        sizes = self.run_sizes() if policy.max_storage_gb is not None else {}
        gone = expired(self.list_runs(experiment), sizes, policy, datetime.datetime.now(datetime.UTC))
        answered_later = find_runs_with_open_batches(self.engine) if gone else set()
        gone = [run_id for run_id in gone if run_id not in answered_later]
        return gone if dry_run else [run_id for run_id in gone if self._try_delete(run_id)]

    def _try_delete(self, run_id: str) -> bool:
        try:
            self.delete_run(run_id)
        except RunBusyError:
            return False  # somebody has begun to write it since the list was made
        return True

    def get_run_path(self, run_id: str) -> Path:
        """A folder with the run's manifest, report and records, written now from the store.

        Args:
            run_id: The run.
        """
        reader, folder = self.reader(run_id), self._folder(run_id)
        run = reader.metadata
        files = {
            "manifest.json": [encode(run.config_snapshot.get("reproducibility_manifest", {}))],
            "report.json": [encode({"run_id": run_id, "status": run.status.value, **run.summary})],
            "records.jsonl": (
                encode({"item_id": record.task.metadata["dataset_id"], "record": record}) + "\n"
                for _, record in reader.records()
            ),
        }
        for name, parts in files.items():
            with atomic_write(folder / name) as handle:
                handle.writelines(part.encode("utf-8", "surrogatepass") for part in parts)
        return folder

    # --- inside ------------------------------------------------------------------------------------------------------

    def _folder(self, run_id: str) -> Path:
        """Where files of a run are put; ids of archived runs are the only ones with an `@`."""
        validate_run_id(run_id.replace("@", "-"))
        return self.root / "runs" / run_id

    def _explain_unknown(self, run_id: str) -> str:
        if not self.exists():
            return f"no run {run_id!r}: there is no store at {redact_text(str(self.location))}"
        known = [run.run_id for run in self.list_runs(limit=1_000)]
        return f"no run {run_id!r} in {redact_text(str(self.location))}{nearest(run_id, known)}"


def _find_archived(connection: sa.Connection, run_id: str) -> dict[str, int]:
    """Archived versions of a run: `id@n` -> number in the tables."""
    runs, prefix = schema.runs, f"{run_id}@"
    found = connection.execute(
        sa.select(runs.c.run_id, runs.c.run).where(runs.c.run_id.startswith(prefix, autoescape=True))
    )
    # SQLite's LIKE knows no case; ids do.
    return {row.run_id: int(row.run) for row in found if row.run_id.startswith(prefix)}


# --- retention --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RetentionPolicy:
    """What to keep. The newest runs of every experiment, and runs being written, always stay.

    Args:
        max_runs_per_experiment: At most so many of each experiment; no limit by default.
        max_age_days: None older than this; no limit by default.
        max_storage_gb: The oldest go until the records of what is left fit into so many GiB; no limit by default.
        keep_completed_only: Runs that did not complete go too.
        keep_latest_n: So many of the newest runs of an experiment always stay.

    >>> from themis.storage import ExperimentStorage
    >>> ExperimentStorage("runs").apply_retention_policy(RetentionPolicy(max_age_days=90), dry_run=True)
    []
    """

    max_runs_per_experiment: int | None = None
    max_age_days: float | None = None
    max_storage_gb: float | None = None
    keep_completed_only: bool = True
    keep_latest_n: int = 5


def expired(
    runs: Sequence[RunMetadata], sizes: dict[str, int], policy: RetentionPolicy, now: datetime.datetime
) -> list[str]:
    """Ids of the runs that the policy lets go, oldest first. `sizes` are bytes by run id."""
    newest_first = sorted(runs, key=lambda run: run.created_at, reverse=True)
    rank: dict[str, int] = {}
    removable: list[RunMetadata] = []
    gone: set[str] = set()
    for run in newest_first:
        index = rank.get(run.experiment, 0)
        rank[run.experiment] = index + 1
        if index < policy.keep_latest_n or run.writer is not None:
            continue
        removable.append(run)
        too_old = policy.max_age_days is not None and now - run.created_at > datetime.timedelta(
            days=policy.max_age_days
        )
        too_many = policy.max_runs_per_experiment is not None and index >= policy.max_runs_per_experiment
        unfinished = policy.keep_completed_only and run.status is not RunStatus.COMPLETED
        if too_old or too_many or unfinished:
            gone.add(run.run_id)
    if policy.max_storage_gb is not None:
        left = sum(sizes.get(run.run_id, 0) for run in runs if run.run_id not in gone)
        for run in reversed(removable):
            if left <= policy.max_storage_gb * _GIB:
                break
            if run.run_id not in gone:
                gone.add(run.run_id)
                left -= sizes.get(run.run_id, 0)
    return [run.run_id for run in reversed(newest_first) if run.run_id in gone]
