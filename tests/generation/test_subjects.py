"""Anything that answers is evaluated like a model: functions, classes, applications, programs and agents."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from aiohttp import web

import themis
from tests.waiting import wait_until
from themis.core.entities import ModelOutput
from themis.evaluation.parts import read_part
from themis.exceptions import ConfigurationError, ProviderError, RunFailedError, ThemisError
from themis.memory import Agent
from themis.memory.agents import create_agent
from themis.storage import ExperimentStorage

ROWS = [{"id": "a", "word": "ab", "answer": "AB"}, {"id": "b", "word": "cd", "answer": "CD"}]


def evaluate(model, tmp_path, rows=ROWS, **arguments):
    return themis.evaluate(
        rows, model=model, storage=tmp_path / "store", progress=False, **{"prompt": "{word}"} | arguments
    )


def outputs(report):
    return [record.output for record in report.generation_results]


# --- functions -------------------------------------------------------------------------------------------------------


def shout(word):
    return word.upper()


async def shout_later(prompt: str) -> str:
    await asyncio.sleep(0.001)
    return prompt.upper()


def shout_row(row):
    return {"text": row["word"].upper(), "usage": {"prompt_tokens": 3, "completion_tokens": 1}, "cost_usd": 0.25}


def shout_messages(messages, row, attempt):
    assert attempt == 0
    return [*messages, {"role": "assistant", "content": messages[-1]["content"].upper()}]


def shout_fields(word, suffix=""):
    return word.upper() + suffix


class Shouter:
    def __init__(self, suffix=""):
        self.suffix = suffix

    def answer(self, prompt):
        return prompt.upper() + self.suffix


@pytest.mark.parametrize(
    "function", [shout, shout_later, shout_row, shout_messages, shout_fields, Shouter, Shouter(), lambda q: q.upper()]
)
def test_a_function_answers_by_whatever_its_parameters_ask_for(function, tmp_path):
    assert evaluate(function, tmp_path).metric("exact_match").mean == 1.0


def append_to_messages(seen):
    def answer(messages):
        seen.append(len(messages))
        messages.append({"role": "assistant", "content": "said before"})
        return "AB"

    return answer


def change_row(seen):
    def answer(row):
        seen.append(len(row["hints"]))
        row["hints"].append("said before")
        return "AB"

    return answer


def change_field(seen):
    def answer(prompt, hints):
        seen.append(len(hints))
        hints.append("said before")
        return "AB"

    return answer


def change_task(seen):
    def answer(task):
        seen.append(len(task.metadata["messages"]))
        task.metadata["messages"].append({"role": "assistant", "content": "said before"})
        return "AB"

    return answer


@pytest.mark.parametrize("make", [append_to_messages, change_row, change_field, change_task])
def test_what_a_function_changes_of_what_it_is_given_no_other_attempt_is_asked(make, tmp_path):
    seen, calls = [], []

    def fails_at_first(**given):
        calls.append(1)
        said = answer(**given)
        if len(calls) == 1:
            raise ConnectionError("for a moment")
        return said

    answer = make(seen)
    fails_at_first.__signature__ = inspect.signature(answer)
    rows = [{"id": "a", "hints": ["h"], "messages": [{"role": "user", "content": "ab"}], "answer": "AB"}]
    evaluate(fails_at_first, tmp_path, rows=rows, prompt=None, num_samples=2, workers=1, max_retries=2)

    assert seen == [1, 1, 1]


def test_an_annotation_says_what_the_only_parameter_gets_by_what_stands_outermost(tmp_path):
    def of_turns(turns: list[dict[str, str]]):
        return turns[-1]["content"].upper()

    def of_fields(fields: dict[str, list[str]]):
        return fields["word"].upper()

    for run_id, function in (("turns", of_turns), ("fields", of_fields)):
        assert evaluate(function, tmp_path, run_id=run_id).metric("exact_match").mean == 1.0


def test_an_async_function_may_hand_on_the_coroutine_of_another(tmp_path):
    async def hand_on(word):
        return shout_later(word)

    assert evaluate(hand_on, tmp_path).metric("exact_match").mean == 1.0


def test_what_a_function_says_of_usage_and_cost_is_counted(tmp_path):
    report = evaluate(shout_row, tmp_path)

    assert report.metadata["cost"]["total_cost"] == 0.5
    assert report.metadata["cost"]["token_counts"]["prompt_tokens"] == 6


def test_counts_of_tokens_may_be_texts(tmp_path):
    def told(prompt):
        return {"text": prompt, "usage": {"prompt_tokens": "12", "completion_tokens": "many"}}

    counts = evaluate(told, tmp_path).metadata["cost"]["token_counts"]
    assert counts["prompt_tokens"] % 12 == 0 < counts["prompt_tokens"]


@pytest.mark.parametrize("cost", ["0.25", Decimal("0.25")])
def test_a_cost_may_be_a_decimal_or_written_as_a_text(cost, tmp_path):
    report = evaluate(lambda prompt: {"text": prompt.upper(), "cost_usd": cost, "error": None}, tmp_path)

    assert report.metadata["cost"]["total_cost"] == 0.5


def test_an_answer_may_tell_how_far_off_it_may_be(tmp_path):
    report = evaluate(lambda prompt: {"answer": prompt.upper(), "error": 0.1}, tmp_path)

    assert report.metric("exact_match").mean == 1.0


def test_the_expected_answer_is_not_shown_to_whoever_answers(tmp_path):
    def peek(row):
        return str(row.get("answer"))

    assert evaluate(peek, tmp_path).metric("exact_match").mean == 0.0


def test_rows_that_a_function_gets_need_no_prompt(tmp_path):
    rows = [{"id": "1", "question": "ab", "answer": "AB"}]
    report = themis.evaluate(rows, model=lambda row: row["question"].upper(), storage=tmp_path, progress=False)

    assert report.metric("exact_match").mean == 1.0


def test_changed_code_is_another_model(tmp_path):
    def write(body):
        path = tmp_path / "app.py"
        path.write_text(f"def answer(prompt):\n    return prompt.{body}()\n")
        return f"python:{path}:answer"

    evaluate(write("upper"), tmp_path, run_id="r")
    assert evaluate(write("upper"), tmp_path, run_id="r").metric("exact_match").mean == 1.0
    with pytest.raises(ConfigurationError, match=r"model: stored 'code"):
        evaluate(write("lower"), tmp_path, run_id="r")


AROUND: dict = {}
AROUND["itself"] = AROUND


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda prompt: None, "is None"),
        (lambda prompt: {"meaning": 42}, "has the fields meaning"),
        (lambda prompt: object(), "is of the type object"),
        (lambda prompt: prompt.encode(), "is of the type bytes"),
        (lambda prompt: [prompt], "is of the type list"),
        (lambda prompt: {"choices": []}, "has the fields choices"),
        (lambda prompt: {"text": None, "ok": True}, r"has the fields text \(of the type NoneType\), ok"),
        (lambda prompt: {"text": [prompt]}, r"has the fields text \(of the type list\)"),
        (lambda prompt: {"choices": "x"}, "cannot be read"),
        (lambda prompt: {"messages": [1]}, "cannot be read"),
        (lambda prompt: {"text": prompt, "tool_calls": "search"}, "cannot be read"),
        (lambda prompt: ModelOutput(prompt, reasoning=["I", "think"]), "reasoning of the type list"),
        (lambda prompt: ModelOutput(prompt, tool_calls=({"name": "search"},)), "tool_calls that are not"),
        (lambda prompt: ModelOutput(prompt, usage=12), "usage of the type int"),
        (lambda prompt: ModelOutput(prompt, cost_usd=float("nan")), "cost_usd=nan"),
        (lambda prompt: {"text": prompt, "cost_usd": float("inf")}, "cost_usd='inf'; expected a number of dollars"),
        (lambda prompt: {"text": prompt, "cost_usd": -1}, "cost_usd='-1'"),
        (lambda prompt: {"text": "", "error": "out of order"}, "an error: out of order"),
        (lambda prompt: {"answer": "I am sorry.", "error": {"code": 7}}, 'an error: {"code": 7}'),
        (lambda missing, word: word, "neither a field of the row"),
        (lambda prompt: {"text": prompt, "logprobs": object()}, "logprobs that cannot be stored"),
        (lambda prompt: ModelOutput(prompt, raw={"client": object()}), "raw that cannot be stored"),
        (lambda prompt: ModelOutput(prompt, raw=AROUND), "raw that cannot be stored"),
        (lambda prompt: ModelOutput(prompt, usage={"prompt_tokens": "many"}), r"usage\['prompt_tokens'\]='many'"),
    ],
)
def test_what_is_no_answer_is_a_failure_that_says_what_was_expected(function, said, tmp_path):
    with pytest.raises(RunFailedError, match=said):
        evaluate(function, tmp_path)


def test_an_answer_that_cannot_be_stored_fails_alone_and_what_it_cost_is_counted(tmp_path):
    def answer(word):
        return {"text": word.upper(), "logprobs": object() if word == "cd" else None, "cost_usd": 0.5}

    report = evaluate(answer, tmp_path)

    assert (report.metric("exact_match").mean, report.metric("exact_match").count) == (1.0, 1)
    assert report.metadata["cost"]["total_cost"] == 1.0


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Unspeakable(), "Unspeakable"),
        (ExceptionGroup("of a TaskGroup", [ValueError("no such city")]), "ValueError: no such city"),
    ],
)
def test_whatever_a_function_raises_fails_its_call_and_is_told(error, said, tmp_path):
    def answer(word):
        if word == "cd":
            raise error
        return word.upper()

    report = evaluate(answer, tmp_path, max_retries=1)

    assert [record.error and said in record.error.message for record in report.generation_results] == [None, True]


def streamed(prompt):
    yield prompt


async def streamed_later(prompt):
    yield prompt


class Unmade:
    def __init__(self):
        raise LookupError("no model at hand")

    def answer(self, prompt):
        return prompt


async def cancelled(prompt):
    raise asyncio.CancelledError


async def leaving(prompt):
    sys.exit(2)


@pytest.mark.parametrize(("function", "said"), [(cancelled, "the call was cancelled"), (leaving, "SystemExit: 2")])
def test_an_async_function_that_is_cancelled_or_leaves_is_a_failed_call(function, said, tmp_path):
    with pytest.raises(RunFailedError, match=said):
        evaluate(function, tmp_path, max_retries=1)


@pytest.mark.parametrize("model", [None, 3, [], object(), lambda: "x", streamed, streamed_later, Unmade])
def test_what_cannot_answer_is_refused_before_the_first_call(model, tmp_path):
    with pytest.raises((ConfigurationError, ProviderError)):
        evaluate(model, tmp_path)


def test_reasoning_tool_calls_and_refusals_of_a_function_are_kept_apart(tmp_path):
    def answer(prompt):
        return {"text": prompt.upper(), "reasoning": "loud", "finish_reason": "stop", "logprobs": [-0.5]}

    (first, _) = outputs(evaluate(answer, tmp_path))

    assert (first.text, first.reasoning, first.finish_reason, first.logprobs) == ("AB", "loud", "stop", [-0.5])


def test_what_a_function_says_beside_its_answer_is_kept_as_text_whatever_its_shape(tmp_path):
    def answer(prompt):
        return {"text": prompt.upper(), "reasoning": {"steps": [1]}, "refusal": False, "finish_reason": {"code": 3}}

    (first, _) = outputs(evaluate(answer, tmp_path))

    assert (first.text, first.reasoning, first.refusal) == ("AB", '{"steps": [1]}', None)
    assert first.finish_reason == '{"code": 3}'


@pytest.mark.parametrize(
    ("answer", "text", "reasoning"),
    [
        ({"text": "<think>hm</think>AB", "reasoning": "hm"}, "AB", "hm"),
        ({"text": "hm</think>AB", "reasoning": "hm"}, "AB", "hm"),
        ({"text": "<think>hm</think>AB", "reasoning": "a summary"}, "AB", "a summary\n\nhm"),
        ({"text": "AB</think>", "reasoning": "hm"}, "AB</think>", "hm"),
        ([{"role": "user", "content": "?"}, {"role": "assistant", "content": "<think>hm</think>AB"}], "AB", "hm"),
    ],
)
def test_a_thought_in_tags_is_no_answer_though_it_is_told_apart_too(answer, text, reasoning, tmp_path):
    (output,) = outputs(evaluate(lambda prompt: answer, tmp_path, rows=ROWS[:1]))

    assert (output.text, output.reasoning) == (text, reasoning)
    assert all("<think>" not in str(message) for message in output.transcript)


def test_what_was_thought_on_the_way_to_an_answer_is_told_apart_in_each_message(tmp_path):
    parts = [{"type": "text", "text": "<think>so</think>AB"}]
    said = [
        {"role": "user", "content": "is <think>this</think> a tag?"},
        {"role": "assistant", "content": "<think>hm</think>Let me look."},
        {"role": "user", "content": "Well?"},
        {"role": "assistant", "content": parts},
    ]
    (output,) = outputs(evaluate(lambda prompt: said, tmp_path, rows=ROWS[:1]))

    heard = "user: is <think>this</think> a tag?\nassistant: Let me look.\nuser: Well?\nassistant: AB"
    assert (read_part(output, "text"), read_part(output, "reasoning")) == ("AB", "hm\n\nso")
    assert read_part(output, "transcript") == heard


def test_a_function_is_retried_and_held_to_a_budget_like_a_model(tmp_path):
    calls = []

    def costly(prompt):
        calls.append(prompt)
        if len(calls) == 1:
            raise ConnectionError("try again")
        return {"text": prompt.upper(), "cost_usd": 1.0}

    rows = [{"id": str(n), "word": "ab", "answer": "AB"} for n in range(10)]
    with pytest.raises(ConfigurationError, match="most_cost_usd"):
        evaluate(lambda prompt: prompt, tmp_path, rows=rows, budget_usd=3.0, workers=1)
    report = evaluate(costly, tmp_path, rows=rows, budget_usd=3.0, workers=1, run_id="r",
                      provider_options={"most_cost_usd": 1.0})  # fmt: skip

    assert report.metadata["cost"]["total_cost"] == 3.0
    assert "budget" in report.metadata["stopped"]


def test_a_failed_call_that_says_what_it_cost_is_paid_from_the_budget(tmp_path):
    calls = []

    def crashing(prompt):
        calls.append(prompt)
        return {"error": "the tool crashed", "cost_usd": 0.5}

    rows = [{"id": str(n), "word": "ab", "answer": "AB"} for n in range(10)]
    report = evaluate(crashing, tmp_path, rows=rows, budget_usd=2.0, workers=1, max_retries=2, keep_going=True,
                      provider_options={"most_cost_usd": 0.5})  # fmt: skip

    assert report.metadata["cost"]["total_cost"] == 0.5 * len(calls) == 2.0
    assert "budget" in report.metadata["stopped"]


@pytest.mark.parametrize("tells", [True, False], ids=["only a failed call tells no cost", "no call does"])
def test_what_answers_without_a_price_may_have_cost_counts_in_the_budget_of_a_resumed_run(tmp_path, tells):
    calls = []

    def app(prompt):
        calls.append(prompt)
        if prompt == "no":
            raise ValueError("not this one")
        return {"text": prompt.upper(), **({"cost_usd": 1.0} if tells else {})}

    rows = [{"id": str(n), "word": "no" if n == 1 else "ab", "answer": "AB"} for n in range(20)]
    for _ in range(3):
        report = evaluate(app, tmp_path, rows=rows, budget_usd=5.0, workers=1, run_id="r",
                          provider_options={"most_cost_usd": 1.0})  # fmt: skip
        assert "($5.0000 spent)" in report.metadata["stopped"]

    assert len([call for call in calls if call == "ab"]) <= 5


def test_a_call_that_took_too_long_is_taken_to_have_cost_what_it_may(tmp_path):
    calls = []

    async def late(prompt):
        calls.append(prompt)
        await asyncio.sleep(60)

    rows = [{"id": str(n), "word": "ab", "answer": "AB"} for n in range(10)]
    report = evaluate(late, tmp_path, rows=rows, budget_usd=3.0, workers=1, max_retries=2, keep_going=True,
                      timeout_seconds=0.02, provider_options={"most_cost_usd": 1.0})  # fmt: skip

    assert len(calls) == 3
    assert "budget" in report.metadata["stopped"]


def error_within(prompt):
    return {"choices": [{"finish_reason": "error", "error": {"code": 502}, "message": {"content": prompt.upper()}}]}


def error_after_some_words(prompt):
    return {"text": prompt.upper(), "finish_reason": "error"}


def filtered(prompt):
    return {"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}


def filtered_whole(prompt):
    return {"text": "", "finish_reason": "content_filter"}


@pytest.mark.parametrize("function", [error_within, error_after_some_words, filtered, filtered_whole])
def test_an_answer_that_the_provider_broke_off_is_a_failed_call_whatever_stands_in_it(function, tmp_path):
    with pytest.raises(RunFailedError) as failed:
        evaluate(function, tmp_path, max_retries=1)

    assert failed.value.report.metadata["failed_generations"] == 2


def test_no_field_that_metrics_compare_with_is_shown_to_whoever_answers(tmp_path):
    seen = []

    def peek(task, row):
        seen.append((task.reference, sorted(task.prompt.context), sorted(row)))
        return "AB"

    rows = [{**row, "expected_tools": ["add"], "hint": 1} for row in ROWS]
    evaluate(peek, tmp_path, rows=rows, metrics=["exact_match", "tool_called"], workers=1)

    assert seen == [(None, ["hint", "id", "word"], ["hint", "id", "word"])] * 2


# --- by name -----------------------------------------------------------------------------------------------------------


def test_code_is_found_by_file_and_by_module(tmp_path, monkeypatch):
    (tmp_path / "shouting.py").write_text("def answer(prompt):\n    return prompt.upper()\n")
    monkeypatch.chdir(tmp_path)

    for model in ("python:shouting.py:answer", "python:shouting:answer"):
        assert evaluate(model, tmp_path).metric("exact_match").mean == 1.0


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("python:absent.py:answer", "there is none at 'absent.py'"),
        ("python:shouting.py:anser", "did you mean 'answer'"),
        ("python:shouting.py", "FILE.py:NAME"),
        ("python:no_such_module_here:answer", "no module"),
        (
            "python:needy.py:answer",
            "needy.py, line 1: cannot be run: ModuleNotFoundError: No module named 'absent_module'",
        ),
        ("python:half.py:answer", "half.py: cannot be run: SyntaxError"),
        ("command:./absent-program", "cannot be started"),
        ("http://user:secret@localhost:1/x", "holds no password"),
    ],
)
def test_mistakes_in_names_are_told(model, said, tmp_path, monkeypatch):
    (tmp_path / "shouting.py").write_text("def answer(prompt):\n    return prompt.upper()\n")
    (tmp_path / "needy.py").write_text("import absent_module\n")
    (tmp_path / "half.py").write_text("def answer(prompt) return\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ThemisError, match=said):
        evaluate(model, tmp_path)


def test_a_program_that_cannot_be_started_is_told_before_the_first_question(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text("print('4')\n")

    for command, said in (
        ("command:./absent", "there is no program './absent'"),
        ("command:absent-program {prompt}", "there is no program 'absent-program' on the PATH"),
        ("command:./app.py {prompt}", r"not executable: chmod \+x it, or name what runs it, as in 'python ./app.py'"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            evaluate(command, tmp_path / "store", run_id="never")
    assert not ExperimentStorage(tmp_path / "store").exists()


# --- applications ------------------------------------------------------------------------------------------------------


def test_an_application_gets_the_whole_question_and_answers_in_json(server, tmp_path):
    async def answer(request, seen):
        return web.json_response({"reply": seen.body["row"]["word"].upper(), "cost_usd": 0.5})

    server.answer = answer
    report = evaluate(server.address("/ask"), tmp_path, system_prompt="Be loud.", temperature=0.5)

    assert report.metric("exact_match").mean == 1.0
    assert report.metadata["cost"]["total_cost"] == 1.0
    asked = server.last.body
    assert asked["messages"][0] == {"role": "system", "content": "Be loud."}
    assert (asked["type"], asked["turn"], asked["attempt"], asked["sampling"]["temperature"]) == ("message", 1, 0, 0.5)
    assert "answer" not in asked["row"]


def test_an_application_of_another_shape_is_described_by_a_template(server, tmp_path):
    async def answer(request, seen):
        return web.json_response({"data": {"answers": [{"text": seen.body["inputs"]["q"].upper()}]}})

    server.answer = answer
    shape = {"inputs": {"q": "{prompt}", "history": "{messages}", "note": "item {item_id}"}, "top_k": 3}
    report = evaluate(
        server.address(), tmp_path, provider_options={"request": shape, "response": "data.answers[0].text"}
    )

    assert report.metric("exact_match").mean == 1.0
    assert server.last.body["inputs"]["history"] == [{"role": "user", "content": server.last.body["inputs"]["q"]}]
    assert server.last.body["top_k"] == 3


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ('{"q": "{{prompt}}"}', "nothing of the question in it"),
        ('{"q": "constant", "n": 3}', "nothing of the question in it"),
        ('{"q": "{word}"}', r"names {word}, which no question has.*{row\[word\]}"),
    ],
)
def test_a_request_that_would_ask_every_row_the_same_is_refused_before_the_first_call(request_, said, server, tmp_path):
    with pytest.raises(ConfigurationError, match=said):
        evaluate(server.address(), tmp_path, provider_options={"request": request_})

    assert not server.seen


def test_where_an_answer_stands_may_be_told_when_it_is_not_found(server, tmp_path):
    server.says([{"generated_text": "AB"}])

    with pytest.raises(RunFailedError, match=r"type list.*option response=.*generated_text"):
        evaluate(server.address(), tmp_path)
    report = evaluate(server.address(), tmp_path, rows=ROWS[:1], provider_options={"response": "[0].generated_text"})
    assert report.metric("exact_match").mean == 1.0


def test_an_application_may_say_that_the_answer_was_created(server, tmp_path):
    server.says({"text": "AB"}, status=201)

    assert evaluate(server.address(), tmp_path, rows=ROWS[:1]).metric("exact_match").mean == 1.0


def test_an_application_that_says_in_its_answer_that_it_failed_is_asked_again(server, tmp_path):
    asked = []

    async def answer(request, seen):
        asked.append(seen.body["item_id"])
        failed = {"text": "Sorry, something went wrong.", "error": "the model is overloaded"}
        return web.json_response(failed if len(asked) == 1 else {"text": seen.body["prompt"].upper()})

    server.answer = answer
    report = evaluate(server.address(), tmp_path, workers=1, max_retries=2)

    assert (report.metric("exact_match").mean, len(asked)) == (1.0, 3)


def test_what_went_wrong_is_heard_wherever_the_answer_stands(server, tmp_path):
    server.says({"data": [{"text": "AB"}], "error": "the index is gone"})

    with pytest.raises(RunFailedError, match="the index is gone"):
        evaluate(server.address(), tmp_path, max_retries=1, provider_options={"response": "data[0].text"})


@pytest.mark.parametrize(
    "shape",
    [
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "AB"}]},
        {"content": [{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": "AB"}]},
        {"text": "AB", "reasoning_content": "hm"},
        {"text": "AB", "thinking": "hm"},
        {"messages": [{"role": "assistant", "content": "AB", "reasoning_content": "hm"}]},
    ],
)
def test_reasoning_is_apart_in_every_shape_that_an_application_answers_in(shape, server, tmp_path):
    server.says({**shape, "usage": {"input_tokens": 5, "output_tokens": 2}})
    report = evaluate(server.address(), tmp_path, rows=ROWS[:1])

    (output,) = outputs(report)
    assert (output.text, output.reasoning, output.parts) == ("AB", "hm", ())
    assert output.usage["total_tokens"] == 7


@pytest.mark.parametrize(
    "shape",
    [{"refusal": "I will not."}, {"text": "", "refusal": "I will not."},
     {"messages": [{"role": "assistant", "content": None, "refusal": "I will not."}]}],
)  # fmt: skip
def test_the_words_of_a_refusal_are_what_was_said(shape, server, tmp_path):
    server.says(shape)
    (output,) = outputs(evaluate(server.address(), tmp_path, rows=ROWS[:1]))

    assert (output.text, output.refusal) == ("I will not.", "I will not.")


def test_an_image_that_an_application_answers_with_is_a_part(server, tmp_path):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    server.says({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "AB"}, picture]}]})
    (output,) = outputs(evaluate(server.address(), tmp_path, rows=ROWS[:1]))

    assert output.text == "AB"
    assert [part["type"] for part in output.parts] == ["image"]


def test_a_request_can_have_the_picture_that_is_attached(server, tmp_path):
    pixel = "data:image/png;base64,iVBORw0KGgo="
    server.says({"text": "AB"})
    shape = {"q": "{prompt}", "picture": "{row[image][data]}"}
    evaluate(server.address(), tmp_path, rows=[{**ROWS[0], "image": pixel}], attach=["image"],
             provider_options={"request": shape})  # fmt: skip

    assert server.last.body["picture"] == "iVBORw0KGgo="


def test_an_answer_to_another_row_is_not_reused_though_it_was_asked_the_same(server, tmp_path):
    async def answer(request, seen):
        return web.json_response({"text": seen.body["row"]["answerer"]})

    server.answer = answer
    rows = [{"id": name, "word": "who?", "answerer": name, "answer": name} for name in ("ann", "bob")]
    for number in range(2):
        data = rows[number : number + 1]
        report = evaluate(server.address("/ask"), tmp_path, rows=data, cache="store", run_id=f"r{number}")
        assert report.metric("exact_match").mean == 1.0


def test_an_application_that_has_moved_says_where_to(server, tmp_path):
    async def answer(request, seen):
        return web.Response(status=307, headers={"Location": "/new"})

    server.answer = answer
    with pytest.raises(RunFailedError, match=r"redirects to .*/new: give that as the model"):
        evaluate(server.address("/ask"), tmp_path)


def test_an_application_that_fails_is_a_failure_and_not_a_score(server, tmp_path):
    server.says({"error": {"message": "out of order"}}, status=400)

    with pytest.raises(RunFailedError, match="out of order"):
        evaluate(server.address(), tmp_path, max_retries=1)


PROGRAM = """
import json, sys
for line in sys.stdin:
    question = json.loads(line)
    if question["row"]["word"] == "die":
        sys.exit(3)
    print(json.dumps({"text": question["prompt"].upper(), "usage": {"prompt_tokens": 1, "completion_tokens": 1}}), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return f"command:{sys.executable} {path}"


def test_a_program_answers_line_by_line(program, tmp_path):
    assert evaluate(program, tmp_path).metric("exact_match").mean == 1.0


def test_a_program_that_ends_is_started_again_for_the_next_row(program, tmp_path):
    rows = [*ROWS, {"id": "c", "word": "die", "answer": "X"}, {"id": "d", "word": "ef", "answer": "EF"}]
    report = evaluate(program, tmp_path, rows=rows, max_retries=1, workers=1)

    exact = report.metric("exact_match")
    assert (exact.mean, exact.count, exact.failed) == (1.0, 3, 1)
    assert "exit code 3" in report.failures[0].message


NUMBERED = [{"id": name, "word": name, "answer": name.upper()} for name in "abcdef"]
LOOP = "import json, sys\nfor line in sys.stdin:\n    word = json.loads(line)['prompt']\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    print('thinking...')\n    print(json.dumps(word.upper()), flush=True)\n", "not JSON: 'thinking...'"),
        (
            "    print(json.dumps(word.upper()))\n    print(json.dumps({'took': 3}), flush=True)\n",
            "not asked for: .*took",
        ),
        (
            "    print(json.dumps(word.upper()), flush=True)\n    print(json.dumps('A'), flush=True)\n",
            "what it was not asked for: .*A",
        ),
    ],
)
def test_a_program_that_writes_more_than_its_answer_has_none(body, said, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(LOOP + body)

    with pytest.raises(RunFailedError, match=said):
        evaluate(f"command:{sys.executable} {path}", tmp_path, rows=NUMBERED, workers=1, max_retries=1)


def test_a_greeting_of_a_program_does_not_move_its_answers_to_other_rows(tmp_path):
    path = tmp_path / "program.py"
    greeting = "import time\nprint('{\"ready\": true}', flush=True)\n"
    path.write_text(greeting + LOOP + "    time.sleep(0.1)\n    print(json.dumps(word.upper()), flush=True)\n")

    with pytest.raises(RunFailedError, match="has the fields ready"):
        evaluate(f"command:{sys.executable} {path}", tmp_path, rows=NUMBERED, workers=1, max_retries=1)


def test_a_line_too_many_is_not_taken_for_the_answer_to_the_next_row(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(LOOP + "    print(json.dumps(word.upper()) + ('\\n\"A\"' if word == 'd' else ''), flush=True)\n")
    report = evaluate(f"command:{sys.executable} {path}", tmp_path, rows=NUMBERED, workers=1, max_retries=1)

    exact = report.metric("exact_match")
    assert (exact.mean, exact.count, exact.failed) == (1.0, 5, 1)
    assert "what it was not asked for" in report.failures[0].message


def test_empty_lines_of_a_program_are_no_answers(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(LOOP + "    print()\n    print(json.dumps(word.upper()))\n    print('\\n', flush=True)\n")
    report = evaluate(f"command:{sys.executable} {path}", tmp_path, rows=NUMBERED, workers=1)

    assert (report.metric("exact_match").mean, report.metric("exact_match").failed) == (1.0, 0)


def test_a_program_may_answer_with_a_text_alone(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import json, sys\nfor line in sys.stdin: print(json.dumps(json.loads(line)['prompt'].upper()), flush=True)"
    )

    assert evaluate(f"command:{sys.executable} {path}", tmp_path).metric("exact_match").mean == 1.0


def test_a_program_whose_arguments_name_the_question_is_started_for_each(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import sys\nprint(f'{sys.argv[1].upper()}\\n' if sys.argv[2] == 'b' else sys.argv[1].upper())")
    report = evaluate(f"command:{sys.executable} {path} {{prompt}} {{item_id}}", tmp_path)

    assert report.metric("exact_match").mean == 1.0
    assert [record.output.text for record in report.generation_results] == [row["answer"] for row in ROWS]


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ("command:echo {{prompt}}", ConfigurationError, "nothing of the question in it"),
        ("command:echo {prompt} {wrod}", ConfigurationError, "names {wrod}"),
        ("command:echo {word}", RunFailedError, r"a field of the row is written {row\[word\]}"),
    ],
)
def test_a_command_that_only_seems_to_name_the_question_is_refused(asked, error, said, tmp_path):
    with pytest.raises(error, match=said):
        evaluate(asked, tmp_path)


def test_a_question_is_one_argument_whatever_is_in_it(tmp_path):
    rows = [{"id": "1", "word": "$(touch x); 'a\" \n{b}", "answer": ""}]
    report = evaluate("command:printf %s {prompt}", tmp_path, rows=rows)

    assert report.generation_results[0].output.text == rows[0]["word"]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import sys; sys.exit('no such room')", "exit code 1: no such room"),
        ("import time; time.sleep(900)", "took more than 1 s"),
    ],
)
def test_a_program_that_fails_at_a_question_is_a_failed_call(program, says, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(program)
    asked = f"command:{sys.executable} {path} {{prompt}}"

    with pytest.raises(RunFailedError, match=says):
        evaluate(asked, tmp_path, rows=ROWS[:1], max_retries=0, provider_options={"timeout_seconds": 1})


@pytest.mark.parametrize("asked", ["", " {prompt}"])
def test_a_program_that_never_answers_does_not_outlive_the_run(asked, tmp_path):
    program = tmp_path / "silent.py"
    program.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(900)\n"
    )
    with pytest.raises(RunFailedError, match="no answer within 1 s"):
        evaluate(f"command:{sys.executable} {program}{asked}", tmp_path, timeout_seconds=1, max_retries=1)

    for pid in map(int, (tmp_path / "pid").read_text().split()):
        wait_until(lambda pid=pid: not is_alive(pid))


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_program_that_closes_its_output_is_not_waited_for(tmp_path):
    program = tmp_path / "mute.py"
    program.write_text("import os, sys, time\nsys.stdin.readline()\nos.close(1)\ntime.sleep(900)\n")
    with pytest.raises(RunFailedError, match="has ended its output"):
        evaluate(f"command:{sys.executable} {program}", tmp_path, max_retries=1)


