"""Rows from the Hugging Face Hub, where it can be reached or has been before."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from themis.core.registry import import_extra
from themis.exceptions import ConfigurationError, DatasetError
from themis.presets.fields import Row
from themis.presets.loading import FileRows, readable_files


@dataclass(frozen=True, kw_only=True)
class HubDataset:
    """One split of a dataset. `revision` is a commit or a branch; None is the newest.

    Of several `configs` the rows come one after the other, each with its configuration's name in the field `subset`.
    """

    dataset: str
    split: str
    config: str | None = None
    configs: tuple[str, ...] = ()
    revision: str | None = None
    # The files of the split, where the dataset's own form needs code of its own to be read.
    data_files: tuple[str, ...] = ()
    # For branches of converted files, which have folders where the original has configurations.
    data_dir: str | None = None
    gated: bool = False

    def __str__(self) -> str:
        several = f"{len(self.configs)} configurations" if self.configs else None
        parts = (several or self.config or self.data_dir, self.split)
        return f"{self.dataset} ({', '.join(part for part in parts if part)})"


# How a split of any dataset is named where rows are asked for.
HUB_PREFIX = "hf://"


def parse_hub_address(address: str) -> HubDataset:
    """`hf://owner/name[@revision][/config]/split` as what to load.

    >>> parse_hub_address("hf://openai/gsm8k@main/socratic/train[:100]")
    HubDataset(dataset='openai/gsm8k', split='train[:100]', config='socratic', configs=(), revision='main', data_files=(), \
data_dir=None, gated=False)
    """
    parts = address.removeprefix(HUB_PREFIX).split("/")
    if len(parts) not in (3, 4) or not all(parts):
        lacks = "names no split" if len(parts) == 2 and all(parts) else "is no address of a dataset's split"
        raise ConfigurationError(
            f"{address!r} {lacks}; write hf://owner/name/split, or hf://owner/name/config/split where the dataset has "
            "configurations, such as hf://openai/gsm8k/main/test"
        )
    name, _, revision = parts[1].partition("@")
    return HubDataset(
        dataset=f"{parts[0]}/{name}",
        split=parts[-1],
        config=parts[2] if len(parts) == 4 else None,
        revision=revision or None,
    )


@lru_cache(maxsize=8)
def load_address(address: str) -> HubRows:
    """The rows of an address; the same that another run of this process has loaded."""
    otherwise = (
        "Ways on: load it where there is a connection and copy the folder HF_HOME from there; or save it there with "
        "save_to_disk and give that folder in place of the address; or name a mirror in HF_ENDPOINT"
    )
    return hub_rows(parse_hub_address(address), otherwise=otherwise)


@dataclass(frozen=True)
class HubRows:
    """The rows, and the commit they are of where the Hub told it."""

    rows: Iterable[Row]
    commit: str | None


def hub_rows(source: HubDataset, *, otherwise: str) -> HubRows:
    """Loads a split; where that is impossible, one line says why and what to do `otherwise`."""
    datasets = import_extra("datasets", "hub", f"loading {source} from the Hugging Face Hub")
    wanted = {"revision": source.revision, "data_dir": source.data_dir, "data_files": list(source.data_files) or None}
    given = {name: value for name, value in wanted.items() if value is not None}
    try:
        with offline_unless_reachable(datasets) as unreachable:
            found = [
                datasets.load_dataset(source.dataset, config, split=source.split, **given)
                for config in source.configs or (source.config,)
            ]
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError, *_transport_errors()) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if unreachable:
            reason = f"{datasets.config.HF_ENDPOINT} cannot be reached, and no earlier download is on this machine"
        gate = "; access to it must be asked for on its page, then `hf auth login`" if source.gated else ""
        raise DatasetError(
            f"{source} cannot be loaded from the Hugging Face Hub: {reason}{gate}. {otherwise}"
        ) from error
    rows = _name_subsets(found, source.configs) if source.configs else found[0]
    return HubRows(rows, find_commit(found[0]))


def _name_subsets(found: Sequence[Iterable[Row]], configs: Sequence[str]) -> Iterator[Row]:
    for config, rows in zip(configs, found, strict=True):
        for row in rows:
            yield {"subset": config, **row}


def folder_rows(folder: Path) -> Iterable[Row]:
    """The rows of a folder: what `save_to_disk` of `datasets` wrote, or files of rows of one split."""
    if (folder / "state.json").is_file():
        return saved_rows(folder)
    splits = sorted(part.name for part in folder.iterdir() if (part / "state.json").is_file())
    if not splits:
        files = readable_files(folder)
        splits = sorted({found[1].lower() for file in files if (found := _SPLIT.search(file.stem))})
        splits = splits if len(splits) > 1 else []
    if splits:
        raise DatasetError(
            f"{str(folder)!r} holds the splits {', '.join(splits)}; name the files or the folder of one of them"
        )
    return FileRows(folder)


# The split that a file is of, as the Hub's files are called: train-00000-of-00002.parquet.
_SPLIT = re.compile(r"^(train|test|validation|valid|dev)(?=$|[-_.])", re.IGNORECASE)


def saved_rows(folder: Path) -> Iterable[Row]:
    """What the method `save_to_disk` of `datasets` wrote."""
    datasets = import_extra("datasets", "hub", f"reading {folder}")
    try:
        found: Iterable[Row] = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise DatasetError(f"{folder} is not a dataset that `datasets` saved: {error}") from error
    return found


@contextlib.contextmanager
def offline_unless_reachable(datasets: Any) -> Iterator[bool]:
    """Without a connection `datasets` waits and retries for half a minute before it looks into its cache."""
    before = datasets.config.HF_HUB_OFFLINE
    unreachable = not before and not _reachable(datasets.config.HF_ENDPOINT)
    datasets.config.HF_HUB_OFFLINE = before or unreachable
    try:
        yield unreachable
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _reachable(endpoint: str) -> bool:
    # These take longer to import than all benchmarks together, and most runs never ask.
    import socket
    import urllib.parse
    import urllib.request

    address = urllib.parse.urlsplit(endpoint)
    proxies = urllib.request.getproxies()
    if address.scheme in proxies or "all" in proxies:
        return True  # only the proxy knows
    try:
        port = address.port or (443 if address.scheme == "https" else 80)
        socket.create_connection((address.hostname or "", port), timeout=5).close()
    except OSError:
        return False
    return True


def _transport_errors() -> tuple[type[Exception], ...]:
    """Errors of the HTTP library below the Hub's client, which it does not always translate."""
    loaded = (sys.modules.get(name) for name in ("httpx", "httpx2"))  # which one depends on the client's version
    return tuple(library.HTTPError for library in loaded if library is not None)


def find_commit(dataset: object) -> str | None:
    checksums = getattr(getattr(dataset, "info", None), "download_checksums", None) or {}
    commits = {found[1] for url in checksums if (found := re.search(r"@([0-9a-f]{40})/", str(url)))}
    return commits.pop() if len(commits) == 1 else None
