"""Takes secrets out of whatever is about to be written or shown.

A secret is known by its name (of an option, a header, a parameter of a URL, an environment variable), because the user marks it
(`THEMIS_SECRETS`, `${NAME}` in an option), or by its shape (bearer strings, well-known prefixes, credentials in a URL). What
options hold is learned by value: from then on it is taken out of every text of this process, whatever stands around it, also
as JSON, a URL, HTML, Python or base64 would write it.

Names and shapes are for options, errors and logs. Of a model's answer only the values of known secrets are taken: what merely
looks like a key there is data.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from themis.core.secrets import (
    REDACTED,
    SHORTEST_SECRET,
    TEXTS,
    Kind,
    clean_mapping,
    clean_text,
    hides,
    is_random,
    is_secret_name,
    may_name_a_secret,
    resolve_references,
    split_secret,
    without_shapes,
)

# What the user marks is taken at its word, but blanking every "on" or "1" would blank the data.
_SHORTEST_MARKED = 4
# The beginning of a key by which it is known where a server tells no more of it.
_KNOWN_BY = 16


class Redactor:
    """Takes this process's secrets out of texts. Built once per run, because reading the environment for every record costs."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        """`options` are a provider's or an agent's, of which the secrets are learned first."""
        learn_secrets(options or {})
        self._environment = _environment_secrets()
        self._learned: frozenset[str] | None = None
        self._forms = _Forms((), ())

    def values(self, text: str) -> str:
        """Without the known secrets. Leaves anything that only looks like one: a model's answer is data."""
        if len(text) < _SHORTEST_MARKED:
            return text
        for part, forms in self._known().plain:
            if part in text:
                for form in forms:
                    text = text.replace(form, REDACTED)
        return text

    def text(self, text: str) -> str:
        """Without the known secrets, also in base64, and without what looks like one: for errors, logs and addresses."""
        if len(text) < _SHORTEST_MARKED:
            return text
        text = self.values(text)
        for form in self._known().encoded:
            if form in text:
                text = text.replace(form, REDACTED)
        return without_shapes(text)

    def deep(self, value: Any) -> Any:
        """A copy of the value without secrets, at any depth: by the names of keys, by value and by shape."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict | Mapping):
            return {key: REDACTED if hides(key, item) else self._below(key, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.deep(item) for item in value]
        return value

    def _below(self, key: Any, item: Any) -> Any:
        if isinstance(item, Mapping) and isinstance(key, str) and key.casefold().endswith("headers"):
            item = clean_mapping(item, Kind.HEADERS, set())
        return self.deep(item)

    def data(self, value: Any) -> Any:
        """A copy of a model's own words, at any depth, without the known secrets: names in it hide nothing."""
        if isinstance(value, str):
            return self.values(value)
        if isinstance(value, dict):
            return {key: self.data(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return value

    def _known(self) -> _Forms:
        if self._learned is not _learned:
            self._learned = _learned
            self._forms = _forms_of_all(self._environment | _learned)
        return self._forms


def redact(value: Any) -> Any:
    """A copy of the value without secrets, at any depth."""
    return Redactor().deep(value)


def redact_text(text: str) -> str:
    return Redactor().text(text)


def redact_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a provider's or an agent's options that may be stored, after learning what is secret in them.

    Headers and parameters of URLs are secret unless they are known to be harmless; references (`${NAME}`) stay.
    """
    found: set[str] = set()
    cleaned = clean_mapping(options, Kind.PLAIN, found)
    _learn(found)
    redactor = Redactor()
    return {name: (redactor.data if name in TEXTS else redactor.deep)(value) for name, value in cleaned.items()}


def learn_secrets(options: Mapping[str, Any]) -> None:
    """From now on the secrets in these options are known by value to the whole process."""
    if options:
        found: set[str] = set()
        clean_mapping(options, Kind.PLAIN, found)
        _learn(found)


def look_up_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as they are used: with what their references stand for, which is learned with their other secrets."""
    resolved, marked = resolve_references(options)
    _learn({part for value in marked for part in split_secret(value, _SHORTEST_MARKED)})
    learn_secrets(resolved)
    return resolved


# --- what this process knows -----------------------------------------------------------------------------------------

_learned: frozenset[str] = frozenset()


def _learn(values: set[str]) -> None:
    global _learned
    if not values <= _learned:
        _learned = _learned | values


class _Forms(NamedTuple):
    """How texts may hold the secrets, the longest first.

    `plain` has for each secret a part that no escaping changes, by which a text without it is known at once, and the secret
    as it is and escaped; `encoded` is base64.
    """

    plain: tuple[tuple[str, tuple[str, ...]], ...]
    encoded: tuple[str, ...]


@lru_cache(maxsize=64)
def _forms_of_all(secrets: frozenset[str]) -> _Forms:
    decoded = {unquote(secret) for secret in secrets} | {unquote_plus(secret) for secret in secrets}
    ordered = sorted(secrets | {secret for secret in decoded if len(secret) >= _SHORTEST_MARKED}, key=len, reverse=True)
    plain = tuple((_unchanging(secret), _escaped(secret)) for secret in ordered)
    encoded = {form for secret in ordered for form in (*_in_base64(secret), *_retold(secret))} - secrets
    return _Forms(plain, tuple(sorted(encoded, key=len, reverse=True)))


def _unchanging(secret: str) -> str:
    """A part that stands as it is in every escaped form; the whole where there is only one, because it is found faster."""
    return (
        secret if _LOOKS_THE_SAME.fullmatch(secret) else max(re.findall(r"[A-Za-z0-9]+", secret), key=len, default="")
    )


_LOOKS_THE_SAME = re.compile(r"[\w\-.~]+", re.ASCII)


def _escaped(secret: str) -> tuple[str, ...]:
    """The secret as it is, and as JSON, Python, HTML and URLs write it; most keys look the same in all of them."""
    if _LOOKS_THE_SAME.fullmatch(secret):
        return (secret,)
    in_json, in_utf8_json = json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]
    in_url = {
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    }
    lower = {re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in in_url}
    forms = {
        *(secret, in_json, in_json.replace("/", "\\/"), in_utf8_json),
        # JSON that a tool returned, as a text in the JSON that is stored.
        *(json.dumps(form, ensure_ascii=False)[1:-1] for form in (in_json, in_utf8_json)),
        *(repr(secret)[1:-1], html.escape(secret), html.escape(secret, quote=False)),
        # Headers are bytes, which servers read as Latin-1.
        *(*in_url, *lower, secret.encode("utf-8", "surrogatepass").decode("latin-1")),
    }
    return tuple(sorted(forms, key=len, reverse=True))


def _retold(secret: str) -> Iterator[str]:
    """The secret as others write it who are not only careful: in hexadecimal, in one case, escaped once more, cut off."""
    content = secret.encode("utf-8", "surrogatepass")
    yield from (content.hex(), content.hex().upper(), "".join(f"%{byte:02X}" for byte in content))
    if is_random(secret):
        yield from (secret.lower(), secret.upper())
    if is_random(secret[:_KNOWN_BY]):
        yield secret[:_KNOWN_BY]
    if not _LOOKS_THE_SAME.fullmatch(secret):
        yield from (quote(quote(secret, safe=""), safe=""), json.dumps(json.dumps(secret)[1:-1])[1:-1])


def _in_base64(secret: str) -> Iterator[str]:
    """The characters of base64 that only the secret decides, for each of the three places it may begin at."""
    content = secret.encode("utf-8", "surrogatepass")
    for before in range(3):
        code = base64.b64encode(b"\0" * before + content).decode().rstrip("=")
        whole = (before + len(content)) % 3 == 0
        core = code[(0, 2, 3)[before] : None if whole else -1]
        if len(core) >= SHORTEST_SECRET:
            yield core
            yield core.replace("+", "-").replace("/", "_")


def _environment_secrets() -> frozenset[str]:
    """Values of environment variables that are named or marked as secret, and credentials in addresses among the others."""
    found: set[str] = set()
    marked = {name.strip() for name in os.environ.get("THEMIS_SECRETS", "").split(",")}
    for name, value in os.environ.items():
        if name in marked:
            found.update(split_secret(value, _SHORTEST_MARKED))
        elif name.endswith("_HEADERS"):  # `name=value,name=value`, as exporters of traces take them
            pairs = (pair.partition("=") for pair in value.split(","))
            clean_mapping({"headers": {key.strip(): item.strip() for key, _, item in pairs}}, Kind.PLAIN, found)
        elif _names_a_secret_variable(name):
            # The path of a file with credentials is none.
            found.update(() if os.path.exists(value) else split_secret(value))
        else:
            if may_name_a_secret(name) and not os.path.exists(value):
                found.update(filter(is_random, split_secret(value)))
            if "://" in value:
                clean_text(value, found)
    return frozenset(found)


@lru_cache(maxsize=4_096)
def _names_a_secret_variable(name: str) -> bool:
    return is_secret_name(name) and name not in ("PWD", "OLDPWD")  # where the shell is
