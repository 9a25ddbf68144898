"""Decides how a call is made and what to do after it: is it finished, does trying again make sense and when, would every
other call fail too?

Nothing here acts: the engine does what comes out.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from themis.core.codec import encode
from themis.core.continuations import CONTINUATIONS, check_likelihoods
from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelError,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    SamplingConfig,
    ToolCall,
)
from themis.core.user_code import format_error
from themis.exceptions import ProviderCallError
from themis.generation.limits import LONGEST_WAIT_SECONDS
from themis.interfaces import StatelessTaskExecutor

_TRANSIENT_STATUS = {408, 409, 425, 429}
_FINAL_WORDS = (
    *("authentication", "api_key", "api key", "invalid_request", "badrequest", "bad request", "permission"),
    *("unauthorized", "forbidden", "not_found"),
)
# Mistakes in a provider's own code come back the same every time.
_CODE_ERRORS = (TypeError, AttributeError, NameError, NotImplementedError, ImportError, SyntaxError)


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How often, and how patiently. `attempts` is the total number of calls for one answer, at least one."""

    attempts: int = 3
    first_delay_seconds: float = 0.5
    factor: float = 2.0
    longest_delay_seconds: float = 30.0
    # Being told to slow down is not a failure of the call, so it has an allowance of its own.
    rate_limited_attempts: int = 12
    # Nor is the loss of the process that made it: the answer may have come, but nobody saw it.
    lost_attempts: int = 3


class Request(msgspec.Struct, eq=False):
    """One answer to get, and what has become of it so far: the state of its retries."""

    position: int
    attempt: int
    key: str
    task: GenerationTask
    # For the call under way.
    timeout_seconds: float = 0.0
    # When the first call was started (monotonic seconds); 0 where there is no deadline.
    began: float = 0.0
    # What the last call gave: a record, an exception, or something else that a provider returned.
    reply: object = None
    reply_seconds: float = 0.0
    # Calls that were answered or failed, were rate limited, and whose process was lost.
    tries: int = 0
    rate_limited: int = 0
    lost: int = 0
    # What all calls took together.
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    # The dollars that calls say they cost; None where none says so.
    told_usd: float | None = None
    errors: list[dict[str, object]] | None = None
    last_error: str = ""
    # Whether the last call took too long, so that nobody knows what became of it.
    is_unheard: bool = False
    # Of the tokens a minute: what was taken for the call under way.
    estimated_tokens: int = 0
    # How often the provider asked for a longer wait than the deadline leaves.
    asked_too_long: int = 0
    # Whether the call under way is in a batch, in how many batches it was, and the tokens that those took.
    in_batch: bool = False
    batches: int = 0
    batch_prompt_tokens: int = 0
    batch_completion_tokens: int = 0

    @property
    def calls(self) -> int:
        return self.tries + self.rate_limited + self.lost

    def note_error(self, error: ModelError) -> None:
        """Keeps what went wrong with the last call."""
        self.last_error = f"{error.kind}: {error.message[:120]}"
        self.is_unheard = is_unheard(error)
        self.errors = self.errors or []
        self.errors.append(
            {"attempt": self.calls, "error": error.message[:500], "exception_type": error.details.get("exception_type")}
        )


# In place of a request: there is none now, but there will be.
PENDING = Request(-1, -1, "", GenerationTask(PromptRender(PromptSpec("", ""), ""), ModelSpec("", ""), SamplingConfig()))


# --- which method of a provider a task is for ---------------------------------------------------------------------------

Call = Callable[[GenerationTask], object]


def provider_call(executor: StatelessTaskExecutor) -> Call:
    """What makes the call of a task; a coroutine comes out where `execute` is async."""
    execute, score = executor.execute, find_scorer(executor)
    if score is None:
        return execute

    def call(task: GenerationTask) -> object:
        return execute(task) if task.metadata.get(CONTINUATIONS) is None else score(task)

    return call


def find_scorer(executor: StatelessTaskExecutor) -> Call | None:
    """The provider's method that scores continuations; None where it has none, or its endpoint only chats."""
    score = getattr(executor, "score_continuations", None)
    return score if callable(score) and not getattr(executor, "chat_only", False) else None


