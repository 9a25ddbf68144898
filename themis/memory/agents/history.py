"""The part of a conversation that fits into a prompt: the latest whole exchanges, counted once each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer

__all__ = ["MESSAGE_TOKENS", "Exchange", "History"]

# What the format of a chat adds to every message.
MESSAGE_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message and its reply, with what both take in a prompt."""

    message: str
    reply: str
    turn: int
    now: datetime
    tokens: int


class History:
    """The latest exchanges of a conversation, as many as may ever fit beside the next message.

    An exchange that does not fit beside one message does not fit beside any later one either: what that message left no
    room for is then taken by itself. So it is dropped for good, and a turn costs no more than what is new in it.
    """

    def __init__(self, limit_tokens: int, *, extra_tokens: int = 0, tokenizer_name: str = DEFAULT_TOKENIZER) -> None:
        self.limit_tokens = limit_tokens
        self.tokens = 0
        # Added to every message for what is written into it when it is sent.
        self._extra_tokens = extra_tokens
        self._count = tokenizer(tokenizer_name)
        self._exchanges: deque[Exchange] = deque()

    def __iter__(self) -> Iterator[Exchange]:
        return iter(self._exchanges)

    def __len__(self) -> int:
        return len(self._exchanges)

    def size(self, text: str) -> int:
        """Tokens of a message in a prompt."""
        return self._count(text) + MESSAGE_TOKENS

    def make_room(self, message: str) -> None:
        """Drops the oldest exchanges that do not fit beside a message, which itself always stays."""
        room = self.limit_tokens - self.size(message) - self._extra_tokens
        while self._exchanges and self.tokens > room:
            self.tokens -= self._exchanges.popleft().tokens

    def add(self, message: str, reply: str, *, turn: int, now: datetime) -> Exchange:
        tokens = self.size(message) + self.size(reply) + self._extra_tokens
        exchange = Exchange(message, reply, turn, now, tokens)
        self._exchanges.append(exchange)
        self.tokens += tokens
        while self._exchanges and self.tokens > self.limit_tokens:
            self.tokens -= self._exchanges.popleft().tokens
        return exchange

    def clear(self) -> None:
        self._exchanges.clear()
        self.tokens = 0
