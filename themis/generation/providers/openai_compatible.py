"""Models behind OpenAI's chat completions, whoever serves them.

The hot path of a run over HTTP: the body is encoded once, only what is needed is decoded, everything else is prepared in
the constructor.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NoReturn, cast

import msgspec
from yarl import URL

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.core.messages import Message
from themis.exceptions import ProviderError
from themis.generation.batches.openai import OpenAIBatches
from themis.generation.providers.chat import (
    Completion,
    completion_fields,
    constant_fields,
    read_completion,
    read_usage,
)
from themis.generation.providers.completions import TextCompletions
from themis.generation.providers.endpoints import KNOWN_ENDPOINTS, base_url_variable, find_variable, key_variable
from themis.generation.providers.http import Reply, quota_headers, read_quota
from themis.generation.providers.parameters import Wishes
from themis.generation.providers.prompt_cache import CacheMarks
from themis.generation.providers.reasoning import FORMS, Wanted

_PATH = "/chat/completions"
_QUOTA = quota_headers("x-ratelimit-{what}-{of}")


class OpenAICompatible(TextCompletions):
    """One request to an OpenAI-compatible endpoint for each task.

    `provider_name` finds the endpoint in the table of known ones and its variables `<NAME>_BASE_URL` and
    `<NAME>_API_KEY`; `base_url` (or `api_base`) and `api_key` win over both. What a model refuses or knows by another name is
    known by its family, or learnt; `omit` names fields that are not to be sent whatever is known, `max_tokens_field` is what the
    limit is called, and `extra_body` adds fields, which are sent as they are. `prompt_cache` marks what is to be cached, for
    OpenRouter; other endpoints cache by themselves. `beginning_of_text` is what a text without a
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
        reasoning_effort: str | None = None,
        thinking_budget: int | None = None,
        strict_parameters: bool = False,
        prompt_cache: bool | str | None = None,
        beginning_of_text: str = "",
        provider_name: str = "openai_compatible",
        asked_parameters: Collection[str] = (),
    ) -> None:
        known = KNOWN_ENDPOINTS.get(provider_name)
        given = base_url or api_base or os.environ.get(base_url_variable(provider_name))
        hosted = known is not None and not known.is_local and not given
        # Of a server that somebody names nobody knows it before it has been asked.
        self.chat_only = known is not None and not known.scores and not given
        self._takes_batches = known is None or known.batches or bool(given)
        key = api_key or _key_of_environment(provider_name)
        if hosted and not key:
            _refuse_without_key(provider_name)
        super().__init__(
            _completions_url(given or (known.base_url if known else None) or _refuse_without_address(provider_name)),
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
        self._always = constant_fields(stop, logprobs, None, response_format=response_format, grammar=grammar)
        usual = known.limit_field if hosted and known is not None else "max_tokens"
        wishes = Wishes(
            reasoning=Wanted(effort=reasoning_effort, budget_tokens=thinking_budget),
            is_strict=strict_parameters,
            asked=asked_parameters,
            limit_field=max_tokens_field or usual,
            is_limit_known=max_tokens_field is not None,
            untouchable=extra_body or (),
            returned=known.returned if known is not None else (),
        )
        form = FORMS[known.reasoning if known is not None else "openai"]
        self.prepare_chat(provider_name, form, wishes, seed=seed, extra_body=extra_body, omit=omit)
        self.prepare_scoring(_texts_url(self._url), beginning_of_text=beginning_of_text)
        marks = CacheMarks(prompt_cache)
        self._marks = marks if prompt_cache and known is not None and known.takes_cache_marks else None

    def open_batches(self) -> OpenAIBatches | None:
        """How its batches are sent and read; None where it is known to have none."""
        if not self._takes_batches:
            return None
        return OpenAIBatches(self._single_calls("OpenAI", "api.openai.com"))

    def _read_reply(self, task: GenerationTask, reply: Reply) -> GenerationRecord:
        try:
            answer = _DECODER.decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # What strict JSON would lose: NaN among log probabilities, halves of surrogate pairs, bytes that are not UTF-8.
            answer = self._decode(reply.body.decode("utf-8", "replace"), Completion, "a chat completion")
        if not answer.choices:
            error = self._silent(reply.body, "choices")
            error.usage = read_usage(answer.usage)
            raise error
        output = read_completion(answer, self._failure)
        if "stop" in self.left_out:
            output = self._cut(output, task)
        return GenerationRecord(task=task, output=output, error=None, metrics=read_quota(reply.headers, _QUOTA))

    def _body(self, task: GenerationTask) -> bytes:
        known = self._known_of(task.model.identifier)
        fields = completion_fields(
            task,
            system_prompt=self._system_prompt,
            seed=self._seed,
            limit_field=known.limit_field,
            returned=known.returned,
        )
        if self._always:
            fields.update(self._always)
        if self._marks is not None:
            fields["messages"] = self._marks.mark_openai(cast("list[Message]", fields["messages"]))
        return self._finish_body(task, fields, known)

    def _cut(self, output: ModelOutput, task: GenerationTask) -> ModelOutput:
        """The answer up to where it would have ended, had the model taken the texts to stop at."""
        given = self._always.get("stop")
        stops = given if isinstance(given, list) else task.sampling.stop
        ends = [place for stop in stops if (place := output.text.find(stop)) >= 0]
        return replace(output, text=output.text[: min(ends)], finish_reason="stop") if ends else output


def _completions_url(address: str) -> str:
    """The address with the path of completions, before the parameters that a gateway may want."""
    place, mark, query = address.partition("?")
    place = place.rstrip("/").removesuffix(_PATH)
    return f"{place}{_PATH}{mark}{query}"


def _texts_url(url: URL) -> URL:
    """Where texts are completed, of the address where chats are."""
    return url.with_path(url.path.removesuffix(_PATH) + "/completions", keep_query=True)


def _refuse_without_address(provider_name: str) -> NoReturn:
    raise ProviderError(
        f"provider {provider_name!r} needs to know where its endpoint is: "
        f"give base_url= or set {base_url_variable(provider_name)}"
    )


def _refuse_without_key(provider_name: str) -> NoReturn:
    raise ProviderError(
        f"provider {provider_name!r} needs a key: set {' or '.join(_key_variables(provider_name))} or give api_key= "
        "(or base_url= for a server of your own)"
    )


class LocalOpenAICompatible(OpenAICompatible):
    """The same on a machine of one's own: no key needed, nothing to pay."""

    is_local: ClassVar[bool] = True


def _key_of_environment(provider_name: str) -> str | None:
    return find_variable(_key_variables(provider_name)) or None


def _key_variables(provider_name: str) -> list[str]:
    known = KNOWN_ENDPOINTS.get(provider_name)
    return [key_variable(provider_name), *(known.other_keys if known else ())]


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
