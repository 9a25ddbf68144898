"""Somebody who talks to the subject after the prompt: a model that plays a user with a persona and a goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from themis.core.entities import GenerationTask, PromptRender, PromptSpec, SamplingConfig
from themis.core.messages import Message, describe_content
from themis.core.registry import nearest
from themis.core.tokens import count_prompt_tokens
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.attempts import Request
from themis.generation.engine import Engine, EngineSettings
from themis.generation.episodes import LetUserSpeak, Play, UserTurn, answer_with_tools
from themis.generation.pools import BlockingProvider
from themis.generation.providers import create_provider, parse_model
from themis.generation.templates import PromptTemplate

_INSTRUCTIONS = """You play a person who talks to an assistant. You are not the assistant: write only what this person \
says next, in one short message, in the person's own words.
{persona}{goal}
Do not help the assistant, do not answer for it, and tell only what the person knows. When the person has got what they want, or \
sees that they will not get it, write {end} and nothing else."""

SETTINGS = ("model", "persona", "goal", "turns", "temperature", "max_tokens", "options", "end")


class TokenPrice(Protocol):
    """What the tokens of a model cost."""

    def of(self, prompt_tokens: int, completion_tokens: int) -> float: ...
    def most(self, prompt_tokens: int, completion_tokens: int) -> float: ...


class Reservation(Protocol):
    """What is set aside for a call; takes what it cost."""

    cost_usd: float | None


class Purse(Protocol):
    """What a run may spend; sets aside what a call may cost, or gives None where too little is left."""

    def reserving(self, most_usd: float) -> AbstractContextManager[Reservation | None]: ...


class UserFailedError(ProviderCallError):
    """Whoever plays the user did not answer, or said nothing.

    Args:
        message: What happened.
        turn: What asking for it took.
        kind: A short code.
    """

    def __init__(self, message: str, turn: UserTurn, *, kind: str = "provider_error") -> None:
        super().__init__(message, kind=kind, cost_usd=turn.cost_usd)
        self.turn = turn


class SimulatedUser:
    """Plays the user of every sample, alone in its conversation.

    Args:
        model: Who plays, as `provider/model` or whatever else answers.
        persona: Who the person is; `{fields}` of the row stand in it.
        goal: What the person wants; likewise.
        turns: The most messages that the person says after the prompt.
        temperature: Of the playing model.
        max_tokens: Of one message.
        options: Of its provider.
        end: What it writes when the conversation is over.
        price: Of the playing model's tokens; None where it is not known.
        settings: How its calls are made.
    """

    def __init__(
        self,
        *,
        model: str,
        persona: str = "",
        goal: str = "",
        turns: int = 8,
        temperature: float = 0.7,
        max_tokens: int = 400,
        options: Mapping[str, object] | None = None,
        end: str = "[END]",
        price: TokenPrice | None = None,
        settings: EngineSettings | None = None,
    ) -> None:
        if not persona and not goal:
            raise ConfigurationError("a user needs a persona or a goal: user={'model': ..., 'goal': 'wants a refund'}")
        self.spec = parse_model(model, options)
        self._sampling = SamplingConfig(temperature=temperature, max_tokens=max_tokens)
        self._persona = PromptTemplate("persona", persona, metadata={"as_written": True})
        self._goal = PromptTemplate("goal", goal, metadata={"as_written": True})
        self._turns, self._end, self._price = turns, end, price
        # The run's, where it has one.
        self.budget: Purse | None = None
        settings = settings or EngineSettings()
        self.executor = create_provider(self.spec.provider, options, model_identifier=self.spec.identifier)
        self._provider = BlockingProvider(self.executor, settings.timeout_seconds)
        self._engine = Engine(self._provider, settings)

    def __call__(self, row: Mapping[str, object]) -> Play:
        persona, goal = self._persona.fill(row), self._goal.fill(row)
        system = _INSTRUCTIONS.format(
            persona=f"The person: {persona}\n" if persona else "",
            goal=f"What the person wants: {goal}\n" if goal else "",
            end=self._end,
        )
        return self._play(system)

    def _play(self, system: str) -> Play:
        yield from answer_with_tools()
        for _ in range(self._turns):
            said = yield LetUserSpeak(lambda messages: self._speak(system, messages))
            if said is None:
                return {"ended_by": "user"}
            yield from answer_with_tools()
        return {"ended_by": "turns"}

    def _speak(self, system: str, messages: Sequence[Message]) -> UserTurn:
        """The person's next message: for the playing model, the assistant is who it talks to."""
        asked: list[Message] = [{"role": "system", "content": system}]
        for message in messages:
            text = describe_content(message.get("content"))
            if message["role"] in ("user", "assistant") and text:
                asked.append({"role": "assistant" if message["role"] == "user" else "user", "content": text})
        prompt = PromptRender(PromptSpec("user", ""), str(asked[-1]["content"]))
        task = GenerationTask(prompt, self.spec, self._sampling, {"messages": asked, "dataset_id": ""})
        with nullcontext() if self.budget is None else self.budget.reserving(self._most_usd(task)) as reserved:
            if self.budget is not None and reserved is None:
                raise ProviderCallError("the budget has nothing left for whoever plays the user", kind="budget")
            turn = self._ask(task)
            if reserved is not None:
                reserved.cost_usd = turn.cost_usd
            return turn

    def _ask(self, task: GenerationTask) -> UserTurn:
        result = self._engine.complete(Request(0, 0, "", task))
        output, cost = result.record.output, result.told_usd
        if cost is None and self._price is not None:
            cost = self._price.of(result.prompt_tokens, result.completion_tokens)
        turn = UserTurn(None, result.calls, result.prompt_tokens, result.completion_tokens, cost)
        if output is None:
            reason = result.record.error.message if result.record.error is not None else "no answer"
            raise UserFailedError(f"whoever plays the user did not answer: {reason}", turn)
        is_over = self._end in output.text
        if not is_over and not output.text.strip():
            # Nothing said is no decision to go.
            at_limit = f" within max_tokens={self._sampling.max_tokens}" if output.finish_reason == "length" else ""
            raise UserFailedError(f"whoever plays the user said nothing{at_limit}", turn, kind="empty_response")
        return turn if is_over else replace(turn, text=output.text)

    @property
    def can_be_bounded(self) -> bool:
        """Whether it is known what its next message may cost at most."""
        return self._price is not None or getattr(self.executor, "most_cost_usd", None) is not None

    def _most_usd(self, task: GenerationTask) -> float:
        if self._price is not None:
            return self._price.most(count_prompt_tokens(task.prompt.text, task.metadata), task.sampling.max_tokens)
        return float(getattr(self.executor, "most_cost_usd", None) or 0.0)

    def close(self) -> None:
        self._provider.close()


def check_user(given: Mapping[str, object]) -> None:
    """Raises where the settings of a user are not what it takes.

    Args:
        given: By name.
    """
    for name in given:
        if name not in SETTINGS:
            raise ConfigurationError(f"a user has no {name!r}{nearest(name, SETTINGS)}; it has {', '.join(SETTINGS)}")
    if not isinstance(given.get("model"), str):
        raise ConfigurationError("a user is played by a model: user={'model': 'openai/gpt-4o-mini', 'goal': ...}")
