"""What was said in a sample, as it is read: calls with their results, parts as what they are, endings in words."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.entities import (
    GenerationTask,
    MetricScore,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    SamplingConfig,
)
from themis.core.transcripts import (
    describe_ending,
    list_answered,
    list_asked,
    list_turns,
    shorten_data,
    verdicts_by_attempt,
    without_retold,
)

PNG = b"\x89PNG\r\n\x1a\n and so on"


def task(text: str = "2 + 2?", **metadata: Any) -> GenerationTask:
    return GenerationTask(
        PromptRender(PromptSpec("p", "{q}"), text), ModelSpec("m", "fake"), SamplingConfig(), metadata
    )


def call(number: str, name: str = "add", **arguments: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "arguments": arguments}


def result(number: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": number, "content": text, **more}


def test_the_system_prompt_is_said_first_unless_the_conversation_has_its_own():
    own = [{"role": "system", "content": "Mine."}, {"role": "user", "content": "Hi"}]

    assert [one["content"] for one in list_asked(task(system_prompt="Ours."))] == ["Ours.", "2 + 2?"]
    assert list_asked(task(system_prompt="Ours.", messages=own)) == own
    assert list_asked(task()) == [{"role": "user", "content": "2 + 2?"}]


def test_messages_of_other_providers_are_read_as_ours():
    said = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "5"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "2", "function": {"name": "f", "arguments": "{}"}}],
        },
    ]

    turns = list_turns(list_asked(task(messages=said)))

    assert [(turn.role, turn.text, [one.written for one in turn.calls]) for turn in turns] == [
        ("tool", "5", []),
        ("assistant", "", ["f()"]),
    ]


@pytest.mark.parametrize("given", [[], "hello", [1], [{"content": "no role"}], [{"role": "user", "tool_calls": 5}]])
def test_what_is_no_conversation_is_shown_as_json(given):
    [turn] = list_turns(list_asked(task(messages=given)))

    assert json.loads(turn.text)["messages"] == given


def test_results_stand_with_the_calls_that_asked_for_them_whatever_their_order():
    said = [
        {"role": "assistant", "content": "", "tool_calls": [call("1", a=1), call("2", a=2), call("3", a=3)]},
        result("2", "two"),
        result("1", "one", error=True),
        {"role": "assistant", "content": "done", "tool_calls": [call("1", a=4)]},
        result("1", "four"),
    ]

    first, second = list_turns(said)

    assert [(one.result.text, one.result.is_error) for one in first.calls[:2]] == [("one", True), ("two", False)]
    assert first.calls[2].result is None
    assert second.calls[0].result.text == "four"


def test_a_result_without_a_call_is_a_message_of_its_own():
    assert [turn.role for turn in list_turns([result("9", "nobody asked"), result("", "nor here")])] == ["tool", "tool"]


def test_an_image_in_a_message_is_known_by_its_content():
    said = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "media_type": "image/png", "name": "a.png", "data": base64.b64encode(PNG).decode()},
        {"type": "image", "media_type": "image/svg+xml", "digest": "0" * 64},
        {"type": "image", "url": "https://example.org/b.png"},
        {"type": "file", "name": "c.pdf", "media_type": "application/pdf", "data": "not base64!"},
        {"type": "audio", "seconds": 3},
    ]

    [turn] = list_turns([{"role": "user", "content": said}])

    assert turn.parts[1].digest == hashlib.sha256(PNG).hexdigest()
    assert [part.is_picture for part in turn.parts] == [False, True, False, False, False, False]
    assert turn.text.splitlines()[:5] == [
        "Look:",
        "[image a.png, image/png]",
        "[image image/svg+xml]",
        "[image https://example.org/b.png]",
        "[file c.pdf, application/pdf]",
    ]
    assert json.loads(turn.parts[5].text) == said[5]


@pytest.mark.parametrize("digest", ["../../etc/passwd", '"><script>', "0" * 63, "A" * 64, 7])
def test_only_a_digest_is_taken_for_one(digest):
    [turn] = list_turns([{"role": "user", "content": [{"type": "image", "media_type": "image/png", "digest": digest}]}])

    assert turn.parts[0].digest == ""


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            name: ANYTHING | st.sampled_from(["assistant", "tool", [{"type": "image", "data": 1}], [{"name": {}}]])
            for name in ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning", "refusal", "error")
        },
    )
    | ANYTHING,
    max_size=5,
)


@given(MESSAGES)
def test_whatever_stands_in_a_conversation_can_be_shown(messages):
    for turns in (list_turns(messages), list_turns(list_asked(task(messages=messages)))):
        for turn in turns:
            assert isinstance(turn.role + turn.name + turn.reasoning + turn.refusal + turn.text, str)
            assert all(isinstance(one.written + one.pretty, str) for one in turn.calls)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (ModelOutput("4", finish_reason="stop"), ""),
        (ModelOutput("4"), ""),
        (ModelOutput("4", finish_reason="length"), "cut off at max_tokens=64"),
        (ModelOutput("", finish_reason="tool_calls"), "ended by calling tools"),
        (ModelOutput("No.", refusal="No.", finish_reason="stop"), "refused"),
        (ModelOutput("", finish_reason="content_filter"), "stopped by the provider's content filter"),
        (ModelOutput("", finish_reason="max_sample_usd"), "stopped by max_sample_usd"),
        (ModelOutput("", finish_reason="recitation"), "ended by recitation"),
        (None, ""),
    ],
)
def test_an_ending_is_said_in_words(output, words):
    assert describe_ending(output, 64) == words


def test_an_answer_that_was_cut_off_without_a_limit_of_ours_says_so():
    assert describe_ending(ModelOutput("", finish_reason="length"), -1) == "cut off at the model's own limit"


def test_what_a_whole_conversation_tells_itself_is_not_said_twice():
    asked = list_asked(task(system_prompt="Be brief."))
    whole = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]

    assert without_retold(asked, [list_answered(ModelOutput("4"))]) == asked
    assert without_retold(asked, [whole, []]) == asked[:1]
    assert without_retold(asked, [[{"role": "system", "content": "Be brief."}, *whole]]) == []


def test_what_was_asked_is_shown_beside_a_conversation_that_tells_something_else():
    asked = list_asked(task(system_prompt="Be brief."))
    whole = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    other = [{"role": "user", "content": "Add 2 to 2, says the boss."}, {"role": "assistant", "content": "4"}]

    assert without_retold(asked, [[{"role": "system", "content": "Mine."}, *whole]]) == asked[:1]
    assert without_retold(asked, [whole, other]) == asked


def test_an_answer_of_white_space_has_nothing_to_show():
    (turn,) = list_turns(list_answered(ModelOutput(" \n")))

    assert turn.parts == ()


def test_images_are_told_by_their_length_and_other_texts_are_left():
    row = {
        "picture": "data:image/png;base64," + "A" * 9_000,
        "data": "a long story " * 100,
        "part": {"data": "A" * 9_000},
    }

    assert shorten_data(row) == {
        "picture": "data:image/png;base64,[9,000 characters of base64]",
        "data": "a long story " * 100,
        "part": {"data": "[9,000 characters of base64]"},
    }


def test_the_verdict_on_each_attempt_is_told_as_far_as_it_is_known():
    told = [{"attempt": 0, "value": 1.0}, {"attempt": 2, "value": None, "reason": "the metric crashed"}]
    scores = [
        MetricScore("all", 0.5, metadata={"attempt_scores": told}),
        MetricScore("one", 0.0, {"reason": "too short"}, {"of_attempt": 1, "outcome": "unparsed"}),
        MetricScore("older", 1.0),
    ]

    found = verdicts_by_attempt(scores, [0, 1, 2])

    assert [(one.metric, one.value, one.outcome) for one in found[0]] == [("all", 1.0, "scored")]
    assert [(one.metric, one.value, one.outcome, one.reason) for one in found[1]] == [
        ("one", 0.0, "unparsed", "too short")
    ]
    assert [(one.metric, one.value, one.outcome) for one in found[2]] == [("all", None, "failed")]


def test_the_only_attempt_has_the_verdicts_of_its_sample():
    assert [one.value for one in verdicts_by_attempt([MetricScore("M", 0.25)], [0])[0]] == [0.25]
