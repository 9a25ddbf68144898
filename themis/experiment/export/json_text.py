"""JSON that every reader takes: UTF-8, and null for what JSON has no number for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import IO, Any

from themis.core.codec import jsonable

__all__ = ["JsonObject", "as_text", "json_bytes", "strict"]


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """The text as people can read it. Half a surrogate pair, which UTF-8 cannot hold, becomes the replacement character."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent).encode()
    except (TypeError, ValueError):
        pass  # something that JSON has no word for: rare, and worth another pass only then
    text = json.dumps(strict(value), ensure_ascii=False, indent=indent)
    # Escaping the half would be JSON too, but strict readers refuse it.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


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


def as_text(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_bytes(value).decode()


class JsonObject:
    """Writes one JSON object field by field, so that a long list is never held."""

    def __init__(self, file: IO[bytes], indent: int | None = 2) -> None:
        self._file = file
        self._indent = indent
        self._newline = b"" if indent is None else b"\n" + b" " * indent
        self._before = b"{"

    def put(self, name: str, value: Any) -> None:
        text = json_bytes(value, self._indent).replace(b"\n", self._newline or b"\n")
        self._start(name)
        self._file.write(text)

    def put_each(self, name: str, values: Iterable[Any]) -> int:
        """A list with one element a line; returns how many."""
        self._start(name)
        count = 0
        before = b"["
        for value in values:
            self._file.write(before + b"\n" + json_bytes(value))
            before = b","
            count += 1
        self._file.write(b"\n]" if count else b"[]")
        return count

    def end(self) -> None:
        self._file.write(b"\n}\n")

    def _start(self, name: str) -> None:
        self._file.write(self._before + self._newline + json_bytes(name) + b": ")
        self._before = b","
