"""Reads the rows that the pages of an SQLite file still hold, where SQLite itself refuses the file.

A page is read for what it is, wherever it lies: a tree is followed as far as its pages are there, and what no tree leads to any
more is found by going through all pages. The format is that of https://www.sqlite.org/fileformat2.html; nothing is written.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

# The two kinds of trees: one is ordered by row number, the other by the row's own first columns.
TABLE, INDEX = "table", "index"
_KINDS = {0x0D: TABLE, 0x05: TABLE, 0x0A: INDEX, 0x02: INDEX}
_INTERIOR = (0x05, 0x02)
_MAGIC = b"SQLite format 3\x00"
_FILE_HEADER_BYTES = 100
_USUAL_PAGE_BYTES = 4_096
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LOG_MAGIC = (0x377F0682, 0x377F0683)


SqliteValue: TypeAlias = int | float | str | bytes | None


class DamagedText(str):
    """Text with bytes that are no UTF-8; U+FFFD stands where they were."""

    __slots__ = ()


class Row(NamedTuple):
    """A row as it lies in its page. `rowid` is None in a tree that has no row numbers."""

    rowid: int | None
    values: tuple[SqliteValue, ...]


class _Broken(Exception):
    """What is read is not what the format says, or is not there."""


class Page:
    """One page of a tree: its children, its rows, and how many of its rows cannot be read."""

    def __init__(self, file: PageFile, data: bytes, *, start: int = 0) -> None:
        kind = _KINDS.get(data[start]) if start < len(data) else None
        if kind is None:
            raise _Broken
        self.kind = kind
        self.children: list[int] = []
        self.rows: list[Row] = []
        self.broken = 0
        self._file, self._data = file, data
        is_interior = data[start] in _INTERIOR
        (cells,) = struct.unpack_from(">H", data, start + 3)
        pointers = start + (12 if is_interior else 8)
        if pointers + 2 * cells > len(data):
            raise _Broken
        for place in struct.unpack_from(f">{cells}H", data, pointers):
            try:
                self._read_cell(place, is_interior)
            except (_Broken, IndexError, struct.error):
                self.broken += 1
        if is_interior:
            self.children += struct.unpack_from(">I", data, start + 8)

    def _read_cell(self, place: int, is_interior: bool) -> None:
        if is_interior:
            self.children += struct.unpack_from(">I", self._data, place)
            if self.kind == TABLE:
                return
            place += 4
        length, place = _varint(self._data, place)
        rowid = None
        if self.kind == TABLE:
            rowid, place = _varint(self._data, place)
        self.rows.append(Row(rowid, _values(self._payload(place, length))))

    def _payload(self, place: int, length: int) -> bytes:
        """A row's bytes: in the page, and for a long row on a chain of pages that belong to it alone."""
        usable = self._file.usable
        smallest = (usable - 12) * 32 // 255 - 23
        most = usable - 35 if self.kind == TABLE else (usable - 12) * 64 // 255 - 23
        if length <= most:
            if place + length > len(self._data):
                raise _Broken
            return self._data[place : place + length]
        here = smallest + (length - smallest) % (usable - 4)
        here = here if here <= most else smallest
        parts, missing = [self._data[place : place + here]], length - here
        (following,) = struct.unpack_from(">I", self._data, place + here)
        if missing > self._file.count * usable:
            raise _Broken
        while missing > 0:
            page = self._file.page(following)
            if page is None:
                raise _Broken
            (following,) = struct.unpack_from(">I", page)
            parts.append(page[4 : 4 + min(missing, usable - 4)])
            missing -= usable - 4
        return b"".join(parts)


class Tree:
    """The rows that can be reached from a root, and in `broken` how many places could not be read on the way."""

    def __init__(self, file: PageFile, root: int, kind: str) -> None:
        self.broken = 0
        self._file, self._root, self._kind = file, root, kind

    def __iter__(self) -> Iterator[Row]:
        waiting = [self._root]
        while waiting:
            number = waiting.pop()
            page = None if number in self._file.reached else self._file.tree_page(number)
            if page is None or page.kind != self._kind:
                self.broken += 1
                continue
            self._file.reached.add(number)
            self.broken += page.broken
            yield from page.rows
            waiting += reversed(page.children)


