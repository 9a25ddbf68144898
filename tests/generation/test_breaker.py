"""After which failures a further call would fail too, and after which it may not."""

from __future__ import annotations

import pytest

from themis.core.entities import ModelError
from themis.generation.attempts import TRIPS_AFTER, CircuitBreaker


def failure(
    message: str, kind: str = "bad_request", status: int | None = None, *, retryable: bool = False
) -> ModelError:
    details = {"retryable": retryable} | ({} if status is None else {"status": status})
    return ModelError(f"http://content.example/v1 answered {status}: {message}", kind=kind, details=details)


PERMANENT = {
    "key": failure("Incorrect API key provided", "authentication", 401),
    "permission": failure("not allowed", "permission", 403),
    "model": failure("The model `gpt-9` does not exist", "not_found", 404),
    "redirect": failure("redirects to https://elsewhere", "bad_request", 308),
    "parameter": failure("Unsupported value: 'temperature' does not support 0", "bad_request", 400),
    "unknown field": failure("extra fields not permitted: top_k", "bad_request", 422),
    "refused": failure("cannot be reached", "connection", retryable=True),
    "quota": failure("You exceeded your current quota", "quota_exceeded", 429),
    "day's wait": failure("asks to wait 86,400 s", "wait_too_long", 429, retryable=True),
    "code": ModelError("TypeError: 'NoneType' object is not iterable", details={"retryable": False}),
}
PASSING = {
    "overloaded": failure("overloaded", "server_error", 500, retryable=True),
    "slow": failure("did not answer in time", "timeout", retryable=True),
    "long row": failure("maximum context length is 8192 tokens", "bad_request", 400),
    "long row, told by its code": failure("refused", "context_length", 400),
    "filtered": failure("flagged by our content filter", "bad_request", 400),
    "large": failure("Request too large for the model", "bad_request", 413),
    "deadline": failure("no answer within", "deadline", 503, retryable=True),
}


@pytest.mark.parametrize("error", PERMANENT.values(), ids=PERMANENT)
def test_equal_permanent_failures_in_a_row_trip_it(error):
    breaker = CircuitBreaker()
    for _ in range(TRIPS_AFTER - 1):
        breaker.on_failure(error)
        assert breaker.tripped_by is None
    breaker.on_failure(error)

    assert breaker.tripped_by is error


@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
def test_what_may_pass_or_is_one_row_s_fault_never_does(error):
    breaker = CircuitBreaker()
    for _ in range(100):
        breaker.on_failure(error)

    assert breaker.tripped_by is None


@pytest.mark.parametrize(
    ("error", "trips"),
    [
        (failure("Invalid 'messages'", "bad_request", 400), False),
        (
            ModelError("TypeError: unsupported operand", details={"retryable": False, "exception_type": "TypeError"}),
            False,
        ),
        (
            ModelError(
                "Generation failed for model f after 1 attempt(s): KeyError: 'x'",
                details={"retryable": False, "exception_type": "KeyError"},
            ),
            False,
        ),
        (failure("Your credit balance is too low to access the API", "bad_request", 400), True),
        (failure("API key not valid. Please pass a valid API key.", "bad_request", 400), True),
        (PERMANENT["key"], True),
        (PERMANENT["model"], True),
        (PERMANENT["refused"], True),
    ],
)
def test_where_others_were_answered_a_refused_request_is_its_rows_fault(error, trips):
    """A run that is gone on with asks first what was refused before, and a batch gives back all refusals together."""
    breaker = CircuitBreaker()
    breaker.note_answers()
    for _ in range(TRIPS_AFTER):
        breaker.on_failure(error)

    assert (breaker.tripped_by is error) == trips


def test_a_success_between_starts_the_count_anew():
    breaker = CircuitBreaker()
    for _ in range(20):
        for _ in range(TRIPS_AFTER - 1):
            breaker.on_failure(PERMANENT["key"])
        breaker.on_success()

    assert breaker.tripped_by is None


def test_different_refusals_are_the_rows_and_not_the_runs():
    breaker = CircuitBreaker()
    for row in "abcdefghij":
        breaker.on_failure(failure(f"field {row!r} is not valid here", "bad_request", 400))

    assert breaker.tripped_by is None


def test_refusals_that_differ_in_a_request_s_number_are_equal():
    breaker = CircuitBreaker()
    for number in range(TRIPS_AFTER):
        breaker.on_failure(failure(f"Unknown parameter: 'seed' (request req_{number:08x}f)", "bad_request", 400))

    assert breaker.tripped_by is not None


def test_calls_are_not_handed_out_ahead_until_one_has_succeeded():
    breaker = CircuitBreaker()
    assert not breaker.is_calm
    breaker.on_success()
    assert breaker.is_calm
    breaker.on_failure(PERMANENT["key"])
    assert not breaker.is_calm


def test_it_can_be_told_to_keep_going():
    breaker = CircuitBreaker(None)
    for _ in range(50):
        breaker.on_failure(PERMANENT["key"])

    assert breaker.tripped_by is None
    assert breaker.is_calm
