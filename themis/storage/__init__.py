"""The only code that writes runs: one SQL schema in a SQLite file or PostgreSQL."""

from themis.storage.runs import RetentionPolicy, RunMetadata, RunStatus
from themis.storage.store import DEFAULT_STORAGE, ExperimentStorage

__all__ = ["DEFAULT_STORAGE", "ExperimentStorage", "RetentionPolicy", "RunMetadata", "RunStatus"]
