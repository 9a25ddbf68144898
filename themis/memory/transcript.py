"""A stored conversation as people and other programs read it: one entry an exchange or event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from themis.memory.tape import REJUDGE, EventBody, StoredEvent, read_events
from themis.storage.records import Turn

Entry = dict[str, Any]


def entries(rows: Iterable[Turn], *, test_id: str | None = None) -> Iterator[Entry]:
    """A conversation entry by entry; a message and its reply are one. `kind` says which fields matter."""
    for event in read_events(rows):
        if test_id is None or event.test_id == test_id:
            yield _format_exchange(event, event.reply) if event.is_exchange else _format_event(event, event.body)


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


def _format_event(event: StoredEvent, body: EventBody) -> Entry:
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


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
