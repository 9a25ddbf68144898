"""Values to JSON bytes and back, for everything that is stored.

msgspec does the work. What it cannot hold exactly (NaN, infinities, lone surrogates, integers beyond 64 bits) goes through
the standard library's JSON, which can: what is read back equals what was written. The one exception is JSON's own: a high
and a low surrogate side by side come back as the character they stand for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from themis.core.fingerprint import plain

__all__ = ["decode", "decode_as", "encode", "jsonable"]

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder(enc_hook=plain)
_DECODER = msgspec.json.Decoder()
_ATOMS = frozenset({str, int, float, bool, type(None)})


def encode(value: Any) -> str:
    """JSON text of a value. NaN survives; keys that are not strings become strings."""
    try:
        data = _ENCODER.encode(value)
    except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError, TypeError, ValueError, RecursionError):
        return _exact(_builtins(value))
    # msgspec writes NaN and infinities as null, so a null may be one of them.
    if b"null" in data and _has_non_finite(builtins := _builtins(value)):
        return _exact(builtins)
    return data.decode("ascii", "strict") if data.isascii() else data.decode("utf-8")


def decode(text: str | bytes) -> Any:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.loads(text)


def decode_as(text: str | bytes, kind: type[T]) -> T:
    """Decode into a type; text that only the standard library can read is converted from plain values."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeEncodeError):
        return msgspec.convert(json.loads(text), type=kind, strict=False)


def jsonable(value: Any) -> Any:
    """The value as plain JSON types: what a row is turned into when it enters."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else str(key): item if type(item) in _ATOMS else jsonable(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return jsonable(plain(value))


def _builtins(value: Any) -> Any:
    """The value in JSON types, spelled as msgspec's encoder spells it."""
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=plain)
    except (msgspec.MsgspecError, TypeError):
        # Keys that msgspec does not take, such as None or a tuple.
        return jsonable(value)


def _exact(builtins: Any) -> str:
    return json.dumps(builtins, ensure_ascii=True, separators=(",", ":"), allow_nan=True)


def _has_non_finite(builtins: Any) -> bool:
    stack = [builtins]
    while stack:
        current = stack.pop()
        if isinstance(current, float):
            if not math.isfinite(current):
                return True
        elif isinstance(current, dict):
            stack.extend(current.values())
        elif isinstance(current, list | tuple):
            stack.extend(current)
    return False
