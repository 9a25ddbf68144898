"""The OpenAI-compatible endpoints known by name: where they are, and which environment variables speak of them.

Any other one is named by its variable: with `ACME_BASE_URL` set, `acme/some-model` is a model there.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

__all__ = ["KNOWN_ENDPOINTS", "KnownEndpoint", "base_url_variable", "key_variable", "named_by_environment"]


@dataclass(frozen=True, kw_only=True)
class KnownEndpoint:
    """A server that speaks OpenAI's chat completions. `other_keys` are further variables that may hold its key."""

    base_url: str
    is_local: bool = False
    other_keys: tuple[str, ...] = ()


KNOWN_ENDPOINTS: dict[str, KnownEndpoint] = {
    "openai": KnownEndpoint(base_url="https://api.openai.com/v1"),
    "openrouter": KnownEndpoint(base_url="https://openrouter.ai/api/v1"),
    "together": KnownEndpoint(base_url="https://api.together.xyz/v1", other_keys=("TOGETHERAI_API_KEY",)),
    "groq": KnownEndpoint(base_url="https://api.groq.com/openai/v1"),
    "deepseek": KnownEndpoint(base_url="https://api.deepseek.com/v1"),
    "mistral": KnownEndpoint(base_url="https://api.mistral.ai/v1"),
    "fireworks": KnownEndpoint(base_url="https://api.fireworks.ai/inference/v1"),
    "xai": KnownEndpoint(base_url="https://api.x.ai/v1"),
    "gemini": KnownEndpoint(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai", other_keys=("GOOGLE_API_KEY",)
    ),
    "vllm": KnownEndpoint(base_url="http://localhost:8000/v1", is_local=True),
    "llamacpp": KnownEndpoint(base_url="http://localhost:8080/v1", is_local=True),
    "ollama": KnownEndpoint(base_url="http://localhost:11434/v1", is_local=True),
    "lmstudio": KnownEndpoint(base_url="http://localhost:1234/v1", is_local=True),
}


def base_url_variable(name: str) -> str:
    """`my-server` -> `MY_SERVER_BASE_URL`."""
    return f"{_upper(name)}_BASE_URL"


def key_variable(name: str) -> str:
    return f"{_upper(name)}_API_KEY"


def named_by_environment(name: str) -> bool:
    """Whether the environment says where the endpoint of this name is."""
    return bool(re.fullmatch(r"[A-Za-z0-9][\w\-]*", name)) and bool(os.environ.get(base_url_variable(name)))


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
