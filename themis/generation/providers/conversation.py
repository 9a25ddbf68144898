"""What is said to a chat model: the messages of a task, and the body of the request that carries them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from themis.core.entities import GenerationTask
from themis.exceptions import ProviderCallError

__all__ = ["attempt_index", "field_names", "item_name", "messages_of", "request_body", "system_prompt_of"]


def messages_of(task: GenerationTask, system_prompt: str | None) -> list[dict[str, Any]]:
    """The task's own conversation if it has one, else its prompt; a system prompt in front where there is one."""
    given = task.metadata.get("messages")
    messages = [{"role": "user", "content": task.prompt.text}] if given is None else _checked(given, task)
    system = system_prompt_of(task, system_prompt)
    if system and messages[0].get("role") != "system":
        return [{"role": "system", "content": system}, *messages]
    return messages


def system_prompt_of(task: GenerationTask, default: str | None) -> str | None:
    """The row's system prompt, or else the provider's."""
    own = task.metadata.get("system_prompt")
    return own if isinstance(own, str) and own else default


def attempt_index(task: GenerationTask) -> int:
    """Which of several samples of the same prompt this is, from 0."""
    index = task.metadata.get("attempts", 0)
    return index if isinstance(index, int) else 0


def item_name(task: GenerationTask) -> str:
    """The item's id as a message shows it."""
    return repr(task.metadata.get("dataset_id", "without an id"))


_ENCODER = msgspec.json.Encoder()


def request_body(task: GenerationTask, fields: Mapping[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(fields)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ProviderCallError(
            f"item {item_name(task)} cannot be sent as JSON: {error}", kind="bad_request", retryable=False
        ) from error


def field_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names given as a list, or as one text with commas, as a command line gives them."""
    return tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(names)


def _checked(given: Any, task: GenerationTask) -> list[dict[str, Any]]:
    if isinstance(given, list) and given and all(isinstance(turn, dict) and "role" in turn for turn in given):
        return given
    raise ProviderCallError(
        f"item {item_name(task)}: 'messages' must be a list of {{'role', 'content'}}, got {str(given)[:200]!r}",
        kind="bad_request",
        retryable=False,
    )
