"""What a run writes is what is read back, on both databases."""

import math

import pytest

from tests.storage.stored_runs import FRAME, answered, call, failed, fill, item, judged, rows
from themis.core.entities import (
    EvaluationRecord,
    MetricScore,
    ModelError,
    Reference,
)
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import SCORED, UNPARSED, Turn

# --- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_is_listed_as_it_was_started(storage):
    storage.start_run(
        "run",
        experiment="tuning",
        config={"nested": {"list": [1, None, math.inf]}},
        model="fake:m",
        benchmark="countdown",
        tags={"owner": "ada"},
        identity={"model": "m"},
        manifest_hash="0" * 64,
    )

    run = storage.get_run("run")

    assert (run.run_id, run.experiment, run.status) == ("run", "tuning", RunStatus.IN_PROGRESS)
    assert (run.kind, run.model, run.benchmark, run.tags) == ("samples", "fake:m", "countdown", {"owner": "ada"})
    assert (run.config_snapshot, run.manifest_hash) == ({"nested": {"list": [1, None, math.inf]}}, "0" * 64)
    assert (run.created_at.tzinfo is not None, run.completed_at, run.writer) == (True, None, None)
    assert storage.reader("run").identity == {"model": "m"}
    assert storage.list_runs() == [run]


def test_runs_are_listed_newest_first_and_by_what_is_asked(storage):
    for n in range(5):
        storage.start_run(f"run-{n}", experiment="even" if n % 2 == 0 else "odd", model=f"m{n}")
    storage.complete_run("run-2")

    def ids(**asked):
        return [run.run_id for run in storage.list_runs(**asked)]

    assert ids() == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert ids(experiment="even") == ["run-4", "run-2", "run-0"]
    assert ids(status="completed") == ids(status=RunStatus.COMPLETED) == ["run-2"]
    assert ids(model="m3") == ["run-3"]
    assert ids(limit=2) == ["run-4", "run-3"]
    assert ids(limit=2, offset=3) == ["run-1", "run-0"]
    assert ids(offset=4) == ["run-0"]


def test_an_unknown_status_is_refused_with_those_there_are(storage):
    with pytest.raises(
        ConfigurationError, match=r"'complete' \(did you mean 'completed'\?\); known: in_progress, completed"
    ):
        storage.list_runs(status="complete")


def test_an_unknown_run_is_refused_with_the_nearest(storage):
    storage.start_run("countdown-baseline")

    with pytest.raises(StorageError, match=r"no run 'countdown-basline' in .* \(did you mean 'countdown-baseline'"):
        storage.get_run("countdown-basline")


def test_one_id_is_one_run(storage):
    storage.start_run("run")

    with pytest.raises(StorageError, match="'run' exists already; resume it, delete it"):
        storage.start_run("run")


def test_a_run_ends_as_completed_or_failed(storage):
    storage.start_run("good")
    storage.start_run("bad")

    storage.complete_run("good")
    storage.fail_run("bad", "the key sk-abcdefghijklmnopqrstuv was refused")

    assert (storage.get_run("good").status, storage.get_run("good").completed_at is not None) == ("completed", True)
    assert storage.get_run("bad").status == RunStatus.FAILED
    assert storage.get_run("bad").error_message == "the key [redacted] was refused"


def test_only_writing_makes_a_store(tmp_path):
    storage = ExperimentStorage(tmp_path / "none")

    assert not storage.exists()
    assert storage.list_runs() == []
    assert not storage.run_exists("run")
    assert dict(storage.load_cached_records("run")) == {}
    assert not (tmp_path / "none").exists()
    storage.start_run("run")
    assert storage.exists()


def test_a_path_that_ends_in_db_is_the_file_itself(tmp_path):
    storage = ExperimentStorage(tmp_path / "deep" / "mine.db")
    storage.start_run("run")

    assert (tmp_path / "deep" / "mine.db").is_file()
    assert storage.root == tmp_path / "deep"


@pytest.mark.parametrize("location", ["", 3, None])
def test_a_location_is_a_directory_or_a_url(location):
    with pytest.raises(ConfigurationError, match="a directory or a postgresql:// URL"):
        ExperimentStorage(location)


def test_another_kind_of_url_is_refused_without_showing_its_password():
    with pytest.raises(ConfigurationError, match=r"mysql://ada:\[redacted\]@host/runs"):
        ExperimentStorage("mysql://ada:hunter2@host/runs").list_runs()


