"""A provider, sync or async, for callers that wait for each answer in a thread of their own."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Coroutine
from typing import Any

from themis.core.entities import GenerationRecord, GenerationTask
from themis.interfaces import StatelessTaskExecutor

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0


class BlockingProvider(StatelessTaskExecutor):
    """The calls of an async provider are made on one event loop, to which its connections belong, until `close`."""

    def __init__(self, provider: StatelessTaskExecutor, timeout_seconds: float) -> None:
        self._provider = provider
        self._timeout_seconds = timeout_seconds
        self._thread: LoopThread | None = None
        if inspect.iscoroutinefunction(provider.execute):
            self._thread = LoopThread("themis-blocking")
            self._thread.start()

    def execute(self, task: GenerationTask) -> GenerationRecord:
        answer: Any = self._provider.execute(task)
        if self._thread is not None:
            waiting = asyncio.wait_for(answer, self._timeout_seconds)
            answer = asyncio.run_coroutine_threadsafe(waiting, self._thread.loop).result()
        record: GenerationRecord = answer
        return record

    def close(self) -> None:
        if self._thread is None:
            close = getattr(self._provider, "close", None)
            if close is not None:
                close()
        elif not self._thread.loop.is_closed():
            self._thread.close(self._close())

    async def _close(self) -> None:
        # Where the caller was interrupted its call is still under way.
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        close = getattr(self._provider, "aclose", None)
        if close is not None:
            await close()
        # Transports close in the next rounds of the loop.
        await asyncio.sleep(0.01)


class LoopThread:
    """An event loop in a thread of its own, for connections that outlive a call; runs from `start` to `close`."""

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
