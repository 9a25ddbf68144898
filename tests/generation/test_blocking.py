"""Providers that are called from threads, one answer at a time."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.generation.pools import BlockingProvider
from themis.interfaces import StatelessTaskExecutor


def answer(asked: GenerationTask) -> GenerationRecord:
    return GenerationRecord(asked, ModelOutput(asked.prompt.text), None)


class Connected(StatelessTaskExecutor):
    """Its connections belong to the loop it was first called on."""

    def __init__(self) -> None:
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.closed_on: asyncio.AbstractEventLoop | None = None

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        self.loops.add(asyncio.get_running_loop())
        if task.prompt.text == "hang":
            await asyncio.sleep(600)
        await asyncio.sleep(0)
        return answer(task)

    async def aclose(self) -> None:
        self.closed_on = asyncio.get_running_loop()


def test_threads_share_the_loop_of_an_async_provider_which_is_closed_on_it(task):
    provider = Connected()
    blocking = BlockingProvider(provider, timeout_seconds=60)
    with ThreadPoolExecutor(4) as threads:
        records = list(threads.map(lambda n: blocking.execute(task(str(n))), range(20)))
    blocking.close()
    blocking.close()

    assert [record.output.text for record in records] == [str(n) for n in range(20)]
    assert provider.loops == {provider.closed_on}
    assert provider.closed_on.is_closed()


def test_a_call_that_takes_too_long_is_given_up(task):
    blocking = BlockingProvider(Connected(), timeout_seconds=0.01)
    with pytest.raises(TimeoutError):
        blocking.execute(task("hang"))
    blocking.close()


def test_a_call_whose_caller_went_away_is_cancelled_when_it_is_closed(task):
    provider = Connected()
    blocking = BlockingProvider(provider, timeout_seconds=600)
    failed: list[BaseException] = []

    def call() -> None:
        try:
            blocking.execute(task("hang"))
        except BaseException as error:
            failed.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    while not provider.loops:
        time.sleep(0.01)
    blocking.close()
    caller.join(60)

    assert len(failed) == 1
    assert provider.closed_on is not None


def test_a_plain_provider_is_called_where_it_stands_and_closed(task):
    class Plain(StatelessTaskExecutor):
        closed = 0

        def execute(self, task: GenerationTask) -> GenerationRecord:
            return answer(task)

        def close(self) -> None:
            self.closed += 1

    provider = Plain()
    blocking = BlockingProvider(provider, timeout_seconds=60)
    assert blocking.execute(task("a")).output.text == "a"
    blocking.close()
    assert provider.closed == 1
