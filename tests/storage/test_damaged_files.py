"""A file that is not a whole store of ours: one clear error with what to do, and not a byte is changed."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.stored_runs import FRAME, answered, call, fill, item, rows
from themis.config.specification import load_specification
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import ExperimentStorage
from themis.storage.database import DATABASE_NAME
from themis.storage.migrations import MIGRATIONS

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path) -> Path:
    """A store with runs in it, closed."""
    storage = ExperimentStorage(tmp_path / "store")
    for n in range(3):
        fill(storage, f"run-{n}", 50)
    storage.close()
    return tmp_path / "store"


def everything(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(folder)): "directory" if path.is_dir() else path.read_bytes() for path in folder.rglob("*")
    }


def read_all(root: Path) -> int:
    storage = ExperimentStorage(root)
    try:
        return sum(len(list(storage.load_cached_records(run.run_id).values())) for run in storage.list_runs())
    finally:
        storage.close()


def refused(root: Path) -> str:
    """The error of reading everything; the folder must be as it was."""
    before = everything(root)
    with pytest.raises(StorageError) as caught:
        read_all(root)
    assert everything(root) == before
    return str(caught.value)


def test_an_undamaged_store_is_read_and_left_as_it_was(root):
    before = everything(root)

    assert read_all(root) == 150
    assert everything(root) == before


def test_random_bytes(root):
    (root / DATABASE_NAME).write_bytes(random.Random(1).randbytes(10_000))

    error = refused(root)

    assert "is not a database (its first bytes are not SQLite's); nothing was changed" in error
    assert f"`themis store repair --storage {root}` salvages" in error


def test_an_empty_file(root):
    (root / DATABASE_NAME).write_bytes(b"")

    assert "themis.db is empty; nothing was changed. `themis store repair" in refused(root)


def test_a_directory_in_its_place(root):
    (root / DATABASE_NAME).unlink()
    (root / DATABASE_NAME).mkdir()

    assert "themis.db is a directory, expected a database file; move it away" in refused(root)


@pytest.mark.parametrize("share", [0.0005, 0.3, 0.5, 0.9])
def test_a_file_that_was_cut_off(root, share):
    path = root / DATABASE_NAME
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])

    error = refused(root)

    assert f"`themis store repair --storage {root}` salvages what can be read" in error
    assert "is cut off in its header" in error or "is damaged (" in error


def test_rubbish_in_the_middle(root):
    path = root / DATABASE_NAME
    content = bytearray(path.read_bytes())
    content[4_096:-4_096] = random.Random(2).randbytes(len(content) - 8_192)
    path.write_bytes(content)

    assert "is damaged (database disk image is malformed); nothing was changed. `themis store repair" in refused(root)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_the_database_of_another_program(root, mode):
    path = root / DATABASE_NAME
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        other.execute("CREATE TABLE bookmarks (address TEXT)")
    other.close()

    assert "is an SQLite database of another program; give --storage another directory" in refused(root)


def test_a_store_of_an_older_version_is_brought_up_to_date(root):
    with sqlite3.connect(root / DATABASE_NAME) as older:
        older.execute("ALTER TABLE runs DROP COLUMN cut_off")
        older.execute("PRAGMA user_version = 3")
    older.close()

    storage = ExperimentStorage(root)
    assert {run.cut_off for run in storage.list_runs()} == {0}
    storage.close()


def test_what_an_older_store_keeps_of_how_runs_were_started_becomes_their_specification(root):
    called = {"model": "fake/m", "dataset": "rows.jsonl", "workers": 7, "custom_pipeline": True, "needs_program": "why"}
    typed = "memory run -c c.yml -a http://x -m 500 --budget-usd 1.5 --parallel 3 -i --option n=3 --option text=a --load own.py"
    storage = ExperimentStorage(root)
    storage.start_run("called", config={"invocation": called})
    storage.start_run("typed", kind="memory", config={"invocation": {"command": typed.split()}})
    storage.start_run("neither", kind="memory", config={"invocation": {"needs_program": "a program started it"}})
    storage.close()
    with sqlite3.connect(root / DATABASE_NAME) as older:
        older.execute("PRAGMA user_version = 6")
    older.close()

    storage = ExperimentStorage(root)
    sample = load_specification(storage.get_run("called"))
    assert (sample.model, sample.dataset, sample.workers, sample.needs_program) == ("fake/m", "rows.jsonl", 7, "why")
    assert list(sample.made_in_python) == ["evaluation_pipeline"]
    memory = load_specification(storage.get_run("typed"))
    expected = "memory run -c c.yml -a http://x --budget-usd 1.5 --workers 3 --max-prompt-size 500 --isolated "
    assert " ".join(memory.command()) == f"{expected}--option n=3 --option text=a --load own.py"
    with pytest.raises(ConfigurationError, match="does not say how it was started"):
        load_specification(storage.get_run("neither"))
    storage.close()


def test_a_store_of_a_newer_version(root):
    known = len(MIGRATIONS)
    with sqlite3.connect(root / DATABASE_NAME) as newer:
        newer.execute(f"PRAGMA user_version = {known + 1}")
    newer.close()

    error = refused(root)

    assert f"was written by a newer Themis (store version {known + 1}, this one knows {known})" in error
    assert "pip install --upgrade themis-eval" in error


def test_a_store_in_a_place_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")

    with pytest.raises(StorageError, match=f"cannot make a store in {tmp_path}/file/store: Not a directory"):
        ExperimentStorage(tmp_path / "file" / "store").start_run("run")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_store_begun_by_many_processes_at_once_is_one_store(tmp_path):
    program = "import sys; from themis.storage import ExperimentStorage; ExperimentStorage(sys.argv[1]).start_run(sys.argv[2])"
    location = str(tmp_path / "store")
    started = [subprocess.Popen([sys.executable, "-c", program, location, f"run-{n}"]) for n in range(4)]

    assert [process.wait(300) for process in started] == [0, 0, 0, 0]
    storage = ExperimentStorage(location)
    assert len(storage.list_runs()) == 4
    storage.close()
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == [DATABASE_NAME]


# --- places that cannot be written ------------------------------------------------------------------------------------


@pytest.fixture
def in_own_mounts(tmp_path):
    """Runs a program in a process that may mount what it likes; its mounts end with it."""
    if subprocess.run(["unshare", "--map-root-user", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mounts of our own here (unshare): a full and a read-only disk cannot be made")

    def run(program: str, *arguments: object) -> str:
        done = subprocess.run(
            ["unshare", "--map-root-user", "--mount", sys.executable, "-c", program, *map(str, arguments)],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


READ_ONLY = """
import os, shutil, subprocess, sys
from tests.storage.test_damaged_files import everything, read_all
from themis.config.specification import load_specification
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import ExperimentStorage
from pathlib import Path

