"""What secrets look like in a text: bearer strings, vendors' keys, credentials in a URL, `--token abc`."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from themis.core.references import is_reference
from themis.core.secret_names import SECRET_PARAMETERS, Kind, is_secret_name, kind_of, may_name_a_secret

__all__ = ["REDACTED", "SHORTEST_SECRET", "find_keys", "find_stated", "is_random", "split_secret", "without_shapes"]

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
