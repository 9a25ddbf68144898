"""Rows that come by a pipe instead of lying in a file: `themis eval -`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from themis.presets.fields import Row
from themis.presets.loading import detect_format, read_rows_as

__all__ = ["FORMATS", "STANDARD_INPUT", "PipedRows"]

# What stands for it where a file would be named.
STANDARD_INPUT = "-"
FORMATS = ("jsonl", "json", "csv", "tsv", "parquet")
_ENOUGH_BYTES = 1 << 20


class PipedRows:
    """The rows of a stream, kept in a temporary file while the program runs, so that they can be read as often as a file's.

    Args:
        stream: Where they come from; it is read to its end at once.
        format_name: One of `FORMATS`; by default it is known by the first bytes.

    >>> import io
    >>> list(PipedRows(io.BytesIO(b"question,answer\\n2 + 2,4\\n")))
    [{'question': '2 + 2', 'answer': '4'}]
    """

    # A stored run says by it where its rows came from.
    name = STANDARD_INPUT

    def __init__(self, stream: IO[bytes], format_name: str | None = None) -> None:
        # Removed with this object.
        self._file = tempfile.NamedTemporaryFile(prefix="themis-rows-")  # noqa: SIM115
        shutil.copyfileobj(stream, self._file)
        self._file.flush()
        self._path = Path(self._file.name)
        with self._path.open("rb") as written:
            start = written.read(_ENOUGH_BYTES)
        self.format_name = format_name or detect_format(start)
        self._is_empty = not start.strip()

    def __iter__(self) -> Iterator[Row]:
        if self._is_empty:
            return iter(())
        return read_rows_as(self.format_name, self._path, "standard input")

    def __str__(self) -> str:
        return STANDARD_INPUT
