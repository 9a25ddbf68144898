"""Master logs (`master_log.jsonl`): one event a line, written from a stored conversation, and read into one.

The only code that knows their format, of our own files and of those of the GoodAI LTM Benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from themis.core.codec import encode
from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.exceptions import DatasetError
from themis.memory.actions import Line, Message
from themis.memory.examples import Definition
from themis.memory.tape import FILL_KINDS, EventBody, StoredEvent
from themis.memory.tape import read_events as read_stored
from themis.storage.runs import Turn, is_storable


class Code(IntEnum):
    """What an event is."""

    SEND = 0
    BEGIN = 1
    END = 2
    SEND_FILL = 3
    REPLY = 4
    REPLY_FILL = 5
    WAIT = 6
    RESET = 7
    LLM = 8
    REGISTER = 9
    DEREGISTER = 10


SENT, REPLIES = (Code.SEND, Code.SEND_FILL), (Code.REPLY, Code.REPLY_FILL)
SPOKEN = SENT + REPLIES
# A longer silence between two events is a jump of the clock, not the slowness of an agent.
_JUMP_SECONDS = 60.0
# A filler that was answered quicker was not answered by a model: its reply was put into the agent's mouth.
_PRESUPPLIED_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a master log. `turn` is the number of an exchange, where it is known: the log does not say it."""

    code: Code
    now: datetime
    test_id: str
    data: Definition
    turn: int = 0

    @property
    def text(self) -> str:
        return str(self.data.get("message", ""))


# --- writing ----------------------------------------------------------------------------------------------------------


def to_master_log(rows: Iterable[Turn]) -> Iterator[str]:
    """The lines of a `master_log.jsonl`."""
    for event in list_events(rows):
        yield json.dumps(
            {"type": event.code, "timestamp": event.now.timestamp(), "test_id": event.test_id, "data": event.data}
        )


def list_events(rows: Iterable[Turn]) -> Iterator[Event]:
    """What a stored conversation tells in a master log."""
    listening = set[str]()
    now = datetime.fromtimestamp(0, UTC)
    tokens = 0
    for event in read_stored(rows):
        body, test = event.reply or event.body, event.test_id or ""
        now = body.now or now
        match event.kind:
            case "begin":
                yield Event(Code.BEGIN, now, test, {"tokens": body.tokens_total})
            case "wait":
                seconds = 0 if body.until is None else (body.until - now).total_seconds()
                yield Event(
                    Code.WAIT, now, test, {"tokens": max(0, (body.until_tokens or 0) - tokens), "time": seconds}
                )
            case "listen":
                listening.add(test)
                yield Event(Code.REGISTER, now, test, {})
            case "consult":
                yield Event(Code.LLM, now, test, {"response": body.answer or ""})
            case "end":
                if test in listening:
                    listening.discard(test)
                    yield Event(Code.DEREGISTER, now, test, {})
                yield Event(Code.END, now, test, {})
            case _ if event.reply is not None:
                tokens = body.tokens_total or tokens + body.tokens
                yield from _list_exchange(event, event.reply, now)


def _list_exchange(event: StoredEvent, reply: EventBody, now: datetime) -> Iterator[Event]:
    is_fill, question, test = event.kind in FILL_KINDS, event.kind == "ask", event.test_id or ""
    began = now - timedelta(seconds=reply.elapsed_seconds)
    for code, moment, text in ((SENT[is_fill], began, event.body.message), (REPLIES[is_fill], now, reply.reply or "")):
        yield Event(code, moment, test, {"message": text, "is_question": question}, event.body.turn)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_events(lines: Iterable[str], on_broken: Callable[[int, str], None]) -> Iterator[Event]:
    """The events of a log.

    Args:
        lines: The log's lines.
        on_broken: Called with the number of a line that cannot be read, is of an unknown type or replies to nothing, and
            with what is wrong; the line is left out.
    """
    waiting = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            event = _parse_event(line)
            if event.code in REPLIES and not waiting:
                raise ValueError("a reply to nothing")
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            on_broken(number, str(error))
            continue
        if event.code in SPOKEN:
            waiting = event.code in SENT
        yield event


