"""Looks ahead in a conversation: whether its tests stay within their spans if one more begins.

The scheduler asks before it begins a test. The answer comes from playing what every running test has still to say, as a
dry run of its script estimated it, by the scheduler's own rules and without further tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from heapq import heappop, heappush
from itertools import chain
from typing import Generic, TypeVar

from themis.config.schema import LEAST_FILLER_TOKENS
from themis.memory.actions import Script, Wait

# Of a span: what a test that waits for a place in it leaves to the messages of others.
_LEEWAY_SHARE = 0.08
# Of a span: what is kept back for messages that become longer than estimated.
_RESERVE_SHARE = 0.02

T = TypeVar("T")


@dataclass(frozen=True)
class Tempo:
    """How fast a conversation goes on.

    Args:
        exchange_time: How long an exchange takes.
        excess_tokens: By how many tokens a test's exchange is longer than estimated.
        max_message_tokens: Most tokens of one filler.
    """

    exchange_time: timedelta = timedelta(0)
    excess_tokens: float = 0.0
    max_message_tokens: int = 4_096

    def share_filler(self, tokens: int) -> tuple[int, int]:
        """How many fillers a wait for so many tokens takes, and how many tokens they have together."""
        tokens = max(tokens, min(LEAST_FILLER_TOKENS, self.max_message_tokens))
        return -(-tokens // self.max_message_tokens), tokens


@dataclass(frozen=True)
class Stretch:
    """What a test says between two waits, where nobody else speaks.

    Args:
        wait: What it waits for before.
        tokens: Of each of its messages with the reply.
    """

    wait: Wait
    tokens: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A test as the scheduler sees it: who it is, what kind, how to start its script, and about what it will say.

    Args:
        test_id: Its id.
        kind: Of which it is one.
        play: Starts its script.
        span_tokens: Within how many tokens it should begin and end.
        stretches: About what it will say, up to where it listens.
        reset_message: What is said after it, if anything.
        reset_tokens: About how many tokens that has, with its reply.
    """

    test_id: str
    kind: str
    play: Callable[[], Script]
    span_tokens: int
    stretches: Sequence[Stretch] = ()
    reset_message: str = ""
    reset_tokens: int = 0

    @cached_property
    def weight(self) -> int:
        """How hard it is to find a place for: the tokens that it takes alone, and those that it says itself."""
        tokens, said, tempo = 0, 0, Tempo()
        for number, stretch in enumerate(self.stretches):
            tokens = self.find_wait_end(number, stretch.wait, tempo, began=0, tokens=tokens) + sum(stretch.tokens)
            said += sum(stretch.tokens)
        return tokens + said

    def find_limit(self, tempo: Tempo) -> int:
        """The most tokens that it may take by estimate: its span but for a reserve, or what it says if that is more."""
        return max(int(self.span_tokens * (1 - _RESERVE_SHARE)), self._count_rest(0, tempo))

    def find_wait_end(self, number: int, wait: Wait, tempo: Tempo, *, began: int, tokens: int) -> int:
        """Until how many tokens of conversation a wait lasts.

        A wait for a place in the span gives way where what the test has still to say would not fit behind that place.

        Args:
            number: Of the stretch that follows the wait.
            wait: What the test waits for.
            tempo: How fast the conversation goes on.
            began: Tokens of conversation when the test began.
            tokens: Tokens of conversation now.
        """
        wait = wait.in_tokens(self.span_tokens)
        latest = int(self.span_tokens * (1 - _LEEWAY_SHARE)) - self._count_rest(number, tempo)
        return max(tokens + wait.tokens, began + min(wait.until_tokens, max(0, latest)))

    def _count_rest(self, number: int, tempo: Tempo) -> int:
        """Tokens from the beginning of a stretch to the end of the test, if nobody else spoke and no place were waited for."""
        tokens, messages = self._rests[min(number, len(self.stretches))]
        return tokens + round(messages * tempo.excess_tokens)

    @cached_property
    def _rests(self) -> Sequence[tuple[int, int]]:
        """From the beginning of each stretch, and after the last: tokens and messages to the end of the test."""
        rests, waited = [(0, 0)], 0
        for stretch in reversed(self.stretches):
            tokens, messages = rests[-1]
            rests.append((tokens + waited + sum(stretch.tokens), messages + len(stretch.tokens)))
            wait = stretch.wait.in_tokens(self.span_tokens)
            waited = max(wait.tokens, LEAST_FILLER_TOKENS) if wait.tokens else 0
        return rests[::-1]


