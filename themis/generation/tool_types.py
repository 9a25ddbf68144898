"""Python's types as JSON schemas, and JSON values as what these types are: an enum's member, a data class, a tuple.

`tool_schemas` asks for the types of a function's parameters.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import inspect
import pathlib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from themis.exceptions import ConfigurationError
from themis.generation.docstrings import read_docstring

__all__ = [
    "GivenRow",
    "JsonType",
    "Problem",
    "Schema",
    "Validator",
    "find_schema_problem",
    "is_row",
    "make_validator",
    "read_type",
    "resolve_hints",
]

Schema: TypeAlias = dict[str, object]
Convert: TypeAlias = Callable[[object], object]


# Annotations that say nothing.
_ANYTHING: tuple[object, ...] = (inspect.Parameter.empty, typing.Any, object)


class _RowMark:
    """Marks a parameter that is given the row."""


# A parameter of any name with this annotation is given the sample's row, and not shown to the model.
GivenRow = Annotated[Mapping[str, object], _RowMark()]


class JsonType(NamedTuple):
    """How a model is to write a value, and what is made of what it wrote; None where that is the value itself."""

    schema: Schema
    convert: Convert | None = None

    def read(self, value: object) -> object:
        """The value as the tool takes it.

        Raises:
            ValueError: It has the right shape but cannot be made, such as the 30th of February.
        """
        return value if self.convert is None else self.convert(value)


def is_row(name: str, annotation: object) -> bool:
    """Whether a parameter is given the row: marked so, or called `row` and not annotated as something else.

    >>> is_row("row", dict), is_row("row", int), is_row("sample", GivenRow)
    (True, False, True)
    """
    if get_origin(annotation) is Annotated:
        return any(isinstance(mark, _RowMark) for mark in get_args(annotation)[1:])
    kind = get_origin(annotation) or annotation
    return name == "row" and (kind in _ANYTHING or (isinstance(kind, type) and issubclass(kind, Mapping)))


def resolve_hints(documented: object, label: str) -> dict[str, object]:
    """The annotations of a function or class with their names looked up.

    Args:
        documented: What is annotated.
        label: What errors call it.

    Raises:
        ConfigurationError: An annotation names something that is not there.
    """
    try:
        return dict(typing.get_type_hints(documented, include_extras=True))
    except Exception as error:  # boundary: annotations are the user's code
        raise ConfigurationError(f"{label}: its annotations cannot be read: {type(error).__name__}: {error}") from error


_SIMPLE: dict[object, JsonType] = {
    **dict.fromkeys(_ANYTHING, JsonType({})),
    str: JsonType({"type": "string"}),
    bool: JsonType({"type": "boolean"}),
    # JSON has one kind of number: 3.0 is a whole one.
    int: JsonType({"type": "integer"}, lambda value: int(value) if isinstance(value, float) else value),
    float: JsonType({"type": "number"}, lambda value: float(value) if isinstance(value, int) else value),
    type(None): JsonType({"type": "null"}),
    None: JsonType({"type": "null"}),
    list: JsonType({"type": "array"}),
    tuple: JsonType({"type": "array"}, lambda value: tuple(_items(value))),
    set: JsonType({"type": "array", "uniqueItems": True}, lambda value: set(_items(value))),
    dict: JsonType({"type": "object"}),
    datetime.datetime: JsonType(
        {"type": "string", "format": "date-time"}, lambda value: datetime.datetime.fromisoformat(str(value))
    ),
    datetime.date: JsonType(
        {"type": "string", "format": "date"}, lambda value: datetime.date.fromisoformat(str(value))
    ),
    datetime.time: JsonType(
        {"type": "string", "format": "time"}, lambda value: datetime.time.fromisoformat(str(value))
    ),
    pathlib.Path: JsonType({"type": "string"}, lambda value: pathlib.Path(str(value))),
}
_CONTAINERS: dict[object, Callable[[Iterable[object]], object]] = {
    list: list, set: set, frozenset: frozenset, collections.abc.Sequence: list, collections.abc.MutableSequence: list,
    collections.abc.Iterable: list, collections.abc.Collection: list, collections.abc.Set: set,
}  # fmt: skip
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_SCALARS = (str, int, float, bool, type(None))
_WRAPPERS = (typing.Required, typing.NotRequired, typing.Final, typing.ClassVar)


def read_type(annotation: object, label: str, within: tuple[object, ...] = ()) -> JsonType:
    """The schema of a type, and how its values are made.

    Args:
        annotation: As it is resolved.
        label: What it belongs to, for errors.
        within: Classes that it stands inside of.

    Raises:
        ConfigurationError: A model could not write such a value.

    >>> read_type(list[Literal["a", "b"]] | None, "f").schema
    {'anyOf': [{'type': 'array', 'items': {'enum': ['a', 'b'], 'type': 'string'}}, {'type': 'null'}]}
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments, label, within)
    if annotation in _SIMPLE:
        simple = _SIMPLE[annotation]
        return JsonType(dict(simple.schema), simple.convert)
    if origin is Literal:
        return JsonType(_enum_schema(arguments, label))
    if origin in (Union, types.UnionType):
        return _union([read_type(one, label, within) for one in arguments])
    if origin in _WRAPPERS:
        return read_type(arguments[0], label, within)
    if origin is tuple:
        return _tuple(arguments, label, within)
    if origin in _CONTAINERS or annotation in _CONTAINERS:
        return _array(origin or annotation, arguments, label, within)
    if origin in _MAPPINGS or annotation in _MAPPINGS:
        return _mapping(arguments, label, within)
    if supertype := getattr(annotation, "__supertype__", None):  # NewType
        return read_type(supertype, label, within)
    if isinstance(annotation, type):
        return _class(annotation, label, within)
    raise _no_type(annotation, label)


