"""A stored conversation as people and other programs read it: one entry an exchange or event, or a `master_log.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from themis.core.codec import encode
from themis.exceptions import DatasetError
from themis.memory.tape import EXCHANGES, REJUDGE, EventBody, read_body
from themis.storage.records import Turn

__all__ = ["entries", "from_master_log", "to_master_log"]

# Codes of the events in a master log.
_SEND, _BEGIN, _END, _SEND_FILL, _REPLY, _REPLY_FILL, _WAIT, _RESET, _LLM, _REGISTER, _DEREGISTER = range(11)
_FILL_KINDS = ("fill", "intro")


def entries(rows: Iterable[Turn], *, test_id: str | None = None) -> Iterator[dict[str, Any]]:
    """A conversation entry by entry; a message and its reply are one. `kind` says which fields matter."""
    # By test: isolated tests may speak side by side.
    sent: dict[str | None, tuple[Turn, EventBody]] = {}
    for row in rows:
        body = read_body(row)
        if row.kind in EXCHANGES:
            sent[row.test_id] = (row, body)
            continue
        if row.kind == "reply" and row.test_id in sent:
            entry = _entry(*sent.pop(row.test_id), body)
        else:
            entry = _event(row, body)
        if test_id is None or entry["test_id"] == test_id:
            yield entry
    for unanswered in sent.values():
        entry = _entry(*unanswered, None)
        if test_id is None or entry["test_id"] == test_id:
            yield entry


def _entry(row: Turn, sent: EventBody, reply: EventBody | None) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "turn": sent.turn,
        "test_id": None if row.kind in _FILL_KINDS else row.test_id,
        "kind": row.kind,
        "message": sent.message,
        "reply": None if reply is None else reply.reply,
        "question": row.kind == "ask",
        "presupplied": sent.presupplied is not None,
        "now": _shown(None if reply is None else reply.now),
        "tokens_total": None if reply is None else reply.tokens_total,
        "cost_usd": None if reply is None else reply.cost_usd,
        "in_doubt": reply is None or reply.in_doubt,
    }


def _event(row: Turn, body: EventBody) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "seq": row.seq,
        "turn": None,
        "test_id": row.test_id,
        "kind": row.kind,
        "message": body.prompt,
        "reply": body.answer,
        "question": False,
        "presupplied": False,
        "now": _shown(body.now),
        "tokens_total": body.tokens_total or None,
        "cost_usd": body.cost_usd if row.kind in ("consult", REJUDGE) else None,
    }
    optional = {
        "until_tokens": body.until_tokens,
        "until": _shown(body.until),
        "score": body.score,
        "reasons": body.reasons or None,
        "failure": body.failure,
    }
    return entry | {name: value for name, value in optional.items() if value is not None}


def _shown(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


# --- master log -------------------------------------------------------------------------------------------------------


def to_master_log(rows: Iterable[Turn]) -> Iterator[str]:
    """The lines of a `master_log.jsonl`."""
    listening = set[str]()
    sent: dict[str | None, tuple[Turn, EventBody]] = {}
    now = datetime.fromtimestamp(0, UTC)
    tokens = 0
    for row in rows:
        body = read_body(row)
        test = row.test_id or ""
        now = body.now or now
        match row.kind:
            case "begin":
                yield _logged(_BEGIN, now, test, {"tokens": body.tokens_total})
            case "wait":
                seconds = 0 if body.until is None else (body.until - now).total_seconds()
                yield _logged(_WAIT, now, test, {"tokens": max(0, (body.until_tokens or 0) - tokens), "time": seconds})
            case "listen":
                listening.add(test)
                yield _logged(_REGISTER, now, test, {})
            case "consult":
                yield _logged(_LLM, now, test, {"response": body.answer or ""})
            case "end":
                if test in listening:
                    listening.discard(test)
                    yield _logged(_DEREGISTER, now, test, {})
                yield _logged(_END, now, test, {})
            case "reply" if row.test_id in sent:
                tokens = body.tokens_total or tokens + body.tokens
                yield from _logged_exchange(*sent.pop(row.test_id), body, now)
            case kind if kind in EXCHANGES:
                sent[row.test_id] = (row, body)


def _logged_exchange(row: Turn, sent: EventBody, reply: EventBody, now: datetime) -> Iterator[str]:
    is_fill = row.kind in _FILL_KINDS
    owner = "" if is_fill else row.test_id or ""
    question = row.kind == "ask"
    began = now - timedelta(seconds=reply.elapsed_seconds)
    message = {"message": sent.message, "is_question": question}
    yield _logged(_SEND_FILL if is_fill else _SEND, began, owner, message)
    answer = {"message": reply.reply or "", "is_question": question}
    yield _logged(_REPLY_FILL if is_fill else _REPLY, now, owner, answer)


def _logged(code: int, now: datetime, test_id: str, data: dict[str, Any]) -> str:
    return json.dumps({"type": code, "timestamp": now.timestamp(), "test_id": test_id, "data": data})


def from_master_log(lines: Iterable[str]) -> Iterator[Turn]:
    """Rows from the lines of a `master_log.jsonl`. A line that cannot be read is an error that names it."""
    seq = turn = total = 0
    unanswered = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        code, now, test, data = _parsed(number, line)
        rows: list[tuple[str, str | None, EventBody]] = []
        match code:
            case 0 | 3:
                turn += 1
                kind = "fill" if code == _SEND_FILL else "ask" if data.get("is_question") else "say"
                unanswered = True
                rows = [(kind, test or None, EventBody(turn=turn, message=str(data.get("message", ""))))]
            case 4 | 5:
                if not unanswered:
                    raise DatasetError(f"line {number} of the log is a reply to nothing")
                reply = EventBody(turn=turn, reply=str(data.get("message", "")), now=now, cost_usd=None)
                rows = [("reply", test or None, reply)]
                unanswered = False
            case 1:
                total = int(data.get("tokens", total) or 0)
                rows = [("begin", test, EventBody(tokens_total=total, now=now))]
            case 2:
                rows = [("end", test, EventBody(now=now))]
            case 6:
                until = now + timedelta(seconds=float(data.get("time") or 0))
                rows = [("wait", test, EventBody(until_tokens=int(data.get("tokens") or 0), until=until, now=now))]
            case 8:
                rows = [("consult", test, EventBody(answer=str(data.get("response", "")), prompt="", now=now))]
            case 9:
                rows = [("listen", test, EventBody(now=now))]
            case 7 | 10:
                rows = []
            case _:
                raise DatasetError(f"line {number} of the log has the unknown type {code}")
        for kind, owner, body in rows:
            yield Turn(seq, kind, owner, encode(body))
            seq += 1


def _parsed(number: int, line: str) -> tuple[int, datetime, str, dict[str, Any]]:
    try:
        event = json.loads(line)
        moment = datetime.fromtimestamp(float(event["timestamp"]), UTC)
        return int(event["type"]), moment, str(event.get("test_id", "")), dict(event.get("data") or {})
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise DatasetError(f"line {number} of the log cannot be read: {error}") from error
