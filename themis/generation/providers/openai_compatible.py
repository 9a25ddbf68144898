"""Models behind OpenAI's chat completions, whoever serves them.

The hot path of a run over HTTP: the body is encoded once, only what is needed is decoded, everything else is prepared in
the constructor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec
from yarl import URL

from themis.core.entities import GenerationRecord, GenerationTask
from themis.exceptions import ProviderCallError, ProviderError
from themis.generation.providers.chat import (
    Completion,
    advise_shorter,
    completion_fields,
    constant_fields,
    field_names,
    read_completion,
    request_body,
)
from themis.generation.providers.completions import TextCompletions
from themis.generation.providers.endpoints import KNOWN_ENDPOINTS, base_url_variable, key_variable
from themis.generation.providers.http import quota_headers, read_quota

_PATH = "/chat/completions"
_QUOTA = quota_headers("x-ratelimit-{what}-{of}")


class OpenAICompatible(TextCompletions):
    """One request to an OpenAI-compatible endpoint for each task.

    `provider_name` finds the endpoint in the table of known ones and its variables `<NAME>_BASE_URL` and
    `<NAME>_API_KEY`; `base_url` (or `api_base`) and `api_key` win over both. `omit` names fields of the body that a
    model refuses, such as `temperature`; `extra_body` adds fields that it needs; `max_tokens_field` is what the limit is
    called where a gateway stands before a model that knows it by another name. `beginning_of_text` is what a text without a
    context follows when `continuations` are scored, where the server puts no such token in front itself.
    """

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
        extra_body: Mapping[str, object] | None = None,
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
        response_format: Mapping[str, object] | None = None,
        grammar: str | None = None,
        beginning_of_text: str = "",
        provider_name: str = "openai_compatible",
    ) -> None:
        address = base_url or api_base or os.environ.get(base_url_variable(provider_name))
        known = KNOWN_ENDPOINTS.get(provider_name)
        hosted = known is not None and not known.is_local and not address
        # Of a server that somebody names nobody knows it before it has been asked.
        self.chat_only = known is not None and not known.scores and not address
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
        super().__init__(
            _completions_url(address),
            headers=_headers(key, organization, api_version, extra_headers),
            query={"api-version": api_version} if api_version else None,
            api_key=key,
            timeout=timeout,
            proxy=proxy,
            ca_file=ca_file,
            verify=verify,
            max_response_bytes=max_response_bytes,
            system_prompt=system_prompt,
        )
        self.prepare_scoring(_texts_url(self._url), beginning_of_text=beginning_of_text, extra_body=extra_body)
        self._seed = seed
        # OpenAI's newer models refuse the old name, other servers may not know the new one.
        usual = "max_completion_tokens" if hosted and provider_name == "openai" else "max_tokens"
        self._limit_field = max_tokens_field or usual
        self._always = constant_fields(stop, logprobs, extra_body, response_format=response_format, grammar=grammar)
        self._omit = field_names(omit)

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        try:
            reply = await self._post(self._body(task))
        except ProviderCallError as error:
            raise advise_shorter(_add_advice(error)) from error
        try:
            answer = _DECODER.decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # What strict JSON would lose: NaN among log probabilities, halves of surrogate pairs, bytes that are not UTF-8.
            answer = self._decode(reply.body.decode("utf-8", "replace"), Completion, "a chat completion")
        if not answer.choices:
            raise self._silent(reply.body, "choices")
        output = read_completion(answer, self._failure)
        return GenerationRecord(task=task, output=output, error=None, metrics=read_quota(reply.headers, _QUOTA))

    def _body(self, task: GenerationTask) -> bytes:
        fields = completion_fields(
            task, system_prompt=self._system_prompt, seed=self._seed, limit_field=self._limit_field
        )
        if self._always:
            fields.update(self._always)
        for name in self._omit:
            fields.pop(name, None)
        return request_body(task, fields)


_REFUSES = re.compile(r"unsupported|not support|only the default|unknown|unrecognized|unexpected|not permitted", re.I)
_NAMED = re.compile(r"\b(temperature|top_p|max_tokens|seed|stop|logprobs|top_logprobs|response_format|grammar)\b")


def _add_advice(error: ProviderCallError) -> ProviderCallError:
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


def _texts_url(url: URL) -> URL:
    """Where texts are completed, of the address where chats are."""
    return url.with_path(url.path.removesuffix(_PATH) + "/completions", keep_query=True)


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


_DECODER = msgspec.json.Decoder(Completion)