def _no_type(annotation: object, label: str) -> ConfigurationError:
    shown = getattr(annotation, "__qualname__", None) or str(annotation)
    return ConfigurationError(
        f"{label} has the type {shown}, of which a model cannot write values; types are str, int, float, bool, None, Literal, "
        "enums, dates, list, tuple, set, dict, TypedDict, data classes and unions of these"
    )


def _annotated(arguments: tuple[object, ...], label: str, within: tuple[object, ...]) -> JsonType:
    found = read_type(arguments[0], label, within)
    texts = [mark if isinstance(mark, str) else getattr(mark, "documentation", None) for mark in arguments[1:]]
    described = next((text for text in texts if isinstance(text, str)), None)
    return found if described is None else JsonType({**found.schema, "description": described}, found.convert)


def _enum_schema(values: Iterable[object], label: str) -> Schema:
    listed = list(values)
    if unfit := [value for value in listed if not isinstance(value, _SCALARS) or isinstance(value, enum.Enum)]:
        raise ConfigurationError(f"{label} has the choice {unfit[0]!r}, which no JSON value is equal to")
    kinds = {type(value) for value in listed}
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return {"enum": listed, **({"type": names[kinds.pop()]} if len(kinds) == 1 and kinds <= names.keys() else {})}


def _union(members: list[JsonType]) -> JsonType:
    schema: Schema = {"anyOf": [member.schema for member in members]}
    if all(member.convert is None for member in members):
        return JsonType(schema)
    validators = [make_validator(member.schema) for member in members]

    def convert(value: object) -> object:
        fitting = [member for member, valid in zip(members, validators, strict=True) if valid.is_valid(value)]
        return fitting[0].read(value) if fitting else value

    return JsonType(schema, convert)


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _array(container: object, arguments: tuple[object, ...], label: str, within: tuple[object, ...]) -> JsonType:
    make = _CONTAINERS[container]
    item = read_type(arguments[0], label, within) if arguments else JsonType({})
    schema: Schema = {"type": "array", **({"items": item.schema} if item.schema else {})}
    if make in (set, frozenset):
        schema["uniqueItems"] = True
    if make is list and item.convert is None:
        return JsonType(schema)
    return JsonType(schema, lambda value: make(item.read(one) for one in _items(value)))


