"""Takes secrets out of whatever is about to be written or shown.

Three ways a secret is known: by the name of its key at any depth, by being the value of an environment variable with
such a name, or by its shape (bearer strings, well-known key prefixes, credentials in a URL).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["REDACTED", "Redactor", "is_secret_name", "redact", "redact_text"]

REDACTED = "[redacted]"

_SECRET_WORDS = (
    "apikey", "accesskey", "secret", "password", "passwd", "passphrase", "authorization", "credential", "privatekey",
    "sessiontoken", "authtoken", "accesstoken", "bearer", "cookie",
)  # fmt: skip
# `token` alone is a secret, `max_tokens` and `prompt_tokens` are numbers.
_TOKEN_NAME = re.compile(r"(^|[_\-.])token$", re.IGNORECASE)

_SHAPES = re.compile(
    r"(?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}"
    r"|\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}"
    r"|\bhf_[A-Za-z0-9]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9\-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_\-]{30,}"
    r"|(?P<url>[a-z][a-z0-9+.\-]*://)(?P<user>[^\s/:@]*):[^\s/@]+@",
    re.IGNORECASE,
)
_SHORTEST_SECRET = 8


class Redactor:
    """Knows this process's secrets. Built once per run, because reading the environment for every record would cost."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        """`options` are a provider's: the values under their secret names are secrets too."""
        found = _environment_secrets() | _option_secrets(options or {})
        self._secrets = tuple(sorted(found, key=len, reverse=True))

    def values(self, text: str) -> str:
        """Without the known secrets. Leaves anything that only looks like one: a model's answer is data."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, REDACTED)
        return text

    def text(self, text: str) -> str:
        """Without the known secrets and without what looks like one."""
        return _SHAPES.sub(_replacement, self.values(text))

    def deep(self, value: Any) -> Any:
        """A copy of the value without secrets, at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: REDACTED if _hides(key, item) else self.deep(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.deep(item) for item in value]
        return value


def redact(value: Any) -> Any:
    """A copy of the value without secrets, at any depth."""
    return Redactor().deep(value)


def redact_text(text: str) -> str:
    return Redactor().text(text)


def is_secret_name(name: str) -> bool:
    folded = re.sub(r"[_\-.\s]", "", name).casefold()
    return any(word in folded for word in _SECRET_WORDS) or bool(_TOKEN_NAME.search(name))


def _hides(key: Any, item: Any) -> bool:
    return isinstance(key, str) and is_secret_name(key) and item is not None and item != ""


def _replacement(match: re.Match[str]) -> str:
    if match["url"]:
        return f"{match['url']}{match['user']}:{REDACTED}@"
    return f"{match['scheme'] or ''}{REDACTED}"


def _environment_secrets() -> set[str]:
    """Values of environment variables whose names say that they are secret; paths to credential files are not."""
    return {
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST_SECRET and is_secret_name(name) and not os.path.exists(value)
    }


def _option_secrets(options: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for name, value in options.items():
        if isinstance(value, Mapping):
            found |= _option_secrets(value)
        elif isinstance(value, str) and len(value) >= _SHORTEST_SECRET and is_secret_name(str(name)):
            found.add(value)
            # An `Authorization` header carries its secret behind a scheme.
            found.update(part for part in value.split() if len(part) >= _SHORTEST_SECRET)
    return found
