"""What a model is told of a tool, from a function's signature and docstring, and what it wrote, checked against that.

`tools` makes one of these for each tool.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from themis.core.codec import to_plain
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.generation.docstrings import Documentation, read_docstring
from themis.generation.tool_types import (
    JsonType,
    Problem,
    Schema,
    Validator,
    is_row,
    make_validator,
    read_type,
    resolve_hints,
)

__all__ = ["ArgumentError", "Parameters", "describe_function", "describe_parameters"]

_SHOWN_PROBLEMS = 5
_LONGEST_PROBLEM = 300


class ArgumentError(ValueError):
    """What a model wrote does not fit a tool's parameters; says all that is wrong with it."""


@dataclass(frozen=True)
class Parameters:
    """A tool's parameters: what a model is told of them, and how what it wrote becomes arguments.

    Args:
        schema: A JSON schema of an object.
        types: How the values of parameters are made, by name.
        row: Parameters that are given the row.
        positional: Those that are given by their place only, in order.
        is_checked: Whether arguments are held to the schema; a server whose schema is none checks them itself.
    """

    schema: Schema
    types: Mapping[str, JsonType] = field(default_factory=dict)
    row: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()
    is_checked: bool = True

    @cached_property
    def _validator(self) -> Validator:
        return make_validator(self.schema)

    def read(self, written: Mapping[str, object]) -> dict[str, object]:
        """The arguments, in values of their own that the tool may change.

        Args:
            written: By the model.

        Raises:
            ArgumentError: They do not fit.
        """
        problems = self._find_problems(written)
        if problems:
            listed = "; ".join(list(dict.fromkeys(problems))[:_SHOWN_PROBLEMS])
            raise ArgumentError(f"{listed}. The parameters are {json.dumps(self.schema, ensure_ascii=False)}")
        try:
            arguments: dict[str, object] = copy.deepcopy(dict(written))
        except RecursionError:
            raise ArgumentError("the arguments hold values in values in values, too deep to be read") from None
        for name, value in arguments.items():
            if name in self.types:
                try:
                    arguments[name] = self.types[name].read(value)
                except (ValueError, TypeError, RecursionError) as error:
                    raise ArgumentError(f"argument {name!r}: {error}") from error
        return arguments

    def _find_problems(self, written: Mapping[str, object]) -> list[str]:
        from referencing.exceptions import Unresolvable

        if not self.is_checked:
            return []
        try:
            return [said for problem in self._validator.iter_errors(dict(written)) for said in _explain(problem)]
        except (Unresolvable, RecursionError):
            return []  # a server's schema that refers elsewhere, or only to itself: the server checks it

    def call(
        self, function: Callable[..., object], arguments: Mapping[str, object], row: Mapping[str, object]
    ) -> object:
        """What the function returns for arguments that `read` made."""
        # A copy, so that nothing is handed from one call to the next by the row: it would not be stored.
        given = {**arguments, **{name: copy.deepcopy(dict(row)) for name in self.row}}
        places = [given.pop(name) for name in itertools.takewhile(given.__contains__, self.positional)]
        return function(*places, **given)


def _explain(problem: Problem) -> list[str]:
    place = _format_path([*problem.absolute_path])
    if problem.validator == "required" and isinstance(problem.instance, Mapping):
        wanted = problem.validator_value if isinstance(problem.validator_value, list) else []
        return [f"{_within(place)}missing argument {name!r}" for name in wanted if name not in problem.instance]
    if problem.validator == "additionalProperties" and problem.validator_value is False:
        known = problem.schema.get("properties")
        names = list(known) if isinstance(known, Mapping) else []
        given = problem.instance if isinstance(problem.instance, Mapping) else {}
        return [
            f"{_within(place)}unknown argument {name!r}{nearest(str(name), names)}"
            for name in given
            if name not in names
        ]
    message = problem.message
    message = message if len(message) <= _LONGEST_PROBLEM else f"{message[:_LONGEST_PROBLEM]}..."
    return [f"argument {place}: {message}" if place else message]


