"""One writer a run: shown with real processes, killed, stopped and side by side."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.storage.stored_runs import FRAME, answered, call, fill, item, rows
from tests.waiting import wait_until
from themis.exceptions import RunBusyError, StorageError
from themis.storage import ExperimentStorage, RetentionPolicy, RunStatus, schema, writing
from themis.storage.writing import holder_is_dead

PROJECT = Path(__file__).parents[2]


class Writer:
    """Another process that writes; `says()` is its next line."""

    def __init__(self, location: str, run_id: str, mode: str, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.writing_process", location, run_id, mode, *options],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def says(self) -> str:
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def writer(storage: ExperimentStorage) -> Iterator:
    started: list[Writer] = []

    def start(run_id: str, mode: str, *options: str) -> Writer:
        started.append(Writer(str(storage.location), run_id, mode, *options))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.process.stdin.close()
        one.process.stdout.close()


def test_a_second_process_is_told_who_writes_the_run(storage, writer):
    storage.start_run("run", config={"task": FRAME.to_config()})
    holder = writer("run", "hold")
    assert holder.says() == "holding"

    expected = f"'run' is being written by process {holder.process.pid} on {socket.gethostname()}"
    with pytest.raises(RunBusyError, match=f"{expected}; wait for it, stop it, or use another run id"):
        storage.open_run("run")
    with pytest.raises(RunBusyError, match=f"{expected}; stop it first"):
        storage.delete_run("run")
    with pytest.raises(RunBusyError, match=expected):
        storage.archive_run("run")
    assert storage.get_run("run").writer == f"process {holder.process.pid} on {socket.gethostname()}"

    holder.go_on()
    assert holder.says() == "committed"
    holder.process.wait()
    assert storage.get_run("run").writer is None
    storage.open_run("run").close()


def test_a_run_being_written_is_never_removed_by_retention(storage, writer):
    storage.start_run("held")
    fill(storage, "done", 1)
    holder = writer("held", "hold")
    assert holder.says() == "holding"

    gone = storage.apply_retention_policy(RetentionPolicy(keep_latest_n=0, max_age_days=0, keep_completed_only=False))

    assert (gone, [run.run_id for run in storage.list_runs()]) == (["done"], ["held"])


def test_a_killed_writer_is_replaced_at_once(storage, writer):
    holder = writer("run", "hold")
    assert holder.says() == "holding"
    holder.kill()

    with storage.open_run("run") as mine:
        mine.update(error="written by the heir")

    assert storage.get_run("run").error_message == "written by the heir"


def test_a_writer_that_slept_through_its_lease_loses_the_run_and_stops(storage, writer, monkeypatch):
    monkeypatch.setattr(writing, "LEASE_SECONDS", 1.0)
    holder = writer("run", "hold", "1.0")
    assert holder.says() == "holding"
    holder.signal(signal.SIGSTOP)

    heir = _open_when_free(storage, "run")
    heir.update(error="written by the heir")
    holder.signal(signal.SIGCONT)
    holder.go_on()

    assert (
        holder.says() == "RunBusyError: run 'run' was taken over by another process, or deleted; this one stops writing"
    )
    heir.close()
    assert storage.get_run("run").error_message == "written by the heir"


def test_a_writer_that_has_nothing_to_say_renews_its_lease(storage, writer):
    holder = writer("run", "hold", "2.0")
    assert holder.says() == "holding"

    first = _lease_until(storage)
    while _lease_until(storage) <= first:
        assert holder.process.poll() is None
        time.sleep(0.05)


def test_two_writers_in_one_process_exclude_each_other_too(storage):
    storage.start_run("run")
    with storage.open_run("run"), pytest.raises(RunBusyError, match=f"process {os.getpid()}"):
        storage.open_run("run")
    storage.open_run("run").close()


def test_the_lease_of_another_machine_is_believed_until_it_lapses(storage):
    storage.start_run("run")
    first = storage.open_run("run")
    first.close()
    _set_lease(storage, "elsewhere:1:2:abcd", time.time() + 600)
    with pytest.raises(RunBusyError, match="process 1 on elsewhere"):
        storage.open_run("run")

    _set_lease(storage, "elsewhere:1:2:abcd", time.time() - 1)

    assert storage.get_run("run").writer is None
    storage.open_run("run").close()


def test_a_process_number_given_to_another_process_is_not_taken_for_the_writer(storage):
    storage.start_run("run")
    # Our own number, but begun at another time: the writer of that name is gone.
    _set_lease(storage, f"{socket.gethostname()}:{os.getpid()}:1:abcd", time.time() + 600)

    storage.open_run("run").close()


def test_a_writer_is_gone_only_when_this_machine_knows_it():
    assert not holder_is_dead("elsewhere:999999999:1:abcd")
    assert not holder_is_dead(f"{socket.gethostname()}:{os.getpid()}::abcd")
    assert holder_is_dead(f"{socket.gethostname()}:999999999:1:abcd")


def test_a_writer_that_was_killed_is_gone_before_its_parent_has_heard_of_it():
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; from themis.storage.database import process_start\n"
            "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
            "print(child.pid, process_start(child.pid), flush=True); input(); child.kill(); print(flush=True); input()",
        ],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pid, start = parent.stdout.readline().split()
        holder = f"{socket.gethostname()}:{pid}:{start}:abcd"
        assert not holder_is_dead(holder)
        parent.stdin.write("\n")
        parent.stdin.flush()
        parent.stdout.readline()
        wait_until(lambda: holder_is_dead(holder))
        os.kill(int(pid), 0)  # its parent has not asked for it: the number is still taken
    finally:
        parent.kill()
        parent.communicate()


def test_a_deleted_run_is_not_written_to(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    writer = storage.open_run("run")
    writer.store_dataset(item(n, row) for n, row in enumerate(rows(2)))
    _set_lease(storage, None, None)
    storage.delete_run("run")

    with pytest.raises(RunBusyError, match="taken over by another process, or deleted"):
        writer.commit_results([call(0, answered(rows(1)[0]))])
    writer.close()
    assert storage.run_sizes() == {}


def test_two_processes_write_different_runs_of_one_store(storage, writer):
    one, two = writer("one", "all"), writer("two", "all")

    assert (one.process.wait(120), two.process.wait(120)) == (0, 0)

    for run_id in ("one", "two"):
        assert storage.get_run(run_id).status == RunStatus.COMPLETED
        assert storage.reader(run_id).count_records() == (210, 0)
        assert storage.validate_integrity(run_id)["errors"] == []


@pytest.mark.parametrize("batches_before", [0, 1, 3, 8])
def test_a_process_killed_while_it_writes_loses_nothing_that_was_committed(storage, writer, batches_before):
    """The moment is that of a line on its way, wherever the writer then is in its next batch."""
    victim = writer("run", "batches")
    told = -1
    while told < batches_before * 7:
        told = int(victim.says())
    time.sleep(0.002 * batches_before)
    victim.kill()

    reader = storage.reader("run")
    good, bad = reader.count_records()

    assert (good >= told, good % 7, bad) == (True, 0, 0)
    assert storage.get_run("run").prompt_tokens == good
    assert [position for position, _ in reader.records()] == list(range(good))
    if (evaluation := storage.reader("run").evaluation) is not None:
        assert told <= reader.count_evaluated(evaluation) <= good
    assert storage.validate_integrity("run")["errors"] == []
    with storage.open_run("run") as heir:
        heir.update(error="goes on")


# --- clocks ----------------------------------------------------------------------------------------------------------

# A process of another machine, as far as it can tell, whose clock is wrong by so many seconds.
ELSEWHERE = """
import socket, sys, time
import time_machine

