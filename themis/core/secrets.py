"""Secrets: how they are known, by names and by the shape of a text, and how they come out of the environment.

`storage`, logs and pages take secrets out with `core.redaction`, which asks here.

The file `.env` is read at the doors: the command line, and wherever a model is named. Importing Themis reads nothing. What
the environment had before wins over the file; what an earlier reading set may be changed by the file, so that a key can be
mended without a new process.

In an option `${NAME}` stands for the variable's value, which is then a secret. The reference is what is stored, shown and
compared; the value is looked up where the option is used, so a run can be resumed and reproduced without its secrets being
anywhere but in the environment.
"""

from __future__ import annotations

import base64
import io
import logging
import os
import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

from themis.exceptions import ConfigurationError

logger = logging.getLogger(__name__)

# --- names -------------------------------------------------------------------------------------------------------------

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


def hides(key: object, item: object) -> bool:
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


# --- texts -------------------------------------------------------------------------------------------------------------

REDACTED = "[redacted]"
SHORTEST_SECRET = 8
# What stands where a key must be and none is needed: words that answers use as well.
_PLACEHOLDERS = frozenset(
    {
        *("not-needed", "notneeded", "not_needed", "no-key-required", "sk-no-key-required", "placeholder", "anything"),
        *("changeme", "password", "lm-studio", "llama.cpp", "undefined", "disabled", "your-api-key", "your_api_key"),
        REDACTED,
    }
)


# Prefix of a vendor's keys -> what follows it.
_KEYS = {
    "sk-": r"[\w\-]{16,}", "pk-": r"[\w\-]{16,}", "rk-": r"[\w\-]{16,}", "csk-": r"\w{16,}", "gsk_": r"\w{16,}",
    "sk_live_": r"\w{16,}", "sk_test_": r"\w{16,}", "rk_live_": r"\w{16,}", "pcsk_": r"\w{16,}", "xai-": r"\w{16,}",
    "nvapi-": r"[\w\-]{16,}",
    "r8_": r"\w{16,}", "hf_": r"[A-Za-z0-9]{16,}", "pplx-": r"\w{16,}", "fw_": r"[A-Za-z0-9]{20,}", "tgp_v1_": r"[\w\-]{16,}",
    "lsv2_": r"\w{16,}", "jina_": r"\w{20,}", "glpat-": r"[\w\-]{16,}", "github_pat_": r"\w{20,}", "npm_": r"\w{30,}",
    "ghp_": r"\w{20,}", "gho_": r"\w{20,}", "ghu_": r"\w{20,}", "ghs_": r"\w{20,}", "ghr_": r"\w{20,}",
    "sg.": r"[\w\-]{16,}\.[\w\-]{16,}", "hvs.": r"[\w\-]{20,}", "shpat_": r"[0-9a-f]{32}", "dp.pt.": r"\w{30,}",
    "age-secret-key-": r"\w{20,}", "pypi-": r"[\w\-]{30,}", "dop_v1_": r"\w{30,}", "dapi": r"[0-9a-f]{32,}",
    "ya29.": r"[\w\-.]{16,}", "aiza": r"[\w\-]{30,}",
    **{f"xox{kind}-": r"[A-Za-z0-9\-]{10,}" for kind in "abeoprs"}, "xapp-": r"[A-Za-z0-9\-]{16,}",
    # A JSON Web Token: `{"` in base64, twice, with dots between the parts.
    "eyj": r"[\w\-]{8,}\.eyJ[\w\-]{8,}(?:\.[\w\-]*)?",
}  # fmt: skip

