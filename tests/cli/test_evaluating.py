"""What `themis eval` makes of rows that it is told little about, and says of answers that it was told little of."""

from __future__ import annotations

import json

import pytest

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.generation.providers import register_provider
from themis.interfaces import StatelessTaskExecutor


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


def test_answers_that_ended_for_want_of_room_are_counted_and_told(call, here):
    class Wordy(StatelessTaskExecutor):
        def execute(self, task: GenerationTask) -> GenerationRecord:
            reason = "length" if task.prompt.text == "2?" else "stop"
            return GenerationRecord(task, ModelOutput("well, let me", raw={"finish_reason": reason}), None)

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
