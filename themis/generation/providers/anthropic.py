"""Claude models over Anthropic's own messages API."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

import msgspec

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput, ToolCall
from themis.core.messages import PROVIDER_DATA
from themis.exceptions import ProviderError
from themis.generation.batches.anthropic import AnthropicBatches
from themis.generation.providers.chat import (
    attachments_of,
    check_messages,
    make_usage,
    put_system_first,
    system_prompt_of,
    token_count,
)
from themis.generation.providers.chat_over_http import ChatEndpoint
from themis.generation.providers.http import Reply, quota_headers, read_quota
from themis.generation.providers.parameters import Wishes
from themis.generation.providers.prompt_cache import CacheMarks
from themis.generation.providers.reasoning import FORMS, Wanted
from themis.generation.providers.wire import read_tools, to_anthropic, write_anthropic_choice, write_anthropic_tools

_PATH = "/v1/messages"
_QUOTA = quota_headers("anthropic-ratelimit-{of}-{what}")


class Anthropic(ChatEndpoint):
    """One request to the messages API for each task.

    The API wants an upper limit: a task without one (negative `max_tokens`) is sent with `unlimited_max_tokens`. What a model
    refuses (each of them a `seed`) is known by its family, or learnt; `omit` names fields that are not to be sent whatever is
    known. `prompt_cache` marks the system prompt, the tools and the last message to be cached, for five minutes or `"1h"`; None
    marks the first two, where a run has so many calls that it saves money.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        anthropic_version: str = "2023-06-01",
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
        omit: Sequence[str] = (),
        proxy: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        verify: bool = True,
        max_response_bytes: int = 64 * 2**20,
        system_prompt: str | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
        unlimited_max_tokens: int = 8192,
        reasoning_effort: str | None = None,
        thinking_budget: int | None = None,
        strict_parameters: bool = False,
        prompt_cache: bool | str | None = None,
        asked_parameters: Collection[str] = (),
    ) -> None:
        own_server = base_url or api_base or os.environ.get("ANTHROPIC_BASE_URL")
        key = api_key or os.environ.get("ANTHROPIC_API_KEY", "").strip() or None
        if key is None and not own_server:
            raise ProviderError("provider 'anthropic' needs a key: set ANTHROPIC_API_KEY or give api_key=")
        # Parameters that a gateway may want stand behind the path.
        place, mark, query = (own_server or "https://api.anthropic.com").partition("?")
        address = place.rstrip("/").removesuffix(_PATH).removesuffix("/v1")
        super().__init__(
            f"{address}{_PATH}{mark}{query}",
            headers={
                "anthropic-version": anthropic_version,
                **({"x-api-key": key} if key else {}),
                **(extra_headers or {}),
            },
            api_key=key,
            timeout=timeout,
            proxy=proxy,
            ca_file=ca_file,
            verify=verify,
            max_response_bytes=max_response_bytes,
            system_prompt=system_prompt,
        )
        self._unlimited_max_tokens = unlimited_max_tokens
        self._stop = [stop] if isinstance(stop, str) else None if stop is None else list(stop)
        wishes = Wishes(
            reasoning=Wanted(effort=reasoning_effort, budget_tokens=thinking_budget),
            is_strict=strict_parameters,
            asked=asked_parameters,
            untouchable=extra_body or (),
        )
        self.prepare_chat("anthropic", FORMS["anthropic"], wishes, seed=seed, extra_body=extra_body, omit=omit)
        self._cache = CacheMarks(prompt_cache)

    def set_concurrency(self, calls: int) -> None:
        super().set_concurrency(calls)
        self._cache.concurrency = calls

    def expect_calls(self, calls: int) -> None:
        """How many calls a run will make, from which follows whether caching pays."""
        self._cache.expected_calls = calls

    def open_batches(self) -> AnthropicBatches:
        """How its batches are sent and read."""
        return AnthropicBatches(self._single_calls("Anthropic", "api.anthropic.com"))

    def _read_reply(self, task: GenerationTask, reply: Reply) -> GenerationRecord:
        answer = self._decode(reply.body, _Answer, "a message")
        return GenerationRecord(
            task=task,
            output=_read_output(answer),
            error=None,
            metrics=read_quota(reply.headers, _QUOTA),
        )

    def _body(self, task: GenerationTask) -> bytes:
        sampling, model = task.sampling, task.model.identifier
        fields = self._say(task)
        fields["model"] = model
        fields["max_tokens"] = sampling.max_tokens if sampling.max_tokens >= 0 else self._unlimited_max_tokens
        fields["temperature"] = sampling.temperature
        if sampling.top_p is not None:
            fields["top_p"] = sampling.top_p
        if stop := self._stop or sampling.stop:
            fields["stop_sequences"] = list(stop)
        if self._seed is not None:
            fields["seed"] = self._seed  # no model of theirs takes one: that is said
        return self._finish_body(task, fields, self._known_of(model))

    def _say(self, task: GenerationTask) -> dict[str, object]:
        """The fields that hold what is said: the messages, the system's, and tools."""
        metadata = task.metadata
        given, system = metadata.get("messages"), system_prompt_of(task, self._system_prompt)
        if given is None and "tools" not in metadata:
            # A prompt, behind what the system says at most: what nearly every task is.
            prompt = [{"role": "user", "content": task.prompt.text}]
            return {"messages": prompt, "system": self._cache.mark_system(system)} if system else {"messages": prompt}
        messages = [{"role": "user", "content": task.prompt.text}] if given is None else check_messages(given, task)
        told, written = to_anthropic(put_system_first(messages, system) if system else messages, attachments_of(task))
        tools = write_anthropic_tools(read_tools(metadata["tools"])) if "tools" in metadata else []
        fields: dict[str, object] = {"messages": self._cache.mark_last(written)}
        if told is not None:
            fields["system"] = self._cache.mark_system(told, tools)
        if tools:
            # The mark of the system's words, which follow the tools, is for them too.
            fields["tools"] = self._cache.mark_tools(tools) if told is None else tools
            if isinstance(choice := metadata.get("tool_choice"), str):
                fields["tool_choice"] = write_anthropic_choice(choice)
        return fields


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: object = None