# --- samples, records, scores -----------------------------------------------------------------------------------------


def test_planned_rows_are_read_back_in_order(storage):
    storage.start_run("run")
    with storage.open_run("run") as writer:
        assert writer.store_dataset(item(n, row) for n, row in enumerate(rows(7))) == 7

    assert list(storage.load_dataset("run")) == rows(7)
    assert storage.reader("run").has_dataset
    assert storage.get_run("run").total_samples == 7


def test_two_rows_of_one_id_are_refused_with_both_places(storage):
    storage.start_run("run")
    twins = [{"id": "a"}, {"id": "b"}, {"id": "a"}]

    with storage.open_run("run") as writer, pytest.raises(ConfigurationError, match=r"the id 'a': rows 0 and 2"):
        writer.store_dataset(item(n, row) for n, row in enumerate(twins))


def test_two_rows_of_one_id_are_refused_far_apart_too(storage):
    storage.start_run("run")
    many = [*({"id": n} for n in range(2_500)), {"id": 7}]

    with storage.open_run("run") as writer, pytest.raises(ConfigurationError, match=r"the id '7': rows 7 and 2500"):
        writer.store_dataset(item(n, row) for n, row in enumerate(many))


def test_records_come_back_as_they_were(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    first, second, third = rows(3)
    good = answered(first, "zero", raw={"logprobs": [-0.5, math.inf]}, usage={"prompt_tokens": 3})
    good.metrics["generation_time_ms"] = 12.5
    good.task.metadata["system_prompt"] = "be brief"
    bad = failed(second, "503 from the server")
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate((first, second, third)))
        writer.commit_results([call(0, good), call(1, bad)])

    records = storage.load_cached_records("run")

    assert list(records) == ["item-0", "item-1"]
    assert len(records) == 2
    read = records["item-0"]
    assert (read.output, read.error, read.metrics) == (good.output, None, {"generation_time_ms": 12.5, "cost_usd": 0.0})
    assert (read.task.prompt, read.task.model, read.task.sampling) == (good.task.prompt, FRAME.model, FRAME.sampling)
    assert read.task.reference == Reference("answer", "0")
    assert read.task.metadata == {
        "question": "what is 0?",
        "level": 0,
        "dataset_id": "item-0",
        "system_prompt": "be brief",
    }
    assert (records["item-1"].output, records["item-1"].error) == (None, ModelError("503 from the server"))
    assert "item-2" not in records
    assert storage.reader("run").count_records() == (1, 1)
    assert list(storage.reader("run").failed_records()) == [("item-1", "503 from the server")]


def test_the_first_good_attempt_speaks_for_a_sample(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    row = rows(1)[0]
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, row)])
        writer.commit_results([call(0, failed(row, "no"), 0), call(0, answered(row, "yes", 1), 1)])

    record = storage.load_cached_records("run")["item-0"]

    assert (record.output.text, record.error, len(record.attempts)) == ("yes", None, 2)
    assert record.metrics["attempt_outcomes"] == [{"output": None, "error": "no"}, {"output": "yes", "error": None}]


def test_a_later_call_replaces_a_failure_and_its_cost_is_added(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    row = rows(1)[0]
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, row)])
        writer.commit_results([call(0, failed(row), prompt_tokens=5, cost_usd=0.25, calls=3)])
        assert [have for _, have in storage.reader("run").unfinished(1)] == [frozenset()]
        writer.commit_results([call(0, answered(row), prompt_tokens=5, completion_tokens=2, cost_usd=0.5)])

    run = storage.get_run("run")

    assert list(storage.reader("run").unfinished(1)) == []
    assert (run.calls, run.prompt_tokens, run.completion_tokens, run.cost_usd) == (4, 10, 2, 0.75)


def test_one_call_of_unknown_price_makes_the_cost_unknown(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(rows(2)))
        writer.commit_results(
            [call(0, answered(rows(2)[0]), cost_usd=0.5), call(1, answered(rows(2)[1]), cost_usd=None)]
        )

    assert storage.get_run("run").cost_usd is None


