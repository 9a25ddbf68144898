"""Where the datasets of lm-eval's tasks come from: the Hub, a local folder in their layout, or the rows of a stored run.

lm-eval loads them by `datasets.load_dataset` wherever it pleases, so that one function is answered here while a task is loaded.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from themis.core.codec import digest
from themis.core.files import file_sha256
from themis.core.registry import import_extra
from themis.exceptions import DatasetError
from themis.presets.hub import find_commit, offline_unless_reachable
from themis.presets.lm_eval.index import Foreign
from themis.presets.loading import MANIFEST_SUFFIX, READABLE_SUFFIXES, read_rows

# Builders of `datasets` that read files, which the task names itself.
_FILE_BUILDERS = {"json", "csv", "parquet", "text"}
_SHARD = re.compile(r"[-_.]\d{4,5}[-_.]of[-_.]\d{4,5}$")

_SPLIT = re.compile(r"train|test|valid|val$|dev")

Splits: TypeAlias = Mapping[str, Foreign]


@dataclass(frozen=True)
class DatasetCall:
    """What a task asks `datasets.load_dataset` for."""

    path: str
    name: str | None
    options: Mapping[str, Foreign]

    def __str__(self) -> str:
        return f"{self.path} ({self.name})" if self.name else self.path


class Answer(Protocol):
    """What a source says to a call: its splits, and where they are from in a few words."""

    def __call__(self, call: DatasetCall, load: Callable[[], Foreign]) -> tuple[Foreign, str]: ...


_LOCK = threading.RLock()
_ACTIVE: list[tuple[Answer, dict[str, str]]] = []


@contextlib.contextmanager
def answer_datasets(answer: Answer) -> Iterator[dict[str, str]]:
    """Lets a source answer every `datasets.load_dataset` of the block; the dict fills with where each dataset is from."""
    datasets: Foreign = import_extra("datasets", "lm-eval", "loading the dataset of an lm-eval task")
    origins: dict[str, str] = {}
    with _LOCK:
        original = datasets.load_dataset

        def load_dataset(path: str, name: str | None = None, **options: Foreign) -> Foreign:
            # Modules of tasks keep this function, so it must go on working outside of the block.
            if not _ACTIVE:
                return original(path, name, **options)
            current, told = _ACTIVE[-1]
            call = DatasetCall(path, name, options)
            found, origin = current(call, lambda: original(path, name, **options))
            told[str(call)] = origin
            return found

        _ACTIVE.append((answer, origins))
        datasets.load_dataset = load_dataset
        try:
            yield origins
        finally:
            datasets.load_dataset = original
            _ACTIVE.pop()


def from_hub(call: DatasetCall, load: Callable[[], Foreign]) -> tuple[Foreign, str]:
    """As lm-eval loads it, without waiting half a minute where the Hub cannot be reached."""
    datasets = import_extra("datasets", "lm-eval", "loading the dataset of an lm-eval task")
    with offline_unless_reachable(datasets) as unreachable:
        try:
            found = load()
        except Exception as error:  # boundary: whatever a dataset's own code or the Hub's client raises
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            if unreachable:
                reason = f"{datasets.config.HF_ENDPOINT} cannot be reached, and no earlier download is on this machine"
            raise DatasetError(
                f"the dataset {call} cannot be loaded: {reason}. Give a local copy with --data DIR, which has "
                f"{_expected_layout(call)}"
            ) from error
    one = next(iter(found.values()), found) if isinstance(found, Mapping) else found
    commit = find_commit(one)
    return found, f"Hugging Face Hub at {commit}" if commit else "Hugging Face Hub"


@dataclass(frozen=True)
class SavedFromHub:
    """Datasets of the Hub, each written to a folder as `LocalFolder` reads it."""

    root: Path

    def __call__(self, call: DatasetCall, load: Callable[[], Foreign]) -> tuple[Foreign, str]:
        datasets = import_extra("datasets", "lm-eval", f"saving {call}")
        found, origin = from_hub(call, load)
        splits = datasets.DatasetDict(found if isinstance(found, Mapping) else {str(call.options["split"]): found})
        if call.path in _FILE_BUILDERS:
            for split, given in _files_of(call).items():
                splits[split].to_json(self.root / f"{Path(given[0]).stem}.jsonl")
        else:
            splits.save_to_disk(self.root / Path(*call.path.split("/")) / (call.name or ""))
        return found, origin


def _files_of(call: DatasetCall) -> dict[str, list[str]]:
    """The files that a task names itself, by split."""
    given = call.options.get("data_files")
    by_split = given if isinstance(given, Mapping) else {"train": given}
    return {
        str(split): [str(one) for one in ([files] if isinstance(files, str) else files or ())]
        for split, files in by_split.items()
    }


@dataclass(frozen=True)
class LocalFolder:
    """Datasets in a folder, each in its own layout."""

    root: Path

    def __call__(self, call: DatasetCall, load: Callable[[], Foreign]) -> tuple[Foreign, str]:
        if call.path in _FILE_BUILDERS and call.options.get("data_files") is not None:
            files = self._named_files(call)
            if files is None:
                return load(), "files that the task names"
        else:
            folder = self._find(call)
            saved = _read_saved(folder)
            if saved is not None:
                return _choose(saved, call), f"local copy {_fingerprint_of(sorted(folder.rglob('*.arrow')))}"
            files = _files_by_split(folder)
        splits = {split: _read_split(paths) for split, paths in files.items()}
        return _choose(
            splits, call
        ), f"local copy {_fingerprint_of([path for paths in files.values() for path in paths])}"

    def _find(self, call: DatasetCall) -> Path:
        owner, _, short = call.path.rpartition("/")
        spelt = dict.fromkeys(
            [call.path, f"{owner}__{short}" if owner else short, f"{owner}--{short}" if owner else short, short]
        )
        folders = [self.root / Path(*one.split("/")) for one in spelt]
        below = [call.options.get("data_dir"), call.name]
        named = [str(one) for one in below if one]
        candidates = [folder / name for folder in folders for name in named] + folders
        candidates += [self.root / name for name in named]
        for candidate in candidates:
            if candidate.is_dir() and _has_rows(candidate):
                return candidate
        # The folder itself may be the one dataset, if its files are named after splits.
        if self.root.is_dir() and (_is_saved(self.root) or any(map(_SPLIT.match, _files_by_split(self.root)))):
            return self.root
        raise DatasetError(
            f"there are no rows of the dataset {call} in {str(self.root)!r}; it should have {_expected_layout(call)}"
        )

    def _named_files(self, call: DatasetCall) -> dict[str, list[Path]] | None:
        """The files of a task that names them, found by their names in the folder; None where one is not there."""
        found: dict[str, list[Path]] = {}
        for split, given in _files_of(call).items():
            for name in (Path(one).name for one in given):
                # Compressed or converted ones have another ending.
                here = sorted([*self.root.rglob(name), *self.root.rglob(f"{name.partition('.')[0]}.jsonl")])
                if not here:
                    return None
                found.setdefault(split, []).append(here[0])
        return found


@dataclass(frozen=True)
class StoredDocs:
    """The rows that a stored run has kept, in place of every split: enough to judge answers by, without any dataset."""

    docs: Sequence[Mapping[str, Foreign]]

    def __call__(self, call: DatasetCall, load: Callable[[], Foreign]) -> tuple[Foreign, str]:
        return _AnySplit(_Docs(self.docs)), "the rows of the run"


class _Docs(list[Foreign]):
    @property
    def features(self) -> Mapping[str, Foreign]:
        return self[0] if self else {}


class _AnySplit(dict[str, Foreign]):
    def __init__(self, docs: _Docs) -> None:
        self._docs = docs

    def __missing__(self, split: str) -> _Docs:
        return self._docs


# --- a folder's files ---------------------------------------------------------------------------------------------------


def _expected_layout(call: DatasetCall) -> str:
    place = "/".join(part for part in (call.path, call.name) if part)
    return f"{place}/SPLIT.jsonl (or .json, .csv, .parquet), or at {place} what save_to_disk wrote"


def _has_rows(folder: Path) -> bool:
    return _is_saved(folder) or bool(_files_by_split(folder))


def _is_saved(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))


def _read_saved(folder: Path) -> Splits | None:
    datasets = import_extra("datasets", "lm-eval", f"reading {folder}")
    if (folder / "dataset_dict.json").is_file():
        splits: Splits = datasets.load_from_disk(str(folder))
        return splits
    if (folder / "state.json").is_file():
        return {"train": datasets.load_from_disk(str(folder))}
    return None


def _files_by_split(folder: Path) -> dict[str, list[Path]]:
    """Files named after their split; in folders named after it; or so in a folder `data`."""
    direct = _row_files(folder)
    if not direct and (folder / "data").is_dir():
        direct = _row_files(folder / "data")
    if not direct:
        below = [path for path in sorted(folder.iterdir()) if path.is_dir()]
        return {path.name: files for path in below if (files := _row_files(path)) and all(map(_is_part, files))}
    found: dict[str, list[Path]] = {}
    for path in direct:
        found.setdefault(_SHARD.sub("", path.stem), []).append(path)
    return found


def _row_files(folder: Path) -> list[Path]:
    files = (path for path in folder.iterdir() if path.suffix.lower() in READABLE_SUFFIXES and path.is_file())
    return sorted(path for path in files if not path.name.endswith(MANIFEST_SUFFIX))


def _is_part(path: Path) -> bool:
    """Whether a file's own name says nothing of a split, such as `0000.parquet`, `data.jsonl` or `part-1.jsonl`."""
    return re.fullmatch(r"(?:data|rows|part|shard)?[-_.]?\d*", _SHARD.sub("", path.stem)) is not None


def _read_split(paths: Sequence[Path]) -> Foreign:
    datasets = import_extra("datasets", "lm-eval", f"reading {paths[0]}")
    if all(path.suffix.lower() == ".parquet" for path in paths):
        import pyarrow.parquet

        tables = [pyarrow.parquet.read_table(path) for path in paths]
        return datasets.concatenate_datasets(
            [datasets.Dataset(datasets.table.InMemoryTable(table)) for table in tables]
        )
    rows = [row for path in paths for row in read_rows(path)]
    return datasets.Dataset.from_list(rows)


def _choose(splits: Splits, call: DatasetCall) -> Foreign:
    datasets = import_extra("datasets", "lm-eval", f"reading {call}")
    split = call.options.get("split")
    if split is None:
        return datasets.DatasetDict(splits)
    if split not in splits:
        raise DatasetError(f"the local copy of {call} has no split {split!r}; it has {', '.join(splits)}")
    return splits[split]


def _fingerprint_of(files: Sequence[Path]) -> str:
    return digest(" ".join(file_sha256(path) for path in files))[:16]
