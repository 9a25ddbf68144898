"""Any model as an agent: system prompt, newest message, and as many latest whole exchanges as fit into its prompt."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.exceptions import ConfigurationError
from themis.memory.agents.agent import Agent, AgentSettings, Reply
from themis.memory.models import ChatModel
from themis.runs.prices import PRICES_VARIABLE

DEFAULT_MAX_PROMPT_TOKENS = 16_384
SYSTEM_PROMPT = "You are a helpful assistant with a good memory for everything that was said in this conversation."
# What the format of a chat adds to every message.
MESSAGE_TOKENS = 4
# Room for `[3.5 days ago]` in front of a message.
_TAG_TOKENS = 12


class ChatAgent(Agent):
    """A model that is shown as much of the conversation as fits: `openai/gpt-4o` or `chat(openai/gpt-4o)`.

    With `timestamps` it sees how long ago every message was said.
    """

    reads_clock: ClassVar[bool] = False
    how_to_bound_cost: ClassVar[str] = (
        f"add its model to a price file and name that file in {PRICES_VARIABLE}, give the most that a reply of code of yours may "
        "cost with --option most_cost_usd=0.05 (what it says in `cost_usd` is counted), or give -l if it costs nothing"
    )

    def __init__(
        self,
        argument: str,
        settings: AgentSettings,
        *,
        system_prompt: str = SYSTEM_PROMPT,
        temperature: float = 0.0,
        max_tokens: int = 1_024,
        timestamps: bool = False,
        **provider_options: object,
    ) -> None:
        max_prompt_tokens = settings.max_prompt_tokens or DEFAULT_MAX_PROMPT_TOKENS
        self.name = f"{'ts-' if timestamps else ''}{argument} ({max_prompt_tokens} tokens)"
        self.model = ChatModel(
            argument, provider_options, temperature=temperature, max_tokens=max_tokens, is_local=settings.is_local
        )
        self.system_prompt = system_prompt
        self.history = History(0, extra_tokens=_TAG_TOKENS * timestamps, tokenizer_name=settings.tokenizer)
        self.history.limit_tokens = max_prompt_tokens - self.history.size(system_prompt)
        self._max_prompt_tokens = max_prompt_tokens
        self._timestamps = timestamps
        if self.history.limit_tokens <= 2 * MESSAGE_TOKENS:
            raise ConfigurationError(
                f"a prompt of {max_prompt_tokens} tokens has no room for a message beside the system prompt; "
                "give more with -m"
            )

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        if presupplied is not None:
            self.observe(message, presupplied, turn=turn, now=now)
            return Reply(presupplied)
        self.history.evict_until_fits(message)
        said = self.model.complete(self.prompt(message, now))
        self.observe(message, said.text, turn=turn, now=now)
        return said

    def prompt(self, message: str, now: datetime) -> list[dict[str, str]]:
        """What the model is sent."""
        said = [(self._tag(exchange.message, now - exchange.now), exchange.reply) for exchange in self.history]
        return format_prompt(self.system_prompt, said, self._tag(message, timedelta(0)))

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        self.history.add(message, reply, turn=turn, now=now)

    def reset(self) -> None:
        self.history.clear()

    def most_cost_usd(self, message: str) -> float | None:
        return self.model.most_of(min(self._max_prompt_tokens, self.history.tokens + self.history.size(message) + 100))

    def close(self) -> None:
        self.model.close()

    def _tag(self, text: str, ago: timedelta) -> str:
        return f"[{format_elapsed(ago)}] {text}" if self._timestamps else text


def format_prompt(system_prompt: str, said: Iterable[tuple[str, str]], message: str) -> list[dict[str, str]]:
    """A system prompt, past messages with their replies, and the newest message, as a model is sent them."""
    messages = [{"role": "system", "content": system_prompt}]
    for sent, reply in said:
        messages += [{"role": "user", "content": sent}, {"role": "assistant", "content": reply}]
    return [*messages, {"role": "user", "content": message}]


def format_elapsed(ago: timedelta) -> str:
    seconds = ago.total_seconds()
    if seconds < 1:
        return "just now"
    for unit, size in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0)):
        if seconds >= size:
            amount = f"{seconds / size:.1f}".removesuffix(".0")
            return f"{amount} {unit}{'' if amount == '1' else 's'} ago"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'} ago"


# --- what fits into a prompt --------------------------------------------------------------------------------------------


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

    def evict_until_fits(self, message: str) -> None:
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


# --- by name ------------------------------------------------------------------------------------------------------------


def timestamped(argument: str, settings: AgentSettings, **options: Any) -> Agent:
    """A chat that also shows the model how long ago every message was said: `ts-MODEL`."""
    return ChatAgent(argument, settings, **{**options, "timestamps": True})
