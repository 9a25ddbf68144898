"""Any model as an agent: system prompt, newest message, and as many latest whole exchanges as fit into its prompt."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from themis.core.tokens import DEFAULT_TOKENIZER
from themis.exceptions import ConfigurationError
from themis.memory.agents.agent import PRICED_OR_LOCAL, Agent, Reply
from themis.memory.agents.history import MESSAGE_TOKENS, History
from themis.memory.models import ChatModel

__all__ = ["DEFAULT_MAX_PROMPT_TOKENS", "SYSTEM_PROMPT", "ChatAgent", "elapsed_in_words"]

DEFAULT_MAX_PROMPT_TOKENS = 16_384
SYSTEM_PROMPT = "You are a helpful assistant with a good memory for everything that was said in this conversation."
# Room for `[3.5 days ago]` in front of a message.
_TAG_TOKENS = 12


class ChatAgent(Agent):
    """A windowed chat over one model. With `timestamps` it sees how long ago every message was said."""

    reads_clock: ClassVar[bool] = False
    how_to_bound_cost: ClassVar[str] = PRICED_OR_LOCAL

    def __init__(
        self,
        model: ChatModel,
        *,
        max_prompt_tokens: int = DEFAULT_MAX_PROMPT_TOKENS,
        system_prompt: str = SYSTEM_PROMPT,
        timestamps: bool = False,
        tokenizer_name: str = DEFAULT_TOKENIZER,
    ) -> None:
        self.name = f"{'ts-' if timestamps else ''}{model.name} ({max_prompt_tokens} tokens)"
        self.model = model
        self.system_prompt = system_prompt
        self.history = History(0, extra_tokens=_TAG_TOKENS * timestamps, tokenizer_name=tokenizer_name)
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
        self.history.make_room(message)
        said = self.model.complete(self.prompt(message, now))
        self.observe(message, said.text, turn=turn, now=now)
        return Reply(said.text, said.cost_usd, said.prompt_tokens, said.completion_tokens, said.calls)

    def prompt(self, message: str, now: datetime) -> list[dict[str, str]]:
        """What the model is sent."""
        messages = [{"role": "system", "content": self.system_prompt}]
        for exchange in self.history:
            messages.append({"role": "user", "content": self._tagged(exchange.message, now - exchange.now)})
            messages.append({"role": "assistant", "content": exchange.reply})
        messages.append({"role": "user", "content": self._tagged(message, timedelta(0))})
        return messages

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        self.history.add(message, reply, turn=turn, now=now)

    def reset(self) -> None:
        self.history.clear()

    def most_cost_usd(self, message: str) -> float | None:
        price = self.model.price
        if price is None:
            return None
        prompt = min(self._max_prompt_tokens, self.history.tokens + self.history.size(message) + 100)
        return price.of(prompt, self.model.sampling.max_tokens)

    def close(self) -> None:
        self.model.close()

    def _tagged(self, text: str, ago: timedelta) -> str:
        return f"[{elapsed_in_words(ago)}] {text}" if self._timestamps else text


def elapsed_in_words(ago: timedelta) -> str:
    seconds = ago.total_seconds()
    if seconds < 1:
        return "just now"
    for unit, size in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0)):
        if seconds >= size:
            amount = f"{seconds / size:.1f}".removesuffix(".0")
            return f"{amount} {unit}{'' if amount == '1' else 's'} ago"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'} ago"