def test_an_answer_taken_from_another_run_costs_nothing(storage):
    fill(storage, "first", 1)
    found = storage.find_answer(call(0, answered(rows(1)[0])).key)
    storage.start_run("second", config={"task": FRAME.to_config()})
    with storage.open_run("second") as writer:
        writer.store_dataset([item(0, rows(1)[0])])
        writer.commit_results([call(0, found, reused=True, cost_usd=0.5, prompt_tokens=9)])

    assert found.output.text == "0"
    assert (storage.get_run("second").calls, storage.get_run("second").cost_usd) == (0, 0)
    assert storage.find_answer("unknown") is None
    assert storage.find_answer(call(0, found).key, among=[]) is None


def test_scores_come_back_as_they_were(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    record = answered(rows(1)[0])
    scores = [
        MetricScore("Length", 3.25, {"unit": "words", "nan": [math.inf]}, {"judge": "ada"}),
        MetricScore("Match", 0.0, {}, {"outcome": UNPARSED}),
        MetricScore("Match", 1.0, {}, {}),
    ]
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, rows(1)[0])])
        writer.commit_results([call(0, record)])
        evaluation = writer.open_evaluation("e" * 32, {"metrics": ["Length", "Match"]})
        writer.commit_scores(evaluation, judged(0, record, *scores))

    assert storage.load_cached_evaluations("run")["item-0"] == EvaluationRecord("item-0", scores)
    reader = storage.reader("run")
    assert reader.metric_names(evaluation) == ["Length", "Match"]
    assert reader.outcomes(evaluation) == {"Length": {SCORED: 1}, "Match": {SCORED: 1, UNPARSED: 1}}
    assert list(reader.values(evaluation, "Match")) == [(0, "item-0", None, 0.0), (0, "item-0", None, 1.0)]


def test_two_ways_of_judging_lie_beside_each_other(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    record = answered(rows(1)[0])
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, rows(1)[0])])
        writer.commit_results([call(0, record)])
        strict, lax = writer.open_evaluation("s" * 32, {}), writer.open_evaluation("l" * 32, {})
        writer.commit_scores(strict, judged(0, record, MetricScore("Match", 0.0)))
        writer.commit_scores(lax, judged(0, record, MetricScore("Match", 1.0)))
        assert writer.open_evaluation("s" * 32, {}) == strict

    assert storage.reader("run").evaluation == strict
    assert [score.value for score in storage.load_cached_evaluations("run")["item-0"].scores] == [0.0]
    assert list(storage.reader("run").values(lax, "Match")) == [(0, "item-0", None, 1.0)]


def test_turns_and_artifacts_come_back_as_they_were(storage):
    storage.start_run("run", kind="memory")
    turns = [Turn(n, "say", f"test-{n % 2}", f'{{"text":"\\u0000 {n}"}}') for n in range(2_300)]
    with storage.open_run("run") as writer:
        writer.append_turns(turns)
        writer.save_artifact("page.html", b"\x00\xff first", "text/html")
        writer.save_artifact("page.html", b"\x00\xff second", "text/html")

    assert list(storage.reader("run").turns()) == turns
    assert list(storage.reader("run").turns(after=2_200, test_id="test-1")) == turns[2_201::2]
    assert storage.reader("run").artifact("page.html") == b"\x00\xff second"
    assert storage.reader("run").artifact("none") is None


# --- runs that are not there -------------------------------------------------------------------------------------------


def test_an_unknown_run_has_no_records_or_scores(storage):
    assert dict(storage.load_cached_records("none")) == dict(storage.load_cached_evaluations("none")) == {}


# --- folders ----------------------------------------------------------------------------------------------------------


def test_the_folder_of_a_run_is_written_from_the_store(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(storage, "run", 2)

    folder = storage.get_run_path("run")

    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "records.jsonl", "report.json"]
    assert len((folder / "records.jsonl").read_text().splitlines()) == 2
    assert folder.is_relative_to(storage.root)


def test_a_metric_s_own_values_are_kept_whatever_they_are_called(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    row = {**rows(1)[0], "subject": "history", "level": [3]}
    record = answered(row)
    given = record.task.metadata
    score = MetricScore("Match", 1.0, {}, {"mine": 7, "subject": "art", "level": given["level"], "prompt": "2 + 2?"})
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, row)])
        writer.commit_results([call(0, record)])
        evaluation = writer.open_evaluation("e" * 32, {"metrics": ["Match"]})
        writer.commit_scores(evaluation, judged(0, record, score))

    (read,) = storage.load_cached_evaluations("run")["item-0"].scores
    assert read.metadata == {"mine": 7, "subject": "art"}
