"""The names that the GoodAI LTM Benchmark gives agents, as models of today's providers.

Its `-a gpt-4-1106` is `openai/gpt-4-1106-preview` here. Agents of its own that are not here are errors that name the nearest.
"""

from __future__ import annotations

import re

from themis.exceptions import ConfigurationError

_OPENAI, _ANTHROPIC, _TOGETHER = "openai/", "anthropic/", "together/"
MODELS = {
    "gpt": f"{_OPENAI}gpt-4",
    "gpt-4": f"{_OPENAI}gpt-4",
    "gpt-4-0125": f"{_OPENAI}gpt-4-0125-preview",
    "gpt-4-1106": f"{_OPENAI}gpt-4-1106-preview",
    "claude": f"{_ANTHROPIC}claude-2.1",
    "claude-3-haiku": f"{_ANTHROPIC}claude-3-haiku-20240307",
    "claude-3-opus": f"{_ANTHROPIC}claude-3-opus-20240229",
    "claude-3-sonnet": f"{_ANTHROPIC}claude-3-sonnet-20240229",
    "gemini": "gemini/gemini-1.5-pro-latest",
    "llama-3-70b": f"{_TOGETHER}meta-llama/Llama-3-70b-chat-hf",
    "mixtral-8x22b": f"{_TOGETHER}mistralai/Mixtral-8x22B-Instruct-v0.1",
    "mixtral-8x7b": f"{_TOGETHER}mistralai/Mixtral-8x7B-Instruct-v0.1",
}
# Any other model whose name says who makes it: `gpt-4o`, `claude-2.1`, `gemini-1.5-flash`.
_MAKERS = (
    (re.compile(r"(?:gpt-|chatgpt-|o\d(?:-|$))"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "gemini"),
)
# The spelling of a provider there, and here.
_RENAMED = {"together_ai": "together"}
_ABSENT = {
    re.compile(r"(?:goodai_)?ltm_agent_\w+|ltmagent\w*"): "an agent that finds what was said again is retrieval(MODEL)",
    re.compile(r"memgpt\w*|langchain\w*|charlie\w*"): (
        "a program of your own takes part as http://HOST:PORT or command:PROGRAM"
    ),
    re.compile(r"length_?bias\w*"): "a baseline without memory is amnesiac, one with a window is window(TOKENS)",
    re.compile(r"\w*chatsession|geminiprointerface"): "name the model itself, as in openai/gpt-4o",
}


def expand_model(text: str) -> str:
    """A model as its provider knows it; whatever is no short name is returned as it is.

    Args:
        text: A model, or one of the benchmark's names for it.

    >>> expand_model("gpt-4-1106"), expand_model("gpt-4o"), expand_model("local/smollm2")
    ('openai/gpt-4-1106-preview', 'openai/gpt-4o', 'local/smollm2')
    """
    name = text.strip()
    folded = name.lower()
    if folded in MODELS:
        return MODELS[folded]
    provider, slash, model = name.partition("/")
    if slash:
        return f"{_RENAMED.get(provider.lower(), provider)}/{model}"
    if ":" not in name and "fake" not in folded:
        for pattern, maker in _MAKERS:
            if pattern.match(folded):
                return f"{maker}/{name}"
    return text


def refuse_absent(text: str) -> None:
    """Raises for an agent of the benchmark that is not here, and says what is nearest."""
    name = text.strip().partition("(")[0].partition(" ")[0]
    for pattern, hint in _ABSENT.items():
        if pattern.fullmatch(name.lower()):
            raise ConfigurationError(f"{name!r} is an agent of the GoodAI LTM Benchmark that is not here; {hint}")
