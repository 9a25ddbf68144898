"""Groups of commands that are imported when they are called, so that `--help` is immediate."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from themis.core.registry import nearest


class LazyGroup(click.Group):
    """A group whose commands stand in a table, beside those that are added to it as usual.

    Args:
        table: name -> ("module:attribute", the line in `--help`).
        settings: What every `click.Group` takes.
    """

    def __init__(self, *, table: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(**settings)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._table, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._table:
            return super().get_command(ctx, name)
        module, _, attribute = self._table[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0] if args else "", self.list_commands(ctx)
        if name and name not in known and not name.startswith("-"):
            raise click.UsageError(f"no command {name!r}{nearest(name, known)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = [(name, line) for name, (_, line) in self._table.items()]
        lines += [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(lines)
