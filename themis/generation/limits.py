"""How many calls may be under way, and how soon the next may start, for one account at one provider.

A state machine over a clock that the caller reads: nothing here sleeps. The number of concurrent calls grows by one for every
full round of good answers and is halved when the provider says that it is too much (AIMD). What the user knows of the account
(requests and tokens per minute) is a `TokenBucket`; processes of one user that name the same limit for the same account take
from the same bucket.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from themis.core.files import cache_folder

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

# Whatever a provider asks for, nothing is sent for at most this long; then it is asked again.
LONGEST_WAIT_SECONDS = 60.0
_BURST_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class RateLimit:
    """What the user knows of the account; None where the provider's answers are to tell."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class Limiter:
    """Says when the next call may start.

    Args:
        most: Calls at once, at most.
        rate: What the account allows a minute.
        account: Names the account, so that other processes of this user are counted too; empty for this process alone.
        folder: Where the processes' common buckets are; the user's cache by default.
        longest_wait_seconds: How long nothing is sent at most, whatever the provider asks for.
    """

    def __init__(
        self,
        most: int,
        rate: RateLimit | None = None,
        *,
        account: str = "",
        folder: Path | None = None,
        longest_wait_seconds: float = LONGEST_WAIT_SECONDS,
    ) -> None:
        self.most = max(1, most)
        self._longest_wait_seconds = longest_wait_seconds
        self.rate = rate or RateLimit()
        self._limit = float(self.most)
        self._break = _break_of(account)
        self._halved_at = float("-inf")
        self._requests = _bucket("requests", self.rate.requests_per_minute, account, folder)
        self._tokens = _bucket("tokens", self.rate.tokens_per_minute, account, folder)

    @property
    def limit(self) -> int:
        """How many calls may be under way now."""
        return max(1, int(self._limit))

    @property
    def resume_at(self) -> float:
        """The moment before which nothing may be sent."""
        return self._break.until

    @property
    def counts_tokens(self) -> bool:
        """Whether a call's size in tokens matters here."""
        return self.rate.tokens_per_minute is not None

    def wait(self, now: float, tokens: int = 0) -> float:
        """Seconds until a call of that size may start; starting it is then noted with `started`."""
        return max(self._break.until - now, self._requests.wait(now, 1), self._tokens.wait(now, tokens), 0.0)

    def started(self, now: float, tokens: int = 0) -> None:
        self._requests.take(now, 1)
        self._tokens.take(now, tokens)

    def used(self, now: float, tokens: int, *, estimated: int) -> None:
        """What a call really used takes the place of what was estimated when it started."""
        self._tokens.take(now, tokens - estimated)

    def on_success(self) -> None:
        """A good answer: allow a little more, up to what was asked for."""
        if self._limit < self.most:
            self._limit = min(self.most, self._limit + 1 / self._limit)

    def on_rate_limited(self, now: float, retry_after_seconds: float | None) -> None:
        """The provider said it is too much. Answers to calls sent before the last halving do not halve again."""
        if now - self._halved_at > 1.0:
            self._limit = max(1.0, self._limit / 2)
            self._halved_at = now
        if retry_after_seconds:
            self._pause(now, retry_after_seconds)

    def on_quota_headers(self, now: float, quota: Mapping[str, object]) -> None:
        """Quota headers of an answer: stop before the provider has to say so."""
        reset = quota.get("reset_seconds")
        for name in ("remaining_requests", "remaining_tokens"):
            remaining = quota.get(name)
            if isinstance(remaining, int | float) and remaining <= 0 and isinstance(reset, int | float):
                self._pause(now, float(reset))

    def reason(self, now: float) -> str:
        """Why nothing may be sent now, in words for the user."""
        if self._break.until > now:
            return "the provider asked for it"
        return " and ".join(
            f"{name}={value:g}"
            for name, value in (
                ("requests_per_minute", self.rate.requests_per_minute),
                ("tokens_per_minute", self.rate.tokens_per_minute),
            )
            if value is not None
        )

    def _pause(self, now: float, seconds: float) -> None:
        self._break.until = max(self._break.until, now + min(seconds, self._longest_wait_seconds))


