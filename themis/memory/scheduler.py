"""Decides who speaks next: many tests, one conversation, virtual time.

The page to read to understand a memory run. The scheduler is a pure state machine: it yields steps, receives what came
of them, and touches neither clock nor disk nor network. Whoever drives it with the same answers gets the same steps,
which is all that resuming needs. A step costs O(log tests), whatever the length of the conversation; before a test
begins, `lookahead` plays what the running ones have still to say.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
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
    Step,
    Wait,
)
from themis.memory.lookahead import Course, Parked, Planned, Tempo, stay_within_spans
from themis.memory.script import Answer, ScriptDriver

# A filler that only serves to make the agent speak for a listening test.
_SMALL_FILLER_TOKENS = 120

T = TypeVar("T")
Steps = Generator[Step, Any, T]


class Scheduler:
    """Plays tests in one conversation.

    Args:
        tests: In the order in which they begin where nothing else decides.
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
        # How long the last exchange took, and by how many tokens those of tests were longer than estimated, together.
        self._exchange_time = timedelta(0)
        self._excess_tokens, self._exchanges = 0, 0
        self._fillers = 0
        self._introduction = introduction
        self._isolated = isolated
        self._max_message_tokens = max_message_tokens
        self._fresh = _Fresh(tests, conflicts or {})
        self._waiting: Parked[_Test] = Parked()
        self._listeners: dict[str, _Test] = {}

    def play(self) -> Steps[None]:
        """The whole conversation."""
        if self._introduction:
            yield from self._exchange(Intro(self._introduction), None)
        while (test := (yield from self._next())) is not None:
            yield from self._continue(test)

    def _next(self) -> Steps[_Test | None]:
        """Whose turn it is: one that is due, else a new one, else whoever time or filler frees first.

        A test that waits for nothing but time is not kept waiting by others that came due after it.
        """
        waiting = self._waiting
        while True:
            waiting.wake(self.tokens, self.now)
            if (test := waiting.pop()) is not None:
                return self._resume(test)
            if not waiting.due and (planned := self._fresh.pop(self._admits)) is not None:
                return (yield from self._begin(planned))
            if waiting.for_time:
                yield from self._pass_time(waiting.for_time[0][0])
            elif waiting.for_tokens:
                yield from self._fill(waiting.for_tokens[0][0] - self.tokens)
            elif self._listeners:
                yield from self._fill_for_listeners()
            else:
                return None

    def _admits(self, planned: Planned) -> bool:
        """Whether all running tests stay within their spans, and the new one too, if it begins now."""
        if not self.running:
            return True
        courses = [
            Course(test.planned, test.began.tokens, test.stretch, tokens, time) for test, tokens, time in self._waiting
        ]
        # Of a test that listens, only what is said after it is known.
        courses += [
            Course(test.planned, test.began.tokens, len(test.planned.stretches), self.tokens, self.now)
            for test in self._listeners.values()
        ]
        return stay_within_spans(planned, courses, self._tempo, tokens=self.tokens, now=self.now)

    @property
    def _tempo(self) -> Tempo:
        # Nobody is taken to be briefer than a perfect agent.
        excess = max(0.0, self._excess_tokens / self._exchanges) if self._exchanges else 0.0
        return Tempo(self._exchange_time, excess, self._max_message_tokens)

    def _resume(self, test: _Test) -> _Test:
        if test.waits:
            test.waits = False
            test.script.advance(self._here())
        return test

    def _begin(self, planned: Planned) -> Steps[_Test]:
        yield Step(Begin(), planned.test_id, self._here())
        test = _Test(planned, ScriptDriver(planned.play), self._here(), self._characters)
        self.running[planned.test_id] = test
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
        if (estimate := test.next_estimate()) is not None:
            self._exchanges += 1
            self._excess_tokens += self.tokens - before - estimate
        question, needle = isinstance(action, Ask), isinstance(action, Say) and action.needle
        said = Message(reply.turn, action.text, str(reply), question, needle, before, reply.now, needs)
        test.said.append(said)
        return reply

    def _wait(self, test: _Test, action: Wait) -> Steps[bool]:
        """Whether the test has to wait for others."""
        if action == Wait():
            return False
        time = self.now + (action.time or timedelta(0))
        if self._isolated:
            # Alone in its conversation a test waits for nobody; only the clock moves.
            yield from self._pass_time(time)
            return False
        test.begin_stretch()
        tokens = test.planned.find_wait_end(
            test.stretch, action, self._tempo, began=test.began.tokens, tokens=self.tokens
        )
        wait = action.in_tokens(test.planned.span_tokens)
        yield Step(wait, test.test_id, self._here(), until=Instant(time, tokens))
        test.waits = True
        self._waiting.add(test.test_id, test, tokens, time)
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
        self._exchange_time = reply.now - self.now
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
                self._waiting.add(test.test_id, test, self.tokens, self.now)

    def _pass_time(self, until: datetime) -> Steps[None]:
        if until > self.now:
            self.now = yield Step(Jump(until), None, self._here())

    def _fill(self, tokens: int) -> Steps[None]:
        # The expected reply is put into the agent's mouth unless a test listens: then it must really speak.
        # Several messages share the amount evenly, so that the last one is not too short for a question.
        messages, tokens = self._tempo.share_filler(tokens)
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
        self._waiting.add(test.test_id, test, self.tokens, self.now)

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
    # Which of the planned stretches it is in, and how many of its messages it has said.
    stretch: int = 0
    stretch_messages: int = 0
    listens_from_turn: int | None = None
    # Fillers that were sent only because it listens.
    idle_fillers: int = 0

    @property
    def test_id(self) -> str:
        return self.planned.test_id

    def begin_stretch(self) -> None:
        self.stretch, self.stretch_messages = self.stretch + 1, 0

    def next_estimate(self) -> int | None:
        """About how many tokens the next message and its reply have; None where the script was not seen that far."""
        stretches = self.planned.stretches
        if self.stretch >= len(stretches) or self.stretch_messages >= len(stretches[self.stretch].tokens):
            return None
        self.stretch_messages += 1
        return stretches[self.stretch].tokens[self.stretch_messages - 1]

    @property
    def patience(self) -> int:
        return self.script.action.patience if isinstance(self.script.action, Listen) else 0

    def distance(self, needs: Sequence[int] | None, tokens: int) -> int:
        """How many tokens ago the oldest message was said that a reply needs."""
        messages = self.said if needs is None else [self.said[index] for index in needs if index < len(self.said)]
        return max((tokens - said.tokens_before for said in messages), default=0)