_SHAPES = re.compile(
    r"(?P<scheme>\bbearer\s+)[A-Za-z0-9._~+/=\-]{8,}"
    r"|(?P<basic>\bbasic\s+)(?P<pair>[A-Za-z0-9+/]{8,}={0,2})"
    rf"|(?<![A-Za-z0-9])(?P<key>{'|'.join(re.escape(prefix) + rest for prefix, rest in _KEYS.items())}"
    r"|(?-i:(?:AKIA|ASIA)[0-9A-Z]{16}\b))"
    r"|(?P<block>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
    r"|(?P<url>[a-z][a-z0-9+.\-]{0,30}://)(?P<user>[^\s/:@]*):(?!\d{1,5}[/?#\s])[^\s\"'<>]+@"
    r"|(?P<userless>https?://)[^\s/:@]{8,}@"
    r"|(?P<query>[?&](?P<name>[\w.\-]+)=)[^&\s#\"']+",
    re.IGNORECASE,
)
# `curl -H 'X-Lab: abc' -u ada:abc`, up to the value.
_SAID_TO_CURL = re.compile(
    r"(?<!\S)(?:(?:-H|--header)[=\s]\s*[\"']?(?P<header>[\w\-]+):\s*|(?:-u|--user)[=\s]\s*[\"']?(?P<user>[^\s:\"']+):)"
)
# `Incorrect API key provided: abc`, `the token 'abc' has expired`, up to the value.
_TOLD = re.compile(
    r"\b(?:key|token|secret|password|credential)s?(?:\s+(?:provided|given|used|is|was))?\s*[:=]?\s*[\"'(<]?",
    re.IGNORECASE,
)
_LONGEST_WORD = 20
# `--token abc`, `API_KEY=abc`, `"password": "abc"`, up to the value.
_SAID = re.compile(
    r"(?<![\w.\-])(?:(?P<dashes>--?)(?P<option>[A-Za-z][\w\-]*)[=\s]\s*|(?P<name>[A-Za-z_][\w.\-]*)\\?[\"']?\s*(?P<mark>[:=])\s*)"
    r"\\?[\"']?"
)
_SCHEME_BEFORE = re.compile(r"(?:bearer|basic|token|apikey)\s+", re.IGNORECASE)
_VALUE = re.compile(r"[^\s\"',;&<>{}\[\]()\\]{4,}")
# Text without any of these has none of the shapes, which takes a tenth of the time to find out.
_MARKS = (
    "bearer",
    "basic",
    "://",
    "=",
    ":",
    "--",
    "-k",
    "key",
    "token",
    "secret",
    "password",
    "credential",
    "akia",
    "asia",
    *_KEYS,
)


def without_shapes(text: str) -> str:
    folded = text.casefold()
    for mark in _MARKS:
        if mark in folded:
            return find_stated(_SHAPES.sub(_replacement, text))[0]
    return text


def find_keys(text: str) -> Iterator[str]:
    """The vendors' keys in a text."""
    return (match["key"] for match in _SHAPES.finditer(text) if match["key"])


def find_stated(text: str) -> tuple[str, list[str]]:
    """The text without the values that it says are secret, and these values."""
    found: list[str] = []
    for pattern, states in ((_SAID, _says_a_secret), (_SAID_TO_CURL, _is_sent), (_TOLD, _tells_a_secret)):
        pieces, done = list[str](), 0
        for match in pattern.finditer(text):
            start = match.end()
            if scheme := _SCHEME_BEFORE.match(text, start):
                start = scheme.end()
            value = _VALUE.match(text, start)
            if value is not None and start >= done and not is_reference(value[0]) and states(match, value[0]):
                pieces += [text[done:start], REDACTED]
                found.append(value[0])
                done = value.end()
        text = "".join([*pieces, text[done:]])
    return text, found


def _says_a_secret(match: re.Match[str], value: str) -> bool:
    """`unexpected token: expected` and `--token --verbose` say none."""
    name = match["option"] or match["name"]
    if is_secret_name(name):
        return is_random(value) if match["mark"] == ":" else not value.startswith("-")
    return match["mark"] != ":" and (may_name_a_secret(name) or name == "k") and is_random(value)


def _is_sent(match: re.Match[str], value: str) -> bool:
    return match["header"] is None or kind_of(match["header"], Kind.HEADERS) is not Kind.PLAIN


def _tells_a_secret(match: re.Match[str], value: str) -> bool:
    return len(value) >= _LONGEST_WORD and is_random(value)


