"""What is marked to be cached, and what cached prompts cost."""

from __future__ import annotations

import json

import pytest

import themis
from tests.generation.refusing import COMPLETION, MESSAGE
from themis.core.entities import GenerationRecord, ModelOutput, Result
from themis.exceptions import ConfigurationError
from themis.generation.providers import create_provider
from themis.generation.providers.anthropic import Anthropic
from themis.runs.prices import Budget, Price, PricedCalls, price_of
from themis.storage import ExperimentStorage

LONG = "You are an examiner. " * 300
MARK = {"type": "ephemeral"}
TOOL = {"name": "add", "description": "Adds. " * 400, "parameters": {"type": "object"}}
TURNS = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]


def body_of(provider, task):
    return json.loads(provider._body(task))


def claude(**options):
    return Anthropic(base_url="http://127.0.0.1:1", api_key="k", **options)


def expecting(calls, at_once, **options):
    provider = claude(**options)
    provider.set_concurrency(at_once)
    provider.expect_calls(calls)
    return provider


# --- marks -------------------------------------------------------------------------------------------------------------


def test_asked_for_the_system_prompt_the_tools_and_the_last_message_are_marked(task):
    provider = claude(prompt_cache=True, system_prompt="Be brief.")

    body = body_of(provider, task(metadata={"messages": TURNS, "tools": [TOOL]}))
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "c", "cache_control": MARK}]
    assert "cache_control" not in body["tools"][0]  # they stand before what the system says, whose mark is theirs too

    body = body_of(claude(prompt_cache=True), task(metadata={"tools": [TOOL]}))
    assert body["tools"][-1]["cache_control"] == MARK


def test_for_an_hour_the_mark_says_so(task):
    body = body_of(claude(prompt_cache="1h", system_prompt="Be brief."), task())

    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert body["messages"] == [{"role": "user", "content": task().prompt.text}]


def test_without_being_asked_a_long_common_beginning_is_marked_once_it_is_known_to_be_common(task):
    provider = expecting(100, 4, system_prompt=LONG)
    marked = [isinstance(body_of(provider, task(str(n)))["system"], list) for n in range(12)]

    assert marked == [False] * 8 + [True] * 4


@pytest.mark.parametrize(
    ("calls", "system", "options"),
    [
        (15, LONG, {}),  # as many may be under way as would ever read it
        (100, "Be brief.", {}),
        (100, LONG, {"prompt_cache": False}),
    ],
)
def test_where_it_might_not_pay_nothing_is_marked(task, calls, system, options):
    provider = expecting(calls, 4, system_prompt=system, **options)

    assert not any(isinstance(body_of(provider, task(str(n)))["system"], list) for n in range(20))


def test_rows_with_a_system_prompt_each_are_not_marked(task):
    provider = expecting(1000, 1)
    bodies = [body_of(provider, task(metadata={"system_prompt": f"{n}. {LONG}"})) for n in range(10)]

    assert all(isinstance(body["system"], str) for body in bodies)


def test_whoever_is_told_nothing_of_the_run_marks_nothing(task):
    provider = claude(system_prompt=LONG)

    assert not any(isinstance(body_of(provider, task())["system"], list) for _ in range(20))


def test_another_word_is_refused():
    with pytest.raises(ConfigurationError, match="prompt_cache is true, false or '1h', got 'always'"):
        claude(prompt_cache="always")


