"""What a stored answer outlives is the user's to choose."""

import pytest

from themis.exceptions import ConfigurationError
from themis.storage import ExperimentStorage

NORMAL, FULL = 1, 2


def synchronous(storage: ExperimentStorage, kind: str) -> int:
    """How SQLite commits what a run of this kind writes."""
    storage.start_run(kind, kind=kind)
    with storage.open_run(kind) as writer:
        return writer._connection.exec_driver_sql("PRAGMA synchronous").scalar()


def test_a_conversation_outlives_a_power_cut_and_other_runs_the_process(sqlite_storage):
    assert (synchronous(sqlite_storage, "samples"), synchronous(sqlite_storage, "memory")) == (NORMAL, FULL)


@pytest.mark.parametrize(("wanted", "expected"), [("process", NORMAL), ("power", FULL)])
def test_the_user_decides_for_both_kinds(tmp_path, monkeypatch, wanted, expected):
    given = ExperimentStorage(tmp_path / "given", durability=wanted)
    assert (synchronous(given, "samples"), synchronous(given, "memory")) == (expected, expected)
    monkeypatch.setenv("THEMIS_DURABILITY", wanted)
    told = ExperimentStorage(tmp_path / "told")
    assert (synchronous(told, "samples"), synchronous(told, "memory")) == (expected, expected)
    given.close()
    told.close()


def test_connections_come_back_as_they_were(tmp_path):
    storage = ExperimentStorage(tmp_path / "store", durability="power")
    assert synchronous(storage, "samples") == FULL
    with storage.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == NORMAL
    storage.close()


def test_another_word_is_refused_before_anything_is_written(sqlite_storage, monkeypatch):
    monkeypatch.setenv("THEMIS_DURABILITY", "eternal")
    sqlite_storage.start_run("run")

    with pytest.raises(ConfigurationError, match=r"THEMIS_DURABILITY\) is process or power, got 'eternal'"):
        sqlite_storage.open_run("run")
