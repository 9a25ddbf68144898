"""Writes the items of a diff to a file as they are read: CSV, JSON lines or a page."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from themis.comparison.diff import DiffItem, RunDiff
from themis.comparison.pages import diff_page
from themis.core.codec import encode
from themis.exceptions import ConfigurationError

__all__ = ["item_row", "write_diff"]

_COLUMNS = (
    *("metric", "item_id", "change", "score_a", "score_b", "input_a", "input_b", "reference", "output_a", "output_b"),
)
# A spreadsheet takes a cell that begins like this for a formula and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_diff(diff: RunDiff, items: Iterable[DiffItem], path: str | Path) -> int:
    """Writes by the file's ending and returns how many items there were. A file that exists is replaced when all is written."""
    path = Path(path)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ConfigurationError(f"a diff is written to a file ending in {', '.join(_WRITERS)}, got {str(path)!r}")
    counted = _Counted(items)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", errors="backslashreplace", newline="") as handle:
            writer(diff, counted, handle)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return counted.count


def item_row(item: DiffItem) -> dict[str, Any]:
    """One item as JSON; several attempts are a list, one is its text."""
    return {
        "metric": item.metric,
        "item_id": item.item_id,
        "change": item.change.value,
        "score_a": item.score_a,
        "score_b": item.score_b,
        "input_a": item.input_a,
        "input_b": item.input_b,
        "reference": item.reference,
        "output_a": _one_or_all(item.outputs_a),
        "output_b": _one_or_all(item.outputs_b),
    }


class _Counted:
    def __init__(self, items: Iterable[DiffItem]) -> None:
        self._items = items
        self.count = 0

    def __iter__(self) -> Iterator[DiffItem]:
        for item in self._items:
            self.count += 1
            yield item


def _write_csv(diff: RunDiff, items: Iterable[DiffItem], handle: TextIO) -> None:
    writer = csv.writer(handle)
    writer.writerow(_COLUMNS)
    for item in items:
        row = item_row(item)
        writer.writerow([_cell(row[column]) for column in _COLUMNS])


def _write_json_lines(diff: RunDiff, items: Iterable[DiffItem], handle: TextIO) -> None:
    for item in items:
        handle.write(encode(item_row(item)) + "\n")


def _write_page(diff: RunDiff, items: Iterable[DiffItem], handle: TextIO) -> None:
    handle.writelines(diff_page(diff, items))


_WRITERS: dict[str, Callable[[RunDiff, Iterable[DiffItem], TextIO], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".html": _write_page,
}


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else encode(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _one_or_all(outputs: tuple[str, ...]) -> str | list[str]:
    return outputs[0] if len(outputs) == 1 else list(outputs)
