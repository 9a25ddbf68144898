"""Messages of any shape become one form, and what a model thought is told apart from what it said."""

from __future__ import annotations

import time

import pytest

from themis.core.entities import ModelOutput, ToolCall
from themis.core.messages import describe_content, format_transcript, read_messages, split_reasoning
from themis.exceptions import ConfigurationError


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>9 x 9</think>\n\n81", "9 x 9", "81"),
        ("<thinking>\nhm\n</thinking>81", "hm", "81"),
        ("9 x 9 is</think>81", "9 x 9 is", "81"),
        ("[THINK]hm[/THINK]81", "hm", "81"),
        ("◁think▷hm◁/think▷81", "hm", "81"),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>81", "hm", "81"),
        ("<think>never closed", "never closed", ""),
        ("\ufeff<think>9 x 9</think>81", "9 x 9", "81"),
        (
            "<|begin_of_thought|>\n\nhm\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\n81\n\n<|end_of_solution|>",
            "hm",
            "81",
        ),
        ("<|begin_of_thought|>9 x 9, so 80", "9 x 9, so 80", ""),
        ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>81<|END_RESPONSE|>", "hm", "81"),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>81<|return|>",
            "hm",
            "81",
        ),
        ("<think>hm</think>A line.\n", "hm", "A line.\n"),
        ("<think></think>81", "", "81"),
        ("<think>a</think><think>b</think>81", "a\n\nb", "81"),
        ("<think>a <think>b</think> c</think>81", "a <think>b</think> c", "81"),
        ("<think>no <think> here</think>81", "no <think> here", "81"),
        ("<think>no <think> here</think>81, <think>x</think>", "no <think> here", "81, <think>x</think>"),
        ("<think>then `</think>` ends it</think>81", "then `</think>` ends it", "81"),
        ("<think>it is `81`</think>`81`", "it is `81`", "`81`"),
        ("<think>t.split('</think>')</think>81", "t.split('</think>')", "81"),
        ('<think>I end with "</think>" then.</think>81', 'I end with "</think>" then.', "81"),
        ('<think>it is "81"</think>"81"', 'it is "81"', '"81"'),
        ('<think>hm </think>"81"', "hm", '"81"'),
        ("<Thinking>hm</Thinking>81", "hm", "81"),
        ("<seed:think>hm</seed:think>81", "hm", "81"),
        ('text.split("</think>")[-1]', None, 'text.split("</think>")[-1]'),
        ('then "</think>" ends it</think>81', 'then "</think>" ends it', "81"),
        ("<think>`\nthen `</think>` ends it</think>81", "`\nthen `</think>` ends it", "81"),
        ("Write `</think>` behind it.", None, "Write `</think>` behind it."),
        ("```xml\n</think>\n```", None, "```xml\n</think>\n```"),
        ("81", None, "81"),
        ("if a < b then <b>bold</b>", None, "if a < b then <b>bold</b>"),
        ("The tag <think>x</think> is shown.", None, "The tag <think>x</think> is shown."),
        ("", None, ""),
    ],
)
def test_a_thought_is_what_stands_before_the_answer(text, reasoning, answer):
    assert split_reasoning(text) == (reasoning, answer)


def test_a_model_that_repeats_its_tags_without_end_is_read_in_a_moment():
    began = time.process_time()

    assert split_reasoning("<think>`" * 100_000).answer == ""
    assert time.process_time() - began < 5


def test_openais_and_anthropics_shapes_become_one():
    call = {"id": "c1", "name": "add", "arguments": {"a": 2}}
    openai = [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]
    anthropic = [
        {
            "role": "user",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 2}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "2"}]},
    ]

    for given in (openai, anthropic):
        image, called, result = read_messages(given)
        assert image["content"] == [{"type": "image", "media_type": "image/png", "data": "AAAA"}]
        assert called["tool_calls"] == [call]
        assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c1", "2")


def test_arguments_that_are_no_json_are_kept_as_they_were_written():
    (message,) = read_messages(
        [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "add", "arguments": '{"a": '}}]}]
    )

    assert message["tool_calls"] == [{"id": "1", "name": "add", "arguments": {}, "invalid": '{"a": '}]


@pytest.mark.parametrize("given", [None, [], "hello", [{"content": "x"}], ["hello"], [{"role": 3}]])
def test_what_is_no_conversation_is_refused(given):
    with pytest.raises(ConfigurationError, match="'messages' must be a list"):
        read_messages(given)


def test_a_transcript_reads_like_a_play():
    said = [
        {"role": "user", "content": [{"type": "text", "text": "See "}, {"type": "image", "name": "cat.png"}]},
        ModelOutput("", reasoning="I look", tool_calls=(ToolCall("look", {"at": "cat"}),)).to_message(),
        {"role": "tool", "name": "look", "content": "a cat"},
        {"role": "assistant", "content": "A cat."},
    ]

    assert format_transcript(said).splitlines() == [
        "user: See [image cat.png]",
        "assistant (thinking): I look",
        'assistant calls look({"at": "cat"})',
        "tool look: a cat",
        "assistant: A cat.",
    ]
    assert describe_content(None) == ""
