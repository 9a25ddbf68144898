"""Where models are reached: the OpenAI-compatible endpoints known by name, and the vendors behind litellm.

Any other one is named by its address: with `ACME_BASE_URL` set, or the option `base_url` given, `acme/some-model` is a
model there. `azure/gpt-4o` needs no provider in front: the vendor's name says that litellm is meant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KnownEndpoint:
    """A server that speaks OpenAI's chat completions. `other_keys` are further variables that may hold its key.

    `scores` says that it tells the log-probabilities of given texts too.
    """

    base_url: str
    is_local: bool = False
    scores: bool = False
    other_keys: tuple[str, ...] = ()


_GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"

KNOWN_ENDPOINTS: dict[str, KnownEndpoint] = {
    "openai": KnownEndpoint(base_url="https://api.openai.com/v1"),
    "openrouter": KnownEndpoint(base_url="https://openrouter.ai/api/v1"),
    "together": KnownEndpoint(base_url="https://api.together.xyz/v1", other_keys=("TOGETHERAI_API_KEY",)),
    "groq": KnownEndpoint(base_url="https://api.groq.com/openai/v1"),
    "deepseek": KnownEndpoint(base_url="https://api.deepseek.com/v1"),
    "mistral": KnownEndpoint(base_url="https://api.mistral.ai/v1"),
    "fireworks": KnownEndpoint(base_url="https://api.fireworks.ai/inference/v1"),
    "xai": KnownEndpoint(base_url="https://api.x.ai/v1"),
    "gemini": KnownEndpoint(base_url=_GEMINI, other_keys=("GOOGLE_API_KEY",)),
    "google": KnownEndpoint(base_url=_GEMINI, other_keys=("GEMINI_API_KEY",)),
    "huggingface": KnownEndpoint(base_url="https://router.huggingface.co/v1", other_keys=("HF_TOKEN",)),
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


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


# --- litellm's ---------------------------------------------------------------------------------------------------------

LITELLM_VENDORS = frozenset(
    {
        *("ai21", "ai21_chat", "aleph_alpha", "anyscale", "azure", "azure_ai", "baseten", "bedrock", "cerebras"),
        *("clarifai", "cloudflare", "codestral", "cohere", "cohere_chat", "custom_openai", "dashscope", "databricks"),
        *("deepinfra", "featherless_ai", "fireworks_ai", "friendliai", "github", "hosted_vllm", "hyperbolic"),
        *("litellm_proxy", "llamafile", "lm_studio", "maritalk", "moonshot", "nebius", "nlp_cloud", "novita"),
        *("nvidia_nim", "oci", "ollama_chat", "openai_like", "perplexity", "petals", "predibase", "replicate"),
        *("sagemaker", "sagemaker_chat", "sambanova", "snowflake", "text-completion-openai", "together_ai", "triton"),
        *("vertex_ai", "vertex_ai_beta", "volcengine", "voyage", "watsonx", "xinference"),
    }
)

_WITHOUT_LITELLM = {
    "azure": (
        "without it, say where the deployment is: model 'azure/DEPLOYMENT' with the option "
        "base_url=https://RESOURCE.openai.azure.com/openai/v1 and AZURE_API_KEY set"
    ),
    "vertex_ai": (
        "without it, use its OpenAI-compatible address: model 'vertex/google/MODEL' with the option base_url="
        "https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION/endpoints/openapi and an access token "
        "in VERTEX_API_KEY"
    ),
}
_OTHERS = (
    "without it, any OpenAI-compatible address of the vendor's will do: model 'NAME/MODEL' with the option base_url=URL"
)


def suggest_alternative(model: str) -> str:
    """How a vendor's model can be had without litellm."""
    return _WITHOUT_LITELLM.get(model.partition("/")[0], _OTHERS)
