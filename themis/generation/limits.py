"""How many calls may be under way, and how soon the next may start, for one account at one provider.

A pure state machine over a clock that the caller reads: nothing here sleeps or locks. The number of concurrent calls grows by
one for every full round of good answers and is halved when the provider says that it is too much (AIMD).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Limiter", "RateLimit"]


@dataclass(frozen=True, kw_only=True)
class RateLimit:
    """What the user knows of the account; None where the provider's answers are to tell."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class Limiter:
    def __init__(self, most: int, rate: RateLimit | None = None) -> None:
        self.most = max(1, most)
        self._limit = float(self.most)
        self._resume_at = 0.0
        self._halved_at = float("-inf")
        rate = rate or RateLimit()
        self._requests = _Bucket(rate.requests_per_minute)
        self._tokens = _Bucket(rate.tokens_per_minute)

    @property
    def limit(self) -> int:
        """How many calls may be under way now."""
        return max(1, int(self._limit))

    @property
    def resume_at(self) -> float:
        """The moment before which nothing may be sent."""
        return self._resume_at

    def wait(self, now: float, tokens: int = 0) -> float:
        """Seconds until a call of that size may start; starting it is then noted with `started`."""
        return max(
            self._resume_at - now, self._requests.wait(now, 1), self._tokens.wait(now, tokens) if tokens else 0.0, 0.0
        )

    def started(self, now: float, tokens: int = 0) -> None:
        self._requests.take(now, 1)
        self._tokens.take(now, tokens)

    def answered(self) -> None:
        """A good answer: allow a little more, up to what was asked for."""
        if self._limit < self.most:
            self._limit = min(self.most, self._limit + 1 / self._limit)

    def turned_away(self, now: float, retry_after_seconds: float | None) -> None:
        """The provider said it is too much. Answers to calls sent before the last halving do not halve again."""
        if now - self._halved_at > 1.0:
            self._limit = max(1.0, self._limit / 2)
            self._halved_at = now
        if retry_after_seconds:
            self._resume_at = max(self._resume_at, now + retry_after_seconds)

    def told(self, now: float, quota: Mapping[str, Any]) -> None:
        """Quota headers of an answer: stop before the provider has to say so."""
        reset = quota.get("reset_seconds")
        for name in ("remaining_requests", "remaining_tokens"):
            remaining = quota.get(name)
            if isinstance(remaining, int | float) and remaining <= 0 and isinstance(reset, int | float):
                self._resume_at = max(self._resume_at, now + min(float(reset), 60.0))


class _Bucket:
    """A budget per minute that refills steadily and holds at most ten seconds' worth for a burst."""

    def __init__(self, per_minute: float | None) -> None:
        self._per_second = None if per_minute is None else max(per_minute, 1e-9) / 60
        self._most = 0.0 if self._per_second is None else max(1.0, self._per_second * 10)
        self._have = self._most
        self._at: float | None = None

    def wait(self, now: float, amount: float) -> float:
        if self._per_second is None:
            return 0.0
        self._refill(now)
        # An amount beyond the bucket's size waits for a full bucket; it will be overdrawn.
        missing = min(amount, self._most) - self._have
        return max(0.0, missing / self._per_second)

    def take(self, now: float, amount: float) -> None:
        if self._per_second is not None:
            self._refill(now)
            self._have -= amount

    def _refill(self, now: float) -> None:
        assert self._per_second is not None
        if self._at is not None:
            self._have = min(self._most, self._have + (now - self._at) * self._per_second)
        self._at = now