location, run_id, shift, mode = sys.argv[1:]
socket.gethostname = lambda: "elsewhere"
with time_machine.travel(time.time() + float(shift)):
    from themis.exceptions import RunBusyError
    from themis.storage import ExperimentStorage, writing

    writing.LEASE_SECONDS = 3.0
    try:
        writer = ExperimentStorage(location).open_run(run_id)
    except RunBusyError as error:
        print(f"refused: {error}", flush=True)
    else:
        print("took it", flush=True)
        if mode == "hold":
            sys.stdin.readline()
        writer.close()
"""


def _elsewhere(storage: ExperimentStorage, shift: int, mode: str = "take") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE, str(storage.location), "run", str(shift), mode],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("shift", [90, -90, 86_400])
def test_a_machine_with_a_wrong_clock_cannot_take_a_live_run(storage, shift):
    storage.start_run("run")
    with storage.open_run("run"):
        said, _ = _elsewhere(storage, shift).communicate(timeout=300)

    assert said.startswith(f"refused: run 'run' is being written by process {os.getpid()}")


@pytest.mark.parametrize("shift", [3_600, -3_600])
def test_the_lease_of_a_machine_with_a_wrong_clock_holds_while_it_lives_and_lapses_on_time(storage, shift):
    storage.start_run("run")
    holder = _elsewhere(storage, shift, "hold")
    assert holder.stdout.readline() == "took it\n"

    with pytest.raises(RunBusyError, match=r"process .* on elsewhere.* its hold ends in [0-3] s"):
        storage.open_run("run")
    assert storage.get_run("run").writer is not None
    holder.kill()
    holder.communicate()
    began = time.monotonic()
    _open_when_free(storage, "run").close()
    assert time.monotonic() - began < 60


def _open_when_free(storage, run_id):
    while True:
        try:
            return storage.open_run(run_id)
        except RunBusyError:
            time.sleep(0.05)


def _lease_until(storage: ExperimentStorage) -> float:
    with storage.engine.connect() as connection:
        return connection.execute(sa.select(schema.runs.c.lease_until)).scalar_one()


def _set_lease(storage: ExperimentStorage, holder: str | None, until: float | None) -> None:
    with storage.engine.begin() as connection:
        connection.execute(sa.update(schema.runs).values(lease_holder=holder, lease_until=until))


def test_a_store_that_cannot_be_reached_says_so_without_its_password():
    storage = ExperimentStorage("postgresql://ada:hunter2@127.0.0.1:1/runs")

    with pytest.raises(StorageError, match=r"postgresql://ada:\[redacted\]@127.0.0.1:1/runs refused: .*themis doctor"):
        storage.list_runs()
