"""The only code that writes runs: one SQL schema in a SQLite file or PostgreSQL."""

from themis.storage.retention import RetentionPolicy
from themis.storage.runs import RunMetadata, RunStatus
from themis.storage.store import DEFAULT_STORAGE, ExperimentStorage

__all__ = ["DEFAULT_STORAGE", "ExperimentStorage", "RetentionPolicy", "RunMetadata", "RunStatus"]
