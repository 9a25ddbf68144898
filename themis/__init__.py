"""Themis: one laboratory for judging language models and the agents built on them.

The public names are imported when they are first used; `import themis` itself loads nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "evaluate": "themis.api",
    "evaluate_async": "themis.api",
    "extractor": "themis.evaluation.resolve",
    "get_benchmark_preset": "themis.presets",
    "get_registered_metrics": "themis.evaluation.resolve",
    "is_dataset_registered": "themis.presets",
    "list_benchmarks": "themis.presets",
    "list_datasets": "themis.presets",
    "list_providers": "themis.generation.providers",
    "metric": "themis.evaluation.resolve",
    "register_benchmark": "themis.presets",
    "register_dataset": "themis.presets",
    "register_extractor": "themis.evaluation.resolve",
    "register_metric": "themis.evaluation.resolve",
    "register_provider": "themis.generation.providers",
    "register_tool": "themis.generation.tools",
    "plan_experiment": "themis.experiments",
    "run_experiment": "themis.experiments",
    "ExperimentSpecification": "themis.experiments",
    "ConfigurationError": "themis.exceptions",
    "DatasetError": "themis.exceptions",
    "EvaluationError": "themis.exceptions",
    "MetricError": "themis.exceptions",
    "ProviderError": "themis.exceptions",
    "StorageError": "themis.exceptions",
    "ThemisError": "themis.exceptions",
    "ToolError": "themis.exceptions",
}
_PACKAGES = (
    *("backends", "comparison", "config", "core", "datasets", "evaluation", "experiment", "generation", "memory"),
    *("presets", "providers", "storage"),
)

__all__ = sorted([*_EXPORTS, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"themis.{name}")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'themis' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
