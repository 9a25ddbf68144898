"""The names of lm-eval's tasks: an index of its YAML files, read from their heads and kept in the user's cache.

lm-eval parses all of its 14,000 files whole before it knows one name. Here only the lines that name things are read, once;
`tasks` then loads the one task that is wanted.
"""

from __future__ import annotations

import fnmatch
import importlib.metadata
import importlib.util
import json
import os
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from themis.config.specification import LM_EVAL_PREFIX
from themis.core.codec import digest
from themis.core.files import atomic_write, cache_folder
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, DependencyError

# Counted up whenever what is read from a file changes.
_FORMAT = 1
_IGNORED_FOLDERS = {"__pycache__", ".ipynb_checkpoints"}
_KEYS = ("task", "group", "tag", "class", "include", "output_type")
_KEY = re.compile(rf"""^(["']?)({"|".join(_KEYS)})\1[ \t]*:(.*)$""", re.MULTILINE)
# What ends a value that goes on over several lines: a list may stand at the margin.
_NEXT = re.compile(r"^(?:[^\s#-]|---)", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z_][\w./+@-]*")
_NOT_TEXT = {"null", "true", "false", "yes", "no", "on", "off"}

# An object of lm-eval's or of `datasets`', which say nothing of their types, or a value of a task's own.
Foreign: TypeAlias = Any
# The keys of a file's head that it has, with their values.
Head: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class Entry:
    """What a name stands for: a `task`, a Python task (`class`), a `group`, or a `tag` with the tasks that carry it."""

    name: str
    kind: str
    path: str | None = None
    output_type: str = ""
    # Of a tag, the tasks that carry it.
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskIndex:
    """Every name that can stand behind `lm-eval:`."""

    entries: Mapping[str, Entry]

    def find(self, name: str) -> Entry:
        """The entry of a name, or of a YAML file.

        Raises:
            ConfigurationError: There is no such task; names the nearest ones.
        """
        found = self.entries.get(name)
        if found is None and name.endswith((".yaml", ".yml")) and Path(name).is_file():
            found = next(iter(_index_files([Path(name)]).values()), None)
        if found is None:
            raise ConfigurationError(
                f"lm-eval has no task {name!r}{self._suggest(name)}; "
                f"look with `themis list benchmarks '{LM_EVAL_PREFIX}{name.split('_')[0]}*'`, or give the folder of a task of "
                "your own with --include"
            )
        return found

    def match(self, pattern: str) -> list[Entry]:
        """Entries whose name fits a pattern with `*` and `?`, sorted; a pattern without them is looked for anywhere.

        >>> found = TaskIndex({"arc_easy": Entry("arc_easy", "task"), "boolq": Entry("boolq", "task")})
        >>> [entry.name for entry in found.match("arc*")]
        ['arc_easy']
        """
        wanted = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
        return [self.entries[name] for name in sorted(self.entries) if fnmatch.fnmatchcase(name, wanted)]

    def _suggest(self, name: str) -> str:
        # Comparing with 14,000 names takes seconds: those with the same start or the same words come first.
        start = name[:3].casefold()
        words = {word for word in re.split(r"[_\W]+", name.casefold()) if len(word) > 2}
        like = [one for one in self.entries if one.casefold().startswith(start) or any(word in one for word in words)]
        return nearest(name, like[:3_000])


def load_index(include: Sequence[str | Path] = ()) -> TaskIndex:
    """The index of the installed lm-eval, with folders or files of the user's own before it.

    Args:
        include: Where the user's own YAML files are; their names win.

    Raises:
        DependencyError: lm-eval is not installed.
        ConfigurationError: There is no such folder or file.
    """
    own: dict[str, Entry] = {}
    for one in include:
        path = Path(one).expanduser()
        if not path.exists():
            raise ConfigurationError(f"--include {str(one)!r}: there is no such file or folder")
        own.update(_index_files([path] if path.is_file() else _yaml_files(path)))
    package = _package_entries()
    return TaskIndex(ChainMap(own, cast("dict[str, Entry]", package)) if own else package)


def is_lm_eval_task(name: str) -> bool:
    """Whether a benchmark's name is that of a task of lm-eval.

    >>> is_lm_eval_task("lm-eval:gsm8k"), is_lm_eval_task("gsm8k")
    (True, False)
    """
    return name.startswith(LM_EVAL_PREFIX)


def lm_eval_version() -> str:
    """The version of the installed lm-eval.

    Raises:
        DependencyError: lm-eval is not installed.
    """
    try:
        return importlib.metadata.version("lm_eval")
    except importlib.metadata.PackageNotFoundError as error:
        raise DependencyError.for_extra("lm_eval", "lm-eval", "running a task of lm-eval") from error


def tasks_folder() -> Path:
    """Where the installed lm-eval keeps its tasks."""
    lm_eval_version()
    # Found without importing the package, which takes a second.
    found = importlib.util.find_spec("lm_eval")
    if found is None or not found.submodule_search_locations:
        raise DependencyError.for_extra("lm_eval", "lm-eval", "running a task of lm-eval")
    return Path(found.submodule_search_locations[0]) / "tasks"


