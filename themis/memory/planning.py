"""Plays a schedule without an agent, to see beforehand how long a run is, what it may cost, and who speaks when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from themis.core.tokens import tokenizer
from themis.memory.actions import (
    AgentReply,
    Ask,
    Begin,
    Consult,
    End,
    Fill,
    Forget,
    Instant,
    Intro,
    JudgeReply,
    Jump,
    Line,
    Listen,
    Say,
    Step,
    Wait,
)
from themis.memory.benchmark import INTRODUCTION
from themis.memory.clock import Clock
from themis.memory.definitions import Defined
from themis.memory.examples import TestExample
from themis.memory.filler import Filler
from themis.memory.scheduler import Planned, Scheduler
from themis.memory.script import Answer, ScriptDriver
from themis.memory.tape import ConversationLog
from themis.runs.prices import Price

_NOMINAL_REPLY = "Understood."
_START = datetime(2024, 1, 1, tzinfo=UTC)
# A script that says more than this is only estimated as far.
_MOST_MESSAGES = 1_000
_NO_JUDGE = JudgeReply(failure="there is no judge in a plan")


@dataclass
class Bar:
    """One test's place in the conversation, in tokens."""

    test_id: str
    began: int
    ended: int = 0
    messages: list[int] = field(default_factory=list)


@dataclass
class Plan:
    """What a run will be like, if every reply is as long as an ideal one."""

    bars: list[Bar]
    tokens: int = 0
    virtual_time: timedelta = timedelta(0)
    exchanges: int = 0
    replies_to_generate: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    filler_tokens: int = 0
    consultations: int = 0
    most_at_once: int = 0

    def dollars(self, price: Price) -> float:
        return price.of(self.prompt_tokens, self.completion_tokens)

    def minutes(self, seconds_per_reply: float) -> float:
        return self.replies_to_generate * seconds_per_reply / 60


def make_plan(
    defined: Sequence[Defined],
    conflicts: Mapping[str, Any],
    filler: Filler,
    *,
    isolated: bool = False,
    max_message_tokens: int = 4_096,
    max_prompt_tokens: int | None = None,
    tokenizer_name: str = "cl100k_base",
) -> Plan:
    """The schedule of a run. An agent with a window sends at most so many tokens with each message."""
    if not isolated:
        return _Simulation(
            defined, conflicts, filler, False, max_message_tokens, max_prompt_tokens, tokenizer_name
        ).play()
    plans = [
        _Simulation([one], conflicts, filler, True, max_message_tokens, max_prompt_tokens, tokenizer_name).play()
        for one in defined
    ]
    whole = Plan(bars=[])
    for plan in plans:
        # One after the other, as if it were one conversation.
        whole.bars += [
            Bar(
                bar.test_id,
                bar.began + whole.tokens,
                bar.ended + whole.tokens,
                [m + whole.tokens for m in bar.messages],
            )
            for bar in plan.bars
        ]
        for name in ("tokens", "exchanges", "replies_to_generate", "prompt_tokens", "completion_tokens"):
            setattr(whole, name, getattr(whole, name) + getattr(plan, name))
        whole.filler_tokens += plan.filler_tokens
        whole.consultations += plan.consultations
        whole.virtual_time += plan.virtual_time
        whole.most_at_once = max(whole.most_at_once, plan.most_at_once)
    return whole


def plan_test(example: TestExample, kind: str, count: Callable[[str], int]) -> Planned:
    """A test for the scheduler."""
    return Planned(
        test_id=example.test_id,
        kind=kind,
        play=example.play,
        span_tokens=example.dataset.memory_span,
        own_tokens=_own_tokens(example, count),
        reset_message=example.dataset.reset_message,
    )