source, disk = Path(sys.argv[1]), Path(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
shutil.copytree(source, disk / "store")
subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
before = everything(disk)
print(read_all(disk / "store"))
storage = ExperimentStorage(disk / "store")
for write in (lambda: storage.start_run("new"), lambda: storage.open_run("run-0"), lambda: storage.delete_run("run-0")):
    try:
        write()
    except StorageError as error:
        print(error)
try:
    ExperimentStorage(disk / "other").start_run("new")
except StorageError as error:
    print(error)
print(everything(disk) == before)
"""


def test_a_read_only_store_is_read_but_not_written(root, tmp_path, in_own_mounts):
    disk = tmp_path / "disk"
    disk.mkdir()

    count, *errors, nothing_changed = in_own_mounts(READ_ONLY, root, disk).splitlines()

    assert (count, nothing_changed) == ("150", "True")
    expected = f"{disk}/store/themis.db is read-only; runs can be read but not written. Give a writable --storage"
    assert errors[:3] == [expected] * 3
    assert errors[3:] == [f"cannot make a store in {disk}/other: Read-only file system"]


LOG_BEHIND = """
import os, shutil, subprocess, sys
from pathlib import Path
from tests.storage.test_damaged_files import read_all

source, disk = Path(sys.argv[1]), Path(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
shutil.copytree(source, disk / "store")
subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
print(read_all(disk / "store"))
"""


def test_what_is_only_in_the_log_of_a_killed_writer_is_read_from_a_read_only_store(root, tmp_path, in_own_mounts):
    subprocess.run(
        [sys.executable, "-c", KILLED_AFTER_COMMIT, str(root)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )
    assert (root / f"{DATABASE_NAME}-wal").stat().st_size > 0
    disk = tmp_path / "disk"
    disk.mkdir()

    assert in_own_mounts(LOG_BEHIND, root, disk) == "200\n"


KILLED_AFTER_COMMIT = """
import os, signal, sys
from tests.storage.stored_runs import FRAME, answered, call, fill, item, rows
from themis.storage import ExperimentStorage

storage = ExperimentStorage(sys.argv[1])
fill(storage, "run-3", 50)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_store_whose_log_is_merged_in_part_is_whole_together_with_its_log(tmp_path):
    """As a full disk leaves it: the first page is new and tells of pages that are still in the log."""
    storage, many = ExperimentStorage(tmp_path / "store"), rows(200)
    storage.start_run("run", config={"task": FRAME.to_config()})
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(many))
        writer.commit_results([call(n, answered(row, "x" * 2_000)) for n, row in enumerate(many)])
    file = tmp_path / "store" / "themis.db"
    stopped = tmp_path / "stopped"
    stopped.mkdir()
    for name in ("themis.db", "themis.db-wal"):
        shutil.copy(file.with_name(name), stopped)
    storage.close()  # merges the log
    with (stopped / "themis.db").open("r+b") as half_merged:
        half_merged.write(file.read_bytes()[:4096])

    assert ExperimentStorage(stopped).reader("run").count_records() == (200, 0)


# --- disks that are full ----------------------------------------------------------------------------------------------

FULL_DISK = """
import subprocess, sys
from pathlib import Path
from tests.storage.stored_runs import FRAME, answered, call, item, rows
from themis.config.specification import load_specification
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import ExperimentStorage

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk], check=True)
(disk / "ballast").write_bytes(b"x" * 3_000_000)
storage, many = ExperimentStorage(disk / "store"), rows(1_000)
storage.start_run("run", config={"task": FRAME.to_config()})
writer = storage.open_run("run")
writer.store_dataset(item(n, row) for n, row in enumerate(many))
committed = 0
try:
    while True:
        writer.commit_results([call(committed, answered(many[committed], "x" * 20_000))])
        committed += 1
except StorageError as error:
    print(error)
print(committed, storage.reader("run").count_records()[0], len(list(storage.load_cached_records("run").values())))
try:
    ExperimentStorage(disk / "second").start_run("new")
except StorageError as error:
    print(error)
print(sorted(path.name for path in (disk / "second").iterdir()))
(disk / "ballast").unlink()
for n in range(committed, committed + 20):
    writer.commit_results([call(n, answered(many[n], "x" * 20_000))])
writer.close()
storage.close()
storage = ExperimentStorage(disk / "store")
print(storage.reader("run").count_records()[0] - committed, storage.validate_integrity("run")["errors"])
"""


def test_a_full_disk_stops_the_run_and_loses_nothing(tmp_path, in_own_mounts):
    disk = tmp_path / "disk"
    disk.mkdir()

    full, counts, also_full, leftovers, after = in_own_mounts(FULL_DISK, disk).splitlines()

    assert full == (
        f"the disk of {disk}/store/themis.db is full; everything committed so far is safe. Make room and try again"
    )
    committed, counted, read = counts.split()
    assert int(committed) > 10
    assert committed == counted == read
    assert f"{disk}/second" in also_full
    assert "full" in also_full
    assert leftovers == "[]"
    assert after == "20 []"


QUOTA = """
import resource, sys
from tests.storage.stored_runs import FRAME, answered, call, item, rows
from themis.config.specification import load_specification
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import ExperimentStorage

storage, many = ExperimentStorage(sys.argv[1]), rows(1_000)
storage.start_run("run", config={"task": FRAME.to_config()})
writer = storage.open_run("run")
writer.store_dataset(item(n, row) for n, row in enumerate(many))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
committed = 0
try:
    while True:
        writer.commit_results([call(committed, answered(many[committed], "x" * 20_000))])
        committed += 1
except StorageError as error:
    print(error)
print(committed, len(list(storage.load_cached_records("run").values())))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.commit_results([call(committed, answered(many[committed]))])
writer.close()
print(storage.reader("run").count_records()[0] - committed, storage.validate_integrity("run")["errors"])
"""


def test_a_used_up_quota_is_no_damage(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", QUOTA, str(tmp_path / "store")],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    failing, counts, after = done.stdout.splitlines()

    assert f"the disk of {tmp_path}/store/themis.db failed (disk I/O error: a quota that is used up" in failing
    committed, read = counts.split()
    assert int(committed) > 10
    assert committed == read
    assert after == "1 []"


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_a_postgresql_store_of_a_newer_version(empty_postgres):
    import psycopg

    ExperimentStorage(empty_postgres).start_run("run")
    with psycopg.connect(empty_postgres) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")

    with pytest.raises(StorageError, match=r"was written by a newer Themis \(store version 99"):
        ExperimentStorage(empty_postgres).list_runs()


@pytest.mark.postgres
def test_a_postgresql_database_of_another_program(empty_postgres):
    import psycopg

    with psycopg.connect(empty_postgres) as connection:
        connection.execute("CREATE TABLE runs (kilometres INTEGER)")

    with pytest.raises(
        StorageError, match=r"has tables of another program \(runs\); give the URL of an empty database"
    ):
        ExperimentStorage(empty_postgres).list_runs()
    with psycopg.connect(empty_postgres) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("runs",)]


@pytest.mark.postgres
def test_a_schema_of_its_own_keeps_a_store_apart_from_another_program(empty_postgres):
    import psycopg

    with psycopg.connect(empty_postgres) as connection:
        connection.execute("CREATE TABLE runs (kilometres INTEGER)")
        connection.execute("CREATE SCHEMA IF NOT EXISTS themis_apart")
    storage = ExperimentStorage(f"{empty_postgres}?options=-csearch_path%3Dthemis_apart")

    fill(storage, "run", 2)

    assert [run.run_id for run in storage.list_runs()] == ["run"]
    storage.close()
    with psycopg.connect(empty_postgres) as connection:
        connection.execute("DROP SCHEMA themis_apart CASCADE")
