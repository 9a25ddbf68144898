"""Identity is content: canonical JSON of a value, and its sha256.

The text is the same in every process and Python version: keys sorted, ASCII only, no spaces, dataclasses by class name
and fields, code by the compiled function rather than by its place in memory.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import hashlib
import inspect
import json
import pathlib
import sys
import textwrap
from collections.abc import Mapping, Sequence, Set
from contextvars import ContextVar
from typing import Any

__all__ = ["canonical_json", "code_fingerprint", "describe_object", "digest", "fingerprint", "plain"]

_ENCODER = json.JSONEncoder(
    ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=True, default=lambda value: plain(value)
)


def canonical_json(value: Any) -> str:
    """One text for equal values. NaN and infinities are written as Python writes them."""
    try:
        return _ENCODER.encode(value)
    except TypeError:
        # Keys that are not strings cannot be sorted beside strings: spell every key out.
        return _ENCODER.encode(_string_keys(value))


def fingerprint(value: Any) -> str:
    """Hex sha256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def digest(*parts: str) -> str:
    """128 bits of sha256 over strings that cannot run into each other: the key of a stored answer or item."""
    text = "".join([f"{len(part)}:{part}" for part in parts])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def describe_object(value: Any) -> dict[str, Any]:
    """Class, parameters and code of a metric, extractor or strategy: what must change a score's identity."""
    if id(value) in (open_objects := _OPEN.get()):
        return {"again": type(value).__qualname__}
    token = _OPEN.set(open_objects | {id(value)})
    try:
        return _describe(value)
    finally:
        _OPEN.reset(token)


# What is being described: a function that calls itself by its closure, or two objects that know each other, end there.
_OPEN: ContextVar[frozenset[int]] = ContextVar("open", default=frozenset())


def _describe(value: Any) -> dict[str, Any]:
    described: dict[str, Any]
    if inspect.isfunction(value) or inspect.ismethod(value):
        described = {"function": f"{value.__module__}.{value.__qualname__}", "code": code_fingerprint(value)}
        return {**described, "of": _parameter(value.__self__)} if inspect.ismethod(value) else described
    if isinstance(value, functools.partial):
        return {
            "partial": describe_object(value.func),
            "args": [_parameter(argument) for argument in value.args],
            "keywords": {key: _parameter(argument) for key, argument in sorted(value.keywords.items())},
        }
    kind = value if inspect.isclass(value) else type(value)
    described = {"class": f"{kind.__module__}.{kind.__qualname__}", "code": code_fingerprint(kind)}
    if kind is not value:
        described["parameters"] = {
            name: _parameter(parameter) for name, parameter in sorted(_parameters(value).items())
        }
    return described


def code_fingerprint(value: Any) -> str:
    """Hash of the source of a class or function with its own base classes; of its byte code where there is none."""
    if inspect.isclass(value):
        own = [base for base in value.__mro__ if base is not object and not _is_foundation(base)]
        return digest(*(_source(base) for base in own), *_beside(value))
    text = "".join([_source(value), *_beside(value)])
    cells = [_parameter(cell.cell_contents) for cell in getattr(value, "__closure__", None) or () if _filled(cell)]
    defaults = [_parameter(default) for default in getattr(value, "__defaults__", None) or ()]
    keywords = _parameter(getattr(value, "__kwdefaults__", None) or {})
    return digest(text, canonical_json([cells, defaults, keywords]))


def _beside(value: Any) -> list[str]:
    """Sources of the functions of the same module that the code leans on, directly or through each other."""
    if str(getattr(value, "__module__", "")).startswith("themis."):
        return []  # `_source` has the whole module
    members = [vars(base).values() for base in value.__mro__] if inspect.isclass(value) else [[value]]
    waiting = [member for group in members for member in group if inspect.isfunction(member)]
    found: dict[str, str] = {}
    while waiting:
        function = waiting.pop()
        for name in _names_in(function.__code__):
            other = function.__globals__.get(name)
            if inspect.isfunction(other) and other.__module__ == value.__module__ and name not in found:
                found[name] = _source(other)
                waiting.append(other)
    return [f"{name}:{source}" for name, source in sorted(found.items())]


