"""Benchmarks: rows, prompt, extractor and metrics under a name, from the catalogue or registered by users."""

from __future__ import annotations

from themis.presets.benchmarks import (
    BenchmarkPreset,
    create_dataset,
    fetch_benchmark,
    get_benchmark_preset,
    is_dataset_registered,
    list_benchmarks,
    list_datasets,
    register_benchmark,
    register_dataset,
)
from themis.presets.loading import read_rows
from themis.presets.protocols import FewShot, Protocol

__all__ = [
    "BenchmarkPreset",
    "FewShot",
    "Protocol",
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