class PageFile:
    """The pages of a database, with what its log holds laid over them. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._handle = path.open("rb")
        size = path.stat().st_size
        self._file: mmap.mmap | bytes = mmap.mmap(self._handle.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        header = self._file[:_FILE_HEADER_BYTES]
        log = path.with_name(f"{path.name}-wal")
        self._log = log.read_bytes() if log.is_file() else b""
        self.has_header = header[:16] == _MAGIC
        self.page_bytes = _page_bytes(header if self.has_header else b"", self._log)
        self.usable = self.page_bytes - (header[20] if self.has_header and header[20] < 32 else 0)
        # What the program that wrote the file counts its versions by.
        self.user_version = int.from_bytes(header[60:64], "big") if self.has_header else 0
        # Pages that a tree has led to.
        self.reached: set[int] = set()
        self._over: dict[int, int] = {}
        # Pages in the log behind a place where it is broken, the newest first: written, but never found by SQLite.
        self.behind_break: list[bytes] = []
        self._read_log()
        self.count = max([-(-size // self.page_bytes), *self._over])

    def __enter__(self) -> PageFile:
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._file, mmap.mmap):
            self._file.close()
        self._handle.close()

    def page(self, number: int) -> bytes | None:
        """The bytes of a page; what a file that was cut off lacks of it is zero. None where there is no such page."""
        if (place := self._over.get(number)) is not None:
            return self._log[place : place + self.page_bytes]
        found = self._file[(number - 1) * self.page_bytes : number * self.page_bytes] if number > 0 else b""
        return found.ljust(self.page_bytes, b"\x00") if found else None

    def tree_page(self, number: int) -> Page | None:
        data = self.page(number)
        if data is None:
            return None
        try:
            return Page(self, data, start=_FILE_HEADER_BYTES if number == 1 else 0)
        except (_Broken, struct.error):
            return None

    def read_pages(self, pages: Iterable[bytes]) -> Iterator[Page]:
        """Those of the pages that are of a tree."""
        for data in pages:
            with contextlib.suppress(_Broken, struct.error):
                yield Page(self, data)

    def loose_pages(self, free: set[int]) -> Iterator[Page]:
        """Pages of trees that no tree has led to, without the free ones."""
        for number in range(1, self.count + 1):
            if number not in self.reached and number not in free and (page := self.tree_page(number)) is not None:
                yield page

    def free_pages(self) -> set[int] | None:
        """Pages that nothing is on any more; None if their list is damaged."""
        first = self.page(1)
        if first is None or first[:16] != _MAGIC:
            return None
        following, count = struct.unpack_from(">II", first, 32)
        free: set[int] = set()
        while following and len(free) <= count:
            trunk = self.page(following)
            if trunk is None or following in free:
                return None
            free.add(following)
            following, leaves = struct.unpack_from(">II", trunk)
            if leaves > self.page_bytes // 4 - 2:
                return None
            free.update(struct.unpack_from(f">{leaves}I", trunk, 8))
        return free if len(free) == count else None

    # --- the log -----------------------------------------------------------------------------------------------------

    def _read_log(self) -> None:
        """Lays the log's committed pages over the file's, and keeps those behind a break."""
        log = self._log
        if len(log) < _LOG_HEADER_BYTES:
            return
        magic, _, page_bytes, _, *sums = struct.unpack_from(">8I", log)
        if magic not in _LOG_MAGIC or page_bytes != self.page_bytes:
            return
        salt, order = log[16:24], ">" if magic & 1 else "<"
        checked = _checksum(log[:24], order, (0, 0))
        whole = checked == tuple(sums[2:])
        committed, uncommitted = self._over, dict[int, int]()
        for start in range(_LOG_HEADER_BYTES, len(log), _FRAME_HEADER_BYTES + page_bytes):
            data = start + _FRAME_HEADER_BYTES
            if data + page_bytes > len(log) or log[start + 8 : start + 16] != salt:
                whole = False
                continue
            number, size_after_commit, _, _, *sums = struct.unpack_from(">6I", log, start)
            if whole:
                checked = _checksum(log[start : start + 8], order, checked)
                checked = _checksum(log[data : data + page_bytes], order, checked)
                if whole := checked == tuple(sums):
                    uncommitted[number] = data
                    if size_after_commit:
                        committed.update(uncommitted)
                        uncommitted = {}
                    continue
            self.behind_break.insert(0, log[data : data + page_bytes])


def _page_bytes(header: bytes, log: bytes) -> int:
    """From the file's header, the log's, or else the size that SQLite gives every file it makes."""
    told = struct.unpack_from(">H", header, 16)[0] if len(header) >= 18 else 0
    if not told and len(log) >= _LOG_HEADER_BYTES:
        (told,) = struct.unpack_from(">I", log, 8)
    size = 65_536 if told == 1 else told
    return size if 512 <= size <= 65_536 and size & (size - 1) == 0 else _USUAL_PAGE_BYTES


def _checksum(data: bytes, order: str, before: tuple[int, int]) -> tuple[int, int]:
    one, two = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


# --- rows -----------------------------------------------------------------------------------------------------------


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for at in range(place, place + 8):
        byte = data[at]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + 1
    value = value << 8 | data[place + 8]
    return value - (1 << 64) if value >= 1 << 63 else value, place + 9


def _values(payload: bytes) -> tuple[SqliteValue, ...]:
    header_bytes, place = _varint(payload, 0)
    if header_bytes > len(payload):
        raise _Broken
    values, at = [], header_bytes
    while place < header_bytes:
        kind, place = _varint(payload, place)
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload) or place != header_bytes:
        raise _Broken
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[SqliteValue, int]:
    """One column's value by the number that tells its kind and length, and where it ends."""
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    if kind < 0 or kind in (10, 11):
        raise _Broken
    length = _INTEGER_BYTES[kind] if kind < 12 else (kind - 12) // 2
    found = payload[at : at + length]
    if len(found) < length:
        raise _Broken
    if kind < 12:
        return int.from_bytes(found, "big", signed=True), at + length
    return (_text(found) if kind % 2 else found), at + length


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return DamagedText(data.decode("utf-8", "replace"))
