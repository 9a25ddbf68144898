"""Options that commands of the memory benchmark share: which tests, and how far they reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from themis.cli.completing import CONFIGURATION
from themis.cli.grouping import ASKED
from themis.memory.assembling import parse_span

F = TypeVar("F", bound=Callable[..., object])

_DEFAULT_CONFIGURATION = "quick"
WHICH_CONFIGURATION = "A shipped configuration (see `themis list configurations`) or a YAML file."


def configuration_option(function: F) -> F:
    return ASKED.option(
        "-c",
        "--configuration",
        type=CONFIGURATION,
        default=_DEFAULT_CONFIGURATION,
        show_default=True,
        metavar="NAME|FILE",
        help=WHICH_CONFIGURATION,
    )(function)


def span_option(function: F) -> F:
    def parse(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
        return None if text is None else parse_span(text)

    return ASKED.option(
        "--span",
        "span_tokens",
        metavar="TOKENS",
        callback=parse,
        help="Memory span of every test, such as 8k.  [default: the configuration's]",
    )(function)
