"""Plays a schedule with an agent in this process, without a store, a judge or a price: how keys are tried out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.memory.actions import (
    Ask,
    Consult,
    End,
    Fill,
    Forget,
    Intro,
    JudgeReply,
    Jump,
    Line,
    Outcome,
    Say,
    Step,
)
from themis.memory.agents.agent import Agent, Reply
from themis.memory.agents.calibration import CalibrationAgent
from themis.memory.benchmark import INTRODUCTION
from themis.memory.clock import Clock
from themis.memory.definitions import Defined
from themis.memory.filler import Filler
from themis.memory.planning import plan_test
from themis.memory.scheduler import Scheduler
from themis.memory.script import Answer
from themis.memory.tape import ConversationLog

_START = datetime(2024, 1, 1, 9, tzinfo=UTC)
_NO_JUDGE = JudgeReply(failure="there is no judge in a rehearsal")


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
    outcomes: dict[str, Outcome] = {}
    log = ConversationLog()

    def reply(step: Step, message: str, presupplied: str | None) -> Answer:
        if step.turn <= deaf_until_turn:
            said: str = presupplied or ""
        else:
            if isinstance(agent, CalibrationAgent):
                agent.prepare(step.expected)
            answered = agent.reply(message, turn=step.turn, now=step.at.now, presupplied=presupplied)
            said = answered.text if isinstance(answered, Reply) else answered
        tokens = count(message) + count(said)
        made = step.reply(said, message=message, tokens=tokens, elapsed=Clock().pace, log=log)
        log.append(Line(step.turn, step.test_id, message, said, made.now, isinstance(step.action, Ask)))
        return made

    def answer(step: Step) -> Answer | datetime:
        match step.action:
            case Fill(number, tokens, presupplied):
                made = filler.make(number, tokens)
                return reply(step, made.text, made.reply if presupplied else None)
            case Say() | Ask() | Intro() | Forget() as action:
                return reply(step, action.text, None)
            case Jump(until):
                return until
            case Consult():
                return _NO_JUDGE
            case End(outcome):
                outcomes[outcome.test_id] = outcome
        return None

    steps, answered = scheduler.play(), None
    with contextlib.suppress(StopIteration):
        while True:
            answered = answer(steps.send(answered))
    return outcomes
