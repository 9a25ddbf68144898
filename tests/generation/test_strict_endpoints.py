"""Loops of tools over HTTP with endpoints that check every message: whatever the model wrote, it is asked again and answers."""

from __future__ import annotations

import json
import re

import pytest
from aiohttp import web

import themis
from tests.generation.refusing import refuse, refuse_as_anthropic
from themis.core.entities import ModelOutput, ToolCall
from themis.core.messages import PROVIDER_DATA
from themis.generation.episodes import mend_calls
from themis.generation.providers.wire import to_anthropic, to_openai

KNOWN = {
    "system": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls"},
    "tool": {"role", "content", "name", "tool_call_id"},
}
NAME, ID = re.compile(r"[a-zA-Z0-9_-]{1,64}"), re.compile(r"[a-zA-Z0-9_-]+")


def find_fault(messages):
    """What OpenAI's API, and those that keep to it, say of messages that are not as documented."""
    waiting = []
    for place, message in enumerate(messages):
        if unknown := set(message) - KNOWN[message["role"]]:
            return f"Unknown parameter: 'messages[{place}].{min(unknown)}'."
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"'messages[{place}]' answers no call"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"'tool_calls' without results: {waiting}"
        for call in message.get("tool_calls") or ():
            if not call["id"] or call["id"] in waiting:
                return f"Invalid 'messages[{place}].tool_calls[0].id': empty, or used twice."
            if not NAME.fullmatch(call["function"]["name"]):
                return f"Invalid 'messages[{place}].tool_calls[0].function.name': does not match."
            json.loads(call["function"]["arguments"])
            waiting.append(call["id"])
    return None


def call(name, arguments, id_):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


WRITTEN = {
    "a tool that there is not": [[call("ecko", "{}", "1")]],
    "a name that no tool can have": [[call("functions.echo:0 <|x|>", '{"value": 1}', "1")]],
    "no name": [[call(None, "{}", "1")]],
    "arguments that are no JSON": [[call("echo", "{value: 1", "1")]],
    "arguments that JSON has no word for": [[call("echo", '{"value": NaN}', "1")]],
    "half a character": [[call("echo", '{"value": "\\ud83d"}', "1")]],
    "a tool that fails": [[call("fail", "{}", "1")]],
    "no ids": [[call("echo", f'{{"value": {n}}}', "") for n in range(3)]],
    "one id for all": [[call("echo", f'{{"value": {n}}}', "same") for n in range(5)]],
    "the id of an earlier turn": [[call("echo", '{"value": 1}', "a")], [call("echo", '{"value": 2}', "a")]],
}


def echo(value: object) -> str:
    """Says it again."""
    return str(value)


def fail() -> str:
    """Has no seat."""
    raise KeyError("seat")


async def answer_as_openai(request, seen):
    messages = seen.body["messages"]
    if fault := find_fault(messages):
        return refuse(fault, "messages", "unknown_parameter")
    turns = WRITTEN[messages[0]["content"]]
    said = sum(message["role"] == "assistant" for message in messages)
    told = {"tool_calls": turns[said]} if said < len(turns) else {"content": "done"}
    reply = {"choices": [{"message": {"role": "assistant", "content": None, **told}, "finish_reason": "stop"}]}
    return web.json_response(text=json.dumps({"id": "c", "model": "m", **reply}))


async def answer_as_anthropic(request, seen):
    messages, used = seen.body["messages"], []
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result" and block["content"].startswith("KeyError") and "is_error" not in block:
                return refuse_as_anthropic("a result that says what went wrong is not marked")
            if block["type"] == "tool_use":
                if not ID.fullmatch(block["id"]) or not ID.fullmatch(block["name"]) or block["id"] in used:
                    return refuse_as_anthropic(
                        "messages.1.content.0: `tool_use` ids must be unique, and match a pattern"
                    )
                used.append(block["id"])
    turns = WRITTEN[messages[0]["content"]]
    said = sum(message["role"] == "assistant" for message in messages)
    if said == len(turns):
        return web.json_response({"id": "m", "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"})
    blocks = [{"type": "tool_use", "id": one["id"], **_read_function(one)} for one in turns[said]]
    return web.json_response(text=json.dumps({"id": "m", "content": blocks, "stop_reason": "tool_use"}))


def _read_function(one):
    try:
        arguments = json.loads(one["function"]["arguments"], parse_constant=str)
    except ValueError:
        arguments = {}
    return {"name": one["function"]["name"] or "", "input": arguments}


@pytest.mark.parametrize(
    ("model", "path", "answer"),
    [("openai/gpt-4o-mini", "/v1", answer_as_openai), ("anthropic/claude-3-5-haiku", "", answer_as_anthropic)],
)
def test_nothing_that_a_model_writes_ends_its_sample(server, tmp_path, model, path, answer):
    server.answer = answer

    report = themis.evaluate(
        [{"id": case, "question": case, "answer": "done"} for case in WRITTEN],
        model=model,
        prompt="{question}",
        tools=[echo, fail],
        storage=tmp_path,
        progress=False,
        provider_options={"base_url": server.address(path), "api_key": "k"},
    )

    assert [failure.message for failure in report.failures] == []
    assert report.metric("exact_match").mean == 1.0


def test_what_went_wrong_with_a_tool_is_marked_where_there_is_a_mark_for_it():
    failed = {"role": "tool", "tool_call_id": "1", "name": "echo", "content": "KeyError: 'seat'", "error": True}

    assert to_openai([failed]) == [{"role": "tool", "tool_call_id": "1", "name": "echo", "content": "KeyError: 'seat'"}]
    assert to_anthropic([failed]).messages[0]["content"][0]["is_error"] is True


def test_a_refusal_goes_back_as_what_was_said():
    refused = {"role": "assistant", "content": "I cannot.", "refusal": "I cannot."}

    assert to_openai([refused]) == [{"role": "assistant", "content": "I cannot."}]
    assert to_openai([{**refused, "content": ""}]) == [{"role": "assistant", "content": "I cannot."}]


def test_ids_that_a_model_wrote_well_stay_and_what_belongs_to_others_moves_with_them():
    kept = {PROVIDER_DATA: {"extra_content": {"": {"google": {"thought_signature": "s"}}}}}
    answer = ModelOutput("", raw=kept, tool_calls=(ToolCall("echo", id="functions.echo:0"), ToolCall("echo")))

    mended = mend_calls(answer, [])

    assert [one.id for one in mended.tool_calls] == ["functions.echo:0", "call00002"]
    assert mended.raw == {PROVIDER_DATA: {"extra_content": {"call00002": {"google": {"thought_signature": "s"}}}}}
