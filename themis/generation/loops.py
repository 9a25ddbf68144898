"""An event loop in a thread of its own, for connections that outlive a call."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any

__all__ = ["LoopThread"]

logger = logging.getLogger(__name__)

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
        if not self._thread.is_alive():
            last.close()
            return
        closing = asyncio.run_coroutine_threadsafe(last, self.loop)
        try:
            closing.result(timeout=_CLOSE_SECONDS)
        except TimeoutError:
            logger.warning("%s did not end within %g s and is left to itself", self._thread.name, _CLOSE_SECONDS)
        except Exception as error:  # boundary: a provider closes its own connections
            logger.warning("%s did not close: %s: %s", self._thread.name, type(error).__name__, error)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=_CLOSE_SECONDS)
        # When the interpreter ends, threads stop where they are: not alive, and their loop still running.
        if not self._thread.is_alive() and not self.loop.is_running():
            self.loop.close()
