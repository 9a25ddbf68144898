"""Which files of this machine an interpreter needs to run: its standard library, and the shared libraries behind it.

Run once by the interpreter in question; everything that is not listed does not exist for model-written code.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Programs of the standard library's own making (`shell=True`), time zones, and how text is encoded.
_PROGRAMS = ("/bin/sh",)
# Scripts say by its whole path that they want it.
_SHELL = ("/bin/bash",)
_DATA = ("/usr/share/zoneinfo", "/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8")
_LOADERS_INDEX = "/etc/ld.so.cache"
# Loaded by the C library itself when a thread ends, and named by no file.
_LOADED_BY_NAME = ("libgcc_s.so.1",)
_FOREIGN = ("site-packages", "dist-packages")


def main() -> None:
    """Prints `{"directories": [...], "files": [...], "hidden": [...]}`.

    Arguments are packages that are shown too, and by their names, behind a `+`, programs.
    """
    packages = [argument for argument in sys.argv[3:] if argument[0] != "+"]
    named = [_locate(argument[1:]) for argument in sys.argv[3:] if argument[0] == "+"]
    directories = [
        os.path.dirname(os.__file__),
        *(path for path in sys.path if os.path.basename(path) == "lib-dynload"),
    ]
    further = [path for path in (*_PROGRAMS, *named, *(_SHELL if named else ())) if os.path.exists(path)]
    programs = [sys.executable, os.path.realpath(sys.executable), *further]
    modules = [path for place in (directories[-1], *packages) for path in _modules(place)]
    files = {*programs, *_libraries([*programs, *modules]), *filter(os.path.exists, [_LOADERS_INDEX])}
    hidden = [f"{place}/{name}" for place in directories for name in _FOREIGN if os.path.isdir(f"{place}/{name}")]
    shown = _without_inner([*directories, *filter(os.path.isdir, _DATA)])
    json.dump({"directories": shown, "files": sorted(files), "hidden": hidden}, sys.stdout)


def _locate(program: str) -> str:
    own = f"/usr/bin/{program}"
    return own if os.path.exists(own) else f"/bin/{program}"


def _without_inner(paths: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not any(path.startswith(f"{parent}/") for parent in kept):
            kept.append(path)
    return kept


def _modules(place: str) -> Iterator[str]:
    """Extension modules, which are shared libraries with needs of their own."""
    if os.path.isfile(place):
        yield place
    for directory, _, names in os.walk(place):
        yield from (f"{directory}/{name}" for name in names if ".so" in name)


def _libraries(starts: Iterable[str]) -> set[str]:
    """What the loader would load for these files, and itself."""
    found: set[str] = set()
    waiting = [_Needs((), (), name) for name in map(_find, _LOADED_BY_NAME) if name]
    waiting += [needs for needs in map(_needs, starts) if needs]
    while waiting:
        needs = waiting.pop()
        for path in (needs.loader, *(_find(name, needs.places) for name in needs.names)):
            if path and path not in found:
                found.add(path)
                further = _needs(path)
                waiting += [further] if further else []
    return found


def _find(name: str, places: Iterable[str] = ()) -> str:
    for place in (*places, *_default_places()):
        if os.path.exists(f"{place}/{name}"):
            return os.path.normpath(f"{place}/{name}")
    return ""


def _default_places() -> list[str]:
    """Where loaders look, Debian's places by machine among them."""
    machine = os.uname().machine
    system = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"]
    kinds = [f"{place}/{machine}-linux-{kind}" for place in ("/lib", "/usr/lib") for kind in ("gnu", "musl")]
    given = [place for place in os.environ.get("LD_LIBRARY_PATH", "").split(":") if place]
    return [*given, *kinds, *system, f"{sys.base_prefix}/lib"]


class _Needs(NamedTuple):
    """What an ELF file asks the loader for: names, its own places to look in, and the loader itself."""

    names: tuple[str, ...]
    places: tuple[str, ...]
    loader: str


_SEGMENT_LOADED, _SEGMENT_DYNAMIC, _SEGMENT_LOADER = 1, 2, 3
_NAME_NEEDED, _STRINGS, _RPATH, _RUNPATH = 1, 5, 15, 29


def _needs(path: str) -> _Needs | None:
    """Read from the file's dynamic section; None for what is no 64-bit ELF file."""
    with open(path, "rb") as file:
        if file.read(6) != b"\x7fELF\x02\x01":
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _dynamic_section(data, os.path.dirname(path))


def _dynamic_section(data: mmap.mmap, origin: str) -> _Needs:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    loaded, dynamic, loader = [], b"", ""
    for position in range(table, table + size * count, size):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, position)
        if kind == _SEGMENT_LOADED:
            loaded.append((address, length, offset))
        elif kind == _SEGMENT_DYNAMIC:
            dynamic = data[offset : offset + length]
        elif kind == _SEGMENT_LOADER:
            loader = data[offset : offset + length].rstrip(b"\0").decode()
    entries = list(struct.iter_unpack("<qQ", dynamic[: len(dynamic) // 16 * 16]))
    strings = next((value for tag, value in entries if tag == _STRINGS), 0)
    base = next((offset + strings - start for start, length, offset in loaded if start <= strings < start + length), 0)

    def text(value: int) -> str:
        return data[base + value : data.find(b"\0", base + value)].decode()

    places = [place for tag, value in entries if tag in (_RPATH, _RUNPATH) for place in text(value).split(":")]
    return _Needs(
        tuple(text(value) for tag, value in entries if tag == _NAME_NEEDED),
        tuple(place.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", origin) for place in places if place),
        loader,
    )
