"""What a value is, as JSON that is the same in every process: by content, never by its place in memory.

What has no such form is named instead, so that whoever reads the description knows that it does not say everything.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import inspect
import logging
import os
import pathlib
import re
import threading
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from themis.core.codec import canonical_json, digest, json_default
from themis.core.patterns import LazyPattern

__all__ = ["HOOK", "Values", "relative_to_project", "shorten", "type_name"]

# An object says by this attribute, or method without arguments, what it is made of.
HOOK = "__themis_identity__"

_ATOMS = frozenset({type(None), bool, int, float, str})
_LONGEST_TEXT = 200
_MOST_ITEMS = 50
_LARGEST = 1_000_000
_TEXTS = (decimal.Decimal, fractions.Fraction, complex, uuid.UUID, range, slice)
_TIMES = (datetime.date, datetime.time, datetime.timedelta, pathlib.PurePath)
# They hold nothing that could decide a score.
_EMPTY = (
    *(type(threading.Lock()), type(threading.RLock()), threading.Event, threading.Condition, threading.Semaphore),
    *(
        threading.local,
        logging.Logger,
        logging.LoggerAdapter,
        type(Ellipsis),
        type(NotImplemented),
        typing.TypeVar,
        typing.ParamSpec,
    ),
)
_CODE = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType),
    *(types.MethodDescriptorType, types.ClassMethodDescriptorType, type),
)


def type_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def shorten(described: object) -> object:
    """Short values as they are, long ones as a digest that changes with them."""
    text = canonical_json(described)
    if len(text) <= _LONGEST_TEXT:
        return described
    if isinstance(described, str):
        return {"text": described[:60] + "…", "sha256": digest(described)}
    return {"value": f"{len(text):,} characters of JSON", "sha256": digest(text)}


def relative_to_project(value: object, file: object) -> object:
    """A path near the module that names it, from there: a project that is moved, or copied to another machine, stays the same.

    Args:
        value: Anything; only absolute paths, as text or objects, are changed.
        file: The module's.
    """
    if not isinstance(value, str | pathlib.PurePath) or not isinstance(file, str) or not os.path.isabs(value):
        return value
    folder = os.path.dirname(os.path.abspath(file))
    try:
        shared, relative = pathlib.PurePath(os.path.commonpath([folder, value])), os.path.relpath(value, folder)
    except ValueError:  # on another drive
        return value
    is_near = len(shared.parts) >= _PARTS_OF_A_PROJECT and relative.count("..") <= _LEVELS_UP
    return pathlib.PurePath(relative) if is_near else value


_PARTS_OF_A_PROJECT = 3
_LEVELS_UP = 4


class Values:
    """Describes values, and remembers what could not be described.

    `describe_code` is given every function and class that a value holds, `private` says which underscored attributes of a
    class are parameters all the same, and `is_read` whether a class's code is known by what it says.
    """

    def __init__(
        self,
        describe_code: Callable[[Any, str], object],
        visit: Callable[[object], None],
        private: Callable[[type], Iterable[str]],
        is_read: Callable[[type], bool],
    ) -> None:
        self.unknown: list[str] = []
        self._describe_code = describe_code
        self._visit = visit
        self._private = private
        self._is_read = is_read
        self._open: dict[int, int] = {}
        self._count = 0

    def describe(self, value: object, where: str, *, in_any_order: bool = False) -> object:
        """The value as JSON; `where` names its place, in case it cannot be known."""
        if type(value) in _ATOMS:
            return value
        if id(value) in self._open:
            return {"again": type(value).__qualname__}
        self._count += 1
        if self._count > _LARGEST:
            return self._name(where, value)
        self._open[id(value)] = 1
        try:
            if not isinstance(value, Mapping) or _is_hooked(value):
                return self._known(value, where)
            found = self._mapping(value, where, in_any_order)
            return {**self._object(value, where), "mapping": found} if self._is_read(type(value)) else found
        except Exception:  # boundary: what is asked of an object runs the code of its class
            return self._name(where, value)
        finally:
            del self._open[id(value)]

    def _name(self, where: str, value: object) -> dict[str, object]:
        label = f"{where} ({type_name(type(value))})"
        self.unknown.append(label)
        return {"unknown": [label]}

    def _known(self, value: Any, where: str) -> object:
        kind = type(value)
        if not isinstance(value, type) and _is_hooked(value):
            return self._hooked(value, where)
        if isinstance(value, enum.Enum):
            self._visit(kind)
            return {"enum": f"{kind.__qualname__}.{value.name}", "value": self.describe(value.value, where)}
        if isinstance(value, _CODE):
            return self._describe_code(value, where)
        if (code := self._callable(value, where)) is not None:
            return code
        if isinstance(value, _EMPTY):
            return {"class": type_name(kind)}
        if isinstance(value, types.ModuleType):
            self._visit(value)
            return {"module": value.__name__}
        if isinstance(value, re.Pattern | LazyPattern):
            pattern = value.compile() if isinstance(value, LazyPattern) else value
            return {"pattern": self.describe(pattern.pattern, where), "flags": int(pattern.flags)}
        if (plain := self._plain(value, where)) is not None:
            return plain
        return self._object(value, where)

    def _callable(self, value: Any, where: str) -> object | None:
        if isinstance(value, functools.partial):
            return {
                "partial": self.describe(value.func, where),
                "args": [self.describe(argument, where) for argument in value.args],
                "keywords": {key: self.describe(item, where) for key, item in sorted(value.keywords.items())},
            }
        if isinstance(value, types.MethodType):
            return {"method": self.describe(value.__func__, where), "of": self.describe(value.__self__, where)}
        if isinstance(value, staticmethod | classmethod):
            return self.describe(value.__func__, where)
        if isinstance(value, property):
            return [self.describe(part, where) for part in (value.fget, value.fset, value.fdel) if part is not None]
        if isinstance(value, functools.cached_property):
            return self.describe(value.func, where)
        if type(value).__name__ == "_lru_cache_wrapper" and type(value).__module__ == "functools":
            return self.describe(value.__wrapped__, where)
        if type(value).__module__ in ("typing", "types") and hasattr(value, "__origin__"):  # list[int]
            return {"type": str(value)}
        return None

    def _plain(self, value: Any, where: str) -> object | None:
        """Content that has a text or bytes of its own."""
        kind = type(value)
        if isinstance(value, str | int | float) and type(value) not in _ATOMS and not _module_is(kind, "numpy"):
            self._visit(kind)
            base = next(base for base in kind.__mro__ if base in _ATOMS)
            return {"class": type_name(kind), "value": base(value)}
        if isinstance(value, bytes | bytearray | memoryview):
            content = bytes(value)
            return {"bytes": content.hex()} if len(content) <= 32 else _hash_bytes("bytes", content)
        if isinstance(value, _TIMES):
            return {kind.__name__ if not isinstance(value, pathlib.PurePath) else "path": json_default(value)}
        if isinstance(value, _TEXTS):
            return {kind.__name__: str(value)}
        if isinstance(value, list | tuple) and not hasattr(value, "_asdict"):
            return self._items(value, where)
        if isinstance(value, Set):
            self._visit(kind)
            return {"set": sorted((self.describe(item, where) for item in value), key=canonical_json)}
        if isinstance(value, types.SimpleNamespace):
            return {"class": "SimpleNamespace", "parameters": self._mapping(vars(value), where, True)}
        return self._table(value, where)

    def _items(self, value: Any, where: str) -> object:
        items = [self.describe(item, f"{where}[{index}]") for index, item in enumerate(value)]
        shown: object = items
        if len(items) > _MOST_ITEMS:
            shown = {"items": len(items), "sha256": digest(canonical_json(items))}
        if type(value) in (list, tuple):
            return shown
        self._visit(type(value))
        return {"class": type_name(type(value)), "value": shown}

    def _table(self, value: Any, where: str) -> object | None:
        """Arrays and tables of numpy and pandas, by what is in them."""
        kind = type(value)
        self._visit(kind)
        if _module_is(kind, "numpy"):
            if not hasattr(value, "dtype") or not hasattr(value, "tobytes"):
                return None
            if value.dtype.hasobject:
                return {"array": self.describe(value.tolist(), where), "shape": list(value.shape)}
            if value.shape == ():
                return self.describe(value.item(), where)
            return {**_hash_bytes("array", value.tobytes()), "dtype": str(value.dtype), "shape": list(value.shape)}
        if _module_is(kind, "pandas") and hasattr(value, "to_numpy"):
            columns = {str(name): value[name].to_numpy() for name in value} if hasattr(value, "columns") else {}
            parts = columns or {"values": value.to_numpy()}
            index = value.index.to_numpy() if hasattr(value, "index") else None
            described = {name: self.describe(part, where) for name, part in parts.items()}
            return {"class": type_name(kind), "columns": list(described.items()), "index": self.describe(index, where)}
        return None

    def _mapping(self, value: Mapping[Any, object], where: str, in_any_order: bool = False) -> object:
        found: dict[str, object] = {}
        for key, item in value.items():
            text = key if type(key) is str else f"{type(key).__name__}:{canonical_json(self.describe(key, where))}"
            found[text] = self.describe(item, f"{where}[{key!r}]" if type(key) in _ATOMS else where)
        described: dict[str, object] = found
        if not in_any_order and list(found) != sorted(found):
            # Code may go through a mapping: its order counts as it does for Python.
            described = {**found, "in this order": list(found)}
        factory = getattr(value, "default_factory", None)
        if factory is not None:
            described = {**described, "otherwise": self.describe(factory, where)}
        if len(found) > _MOST_ITEMS:
            described = {"entries": len(found), "sha256": digest(canonical_json(described))}
        return described

    # --- objects ---------------------------------------------------------------------------------------------------------

    def _hooked(self, value: Any, where: str) -> object:
        self._visit(type(value))
        try:
            said = getattr(value, HOOK)
            said = said() if callable(said) else said
        except Exception:  # boundary: the hook is the user's code
            return self._name(f"{where}, whose {HOOK} fails", value)
        return {"class": _class_name(type(value), self._is_read), "identity": self.describe(said, f"{where}.{HOOK}")}

    def _object(self, value: Any, where: str) -> dict[str, object]:
        kind = type(value)
        self._visit(kind)
        if self._is_read(kind) or dataclasses.is_dataclass(value):
            parameters = self._parameters(value)
        elif (fields := _fields(value)) is not None:
            parameters = fields
        else:
            return self._taken_apart(value, where)
        described: dict[str, object] = {"class": _class_name(kind, self._is_read)}
        described["parameters"] = {
            name: self.describe(item, f"attribute `{name}` of {where}") for name, item in sorted(parameters.items())
        }
        if isinstance(value, list | tuple | Set):
            described["items"] = [self.describe(item, where) for item in value]
        if "__wrapped__" in getattr(value, "__dict__", {}):
            described["wraps"] = self.describe(value.__wrapped__, where)
        return described

    def _parameters(self, value: Any) -> dict[str, object]:
        """What an object was given: its fields, and its attributes without a leading underscore, which marks state.

        Underscored attributes that hold what the constructor was given count too, where they are plain values.
        """
        kind = type(value)
        fields = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
        slots = [name for base in kind.__mro__ for name in _slots(base)]
        found = {name: getattr(value, name) for name in [*slots, *fields] if hasattr(value, name)}
        found.update(getattr(value, "__dict__", {}))
        made_later = {
            name
            for base in kind.__mro__
            for name, member in vars(base).items()
            if isinstance(member, functools.cached_property)
        }
        given = set(self._private(kind))
        return {
            name: item
            for name, item in found.items()
            if name not in made_later
            and (name in fields or not name.startswith("_") or (name in given and _is_plain(item)))
        }

    def _taken_apart(self, value: Any, where: str) -> dict[str, object]:
        """An object of somebody else's class by what a pickle would hold of it; what cannot be pickled cannot be known."""
        try:
            parts = value.__reduce_ex__(4)
        except Exception:  # boundary: whatever the class does
            return self._name(where, value)
        if isinstance(parts, str):
            return {"name": parts}
        made_by, arguments, *more = parts
        state = [list(part) if hasattr(part, "__next__") else part for part in more if part is not None]
        self._visit(type(value))
        before = len(self.unknown)
        described = {
            "class": type_name(type(value)),
            "made": [self.describe(one, where) for one in (made_by, *arguments) if one is not type(value)],
            "state": [self.describe(one, where) for one in state],
        }
        if len(self.unknown) == before:
            return {"class": described["class"], "sha256": digest(canonical_json(described))}
        # One name for the whole: its insides are not the user's.
        del self.unknown[before:]
        return self._name(where, value)


