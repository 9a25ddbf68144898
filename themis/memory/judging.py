"""The judge that tests consult where words must be understood: a model, or nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from themis.core.tokens import count_tokens
from themis.memory.agents.agent import Reply
from themis.memory.models import ChatModel

__all__ = ["NO_JUDGE", "Judge", "ModelJudge", "create_judge"]

NO_JUDGE = "no judge is configured; name a model with --judge"


class Judge(Protocol):
    """Answers one question at a time. It may raise: then the run stops, to be taken up again."""

    name: str

    def answer(self, prompt: str) -> Reply: ...

    def most_cost_usd(self, prompt: str) -> float | None:
        """The most that an answer may cost; None where the price is not known."""

    def close(self) -> None: ...


class ModelJudge:
    """A model as judge, at temperature 0."""

    def __init__(self, model: str, options: Mapping[str, Any] | None = None) -> None:
        self.name = model
        self._model = ChatModel(model, options, temperature=0.0, max_tokens=1_024)

    def answer(self, prompt: str) -> Reply:
        return self._model.complete([{"role": "user", "content": prompt}])

    def most_cost_usd(self, prompt: str) -> float | None:
        price = self._model.price
        return None if price is None else price.of(count_tokens(prompt), self._model.sampling.max_tokens)

    def close(self) -> None:
        self._model.close()


def create_judge(model: str | None, options: Mapping[str, Any] | None = None) -> Judge | None:
    return None if model is None else ModelJudge(model, options)
