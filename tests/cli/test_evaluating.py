"""What `themis eval` makes of rows that it is told little about, and says of answers that it was told little of."""

from __future__ import annotations

import json

import pytest

from themis.cli import COMMANDS
from themis.cli.comparing import compare
from themis.cli.elsewhere import _COMMANDS, _OPTIONS
from themis.cli.evaluating import evaluate_command, resume
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.generation.providers import register_provider
from themis.interfaces import StatelessTaskExecutor

OURS = (evaluate_command, resume, compare)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_conversations_are_asked_as_they_are(call, here):
    row = {"id": 1, "messages": [{"role": "user", "content": "2 + 2?"}], "answer": "4"}
    (here / "turns.jsonl").write_text(json.dumps(row))

    said = call("eval", "turns.jsonl", "-m", "fake/perfect", "--json")

    assert (said.code, json.loads(said.out)["metrics"]["ExactMatch"]["mean"]) == (0, 1.0)


def test_a_file_without_a_field_to_ask_is_shown_with_the_fields_it_has(call, here):
    (here / "rows.json").write_text(json.dumps({"data": [{"question": "2 + 2?"}]}))

    said = call("eval", "rows.json", "-m", "fake/perfect")

    assert said.code == 2
    assert "rows.json has the fields data and none of prompt, question" in said.err


def test_rows_whose_reference_nobody_finds_are_refused_before_the_first_call(call, here):
    (here / "rows.jsonl").write_text('{"id": 1, "question": "2 + 2?", "gold": "4"}\n')
    asked = ("eval", "rows.jsonl", "-m", "fake/constant?text=4", "--run-id", "r")

    said = call(*asked)

    assert said.code == 2
    assert "ExactMatch can compare answers only with a reference" in said.err
    assert "gold, id, question" in said.err
    assert call("show", "r").code == 3
    assert call(*asked, "--metric", "response_length", "--run-id", "measured").code == 0
    assert call(*asked, "--reference-field", "", "--run-id", "alone").code == 0
    assert "1.0000" in call(*asked, "--reference-field", "gold").out


def test_answers_that_ended_for_want_of_room_are_counted_and_told(call, here):
    class Wordy(StatelessTaskExecutor):
        def execute(self, task: GenerationTask) -> GenerationRecord:
            reason = "length" if task.prompt.text == "2?" else "stop"
            return GenerationRecord(task, ModelOutput("well, let me", finish_reason=reason), None)

    register_provider("wordy", Wordy)
    (here / "rows.jsonl").write_text("".join(json.dumps({"question": f"{n}?", "answer": "4"}) + "\n" for n in range(4)))
    options = ("-m", "wordy/m", "--num-samples", "2", "--max-tokens", "3", "--yes")
    told = "25 % of answers were cut off at 3 tokens: the mean is too low; raise --max-tokens"

    said = call("eval", "rows.jsonl", *options, "--run-id", "first")
    again = call("eval", "rows.jsonl", *options, "--run-id", "second", "--cache", "store")

    assert told in said.err
    assert told in again.err
    assert told in call("show", "first").out
    assert json.loads(call("show", "second", "--json").out)["cut_off"] == 2
    limits = ("--truncated-limit", "0.5", "--fail-on-truncated", "0.1")
    failed = call("eval", "rows.jsonl", *options, *limits, "--run-id", "third")
    assert failed.code == 1
    assert "2 answers were cut off at max_tokens=3" in failed.err
    assert "25.0% of the answers were cut off, more than --fail-on-truncated 0.1 allows" in failed.err


def test_answers_that_a_limit_of_their_sample_ended_are_told_by_that_limit(call, here):
    (here / "app.py").write_text(
        "def look(): return 'nothing'\n"
        "def answer(messages): return {'text': '4', 'tool_calls': [{'id': '1', 'name': 'look', 'arguments': {}}]}\n"
    )
    (here / "rows.jsonl").write_text(ONE_ROW)
    options = ("-m", "python:app.py:answer", "--tool", "app.py:look", "--max-turns", "2", "--truncated-limit", "1")

    said = call("eval", "rows.jsonl", *options, "--run-id", "looking")

    assert said.code == 0
    assert "1 answers were cut off by max_turns; more may be right with more room: raise --max-turns" in said.err
    assert "not answered: stopped by max_turns" in call("show", "looking", "--sample", "a").out


ONE_ROW = json.dumps({"id": "a", "question": "2 + 2?", "answer": "4"})