def _parse_event(line: str) -> Event:
    content = json.loads(line)
    moment = datetime.fromtimestamp(float(content["timestamp"]), UTC)
    code = int(content["type"])
    if not 0 <= code < len(Code):
        raise ValueError(f"unknown type {code}")
    data = dict(content.get("data") or {})
    if code == Code.WAIT:
        data |= {"tokens": int(data.get("tokens") or 0), "time": float(data.get("time") or 0)}
        moment + timedelta(seconds=data["time"])  # or the wait ends at no moment there is
    test_id = str(content.get("test_id") or "")
    if not is_storable(test_id):
        raise ValueError(f"test_id {test_id[:80]!r} holds a NUL or half a character, which no database can store")
    return Event(Code(code), moment, test_id, data)


def from_master_log(lines: Iterable[str]) -> list[Turn]:
    """The rows of a conversation from the lines of its log. A line that cannot be read is an error that names it."""

    def refuse(number: int, what: str) -> None:
        raise DatasetError(f"line {number} of the log cannot be read: {what}")

    return MasterLog(list(read_events(lines, refuse))).turns()


@dataclass
class LoggedTest:
    """One test's part of the log."""

    test_id: str
    began: tuple[int, datetime]
    ended: tuple[int, datetime] | None = None
    messages: list[Message] = field(default_factory=list)
    first_send: int | None = None
    end: int | None = None
    listened_from_turn: int | None = None
    seconds: float = 0.0

    def place(self) -> dict[str, object]:
        ended = self.ended or self.began
        return {
            "began": {"tokens": self.began[0], "now": self.began[1]},
            "ended": {"tokens": ended[0], "now": ended[1]},
            "listened_from_turn": self.listened_from_turn,
            "agent_seconds": self.seconds,
        }


