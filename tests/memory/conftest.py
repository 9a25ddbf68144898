"""The small tests by name, for as long as a test lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.memory.small_tests import register_small_tests
from themis.generation.providers import PROVIDERS
from themis.memory.agents import AGENTS
from themis.memory.examples import MEMORY_TESTS
from themis.storage import ExperimentStorage


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is registered during the test is forgotten after it."""
    for registry in (MEMORY_TESTS, AGENTS, PROVIDERS):
        registry.names()  # plugins are read once, into the table that stays
        monkeypatch.setattr(registry, "_targets", {name: registry.target(name) for name in registry.names()})
    register_small_tests()


@pytest.fixture(params=["given", "generating"])
def source(request: pytest.FixtureRequest, registered: None) -> Callable[[ExperimentStorage], dict[str, Any]]:
    """Where `benchmark` takes its tests from: the caller's hand, or the store, into which the first run generates them."""
    return (lambda storage: {"generated_in": storage}) if request.param == "generating" else lambda storage: {}
