"""A provider, sync or async, for callers that wait for each answer in a thread of their own."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from themis.core.entities import GenerationRecord, GenerationTask
from themis.generation.loops import LoopThread
from themis.interfaces import StatelessTaskExecutor

__all__ = ["BlockingProvider"]


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
