"""Reads rows from files: JSON Lines, JSON, CSV and Parquet, one row at a time.

`themis.evaluate`, the command line and the benchmarks' `data=` all read through `read_rows`; a row that cannot be read
is named by its file and line.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from themis.core.registry import import_extra, nearest
from themis.exceptions import DatasetError
from themis.presets.fields import Row

# What `fetch_benchmark` writes beside the rows; it is no rows itself.
MANIFEST_SUFFIX = ".manifest.json"

# A group of rows in a Parquet file may have this size unpacked, or this many times the size of the file.
_ROW_GROUP_BYTES = 256 * 2**20
_MOST_TIMES = 200

# What may stand before the first character that says something.
_BLANK = b"\xef\xbb\xbf \t\r\n"


def read_rows(path: str | Path) -> Iterator[Row]:
    r"""The rows of a file, or of all readable files of a folder in the order of their names.

    The path is checked at once; the rows are read as they are asked for.

    Args:
        path: A `.jsonl`, `.json`, `.csv`, `.tsv` or `.parquet` file, or a folder of such.

    Raises:
        DatasetError: There is nothing to read, or a row cannot be read; names the file and the line.

    >>> _ = Path("rows.csv").write_text("question,answer\n2 + 2,4\n")
    >>> list(read_rows("rows.csv"))
    [{'question': '2 + 2', 'answer': '4'}]
    """
    file = Path(path)
    if not file.exists():
        siblings = [sibling.name for sibling in file.parent.iterdir()] if file.parent.is_dir() else []
        raise DatasetError(f"there is no file {str(file)!r}{nearest(file.name, siblings)}")
    if file.is_dir():
        files = readable_files(file)
        if not files:
            raise DatasetError(f"no {_format_suffixes()} file in the folder {str(file)!r}")
        return (row for each in files for row in read_rows(each))
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        is_experiment = file.suffix.lower() in (".yml", ".yaml")
        raise DatasetError(
            f"{str(file)!r} ends in {file.suffix or 'nothing'!r}; rows are read from {_format_suffixes()} files"
            + ("; an experiment's file is for `themis run`" if is_experiment else "")
        )
    return reader(file, str(file))


def detect_format(start: bytes) -> str:
    """The format of rows by their beginning, as `read_rows_as` takes it: JSON in any form, a table with tabs or commas, Parquet.

    Args:
        start: The first bytes, with the whole first line of a table.

    >>> detect_format(b"question\\tanswer\\n2 + 2\\t4\\n")
    'tsv'
    """
    if start.startswith(b"PAR1"):
        return "parquet"
    start = start.lstrip(_BLANK)
    if start.startswith((b"[", b"{")):
        return "json"
    return "tsv" if b"\t" in start.partition(b"\n")[0] else "csv"


def read_rows_as(format_name: str, path: Path, name: str) -> Iterator[Row]:
    """The rows of a file whose own name says nothing of it.

    Args:
        format_name: `jsonl`, `json`, `csv`, `tsv` or `parquet`.
        path: The file.
        name: What errors call it.
    """
    return _READERS[f".{format_name}"](path, name)


@dataclass(frozen=True)
class FileRows:
    """A file's rows as they are, read anew each time they are gone through; the path is checked at once."""

    path: str | Path
    limit: int | None = None

    def __post_init__(self) -> None:
        read_rows(self.path)

    def __iter__(self) -> Iterator[Row]:
        return itertools.islice(read_rows(self.path), self.limit)


def sample_rows(name: str) -> Iterator[Row]:
    """The few rows that are shipped with a benchmark, in its source's layout."""
    return read_rows(Path(__file__).with_name("samples") / f"{name}.jsonl")


