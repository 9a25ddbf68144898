"""The engine makes calls: bounded, retried, limited, and never hanging on the last ones."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import Any

import pytest

from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelError,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    Result,
    SamplingConfig,
)
from themis.exceptions import ProviderCallError
from themis.generation.attempts import Request, Retry
from themis.generation.engine import Engine, EngineSettings
from themis.interfaces import StatelessTaskExecutor

QUICK = Retry(attempts=3, first_delay_seconds=0.001, longest_delay_seconds=0.002)


def requests(count: int) -> list[Request]:
    return [Request(n, 0, f"key-{n}", task(n)) for n in range(count)]


def task(number: int) -> GenerationTask:
    prompt = PromptRender(PromptSpec("default", "{n}"), str(number))
    return GenerationTask(prompt, ModelSpec("m", "p"), SamplingConfig(), {"dataset_id": str(number)})


def answer(asked: GenerationTask) -> GenerationRecord:
    return GenerationRecord(asked, ModelOutput(asked.prompt.text), None)


def finish(engine: Engine, count: int) -> dict[int, Result]:
    return {result.position: result for batch in engine.run(requests(count)) for result in batch}


class Counting(StatelessTaskExecutor):
    """Knows how many calls were under way at once, and how often each was made."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.now = self.most = 0
        self._lock = threading.Lock()

    def enter(self, asked: GenerationTask) -> None:
        with self._lock:
            self.calls[asked.prompt.text] += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self) -> None:
        with self._lock:
            self.now -= 1


class Threaded(Counting):
    def execute(self, task: GenerationTask) -> GenerationRecord:
        self.enter(task)
        time.sleep(0.01)
        self.leave()
        return answer(task)


class OnTheLoop(Counting):
    async def execute(self, task: GenerationTask) -> GenerationRecord:
        self.enter(task)
        await asyncio.sleep(0.01)
        self.leave()
        return answer(task)


class Instant(Counting):
    instant = True

    def execute(self, task: GenerationTask) -> GenerationRecord:
        self.calls[task.prompt.text] += 1
        return answer(task)


@pytest.mark.parametrize("kind", [Threaded, OnTheLoop, Instant])
def test_every_job_is_answered_once_and_never_more_than_workers_are_under_way(kind):
    executor = kind()
    results = finish(Engine(executor, EngineSettings(workers=5)), 60)
    assert sorted(results) == list(range(60))
    assert all(result.record.output.text == str(n) for n, result in results.items())
    assert set(executor.calls.values()) == {1}
    assert executor.most <= 5


def test_an_async_provider_really_runs_side_by_side():
    executor = OnTheLoop()
    finish(Engine(executor, EngineSettings(workers=40)), 200)
    assert executor.most == 40


