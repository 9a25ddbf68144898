"""Decides who speaks next: many tests, one conversation, virtual time.

The page to read to understand a memory run. The scheduler is a pure state machine: it yields commands, receives what came
of them, and touches neither clock nor disk nor network. Whoever drives it with the same answers gets the same commands,
which is all that resuming needs. A step costs O(log tests), whatever the length of the conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any

from themis.memory.actions import (
    Action,
    Ask,
    Consult,
    Grade,
    Heard,
    Listen,
    Log,
    Moment,
    Ruling,
    Say,
    Script,
    Wait,
)
from themis.memory.commands import (
    Attend,
    Begin,
    Command,
    End,
    Extra,
    Fill,
    Hint,
    Judge,
    Jump,
    Moved,
    Outcome,
    Pause,
    Replied,
    Ruled,
    Said,
    Send,
)

__all__ = ["Planned", "Scheduler", "understand"]

# A filler that only serves to make the agent speak for a listening test.
_SMALL_FILLER_TOKENS = 120
# Of a span: what the running tests may say and hear themselves. With more they would push each other out of their spans.
_ROOM_SHARE = 0.3
_PARKED = object()

Steps = Generator[Command, Any, Any]


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
    """Plays tests in one conversation. `conflicts` maps a kind to the kinds that may not run beside it."""

    def __init__(
        self,
        tests: Sequence[Planned],
        *,
        start: datetime,
        conflicts: Mapping[str, Iterable[str]] | None = None,
        introduction: str | None = None,
        isolated: bool = False,
        max_message_tokens: int = 4_096,
        log: Log,
    ) -> None:
        self.now = start
        self.tokens = 0
        self.turn = 0
        self.running: dict[str, _Test] = {}
        self.ended = 0
        self.total = len(tests)
        self._characters = 0
        # Of the running tests: their own tokens together, and how many have which span.
        self._load_tokens = 0
        self._spans: Counter[int] = Counter()
        self._fillers = 0
        self._introduction = introduction
        self._isolated = isolated
        self._max_message_tokens = max_message_tokens
        self._log = log
        self._fresh = _Fresh(tests, conflicts or {})
        self._waiting = _Waiting()
        self._listeners: dict[str, _Test] = {}

    def play(self) -> Steps:
        """The whole conversation."""
        if self._introduction:
            yield from self._exchange(Send("intro", None, self._introduction, self.turn + 1))
        while (test := (yield from self._next())) is not None:
            yield from self._continue(test)

    def _next(self) -> Generator[Command, Any, _Test | None]:
        """Whose turn it is: one that is due, else a new one, else whoever time or filler frees first."""
        waiting = self._waiting
        while True:
            waiting.wake(self.tokens, self.now)
            if waiting.due:
                return self._resumed(heappop(waiting.due)[-1])
            if (planned := self._fresh.pop(self._has_room)) is not None:
                return (yield from self._begin(planned))
            if waiting.for_time:
                yield from self._pass_time(waiting.for_time[0][0])
            elif waiting.for_tokens:
                yield from self._fill(waiting.for_tokens[0][0] - self.tokens)
            elif self._listeners:
                yield from self._entertain()
            else:
                return None

    def _has_room(self, planned: Planned) -> bool:
        """Whether a new test leaves the running ones within their spans, and would itself be."""
        if not self.running:
            return True
        shortest = min(planned.span_tokens, *self._spans)
        return self._load_tokens + planned.own_tokens <= _ROOM_SHARE * shortest

    def _resumed(self, test: _Test) -> _Test:
        if test.waits:
            test.waits = False
            test.step(Moment(self.now, self.tokens))
        return test

    def _begin(self, planned: Planned) -> Generator[Command, Any, _Test]:
        yield Begin(planned.test_id, self.tokens)
        test = _Test(planned, Moment(self.now, self.tokens), self._characters)
        self.running[planned.test_id] = test
        self._load_tokens += planned.own_tokens
        self._spans[planned.span_tokens] += 1
        test.step(None)
        return test

    def _continue(self, test: _Test) -> Steps:
        """Runs a test until it waits, listens or ends."""
        while test.action is not None:
            answer = yield from self._perform(test, test.action)
            if answer is _PARKED:
                return
            test.step(answer)
        yield from self._finish(test)

    # --- what a test may do -------------------------------------------------------------------------------------------

    def _perform(self, test: _Test, action: Action) -> Steps:
        match action:
            case Say() | Ask():
                return (yield from self._speak(test, action))
            case Wait():
                return (yield from self._wait(test, action))
            case Listen():
                return (yield from self._listen(test))
            case Consult():
                ruled: Ruled = yield Judge(test.test_id, action.prompt, action.purpose)
                return understand(action, Ruling(text=ruled.text, failure=ruled.failure))
            case Grade():
                test.grade = action
                return None

    def _speak(self, test: _Test, action: Say | Ask) -> Steps:
        kind, hint, needs = "say", Hint(), None
        if isinstance(action, Ask):
            kind, needs = "ask", None if action.needs is None else tuple(action.needs)
            hint = Hint(action.ideal, test.distance(needs, self.tokens))
        before = self.tokens
        heard = yield from self._exchange(Send(kind, test.test_id, action.text, self.turn + 1, self._hoped(hint)))
        needle = isinstance(action, Say) and action.needle
        test.said.append(Said(action.text, str(heard), kind == "ask", needle, heard.turn, heard.now, before, needs))
        return heard

    def _wait(self, test: _Test, wait: Wait) -> Steps:
        if wait == Wait():
            return Moment(self.now, self.tokens)
        wait = wait.in_tokens(test.planned.span_tokens)
        time = self.now + (wait.time or timedelta(0))
        tokens = max(self.tokens + wait.tokens, test.began.tokens + wait.until_tokens)
        if self._isolated:
            # Alone in its conversation a test waits for nobody; only the clock moves.
            yield from self._pass_time(time)
            return Moment(self.now, self.tokens)
        yield Pause(test.test_id, tokens, time)
        test.waits = True
        self._waiting.add(test, tokens, time)
        return _PARKED

    def _listen(self, test: _Test) -> Steps:
        if test.told_over:
            test.stop("listened on after the conversation was over")
            return None
        if test.listens_from_turn is None:
            test.listens_from_turn = self.turn
            yield Attend(test.test_id)
        self._listeners[test.test_id] = test
        return _PARKED

    def _finish(self, test: _Test) -> Steps:
        ended, characters = Moment(self.now, self.tokens), self._characters - test.characters
        if test.planned.reset_message:
            yield from self._exchange(
                Send("forget", test.test_id, test.planned.reset_message, self.turn + 1, self._hoped(Hint()))
            )
        del self.running[test.test_id]
        self._load_tokens -= test.planned.own_tokens
        self._spans[test.planned.span_tokens] -= 1
        self._spans += Counter()  # drops what has come to zero
        self.ended += 1
        self._fresh.free(test.planned.kind)
        grade = test.grade or Grade.failure("the script ended without a grade")
        yield End(
            Outcome(
                test_id=test.test_id,
                grade=grade,
                began=test.began,
                ended=ended,
                characters=characters,
                said=tuple(test.said),
                span_tokens=test.planned.span_tokens,
                listened_from_turn=test.listens_from_turn,
            )
        )

    # --- what the world does ------------------------------------------------------------------------------------------

    def _exchange(self, command: Send | Fill) -> Generator[Command, Any, Heard]:
        """One message and its reply; every listening test hears it."""
        replied: Replied = yield command
        self.turn = command.turn
        self.tokens += replied.tokens
        self.now += replied.elapsed
        self._characters += len(replied.message) + len(replied.text)
        heard = Heard.at(
            replied.text,
            turn=self.turn,
            now=self.now,
            tokens=self.tokens,
            message=replied.message,
            test_id=command.test_id if isinstance(command, Send) else None,
            log=self._log,
        )
        if self._listeners:
            self._let_hear(heard)
        return heard

    def _let_hear(self, heard: Heard) -> None:
        """A listener that listens on stays one; one that wants anything else waits for its turn to do it."""
        for test in list(self._listeners.values()):
            test.step(heard)
            while isinstance(test.action, Grade):
                test.grade = test.action
                test.step(None)
            if not isinstance(test.action, Listen):
                del self._listeners[test.test_id]
                self._waiting.add(test, self.tokens, self.now)

    def _pass_time(self, until: datetime) -> Steps:
        if until > self.now:
            moved: Moved = yield Jump(until)
            self.now = moved.now

    def _fill(self, tokens: int) -> Steps:
        # The expected reply is put into the agent's mouth unless a test listens: then it must really speak.
        # Several messages share the amount evenly, so that the last one is not too short for a question.
        messages = -(-tokens // self._max_message_tokens)
        command = Fill(self._fillers, -(-tokens // messages), not self._listeners, self.turn + 1, self._hoped(Hint()))
        self._fillers += 1
        yield from self._exchange(command)

    def _entertain(self) -> Steps:
        """Nothing goes on any more: make the agent speak for those who still listen, then tell them that it is over."""
        patient = [test for test in self._listeners.values() if test.entertained < test.patience]
        if patient:
            for test in patient:
                test.entertained += 1
            yield from self._fill(_SMALL_FILLER_TOKENS)
            return
        test = self._listeners.pop(min(self._listeners))
        test.told_over = True
        test.step(None)
        self._waiting.add(test, self.tokens, self.now)

    def _hoped(self, hint: Hint) -> Hint:
        """The hint, with what listening tests hope to find in the reply."""
        extras = tuple(
            Extra(test.action.ideal, test.distance(test.action.needs, self.tokens))
            for test in self._listeners.values()
            if isinstance(test.action, Listen) and test.action.ideal is not None
        )
        return Hint(hint.answer, hint.distance_tokens, extras) if extras else hint


@dataclass(eq=False, slots=True)
class _Test:
    """A running test: its script, what it wants now, and what it has said so far."""

    planned: Planned
    began: Moment
    characters: int
    script: Script | None = None
    action: Action | None = None
    grade: Grade | None = None
    said: list[Said] = field(default_factory=list)
    listens_from_turn: int | None = None
    waits: bool = False
    told_over: bool = False
    entertained: int = 0

    @property
    def test_id(self) -> str:
        return self.planned.test_id

    @property
    def patience(self) -> int:
        return self.action.patience if isinstance(self.action, Listen) else 0

    def step(self, answer: Any) -> None:
        """Gives the script its answer; what it wants next is None once it has returned."""
        try:
            if self.script is None:
                self.script = self.planned.play()
            self.action = self.script.send(answer)
            if not isinstance(self.action, Action):
                self.stop(f"the script yielded {type(self.action).__name__}, expected an action")
        except StopIteration:
            self.action = None
        except Exception as error:  # boundary: a test is the user's code
            self.stop(f"the script raised {type(error).__name__}: {error}")

    def stop(self, reason: str) -> None:
        if self.script is not None:
            self.script.close()
        self.action, self.grade = None, Grade.failure(reason)

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


def understand(consult: Consult, said: Ruling) -> Ruling:
    """What the test's own reading makes of a judge's answer."""
    if said.failed:
        return said
    try:
        return Ruling(value=consult.parse(said.text), text=said.text)
    except Exception as error:  # boundary: a judge's answer may hold anything, and parsing it is the test's code
        return Ruling(text=said.text, failure=f"the judge's answer cannot be read: {type(error).__name__}: {error}")