def readable_files(folder: Path) -> list[Path]:
    """Files of a kind that `read_rows` knows, folders within folders too, by name."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in _READERS and not file.name.endswith(MANIFEST_SUFFIX) and file.is_file()
    )


def _format_suffixes() -> str:
    return ", ".join(READABLE_SUFFIXES)


def _read_jsonl(path: Path, name: str) -> Iterator[Row]:
    # Lines are divided by \n alone: other separators of Unicode may stand inside a text.
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if text := line.strip():
                yield _require_object(_parse_json(text, name, number), name, number)


def _read_json(path: Path, name: str) -> Iterator[Row]:
    """An array of objects; an object that holds one; or JSON Lines under a name that does not say so."""
    with path.open("rb") as file:
        start = file.read(4096).lstrip(_BLANK)
        if start.startswith(b"["):
            return _read_array(path, name)
        first_line, _, rest = start.partition(b"\n")
        first_line += b"" if rest else file.readline()
    return _read_jsonl(path, name) if _is_json(first_line) else _read_wrapped_array(path, name)


def _read_array(path: Path, name: str) -> Iterator[Row]:
    """Item after item, so that a file larger than memory can be read."""
    decoder = json.JSONDecoder()
    try:
        with path.open(encoding="utf-8-sig") as file:
            window = _Window(file)
            window.skip("[")
            while window.next_character() != "]":
                line = window.line
                yield _require_object(window.decode(decoder, name), name, line)
    except UnicodeDecodeError as error:
        raise DatasetError(f"{name}: not UTF-8: {error.reason} at byte {error.start}") from error


class _Window:
    """The part of a JSON text that is being looked at, the place in it, and the line of that place."""

    CHUNK_CHARS = 1 << 20

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._text = file.read(self.CHUNK_CHARS)
        self._at = 0
        self.line = 1

    def next_character(self) -> str:
        """The first one that is neither space nor comma; nothing at the end."""
        while True:
            gap = _GAP.match(self._text, self._at)
            self._move(gap.end() if gap else self._at)
            if self._at < len(self._text) or not self._grow():
                return self._text[self._at : self._at + 1]

    def skip(self, opening: str) -> None:
        self._move(self._text.index(opening, self._at) + 1)

    def decode(self, decoder: json.JSONDecoder, name: str) -> object:
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                wrong = _invalid_json(name, self.line - self._text.count("\n", 0, self._at), error)
                # Cut off by the window, or wrong: only the end of the file can tell.
                if self._grow():
                    continue
                raise wrong from error
            self._move(end)
            return value

    def _move(self, place: int) -> None:
        self.line += self._text.count("\n", self._at, place)
        self._at = place

    def _grow(self) -> bool:
        # As much again as there is, so that one huge item does not cost the square of its size.
        left = self._text[self._at :]
        more = self._file.read(max(self.CHUNK_CHARS, len(left)))
        self._text, self._at = left + more, 0
        return bool(more)


_GAP = re.compile(r"[\s,]*")


def _invalid_json(name: str, first_line: int, error: Exception) -> DatasetError:
    if isinstance(error, json.JSONDecodeError):
        line = first_line + error.lineno - 1
        # Objects one below the other, over several lines each: what `jq` writes without `-c`.
        how = "; several rows are one array, or a line each (jq -c)" if error.msg == "Extra data" else ""
        return DatasetError(f"{name}, line {line}: not valid JSON: {error.msg} (column {error.colno}){how}")
    return DatasetError(f"{name}, line {first_line}: not valid JSON: {error}")


def _read_wrapped_array(path: Path, name: str) -> Iterator[Row]:
    whole = _parse_json(path.read_bytes(), name, 1)
    lists = [(key, value) for key, value in whole.items() if _is_rows(value)] if isinstance(whole, dict) else []
    if len(lists) != 1:
        found = f"an object with the keys {', '.join(whole)}" if isinstance(whole, dict) else type(whole).__name__
        raise DatasetError(f"{name}: expected an array of objects, or an object that holds one; found {found}")
    yield from lists[0][1]


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _parse_json(text: bytes, name: str, line: int) -> object:
    try:
        return json.loads(text.removeprefix(b"\xef\xbb\xbf").decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DatasetError(f"{name}, line {line}: not UTF-8: {error.reason} at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise _invalid_json(name, line, error) from error


def _require_object(value: object, name: str, line: int) -> Row:
    if not isinstance(value, dict):
        raise DatasetError(f"{name}, line {line}: a row is an object with named fields, found {type(value).__name__}")
    return value


def _read_table(path: Path, name: str, *, delimiter: str) -> Iterator[Row]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.reader(file, delimiter=delimiter, strict=True)
            names = next(table, [])
            doubled = len(set(names)) < len(names)
            if not names or doubled:
                raise DatasetError(
                    f"{name}: the first line must name each column once, it says {', '.join(names) or 'nothing'}"
                )
            if len(names) == 1 and (other := next((mark for mark in ";\t|," if mark in names[0]), None)):
                raise DatasetError(
                    f"{name}: its columns seem to be separated by {other!r}; a .csv file has commas, a .tsv file tabs"
                )
            for cells in table:
                if len(cells) not in (0, len(names)):
                    raise DatasetError(
                        f"{name}, line {table.line_num}: {len(cells)} cells, but the first line names {len(names)} columns"
                    )
                if cells:
                    yield {column: _parse_cell(cell) for column, cell in zip(names, cells, strict=True)}
    except csv.Error as error:
        raise DatasetError(f"{name}, line {table.line_num}: not valid CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{name}: not UTF-8: {error.reason} at byte {error.start}") from error


def _parse_cell(cell: str) -> object:
    """A list or an object in a cell is written as JSON; everything else is text."""
    if cell.startswith(("[", "{")):
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    return cell


def _read_parquet(path: Path, name: str) -> Iterator[Row]:
    parquet = import_extra("pyarrow.parquet", "hub", f"reading {name}")
    try:
        with parquet.ParquetFile(path) as file:
            _refuse_burst(path, name, file.metadata)
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
    except DatasetError:
        raise
    except (OSError, ValueError) as error:
        raise DatasetError(f"{name}: not a readable Parquet file: {error}") from error


def _refuse_burst(path: Path, name: str, metadata: Any) -> None:
    """Memory depends on the largest group of rows, and a few kilobytes can be packed to become gigabytes."""
    largest = max((metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)), default=0)
    packed = path.stat().st_size
    if largest > max(_ROW_GROUP_BYTES, _MOST_TIMES * packed):
        raise DatasetError(
            f"{name} has {packed:,} bytes, of which a group of rows would become {largest:,}; at most {_MOST_TIMES} times "
            "as much is unpacked. If you trust it, write it again with smaller row groups"
        )


_READERS: dict[str, Callable[[Path, str], Iterator[Row]]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": partial(_read_table, delimiter=","),
    ".tsv": partial(_read_table, delimiter="\t"),
    ".parquet": _read_parquet,
}
READABLE_SUFFIXES = tuple(_READERS)
