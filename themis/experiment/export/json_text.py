"""JSON that every reader takes: UTF-8, and null for what JSON has no number for."""

from __future__ import annotations

import json
import math
from typing import Any

from themis.core.codec import jsonable

__all__ = ["json_bytes", "strict"]


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """The text as people can read it; a string that UTF-8 cannot hold (half a surrogate pair) is escaped instead."""
    plain = strict(value)
    try:
        return json.dumps(plain, ensure_ascii=False, indent=indent).encode()
    except UnicodeEncodeError:
        return json.dumps(plain, ensure_ascii=True, indent=indent).encode("ascii")


def strict(value: Any) -> Any:
    """The value in JSON types; NaN and infinities are null, because JSON has no word for them."""
    return _finite(_spelled(value))


def _spelled(value: Any) -> Any:
    try:
        return jsonable(value)
    except TypeError:
        # Something of the user's own in a row or in a score's details.
        if isinstance(value, dict):
            return {str(key): _spelled(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [_spelled(item) for item in value]
        return str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
