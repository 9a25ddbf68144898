"""Published results go into the store as they are, and out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.memory.results.published import COLOURS, log_lines, write_folder
from tests.memory.results.runs import small_run
from themis.cli import themis
from themis.comparison import compare_runs
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.exporting import export_run
from themis.memory.importing import import_folder
from themis.memory.master_log import to_master_log
from themis.memory.report import read_view
from themis.memory.report.pages import run_page
from themis.memory.results import load_results, points_of, summarise_results
from themis.memory.timeline import read_timeline
from themis.storage import ExperimentStorage

RUN = "Tiny - Some Agent"


@pytest.fixture
def storage(tmp_path: Path) -> ExperimentStorage:
    return ExperimentStorage(tmp_path / "store")


def test_scores_tokens_and_costs_are_kept_as_published(storage: ExperimentStorage, tmp_path: Path) -> None:
    (done,) = import_folder(write_folder(tmp_path / "tiny"), storage)

    assert (done.run_id, done.tests, done.broken) == (RUN, 2, [])
    assert (done.counted, done.tokens_reproduced, done.characters_reproduced) == (2, 2, 2)
    summary = summarise_results(load_results(storage, RUN), verbosity_tokens=40)
    assert (summary.score, summary.max_score) == (2.0, 2)
    assert (summary.cost_usd, summary.judge_cost_usd, summary.agent_seconds) == (0.5, 0.1, 8.0)
    assert summary.speed_tokens_per_second == 5.0


def test_our_own_verdicts_lie_beside_the_published_ones(storage: ExperimentStorage, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", score=0, actual_responses=["It is cream."])
    (done,) = import_folder(folder, storage)

    assert [(way.name, way.is_current) for way in storage.reader(RUN).list_evaluations()] == [
        ("rescored", False),
        ("published", True),
    ]
    assert (done.rescored, done.rescored_equal) == (2, 1)
    published = {one.test_id: one.score for one in load_results(storage, RUN).results}
    ours = {one.test_id: one.score for one in load_results(storage, RUN, "rescored").results}
    assert published == {"Colours - 0": 0.0, "Prospective Memory - 0": 1.0}
    assert ours == {"Colours - 0": 1.0, "Prospective Memory - 0": 1.0}


def test_a_score_that_a_person_changed_is_marked(storage: ExperimentStorage, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", score=1, auto_score=0, auto_reasoning=["was not"])
    (done,) = import_folder(folder, storage)
    found = {one.test_id: one for one in load_results(storage, RUN).results}

    assert done.hand_edited == 1
    assert found["Colours - 0"].score == 1.0
    assert found["Colours - 0"].published["by_hand"] == {"auto_score": 0, "auto_reasoning": ["was not"]}
    assert "edited by hand" in run_page(read_view(storage, RUN))


def test_the_conversation_comes_from_the_log(storage: ExperimentStorage, tmp_path: Path) -> None:
    import_folder(write_folder(tmp_path / "tiny"), storage)
    line = read_timeline(storage.reader(RUN).turns())
    found = {one.test_id: one for one in load_results(storage, RUN).results}

    assert {test.test_id for test in line.tests} == set(found)
    assert [round((jump.end - jump.start).total_seconds()) for jump in line.jumps] == [3_694]
    # The filler that was answered within milliseconds had its reply supplied; it says nothing about the agent.
    assert line.latencies == pytest.approx([1.0, 1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    colours = found["Colours - 0"]
    assert [message.text for message in colours.messages] == COLOURS["script"]
    assert colours.distance_tokens == colours.messages[2].tokens_before - colours.messages[1].tokens_before > 0
    assert found["Prospective Memory - 0"].listened
    assert len(found["Prospective Memory - 0"].messages) == 2, "the request to forget is no part of the test"


def test_the_log_comes_out_as_it_went_in(storage: ExperimentStorage, tmp_path: Path) -> None:
    import_folder(write_folder(tmp_path / "tiny"), storage)
    ignored = (7, 10)  # resets are not kept, and a callback ends with its test
    before = [line for line in map(json.loads, log_lines()) if line["type"] not in ignored]
    after = [
        line for line in map(json.loads, to_master_log(storage.reader(RUN).turns())) if line["type"] not in ignored
    ]
    for line in before + after:
        line["timestamp"] = round(line["timestamp"], 3)
        if line["type"] == 1:
            line["data"] = {}  # counted by us, in one tokenizer

    assert after == before


def test_what_cannot_be_read_is_reported_and_the_rest_imported(storage: ExperimentStorage, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    agent = folder / "results" / "Some Agent"
    (agent / "Colours" / "1_0.json").write_text('{"score": 1, ')
    (agent / "Colours" / "2_0.json").write_text('{"score": "many", "max_score": 1}')
    with (agent / "master_log.jsonl").open("a") as log:
        log.write('{"type": 77, "timestamp": 1700003710, "test_id": "", "data": {}}\n{"type": 4, "timest')
    (done,) = import_folder(folder, storage)

    assert done.tests == 3
    assert [part.where for part in done.broken] == [
        "Colours/1_0.json",
        "Colours/2_0.json",
        "master_log.jsonl line 28",
        "master_log.jsonl line 29",
        "master_log.jsonl",
    ]
    assert done.broken[1].reason == "its score is 'many' of 1, which cannot be; imported without a score"
    assert "unknown type 77" in done.broken[2].reason


def test_an_older_generation_has_points_and_spacings_and_no_log(storage: ExperimentStorage, tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "tiny",
        score=1,
        max_score=2,
        task_log=[
            "Test (2024-01-01 10:00:00.5): My favourite colour is Red.",
            "Agent (2024-01-01 10:00:01): Noted.",
            "Test (2024-01-01 10:00:02): What is my favourite colour?",
            "Agent (2024-01-01 10:00:03): It is cream.",
        ],
    )
    (folder / "results" / "Some Agent" / "master_log.jsonl").unlink()
    old = {name: value for name, value in COLOURS.items() if name != "waits"}
    old |= {"token_spacings": [10, 20, 0], "time_jumps": [0, "1:00:00", 0], "evaluation_fn": "x"}
    (folder / "definitions" / "Colours" / "0.def.json").write_text(json.dumps(old))
    (done,) = import_folder(folder, storage)
    found = {one.test_id: one for one in load_results(storage, RUN).results}

    assert (done.counted, done.turns) == (0, 0)
    assert found["Colours - 0"].score == 0.5
    assert found["Colours - 0"].published == {"score": 1.0, "max_score": 2.0}
    assert [message.question for message in found["Colours - 0"].messages] == [False, True]
    assert points_of(found.values()) == [], "where its messages lay in the conversation is not known"
    row = next(sample.row for sample in storage.reader(RUN).samples() if sample.item_id == "Colours - 0")
    assert row["waits"] == [{"tokens": 10}, {"tokens": 20, "time": 3600.0}, {}]


def test_the_same_folder_twice_changes_nothing_and_another_one_is_refused(
    storage: ExperimentStorage, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "tiny")
    import_folder(folder, storage)
    (again,) = import_folder(folder, storage)
    write_folder(folder, score=0)

    assert again.already
    with pytest.raises(ConfigurationError, match="was not made from these files"):
        import_folder(folder, storage)
    (other,) = import_folder(folder, storage, name="Other")
    assert other.run_id == "Other - Some Agent"


def test_a_folder_without_a_run_says_what_was_expected(storage: ExperimentStorage, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="expected a folder with definitions and results"):
        import_folder(tmp_path, storage)


def test_imported_agents_are_compared_test_by_test(storage: ExperimentStorage, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    write_folder(folder, "Other Agent", score=0)
    first, second = import_folder(folder, storage)
    report = compare_runs([first.run_id, second.run_id], storage_path=storage.root, metrics=["memory"])

    assert report.pairwise_results[0].delta == pytest.approx(-0.5)


def test_an_exported_run_is_imported_as_it_was(storage: ExperimentStorage, tmp_path: Path) -> None:
    small_run(storage, "window(300)", "small - window")
    done = export_run(storage, "small - window", tmp_path / "out")
    (back,) = import_folder(tmp_path / "out", storage, name="back")

    before, after = load_results(storage, "small - window"), load_results(storage, back.run_id)
    assert (done.results, done.left_out, back.broken) == (len(before.results), [], [])
    told = [
        {one.test_id: (one.score, one.distance_tokens, one.needles) for one in found.results}
        for found in (before, after)
    ]
    assert told[0] == told[1]
    assert back.rescored_equal == back.rescored == len(before.results)
    result = json.loads((tmp_path / "out/results/window(300)/Colours/0_0.json").read_text())
    assert result["task_log"][0].startswith("Test (2030-01-01 00:00:")
    assert result["full_log"][0] == result["task_log"][0]


def test_a_defined_test_without_a_result_is_said_to_have_none(tmp_path: Path) -> None:
    folder, store = write_folder(tmp_path / "tiny"), str(tmp_path / "store")
    (folder / "results/Some Agent/Colours/0_0.json").unlink()

    outcome = CliRunner().invoke(themis, ["memory", "import", str(folder), "--storage", store], catch_exceptions=False)

    assert outcome.exit_code == 0
    assert "defined, but without a result: Colours - 0\n" in outcome.output


def test_the_commands_import_report_and_export(tmp_path: Path) -> None:
    folder, store = write_folder(tmp_path / "tiny"), str(tmp_path / "store")

    def call(*arguments: str) -> str:
        outcome = CliRunner().invoke(themis, ["memory", *arguments, "--storage", store], catch_exceptions=False)
        assert outcome.exit_code == 0, outcome.output
        return outcome.output

    assert f"{RUN}: 2 tests" in call("import", str(folder))
    assert "nothing changed" in call("import", str(folder))
    assert "2.00 of 2" in call("report", RUN, "--scores", "published")
    assert "wrote 2 definitions and 2 results" in call("export", RUN, "--to", str(tmp_path / "out"))
    assert (tmp_path / "out/results/Some Agent/master_log.jsonl").is_file()
