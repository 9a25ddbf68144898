"""`report.parquet`: one row a sample in columns with types, for notebooks and databases."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from themis.core.entities import ExperimentReport
from themis.exceptions import DependencyError
from themis.experiment.export.json_text import as_text
from themis.experiment.export.samples import Sample, joined, score_values
from themis.experiment.export.whole_files import whole_file
from themis.storage.lazy import batched

__all__ = ["export_parquet"]

_GROUP = 2_000
_LARGEST_INTEGER = 2**63


def export_parquet(report: ExperimentReport, path: str | os.PathLike[str]) -> Path:
    """sample_id, prompt, output, reference, error, failures, one column a metric and one a field of the rows.

    A field of numbers, or of truth values, has that type; any other is text, lists and dicts as JSON.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DependencyError.for_extra("pyarrow", "hub", "exporting Parquet") from error
    columns = _columns(report)
    types = {float: pa.float64(), int: pa.int64(), bool: pa.bool_(), str: pa.string()}
    schema = pa.schema([(name, types[kind]) for name, (kind, _) in columns.items()])
    with whole_file(path) as file, pq.ParquetWriter(file, schema) as writer:
        for samples in batched(joined(report), _GROUP):
            arrays = [
                pa.array([_cell(read(sample), kind) for sample in samples], type=types[kind])
                for kind, read in columns.values()
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return Path(path)


Column = tuple[type, Callable[[Sample], Any]]


def _columns(report: ExperimentReport) -> dict[str, Column]:
    fields: dict[str, set[type]] = {}
    metrics = set(report.evaluation_report.metrics)
    for sample in joined(report):
        metrics.update(score.metric_name for score in sample.scores)
        for name, value in sample.metadata.items():
            fields.setdefault(name, set()).add(_kind(value))
    columns: dict[str, Column] = {
        "sample_id": (str, lambda sample: sample.sample_id),
        "prompt": (str, lambda sample: sample.prompt),
        "output": (str, lambda sample: sample.output),
        "reference": (str, lambda sample: sample.reference),
        "error": (str, lambda sample: sample.record.error.message if sample.record and sample.record.error else None),
        "failures": (str, lambda sample: "; ".join(sample.failures)),
    }
    for name in sorted(metrics):
        columns[f"metric:{name}"] = (float, partial(_score, name))
    for name in sorted(fields):
        # A row may have a field named as one of ours.
        column = name if name not in columns else f"row:{name}"
        columns[column] = (_common(fields[name]), partial(_field, name))
    return columns


def _score(name: str, sample: Sample) -> float | None:
    return score_values(sample.scores).get(name)


def _field(name: str, sample: Sample) -> Any:
    return sample.metadata.get(name)


def _kind(value: Any) -> type:
    if value is None:
        return type(None)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGEST_INTEGER:
        return str
    return type(value) if type(value) in (bool, int, float) else str


def _common(kinds: set[type]) -> type:
    kinds = kinds - {type(None)}
    if len(kinds) == 1:
        return next(iter(kinds))
    return float if kinds == {int, float} else str


def _cell(value: Any, kind: type) -> Any:
    if value is None:
        return None
    if kind is str:
        # Arrow strings are UTF-8, which cannot hold half a surrogate pair.
        return as_text(value).encode("utf-8", "backslashreplace").decode()
    return kind(value)
