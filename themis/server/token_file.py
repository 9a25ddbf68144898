"""The token of a user's own servers, in a file that only they can read.

A user has one for all their servers, because a browser sends the cookies of 127.0.0.1 to every port: two tokens would log
each other's pages out.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from pathlib import Path

from themis.exceptions import ConfigurationError

__all__ = ["read_or_make_token", "token_path"]

_LONGEST_TOKEN_BYTES = 1_000


def token_path() -> Path:
    """`themis/server-token` in the user's state directory (`XDG_STATE_HOME`, by default ~/.local/state)."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "themis" / "server-token"


def read_or_make_token(path: Path) -> str:
    """The token in the file, which is made where there is none; one that others could know is refused."""
    try:
        if not path.is_symlink() and not path.exists():
            _make(path)
        return _read(path)
    except OSError as error:
        raise ConfigurationError(
            f"the server's token cannot be kept in {path}: {error.strerror or error}; set THEMIS_SERVER_TOKEN to one of "
            "your own, or give --no-token to let every user of this machine in"
        ) from error


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, partial = tempfile.mkstemp(dir=path.parent)  # readable by its owner only
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
        # Of two servers that start at once the first one's token stays.
        if not path.exists():
            os.link(partial, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(partial)


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        _refuse_shared(path, os.fstat(file.fileno()))
        token = file.read(_LONGEST_TOKEN_BYTES).decode("utf-8", "replace").strip()
    if not token:
        raise ConfigurationError(f"the token file {path} is empty; delete it, and the next server makes a new one")
    return token


def _refuse_shared(path: Path, found: os.stat_result) -> None:
    if not hasattr(os, "geteuid"):  # Windows guards a user's profile itself
        return
    if found.st_uid != os.geteuid():
        raise ConfigurationError(
            f"the token file {path} belongs to user {found.st_uid}, this server runs as {os.geteuid()}; "
            "give XDG_STATE_HOME a directory of your own"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise ConfigurationError(
            f"the token file {path} has mode {mode:04o}, so others may have read it; delete it, and the next server "
            "makes a new one"
        )
