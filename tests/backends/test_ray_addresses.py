"""What is told when a Ray cluster is not there: no cluster is up while these tests run."""

from __future__ import annotations

import socket
import sys

import pytest

from themis.backends.ray import RayExecutionBackend
from themis.exceptions import ConfigurationError, DependencyError


def test_ray_s_client_is_refused_because_it_cannot_stream() -> None:
    with pytest.raises(ConfigurationError, match="'head:6379'"):
        RayExecutionBackend("ray://head:10001")


def test_an_address_where_nobody_answers_is_named() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConfigurationError, match=f"no Ray cluster was found at '{address}'"):
            RayExecutionBackend(address)


def test_a_cluster_that_refuses_the_token_is_reported_as_that_whatever_ray_makes_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray

    def refuse(*_: object, **__: object) -> None:
        try:
            raise RuntimeError(
                "Failed to connect to GCS. Last connection error: Traceback (most recent call last):\n"
                "ray.exceptions.AuthenticationError: RPC error: InvalidAuthToken: Authentication token is missing.\n"
            )
        except RuntimeError as error:
            raise ConnectionError("Failed to connect to Ray cluster at 127.0.0.1:6379") from error

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(ConfigurationError, match="refuses this program's token: set RAY_AUTH_MODE=token and RAY_AUTH_"):
        RayExecutionBackend("auto")


def test_no_process_at_all_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="processes is at least 1, got 0"):
        RayExecutionBackend(processes=0)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DependencyError, match=r"themis-eval\[ray\]"):
        RayExecutionBackend()