def _tuple(arguments: tuple[object, ...], label: str, within: tuple[object, ...]) -> JsonType:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = read_type(arguments[0], label, within)
        return JsonType(
            {"type": "array", "items": item.schema}, lambda value: tuple(item.read(one) for one in _items(value))
        )
    parts = [read_type(one, label, within) for one in arguments]
    schema: Schema = {"type": "array", "minItems": len(parts), "maxItems": len(parts)}
    if all(part.schema == parts[0].schema for part in parts):
        schema["items"] = parts[0].schema
    else:
        schema["prefixItems"] = [part.schema for part in parts]
    return JsonType(schema, lambda value: tuple(part.read(one) for part, one in zip(parts, _items(value), strict=True)))


def _mapping(arguments: tuple[object, ...], label: str, within: tuple[object, ...]) -> JsonType:
    if arguments and arguments[0] not in (str, *_ANYTHING):
        raise ConfigurationError(f"{label} has keys that are no texts ({arguments[0]}); those of JSON objects are")
    value = read_type(arguments[1], label, within) if len(arguments) > 1 else JsonType({})
    schema: Schema = {"type": "object", **({"additionalProperties": value.schema} if value.schema else {})}
    if value.convert is None:
        return JsonType(schema)
    return JsonType(schema, lambda given: {key: value.read(one) for key, one in _fields(given).items()})


def _fields(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _class(kind: type, label: str, within: tuple[object, ...]) -> JsonType:
    if issubclass(kind, enum.Enum):
        by_value: dict[object, object] = {one.value: one for one in kind if isinstance(one.value, str | int)}
        by_name: dict[object, object] = {one.name: one for one in kind}
        choices = by_value if len(by_value) == len(kind) else by_name
        return JsonType(_enum_schema(choices, label), lambda value: choices.get(_hashable(value), value))
    if kind in within:
        raise ConfigurationError(f"{label}: {kind.__name__} holds itself; take a dict, and check it in the tool")
    inner = (*within, kind)
    if typing.is_typeddict(kind):
        hints = resolve_hints(kind, f"{label} ({kind.__name__})")
        required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
        members = {name: (hint, _is_required_key(hint, name in required)) for name, hint in hints.items()}
        return _object(kind, members, dict, label, inner)
    if dataclasses.is_dataclass(kind):
        hints = resolve_hints(kind, f"{label} ({kind.__name__})")
        fields = [one for one in dataclasses.fields(kind) if one.init]
        return _object(kind, {one.name: (hints[one.name], _is_required(one)) for one in fields}, kind, label, inner)
    raise _no_type(kind, label)


def _hashable(value: object) -> object:
    return value if isinstance(value, collections.abc.Hashable) else None


def _is_required_key(hint: object, by_default: bool) -> bool:
    # The class itself cannot tell where its annotations are texts, as they are with `from __future__ import annotations`.
    origin = get_origin(hint)
    return origin is typing.Required or (by_default and origin is not typing.NotRequired)


def _is_required(one: dataclasses.Field[object]) -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


def _object(
    kind: type,
    members: Mapping[str, tuple[object, bool]],
    make: Callable[..., object],
    label: str,
    within: tuple[object, ...],
) -> JsonType:
    """An object with named members, each with its type and whether it must be there."""
    said = read_docstring(kind).parameters
    read = {name: read_type(hint, f"{label}.{name}", within) for name, (hint, _) in members.items()}
    properties = {
        name: {
            **one.schema,
            **({"description": said[name]} if name in said and "description" not in one.schema else {}),
        }
        for name, one in read.items()
    }
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name, (_, needed) in members.items() if needed],
        "additionalProperties": False,
    }
    return JsonType(schema, lambda value: make(**{name: read[name].read(one) for name, one in _fields(value).items()}))


class Validator(typing.Protocol):
    """What of jsonschema's validators is used here."""

    def is_valid(self, instance: object) -> bool: ...
    def iter_errors(self, instance: object) -> Iterable[Problem]: ...


class Problem(typing.Protocol):
    """What is wrong with a value, as jsonschema tells it."""

    message: str
    validator: str
    validator_value: object
    instance: object
    schema: Mapping[str, object]
    absolute_path: Iterable[str | int]


def make_validator(schema: Schema) -> Validator:
    """Checks values against a schema; one that refers to other documents is not followed there."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    validator: Validator = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
    return validator


def find_schema_problem(schema: Schema) -> str:
    """Why something is no JSON schema; nothing where it is one."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return str(error.message)
    return ""
