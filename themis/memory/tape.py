"""The tape: every exchange and event of a conversation as a row, written before anyone acts on it, and read back.

Resuming is replaying: the scheduler runs from the start, and as long as the tape has the row of a command, the row answers
it. A command that does not fit its row is an error that shows both; the first one without a row is where the world takes
over. Rows without an effect outside (a test begins, waits, listens, ends) are written with the next one that has.
"""

from __future__ import annotations

import datetime
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from themis.core.codec import decode_as, encode
from themis.exceptions import ConfigurationError, StorageError
from themis.memory.actions import Line
from themis.memory.commands import (
    Attend,
    Begin,
    Command,
    End,
    Fill,
    Judge,
    Jump,
    Moved,
    Pause,
    Replied,
    Ruled,
    Send,
)
from themis.storage.records import Turn

__all__ = [
    "ASKED_LATER",
    "EXCHANGES",
    "Body",
    "ConversationLog",
    "Numbers",
    "Recalled",
    "Tape",
    "lines_of",
    "read_body",
]

# Kinds of rows that send the agent something; each is followed by a `reply` row.
EXCHANGES = ("intro", "say", "ask", "forget", "fill")
# A question to a judge after the test had ended; no part of the conversation, so replaying passes over it.
ASKED_LATER = "reconsult"
_REMEMBERED_LINES = 256


class Body(msgspec.Struct, omit_defaults=True):
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


@dataclass(frozen=True, slots=True)
class Recalled:
    """A command's stored answer with the row it came from."""

    answer: Any
    body: Body


class Numbers:
    """The next row's number, shared by the conversations of a run."""

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._lock = threading.Lock()

    def take(self) -> int:
        with self._lock:
            self._next += 1
            return self._next - 1


class Tape:
    """The rows of one conversation. `stored` are those of an earlier process, `append` makes new ones durable."""

    def __init__(
        self,
        stored: Iterable[Turn],
        append: Callable[[list[Turn]], None],
        *,
        numbers: Numbers | None = None,
        lane: str | None = None,
        aside: Callable[[str, Body], None] = lambda kind, body: None,
    ) -> None:
        self._stored = iter(stored)
        # Is told of the rows that are no part of the conversation.
        self._aside = aside
        self._next = 0
        self._ahead = self._read()
        self._append = append
        self._numbers = numbers
        # In a run of separate conversations every row carries the id of its test.
        self._lane = lane
        self._unwritten: list[Turn] = []
        # Set while the tape's last row is a message without its reply.
        self.in_doubt = False

    @property
    def is_replaying(self) -> bool:
        return self._ahead is not None

    # --- reading ------------------------------------------------------------------------------------------------------

    def recall(self, command: Command) -> Recalled | None:
        """The stored answer to a command; None where the tape ends."""
        if self._ahead is None:
            return None
        row = self._take()
        body = read_body(row)
        self._compare(command, row, body)
        if not isinstance(command, Send | Fill):
            return Recalled(_event_answer(command, body), body)
        if self._ahead is None:
            self.in_doubt = True
            return None
        answered = self._take()
        reply = read_body(answered)
        if answered.kind != "reply" or reply.reply is None:
            raise _damaged(answered.seq, f"row of kind {answered.kind!r} where a reply was expected")
        elapsed = datetime.timedelta(seconds=reply.elapsed_seconds)
        return Recalled(Replied(body.message, reply.reply, reply.tokens, elapsed), reply)

    def _take(self) -> Turn:
        row = self._ahead
        assert row is not None
        self._ahead = self._read()
        return row

    def _read(self) -> Turn | None:
        for row in self._stored:
            self._next = row.seq + 1
            if row.kind != ASKED_LATER:
                return row
            self._aside(row.kind, read_body(row))
        return None

    def _compare(self, command: Command, row: Turn, body: Body) -> None:
        asked = _describe(command, self._lane)
        stored = _Described(row.kind, row.test_id, _text_of(row.kind, body))
        if asked != stored:
            raise ConfigurationError(
                f"the stored conversation and the tests part at row {row.seq} (turn {body.turn or '-'}):\n"
                f"  stored: {stored}\n  now:    {asked}\n"
                "The tests, their definitions or the engine have changed since. Restore them, or start another run id"
            )

    # --- writing ------------------------------------------------------------------------------------------------------

    def note(self, command: Begin | Pause | Attend | End, now: datetime.datetime) -> None:
        """An event without an effect outside: it is written with the next row that has one."""
        self._unwritten.append(self._row(*_event_row(command, now)))

    def intend(self, command: Send | Fill, message: str, presupplied: str | None, *, durable: bool) -> None:
        """The message that is about to be sent; if `durable`, on the disk when this returns, else with its reply."""
        if self.in_doubt:
            self.in_doubt = False
            return
        body = Body(turn=command.turn, message=message, presupplied=presupplied)
        if isinstance(command, Fill):
            body.filler, body.wanted_tokens = command.number, command.tokens
            row = self._row("fill", None, body)
        else:
            row = self._row(command.kind, command.test_id, body)
        self._unwritten.append(row)
        if durable:
            self.flush()

    def settle(self, command: Send | Fill, body: Body) -> None:
        """The reply to the message; on the disk when this returns."""
        self._write("reply", command.test_id if isinstance(command, Send) else None, body)

    def record(self, command: Judge | Jump, body: Body) -> None:
        """A consultation or a jump with what came of it."""
        if isinstance(command, Judge):
            body.prompt, body.purpose = command.prompt, command.purpose
            self._write("consult", command.test_id, body)
        else:
            body.until = command.to
            self._write("jump", None, body)

    def flush(self) -> None:
        if self._unwritten:
            rows, self._unwritten = self._unwritten, []
            self._append(rows)

    def _write(self, kind: str, test_id: str | None, body: Body) -> None:
        self._unwritten.append(self._row(kind, test_id, body))
        self.flush()

    def _row(self, kind: str, test_id: str | None, body: Body) -> Turn:
        if self._numbers is not None:
            number = self._numbers.take()
        else:
            number, self._next = self._next, self._next + 1
        return Turn(number, kind, test_id if self._lane is None else self._lane, encode(body))


