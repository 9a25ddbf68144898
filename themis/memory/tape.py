"""The tape: every exchange and event of a conversation as a row, written before anyone acts on it, and read back.

Resuming is replaying: the scheduler runs from the start, and as long as the tape has the row of a step, the row answers
it. A step that does not fit its row is an error that shows both; the first one without a row is where the world takes
over. Rows without an effect outside (a test begins, waits, listens, ends) are written with the next one that has.
"""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from themis.core.codec import decode_as, encode
from themis.exceptions import ConfigurationError, StorageError
from themis.memory.actions import Begin, Consult, End, Exchange, Fill, Jump, Line, Listen, Step, Wait
from themis.memory.agents.agent import Reply
from themis.storage.runs import Turn

# Kinds of rows that send the agent something; each is followed by a `reply` row.
EXCHANGES = ("intro", "say", "ask", "forget", "fill")
# Those of them that are no test's.
FILL_KINDS = ("fill", "intro")
# A question to a judge after the test had ended; no part of the conversation, so replaying passes over it.
REJUDGE = "reconsult"
_REMEMBERED_LINES = 256


class EventBody(msgspec.Struct, omit_defaults=True):
    """What a row holds. Which fields are set depends on its kind."""

    turn: int = 0
    # Of an exchange: what was sent. `presupplied` is a reply put into the agent's mouth.
    message: str = ""
    presupplied: str | None = None
    filler: int | None = None
    wanted_tokens: int | None = None
    # Of a reply.
    reply: str | None = None
    tokens: int = 0
    tokens_total: int = 0
    elapsed_seconds: float = 0.0
    now: datetime.datetime | None = None
    cost_usd: float | None = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    # Real seconds that the agent or the judge took.
    seconds: float = 0.0
    # The message may have reached an agent that remembers it twice.
    in_doubt: bool = False
    # Of a consultation: the judge's answer, or why there is none.
    prompt: str | None = None
    purpose: str = ""
    answer: str | None = None
    failure: str | None = None
    # Who was asked, where it was not during the conversation.
    judge: str = ""
    # Of waits and jumps.
    until_tokens: int | None = None
    until: datetime.datetime | None = None
    # Of a test's end.
    score: float | None = None
    reasons: list[str] = []

    @classmethod
    def of(cls, reply: Reply, seconds: float) -> EventBody:
        """What the calls for a reply, of the agent or the judge, took."""
        return cls(
            cost_usd=reply.cost_usd,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            calls=reply.calls,
            seconds=seconds,
        )


class Tape:
    """The rows of one conversation.

    Args:
        stored: Rows of an earlier process.
        write: Makes new rows durable.
        numbers: Gives rows their numbers, where several conversations of a run share them.
        conversation_id: In a run of separate conversations, the id of the test, which every row then carries.
        on_extra: Called with the kind and body of rows that are no part of the conversation.
    """

    def __init__(
        self,
        stored: Iterable[Turn],
        write: Callable[[list[Turn]], None],
        *,
        numbers: Iterator[int] | None = None,
        conversation_id: str | None = None,
        on_extra: Callable[[str, EventBody], None] = lambda kind, body: None,
    ) -> None:
        self._stored = iter(stored)
        self._on_extra = on_extra
        self._next = 0
        self._ahead = self._read()
        self._write = write
        self._numbers = numbers
        self._conversation_id = conversation_id
        self._unwritten: list[Turn] = []
        # Set while the tape's last row is a message without its reply.
        self.in_doubt = False

    @property
    def is_replaying(self) -> bool:
        return self._ahead is not None

    # --- reading ------------------------------------------------------------------------------------------------------

    def replay_next(self, step: Step) -> EventBody | None:
        """The stored answer to a step, that to an exchange with what was sent; None where the tape ends."""
        if self._ahead is None:
            return None
        row = self._take()
        body = read_body(row)
        self._compare(step, row, body)
        if not isinstance(step.action, Exchange):
            return body
        if self._ahead is None:
            self.in_doubt = True
            return None
        answered = self._take()
        reply = read_body(answered)
        if answered.kind != "reply" or reply.reply is None:
            raise _damaged(answered.seq, f"row of kind {answered.kind!r} where a reply was expected")
        reply.message = body.message
        return reply

    def _take(self) -> Turn:
        row = self._ahead
        assert row is not None
        self._ahead = self._read()
        return row

    def _read(self) -> Turn | None:
        for row in self._stored:
            self._next = row.seq + 1
            if row.kind != REJUDGE:
                return row
            self._on_extra(row.kind, read_body(row))
        return None

    def _compare(self, step: Step, row: Turn, body: EventBody) -> None:
        now = (step.kind, self._conversation_id or step.test_id, _comparable(step.kind, _body_of(step)))
        stored = (row.kind, row.test_id, _comparable(row.kind, body))
        if now != stored:
            raise ConfigurationError(
                f"the stored conversation and the tests part at row {row.seq} (turn {body.turn or '-'}):\n"
                f"  stored: {_format_event(*stored)}\n  now:    {_format_event(*now)}\n"
                "The tests, their definitions or the engine have changed since. Restore them, or start another run id"
            )

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(self, step: Step) -> None:
        """A step without an effect outside: it is written with the next row that has one."""
        self._unwritten.append(self._row(step.kind, step.test_id, _body_of(step)))

    def write_ahead(self, step: Step, message: str, presupplied: str | None, *, durable: bool) -> None:
        """The message that is about to be sent; if `durable`, on the disk when this returns, else with its reply."""
        if self.in_doubt:
            self.in_doubt = False
            return
        body = _body_of(step)
        body.message, body.presupplied = message, presupplied
        self._unwritten.append(self._row(step.kind, step.test_id, body))
        if durable:
            self.flush()

    def commit_reply(self, step: Step, body: EventBody) -> None:
        """What came of an exchange, a consultation or a jump; on the disk when this returns."""
        kind = "reply" if isinstance(step.action, Exchange) else step.kind
        if isinstance(step.action, Consult):
            body.prompt, body.purpose = step.action.prompt, step.action.purpose
        elif isinstance(step.action, Jump):
            body.until = step.action.until
        self._unwritten.append(self._row(kind, step.test_id, body))
        self.flush()

    def flush(self) -> None:
        if self._unwritten:
            rows, self._unwritten = self._unwritten, []
            self._write(rows)

    def _row(self, kind: str, test_id: str | None, body: EventBody) -> Turn:
        if self._numbers is not None:
            number = next(self._numbers)
        else:
            number, self._next = self._next, self._next + 1
        return Turn(number, kind, self._conversation_id or test_id, encode(body))


