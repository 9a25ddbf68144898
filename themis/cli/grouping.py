"""Help in groups: an option says where it is declared what it belongs to, and a command shows its options by that.

`@ANSWERS.option("--model", ...)` in place of `@click.option("--model", ...)`, on a command of the class `GroupedCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import click

__all__ = [
    "ANSWERED",
    "ASKED",
    "GROUPS",
    "JUDGED",
    "KEPT",
    "RUN",
    "SHOWN",
    "GroupedCommand",
    "OptionGroup",
    "list_groups",
]

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class OptionGroup:
    """Options that answer the same question, under a heading of their own in the help.

    Args:
        title: The heading.
    """

    title: str

    def option(self, *names: str, **settings: object) -> Callable[[F], F]:
        """As `click.option`, for an option of this group.

        Args:
            *names: The option's, such as `-m` and `--model`.
            **settings: What `click.option` takes.
        """
        of_group = type("GroupedOption", (_GroupedOption,), {"group": self})
        return click.option(*names, cls=of_group, **settings)


ASKED = OptionGroup("What is asked")
ANSWERED = OptionGroup("Who answers")
JUDGED = OptionGroup("How it is judged")
RUN = OptionGroup("How it is run")
KEPT = OptionGroup("Where it is kept")
SHOWN = OptionGroup("What is shown, and when it counts as failed")
# In the order in which help shows them.
GROUPS = (ASKED, ANSWERED, JUDGED, RUN, KEPT, SHOWN)
_OTHERS = "Other options"


class _GroupedOption(click.Option):
    group: ClassVar[OptionGroup]


class GroupedCommand(click.Command):
    """A command whose help shows its options by group, and examples below them.

    Args:
        examples: What to do, and the words behind `themis` that do it.
        settings: What every `click.Command` takes.
    """

    def __init__(self, *arguments: Any, examples: Sequence[tuple[str, str]] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, options in list_groups(self, ctx):
            shown = [record for option in options if (record := option.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(shown)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Examples"):
            # A command that is broken over two lines would not run as it is copied.
            for number, (purpose, words) in enumerate(self.examples):
                formatter.write("\n" * bool(number))
                formatter.write(f"{'':{formatter.current_indent}}# {purpose}\n")
                formatter.write(f"{'':{formatter.current_indent}}themis {words}\n")


def list_groups(command: click.Command, ctx: click.Context) -> list[tuple[str, list[click.Option]]]:
    """(heading, options) in the order of the help; what belongs to no group comes last.

    Args:
        command: Of whatever class.
        ctx: Its context.
    """
    found: dict[str, list[click.Option]] = {group.title: [] for group in GROUPS}
    for option in command.get_params(ctx):
        if isinstance(option, click.Option) and not option.hidden:
            title = option.group.title if isinstance(option, _GroupedOption) else _OTHERS
            found.setdefault(title, []).append(option)
    return [(title, options) for title, options in found.items() if options]
