"""Where benchmarks and datasets are looked up by name, and where users' own ones enter."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from themis.core.registry import Registry
from themis.exceptions import ConfigurationError
from themis.presets.catalogue import ENTRIES, Entry
from themis.presets.loading import read_rows
from themis.presets.preset import BenchmarkPreset
from themis.presets.rows import FetchedBenchmark, benchmark_rows, fetch_rows

__all__ = [
    "BENCHMARKS",
    "create_dataset",
    "fetch_benchmark",
    "get_benchmark_preset",
    "is_dataset_registered",
    "list_benchmarks",
    "list_datasets",
    "register_benchmark",
    "register_dataset",
]

DatasetFactory = Callable[[Mapping[str, Any]], Iterable[dict[str, Any]]]

BENCHMARKS: Registry[BenchmarkPreset] = Registry("benchmark")
DATASETS: Registry[DatasetFactory] = Registry("dataset")


def register_benchmark(preset: BenchmarkPreset) -> None:
    """Makes a benchmark known under its name, in lower case; the last registration wins."""
    if not isinstance(preset, BenchmarkPreset):
        raise ConfigurationError(f"a benchmark is registered as a BenchmarkPreset, got {type(preset).__name__}")
    BENCHMARKS.register(preset.name.lower(), preset)


def get_benchmark_preset(name: str, *, data: str | Path | None = None, sample: bool = False) -> BenchmarkPreset:
    """The benchmark of that name, whatever the letters' case; with `data` or `sample` its rows are read from there."""
    preset = BENCHMARKS.get(name)
    if data is None and not sample:
        return preset
    entry = _entry_of(preset)
    if entry is not None:
        return dataclasses.replace(preset, dataset_loader=partial(_load, entry, data=data, sample=sample))
    if data is None:
        raise ConfigurationError(f"benchmark {preset.name!r} has no sample rows; those of the catalogue have")
    return dataclasses.replace(preset, dataset_loader=lambda limit: _FileRows(data, limit))


def list_benchmarks() -> list[str]:
    return BENCHMARKS.names()


def fetch_benchmark(name: str, to_dir: str | Path, *, limit: int | None = None) -> FetchedBenchmark:
    """Writes a benchmark's rows to a folder, for `data=` on a machine without internet."""
    entry = _entry_of(BENCHMARKS.get(name))
    if entry is None:
        raise ConfigurationError(
            f"benchmark {name!r} was registered here and loads its own rows; there is nothing to fetch"
        )
    return fetch_rows(entry, to_dir, limit=limit)


def register_dataset(name: str, factory: DatasetFactory) -> None:
    """Makes rows known under a name; the factory takes a mapping of options. A name can be taken once."""
    if not callable(factory):
        raise ConfigurationError(
            f"dataset {name!r}: expected a function of options that returns rows, got {factory!r:.80}"
        )
    if is_dataset_registered(name):
        raise ConfigurationError(f"there is already a dataset {name!r}")
    DATASETS.register(name, factory)


def create_dataset(name: str, options: Mapping[str, Any] | None = None) -> Iterable[dict[str, Any]]:
    """The rows of a registered dataset, or of a catalogue benchmark with the options limit, data and sample."""
    return DATASETS.get(name)(options or {})


def list_datasets() -> list[str]:
    return DATASETS.names()


def is_dataset_registered(name: str) -> bool:
    return name in DATASETS


def _entry_of(preset: BenchmarkPreset) -> Entry | None:
    """The catalogue's entry, unless a user has taken its name for a benchmark of their own."""
    loader = preset.dataset_loader
    return loader.args[0] if isinstance(loader, partial) and loader.func is _load else None


def _load(
    entry: Entry, limit: int | None = None, *, data: str | Path | None = None, sample: bool = False
) -> Iterable[dict[str, Any]]:
    return benchmark_rows(entry, limit=limit, data=data, sample=sample)


@dataclasses.dataclass(frozen=True)
class _FileRows:
    """A file's rows as they are, read anew each time they are gone through."""

    path: str | Path
    limit: int | None

    def __post_init__(self) -> None:
        read_rows(self.path)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return itertools.islice(read_rows(self.path), self.limit)


def _create(entry: Entry, options: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    unknown = sorted(set(options) - {"limit", "data", "sample"})
    if unknown:
        raise ConfigurationError(
            f"dataset {entry.name!r} has no option {unknown[0]!r}; it takes limit, data and sample"
        )
    return benchmark_rows(entry, **options)


for _entry in ENTRIES.values():
    register_benchmark(
        BenchmarkPreset(
            name=_entry.name,
            prompt_template=_entry.template,
            metrics=_entry.metrics,
            extractor=_entry.extractor,
            dataset_loader=partial(_load, _entry),
            metadata_fields=_entry.metadata_fields,
            reference_field=_entry.reference_field,
            description=_entry.description,
        )
    )
    register_dataset(_entry.name, partial(_create, _entry))
