"""Where models are reached: the OpenAI-compatible endpoints known by name, and the vendors behind litellm.

Any other one is named by its address: with `ACME_BASE_URL` set, or the option `base_url` given, `acme/some-model` is a
model there. `bedrock/some-model` needs no provider in front: the vendor's name says that litellm is meant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KnownEndpoint:
    """A server that speaks OpenAI's chat completions. `other_keys` are further variables that may hold its key.

    `scores` says that it tells the log-probabilities of given texts too, `batches` that it takes batches in OpenAI's form,
    `limit_field` what it calls the limit of an answer,
    `reasoning` in whose form it is told to reason, `returned` what it wants back beside tool calls, and `takes_cache_marks` that
    it caches what is marked.
    """

    base_url: str
    is_local: bool = False
    scores: bool = False
    batches: bool = False
    other_keys: tuple[str, ...] = ()
    limit_field: str = "max_tokens"
    reasoning: str = "openai"
    returned: tuple[str, ...] = ()
    takes_cache_marks: bool = False


_HUGGING_FACE = "https://router.huggingface.co/v1"
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"

KNOWN_ENDPOINTS: dict[str, KnownEndpoint] = {
    # OpenAI itself knows the new name for all its models; other servers may know only the old one.
    "openai": KnownEndpoint(base_url="https://api.openai.com/v1", batches=True, limit_field="max_completion_tokens"),
    "openrouter": KnownEndpoint(
        base_url="https://openrouter.ai/api/v1",
        reasoning="openrouter",
        returned=("reasoning_details",),
        takes_cache_marks=True,
    ),
    "together": KnownEndpoint(base_url="https://api.together.xyz/v1", other_keys=("TOGETHERAI_API_KEY",)),
    "groq": KnownEndpoint(base_url="https://api.groq.com/openai/v1", batches=True),
    "deepseek": KnownEndpoint(base_url="https://api.deepseek.com/v1", reasoning="deepseek"),
    "mistral": KnownEndpoint(base_url="https://api.mistral.ai/v1"),
    "fireworks": KnownEndpoint(base_url="https://api.fireworks.ai/inference/v1"),
    "xai": KnownEndpoint(base_url="https://api.x.ai/v1"),
    "gemini": KnownEndpoint(
        base_url=_GEMINI, other_keys=("GOOGLE_API_KEY",), reasoning="google", returned=("extra_content",)
    ),
    "google": KnownEndpoint(
        base_url=_GEMINI, other_keys=("GEMINI_API_KEY",), reasoning="google", returned=("extra_content",)
    ),
    "huggingface": KnownEndpoint(base_url=_HUGGING_FACE, other_keys=("HF_TOKEN",)),
    "hf": KnownEndpoint(base_url=_HUGGING_FACE, other_keys=("HF_TOKEN", "HUGGINGFACE_API_KEY")),
    # Where these are depends on the account: classes of their own find it out.
    "azure": KnownEndpoint(base_url=""),
    "vertex": KnownEndpoint(base_url="", reasoning="google", returned=("extra_content",)),
    "vllm": KnownEndpoint(base_url="http://localhost:8000/v1", is_local=True, scores=True),
    "llamacpp": KnownEndpoint(base_url="http://localhost:8080/v1", is_local=True, scores=True),
    "ollama": KnownEndpoint(base_url="http://localhost:11434/v1", is_local=True),
    "lmstudio": KnownEndpoint(base_url="http://localhost:1234/v1", is_local=True),
}


def base_url_variable(name: str) -> str:
    """`my-server` -> `MY_SERVER_BASE_URL`."""
    return f"{_upper(name)}_BASE_URL"


def key_variable(name: str) -> str:
    return f"{_upper(name)}_API_KEY"


def address_of(name: str, options: Mapping[str, object] | None) -> str:
    """Where the options or the environment say that the endpoint of this name is; empty where they do not."""
    if not re.fullmatch(r"[A-Za-z0-9][\w\-]*", name):
        return ""
    given = options or {}
    return str(given.get("base_url") or given.get("api_base") or os.environ.get(base_url_variable(name)) or "")


def find_variable(names: Iterable[str]) -> str:
    """The first of these variables that holds something."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


# --- litellm's ---------------------------------------------------------------------------------------------------------

LITELLM_VENDORS = frozenset(
    {
        *("ai21", "ai21_chat", "aleph_alpha", "anyscale", "azure_ai", "baseten", "bedrock", "cerebras"),
        *("clarifai", "cloudflare", "codestral", "cohere", "cohere_chat", "custom_openai", "dashscope", "databricks"),
        *("deepinfra", "featherless_ai", "fireworks_ai", "friendliai", "github", "hosted_vllm", "hyperbolic"),
        *("litellm_proxy", "llamafile", "lm_studio", "maritalk", "moonshot", "nebius", "nlp_cloud", "novita"),
        *("nvidia_nim", "oci", "ollama_chat", "openai_like", "perplexity", "petals", "predibase", "replicate"),
        *("sagemaker", "sagemaker_chat", "sambanova", "snowflake", "text-completion-openai", "together_ai", "triton"),
        *("vertex_ai", "vertex_ai_beta", "volcengine", "voyage", "watsonx", "xinference"),
    }
)

_WITHOUT_LITELLM = {
    "azure": "without it, model 'azure/DEPLOYMENT' with AZURE_OPENAI_ENDPOINT and AZURE_API_KEY set",
    "bedrock": (
        "without it, use its OpenAI-compatible address, for the models that it serves there: model 'bedrock/MODEL' with the "
        "option base_url=https://bedrock-mantle.REGION.api.aws/v1 and a key of Bedrock's in BEDROCK_API_KEY"
    ),
    "vertex_ai": (
        "without it, model 'vertex/PUBLISHER/MODEL', such as 'vertex/google/gemini-2.5-pro', with GOOGLE_CLOUD_PROJECT and "
        "VERTEX_ACCESS_TOKEN set"
    ),
}
_OTHERS = (
    "without it, any OpenAI-compatible address of the vendor's will do: model 'NAME/MODEL' with the option base_url=URL"
)


def through_litellm(model: str) -> str:
    """How a model can be had through litellm, which finds addresses and credentials of its own."""
    return f"or through litellm: pip install 'themis-eval[litellm]' and the model 'litellm/{model}'"


def suggest_alternative(model: str) -> str:
    """How a vendor's model can be had without litellm."""
    return _WITHOUT_LITELLM.get(model.partition("/")[0], _OTHERS)
