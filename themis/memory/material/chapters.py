"""Samples of the public ChapterBreak file, and long texts in pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from themis.exceptions import DatasetError
from themis.memory.material.tale import OPTIONS

__all__ = ["pages", "read_samples"]

# Samples of the public file that can be solved from their context: the ones that published results are about.
GOODAI_SAMPLES = ("12653258_1", "47583370_7", "90051444_0")
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


def pages(text: str, size: int) -> list[str]:
    """The text in parts of at most so many characters, cut between sentences where that is possible; nothing is lost."""
    cut = []
    while len(text) > size:
        end = max(text.rfind(mark, 0, size) + len(mark) for mark in (". ", "\n", "! ", "? "))
        end = end if end > size // 2 else size
        cut.append(text[:end])
        text = text[end:]
    return [*cut, text]


def read_samples(path: str | None, split: str) -> dict[str, dict[str, Any]]:
    """The samples of a split with enough wrong continuations, by `<book>_<index>`."""
    if path is None:
        raise DatasetError(f"chapterbreak: split {split!r} needs data_location, the public file; or say split: tale")
    try:
        content = Path(path).read_bytes()
        if content.startswith(_ZSTANDARD):
            raise DatasetError(f"chapterbreak: {path!r} is compressed; decompress it first: zstd -d {path!r}")
        books = json.loads(content)
        wanted = {
            f"{book}_{index}": sample
            for part in (("pg19", "ao3") if split in ("all", "goodai") else (split,))
            for book, samples in books[part].items()
            for index, sample in enumerate(samples)
            if len(sample["negs"]) >= OPTIONS - 1 and sample["ctx"] and sample["pos"]
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"chapterbreak: {path!r} cannot be read as ChapterBreak data: {error!r}") from error
    return {name: wanted[name] for name in GOODAI_SAMPLES if name in wanted} if split == "goodai" else wanted
