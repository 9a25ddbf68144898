"""One memory test played alone with an agent, through the real scheduler, without storage."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from themis.memory.actions import Consult, End, Exchange, Fill, Grade, JudgeReply, Jump
from themis.memory.agents.agent import Agent
from themis.memory.agents.calibration import CalibrationAgent
from themis.memory.examples import MEMORY_TESTS, DatasetInterface, TestExample, find_kinds
from themis.memory.lookahead import Planned
from themis.memory.scheduler import Scheduler
from themis.memory.tape import ConversationLog
from themis.memory.tests.histories import HistoryDataset

# Every kind that the package brings; all of them are held to what is tested here.
# Without those whose material is a file of the user's.
TESTS = sorted(
    name for name in find_kinds("themis.memory.tests") if not issubclass(MEMORY_TESTS.get(name), HistoryDataset)
)
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
    scheduler, log = Scheduler([planned], start=START), ConversationLog()
    steps, judged = scheduler.play(), 0
    answer: Any = None
    while True:
        step = steps.send(answer)
        answer = None
        match step.action:
            case action if isinstance(action, Exchange):
                message = f"Talk about number {action.number}." if isinstance(action, Fill) else action.text
                if isinstance(agent, CalibrationAgent):
                    agent.prepare(step.expected)
                reply = str(agent.reply(message, turn=step.turn, now=scheduler.now))
                tokens = action.tokens if isinstance(action, Fill) else len(message.split())
                elapsed = datetime.timedelta(seconds=5)
                answer = step.reply(reply, message=message, tokens=tokens, elapsed=elapsed, log=log)
            case Consult():
                judged += 1
                answer = JudgeReply(judge) if judge is not None else JudgeReply(failure=NO_JUDGE)
            case Jump(until):
                answer = until
            case End(outcome):
                return Played(outcome.grade, judged, outcome.tokens)


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
