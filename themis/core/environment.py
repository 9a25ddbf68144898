"""The `.env` file of a project, put into the environment at the doors: the command line, and wherever a model is named.

Importing Themis reads nothing. What the environment had before wins over the file; what an earlier reading set may be
changed by the file, so that a key can be mended without a new process.
"""

from __future__ import annotations

import io
import logging
import os
from pathlib import Path

from themis.exceptions import ConfigurationError

__all__ = ["read_dotenv"]

logger = logging.getLogger(__name__)

SWITCH = "THEMIS_NO_DOTENV"
_OWN: dict[str, str] = {}


def read_dotenv() -> None:
    """Sets what the nearest `.env`, of the working directory or one above it, says and the environment does not."""
    path = None if os.environ.get(SWITCH) else _find()
    if path is None:
        return
    for name, value in _values(path).items():
        if value is not None and os.environ.get(name) in (None, _OWN.get(name)):
            os.environ[name] = _OWN[name] = value


def _find() -> Path | None:
    try:
        here = Path.cwd()
    except OSError:  # the working directory was removed
        return None
    return next((path for folder in (here, *here.parents) if _is_ours(path := folder / ".env", here)), None)


def _is_ours(path: Path, here: Path) -> bool:
    """In a folder that all may write to, such as /tmp, somebody else could say where the keys are sent."""
    try:
        if not path.is_file():
            return False
        owner, trusted = path.stat().st_uid, {0, getattr(os, "geteuid", int)(), here.stat().st_uid}
    except OSError:
        return False
    if owner not in trusted:
        logger.warning("%s is not read: it belongs to another user", path)
    return owner in trusted


def _values(path: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"{path} cannot be read: {reason}. {_WAYS_ON}") from error
    for part in parse_stream(io.StringIO(text)):
        if part.error or "\0" in part.original.string:
            # The line itself is not shown: it may hold a key.
            raise ConfigurationError(
                f"line {part.original.line} of {path} cannot be read, expected NAME=value. {_WAYS_ON}"
            )
    return dotenv_values(stream=io.StringIO(text))


_WAYS_ON = f"Mend it, or set {SWITCH}=1 to do without it"
