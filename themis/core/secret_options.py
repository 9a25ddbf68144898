"""What is secret in the options of a provider, an agent, a judge or a tracker, and the options without it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, unquote_plus

from themis.core.references import TEXTS, is_reference
from themis.core.secret_names import Kind, kind_of
from themis.core.secret_shapes import REDACTED, SHORTEST_SECRET, find_keys, find_stated, is_random, split_secret

__all__ = ["clean_mapping", "clean_text"]


def clean_mapping(options: Mapping[Any, Any], kind: Kind, found: set[str]) -> dict[Any, Any]:
    return {
        name: item if name in TEXTS else _clean(item, kind_of(str(name), kind), found) for name, item in options.items()
    }


def _clean(value: Any, kind: Kind, found: set[str]) -> Any:
    """The value without what its place or its shape says is secret, which goes into `found`."""
    if isinstance(value, Mapping):
        return clean_mapping(value, kind, found)
    if isinstance(value, list | tuple):
        # Headers as pairs or lines: which is name and which is value is not known.
        inside = Kind.UNKNOWN if kind in (Kind.HEADERS, Kind.PARAMETERS) else kind
        return [_clean(item, inside, found) for item in value]
    if value is None or value == "" or isinstance(value, bool) or is_reference(value):
        return value
    if kind is Kind.PLAIN or (kind is Kind.DOUBTFUL and not is_random(str(value))):
        return clean_text(value, found) if isinstance(value, str) else value
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    found.update(split_secret(text) if kind is Kind.NAMED else filter(is_random, split_secret(text)))
    return REDACTED


_URL = re.compile(r"^[a-z][a-z0-9+.\-]*://", re.IGNORECASE)
# An address whose scheme was forgotten: `user:password@host`.
_PAIR = re.compile(r"^(?P<user>[^\s/:@]+):(?P<password>\S+)@(?P<host>[^\s@/]+)")


def clean_text(text: str, found: set[str]) -> str:
    if _URL.match(text):
        text = _clean_url(text, found)
    elif pair := _PAIR.match(text):
        _learn_password(pair["user"], pair["password"], pair["host"], found)
        text = f"{pair['user']}:{REDACTED}{text[pair.end('password') :]}"
    found.update(find_keys(text))
    _, stated = find_stated(text)
    found.update(part for value in stated for part in split_secret(value))
    return text


def _clean_url(url: str, found: set[str]) -> str:
    """The address without credentials and without parameters that are not known to be harmless."""
    scheme, _, rest = url.partition("://")
    ahead, mark, query = rest.partition("?")
    if "@" in query and "@" not in ahead and _has_password_with_marks(ahead):
        ahead, mark, query = rest, "", ""
    credentials, at, host = _split_credentials(scheme, ahead)
    user, colon, password = credentials.partition(":")
    if colon and password and not is_reference(password):
        _learn_password(user, password, re.split(r"[/?#]", host)[0], found)
        credentials = f"{user}:{REDACTED}"
    elif not colon and at and scheme.casefold() in ("http", "https") and not is_reference(user):
        found.update(split_secret(unquote(user)))
        credentials = REDACTED
    pieces = []
    for piece in re.split(r"([&;])", query):
        name, equals, value = piece.partition("=")
        kind = kind_of(unquote_plus(name), Kind.PARAMETERS)
        if equals and value and kind is not Kind.PLAIN and not is_reference(value):
            _clean(unquote_plus(value), kind, found)
            _clean(value, kind, found)
            piece = f"{name}={REDACTED}"
        pieces.append(piece)
    return f"{scheme}://{credentials}{at}{host}{mark}{''.join(pieces)}"


def _split_credentials(scheme: str, ahead: str) -> tuple[str, str, str]:
    """What stands before the host. Passwords are written with a raw `@` or `/` in them, wrongly, and are secret all the same."""
    authority = re.split(r"[/#]", ahead)[0]
    if scheme.casefold() in ("http", "https") and "@" in authority:
        credentials, at, _ = authority.rpartition("@")
        return credentials, at, ahead[len(credentials) + 1 :]
    if "@" in authority or _has_password_with_marks(ahead):
        return ahead.rpartition("@")
    return "", "", ahead


def _has_password_with_marks(ahead: str) -> bool:
    """Whether what stands behind the first colon is no port: then it is the beginning of a password."""
    return not re.match(r"[^:@/]*(?::\d{0,5})?(?:[/?#]|$)|\[", ahead)


def _learn_password(user: str, password: str, host: str, found: set[str]) -> None:
    for form in {password, unquote(password)}:
        found.update(split_secret(form))
        pair = base64.b64encode(f"{unquote(user)}:{form}".encode("utf-8", "surrogatepass")).decode()
        found.update([pair] if len(pair) > SHORTEST_SECRET else ())
        # A client takes what stands behind the first @ for the host, and shows it.
        tails = [form[place.end() :] for place in re.finditer("[@/?#]", form)]
        found.update(f"{tail}@{host}" for tail in tails if tail and host)
        found.update(tail for tail in tails if len(tail) >= SHORTEST_SECRET)
