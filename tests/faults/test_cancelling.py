"""Cancelling `evaluate_async`: that run is saved and ends, and nothing else of the event loop does."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import themis
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.generation.providers import PROVIDERS
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage

ROWS = [{"id": str(n), "question": str(n), "answer": "x"} for n in range(40)]


class Slow(StatelessTaskExecutor):
    """Takes a moment for each answer, and for ever once `hang` is set."""

    answered = 0
    hang = threading.Event()

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        await asyncio.sleep(600 if Slow.hang.is_set() else 0.02)
        Slow.answered += 1
        return GenerationRecord(task, ModelOutput("x"), None)


class SlowThreads(StatelessTaskExecutor):
    """The same, blocking a thread."""

    def execute(self, task: GenerationTask) -> GenerationRecord:
        time.sleep(600 if Slow.hang.is_set() else 0.02)
        Slow.answered += 1
        return GenerationRecord(task, ModelOutput("x"), None)


@pytest.fixture(params=[Slow, SlowThreads], ids=["async provider", "sync provider"])
def provider(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """Arguments of a run by a provider that can be made to hang."""
    Slow.answered = 0
    Slow.hang.clear()
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    themis.register_provider("slow", lambda **options: request.param())
    yield {"model": "slow/m", "prompt": "{question}", "run_id": "r", "storage": tmp_path, "workers": 2}
    Slow.hang.clear()


async def answers(number: int) -> None:
    while Slow.answered < number:  # noqa: ASYNC110 - the calls are made on another thread
        await asyncio.sleep(0.01)


@pytest.mark.fault(
    area="Stopping and resuming",
    wrong="A task that awaits evaluate_async is cancelled, or times out",
    does="Finishes the calls under way and saves them; CancelledError reaches the caller, other tasks go on",
    status="interrupted",
    exit_code=None,
)
def test_cancelling_ends_that_run_and_nothing_else(provider, tmp_path, fault):
    async def program() -> tuple[bool, Any]:
        beats = 0

        async def heart() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        beating = asyncio.create_task(heart())
        running = asyncio.create_task(themis.evaluate_async(ROWS, **provider))
        await answers(4)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        stored = ExperimentStorage(tmp_path).get_run("r")
        assert (stored.status, stored.writer) == (fault.status, None)
        before = beats
        await asyncio.sleep(0.05)
        assert beats > before
        # The same loop takes it up again, and asks only what is missing.
        report = await themis.evaluate_async(ROWS, **provider)
        beating.cancel()
        return report

    report = asyncio.run(program())

    assert report.metadata["status"] == "completed"
    assert Slow.answered == len(ROWS)


def test_a_timeout_is_a_timeout(provider, tmp_path):
    async def program() -> None:
        async with asyncio.timeout(0.4):
            await themis.evaluate_async(ROWS, **{**provider, "workers": 1})

    with pytest.raises(TimeoutError):
        asyncio.run(program())

    assert ExperimentStorage(tmp_path).get_run("r").status == "interrupted"


def test_cancelled_twice_it_does_not_wait_for_calls_that_hang(provider, tmp_path):
    async def program() -> None:
        running = asyncio.create_task(themis.evaluate_async(ROWS, **provider))
        await answers(4)
        Slow.hang.set()
        await asyncio.sleep(0.3)  # now every call under way hangs
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=0.5)
        assert not done, "it waits for the calls that are under way"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, timeout=30)

    began = time.monotonic()
    asyncio.run(program())

    assert time.monotonic() - began < 60
    stored = ExperimentStorage(tmp_path).get_run("r")
    assert (stored.status, stored.writer) == ("interrupted", None)
    assert stored.successful_generations >= 4


def test_cancelled_before_it_begins_it_leaves_a_run_that_can_be_taken_up(provider, tmp_path):
    async def program() -> Any:
        running = asyncio.create_task(themis.evaluate_async(ROWS, **provider))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await themis.evaluate_async(ROWS, **provider)

    assert asyncio.run(program()).metadata["status"] == "completed"


NOTEBOOK = """
import asyncio, os, signal, sys
import themis
from tests.faults.test_cancelling import ROWS, Slow

themis.register_provider("slow", lambda **options: Slow())

async def cell():
    try:
        await themis.evaluate_async(ROWS, model="slow/m", prompt="{question}", run_id="r", storage=sys.argv[1], workers=2)
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise

async def kernel():
    # As a notebook's kernel does: an interrupt cancels the cell, and the kernel lives on.
    running = asyncio.create_task(cell())
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, running.cancel)
    while Slow.answered < 4:
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait([running])
    print("the kernel lives", flush=True)

asyncio.run(kernel())
"""


def test_an_interrupted_cell_leaves_the_notebook_alive(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.stdout.split("\n")[:2] == ["cancelled", "the kernel lives"], done.stderr
    assert done.returncode == 0
    assert ExperimentStorage(tmp_path).get_run("r").status == "interrupted"


def test_ctrl_c_under_asyncio_run_saves_the_run(tmp_path):
    # As at a terminal, also where the tests are a background job, whose children ignore Ctrl-C.
    heed = "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program = NOTEBOOK.split("async def kernel")[0] + heed + "asyncio.run(cell())\n"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    storage = ExperimentStorage(tmp_path)
    deadline = time.monotonic() + 120
    while not (storage.exists() and storage.run_exists("r") and storage.reader("r").count_records()[0] > 3):
        assert time.monotonic() < deadline
        time.sleep(0.02)

    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)

    assert said == "cancelled\n"
    assert storage.get_run("r").status == "interrupted"