class MasterLog:
    """A log gone through once: the exchanges with their tokens, and each test's part.

    Args:
        events: What was logged.
        definitions: Of tests, by their ids, where they are known: how many lines their scripts have.
    """

    def __init__(self, events: Sequence[Event], definitions: Mapping[str, Definition] | None = None) -> None:
        self._events = events
        self._definitions = definitions or {}
        self._count = tokenizer(DEFAULT_TOKENIZER)
        self._parts: dict[str, LoggedTest] = {}
        self.lines: list[Line] = []
        self.judge_calls: dict[str, int] = {}
        self.replies = 0
        self._turns: list[tuple[str, str | None, EventBody]] = []
        # The last message that each test sends.
        self._last = {event.test_id: event for event in events if event.code == Code.SEND}
        self._read()

    def part(self, test_id: str) -> LoggedTest | None:
        return self._parts.get(test_id)

    def measure(self, test_id: str) -> tuple[int, int]:
        """Tokens and characters of everything said from a test's first message until its end."""
        part = self._parts[test_id]
        end = len(self._events) if part.end is None else part.end
        text = "".join(event.text for event in self._events[part.first_send or 0 : end] if event.code in SPOKEN)
        return self._count(text), len(text)

    def turns(self, scores: Mapping[str, tuple[float, list[str]]] | None = None) -> list[Turn]:
        """The rows of the conversation; a test's end carries its score and the reasons for it, where they are known."""
        turns = []
        for seq, (kind, test_id, body) in enumerate(self._turns):
            score = (scores or {}).get(test_id or "")
            if kind == "end" and score is not None:
                body.score, body.reasons = score
            turns.append(Turn(seq, kind, test_id, encode(body)))
        return turns

    def _read(self) -> None:
        tokens = turn = listening = 0
        sent: Event | None = None
        sent_place = 0
        before: datetime | None = None
        for place, event in enumerate(self._events):
            if before is not None and (event.now - before).total_seconds() > _JUMP_SECONDS and sent is None:
                self._add("jump", None, EventBody(now=event.now, until=event.now))
            before = event.now
            part = self._parts.get(event.test_id)
            match event.code:
                case Code.BEGIN:
                    if part is None:
                        self._parts[event.test_id] = LoggedTest(event.test_id, (tokens, event.now))
                        self._add("begin", event.test_id, EventBody(tokens_total=tokens, now=event.now))
                case Code.SEND | Code.SEND_FILL:
                    sent, sent_place = event, place
                case Code.REPLY | Code.REPLY_FILL if sent is not None:
                    turn += 1
                    used = self._count(sent.text) + self._count(event.text)
                    self._exchange(sent, event, turn, tokens, used, may_be_presupplied=not listening)
                    part = self._parts.get(sent.test_id)
                    if part is not None and part.first_send is None:
                        part.first_send = sent_place
                    tokens += used
                    sent = None
                case Code.WAIT if part is not None:
                    wanted = event.data["tokens"]
                    until = event.now + timedelta(seconds=event.data["time"])
                    self._add(
                        "wait", event.test_id, EventBody(until_tokens=tokens + wanted, until=until, now=event.now)
                    )
                case Code.LLM:
                    self.judge_calls[event.test_id] = self.judge_calls.get(event.test_id, 0) + 1
                    answer = str(event.data.get("response", ""))
                    self._add("consult", event.test_id, EventBody(answer=answer, prompt="", now=event.now))
                case Code.REGISTER if part is not None:
                    listening += 1
                    part.listened_from_turn = turn
                    self._add("listen", event.test_id, EventBody(now=event.now))
                case Code.DEREGISTER:
                    listening = max(0, listening - 1)
                case Code.END if part is not None:
                    part.end, part.ended = place, part.ended or (tokens, event.now)
                    self._add("end", event.test_id, EventBody(tokens_total=tokens, now=event.now))

    def _exchange(
        self,
        sent: Event,
        reply: Event,
        turn: int,
        tokens: int,
        used: int,
        *,
        may_be_presupplied: bool,
    ) -> None:
        seconds = max(0.0, (reply.now - sent.now).total_seconds())
        is_fill = sent.code == Code.SEND_FILL
        question = bool(sent.data.get("is_question"))
        part = None if is_fill else self._parts.get(sent.test_id)
        kind = "intro" if is_fill and turn == 1 else "fill" if is_fill else "ask" if question else "say"
        if part is not None:
            part.seconds += seconds
            if _is_farewell(
                self._definitions.get(sent.test_id, {}), part, question, self._last.get(sent.test_id) is sent
            ):
                kind = "forget"
                # What follows the last answer is no part of the distance.
                part.ended = (tokens, sent.now)
            else:
                part.messages.append(
                    Message(turn, sent.text, reply.text, question, not question, tokens, reply.now, None)
                )
        presupplied = is_fill and may_be_presupplied and seconds < _PRESUPPLIED_SECONDS
        self.replies += not presupplied
        owner = None if is_fill else sent.test_id
        self._add(kind, owner, EventBody(turn=turn, message=sent.text, presupplied=reply.text if presupplied else None))
        self._add(
            "reply",
            owner,
            EventBody(
                turn=turn,
                reply=reply.text,
                tokens=used,
                tokens_total=tokens + used,
                elapsed_seconds=seconds,
                now=reply.now,
                cost_usd=None,
                seconds=0.0 if presupplied else seconds,
            ),
        )
        self.lines.append(Line(turn, owner, sent.text, reply.text, reply.now, question))

    def _add(self, kind: str, test_id: str | None, body: EventBody) -> None:
        self._turns.append((kind, test_id, body))


def _is_farewell(definition: Definition, part: LoggedTest, question: bool, last: bool) -> bool:
    """Whether a message asks to forget the test: it comes after the script, or ends a test that has none written down."""
    lines = len(definition.get("is_question") or [])
    return not question and last and len(part.messages) >= lines and bool(part.messages)
