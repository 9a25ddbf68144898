"""Where a run executes and where it is stored: what `evaluate` takes as `execution_backend` and `storage_backend`.

The names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from themis.backends.execution import ExecutionBackend, LocalExecutionBackend, SequentialExecutionBackend
    from themis.backends.ray import RayExecutionBackend
    from themis.backends.storage import LocalFileStorageBackend

__all__ = [
    "ExecutionBackend",
    "LocalExecutionBackend",
    "LocalFileStorageBackend",
    "RayExecutionBackend",
    "SequentialExecutionBackend",
]

_HOMES = {
    "ExecutionBackend": "execution",
    "LocalExecutionBackend": "execution",
    "LocalFileStorageBackend": "storage",
    "RayExecutionBackend": "ray",
    "SequentialExecutionBackend": "execution",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'themis.backends' has no attribute {name!r}")
    return getattr(importlib.import_module(f"themis.backends.{_HOMES[name]}"), name)
