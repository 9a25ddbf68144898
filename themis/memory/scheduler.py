"""Decides who speaks next: many tests, one conversation, virtual time.

The page to read to understand a memory run. The scheduler is a pure state machine: it yields steps, receives what came
of them, and touches neither clock nor disk nor network. Whoever drives it with the same answers gets the same steps,
which is all that resuming needs. A step costs O(log tests), whatever the length of the conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any, TypeVar

from themis.memory.actions import (
    AgentReply,
    Ask,
    Begin,
    Consult,
    End,
    Exchange,
    Expected,
    ExpectedContent,
    Fill,
    Forget,
    Instant,
    Intro,
    Jump,
    Listen,
    Message,
    Outcome,
    Say,
    Script,
    Step,
    Wait,
)
from themis.memory.script import Answer, ScriptDriver

# A filler that only serves to make the agent speak for a listening test.
_SMALL_FILLER_TOKENS = 120
# Of a span: what the running tests may say and hear themselves. With more they would push each other out of their spans.
_ROOM_SHARE = 0.3

T = TypeVar("T")
Steps = Generator[Step, Any, T]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A test as the scheduler sees it: who it is, what kind, and how to start its script."""

    test_id: str
    kind: str
    play: Callable[[], Script]
    span_tokens: int
    # About how many tokens its own messages and their replies have.
    own_tokens: int = 0
    reset_message: str = ""


