"""An answer comes back in all its parts, and answers of older stores are taken apart when the store is opened."""

from __future__ import annotations

import json
import sqlite3

import themis
from themis.core.entities import ModelOutput, ToolCall
from themis.core.transcripts import list_asked
from themis.storage import ExperimentStorage

WHOLE = ModelOutput(
    "81",
    raw={"id": "1"},
    usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    reasoning="9 x 9",
    tool_calls=(ToolCall("multiply", {"a": 9, "b": 9}, id="call-1"), ToolCall("add", {}, invalid="{")),
    refusal="no",
    finish_reason="tool_calls",
    logprobs={"content": [{"logprob": -0.5}]},
    parts=({"type": "image", "url": "https://example.org/a.png"},),
    transcript=({"role": "assistant", "content": "81"},),
)


def evaluate(tmp_path, answer):
    rows = [{"id": "1", "question": "9 x 9?", "answer": "81"}]
    return themis.evaluate(rows, model=answer, prompt="{question}", storage=tmp_path, progress=False, run_id="r")


def test_every_part_of_an_answer_is_stored_and_read_back(tmp_path):
    evaluate(tmp_path, lambda prompt: WHOLE)

    (_, record) = ExperimentStorage(tmp_path).reader("r").record("1")
    assert record.output == WHOLE


def test_thoughts_in_tags_are_stored_apart_and_the_answer_is_scored(tmp_path):
    report = evaluate(tmp_path, lambda prompt: "<think>9 x 9 = 81, or 80?</think>\n81")

    assert report.metric("exact_match").mean == 1.0
    output = report.generation_results[0].output
    assert (output.text, output.reasoning) == ("81", "9 x 9 = 81, or 80?")


def test_an_older_store_is_taken_apart_when_it_is_opened(tmp_path):
    evaluate(tmp_path, lambda prompt: "81")
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    raw = {
        "finish_reason": "max_tokens",
        "id": "msg",
        "reasoning": "hm",
        "refusal": "no",
        "tool_calls": [call],
        "logprobs": {"content": []},
    }
    with sqlite3.connect(tmp_path / "themis.db") as database:
        database.execute("UPDATE records SET body = ?", (json.dumps({"prompt": "9 x 9?", "text": "81", "raw": raw}),))
        for table in ("steps", "attachments"):
            database.execute(f"DROP TABLE {table}")
        database.execute("PRAGMA user_version = 7")
    database.close()

    (_, record) = ExperimentStorage(tmp_path).reader("r").record("1")
    output = record.output
    assert output.raw == {"id": "msg"}
    assert (output.finish_reason, output.reasoning, output.refusal) == ("length", "hm", "no")
    assert output.tool_calls == (ToolCall("add", {"a": 1}, id="c"),)
    assert output.logprobs == {"content": []}


def test_a_body_that_cannot_be_read_is_left_as_it_is(tmp_path):
    evaluate(tmp_path, lambda prompt: "81")
    with sqlite3.connect(tmp_path / "themis.db") as database:
        database.execute("""UPDATE records SET body = '{"finish_reason'""")
        database.execute("PRAGMA user_version = 8")
    database.close()

    with ExperimentStorage(tmp_path).engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT body FROM records").scalar() == '{"finish_reason'


def test_thoughts_in_the_answers_of_an_older_store_are_told_apart_and_the_resumed_run_is_judged_alike(tmp_path):
    rows = [{"id": str(n), "question": "9 x 9?", "answer": "81"} for n in range(3)]
    asked = {"prompt": "{question}", "storage": tmp_path, "progress": False, "run_id": "r", "workers": 1}
    themis.evaluate(rows, model=think, stop_when=lambda record: "enough", **asked)
    with sqlite3.connect(tmp_path / "themis.db") as database:
        (answered,) = database.execute("SELECT count(*) FROM records").fetchone()
        database.execute("UPDATE records SET body = ?", (json.dumps({"prompt": "9 x 9?", "text": think("")}),))
        database.execute("PRAGMA user_version = 12")
    database.close()

    report = themis.evaluate(rows, model=think, **asked)

    assert 0 < answered < 3
    assert report.metric("exact_match").mean == 1.0
    assert {(record.output.text, record.output.reasoning) for record in report.generation_results} == {("81", "9 x 9")}


def test_the_system_prompt_of_an_older_run_is_shown_with_its_samples(tmp_path):
    evaluate(tmp_path, lambda prompt: "81")
    with sqlite3.connect(tmp_path / "themis.db") as database:
        (config,) = database.execute("SELECT config FROM runs").fetchone()
        stored = json.loads(config)
        stored["specification"]["provider_options"] = {"system_prompt": "Be brief."}
        database.execute("UPDATE runs SET config = ?", (json.dumps(stored),))
        database.execute("PRAGMA user_version = 12")
    database.close()

    (_, record) = ExperimentStorage(tmp_path).reader("r").record("1")
    assert list_asked(record.task)[0] == {"role": "system", "content": "Be brief."}


def think(prompt):
    return "<think>9 x 9</think>81"
