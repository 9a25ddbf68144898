"""Models behind OpenAI's chat completions, whoever serves them.

The hot path of a run over HTTP: the body is encoded once, only what is needed is decoded, everything else is prepared in
the constructor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from themis.core.codec import decode_as
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.exceptions import ConfigurationError, ProviderCallError, ProviderError
from themis.generation.providers.conversation import attempt_index, field_names, messages_of, request_body
from themis.generation.providers.endpoints import KNOWN_ENDPOINTS, base_url_variable, key_variable
from themis.generation.providers.http import HttpEndpoint, duration_seconds, token_count
from themis.interfaces import StatelessTaskExecutor

__all__ = ["LocalOpenAICompatible", "OpenAICompatible"]

_PATH = "/chat/completions"


class OpenAICompatible(StatelessTaskExecutor):
    """One request to an OpenAI-compatible endpoint for each task.

    `provider_name` finds the endpoint in the table of known ones and its variables `<NAME>_BASE_URL` and
    `<NAME>_API_KEY`; `base_url` (or `api_base`) and `api_key` win over both. `omit` names fields of the body that a
    model refuses, such as `temperature`; `extra_body` adds fields that it needs; `max_tokens_field` is what the limit is
    called where a gateway stands before a model that knows it by another name.
    """

    prompt_only = True

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        organization: str | None = None,
        api_version: str | None = None,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        omit: Sequence[str] = (),
        max_tokens_field: str | None = None,
        proxy: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        verify: bool = True,
        max_response_bytes: int = 64 * 2**20,
        system_prompt: str | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
        logprobs: bool | int | None = None,
        response_format: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        provider_name: str = "openai_compatible",
    ) -> None:
        address = base_url or api_base or os.environ.get(base_url_variable(provider_name))
        known = KNOWN_ENDPOINTS.get(provider_name)
        hosted = known is not None and not known.is_local and not address
        address = address or (known.base_url if known else None)
        if not address:
            raise ProviderError(
                f"provider {provider_name!r} needs to know where its endpoint is: "
                f"give base_url= or set {base_url_variable(provider_name)}"
            )
        key = api_key or _key_of_environment(provider_name)
        if hosted and not key:
            raise ProviderError(
                f"provider {provider_name!r} needs a key: set {key_variable(provider_name)} or give api_key= "
                f"(or base_url= for a server of your own)"
            )
        self._http = HttpEndpoint(
            _completions_url(address),
            headers=_headers(key, organization, api_version, extra_headers),
            query={"api-version": api_version} if api_version else None,
            api_key=key,
            timeout=timeout,
            proxy=proxy,
            ca_file=ca_file,
            verify=verify,
            max_response_bytes=max_response_bytes,
        )
        self._system_prompt = system_prompt
        self._seed = seed
        # OpenAI's newer models refuse the old name, other servers may not know the new one.
        usual = "max_completion_tokens" if hosted and provider_name == "openai" else "max_tokens"
        self._limit_field = max_tokens_field or usual
        self._always = _constant_fields(stop, logprobs, response_format, grammar, extra_body)
        self._omit = field_names(omit)

    @property
    def account(self) -> str:
        return self._http.account

    def set_concurrency(self, calls: int) -> None:
        self._http.make_room(calls)

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        try:
            reply = await self._http.post(self._body(task))
        except ProviderCallError as error:
            raise _with_advice(error) from error
        try:
            answer = _DECODER.decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = self._decode_leniently(reply.body)
        if not answer.choices:
            raise self._http.silent(reply.body, "choices")
        choice = answer.choices[0]
        return GenerationRecord(
            task=task,
            output=ModelOutput(text=self._text(choice), raw=_raw(answer, choice), usage=_usage(answer.usage)),
            error=None,
            metrics=_quota(reply.headers),
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    def _body(self, task: GenerationTask) -> bytes:
        sampling = task.sampling
        fields: dict[str, Any] = {
            "model": task.model.identifier,
            "messages": messages_of(task, self._system_prompt),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if sampling.max_tokens >= 0:
            fields[self._limit_field] = sampling.max_tokens
        if self._seed is not None:
            # Samples of one prompt drawn with one seed would all be the same.
            fields["seed"] = self._seed + attempt_index(task)
        if self._always:
            fields.update(self._always)
        for name in self._omit:
            fields.pop(name, None)
        return request_body(task, fields)

    def _decode_leniently(self, body: bytes) -> _Answer:
        """What strict JSON would lose: NaN among log probabilities, halves of surrogate pairs, bytes that are not UTF-8."""
        try:
            return decode_as(body.decode("utf-8", "replace"), _Answer)
        except (ValueError, RecursionError) as error:
            raise self._http.unreadable(body, "a chat completion", error) from error

    def _text(self, choice: _Choice) -> str:
        content = choice.message.content
        if isinstance(content, str):
            return content
        if content is not None and not isinstance(content, list):
            raise self._http.failure(
                f"answered with content of type {type(content).__name__}", kind="invalid_response", retryable=True
            )
        parts = [part.get("text") for part in content or () if isinstance(part, dict) and part.get("type") == "text"]
        texts = [part for part in parts if isinstance(part, str)]
        if texts or _did_something_else(choice):
            return "".join(texts) or choice.message.refusal or ""
        blocked = choice.finish_reason == "content_filter"
        raise self._http.failure(
            "answered without any text" + (": the provider's content filter took it" if blocked else ""),
            kind="content_filter" if blocked else "empty_response",
            retryable=not blocked,
        )


def _did_something_else(choice: _Choice) -> bool:
    """Whether the model itself is why there is no text: it refused, called a tool, thought, or came to its limit."""
    message = choice.message
    spoke = message.refusal or message.tool_calls or message.reasoning_content or message.reasoning
    return bool(spoke) or choice.finish_reason == "length"


_REFUSES = re.compile(r"unsupported|not support|only the default|unknown|unrecognized|unexpected|not permitted", re.I)
_NAMED = re.compile(r"\b(temperature|top_p|max_tokens|seed|stop|logprobs|top_logprobs|response_format|grammar)\b")


def _with_advice(error: ProviderCallError) -> ProviderCallError:
    """Of a parameter that the model refuses, the option that leaves it out."""
    said = str(error)
    if error.status not in (400, 422) or not _REFUSES.search(said) or (named := _NAMED.search(said)) is None:
        return error
    name = named[1]
    if name == "max_tokens" and "max_completion_tokens" in said:
        option = "max_tokens_field=max_completion_tokens"
    else:
        option = "omit=temperature,top_p" if name in ("temperature", "top_p") else f"omit={name}"
    # The way out comes first: the server's words may be long, and are cut where a line must be short.
    return ProviderCallError(
        f"the model does not take {name}: give the provider option {option} (--option {option}). {said}",
        kind=error.kind,
        status=error.status,
        retry_after_seconds=error.retry_after_seconds,
        retryable=False,
    )


def _completions_url(address: str) -> str:
    """The address with the path of completions, before the parameters that a gateway may want."""
    place, mark, query = address.partition("?")
    place = place.rstrip("/").removesuffix(_PATH)
    return f"{place}{_PATH}{mark}{query}"


class LocalOpenAICompatible(OpenAICompatible):
    """The same on a machine of one's own: no key needed, nothing to pay."""

    is_local: ClassVar[bool] = True


