"""Reads files that others made, in pieces of bounded size: lines, members of archives, items of a JSON array.

Memory depends on the largest piece, never on the file; what is larger, or packed more tightly, than any honest log is
refused before it is read.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from themis.exceptions import DatasetError

MEBIBYTE = 2**20
_CHUNK = MEBIBYTE
_HOW_TO_RAISE = "if you trust it, read it without limits: --no-limits, in Python limits=NO_LIMITS"


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """How much is read of a file that somebody else made.

    Args:
        part_bytes: Of one line, sample, header or small file, all of which are held in memory. Logs of agents with
            thousands of calls have samples of some ten megabytes.
        members: Files in an archive.
        ratio: Of an archive's contents to its size. Logs are packed 5 to 50 times; what is made to burst, 1,000 times.
        unpacked_bytes: Contents of this size are fine at any ratio.
        folder_bytes: Of a folder whose files are held in memory together.
    """

    part_bytes: int = 128 * MEBIBYTE
    members: int = 200_000
    ratio: int = 200
    unpacked_bytes: int = 64 * MEBIBYTE
    folder_bytes: int = 512 * MEBIBYTE


NO_LIMITS = ReadLimits(part_bytes=sys.maxsize, members=sys.maxsize, ratio=sys.maxsize, folder_bytes=sys.maxsize)


@dataclass(frozen=True)
class Broken:
    """A part of a file that cannot be read: where, and why."""

    where: str
    reason: str


def read_file(path: Path, limits: ReadLimits) -> bytes:
    """A small file whole."""
    _refuse_large(path.name, path.stat().st_size, limits)
    return path.read_bytes()


def refuse_large_folder(folder: Path, limits: ReadLimits) -> None:
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if size > limits.folder_bytes:
        raise DatasetError(
            f"the files in {folder} have {_size(size)}, and at most {_size(limits.folder_bytes)} are read into memory; "
            f"{_HOW_TO_RAISE}"
        )


def read_lines(path: Path, limits: ReadLimits) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, without those that are empty."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(min(limits.part_bytes + 1, sys.maxsize)):
            number += 1
            if len(line) > limits.part_bytes:
                raise DatasetError(_too_large(f"line {number} of {path.name}", None, limits))
            if line.strip():
                yield number, line


# --- archives ---------------------------------------------------------------------------------------------------------


def open_archive(path: Path, limits: ReadLimits) -> zipfile.ZipFile:
    """An archive whose contents are of a size that its own allows for."""
    archive = zipfile.ZipFile(path)
    members = archive.infolist()
    if len(members) > limits.members:
        raise DatasetError(
            f"{path.name} has {len(members):,} files in it, and at most {limits.members:,} are read; {_HOW_TO_RAISE}"
        )
    packed, unpacked = path.stat().st_size, sum(member.file_size for member in members)
    if unpacked > max(limits.unpacked_bytes, limits.ratio * packed):
        raise DatasetError(
            f"{path.name} has {_size(packed)} and would become {_size(unpacked)}, {unpacked // packed:,} times as much; "
            f"at most {limits.ratio} times is unpacked; {_HOW_TO_RAISE}"
        )
    return archive


def read_member(archive: zipfile.ZipFile, name: str, limits: ReadLimits) -> bytes:
    _refuse_large(name, archive.getinfo(name).file_size, limits)
    # Not more than its entry says, whatever the packed bytes would become.
    return archive.read(name)


# --- JSON -------------------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Where a value stands in a file."""

    start: int
    end: int


class JsonFile:
    """One JSON object in a file, in which values are found without being built.

    `members` has the place of each value by its name. The array called `array` is looked into: `items` has the places of
    its items, None where there is no such array.
    """

    def __init__(self, path: Path, limits: ReadLimits, *, array: str) -> None:
        self._path = path
        self._limits = limits
        self.members: dict[str, Piece] = {}
        self.items: list[Piece] | None = None
        with path.open("rb") as file:
            self._index(_Scanner(file, path.name), array)

    def _index(self, scanner: _Scanner, array: str) -> None:
        scanner.expect(b"{")
        while scanner.peek() == b'"':
            name = self.read(scanner.value())[1:-1].decode("utf-8", "replace")
            scanner.expect(b":")
            if name == array and scanner.peek() == b"[":
                self.items = list(scanner.array())
            else:
                self.members[name] = scanner.value()
            if scanner.peek() != b",":
                break
            scanner.expect(b",")
        scanner.expect(b"}")

    def read(self, piece: Piece) -> bytes:
        size = piece.end - piece.start
        _refuse_large(f"a part of {self._path.name} at byte {piece.start:,}", size, self._limits)
        with self._path.open("rb") as file:
            file.seek(piece.start)
            return file.read(size)


