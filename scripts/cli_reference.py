"""Writes docs/reference/cli.md from the command line itself: `make docs`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from themis.cli import EPILOG, themis
from themis.cli.grouping import GroupedCommand, list_groups

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"

INTRODUCTION = """\
# The command line

Written by `make docs` from the commands themselves. `themis COMMAND --help` shows the same in the terminal.
"""


def render() -> str:
    """The whole page."""
    context = click.Context(themis, info_name="themis")
    notes = EPILOG.replace("\b", "").strip()
    parts = [INTRODUCTION, _options(themis, context), f"```text\n{notes}\n```\n"]
    parts += [_section(command, context) for command, context in _commands(themis, context)]
    return "\n".join(part for part in parts if part)


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield command, inner
        if isinstance(command, click.Group):
            yield from _commands(command, inner)


def _section(command: click.Command, context: click.Context) -> str:
    depth = context.command_path.count(" ")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    about = inspect.cleandoc(command.help or "").replace("\b\n", "").replace("\f", "")
    return "\n".join(
        part
        for part in (
            f"{'#' * (depth + 1)} {context.command_path}\n",
            f"```text\n{usage}\n```\n",
            f"{about}\n",
            _options(command, context),
            _examples(command),
        )
        if part.strip()
    )


def _options(command: click.Command, context: click.Context) -> str:
    """One table; of a command with groups, with their headings in it."""
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    is_grouped = isinstance(command, GroupedCommand)
    rows: list[str] = []
    for title, of_group in list_groups(command, context) if is_grouped else [("", options)]:
        shown = [row for option in of_group if (row := _row(option, context))]
        rows += [f"| **{title}** | |", *shown] if is_grouped and shown else shown
    return "\n".join(["| option | |", "|---|---|", *rows, ""]) if rows else ""


def _examples(command: click.Command) -> str:
    given = command.examples if isinstance(command, GroupedCommand) else ()
    lines = [f"# {purpose}\nthemis {words}" for purpose, words in given]
    return "```bash\n" + "\n\n".join(lines) + "\n```\n" if lines else ""


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    if record is None or "--help" in option.opts:
        return ""
    names, about = (part.replace("|", "\\|").replace("\n", " ") for part in record)
    return f"| `{names}` | {' '.join(about.split())} |"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
