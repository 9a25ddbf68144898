"""A table in memory as rows: a DataFrame of pandas or polars, an Arrow table.

Known by what they can do, so that none of their packages is needed here. A missing cell (NaN, NaT, NA, null) is None, as
it is in a Parquet file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from themis.exceptions import DatasetError

Row = dict[str, object]

_CHUNK = 1_024


def is_table(dataset: object) -> bool:
    """Whether it has rows that going through it does not give: a DataFrame gives the names of its columns."""
    return _reader(dataset) is not None


@dataclass(frozen=True)
class TableRows:
    """The rows of a table, read again each time they are gone through and never all at once."""

    table: object

    def __iter__(self) -> Iterator[Row]:
        reader = _reader(self.table)
        assert reader is not None
        return iter(reader(self.table))


def _reader(dataset: object) -> Callable[[Any], Iterable[Row]] | None:
    if hasattr(dataset, "iloc") and hasattr(dataset, "to_dict") and hasattr(dataset, "columns"):
        return _of_pandas
    if hasattr(dataset, "iter_rows") and hasattr(dataset, "columns"):
        return _of_polars
    if hasattr(dataset, "collect_schema") and hasattr(dataset, "collect"):
        return _of_lazy_polars
    if hasattr(dataset, "to_pylist") and hasattr(dataset, "schema"):
        return _of_arrow
    return None


def _of_pandas(frame: Any) -> Iterator[Row]:
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


def _of_polars(frame: Any) -> Iterable[Row]:
    rows: Iterable[Row] = frame.iter_rows(named=True)
    return rows


def _of_lazy_polars(frame: Any) -> Iterable[Row]:
    return _of_polars(frame.collect())


def _of_arrow(table: Any) -> Iterator[Row]:
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        for start in range(0, batch.num_rows, _CHUNK):
            yield from batch.slice(start, _CHUNK).to_pylist()
