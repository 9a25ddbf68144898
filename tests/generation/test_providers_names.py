"""Which provider a model string means, and how one is built from its options."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.exceptions import ConfigurationError, ProviderError
from themis.generation.providers import (
    PROVIDERS,
    create_provider,
    list_providers,
    parse_model,
    provider_accepts,
    provider_factory,
    register_provider,
)
from themis.interfaces import StatelessTaskExecutor


class Parrot(StatelessTaskExecutor):
    """A provider as users write them."""

    def __init__(self, *, api_base: str = "http://localhost", volume: int = 3, **_: Any) -> None:
        self.api_base, self.volume = api_base, volume

    def execute(self, task: GenerationTask) -> GenerationRecord:
        return GenerationRecord(task=task, output=ModelOutput(text=task.prompt.text), error=None)


class StrictParrot(Parrot):
    def __init__(self, *, volume: int = 3, colour: str = "green") -> None:
        super().__init__(volume=volume)


class NamedParrot(Parrot):
    def __init__(self, *, provider_name: str = "", model_identifier: str = "") -> None:
        super().__init__()
        self.told = (provider_name, model_identifier)


@pytest.mark.parametrize(
    ("text", "provider", "identifier"),
    [
        ("fake", "fake", "fake-math-llm"),
        ("openai/gpt-4o", "openai", "gpt-4o"),
        ("openai:gpt-4o", "openai", "gpt-4o"),
        ("OpenAI/gpt-4o", "openai", "gpt-4o"),
        ("localchat:qwen/qwen3-1.7b", "localchat", "qwen/qwen3-1.7b"),
        ("ollama/llama3:8b", "ollama", "llama3:8b"),
        ("openrouter/anthropic/claude-x:beta", "openrouter", "anthropic/claude-x:beta"),
        ("local//models/some.gguf", "local", "/models/some.gguf"),
        ("replay:run-20260101-120000", "replay", "run-20260101-120000"),
        ("fake/noisy?rate=0.3", "fake", "noisy?rate=0.3"),
        ("fake-math-llm", "fake", "fake-math-llm"),
        ("my-Fake-model", "fake", "my-Fake-model"),
        ("gpt-4o", "litellm", "gpt-4o"),
        ("bedrock/some-model:0", "litellm", "bedrock/some-model:0"),
        ("Azure/some-deployment", "azure", "some-deployment"),
        ("vertex/google/gemini-x", "vertex", "google/gemini-x"),
        ("vertex_ai/gemini-x", "litellm", "vertex_ai/gemini-x"),
        ("hf/some/model", "hf", "some/model"),
    ],
)
def test_a_model_string_names_its_provider(text, provider, identifier):
    model = parse_model(text)

    assert (model.provider, model.identifier) == (provider, identifier)


@given(st.sampled_from(list_providers()), st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip))
def test_colon_and_slash_mean_the_same_and_divide_once(provider, identifier):
    identifier = identifier.strip()
    by_slash, by_colon = parse_model(f"{provider}/{identifier}"), parse_model(f"{provider}:{identifier}")

    assert by_slash == by_colon
    assert by_slash.identifier == identifier


def test_a_base_url_in_the_environment_makes_a_name_a_provider(monkeypatch):
    with pytest.raises(ProviderError, match="unknown provider 'my-lab'"):
        parse_model("my-lab/x")

    monkeypatch.setenv("MY_LAB_BASE_URL", "http://127.0.0.1:1/v1")
    assert parse_model("my-lab/x").provider == parse_model("My-Lab:x").provider == "my-lab"


def test_an_endpoint_of_the_environment_can_be_asked_about_before_it_is_built(monkeypatch):
    monkeypatch.setenv("MY_LAB_BASE_URL", "http://127.0.0.1:1/v1")

    assert provider_factory("My-Lab") is provider_factory("openai_compatible")
    assert provider_accepts("my-lab", "seed")
    assert not provider_accepts("my-lab", "tmeout")


@pytest.mark.parametrize("text", ["opnai:gpt-4o", "opnai/gpt-4o"])
def test_an_unknown_provider_is_explained(text):
    with pytest.raises(ProviderError) as raised:
        parse_model(text)

    message = str(raised.value)
    assert "unknown provider 'opnai'" in message
    assert "did you mean 'openai'?" in message
    assert "OPNAI_BASE_URL" in message
    assert f"'litellm/{text}'" in message


@pytest.mark.parametrize("text", ["openai", "openai/", "openai:"])
def test_a_provider_without_a_model_is_explained(text):
    with pytest.raises(ProviderError, match="'openai/MODEL'"):
        parse_model(text)


@pytest.mark.parametrize("text", ["", "  ", None])
def test_no_model_at_all_is_explained(text):
    with pytest.raises(ProviderError, match="provider/model"):
        parse_model(text)


def test_a_registered_provider_is_found_whatever_the_case_and_the_last_one_wins(monkeypatch):
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    register_provider("LocalChat", StrictParrot)
    register_provider("localchat", Parrot)

    provider = create_provider("LOCALCHAT", {"volume": 11, "anything": "else"})
    assert type(provider) is Parrot
    assert provider.volume == 11


def test_base_url_becomes_api_base_for_those_who_call_it_so(monkeypatch):
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    register_provider("parrot", Parrot)

    assert create_provider("parrot", {"base_url": "http://there"}).api_base == "http://there"


def test_unknown_options_are_reported_with_the_accepted_ones(monkeypatch):
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    register_provider("parrot", StrictParrot)

    with pytest.raises(ConfigurationError, match=r"'volum' \(did you mean 'volume'\?\); it takes colour, volume"):
        create_provider("parrot", {"volum": 2})


def test_a_provider_that_asks_is_told_its_name_and_its_model(monkeypatch):
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    register_provider("Polly", NamedParrot)

    assert create_provider("polly", {}, model_identifier="grey").told == ("polly", "grey")


def test_what_cannot_execute_is_no_provider(monkeypatch):
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    register_provider("dictionary", lambda: {"execute": "no"})

    with pytest.raises(ProviderError, match="no method execute"):
        create_provider("dictionary", {})


def test_a_missing_option_is_named():
    with pytest.raises(ProviderError, match="'replay' needs the option answers"):
        create_provider("replay", {})


def test_an_unknown_provider_names_the_nearest():
    with pytest.raises(ProviderError, match="did you mean 'anthropic'"):
        create_provider("antropic", {})


@pytest.mark.parametrize(("name", "factory"), [("a/b", Parrot), ("a:b", Parrot), ("parrot", "not callable")])
def test_what_cannot_be_a_provider_is_refused(name, factory):
    with pytest.raises(ConfigurationError):
        register_provider(name, factory)


def test_every_builtin_can_be_loaded():
    for name in list_providers():
        assert callable(PROVIDERS.get(name))
