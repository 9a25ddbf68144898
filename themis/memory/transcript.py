"""A stored conversation as people and other programs read it: one entry an exchange or event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from themis.memory.tape import EXCHANGES, FILL_KINDS, REJUDGE, EventBody, read_body
from themis.storage.records import Turn


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
        "test_id": None if row.kind in FILL_KINDS else row.test_id,
        "kind": row.kind,
        "message": sent.message,
        "reply": None if reply is None else reply.reply,
        "question": row.kind == "ask",
        "presupplied": sent.presupplied is not None,
        "now": _format_time(None if reply is None else reply.now),
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
        "now": _format_time(body.now),
        "tokens_total": body.tokens_total or None,
        "cost_usd": body.cost_usd if row.kind in ("consult", REJUDGE) else None,
    }
    optional = {
        "until_tokens": body.until_tokens,
        "until": _format_time(body.until),
        "score": body.score,
        "reasons": body.reasons or None,
        "failure": body.failure,
    }
    return entry | {name: value for name, value in optional.items() if value is not None}


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