def read_body(row: Turn) -> Body:
    try:
        return decode_as(row.body, Body)
    except (ValueError, msgspec.MsgspecError) as error:
        raise _damaged(row.seq, str(error)) from error


def _damaged(seq: int, what: str) -> StorageError:
    return StorageError(f"row {seq} of the stored conversation cannot be read: {what}")


# --- commands and rows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Described:
    """What must be equal between a command and its row."""

    kind: str
    test_id: str | None
    text: str

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 300 else f"{self.text[:300]}… ({len(self.text)} characters)"
        return f"{self.kind} {self.test_id or ''} {shown}".replace("\n", "\\n")


def _describe(command: Command, lane: str | None) -> _Described:
    match command:
        case Send():
            return _Described(command.kind, lane or command.test_id, command.text)
        case Fill():
            return _Described("fill", lane, f"filler {command.number} of {command.tokens} tokens")
        case Judge():
            return _Described("consult", lane or command.test_id, command.prompt)
        case Jump():
            return _Described("jump", lane, command.to.isoformat())
        case Begin():
            return _Described("begin", lane or command.test_id, f"at {command.tokens} tokens")
        case Pause():
            text = f"until {command.tokens} tokens and {command.time.isoformat()}"
            return _Described("wait", lane or command.test_id, text)
        case Attend():
            return _Described("listen", lane or command.test_id, "")
        case End():
            score = None if command.outcome.grade.failed else command.outcome.grade.score
            return _Described("end", lane or command.outcome.test_id, f"score {score}")


def _text_of(kind: str, body: Body) -> str:
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


def _event_row(command: Begin | Pause | Attend | End, now: datetime.datetime) -> tuple[str, str, Body]:
    match command:
        case Begin():
            return "begin", command.test_id, Body(tokens_total=command.tokens, now=now)
        case Pause():
            return "wait", command.test_id, Body(until_tokens=command.tokens, until=command.time, now=now)
        case Attend():
            return "listen", command.test_id, Body(now=now)
        case End():
            outcome, grade = command.outcome, command.outcome.grade
            score = None if grade.failed else grade.score
            ended = Body(tokens=outcome.tokens, tokens_total=outcome.ended.tokens, now=now, score=score)
            ended.reasons = list(grade.reasons)
            return "end", outcome.test_id, ended


def _event_answer(command: Command, body: Body) -> Any:
    match command:
        case Judge():
            return Ruled(body.answer or "", body.failure)
        case Jump():
            assert body.now is not None
            return Moved(body.now)
        case _:
            return None


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


def lines_of(rows: Iterable[Turn]) -> Iterator[Line]:
    """The exchanges among rows, each message with its reply."""
    # By test: isolated tests may speak side by side.
    sent: dict[str | None, tuple[Turn, Body]] = {}
    for row in rows:
        if row.kind in EXCHANGES:
            sent[row.test_id] = (row, read_body(row))
        elif row.kind == "reply" and row.test_id in sent:
            (message_row, message), reply = sent.pop(row.test_id), read_body(row)
            assert reply.now is not None
            yield Line(
                turn=message.turn,
                test_id=None if message_row.kind in ("fill", "intro") else message_row.test_id,
                message=message.message,
                reply=reply.reply or "",
                now=reply.now,
                question=message_row.kind == "ask",
            )
