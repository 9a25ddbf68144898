"""A stored conversation as a timeline: who spoke, waited and was filled in when, along tokens and along virtual time.

One pass over the tape. Isolated tests have a conversation each; they are laid end to end along the tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.memory.tape import EXCHANGES, FILL_KINDS, EventBody, read_body
from themis.storage.records import Turn

__all__ = ["Jumped", "Lane", "Stretch", "Timeline", "read_timeline"]


@dataclass(slots=True)
class Stretch:
    """From here to there: an exchange (say, ask, forget, fill, intro) or a wait."""

    kind: str
    tokens: tuple[int, int]
    time: tuple[datetime, datetime]


@dataclass(slots=True)
class Lane:
    """One test's part of the conversation, in order."""

    test_id: str
    began: tuple[int, datetime]
    ended: tuple[int, datetime] | None = None
    stretches: list[Stretch] = field(default_factory=list)
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Jumped:
    """Time that passed at once, at one place in the conversation."""

    tokens: int
    start: datetime
    end: datetime


@dataclass
class Timeline:
    """The whole conversation. `latencies` are the seconds of each reply that the agent made itself."""

    lanes: list[Lane] = field(default_factory=list)
    fillers: list[Stretch] = field(default_factory=list)
    jumps: list[Jumped] = field(default_factory=list)
    tokens: int = 0
    filler_tokens: int = 0
    turns: int = 0
    replies: int = 0
    reply_tokens: int = 0
    latencies: list[float] = field(default_factory=list)
    start: datetime | None = None
    end: datetime | None = None


def read_timeline(rows: Iterable[Turn], *, isolated: bool = False, tokenizer_name: str = DEFAULT_TOKENIZER) -> Timeline:
    """The timeline of the rows of a run."""
    if not isolated:
        return _Reader(tokenizer_name).read(rows)
    apart: dict[str | None, list[Turn]] = {}
    for row in rows:
        apart.setdefault(row.test_id, []).append(row)
    whole = Timeline()
    for lane_rows in apart.values():
        _append(whole, _Reader(tokenizer_name).read(lane_rows))
    return whole


class _Reader:
    """Follows a conversation row by row."""

    def __init__(self, tokenizer_name: str) -> None:
        self._count = tokenizer(tokenizer_name)
        self._line = Timeline()
        self._lanes: dict[str, Lane] = {}
        self._sent: dict[str | None, tuple[Turn, EventBody]] = {}
        # Where each waiting test began to wait.
        self._waits: dict[str, tuple[int, datetime]] = {}
        self._now: datetime | None = None

    def read(self, rows: Iterable[Turn]) -> Timeline:
        for row in rows:
            self._take(row, read_body(row))
        line = self._line
        line.lanes = list(self._lanes.values())
        line.end = self._now
        return line

    def _take(self, row: Turn, body: EventBody) -> None:
        line, before = self._line, self._now
        if body.now is not None:
            if line.start is None:
                line.start = self._now = before = body.now
            self._now = max(self._now or body.now, body.now)
        if row.kind in EXCHANGES:
            self._sent[row.test_id] = (row, body)
        elif row.kind == "reply" and row.test_id in self._sent:
            sent_row, sent = self._sent.pop(row.test_id)
            self._exchange(sent_row, sent, body, before)
        elif row.kind == "jump" and before is not None and self._now is not None:
            if self._now > before:
                line.jumps.append(Jumped(line.tokens, before, self._now))
        elif row.test_id is not None and self._now is not None:
            self._event(row.kind, row.test_id, body, self._now)

    def _exchange(self, row: Turn, sent: EventBody, reply: EventBody, before: datetime | None) -> None:
        line = self._line
        line.turns += 1
        start = line.tokens
        line.tokens = max(start + reply.tokens, reply.tokens_total)
        assert self._now is not None
        stretch = Stretch(row.kind, (start, line.tokens), (before or self._now, self._now))
        if sent.presupplied is None:
            line.replies += 1
            line.reply_tokens += reply.completion_tokens or self._count(reply.reply or "")
            if reply.seconds > 0:
                line.latencies.append(reply.seconds)
        if row.kind in FILL_KINDS:
            line.fillers.append(stretch)
            line.filler_tokens += line.tokens - start
        elif row.test_id in self._lanes:
            self._end_wait(row.test_id, (start, before or self._now))
            self._lanes[row.test_id].stretches.append(stretch)

    def _event(self, kind: str, test_id: str, body: EventBody, now: datetime) -> None:
        here = (self._line.tokens, now)
        if kind == "begin":
            self._lanes[test_id] = Lane(test_id, here)
        elif test_id not in self._lanes:
            return
        elif kind in ("wait", "listen"):
            self._waits[test_id] = here
        elif kind == "end":
            self._end_wait(test_id, here)
            self._lanes[test_id].ended = here
            self._lanes[test_id].score = body.score

    def _end_wait(self, test_id: str, here: tuple[int, datetime]) -> None:
        began = self._waits.pop(test_id, None)
        if began is not None:
            stretch = Stretch("wait", (began[0], here[0]), (began[1], here[1]))
            self._lanes[test_id].stretches.append(stretch)


def _append(whole: Timeline, part: Timeline) -> None:
    """Puts a conversation behind the ones before it."""
    offset = whole.tokens
    for lane in part.lanes:
        lane.began = (lane.began[0] + offset, lane.began[1])
        lane.ended = None if lane.ended is None else (lane.ended[0] + offset, lane.ended[1])
    for stretch in [stretch for lane in part.lanes for stretch in lane.stretches] + part.fillers:
        stretch.tokens = (stretch.tokens[0] + offset, stretch.tokens[1] + offset)
    whole.lanes += part.lanes
    whole.fillers += part.fillers
    whole.jumps += [Jumped(jump.tokens + offset, jump.start, jump.end) for jump in part.jumps]
    whole.tokens += part.tokens
    whole.filler_tokens += part.filler_tokens
    whole.turns += part.turns
    whole.replies += part.replies
    whole.reply_tokens += part.reply_tokens
    whole.latencies += part.latencies
    moments = [moment for moment in (whole.start, part.start) if moment is not None]
    whole.start = min(moments, default=None)
    moments = [moment for moment in (whole.end, part.end) if moment is not None]
    whole.end = max(moments, default=None)
