"""Which rows of a file `themis eval` asks without being told how."""

from __future__ import annotations

import json

import pytest


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
