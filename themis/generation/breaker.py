"""A circuit breaker: sees from a few equal failures that every further call would fail too.

The engine tells it of every finished job and stops when it has tripped.
"""

from __future__ import annotations

import re

from themis.core.entities import ModelError
from themis.generation.attempts import is_retryable

__all__ = ["TRIPS_AFTER", "CircuitBreaker"]

# So many equal permanent failures with no success between them end a run.
TRIPS_AFTER = 5

_UNREACHABLE = ("connection", "proxy")
_KINDS_ABOUT_THE_ROW = ("context_length", "content_filter", "response_too_large")
# Of 400, 413 and 422: what one row is refused for says nothing about the next.
_ABOUT_THE_ROW = re.compile(
    r"context|too (long|large|many)|maximum.{0,20}(length|tokens)|content|policy|filter|moderat|safety|flagged|blocked",
    re.I,
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
        self._had_success = False
        self.tripped_by: ModelError | None = None  # the failure that was one too many

    @property
    def is_calm(self) -> bool:
        """Whether calls may be handed out ahead of their turn: the last ones did not fail for good."""
        return self._trips_after is None or (self._had_success and not self._in_a_row)

    def on_success(self) -> None:
        self._had_success, self._in_a_row = True, 0

    def on_failure(self, error: ModelError) -> None:
        alike = _what_is_alike(error) if _is_permanent(error) else None
        self._in_a_row = 0 if alike is None else self._in_a_row + 1 if alike == self._alike else 1
        self._alike = alike
        if self._trips_after is not None and self._in_a_row >= self._trips_after and self.tripped_by is None:
            self.tripped_by = error


def _is_permanent(error: ModelError) -> bool:
    """Whether the next row would meet the same failure: a key, a model, an address or an option is wrong."""
    # Before the status stands the address, whose words say nothing about the row.
    words = error.message.partition(" answered ")[2] or error.message
    if error.kind in _KINDS_ABOUT_THE_ROW:
        return False
    if error.details.get("status") in (400, 413, 422) and _ABOUT_THE_ROW.search(words):
        return False
    return error.kind in _UNREACHABLE or error.kind == "wait_too_long" or not is_retryable(error)


def _what_is_alike(error: ModelError) -> tuple[object, ...]:
    """Failures for a key, a model or an address may name a request, so they are known by their kind alone."""
    status = error.details.get("status")
    if error.kind in _UNREACHABLE or (isinstance(status, int) and status not in (400, 422)):
        return (error.kind, status)
    return (error.kind, status, _NUMBERS.sub("#", error.message[:300]))
