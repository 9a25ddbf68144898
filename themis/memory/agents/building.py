"""Builds the built-in agents from what is written in brackets and the run's settings."""

from __future__ import annotations

from typing import Any

from themis.exceptions import ConfigurationError
from themis.memory.agents import AgentSettings
from themis.memory.agents.agent import Agent
from themis.memory.agents.calibration import Amnesiac, Oracle, Parrot, Window
from themis.memory.agents.chat import DEFAULT_MAX_PROMPT_TOKENS, SYSTEM_PROMPT, ChatAgent
from themis.memory.agents.command import CommandAgent
from themis.memory.agents.http import HttpAgent
from themis.memory.agents.human import Human
from themis.memory.agents.pricing import CostEstimate
from themis.memory.agents.retrieval import RetrievalAgent
from themis.memory.models import ChatModel

__all__ = [
    "amnesiac", "chat", "command", "cost", "human", "oracle", "over_http", "parrot", "retrieval", "timestamped", "window",
]  # fmt: skip


def oracle() -> Agent:
    """Knows every right answer: what a test gives at best."""
    return Oracle()


def amnesiac() -> Agent:
    """Remembers nothing: what a test gives by chance."""
    return Amnesiac()


def parrot() -> Agent:
    """Says back the message it was sent."""
    return Parrot()


def window(argument: str, settings: AgentSettings) -> Agent:
    """Answers rightly what lies within its last tokens: `window(2000)`, or `window` with -m 2000."""
    text = argument or str(settings.max_prompt_tokens or "")
    if not text.isdigit():
        raise ConfigurationError(f"the window agent needs its size in tokens: -m 2000 or window(2000); got {text!r}")
    return Window(int(text), settings.tokenizer)


def chat(
    argument: str,
    settings: AgentSettings,
    *,
    system_prompt: str = SYSTEM_PROMPT,
    temperature: float = 0.0,
    max_tokens: int = 1_024,
    timestamps: bool = False,
    **provider_options: Any,
) -> Agent:
    """A model that is shown as much of the conversation as fits: `openai/gpt-4o` or `chat(openai/gpt-4o)`."""
    return ChatAgent(
        _model(argument, settings, temperature, max_tokens, provider_options),
        max_prompt_tokens=settings.max_prompt_tokens or DEFAULT_MAX_PROMPT_TOKENS,
        system_prompt=system_prompt,
        timestamps=timestamps,
        tokenizer_name=settings.tokenizer,
    )


def timestamped(argument: str, settings: AgentSettings, **options: Any) -> Agent:
    """A chat that also shows the model how long ago every message was said: `ts-MODEL`."""
    return chat(argument, settings, **{**options, "timestamps": True})


def retrieval(
    argument: str,
    settings: AgentSettings,
    *,
    system_prompt: str = SYSTEM_PROMPT,
    temperature: float = 0.0,
    max_tokens: int = 1_024,
    embeddings: bool = True,
    **provider_options: Any,
) -> Agent:
    """Searches what was said before: `retrieval` replies with what it finds, `retrieval(MODEL)` lets a model read it."""
    model = _model(argument, settings, temperature, max_tokens, provider_options) if argument else None
    return RetrievalAgent(
        model,
        max_prompt_tokens=settings.max_prompt_tokens or DEFAULT_MAX_PROMPT_TOKENS,
        system_prompt=system_prompt,
        embeddings=embeddings,
        tokenizer_name=settings.tokenizer,
    )


def over_http(
    argument: str,
    settings: AgentSettings,
    *,
    timeout_seconds: float = 120.0,
    attempts: int = 5,
    headers: dict[str, str] | None = None,
    most_cost_usd: float | None = None,
) -> Agent:
    """A service that answers POST requests in JSON: `http://HOST:PORT/PATH`."""
    return HttpAgent(
        argument,
        settings.session,
        timeout_seconds=timeout_seconds,
        attempts=attempts,
        headers=headers,
        is_local=settings.is_local,
        most_cost_usd=most_cost_usd,
    )


def command(
    argument: str,
    settings: AgentSettings,
    *,
    timeout_seconds: float = 120.0,
    faketime: bool = False,
    most_cost_usd: float | None = None,
) -> Agent:
    """A program that reads and writes a JSON object a line: `command:PROGRAM ARGUMENTS`."""
    return CommandAgent(
        argument,
        settings.session,
        timeout_seconds=timeout_seconds,
        faketime=faketime,
        is_local=settings.is_local,
        most_cost_usd=most_cost_usd,
    )


def human() -> Agent:
    """You, typing the replies in this terminal."""
    return Human()


def cost(argument: str, settings: AgentSettings) -> Agent:
    """Calls nothing and counts what a run would cost: `cost(0.005,0.015)`, US dollars per 1,000 tokens in and out."""
    try:
        prices = [float(part) for part in argument.split(",")]
        (input_usd, output_usd) = prices
    except ValueError as error:
        raise ConfigurationError(
            f"cost takes two prices in US dollars per 1,000 tokens, as in cost(0.005,0.015); got {argument!r}"
        ) from error
    return CostEstimate(
        input_usd, output_usd, max_prompt_tokens=settings.max_prompt_tokens, tokenizer_name=settings.tokenizer
    )


def _model(
    name: str, settings: AgentSettings, temperature: float, max_tokens: int, options: dict[str, Any]
) -> ChatModel:
    return ChatModel(name, options, temperature=temperature, max_tokens=max_tokens, is_local=settings.is_local)
