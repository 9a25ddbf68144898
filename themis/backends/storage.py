"""The store under the name that the tutorial gives it: `evaluate(storage_backend=LocalFileStorageBackend(path))`."""

from __future__ import annotations

from pathlib import Path

from themis.storage import ExperimentStorage

__all__ = ["LocalFileStorageBackend"]


class LocalFileStorageBackend:
    """The store in a directory, as `evaluate(storage_backend=...)` takes it.

    Args:
        path: The directory; `experiment_storage` is the store in it.
    """

    def __init__(self, path: str | Path) -> None:
        self.experiment_storage = ExperimentStorage(path)
