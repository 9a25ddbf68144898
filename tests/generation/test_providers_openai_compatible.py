"""The OpenAI-compatible provider against a real server: what is sent, what is kept, and every way it can fail."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from themis.exceptions import ConfigurationError, ProviderCallError, ProviderError
from themis.generation.providers import create_provider, parse_model
from themis.generation.providers.http import duration_seconds
from themis.generation.providers.openai_compatible import OpenAICompatible

KEY = "sk-a-key-that-must-never-be-shown"


async def ask(server, task, **options):
    """One call with a fresh provider."""
    provider = OpenAICompatible(**{"base_url": server.address("/v1"), **options})
    try:
        return await provider.execute(task)
    finally:
        await provider.aclose()


async def failure(server, task, **options) -> ProviderCallError:
    with pytest.raises(ProviderCallError) as raised:
        await ask(server, task, **options)
    return raised.value


# --- what is sent


async def test_a_task_becomes_one_chat_completion_request(server, task):
    await ask(server, task("Hello?", model="some/model", temperature=0.3, max_tokens=64), api_key=KEY)

    assert len(server.seen) == 1
    assert server.last.path == "/v1/chat/completions"
    assert server.last.headers["authorization"] == f"Bearer {KEY}"
    assert server.last.headers["content-type"] == "application/json"
    assert server.last.body == {
        "model": "some/model",
        "messages": [{"role": "user", "content": "Hello?"}],
        "temperature": 0.3,
        "max_tokens": 64,
    }


async def test_without_a_key_no_authorization_is_sent(server, task):
    await ask(server, task())

    assert "authorization" not in server.last.headers


async def test_a_negative_token_limit_is_no_limit(server, task):
    await ask(server, task(max_tokens=-1))

    assert not {"max_tokens", "max_completion_tokens"} & server.last.body.keys()


async def test_options_reach_the_body(server, task):
    await ask(
        server,
        task(),
        seed=7,
        stop="\n",
        logprobs=3,
        response_format={"type": "json_object"},
        grammar='root ::= "yes"',
        extra_body={"min_p": 0.1},
        omit=["temperature", "top_p"],
    )

    body = server.last.body
    assert (body["seed"], body["stop"], body["logprobs"], body["top_logprobs"]) == (7, ["\n"], True, 3)
    assert (body["response_format"], body["grammar"], body["min_p"]) == ({"type": "json_object"}, 'root ::= "yes"', 0.1)
    assert "temperature" not in body
    assert "top_p" not in body


async def test_samples_of_one_prompt_get_seeds_of_their_own(server, task):
    for index in range(3):
        await ask(server, task(metadata={"attempts": index}), seed=40)

    assert [seen.body["seed"] for seen in server.seen] == [40, 41, 42]


async def test_the_rows_system_prompt_wins_over_the_providers(server, task):
    await ask(server, task("Hi", metadata={"system_prompt": "Be brief."}), system_prompt="Be long.")

    assert server.last.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]


async def test_a_whole_conversation_is_sent_as_it_is(server, task):
    turns = [
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Who am I?"},
    ]
    await ask(server, task("unused", metadata={"messages": turns}))

    assert server.last.body["messages"] == turns


async def test_messages_that_are_no_conversation_are_refused_without_a_call(server, task):
    error = await failure(server, task(metadata={"messages": "hello"}))

    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "'row-7'" in str(error)
    assert server.seen == []


async def test_text_that_json_cannot_hold_is_refused_without_a_call(server, task):
    error = await failure(server, task("half a pair: \ud83d"))

    assert (error.kind, error.retryable) == ("bad_request", False)
    assert server.seen == []


async def test_an_endpoint_with_a_version_gets_it_in_the_query_and_the_key_by_its_own_header(server, task):
    await ask(
        server, task(), base_url=server.address("/openai/deployments/mine"), api_version="2026-01-01", api_key=KEY
    )

    assert server.last.path == "/openai/deployments/mine/chat/completions"
    assert server.last.query == {"api-version": "2026-01-01"}
    assert server.last.headers["api-key"] == KEY
    assert "authorization" not in server.last.headers


async def test_extra_headers_and_the_organization_are_sent(server, task):
    await ask(server, task(), extra_headers={"X-Title": "lab"}, organization="org-1")

    assert server.last.headers["x-title"] == "lab"
    assert server.last.headers["openai-organization"] == "org-1"


async def test_a_prompt_of_two_megabytes_arrives_whole(server, task):
    await ask(server, task("x" * 2_000_000))

    assert len(server.last.body["messages"][0]["content"]) == 2_000_000


# --- what is kept


async def test_the_record_holds_text_usage_and_what_was_said_beside_it(server, task, completion):
    asked = task()
    record = await ask(server, asked)

    assert record.task is asked
    assert record.error is None
    assert record.output.text == "95 - (21 / 3)"
    assert record.output.raw == {"id": "chatcmpl-1", "model": "model-as-served"}
    assert record.output.finish_reason == "stop"
    assert record.output.usage == {"prompt_tokens": 31, "completion_tokens": 9, "total_tokens": 40}
    assert record.metrics == {}


async def test_reasoning_and_cached_tokens_are_counted(server, task, completion):
    server.says(
        completion(
            usage={
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 30},
            }
        )
    )
    usage = (await ask(server, task())).output.usage

    assert usage == {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "cached_tokens": 64,
        "reasoning_tokens": 30,
    }


def _tokens(prompt, answer, total=None, *, thought=0, cached=0):
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        **({} if total is None else {"total_tokens": total}),
        **({"completion_tokens_details": {"reasoning_tokens": thought}} if thought else {}),
        **({"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}),
    }


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        pytest.param(_tokens(100, 50, 150, thought=30), (100, 50, 150), id="openai"),
        pytest.param(_tokens(10_120, 1_499, 14_428, thought=2_809, cached=128), (10_120, 4_308, 14_428), id="xai"),
        pytest.param(_tokens(20, 198, 623), (20, 603, 623), id="google"),
        pytest.param(_tokens(21, 0, 81, thought=60), (21, 60, 81), id="google without a word"),
        pytest.param(_tokens(14, 2, thought=317), (14, 319, 333), id="no total"),
        pytest.param(_tokens(12, 5, 17, cached=2_495), (2_507, 5, 2_512), id="anthropic behind a gateway"),
        pytest.param(_tokens(3_000, 5, 5_500, cached=2_495), (5_495, 5, 5_500), id="its total with the cache"),
        pytest.param(_tokens(100, 50, 0), (100, 50, 150), id="a total that is none"),
    ],
)
async def test_thoughts_and_cached_tokens_count_also_where_they_are_told_beside_the_others(
    server, task, completion, told, counted
):
    server.says(completion(usage=told))
    usage = (await ask(server, task())).output.usage

    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == counted


@pytest.mark.parametrize("choices", [[], [{"index": 0, "message": None, "finish_reason": "stop"}]])
async def test_an_answer_without_a_message_tells_what_it_took(server, task, completion, choices):
    server.says({**completion(usage=_tokens(100, 50)), "choices": choices})
    with pytest.raises(ProviderCallError) as failed:
        await ask(server, task())

    assert (failed.value.kind, failed.value.retryable) == ("empty_response", True)
    assert (failed.value.usage["prompt_tokens"], failed.value.usage["completion_tokens"]) == (100, 50)


@pytest.mark.parametrize("usage", [None, [], "many", {"prompt_tokens": None}, {"prompt_tokens": "many"}])
async def test_an_answer_is_not_lost_over_its_usage(server, task, completion, usage):
    server.says(completion(usage=usage))
    output = (await ask(server, task())).output

    assert output.text == "95 - (21 / 3)"
    assert output.usage is None


@pytest.mark.parametrize(
    ("field", "told"),
    [
        *((field, "six times seven") for field in ("reasoning_content", "reasoning", "thinking")),
        ("reasoning", {"content": "six times seven", "effort": "low"}),
        ("reasoning_content", [{"type": "text", "text": "six "}, {"type": "text", "text": "times seven"}]),
        (
            "reasoning_details",
            [
                {"type": "reasoning.summary", "summary": "six "},
                {"type": "reasoning.text", "text": "times seven", "signature": "x"},
                {"type": "reasoning.encrypted", "data": "eA=="},
            ],
        ),
    ],
)
async def test_reasoning_is_kept_beside_the_text(server, task, completion, field, told):
    answer = completion("42")
    answer["choices"][0]["message"][field] = told
    server.says(answer)

    output = (await ask(server, task())).output
    assert (output.text, output.reasoning) == ("42", "six times seven")


async def test_a_refusal_is_the_models_answer(server, task, completion):
    answer = completion(None)
    answer["choices"][0]["message"]["refusal"] = "I can't help with that."
    server.says(answer)

    output = (await ask(server, task())).output
    assert output.text == output.refusal == "I can't help with that."


async def test_silence_is_an_answer_not_a_failure(server, task, completion):
    server.says(completion(""))

    assert (await ask(server, task())).output.text == ""


@pytest.mark.parametrize(
    "instead", [{"tool_calls": [{"id": "1"}]}, {"reasoning_content": "hm"}, {"reasoning": "hm"}, {"refusal": "No."}]
)
async def test_a_model_that_did_something_else_than_speak_has_answered(server, task, completion, instead):
    answer = completion(None)
    answer["choices"][0]["message"].update(instead)
    server.says(answer)

    assert (await ask(server, task())).output.text == instead.get("refusal", "")


async def test_an_answer_that_came_to_its_limit_before_a_word_is_the_models(server, task, completion):
    answer = completion(None)
    answer["choices"][0]["finish_reason"] = "length"
    server.says(answer)

    output = (await ask(server, task())).output
    assert (output.text, output.is_cut_off) == ("", True)


@pytest.mark.parametrize("content", [None, [], [{"type": "text"}], [3]])
async def test_an_answer_without_any_text_is_a_failure_not_a_zero(server, task, completion, content):
    server.says(completion(content))

    error = await failure(server, task())
    assert (error.kind, error.retryable) == ("empty_response", True)


async def test_what_the_providers_filter_took_is_a_failure(server, task, completion):
    answer = completion(None)
    answer["choices"][0]["finish_reason"] = "content_filter"
    server.says(answer)

    error = await failure(server, task())
    assert (error.kind, error.retryable) == ("content_filter", False)


@pytest.mark.parametrize(
    ("said", "option"),
    [
        (
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
            "omit=temperature",
        ),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens_field=max_completion_tokens",
        ),
        ("Unrecognized request argument supplied: seed", "omit=seed"),
    ],
)
async def test_what_is_refused_whatever_is_sent_is_told_with_the_option_that_would_help(server, task, said, option):
    server.says({"error": {"message": said}}, status=400)

    error = await failure(server, task())
    assert f"--option {option})" in str(error)
    assert said in str(error)
    assert error.retryable is False


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ("max_tokens is too large: 32768. This model supports at most 16384 completion tokens.", "16384"),
        ("max_tokens: 32768 > 8192, which is the maximum allowed number of output tokens for this model", "8192"),
        (
            "This model's maximum context length is 4096 tokens. You requested 32800 tokens, 32768 in the completion.",
            "less than 4096",
        ),
    ],
)
async def test_a_budget_larger_than_the_model_s_is_told_with_one_that_fits(server, task, said, option):
    server.says({"error": {"message": said}}, status=400)

    assert f"give --max-tokens {option} " in str(await failure(server, task()))


async def test_other_bad_requests_are_told_as_they_are(server, task):
    server.says({"error": {"message": "max_tokens is too large: 9 is the most"}}, status=400)

    assert "--option" not in str(await failure(server, task()))


async def test_what_a_model_shows_beside_its_words_is_kept_as_parts(server, task, completion):
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    image = {"type": "image", "media_type": "image/png", "data": "AAAA"}
    beside = completion("Here.")
    beside["choices"][0]["message"]["images"] = [shown]

    for answer, text in [
        (completion([shown]), ""),
        (completion([{"type": "text", "text": "Here."}, shown]), "Here."),
        (beside, "Here."),
    ]:
        server.says(answer)
        output = (await ask(server, task())).output
        assert (output.text, output.parts) == (text, (image,))


async def test_thoughts_and_refusals_among_the_parts_are_what_they_are(server, task, completion):
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "six times seven"}]}
    server.says(completion([thought, {"type": "text", "text": "42"}]))
    output = (await ask(server, task())).output
    assert (output.text, output.reasoning, output.parts) == ("42", "six times seven", ())

    server.says(completion([{"type": "refusal", "refusal": "No."}]))
    output = (await ask(server, task())).output
    assert (output.text, output.refusal, output.parts) == ("No.", "No.", ())


async def test_content_in_parts_is_joined(server, task, completion):
    server.says(
        completion(
            [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
        )
    )

    assert (await ask(server, task())).output.text == "42"


async def test_log_probabilities_are_kept_also_where_strict_json_has_no_word_for_them(server, task, completion):
    answer = completion("a")
    answer["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -math.inf}]}
    server.says(json.dumps(answer))

    logprobs = (await ask(server, task(), logprobs=True)).output.logprobs
    assert logprobs["content"][0]["logprob"] == -math.inf


async def test_half_a_surrogate_pair_in_the_answer_is_kept(server, task, completion):
    server.says(json.dumps(completion("cut \ud83d")))

    assert (await ask(server, task())).output.text == "cut \ud83d"


async def test_a_byte_that_is_not_utf8_does_not_lose_the_answer(server, task, completion):
    server.says(json.dumps(completion("caf#")).encode().replace(b"#", b"\xe9"))

    assert (await ask(server, task())).output.text == "caf\N{REPLACEMENT CHARACTER}"


async def test_an_answer_of_two_megabytes_arrives_whole(server, task, completion):
    server.says(completion("y" * 2_000_000))

    assert (await ask(server, task())).output.text == "y" * 2_000_000


async def test_a_compressed_answer_is_read(server, task, completion):
    server.says(gzip.compress(json.dumps(completion("small")).encode()), headers={"Content-Encoding": "gzip"})

    assert (await ask(server, task())).output.text == "small"


async def test_quota_headers_are_given_back(server, task, completion):
    server.says(
        completion(),
        headers={
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-remaining-requests": "499",
            "x-ratelimit-reset-requests": "1m0.5s",
            "x-ratelimit-remaining-tokens": "29000",
        },
    )

    assert (await ask(server, task())).metrics["rate_limit"] == {
        "limit_requests": 500,
        "remaining_requests": 499,
        "reset_seconds": 60.5,
        "remaining_tokens": 29000,
    }


# --- every way it can fail


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "bad_request", False),
        (401, "authentication", False),
        (403, "permission", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "conflict", True),
        (422, "bad_request", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (503, "server_error", True),
        (529, "overloaded", True),
    ],
)
async def test_a_status_says_what_went_wrong_and_whether_to_try_again(server, task, status, kind, retryable):
    server.says({"error": {"message": "the server's own words"}}, status=status)
    error = await failure(server, task())

    assert (error.kind, error.status, error.retryable) == (kind, status, retryable)
    assert "the server's own words" in str(error)
    assert server.address("/v1/chat/completions") in str(error)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, "insufficient_quota", "quota_exceeded"),
        (400, "context_length_exceeded", "context_length"),
        (400, "content_filter", "content_filter"),
        (400, "model_not_found", "not_found"),
    ],
)
async def test_some_codes_say_more_than_their_status_and_are_final(server, task, status, code, kind):
    server.says({"error": {"message": "no", "type": "invalid_request_error", "code": code}}, status=status)
    error = await failure(server, task())

    assert (error.kind, error.status, error.retryable) == (kind, status, False)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "plain text"}, "plain text"),
        ({"message": "at the top"}, "at the top"),
        ({"detail": [{"msg": "field required"}]}, "field required"),
        ("<html><b>Bad gateway</b></html>", "Bad gateway"),
        ("", "empty body"),
    ],
)
async def test_the_servers_message_is_found_in_any_shape(server, task, body, words):
    server.says(body, status=502)

    assert words in str(await failure(server, task()))


async def test_a_long_message_is_cut(server, task):
    server.says({"error": {"message": "m" * 5000}}, status=400)
    message = str(await failure(server, task()))

    assert 400 < message.count("m") <= 500
    assert len(message) < 700


async def test_retry_after_in_seconds_is_told(server, task):
    server.says({}, status=429, headers={"Retry-After": "7"})

    assert (await failure(server, task())).retry_after_seconds == 7.0


async def test_retry_after_in_milliseconds_is_told(server, task):
    server.says({}, status=429, headers={"retry-after-ms": "250", "Retry-After": "1"})

    assert (await failure(server, task())).retry_after_seconds == 0.25


async def test_retry_after_as_a_date_is_told_in_seconds(server, task):
    moment = datetime.now(UTC) + timedelta(hours=1)
    server.says({}, status=503, headers={"Retry-After": format_datetime(moment, usegmt=True)})

    assert 3500 < (await failure(server, task())).retry_after_seconds <= 3600


async def test_a_retry_date_in_the_past_means_now(server, task):
    server.says({}, status=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})

    assert (await failure(server, task())).retry_after_seconds == 0.0


@pytest.mark.parametrize("value", ["soon", "", "nan", "Wed, 99 Oct"])
async def test_a_retry_after_that_nobody_can_read_is_none(server, task, value):
    server.says({}, status=429, headers={"Retry-After": value})

    assert (await failure(server, task())).retry_after_seconds is None


@pytest.mark.parametrize("body", ["not json", '{"choices": [', b"\xff\xfe\x00", '{"usage": ' + "[" * 100_000])
async def test_malformed_json_is_an_invalid_response(server, task, body):
    server.says(body)
    error = await failure(server, task())

    assert (error.kind, error.retryable) == ("invalid_response", True)
    assert "not JSON" in str(error)


@pytest.mark.parametrize(
    "body",
    ['data: {"choices": []}\n\ndata: [DONE]\n', ": hello\n\nevent: message\n", '{"text": "a"}\r\n{"text": "b"}\n'],
)
async def test_a_stream_is_paid_for_once_and_told_as_what_it_is(server, task, body):
    server.says(body)
    error = await failure(server, task())

    assert (error.kind, error.retryable) == ("invalid_response", False)
    assert "a stream; whole answers are needed, which many give for 'stream': false in the request" in str(error)


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {"choices": {}},
        {"choices": [{}]},
        {"choices": [{"message": "hi"}]},
        {"choices": [{"message": {"content": 5}}]},
    ],
)
async def test_json_of_another_shape_is_an_invalid_response(server, task, body):
    server.says(json.dumps(body))
    error = await failure(server, task())

    assert (error.kind, error.retryable) == ("invalid_response", True)


@pytest.mark.parametrize("body", ["", " \n", "{}", '{"choices": []}', '{"choices": null}'])
async def test_nothing_is_an_empty_response(server, task, body):
    server.says(body)
    error = await failure(server, task())

    assert (error.kind, error.retryable) == ("empty_response", True)


async def test_an_error_sent_with_status_200_is_an_error(server, task):
    server.says({"error": {"message": "upstream is down", "code": 502}})
    error = await failure(server, task())

    assert (error.kind, error.status, error.retryable) == ("server_error", 502, True)
    assert "upstream is down" in str(error)


async def test_a_connection_cut_before_the_answer_is_told(server, task):
    async def hang_up(request, seen):
        request.transport.abort()
        return web.Response()

    server.answer = hang_up
    error = await failure(server, task())

    assert (error.kind, error.retryable) == ("connection", True)
    assert len(server.seen) == 1  # trying again is the engine's


async def test_a_connection_cut_in_the_middle_of_the_answer_is_told(server, task):
    async def half_an_answer(request, seen):
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        request.transport.abort()
        return response

    server.answer = half_an_answer
    error = await failure(server, task())

    assert (error.kind, error.retryable) == ("connection", True)


async def test_something_that_is_no_http_is_told(task):
    async def gibberish(reader, writer):
        await reader.read(100)
        writer.write(b"SSH-2.0-not-a-web-server\r\n\r\n")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(gibberish, "127.0.0.1", 0)
    provider = OpenAICompatible(base_url=f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    async with listener:
        with pytest.raises(ProviderCallError) as raised:
            await provider.execute(task())
    await provider.aclose()

    assert (raised.value.kind, raised.value.retryable) == ("invalid_response", True)


async def test_a_server_that_is_not_there_is_told(task):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        provider = OpenAICompatible(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        with pytest.raises(ProviderCallError, match="is the server running") as raised:
            await provider.execute(task())
        await provider.aclose()

    assert (raised.value.kind, raised.value.retryable) == ("connection", True)


async def test_a_server_that_never_answers_is_a_timeout(server, task):
    async def never(request, seen):
        await asyncio.sleep(60)
        return web.Response()

    server.answer = never
    error = await failure(server, task(), timeout=0.05)

    assert (error.kind, error.retryable) == ("timeout", True)
    assert "timeout=0.05" in str(error)


@pytest.mark.parametrize("chunked", [False, True])
async def test_an_answer_above_the_limit_is_not_read_to_its_end(server, task, chunked):
    async def flood(request, seen):
        response = web.StreamResponse(headers={} if chunked else {"Content-Length": str(2**30)})
        await response.prepare(request)
        while True:
            await response.write(b"z" * 2**16)

    server.answer = flood
    error = await failure(server, task(), max_response_bytes=1_000_000)

    assert (error.kind, error.retryable) == ("response_too_large", False)
    assert "max_response_bytes=1,000,000" in str(error)


async def test_a_redirect_is_explained_and_not_followed(server, task):
    server.says("", status=308, headers={"Location": "https://elsewhere.example/v1"})
    error = await failure(server, task(), api_key=KEY)

    assert (error.status, error.retryable) == (308, False)
    assert "https://elsewhere.example/v1" in str(error)
    assert len(server.seen) == 1


async def test_a_redirect_within_the_server_is_shown_with_its_host(server, task):
    server.says("", status=307, headers={"Location": "/v2/chat/completions"})
    error = await failure(server, task())

    assert f"redirects to http://127.0.0.1:{server.port}/v2/chat/completions" in str(error)


async def test_a_key_that_the_server_repeats_is_not_shown(server, task):
    server.says({"error": {"message": f"Incorrect API key provided: {KEY}"}}, status=401)
    error = await failure(server, task(), api_key=KEY)

    assert KEY not in str(error)
    assert KEY not in repr(error.__dict__)
    assert "Incorrect API key provided" in str(error)


async def test_credentials_in_the_address_are_sent_but_not_shown(server, task):
    server.says({}, status=500)
    error = await failure(server, task(), base_url=f"http://ada:swordfish@127.0.0.1:{server.port}/v1")

    assert server.last.headers["authorization"].startswith("Basic ")
    assert "swordfish" not in str(error)


# --- connections


async def test_as_many_connections_are_open_as_calls_are_in_flight(server, task, completion):
    everyone_is_here = asyncio.Event()

    async def answer_when_all_have_asked(request, seen):
        if len(server.seen) == 150:
            everyone_is_here.set()
        await everyone_is_here.wait()
        return web.json_response(completion())

    server.answer = answer_when_all_have_asked
    provider = OpenAICompatible(base_url=server.address("/v1"))
    provider.set_concurrency(150)
    records = await asyncio.gather(*(provider.execute(task(str(number))) for number in range(150)))
    await provider.aclose()

    assert len(records) == len({seen.peer for seen in server.seen}) == 150


async def test_connections_are_kept_for_the_next_call(server, task):
    provider = OpenAICompatible(base_url=server.address("/v1"))
    for _ in range(5):
        await provider.execute(task())
    await provider.aclose()

    assert len({seen.peer for seen in server.seen}) == 1


def test_one_provider_serves_one_event_loop_after_another(server, task):
    provider = OpenAICompatible(base_url=server.address("/v1"))

    async def once():
        try:
            return await provider.execute(task())
        finally:
            await provider.aclose()

    assert [asyncio.run(once()).output.text for _ in range(2)] == ["95 - (21 / 3)"] * 2


async def test_a_certificate_nobody_vouches_for_is_refused_for_good(tls_server, task):
    error = await failure(tls_server, task())

    assert (error.kind, error.retryable) == ("connection", False)
    assert "ca_file" in str(error)


async def test_a_private_authority_is_trusted_by_its_file(tls_server, task, certificate):
    assert (await ask(tls_server, task(), ca_file=certificate)).output.text == "95 - (21 / 3)"


async def test_verification_can_be_switched_off(tls_server, task):
    assert (await ask(tls_server, task(), verify=False)).output.text == "95 - (21 / 3)"


async def test_a_proxy_of_the_environment_is_used(server, task, monkeypatch):
    monkeypatch.setenv("http_proxy", server.address())
    await ask(server, task(), base_url="http://models.example/v1")

    assert server.last.headers["host"] == "models.example"


async def test_a_host_excepted_from_the_proxy_is_called_directly(server, task, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    await ask(server, task())

    assert server.last.path == "/v1/chat/completions"


async def test_a_proxy_can_be_given(server, task):
    await ask(server, task(), base_url="http://models.example/v1", proxy=server.address())

    assert server.last.headers["host"] == "models.example"


# --- where the endpoint is, and whose account


def test_a_hosted_endpoint_without_a_key_names_the_variable():
    with pytest.raises(ProviderError, match="OPENROUTER_API_KEY"):
        create_provider("openrouter", {})


async def test_the_environment_says_where_and_who(server, task, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.address("/v1/"))
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    provider = create_provider("openai", {})
    await provider.execute(task())
    await provider.aclose()

    assert server.last.path == "/v1/chat/completions"
    assert server.last.headers["authorization"] == f"Bearer {KEY}"


async def test_any_name_with_a_base_url_in_the_environment_is_a_provider(server, task, monkeypatch):
    monkeypatch.setenv("MY_LAB_BASE_URL", server.address("/v1"))
    monkeypatch.setenv("MY_LAB_API_KEY", KEY)
    model = parse_model("my-lab/llama")
    provider = create_provider(model.provider, {})
    await provider.execute(task(model=model.identifier))
    await provider.aclose()

    assert server.last.body["model"] == "llama"
    assert server.last.headers["authorization"] == f"Bearer {KEY}"


def test_an_endpoint_of_no_known_place_says_how_to_name_one():
    with pytest.raises(ProviderError, match="base_url= or set OPENAI_COMPATIBLE_BASE_URL"):
        create_provider("openai_compatible", {})


@pytest.mark.parametrize("name", ["vllm", "llamacpp", "ollama", "lmstudio"])
def test_servers_of_ones_own_need_no_key_and_cost_nothing(name):
    provider = create_provider(name, {})

    assert provider.is_local
    assert "localhost" in provider.account


def test_a_second_variable_may_hold_the_key(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)

    assert not create_provider("gemini", {}).is_local


def test_accounts_differ_by_key_and_never_show_it():
    accounts = {OpenAICompatible(base_url="http://127.0.0.1:1/v1", api_key=key).account for key in (KEY, "other", None)}

    assert len(accounts) == 3
    assert not any(KEY in account or "other" in account for account in accounts)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"base_url": "localhost:8000"}, "http://"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"ca_file": "nowhere.pem"}, "nowhere.pem"),
        ({"extra_headers": {"X-A": "two\nlines"}}, "X-A"),
        ({"extra_body": {"bad": object()}}, "JSON"),
    ],
)
def test_options_that_cannot_work_are_found_before_any_call(options, named):
    with pytest.raises(ConfigurationError, match=named):
        OpenAICompatible(**{"base_url": "http://127.0.0.1:1/v1", **options})


def test_openais_own_endpoint_is_given_the_newer_name_of_the_token_limit(monkeypatch, task):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    hosted, own = create_provider("openai", {}), create_provider("openai", {"base_url": "http://127.0.0.1:1/v1"})

    assert json.loads(hosted._body(task(max_tokens=9)))["max_completion_tokens"] == 9
    assert json.loads(own._body(task(max_tokens=9)))["max_tokens"] == 9

    gateway = create_provider(
        "openai", {"base_url": "http://127.0.0.1:1/v1", "max_tokens_field": "max_completion_tokens"}
    )
    sent = json.loads(gateway._body(task(max_tokens=9)))
    assert (sent["max_completion_tokens"], "max_tokens" in sent) == (9, False)


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_durations_of_quota_headers_add_up(hours, minutes, seconds, milliseconds):
    told = duration_seconds(f"{hours}h{minutes}m{seconds}s{milliseconds}ms")

    assert told == pytest.approx(hours * 3600 + minutes * 60 + seconds + milliseconds / 1000)
