"""Finds the store whose runs are meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import ExperimentStorage

__all__ = ["open_store"]


def open_store(storage: Any = None, storage_path: str | Path | None = None) -> ExperimentStorage:
    """A store by its place, or one that is open already. One that is not there is an error, not a new and empty store."""
    if storage is not None and storage_path is not None:
        raise ConfigurationError("storage and storage_path mean the same; give one of them")
    given = storage if storage is not None else storage_path
    if given is None:
        raise ConfigurationError("a comparison needs to know where the runs are: give storage or storage_path")
    given = getattr(given, "experiment_storage", given)
    store = given if isinstance(given, ExperimentStorage) else ExperimentStorage(given)
    if not store.exists():
        raise StorageError(f"there is no store at {redact_text(str(store.location))}")
    return store
