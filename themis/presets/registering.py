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
    """Makes a benchmark known under its name, in lower case; the last registration wins.

    Args:
        preset: Its rows, prompt, extractor and metrics.

    Raises:
        ConfigurationError: It is no `BenchmarkPreset`.

    >>> from themis.generation.templates import PromptTemplate
    >>> preset = BenchmarkPreset(
    ...     name="capitals",
    ...     prompt_template=PromptTemplate("capitals", "The capital of {country}?"),
    ...     metrics=["exact_match"],
    ...     extractor="identity",
    ...     dataset_loader=lambda limit: [{"id": "fr", "country": "France", "answer": "Paris"}][:limit],
    ... )
    >>> register_benchmark(preset)
    >>> get_benchmark_preset("Capitals").load_dataset()
    [{'id': 'fr', 'country': 'France', 'answer': 'Paris'}]
    """
    if not isinstance(preset, BenchmarkPreset):
        raise ConfigurationError(f"a benchmark is registered as a BenchmarkPreset, got {type(preset).__name__}")
    BENCHMARKS.register(preset.name.lower(), preset)


def get_benchmark_preset(name: str, *, data: str | Path | None = None, sample: bool = False) -> BenchmarkPreset:
    """The benchmark of a name, whatever the letters' case.

    Args:
        name: One of `list_benchmarks()`.
        data: A file or folder to read its rows from, instead of the Hub.
        sample: Read the few rows that are shipped with it, instead of the Hub's.

    Raises:
        ConfigurationError: There is no such benchmark, or it has no sample rows.

    >>> preset = get_benchmark_preset("gsm8k", sample=True)
    >>> preset.metrics, len(list(preset.load_dataset(limit=2)))
    (('numeric',), 2)
    """
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
    """Names of all benchmarks, those of the catalogue and those registered here.

    >>> list_benchmarks()[:3]
    ['aime24', 'aime25', 'amc23']
    """
    return BENCHMARKS.names()


def fetch_benchmark(name: str, to_dir: str | Path, *, limit: int | None = None) -> FetchedBenchmark:
    """Writes a benchmark's rows to a folder, for `data=` on a machine without internet.

    Args:
        name: A benchmark of the catalogue.
        to_dir: The folder; it is made.
        limit: Only the first so many rows; all by default.

    Returns:
        The file, how many rows it has and where they came from.

    Raises:
        ConfigurationError: The benchmark was registered here and loads its own rows.
        DatasetError: The Hub cannot be reached, or has other rows than the catalogue says.

    >>> fetch_benchmark("demo", "rows", limit=2).rows
    2
    """
    entry = _entry_of(BENCHMARKS.get(name))
    if entry is None:
        raise ConfigurationError(
            f"benchmark {name!r} was registered here and loads its own rows; there is nothing to fetch"
        )
    return fetch_rows(entry, to_dir, limit=limit)


def register_dataset(name: str, factory: DatasetFactory) -> None:
    """Makes rows known under a name, which can be taken once.

    Args:
        name: What `create_dataset` and `evaluate` know them by.
        factory: Takes a mapping of options and returns rows.

    Raises:
        ConfigurationError: It cannot be called, or the name is taken.

    >>> register_dataset("squares", lambda options: [{"n": n, "answer": str(n * n)} for n in range(options.get("limit", 3))])
    >>> list(create_dataset("squares", {"limit": 2}))
    [{'n': 0, 'answer': '0'}, {'n': 1, 'answer': '1'}]
    """
    if not callable(factory):
        raise ConfigurationError(
            f"dataset {name!r}: expected a function of options that returns rows, got {factory!r:.80}"
        )
    if is_dataset_registered(name):
        raise ConfigurationError(f"there is already a dataset {name!r}")
    DATASETS.register(name, factory)


def create_dataset(name: str, options: Mapping[str, Any] | None = None) -> Iterable[dict[str, Any]]:
    """The rows of a registered dataset, or of a benchmark of the catalogue.

    Args:
        name: One of `list_datasets()`.
        options: Those of its factory; of the catalogue's limit, data and sample.

    >>> next(iter(create_dataset("demo", {"limit": 1})))
    {'id': '0', 'question': 'What is 2 + 2?', 'answer': '4'}
    """
    return DATASETS.get(name)(options or {})


def list_datasets() -> list[str]:
    """Names of all datasets: those of the catalogue's benchmarks, and those registered here.

    >>> "gsm8k" in list_datasets()
    True
    """
    return DATASETS.names()


def is_dataset_registered(name: str) -> bool:
    """Whether `create_dataset` knows a name.

    Args:
        name: In any case of its letters.

    >>> is_dataset_registered("gsm8k"), is_dataset_registered("gsm9k")
    (True, False)
    """
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
