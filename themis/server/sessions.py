"""Who may come in: the token in a bearer header, or a cookie signed with it after logging in.

The cookie's key follows from the token alone, so that several server processes with one token know each other's sessions, and
a new token ends all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from http.cookies import CookieError, SimpleCookie

__all__ = ["COOKIE", "LIFETIME_SECONDS", "is_session", "is_token", "new_session", "session_of"]

COOKIE = "themis_session"
LIFETIME_SECONDS = 7 * 24 * 3600


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


def session_of(cookie_header: str) -> str | None:
    try:
        found = SimpleCookie(cookie_header).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _signature(token: str, expiry: int) -> str:
    key = hashlib.sha256(b"themis session key\0" + token.encode()).digest()
    return hmac.new(key, f"session {expiry}".encode(), hashlib.sha256).hexdigest()
