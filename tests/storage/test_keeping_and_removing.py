"""Deleting, archiving and retention: what is promised to stay stays, what goes leaves nothing behind."""

import datetime
import threading

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.stored_runs import FRAME, answered, call, failed, fill, item, rows
from themis.exceptions import StorageError
from themis.storage import ExperimentStorage, RetentionPolicy, RunMetadata, RunStatus, schema
from themis.storage.maintenance import check_store, copy_store
from themis.storage.runs import Turn
from themis.storage.store import expired

NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
GIB = 1024**3


def count_rows(storage: ExperimentStorage) -> dict[str, int]:
    with storage.engine.connect() as connection:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in schema.metadata.sorted_tables
            if table is not schema.meta
        }


# --- deleting ---------------------------------------------------------------------------------------------------------


def test_a_deleted_run_leaves_nothing_behind(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(storage, "run", 5)
    with storage.open_run("run") as writer:
        writer.append_turns([Turn(0, "say", None, "{}")])
        writer.save_artifact("page.html", b"x", "text/html")
    folder = storage.get_run_path("run")

    storage.delete_run("run")

    assert set(count_rows(storage).values()) == {0}
    assert not folder.exists()
    assert not storage.run_exists("run")
    storage.start_run("run")


def test_what_two_runs_share_stays_until_the_second_is_deleted(storage):
    fill(storage, "one", 5)
    fill(storage, "two", 8)
    assert count_rows(storage)["items"] == 8

    storage.delete_run("one")

    assert list(storage.load_dataset("two")) == rows(8)
    assert len(list(storage.load_cached_records("two").values())) == 8
    assert storage.validate_integrity("two")["errors"] == []
    storage.delete_run("two")
    assert count_rows(storage)["items"] == 0


@pytest.mark.postgres
def test_a_run_deleted_while_another_is_planned_takes_none_of_its_rows(empty_postgres):
    """PostgreSQL lets both write at once: the plan finds the item stored, the deletion finds it unused."""
    storage = ExperimentStorage(empty_postgres)
    fill(storage, "old", 3)
    storage.start_run("new")
    writer = storage.open_run("new")
    items = [item(n, row) for n, row in enumerate(rows(3))]
    with storage.engine.connect() as half_way:
        writer._insert_items(half_way, items)
        deleting = threading.Thread(target=storage.delete_run, args=("old",))
        deleting.start()
        deleting.join(0.5)
        half_way.commit()
        deleting.join()
    writer.close()

    assert list(storage.load_dataset("new")) == rows(3)
    storage.close()


def test_deleting_what_is_not_there_is_an_error(storage):
    with pytest.raises(StorageError, match="no run 'none'"):
        storage.delete_run("none")


# --- archiving --------------------------------------------------------------------------------------------------------


def test_an_archived_run_keeps_everything_under_another_name(storage):
    fill(storage, "run", 2)

    assert storage.archive_run("run") == "run@1"

    assert [run.run_id for run in storage.list_runs()] == ["run@1"]
    assert len(list(storage.load_cached_records("run@1").values())) == 2
    storage.start_run("run")
    assert storage.archive_run("run") == "run@2"
    assert len(storage.archived_versions("run")) == 2


def test_a_name_archived_in_between_is_taken_again(storage):
    for _ in range(3):
        storage.start_run("run")
        storage.archive_run("run")
    storage.delete_run("run@2")
    storage.start_run("run")

    assert storage.archive_run("run") == "run@2"


@pytest.mark.parametrize(
    ("name", "similar"), [("my_run", "my-run"), ("100%", "100 percent"), ("run", "RUN"), ("a", "ab")]
)
def test_generations_of_a_similar_name_are_not_mixed_up(storage, name, similar):
    for run_id in (name, similar):
        storage.start_run(run_id)
        storage.archive_run(run_id)

    assert len(storage.archived_versions(name)) == len(storage.archived_versions(similar)) == 1
    assert storage.archived_versions(name) != storage.archived_versions(similar)


def test_folders_of_archived_runs_are_their_own(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage.start_run("run")
    storage.archive_run("run")
    storage.start_run("run~1")

    assert storage.get_run_path("run@1") != storage.get_run_path("run~1")


# --- retention --------------------------------------------------------------------------------------------------------

AGES = st.integers(0, 10_000).map(lambda hours: hours / 24)
RUNS = st.lists(
    st.tuples(
        st.sampled_from(["alpha", "beta"]),
        AGES,
        st.sampled_from(list(RunStatus)),
        st.sampled_from([None, None, "process 1 on host"]),
        st.integers(0, 3 * GIB),
    ),
    max_size=12,
    unique_by=lambda run: run[1],
)
POLICIES = st.builds(
    RetentionPolicy,
    max_runs_per_experiment=st.none() | st.integers(0, 6),
    max_age_days=st.none() | AGES,
    max_storage_gb=st.none() | st.floats(0, 12),
    keep_completed_only=st.booleans(),
    keep_latest_n=st.integers(0, 6),
)


def listed(drawn) -> tuple[list[RunMetadata], dict[str, int]]:
    runs = [
        RunMetadata(
            run_id=f"run-{n}",
            experiment=experiment,
            status=status,
            created_at=NOW - datetime.timedelta(days=age),
            updated_at=NOW,
            writer=writer,
        )
        for n, (experiment, age, status, writer, _) in enumerate(drawn)
    ]
    return runs, {f"run-{n}": size for n, (*_, size) in enumerate(drawn)}


@given(RUNS, POLICIES)
def test_retention_never_removes_what_it_promised_to_keep(drawn, policy):
    runs, sizes = listed(drawn)
    gone = expired(runs, sizes, policy, NOW)
    removed = [run for run in runs if run.run_id in gone]

    assert len(set(gone)) == len(gone)
    assert all(run.writer is None for run in removed)
    for experiment in {run.experiment for run in runs}:
        newest = sorted((run for run in runs if run.experiment == experiment), key=lambda run: run.created_at)
        promised = newest[len(newest) - min(policy.keep_latest_n, len(newest)) :]
        assert not {run.run_id for run in promised} & set(gone)
    if policy.max_storage_gb is None:
        for run in removed:
            too_old = policy.max_age_days is not None and NOW - run.created_at > datetime.timedelta(policy.max_age_days)
            unfinished = policy.keep_completed_only and run.status is not RunStatus.COMPLETED
            assert too_old or unfinished or policy.max_runs_per_experiment is not None


@given(RUNS, POLICIES)
def test_what_retention_leaves_fits_as_far_as_it_may_remove(drawn, policy):
    runs, sizes = listed(drawn)
    gone = set(expired(runs, sizes, policy, NOW))
    rank: dict[str, int] = {}
    for run in sorted(runs, key=lambda run: run.created_at, reverse=True):
        index = rank.setdefault(run.experiment, 0)
        rank[run.experiment] += 1
        free = index >= policy.keep_latest_n and run.writer is None
        if policy.max_runs_per_experiment is not None and index >= policy.max_runs_per_experiment and free:
            assert run.run_id in gone
        if policy.keep_completed_only and run.status is not RunStatus.COMPLETED and free:
            assert run.run_id in gone
    left = sum(size for run_id, size in sizes.items() if run_id not in gone)
    if policy.max_storage_gb is not None and left > policy.max_storage_gb * GIB:
        ranked = sorted(runs, key=lambda run: run.created_at, reverse=True)
        places = {e: [run.run_id for run in ranked if run.experiment == e] for e in ("alpha", "beta")}
        for run in runs:
            if run.run_id not in gone and run.writer is None:
                assert places[run.experiment].index(run.run_id) < policy.keep_latest_n


@given(RUNS, POLICIES)
def test_a_second_application_finds_nothing_more(drawn, policy):
    runs, sizes = listed(drawn)
    gone = set(expired(runs, sizes, policy, NOW))

    assert expired([run for run in runs if run.run_id not in gone], sizes, policy, NOW) == []


def test_the_oldest_go_first_until_the_rest_fits():
    drawn = [("alpha", float(n), RunStatus.COMPLETED, None, GIB) for n in range(6)]
    runs, sizes = listed(drawn)

    gone = expired(runs, sizes, RetentionPolicy(max_storage_gb=2.5, keep_latest_n=1), NOW)

    assert gone == ["run-5", "run-4", "run-3", "run-2"]


def test_the_default_policy_keeps_the_newest_five_and_all_that_are_complete(storage):
    for n in range(9):
        storage.start_run(f"run-{n}")
        if n in (0, 2, 8):
            storage.complete_run(f"run-{n}")

    would_go = storage.apply_retention_policy(dry_run=True)
    assert len(storage.list_runs()) == 9
    gone = storage.apply_retention_policy()

    assert gone == would_go == ["run-1", "run-3"]
    assert len(storage.list_runs()) == 7


def test_what_is_kept_is_counted_for_every_experiment_by_itself(storage):
    for n in range(6):
        storage.start_run(f"run-{n}", experiment="even" if n % 2 == 0 else "odd")
        storage.complete_run(f"run-{n}")
    policy = RetentionPolicy(max_runs_per_experiment=1, keep_latest_n=1)

    of_one = storage.apply_retention_policy(policy, experiment="even", dry_run=True)
    gone = storage.apply_retention_policy(policy)

    assert of_one == ["run-0", "run-2"]
    assert gone == ["run-0", "run-1", "run-2", "run-3"]


def test_definitions_are_checked_and_copied_with_the_runs(storage, tmp_path):
    storage.store_definitions("quick", '[{"kind":"old"}]', configuration="c")
    storage.store_definitions("quick", '[{"kind":"new"}]', configuration="c")
    target = ExperimentStorage(tmp_path / "copy")

    copy_store(storage, target)

    assert [one.content for one in target.list_definitions("quick")] == ['[{"kind":"new"}]', '[{"kind":"old"}]']
    assert target.list_definitions() == storage.list_definitions()
    assert check_store(target).problems == []
    with target.engine.begin() as connection:
        connection.execute(sa.update(schema.definitions).where(schema.definitions.c.version == 2).values(content="[]"))
    assert check_store(target).problems == ["version 2 of the definitions 'quick' is not what was stored"]
    target.close()


def test_records_count_towards_the_size(storage):
    for n, letter in enumerate(("x", "é", "x")):
        run_id = f"run-{n}"
        storage.start_run(run_id, config={"task": FRAME.to_config()})
        with storage.open_run(run_id) as writer:
            writer.store_dataset([item(0, rows(1)[0])])
            writer.commit_results([call(0, answered(rows(1)[0], letter * 1_000_000))])
            writer.finish(RunStatus.COMPLETED)
    sizes = storage.run_sizes()
    assert 1_000_000 < sizes["run-0"] < 1_001_000
    assert 2_000_000 < sizes["run-1"] < 2_001_000
    assert storage.get_storage_size("default") == sum(sizes.values())
    assert storage.get_storage_size("none") == 0
    assert storage.get_storage_size() > 1_000_000

    gone = storage.apply_retention_policy(RetentionPolicy(max_storage_gb=3.5e6 / GIB, keep_latest_n=0))

    assert gone == ["run-0"]


def test_a_run_taken_since_the_list_was_made_is_left_alone(storage, monkeypatch):
    for n in range(3):
        fill(storage, f"run-{n}", 1)
    with storage.open_run("run-1"):
        # As if it had been taken a moment later.
        stale = [msgspec.structs.replace(run, writer=None) for run in storage.list_runs()]
        monkeypatch.setattr(storage, "list_runs", lambda experiment: stale)
        gone = storage.apply_retention_policy(RetentionPolicy(keep_latest_n=0, max_age_days=0))

    assert gone == ["run-0", "run-2"]


def test_a_policy_shows_what_it_says():
    assert repr(RetentionPolicy(max_age_days=30)) == (
        "RetentionPolicy(max_runs_per_experiment=None, max_age_days=30, max_storage_gb=None, keep_completed_only=True, "
        "keep_latest_n=5)"
    )


# --- integrity --------------------------------------------------------------------------------------------------------


def test_a_whole_run_is_valid(storage):
    fill(storage, "run", 4, manifest_hash="0" * 64)

    assert storage.validate_integrity("run") == {"run_id": "run", "valid": True, "errors": [], "warnings": []}


def test_what_is_missing_but_can_be_made_is_a_warning(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(rows(4)))
        writer.commit_results([call(0, answered(rows(4)[0])), call(1, failed(rows(4)[1]))])

    found = storage.validate_integrity("run")

    assert (found["valid"], found["errors"]) == (True, [])
    assert found["warnings"] == [
        "2 samples have no record yet",
        "1 samples failed; resume to try them again",
        "the run has no reproducibility manifest",
    ]


def test_what_is_lost_is_an_error(storage):
    fill(storage, "run", 600)
    records, items, samples = schema.records, schema.items, schema.samples
    with storage.engine.begin() as connection:
        connection.execute(sa.update(records).where(records.c.position == 555).values(body='{"cut'))
        connection.execute(sa.delete(samples).where(samples.c.position == 7))
        connection.execute(sa.delete(items).where(items.c.fingerprint == item(8, rows(9)[8]).fingerprint))

    found = storage.validate_integrity("run")

    assert found["valid"] is False
    assert found["errors"][:2] == ["600 samples were planned but 599 are stored", "1 samples have lost their content"]
    assert found["errors"][2] == "the record at position 555 cannot be read"


def test_an_unknown_run_is_not_valid(storage):
    found = storage.validate_integrity("none")

    assert (found["valid"], len(found["errors"])) == (False, 1)


@pytest.mark.parametrize("there_is_a_store", [False, True])
def test_a_run_that_is_not_there_is_a_file_not_found(tmp_path, there_is_a_store):
    """As programs know it that tidy up before they begin."""
    storage = ExperimentStorage(tmp_path)
    if there_is_a_store:
        storage.start_run("run")

    with pytest.raises(FileNotFoundError, match="no run 'old'") as raised:
        storage.delete_run("old")
    assert isinstance(raised.value, StorageError)