def _replacement(match: re.Match[str]) -> str:
    if match["url"]:
        return f"{match['url']}{match['user']}:{REDACTED}@"
    if match["userless"]:
        return f"{match['userless']}{REDACTED}@"
    if match["query"]:
        name = match["name"]
        hidden = is_secret_name(name) or name.casefold() in SECRET_PARAMETERS
        return f"{match['query']}{REDACTED}" if hidden and not is_reference(match[0].partition("=")[2]) else match[0]
    if match["basic"]:
        return f"{match['basic']}{REDACTED}" if _user_and_password(match["pair"]) else match[0]
    if match["block"]:
        return f"{match['block']} {REDACTED}"
    return f"{match['scheme'] or ''}{REDACTED}"


def _user_and_password(pair: str) -> tuple[str, str] | None:
    """What is behind `Basic` in a header, which "basic arithmetic" is not."""
    try:
        user, colon, password = base64.b64decode(pair, validate=True).partition(b":")
    except ValueError:
        return None
    return (user.decode("utf-8", "replace"), password.decode("utf-8", "replace")) if colon else None


_SCHEME = re.compile(r"^[A-Za-z][\w\-]*\s+(?=\S+$)")


def split_secret(value: str, shortest: int = SHORTEST_SECRET) -> Iterator[str]:
    """A secret, what stands in it behind a scheme (`Bearer ...`), and what of it looks like a key by itself."""
    value = value.strip()
    if value.casefold() in _PLACEHOLDERS:
        return
    if len(value) >= shortest:
        yield value
    behind = _SCHEME.sub("", value)
    if behind != value and len(behind) >= shortest:
        yield behind
        if (pair := _user_and_password(behind)) is not None and len(pair[1]) >= shortest:
            yield pair[1]
    yield from (part for part in re.split(r"[\s;,=&\"']+", value) if is_random(part))


_ORDINARY = re.compile(r"[A-Z]?[a-z]*|[A-Z]+|(?:[A-Z][a-z]{2,})+|\d{1,9}")


def is_random(value: str) -> bool:
    """Whether the value would not occur by chance: `eu-central-1`, `gpt-4o-mini` and `research` would."""
    return len(value) >= SHORTEST_SECRET and any(
        len(piece) >= SHORTEST_SECRET and not _ORDINARY.fullmatch(piece) for piece in re.split(r"[^A-Za-z0-9]+", value)
    )


# --- options -----------------------------------------------------------------------------------------------------------


def clean_mapping(options: Mapping[Any, Any], kind: Kind, found: set[str]) -> dict[Any, Any]:
    return {
        name: item if name in TEXTS else _clean(item, kind_of(str(name), kind), found) for name, item in options.items()
    }


def _clean(value: object, kind: Kind, found: set[str]) -> Any:
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


# --- the file .env ----------------------------------------------------------------------------------------------------

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


# --- references --------------------------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_LONGEST_SURROUNDING = 8
# Options whose values are texts for the model, in which `${...}` is what it is.
TEXTS = frozenset({"system_prompt", "stop", "grammar"})


def is_reference(value: object) -> bool:
    """Whether the value holds its secret as a reference: `${NAME}`, or `Bearer ${NAME}`."""
    if not isinstance(value, str) or "${" not in value:
        return False
    left, count = _REFERENCE.subn("", value)
    return count > 0 and len(left) <= _LONGEST_SURROUNDING


def resolve_references(options: Mapping[str, object]) -> tuple[dict[str, Any], set[str]]:
    """The options with the values that their references stand for, and these values."""
    secrets: set[str] = set()
    resolved = {
        name: value if name in TEXTS else _resolve(value, str(name), secrets) for name, value in options.items()
    }
    return resolved, secrets


def _resolve(value: object, place: str, secrets: set[str]) -> Any:
    if isinstance(value, Mapping):
        resolved = {name: _resolve(item, f"{place}.{name}", secrets) for name, item in value.items()}
        return value if resolved == value else resolved
    if isinstance(value, list | tuple):
        items = [_resolve(item, place, secrets) for item in value]
        return value if items == list(value) else items
    if not isinstance(value, str) or "${" not in value:
        return value

    def look_up(reference: re.Match[str]) -> str:
        found = os.environ.get(reference[1])
        if not found:
            raise ConfigurationError(
                f"option {place!r} refers to the environment variable {reference[1]}, which is not set; set it, or write "
                "the value itself"
            )
        secrets.add(found)
        return found

    return _REFERENCE.sub(look_up, value)
