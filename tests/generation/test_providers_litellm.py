"""The litellm provider over a stand-in for litellm: a package with the two things that it uses."""

from __future__ import annotations

import os
import sys
from textwrap import dedent

import pytest

from themis.exceptions import DependencyError, ProviderCallError
from themis.generation.providers import create_provider

KEY = "sk-a-key-that-must-never-be-shown"

STAND_IN = """
import os
from types import SimpleNamespace

cost_map_at_import = os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP")
suppress_debug_info = False
requests = []


class RateLimitError(Exception):
    status_code = 429
    litellm_response_headers = {"Retry-After": "3"}


class AuthenticationError(Exception):
    status_code = 401


class SomethingNew(Exception):
    status_code = 503


class BadRequestError(Exception):
    status_code = 400


async def acompletion(**request):
    requests.append(request)
    if request["model"] == "bedrock/new-claude" and "temperature" in request:
        raise BadRequestError("litellm.BadRequestError: BedrockException - `temperature` is deprecated for this model.")
    prompt = request["messages"][-1]["content"]
    if prompt == "too fast":
        raise RateLimitError("slow down")
    if prompt == "who":
        raise AuthenticationError("bad key " + request["api_key"])
    if prompt == "new":
        raise SomethingNew("?")
    if prompt == "silence":
        return SimpleNamespace(choices=[])
    message = SimpleNamespace(content="42", reasoning_content="6 * 7")
    usage = SimpleNamespace(prompt_tokens=3, completion_tokens=1, total_tokens=4)
    return SimpleNamespace(
        id="1", model="as-served", usage=usage, choices=[SimpleNamespace(message=message, finish_reason="stop")]
    )
"""


@pytest.fixture
def litellm(tmp_path, monkeypatch):
    (tmp_path / "litellm.py").write_text(dedent(STAND_IN))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "placeholder")
    del os.environ["LITELLM_LOCAL_MODEL_COST_MAP"]
    yield lambda: sys.modules["litellm"]
    sys.modules.pop("litellm", None)


async def test_one_call_is_made_with_litellms_own_retries_off(litellm, task):
    provider = create_provider("litellm", {"api_key": KEY, "seed": 5, "region_name": "eu"}, model_identifier="gpt-4o")
    record = await provider.execute(task("Hi", model="gpt-4o", max_tokens=-1, metadata={"attempts": 2}))

    (request,) = litellm().requests
    assert (request["num_retries"], request["max_retries"], request["seed"]) == (0, 0, 7)
    assert (request["model"], request["region_name"], request["api_key"]) == ("gpt-4o", "eu", KEY)
    assert "max_tokens" not in request
    assert record.output.text == "42"
    assert record.output.raw == {"id": "1", "model": "as-served"}
    assert (record.output.finish_reason, record.output.reasoning) == ("stop", "6 * 7")
    assert record.output.usage == {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}


async def test_litellm_is_imported_late_and_told_not_to_ask_for_prices(litellm, task):
    provider = create_provider("litellm", {"base_url": "http://127.0.0.1:1"})
    assert "litellm" not in sys.modules

    await provider.execute(task())
    assert litellm().cost_map_at_import == "True"
    assert litellm().requests[0]["api_base"] == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("prompt", "kind", "status", "retryable", "after"),
    [
        ("too fast", "rate_limited", 429, True, 3.0),
        ("who", "authentication", 401, False, None),
        ("new", "server_error", 503, True, None),
        ("silence", "empty_response", None, True, None),
    ],
)
async def test_its_errors_are_told_as_ours(litellm, task, prompt, kind, status, retryable, after):
    with pytest.raises(ProviderCallError) as raised:
        await create_provider("litellm", {"api_key": KEY}).execute(task(prompt))

    error = raised.value
    assert (error.kind, error.status, error.retryable, error.retry_after_seconds) == (kind, status, retryable, after)
    assert KEY not in str(error)


async def test_what_a_model_is_known_to_refuse_is_left_out_before_litellm_sees_it(litellm, task):
    provider = create_provider("litellm", {"reasoning_effort": "low"})
    await provider.execute(task(model="azure/o3-mini", max_tokens=64))

    (request,) = litellm().requests
    assert (request["max_completion_tokens"], request["reasoning_effort"]) == (64, "low")
    assert "temperature" not in request
    assert provider.sent_parameters == {"max_completion_tokens": 64, "reasoning_effort": "low"}
    assert "temperature" in provider.left_out


async def test_what_a_vendor_behind_litellm_refuses_is_learnt(litellm, task, caplog):
    provider = create_provider("litellm", {"thinking_budget": 2000})
    for _ in range(2):
        await provider.execute(task(model="bedrock/new-claude", max_tokens=64))

    assert ["temperature" in request for request in litellm().requests] == [True, False, False]
    assert litellm().requests[-1]["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert litellm().requests[-1]["max_tokens"] == 2064
    assert len(caplog.records) == 1


async def test_with_strict_parameters_litellm_may_not_leave_anything_out(litellm, task):
    await create_provider("litellm", {}).execute(task())
    await create_provider("litellm", {"strict_parameters": True}).execute(task())

    assert [request["drop_params"] for request in litellm().requests] == [True, False]


def test_without_litellm_the_extra_and_the_way_around_it_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)

    with pytest.raises(
        DependencyError, match=r"'gpt-4o' names no provider: .*openai/gpt-4o.*pip install 'themis-eval\[litellm\]'"
    ):
        create_provider("litellm", {}, model_identifier="gpt-4o")
