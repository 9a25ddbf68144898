"""What is asked: a benchmark, a file, a table or rows of a program, each with the prompt and fields that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from themis.config.specification import SampleSpecification
from themis.exceptions import ConfigurationError, DatasetError
from themis.generation.templates import PromptTemplate
from themis.presets import BenchmarkPreset, get_benchmark_preset
from themis.presets.loading import READABLE_SUFFIXES, FileRows
from themis.storage import ExperimentStorage

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
        return _custom(FileRows(path), asked, {"kind": "file", "path": str(dataset)})
    if isinstance(dataset, str):
        return _benchmark(get_benchmark_preset(dataset, data=asked.data, sample=asked.sample), asked)
    return _custom(_as_rows(dataset), asked, {"kind": type(dataset).__name__, **_hub_facts(dataset)})


def is_row_file(dataset: str | Path) -> bool:
    return isinstance(dataset, Path) or dataset.lower().endswith(READABLE_SUFFIXES)


def _as_rows(dataset: Any) -> Iterable[Row]:
    if hasattr(dataset, "iter_samples"):
        samples: Iterable[Row] = dataset.iter_samples()
        return samples
    if (read := _find_table_reader(dataset)) is not None:
        return _TableRows(read, dataset)
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


# --- a table in memory: a DataFrame of pandas or polars, an Arrow table -------------------------------------------------

# Known by what they can do, so that none of their packages is needed here. A missing cell (NaN, NaT, NA, null) is None, as
# it is in a Parquet file.
_CHUNK = 1_024


@dataclass(frozen=True)
class _TableRows:
    """The rows of a table, read again each time they are gone through and never all at once."""

    read: Callable[[Any], Iterable[Row]]
    table: object

    def __iter__(self) -> Iterator[Row]:
        return iter(self.read(self.table))


def _find_table_reader(dataset: object) -> Callable[[Any], Iterable[Row]] | None:
    """For what has rows that going through it does not give: a DataFrame gives the names of its columns."""
    if hasattr(dataset, "iloc") and hasattr(dataset, "to_dict") and hasattr(dataset, "columns"):
        return _read_pandas
    if hasattr(dataset, "iter_rows") and hasattr(dataset, "columns"):
        return lambda frame: frame.iter_rows(named=True)
    if hasattr(dataset, "collect_schema") and hasattr(dataset, "collect"):
        return lambda frame: frame.collect().iter_rows(named=True)
    if hasattr(dataset, "to_pylist") and hasattr(dataset, "schema"):
        return _read_arrow
    return None


def _read_pandas(frame: Any) -> Iterator[Row]:
    if any(name is not None for name in frame.index.names):
        try:
            frame = frame.reset_index()  # an index with a name is a field like any other
        except ValueError as error:
            raise DatasetError(f"the DataFrame's index has the name of a column: {error}") from error
    names = [str(name) for name in frame.columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise DatasetError(f"the DataFrame has more than one column {doubled[0]!r}; name each column once")
    for start in range(0, len(frame), _CHUNK):
        chunk = frame.iloc[start : start + _CHUNK].astype(object)
        yield from chunk.where(chunk.notna(), None).to_dict("records")


def _read_arrow(table: Any) -> Iterator[Row]:
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        for start in range(0, batch.num_rows, _CHUNK):
            yield from batch.slice(start, _CHUNK).to_pylist()
