"""Help of commands with many options: in groups, every option in one of them, with examples that hold."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator

import click
import pytest

from themis.cli import themis
from themis.cli.demo import _name_program
from themis.cli.grouping import GROUPS, GroupedCommand, list_groups


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = click.Context(command, info_name=name, parent=context)
        yield inner.command_path.removeprefix("themis "), command, inner
        if isinstance(command, click.Group):
            yield from commands(command, inner)


GROUPED = {
    path: (command, context)
    for path, command, context in commands(themis, click.Context(themis, info_name="themis"))
    if isinstance(command, GroupedCommand)
}


def test_help_fits_a_terminal_of_80_columns(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    paths = ["", *(path for path, _, _ in commands(themis, click.Context(themis, info_name="themis")))]

    assert [line for path in paths for line in call(*path.split(), "--help").out.splitlines() if len(line) > 80] == []


def test_the_commands_with_the_most_options_are_grouped():
    assert {"eval", "resume", "memory run"} <= GROUPED.keys()


@pytest.mark.parametrize("path", GROUPED)
def test_every_option_says_which_group_it_belongs_to(path):
    command, context = GROUPED[path]
    titles = {group.title for group in GROUPS}
    strays = [
        option.opts[-1]
        for title, options in list_groups(command, context)
        for option in options
        if title not in titles and "--help" not in option.opts
    ]

    assert strays == [], (
        f"`themis {path}`: declare {', '.join(strays)} by one of the groups of themis/cli/grouping.py, as in "
        f"@ASKED.option({strays[0]!r}, ...), not by @click.option" if strays else ""
    )  # fmt: skip


@pytest.mark.parametrize("path", GROUPED)
def test_help_shows_groups_in_their_order_and_examples_last(call, path):
    shown = call(*path.split(), "--help").out
    headings = [
        line.removesuffix(":") for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")
    ]

    titles = [group.title for group in GROUPS]
    assert [heading for heading in headings if heading in titles] == [title for title in titles if title in headings]
    assert headings[-2:] == ["Other options", "Examples"]


@pytest.mark.parametrize("path", GROUPED)
def test_the_examples_name_options_that_there_are(path):
    command, context = GROUPED[path]
    known = {name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)}

    assert 2 <= len(command.examples) <= 3
    for _, words in command.examples:
        parts = shlex.split(words)
        assert " ".join(parts[: len(path.split())]) == path
        assert {part for part in parts if part.startswith("-") and part != "-"} <= known


def test_an_option_without_a_group_is_shown_all_the_same():
    @click.command(cls=GroupedCommand)
    @click.option("--stray", help="Not forgotten.")
    def command(stray: str) -> None: ...

    context = click.Context(command)

    assert [title for title, _ in list_groups(command, context)] == ["Other options"]
    assert "Not forgotten." in command.get_help(context)


def test_the_demo_names_a_command_that_can_be_typed(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", [".venv/bin/themis", "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _name_program() == ".venv/bin/themis"

    (tmp_path / "themis").touch(mode=0o755)
    assert _name_program() == "themis"
