"""A provider, sync or async, for callers that wait for each answer in a thread of their own."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from typing import Any

from themis.core.entities import GenerationRecord, GenerationTask
from themis.generation.pools import close_calls
from themis.interfaces import StatelessTaskExecutor

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0


class BlockingProvider(StatelessTaskExecutor):
    """The calls of an async provider are made on one event loop, to which its connections belong, until `close`."""

    def __init__(self, provider: StatelessTaskExecutor, timeout_seconds: float) -> None:
        self._provider = provider
        self._timeout_seconds = timeout_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        if inspect.iscoroutinefunction(provider.execute):
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="themis-blocking", daemon=True)
            self._thread.start()

    def execute(self, task: GenerationTask) -> GenerationRecord:
        answer: Any = self._provider.execute(task)
        if self._loop is not None:
            waiting = asyncio.wait_for(answer, self._timeout_seconds)
            answer = asyncio.run_coroutine_threadsafe(waiting, self._loop).result()
        record: GenerationRecord = answer
        return record

    def close(self) -> None:
        if self._loop is not None:
            self._close_loop(self._loop)
        elif (close := getattr(self._provider, "close", None)) is not None:
            close()

    def _close_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends the thread once connections are closed; what hangs is left to end with the process."""
        if not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._close_connections(), loop).result(timeout=_CLOSE_SECONDS)
        except TimeoutError:
            logger.warning("%s did not end within %g s and is left to itself", self._thread.name, _CLOSE_SECONDS)
        except Exception as error:  # boundary: a provider closes its own connections
            logger.warning("%s did not close: %s: %s", self._thread.name, type(error).__name__, error)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(timeout=_CLOSE_SECONDS)
        # When the interpreter ends, threads stop where they are: not alive, and their loop still running.
        if not self._thread.is_alive() and not loop.is_running():
            loop.close()

    async def _close_connections(self) -> None:
        # Where the caller was interrupted its call is still under way.
        await close_calls(self._provider, asyncio.all_tasks() - {asyncio.current_task()})
