"""Agents whose score is known beforehand, to check the tests and to read other agents' scores against.

They are told the ideal replies by the runner (`prepare`), never through the conversation.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.exceptions import ConfigurationError
from themis.memory.actions import Expected
from themis.memory.agents.agent import Agent

__all__ = ["Amnesiac", "CalibrationAgent", "Oracle", "Parrot", "Window"]

_STATEMENT, _IGNORANCE = "Understood.", "I do not know."


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
    """Perfect memory."""

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
    """Knows only what the current message says."""

    name = "amnesiac"

    def remembers(self, distance_tokens: int, message: str) -> bool:
        return distance_tokens == 0


class Parrot(CalibrationAgent):
    """Repeats the message."""

    name = "parrot"

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> str:
        return message if presupplied is None else presupplied
