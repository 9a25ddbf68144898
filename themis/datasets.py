"""Datasets by name, for programs: register rows, list what there is, and read one.

Only a door: what is behind it is `themis.presets`, where a dataset with its prompt and metrics is a benchmark.
"""

from __future__ import annotations

from themis.presets import create_dataset, is_dataset_registered, list_datasets, register_dataset

__all__ = ["create_dataset", "is_dataset_registered", "list_datasets", "register_dataset"]
