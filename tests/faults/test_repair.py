"""Damaged stores: what can be read is given back, what is lost is told by run and position, and resuming asks for just that."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults import damage
from tests.faults.conftest import CommandLine, Fault
from tests.memory.small_tests import Diary, benchmark, rows_of
from tests.storage.stored_runs import FRAME, answered, call, fill, item, judged, rows
from tests.stories.endpoint import Endpoint
from themis.api import resume
from themis.config.specification import load_specification
from themis.core.entities import MetricScore
from themis.exceptions import ConfigurationError, RunBusyError, StorageError
from themis.memory.driver import run as run_memory
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.maintenance import Repair, repair_store
from themis.storage.salvage import spans

SAMPLES = 150
PROJECT = Path(__file__).parents[2]


@dataclass
class Whole:
    """A store before it is damaged: its file, and on which pages the answer of each run's position lies."""

    file: Path
    content: bytes
    pages: dict[tuple[str, int], set[int]]

    def readable(self, damaged: bytes) -> set[tuple[str, int]]:
        """Answers of which no byte was touched."""
        page = damage.PAGE
        touched = {
            number
            for number in range(len(self.content) // page)
            if self.content[number * page : (number + 1) * page] != damaged[number * page : (number + 1) * page]
        }
        return {place for place, pages in self.pages.items() if not pages & touched}


def answer_text(run_id: str, position: int) -> str:
    """Every piece of it says whose it is; every 25th is longer than a page."""
    return f"<{run_id}:{position}> some words. " * (400 if position % 25 == 0 else 12)


def write_run(storage: ExperimentStorage, run_id: str, count: int) -> None:
    # Older stores have another name for how a run was started.
    started_as = "invocation" if run_id == "two" else "specification"
    storage.start_run(run_id, config={"task": FRAME.to_config(), started_as: {"model": "fake/m", "dataset": None}})
    records = [answered(row, answer_text(run_id, n)) for n, row in enumerate(rows(count))]
    with storage.open_run(run_id) as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(rows(count)))
        evaluation = writer.open_evaluation("f" * 32, {})
        for start in range(0, count, 10):
            batch = range(start, start + 10)
            writer.commit_results([call(n, records[n]) for n in batch])
            found = [judged(n, records[n], MetricScore("ExactMatch", 1.0), MetricScore("Length", 2.0)) for n in batch]
            writer.commit_scores(evaluation, [verdict for verdicts in found for verdict in verdicts])
        writer.update(succeeded=count)
        writer.finish(RunStatus.COMPLETED, summary={"metrics": {}})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    root = tmp_path_factory.mktemp("whole")
    storage = ExperimentStorage(root)
    for run_id in ("one", "two"):
        write_run(storage, run_id, SAMPLES)
    storage.close()
    content = (root / "themis.db").read_bytes()
    pages: dict[tuple[str, int], set[int]] = defaultdict(set)
    for number in range(len(content) // damage.PAGE):
        found = set(re.findall(rb"<(one|two):(\d+)>", content[number * damage.PAGE : (number + 1) * damage.PAGE]))
        for run_id, position in found:
            pages[run_id.decode(), int(position)].add(number)
    assert len(pages) == 2 * SAMPLES
    return Whole(root / "themis.db", content, pages)


@pytest.fixture
def store(whole: Whole, tmp_path: Path) -> Path:
    """The folder of a copy that may be damaged."""
    (tmp_path / "store").mkdir()
    shutil.copy(whole.file, tmp_path / "store" / "themis.db")
    return tmp_path / "store"


def answers_in(file: Path) -> dict[tuple[str, int], str]:
    """(run, position) -> text of every stored answer, whether or not its question is still there."""
    with sqlite3.connect(file) as connection:
        found = connection.execute("SELECT run_id, position, body FROM records JOIN runs USING (run)").fetchall()
    connection.close()
    return {(run_id, position): json.loads(body)["text"] for run_id, position, body in found}


def original_names(root: Path) -> dict[str, str]:
    """What a run that lost its own row is called now -> what it was called: by what is in its answers."""
    names = {}
    for (run_id, _), text in answers_in(root / "themis.db").items():
        if (told := re.match(r"<(one|two):", text)) is not None:
            names.setdefault(run_id, told.group(1))
    return names


def hold_to_promises(whole: Whole, root: Path, repair: Repair, damaged: bytes) -> None:
    """What must be true after every repair, whatever the damage."""
    assert repair.kept.read_bytes() == damaged
    assert sorted(path.name for path in root.iterdir()) == sorted(["themis.db", repair.kept.name])
    names, storage = original_names(root), ExperimentStorage(root)
    given = {
        (names[run_id], n): text for (run_id, n), text in answers_in(root / "themis.db").items() if run_id in names
    }
    for run_id, position in whole.readable(damaged):
        assert given[run_id, position] == answer_text(run_id, position)
    told = {loss.run_id: loss for loss in repair.runs}
    with storage.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    for run in storage.list_runs():
        positions = {position for name, position in answers_in(root / "themis.db") if name == run.run_id}
        if run.status is RunStatus.COMPLETED:
            assert run.run_id not in told
            assert (len(positions), run.successful_generations, run.total_samples) == (SAMPLES,) * 3
            assert storage.reader(run.run_id).count_lost_rows() == 0
            continue
        loss = told[run.run_id]
        assert run.error_message == f"in the repair of a damaged store: {loss}"
        assert (run.summary, run.successful_generations) == ({}, len(positions))
        if not run.run_id.startswith("recovered-"):
            assert loss.answers == [n for n in range(run.total_samples) if n not in positions]
            assert len(loss.rows) == storage.reader(run.run_id).count_lost_rows()
        assert len(list(storage.load_cached_records(run.run_id).values())) <= len(positions)
        list(storage.load_cached_evaluations(run.run_id).values())
    assert repair.is_complete is not bool(told or any(repair.broken.values()) or repair.altered)
    storage.close()


CASES = [(kind, seed) for kind, (_, times) in damage.KINDS.items() for seed in range(times)]


def test_there_are_64_cases_of_damage():
    assert len(CASES) == 64


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_a_damaged_store_gives_back_every_record_that_can_be_read(whole, store, kind, seed):
    file = store / "themis.db"
    damage.apply(damage.KINDS[kind][0], file, seed)
    damaged = file.read_bytes()

    repair = repair_store(store)

    hold_to_promises(whole, store, repair, damaged)


def test_a_store_without_damage_is_saved_whole(whole, store):
    repair = repair_store(store)

    assert repair.is_complete
    assert repair.rows == {
        "runs": 2,
        "items": SAMPLES,
        "samples": 2 * SAMPLES,
        "records": 2 * SAMPLES,
        "evaluations": 2,
        "scores": 4 * SAMPLES,
        "turns": 0,
        "steps": 0,
        "batches": 0,
        "attachments": 0,
        "artifacts": 0,
        "judgements": 0,
        "definitions": 0,
    }
    with sqlite3.connect(store / "themis.db") as new, sqlite3.connect(whole.file) as old:
        for table in ("runs", "items", "samples", "records", "evaluations", "scores"):
            query = f"SELECT * FROM {table} ORDER BY 1, 2"
            assert sorted(new.execute(query).fetchall()) == sorted(old.execute(query).fetchall())
    new.close()
    old.close()


@pytest.mark.parametrize("how", ["empty", "random", "zeros", "cut in its header"])
def test_a_file_of_which_nothing_can_be_read_stays_as_it_is(store, how):
    file = store / "themis.db"
    contents = {"empty": b"", "random": random.Random(1).randbytes(50_000), "zeros": bytes(50_000)}
    content = contents.get(how, file.read_bytes()[:60])
    file.write_bytes(content)

    with pytest.raises(
        StorageError, match=r"nothing of .*themis\.db can be read; it was left as it is\. Restore a backup"
    ):
        repair_store(store)
    assert [path.name for path in store.iterdir()] == ["themis.db"]
    assert file.read_bytes() == content


def test_runs_of_an_older_store_can_be_resumed_after_its_repair(store):
    with sqlite3.connect(store / "themis.db") as older:
        older.execute("PRAGMA user_version = 6")
    older.close()

    repair_store(store)

    storage = ExperimentStorage(store)
    assert load_specification(storage.get_run("two")).model == "fake/m"
    storage.close()


def test_a_deleted_run_does_not_come_back(store):
    storage = ExperimentStorage(store)
    storage.delete_run("one")
    storage.close()
    damage.apply(damage.zero_page, store / "themis.db", 5)

    repair_store(store)

    assert {run.run_id for run in ExperimentStorage(store).list_runs()} == {"two"}


def test_a_store_that_was_brought_up_to_date_is_read_in_its_own_order_of_columns(store):
    """Columns that were added to an older store stand at the end of its rows."""
    with sqlite3.connect(store / "themis.db") as older:
        for column in ("cut_off", "unpriced_judge_calls"):
            older.execute(f"ALTER TABLE runs DROP COLUMN {column}")
        for column in ("unpriced_judge_calls", "cut_off"):
            older.execute(f"ALTER TABLE runs ADD COLUMN {column} BIGINT NOT NULL DEFAULT 0")
        older.execute("UPDATE runs SET cut_off = 4, seconds = 2.5")
    older.close()
    damage.apply(damage.random_first_page, store / "themis.db", 1)

    repair_store(store)

    storage = ExperimentStorage(store)
    assert [(run.run_id, run.cut_off, run.seconds) for run in storage.list_runs()] == [("two", 4, 2.5), ("one", 4, 2.5)]
    storage.close()


def test_text_that_cannot_be_decoded_is_kept_and_marked(store):
    file = store / "themis.db"
    content = file.read_bytes()
    assert content.count(b"<two:7> some words.") == 12
    file.write_bytes(content.replace(b"<two:7> some words.", b"<two:7> some\xb1words.", 1))

    repair = repair_store(store)

    assert repair.altered == ["records: run 2, position 7, attempt 0: body"]
    assert "<two:7> some\N{REPLACEMENT CHARACTER}words." in answers_in(file)["two", 7]


def test_a_run_being_written_is_not_repaired_under_its_writer(store):
    storage = ExperimentStorage(store)
    with storage.open_run("one"), pytest.raises(RunBusyError, match=f"process {os.getpid()}.*stop it first"):
        repair_store(store)
    assert not list(store.glob(".*repaired*"))
    storage.close()


# --- the log ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def with_log(tmp_path: Path) -> Path:
    """A store as a killed process leaves it: its last commits are only in the log."""
    storage = ExperimentStorage(tmp_path / "store")
    fill(storage, "early", 40)
    storage.close()
    subprocess.run([sys.executable, "-c", KILLED_WRITER, str(tmp_path / "store")], cwd=PROJECT, check=False)
    assert (tmp_path / "store" / "themis.db-wal").stat().st_size > 0
    return tmp_path / "store"


KILLED_WRITER = """
import os, signal, sys
from tests.faults.test_repair import write_run
from themis.storage import ExperimentStorage

storage = ExperimentStorage(sys.argv[1])
write_run(storage, "late", 40)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_only_in_the_log_is_saved(with_log):
    repair = repair_store(with_log)

    assert repair.is_complete
    assert repair.rows["records"] == 80
    assert Path(f"{repair.kept}-wal").exists()
    assert not (with_log / "themis.db-wal").exists()


def test_a_log_that_was_cut_gives_back_its_whole_commits(with_log):
    log = with_log / "themis.db-wal"
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3])

    repair = repair_store(with_log)

    assert 40 < repair.rows["records"] < 80
    assert {run.run_id for run in ExperimentStorage(with_log).list_runs()} == {"early", "late"}


def test_what_lies_behind_a_broken_place_of_the_log_is_saved_too(with_log):
    log = with_log / "themis.db-wal"
    content = bytearray(log.read_bytes())
    content[32 + 24 + 10 * (24 + damage.PAGE) + 2_000] ^= 0xFF
    log.write_bytes(content)
    shutil.copytree(with_log, with_log.with_name("broken"))
    with sqlite3.connect(with_log / "themis.db") as connection:
        (found_by_sqlite,) = connection.execute("SELECT count(*) FROM records").fetchone()
    connection.close()
    shutil.rmtree(with_log)
    shutil.copytree(with_log.with_name("broken"), with_log)

    # All but what is on the broken page.
    assert repair_store(with_log).rows["records"] >= 78 > found_by_sqlite


# --- a repair that is killed ------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from themis.storage.maintenance import repair_store

owner, name, calls = {"os": os, "Path": Path}[sys.argv[2]], sys.argv[3], int(sys.argv[4])
real = getattr(owner, name)

def killing(*arguments, **options):
    global calls
    calls -= 1
    if calls < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)

setattr(owner, name, killing)
repair_store(sys.argv[1])
"""


@pytest.mark.parametrize(("owner", "name", "calls"), [("os", "link", 1), ("os", "link", 2), ("Path", "replace", 0)])
def test_a_repair_killed_at_any_moment_is_made_good_by_the_next(with_log, owner, name, calls):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(with_log), owner, name, str(calls)], cwd=PROJECT, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert list(with_log.glob(".themis-repaired-*.db"))

    repair = repair_store(with_log)

    assert repair.rows["records"] == 80
    assert not list(with_log.glob(".*repaired*"))
    assert (repair.kept.exists(), Path(f"{repair.kept}-wal").exists()) == (True, True)


