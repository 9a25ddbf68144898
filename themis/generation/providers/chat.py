"""OpenAI's form of a chat, which all chat providers share: what is asked (messages, sampling, options) and what is answered.

A server of one's own, a vendor, litellm or a model in this process: they differ in how a request travels, not in its form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from themis.core.entities import GenerationTask, ModelOutput
from themis.exceptions import ConfigurationError, ProviderCallError

_ENCODER = msgspec.json.Encoder()


# --- what is asked ----------------------------------------------------------------------------------------------------


def completion_fields(
    task: GenerationTask, *, system_prompt: str | None, seed: int | None, limit_field: str = "max_tokens"
) -> dict[str, object]:
    """What a task decides of a request: model, messages and sampling."""
    sampling = task.sampling
    fields: dict[str, object] = {
        "model": task.model.identifier,
        "messages": messages_of(task, system_prompt),
        "temperature": sampling.temperature,
    }
    if sampling.top_p is not None:
        fields["top_p"] = sampling.top_p
    if sampling.stop:
        fields["stop"] = list(sampling.stop)
    if sampling.max_tokens >= 0:
        fields[limit_field] = sampling.max_tokens
    if seed is not None:
        # Samples of one prompt drawn with one seed would all be the same.
        fields["seed"] = seed + attempt_index(task)
    return fields


def constant_fields(
    stop: str | Sequence[str] | None,
    logprobs: bool | int | None,
    extra_body: Mapping[str, object] | None,
    **others: object,
) -> dict[str, object]:
    """What the provider's options add to every request; of the others those that are given."""
    fields: dict[str, object] = {}
    if stop is not None:
        fields["stop"] = [stop] if isinstance(stop, str) else list(stop)
    if logprobs is not None and logprobs is not False:
        fields["logprobs"] = True
        if logprobs is not True:
            fields["top_logprobs"] = logprobs
    for name, value in others.items():
        if value is not None:
            fields[name] = dict(value) if isinstance(value, Mapping) else value
    fields.update(extra_body or {})
    try:
        _ENCODER.encode(fields)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"provider options cannot be sent as JSON: {error}") from error
    return fields


def messages_of(task: GenerationTask, system_prompt: str | None) -> list[dict[str, object]]:
    """The task's own conversation if it has one, else its prompt; a system prompt in front where there is one."""
    given = task.metadata.get("messages")
    own: list[dict[str, object]] = [{"role": "user", "content": task.prompt.text}]
    messages = own if given is None else _check_messages(given, task)
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


def request_body(task: GenerationTask, fields: Mapping[str, object]) -> bytes:
    try:
        return _ENCODER.encode(fields)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ProviderCallError(
            f"item {item_name(task)} cannot be sent as JSON: {error}", kind="bad_request", retryable=False
        ) from error


_LIMIT_OF_MODEL = re.compile(
    r"(?:max_tokens|max_completion_tokens)[^.]{0,40}?too large\D*\d+\D+?at most (?P<most>\d+)"
    r"|max_tokens: \d+ > (?P<allowed>\d+)"
    r"|maximum context length is (?P<context>\d+)[^\n]{0,120}completion",
    re.IGNORECASE,
)


def advise_shorter(error: ProviderCallError) -> ProviderCallError:
    """Of an answer that the model cannot be so long, the option that asks for a shorter one."""
    if error.status not in (400, 422) or (found := _LIMIT_OF_MODEL.search(str(error))) is None:
        return error
    most = found["most"] or found["allowed"]
    wanted = most or f"less than {found['context']}"
    return ProviderCallError(
        f"the model takes no answers of so many tokens: give --max-tokens {wanted} (max_tokens=). {error}",
        kind=error.kind,
        status=error.status,
        retry_after_seconds=error.retry_after_seconds,
        retryable=False,
    )


