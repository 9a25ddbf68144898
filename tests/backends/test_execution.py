"""Execution backends: a function mapped over items, without reading all items first."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from themis.backends.execution import EXECUTION_BACKENDS, LocalExecutionBackend, SequentialExecutionBackend
from themis.exceptions import ConfigurationError


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
