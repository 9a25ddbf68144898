"""Agents that call no model: those whose score is known beforehand, one that counts what a model would have cost, and you.

The first are told the ideal replies by the runner (`prepare`), never through the conversation.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import click

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.exceptions import ConfigurationError
from themis.memory.actions import Expected
from themis.memory.agents.agent import Agent, AgentSettings, Reply
from themis.runs.prices import Price

_STATEMENT, _IGNORANCE = "Understood.", "I do not know."
_COST_REPLY = " ".join(["I have taken note of that and will keep it in mind for the rest of our conversation."] * 6)


class CalibrationAgent(Agent):
    """Knows what it should reply; a subclass decides what of it is still remembered."""

    reads_clock: ClassVar[bool] = False

    def __init__(self) -> None:
        self._expected = Expected()

    def prepare(self, expected: Expected) -> None:
        """What a perfect agent would reply to the next message."""
        self._expected = expected

    def remembers(self, distance_tokens: int, message: str) -> bool:
        raise NotImplementedError

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> str:
        if presupplied is not None:
            return presupplied
        expected = self._expected
        if expected.answer is None:
            said = _STATEMENT
        else:
            said = expected.answer if self.remembers(expected.distance_tokens, message) else _IGNORANCE
        extras = [extra.text for extra in expected.extras if self.remembers(extra.distance_tokens, message)]
        return "\n".join([said, *extras])

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        """It has no memory but what it is told."""

    def most_cost_usd(self, message: str) -> float:
        return 0.0

    def reset(self) -> None:
        self._expected = Expected()


class Oracle(CalibrationAgent):
    """Knows every right answer: what a test gives at best."""

    name = "oracle"

    def remembers(self, distance_tokens: int, message: str) -> bool:
        return True


class Window(CalibrationAgent):
    """Perfect memory of the last so many tokens, the current message included."""

    def __init__(self, window_tokens: int, tokenizer_name: str = DEFAULT_TOKENIZER) -> None:
        super().__init__()
        if window_tokens < 1:
            raise ConfigurationError(f"the window agent needs a window of at least one token, got {window_tokens}")
        self.name = f"window-{window_tokens}"
        self._window = window_tokens
        self._count = tokenizer(tokenizer_name)

    def remembers(self, distance_tokens: int, message: str) -> bool:
        return distance_tokens + self._count(message) <= self._window


class Amnesiac(CalibrationAgent):
    """Remembers nothing: what a test gives by chance."""

    name = "amnesiac"

    def remembers(self, distance_tokens: int, message: str) -> bool:
        return distance_tokens == 0


class Parrot(CalibrationAgent):
    """Says back the message it was sent."""

    name = "parrot"

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> str:
        return message if presupplied is None else presupplied


def parse_prices(argument: str) -> Price:
    """The price that `cost(IN,OUT)` names, in US dollars per 1,000 tokens."""
    try:
        input_usd, output_usd = (float(part) for part in argument.split(","))
    except ValueError as error:
        raise ConfigurationError(
            f"cost takes two prices in US dollars per 1,000 tokens, as in cost(0.005,0.015); got {argument!r}"
        ) from error
    if input_usd < 0 or output_usd < 0:
        raise ConfigurationError(f"prices are not negative, got cost({input_usd:g},{output_usd:g})")
    return Price(input_usd * 1_000, output_usd * 1_000, source="the prices given")


class CostEstimate(Agent):
    """Calls nothing and counts what a run would cost: `cost(0.005,0.015)`, US dollars per 1,000 tokens in and out.

    The context grows up to `max_prompt_tokens`, if given.
    """

    reads_clock: ClassVar[bool] = False

    def __init__(self, argument: str, settings: AgentSettings) -> None:
        self._price = parse_prices(argument)
        self.name = f"cost({self._price.input_usd / 1_000:g},{self._price.output_usd / 1_000:g})"
        self._limit = settings.max_prompt_tokens
        self._count = tokenizer(settings.tokenizer)
        self._reply_tokens = self._count(_COST_REPLY)
        self._context = 0

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        if presupplied is not None:
            self.observe(message, presupplied, turn=turn, now=now)
            return Reply(presupplied)
        prompt, cost = self._prompt_tokens(message), self.most_cost_usd(message)
        self.observe(message, _COST_REPLY, turn=turn, now=now)
        return Reply(_COST_REPLY, cost, prompt, self._reply_tokens, 1)

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        self._context = self._prompt_tokens(message, reply)

    def reset(self) -> None:
        self._context = 0

    def most_cost_usd(self, message: str) -> float:
        return self._price.of(self._prompt_tokens(message), self._reply_tokens)

    def _prompt_tokens(self, *texts: str) -> int:
        tokens = self._context + sum(map(self._count, texts))
        return tokens if self._limit is None else min(tokens, self._limit)


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


# --- by name ------------------------------------------------------------------------------------------------------------


def window(argument: str, settings: AgentSettings) -> Agent:
    """Answers rightly what lies within its last tokens: `window(2000)`, or `window` with -m 2000."""
    text = argument or str(settings.max_prompt_tokens or "")
    if not text.isdigit():
        raise ConfigurationError(f"the window agent needs its size in tokens: -m 2000 or window(2000); got {text!r}")
    return Window(int(text), settings.tokenizer)
