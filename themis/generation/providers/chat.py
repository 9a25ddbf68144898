"""OpenAI's form of a chat, which all chat providers share: what is asked (messages, sampling, options) and what is answered.

A server of one's own, a vendor, litellm or a model in this process: they differ in how a request travels, not in its form.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from themis.core.entities import GenerationTask, ModelOutput, ToolCall
from themis.core.messages import PROVIDER_DATA, Message, Part, read_messages, read_text
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.providers.wire import read_tools, to_openai, write_openai_choice, write_openai_tools

_ENCODER = msgspec.json.Encoder()


# --- what is asked ----------------------------------------------------------------------------------------------------


def completion_fields(
    task: GenerationTask,
    *,
    system_prompt: str | None,
    seed: int | None,
    limit_field: str = "max_tokens",
    returned: Collection[str] = (),
) -> dict[str, object]:
    """What a task decides of a request: model, messages, tools and sampling."""
    sampling, metadata = task.sampling, task.metadata
    given = metadata.get("messages")
    if given is None:
        messages = [{"role": "user", "content": task.prompt.text}]
    elif is_plain(given):
        messages = given
    else:
        messages = to_openai(check_messages(given, task), attachments_of(task), returned=returned)
    if system := metadata.get("system_prompt") or system_prompt:
        messages = put_system_first(messages, system)
    fields: dict[str, object] = {
        "model": task.model.identifier,
        "messages": messages,
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
    if "tools" in metadata and (tools := read_tools(metadata["tools"])):
        fields["tools"] = write_openai_tools(tools)
        if isinstance(choice := metadata.get("tool_choice"), str):
            fields["tool_choice"] = write_openai_choice(choice)
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


def is_plain(given: object) -> bool:
    """Whether these are messages of texts and nothing else, which are the same in every form."""
    if type(given) is not list or not given:
        return False
    for message in given:
        if type(message) is not dict or len(message) != 2 or type(message.get("content")) is not str:
            return False
        if "role" not in message:
            return False
    return True


def put_system_first(messages: list[Message], system: object) -> list[Message]:
    """What the system says before the messages, where there is anything and they have nothing of the kind."""
    if not isinstance(system, str) or messages[0].get("role") == "system":
        return messages
    return [{"role": "system", "content": system}, *messages]


def conversation_of(task: GenerationTask, system_prompt: str | None) -> list[Message]:
    """The task's own conversation if it has one, else its prompt; a system prompt in front where there is one."""
    given = task.metadata.get("messages")
    own: list[Message] = [{"role": "user", "content": task.prompt.text}]
    messages = own if given is None else check_messages(given, task)
    return put_system_first(messages, system_prompt_of(task, system_prompt))


def attachments_of(task: GenerationTask) -> dict[str, bytes]:
    """The images and files that the task's messages name; a row's own field of that name is something else."""
    given = task.metadata.get("attachments")
    return given if isinstance(given, dict) else {}


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


