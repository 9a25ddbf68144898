"""An agent that hears every message, forgets nothing, is told nothing else, and answers by rules: what honest memory scores.

It is made of the readers of all kinds of tests. Each of them hears everything; at most one has an answer.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from themis.memory.agents.agent import Agent
from themis.memory.examples import MEMORY_TESTS
from themis.memory.reader import Reader

_STATEMENT = "Understood."


class Perfect(Agent):
    """Answers every kind of test that has a reader from what was said, and from that alone."""

    reads_clock: ClassVar[bool] = False
    name = "perfect"

    def __init__(self) -> None:
        self._readers: list[Reader] = []
        self.reset()

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> str:
        said = presupplied
        if said is None:
            answers = [answer for reader in self._readers if (answer := reader.answer(message, now)) is not None]
            said = answers[0] if answers else _STATEMENT
            for reader in self._readers:
                said = reader.extend(message, said, now)
        for reader in self._readers:
            reader.observe(message, said, now)
        return said

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        """An exchange of an earlier process: it is read again, and what was said then was said."""
        for reader in self._readers:
            reader.answer(message, now)
            reader.extend(message, reply, now)
            reader.observe(message, reply, now)

    def most_cost_usd(self, message: str) -> float:
        return 0.0

    def reset(self) -> None:
        found = (MEMORY_TESTS.get(name).make_reader() for name in MEMORY_TESTS.names())
        self._readers = [reader for reader in found if reader is not None]
