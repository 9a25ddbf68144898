"""Plays a schedule without an agent, to see beforehand how long a run is, what it may cost, and who speaks when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from themis.core.tokens import tokenizer
from themis.memory.actions import (
    AgentReply,
    Ask,
    Begin,
    Consult,
    End,
    Fill,
    Instant,
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
from themis.memory.lookahead import Planned, Stretch
from themis.memory.scheduler import Scheduler
from themis.memory.script import Answer, ScriptDriver
from themis.memory.simulation import NO_JUDGE, Simulation
from themis.memory.tape import ConversationLog
from themis.runs.prices import Price

_NOMINAL_REPLY = "Understood."
_START = datetime(2024, 1, 1, tzinfo=UTC)
# A script that says more than this is only estimated as far.
_MOST_MESSAGES = 1_000
# A chart of more rows has its scale above it too.
_SCREEN_ROWS = 30


@dataclass
class Bar:
    """One test's place in the conversation, in tokens."""

    test_id: str
    began: int
    ended: int = 0
    messages: list[int] = field(default_factory=list)
    # Took longer than its span.
    overran: bool = False


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
    # Filler that was said while fewer than two tests were running.
    idle_filler_tokens: int = 0
    consultations: int = 0
    most_at_once: int = 0

    @property
    def filler_share(self) -> float:
        """The part of the conversation that is filler."""
        return self.filler_tokens / max(1, self.tokens)

    @property
    def idle_filler_share(self) -> float:
        """The part of the conversation that is filler for the sake of at most one test."""
        return self.idle_filler_tokens / max(1, self.tokens)

    def count_running(self, tokens: int) -> int:
        """How many tests are running at a place in the conversation."""
        return sum(bar.began <= tokens <= bar.ended for bar in self.bars)

    def dollars(self, price: Price) -> float:
        return price.of(self.prompt_tokens, self.completion_tokens)

    def minutes(self, seconds_per_reply: float) -> float:
        return self.replies_to_generate * seconds_per_reply / 60


def make_plan(
    defined: Sequence[Defined],
    conflicts: Mapping[str, Iterable[str]],
    filler: Filler,
    *,
    isolated: bool = False,
    max_message_tokens: int = 4_096,
    max_prompt_tokens: int | None = None,
    tokenizer_name: str = "cl100k_base",
) -> Plan:
    """What a run will be like.

    Args:
        defined: The tests.
        conflicts: For a kind of test, the kinds that may not run beside it.
        filler: What is sent between messages of tests.
        isolated: Every test has a conversation of its own; they are counted one after the other.
        max_message_tokens: Most tokens of one filler.
        max_prompt_tokens: The agent's window: the most that it sends with each message.
        tokenizer_name: How tokens are counted.
    """
    count = tokenizer(tokenizer_name)
    plan = Plan(bars=[])
    for tests in [[one] for one in defined] if isolated else [defined]:
        scheduler = Scheduler(
            [plan_test(one.example, one.kind, count) for one in tests],
            start=_START,
            conflicts=conflicts,
            introduction=None if isolated else INTRODUCTION,
            isolated=isolated,
            max_message_tokens=max_message_tokens,
        )
        _Planning(plan, scheduler, filler, count, max_prompt_tokens).play()
    return plan


def plan_test(example: TestExample, kind: str, count: Callable[[str], int]) -> Planned:
    """A test for the scheduler."""
    reset = example.dataset.reset_message
    return Planned(
        test_id=example.test_id,
        kind=kind,
        play=example.play,
        span_tokens=example.dataset.memory_span,
        stretches=_estimate_stretches(example, count),
        reset_message=reset,
        reset_tokens=count(reset) + count(_NOMINAL_REPLY) if reset else 0,
    )


def _estimate_stretches(example: TestExample, count: Callable[[str], int]) -> list[Stretch]:
    """What a test says between its waits, in tokens."""
    stretches: list[tuple[Wait, list[int]]] = [(Wait(), [])]
    for action, tokens in play_alone(example, count):
        if isinstance(action, Wait):
            stretches.append((action, []))
        else:
            stretches[-1][1].append(tokens)
    return [Stretch(wait, tuple(tokens)) for wait, tokens in stretches]


