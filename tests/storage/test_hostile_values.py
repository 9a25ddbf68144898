"""Whatever a row, an answer or an id holds is stored and read back identically, or refused before anything is spent."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.storage.stored_runs import FRAME, answered, call, failed, fill, item, judged, rows
from themis.core.entities import MetricScore
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import ExperimentStorage
from themis.storage.runs import validate_run_id

HOSTILE = {
    "NUL": "before\x00after",
    "lone surrogates": "\ud800 and \udfff",
    "emoji": "👨‍👩‍👧‍👦 🏳️‍🌈 🙂",
    "SQL": "'); DROP TABLE runs; --",
    "format": "%s %(run)s {run} ${run} :run ? $1",
    "paths": "../../etc/passwd",
    "every control character": "".join(map(chr, range(32))),
    "right to left": "\u202egnol\u202c",
    "not JSON": '{"a": NaN, "b": "\\ud800"}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_in_rows_and_outputs_comes_back_identical(storage, name):
    text = HOSTILE[name]
    row = {"id": "a", "question": text, "answer": [text, {text: text}], "level": text}
    storage.start_run("run", config={"task": FRAME.to_config(), "note": text}, tags={text: text})
    record = answered(row, text, raw={text: [text]}, usage={text: 1})
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, row)])
        evaluation = writer.open_evaluation("e" * 32, {"note": text})
        writer.commit_results([call(0, record)])
        writer.commit_scores(evaluation, judged(0, record, MetricScore("Match", 1.0, {text: text}, {"judge": text})))

    read, verdict = storage.load_cached_records("run")["a"], storage.load_cached_evaluations("run")["a"]

    assert list(storage.load_dataset("run")) == [row]
    assert (read.output, read.task.prompt.text, read.task.reference.value) == (record.output, text, row["answer"])
    assert read.task.metadata["level"] == text
    assert verdict.scores == [MetricScore("Match", 1.0, {text: text}, {"judge": text})]
    assert (storage.get_run("run").tags, storage.get_run("run").config_snapshot["note"]) == ({text: text}, text)
    assert storage.validate_integrity("run")["errors"] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_in_ids_comes_back_identical_or_is_refused(storage, name):
    text = HOSTILE[name]
    storage.start_run("run", config={"task": FRAME.to_config()})
    row = {"id": text, "question": "?", "answer": "!"}
    record = answered(row)
    with storage.open_run("run") as writer:
        has_nul = "\x00" in text and storage.engine.dialect.name == "postgresql"
        if has_nul or name == "lone surrogates":
            with pytest.raises(ConfigurationError, match=r"a NUL character|half a character"):
                writer.store_dataset([item(0, row)])
            assert storage.reader("run").count_samples() == 0
            return
        writer.store_dataset([item(0, row)])
        writer.commit_results([call(0, record)])
        writer.commit_scores(writer.open_evaluation("f" * 32, {}), judged(0, record, MetricScore("Match", 1.0)))

    assert list(storage.load_cached_records("run")) == [text]
    assert [record.task.metadata["dataset_id"] for record in storage.load_cached_records("run").values()] == [text]
    assert [record.sample_id for record in storage.load_cached_evaluations("run").values()] == [text]
    if "\x00" not in text:
        assert storage.load_cached_records("run")[text].task.metadata["dataset_id"] == text
        assert storage.load_cached_evaluations("run")[text].sample_id == text
    assert [run.run_id for run in storage.list_runs()] == ["run"]


@pytest.mark.parametrize("what", ["experiment", "model", "benchmark"])
@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_names_that_no_database_can_hold_are_refused(storage, what, text):
    with pytest.raises(ConfigurationError, match=f"{what} .* cannot be stored"):
        storage.start_run("run", **{what: text})
    assert storage.list_runs() == []


def test_the_name_of_a_metric_is_refused_like_any_other(storage):
    fill(storage, "run", 1)
    scores = judged(0, answered(rows(1)[0]), MetricScore("\ud800", 1.0))

    with storage.open_run("run") as writer, pytest.raises(ConfigurationError, match="half a character"):
        writer.commit_scores(storage.reader("run").evaluation, scores)


def test_a_message_that_cannot_be_stored_does_not_keep_a_failure_from_being_noted(storage):
    storage.start_run("run")
    storage.fail_run("run", "the server said \x00 and \ud800")

    assert storage.get_run("run").error_message == "the server said \\x00 and \\ud800"


def test_ten_megabytes_come_back_identical(storage):
    text = "zoë 🙂\x00" * 1_100_000
    row = {"id": "a", "question": text, "answer": "!"}
    storage.start_run("run", config={"task": FRAME.to_config()})
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, row)])
        writer.commit_results([call(0, answered(row, text))])

    read = storage.load_cached_records("run")["a"]

    assert read.output.text == text
    assert read.task.prompt.text == text


def test_a_failure_may_say_anything(storage):
    row = rows(1)[0]
    storage.start_run("run", config={"task": FRAME.to_config()})
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, row)])
        writer.commit_results([call(0, failed(row, "".join(HOSTILE.values())))])

    assert list(storage.reader("run").failed_records()) == [("item-0", "".join(HOSTILE.values()))]


# --- run ids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", ["a", "run-1", "Lauf 1", "zoë", "🙂", "a.b", "a..b", "%_'\""[:3], "x" * 200])
def test_an_ordinary_id_names_a_run_and_its_folder(storage, run_id, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage.start_run(run_id)

    assert storage.get_run(run_id).run_id == run_id
    assert storage.get_run_path(run_id).parent == storage.root / "runs"


@pytest.mark.parametrize(
    "run_id",
    [
        *("", " ", None, 3, "x" * 201, " a", "a ", ".", "..", ".hidden", "../a", "a/b", "a\\b", "/etc", "C:\\a", "a@1"),
        *("a\x00b", "a\nb", "a\x1bb", "\u200b", "\u202e", "\ud800", "a:b", "a*", "a?", 'a"', "<a>", "a|b"),
    ],
)
def test_an_id_that_could_be_more_than_a_name_is_refused(storage, run_id):
    with pytest.raises(ConfigurationError, match="run id"):
        storage.start_run(run_id)
    assert storage.list_runs() == []


@pytest.mark.parametrize("run_id", ["../../outside", "..", "/", "a\x00b", "\ud800", "' OR 1=1 --", "%"])
def test_what_is_no_run_can_be_neither_read_nor_deleted(storage, run_id, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    fill(storage, "run", 1)

    assert not storage.run_exists(run_id)
    assert dict(storage.load_cached_records(run_id)) == {}
    assert storage.validate_integrity(run_id)["valid"] is False
    for forbidden in (storage.delete_run, storage.get_run_path, storage.get_run, storage.open_run, storage.archive_run):
        with pytest.raises(StorageError, match="no run"):
            forbidden(run_id)

    assert (outside / "file").read_text() == "mine"
    assert storage.run_exists("run")


def test_a_link_in_the_place_of_a_run_folder_is_not_followed(sqlite_storage, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    fill(sqlite_storage, "run", 1)
    (sqlite_storage.root / "runs").mkdir()
    (sqlite_storage.root / "runs" / "run").symlink_to(outside)

    sqlite_storage.delete_run("run")

    assert (outside / "file").read_text() == "mine"


@given(st.text(st.characters() | st.characters(categories=["Cs", "Cc"]), max_size=30))
def test_a_valid_run_id_is_one_word_of_a_path(run_id):
    try:
        validate_run_id(run_id)
    except ConfigurationError:
        return
    assert (run_id.strip(), "/" in run_id, run_id in (".", "..")) == (run_id, False, False)
    run_id.encode()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5, unique=True), st.text())
def test_any_text_survives_the_store(tmp_path_factory, ids, text):
    storage = ExperimentStorage(tmp_path_factory.mktemp("any") / "store")
    storage.start_run("run", config={"task": FRAME.to_config()})
    kept = [{"id": item_id, "question": text, "answer": item_id} for item_id in ids]
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(kept))
        writer.commit_results([call(n, answered(row, text)) for n, row in enumerate(kept)])

    assert list(storage.load_dataset("run")) == kept
    assert {name: record.output.text for name, record in storage.load_cached_records("run").items()} == dict.fromkeys(
        ids, text
    )
    storage.close()
