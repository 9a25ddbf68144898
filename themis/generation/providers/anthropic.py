"""Claude models over Anthropic's own messages API."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.exceptions import ProviderCallError, ProviderError
from themis.generation.providers.chat import (
    advise_shorter,
    field_names,
    make_usage,
    messages_of,
    request_body,
    token_count,
)
from themis.generation.providers.http import HttpProvider, quota_headers, read_quota

_PATH = "/v1/messages"
_QUOTA = quota_headers("anthropic-ratelimit-{of}-{what}")


class Anthropic(HttpProvider):
    """One request to the messages API for each task.

    The API wants an upper limit: a task without one (negative `max_tokens`) is sent with `unlimited_max_tokens`.
    `top_p` is omitted, because newer models refuse it beside a temperature; `omit=()` sends both.
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
        omit: Sequence[str] = ("top_p",),
        proxy: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        verify: bool = True,
        max_response_bytes: int = 64 * 2**20,
        system_prompt: str | None = None,
        stop: str | Sequence[str] | None = None,
        unlimited_max_tokens: int = 8192,
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
        self._omit = field_names(omit)
        self._always: dict[str, object] = {}
        if stop is not None:
            self._always["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
        self._always.update(extra_body or {})

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        try:
            reply = await self._post(self._body(task))
        except ProviderCallError as error:
            raise advise_shorter(error) from error
        answer = self._decode(reply.body, _Answer, "a message")
        return GenerationRecord(
            task=task,
            output=ModelOutput(text=answer.joined("text"), raw=_raw(answer), usage=_usage(answer.usage)),
            error=None,
            metrics=read_quota(reply.headers, _QUOTA),
        )

    def _body(self, task: GenerationTask) -> bytes:
        sampling = task.sampling
        messages = messages_of(task, self._system_prompt)
        fields: dict[str, object] = {
            "model": task.model.identifier,
            "messages": [message for message in messages if message["role"] != "system"],
            "max_tokens": sampling.max_tokens if sampling.max_tokens >= 0 else self._unlimited_max_tokens,
            "temperature": sampling.temperature,
        }
        if sampling.top_p is not None:
            fields["top_p"] = sampling.top_p
        if sampling.stop:
            fields["stop_sequences"] = list(sampling.stop)
        # The API has no role for the system: what it says is a field of its own.
        system = [message["content"] for message in messages if message["role"] == "system"]
        if system:
            texts = [part for part in system if isinstance(part, str)]
            fields["system"] = "\n\n".join(texts) if len(texts) == len(system) else system[0]
        fields.update(self._always)
        for name in self._omit:
            fields.pop(name, None)
        return request_body(task, fields)


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    thinking: str = ""


class _Answer(msgspec.Struct):
    content: list[_Block]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: object = None

    def joined(self, kind: str) -> str:
        return "".join(getattr(block, kind) for block in self.content if block.type == kind)


def _raw(answer: _Answer) -> dict[str, object]:
    raw: dict[str, object] = {"finish_reason": answer.stop_reason, "id": answer.id, "model": answer.model}
    reasoning = answer.joined("thinking")
    if reasoning:
        raw["reasoning"] = reasoning
    if answer.stop_reason == "refusal":
        raw["refusal"] = answer.joined("text") or "refused without words"
    return raw


def _usage(told: object) -> dict[str, object] | None:
    """`prompt_tokens` holds all that was read, from the cache or not."""
    if not isinstance(told, dict):
        return None
    cached = token_count(told.get("cache_read_input_tokens")) or 0
    written = token_count(told.get("cache_creation_input_tokens")) or 0
    prompt = (token_count(told.get("input_tokens")) or 0) + cached + written
    usage = make_usage(prompt, token_count(told.get("output_tokens")))
    return {**usage, "cached_tokens": cached, "cache_write_tokens": written} if cached or written else usage
