"""One model of any provider, called for one conversation at a time: what chat agents speak through, and the judge of tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from themis.core.entities import GenerationTask, ModelError, PromptRender, PromptSpec, SamplingConfig
from themis.core.redaction import Redactor
from themis.core.tokens import count_tokens
from themis.exceptions import EvaluationError
from themis.generation.attempts import Request
from themis.generation.engine import Engine, EngineSettings
from themis.generation.pools import BlockingProvider
from themis.generation.providers import create_provider, parse_model
from themis.memory.agents.agent import Reply
from themis.memory.short_names import expand_model
from themis.runs.prices import FREE, Price, cost_of, is_paid, price_of

NO_JUDGE = "no judge is configured; name a model with --judge"


class Judge(Protocol):
    """Whom tests consult where words must be understood. It may raise: then the run stops, to be taken up again."""

    name: str

    def answer(self, prompt: str) -> Reply: ...

    def most_cost_usd(self, prompt: str) -> float | None:
        """The most that an answer may cost; None where the price is not known."""


class ChatModel:
    """A model by its name (`openai/gpt-4o`, `local/smollm2`), with retries and prices; as it is, a judge."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, object] | None = None,
        *,
        temperature: float = 0.0,
        max_tokens: int = 1_024,
        is_local: bool = False,
        settings: EngineSettings | None = None,
    ) -> None:
        self.name = name
        self.spec = parse_model(expand_model(name), options)
        self.sampling = SamplingConfig(temperature=temperature, max_tokens=max_tokens)
        executor = create_provider(self.spec.provider, options, model_identifier=self.spec.identifier)
        self.price: Price | None = (
            FREE if is_local or executor.is_local else price_of(self.spec.identifier, self.spec.provider)
        )
        # Of whoever says itself what an answer cost.
        self._told_most_usd: float | None = getattr(executor, "most_cost_usd", None)
        settings = replace(settings or EngineSettings(), counts_tokens=is_paid(self.price))
        self._redactor = Redactor()
        self._provider = BlockingProvider(executor, settings.timeout_seconds)
        self._engine = Engine(self._provider, settings)

    def complete(self, messages: Sequence[Mapping[str, str]]) -> Reply:
        """The model's next message in a conversation; an error that trying again does not mend is raised."""
        spoken = [dict(message) for message in messages]
        prompt = PromptRender(spec=PromptSpec("conversation", ""), text=spoken[-1]["content"])
        task = GenerationTask(
            prompt=prompt, model=self.spec, sampling=self.sampling, metadata={"messages": spoken, "dataset_id": ""}
        )
        result = self._engine.complete(Request(0, 0, "", task))
        if result.record.output is None:
            error = result.record.error or ModelError("no output and no error")
            raise EvaluationError(f"{self.name}: {self._redactor.text(error.message)}")
        return Reply(
            text=self._redactor.values(result.record.output.text),
            cost_usd=cost_of(result, self.price),
            prompt_tokens=result.prompt_tokens,
            completion_tokens=result.completion_tokens,
            calls=result.calls,
        )

    def answer(self, prompt: str) -> Reply:
        """The same for a conversation of one message."""
        return self.complete([{"role": "user", "content": prompt}])

    def most_cost_usd(self, prompt: str) -> float | None:
        return self.most_of(count_tokens(prompt))

    def most_of(self, prompt_tokens: int) -> float | None:
        """The most that an answer to a prompt of so many tokens may cost; None where nobody says.

        Args:
            prompt_tokens: Of the whole conversation.
        """
        if self.price is None:
            return self._told_most_usd
        return self.price.most(prompt_tokens, self.sampling.max_tokens)

    def close(self) -> None:
        self._provider.close()
