"""Where tools come from: functions, objects, and environments, which are objects of a sample's own with a state that is stored.

`tools.Toolset` puts sources together; MCP servers (`mcp_tools`) are one more kind.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from themis.core.identity import describe_object
from themis.core.registry import snake_case
from themis.exceptions import ConfigurationError, ThemisError, ToolError
from themis.generation.tool_schemas import Parameters, describe_function
from themis.generation.tool_types import find_schema_problem, is_row, resolve_hints

__all__ = [
    "Environment",
    "FunctionTool",
    "ObjectTools",
    "Offer",
    "OpenEnvironment",
    "OpenTools",
    "Tool",
    "ToolSource",
    "copy_json",
]

# Methods of an environment that are no tools: ours to call.
RESERVED = ("snapshot", "restore", "close", "check_machine")


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One tool as a source offers it: what the model is told, and what the source calls it."""

    name: str
    description: str
    parameters: Parameters
    # The source's own name of it: a method's, or a server's.
    own_name: str = ""
    is_async: bool = False


class OpenTools(Protocol):
    """A source's tools for one sample."""

    # The most that a call may take; None for what the set of tools says.
    timeout_seconds: float | None
    # Held while a call is made, where calls change something that they share.
    lock: threading.Lock | None

    def start(self, offer: Offer, arguments: Mapping[str, object]) -> object:
        """What the tool returns, or a coroutine of it."""

    def state(self) -> object:
        """What is stored after a step; None where there is nothing."""

    def close(self) -> object:
        """Ends what the sample used; a coroutine where that takes one."""


class ToolSource(Protocol):
    """Something that offers tools."""

    # What errors call it, and its state where there are several.
    label: str
    has_state: bool

    @property
    def offers(self) -> Sequence[Offer]: ...

    def describe(self) -> object:
        """Everything that decides what its tools do, in JSON values."""

    def open(self, row: Mapping[str, object], state: object, environments: Sequence[object]) -> OpenTools:
        """Its tools for one sample, with the environments that were opened for it before."""

    def close(self) -> None: ...


