"""An event loop in a thread of its own, for connections that outlive a call."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

__all__ = ["LoopThread"]

_CLOSE_SECONDS = 5.0


class LoopThread:
    """Runs from `start` to `close`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Ends once `last` has been run; what hangs is left to end with the process."""
        closing = asyncio.run_coroutine_threadsafe(last, self.loop)
        with contextlib.suppress(TimeoutError):
            closing.result(timeout=_CLOSE_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self.loop.close()