def read_body(row: Turn) -> EventBody:
    try:
        return decode_as(row.body, EventBody)
    except (ValueError, msgspec.MsgspecError) as error:
        raise _damaged(row.seq, str(error)) from error


def _damaged(seq: int, what: str) -> StorageError:
    return StorageError(f"row {seq} of the stored conversation cannot be read: {what}")


# --- steps and rows ---------------------------------------------------------------------------------------------------


def _body_of(step: Step) -> EventBody:
    """What a step's row holds before there is an answer."""
    action, now = step.action, step.at.now
    match action:
        case Fill():
            return EventBody(turn=step.turn, filler=action.number, wanted_tokens=action.tokens)
        case Consult():
            return EventBody(prompt=action.prompt, purpose=action.purpose)
        case Jump():
            return EventBody(until=action.until)
        case Begin():
            return EventBody(tokens_total=step.at.tokens, now=now)
        case Wait():
            until = step.until or step.at
            return EventBody(until_tokens=until.tokens, until=until.now, now=now)
        case Listen():
            return EventBody(now=now)
        case End(outcome):
            score = None if outcome.grade.failed else outcome.grade.score
            reasons = list(outcome.grade.reasons)
            total = outcome.ended.tokens
            return EventBody(tokens=outcome.tokens, tokens_total=total, now=now, score=score, reasons=reasons)
        case _:
            return EventBody(turn=step.turn, message=action.text)


def _comparable(kind: str, body: EventBody) -> str:
    """What must be equal between a step and its row."""
    match kind:
        case "fill":
            return f"filler {body.filler} of {body.wanted_tokens} tokens"
        case "consult":
            return body.prompt or ""
        case "jump":
            return body.until.isoformat() if body.until else ""
        case "begin":
            return f"at {body.tokens_total} tokens"
        case "wait":
            return f"until {body.until_tokens} tokens and {body.until.isoformat() if body.until else ''}"
        case "listen":
            return ""
        case "end":
            return f"score {body.score}"
        case _:
            return body.message


def _format_event(kind: str, test_id: str | None, text: str) -> str:
    short = text if len(text) <= 300 else f"{text[:300]}… ({len(text)} characters)"
    return f"{kind} {test_id or ''} {short}".replace("\n", "\\n")


# --- the conversation as callbacks see it -----------------------------------------------------------------------------


class ConversationLog:
    """The exchanges so far: the last ones are kept, older ones are read from the tape when someone asks."""

    def __init__(self, older: Callable[[], Iterable[Turn]] | None = None) -> None:
        self._older = older
        self._recent: deque[Line] = deque(maxlen=None if older is None else _REMEMBERED_LINES)
        self._count = 0

    def append(self, line: Line) -> None:
        self._recent.append(line)
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Line]:
        return self.after(0)

    def after(self, turn: int) -> Iterator[Line]:
        recent = list(self._recent)
        if recent and self._older is not None and turn < recent[0].turn - 1:
            first = recent[0].turn
            for line in lines_of(self._older()):
                if line.turn >= first:
                    break
                if line.turn > turn:
                    yield line
        yield from (line for line in recent if line.turn > turn)


