"""Plays a schedule with an agent in this process, without a store, a judge or a price: how keys are tried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.memory.actions import End, Fill, Outcome, Step
from themis.memory.agents.agent import Agent, Reply
from themis.memory.agents.calibration import CalibrationAgent
from themis.memory.benchmark import INTRODUCTION
from themis.memory.definitions import Defined
from themis.memory.filler import Filler
from themis.memory.planning import plan_test
from themis.memory.scheduler import Scheduler
from themis.memory.simulation import Simulation

_START = datetime(2024, 1, 1, 9, tzinfo=UTC)


def rehearse(
    agent: Agent,
    defined: Sequence[Defined],
    conflicts: Mapping[str, Iterable[str]],
    filler: Filler,
    *,
    deaf_until_turn: int = 0,
    max_message_tokens: int = 4_096,
) -> dict[str, Outcome]:
    """What becomes of each test, by its id.

    Args:
        agent: Who answers.
        defined: The tests.
        conflicts: For a kind of test, the kinds that may not run beside it.
        filler: What is sent between messages of tests.
        deaf_until_turn: The agent never hears what is said up to this turn.
        max_message_tokens: Most tokens of one filler.
    """
    count = tokenizer(DEFAULT_TOKENIZER)
    scheduler = Scheduler(
        [plan_test(one.example, one.kind, count) for one in defined],
        start=_START,
        conflicts=conflicts,
        introduction=INTRODUCTION,
        max_message_tokens=max_message_tokens,
    )
    rehearsal = _Rehearsal(agent, deaf_until_turn, scheduler, filler, count)
    rehearsal.play()
    return rehearsal.outcomes


class _Rehearsal(Simulation):
    """Lets an agent answer, once it can hear."""

    def __init__(
        self, agent: Agent, deaf_until_turn: int, scheduler: Scheduler, filler: Filler, count: Callable[[str], int]
    ) -> None:
        super().__init__(scheduler, filler, count)
        self._agent = agent
        self._deaf_until_turn = deaf_until_turn
        self.outcomes: dict[str, Outcome] = {}

    def say(self, step: Step, message: str, filler_reply: str | None) -> str:
        presupplied = filler_reply if isinstance(step.action, Fill) and step.action.presupplied else None
        if step.turn <= self._deaf_until_turn:
            return presupplied or ""
        if isinstance(self._agent, CalibrationAgent):
            self._agent.prepare(step.expected)
        said = self._agent.reply(message, turn=step.turn, now=step.at.now, presupplied=presupplied)
        return said.text if isinstance(said, Reply) else said

    def on_event(self, step: Step) -> None:
        if isinstance(step.action, End):
            self.outcomes[step.action.outcome.test_id] = step.action.outcome