def test_an_answer_that_a_program_ends_with_needs_no_end_of_its_line(tmp_path):
    program = tmp_path / "once.py"
    program.write_text("import json, sys\nprint(json.dumps(json.loads(input())['prompt'].upper()), end='')\n")

    report = evaluate(f"command:{sys.executable} {program}", tmp_path, workers=1, max_retries=1)

    assert (report.metric("exact_match").mean, report.metric("exact_match").count) == (1.0, 2)


def test_what_a_program_wrote_before_it_failed_is_no_answer_and_is_told(tmp_path):
    program = tmp_path / "broken.py"
    program.write_text("import sys\ninput()\nsys.stdout.write('\"AB\"')\nsys.exit(3)\n")
    with pytest.raises(RunFailedError, match="has ended with exit code 3 after it wrote '\"AB\"'"):
        evaluate(f"command:{sys.executable} {program}", tmp_path, max_retries=1)


def test_a_program_that_writes_without_end_is_ended(tmp_path):
    with pytest.raises(RunFailedError, match="command:yes wrote more than 67,108,864 bytes"):
        evaluate("command:yes {prompt}", tmp_path, rows=ROWS[:1])


def test_what_a_program_complains_of_at_length_is_told_by_its_end(tmp_path):
    program = tmp_path / "loud.py"
    program.write_text("import sys\nsys.stderr.write('x' * 300_000 + ' out of quota')\nsys.exit(1)\n")
    with pytest.raises(RunFailedError, match=r"has ended with exit code 1: x+ out of quota"):
        evaluate(f"command:{sys.executable} {program} {{prompt}}", tmp_path, max_retries=1)