# --- the cache ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _package_entries() -> Mapping[str, Entry]:
    folder = tasks_folder()
    path = cache_folder("lm-eval") / f"index-{digest(f'{_FORMAT} {_state_of(folder)}')[:16]}.json"
    try:
        stored = json.loads(path.read_bytes())
        if isinstance(stored, dict):
            return _StoredEntries(stored)
    except (OSError, ValueError):
        pass
    entries = _index_files(_yaml_files(folder))
    rows = {one.name: (one.kind, one.path, one.output_type, one.tasks) for one in entries.values()}
    with atomic_write(path) as file:
        file.write(json.dumps(rows).encode())
    for old in path.parent.glob("index-*.json"):
        if old != path:
            old.unlink(missing_ok=True)
    return entries


class _StoredEntries(Mapping[str, Entry]):
    """Entries of the cache, made when they are asked for: a run needs a few of 14,000."""

    def __init__(self, stored: Mapping[str, Sequence[Foreign]]) -> None:
        self._stored = stored

    def __getitem__(self, name: str) -> Entry:
        kind, path, output_type, tasks = self._stored[name]
        return Entry(name, kind, path, output_type, tuple(tasks))

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _state_of(folder: Path) -> str:
    """What changes whenever a task file does: of an installed package its list of files, else the files themselves."""
    version = lm_eval_version()
    record = folder.parent.parent / f"lm_eval-{version}.dist-info" / "RECORD"
    if record.is_file():
        found = record.stat()
        return f"{version} {folder} {found.st_mtime_ns} {found.st_size}"
    files = [(str(path), path.stat().st_mtime_ns) for path in _yaml_files(folder)]
    return f"{version} {digest(repr(files))}"


# --- heads of files -----------------------------------------------------------------------------------------------------


def _yaml_files(folder: Path) -> list[Path]:
    """In lm-eval's order, in which the first file of a name wins."""
    found = [
        Path(root, name)
        for root, folders, names in os.walk(folder)
        if not _IGNORED_FOLDERS.intersection(Path(root).parts)
        for name in names
        if name.endswith(".yaml")
    ]
    return sorted(found, key=lambda path: path.as_posix())


def _index_files(paths: Iterable[Path]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    tags: dict[str, set[str]] = {}
    heads: dict[Path, Head] = {}
    for path in paths:
        try:
            head = _merged_head(path, heads)
        except (OSError, ValueError):
            continue  # as lm-eval does: a file that cannot be read names no task
        kind = next(
            (kind for kind, key in (("class", "class"), ("group", "group"), ("task", "task")) if key in head), None
        )
        name = head.get("group" if kind == "group" else "task")
        if kind is None or not isinstance(name, str) or name in entries:
            continue
        entries[name] = Entry(name, kind, str(path), str(head.get("output_type") or ""))
        if kind != "group":
            for tag in _as_texts(head.get("tag")):
                tags.setdefault(tag, set()).add(name)
    for tag, names in tags.items():
        # A task or group of that name comes first, as in lm-eval.
        entries.setdefault(tag, Entry(tag, "tag", tasks=tuple(sorted(names))))
    return entries


def _merged_head(path: Path, heads: dict[Path, Head], above: tuple[Path, ...] = ()) -> Head:
    """A file's keys over those of the files that it includes."""
    found = heads.get(path)
    if found is not None:
        return found
    if path in above:
        raise ValueError(f"{path} includes itself")
    head = _read_head(path)
    merged: Head = {}
    for name in _as_texts(head.pop("include", None)):
        included = Path(os.path.normpath(path.parent / name))
        merged.update(_merged_head(included, heads, (*above, path)))
    merged.update(head)
    heads[path] = merged
    return merged


def _read_head(path: Path) -> Head:
    text = path.read_text(encoding="utf-8")
    return {key: value for key, value in _parse_keys(text) if value is not None}


def _parse_keys(text: str) -> Iterator[tuple[str, object]]:
    for match in _KEY.finditer(text):
        key, inline = match[2], match[3].partition(" #")[0].strip()
        if key == "class":
            yield key, "class"
            continue
        bare = inline[1:-1] if len(inline) > 1 and inline[0] == inline[-1] and inline[0] in "\"'" else inline
        if _PLAIN.fullmatch(bare) and bare.casefold() not in _NOT_TEXT:
            yield key, bare
            continue
        end = _NEXT.search(text, match.end())
        yield key, _parse_value(text[match.start(3) + 1 : end.start() if end else len(text)])


def _parse_value(text: str) -> object:
    import yaml

    lines = [line.strip() for line in text.splitlines()]
    items = [line for line in lines if line and not line.startswith("#")]
    if items and all(line.startswith("- ") and _PLAIN.fullmatch(line[2:].strip()) for line in items):
        return [line[2:].strip() for line in items]
    try:
        # Functions are of no interest here, and nothing is called.
        return yaml.safe_load(re.sub(r"!\w+", "", text))
    except yaml.YAMLError:
        return None


def _as_texts(value: object) -> list[str]:
    return (
        [value]
        if isinstance(value, str)
        else [one for one in value if isinstance(one, str)]
        if isinstance(value, list)
        else []
    )
