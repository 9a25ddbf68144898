"""`cost(in,out)`: an agent that says always the same and counts what a model with a full context would have cost."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.exceptions import ConfigurationError
from themis.memory.agents.agent import Agent, Reply

__all__ = ["CostEstimate"]

_WORDS = "I have taken note of that and will keep it in mind for the rest of our conversation."
_REPLY = " ".join([_WORDS] * 6)


class CostEstimate(Agent):
    """Prices in US dollars per 1,000 tokens. The context grows up to `max_prompt_tokens`, if given."""

    reads_clock: ClassVar[bool] = False

    def __init__(
        self,
        input_usd: float,
        output_usd: float,
        *,
        max_prompt_tokens: int | None = None,
        tokenizer_name: str = DEFAULT_TOKENIZER,
    ) -> None:
        if input_usd < 0 or output_usd < 0:
            raise ConfigurationError(f"prices are not negative, got cost({input_usd:g},{output_usd:g})")
        self.name = f"cost({input_usd:g},{output_usd:g})"
        self._input_usd, self._output_usd = input_usd, output_usd
        self._limit = max_prompt_tokens
        self._count = tokenizer(tokenizer_name)
        self._reply_tokens = self._count(_REPLY)
        self._context = 0

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        if presupplied is not None:
            self.observe(message, presupplied, turn=turn, now=now)
            return Reply(presupplied)
        prompt = self._within_limit(self._context + self._count(message))
        self.observe(message, _REPLY, turn=turn, now=now)
        cost = (prompt * self._input_usd + self._reply_tokens * self._output_usd) / 1_000
        return Reply(_REPLY, cost, prompt, self._reply_tokens, 1)

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        self._context = self._within_limit(self._context + self._count(message) + self._count(reply))

    def reset(self) -> None:
        self._context = 0

    def most_cost_usd(self, message: str) -> float:
        prompt = self._within_limit(self._context + self._count(message))
        return (prompt * self._input_usd + self._reply_tokens * self._output_usd) / 1_000

    def _within_limit(self, tokens: int) -> int:
        return tokens if self._limit is None else min(tokens, self._limit)
