"""Anthropic's messages API against a real server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from themis.exceptions import ProviderCallError, ProviderError
from themis.generation.providers.anthropic import Anthropic

KEY = "sk-ant-a-key-that-must-never-be-shown"


def message(**changes):
    return {
        "id": "msg_1",
        "type": "message",
        "model": "claude-as-served",
        "content": [{"type": "text", "text": "95 - (21 / 3)"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 30, "output_tokens": 9},
        **changes,
    }


async def ask(server, task, **options):
    provider = Anthropic(**{"base_url": server.address(), "api_key": KEY, **options})
    try:
        return await provider.execute(task)
    finally:
        await provider.aclose()


async def test_a_task_becomes_one_message_request(server, task):
    server.says(message())
    record = await ask(server, task("Hi", model="claude-x", max_tokens=64), system_prompt="Be brief.", stop="\n")

    assert server.last.path == "/v1/messages"
    assert server.last.headers["x-api-key"] == KEY
    assert server.last.headers["anthropic-version"] == "2023-06-01"
    assert server.last.body == {
        "model": "claude-x",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 64,
        "temperature": 0.0,
        "stop_sequences": ["\n"],
    }
    assert record.output.text == "95 - (21 / 3)"
    assert record.output.raw == {"id": "msg_1", "model": "claude-as-served"}
    assert record.output.finish_reason == "stop"
    assert record.output.usage == {"prompt_tokens": 30, "completion_tokens": 9, "total_tokens": 39}


async def test_no_limit_is_sent_as_the_largest_that_the_options_allow(server, task):
    server.says(message())
    await ask(server, task(max_tokens=-1), unlimited_max_tokens=1000)

    assert server.last.body["max_tokens"] == 1000


async def test_tokens_read_from_and_written_to_the_cache_are_prompt_tokens(server, task):
    usage = {"input_tokens": 5, "output_tokens": 2, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 40}
    server.says(message(usage=usage))

    assert (await ask(server, task())).output.usage == {
        "prompt_tokens": 145,
        "completion_tokens": 2,
        "total_tokens": 147,
        "cached_tokens": 40,
        "cache_write_tokens": 100,
    }


async def test_thinking_is_kept_beside_the_text(server, task):
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "4"},
        {"type": "text", "text": "2"},
    ]
    server.says(message(content=blocks))

    output = (await ask(server, task())).output
    assert (output.text, output.reasoning) == ("42", "hm")


async def test_a_refusal_is_marked(server, task):
    server.says(message(content=[], stop_reason="refusal"))

    output = (await ask(server, task())).output
    assert output.text == ""
    assert output.refusal


async def test_an_overloaded_service_is_worth_another_try(server, task):
    error_body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server.says(error_body, status=529, headers={"Retry-After": "5"})
    with pytest.raises(ProviderCallError, match="Overloaded") as raised:
        await ask(server, task())

    error = raised.value
    assert (error.kind, error.status, error.retryable, error.retry_after_seconds) == ("overloaded", 529, True, 5.0)


@pytest.mark.parametrize("body", ["nonsense", "{}", '{"content": "text"}'])
async def test_what_is_no_message_is_an_invalid_response(server, task, body):
    server.says(body)
    with pytest.raises(ProviderCallError) as raised:
        await ask(server, task())

    assert (raised.value.kind, raised.value.retryable) == ("invalid_response", True)


async def test_quota_headers_are_given_back(server, task):
    reset = (datetime.now(UTC) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    server.says(
        message(),
        headers={
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-requests-reset": reset,
        },
    )
    quota = (await ask(server, task())).metrics["rate_limit"]

    assert (quota["limit_requests"], quota["remaining_requests"]) == (50, 49)
    assert 50 < quota["reset_seconds"] <= 60


def test_without_a_key_the_variable_is_named():
    with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY"):
        Anthropic()
