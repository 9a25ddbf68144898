"""One store with a few finished runs, for tests that only read it."""

from __future__ import annotations

import pytest

from tests.memory.results.runs import small_run
from themis.storage import ExperimentStorage


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> ExperimentStorage:
    storage = ExperimentStorage(tmp_path_factory.mktemp("finished"))
    for agent in ("oracle", "amnesiac", "hostile", "window(300)"):
        small_run(storage, agent, f"small - {agent.partition('(')[0]}")
    small_run(storage, "oracle", "small - oracle isolated", isolated=True)
    return storage