# --- through the command line -----------------------------------------------------------------------------------------


def ask(themis: CommandLine, tmp_path: Path, endpoint: Endpoint, count: int = 200) -> dict[str, str]:
    """A finished run of so many questions in ./store; the environment that it was made in."""
    lines = [json.dumps({"id": str(n), "question": f"say {n}", "answer": str(n)}) for n in range(count)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    there = {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "sk-none", "THEMIS_STORAGE": "store"}
    words = ("--prompt", "{question}", "--metric", "exact_match", "--run-id", "run")
    made = themis("eval", "rows.jsonl", "-m", "openai/good", *words, **there)
    assert made.returncode == 0, made.stderr
    endpoint.calls.clear()
    return there


def lose_answers(file: Path, low: int, high: int) -> None:
    """Overwrites the pages on which these answers lie, as a bad sector does."""
    content = bytearray(file.read_bytes())
    marks = [f'"prompt":"say {n}"'.encode() for n in range(low, high)]
    for page in {content.index(mark) // damage.PAGE for mark in marks}:
        content[page * damage.PAGE : (page + 1) * damage.PAGE] = bytes(damage.PAGE)
    file.write_bytes(content)


@pytest.mark.fault(
    area="Storage",
    wrong="Pages of the SQLite file are damaged or cut off",
    does="`themis store repair` saves every record that can be read and lists the rest; `themis resume` asks for just that",
    status="interrupted",
    exit_code=1,
)
def test_what_a_repair_lost_is_asked_again_and_nothing_else(themis, tmp_path, endpoint, fault: Fault):
    there = ask(themis, tmp_path, endpoint)
    lose_answers(tmp_path / "store" / "themis.db", 100, 103)

    repaired = themis("store", "repair", "--json", **there)

    assert repaired.returncode == fault.exit_code, repaired.stderr
    (lost,) = json.loads(repaired.stdout)["runs"]
    assert (lost["run_id"], lost["rows"]) == ("run", [])
    assert {100, 101, 102} <= set(lost["answers"])
    shown = json.loads(themis("show", "run", "--json", **there).stdout)
    assert shown["status"] == fault.status
    assert f"{len(lost['answers'])} answers lost (positions {spans(lost['answers'])})" in shown["error"]
    assert shown["metrics"]["ExactMatch"]["count"] == 200 - len(lost["answers"])

    resumed = themis("resume", "run", **there)
    assert resumed.returncode == 0, resumed.stderr
    assert endpoint.calls == {f"say {n}": 1 for n in lost["answers"]}
    run = ExperimentStorage(tmp_path / "store").get_run("run")
    assert (run.status, run.summary["metrics"]["ExactMatch"]["count"]) == (RunStatus.COMPLETED, 200)


@pytest.mark.fault(
    area="Storage",
    wrong="Nothing of a damaged SQLite file can be read",
    does="`themis store repair` says so and leaves the file as it is",
    status="–",
    exit_code=3,
)
def test_a_repair_that_saves_nothing_says_so(themis, tmp_path, fault: Fault):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "themis.db").write_bytes(random.Random(3).randbytes(40_000))

    said = themis("store", "repair", "--storage", "store")

    assert (said.returncode, said.stdout) == (fault.exit_code, "")
    assert "Error: nothing of store/themis.db can be read; it was left as it is. Restore a backup" in said.stderr


def test_rows_of_the_dataset_that_were_lost_come_back_from_their_file(themis, tmp_path, endpoint):
    there = ask(themis, tmp_path, endpoint, 60)
    storage = ExperimentStorage(tmp_path / "store")
    with storage.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM samples WHERE position BETWEEN 10 AND 14")
        connection.exec_driver_sql("DELETE FROM items WHERE fingerprint NOT IN (SELECT fingerprint FROM samples)")
    storage.close()

    said = themis("store", "repair", **there)

    assert said.returncode == 1
    assert "run 'run': 5 rows of the dataset lost (positions 10-14). Run what made it again" in said.stdout
    assert "`themis resume run --storage store` does that" in said.stdout
    resumed = themis("resume", "run", **there)
    assert resumed.returncode == 0, resumed.stderr
    assert sum(endpoint.calls.values()) == 0
    storage = ExperimentStorage(tmp_path / "store")
    assert storage.validate_integrity("run")["errors"] == []
    assert len(list(storage.load_cached_records("run").values())) == 60


def test_rows_that_came_from_python_are_told_to_come_from_there(store):
    storage = ExperimentStorage(store)
    with storage.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM samples WHERE run = 1 AND position = 3")
    storage.close()
    repair_store(store)

    with pytest.raises(ConfigurationError, match=r"'one' has lost 1 rows .* run that program again"):
        resume("one", storage=store)


# --- conversations ----------------------------------------------------------------------------------------------------


def play(root: Path, **changed: object) -> ExperimentStorage:
    storage = ExperimentStorage(root)
    run_memory(benchmark(agent_name="diary", make_agent=lambda session: Diary(), **changed), storage)
    return storage


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("gap", [(20, 24), (0, 1), (41, 41)])
def test_a_conversation_with_a_gap_goes_on_from_before_it_and_ends_the_same(tmp_path, isolated, gap):
    storage = play(tmp_path / "store", isolated=isolated)
    before = (rows_of(storage), {name: record.output for name, record in storage.load_cached_records("r").items()})
    with storage.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM turns WHERE seq BETWEEN ? AND ?", gap)
    storage.close()

    (lost,) = repair_store(tmp_path / "store").runs

    storage = ExperimentStorage(tmp_path / "store")
    kept = sum(1 for _ in storage.reader("r").turns())
    assert (lost.turns, lost.turns_kept) == (len(before[0]) - kept, kept)
    assert "goes on from the last exchange before the gap" in lost.advice
    assert storage.get_run("r").status is RunStatus.INTERRUPTED
    storage.close()
    storage = play(tmp_path / "store", isolated=isolated)
    assert storage.get_run("r").status is RunStatus.COMPLETED
    after = (rows_of(storage), {name: record.output for name, record in storage.load_cached_records("r").items()})
    if isolated:
        assert after[1] == before[1]
    else:
        assert after == before
    storage.close()


def test_tests_whose_records_were_lost_are_entered_again_from_the_conversation(tmp_path):
    storage = play(tmp_path / "store")
    before = rows_of(storage), len(storage.load_cached_records("r"))
    with storage.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM records WHERE position = 1")
        connection.exec_driver_sql("DELETE FROM scores WHERE position = 2 AND metric = 'memory'")
    storage.close()

    (lost,) = repair_store(tmp_path / "store").runs

    assert (lost.answers, lost.turns) == ([1, 2], 0)
    assert "restores it from the stored conversation" in lost.advice
    storage = play(tmp_path / "store")
    assert (rows_of(storage), len(storage.load_cached_records("r"))) == before
    storage.close()
