"""Opens the database of a store, a SQLite file in the storage root or PostgreSQL by URL, and migrates it to the schema.

Every error of the database leaves here as a `StorageError` that says what to do; nothing is ever deleted on the way.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import math
import os
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from themis.core.redaction import redact_options, redact_text
from themis.exceptions import ConfigurationError, DependencyError, StorageError, ThemisError
from themis.storage import schema
from themis.storage.migrations import MIGRATIONS

DATABASE_NAME = "themis.db"
_HEADER_BYTES = 100
_APPLICATION_ID = 0x7468656D  # "them", in the file's header, tells our files from other SQLite files
_BUSY_SECONDS = 60
_PAGE_CACHE_KIB = 16_384
_CHECKPOINT_PAGES = 4_000

# Beginnings of error codes, of SQLite and of the SQL standard.
_FULL = ("SQLITE_FULL", "53100")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_DATA", "XX00")
_READ_ONLY = ("SQLITE_READONLY", "25006")
_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03")
_FAILING = ("SQLITE_IOERR", "58030")
# Without these a connection that broke without a word is waited on for hours. What the URL says wins.
_KEEPALIVE_OPTIONS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# A server that shuts down, crashed or starts, and a connection that broke.
_AWAY = ("57P01", "57P02", "57P03", "08")

_LONGEST_OUTAGE_SECONDS = 300.0
_FIRST_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS = 0.05, 2.0
_WARNING_INTERVAL_SECONDS = 30.0

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Durability(enum.StrEnum):
    """What a committed answer outlives: the death of the process, or a power cut too."""

    PROCESS = "process"
    POWER = "power"

    @property
    def synchronous(self) -> str:
        """SQLite's word for it. NORMAL leaves it to the system when the log reaches the disk, FULL waits for every commit."""
        return "FULL" if self is Durability.POWER else "NORMAL"

    @classmethod
    def choose(cls, given: str | None, default: Durability) -> Durability:
        """What was given, what THEMIS_DURABILITY says, or the default."""
        wanted = given or os.environ.get("THEMIS_DURABILITY") or default
        known = [one.value for one in cls]
        if wanted not in known:
            raise ConfigurationError(f"durability (THEMIS_DURABILITY) is {' or '.join(known)}, got {wanted!r}")
        return cls(wanted)


def open_database(location: str | Path) -> Engine:
    """The engine of a store, its schema brought up to date. Takes the same time whatever the store holds."""
    if is_url(location):
        return _open_postgres(str(location))
    return open_sqlite(database_file(Path(location)))


def is_url(location: object) -> bool:
    return isinstance(location, str) and "://" in location


def database_file(root: Path) -> Path:
    """`root/themis.db`; a path that ends in `.db` is taken as the file itself."""
    return root if root.suffix == ".db" else root / DATABASE_NAME


# --- SQLite ---------------------------------------------------------------------------------------------------------


