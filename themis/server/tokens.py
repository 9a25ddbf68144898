"""Who may come in, and how often: the token, its file, the cookie that stands for it after logging in, and rate limits.

The cookie's key follows from the token alone, so that several server processes with one token know each other's sessions, and
a new token ends all of them. A user has one token for all their servers, because a browser sends the cookies of 127.0.0.1 to
every port: two tokens would log each other's pages out.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import tempfile
import time
from collections import OrderedDict
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from themis.exceptions import ConfigurationError
from themis.generation.limits import TokenBucket

COOKIE = "themis_session"
LIFETIME_SECONDS = 7 * 24 * 3600
_REMEMBERED_CLIENTS = 10_000


def new_session(token: str, now: float | None = None) -> str:
    """`expiry.signature`"""
    expiry = int((time.time() if now is None else now) + LIFETIME_SECONDS)
    return f"{expiry}.{_signature(token, expiry)}"


def is_session(token: str, session: str, now: float | None = None) -> bool:
    expiry, _, signature = session.partition(".")
    if not (expiry.isascii() and expiry.isdigit() and len(expiry) < 16):
        return False
    good = hmac.compare_digest(_signature(token, int(expiry)).encode(), signature.encode("utf-8", "replace"))
    return good and int(expiry) > (time.time() if now is None else now)


def is_token(token: str, given: str) -> bool:
    return hmac.compare_digest(token.encode(), given.encode("utf-8", "replace"))


def read_session(cookie_header: str) -> str | None:
    try:
        found = SimpleCookie(cookie_header).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _signature(token: str, expiry: int) -> str:
    key = hashlib.sha256(b"themis session key\0" + token.encode()).digest()
    return hmac.new(key, f"session {expiry}".encode(), hashlib.sha256).hexdigest()


class ClientThrottle:
    """`burst` requests at once, then `per_second`. Remembers a bounded number of clients."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait_seconds(self, client: str, now: float | None = None) -> float:
        """Takes one request from the client's bucket; above zero it was empty, and this is how long to wait."""
        now = time.monotonic() if now is None else now
        bucket = self._buckets.pop(client, None) or TokenBucket(self._per_second, self._burst)
        self._buckets[client] = bucket
        if len(self._buckets) > _REMEMBERED_CLIENTS:
            self._buckets.popitem(last=False)
        wait = bucket.wait(now, 1)
        if wait <= 0:
            bucket.take(now, 1)
        return wait


class TokenTries:
    """How often a client may show a token that is wrong: a few times at once, then once in ten seconds.

    Whoever goes on trying must wait, also with the right token: guessing must not pay.
    """

    def __init__(self) -> None:
        self._limit = ClientThrottle(per_second=0.1, burst=5)
        self._locked_until: OrderedDict[str, float] = OrderedDict()

    def count(self, client: str) -> float:
        """Counts one try; above zero it was one too many, and this is how many seconds to wait."""
        wait = self._limit.wait_seconds(client)
        if wait > 0:
            self._locked_until[client] = time.monotonic() + wait
            self._locked_until.move_to_end(client)
            if len(self._locked_until) > _REMEMBERED_CLIENTS:
                self._locked_until.popitem(last=False)
        return wait

    def locked_seconds(self, client: str) -> float:
        """For how long a client that tried too often is still refused."""
        return max(0.0, self._locked_until.get(client, 0.0) - time.monotonic())


# --- the token's file -------------------------------------------------------------------------------------------------

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
