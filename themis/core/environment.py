"""Environment variables: the `.env` file that sets them, and options that name one.

The file is read at the doors: the command line, and wherever a model is named. Importing Themis reads nothing. What the
environment had before wins over the file; what an earlier reading set may be changed by the file, so that a key can be
mended without a new process.

In an option `${NAME}` stands for the variable's value, which is then a secret. The reference is what is stored, shown and
compared; the value is looked up where the option is used, so a run can be resumed and reproduced without its secrets being
anywhere but in the environment.
"""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from themis.exceptions import ConfigurationError

logger = logging.getLogger(__name__)

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
