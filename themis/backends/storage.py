"""The store under the name that the tutorial gives it: `evaluate(storage_backend=LocalFileStorageBackend(path))`."""

from __future__ import annotations

from pathlib import Path

from themis.storage import ExperimentStorage

__all__ = ["LocalFileStorageBackend"]


class LocalFileStorageBackend:
    """The store in a directory, as `evaluate(storage_backend=...)` takes it.

    Args:
        path: The directory; `experiment_storage` is the store in it.

    >>> import themis
    >>> backend = LocalFileStorageBackend("runs")
    >>> report = themis.evaluate("demo", model="fake/perfect", run_id="first", storage_backend=backend, progress=False)
    >>> [run.run_id for run in backend.experiment_storage.list_runs()]
    ['first']
    """

    def __init__(self, path: str | Path) -> None:
        self.experiment_storage = ExperimentStorage(path)