_SPACE = re.compile(rb"[ \t\r\n]*+")
# Everything up to the next bracket, or to a string that does not end in this chunk.
_NO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]*+")


class _Scanner:
    """Walks over JSON in chunks and tells where values end; whether they are right is for a decoder to find."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._chunk_start = 0
        self._chunk = b""
        self._at = 0

    @property
    def _place(self) -> int:
        return self._chunk_start + self._at

    def peek(self) -> bytes:
        """The next character that is no space; nothing at the end of the file."""
        while True:
            found = _SPACE.match(self._chunk, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._chunk):
                return self._chunk[self._at : self._at + 1]
            if not self._next_chunk():
                return b""

    def expect(self, wanted: bytes) -> None:
        found = self.peek()
        if found != wanted:
            shown = repr(found.decode("latin-1")) if found else "its end"
            raise DatasetError(
                f"{self._name} is not JSON: expected {wanted.decode()!r} at byte {self._place:,}, got {shown}"
            )
        self._at += 1

    def value(self) -> Piece:
        first = self.peek()
        start = self._place
        if first == b'"':
            self._at += 1
            self._end_string()
        elif first in (b"{", b"["):
            self._end_brackets()
        else:
            self._match(_SCALAR)
            if self._place == start:
                raise DatasetError(f"{self._name} is not JSON: expected a value at byte {start:,}")
        return Piece(start, self._place)

    def array(self) -> Iterator[Piece]:
        """The items of the array that begins here."""
        self.expect(b"[")
        while self.peek() not in (b"]", b""):
            yield self.value()
            if self.peek() == b",":
                self.expect(b",")
        self.expect(b"]")

    def _end_brackets(self) -> None:
        depth = 0
        while True:
            self._match(_NO_BRACKET)
            character = self._chunk[self._at : self._at + 1]
            if not character:
                raise DatasetError(f"{self._name} is not whole: it ends inside a value")
            self._at += 1
            if character == b'"':
                self._end_string()
                continue
            depth += 1 if character in b"{[" else -1
            if depth == 0:
                return

    def _end_string(self) -> None:
        while True:
            self._match(_IN_STRING)
            character = self._chunk[self._at : self._at + 1]
            if not character:
                raise DatasetError(f"{self._name} is not whole: it ends inside a text")
            if character == b'"':
                self._at += 1
                return
            # A backslash whose character is in the next chunk.
            self._at += 1
            if not self._next_chunk():
                raise DatasetError(f"{self._name} is not whole: it ends inside a text")
            self._at += 1

    def _match(self, pattern: re.Pattern[bytes]) -> None:
        """Moves on for as long as the pattern fits, over the ends of chunks."""
        while True:
            found = pattern.match(self._chunk, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._chunk) or not self._next_chunk():
                return

    def _next_chunk(self) -> bool:
        """Goes on with the next chunk once the last one is used up."""
        self._chunk_start += len(self._chunk)
        self._chunk, self._at = self._file.read(_CHUNK), 0
        return bool(self._chunk)


def _refuse_large(what: str, size: int, limits: ReadLimits) -> None:
    if size > limits.part_bytes:
        raise DatasetError(_too_large(what, size, limits))


def _too_large(what: str, size: int | None, limits: ReadLimits) -> str:
    has = f"has {_size(size)}" if size is not None else f"has more than {_size(limits.part_bytes)}"
    return f"{what} {has}, and at most {_size(limits.part_bytes)} are read into memory; {_HOW_TO_RAISE}"


def _size(size: int) -> str:
    for unit, bytes_each in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_each:
            return f"{size / bytes_each:.1f} {unit}"
    return f"{size} bytes"
