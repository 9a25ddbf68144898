"""What commands have in common: options, JSON on stdout, tables for people."""

from __future__ import annotations

import contextlib
import functools
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import click

from themis.cli.grouping import KEPT, SHOWN, OptionGroup
from themis.cli.terminal import escape_terminal
from themis.core.codec import json_bytes, read_word
from themis.core.redaction import Redactor
from themis.exceptions import ConfigurationError
from themis.runs.lifecycle import interrupt_on_termination

_PIPE_WIDTH = 240
_LONGEST_KEPT_WORD = 16
_GAP = 2

F = TypeVar("F", bound=Callable[..., Any])


def storage_option(function: F) -> F:
    return KEPT.option(
        "--storage",
        envvar="THEMIS_STORAGE",
        default=".cache/experiments",
        show_default=True,
        help="Storage directory, or a postgresql:// URL.",
    )(function)


def interruptible(function: F) -> F:
    """For commands that run for long: SIGTERM ends them as Ctrl-C does, whatever they are at."""

    @functools.wraps(function)
    def called(*arguments: object, **named: object) -> Any:
        with interrupt_on_termination():
            return function(*arguments, **named)

    return cast(F, called)


def command_words() -> list[str]:
    """The words behind `themis` that this command was called with; none where it was called from a program."""
    return list(click.get_current_context().find_root().obj or ())


def json_option(function: F) -> F:
    return SHOWN.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=_keep_stdout,
        help="Print JSON and nothing else on stdout.",
    )(function)


def _keep_stdout(context: click.Context, option: click.Parameter, as_json: bool) -> bool:
    """Sends what code of the user's prints to stderr; `print_data` knows the way to stdout."""
    if as_json:
        context.meta[_STDOUT] = sys.stdout
        context.with_resource(contextlib.redirect_stdout(sys.stderr))
    return as_json


_STDOUT = "themis.cli.output.stdout"


def apply_options(options: Sequence[Callable[[F], F]], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def key_values_option(
    *names: str, help: str, typed: bool = False, group: OptionGroup | None = None
) -> Callable[[F], F]:
    """An option `K=V` that may be repeated: one dict. With `typed`, values are what they look like: numbers, lists, text."""

    def parse(context: click.Context, option: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
        found = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals or not name.strip():
                raise ConfigurationError(f"expected K=V, got {text!r}")
            found[name.strip()] = read_word(value) if typed else value
        return found

    option = click.option if group is None else group.option
    return option(*names, multiple=True, metavar="K=V", callback=parse, help=help)


def print_json(value: object) -> None:
    print_data(json_bytes(value, indent=2).decode())


def print_data(text: str) -> None:
    """Writes a line for a program to stdout."""
    context = click.get_current_context(silent=True)
    click.echo(text, file=None if context is None else context.meta.get(_STDOUT))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """A table for people; numbers to the right. Model text is shown as text, never as markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    redactor = Redactor()
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    # Before cells are folded: half a key is known to nobody.
    shown = [[redactor.values(escape_terminal(value)) for value in row] for row in rows]
    # A number that is cut in two is another number: no column is narrower than its words, unless they are very long.
    narrowest = [
        min(_LONGEST_KEPT_WORD, max(map(len, " ".join([column, *(row[index] for row in shown)]).split()), default=0))
        for index, column in enumerate(columns)
    ]
    for index, column in enumerate(columns):
        numeric = bool(shown) and all(_is_number(row[index]) for row in shown)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        table.add_column(column, justify=justify, overflow="fold", min_width=narrowest[index])
    for row in shown:
        table.add_row(*(Text(cell) for cell in row))
    # A pipe has no width; a table for one must not fold its cells.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH
    Console(width=max(width, sum(narrowest) + _GAP * (len(columns) - 1))).print(table)


def print_result(value: object, columns: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool) -> None:
    """JSON for programs, or a table for people."""
    if as_json:
        print_json(value)
    else:
        print_table(columns, rows)


def write_page(path: str, page: str) -> None:
    """Writes a page, with the folders above it, and says so."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8", errors="backslashreplace")
    click.echo(f"wrote {path}", err=True)


def format_number(value: float | None, digits: int = 4) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    return f"{value:.{digits}f}"


def format_interval(ci: Sequence[float] | None) -> str:
    return "n/a" if not ci else f"[{ci[0]:.4f}, {ci[1]:.4f}]"


def _is_number(cell: str) -> bool:
    text = cell.strip().lstrip("$").rstrip("%").replace(",", "")
    try:
        float(text)
    except ValueError:
        return text in ("", "n/a", "-")
    return True