def explain_no_scorer(model: str) -> str:
    """Why rows with `continuations` cannot go to a model, and to which ones they can."""
    return (
        f"{model} gives no log-probabilities of `continuations`; local models (local/NAME), servers of text "
        "completions with echo (vllm/NAME, llamacpp/NAME, or openai_compatible/NAME with base_url) and fake/likelihood do"
    )


# --- what a reply means --------------------------------------------------------------------------------------------------


def error_from(error: BaseException) -> ModelError:
    """An exception of a provider as data."""
    details: dict[str, object] = {"exception_type": type(error).__name__}
    kind = "provider_error"
    if isinstance(error, ProviderCallError):
        kind = error.kind
        optional = {
            "status": error.status,
            "retry_after_seconds": error.retry_after_seconds,
            "retryable": error.retryable,
        }
        details.update({name: value for name, value in optional.items() if value is not None})
        return ModelError(message=str(error), kind=kind, details=details)
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        kind = "timeout"
    elif isinstance(error, _CODE_ERRORS):
        details["retryable"] = False
    return ModelError(message=format_error(error), kind=kind, details=details)


def is_retryable(error: ModelError) -> bool:
    said = error.details.get("retryable")
    if isinstance(said, bool):
        return said
    status = error.details.get("status")
    if isinstance(status, int):
        return status in _TRANSIENT_STATUS or status >= 500
    folded = error.message.casefold()
    return not any(word in folded for word in _FINAL_WORDS)


def is_rate_limit(error: ModelError) -> bool:
    return error.details.get("status") == 429 or error.kind == "rate_limited"


def is_lost(error: ModelError) -> bool:
    return error.kind == "worker_lost"


def is_unheard(error: ModelError) -> bool:
    """It took too long here: whoever was asked may have answered all the same, and be paid for that."""
    return error.kind == "timeout" and error.details.get("status") is None


# The kind of an item's error that its batch ended before it was asked.
UNTRIED = "batch_unanswered"


def is_untried(error: ModelError) -> bool:
    """Nobody has asked the model, so it counts as no call."""
    return error.kind == UNTRIED


def retry_delay(error: ModelError, request: Request, retry: Retry, chance: random.Random) -> float | None:
    """Seconds of backoff before the next call, or None when this error is final."""
    if is_lost(error):
        # Apart from those it was with: one of them may be what ends the process.
        if request.lost > retry.lost_attempts:
            return None
        return (request.lost - 1 + chance.random()) * retry.first_delay_seconds
    if is_untried(error):
        return 0.0
    if not is_retryable(error):
        return None
    limited = is_rate_limit(error)
    made = request.rate_limited if limited else request.tries
    if made > retry.rate_limited_attempts if limited else made >= max(1, retry.attempts):
        return None
    asked = error.details.get("retry_after_seconds")
    if isinstance(asked, int | float) and asked >= 0:
        return min(float(asked), LONGEST_WAIT_SECONDS)
    delay = min(retry.longest_delay_seconds, retry.first_delay_seconds * retry.factor ** max(0, made - 1))
    # Half of the delay is random, so that callers turned away together do not come back together.
    return delay * (0.5 + chance.random() / 2)


def final_error(task: GenerationTask, error: ModelError, calls: int) -> ModelError:
    return ModelError(
        message=f"Generation failed for model {task.model.model_key} after {calls} attempt(s): {error.message}",
        kind=error.kind,
        details={
            **error.details,
            "attempts": calls,
            "model": task.model.identifier,
            "provider": task.model.provider,
        },
    )


def own_words(error: ModelError) -> str:
    """What the provider said, without what `final_error` put before it."""
    return error.message.partition(" attempt(s): ")[2] or error.message


def record_of(result: object, task: GenerationTask) -> GenerationRecord:
    """What a call gave, as a record: what the provider returned or raised."""
    if not isinstance(result, BaseException):
        try:
            record = _check_record(result)
            if record.error is None and task is not None and task.metadata.get(CONTINUATIONS) is not None:
                check_likelihoods(record.output, task)
            return record
        except ProviderCallError as unusable:
            result = unusable
    return GenerationRecord(task=task, output=None, error=error_from(result), metrics=_read_cost(result))