def _own_tokens(example: TestExample, count: Callable[[str], int]) -> int:
    """The tokens of a test's messages and their replies, if a perfect agent gave them; up to where it starts to listen."""
    script, log = ScriptDriver(example.play), ConversationLog()
    tokens, now = 0, _START
    action = script.advance()
    while action is not None and not isinstance(action, Listen) and len(log) < _MOST_MESSAGES:
        answer: Answer = None
        match action:
            case Say() | Ask():
                reply = (action.ideal if isinstance(action, Ask) else None) or _NOMINAL_REPLY
                turn, tokens, now = len(log) + 1, tokens + count(action.text) + count(reply), now + Clock().pace
                log.append(Line(turn, example.test_id, action.text, reply, now, isinstance(action, Ask)))
                answer = AgentReply(
                    reply, turn=turn, now=now, tokens=tokens, message=action.text, test_id=example.test_id, log=log
                )
            case Wait():
                now += action.time or timedelta(0)
                answer = Instant(now, tokens)
            case Consult():
                answer = _NO_JUDGE
        action = script.advance(answer)
    script.close()
    return tokens + count(example.dataset.reset_message)


class _Simulation:
    """Drives the scheduler with replies that a perfect agent would give."""

    def __init__(
        self,
        defined: Sequence[Defined],
        conflicts: Mapping[str, Any],
        filler: Filler,
        isolated: bool,
        max_message_tokens: int,
        max_prompt_tokens: int | None,
        tokenizer_name: str,
    ) -> None:
        self._count = tokenizer(tokenizer_name)
        self._filler = filler
        self._window = max_prompt_tokens
        self._log = ConversationLog()
        self._plan = Plan(bars=[])
        self._bars: dict[str, Bar] = {}
        self._scheduler = Scheduler(
            [plan_test(one.example, one.kind, self._count) for one in defined],
            start=_START,
            conflicts=conflicts,
            introduction=None if isolated else INTRODUCTION,
            isolated=isolated,
            max_message_tokens=max_message_tokens,
        )

    def play(self) -> Plan:
        steps = self._scheduler.play()
        answer: object = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                break
            answer = self._answer(step)
        plan = self._plan
        plan.bars = list(self._bars.values())
        plan.tokens, plan.virtual_time = self._scheduler.tokens, self._scheduler.now - _START
        return plan

    def _answer(self, step: Step) -> Answer | datetime:
        plan = self._plan
        match step.action:
            case Fill(number, tokens, presupplied):
                made = self._filler.make(number, tokens)
                reply = self._reply(step, made.text, made.reply, generated=not presupplied)
                plan.filler_tokens += reply.tokens - step.at.tokens
                return reply
            case Say() | Ask() | Intro() | Forget() as action:
                return self._reply(step, action.text, step.expected.answer or _NOMINAL_REPLY, generated=True)
            case Jump(until):
                return until
            case Consult():
                plan.consultations += 1
                return _NO_JUDGE
            case Begin():
                assert step.test_id is not None
                self._bars[step.test_id] = Bar(step.test_id, step.at.tokens)
                plan.most_at_once = max(plan.most_at_once, len(self._scheduler.running) + 1)
            case End(outcome):
                self._bars[outcome.test_id].ended = outcome.ended.tokens
        return None

    def _reply(self, step: Step, message: str, reply: str, *, generated: bool) -> AgentReply:
        plan = self._plan
        sent, said = self._count(message), self._count(reply)
        plan.exchanges += 1
        if generated:
            plan.replies_to_generate += 1
            prompt = step.at.tokens + sent
            plan.prompt_tokens += prompt if self._window is None else min(prompt, self._window)
            plan.completion_tokens += said
        if step.test_id is not None:
            self._bars[step.test_id].messages.append(step.at.tokens)
        made = step.reply(reply, message=message, tokens=sent + said, elapsed=Clock().pace, log=self._log)
        self._log.append(Line(step.turn, step.test_id, message, reply, made.now, isinstance(step.action, Ask)))
        return made


def draw(plan: Plan, width: int = 72) -> str:
    """The Gantt chart as text: a row a test, its messages as blocks, its waits as lines."""
    longest = max((len(bar.test_id) for bar in plan.bars), default=0)
    total = max(1, plan.tokens)

    def column(tokens: int) -> int:
        return min(width - 1, tokens * width // total)

    rows = []
    for bar in plan.bars:
        cells = [" "] * width
        for place in range(column(bar.began), column(bar.ended) + 1):
            cells[place] = "─"
        for message in bar.messages:
            cells[column(message)] = "█"
        rows.append(f"{bar.test_id:<{longest}} {''.join(cells).rstrip()}")
    scale = f"{'tokens':<{longest}} 0{f'{plan.tokens:,}':>{width - 1}}"
    return "\n".join([*rows, scale])