def _format_path(path: list[str | int]) -> str:
    """`filters.tags[2]`, as quotes name it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return repr(text) if text else ""


def _within(place: str) -> str:
    return f"in {place}: " if place else ""


# --- from a signature ---------------------------------------------------------------------------------------------------


def describe_function(
    function: Callable[..., object], name: str, *, skip_first: bool = False
) -> tuple[str, Parameters]:
    """What a function does, and its parameters.

    Args:
        function: A function, a method, `functools.partial` of one, or an object that can be called.
        name: What the tool is called, for errors.
        skip_first: Whether the first parameter is the object that a method belongs to.

    Raises:
        ConfigurationError: A model could not call it.

    >>> def add(a: int, b: int = 1) -> int:
    ...     "Adds two numbers."
    >>> description, parameters = describe_function(add, "add")
    >>> parameters.schema["properties"]
    {'a': {'type': 'integer'}, 'b': {'type': 'integer', 'default': 1}}
    """
    plain, bound = _unwrap(function)
    said = read_docstring(plain)
    if not said.text and not inspect.isroutine(function):
        said.text = read_docstring(type(function)).text if not isinstance(function, partial) else said.text
    return said.text, describe_parameters(function, plain, name, said=said, hidden=bound, skip_first=skip_first)


def _unwrap(function: Callable[..., object]) -> tuple[Callable[..., object], frozenset[str]]:
    """The function behind a partial one or an object, and the names that the partial one gives already."""
    bound: set[str] = set()
    while isinstance(function, partial):
        bound |= set(function.keywords)
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = type(function).__call__
    return function, frozenset(bound)


def describe_parameters(
    function: Callable[..., object],
    plain: object,
    name: str,
    *,
    said: Documentation,
    hidden: frozenset[str] = frozenset(),
    skip_first: bool = False,
) -> Parameters:
    """The parameters of a function or constructor.

    Args:
        function: What is called.
        plain: What has its annotations.
        name: What errors call it.
        said: What its docstring says.
        hidden: Parameters that are given already.
        skip_first: Whether the first parameter is the object that a method belongs to.
    """
    hints = resolve_hints(plain, f"tool {name!r}")
    properties: dict[str, Schema] = {}
    types: dict[str, JsonType] = {}
    required: list[str] = []
    row: list[str] = []
    positional: list[str] = []
    accepts_more, unnamed = False, ""
    for parameter in _read_signature(function, name)[int(skip_first) :]:
        annotation = hints.get(parameter.name, inspect.Parameter.empty)
        if parameter.kind is parameter.VAR_KEYWORD:
            accepts_more = True
        if parameter.kind is parameter.VAR_POSITIONAL:
            unnamed = parameter.name
        if parameter.name in hidden or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(parameter.name)
        if is_row(parameter.name, annotation):
            row.append(parameter.name)
            continue
        found = _read_parameter(parameter, annotation, name, said)
        properties[parameter.name] = found.schema
        types[parameter.name] = found
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    if unnamed and not properties and not accepts_more:
        raise ConfigurationError(
            f"tool {name!r} takes its arguments as *{unnamed}, and a model gives arguments by name: take a list, as in "
            f"{unnamed}: list[int]"
        )
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    schema["additionalProperties"] = accepts_more
    return Parameters(schema, types, tuple(row), tuple(positional))


def _read_signature(function: Callable[..., object], name: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"tool {name!r}: its parameters are not known ({error}); write a function around it"
        ) from None


def _read_parameter(parameter: inspect.Parameter, annotation: object, name: str, said: Documentation) -> JsonType:
    label = f"parameter {parameter.name!r} of tool {name!r}"
    if annotation is parameter.empty:
        annotation = _type_in_words(said.types.get(parameter.name, ""), parameter.default)
    found = read_type(annotation, label)
    schema = dict(found.schema)
    if "description" not in schema and said.parameters.get(parameter.name):
        schema["description"] = said.parameters[parameter.name]
    if parameter.default is not parameter.empty:
        try:
            schema["default"] = to_plain(parameter.default)
        except TypeError:
            pass  # it has no form that a model could read, and is used all the same
    return JsonType(schema, found.convert)


_WORDS = {
    "str": str, "string": str, "int": int, "integer": int, "float": float, "number": float, "bool": bool, "boolean": bool,
    "list": list, "array": list, "dict": dict, "object": dict,
}  # fmt: skip


def _type_in_words(words: str, default: object) -> object:
    """What a docstring calls a parameter's type (`int, optional`), else the type of its default, else anything."""
    first = words.replace(",", " ").split()[:1]
    if first and first[0].lower() in _WORDS:
        return _WORDS[first[0].lower()]
    return type(default) if type(default) in (str, int, float, bool) else inspect.Parameter.empty
