"""Storage adapters under the names of the tutorial.

A run always lives in an `ExperimentStorage`. `LocalFileStorageBackend` is one by another name; a backend of the user's own
(any subclass of `StorageBackend`) is handed a copy of everything that is committed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from themis.core.entities import EvaluationRecord, GenerationRecord
from themis.storage import ExperimentStorage

__all__ = ["LocalFileStorageBackend", "StorageBackend"]


class StorageBackend(ABC):
    """What a backend of the user's own has to offer. Methods with a body here may be left as they are."""

    @abstractmethod
    def save_generation_record(self, run_id: str, record: GenerationRecord) -> None: ...
    @abstractmethod
    def load_generation_records(self, run_id: str) -> list[GenerationRecord]: ...
    @abstractmethod
    def save_evaluation_record(self, run_id: str, record: GenerationRecord, evaluation: EvaluationRecord) -> None: ...
    @abstractmethod
    def load_evaluation_records(self, run_id: str) -> list[EvaluationRecord]: ...
    @abstractmethod
    def save_run_metadata(self, run_id: str, metadata: dict[str, Any]) -> None: ...
    @abstractmethod
    def load_run_metadata(self, run_id: str) -> dict[str, Any]: ...
    @abstractmethod
    def save_report(self, run_id: str, report: Any) -> None: ...
    @abstractmethod
    def load_report(self, run_id: str) -> Any: ...
    @abstractmethod
    def list_run_ids(self) -> list[str]: ...
    @abstractmethod
    def run_exists(self, run_id: str) -> bool: ...
    @abstractmethod
    def delete_run(self, run_id: str) -> None: ...

    def close(self) -> None:  # noqa: B027 - most backends hold nothing
        """Nothing to let go of unless the backend says otherwise."""

    def start_run(
        self, run_id: str, *, experiment_id: str = "default", config: Mapping[str, Any] | None = None
    ) -> None:
        self.save_run_metadata(run_id, {"experiment_id": experiment_id, "status": "in_progress", "config": config})

    def append_generation_record(self, run_id: str, record: GenerationRecord, *, cache_key: str | None = None) -> None:
        self.save_generation_record(run_id, record)

    def append_evaluation_record(
        self,
        run_id: str,
        record: GenerationRecord,
        evaluation: EvaluationRecord,
        *,
        evaluation_config: Mapping[str, Any] | None = None,
    ) -> None:
        self.save_evaluation_record(run_id, record, evaluation)

    def complete_run(self, run_id: str) -> None:
        self.save_run_metadata(run_id, {**self.load_run_metadata(run_id), "status": "completed"})

    def fail_run(self, run_id: str, message: str) -> None:
        self.save_run_metadata(run_id, {**self.load_run_metadata(run_id), "status": "failed", "error": message})

    def get_run_path(self, run_id: str) -> Path | None:
        return None


class LocalFileStorageBackend:
    """The store in a directory, as `evaluate(storage_backend=...)` takes it."""

    def __init__(self, path: str | Path) -> None:
        self.experiment_storage = ExperimentStorage(path)

    @property
    def root(self) -> Path:
        return self.experiment_storage.root

    def close(self) -> None:
        self.experiment_storage.close()

    def __getattr__(self, name: str) -> Any:
        # Every method of the store is this backend's too.
        return getattr(self.experiment_storage, name)
