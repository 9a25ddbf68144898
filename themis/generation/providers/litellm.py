"""Everything else: the vendors that litellm knows, through litellm."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from themis.core.entities import GenerationRecord, GenerationTask
from themis.core.redaction import Redactor
from themis.exceptions import DependencyError, ProviderCallError
from themis.generation.providers.chat import Completion, completion_fields, read_completion
from themis.generation.providers.endpoints import LITELLM_VENDORS, suggest_alternative
from themis.generation.providers.http import retry_after_seconds
from themis.interfaces import StatelessTaskExecutor

_LONGEST_MESSAGE = 500


class LiteLLM(StatelessTaskExecutor):
    """One `acompletion` for each task, with litellm's own retries off.

    Options that are not named here (`region_name`, `custom_llm_provider`, ...) are passed on to litellm as they are.
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
        model_identifier: str = "",
        **passed_on: Any,
    ) -> None:
        if importlib.util.find_spec("litellm") is None:
            raise _missing(model_identifier)
        address = api_base or base_url
        self._system_prompt = system_prompt
        self._seed = seed
        self._always = {"timeout": timeout, "num_retries": 0, "max_retries": 0, "drop_params": True, **passed_on}
        self._always |= {"api_key": api_key} if api_key else {}
        self._always |= {"api_base": address} if address else {}
        self._redactor = Redactor({"api_key": api_key or "", "api_base": address or "", **passed_on})
        self._litellm: Any = None
        digest = hashlib.sha256(api_key.encode()).hexdigest()[:12] if api_key else "key-of-environment"
        self.account = f"{address or 'litellm'}#{digest}"

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        litellm = self._litellm or await self._imported()
        try:
            answer = await litellm.acompletion(**self._request(task))
        except Exception as error:  # boundary: litellm raises what its vendors' clients raise
            raise self._failure(error) from error
        return self._record(task, answer)

    async def _imported(self) -> Any:
        # Seconds of importing, which the other calls on this loop should not wait for.
        self._litellm = await asyncio.to_thread(_import_litellm)
        return self._litellm

    def _request(self, task: GenerationTask) -> dict[str, object]:
        fields = completion_fields(task, system_prompt=self._system_prompt, seed=self._seed)
        return {**fields, **self._always}

    def _record(self, task: GenerationTask, given: object) -> GenerationRecord:
        try:
            answer = msgspec.convert(given, Completion, from_attributes=True, strict=False)
        except msgspec.ValidationError as error:
            raise _fail(f"did not answer with a chat completion ({error})", kind="invalid_response") from error
        if not answer.choices:
            raise _fail("returned no choices", kind="empty_response")
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
    if model.partition("/")[0] in LITELLM_VENDORS:
        needed = DependencyError.for_extra("litellm", "litellm", f"the model {model!r}")
        return DependencyError(f"{needed}; {suggest_alternative(model)}")
    example = f" (or name the provider, such as openai/{model})" if model else ""
    return DependencyError.for_extra("litellm", "litellm", f"a model without a provider of its own{example}")


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