class _Answer(msgspec.Struct):
    content: list[_Block]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: object = None

    def joined(self, kind: str) -> str:
        return "".join(getattr(block, kind) for block in self.content if block.type == kind)


# Anthropic's words for why an answer ended, in ours.
_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}


def _read_output(answer: _Answer) -> ModelOutput:
    text, reason = answer.joined("text"), answer.stop_reason
    calls = [ToolCall.read(one.name, one.input, id=one.id) for one in answer.content if one.type == "tool_use"]
    raw: dict[str, object] = {"id": answer.id, "model": answer.model}
    if calls and (thoughts := _keep_thoughts(answer)):
        raw[PROVIDER_DATA] = {"thinking": thoughts}
    return ModelOutput(
        text=text,
        raw=raw,
        usage=_usage(answer.usage),
        reasoning=answer.joined("thinking") or None,
        tool_calls=tuple(calls),
        refusal=(text or "refused without words") if reason == "refusal" else None,
        finish_reason=None if reason is None else _FINISH_REASONS.get(reason, reason),
    )


def _keep_thoughts(answer: _Answer) -> list[dict[str, str]]:
    """Thoughts as they have to be sent back with the results of tools: with their signatures."""
    kept = []
    for block in answer.content:
        if block.type == "thinking" and block.signature:
            kept.append({"type": "thinking", "thinking": block.thinking, "signature": block.signature})
        elif block.type == "redacted_thinking":
            kept.append({"type": "redacted_thinking", "data": block.data})
    return kept


def _usage(told: object) -> dict[str, object] | None:
    """`prompt_tokens` holds all that was read, from the cache or not."""
    if not isinstance(told, dict):
        return None
    cached = token_count(told.get("cache_read_input_tokens")) or 0
    written = token_count(told.get("cache_creation_input_tokens")) or 0
    prompt = (token_count(told.get("input_tokens")) or 0) + cached + written
    usage = make_usage(prompt, token_count(told.get("output_tokens")))
    if not cached and not written:
        return usage
    by_age = told.get("cache_creation")
    for_an_hour = token_count(by_age.get("ephemeral_1h_input_tokens")) if isinstance(by_age, dict) else 0
    usage |= {"cached_tokens": cached, "cache_write_tokens": written}
    return {**usage, "cache_write_1h_tokens": for_an_hour} if for_an_hour else usage
