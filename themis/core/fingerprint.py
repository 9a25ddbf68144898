"""Identity is content: the sha256 of a value's canonical JSON.

It is the same in every process and Python version: dataclasses by class name and fields, code by the compiled function
rather than by its place in memory.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Mapping, Sequence, Set
from contextvars import ContextVar
from types import CodeType, ModuleType
from typing import Any

from themis.core.codec import canonical_json, json_default


def fingerprint(value: object) -> str:
    """Hex sha256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def digest(*parts: str) -> str:
    """128 bits of sha256 over strings that cannot run into each other: the key of a stored answer or item."""
    text = "".join([f"{len(part)}:{part}" for part in parts])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def describe_object(value: object) -> dict[str, object]:
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


def _describe(value: object) -> dict[str, object]:
    described: dict[str, object]
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


def code_fingerprint(value: object) -> str:
    """Hash of the source of a class or function with its own base classes; of its byte code where there is none."""
    if inspect.isclass(value):
        own = [base for base in value.__mro__ if base is not object and not _is_foundation(base)]
        return digest(*(_source(base) for base in own), *_beside(value))
    text = "".join([_source(value), *_beside(value)])
    cells = [_parameter(cell.cell_contents) for cell in getattr(value, "__closure__", None) or () if _filled(cell)]
    defaults = [_parameter(default) for default in getattr(value, "__defaults__", None) or ()]
    keywords = _parameter(getattr(value, "__kwdefaults__", None) or {})
    return digest(text, canonical_json([cells, defaults, keywords]))


def _beside(value: object) -> list[str]:
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


def _names_in(code: CodeType) -> set[str]:
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
def _module_source(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return str(module.__name__)


def _bytecode(code: CodeType) -> str:
    return f"{code.co_name}{code.co_code.hex()}{code.co_names}{[_constant(item) for item in code.co_consts]}"


def _constant(item: object) -> str:
    if inspect.iscode(item):
        return _bytecode(item)
    # `x in {"a", "b"}` compiles to a frozen set, whose order is another in every process.
    return repr(sorted(map(repr, item)) if isinstance(item, frozenset) else item)


def _is_foundation(kind: type) -> bool:
    """Standard library and our own contracts: their code does not decide a score."""
    return kind.__module__ in {"abc", "typing", "builtins", "themis.interfaces", "dataclasses", "enum"}


def _parameters(value: object) -> dict[str, object]:
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


def _parameter(value: object) -> object:
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
        return json_default(value)
    except TypeError:
        return describe_object(value)


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
