"""Each model's own parameters: known by family, learnt from refusals, said and kept."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import pytest
from aiohttp import web
from fastapi.testclient import TestClient

import themis
from tests.generation.refusing import (
    COMPLETION,
    MESSAGE,
    answer_as_anthropic,
    answer_as_openai,
    answering,
    find_openai_refusal,
    refuse,
    refuse_as_anthropic,
)
from themis.cli import _run
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.providers import create_provider, parse_model, provider_maker
from themis.generation.providers.anthropic import Anthropic
from themis.generation.providers.families import Rules, families_date, find_rules
from themis.generation.providers.openai_compatible import OpenAICompatible
from themis.generation.providers.refusals import Refusal, read_refusal
from themis.server import create_app

LIMIT = "max_completion_tokens"


@pytest.fixture
def call(capsys):
    """The command line in this process: its exit code, and what it said."""

    def run(*words):
        code = _run([str(word) for word in words])
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


async def ask(provider, *tasks):
    """The records of tasks that are asked at once."""
    try:
        return await asyncio.gather(*(provider.execute(task) for task in tasks))
    finally:
        await provider.aclose()


def openai(server, **options):
    return OpenAICompatible(**{"base_url": server.address("/v1"), **options})


def anthropic(server, **options):
    return Anthropic(**{"base_url": server.address(), "api_key": "k", **options})


# --- the file ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        *(
            "o1",
            "o3-mini",
            "o3",
            "o4-mini-2025-04-16",
            "openai/o3-mini",
            "azure/o4-mini",
            "ft:o4-mini-2025-04-16:org::x",
        ),
        *("gpt-5", "gpt-5-mini", "gpt-5-2025-08-07", "openai/gpt-5-nano", "gpt-5.6-luna", "gpt-6-sol", "gpt-6.1-sol"),
    ],
)
def test_openais_reasoning_models_are_known_whoever_stands_before_them(model):
    rules = find_rules(model)

    assert rules.rename["max_tokens"] == LIMIT
    assert {"temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs"} <= set(rules.refuse)


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-4.1-mini", "gpt-oss-120b", "marco-o1", "llama-3.3-70b", "qwen3-o1ish", "claude-2.1", "mo3"]
)
def test_other_models_lose_nothing(model):
    rules = find_rules(model)

    assert (rules.rename, rules.refuse, rules.refuse_reasoning) == ({}, (), ())


@pytest.mark.parametrize("model", ["gpt-5-chat-latest", "gpt-5.2-chat-latest"])
def test_chat_variants_know_the_new_name_and_take_a_temperature(model):
    assert (find_rules(model).rename["max_tokens"], find_rules(model).refuse) == (LIMIT, ())


@pytest.mark.parametrize(
    ("model", "refuses", "reasons"),
    [
        ("claude-3-5-haiku-20241022", (), ""),
        ("claude-sonnet-4-20250514", (), "budget"),
        ("claude-opus-4-1-20250805", (), "budget"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", (), "budget"),
        ("claude-opus-4-6", (), "adaptive"),
        ("anthropic/claude-4.7-opus", ("temperature", "top_p", "top_k"), "adaptive"),
        ("claude-opus-4-8", ("temperature", "top_p", "top_k"), "adaptive"),
        ("claude-sonnet-5", ("temperature", "top_p", "top_k"), "adaptive"),
        ("claude-fable-5-1", ("temperature", "top_p", "top_k"), "adaptive"),
        ("claude-opus-7", ("temperature", "top_p", "top_k"), "adaptive"),
    ],
)
def test_claude_is_known_by_its_version(model, refuses, reasons):
    rules = find_rules(model)

    assert (rules.refuse, rules.reasoning) == (refuses, reasons)


def test_some_facts_hold_at_one_vendor_only():
    assert find_rules("mistral-large-latest", "mistral").rename == {"seed": "random_seed"}
    assert find_rules("mistral-large-latest", "openrouter") == Rules()
    assert "logprobs" in find_rules("deepseek-reasoner", "deepseek").refuse_reasoning
    assert find_rules("deepseek-reasoner", "vllm") == Rules()


def test_the_file_says_of_when_it_is():
    assert families_date() >= "2026-11-18"


# --- models that are known ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", ["openai/o3-mini", "openrouter/openai/o3-mini", "acme/gpt-5", "openai_compatible/o4-mini"]
)
async def test_a_reasoning_model_behind_any_address_works_without_an_option(server, task, monkeypatch, model, caplog):
    caplog.set_level(logging.INFO, "themis")
    for name in ("OPENAI", "OPENROUTER", "ACME", "OPENAI_COMPATIBLE"):
        monkeypatch.setenv(f"{name}_BASE_URL", server.address("/v1"))
    server.answer = answer_as_openai
    spec = parse_model(model)
    provider = create_provider(spec.provider, {}, model_identifier=spec.identifier)

    records = await ask(
        provider, task(model=spec.identifier, max_tokens=64), task(model=spec.identifier, max_tokens=64)
    )

    assert [record.output.text for record in records] == ["42", "42"]
    assert len(server.seen) == 2
    assert (server.last.body[LIMIT], "temperature" in server.last.body) == (64, False)
    assert provider.sent_parameters == {LIMIT: 64}
    assert "0.0 is not sent: not taken by this model, as of" in provider.left_out["temperature"]
    assert [record.levelname for record in caplog.records] == ["INFO"]


async def test_a_temperature_that_was_asked_for_is_left_out_aloud_and_once(server, task, caplog):
    server.answer = answer_as_openai
    asked = task(model="o3-mini", temperature=0.7)

    await ask(openai(server), asked, asked, asked)

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "o3-mini: temperature, which was asked for: 0.7 is not sent" in caplog.text


async def test_a_default_that_the_user_gave_is_known_to_be_given(server, task, caplog):
    server.answer = answer_as_openai
    options = {"base_url": server.address("/v1")}
    provider = provider_maker("openai", options, model_identifier="o3-mini", asked_parameters=["temperature"])()

    await ask(provider, task(model="o3-mini", temperature=0.0))

    assert "which was asked for: 0.0 is not sent" in caplog.text


async def test_what_the_model_does_anyway_is_left_out_without_a_word(server, task, caplog):
    server.answer = answer_as_openai
    provider = openai(server)

    await ask(provider, task(model="o3", temperature=1.0, top_p=1.0))

    assert (provider.left_out, caplog.text) == ({}, "")


async def test_with_strict_parameters_it_is_an_error_before_any_call(server, task):
    provider = openai(server, strict_parameters=True)

    with pytest.raises(ProviderCallError, match=r"o3-mini: temperature 0\.7 is not sent.*strict_parameters") as raised:
        await ask(provider, task(model="o3-mini", temperature=0.7))

    assert (raised.value.kind, raised.value.retryable, server.seen) == ("bad_request", False, [])
    # The default was not asked for.
    await ask(provider, task(model="o3-mini"))


async def test_an_answer_is_cut_where_a_text_to_stop_at_cannot_be_sent(server, task, completion):
    server.says(completion("first\n\nsecond\n\nthird"))

    (record,) = await ask(openai(server), task(model="gpt-5", stop=("\n\n",)))

    assert (record.output.text, "stop" in server.last.body) == ("first", False)


async def test_claude_of_one_or_the_other_gets_the_one_that_was_asked_for(server, task):
    server.answer = answer_as_anthropic
    provider = anthropic(server)

    await ask(provider, task(model="claude-sonnet-4-5", top_p=0.9))
    assert ("temperature" in server.last.body, server.last.body["top_p"]) == (False, 0.9)

    await ask(anthropic(server), task(model="claude-sonnet-4-5", temperature=0.5, top_p=0.9))
    assert ("top_p" in server.last.body, server.last.body["temperature"]) == (False, 0.5)

    assert len(server.seen) == 2


async def test_new_claude_models_are_sent_no_sampling(server, task):
    server.says(MESSAGE)
    provider = anthropic(server)

    await ask(provider, task(model="claude-opus-4-8", top_p=0.9, max_tokens=100))

    assert provider.sent_parameters == {"max_tokens": 100}
    assert set(provider.left_out) == {"temperature", "top_p"}


async def test_more_than_a_model_takes_is_sent_as_its_most(server, task):
    server.says(MESSAGE)

    await ask(anthropic(server), task(model="claude-3-haiku-20240307", temperature=1.5, max_tokens=-1))

    assert (server.last.body["max_tokens"], server.last.body["temperature"]) == (4096, 1.0)


async def test_mistral_knows_the_seed_by_another_name(server, task, monkeypatch):
    monkeypatch.setenv("MISTRAL_BASE_URL", server.address("/v1"))

    await ask(create_provider("mistral", {"seed": 7}), task(model="mistral-large-latest"))

    assert (server.last.body["random_seed"], "seed" in server.last.body) == (7, False)


async def test_a_name_for_the_limit_that_the_user_gives_wins(server, task):
    await ask(openai(server, max_tokens_field="max_tokens"), task(model="o3-mini", max_tokens=5))

    assert server.last.body["max_tokens"] == 5


# --- models that are not known -----------------------------------------------------------------------------------------


async def test_what_openai_refuses_is_learnt_once_and_said_once(server, task, caplog):
    server.answer = answer_as_openai
    provider = openai(server)

    await ask(provider, task(model="new-thinker", max_tokens=64))
    assert len(server.seen) == 3
    await ask(provider, *(task(str(n), model="new-thinker", max_tokens=64) for n in range(10)))

    assert len(server.seen) == 13
    assert provider.sent_parameters == {LIMIT: 64}
    assert "refused by the provider (400: Unsupported value: 'temperature'" in provider.left_out["temperature"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "max_tokens is sent as max_completion_tokens from now on" in caplog.text


async def test_calls_that_are_under_way_meanwhile_learn_it_too(server, task, caplog):
    server.answer = answer_as_openai

    records = await ask(openai(server), *(task(str(n), model="new-thinker") for n in range(20)))

    assert {record.output.text for record in records} == {"42"}
    assert len(caplog.records) == 2
    assert len(server.seen) <= 60


async def test_a_learnt_refusal_of_what_was_asked_for_says_so(server, task, caplog):
    server.answer = answer_as_openai

    await ask(openai(server), task(model="new-thinker", temperature=0.7))

    assert "temperature, which was asked for: 0.7 is not sent: refused by the provider" in caplog.text


async def test_with_strict_parameters_a_learnt_refusal_is_an_error(server, task):
    server.answer = answer_as_openai

    with pytest.raises(ProviderCallError, match=r"temperature 0\.7 is not sent: refused by the provider.*strict"):
        await ask(openai(server, strict_parameters=True), task(model="new-thinker", temperature=0.7))


async def test_what_anthropic_refuses_is_learnt(server, task, caplog):
    server.answer = answer_as_anthropic
    provider = anthropic(server)

    await ask(provider, task(model="someone-new", top_p=0.9, max_tokens=100_000))
    await ask(provider, task(model="someone-new", top_p=0.9, max_tokens=100_000))

    assert len(server.seen) == 4
    assert provider.sent_parameters == {"max_tokens": 8192, "top_p": 0.9}
    assert "temperature" in provider.left_out
    assert "100000 is sent as 8192, the most that it takes" in caplog.text


async def test_a_temperature_beside_thinking_is_learnt(server, task):
    server.answer = answer_as_anthropic
    provider = anthropic(server, extra_body={"thinking": {"type": "enabled", "budget_tokens": 20}})

    await ask(provider, task(model="someone-new", max_tokens=100))

    assert "temperature" not in server.last.body
    assert len(server.seen) == 2


async def test_claude_that_thinks_by_effort_is_learnt(server, task):
    said = (
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" '
        "to control thinking behavior."
    )

    def respond(body):
        return refuse_as_anthropic(said) if body.get("thinking", {}).get("type") == "enabled" else None

    server.answer = answering(respond, MESSAGE)
    await ask(anthropic(server, thinking_budget=8000), task(model="someone-new", max_tokens=100))

    assert server.last.body["thinking"] == {"type": "adaptive"}
    assert server.last.body["output_config"] == {"effort": "medium"}
    assert server.last.body["max_tokens"] == 100


@pytest.mark.parametrize(
    ("body", "status", "sent", "left_out"),
    [
        # Mistral, and others that check with pydantic
        (
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
            422,
            {"seed": 1},
            "seed",
        ),
        # vLLM
        (
            {"object": "error", "message": "logprobs is not supported here", "param": "logprobs", "code": 400},
            400,
            {"logprobs": True},
            "logprobs",
        ),
        # Google wraps its errors in a list
        (
            [
                {
                    "error": {
                        "code": 400,
                        "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
                    }
                }
            ],
            400,
            {"seed": 1},
            "seed",
        ),
        (
            {"error": "Model grok-x does not support parameter reasoningEffort."},
            400,
            {"reasoning_effort": "low"},
            "reasoning_effort",
        ),
        (
            {"error": {"message": "`temperature` is deprecated for this model."}},
            400,
            {"temperature": 0.0},
            "temperature",
        ),
        (
            {"error": {"message": "invalid temperature: only 1 is allowed for this model"}},
            400,
            {"temperature": 0.0},
            "temperature",
        ),
        ({"error": {"message": "property 'top_logprobs' is unsupported"}}, 400, {"top_logprobs": 2}, "top_logprobs"),
        (
            {"error": {"message": "Model incompatible request argument supplied: temperature"}},
            400,
            {"temperature": 0.0},
            "temperature",
        ),
        ({"error": {"message": "Unrecognized request argument supplied: top_k"}}, 400, {"top_k": 4}, "top_k"),
    ],
)
async def test_refusals_of_other_servers_are_read(server, task, body, status, sent, left_out):
    server.answer = answering(
        lambda asked: web.json_response(body, status=status) if left_out in asked else None, COMPLETION
    )
    options = {"reasoning_effort": "low", "seed": 1, "logprobs": 2}
    provider = openai(server, **{name: value for name, value in options.items() if name in sent or name == "logprobs"})
    if left_out == "top_k":
        provider = openai(server, extra_body={"top_k": 4})
        with pytest.raises(ProviderCallError):  # what the user wrote into the request is sent or fails
            await ask(provider, task())
        return

    (record,) = await ask(provider, task())

    assert record.output.text == "42"
    assert left_out in provider.left_out


@pytest.mark.parametrize(
    ("said", "parameter", "code"),
    [
        ("Invalid schema for function 'seed': 'temperature' is not supported", "tools[0].function.parameters", None),
        ("Unknown parameter: 'messages[2].temperature'.", "messages[2].temperature", "unknown_parameter"),
        ("messages.1.content.0.temperature: Extra inputs are not permitted", None, None),
        ("'messages.2' : for 'role:tool' the following must be satisfied[property 'stop' is unsupported]", None, None),
        ("Invalid prompt: the reactor's temperature is not allowed to be discussed", None, "invalid_prompt"),
    ],
)
async def test_nothing_is_learnt_of_a_refusal_that_is_about_what_was_said(server, task, caplog, said, parameter, code):
    server.answer = answering(lambda body: refuse(said, parameter, code), COMPLETION)
    provider = openai(server, seed=1, stop="x")

    with pytest.raises(ProviderCallError) as raised:
        await ask(provider, task())

    assert len(server.seen) == 1
    assert not provider.left_out
    assert not caplog.records
    assert "provider option" not in str(raised.value)


def test_a_refusal_is_read_only_where_a_parameter_is_meant():
    def read(said, sent, **told):
        return read_refusal(ProviderCallError(said, kind="bad_request", status=400, **told), sent)

    sent = {"model": "m", "messages": [], "stop": ["x"], "temperature": 0.0, "max_tokens": 5}
    assert read("The model `m` does not support images", sent) is None
    assert read("We do not support that; stop asking", sent) is None
    assert read("messages: text content blocks must be non-empty", sent, parameter="messages") is None
    assert read("'temperature' must be between 0 and 2", sent) is None
    assert read("Unsupported parameter: 'stop' is not supported with this model.", sent) == Refusal("stop", "leave_out")
    assert read("max_tokens: 5 > 4", sent) == Refusal("max_tokens", "at_most", 4)
    assert read("max_tokens: 9 > 6", sent) is None
    assert read("`max_tokens` must be less than or equal to `4`, the maximum", sent) == Refusal(
        "max_tokens", "at_most", 4
    )
    assert read("the valid range of max_tokens is [1, 4]", sent) == Refusal("max_tokens", "at_most", 4)
    assert read("`top_k` must be unset when thinking is enabled.", {"top_k": 4}) == Refusal("top_k", "leave_out")
    assert read(
        "Invalid value: 'max'. Supported values are: 'low' and 'high'.",
        {"reasoning_effort": "max"},
        parameter="reasoning_effort",
    ) == Refusal("reasoning_effort", "one_of", ("low", "high"))
    assert read("Unknown parameter: 'max_tokens'.", sent) == Refusal("max_tokens", "rename", LIMIT)


@pytest.mark.parametrize(
    ("said", "name", "remedy"),
    [
        ("This model doesn't support the temperature field. Remove temperature and try again.", "temperature", ""),
        ("gpt-5 models don't support temperature=0.2. Only temperature=1 is supported.", "temperature", ""),
        ("temperature is not accepted for this deployment", "temperature", ""),
        ("This model does not accept temperature", "temperature", ""),
        ("Invalid value for 'temperature': only 1 is accepted", "temperature", ""),
        ("temperature must be 1 for this model", "temperature", ""),
        ("temperature has to be 1.0 when thinking is enabled.", "temperature", ""),
        ("Malformed input request: extraneous key [seed] is not permitted", "seed", ""),
        ("No such parameter: seed", "seed", ""),
        ("'seed' is not a valid parameter for model o9", "seed", ""),
        ("top_p can't be used with this model", "top_p", ""),
        ("top_p may not be used with reasoning models", "top_p", ""),
        ("Please use max_completion_tokens instead of max_tokens", "max_tokens", "rename"),
        ("Invalid parameter: temperature must be in [0, 1]", "", ""),
        ("temperature 3 is not accepted, it has to be less than 2", "", ""),
        ("top_p must be 1 or less", "", ""),
        ("We don't support hurry; stop at once, the temperature rises", "", ""),
    ],
)
def test_gateways_refuse_in_words_of_their_own(said, name, remedy):
    sent = {"model": "m", "messages": [], "stop": ["x"], "temperature": 0.0, "top_p": 0.9, "max_tokens": 5, "seed": 1}
    refusal = read_refusal(ProviderCallError(said, kind="bad_request", status=400), sent)

    assert refusal == (Refusal(name, remedy or "leave_out", LIMIT if remedy else None) if name else None)


@pytest.mark.parametrize(
    ("said", "parameter", "advice"),
    [
        ("Your request has an image, which is not supported. Please stop sending images.", "messages", None),
        ("This model does not support a temperature of the discussion as high as this.", None, None),
        ("`response_format` is not supported with this model.", None, "--option omit=response_format"),
        ("temperature must be strictly positive", "temperature", "does not take this temperature: give another one"),
    ],
)
async def test_advice_is_given_only_about_a_parameter_that_is_meant(server, task, said, parameter, advice):
    server.answer = answering(lambda body: refuse(said, parameter, "invalid_value"), COMPLETION)

    with pytest.raises(ProviderCallError, match=said.replace(".", "[.]")) as raised:
        await ask(openai(server, response_format={"type": "json_object"}, stop="x"), task())

    assert len(server.seen) == 1
    assert advice in str(raised.value) if advice else "provider option" not in str(raised.value)


async def test_a_server_that_refuses_both_names_of_the_limit_is_told_of(server, task):
    def respond(body):
        name = next(name for name in ("max_tokens", LIMIT) if name in body)
        return refuse(f"Unknown parameter: '{name}'.", name)

    server.answer = answering(respond, COMPLETION)
    with pytest.raises(ProviderCallError, match="Unknown parameter"):
        await ask(openai(server), task())

    assert len(server.seen) == 2


async def test_another_error_after_a_refusal_is_the_error(server, task):
    def respond(body):
        return find_openai_refusal(body) or refuse("Incorrect API key provided", None, "invalid_api_key", status=401)

    server.answer = answering(respond, COMPLETION)
    with pytest.raises(ProviderCallError) as raised:
        await ask(openai(server), task())

    assert raised.value.kind == "authentication"


# --- how much it is to think -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        ("o3-mini", {"reasoning_effort": "high"}, "high"),
        ("o3-mini", {"reasoning_effort": "minimal"}, "low"),
        ("gpt-5", {"reasoning_effort": "none"}, "minimal"),
        ("gpt-5.2", {"reasoning_effort": "none"}, "none"),
        ("gpt-6.1-sol", {"reasoning_effort": "none"}, "low"),
        ("o3", {"thinking_budget": 2_000}, "low"),
        ("o3", {"thinking_budget": 50_000}, "high"),
        ("unknown-thinker", {"reasoning_effort": "minimal"}, "minimal"),
    ],
)
async def test_an_effort_is_sent_in_a_word_that_the_model_knows(server, task, model, options, sent):
    provider = openai(server, **options)
    await ask(provider, task(model=model))

    assert server.last.body["reasoning_effort"] == sent
    asked = next(iter(options))
    assert (asked in provider.left_out) == (options[asked] != sent)


async def test_sampling_goes_with_gpt_5_2_as_long_as_it_does_not_reason(server, task):
    await ask(openai(server), task(model="gpt-5.2", temperature=0.3))
    assert server.last.body["temperature"] == 0.3

    await ask(openai(server, reasoning_effort="low"), task(model="gpt-5.2", temperature=0.3))
    assert "temperature" not in server.last.body


@pytest.mark.parametrize(
    ("options", "sent"),
    [({"reasoning_effort": "minimal"}, {"effort": "minimal"}), ({"thinking_budget": 3000}, {"max_tokens": 3000})],
)
async def test_openrouter_has_a_field_of_its_own(server, task, monkeypatch, options, sent):
    monkeypatch.setenv("OPENROUTER_BASE_URL", server.address("/v1"))
    await ask(create_provider("openrouter", options), task(model="anthropic/claude-sonnet-4.5"))

    assert server.last.body["reasoning"] == sent


async def test_google_and_deepseek_have_theirs(server, task, monkeypatch):
    monkeypatch.setenv("GOOGLE_BASE_URL", server.address("/v1"))
    monkeypatch.setenv("DEEPSEEK_BASE_URL", server.address("/v1"))

    await ask(create_provider("google", {"thinking_budget": 800}), task(model="gemini-2.5-flash"))
    assert server.last.body["extra_body"]["google"]["thinking_config"]["thinking_budget"] == 800

    await ask(create_provider("deepseek", {"reasoning_effort": "none"}), task(model="deepseek-v4-pro", temperature=0.5))
    assert (server.last.body["thinking"], server.last.body["temperature"]) == ({"type": "disabled"}, 0.5)

    await ask(
        create_provider("deepseek", {"reasoning_effort": "medium"}), task(model="deepseek-v4-pro", temperature=0.5)
    )
    assert (server.last.body["thinking"], server.last.body["reasoning_effort"]) == ({"type": "enabled"}, "high")
    assert "temperature" not in server.last.body


async def test_claude_thinks_on_top_of_its_answers_limit(server, task):
    server.answer = answer_as_anthropic
    provider = anthropic(server, thinking_budget=4000)

    await ask(provider, task(model="claude-sonnet-4-5", max_tokens=100))

    assert server.last.body["thinking"] == {"type": "enabled", "budget_tokens": 4000}
    assert (server.last.body["max_tokens"], "temperature" in server.last.body) == (4100, False)
    assert provider.added_tokens("claude-sonnet-4-5") == 4000
    assert len(server.seen) == 1


async def test_a_budget_that_is_raised_to_the_least_there_is_is_told(server, task, caplog):
    server.answer = answer_as_anthropic
    provider = anthropic(server, thinking_budget=500)

    await ask(provider, task(model="claude-sonnet-4-5"))

    assert server.last.body["thinking"]["budget_tokens"] == 1024
    assert provider.left_out["thinking_budget"] == "500 is sent as 1024, the least that there is"
    assert "thinking_budget, which was asked for: 500 is sent as 1024" in caplog.text


async def test_what_is_said_of_a_budget_is_what_was_learnt_last(server, task):
    def respond(body):
        if body["thinking"]["type"] == "enabled":
            return refuse_as_anthropic('"thinking.type.enabled" is not supported for this model.')
        return None

    server.answer = answering(respond, MESSAGE)
    provider = anthropic(server, thinking_budget=500)

    await ask(provider, task(model="claude-next"))

    assert provider.left_out["thinking_budget"] == "500 is sent as the effort 'low'"


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        ("claude-sonnet-4-5", {"reasoning_effort": "medium"}, {"thinking": {"type": "enabled", "budget_tokens": 8192}}),
        ("claude-sonnet-4-5", {"reasoning_effort": "none"}, {}),
        (
            "claude-opus-4-6",
            {"reasoning_effort": "low"},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        ("claude-opus-4-6", {"thinking_budget": 2000}, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        (
            "claude-opus-5-5",
            {"reasoning_effort": "minimal"},
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
        ),
        ("claude-opus-5-5", {"reasoning_effort": "none"}, {"output_config": {"effort": "low"}}),
        ("claude-sonnet-5", {"thinking_budget": 0}, {"thinking": {"type": "disabled"}}),
    ],
)
async def test_claude_is_told_to_think_as_its_version_wants_it(server, task, model, options, sent):
    server.says(MESSAGE)
    await ask(anthropic(server, **options), task(model=model))

    assert {name: server.last.body[name] for name in ("thinking", "output_config") if name in server.last.body} == sent


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"reasoning_effort": "enormous"}, "none, minimal, low"),
        ({"thinking_budget": -1}, "number of tokens"),
        ({"thinking_budget": 100, "reasoning_effort": "low"}, "not both"),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_effort_that_makes_no_sense_is_found_before_any_call(provider, options, named):
    with pytest.raises(ConfigurationError, match=named):
        create_provider(provider, {"base_url": "http://127.0.0.1:1/v1", **options})


async def test_what_many_calls_learn_at_once_is_said_once(server, task, caplog):
    def respond(body):
        if body.get("thinking", {}).get("type") == "enabled":
            return refuse_as_anthropic('"thinking.type.enabled" is not supported for this model.')
        return None

    server.answer = answering(respond, MESSAGE)
    await ask(anthropic(server, thinking_budget=8000), *(task(str(n), model="someone-new") for n in range(12)))

    assert [record.message for record in caplog.records if "thinking_budget" in record.message] == [
        "someone-new: thinking_budget, which was asked for: 8000 is sent as the effort 'medium'"
    ]


async def test_what_is_not_taken_beside_thinking_is_told_so(server, task):
    server.says(MESSAGE)
    provider = anthropic(server, thinking_budget=2000)

    await ask(provider, task(model="claude-3-7-sonnet-latest", temperature=0.7))

    assert "not taken by this model while it reasons" in provider.left_out["temperature"]


async def test_a_word_that_the_model_does_not_know_is_learnt(server, task, caplog):
    known = ("none", "low", "medium")

    def respond(body):
        if body["reasoning_effort"] in known:
            return None
        said = (
            f"Unsupported value: 'reasoning_effort' does not support '{body['reasoning_effort']}' with this model. "
            "Supported values are: 'none', 'low', and 'medium'."
        )
        return refuse(said, "reasoning_effort", "unsupported_value")

    server.answer = answering(respond, COMPLETION)
    provider = openai(server, reasoning_effort="high")
    await ask(provider, task(model="new-thinker"))

    assert server.last.body["reasoning_effort"] == "medium"
    assert "'high' is sent as 'medium'" in caplog.text


# --- in a run ----------------------------------------------------------------------------------------------------------

ROWS = [{"id": n, "question": f"{n}?", "answer": "42"} for n in range(6)]


def evaluate(server, storage, **options):
    return themis.evaluate(
        ROWS,
        prompt="{question}",
        storage=storage,
        run_id="thinking",
        progress=False,
        **{"base_url": server.address("/v1"), "model": "openai/new-thinker", **options},
    )


def test_a_run_keeps_what_was_sent_and_what_was_not(server, tmp_path, call):
    server.answer = answer_as_openai
    report = evaluate(server, tmp_path, workers=1)

    assert report.metric("ExactMatch").mean == 1.0
    assert len(server.seen) == len(ROWS) + 2
    assert report.metadata["cost"]["api_calls"] == len(ROWS)
    assert report.metadata["parameters"]["sent"] == {LIMIT: 512}
    assert "refused by the provider" in report.metadata["parameters"]["left_out"]["temperature"]

    shown = call("show", "thinking", "--storage", tmp_path).out
    assert f"sent: {LIMIT}=512" in shown
    assert "not as asked: temperature: 0.0 is not sent" in shown


def test_a_seed_that_no_claude_takes_is_not_sent_and_that_is_said(server, tmp_path, call):
    server.answer = answer_as_anthropic
    options = {"model": "anthropic/claude-sonnet-4-5", "base_url": server.address(""), "seed": 7, "api_key": "k"}
    evaluate(server, tmp_path, **options)

    assert all("seed" not in seen.body for seen in server.seen)
    assert len(server.seen) == len(ROWS)
    assert "not as asked: seed: 7 is not sent" in call("show", "thinking", "--storage", tmp_path).out
    with pytest.raises(ConfigurationError, match="seed 7 is not sent"):
        evaluate(server, tmp_path / "strict", **options, strict_parameters=True)


def test_a_system_prompt_is_shown_however_it_was_given(server, tmp_path, call):
    server.answer = answer_as_openai
    evaluate(server, tmp_path, model="openai/o3", provider_options={"system_prompt": "Be brief."})

    assert server.last.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "Be brief." in call("show", "thinking", "--sample", "1", "--storage", tmp_path).out
    # It is the same run, and nothing is asked again.
    evaluate(server, tmp_path, model="openai/o3", system_prompt="Be brief.")
    assert len(server.seen) == len(ROWS)


def test_files_and_pages_of_a_run_show_what_was_sent_and_what_was_not(server, tmp_path, call):
    server.answer = answer_as_openai
    evaluate(server, tmp_path)
    call(
        *(
            "export",
            "thinking",
            "--storage",
            tmp_path,
            "--to",
            tmp_path / "files",
            "--format",
            "html,markdown,latex,json",
        )
    )
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1:8080") as client:
        page = client.get("/runs/thinking").text
        told = client.get("/api/runs/thinking").json()["metadata"]["parameters"]

    files = [(tmp_path / "files" / name).read_text() for name in ("report.html", "report.md", "report.tex")]
    for shown in (page, *files):
        plain = shown.replace("\\", "")
        assert f"{LIMIT}=512" in plain
        assert "temperature: 0.0 is not sent" in plain
    assert told["sent"] == {LIMIT: 512}


def test_a_run_that_goes_on_without_asking_keeps_it_too(server, tmp_path):
    server.answer = answer_as_openai
    first = evaluate(server, tmp_path)
    again = evaluate(server, tmp_path)

    assert again.metadata["parameters"] == first.metadata["parameters"]


def test_a_resumed_run_still_knows_what_was_left_to_its_default(server, tmp_path, caplog, call):
    server.answer = answering(lambda body: refuse("busy", status=500) if len(server.seen) > 2 else None, COMPLETION)
    evaluate(server, tmp_path, model="openai/o3-mini", max_retries=1, workers=1)
    server.answer = answer_as_openai

    assert call("resume", "thinking", "--storage", tmp_path).code == 0
    assert not [record for record in caplog.records if "asked for" in record.getMessage()]


def test_strict_parameters_stop_a_run_before_it_begins(server, tmp_path, call):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "?", "answer": "42"}\n')
    done = call(
        *("eval", rows, "-m", "openai/o3-mini", "--temperature", "0", "--strict-parameters", "--storage", tmp_path),
        *("--option", f"base_url={server.address('/v1')}"),
    )

    assert done.code == 2
    assert "o3-mini: temperature 0.0 is not sent" in done.err
    assert server.seen == []


def test_the_command_line_has_short_forms(server, tmp_path, call):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "?", "answer": "42"}\n')
    where = ("--option", f"base_url={server.address('/v1')}", "--storage", tmp_path)

    call("eval", rows, "-m", "openai/o3", "--reasoning-effort", "low", *where)
    assert server.last.body["reasoning_effort"] == "low"

    call("eval", rows, "-m", "openai/o3", "--thinking-budget", "9000", *where)
    assert server.last.body["reasoning_effort"] == "medium"


def test_a_budget_sets_thoughts_aside_too(server, tmp_path, monkeypatch):
    server.answer = answer_as_anthropic
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    # 8,512 tokens of answer at $15 a million are the most that a call may cost.
    report = evaluate(
        server, tmp_path, model="anthropic/claude-sonnet-4-5", thinking_budget=8000, max_tokens=512, budget_usd=0.12
    )

    assert (report.status, server.seen) == ("interrupted", [])
