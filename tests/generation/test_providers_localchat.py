"""The endpoint that takes `{model, system_prompt, input}`, against a real server."""

from __future__ import annotations

import pytest

from themis.exceptions import ProviderCallError
from themis.generation.providers import create_provider


async def ask(server, task, **options):
    provider = create_provider("localchat", {"api_base": server.address("/api/v1/chat"), **options})
    try:
        return await provider.execute(task)
    finally:
        await provider.aclose()


async def test_three_fields_are_sent_and_the_message_is_the_answer(server, task):
    server.says(
        {
            "output": [{"type": "reasoning", "content": "hm"}, {"type": "message", "content": "95 - 21 / 3"}],
            "stats": {"input_tokens": 40, "total_output_tokens": 9},
        }
    )
    record = await ask(server, task("Make 88.", model="qwen/qwen3-1.7b"), system_prompt="One expression only.")

    assert server.last.path == "/api/v1/chat"
    assert server.last.body == {
        "model": "qwen/qwen3-1.7b",
        "system_prompt": "One expression only.",
        "input": "Make 88.",
    }
    assert record.output.text == "95 - 21 / 3"
    assert record.output.usage == {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}
    assert record.output.reasoning == "hm"


async def test_more_fields_can_be_added(server, task):
    server.says({"output": [{"type": "message", "content": "x"}]})
    record = await ask(server, task(), extra_body={"temperature": 0})

    assert server.last.body["temperature"] == 0
    assert record.output.usage is None


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"output": []}, "empty_response"),
        ({"output": [{"type": "tool_call", "content": "x"}]}, "empty_response"),
        ({"answer": "x"}, "invalid_response"),
        ("nonsense", "invalid_response"),
    ],
)
async def test_an_answer_without_a_message_is_a_failure(server, task, body, kind):
    server.says(body)
    with pytest.raises(ProviderCallError) as raised:
        await ask(server, task())

    assert (raised.value.kind, raised.value.retryable) == (kind, True)


def test_it_is_local_and_listens_where_the_tutorial_says():
    provider = create_provider("localchat", {})

    assert provider.is_local
    assert provider.account.startswith("http://localhost:1234/api/v1/chat#")