# --- functions ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function as a tool, where what its signature and docstring say is not what the model shall be told.

    Args:
        function: What is called, with the arguments by name; sync or async.
        name: What the model calls it; the function's own name by default.
        description: What the model is told of it; the docstring's by default.
        parameters: A JSON schema of its arguments; made from the signature by default.

    >>> from themis.generation.tools import Toolset
    >>> Toolset([Tool(function=lambda city: "sunny", name="weather", description="The weather.")]).schemas[0]["name"]
    'weather'
    """

    function: Callable[..., object]
    name: str = ""
    description: str = ""
    parameters: Mapping[str, object] | None = None


@dataclass
class FunctionTool:
    """One function, the same for all samples."""

    tool: Tool
    has_state = False

    def __post_init__(self) -> None:
        self.label = self.tool.name or _name_of(self.tool.function)
        description, parameters = describe_function(self.tool.function, self.label)
        if self.tool.parameters is not None:
            parameters = dataclasses.replace(parameters, schema=dict(self.tool.parameters), types={})
            if problem := find_schema_problem(parameters.schema):
                raise ConfigurationError(f"the parameters of tool {self.label!r} are no JSON schema: {problem}")
        offer = Offer(
            name=self.label,
            description=self.tool.description or description,
            parameters=parameters,
            is_async=_is_async(self.tool.function),
        )
        self.offers = (offer,)

    def describe(self) -> object:
        return describe_object(self.tool.function)

    def open(self, row: Mapping[str, object], state: object, environments: Sequence[object]) -> OpenTools:
        return _OpenFunctions(row, {self.label: self.tool.function})

    def close(self) -> None:
        pass


def _name_of(function: object) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return name if isinstance(name, str) else snake_case(type(function).__name__)


def _is_async(function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


@dataclass
class _OpenFunctions:
    """Functions for one sample, of which they see the row."""

    row: Mapping[str, object]
    functions: Mapping[str, Callable[..., object]]
    timeout_seconds: float | None = None
    lock: threading.Lock | None = None

    def start(self, offer: Offer, arguments: Mapping[str, object]) -> object:
        return offer.parameters.call(self.functions[offer.name], arguments, self.row)

    def state(self) -> object:
        return None

    def close(self) -> None:
        pass


# --- objects --------------------------------------------------------------------------------------------------------------


@dataclass
class ObjectTools:
    """The public methods of an object, which all samples share."""

    target: object
    has_state = False

    def __post_init__(self) -> None:
        self.label = type(self.target).__name__
        self.offers = tuple(_offer_methods(type(self.target), self.label))

    def describe(self) -> object:
        return describe_object(self.target)

    def open(self, row: Mapping[str, object], state: object, environments: Sequence[object]) -> OpenTools:
        return _OpenFunctions(row, {offer.name: getattr(self.target, offer.own_name) for offer in self.offers})

    def close(self) -> None:
        pass


def _offer_methods(kind: type, label: str) -> Iterator[Offer]:
    found = False
    for name in dir(kind):
        static, method = inspect.getattr_static(kind, name), getattr(kind, name, None)
        inherited = any(name in vars(base) for base in kind.__mro__ if base.__module__ == "builtins")
        if name.startswith("_") or name in RESERVED or inherited or not inspect.isroutine(method):
            continue
        found = True
        is_method = not isinstance(static, staticmethod | classmethod)
        description, parameters = describe_function(method, f"{label}.{name}", skip_first=is_method)
        yield Offer(
            name=name,
            description=description,
            parameters=parameters,
            own_name=name,
            is_async=inspect.iscoroutinefunction(method),
        )
    if not found:
        raise ConfigurationError(f"{label} has no public methods, so it offers no tools")


# --- environments ---------------------------------------------------------------------------------------------------------


@dataclass
class Environment:
    """A class of which every sample gets an object of its own; its public methods are the tools.

    The class, or `functools.partial` of one with its options.
    """

    factory: Callable[..., object]
    label: str = ""
    has_state = True
    _takes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._kind, self._options = _unwrap(self.factory)
        self.label = self.label or self._kind.__name__
        self.offers = tuple(_offer_methods(self._kind, self._kind.__name__))
        self._takes = self._read_constructor()
        if hasattr(self._kind, "snapshot") is not hasattr(self._kind, "restore"):
            raise ConfigurationError(
                f"the environment {self._kind.__name__} has one of snapshot() and restore(state), which go together"
            )
        check = getattr(self._kind, "check_machine", None)
        self._machine = None if check is None else check(**self._options)

    def _read_constructor(self) -> dict[str, str]:
        """Which parameters of the constructor are given the row, and which the sample's other environments."""
        name = self._kind.__name__
        hints = resolve_hints(inspect.getattr_static(self._kind, "__init__"), name)
        takes: dict[str, str] = {}
        for parameter in inspect.signature(self.factory).parameters.values():
            if is_row(parameter.name, hints.get(parameter.name, parameter.empty)):
                takes[parameter.name] = "row"
            elif parameter.name == "environments":
                takes[parameter.name] = "environments"
            elif parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                raise ConfigurationError(
                    f"the environment {name} is made for each sample, and its constructor needs {parameter.name!r}, which a "
                    f"sample does not have: give functools.partial({name}, {parameter.name}=...), or an object, which all "
                    "samples share; a parameter called row is given the row"
                )
        return takes

    def describe(self) -> object:
        machine = {} if self._machine is None else {"machine": self._machine}
        if self._kind.__module__.partition(".")[0] == "themis":
            # Known by what it was asked for, as a provider of ours is: a run survives a new version of Themis.
            return {"class": f"{self._kind.__module__}.{self._kind.__name__}", **machine}
        return {**describe_object(self.factory), **machine}

    def open(self, row: Mapping[str, object], state: object, environments: Sequence[object]) -> OpenTools:
        given = {"row": copy.deepcopy(dict(row)), "environments": list(environments)}
        try:
            opened = self.factory(**{name: given[what] for name, what in self._takes.items()})
        except ThemisError:
            raise
        except Exception as error:  # boundary: an environment is the user's code
            raise ToolError(
                f"{self.label} could not be made for this sample: {type(error).__name__}: {error}"
            ) from error
        made = OpenEnvironment(opened, row, self.label)
        try:
            if state is not None:
                made.restore(state)
            made.state()  # what cannot be stored is found before anything is done with it
        except BaseException:
            made.close()
            raise
        return made

    def close(self) -> None:
        pass


