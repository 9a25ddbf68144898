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


def test_no_process_at_all_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="processes is at least 1, got 0"):
        RayExecutionBackend(processes=0)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DependencyError, match=r"themis-eval\[ray\]"):
        RayExecutionBackend()
