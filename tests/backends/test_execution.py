"""Execution backends: a function mapped over items, without reading all items first."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import themis
from themis.backends.execution import EXECUTION_BACKENDS, LocalExecutionBackend, SequentialExecutionBackend
from themis.core import entities as core
from themis.exceptions import ConfigurationError
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage

ROWS = [{"id": n, "question": f"{n}?", "answer": str(n)} for n in range(40)]


class Same(StatelessTaskExecutor):
    """Says the reference; built anew wherever it is used."""

    built = 0

    def __init__(self, **_: Any) -> None:
        type(self).built += 1

    def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        assert task.reference is not None
        return core.GenerationRecord(task, core.ModelOutput(task.reference.value), None)


def test_a_sequential_backend_keeps_the_order():
    assert list(SequentialExecutionBackend().map(lambda n: n * n, range(5))) == [0, 1, 4, 9, 16]


def test_local_threads_work_side_by_side_and_take_items_from_an_endless_iterator_as_they_become_free():
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in itertools.count():
            taken.append(number)
            yield number

    meeting = threading.Barrier(3, timeout=120)

    def meet(number: int) -> int:
        meeting.wait()
        return number

    with LocalExecutionBackend(max_workers=3) as backend:
        results = list(itertools.islice(backend.map(meet, items()), 3))
        meeting.abort()  # nobody comes for those that have begun since
    assert sorted(results) == [0, 1, 2]
    assert len(taken) <= 6


def test_an_exception_of_the_function_is_raised_and_a_slow_one_is_a_timeout():
    with LocalExecutionBackend(max_workers=2) as backend:
        with pytest.raises(ZeroDivisionError):
            list(backend.map(lambda n: 1 // n, [0]))
        with pytest.raises(TimeoutError, match=r"no result within 0\.01 s"):
            list(backend.map(time.sleep, [0.2], timeout=0.01))


def test_backends_have_names_and_no_workers_is_a_mistake():
    assert EXECUTION_BACKENDS.names() == ["local", "ray", "sequential"]
    with pytest.raises(ConfigurationError, match="max_workers is at least 1, got 0"):
        LocalExecutionBackend(max_workers=0)


class Shards:
    """A backend with processes of its own, played by this one; a shard with a poisoned job kills its process half-way."""

    processes = 2

    def __init__(self, poisoned: str = "") -> None:
        self.sizes: list[int] = []
        self._poisoned = poisoned

    def map(self, func: Any, items: Iterable[Any], **_: Any) -> Iterator[Any]:
        raise AssertionError("not used")

    def stream(self, func: Any, items: Iterable[Any], *, max_workers: int) -> Iterator[tuple[Any, Any]]:
        for shard in items:
            self.sizes.append(len(shard))
            good = list(itertools.takewhile(lambda job: job.task.metadata["dataset_id"] != self._poisoned, shard))
            for batch in func(good):
                yield shard, batch
            if len(good) < len(shard):
                yield shard, RuntimeError("killed")


def ask(tmp_path: Any, backend: Any, **changes: Any) -> core.ExperimentReport:
    themis.register_provider("same", Same)
    arguments: dict[str, Any] = {"model": "same:m", "prompt": "{question}", "storage": tmp_path, "run_id": "run"}
    return themis.evaluate(ROWS, execution_backend=backend, workers=4, **{**arguments, **changes})


def test_processes_of_a_backend_run_the_engine_on_shards_and_this_one_commits(tmp_path):
    Same.built = 0
    backend = Shards()
    assert ask(tmp_path, backend).metric("exact_match").count == 40
    assert backend.sizes == [16, 16, 8]
    assert Same.built == 1 + len(backend.sizes)  # one here, to find mistakes, and one in each process


def test_what_a_lost_process_had_not_finished_is_a_failure_and_retried_on_resume(tmp_path):
    report = ask(tmp_path, Shards(poisoned="20"))
    exact = report.metric("exact_match")
    assert (exact.mean, exact.count, exact.failed) == (1.0, 28, 12)  # 20 to 31 are the rest of its shard
    assert "ended before its answer: RuntimeError: killed" in report.failures[0].message
    again = ask(tmp_path, Shards())
    assert (again.metric("exact_match").count, again.metric("exact_match").failed) == (40, 0)
    assert len(ExperimentStorage(tmp_path).load_cached_records("run")) == 40
