"""The option `--durability` of the commands that write runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from themis.storage.database import Durability

__all__ = ["durability_option"]

F = TypeVar("F", bound=Callable[..., Any])
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
