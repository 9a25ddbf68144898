"""What is asked: a benchmark, a file, a table or rows of a program, each with the prompt and fields that belong to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from themis.config.specification import SampleSpecification
from themis.exceptions import ConfigurationError, DatasetError
from themis.experiment.dataframes import TableRows, is_table
from themis.generation.templates import PromptTemplate
from themis.presets import BenchmarkPreset, get_benchmark_preset
from themis.presets.loading import READABLE_SUFFIXES, read_rows
from themis.storage import ExperimentStorage

__all__ = ["Source", "StoredRows", "is_row_file", "resolve_dataset"]

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A dataset with everything that belongs to it. `metrics` and `extractor` judge it where nobody says otherwise."""

    rows: Iterable[Row]
    template: PromptTemplate
    id_field: str
    reference_field: str | None
    metrics: Sequence[Any] = ("exact_match",)
    extractor: Any = None
    benchmark: str | None = None
    description: Mapping[str, Any] = field(default_factory=dict)


def resolve_dataset(asked: SampleSpecification) -> Source:
    """The dataset that a specification names or holds."""
    dataset = asked.dataset
    if (asked.data is not None or asked.sample) and (not isinstance(dataset, str) or is_row_file(dataset)):
        raise ConfigurationError("data and sample say where a benchmark's rows come from; here the rows are given")
    if asked.benchmark is not None:
        return _benchmark(get_benchmark_preset(asked.benchmark), asked, rows=_as_rows(dataset))
    if isinstance(dataset, BenchmarkPreset):
        return _benchmark(dataset, asked)
    if isinstance(dataset, str | Path) and is_row_file(dataset):
        path = Path(dataset)
        if not path.exists():
            raise DatasetError(f"no file {str(dataset)!r}; a benchmark's name has no ending like {path.suffix!r}")
        return _custom(_FileRows(path), asked, {"kind": "file", "path": str(dataset)})
    if isinstance(dataset, str):
        return _benchmark(get_benchmark_preset(dataset, data=asked.data, sample=asked.sample), asked)
    return _custom(_as_rows(dataset), asked, {"kind": type(dataset).__name__, **_hub_facts(dataset)})


def is_row_file(dataset: str | Path) -> bool:
    return isinstance(dataset, Path) or dataset.lower().endswith(READABLE_SUFFIXES)


def _as_rows(dataset: Any) -> Iterable[Row]:
    if hasattr(dataset, "iter_samples"):
        samples: Iterable[Row] = dataset.iter_samples()
        return samples
    if is_table(dataset):
        return TableRows(dataset)
    if isinstance(dataset, Mapping) or not isinstance(dataset, Iterable):
        raise DatasetError(
            f"a dataset is a benchmark's name, a file or an iterable of dicts, got {type(dataset).__name__}"
            f"{_parts_hint(dataset)}"
        )
    return dataset


def _parts_hint(dataset: object) -> str:
    """A mapping of names to rows, as the Hub's splits come, holds datasets and is none."""
    parts = dataset if isinstance(dataset, Mapping) else {}
    named = [repr(name) for name, part in parts.items() if isinstance(part, Iterable) and not isinstance(part, str)]
    if named and all(isinstance(part, list) and part and not isinstance(part[0], Mapping) for part in parts.values()):
        return "; its parts are columns, so give them as a table, such as pandas.DataFrame(...), or as rows"
    return f"; give one of its parts: {', '.join(named)}" if named else ""


class _FileRows:
    """The rows of a file, which can be read more than once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[Row]:
        return iter(read_rows(self._path))


class StoredRows:
    """The rows of a stored run, which can be read more than once."""

    def __init__(self, store: ExperimentStorage, run_id: str) -> None:
        self._store, self._run_id = store, run_id

    def __iter__(self) -> Iterator[Row]:
        return iter(self._store.load_dataset(self._run_id))


def _hub_facts(dataset: object) -> dict[str, str]:
    """Where a Hugging Face dataset came from, as far as it says."""
    info = getattr(dataset, "info", None)
    split = getattr(dataset, "split", None)
    facts = {
        "name": getattr(info, "dataset_name", None) or getattr(info, "builder_name", None),
        "config": getattr(info, "config_name", None),
        "version": str(getattr(info, "version", None) or "") or None,
        "split": str(split) if split else None,
    }
    return {name: value for name, value in facts.items() if value}


def _custom(rows: Iterable[Row], asked: SampleSpecification, description: Mapping[str, Any]) -> Source:
    if asked.prompt is None:
        raise ConfigurationError('rows of your own need a prompt, for example prompt="Q: {question}\\nA:"')
    return Source(
        rows=rows,
        template=_template(asked.prompt),
        id_field=asked.dataset_id_field or "id",
        reference_field=asked.reference_field,
        description=description,
    )


def _benchmark(preset: BenchmarkPreset, asked: SampleSpecification, rows: Iterable[Row] | None = None) -> Source:
    return Source(
        # The loader is told the limit too: it may stand for more rows than it is asked for.
        rows=preset.load_dataset(asked.limit) if rows is None else rows,
        template=preset.prompt_template if asked.prompt is None else _template(asked.prompt),
        id_field=asked.dataset_id_field or preset.dataset_id_field,
        reference_field=preset.reference_field if asked.reference_field is None else asked.reference_field,
        metrics=preset.metrics,
        extractor=preset.extractor,
        benchmark=preset.name,
        description={"kind": "benchmark", "name": preset.name},
    )


def _template(prompt: str | PromptTemplate) -> PromptTemplate:
    return prompt if isinstance(prompt, PromptTemplate) else PromptTemplate("default", prompt)
