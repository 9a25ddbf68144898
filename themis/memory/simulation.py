"""A conversation that is played through without a store, a judge or a price: a subclass says what is replied."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime

from themis.memory.actions import AgentReply, Ask, Consult, Fill, Forget, Intro, JudgeReply, Jump, Line, Say, Step
from themis.memory.clock import Clock
from themis.memory.filler import Filler
from themis.memory.scheduler import Scheduler
from themis.memory.script import Answer
from themis.memory.tape import ConversationLog

NO_JUDGE = JudgeReply(failure="there is no judge in a plan or a rehearsal")


class Simulation:
    """Drives a scheduler to the end of its conversation.

    Args:
        scheduler: Puts the tests in one order.
        filler: What is sent between messages of tests.
        count: Counts the tokens of a text.
    """

    def __init__(self, scheduler: Scheduler, filler: Filler, count: Callable[[str], int]) -> None:
        self.scheduler = scheduler
        self._filler = filler
        self._count = count
        self._log = ConversationLog()

    def say(self, step: Step, message: str, filler_reply: str | None) -> str:
        """The reply to a message.

        Args:
            step: The exchange.
            message: What is said to the agent.
            filler_reply: Of filler, the reply that is expected to it.
        """
        raise NotImplementedError

    def on_exchange(self, step: Step, sent_tokens: int, said_tokens: int) -> None:
        """An exchange has taken place, of so many tokens."""

    def on_event(self, step: Step) -> None:
        """A test began, ended, waits, listens or asks the judge."""

    def play(self) -> None:
        """The whole conversation."""
        steps = self.scheduler.play()
        answer: Answer | datetime = None
        with contextlib.suppress(StopIteration):
            while True:
                answer = self._answer(steps.send(answer))

    def _answer(self, step: Step) -> Answer | datetime:
        match step.action:
            case Fill(number, tokens):
                made = self._filler.make(number, tokens)
                return self._exchange(step, made.text, made.reply)
            case Say() | Ask() | Intro() | Forget() as action:
                return self._exchange(step, action.text, None)
            case Jump(until):
                return until
        self.on_event(step)
        return NO_JUDGE if isinstance(step.action, Consult) else None

    def _exchange(self, step: Step, message: str, filler_reply: str | None) -> AgentReply:
        reply = self.say(step, message, filler_reply)
        sent, said = self._count(message), self._count(reply)
        made = step.reply(reply, message=message, tokens=sent + said, elapsed=Clock().pace, log=self._log)
        self._log.append(Line(step.turn, step.test_id, message, reply, made.now, isinstance(step.action, Ask)))
        self.on_exchange(step, sent, said)
        return made