class _Fresh:
    """Tests that have not begun, and which of them may: of those that disturb nobody running, the longest chain's first.

    A chain is what has still to run one after the other: the tests of a kind that disturbs itself, and those of the kinds
    that it disturbs.
    """

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
        # How many tokens the tests of each kind that have not begun take, one after the other.
        self._lengths = {kind: sum(test.weight for _, test in queue) for kind, queue in self._queues.items()}

    def pop(self, admits: Callable[[Planned], bool]) -> Planned | None:
        """The next test that may begin."""
        startable = [kind for kind, queue in self._queues.items() if queue and not self._hindrances[kind]]
        for kind in sorted(startable, key=lambda kind: (-self._chain(kind), self._queues[kind][-1][0])):
            test = self._queues[kind][-1][1]
            if admits(test):
                self._queues[kind].pop()
                self._lengths[kind] -= test.weight
                for other in self._disturbs[kind]:
                    self._hindrances[other] += 1
                return test
        return None

    def free(self, kind: str) -> None:
        for other in self._disturbs[kind]:
            self._hindrances[other] -= 1

    def _chain(self, kind: str) -> int:
        """Tokens of all that must run one after the other with the next test of a kind."""
        others = self._disturbs[kind]
        own = self._lengths[kind] if kind in others else self._queues[kind][-1][1].weight
        return own + sum(self._lengths[other] for other in others if other != kind)