def _read_cost(error: BaseException) -> dict[str, object]:
    """What a call took that failed, where that is told."""
    if not isinstance(error, ProviderCallError):
        return {}
    told = {"usage": error.usage, "told_usd": error.cost_usd}
    return {name: value for name, value in told.items() if value is not None}


def _check_record(record: object) -> GenerationRecord:
    if not isinstance(record, GenerationRecord):
        raise ProviderCallError(
            f"the provider returned {type(record).__name__}, expected "
            "GenerationRecord(task=task, output=ModelOutput(text=...), error=None)",
            kind="invalid_response",
            retryable=False,
        )
    if record.error is None and (record.output is None or not isinstance(record.output.text, str)):
        raise ProviderCallError("the provider returned neither an output text nor an error", kind="empty_response")
    output = record.output
    if output is None:
        return record
    if flaw := _find_flaw(output) or _find_unstorable(output, record.metrics):
        raise _fail(output, f"the provider returned {flaw}", kind="invalid_response", retryable=False)
    if output.finish_reason == "error":
        # As gateways say it that have sent some of an answer, or none, before whoever writes it broke off.
        what = f"the answer was ended by an error after {output.text[:200]!r}"
        raise _fail(output, what, kind="server_error", retryable=True)
    if output.finish_reason == "content_filter" and not (
        output.text.strip() or output.refusal or output.tool_calls or output.parts
    ):
        raise _fail(output, "the answer was taken whole by a content filter", kind="content_filter", retryable=False)
    return record


def _fail(output: ModelOutput, what: str, *, kind: str, retryable: bool) -> ProviderCallError:
    """The error of an answer that is none, which may have cost something all the same."""
    usage = output.usage if isinstance(output.usage, dict) and not _find_bad_count(output.usage) else None
    cost = None if _find_bad_cost(output.cost_usd) else output.cost_usd
    return ProviderCallError(what, kind=kind, retryable=retryable, usage=usage, cost_usd=cost)


def _find_flaw(output: ModelOutput) -> str:
    """What about an output could not be stored and read again; empty where nothing is wrong."""
    # Most answers are a text alone, and are looked at no further.
    if (
        output.reasoning is None
        and output.refusal is None
        and output.cost_usd is None
        and not (output.tool_calls or output.parts or output.transcript)
    ):
        usage, reason = output.usage, output.finish_reason
        if usage is None and (reason is None or isinstance(reason, str)):
            return ""
    for name, kinds, expected in _FIELDS_OF_OUTPUT:
        if (value := getattr(output, name)) is not None and not isinstance(value, kinds):
            return f"{name} of the type {type(value).__name__}, which is {expected}"
    if flaw := _find_bad_cost(output.cost_usd) or _find_bad_count(output.usage or {}):
        return flaw
    for name, kind, expected in _PARTS_OF_OUTPUT:
        if (parts := getattr(output, name)) and not (
            isinstance(parts, list | tuple) and all(isinstance(one, kind) for one in parts)
        ):
            return f"{name} that are not {expected}: {str(parts)[:200]}"
    return ""


def _find_bad_cost(cost: object) -> str:
    is_amount = cost is None or (isinstance(cost, int | float) and 0 <= cost < math.inf)
    return "" if is_amount else f"cost_usd={cost}, which is a number of dollars"


def _find_bad_count(usage: Mapping[str, object]) -> str:
    for name in _COUNTS:
        count = usage.get(name)
        if count is not None and not (isinstance(count, int | float) and 0 <= count < math.inf):
            return f"usage[{name!r}]={str(count)[:50]!r}, which is a number of tokens"
    return ""


def _find_unstorable(output: ModelOutput, metrics: Mapping[str, object]) -> str:
    """What of an answer has no form in JSON: found here it fails one sample, and in the store the whole run."""
    for name in (*_STORED_PARTS, "metrics"):
        value = metrics if name == "metrics" else getattr(output, name)
        if value is None or (isinstance(value, tuple | dict) and not value):
            continue
        try:
            encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            return f"{name} that cannot be stored: {error}"
    return ""