def _class_name(kind: type, is_read: Callable[[type], bool]) -> str:
    # The module of the user's own code is no part of it: a class may move, and a script be imported.
    is_own = is_read(kind) and kind.__module__.partition(".")[0] != "themis"
    return kind.__qualname__ if is_own else type_name(kind)


def _is_hooked(value: object) -> bool:
    return inspect.getattr_static(value, HOOK, None) is not None


def _module_is(kind: type, package: str) -> bool:
    return kind.__module__.partition(".")[0] == package


def _hash_bytes(name: str, content: bytes) -> dict[str, object]:
    return {name: len(content), "sha256": hashlib.sha256(content).hexdigest()[:32]}


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _fields(value: Any) -> dict[str, object] | None:
    """The fields of an object that is nothing but fields: named tuples, msgspec's, pydantic's and attrs' classes."""
    for of_class in ("_fields", "__struct_fields__", "__pydantic_fields__"):
        names = getattr(type(value), of_class, None)
        if isinstance(names, tuple | dict):
            return {name: getattr(value, name) for name in names}
    if hasattr(type(value), "__attrs_attrs__"):
        return {field.name: getattr(value, field.name) for field in type(value).__attrs_attrs__}
    return None


def _is_plain(value: object, depth: int = 0) -> bool:
    if isinstance(value, Mapping):
        return depth < 4 and all(_is_plain(item, depth + 1) for item in (*value.keys(), *value.values()))
    if isinstance(value, list | tuple | Set):
        return depth < 4 and all(_is_plain(item, depth + 1) for item in value)
    return type(value) in _ATOMS or isinstance(
        value, (*_TIMES, *_TEXTS, *_CODE, bytes, enum.Enum, re.Pattern, LazyPattern)
    )
