"""What a provider is where it was built, so that two processes can tell whether they would ask the same."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from themis import __version__
from themis.core.codec import canonical_json
from themis.core.fingerprint import code_fingerprint
from themis.core.redaction import REDACTED, Redactor
from themis.core.secret_names import is_secret_name
from themis.interfaces import StatelessTaskExecutor

__all__ = ["code_travels", "find_differences", "identify"]


def identify(executor: StatelessTaskExecutor) -> dict[str, str]:
    """Its endpoint, options and code, and the Themis around it, as they may be shown: without keys.

    The options are what the object has under the names of its constructor's parameters, and every address that it holds:
    what the environment of one machine has decided shows there.
    """
    kind = type(executor)
    # Behind the # is a digest of the key.
    endpoint = str(getattr(executor, "account", "")).partition("#")[0]
    return {
        "themis": __version__,
        "provider": f"{kind.__module__}.{kind.__qualname__}",
        "code": code_fingerprint(kind)[:12],
        "endpoint": Redactor().text(endpoint),
        **dict(_options(executor)),
    }


def find_differences(here: Mapping[str, str], there: Mapping[str, str], ignored: Collection[str] = ()) -> list[str]:
    """Each as a clause with both values."""
    names = [*here, *(name for name in there if name not in here)]
    return [
        f"{name} is {there.get(name, 'nothing')} there and {here.get(name, 'nothing')} here"
        for name in names
        if name not in ignored and here.get(name) != there.get(name)
    ]


def code_travels(kind: type) -> bool:
    """Whether a class is sent with its code, because another process could not import it under its name."""
    if kind.__module__ == "__main__":
        return True
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not kind


def _options(executor: StatelessTaskExecutor) -> Iterator[tuple[str, str]]:
    try:
        parameters = set(inspect.signature(type(executor)).parameters)
    except (TypeError, ValueError):  # built in C
        parameters = set()
    redactor = Redactor()
    for attribute, value in sorted(getattr(executor, "__dict__", {}).items()):
        name = attribute.lstrip("_")
        is_option = name in parameters or (isinstance(value, str) and "://" in value)
        shown = redactor.deep(value) if is_option else REDACTED
        # Keys may be each machine's own.
        if not is_secret_name(name) and REDACTED not in str(shown) and _is_plain(shown):
            yield f"option {name}", canonical_json(shown)


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)
