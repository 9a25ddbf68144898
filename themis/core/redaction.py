"""Takes secrets out of whatever is about to be written or shown.

Three ways a secret is known: by the name of its key at any depth, by being the value of an environment variable with
such a name, or by its shape (bearer strings, well-known key prefixes, credentials and keys in a URL).
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

__all__ = ["REDACTED", "Redactor", "is_secret_name", "redact", "redact_text"]

REDACTED = "[redacted]"

_SECRET_WORDS = (
    "apikey", "accesskey", "secret", "password", "passwd", "passphrase", "authorization", "credential", "privatekey",
    "sessiontoken", "authtoken", "accesstoken", "bearer", "cookie",
)  # fmt: skip
# `token` and `hubToken` are secrets; `max_tokens` is a number, and `eos_token` a word of the model's own.
_TOKEN_NAME = re.compile(r"(?:^|[_\-.])token$|(?-i:[a-z0-9]Token$)", re.IGNORECASE)
_WORD_OF_A_MODEL = re.compile(
    r"^(?:bos|eos|eot|pad|unk|sep|cls|mask|stop|start|end|max|image|audio)[_\-]?token$", re.IGNORECASE
)

_SHAPES = re.compile(
    r"(?P<scheme>\bbearer\s+)[A-Za-z0-9._~+/=\-]{8,}"
    r"|(?P<basic>\bbasic\s+)(?P<pair>[A-Za-z0-9+/]{8,}={0,2})"
    r"|\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}"
    r"|\bhf_[A-Za-z0-9]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9\-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_\-]{30,}"
    r"|(?P<url>[a-z][a-z0-9+.\-]*://)(?P<user>[^\s/:@]*):[^\s/]+@"
    r"|(?P<query>[?&](?P<name>[\w.\-]+)=)[^&\s#\"']+",
    re.IGNORECASE,
)
# Text without any of these has none of the shapes, which takes a tenth of the time to find out.
_MARKS = (
    *("bearer", "basic", "sk-", "pk-", "rk-", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "xox", "akia", "aiza"),
    *("://", "="),
)
# Parameters of a URL that are secret there, though as names of options they would not be.
_SECRET_PARAMETERS = frozenset({"key", "sig", "signature", "code"})
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
        text = self.values(text)
        folded = text.casefold()
        for mark in _MARKS:
            if mark in folded:
                return _SHAPES.sub(_replacement, text)
        return text

    def deep(self, value: Any) -> Any:
        """A copy of the value without secrets, at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict | Mapping):
            return {key: REDACTED if _hides(key, item) else self.deep(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.deep(item) for item in value]
        return value


def redact(value: Any) -> Any:
    """A copy of the value without secrets, at any depth."""
    return Redactor().deep(value)


def redact_text(text: str) -> str:
    return Redactor().text(text)


# Every reply of a provider has the same few names in it.
@lru_cache(maxsize=4_096)
def is_secret_name(name: str) -> bool:
    folded = re.sub(r"[_\-.\s]", "", name).casefold()
    if any(word in folded for word in _SECRET_WORDS):
        return True
    return bool(_TOKEN_NAME.search(name)) and not _WORD_OF_A_MODEL.match(name)


def _hides(key: Any, item: Any) -> bool:
    return isinstance(key, str) and is_secret_name(key) and item is not None and item != ""


def _replacement(match: re.Match[str]) -> str:
    if match["url"]:
        return f"{match['url']}{match['user']}:{REDACTED}@"
    if match["query"]:
        hidden = is_secret_name(match["name"]) or match["name"].casefold() in _SECRET_PARAMETERS
        return f"{match['query']}{REDACTED}" if hidden else match[0]
    if match["basic"]:
        return f"{match['basic']}{REDACTED}" if _is_user_and_password(match["pair"]) else match[0]
    return f"{match['scheme'] or ''}{REDACTED}"


def _is_user_and_password(pair: str) -> bool:
    """Whether the word behind `Basic` is a header's `user:password`; "basic arithmetic" is not."""
    try:
        return b":" in base64.b64decode(pair, validate=True)
    except ValueError:
        return False


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
