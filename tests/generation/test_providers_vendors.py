"""Azure, Google, Bedrock, Vertex and Hugging Face: reached natively where an OpenAI-compatible address does it."""

from __future__ import annotations

import sys

import pytest

from themis.exceptions import ConfigurationError, DependencyError, ProviderError
from themis.generation.providers import create_provider, parse_model, provider_accepts

KEY = "a-key-that-must-never-be-shown"
VARIABLES = (
    *(
        "AZURE_BASE_URL",
        "AZURE_OPENAI_ENDPOINT",
        "AZURE_API_BASE",
        "AZURE_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "AZURE_AD_TOKEN",
    ),
    *("AZURE_API_VERSION", "AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION", "VERTEX_BASE_URL", "VERTEX_ACCESS_TOKEN"),
    *("VERTEX_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "VERTEXAI_PROJECT", "VERTEXAI_LOCATION"),
    *("HF_TOKEN", "HF_API_KEY", "HUGGINGFACE_API_KEY", "BEDROCK_API_KEY", "BEDROCK_BASE_URL", "AZURE_OPENAI_AD_TOKEN"),
)


@pytest.fixture(autouse=True)
def no_accounts_of_the_developer(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def build(model, **options):
    spec = parse_model(model, options)
    return create_provider(spec.provider, options, model_identifier=spec.identifier), spec


async def ask(model, task, **options):
    provider, spec = build(model, **options)
    try:
        return await provider.execute(task(model=spec.identifier))
    finally:
        await provider.aclose()


# --- Azure -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE", "AZURE_BASE_URL"])
@pytest.mark.parametrize("key", ["AZURE_API_KEY", "AZURE_OPENAI_API_KEY"])
async def test_azure_is_found_by_its_own_variables(server, task, monkeypatch, variable, key):
    monkeypatch.setenv(variable, server.address("/"))
    monkeypatch.setenv(key, KEY)
    await ask("azure/my-deployment", task)

    assert (server.last.path, server.last.query) == ("/openai/v1/chat/completions", {})
    assert server.last.headers["authorization"] == f"Bearer {KEY}"
    assert server.last.body["model"] == "my-deployment"


async def test_azure_with_a_version_is_asked_at_the_deployments_address(server, task, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.address())
    monkeypatch.setenv("AZURE_API_KEY", KEY)
    await ask("azure/my-deployment", task, api_version="2026-01-01")

    assert server.last.path == "/openai/deployments/my-deployment/chat/completions"
    assert (server.last.query, server.last.headers["api-key"]) == ({"api-version": "2026-01-01"}, KEY)

    monkeypatch.setenv("AZURE_API_VERSION", "2025-01-01")
    await ask("azure/my-deployment", task)
    assert server.last.query == {"api-version": "2025-01-01"}


async def test_azure_takes_a_whole_address_and_a_token(server, task, monkeypatch):
    monkeypatch.setenv("OPENAI_API_VERSION", "not-for-this-address")
    await ask("azure/d", task, base_url=server.address("/openai/v1"), azure_ad_token=KEY)

    assert (server.last.path, server.last.query) == ("/openai/v1/chat/completions", {})
    assert server.last.headers["authorization"] == f"Bearer {KEY}"


async def test_azure_deployments_learn_what_their_names_do_not_say(server, task):
    from tests.generation.refusing import answer_as_openai

    server.answer = answer_as_openai
    record = await ask("azure/our-best", task, base_url=server.address("/openai/v1"))

    assert record.output.text == "42"


def test_azure_without_an_account_says_what_it_needs(monkeypatch):
    with pytest.raises(ProviderError) as raised:
        build("azure/gpt-4o")
    for way in (
        "AZURE_OPENAI_ENDPOINT",
        "AZURE_API_BASE",
        "pip install 'themis-eval[litellm]'",
        "'litellm/azure/gpt-4o'",
    ):
        assert way in str(raised.value)

    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com")
    with pytest.raises(ProviderError, match=r"AZURE_API_KEY \(or AZURE_OPENAI_API_KEY\)"):
        build("azure/gpt-4o")


def test_azure_takes_the_options_of_other_endpoints_and_refuses_unknown_ones():
    assert provider_accepts("azure", "reasoning_effort")
    with pytest.raises(ConfigurationError, match=r"'azure' does not take the option 'tmeout' \(did you mean 'timeout'"):
        build("azure/gpt-4o", base_url="https://r.example/openai/v1", tmeout=3)


# --- Vertex ------------------------------------------------------------------------------------------------------------


def test_vertex_is_found_by_project_region_and_token(monkeypatch):
    provider, spec = build("vertex/google/gemini-2.5-pro", project="lab", access_token=KEY)
    assert provider.address == (
        "https://aiplatform.googleapis.com/v1/projects/lab/locations/global/endpoints/openapi/chat/completions"
    )
    assert spec.identifier == "google/gemini-2.5-pro"

    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "lab")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west1")
    monkeypatch.setenv("VERTEX_ACCESS_TOKEN", KEY)
    provider, _ = build("vertex/google/gemini-2.5-pro")
    assert provider.address.startswith(
        "https://europe-west1-aiplatform.googleapis.com/v1/projects/lab/locations/europe-west1"
    )


async def test_vertex_sends_its_token_and_googles_own_budget(server, task, monkeypatch):
    monkeypatch.setenv("VERTEX_BASE_URL", server.address("/v1/projects/lab/locations/global/endpoints/openapi"))
    monkeypatch.setenv("VERTEX_ACCESS_TOKEN", KEY)
    await ask("vertex/google/gemini-2.5-pro", task, thinking_budget=500)

    assert server.last.path == "/v1/projects/lab/locations/global/endpoints/openapi/chat/completions"
    assert (server.last.headers["authorization"], server.last.body["model"]) == (
        f"Bearer {KEY}",
        "google/gemini-2.5-pro",
    )
    assert server.last.body["extra_body"]["google"]["thinking_config"]["thinking_budget"] == 500


def test_vertex_without_an_account_says_what_it_needs():
    with pytest.raises(
        ProviderError, match=r"GOOGLE_CLOUD_PROJECT or give project=.*'litellm/vertex_ai/gemini-2\.5-pro'"
    ):
        build("vertex/google/gemini-2.5-pro", access_token=KEY)
    with pytest.raises(ProviderError, match=r"VERTEX_ACCESS_TOKEN=\$\(gcloud auth print-access-token\)"):
        build("vertex/google/gemini-2.5-pro", project="lab")
    with pytest.raises(ProviderError, match=r"write 'vertex/google/gemini-2\.5-pro'"):
        build("vertex/gemini-2.5-pro", project="lab", access_token=KEY)


# --- Google, Hugging Face, Bedrock -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "variables", "host"),
    [
        ("google/gemini-2.5-flash", ["GOOGLE_API_KEY", "GEMINI_API_KEY"], "generativelanguage.googleapis.com"),
        ("gemini/gemini-2.5-flash", ["GEMINI_API_KEY", "GOOGLE_API_KEY"], "generativelanguage.googleapis.com"),
        ("hf/some/model", ["HF_TOKEN", "HF_API_KEY", "HUGGINGFACE_API_KEY"], "router.huggingface.co"),
        ("huggingface/some/model", ["HUGGINGFACE_API_KEY", "HF_TOKEN"], "router.huggingface.co"),
    ],
)
def test_google_and_hugging_face_are_native(monkeypatch, model, variables, host):
    with pytest.raises(
        ProviderError, match=rf"needs a key: set {variables[0] if 'hf/' not in model else 'HF_API_KEY'}"
    ):
        build(model)
    for variable in variables:
        with monkeypatch.context() as patch:
            patch.setenv(variable, KEY)
            assert host in build(model)[0].address


def test_bedrock_says_which_extra_serves_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)

    with pytest.raises(DependencyError) as raised:
        build("bedrock/anthropic.claude-opus-4-8")
    said = str(raised.value)
    assert (
        "the model 'bedrock/anthropic.claude-opus-4-8' needs the package litellm: pip install 'themis-eval[litellm]'"
        in said
    )
    assert "base_url=https://bedrock-mantle.REGION.api.aws/v1" in said


async def test_bedrock_is_native_where_its_address_is_given(server, task, monkeypatch):
    monkeypatch.setenv("BEDROCK_API_KEY", KEY)
    await ask("bedrock/openai.gpt-oss-120b", task, base_url=server.address("/v1"))

    assert (server.last.body["model"], server.last.headers["authorization"]) == ("openai.gpt-oss-120b", f"Bearer {KEY}")


@pytest.mark.parametrize("model", ["vertex_ai/gemini-2.5-pro", "litellm/azure/gpt-4o"])
def test_litellms_own_names_say_the_native_way_too(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "litellm", None)

    with pytest.raises(
        DependencyError,
        match=r"pip install 'themis-eval\[litellm\]'; without it, .*(vertex/PUBLISHER|azure/DEPLOYMENT)",
    ):
        build(model)
