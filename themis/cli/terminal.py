"""What a terminal is given: sentences that end between words, no secrets, nothing that steers it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Any, TextIO, cast

import click

from themis.core.markup import escape_control
from themis.core.redaction import Redactor


def hide_secrets_in_output() -> None:
    """From now on the known secrets are taken out of whatever this process prints or logs, tracebacks too."""
    sys.stdout, sys.stderr = cast(TextIO, _RedactedStream(sys.stdout)), cast(TextIO, _RedactedStream(sys.stderr))


class _RedactedStream:
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


def is_person_there() -> bool:
    """Whether somebody can answer a question; a program started with its standard input closed has none, which is None."""
    return sys.stdin is not None and sys.stdin.isatty()


def echo_text(message: str) -> None:
    """Sentences on stdout; in a terminal their lines end between words."""
    click.echo(wrap_text(message, shutil.get_terminal_size().columns) if sys.stdout.isatty() else message)


def echo_error(message: str) -> None:
    """A message on stderr; in a terminal its lines end between words, elsewhere they stay whole for who searches them."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    click.echo(message if width is None else wrap_text(message, width), err=True)


def wrap_text(text: str, width: int) -> str:
    """Lines no longer than the width, as far as words allow: a path or a URL is never cut. Indentation is kept."""
    return "\n".join(line if len(line) <= width else _wrap_line(line, width) for line in text.splitlines())


def _wrap_line(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    # As indents and not as text: before a word that is too long for its line, the textwrap module drops white space.
    return textwrap.fill(
        line[len(indent) :],
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def escape_terminal(value: object) -> str:
    """Text that cannot steer the terminal: control characters of model output or ids do not reach it."""
    return escape_control(str(value), keep="\n", replacement="\N{REPLACEMENT CHARACTER}")