def field_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names given as a list, or as one text with commas, as a command line gives them."""
    return tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(names)


def _check_messages(given: object, task: GenerationTask) -> list[dict[str, object]]:
    if isinstance(given, list) and given and all(isinstance(turn, dict) and "role" in turn for turn in given):
        return given
    raise ProviderCallError(
        f"item {item_name(task)}: 'messages' must be a list of {{'role', 'content'}}, got {str(given)[:200]!r}",
        kind="bad_request",
        retryable=False,
    )


# --- what is answered -------------------------------------------------------------------------------------------------


class Message(msgspec.Struct):
    content: object = None
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None
    tool_calls: object = None


class Choice(msgspec.Struct):
    message: Message
    finish_reason: object = None
    logprobs: object = None


class Completion(msgspec.Struct):
    """A chat completion, as far as it is needed."""

    choices: list[Choice] | None = None
    id: object = None
    model: object = None
    usage: object = None


class Fail(Protocol):
    """Makes the error of a provider that has answered with nothing of use."""

    def __call__(self, what: str, *, kind: str, retryable: bool) -> ProviderCallError: ...


def read_completion(answer: Completion, fail: Fail) -> ModelOutput:
    """The first choice of an answer that has one; beside its text only what is there, and small."""
    assert answer.choices
    choice = answer.choices[0]
    message = choice.message
    raw = {"finish_reason": choice.finish_reason, "id": answer.id, "model": answer.model}
    if message.refusal:
        raw["refusal"] = message.refusal
    if message.reasoning_content or message.reasoning:
        raw["reasoning"] = message.reasoning_content or message.reasoning
    if message.tool_calls:
        raw["tool_calls"] = message.tool_calls
    if choice.logprobs:
        raw["logprobs"] = choice.logprobs
    return ModelOutput(text=_read_text(choice, fail), raw=raw, usage=read_usage(answer.usage))


def _read_text(choice: Choice, fail: Fail) -> str:
    content = choice.message.content
    if isinstance(content, str):
        return content
    if content is not None and not isinstance(content, list):
        raise fail(f"answered with content of type {type(content).__name__}", kind="invalid_response", retryable=True)
    parts = [part.get("text") for part in content or () if isinstance(part, dict) and part.get("type") == "text"]
    texts = [part for part in parts if isinstance(part, str)]
    if texts or _did_something_else(choice):
        return "".join(texts) or choice.message.refusal or ""
    blocked = choice.finish_reason == "content_filter"
    raise fail(
        "answered without any text" + (": the provider's content filter took it" if blocked else ""),
        kind="content_filter" if blocked else "empty_response",
        retryable=not blocked,
    )


def _did_something_else(choice: Choice) -> bool:
    """Whether the model itself is why there is no text: it refused, called a tool, thought, or came to its limit."""
    message = choice.message
    spoke = message.refusal or message.tool_calls or message.reasoning_content or message.reasoning
    return bool(spoke) or choice.finish_reason == "length"


def read_usage(told: object) -> dict[str, object] | None:
    """The tokens of an answer, from a mapping or from an object with such attributes."""
    prompt, completion = token_count(_get(told, "prompt_tokens")), token_count(_get(told, "completion_tokens"))
    total = token_count(_get(told, "total_tokens"))
    if prompt is None and completion is None and total is None:
        return None
    cached = token_count(_get(_get(told, "prompt_tokens_details"), "cached_tokens"))
    reasoning = token_count(_get(_get(told, "completion_tokens_details"), "reasoning_tokens"))
    return make_usage(prompt, completion, total, cached_tokens=cached, reasoning_tokens=reasoning)


def make_usage(
    prompt: int | None, completion: int | None, total: int | None = None, **parts: int | None
) -> dict[str, object]:
    """Usage under the names that records have; of its parts (cached, of reasoning) those that there are."""
    prompt, completion = prompt or 0, completion or 0
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion if total is None else total,
    }
    return {**usage, **{name: count for name, count in parts.items() if count}}


def token_count(value: object) -> int | None:
    """A count as servers tell it; None for anything that is none."""
    return int(value) if isinstance(value, (int, float)) and 0 <= value < 1e15 else None


def _get(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
