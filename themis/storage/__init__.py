"""The only code that writes runs: one SQL schema in a SQLite file or PostgreSQL."""

from themis.storage.runs import RunMetadata, RunStatus
from themis.storage.store import DEFAULT_STORAGE, ExperimentStorage, RetentionPolicy

__all__ = ["DEFAULT_STORAGE", "ExperimentStorage", "RetentionPolicy", "RunMetadata", "RunStatus"]
