"""One memory test played alone with an agent, through the real scheduler, without storage."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from themis.memory.actions import Grade
from themis.memory.agents.agent import Agent
from themis.memory.agents.calibration import CalibrationAgent
from themis.memory.commands import End, Fill, Judge, Jump, Moved, Replied, Ruled, Send
from themis.memory.examples import MEMORY_TESTS, DatasetInterface, TestExample, find_kinds
from themis.memory.scheduler import Planned, Scheduler
from themis.memory.tape import ConversationLog

# Every kind that the package brings; all of them are held to what is tested here.
TESTS = sorted(find_kinds("themis.memory.tests"))
START = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
NO_JUDGE = "no judge; name one with --judge"


@dataclass
class Played:
    """The verdict, how often a judge was asked, and how many tokens (here: words) of conversation the test took."""

    grade: Grade
    judged: int
    tokens: int


def dataset(name: str, **arguments: Any) -> DatasetInterface:
    return MEMORY_TESTS.get(name)(**arguments)


def example(name: str, seed: int, **arguments: Any) -> TestExample:
    return dataset(name, seed=seed, **arguments).generate_examples(1)[0]


def play(test: TestExample, agent: Agent, *, judge: str | None = None, span_tokens: int = 1_000) -> Played:
    """The verdict on an agent; `judge` is what the judge always answers."""
    planned = Planned(test_id=test.test_id, kind="test", play=test.play, span_tokens=span_tokens)
    scheduler = Scheduler([planned], start=START, log=ConversationLog())
    steps, answer, judged = scheduler.play(), None, 0
    while True:
        command = steps.send(answer)
        match command:
            case Send() | Fill():
                message = command.text if isinstance(command, Send) else f"Talk about number {command.number}."
                if isinstance(agent, CalibrationAgent):
                    agent.prepare(command.hint)
                reply = str(agent.reply(message, turn=command.turn, now=scheduler.now))
                tokens = len(message.split()) if isinstance(command, Send) else command.tokens
                answer = Replied(message, reply, tokens, datetime.timedelta(seconds=5))
            case Judge():
                judged += 1
                answer = Ruled(judge) if judge is not None else Ruled("", NO_JUDGE)
            case Jump():
                answer = Moved(command.to)
            case End():
                return Played(command.outcome.grade, judged, command.outcome.tokens)
            case _:
                answer = None


class Reciter(Agent):
    """Answers everything with everything that it has ever heard."""

    name = "reciter"

    def __init__(self) -> None:
        self.heard: list[str] = []

    def reply(self, message: str, *, turn: int, now: datetime.datetime, presupplied: str | None = None) -> str:
        self.heard.append(message)
        return "\n".join(self.heard)

    def reset(self) -> None:
        self.heard.clear()


class Repeater(Agent):
    """Answers everything with one text."""

    name = "repeater"

    def __init__(self, text: str) -> None:
        self.text = text

    def reply(self, message: str, *, turn: int, now: datetime.datetime, presupplied: str | None = None) -> str:
        return self.text

    def reset(self) -> None:
        """It remembers nothing."""