def _unwrap(factory: Callable[..., object]) -> tuple[type, dict[str, object]]:
    options: dict[str, object] = {}
    while isinstance(factory, functools.partial):
        options = {**factory.keywords, **options}
        factory = factory.func
    if not isinstance(factory, type):
        raise ConfigurationError(f"an environment is a class, got {factory!r}")
    return factory, options


class OpenEnvironment:
    """An environment of one sample, with its state as it was after the last finished call."""

    def __init__(self, target: object, row: Mapping[str, object], label: str) -> None:
        self.target = target
        self.lock: threading.Lock | None = threading.Lock()
        timeout = getattr(target, "timeout_seconds", None)
        self.timeout_seconds = float(timeout) if isinstance(timeout, int | float) else None
        self._row = row
        self._label = label
        self._last: object = None

    def start(self, offer: Offer, arguments: Mapping[str, object]) -> object:
        return offer.parameters.call(getattr(self.target, offer.own_name), arguments, self._row)

    def state(self) -> object:
        """What `snapshot` returns, or the attributes. While a call that nobody waits for still runs: what was before it."""
        if self.lock is not None and self.lock.acquire(blocking=False):
            try:
                self._last = self._take()
            finally:
                self.lock.release()
        return copy.deepcopy(self._last)

    def restore(self, state: object) -> None:
        """Puts the object into a state that `state` returned."""
        if hasattr(self.target, "restore"):
            self._ask("restore", copy.deepcopy(state))
            return
        if not isinstance(state, Mapping):
            raise ConfigurationError(
                f"the stored state of {self._label} is no object with attributes: {str(state)[:80]!r}"
            )
        for name in [*self._find_attributes()]:
            if name not in state:
                delattr(self.target, name)
        for name, value in state.items():
            setattr(self.target, name, copy.deepcopy(value))

    def close(self) -> object:
        """What the object's own `close` returns, which may be a coroutine."""
        close = getattr(self.target, "close", None)
        return close() if callable(close) else None

    def _take(self) -> object:
        if hasattr(self.target, "snapshot"):
            return copy_json(self._ask("snapshot"), f"{self._label}.snapshot()")
        return self._read_attributes()

    def _ask(self, method: str, *arguments: object) -> object:
        try:
            return getattr(self.target, method)(*arguments)
        except ThemisError:
            raise
        except Exception as error:  # boundary: an environment is the user's code
            raise ToolError(f"{self._label}.{method} failed: {type(error).__name__}: {error}") from error

    def _read_attributes(self) -> dict[str, object]:
        return {name: copy_json(value, f"{self._label}.{name}") for name, value in self._find_attributes().items()}

    def _find_attributes(self) -> dict[str, object]:
        """All that are data; those with an underscore that hold something else (a client, a lock) are no state."""
        if not hasattr(self.target, "__dict__"):
            raise ConfigurationError(f"{self._label} has __slots__: give it snapshot() and restore(state)")
        return {name: value for name, value in vars(self.target).items() if name[0] != "_" or _is_data(value)}


_DATA = (str, bytes, bytearray, bool, int, float, complex, list, tuple, dict, set, frozenset, type(None))


def _is_data(value: object) -> bool:
    return isinstance(value, _DATA) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def copy_json(value: object, place: str) -> object:
    """A copy of a value that is made of JSON's types.

    Args:
        value: What is copied.
        place: Where it was found, for errors.

    Raises:
        ConfigurationError: Something in it is no JSON value, so that it would come back from the store as something else.
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) is list:
        return [copy_json(item, f"{place}[{number}]") for number, item in enumerate(value)]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: copy_json(item, f"{place}[{key!r}]") for key, item in value.items()}
    kind = "a dict with keys that are no texts" if isinstance(value, dict) else f"of the type {type(value).__name__}"
    raise ConfigurationError(
        f"the state of an environment is stored as JSON after every step, and {place} is {kind}: keep JSON values (dict, list, "
        "str, numbers), write snapshot() and restore(state), or, where it is no state but a tool of the class's own, begin its "
        "name with an underscore"
    )
