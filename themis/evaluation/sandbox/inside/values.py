"""Plain values as JSON and back, keeping apart what JSON confuses: tuples, sets, bytes, keys that are not text.

Used for tests on their way into the sandbox, and by `wire` between its processes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["Values"]


class Values:
    """Encodes what has a value and refuses the rest; a subclass may know better what to do with objects."""

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is int:
            return value if -_LARGE < value < _LARGE else {"int": hex(value)}
        if kind is list:
            return [self.encode(item) for item in value]
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in _STANDARD:
            return {"standard": [name, self.encode(_STANDARD[name][0](value))]}
        for container, tag in _CONTAINERS.items():
            if isinstance(value, container):
                return {tag: [self.encode(item) for item in container(value)]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in dict.items(value)]}
        for scalar, plain in _SCALARS.items():
            if isinstance(value, scalar):  # an enumeration's member, a subclass of str: its plain value
                return self.encode(plain(value))
        if isinstance(value, bytes | bytearray):
            return {"bytes": bytes(value).hex()}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        return self.encode_object(value)

    def decode(self, encoded: Any) -> Any:
        if isinstance(encoded, list):
            return [self.decode(item) for item in encoded]
        if not isinstance(encoded, dict):
            return encoded
        ((tag, content),) = encoded.items()
        if tag == "dict":
            return {self.decode(key): self.decode(item) for key, item in content}
        if tag == "standard":
            name, plain = content
            module, _, attribute = name.rpartition(".")
            rebuild = _STANDARD[name][1]  # before importing: only what is listed is ever imported
            return rebuild(getattr(importlib.import_module(module), attribute), self.decode(plain))
        if tag in _PLAIN:
            return _PLAIN[tag]([self.decode(item) for item in content] if isinstance(content, list) else content)
        return self.decode_object(tag, content)

    def encode_object(self, value: Any) -> Any:
        raise TypeError(f"a {type(value).__name__} cannot be sent into the sandbox: {value!r:.200}")

    def decode_object(self, tag: str, content: Any) -> Any:
        raise TypeError(f"unknown kind of value {tag!r}")


_AS_THEY_ARE = frozenset({type(None), bool, float, str})
# Python refuses to read decimal numbers of more than 4,300 digits; hexadecimal ones have no such limit.
_LARGE = 2**63
_SCALARS: dict[type, Callable[[Any], Any]] = {int: int.__int__, float: float.__float__, str: str.__str__}
_CONTAINERS: dict[Any, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "bytes": bytes.fromhex,
    "complex": lambda parts: complex(*parts),
}
# Values of the standard library that answers are made of: how each becomes plain, and how it is made again.
_STANDARD: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "builtins.range": (lambda value: [value.start, value.stop, value.step], lambda kind, parts: kind(*parts)),
    "collections.Counter": (dict, lambda kind, plain: kind(plain)),
    "collections.OrderedDict": (lambda value: [list(pair) for pair in value.items()], lambda kind, pairs: kind(pairs)),
    "collections.deque": (list, lambda kind, items: kind(items)),
    "datetime.date": (lambda value: value.isoformat(), lambda kind, text: kind.fromisoformat(text)),
    "datetime.datetime": (lambda value: value.isoformat(), lambda kind, text: kind.fromisoformat(text)),
    "datetime.time": (lambda value: value.isoformat(), lambda kind, text: kind.fromisoformat(text)),
    "datetime.timedelta": (
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda kind, parts: kind(*parts),
    ),
    "decimal.Decimal": (str, lambda kind, text: kind(text)),
    "fractions.Fraction": (lambda value: [value.numerator, value.denominator], lambda kind, parts: kind(*parts)),
    "pathlib.PosixPath": (str, lambda kind, text: kind(text)),
    "uuid.UUID": (str, lambda kind, text: kind(text)),
}