def open_sqlite(path: Path) -> Engine:
    if not path.exists():
        _create_sqlite(path)
    _refuse_foreign_files(path)
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    engine = _sqlite_engine(path, writable=writable)
    try:
        with engine.connect() as connection:
            version = int(connection.exec_driver_sql("PRAGMA user_version").scalar() or 0)
        refuse_newer(version, str(path))
        if version < len(MIGRATIONS) and writable:
            with engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                _migrate(connection, int(connection.exec_driver_sql("PRAGMA user_version").scalar() or 0))
                connection.exec_driver_sql(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        engine.dispose()
        raise
    return engine


def _create_sqlite(path: Path) -> None:
    """Makes the file elsewhere and links it into place whole, so that nobody ever meets a half-made one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".themis-new-", suffix=".db", dir=path.parent)
    except OSError as error:
        raise StorageError(f"cannot make a store in {path.parent}: {error.strerror or error}") from error
    os.close(handle)
    fresh = Path(name)
    try:
        engine = _sqlite_engine(fresh, writable=True, shown=path)
        try:
            with engine.begin() as connection:
                schema.metadata.create_all(connection, checkfirst=False)
                connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.exec_driver_sql(f"PRAGMA user_version = {len(MIGRATIONS)}")
            with engine.connect() as connection:
                # Said aloud where it fails, as on a full disk: without its log, which stays behind, the file is not whole.
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            engine.dispose()
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # another process was quicker; its store is as good
    finally:
        for leftover in (fresh, Path(f"{fresh}-wal"), Path(f"{fresh}-shm")):
            leftover.unlink(missing_ok=True)


def _refuse_foreign_files(path: Path) -> None:
    """Looks at the header before the file is opened to be written, which would change another program's file.

    Only SQLite may open and close the file: by POSIX, closing any handle of a file drops all locks that the process has
    on it, and with them those of the stores that are open here. Another process would then take the log for left over.
    """
    if path.is_dir():
        raise StorageError(f"{path} is a directory, expected a database file; move it away or give another --storage")
    try:
        size = path.stat().st_size
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    if size < _HEADER_BYTES:
        what = "is empty" if not size else "is cut off in its header"
        raise StorageError(f"{path} {what}; nothing was changed. {_repair_advice(path)}")
    try:
        application_id = _application_id(path)
    except sqlite3.OperationalError as error:
        raise StorageError(f"cannot read {path}: {error}") from error
    except sqlite3.DatabaseError as error:
        is_other = error.sqlite_errorname == "SQLITE_NOTADB"
        what = "is not a database (its first bytes are not SQLite's)" if is_other else f"is damaged ({error})"
        raise StorageError(f"{path} {what}; nothing was changed. {_repair_advice(path)}") from error
    if application_id != _APPLICATION_ID:
        raise StorageError(f"{path} is an SQLite database of another program; give --storage another directory")


def _application_id(path: Path) -> int:
    def read(query: str) -> int:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?{query}", uri=True)) as connection:
            return int(connection.execute("PRAGMA application_id").fetchone()[0])

    try:
        return read("mode=ro&immutable=1")
    except sqlite3.DatabaseError as error:
        # While its log is being merged, or after a full disk has stopped that, the file is whole only together with it.
        if error.sqlite_errorname != "SQLITE_CORRUPT" or not _has_log(path):
            raise
        return read("mode=ro")


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _sqlite_engine(path: Path, *, writable: bool, shown: Path | None = None) -> Engine:
    target = f"file:{quote(str(path.resolve()))}"
    # Where nothing can be written there is no place for SQLite's lock files, so it is told that nobody else writes either.
    # Not beside a log that was never merged, though: what is in there would not be seen.
    query = "?mode=rw" if writable else "?mode=ro" if _has_log(path) else "?mode=ro&immutable=1"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(target + query, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False)

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.QueuePool, pool_size=8, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KIB}")
        cursor.execute("PRAGMA temp_store = MEMORY")
        cursor.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        if writable:
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute(f"PRAGMA synchronous = {Durability.PROCESS.synchronous}")
        cursor.close()

    _translate_errors(engine, where=str(shown or path), advice=_repair_advice(shown or path))
    return engine


def _repair_advice(path: Path) -> str:
    return f"`themis store repair --storage {path.parent}` salvages what can be read into a new file"


# --- PostgreSQL -----------------------------------------------------------------------------------------------------


def _open_postgres(url: str) -> Engine:
    scheme, _, rest = url.partition("://")
    if scheme.split("+")[0] not in {"postgresql", "postgres"}:
        raise ConfigurationError(f"storage {redact_text(url)!r}: expected a directory or a postgresql:// URL")
    try:
        import psycopg
    except ImportError as error:
        raise DependencyError.for_extra("psycopg", "postgres", "a PostgreSQL store") from error
    address = sa.make_url(f"postgresql+psycopg://{rest}")
    keepalive = {name: value for name, value in _KEEPALIVE_OPTIONS.items() if name not in address.query}
    engine = sa.create_engine(address, pool_pre_ping=True, paramstyle="format", connect_args=keepalive)
    shown = str(redact_options({"storage": url})["storage"])
    outage = Outage(shown)
    engine.update_execution_options(outage=outage)

    @event.listens_for(engine, "do_connect")
    def connect(dialect: sa.Dialect, _: object, arguments: list[object], options: dict[str, object]) -> object:
        while True:
            try:
                return dialect.connect(*arguments, **options)
            except psycopg.OperationalError as error:
                outage.wait(error)

    _translate_errors(engine, where=shown, advice="`themis doctor` checks the connection")
    try:
        _prepare_postgres(engine, shown)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _prepare_postgres(engine: Engine, shown: str) -> None:
    with engine.begin() as connection:
        # One process migrates, the others wait for it.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7234017283807667300)")
        present = set(sa.inspect(connection).get_table_names())
        if (foreign := sorted(present & set(schema.metadata.tables))) and schema.meta.name not in present:
            raise StorageError(
                f"{shown} has tables of another program ({', '.join(foreign)}); give the URL of an empty database, or of "
                "a schema in it with ?options=-csearch_path%3Dname"
            )
        schema.meta.create(connection, checkfirst=True)
        row = connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.key == "schema_version")).first()
        version = int(row[0]) if row else 0
        refuse_newer(version, shown)
        if version < len(MIGRATIONS):
            _migrate(connection, version)
            connection.execute(sa.delete(schema.meta).where(schema.meta.c.key == "schema_version"))
            connection.execute(sa.insert(schema.meta).values(key="schema_version", value=str(len(MIGRATIONS))))


# --- both -----------------------------------------------------------------------------------------------------------


def _migrate(connection: Connection, version: int) -> None:
    for step in MIGRATIONS[version:]:
        step(connection)


def refuse_newer(version: int, where: str) -> None:
    if version > len(MIGRATIONS):
        raise StorageError(
            f"{where} was written by a newer Themis (store version {version}, this one knows {len(MIGRATIONS)}); "
            "upgrade with: pip install --upgrade themis-eval"
        )


def _translate_errors(engine: Engine, *, where: str, advice: str) -> None:
    @event.listens_for(engine, "handle_error")
    def translate(context: sa.engine.ExceptionContext) -> ThemisError | None:
        error = context.original_exception
        if isinstance(error, UnicodeEncodeError):
            bad = error.object[error.start]
            return ConfigurationError(f"a name or id holds {bad!r}, half a character, which no database can store")
        if context.sqlalchemy_exception is None or isinstance(context.sqlalchemy_exception, sa.exc.IntegrityError):
            return None  # not the database's, or a duplicate: for the caller to explain
        text = redact_text(str(error).strip() or type(error).__name__).splitlines()[0]
        # SQLite's name for it, or the standard's number that PostgreSQL gives.
        code = getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None) or ""
        if context.is_disconnect or code.startswith(_AWAY):
            # A connection that has broken while it lay in the pool is replaced there by another.
            return None if context.is_pre_ping else DatabaseAwayError(where, text)
        if "NUL (0x00)" in text:
            return ConfigurationError("a name or id holds a NUL character, which PostgreSQL cannot store")
        if code.startswith(_FULL):
            return StorageError(
                f"the disk of {where} is full; everything committed so far is safe. Make room and try again"
            )
        if code.startswith(_DAMAGED):
            return StorageError(f"{where} is damaged ({text}); nothing was changed. {advice}")
        if code.startswith(_READ_ONLY):
            return StorageError(f"{where} is read-only; runs can be read but not written. Give a writable --storage")
        if code.startswith(_LOCKED):
            return StorageError(
                f"{where} stayed locked by another process for {_BUSY_SECONDS} s; try again when it has finished"
            )
        if code.startswith(_FAILING):
            return StorageError(
                f"the disk of {where} failed ({text}: a quota that is used up, a lost mount or a broken disk); everything "
                "committed so far is safe. Try again when it works"
            )
        return StorageError(f"the store {where} refused: {text}. {advice}")


def process_identity() -> str:
    """`host:pid:start`: tells a live writer from a dead one whose process number was given to another."""
    return f"{socket.gethostname()}:{os.getpid()}:{process_start(os.getpid())}"


def process_start(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty where that cannot be told."""
    facts = _process_facts(pid)
    return facts[_START] if len(facts) > _START else ""


# Of what the kernel tells of a process behind its name: its state, its flags, when it began.
_STATE, _FLAGS, _START = 0, 6, 19
_EXITING = 0x4


def _process_facts(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def holder_is_dead(holder: str) -> bool:
    """Whether the holder was a process of this machine that no longer runs."""
    host, pid, start, *_ = [*holder.split(":"), "", ""]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    return not process_runs(int(pid)) or (bool(start) and process_start(int(pid)) != start)


def process_runs(pid: int) -> bool:
    """Whether there is a process of this number, whoever's it is; one that was killed and is still being taken down is none."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    facts = _process_facts(pid)
    return len(facts) <= _FLAGS or not (facts[_STATE] in "ZX" or int(facts[_FLAGS]) & _EXITING)


def format_holder(holder: str) -> str:
    host, pid, *_ = [*holder.split(":"), "?"]
    return f"process {pid} on {host}"


# --- outages ----------------------------------------------------------------------------------------------------------


class DatabaseAwayError(StorageError):
    """The server cannot be reached, or the connection to it broke."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"the database {where} went away: {reason}. `themis doctor` checks the connection")
        self.reason = reason


class _TooLongError(DatabaseAwayError):
    """Nobody waits any longer."""

    def __init__(self, where: str, reason: str, away_seconds: float) -> None:
        StorageError.__init__(
            self,
            f"the database {where} has been away for {away_seconds:.0f} s ({reason}); everything committed so far is safe. "
            "Run the same command again when it is back: it goes on where it stopped",
        )
        self.reason = reason


class Outage:
    """How long a server has been away, for all connections to it.

    `is_retried` is set while a run is written: then what failed is tried again, with backoff.
    """

    def __init__(self, where: str) -> None:
        self.is_retried = False
        self._longest_seconds = _longest_outage_seconds()
        self._where = where
        self._lock = threading.Lock()
        self._since: float | None = None
        self._warned_at = self._backoff = 0.0

    def wait(self, error: Exception) -> None:
        """A while before the next try; raises when nobody wants to wait, or the server has been away too long."""
        if not self.is_retried or isinstance(error, _TooLongError):
            raise error
        with self._lock:
            now = time.monotonic()
            if self._since is None:
                self._since, self._warned_at, self._backoff = (
                    now,
                    now - _WARNING_INTERVAL_SECONDS,
                    _FIRST_BACKOFF_SECONDS,
                )
            away = now - self._since
            if away > self._longest_seconds:
                raise _TooLongError(self._where, _reason(error), away) from error
            if now - self._warned_at >= _WARNING_INTERVAL_SECONDS:
                self._warned_at = now
                logger.warning(
                    "waiting for the database %s, away for %.0f s, at most %.0f s (%s)",
                    *(self._where, away, self._longest_seconds, _reason(error)),
                )
            delay = self._backoff
            self._backoff = min(_LONGEST_BACKOFF_SECONDS, delay * 2)
        time.sleep(delay)

    def end(self) -> None:
        """The server has answered."""
        with self._lock:
            if self._since is not None:
                logger.warning("the database %s is back after %.1f s", self._where, time.monotonic() - self._since)
            self._since = None


def _longest_outage_seconds() -> float:
    given = os.environ.get("THEMIS_DATABASE_WAIT_SECONDS") or _LONGEST_OUTAGE_SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ConfigurationError(f"THEMIS_DATABASE_WAIT_SECONDS is a number of seconds, got {given!r}")
    return seconds


def _reason(error: Exception) -> str:
    if isinstance(error, DatabaseAwayError):
        return error.reason
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def find_outage(engine: Engine) -> Outage | None:
    """None for a file, which is never away."""
    found: Outage | None = engine.get_execution_options().get("outage")
    return found


def retry_read(engine: Engine, work: Callable[[Connection], T]) -> T:
    """Reads something, and reads it again if the server goes away meanwhile."""
    outage = find_outage(engine)
    while True:
        try:
            with engine.connect() as connection:
                result = work(connection)
        except DatabaseAwayError as error:
            if outage is None:
                raise
            outage.wait(error)
            continue
        if outage is not None:
            outage.end()
        return result


# --- the clock --------------------------------------------------------------------------------------------------------


class clock(sa.sql.expression.FunctionElement[float]):
    """The database's own clock, in seconds since 1970: machines that share a store need not agree on the time."""

    type = sa.Double()
    inherit_cache = True


@compiles(clock, "postgresql")
def _postgresql_clock(element: clock, compiler: SQLCompiler, **options: object) -> str:
    return "extract(epoch FROM clock_timestamp())::double precision"


@compiles(clock, "sqlite")
def _sqlite_clock(element: clock, compiler: SQLCompiler, **options: object) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"
