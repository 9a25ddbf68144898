"""Benchmarks: rows, prompt, extractor and metrics under a name, from the catalogue or registered by users."""

from __future__ import annotations

from themis.presets.loading import read_rows
from themis.presets.preset import BenchmarkPreset
from themis.presets.registering import (
    create_dataset,
    fetch_benchmark,
    get_benchmark_preset,
    is_dataset_registered,
    list_benchmarks,
    list_datasets,
    register_benchmark,
    register_dataset,
)

__all__ = [
    "BenchmarkPreset",
    "create_dataset",
    "fetch_benchmark",
    "get_benchmark_preset",
    "is_dataset_registered",
    "list_benchmarks",
    "list_datasets",
    "read_rows",
    "register_benchmark",
    "register_dataset",
]
