"""Everything else: the vendors that litellm knows, through litellm."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from themis.core.entities import GenerationRecord, GenerationTask, SamplingConfig
from themis.core.redaction import Redactor
from themis.exceptions import DependencyError, ProviderCallError
from themis.generation.providers.chat import Completion, completion_fields, read_completion, read_usage
from themis.generation.providers.endpoints import suggest_alternative
from themis.generation.providers.http import retry_after_seconds
from themis.generation.providers.parameters import ProviderParameters, Wishes
from themis.generation.providers.reasoning import FORMS, Wanted
from themis.interfaces import StatelessTaskExecutor

_LONGEST_MESSAGE = 500


class LiteLLM(StatelessTaskExecutor):
    """One `acompletion` for each task, with litellm's own retries off.

    Options that are not named here (`region_name`, `custom_llm_provider`, ...) are passed on to litellm as they are. What a model
    is known to refuse is left out before litellm sees it, and said; what litellm itself leaves out it does not tell, so with
    `strict_parameters` it may not.
    """

    prompt_only = True

    def __init__(
        self,
        *,
        api_key: str | None = None,
        api_base: str | None = None,
        base_url: str | None = None,
        timeout: float = 600.0,
        system_prompt: str | None = None,
        seed: int | None = None,
        reasoning_effort: str | None = None,
        thinking_budget: int | None = None,
        strict_parameters: bool = False,
        model_identifier: str = "",
        asked_parameters: Collection[str] = (),
        **passed_on: object,
    ) -> None:
        if importlib.util.find_spec("litellm") is None:
            raise _missing(model_identifier)
        address = api_base or base_url
        self._system_prompt = system_prompt
        self._seed = seed
        drop = not strict_parameters
        self._always = {"timeout": timeout, "num_retries": 0, "max_retries": 0, "drop_params": drop, **passed_on}
        self._always |= {"api_key": api_key} if api_key else {}
        self._always |= {"api_base": address} if address else {}
        self._redactor = Redactor({"api_key": api_key or "", "api_base": address or "", **passed_on})
        self._litellm: Any = None
        digest = hashlib.sha256(api_key.encode()).hexdigest()[:12] if api_key else "key-of-environment"
        self.account = f"{address or 'litellm'}#{digest}"
        wishes = Wishes(
            reasoning=Wanted(effort=reasoning_effort, budget_tokens=thinking_budget),
            is_strict=strict_parameters,
            asked=asked_parameters,
            untouchable=passed_on,
        )
        self._parameters = ProviderParameters("litellm", FORMS["litellm"], wishes)
        # What was sent beside messages and tools, and what was not, or not as it was meant, and why.
        self.sent_parameters, self.left_out = self._parameters.sent, self._parameters.left_out

    def check_sampling(self, model: str, sampling: SamplingConfig) -> None:
        """Raises where `strict_parameters` are asked for and the model is known not to take one."""
        self._parameters.check(model, sampling, self._seed)

    def added_tokens(self, model: str) -> int:
        """By how many tokens an answer may be longer than `max_tokens`."""
        return self._parameters.of(model).added_tokens

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        request = self._request(task)
        try:
            answer = await self._complete(request)
        except ProviderCallError as error:
            answer = await self._parameters.ask_again(
                error,
                request,
                model=task.model.identifier,
                make=lambda: self._request(task),
                post=self._complete,
                read=lambda sent: sent,
            )
        return self._record(task, answer)

    async def _complete(self, request: dict[str, object]) -> object:
        litellm = self._litellm or await self._imported()
        try:
            return await litellm.acompletion(**request)
        except Exception as error:  # boundary: litellm raises what its vendors' clients raise
            raise self._failure(error) from error

    async def _imported(self) -> Any:
        # Seconds of importing, which the other calls on this loop should not wait for.
        self._litellm = await asyncio.to_thread(_import_litellm)
        return self._litellm

    def _request(self, task: GenerationTask) -> dict[str, object]:
        known = self._parameters.of(task.model.identifier)
        fields = completion_fields(
            task, system_prompt=self._system_prompt, seed=self._seed, limit_field=known.limit_field
        )
        if not known.is_plain:
            known.fit(fields)
        if not known.is_noted:
            known.note(fields)
        return {**fields, **self._always}

    def _record(self, task: GenerationTask, given: object) -> GenerationRecord:
        try:
            answer = msgspec.convert(given, Completion, from_attributes=True, strict=False)
        except msgspec.ValidationError as error:
            raise _fail(f"did not answer with a chat completion ({error})", kind="invalid_response") from error
        if not answer.choices:
            silent = _fail("returned no choices", kind="empty_response")
            silent.usage = read_usage(answer.usage)
            raise silent
        return GenerationRecord(task=task, output=read_completion(answer, _fail), error=None)

    def _failure(self, error: Exception) -> ProviderCallError:
        status = getattr(error, "status_code", None)
        status = status if isinstance(status, int) else None
        kind, retryable = _meaning(type(error).__name__, status)
        message = self._redactor.text(" ".join(f"{type(error).__name__}: {error}".split()))
        return ProviderCallError(
            message[:_LONGEST_MESSAGE],
            kind=kind,
            status=status,
            retry_after_seconds=_retry_after(error),
            retryable=retryable,
        )


def _fail(what: str, *, kind: str, retryable: bool = True) -> ProviderCallError:
    return ProviderCallError(f"litellm {what}", kind=kind, retryable=retryable)


def _missing(model: str) -> DependencyError:
    needed = DependencyError.for_extra("litellm", "litellm", f"the model {model!r}" if model else "litellm's provider")
    if "/" in model:
        return DependencyError(f"{needed}; {suggest_alternative(model)}")
    if model:
        return DependencyError(
            f"{model!r} names no provider: write who serves it, such as openai/{model}; as it is, {needed}"
        )
    return needed


def _import_litellm() -> Any:
    # Without it litellm asks a server on the internet for prices while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    return litellm


# litellm's own exceptions, some of which share a status.
_MEANINGS = {
    "AuthenticationError": ("authentication", False),
    "PermissionDeniedError": ("permission", False),
    "NotFoundError": ("not_found", False),
    "ContextWindowExceededError": ("context_length", False),
    "ContentPolicyViolationError": ("content_filter", False),
    "BadRequestError": ("bad_request", False),
    "UnprocessableEntityError": ("bad_request", False),
    "UnsupportedParamsError": ("bad_request", False),
    "RateLimitError": ("rate_limited", True),
    "Timeout": ("timeout", True),
    "APIConnectionError": ("connection", True),
    "InternalServerError": ("server_error", True),
    "ServiceUnavailableError": ("server_error", True),
}


def _meaning(name: str, status: int | None) -> tuple[str, bool | None]:
    if name in _MEANINGS:
        return _MEANINGS[name]
    if status is None:
        return "provider_error", None
    return ("server_error", True) if status >= 500 else ("bad_request", status in {408, 409, 429})


def _retry_after(error: Exception) -> float | None:
    """From the headers, which litellm keeps in one of two places."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        if isinstance(headers, Mapping) and headers:
            return retry_after_seconds(headers)
    return None
