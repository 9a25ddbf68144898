"""Messages, tools, images and files as each vendor wants them, over a real server."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

import pytest

from tests.generation.refusing import COMPLETION, MESSAGE
from themis.core.messages import read_messages
from themis.exceptions import ProviderCallError
from themis.generation.providers import create_provider
from themis.generation.providers.anthropic import Anthropic
from themis.generation.providers.openai_compatible import OpenAICompatible
from themis.generation.providers.wire import read_tools, to_anthropic, to_openai

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 24
PDF = b"%PDF-1.7\n%%EOF"
PNG_DATA, PDF_DATA = (base64.b64encode(content).decode() for content in (PNG, PDF))
DIGEST = hashlib.sha256(PNG).hexdigest()
ADD = {
    "name": "add",
    "description": "Adds two numbers.",
    "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
}


async def sent_to_openai(server, task, **options):
    server.says(COMPLETION)
    provider = OpenAICompatible(base_url=server.address("/v1"), **options)
    try:
        await provider.execute(task)
    finally:
        await provider.aclose()
    return server.last.body


async def sent_to_anthropic(server, task, **options):
    server.says(MESSAGE)
    provider = Anthropic(base_url=server.address(), api_key="k", **options)
    try:
        await provider.execute(task)
    finally:
        await provider.aclose()
    return server.last.body


def user(*parts):
    return [{"role": "user", "content": list(parts)}]


# --- images and files --------------------------------------------------------------------------------------------------

LOOK = {"type": "text", "text": "Look:"}


@pytest.mark.parametrize(
    ("image", "openai", "anthropic"),
    [
        (
            {"type": "image", "url": "https://example.org/a.png"},
            "https://example.org/a.png",
            {"type": "url", "url": "https://example.org/a.png"},
        ),
        (
            {"type": "image", "media_type": "image/png", "data": PNG_DATA},
            f"data:image/png;base64,{PNG_DATA}",
            {"type": "base64", "media_type": "image/png", "data": PNG_DATA},
        ),
        (
            {"type": "image", "digest": DIGEST},
            f"data:image/png;base64,{PNG_DATA}",
            {"type": "base64", "media_type": "image/png", "data": PNG_DATA},
        ),
        # As rows of either vendor have them
        (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_DATA}"}},
            f"data:image/png;base64,{PNG_DATA}",
            {"type": "base64", "media_type": "image/png", "data": PNG_DATA},
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_DATA}},
            f"data:image/png;base64,{PNG_DATA}",
            {"type": "base64", "media_type": "image/png", "data": PNG_DATA},
        ),
    ],
)
async def test_an_image_is_shown_to_both_vendors(server, task, image, openai, anthropic):
    asked = task(metadata={"messages": user(LOOK, image), "attachments": {DIGEST: PNG}})

    said = (await sent_to_openai(server, asked))["messages"][0]["content"]
    assert said == [LOOK, {"type": "image_url", "image_url": {"url": openai}}]

    said = (await sent_to_anthropic(server, asked))["messages"][0]["content"]
    assert said == [LOOK, {"type": "image", "source": anthropic}]


async def test_a_pdf_is_handed_to_both_vendors(server, task):
    pdf = {"type": "file", "name": "a.pdf", "media_type": "application/pdf", "data": PDF_DATA}
    asked = task(metadata={"messages": user(LOOK, pdf)})

    said = (await sent_to_openai(server, asked))["messages"][0]["content"][1]
    file = {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF_DATA}"}
    assert said == {"type": "file", "file": file}

    said = (await sent_to_anthropic(server, asked))["messages"][0]["content"][1]
    source = {"type": "base64", "media_type": "application/pdf", "data": PDF_DATA}
    assert said == {"type": "document", "source": source, "title": "a.pdf"}


async def test_a_text_file_is_read_to_both_vendors(server, task):
    data = base64.b64encode("täglich,1\n".encode()).decode()
    asked = task(metadata={"messages": user({"type": "file", "name": "a.csv", "data": data})})

    said = (await sent_to_openai(server, asked))["messages"][0]["content"]
    assert said == [{"type": "text", "text": "a.csv:\ntäglich,1\n"}]

    source = (await sent_to_anthropic(server, asked))["messages"][0]["content"][0]["source"]
    assert source == {"type": "text", "media_type": "text/plain", "data": "täglich,1\n"}


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"type": "file", "name": "a.xlsx", "data": "UEsDBA=="}, "a.xlsx"),
        ({"type": "image", "digest": "0" * 64}, "000000000000"),
        ({"type": "image"}, "none of digest, data and url"),
    ],
)
async def test_what_cannot_be_sent_is_named_and_not_tried(server, task, part, named):
    asked = task(metadata={"messages": user(part)})

    for send in (sent_to_openai, sent_to_anthropic):
        with pytest.raises(ProviderCallError, match=named) as raised:
            await send(server, asked)
        assert (raised.value.kind, raised.value.retryable) == ("bad_request", False)
    assert server.seen == []


async def test_anthropic_is_told_what_it_has_no_part_for(server, task):
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}

    assert (await sent_to_openai(server, task(metadata={"messages": user(sound)})))["messages"] == user(sound)
    with pytest.raises(ProviderCallError, match="'input_audio' cannot be sent"):
        await sent_to_anthropic(server, task(metadata={"messages": user(sound)}))


async def test_openai_takes_no_file_by_its_address(server, task):
    linked = {"type": "file", "url": "https://example.org/a.pdf"}

    with pytest.raises(ProviderCallError, match=r"a\.pdf.*by their address"):
        await sent_to_openai(server, task(metadata={"messages": user(linked)}))
    said = await sent_to_anthropic(server, task(metadata={"messages": user(linked)}))
    assert said["messages"][0]["content"][0] == {"type": "document", "source": {"type": "url", "url": linked["url"]}}


def test_a_model_in_this_process_and_localchat_say_that_they_cannot_see(task, smollm2):
    asked = task(model="smollm2", metadata={"messages": user({"type": "image", "url": "https://example.org/a.png"})})

    with pytest.raises(ProviderCallError, match=r"image.*a\.png.*a model in this process takes texts alone"):
        create_provider("local", {"context_tokens": 256}, model_identifier="smollm2").execute(asked)


async def test_localchat_takes_one_message_and_says_so(server, task):
    server.says({"output": [{"type": "message", "content": "hi"}]})
    provider = create_provider("localchat", {"base_url": server.address("/chat")})
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [LOOK]}]

    await provider.execute(task("unused", metadata={"messages": turns}))
    assert (server.last.body["system_prompt"], server.last.body["input"]) == ("Be brief.", "Look:")

    with pytest.raises(ProviderCallError, match="lmstudio/MODEL"):
        await provider.execute(
            task(metadata={"messages": [*turns, {"role": "assistant", "content": "What?"}, *turns[1:]]})
        )
    with pytest.raises(ProviderCallError, match="localchat takes texts alone"):
        await provider.execute(task(metadata={"messages": user({"type": "image", "digest": DIGEST})}))
    await provider.aclose()


def test_a_row_s_own_field_of_attachments_or_tools_is_left_alone(task):
    provider = OpenAICompatible(base_url="http://127.0.0.1:1/v1")
    body = provider._body(task("Hi", metadata={"attachments": ["a.pdf"], "tools": ["hammer", "saw"]}))

    assert b"hammer" not in body
    assert read_tools("hammer") == read_tools([{"tool": "hammer"}]) == []


# --- tools -------------------------------------------------------------------------------------------------------------


async def test_tools_are_offered_to_both_vendors(server, task):
    asked = task("2 + 3?", metadata={"tools": [ADD], "tool_choice": "required"})

    body = await sent_to_openai(server, asked)
    assert (body["tools"], body["tool_choice"]) == ([{"type": "function", "function": ADD}], "required")

    body = await sent_to_anthropic(server, asked)
    expected = {"name": "add", "description": "Adds two numbers.", "input_schema": ADD["parameters"]}
    assert (body["tools"], body["tool_choice"]) == ([expected], {"type": "any"})
    assert body["messages"] == [{"role": "user", "content": "2 + 3?"}]


@pytest.mark.parametrize(
    ("choice", "openai", "anthropic"),
    [
        ("auto", "auto", {"type": "auto"}),
        ("none", "none", {"type": "none"}),
        ("add", {"type": "function", "function": {"name": "add"}}, {"type": "tool", "name": "add"}),
    ],
)
async def test_a_choice_of_tools_is_said_in_each_form(server, task, choice, openai, anthropic):
    asked = task(metadata={"tools": [ADD], "tool_choice": choice})

    assert (await sent_to_openai(server, asked))["tool_choice"] == openai
    assert (await sent_to_anthropic(server, asked))["tool_choice"] == anthropic


async def test_a_tool_without_parameters_has_a_schema_all_the_same(server, task):
    asked = task(metadata={"tools": [{"name": "now"}]})

    assert (await sent_to_openai(server, asked))["tools"][0]["function"]["parameters"]["type"] == "object"
    assert (await sent_to_anthropic(server, asked))["tools"][0]["input_schema"]["type"] == "object"


CALLS = [
    {"id": "call-1", "name": "add", "arguments": {"a": 2, "b": 3}},
    {"id": "call-2", "name": "add", "arguments": {"a": 5, "b": 7}},
]
OURS = [
    {"role": "system", "content": "Use tools."},
    {"role": "user", "content": "2 + 3, and 5 + 7?"},
    {"role": "assistant", "content": "Let me add.", "reasoning": "two sums", "tool_calls": CALLS},
    {"role": "tool", "tool_call_id": "call-1", "name": "add", "content": "5"},
    {"role": "tool", "tool_call_id": "call-2", "name": "add", "content": "12"},
    {"role": "user", "content": "And?"},
]


async def test_calls_and_their_results_go_to_openai(server, task):
    body = await sent_to_openai(server, task(metadata={"messages": OURS, "tools": [ADD]}))

    called, first = body["messages"][2:4]
    assert called == {
        "role": "assistant",
        "content": "Let me add.",
        "tool_calls": [
            {"id": "call-1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}},
            {"id": "call-2", "type": "function", "function": {"name": "add", "arguments": '{"a": 5, "b": 7}'}},
        ],
    }
    assert (first["role"], first["tool_call_id"], first["content"]) == ("tool", "call-1", "5")
    assert len(body["messages"]) == 6


async def test_calls_and_their_results_go_to_anthropic(server, task):
    body = await sent_to_anthropic(server, task(metadata={"messages": OURS, "tools": [ADD]}))

    assert body["system"] == "Use tools."
    assert body["messages"] == [
        {"role": "user", "content": "2 + 3, and 5 + 7?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me add."},
                {"type": "tool_use", "id": "call-1", "name": "add", "input": {"a": 2, "b": 3}},
                {"type": "tool_use", "id": "call-2", "name": "add", "input": {"a": 5, "b": 7}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call-1", "content": "5"},
                {"type": "tool_result", "tool_use_id": "call-2", "content": "12"},
                {"type": "text", "text": "And?"},
            ],
        },
    ]


OPENAIS = [
    {"role": "user", "content": [{"type": "text", "text": "2 + 3?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a":2,"b":3}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "5"},
]
ANTHROPICS = [
    {"role": "user", "content": "2 + 3?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "add", "input": {"a": 2, "b": 3}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "5"}]},
]


async def test_a_row_in_openais_shape_reaches_openai_as_it_stands_and_anthropic_in_its_own(server, task):
    asked = task(metadata={"messages": OPENAIS})

    assert (await sent_to_openai(server, asked))["messages"] == OPENAIS
    assert (await sent_to_anthropic(server, asked))["messages"] == ANTHROPICS


async def test_a_row_in_anthropics_shape_reaches_both(server, task):
    asked = task(metadata={"messages": ANTHROPICS})

    assert (await sent_to_anthropic(server, asked))["messages"] == ANTHROPICS
    said = (await sent_to_openai(server, asked))["messages"]
    assert [message["role"] for message in said] == ["user", "assistant", "tool"]
    assert said[1]["tool_calls"][0]["function"]["arguments"] == '{"a": 2, "b": 3}'


def test_writing_does_not_change_what_is_written():
    before = read_messages(OURS)
    to_openai(OURS), to_anthropic(OURS)

    assert read_messages(OURS) == before


def test_images_that_a_tool_returns_are_shown_by_the_user_where_tools_may_only_speak():
    image = {"type": "image", "media_type": "image/png", "data": PNG_DATA}
    shown = [{"type": "text", "text": "the page"}, image]
    messages = [*OURS[:3], {**OURS[3], "content": shown}, OURS[4], OURS[5]]

    said = to_openai(messages)
    assert [message["role"] for message in said[3:]] == ["tool", "tool", "user", "user"]
    assert (said[3]["content"], said[5]["content"][0]["type"]) == ("the page", "image_url")

    result = to_anthropic(messages).messages[2]["content"][0]
    assert [part["type"] for part in result["content"]] == ["text", "image"]


def test_what_a_model_wrote_in_place_of_arguments_goes_back_in_an_object_that_every_server_can_read():
    broken = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "name": "add", "arguments": {}, "invalid": "{a:"}],
    }

    assert to_openai([broken])[0]["tool_calls"][0]["function"]["arguments"] == '{"invalid": "{a:"}'
    assert to_anthropic([broken]).messages[0]["content"][0]["input"] == {"invalid": "{a:"}


def test_an_answer_without_a_word_is_not_sent_to_anthropic():
    said = to_anthropic(
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "b"}]
    )

    assert [message["content"] for message in said.messages] == ["a", "b"]


def test_all_that_the_system_says_is_one_text_for_anthropic():
    said = to_anthropic(
        [
            {"role": "system", "content": "A."},
            {"role": "developer", "content": [{"type": "text", "text": "B."}]},
            *ANTHROPICS,
        ]
    )

    assert said.system == "A.\n\nB."


# --- reasoning ---------------------------------------------------------------------------------------------------------


async def test_signed_thoughts_go_back_to_anthropic_with_the_results_of_tools(server, task):
    thought = {"type": "thinking", "thinking": "two sums", "signature": "abc"}
    blocks = [
        thought,
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "tool_use", "id": "c", "name": "add", "input": {"a": 2, "b": 3}},
    ]
    server.says({**MESSAGE, "content": blocks, "stop_reason": "tool_use"})
    provider = Anthropic(base_url=server.address(), api_key="k")
    asked = task("2 + 3?", model="claude-sonnet-4-5", metadata={"tools": [ADD]})
    output = (await provider.execute(asked)).output

    assert (output.reasoning, output.finish_reason, output.tool_calls[0].name) == ("two sums", "tool_calls", "add")
    answer = output.to_message()
    result = {"role": "tool", "tool_call_id": "c", "content": "5"}
    asked.metadata["messages"] = [{"role": "user", "content": "2 + 3?"}, answer, result]
    await provider.execute(asked)
    await provider.aclose()

    assert server.last.body["messages"][1]["content"] == blocks
    # Another vendor cannot read them.
    assert "provider_data" not in to_openai([answer])[0]


async def test_thoughts_are_not_kept_twice_where_no_tool_is_called(server, task):
    server.says({**MESSAGE, "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, *MESSAGE["content"]]})
    provider = Anthropic(base_url=server.address(), api_key="k")
    output = (await provider.execute(task())).output
    await provider.aclose()

    assert (output.reasoning, "provider_data" in output.raw) == ("hm", False)


async def test_reasoning_goes_back_to_those_who_want_it(server, task, monkeypatch):
    for name in ("DEEPSEEK", "OPENROUTER", "GEMINI"):
        monkeypatch.setenv(f"{name}_BASE_URL", server.address("/v1"))
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    details, extra = [{"type": "reasoning.encrypted", "data": "x"}], {"google": {"thought_signature": "y"}}
    said = {"role": "assistant", "content": None, "reasoning_content": "hm", "reasoning_details": details}
    answer = {**COMPLETION, "choices": [{"message": {**said, "tool_calls": [{**call, "extra_content": extra}]}}]}

    async def answer_again(provider_name, model):
        """The model's answer as it is sent back to it."""
        server.says(answer)
        provider = create_provider(provider_name, {})
        asked = task("2 + 3?", model=model, metadata={"tools": [ADD]})
        output = (await provider.execute(asked)).output
        asked.metadata["messages"] = [output.to_message(), {"role": "tool", "tool_call_id": "c", "content": "5"}]
        await provider.execute(asked)
        await provider.aclose()
        return server.last.body["messages"][0]

    sent = await answer_again("deepseek", "deepseek-v4-pro")
    assert (sent["reasoning_content"], "reasoning_details" in sent) == ("hm", False)
    sent = await answer_again("openrouter", "anthropic/claude-sonnet-4.5")
    assert (sent["reasoning_details"], "reasoning_content" in sent) == (details, False)
    sent = await answer_again("gemini", "gemini-3-pro-preview")
    assert sent["tool_calls"] == [{**call, "extra_content": extra}]


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-4-5"])
async def test_a_model_that_thinks_cannot_be_made_to_call_a_tool(server, task, model, caplog):
    asked = task(model=model, metadata={"tools": [ADD], "tool_choice": "required"})
    body = await sent_to_anthropic(server, asked, reasoning_effort="low")

    assert body["tool_choice"] == {"type": "auto"}
    assert "is sent as 'auto'" in caplog.text


async def test_openais_newest_models_take_tools_without_reasoning_here(server, task, caplog):
    asked = task(model="gpt-5.6-luna", metadata={"tools": [ADD]})

    assert (await sent_to_openai(server, asked))["reasoning_effort"] == "none"
    assert "beside tools" in caplog.text
    assert "reasoning_effort" not in await sent_to_openai(server, replace(asked, metadata={}))