def play_alone(example: TestExample, count: Callable[[str], int]) -> Iterator[tuple[Say | Ask | Wait, int]]:
    """What a test says, asks and waits for if a perfect agent answers, with the tokens of each exchange.

    It ends where the test starts to listen, for what it hears then is others' talk.

    Args:
        example: The test.
        count: Counts the tokens of a text.
    """
    script, log = ScriptDriver(example.play), ConversationLog()
    total, now = 0, _START
    action = script.advance()
    while action is not None and not isinstance(action, Listen) and len(log) < _MOST_MESSAGES:
        answer: Answer = None
        match action:
            case Say() | Ask():
                reply = (action.ideal if isinstance(action, Ask) else None) or _NOMINAL_REPLY
                tokens = count(action.text) + count(reply)
                turn, total, now = len(log) + 1, total + tokens, now + Clock().pace
                log.append(Line(turn, example.test_id, action.text, reply, now, isinstance(action, Ask)))
                answer = AgentReply(
                    reply, turn=turn, now=now, tokens=total, message=action.text, test_id=example.test_id, log=log
                )
                yield action, tokens
            case Wait():
                now += action.time or timedelta(0)
                answer = Instant(now, total)
                if action != Wait():
                    yield action, 0
            case Consult():
                answer = NO_JUDGE
        action = script.advance(answer)
    script.close()


class _Planning(Simulation):
    """Replies as a perfect agent would, and adds the conversation to a plan."""

    def __init__(
        self, plan: Plan, scheduler: Scheduler, filler: Filler, count: Callable[[str], int], window: int | None
    ) -> None:
        super().__init__(scheduler, filler, count)
        self._plan = plan
        self._window = window
        self._bars: dict[str, Bar] = {}
        # Tokens of the conversations before this one.
        self._offset = plan.tokens

    def play(self) -> None:
        super().play()
        self._plan.bars += self._bars.values()
        self._plan.tokens += self.scheduler.tokens
        self._plan.virtual_time += self.scheduler.now - _START

    def say(self, step: Step, message: str, filler_reply: str | None) -> str:
        return filler_reply or step.expected.answer or _NOMINAL_REPLY

    def on_exchange(self, step: Step, sent_tokens: int, said_tokens: int) -> None:
        plan = self._plan
        plan.exchanges += 1
        if isinstance(step.action, Fill):
            plan.filler_tokens += sent_tokens + said_tokens
            plan.idle_filler_tokens += sent_tokens + said_tokens if len(self.scheduler.running) < 2 else 0
        if not (isinstance(step.action, Fill) and step.action.presupplied):
            plan.replies_to_generate += 1
            prompt = step.at.tokens + sent_tokens
            plan.prompt_tokens += prompt if self._window is None else min(prompt, self._window)
            plan.completion_tokens += said_tokens
        if step.test_id is not None:
            self._bars[step.test_id].messages.append(self._offset + step.at.tokens)

    def on_event(self, step: Step) -> None:
        plan = self._plan
        match step.action:
            case Consult():
                plan.consultations += 1
            case Begin():
                assert step.test_id is not None
                self._bars[step.test_id] = Bar(step.test_id, self._offset + step.at.tokens)
                plan.most_at_once = max(plan.most_at_once, len(self.scheduler.running) + 1)
            case End(outcome):
                bar = self._bars[outcome.test_id]
                bar.ended, bar.overran = self._offset + outcome.ended.tokens, outcome.overran


def draw(plan: Plan, width: int = 72) -> str:
    """The Gantt chart as text: a row a test, its messages as blocks, its waits as lines; below it, how many run at once."""
    longest = max((len(bar.test_id) for bar in plan.bars), default=0)
    longest = max(longest, len("running"))
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
    counts = [plan.count_running((2 * place + 1) * total // (2 * width)) for place in range(width)]
    running = "".join(str(count) if count < 10 else "+" for count in counts)
    scale = f"{'tokens':<{longest}} 0{f'{plan.tokens:,}':>{width - 1}}"
    above = [scale] if len(rows) > _SCREEN_ROWS else []
    return "\n".join([*above, *rows, f"{'running':<{longest}} {running}", scale])
