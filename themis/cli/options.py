"""Options that several commands share: how durable answers are, and values given as K=V."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from themis.core.codec import read_word
from themis.exceptions import ConfigurationError
from themis.storage.database import Durability

F = TypeVar("F", bound=Callable[..., object])
_VARIABLE = "THEMIS_DURABILITY"


def durability_option(function: F) -> F:
    """Sets the variable that decides wherever a run is opened, for as long as the command runs."""

    def set_variable(context: click.Context, option: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = value
        context.call_on_close(lambda: _restore(before))

    return click.option(
        "--durability",
        type=click.Choice([one.value for one in Durability]),
        expose_value=False,
        callback=set_variable,
        help="What a stored answer outlives in SQLite: the end of the process, or a power cut too, which is slower.  "
        "[default: process, and power for memory runs]",
    )(function)


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(_VARIABLE, None)
    else:
        os.environ[_VARIABLE] = before


def parse_key_values(texts: Sequence[str], *, typed: bool = False) -> dict[str, Any]:
    """`k=v` texts as a dict; with `typed`, values are what they look like: numbers, lists, text."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigurationError(f"expected K=V, got {text!r}")
        found[name.strip()] = read_word(value) if typed else value
    return found
