"""Puts files into a program's working directory before it runs, and takes out what it left there.

Called by the supervisor while no process of the program exists. What a program left is foreign: nothing in it is followed, and
only plain files of its own are opened.
"""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterable

from themis.evaluation.sandbox.inside.wire import CollectedFolder, FolderEntry

# Counting goes no further: a program may leave any number of files.
_MOST_COUNTED = 100_000
_LONGEST_PATH = 1_000
_MOST_LEFT_OUT = 20


def fill(directory: str, owner: int | None, entries: Iterable[FolderEntry]) -> None:
    """Makes the files and directories, for the user that the program runs as."""
    made: set[str] = set()
    for entry in entries:
        parts = entry["path"].split("/")
        folders = ["/".join(parts[:depth]) for depth in range(1, len(parts) + (entry["data"] is None))]
        for folder in folders:
            if folder not in made:
                made.add(folder)
                os.mkdir(f"{directory}/{folder}", 0o700)
                _hand_over(f"{directory}/{folder}", owner)
        if entry["data"] is not None:
            path = f"{directory}/{entry['path']}"
            mode = 0o700 if entry["executable"] else 0o600
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(base64.b64decode(entry["data"]))
            _hand_over(path, owner)


def _hand_over(path: str, owner: int | None) -> None:
    if owner is not None:
        os.chown(path, owner, owner, follow_symlinks=False)


class _Collector:
    """Walks through a working directory, and counts on where it takes nothing any more."""

    def __init__(self, directory: str, owner: int | None, most_bytes: int, most_files: int) -> None:
        self._directory, self._owner = directory, owner
        self._most_bytes, self._most_files = most_bytes, most_files
        self._entries: list[FolderEntry] = []
        self._left_out: list[tuple[str, str]] = []
        self._bytes = self._files = 0

    def collect(self) -> CollectedFolder:
        waiting = [""]
        while waiting and self._files < _MOST_COUNTED:
            folder = waiting.pop()
            names = self._list(folder)
            if folder and not names:
                self._add(folder, None, executable=False)
            for name in names:
                path = f"{folder}/{name}" if folder else name
                if not _is_nameable(path):
                    self._leave_out(ascii(path)[:80], "a name that is too long or no text")
                elif self._take(path):
                    waiting.append(path)
        fits = self._fits()
        return {
            "entries": sorted(self._entries, key=lambda entry: entry["path"]) if fits else [],
            "fits": fits,
            "bytes": self._bytes,
            "files": self._files,
            "left_out": self._left_out,
        }

    def _list(self, folder: str) -> list[str]:
        path = f"{self._directory}/{folder}"
        try:
            try:
                return sorted(os.listdir(path))
            except PermissionError:
                os.chmod(path, 0o700)  # the program has locked it
                return sorted(os.listdir(path))
        except OSError as error:
            self._leave_out(folder, error.strerror or "cannot be read")
            return []

    def _take(self, path: str) -> bool:
        """Takes a file; whether it is a directory instead."""
        try:
            found = os.lstat(f"{self._directory}/{path}")
        except OSError as error:
            self._leave_out(path, error.strerror or "cannot be read")
            return False
        if stat.S_ISDIR(found.st_mode):
            return True
        if not self._is_own_file(found):
            self._leave_out(path, _describe(found))
            return False
        self._bytes += found.st_size
        try:
            data = self._read(path) if self._fits() else b""
        except OSError as error:
            self._leave_out(path, error.strerror or "cannot be read")
        else:
            self._add(path, base64.b64encode(data).decode(), executable=bool(found.st_mode & stat.S_IXUSR))
        return False

    def _is_own_file(self, found: os.stat_result) -> bool:
        """A second name for a file may be one for a file of somebody else's."""
        is_own = self._owner is None or found.st_uid == self._owner
        return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and is_own

    def _read(self, path: str) -> bytes:
        place, flags = f"{self._directory}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(place, flags)
        except PermissionError:
            os.chmod(place, 0o600)
            descriptor = os.open(place, flags)
        with os.fdopen(descriptor, "rb") as file:
            # What is read is what was looked at, whoever may have put something else in its place.
            if not self._is_own_file(os.fstat(descriptor)):
                raise PermissionError(0, "is no longer what it was")
            return file.read(self._most_bytes + 1)

    def _add(self, path: str, data: str | None, *, executable: bool) -> None:
        self._files += 1
        if self._fits():
            self._entries.append({"path": path, "data": data, "executable": executable})

    def _fits(self) -> bool:
        return self._bytes <= self._most_bytes and self._files <= self._most_files

    def _leave_out(self, path: str, reason: str) -> None:
        if len(self._left_out) < _MOST_LEFT_OUT:
            self._left_out.append((path, reason))


def collect(directory: str, owner: int | None, most_bytes: int, most_files: int) -> CollectedFolder:
    """What a program left in its working directory, up to a size."""
    return _Collector(directory, owner, most_bytes, most_files).collect()


def _describe(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    return "a file of several names" if stat.S_ISREG(found.st_mode) else "no plain file"


def _is_nameable(path: str) -> bool:
    try:
        return len(path.encode()) <= _LONGEST_PATH and path.isprintable()
    except UnicodeEncodeError:  # bytes that are no UTF-8
        return False