class FailsFirst(StatelessTaskExecutor):
    """Raises the given error on the first calls for every prompt."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.times = error, times
        self.calls: Counter[str] = Counter()

    def execute(self, task: GenerationTask) -> GenerationRecord:
        self.calls[task.prompt.text] += 1
        if self.calls[task.prompt.text] <= self.times:
            raise self.error
        return answer(task)


def test_a_failing_call_is_tried_again_and_the_errors_are_kept():
    results = finish(Engine(FailsFirst(ConnectionError("gone"), 2), EngineSettings(retry=QUICK)), 3)
    for result in results.values():
        assert result.record.error is None
        assert result.calls == result.record.metrics["generation_attempts"] == 3
        assert [entry["exception_type"] for entry in result.record.metrics["retry_errors"]] == ["ConnectionError"] * 2


@pytest.mark.parametrize(
    "error",
    [
        ProviderCallError("no", status=400),
        ProviderCallError("no", status=401),
        ProviderCallError("no", status=403),
        ProviderCallError("no", status=404),
        ProviderCallError("stop", retryable=False),
        RuntimeError("Invalid API_KEY given"),
        TypeError("a bug in the provider"),
    ],
)
def test_what_cannot_get_better_is_not_tried_again(error):
    executor = FailsFirst(error, 99)
    results = finish(Engine(executor, EngineSettings(retry=QUICK)), 2)
    assert set(executor.calls.values()) == {1}
    assert all("after 1 attempt(s)" in result.record.error.message for result in results.values())


def test_a_record_with_an_error_is_a_failure_like_a_raised_one():
    class Returns(StatelessTaskExecutor):
        def execute(self, task: GenerationTask) -> GenerationRecord:
            return GenerationRecord(task, None, ModelError("busy", kind="provider_error"))

    result = finish(Engine(Returns(), EngineSettings(retry=QUICK)), 1)[0]
    assert result.record.error.message == "Generation failed for model p:m after 3 attempt(s): busy"
    assert result.record.error.details["attempts"] == 3


@pytest.mark.parametrize("returned", [None, "text", 7, GenerationRecord(task(0), None, None)])
def test_nonsense_from_a_provider_is_a_failure(returned):
    class Nonsense(StatelessTaskExecutor):
        def execute(self, task: GenerationTask) -> Any:
            return returned

    result = finish(Engine(Nonsense(), EngineSettings(retry=Retry(attempts=1))), 1)[0]
    assert result.record.error is not None
    assert result.record.output is None


def test_a_thread_that_hangs_is_given_up_and_the_rest_goes_on():
    release = threading.Event()

    class Hangs(StatelessTaskExecutor):
        def execute(self, task: GenerationTask) -> GenerationRecord:
            if task.prompt.text in ("3", "7"):
                release.wait(300)
            return answer(task)

    settings = EngineSettings(workers=2, retry=Retry(attempts=1), timeout_seconds=1.5)
    results = finish(Engine(Hangs(), settings), 30)
    release.set()
    failed = {n for n, result in results.items() if result.record.error is not None}
    assert failed == {3, 7}
    assert results[3].record.error.kind == "timeout"
    assert len(results) == 30


def test_a_coroutine_that_hangs_is_cancelled():
    class Hangs(StatelessTaskExecutor):
        async def execute(self, task: GenerationTask) -> GenerationRecord:
            if task.prompt.text == "3":
                await asyncio.sleep(60)
            return answer(task)

    settings = EngineSettings(workers=4, retry=Retry(attempts=1), timeout_seconds=1.5)
    results = finish(Engine(Hangs(), settings), 10)
    assert [n for n, result in results.items() if result.record.error] == [3]


def test_calls_that_hang_one_after_another_are_each_given_up_in_time():
    class Hangs(StatelessTaskExecutor):
        async def execute(self, task: GenerationTask) -> GenerationRecord:
            number = int(task.prompt.text)
            await asyncio.sleep(60 if number % 3 == 0 else 0.01 * number)
            return answer(task)

    settings = EngineSettings(workers=3, retry=Retry(attempts=1), timeout_seconds=1.5)
    results = finish(Engine(Hangs(), settings), 12)
    late = {n: result for n, result in results.items() if result.record.error is not None}
    assert sorted(late) == [0, 3, 6, 9]
    assert {result.record.error.kind for result in late.values()} == {"timeout"}
    assert "no answer within 1.5 s" in late[0].record.error.message


def test_a_retry_near_its_deadline_is_given_less_time_than_the_calls_beside_it():
    class HangsAtTheSecondCall(Counting):
        async def execute(self, task: GenerationTask) -> GenerationRecord:
            self.calls[task.prompt.text] += 1
            if task.prompt.text != "0":
                return answer(task)
            if self.calls["0"] == 1:
                raise ProviderCallError("busy", status=503)
            await asyncio.sleep(60)
            raise AssertionError("not reached")

    settings = EngineSettings(workers=2, retry=QUICK, timeout_seconds=60, deadline_seconds=1.5)
    results = finish(Engine(HangsAtTheSecondCall(), settings), 5)
    assert [n for n, result in results.items() if result.record.error] == [0]


def test_a_providers_own_timeout_is_told_in_its_own_words():
    class Impatient(StatelessTaskExecutor):
        async def execute(self, task: GenerationTask) -> GenerationRecord:
            raise TimeoutError("the gateway waited 5 s")

    result = finish(Engine(Impatient(), EngineSettings(retry=Retry(attempts=1))), 1)[0]
    assert result.record.error.kind == "timeout"
    assert "the gateway waited 5 s" in result.record.error.message


def test_the_deadline_of_an_answer_ends_its_retries():
    executor = FailsFirst(ProviderCallError("later", status=503), 99)
    patient = Retry(attempts=5, first_delay_seconds=10)
    results = finish(Engine(executor, EngineSettings(retry=patient, deadline_seconds=0.5)), 1)
    assert results[0].record.error.kind == "deadline"
    assert executor.calls["0"] == 1


def test_a_provider_that_asks_for_a_longer_wait_than_the_deadline_leaves_is_not_waited_for():
    executor = FailsFirst(ProviderCallError("later", status=503, retry_after_seconds=10), 99)
    results = finish(Engine(executor, EngineSettings(retry=Retry(attempts=5), deadline_seconds=0.5)), 1)
    assert results[0].record.error.kind == "wait_too_long"
    assert "asks to wait 10 s, longer than deadline_seconds=0.5 leaves" in results[0].record.error.message
    assert executor.calls["0"] == 1


def test_being_turned_away_halves_the_limit_and_is_not_counted_as_an_attempt():
    class Strict(Counting):
        async def execute(self, task: GenerationTask) -> GenerationRecord:
            self.enter(task)
            try:
                if self.calls[task.prompt.text] == 1 and int(task.prompt.text) < 8:
                    raise ProviderCallError("slow down", status=429, retry_after_seconds=0.01)
                await asyncio.sleep(0.002)
                return answer(task)
            finally:
                self.leave()

    engine = Engine(Strict(), EngineSettings(workers=16, retry=Retry(attempts=1)))
    results = finish(engine, 30)
    assert all(result.record.error is None for result in results.values())
    assert engine.limiter.limit < 16


def test_requests_per_minute_are_kept():
    from themis.generation.limits import RateLimit

    executor = OnTheLoop()
    settings = EngineSettings(workers=8, rate=RateLimit(requests_per_minute=600))  # ten a second, a burst of 100
    began = time.monotonic()
    finish(Engine(executor, settings), 103)
    assert time.monotonic() - began >= 0.2  # the last three had to wait for their turn


def test_after_stop_nothing_new_starts_and_what_runs_is_finished():
    executor = Threaded()
    engine = Engine(executor, EngineSettings(workers=3))
    seen = []
    for batch in engine.run(requests(1000)):
        seen.extend(batch)
        engine.stop()
    assert {str(result.position) for result in seen} == set(executor.calls)
    assert len(seen) < 100


def test_jobs_are_taken_from_the_iterator_as_room_comes_free():
    taken = 0

    def endless() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield Request(taken, 0, str(taken), task(taken))

    engine = Engine(Threaded(), EngineSettings(workers=2))
    for batch in engine.run(endless()):
        if batch:
            engine.stop()
    assert taken < 100


def test_admission_is_asked_before_every_call_and_a_refusal_ends_the_run():
    executor = Threaded()
    budget = iter([True] * 5 + [False] * 1000)
    engine = Engine(executor, EngineSettings(workers=2), admit=lambda job: next(budget))
    results = finish(engine, 50)
    assert len(results) == 5
    assert sum(executor.calls.values()) == 5


def test_late_jobs_say_what_they_wait_for():
    executor = FailsFirst(ProviderCallError("later", status=503, retry_after_seconds=1.5), 1)
    engine = Engine(executor, EngineSettings(workers=1, retry=Retry(attempts=2)))
    waiting: list[str] = []

    def watch() -> None:
        while not waiting:
            waiting.extend(late.waiting_for for late in engine.late(0.05))
            time.sleep(0.01)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    finish(engine, 1)
    watcher.join(60)
    assert "after provider_error: later" in waiting[0]


def test_a_users_execution_backend_is_mapped_through_and_not_shut_down():
    class Backend:
        workers_asked: int | None = None
        closed = False

        def map(self, func: Any, items: Any, *, max_workers: int | None = None, timeout: float | None = None) -> Any:
            self.workers_asked = max_workers
            return (func(item) for item in items)

        def shutdown(self) -> None:
            self.closed = True

    backend = Backend()
    engine = Engine(OnTheLoop(), EngineSettings(workers=7))
    results = [result for batch in engine.run_through(backend, requests(5)) for result in batch]
    assert [result.record.output.text for result in results] == ["0", "1", "2", "3", "4"]
    assert backend.workers_asked == 7
    assert not backend.closed


class Says(StatelessTaskExecutor):
    """Answers three words at once, with or without a count of its tokens."""

    instant = True

    def __init__(self, usage: dict[str, int] | None, reasoning: str | None = None) -> None:
        self.usage, self.reasoning = usage, reasoning

    def execute(self, task: GenerationTask) -> GenerationRecord:
        output = ModelOutput("one two three", usage=self.usage, reasoning=self.reasoning)
        return GenerationRecord(task, output, None)


@pytest.mark.parametrize(
    ("usage", "paid", "expected"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 5}, False, (7, 5)),
        (None, True, (1, 3)),
        (None, False, (None, None)),
    ],
)
def test_tokens_are_told_by_the_provider_or_counted_by_a_tokenizer_or_not_known(usage, paid, expected):
    result = finish(Engine(Says(usage), EngineSettings(counts_tokens=paid)), 1)[0]
    metrics = result.record.metrics
    assert (metrics.get("prompt_tokens"), metrics.get("response_tokens")) == expected
    assert (result.prompt_tokens or None, result.completion_tokens or None) == expected


def test_where_tokens_are_counted_thoughts_count_too():
    result = finish(Engine(Says(None, "four five six"), EngineSettings(counts_tokens=True)), 1)[0]
    assert result.completion_tokens == 6


class ClosesSlowly(StatelessTaskExecutor):
    """Takes a while to hang up, in which a tool that has just ended may still tell the engine of it."""

    def __init__(self, closing: threading.Event) -> None:
        self.closing, self.is_closed = closing, False

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        return GenerationRecord(task, ModelOutput("fine"), None)

    async def aclose(self) -> None:
        self.closing.set()
        await asyncio.sleep(0.1)
        self.is_closed = True


def test_who_wakes_the_engine_while_it_closes_does_not_keep_it_from_that():
    closing = threading.Event()
    provider = ClosesSlowly(closing)
    engine = Engine(provider)
    waker = threading.Thread(target=lambda: closing.wait(10) and engine.wake())
    waker.start()

    assert len(finish(engine, 2)) == 2
    waker.join()
    assert provider.is_closed
