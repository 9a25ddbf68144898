"""A catalogue benchmark's rows: from the Hub, a local copy, the shipped sample or a generator, all in our layout.

Also writes the local copies: `fetch_benchmark` is run where there is internet, its folder is carried to where there is
none.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from themis.exceptions import ConfigurationError, DatasetError
from themis.presets.catalogue import Entry
from themis.presets.hub import HubDataset, hub_rows, saved_rows
from themis.presets.loading import MANIFEST_SUFFIX, read_rows, readable_files, sample_rows

__all__ = ["BenchmarkRows", "FetchedBenchmark", "benchmark_rows", "fetch_rows"]

RawRows = Callable[[], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True)
class BenchmarkRows:
    """Rows in our layout, made anew each time they are gone through; never all in memory."""

    entry: Entry
    raw: RawRows
    where: str
    limit: int | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return itertools.islice(self._all(), self.limit)

    def _all(self) -> Iterator[dict[str, Any]]:
        for index, raw in enumerate(self.raw()):
            try:
                yield from self.entry.rows(raw, index)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise DatasetError(f"{self.entry.name}: row {index + 1} of {self.where}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return f"the field {error} is missing" if isinstance(error, KeyError) else str(error)


def benchmark_rows(
    entry: Entry, *, limit: int | None = None, data: str | Path | None = None, sample: bool = False
) -> BenchmarkRows:
    """Finds the source at once, so that a missing one is known before anything is run."""
    if limit is not None and limit < 0:
        raise ConfigurationError(f"limit must be 0 or more, got {limit}")
    if data is not None and sample:
        raise ConfigurationError(f"{entry.name}: give data= or sample=True, not both")
    if data is not None:
        return BenchmarkRows(entry, _local(entry, Path(data)), str(data), limit)
    source = entry.source
    if not isinstance(source, HubDataset):
        return BenchmarkRows(entry, lambda: source(limit), "its generator", limit)
    if sample:
        return BenchmarkRows(entry, lambda: sample_rows(entry.name), "its sample", limit)
    found = hub_rows(source, otherwise=_otherwise(entry.name)).rows
    return BenchmarkRows(entry, lambda: found, str(source), limit)


def _otherwise(name: str) -> str:
    return (
        f"Give a local copy (--data PATH or data=PATH), made where there is internet by `themis data fetch {name} --to DIR`, "
        f"or try its few sample rows (--sample or sample=True)"
    )


def _local(entry: Entry, path: Path) -> RawRows:
    """In a folder: this benchmark's fetched copy, a dataset saved by `datasets`, the files of its split, or all files."""
    split = entry.source.split if isinstance(entry.source, HubDataset) else ""
    fetched = path / f"{entry.name}.jsonl"
    if not path.is_dir() or fetched.is_file():
        file = _verified(fetched if path.is_dir() else path)
        read_rows(file)
        return lambda: read_rows(file)
    saved = path / split if (path / "dataset_dict.json").is_file() else path
    if (saved / "state.json").is_file():
        found = saved_rows(saved)
        return lambda: found
    files = readable_files(path)
    of_split = [file for file in files if split in (file.parent.name, *re.split(r"[-_.]", file.stem))]
    read_rows(path)
    return lambda: itertools.chain.from_iterable(read_rows(file) for file in of_split or files)


def _verified(file: Path) -> Path:
    """A fetched copy must be what its manifest says; other files have none."""
    manifest = file.with_name(file.stem + MANIFEST_SUFFIX)
    if manifest.is_file() and file.is_file():
        expected = json.loads(manifest.read_text(encoding="utf-8")).get("sha256")
        if expected != _sha256(file):
            raise DatasetError(f"{file} is not what {manifest.name} describes; fetch or copy it again")
    return file


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@dataclass(frozen=True)
class FetchedBenchmark:
    """What a fetch wrote."""

    name: str
    path: Path
    manifest_path: Path
    rows: int
    sha256: str


def fetch_rows(entry: Entry, to_dir: str | Path, *, limit: int | None = None) -> FetchedBenchmark:
    """Writes NAME.jsonl, in the source's own layout, and NAME.manifest.json, which says where it came from."""
    source, commit = entry.source, None
    raw: Iterable[Mapping[str, Any]]
    if isinstance(source, HubDataset):
        found = hub_rows(source, otherwise="Fetching needs a connection to the Hub")
        raw, commit, origin = found.rows, found.commit, asdict(source)
    else:
        raw, origin = source(limit), {"dataset": "made by themis"}
    folder = Path(to_dir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{entry.name}.jsonl"
    # Written beside and moved into place: a broken fetch leaves the copy from before.
    unfinished = path.with_suffix(".jsonl.part")
    count = 0
    with unfinished.open("w", encoding="utf-8", newline="\n") as file:
        for row in itertools.islice(raw, limit):
            file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            count += 1
    sha256 = _sha256(unfinished)
    manifest = {
        "benchmark": entry.name,
        "file": path.name,
        "rows": count,
        "sha256": sha256,
        "source": origin,
        "commit": commit,
        "licence": entry.licence,
        "citation": entry.citation,
        "fetched_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    manifest_path = folder / f"{entry.name}{MANIFEST_SUFFIX}"
    os.replace(unfinished, path)
    manifest_path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return FetchedBenchmark(entry.name, path, manifest_path, count, sha256)
