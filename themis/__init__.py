"""Themis: one laboratory for judging language models and the agents built on them.

The public names are imported when they are first used; `import themis` itself loads nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "ConfigurationError": "themis.exceptions",
    "DatasetError": "themis.exceptions",
    "EvaluationError": "themis.exceptions",
    "MetricError": "themis.exceptions",
    "ProviderError": "themis.exceptions",
    "StorageError": "themis.exceptions",
    "ThemisError": "themis.exceptions",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'themis' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
