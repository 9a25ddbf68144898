"""Writes a file so that it is either all there or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from themis.exceptions import ConfigurationError

__all__ = ["whole_file"]


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file beside `path` that takes its place when the block ends well; parents are made."""
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


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
