"""Which settings of runs an experiment may say, whether a value fits, and what stands for a value in a file.

All of it by the fields of the specifications and their types, so that a new field needs nothing here.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from themis.config.specification import Specification
from themis.core.redaction import redact
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError

__all__ = [
    "PROMPT_FILE",
    "QUOTE_BRACES",
    "Settings",
    "check_setting",
    "explain_unknown",
    "fits",
    "read_settings",
    "reusable",
    "settable",
]

# Settings by name, as a file or a program gives them.
Settings = dict[str, Any]
# A prompt that lies in a file of its own.
PROMPT_FILE = "prompt_file"
QUOTE_BRACES = "; a text with braces stands in quotes: '{question}'"
# What the experiment decides for its runs, or only a run that is loaded from the store has.
_DECIDED = {
    *("run_id", "experiment", "resume", "allow_drift", "needs_program", "benchmark", "made_in_python", "regenerate"),
}
_WORDS: dict[object, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Mapping: "a mapping",
    Sequence: "a list",
}


_settable: dict[str, dict[str, object]] = {}


def settable(kind: type[Specification]) -> dict[str, object]:
    """The settings of a kind of run that an experiment may say, with their types."""
    if kind.kind not in _settable:
        hints = get_type_hints(kind)
        _settable[kind.kind] = {one.name: hints[one.name] for one in fields(kind) if one.name not in _DECIDED}
    return _settable[kind.kind]


def explain_unknown(name: str, known: Sequence[str]) -> str:
    """What is said of a key that is none."""
    return f"unknown key {name!r}{nearest(name, known)}"


def check_setting(kind: type[Specification], name: str, value: object) -> str:
    """Why a value is not what a setting takes; empty if it is."""
    if name == PROMPT_FILE:
        return "" if isinstance(value, str) else f"{name} is a path, got {redact(value)!r}"
    hint = settable(kind)[name]
    if not fits(value, hint):
        # What `prompt: {question}` is to YAML.
        hint_to_quote = QUOTE_BRACES if name == "prompt" and isinstance(value, Mapping) else ""
        return f"{name} is {_say(hint)}, got {redact(value)!r}{hint_to_quote}"
    return kind.explain_misfit(name, value)


def fits(value: object, hint: object) -> bool:
    """Whether a value is of a type, as far as types of specifications go."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if hint is None or hint is type(None):
        return value is None
    if origin is Literal:
        return value in get_args(hint)
    if hint in (int, float):
        # True is a number to Python, but not to whoever writes YAML.
        is_number = isinstance(value, int | float if hint is float else int) and not isinstance(value, bool)
        return is_number and value == value
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    if origin is not None and issubclass(origin, Sequence):
        if not isinstance(value, Sequence) or isinstance(value, str):
            return False
        return all(fits(one, get_args(hint)[0]) for one in value)
    return isinstance(value, hint) if isinstance(hint, type) else True


def reusable(value: object) -> object:
    """Rows that can be read only once, read here for all runs; everything else as it is."""
    return list(value) if isinstance(value, Iterator) else value


def _say(hint: object) -> str:
    """A type in words."""
    if get_origin(hint) in (Union, types.UnionType):
        parts = [_say(one) for one in get_args(hint) if one is not type(None)]
        return " or ".join(dict.fromkeys(parts))
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    for known, words in _WORDS.items():
        if known in (hint, get_origin(hint)):
            return words
    return getattr(hint, "__name__", str(hint))


def read_settings(values: Mapping[str, object], folder: str = "") -> Settings:
    """Settings as a specification takes them: a prompt from its file, metrics with parameters as they are called.

    Args:
        values: Settings as they are written.
        folder: What the path of a prompt's file is relative to.

    Raises:
        ConfigurationError: The prompt's file cannot be read, or stands beside another prompt; parameters are written otherwise.

    >>> read_settings({"metrics": ["exact_match", {"numeric": {"tolerance": 0.01}}]})
    {'metrics': ['exact_match', 'numeric(tolerance=0.01)']}
    """
    read: Settings = {name: value for name, value in values.items() if name != PROMPT_FILE}
    if (file := values.get(PROMPT_FILE)) is not None:
        if "prompt" in read:
            raise ConfigurationError("prompt and prompt_file both say what to ask; give one of them")
        try:
            read["prompt"] = Path(folder, str(file)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"prompt_file {file!r} cannot be read: {error}") from error
    if isinstance(read.get("metrics"), Sequence):
        read["metrics"] = [_as_call("metrics", metric) for metric in read["metrics"]]
    if isinstance(read.get("extractor"), Mapping):
        read["extractor"] = _as_call("extractor", read["extractor"])
    return read


def _as_call(setting: str, written: object) -> object:
    """`{numeric: {tolerance: 0.01}}` as `numeric(tolerance=0.01)`; everything else as it is."""
    if not isinstance(written, Mapping):
        return written
    ((name, parameters), *others) = written.items() or [("", None)]
    if others or not isinstance(parameters, Mapping):
        raise ConfigurationError(
            f"{setting} with parameters is written as {{name: {{parameter: value}}}}, got {redact(written)!r}"
        )
    for key, value in parameters.items():
        if not _is_literal(value):
            raise ConfigurationError(
                f"{setting}: {key} of {name} cannot be {value!r}; give a number, a text, true or false, or a list or "
                "mapping of such"
            )
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"


def _is_literal(value: object) -> bool:
    """Whether a value is read again from how it is written: a date and `.nan` are not."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