_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens")
_STORED_PARTS = ("raw", "usage", "logprobs", "tool_calls", "parts", "transcript")
_FIELDS_OF_OUTPUT = (
    ("reasoning", str, "a text or None"),
    ("refusal", str, "a text or None"),
    ("finish_reason", str, "a text or None"),
    ("usage", dict, "a dict with prompt_tokens and completion_tokens"),
    ("cost_usd", (int, float), "a number or None"),
)
_PARTS_OF_OUTPUT = (
    ("tool_calls", ToolCall, "of the type ToolCall"),
    ("parts", dict, "parts of a message"),
    ("transcript", dict, "messages"),
)


# --- the circuit breaker -----------------------------------------------------------------------------------------------

# So many equal permanent failures with no success between them end a run.
TRIPS_AFTER = 5

_UNREACHABLE = ("connection", "proxy")
_KINDS_ABOUT_THE_ROW = ("context_length", "content_filter", "response_too_large")
_REFUSED = (400, 413, 422)
# Of these: what one row is refused for says nothing about the next.
_ABOUT_THE_ROW = re.compile(
    r"context|too (long|large|many)|maximum.{0,20}(length|tokens)|content|policy|filter|moderat|safety|flagged|blocked",
    re.I,
)
# Of the same, where others were answered: what every row would be refused for from then on.
_ABOUT_ALL = re.compile(
    r"credit|billing|balance|payment|quota|\bkey\b|account|organi[sz]ation|model|deploy|expired|permission|token", re.I
)
_NUMBERS = re.compile(r"[0-9a-f]*\d[0-9a-f]*", re.I)


class CircuitBreaker:
    """Counts equal permanent failures in a row.

    Args:
        trips_after: How many of them trip it; None for never.
    """

    def __init__(self, trips_after: int | None = TRIPS_AFTER) -> None:
        self._trips_after = trips_after
        self._alike: tuple[object, ...] | None = None
        self._in_a_row = 0
        self._had_success = self._has_answers = False
        self.tripped_by: ModelError | None = None  # the failure that was one too many

    @property
    def is_calm(self) -> bool:
        """Whether calls may be handed out ahead of their turn: the last ones did not fail for good."""
        return self._trips_after is None or (self._had_success and not self._in_a_row)

    def on_success(self) -> None:
        self._had_success, self._in_a_row = True, 0

    def note_answers(self) -> None:
        """Others of the run were answered before, or beside these, whose order is not that of the calls.

        What a request is refused for then lies in its row, unless it is about the account or the model.
        """
        self._has_answers = True

    def on_failure(self, error: ModelError) -> None:
        is_counted = _is_permanent(error) and not (self._has_answers and _is_about_request(error))
        alike = _what_is_alike(error) if is_counted else None
        self._in_a_row = 0 if alike is None else self._in_a_row + 1 if alike == self._alike else 1
        self._alike = alike
        if self._trips_after is not None and self._in_a_row >= self._trips_after and self.tripped_by is None:
            self.tripped_by = error


def _is_permanent(error: ModelError) -> bool:
    """Whether the next row would meet the same failure: a key, a model, an address or an option is wrong."""
    if error.kind in _KINDS_ABOUT_THE_ROW:
        return False
    if error.details.get("status") in _REFUSED and _ABOUT_THE_ROW.search(_words_of(error)):
        return False
    return error.kind in _UNREACHABLE or error.kind == "wait_too_long" or not is_retryable(error)


def _is_about_request(error: ModelError) -> bool:
    """Whether a request was refused, or broke the code that was to answer it: not whoever makes it."""
    status = error.details.get("status")
    is_code = status is None and "exception_type" in error.details and error.kind not in _UNREACHABLE
    return (is_code or status in _REFUSED) and not _ABOUT_ALL.search(_words_of(error))


def _words_of(error: ModelError) -> str:
    """What was said; before it stand the model and the address, whose words say nothing about the row."""
    said = own_words(error)
    return said.partition(" answered ")[2] or said


def _what_is_alike(error: ModelError) -> tuple[object, ...]:
    """Failures for a key, a model or an address may name a request, so they are known by their kind alone."""
    status = error.details.get("status")
    if error.kind in _UNREACHABLE or (isinstance(status, int) and status not in (400, 422)):
        return (error.kind, status)
    return (error.kind, status, _NUMBERS.sub("#", error.message[:300]))
