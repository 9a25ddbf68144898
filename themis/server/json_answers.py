"""JSON that every reader takes, made outside the event loop by whoever calls."""

from __future__ import annotations

from fastapi.responses import Response

from themis.core.codec import json_bytes


def json_answer(value: object, status: int = 200) -> Response:
    """NaN is null, and half a character is replaced: what a model said must never break an answer."""
    return Response(json_bytes(value), status, media_type="application/json", headers={"cache-control": "no-store"})
