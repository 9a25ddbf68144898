"""A person at the terminal as agent: an empty line ends the answer."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import click

from themis.memory.agents.agent import Agent, Reply


class Human(Agent):
    """You, typing the replies in this terminal. What was said before a resumption is in your own memory."""

    remembers_elsewhere: ClassVar[bool] = True
    reads_clock: ClassVar[bool] = False
    name = "human"

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        click.echo(f"\n[{turn}, {now:%A %d %B %Y %H:%M} UTC] {message}", err=True)
        if presupplied is not None:
            click.echo(f"(answered for you: {presupplied})", err=True)
            return Reply(presupplied)
        lines: list[str] = []
        while line := input("> " if not lines else "  "):
            lines.append(line)
        return Reply("\n".join(lines))

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        """People need not be told again what they said."""

    def most_cost_usd(self, message: str) -> float:
        return 0.0

    def reset(self) -> None:
        click.echo("\nAnother conversation begins: forget what was said.", err=True)
