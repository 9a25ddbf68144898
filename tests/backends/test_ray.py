"""The Ray backend against a stand-in for Ray that pickles what is sent and runs it here."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import themis
from themis.backends.ray import RayExecutionBackend
from themis.exceptions import ConfigurationError, DependencyError


class RayError(Exception):
    """As Ray's own: something went wrong in a process."""


class Streaming:
    """What a streaming task gives: references to results, one after another."""

    def __init__(self, results: Iterator[Any]) -> None:
        self._results = results

    def __next__(self) -> Any:
        try:
            return pickle.dumps(next(self._results))
        except (StopIteration, RayError):
            raise
        except Exception as error:
            raise RayError(str(error)) from error


class Task:
    def __init__(self, function: Any, streaming: bool = False) -> None:
        self._function, self._streaming = function, streaming

    def options(self, *, num_returns: str) -> Task:
        return Task(self._function, streaming=num_returns == "streaming")

    def remote(self, function: bytes, item: Any) -> Any:
        result = self._function(pickle.loads(function), pickle.loads(pickle.dumps(item)))
        return Streaming(iter(result)) if self._streaming else pickle.dumps(result)


@pytest.fixture
def ray(monkeypatch):
    module = ModuleType("ray")
    state = SimpleNamespace(up=False)
    module.state = state
    module.exceptions = SimpleNamespace(RayError=RayError)
    module.init = lambda **options: setattr(state, "up", options)
    module.shutdown = lambda: setattr(state, "up", False)
    module.is_initialized = lambda: bool(state.up)
    module.cluster_resources = lambda: {"CPU": 2.0}
    module.remote = lambda **options: Task
    module.put = pickle.dumps
    module.get = pickle.loads
    module.wait = lambda running, num_returns, timeout: (running[:1], running[1:])
    module.cancel = lambda reference: None
    monkeypatch.setitem(sys.modules, "ray", module)
    return module


def double(number: int) -> int:
    return 2 * number


def up_to(number: int) -> Iterator[int]:
    if number == 3:
        raise ValueError("three")
    yield from range(number)


def test_a_function_is_mapped_and_the_cluster_that_was_started_is_stopped(ray):
    with RayExecutionBackend() as backend:
        assert backend.processes == 2
        assert sorted(backend.map(double, range(5))) == [0, 2, 4, 6, 8]
        assert ray.state.up["address"] == "local"
    assert not ray.is_initialized()


def test_a_cluster_that_was_there_before_is_left_running(ray):
    ray.init(address="ray://elsewhere")
    with RayExecutionBackend(processes=7) as backend:
        assert backend.processes == 7
    assert ray.is_initialized()


def test_results_are_streamed_and_what_went_wrong_comes_last(ray):
    with RayExecutionBackend() as backend:
        found = list(backend.stream(up_to, [2, 3, 1]))
    assert [(item, result) for item, result in found if isinstance(result, int)] == [(2, 0), (2, 1), (1, 0)]
    lost = [(item, str(result)) for item, result in found if isinstance(result, RayError)]
    assert lost == [(3, "three")]


def test_a_run_goes_through_it_by_name(ray, tmp_path):
    rows = [{"id": n, "question": f"{n}?", "answer": str(n)} for n in range(30)]
    report = themis.evaluate(
        rows, model="fake/perfect", prompt="{question}", storage=tmp_path, execution_backend="ray", progress=False
    )
    assert (report.metric("exact_match").mean, report.metric("exact_match").count) == (1.0, 30)
    assert ray.is_initialized()


def test_what_cannot_be_sent_is_refused_without_showing_a_key(ray):
    with RayExecutionBackend() as backend, pytest.raises(ConfigurationError, match="cannot be sent") as refused:
        list(backend.map(lambda number: number, [1]))
    assert "lambda" not in str(refused.value)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DependencyError, match=r"themis-eval\[ray\]"):
        RayExecutionBackend()
