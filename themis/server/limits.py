"""How often a client may ask: a bucket for each address that fills at a steady rate."""

from __future__ import annotations

import time
from collections import OrderedDict

__all__ = ["RateLimit"]

_REMEMBERED_CLIENTS = 10_000


class RateLimit:
    """`burst` requests at once, then `per_second`. Remembers a bounded number of clients."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, client: str, now: float | None = None) -> float:
        """Takes one request from the client's bucket; above zero it was empty, and this is how long to wait."""
        now = time.monotonic() if now is None else now
        level, since = self._buckets.pop(client, (self._burst, now))
        level = min(self._burst, level + (now - since) * self._per_second)
        if level >= 1:
            self._remember(client, level - 1, now)
            return 0.0
        self._remember(client, level, now)
        return (1 - level) / self._per_second

    def _remember(self, client: str, level: float, now: float) -> None:
        self._buckets[client] = (level, now)
        if len(self._buckets) > _REMEMBERED_CLIENTS:
            self._buckets.popitem(last=False)
