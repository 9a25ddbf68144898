"""How often a client may ask: a token bucket for each address."""

from __future__ import annotations

import time
from collections import OrderedDict

from themis.generation.limits import TokenBucket

_REMEMBERED_CLIENTS = 10_000


class ClientThrottle:
    """`burst` requests at once, then `per_second`. Remembers a bounded number of clients."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait_seconds(self, client: str, now: float | None = None) -> float:
        """Takes one request from the client's bucket; above zero it was empty, and this is how long to wait."""
        now = time.monotonic() if now is None else now
        bucket = self._buckets.pop(client, None) or TokenBucket(self._per_second, self._burst)
        self._buckets[client] = bucket
        if len(self._buckets) > _REMEMBERED_CLIENTS:
            self._buckets.popitem(last=False)
        wait = bucket.wait(now, 1)
        if wait <= 0:
            bucket.take(now, 1)
        return wait