def test_the_report_is_also_written_where_output_says_in_the_form_of_its_suffix(call, here):
    (here / "rows.jsonl").write_text(ONE_ROW)
    suffixes = ("json", "csv", "html", "md", "jsonl", "tex", "xml")
    outputs = [word for suffix in suffixes for word in ("--output", f"out/report.{suffix}")]

    said = call("eval", "rows.jsonl", "-m", "fake/perfect", "--run-id", "first", *outputs)

    assert said.code == 0
    assert "ExactMatch  1.0000" in said.out
    assert [line for line in said.err.splitlines() if line.startswith("wrote ")] == [
        f"wrote out/report.{suffix}" for suffix in suffixes
    ]
    starts = {suffix: (here / f"out/report.{suffix}").read_text()[:9].strip("\\") for suffix in suffixes}
    assert starts == {
        "json": '{\n  "titl',
        "csv": "sample_id",
        "html": "<!doctype",
        "md": "# first\n\n",
        "jsonl": '{"sample_',
        "tex": "% needs ",
        "xml": "<?xml ver",
    }


def test_a_run_without_a_result_and_a_resumed_one_write_their_reports_too(call, here):
    (here / "rows.jsonl").write_text(ONE_ROW)
    call("eval", "rows.jsonl", "-m", "fake/perfect", "--run-id", "good")

    failed = call("eval", "rows.jsonl", "-m", "fake/flaky-1", "--max-retries", "1", "-o", "failed.json")
    resumed = call("resume", "good", "-o", "resumed.json")

    assert (failed.code, resumed.code) == (3, 0)
    assert json.loads((here / "failed.json").read_text())["summary"]["failed_generations"] == 1
    assert json.loads((here / "resumed.json").read_text())["summary"]["run_id"] == "good"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("report.docx", "a report is written as .csv, .htm, .html, .json, .jsonl, .md, .parquet, .tex or .xml, got"),
        (".html", "a report is written as"),
        ("folder.json", "--output folder.json is a directory; `themis export RUN --to folder.json` writes all formats"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_the_first_call(call, here, path, why):
    (here / "rows.jsonl").write_text(ONE_ROW)
    (here / "folder.json").mkdir()

    said = call("eval", "rows.jsonl", "-m", "fake/perfect", "--output", path)

    assert (said.code, said.out) == (2, "")
    assert why in said.err
    assert not (here / ".cache").exists()


def test_base_url_says_where_the_model_is_served(call, here):
    (here / "rows.jsonl").write_text(ONE_ROW)
    address = "http://127.0.0.1:9/v1"

    said = call("eval", "rows.jsonl", "-m", "mine/m", "--base-url", address, "--max-retries", "1", "--run-id", "r")

    assert said.code == 3
    assert f"{address}/chat/completions cannot be reached" in said.err
    assert f"--option base_url={address}" in call("reproduce", "r").out


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["clean", "--older-than", "30", "--dry-run"], "here it is `themis store prune --max-age-days 30 --dry-run`"),
        (
            ["clean", "--older-than=7", "--storage", "my runs"],
            "`themis store prune --max-age-days=7 --storage 'my runs'`",
        ),
        (["view"], "no command 'view': here it is themis serve"),
        (["eval", "demo", "-m", "fake", "--epochs", "3"], "no option '--epochs': here it is --num-samples N"),
        (["eval", "demo", "-m", "fake", "--num_fewshot", "5"], "no option '--num_fewshot': here it is --shots N"),
        (["eval", "demo", "-m", "fake", "--batch_size", "8"], "no option '--batch_size': here it is --workers N"),
        (["compare", "a", "b", "--html", "c.html"], "no option '--html': here it is --output FILE.html"),
        (["eval", "demo", "-m", "fake", "--sandbox", "docker"], "no option '--sandbox': here it is not needed"),
        (
            ["eval", "demo", "-m", "fake", "--metric", "llm-rubric"],
            "unknown metric 'llm-rubric': here it is rubric_judge(",
        ),
        (["eval", "demo", "-m", "fake", "--metric", "GEval"], "unknown metric 'GEval': here it is rubric_judge("),
        (["eval", "demo", "-m", "fake", "--tempature", "1"], "'--temperature'?"),
        (["memory", "clean"], "No such command 'clean'."),
    ],
)
def test_whoever_knows_another_tool_is_told_what_its_words_are_here(call, words, answer):
    said = call(*words)

    assert said.code == 2
    assert answer in said.err


def test_no_word_of_ours_is_taken_for_another_tool_s():
    options = {name for command in OURS for parameter in command.params for name in parameter.opts}

    assert set(_COMMANDS) & set(COMMANDS) == set()
    assert set(_OPTIONS) & options == set()


def test_what_the_store_is_pruned_by_in_place_of_clean_does_what_it_is_told(call, here):
    (here / "rows.jsonl").write_text(ONE_ROW)
    call("eval", "rows.jsonl", "-m", "fake/perfect", "--run-id", "young")

    pruned = call("store", "prune", "--max-age-days", "30", "--dry-run")

    assert (pruned.code, pruned.out, pruned.err) == (0, "", "0 runs would be removed\n")