@dataclass(slots=True)
class Spent:
    """What was used: the sum over a tape, or over one test's part of it."""

    cost_usd: float = 0.0
    unpriced_calls: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    agent_seconds: float = 0.0
    judge_calls: int = 0
    judge_cost_usd: float = 0.0
    unpriced_judge_calls: int = 0
    judge_seconds: float = 0.0
    conversation_tokens: int = 0
    turns: int = 0

    def add(self, kind: str, body: EventBody) -> None:
        """Adds a row of the tape; only replies and consultations use anything."""
        if kind == "reply":
            self.turns += 1
            self.cost_usd += body.cost_usd or 0.0
            self.unpriced_calls += body.cost_usd is None
            self.calls += body.calls
            self.prompt_tokens += body.prompt_tokens
            self.completion_tokens += body.completion_tokens
            self.agent_seconds += body.seconds
            self.conversation_tokens += body.tokens
        elif kind in ("consult", REJUDGE):
            self.judge_calls += body.calls
            self.judge_cost_usd += body.cost_usd or 0.0
            self.unpriced_judge_calls += body.calls if body.cost_usd is None else 0
            self.judge_seconds += body.seconds


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A row, or a message with its reply. `reply` is None for other events, and where the agent has not replied."""

    seq: int
    kind: str
    # None for what is no test's.
    test_id: str | None
    body: EventBody
    reply: EventBody | None = None

    @property
    def is_exchange(self) -> bool:
        return self.kind in EXCHANGES


def read_events(rows: Iterable[Turn]) -> Iterator[StoredEvent]:
    """What rows tell, in the order in which it was over; messages without a reply come last."""
    # By test: isolated tests may speak side by side.
    sent: dict[str | None, StoredEvent] = {}
    for row in rows:
        body = read_body(row)
        if row.kind in EXCHANGES:
            owner = None if row.kind in FILL_KINDS else row.test_id
            sent[row.test_id] = StoredEvent(row.seq, row.kind, owner, body)
        elif row.kind == "reply" and row.test_id in sent:
            yield replace(sent.pop(row.test_id), reply=body)
        else:
            yield StoredEvent(row.seq, row.kind, row.test_id, body)
    yield from sent.values()


def lines_of(rows: Iterable[Turn]) -> Iterator[Line]:
    """The exchanges among rows, each message with its reply."""
    for event in read_events(rows):
        sent, reply = event.body, event.reply
        if reply is not None:
            assert reply.now is not None
            yield Line(sent.turn, event.test_id, sent.message, reply.reply or "", reply.now, event.kind == "ask")


# --- the conversation as people and other programs read it ------------------------------------------------------------

Entry = dict[str, Any]


def read_entries(rows: Iterable[Turn], *, test_id: str | None = None) -> Iterator[Entry]:
    """A conversation entry by entry; a message and its reply are one. `kind` says which fields matter."""
    for event in read_events(rows):
        if test_id is None or event.test_id == test_id:
            yield _format_exchange(event, event.reply) if event.is_exchange else _format_entry(event, event.body)


def _format_exchange(event: StoredEvent, reply: EventBody | None) -> Entry:
    sent = event.body
    return {
        "seq": event.seq,
        "turn": sent.turn,
        "test_id": event.test_id,
        "kind": event.kind,
        "message": sent.message,
        "reply": None if reply is None else reply.reply,
        "question": event.kind == "ask",
        "presupplied": sent.presupplied is not None,
        "now": _format_time(None if reply is None else reply.now),
        "tokens_total": None if reply is None else reply.tokens_total,
        "cost_usd": None if reply is None else reply.cost_usd,
        "in_doubt": reply is None or reply.in_doubt,
    }


def _format_entry(event: StoredEvent, body: EventBody) -> Entry:
    entry: Entry = {
        "seq": event.seq,
        "turn": None,
        "test_id": event.test_id,
        "kind": event.kind,
        "message": body.prompt,
        "reply": body.answer,
        "question": False,
        "presupplied": False,
        "now": _format_time(body.now),
        "tokens_total": body.tokens_total or None,
        "cost_usd": body.cost_usd if event.kind in ("consult", REJUDGE) else None,
    }
    optional = {
        "until_tokens": body.until_tokens,
        "until": _format_time(body.until),
        "score": body.score,
        "reasons": body.reasons or None,
        "failure": body.failure,
    }
    return entry | {name: value for name, value in optional.items() if value is not None}


def _format_time(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(datetime.UTC).isoformat()
