"""Writes files: whole or not at all, under names that stay in their folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from themis.core.codec import digest
from themis.exceptions import ConfigurationError

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file beside `path` that takes its place when the block ends well; parents are made.

    Raises:
        ConfigurationError: `path` is a directory, or cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise ConfigurationError(f"{str(target)!r} is a directory, expected the name of a file to write")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".partial")
    except OSError as error:
        raise ConfigurationError(f"cannot write {str(target)!r}: {error.strerror}") from error
    try:
        with os.fdopen(number, "wb") as handle:
            yield handle
        # mkstemp makes files that only their owner can read; an export is for others too.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def cache_folder(name: str) -> Path:
    """A folder of ours in the user's cache; it need not be there."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "themis" / name


def file_sha256(path: str | os.PathLike[str]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safe_filename(text: str) -> str:
    """The text itself if it is one plain word, else its legible part with a hash that keeps two of them apart."""
    if _SAFE.fullmatch(text) and ".." not in text and not text.endswith("."):
        return text
    legible = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]
    return f"{legible or 'item'}-{digest(text)[:12]}"


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