class Parked(Generic[T]):
    """Waiting tests, each until both its targets are reached."""

    def __init__(self) -> None:
        # (tokens, time, id, test), those whose turn it is.
        self.due: list[tuple[int, datetime, str, T]] = []
        # Those whose tokens are not reached yet, and those that wait for nothing but the time.
        self.for_tokens: list[tuple[int, datetime, str, T]] = []
        self.for_time: list[tuple[datetime, int, str, T]] = []

    def add(self, test_id: str, test: T, tokens: int, time: datetime) -> None:
        heappush(self.for_tokens, (tokens, time, test_id, test))

    def wake(self, tokens: int, now: datetime) -> None:
        while self.for_tokens and self.for_tokens[0][0] <= tokens:
            target, time, test_id, test = heappop(self.for_tokens)
            heappush(self.for_time, (time, target, test_id, test))
        while self.for_time and self.for_time[0][0] <= now:
            time, target, test_id, test = heappop(self.for_time)
            heappush(self.due, (target, time, test_id, test))

    def pop(self) -> T | None:
        """The test whose turn it is; none while time must pass for one that has waited longer."""
        if not self.due or any(tokens < self.due[0][0] for _, tokens, _, _ in self.for_time):
            return None
        return heappop(self.due)[-1]

    def __iter__(self) -> Iterator[tuple[T, int, datetime]]:
        """Each test with the tokens and the time that it waits for."""
        yield from ((test, tokens, time) for tokens, time, _, test in chain(self.due, self.for_tokens))
        yield from ((test, tokens, time) for time, tokens, _, test in self.for_time)


@dataclass(frozen=True, slots=True)
class Course:
    """Where a test stands: when it began, which stretch comes next, and from how many tokens and which time on.

    After its last stretch a test has ended, or listens.
    """

    planned: Planned
    began: int
    number: int
    tokens: int
    time: datetime

    def speak(self, tempo: Tempo, tokens: int, now: datetime) -> tuple[int, datetime]:
        """Where the conversation stands after the next stretch."""
        ahead = self.planned.stretches[self.number : self.number + 1]
        said = ahead[0].tokens if ahead else ()
        return tokens + sum(said) + round(len(said) * tempo.excess_tokens), now + len(said) * tempo.exchange_time

    def follow(self, tempo: Tempo, tokens: int, now: datetime) -> Course | None:
        """Where the test stands after the next stretch, if there is another."""
        planned, number = self.planned, self.number + 1
        if number >= len(planned.stretches):
            return None
        wait = planned.stretches[number].wait
        end = planned.find_wait_end(number, wait, tempo, began=self.began, tokens=tokens)
        return Course(planned, self.began, number, end, now + (wait.time or timedelta(0)))

    def overruns(self, tempo: Tempo, tokens: int) -> bool:
        """Whether a test that ends with the next stretch takes too long; one that listens ends when others let it."""
        ends = self.number < len(self.planned.stretches)
        return ends and tokens - self.began > self.planned.find_limit(tempo)


def stay_within_spans(new: Planned, running: Iterable[Course], tempo: Tempo, *, tokens: int, now: datetime) -> bool:
    """Whether all tests end within their spans if a new one begins now, and none after it.

    Args:
        new: The new one.
        running: The others.
        tempo: How fast the conversation goes on.
        tokens: Tokens of conversation now.
        now: The virtual time.
    """
    parked: Parked[Course] = Parked()
    for course in running:
        parked.add(course.planned.test_id, course, course.tokens, course.time)
    due: Course | None = Course(new, tokens, 0, tokens, now)
    while True:
        if due is not None:
            tokens, now = due.speak(tempo, tokens, now)
            if (following := due.follow(tempo, tokens, now)) is not None:
                parked.add(due.planned.test_id, following, following.tokens, following.time)
            elif due.overruns(tempo, tokens):
                return False
            else:
                tokens += due.planned.reset_tokens
        elif parked.for_time:
            now = parked.for_time[0][0]
        elif parked.for_tokens:
            messages, filler = tempo.share_filler(parked.for_tokens[0][0] - tokens)
            tokens, now = tokens + filler, now + messages * tempo.exchange_time
        else:
            return True
        parked.wake(tokens, now)
        due = parked.pop()
