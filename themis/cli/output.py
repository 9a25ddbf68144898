"""What commands have in common: the storage option, JSON on stdout, tables for people."""

from __future__ import annotations

import datetime
import functools
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TextIO, TypeVar, cast

import click

from themis.core.redaction import Redactor
from themis.runs.stopping import interrupt_on_termination

__all__ = [
    *(
        "echo_error",
        "json_option",
        "number",
        "print_json",
        "print_table",
        "printable",
        "say",
        "storage_option",
        "format_time",
    ),
    *("fail_on_errors_option", "hide_secrets_in_output", "interruptible", "refuse_failures", "words_given", "wrapped"),
]

_PIPE_WIDTH = 240
_TOO_MANY_FAILED = 1
_LONGEST_KEPT_WORD = 16
_GAP = 2

F = TypeVar("F", bound=Callable[..., Any])


def storage_option(function: F) -> F:
    return click.option(
        "--storage",
        envvar="THEMIS_STORAGE",
        default=".cache/experiments",
        show_default=True,
        help="Storage directory, or a postgresql:// URL.",
    )(function)


def interruptible(function: F) -> F:
    """For commands that run for long: SIGTERM ends them as Ctrl-C does, whatever they are at."""

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        with interrupt_on_termination():
            return function(*arguments, **named)

    return cast(F, called)


def words_given() -> list[str]:
    """The words behind `themis` that this command was called with; none where it was called from a program."""
    return list(click.get_current_context().find_root().obj or ())


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else on stdout.")(function)


def hide_secrets_in_output() -> None:
    """From now on the known secrets are taken out of whatever this process prints or logs, tracebacks too."""
    sys.stdout, sys.stderr = cast(TextIO, _Screened(sys.stdout)), cast(TextIO, _Screened(sys.stderr))


class _Screened:
    """A stream that is another one, without secrets."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._redactor: Redactor | None = None
        self._variables = 0

    def write(self, text: str) -> int:
        # A .env file, or the user's own code, adds to the environment after the start.
        if self._redactor is None or self._variables != len(os.environ):
            self._redactor, self._variables = Redactor(), len(os.environ)
        return self._stream.write(self._redactor.values(text))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_json(value: Any) -> None:
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """A table for people; numbers to the right. Model text is shown as text, never as markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    redactor = Redactor()
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    # Before cells are folded: half a key is known to nobody.
    shown = [[redactor.values(printable(value)) for value in row] for row in rows]
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


def say(message: str) -> None:
    """Sentences on stdout; in a terminal their lines end between words."""
    click.echo(wrapped(message, shutil.get_terminal_size().columns) if sys.stdout.isatty() else message)


def echo_error(message: str) -> None:
    """A message on stderr; in a terminal its lines end between words, elsewhere they stay whole for who searches them."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    click.echo(message if width is None else wrapped(message, width), err=True)


def wrapped(text: str, width: int) -> str:
    """Lines no longer than the width, as far as words allow: a path or a URL is never cut. Indentation is kept."""
    return "\n".join(line if len(line) <= width else _wrapped_line(line, width) for line in text.splitlines())


def _wrapped_line(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def number(value: float | None, digits: int = 4) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    return f"{value:.{digits}f}"


def format_time(moment: datetime.datetime | None) -> str:
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def printable(value: Any) -> str:
    """Text that cannot steer the terminal: control characters of model output or ids do not reach it."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(value))


def _is_number(cell: str) -> bool:
    text = cell.strip().lstrip("$").rstrip("%").replace(",", "")
    try:
        float(text)
    except ValueError:
        return text in ("", "n/a", "-")
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def fail_on_errors_option(function: F) -> F:
    return click.option(
        "--fail-on-errors",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Exit with 1 if more than this share failed, for CI; 0 for any.",
    )(function)


def refuse_failures(failed: int, total: int, of: str, allowed: float | None) -> None:
    """Ends the command with 1 where more failed than `--fail-on-errors` allows."""
    if allowed is not None and failed > allowed * total:
        echo_error(f"{failed / total:.1%} of the {of} failed, more than --fail-on-errors {allowed:g} allows")
        raise click.exceptions.Exit(_TOO_MANY_FAILED)
