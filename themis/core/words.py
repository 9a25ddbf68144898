"""Values as words of a command line: a word that is JSON is that value, any other is text."""

from __future__ import annotations

import json

from themis.exceptions import ConfigurationError

__all__ = ["read_word", "write_word"]

# As people write them who have Python in mind; as text they would count as true.
_SPELLED = {"True": True, "False": False, "None": None}


def read_word(word: str) -> object:
    """`3` is a number, `true` a truth value, `["a"]` a list, `2024-06-01` and `a: b` are text."""
    try:
        return _SPELLED[word] if word in _SPELLED else json.loads(word)
    except (ValueError, RecursionError) as error:
        if word.lstrip().startswith(("[", "{")):
            raise ConfigurationError(
                f"a word begins like JSON, with {word.lstrip()[0]!r}, and is none ({error}); text that begins so is written "
                "in double quotes"
            ) from error
        return word


def write_word(value: object) -> str:
    """The shortest word that is read as this value."""
    if isinstance(value, str):
        try:
            if read_word(value) == value:
                return value
        except ConfigurationError:
            pass
    return json.dumps(value)