def test_a_program_that_writes_plain_text_is_told_how_it_can_be_asked(tmp_path):
    with pytest.raises(
        RunFailedError, match=r"not JSON: 'AB'; one that answers in plain text .* command:./app \{prompt\}"
    ):
        evaluate("command:echo AB", tmp_path, rows=ROWS[:1])


# --- agents ------------------------------------------------------------------------------------------------------------


class Notebook(Agent):
    def __init__(self):
        self.notes = []

    def reply(self, message, *, turn, now, presupplied=None):
        self.notes.append(message)
        return presupplied or " ".join(self.notes).upper()

    def reset(self):
        self.notes.clear()


NOTEBOOK = """
from themis.core.entities import GenerationRecord, ModelOutput
from themis.interfaces import StatelessTaskExecutor
from themis.memory import Agent

class Notebook(Agent):
    def reply(self, message, *, turn, now, presupplied=None):
        return presupplied or message.upper()
    def reset(self):
        pass

class Provider(StatelessTaskExecutor):
    def execute(self, task):
        return GenerationRecord(task, ModelOutput(task.prompt.text.upper()), None)

def answer(prompt):
    return prompt.upper()
"""


@pytest.mark.parametrize(
    "model", ["python:notes.py:Notebook", "agent:python:notes.py:Notebook", "python:notes.py:Provider",
              "agent:python:notes.py:answer"],
)  # fmt: skip
def test_whatever_code_answers_is_known_by_what_it_says(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.py").write_text(NOTEBOOK)
    assert evaluate(model, tmp_path, run_id="r").metric("exact_match").mean == 1.0
    assert evaluate(model, tmp_path, run_id="r").metric("exact_match").mean == 1.0

    (tmp_path / "notes.py").write_text(NOTEBOOK.replace("upper", "lower"))
    with pytest.raises(ConfigurationError, match="model: stored 'code "):
        evaluate(model, tmp_path, run_id="r")


def test_a_class_of_a_file_is_an_agent_of_a_memory_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.py").write_text(NOTEBOOK)

    assert create_agent("python:notes.py:Notebook").reply("hello", turn=1, now=None) == "HELLO"


@pytest.mark.parametrize("agent", [Notebook, Notebook()])
def test_an_agent_of_memory_runs_answers_each_row_in_a_conversation_of_its_own(agent, tmp_path):
    assert evaluate(agent, tmp_path).metric("exact_match").mean == 1.0


def test_an_agent_hears_what_was_said_before(tmp_path):
    said = [
        {"role": "user", "content": "ab"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "cd"},
    ]
    report = evaluate(Notebook, tmp_path, rows=[{"id": "1", "word": "cd", "messages": said, "answer": "AB CD"}])

    assert report.metric("exact_match").mean == 1.0


def test_an_agent_that_is_shown_a_picture_fails_and_says_why(tmp_path):
    picture = "data:image/png;base64,iVBORw0KGgo="
    with pytest.raises(RunFailedError, match="an agent is told texts, and a message has parts of the type image"):
        evaluate(
            Notebook, tmp_path, rows=[{"id": "1", "word": "ab", "picture": picture, "answer": "AB"}], attach=["picture"]
        )


def test_agents_are_named_as_for_memory_runs(tmp_path):
    report = evaluate("agent:parrot", tmp_path, rows=[{"id": "1", "word": "ab", "answer": "ab"}])

    assert outputs(report)[0].text


def test_a_function_is_an_agent_of_a_memory_run(tmp_path, monkeypatch):
    (tmp_path / "app.py").write_text("def answer(messages):\n    return messages[-1]['content']\n")
    monkeypatch.chdir(tmp_path)
    agent = create_agent("python:app.py:answer")

    assert agent.reply("hello", turn=1, now=None).text == "hello"
    agent.close()


@pytest.mark.parametrize("name", ["python:app.py:answer", "retrieval(python:app.py:answer)"])
def test_what_a_function_says_it_cost_is_paid_by_a_memory_run_too(tmp_path, monkeypatch, name):
    (tmp_path / "app.py").write_text("def answer(messages):\n    return {'text': 'Noted.', 'cost_usd': 0.25}\n")
    monkeypatch.chdir(tmp_path)

    unbounded = create_agent(name)
    agent = create_agent(name, options={"most_cost_usd": 0.5})

    assert "most_cost_usd" in unbounded.how_to_bound_cost
    assert (unbounded.most_cost_usd("hello"), agent.most_cost_usd("hello")) == (None, 0.5)
    assert agent.reply("hello", turn=1, now=datetime(2024, 1, 1, tzinfo=UTC)).cost_usd == 0.25
    for one in (unbounded, agent):
        one.close()


def test_an_output_object_passes_as_it_is(tmp_path):
    (first, _) = outputs(
        evaluate(lambda prompt: ModelOutput(prompt.upper(), raw={"seen": json.dumps(prompt)}), tmp_path)
    )

    assert first.raw == {"seen": '"ab"'}


def test_rows_that_break_a_function_each_time_do_not_fail_a_run_that_is_asked_for_again(tmp_path):
    """Then nothing but they are left, and come in a row."""

    def answer(prompt: str) -> str:
        number = int(prompt.split()[1])
        return str(None + 1) if number % 4 == 0 else str(number)

    rows = [{"id": str(n), "question": f"say {n}", "answer": str(n)} for n in range(40)]
    for _ in range(2):
        report = themis.evaluate(
            rows, model=answer, prompt="{question}", run_id="broken", storage=tmp_path, progress=False
        )

        assert (report.metadata["status"], report.metadata["failed_generations"]) == ("completed", 10)
