"""A store on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from themis.storage import ExperimentStorage


@pytest.fixture
def storage(store_location: str) -> Iterator[ExperimentStorage]:
    store = ExperimentStorage(store_location)
    yield store
    store.close()


@pytest.fixture
def sqlite_storage(tmp_path: Path) -> Iterator[ExperimentStorage]:
    """For what only a file can suffer."""
    store = ExperimentStorage(tmp_path / "store")
    yield store
    store.close()