def _key_of_environment(provider_name: str) -> str | None:
    known = KNOWN_ENDPOINTS.get(provider_name)
    for variable in (key_variable(provider_name), *(known.other_keys if known else ())):
        key = os.environ.get(variable, "").strip()
        if key:
            return key
    return None


def _headers(
    key: str | None, organization: str | None, api_version: str | None, extra: Mapping[str, str] | None
) -> dict[str, str]:
    headers: dict[str, str] = {}
    if key and api_version:
        headers["api-key"] = key  # endpoints with a version in the query take the key by this name
    elif key:
        headers["Authorization"] = f"Bearer {key}"
    if organization:
        headers["OpenAI-Organization"] = organization
    return {**headers, **(extra or {})}


def _constant_fields(
    stop: str | Sequence[str] | None,
    logprobs: bool | int | None,
    response_format: Mapping[str, Any] | None,
    grammar: str | None,
    extra_body: Mapping[str, Any] | None,
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if stop is not None:
        fields["stop"] = [stop] if isinstance(stop, str) else list(stop)
    if logprobs is not None and logprobs is not False:
        fields["logprobs"] = True
        if logprobs is not True:
            fields["top_logprobs"] = logprobs
    if response_format is not None:
        fields["response_format"] = dict(response_format)
    if grammar is not None:
        fields["grammar"] = grammar
    fields.update(extra_body or {})
    try:
        msgspec.json.encode(fields)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"provider options cannot be sent as JSON: {error}") from error
    return fields


class _Message(msgspec.Struct):
    content: Any = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any = None
    logprobs: Any = None


class _Answer(msgspec.Struct):
    choices: list[_Choice] | None = None
    id: Any = None
    model: Any = None
    usage: Any = None


_DECODER = msgspec.json.Decoder(_Answer)


def _raw(answer: _Answer, choice: _Choice) -> dict[str, Any]:
    """What is kept of the answer beside its text: small, and only what is there."""
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
    return raw


def _usage(told: Any) -> dict[str, Any] | None:
    if not isinstance(told, dict):
        return None
    prompt, completion = token_count(told.get("prompt_tokens")), token_count(told.get("completion_tokens"))
    total = token_count(told.get("total_tokens"))
    if prompt is None and completion is None and total is None:
        return None
    usage = {
        "prompt_tokens": prompt or 0,
        "completion_tokens": completion or 0,
        "total_tokens": total if total is not None else (prompt or 0) + (completion or 0),
    }
    cached = token_count(_inside(told, "prompt_tokens_details", "cached_tokens"))
    reasoning = token_count(_inside(told, "completion_tokens_details", "reasoning_tokens"))
    if cached is not None:
        usage["cached_tokens"] = cached
    if reasoning is not None:
        usage["reasoning_tokens"] = reasoning
    return usage


def _inside(usage: dict[str, Any], group: str, name: str) -> Any:
    details = usage.get(group)
    return details.get(name) if isinstance(details, dict) else None


def _quota(headers: Mapping[str, str]) -> dict[str, Any]:
    """What is left of the account's quota, where the server says so."""
    requests, tokens = headers.get("x-ratelimit-remaining-requests"), headers.get("x-ratelimit-remaining-tokens")
    if requests is None and tokens is None:
        return {}
    told = {
        "remaining_requests": duration_seconds(requests),
        "limit_requests": duration_seconds(headers.get("x-ratelimit-limit-requests")),
        "reset_seconds": duration_seconds(headers.get("x-ratelimit-reset-requests")),
        "remaining_tokens": duration_seconds(tokens),
        "limit_tokens": duration_seconds(headers.get("x-ratelimit-limit-tokens")),
        "reset_tokens_seconds": duration_seconds(headers.get("x-ratelimit-reset-tokens")),
    }
    return {"rate_limit": {name: value for name, value in told.items() if value is not None}}
