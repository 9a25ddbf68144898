"""A stored conversation as a timeline: who spoke and what was filled in when, along tokens and along virtual time.

One pass over the tape. Isolated tests have a conversation each; they are laid end to end along the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.memory.tape import FILL_KINDS, EventBody, StoredEvent, read_events
from themis.storage.runs import Turn


@dataclass(slots=True)
class Segment:
    """From here to there: an exchange (say, ask, forget, fill, intro)."""

    kind: str
    tokens: tuple[int, int]
    time: tuple[datetime, datetime]


@dataclass(slots=True)
class TimelineTest:
    """One test's part of the conversation, in order."""

    test_id: str
    began: tuple[int, datetime]
    ended: tuple[int, datetime] | None = None
    segments: list[Segment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TimeJump:
    """Time that passed at once, at one place in the conversation."""

    tokens: int
    start: datetime
    end: datetime


@dataclass
class Timeline:
    """The whole conversation. `latencies` are the seconds of each reply that the agent made itself."""

    tests: list[TimelineTest] = field(default_factory=list)
    fillers: list[Segment] = field(default_factory=list)
    jumps: list[TimeJump] = field(default_factory=list)
    tokens: int = 0
    filler_tokens: int = 0
    turns: int = 0
    replies: int = 0
    reply_tokens: int = 0
    latencies: list[float] = field(default_factory=list)
    start: datetime | None = None
    end: datetime | None = None


def read_timeline(rows: Iterable[Turn], *, isolated: bool = False, tokenizer_name: str = DEFAULT_TOKENIZER) -> Timeline:
    """The timeline of the rows of a run.

    Args:
        rows: All of them, in order.
        isolated: Every test has a conversation of its own.
        tokenizer_name: Counts the tokens of replies whose length the agent did not report.
    """
    timeline, count = Timeline(), tokenizer(tokenizer_name)
    conversations: dict[str | None, list[Turn]] = {}
    if isolated:
        for row in rows:
            conversations.setdefault(row.test_id, []).append(row)
    for conversation in conversations.values() if isolated else (rows,):
        _Reader(timeline, count).read(conversation)
    return timeline


class _Reader:
    """Follows a conversation row by row and puts it behind those that the timeline has."""

    def __init__(self, timeline: Timeline, count: Callable[[str], int]) -> None:
        self._count = count
        self._line = timeline
        # Length of the conversations before this one.
        self._offset = timeline.tokens
        self._tests: dict[str, TimelineTest] = {}
        self._now: datetime | None = None

    def read(self, rows: Iterable[Turn]) -> None:
        for event in read_events(rows):
            self._take(event, event.reply or event.body)
        line = self._line
        line.tests += self._tests.values()
        if self._now is not None:
            line.end = max(line.end or self._now, self._now)

    def _take(self, event: StoredEvent, body: EventBody) -> None:
        line, before = self._line, self._now
        if body.now is not None:
            if before is None:
                before = body.now
                line.start = min(line.start or before, before)
            self._now = max(before, body.now)
        if event.is_exchange:
            if event.reply is not None:
                self._exchange(event, event.reply, before)
        elif event.kind == "jump" and before is not None and self._now is not None:
            if self._now > before:
                line.jumps.append(TimeJump(line.tokens, before, self._now))
        elif event.test_id is not None and self._now is not None:
            here = (line.tokens, self._now)
            if event.kind == "begin":
                self._tests[event.test_id] = TimelineTest(event.test_id, here)
            elif event.kind == "end" and event.test_id in self._tests:
                self._tests[event.test_id].ended = here

    def _exchange(self, event: StoredEvent, reply: EventBody, before: datetime | None) -> None:
        line = self._line
        line.turns += 1
        start = line.tokens
        line.tokens = max(start + reply.tokens, self._offset + reply.tokens_total)
        assert self._now is not None
        segment = Segment(event.kind, (start, line.tokens), (before or self._now, self._now))
        if event.body.presupplied is None:
            line.replies += 1
            line.reply_tokens += reply.completion_tokens or self._count(reply.reply or "")
            if reply.seconds > 0:
                line.latencies.append(reply.seconds)
        if event.kind in FILL_KINDS:
            line.fillers.append(segment)
            line.filler_tokens += line.tokens - start
        elif event.test_id in self._tests:
            self._tests[event.test_id].segments.append(segment)