def field_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names given as a list, or as one text with commas, as a command line gives them."""
    return tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(names)


def check_messages(given: object, task: GenerationTask) -> list[Message]:
    if isinstance(given, list) and given:
        for turn in given:
            if not isinstance(turn, dict) or "role" not in turn:
                break
        else:
            return given
    raise ProviderCallError(
        f"item {item_name(task)}: 'messages' must be a list of {{'role', 'content'}}, got {str(given)[:200]!r}",
        kind="bad_request",
        retryable=False,
    )


# --- what is answered -------------------------------------------------------------------------------------------------


class Answer(msgspec.Struct):
    """The message of a choice."""

    content: object = None
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None
    thinking: object = None
    reasoning_details: object = None
    tool_calls: object = None
    images: object = None

    @property
    def thought(self) -> str:
        """What the model thought, in whichever field it is told; the details may be all there is, or say the same again."""
        fields = (self.reasoning_content, self.reasoning, self.thinking, self.reasoning_details)
        return next(filter(None, map(_read_thought, fields)), "")


def _read_thought(told: object) -> str:
    if isinstance(told, str):
        return told
    parts = [told] if isinstance(told, dict) else told if isinstance(told, list) else []
    fields = ("text", "summary", "content", "thinking")
    texts = (
        text for part in parts for text in ([part] if isinstance(part, str) else [_get(part, name) for name in fields])
    )
    return "".join(text for text in texts if isinstance(text, str))


class Choice(msgspec.Struct):
    message: Answer | None
    finish_reason: object = None
    logprobs: object = None
    error: object = None  # of whoever writes the answer, as gateways tell it


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
    message = choice.message or Answer()
    usage = read_usage(answer.usage)
    try:
        if choice.error:
            raise fail(f"answered with an error: {str(choice.error)[:500]}", kind="server_error", retryable=True)
        said = _read_said(choice, message, fail)
    except ProviderCallError as error:
        error.usage = usage
        raise
    raw: dict[str, object] = {"id": answer.id, "model": answer.model}
    if message.tool_calls and (kept := _keep_provider_data(message)):
        raw[PROVIDER_DATA] = kept
    return ModelOutput(
        text=said.text,
        raw=raw,
        usage=usage,
        reasoning=message.thought or read_text(said.reasoning) or None,
        tool_calls=_read_tool_calls(message.tool_calls) if message.tool_calls else (),
        refusal=said.refusal,
        parts=said.parts,
        finish_reason=None if choice.finish_reason is None else str(choice.finish_reason),
        logprobs=choice.logprobs or None,
    )


def _keep_provider_data(message: Answer) -> dict[str, object]:
    """What some endpoints want back with the results of tools: OpenRouter its account of the reasoning, Google its signatures."""
    calls = message.tool_calls if isinstance(message.tool_calls, list) else []
    extras = {str(_get(call, "id")): extra for call in calls if (extra := _get(call, "extra_content"))}
    kept = {"reasoning_details": message.reasoning_details, "extra_content": extras}
    return {name: value for name, value in kept.items() if value}


def _read_tool_calls(given: object) -> tuple[ToolCall, ...]:
    calls = given if isinstance(given, list) else []
    named = [(call, _get(call, "function")) for call in calls]
    return tuple(
        ToolCall.read(_get(function, "name"), _get(function, "arguments"), id=_get(call, "id"))
        for call, function in named
    )


class _Said(NamedTuple):
    """What a message says, by itself and in its parts."""

    text: str
    refusal: str | None
    reasoning: object = None
    parts: tuple[Part, ...] = ()


def _read_said(choice: Choice, message: Answer, fail: Fail) -> _Said:
    content = message.content
    if isinstance(content, str) and not message.images and (content or choice.finish_reason != "content_filter"):
        return _Said(content, message.refusal or None)
    if content is not None and not isinstance(content, str | list):
        raise fail(f"answered with content of type {type(content).__name__}", kind="invalid_response", retryable=True)
    told = _read_parts([content] if content and isinstance(content, str) else content or [], message.images)
    found: list[Part] = told["content"]
    refusal = message.refusal or next((part["refusal"] for part in found if part.get("type") == "refusal"), None)
    texts = [part for part in found if part.get("type") == "text" and isinstance(part.get("text"), str)]
    parts = tuple(part for part in found if part.get("type") not in ("text", "refusal"))
    if texts or parts or refusal or told.get("reasoning") or _did_something_else(choice, message):
        return _Said(read_text(texts) or refusal or "", refusal, told.get("reasoning"), parts)
    blocked = choice.finish_reason == "content_filter"
    raise fail(
        "answered without any text" + (": the provider's content filter took it" if blocked else ""),
        kind="content_filter" if blocked else "empty_response",
        retryable=not blocked,
    )


def _read_parts(content: list[object], images: object) -> Message:
    """The message in our form, with images that stand beside its content, as OpenRouter sends them."""
    given = [*content, *(images if isinstance(images, list) else ())]
    known = [part for part in given if isinstance(part, str | dict)]
    return read_messages([{"role": "assistant", "content": known}])[-1]


def _did_something_else(choice: Choice, message: Answer) -> bool:
    """Whether the model itself is why there is no text: it refused, called a tool, thought, or came to its limit."""
    spoke = message.refusal or message.tool_calls or message.thought
    return bool(spoke) or choice.finish_reason == "length"


def read_usage(told: object) -> dict[str, object] | None:
    """The tokens of an answer, from a mapping or from an object with such attributes."""
    prompt, completion = token_count(_get(told, "prompt_tokens")), token_count(_get(told, "completion_tokens"))
    total = token_count(_get(told, "total_tokens"))
    if prompt is None and completion is None and total is None:
        return None
    details, thoughts = _get(told, "prompt_tokens_details"), _get(told, "completion_tokens_details")
    cached = token_count(_get(details, "cached_tokens")) or token_count(_get(told, "prompt_cache_hit_tokens"))
    written = token_count(_get(details, "cache_write_tokens")) or token_count(_get(told, "cache_creation_input_tokens"))
    reasoning = token_count(_get(thoughts, "reasoning_tokens"))
    if prompt is not None and completion is not None:
        prompt, completion = _include_parts(prompt, completion, total, (cached or 0) + (written or 0), reasoning or 0)
        total = max(total or 0, prompt + completion)
    return make_usage(
        prompt, completion, total, cached_tokens=cached, cache_write_tokens=written, reasoning_tokens=reasoning
    )


def _include_parts(prompt: int, completion: int, total: int | None, cache: int, reasoning: int) -> tuple[int, int]:
    """The tokens of prompt and answer with those of the cache and of thoughts, which some servers tell beside them.

    xAI and Google count thoughts in the total alone; gateways to Anthropic leave the cache out of the prompt, as it does.
    """
    untold = 0 if total is None else total - prompt - completion
    if cache > prompt or (cache and untold == cache != reasoning):
        prompt, untold = prompt + cache, untold - cache
    if untold > 0:
        return prompt, completion + untold
    return prompt, completion + reasoning if reasoning > completion else completion


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
    if isinstance(value, str) and value.isdecimal():
        value = float(value)
    return int(value) if isinstance(value, (int, float)) and 0 <= value < 1e15 else None


def _get(value: object, name: str) -> object:
    if value is None:
        return None
    # A dict is what nearly always comes, and is told from others at a tenth of the time.
    is_mapping = type(value) is dict or isinstance(value, Mapping)
    return value.get(name) if is_mapping else getattr(value, name, None)  # type: ignore[attr-defined]
