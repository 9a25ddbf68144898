"""Names that say whether a value is secret: of options, headers, parameters of URLs and environment variables."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from themis.core.references import is_reference

__all__ = ["SECRET_PARAMETERS", "Kind", "hides", "is_secret_name", "kind_of", "may_name_a_secret"]

_SECRET_WORDS = (
    "apikey", "accesskey", "secret", "password", "passwd", "passphrase", "authorization", "credential", "privatekey",
    "sessiontoken", "authtoken", "accesstoken", "bearer", "cookie", "subscriptionkey", "authkey", "signingkey", "sharedkey",
    "masterkey", "accountkey", "encryptionkey", "virtualkey", "adminkey", "functionskey",
)  # fmt: skip
# Whole words, because they are parts of others: `auth` of `author`, `pass` of `passed`. At the end of a name: `pass_rate` is
# a number.
_LAST_WORD = re.compile(
    r"(?:^|[_\-.\s])(?:auth|oauth|pass|pwd|pw|sas|jwt|pat|psk)$|(?-i:[a-z0-9](?:Auth|Pass|Pwd|Sas|Jwt)$)", re.I
)
# `token` and `hubToken` are secrets; `max_tokens` is a number, and `eos_token` a word of the model's own.
_TOKEN_NAME = re.compile(r"(?:^|[_\-.])token$|(?-i:[a-z0-9]Token$)", re.IGNORECASE)
_WORD_OF_A_MODEL = re.compile(
    r"^(?:bos|eos|eot|pad|unk|sep|cls|mask|stop|start|end|max|image|audio)[_\-]?token$", re.IGNORECASE
)

# Last words of names whose values are secret if they look so: `license_key` may be one, `sort_key` is the name of a column.
_DOUBTFUL_WORDS = frozenset(
    {"key", "keys", "dsn", "passcode", "otp", "pin", "pem", "hmac", "mnemonic", "phrase", "login", "webhook", "session"}
    | {"signature", "sig", "assertion", "connection", "string"}
)

_HARMLESS_HEADERS = {
    "accept", "accept-charset", "accept-encoding", "accept-language", "anthropic-beta", "anthropic-version", "api-version",
    "cache-control", "connection", "content-encoding", "content-language", "content-length", "content-type", "date", "host",
    "http-referer", "idempotency-key", "openai-beta", "origin", "prefer", "referer", "request-id", "themis-virtual-time",
    "traceparent", "tracestate", "user-agent", "x-api-version", "x-correlation-id", "x-request-id", "x-title",
    # Whose account it is, which opens nothing.
    "openai-organization", "openai-project", "x-goog-user-project",
}  # fmt: skip
_HARMLESS_PARAMETERS = {
    "alt", "api-version", "beta", "debug", "deployment", "format", "lang", "limit", "locale", "location", "model", "page",
    "region", "stream", "timeout", "v", "version", "zone",
    # Of a database.
    "application-name", "client-encoding", "connect-timeout", "dbname", "host", "options", "port", "sslmode", "sslrootcert",
    "target-session-attrs", "user",
}  # fmt: skip
# Parameters that are secret in any URL, though as names of options they would not be.
SECRET_PARAMETERS = frozenset({"key", "sig", "signature", "code", "subscription"})
_PARAMETERS = frozenset({"queryparams", "extraquery", "defaultquery"})


# Every reply of a provider has the same few names in it.
@lru_cache(maxsize=4_096)
def is_secret_name(name: str) -> bool:
    folded = re.sub(r"[_\-.\s]", "", name).casefold()
    if any(word in folded for word in _SECRET_WORDS) or _LAST_WORD.search(name):
        return True
    return bool(_TOKEN_NAME.search(name)) and not _WORD_OF_A_MODEL.match(name)


@lru_cache(maxsize=4_096)
def may_name_a_secret(name: str) -> bool:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return bool(words) and words[-1].casefold() in _DOUBTFUL_WORDS


def hides(key: Any, item: Any) -> bool:
    if not isinstance(key, str) or item is None or item == "" or not is_secret_name(key) or is_reference(item):
        return False
    # `{"pass": 0.5}` is a share, `{"password": 12345678}` is a password.
    return not (isinstance(item, bool | int | float) and _LAST_WORD.search(key))


class Kind(Enum):
    """What the place of a value in the options says of it."""

    PLAIN = auto()
    # Secret if the value looks so.
    DOUBTFUL = auto()
    NAMED = auto()
    HEADERS = auto()
    PARAMETERS = auto()
    # Secret because nobody knows it to be harmless.
    UNKNOWN = auto()


def kind_of(name: str, parent: Kind) -> Kind:
    if parent in (Kind.NAMED, Kind.UNKNOWN):
        return parent
    folded = name.casefold().replace("_", "-")
    if is_secret_name(name):
        return Kind.NAMED
    if parent is Kind.HEADERS:
        return Kind.PLAIN if folded in _HARMLESS_HEADERS or folded.startswith("x-stainless-") else Kind.UNKNOWN
    if parent is Kind.PARAMETERS:
        return Kind.PLAIN if folded in _HARMLESS_PARAMETERS else Kind.UNKNOWN
    if folded.endswith("headers"):
        return Kind.HEADERS
    if folded.replace("-", "") in _PARAMETERS:
        return Kind.PARAMETERS
    return Kind.DOUBTFUL if may_name_a_secret(name) else Kind.PLAIN
