"""One model of any provider, called for one conversation at a time: what chat agents and judges speak through."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelError,
    PromptRender,
    PromptSpec,
    SamplingConfig,
)
from themis.exceptions import EvaluationError
from themis.experiment.cost import FREE, Price, price_of
from themis.generation.engine import Engine, EngineSettings, Job
from themis.generation.providers import create_provider, parse_model
from themis.interfaces import StatelessTaskExecutor

__all__ = ["ChatModel", "Completion"]


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said, and what all calls for it took together. `cost_usd` is None where the price is not known."""

    text: str
    cost_usd: float | None
    prompt_tokens: int
    completion_tokens: int
    calls: int


class ChatModel:
    """A model by its name (`openai/gpt-4o`, `local/smollm2`), with retries and prices."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        temperature: float = 0.0,
        max_tokens: int = 1_024,
        is_local: bool = False,
        settings: EngineSettings | None = None,
    ) -> None:
        self.name = name
        self.spec = parse_model(name)
        self.sampling = SamplingConfig(temperature=temperature, top_p=1.0, max_tokens=max_tokens)
        executor = create_provider(self.spec.provider, options, model_identifier=self.spec.identifier)
        self.price: Price | None = FREE if is_local or executor.is_local else price_of(self.spec.identifier)
        settings = settings or EngineSettings()
        self._executor = executor
        if inspect.iscoroutinefunction(executor.execute):
            self._executor = _OnItsOwnLoop(executor, settings.timeout_seconds)
        self._engine = Engine(self._executor, settings)

    def complete(self, messages: Sequence[Mapping[str, str]]) -> Completion:
        """The model's next message in a conversation; an error that trying again does not mend is raised."""
        spoken = [dict(message) for message in messages]
        prompt = PromptRender(spec=PromptSpec("conversation", ""), text=spoken[-1]["content"])
        task = GenerationTask(
            prompt=prompt, model=self.spec, sampling=self.sampling, metadata={"messages": spoken, "dataset_id": ""}
        )
        outcome = self._engine.complete(Job(0, 0, "", task))
        if outcome.record.output is None:
            error = outcome.record.error or ModelError("no output and no error")
            raise EvaluationError(f"{self.name}: {error.message}")
        cost = None if self.price is None else self.price.of(outcome.prompt_tokens, outcome.completion_tokens)
        return Completion(
            text=outcome.record.output.text,
            cost_usd=cost,
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            calls=outcome.calls,
        )

    def close(self) -> None:
        close = getattr(self._executor, "close", None)
        if close is not None:
            close()


class _OnItsOwnLoop(StatelessTaskExecutor):
    """An async provider called from a thread, on a loop that lives as long as its connections."""

    def __init__(self, executor: StatelessTaskExecutor, timeout_seconds: float) -> None:
        self._provider = executor
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="memory-model", daemon=True)
        self._thread.start()

    def execute(self, task: GenerationTask) -> GenerationRecord:
        answer: Any = self._provider.execute(task)
        waiting = asyncio.wait_for(answer, self._timeout_seconds)
        record: GenerationRecord = asyncio.run_coroutine_threadsafe(waiting, self._loop).result()
        return record

    def close(self) -> None:
        if self._loop.is_closed():
            return
        close = getattr(self._provider, "aclose", None)
        if close is not None:
            asyncio.run_coroutine_threadsafe(close(), self._loop).result(timeout=5.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