class _Break:
    """Until when nothing is sent to an account: what one run is told by the provider, all runs of this process hear."""

    def __init__(self) -> None:
        self.until = 0.0


_breaks: WeakValueDictionary[str, _Break] = WeakValueDictionary()
_breaks_lock = threading.Lock()


def _break_of(account: str) -> _Break:
    with _breaks_lock:
        return _breaks.setdefault(account, _Break()) if account else _Break()


class _Bucket(Protocol):
    def wait(self, now: float, amount: float) -> float:
        """Seconds until so much may be taken."""

    def take(self, now: float, amount: float) -> None: ...


def _bucket(what: str, per_minute: float | None, account: str, folder: Path | None) -> _Bucket:
    if per_minute is None:
        return _Unlimited()
    level: _Level = _Level()
    if account and fcntl is not None:
        with suppress(OSError):  # nowhere to keep it: this process is limited by itself
            level = _SharedLevel(f"{account} {what} {per_minute:g}", folder or cache_folder("limits"))
    per_second = max(per_minute, 1e-9) / 60
    return TokenBucket(per_second, max(1.0, per_second * _BURST_SECONDS), level)


class _Unlimited:
    def wait(self, now: float, amount: float) -> float:
        return 0.0

    def take(self, now: float, amount: float) -> None:
        pass


class TokenBucket:
    """A rate limit that allows bursts.

    Args:
        per_second: How fast it refills.
        burst: How much it holds; so much may be taken at once.
        level: Where it is kept how full it is, if other processes take from it too.

    >>> bucket = TokenBucket(per_second=2, burst=1)
    >>> bucket.take(now=0.0, amount=1)
    >>> bucket.wait(now=0.1, amount=1)
    0.4
    """

    def __init__(self, per_second: float, burst: float, level: _Level | None = None) -> None:
        self._per_second = per_second
        self._most = burst
        self._level = level or _Level()

    def wait(self, now: float, amount: float) -> float:
        with self._level as level:
            # An amount beyond the bucket's size waits for a full bucket; it will be overdrawn.
            missing = min(amount, self._most) - self._refilled(level, now)
        return max(0.0, missing / self._per_second)

    def take(self, now: float, amount: float) -> None:
        with self._level as level:
            have = self._refilled(level, now)
            at = level.read()[1]
            # Another process may have been here since the caller looked at the clock.
            level.write(have - amount, now if self._is_new(at, now) else max(now, at or now))

    def _refilled(self, level: _Level, now: float) -> float:
        have, at = level.read()
        if self._is_new(at, now):
            return self._most
        return min(self._most, have + max(0.0, now - (at or now)) * self._per_second)

    def _is_new(self, at: float | None, now: float) -> bool:
        """Nobody has been here since the machine was started: its clock begins anew then."""
        return at is None or at - now > LONGEST_WAIT_SECONDS


class _Level:
    """How full a bucket was, and when."""

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = (0.0, None)

    def __enter__(self) -> _Level:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self) -> tuple[float, float | None]:
        return self._state

    def write(self, have: float, at: float) -> None:
        self._state = (have, at)


class _SharedLevel(_Level):
    """The same in a file of the user's, locked while it is looked at. The clock is the machine's, the same for all processes."""

    _FORMAT = struct.Struct("<dd")

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> _Level:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self._file)

    def read(self) -> tuple[float, float | None]:
        data = os.pread(self._file, self._FORMAT.size, 0)
        return self._FORMAT.unpack(data) if len(data) == self._FORMAT.size else (0.0, None)

    def write(self, have: float, at: float) -> None:
        os.pwrite(self._file, self._FORMAT.pack(have, at), 0)
