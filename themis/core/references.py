"""Options that name an environment variable: `${NAME}` stands for its value, which is then a secret.

The reference is what is stored, shown and compared; the value is looked up where the option is used, so a run can be resumed
and reproduced without its secrets being anywhere but in the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from themis.exceptions import ConfigurationError

__all__ = ["TEXTS", "is_reference", "resolve_references"]

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


def resolve_references(options: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The options with the values that their references stand for, and these values."""
    secrets: set[str] = set()
    resolved = {
        name: value if name in TEXTS else _resolve(value, str(name), secrets) for name, value in options.items()
    }
    return resolved, secrets


def _resolve(value: Any, place: str, secrets: set[str]) -> Any:
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