def _names_in(code: Any) -> set[str]:
    nested = [item for item in code.co_consts if inspect.iscode(item)]
    return set(code.co_names).union(*(_names_in(item) for item in nested))


def _source(value: Any) -> str:
    module = sys.modules.get(getattr(value, "__module__", ""))
    if module is not None and module.__name__.startswith("themis."):
        # Our own classes lean on functions beside them, which decide scores too.
        return _module_source(module)
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        pass
    if inspect.isclass(value):
        # Dunders hold what differs between processes and Python versions; a class's own methods with such names do decide.
        members = {
            name: member
            for name, member in vars(value).items()
            if not name.startswith("__") or inspect.isfunction(member)
        }
        return value.__qualname__ + "".join(f"{name}={_member(member)}" for name, member in sorted(members.items()))
    code = getattr(value, "__code__", None)
    return _bytecode(code) if code is not None else repr(type(value))


def _member(member: Any) -> str:
    if isinstance(member, property):
        member = member.fget
    function = inspect.unwrap(getattr(member, "__func__", member))
    return _bytecode(function.__code__) if inspect.isfunction(function) else canonical_json(_parameter(member))


@functools.lru_cache(maxsize=256)
def _module_source(module: Any) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return str(module.__name__)


def _bytecode(code: Any) -> str:
    return f"{code.co_name}{code.co_code.hex()}{code.co_names}{[_constant(item) for item in code.co_consts]}"


def _constant(item: Any) -> str:
    if inspect.iscode(item):
        return _bytecode(item)
    # `x in {"a", "b"}` compiles to a frozen set, whose order is another in every process.
    return repr(sorted(map(repr, item)) if isinstance(item, frozenset) else item)


def _is_foundation(kind: type) -> bool:
    """Standard library and our own contracts: their code does not decide a score."""
    return kind.__module__ in {"abc", "typing", "builtins", "themis.interfaces", "dataclasses", "enum"}


def _parameters(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    found.update(getattr(value, "__dict__", {}))
    # A leading underscore marks state, not a parameter (caches, loaded models).
    return {name: parameter for name, parameter in found.items() if not name.startswith("_")}


def _slots(kind: type) -> Sequence[str]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _parameter(value: Any) -> Any:
    """A parameter as something canonical JSON can hold; objects by their own description, never by address."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _parameter(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_parameter(item) for item in value]
    if isinstance(value, Set):
        return sorted((_parameter(item) for item in value), key=canonical_json)
    if hasattr(value, "pattern") and hasattr(value, "flags"):  # a compiled regular expression
        return {"pattern": _parameter(value.pattern), "flags": int(value.flags)}
    if dataclasses.is_dataclass(value):
        # It may be a metric within a metric: its code decides too.
        return describe_object(value)
    try:
        return plain(value)
    except TypeError:
        return describe_object(value)


def plain(value: Any) -> Any:
    """JSON types for what JSON does not know; raises TypeError for what has no stable text."""
    if isinstance(value, enum.Enum):
        return _plain_or_same(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"__class__": type(value).__name__, **fields}
    if hasattr(value, "__struct_fields__") and not isinstance(value, type):  # msgspec
        return {"__class__": type(value).__name__, **{name: getattr(value, name) for name in value.__struct_fields__}}
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo is None else value.astimezone(datetime.UTC)
        return moment.isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return {"seconds": value.total_seconds()}
    if isinstance(value, pathlib.PurePath):
        return value.as_posix()
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, Set):
        return sorted((_plain_or_same(item) for item in value), key=canonical_json)
    if isinstance(value, Mapping):
        return dict(value)
    if type(value).__module__.partition(".")[0] == "numpy":
        return value.tolist()
    if hasattr(value, "model_dump"):  # pydantic
        return value.model_dump()
    if hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"no canonical form for {type(value).__name__}")


def _plain_or_same(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str | list | tuple | dict) else plain(value)


def _string_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else f"{type(key).__name__}:{key}": _string_keys(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_string_keys(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return _string_keys(plain(value))


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