def test_openrouter_passes_marks_on_and_others_are_sent_none(task, monkeypatch):
    for name in ("OPENROUTER", "OPENAI"):
        monkeypatch.setenv(f"{name}_BASE_URL", "http://127.0.0.1:1/v1")
    asked = task(metadata={"messages": TURNS})
    options = {"prompt_cache": True, "system_prompt": "Be brief."}

    messages = body_of(create_provider("openrouter", options), asked)["messages"]
    assert messages[0]["content"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert messages[-1]["content"][0]["cache_control"] == MARK
    assert "cache_control" not in str(body_of(create_provider("openai", options), asked))


# --- prices ------------------------------------------------------------------------------------------------------------

PRICE = Price(3.0, 15.0, cached_usd=0.3, cache_write_usd=3.75, cache_write_1h_usd=6.0)


def test_tokens_of_the_cache_have_prices_of_their_own():
    assert PRICE.of(10_000, 0) == pytest.approx(0.03)
    assert PRICE.of(10_000, 0, cached_tokens=10_000) == pytest.approx(0.003)
    assert PRICE.of(10_000, 0, cache_write_tokens=10_000) == pytest.approx(0.0375)
    assert PRICE.of(10_000, 100, 6_000, 1_000) == pytest.approx(
        (3_000 * 3 + 6_000 * 0.3 + 1_000 * 3.75 + 100 * 15) / 1e6
    )
    assert PRICE.cached_for("1h").of(10_000, 0, cache_write_tokens=10_000) == pytest.approx(0.06)


def test_without_such_prices_they_cost_what_any_other_token_costs():
    assert Price(3.0, 15.0).of(10_000, 0, 5_000, 5_000) == pytest.approx(0.03)


def test_a_budget_reserves_as_if_all_of_the_prompt_were_written(task):
    budget = Budget(0.04)
    calls = PricedCalls(budget, PRICE)

    assert calls.admit("a", 10_000, 0)
    assert budget._reserved_usd == pytest.approx(0.0375)
    calls.settle(
        "a",
        Result(0, 0, "a", GenerationRecord(task(), ModelOutput("1"), None), prompt_tokens=10_000, cached_tokens=9_000),
    )
    assert budget.spent_usd == pytest.approx(0.0057)


@pytest.mark.parametrize(
    ("model", "cached", "written"),
    [("claude-sonnet-4-5-20250929", 0.3, 3.75), ("gpt-4o-mini", 0.075, None), ("gpt-6-sol", 0.2, 2.5)],
)
def test_the_packaged_table_knows_them(model, cached, written):
    price = price_of(model)

    assert (price.cached_usd, price.cache_write_usd) == (cached, written)


def test_genai_prices_knows_those_of_other_models():
    pytest.importorskip("genai_prices")
    price = price_of("claude-mythos-5-2", "anthropic")

    assert price.cached_usd < price.input_usd < price.cache_write_usd < price.cache_write_1h_usd


def test_a_price_file_of_ones_own_may_have_them(monkeypatch, tmp_path):
    monkeypatch.setenv("THEMIS_PRICES", str(tmp_path / "prices.json"))
    (tmp_path / "prices.json").write_text('{"models": {"house-model": [3, 4, 0.3, null]}}')
    assert price_of("house-model") == Price(3.0, 4.0, cached_usd=0.3)

    (tmp_path / "other.json").write_text('{"models": {"house-model": [3]}}')
    monkeypatch.setenv("THEMIS_PRICES", str(tmp_path / "other.json"))
    with pytest.raises(ConfigurationError, match="two to five prices"):
        price_of("house-model")


# --- in a run ----------------------------------------------------------------------------------------------------------


def test_a_run_pays_and_tells_what_the_cache_had(server, tmp_path, monkeypatch, capsys):
    from themis.cli import _run

    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "cache_read_input_tokens": 800,
        "cache_creation_input_tokens": 100,
    }
    server.says({**MESSAGE, "usage": usage})
    report = themis.evaluate(
        [{"id": n, "question": f"{n}?", "answer": "42"} for n in range(3)],
        model="anthropic/claude-sonnet-4-5",
        prompt="{question}",
        storage=tmp_path,
        run_id="cached",
        base_url=server.address(),
        progress=False,
    )

    each = PRICE.of(1_000, 10, 800, 100)
    cost = report.metadata["cost"]
    assert cost["total_cost"] == pytest.approx(3 * each)
    assert (cost["token_counts"]["cached_tokens"], cost["token_counts"]["cache_write_tokens"]) == (2_400, 300)
    assert ExperimentStorage(tmp_path).get_run("cached").cached_tokens == 2_400

    assert _run(["show", "cached", "--storage", str(tmp_path)]) == 0
    assert "(2,400 read from the prompt cache, 300 written to it)" in capsys.readouterr().out


def test_a_run_without_a_cache_says_nothing_of_it(server, tmp_path):
    server.says(COMPLETION)
    report = themis.evaluate(
        [{"id": 1, "question": "?", "answer": "42"}],
        model="openai/gpt-4o",
        prompt="{question}",
        storage=tmp_path,
        base_url=server.address("/v1"),
        progress=False,
    )

    assert "cached_tokens" not in report.metadata["cost"]["token_counts"]


def test_openais_cache_is_priced_too(server, tmp_path):
    usage = {"prompt_tokens": 1_000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 600}}
    server.says({**COMPLETION, "usage": usage})
    report = themis.evaluate(
        [{"id": 1, "question": "?", "answer": "42"}],
        model="openai/gpt-4o",
        prompt="{question}",
        storage=tmp_path,
        base_url=server.address("/v1"),
        progress=False,
    )

    assert report.metadata["cost"]["total_cost"] == pytest.approx((400 * 2.5 + 600 * 1.25 + 10 * 10) / 1e6)


def test_a_long_run_is_cached_without_an_option(server, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    server.says(MESSAGE)
    themis.evaluate(
        [{"id": n, "question": f"{n}?", "answer": "42"} for n in range(30)],
        model="anthropic/claude-sonnet-4-5",
        prompt="{question}",
        storage=tmp_path,
        base_url=server.address(),
        system_prompt=LONG,
        workers=2,
        progress=False,
    )

    marked = [isinstance(seen.body["system"], list) for seen in server.seen]
    assert len(marked) == 30
    assert sum(marked) == 26