class Scheduler:
    """Plays tests in one conversation.

    Args:
        tests: In the order in which they are to begin.
        start: Virtual time at which the conversation begins.
        conflicts: For a kind of test, the kinds that may not run beside it.
        introduction: The first message, if there is one.
        isolated: The test is alone in its conversation: waits take no filler.
        max_message_tokens: Most tokens of one filler.
    """

    def __init__(
        self,
        tests: Sequence[Planned],
        *,
        start: datetime,
        conflicts: Mapping[str, Iterable[str]] | None = None,
        introduction: str | None = None,
        isolated: bool = False,
        max_message_tokens: int = 4_096,
    ) -> None:
        self.now = start
        self.tokens = 0
        self.turn = 0
        self.running: dict[str, _Test] = {}
        self._characters = 0
        # Of the running tests: their own tokens together, and how many have which span.
        self._load_tokens = 0
        self._spans: Counter[int] = Counter()
        self._fillers = 0
        self._introduction = introduction
        self._isolated = isolated
        self._max_message_tokens = max_message_tokens
        self._fresh = _Fresh(tests, conflicts or {})
        self._waiting = _Waiting()
        self._listeners: dict[str, _Test] = {}

    def play(self) -> Steps[None]:
        """The whole conversation."""
        if self._introduction:
            yield from self._exchange(Intro(self._introduction), None)
        while (test := (yield from self._next())) is not None:
            yield from self._continue(test)

    def _next(self) -> Steps[_Test | None]:
        """Whose turn it is: one that is due, else a new one, else whoever time or filler frees first."""
        waiting = self._waiting
        while True:
            waiting.wake(self.tokens, self.now)
            if waiting.due:
                return self._resume(heappop(waiting.due)[-1])
            if (planned := self._fresh.pop(self._has_room)) is not None:
                return (yield from self._begin(planned))
            if waiting.for_time:
                yield from self._pass_time(waiting.for_time[0][0])
            elif waiting.for_tokens:
                yield from self._fill(waiting.for_tokens[0][0] - self.tokens)
            elif self._listeners:
                yield from self._fill_for_listeners()
            else:
                return None

    def _has_room(self, planned: Planned) -> bool:
        """Whether a new test leaves the running ones within their spans, and would itself be."""
        if not self.running:
            return True
        shortest = min(planned.span_tokens, *self._spans)
        return self._load_tokens + planned.own_tokens <= _ROOM_SHARE * shortest

    def _resume(self, test: _Test) -> _Test:
        if test.waits:
            test.waits = False
            test.script.advance(self._here())
        return test

    def _begin(self, planned: Planned) -> Steps[_Test]:
        yield Step(Begin(), planned.test_id, self._here())
        test = _Test(planned, ScriptDriver(planned.play), self._here(), self._characters)
        self.running[planned.test_id] = test
        self._load_tokens += planned.own_tokens
        self._spans[planned.span_tokens] += 1
        test.script.advance()
        return test

    def _continue(self, test: _Test) -> Steps[None]:
        """Runs a test until it waits, listens or ends."""
        while (action := test.script.action) is not None:
            answer: Answer = None
            match action:
                case Say() | Ask():
                    answer = yield from self._speak(test, action)
                case Consult():
                    answer = yield Step(action, test.test_id, self._here())
                case Wait():
                    if (yield from self._wait(test, action)):
                        return
                    answer = self._here()
                case Listen():
                    yield from self._listen(test, action)
                    return
            test.script.advance(answer)
        yield from self._finish(test)

    # --- what a test may do -------------------------------------------------------------------------------------------

    def _speak(self, test: _Test, action: Say | Ask) -> Steps[AgentReply]:
        expected, needs = Expected(), None
        if isinstance(action, Ask):
            needs = None if action.needs is None else tuple(action.needs)
            expected = Expected(action.ideal, test.distance(needs, self.tokens))
        before = self.tokens
        reply = yield from self._exchange(action, test.test_id, expected)
        question, needle = isinstance(action, Ask), isinstance(action, Say) and action.needle
        said = Message(reply.turn, action.text, str(reply), question, needle, before, reply.now, needs)
        test.said.append(said)
        return reply

    def _wait(self, test: _Test, action: Wait) -> Steps[bool]:
        """Whether the test has to wait for others."""
        if action == Wait():
            return False
        wait = action.in_tokens(test.planned.span_tokens)
        time = self.now + (wait.time or timedelta(0))
        tokens = max(self.tokens + wait.tokens, test.began.tokens + wait.until_tokens)
        if self._isolated:
            # Alone in its conversation a test waits for nobody; only the clock moves.
            yield from self._pass_time(time)
            return False
        yield Step(wait, test.test_id, self._here(), until=Instant(time, tokens))
        test.waits = True
        self._waiting.add(test, tokens, time)
        return True

    def _listen(self, test: _Test, action: Listen) -> Steps[None]:
        if test.listens_from_turn is None:
            test.listens_from_turn = self.turn
            yield Step(action, test.test_id, self._here())
        self._listeners[test.test_id] = test

    def _finish(self, test: _Test) -> Steps[None]:
        ended, characters = self._here(), self._characters - test.characters
        if test.planned.reset_message:
            yield from self._exchange(Forget(test.planned.reset_message), test.test_id)
        del self.running[test.test_id]
        self._load_tokens -= test.planned.own_tokens
        self._spans[test.planned.span_tokens] -= 1
        self._spans += Counter()  # drops what has come to zero
        self._fresh.free(test.planned.kind)
        outcome = Outcome(
            test_id=test.test_id,
            grade=test.script.grade,
            began=test.began,
            ended=ended,
            characters=characters,
            said=tuple(test.said),
            span_tokens=test.planned.span_tokens,
            listened_from_turn=test.listens_from_turn,
        )
        yield Step(End(outcome), test.test_id, self._here())

    # --- what the world does ------------------------------------------------------------------------------------------

    def _here(self) -> Instant:
        return Instant(self.now, self.tokens)

    def _exchange(self, action: Exchange, test_id: str | None, expected: Expected | None = None) -> Steps[AgentReply]:
        """One message and its reply; every listening test hears it."""
        expected = self._expect_for_listeners(expected or Expected())
        reply: AgentReply = yield Step(action, test_id, self._here(), turn=self.turn + 1, expected=expected)
        self.turn, self.tokens, self.now = reply.turn, reply.tokens, reply.now
        self._characters += len(reply.message) + len(reply)
        if self._listeners:
            self._notify_listeners(reply)
        return reply

    def _notify_listeners(self, reply: AgentReply) -> None:
        """A listener that listens on stays one; one that wants anything else waits for its turn to do it."""
        for test in list(self._listeners.values()):
            if not isinstance(test.script.advance(reply), Listen):
                del self._listeners[test.test_id]
                self._waiting.add(test, self.tokens, self.now)

    def _pass_time(self, until: datetime) -> Steps[None]:
        if until > self.now:
            self.now = yield Step(Jump(until), None, self._here())

    def _fill(self, tokens: int) -> Steps[None]:
        # The expected reply is put into the agent's mouth unless a test listens: then it must really speak.
        # Several messages share the amount evenly, so that the last one is not too short for a question.
        messages = -(-tokens // self._max_message_tokens)
        filler = Fill(self._fillers, -(-tokens // messages), presupplied=not self._listeners)
        self._fillers += 1
        yield from self._exchange(filler, None)

    def _fill_for_listeners(self) -> Steps[None]:
        """Nothing goes on any more: make the agent speak for those who still listen, then tell them that it is over."""
        patient = [test for test in self._listeners.values() if test.idle_fillers < test.patience]
        if patient:
            for test in patient:
                test.idle_fillers += 1
            yield from self._fill(_SMALL_FILLER_TOKENS)
            return
        test = self._listeners.pop(min(self._listeners))
        test.script.advance(None)
        self._waiting.add(test, self.tokens, self.now)

    def _expect_for_listeners(self, expected: Expected) -> Expected:
        """What is expected of the reply, with what listening tests expect to find in it."""
        extras = tuple(
            ExpectedContent(listen.ideal, test.distance(listen.needs, self.tokens))
            for test in self._listeners.values()
            if isinstance(listen := test.script.action, Listen) and listen.ideal is not None
        )
        return Expected(expected.answer, expected.distance_tokens, extras) if extras else expected


@dataclass(eq=False, slots=True)
class _Test:
    """A running test: its script, and what it has said so far."""

    planned: Planned
    script: ScriptDriver
    began: Instant
    characters: int
    said: list[Message] = field(default_factory=list)
    waits: bool = False
    listens_from_turn: int | None = None
    # Fillers that were sent only because it listens.
    idle_fillers: int = 0

    @property
    def test_id(self) -> str:
        return self.planned.test_id

    @property
    def patience(self) -> int:
        return self.script.action.patience if isinstance(self.script.action, Listen) else 0

    def distance(self, needs: Sequence[int] | None, tokens: int) -> int:
        """How many tokens ago the oldest message was said that a reply needs."""
        messages = self.said if needs is None else [self.said[index] for index in needs if index < len(self.said)]
        return max((tokens - said.tokens_before for said in messages), default=0)


class _Waiting:
    """Parked tests, each until both its targets are reached."""

    def __init__(self) -> None:
        # (tokens, time, id, test), those whose turn it is.
        self.due: list[tuple[int, datetime, str, _Test]] = []
        # Those whose tokens are not reached yet, and those that wait for nothing but the time.
        self.for_tokens: list[tuple[int, datetime, str, _Test]] = []
        self.for_time: list[tuple[datetime, int, str, _Test]] = []

    def add(self, test: _Test, tokens: int, time: datetime) -> None:
        heappush(self.for_tokens, (tokens, time, test.test_id, test))

    def wake(self, tokens: int, now: datetime) -> None:
        while self.for_tokens and self.for_tokens[0][0] <= tokens:
            target, time, test_id, test = heappop(self.for_tokens)
            heappush(self.for_time, (time, target, test_id, test))
        while self.for_time and self.for_time[0][0] <= now:
            time, target, test_id, test = heappop(self.for_time)
            heappush(self.due, (target, time, test_id, test))


class _Fresh:
    """Tests that have not begun, and which of them may: the first, in the given order, that disturbs nobody running."""

    def __init__(self, tests: Sequence[Planned], conflicts: Mapping[str, Iterable[str]]) -> None:
        self._queues: dict[str, list[tuple[int, Planned]]] = {}
        for order, test in reversed(list(enumerate(tests))):
            self._queues.setdefault(test.kind, []).append((order, test))
        disturbs: dict[str, set[str]] = {kind: set() for kind in self._queues}
        for kind, others in conflicts.items():
            for other in others:
                if kind in disturbs and other in disturbs:
                    disturbs[kind].add(other)
                    disturbs[other].add(kind)
        self._disturbs = {kind: sorted(others) for kind, others in disturbs.items()}
        # How many running tests each kind would disturb.
        self._hindrances = dict.fromkeys(self._queues, 0)
        self._startable: list[tuple[int, str]] = []
        for kind in self._queues:
            self._offer(kind)

    def pop(self, has_room: Callable[[Planned], bool]) -> Planned | None:
        """The next test that may begin. One for which there is no room yet is waited for: a later one does not overtake it."""
        while self._startable:
            order, kind = self._startable[0]
            queue = self._queues[kind]
            if self._hindrances[kind] or not queue or queue[-1][0] != order:
                heappop(self._startable)  # an offer that no longer holds
                continue
            if not has_room(queue[-1][1]):
                return None
            heappop(self._startable)
            _, test = queue.pop()
            for other in self._disturbs[kind]:
                self._hindrances[other] += 1
            self._offer(kind)
            return test
        return None

    def free(self, kind: str) -> None:
        for other in self._disturbs[kind]:
            self._hindrances[other] -= 1
            self._offer(other)

    def _offer(self, kind: str) -> None:
        if not self._hindrances[kind] and self._queues[kind]:
            heappush(self._startable, (self._queues[kind][-1][0], kind))
