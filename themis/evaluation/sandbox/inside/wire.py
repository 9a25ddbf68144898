"""How the process that tests and the process that runs the solution talk: questions and answers in JSON over two pipes.

Plain values travel by value (`Values` keeps apart what JSON confuses: tuples, sets, bytes, keys that are not text),
everything else stays where it was made and is known to the other side as a `Remote`.
So the expected values never enter the solution's process, and nothing in that process can decide a comparison.

The solution may write whatever it likes into its pipe. The judging end is therefore `guarded`: it acts only on objects
that a test handed over itself, and shows nothing of them but what the test's own classes define.
"""

from __future__ import annotations

import builtins
import importlib
import json
import operator
import os
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias, TypedDict, final

# What test code is called while it runs, as by `python test.py`; its classes are known by it.
TEST_MODULE = "__main__"
SOLUTION_MODULE = "solution"

# What a test or a solution made and does as it likes with: nothing is known of it here.
Foreign: TypeAlias = Any


class Report(TypedDict):
    """What became of one job, as the supervisor tells our process."""

    outcome: str
    reason: str
    stdout: str
    stderr: str
    seconds: float


class Request(TypedDict):
    """What a sandbox is to do: its layers and limits, what it shows of the machine, the code, and how many jobs follow."""

    layers: list[str]
    limits: dict[str, int]
    directory: str
    visible: dict[str, list[str]]
    packages: list[str]
    cgroup: str | None
    code: str
    jobs: int


class FolderEntry(TypedDict):
    """A file of the working directory, its content in base64, or a directory, which has none."""

    path: str
    data: str | None
    executable: bool


class CollectedFolder(TypedDict):
    """What a program left in its working directory; without entries where that is more than was asked for."""

    entries: list[FolderEntry]
    fits: bool
    bytes: int
    files: int
    left_out: list[tuple[str, str]]


class StepDescription(TypedDict):
    """A program that goes on where another left off: its language, what is in its working directory, what of it is kept."""

    language: str
    folder: list[FolderEntry]
    most_bytes: int
    most_files: int


class StepReport(Report):
    """What became of such a program, and of its working directory."""

    folder: CollectedFolder


@final
class CallDescription(TypedDict):
    """A function that is called, with its arguments and its result as `Values` encodes them."""

    function: str
    arguments: object
    keywords: object
    expected: object
    spread: bool | None
    tolerance: float


@final
class AssertDescription(TypedDict):
    """Test code, what is run before it, and the names that it takes from the solution."""

    setup: str
    code: str
    names: Sequence[str]


class Values:
    """Encodes what has a value and refuses the rest; a subclass may know better what to do with objects."""

    def encode(self, value: Foreign) -> object:
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

    def decode(self, encoded: object) -> Foreign:
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

    def encode_object(self, value: object) -> object:
        raise TypeError(f"a {type(value).__name__} cannot be sent into the sandbox: {value!r:.200}")

    def decode_object(self, tag: str, content: Foreign) -> Foreign:
        raise TypeError(f"unknown kind of value {tag!r}")


_AS_THEY_ARE = frozenset({type(None), bool, float, str})
# Python refuses to read decimal numbers of more than 4,300 digits; hexadecimal ones have no such limit.
_LARGE = 2**63
_SCALARS: dict[type, Callable[[Foreign], object]] = {int: int.__int__, float: float.__float__, str: str.__str__}
_CONTAINERS: dict[Foreign, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_PLAIN: dict[str, Callable[[Foreign], object]] = {
    **{tag: container for container, tag in _CONTAINERS.items()},
    "int": lambda text: int(text, 16),
    "bytes": bytes.fromhex,
    "complex": lambda parts: complex(*parts),
}
# Values of the standard library that answers are made of: how each becomes plain, and how it is made again.
_STANDARD: dict[str, tuple[Callable[[Foreign], object], Callable[[Foreign, Foreign], object]]] = {
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


class Ended(BaseException):
    """The other process is gone. Not an Exception: a test that expects one must not take this for it."""


class SolutionExit(SystemExit):
    """The solution tried to leave its process, as `sys.exit` does; a test may expect that."""


class Peer(Values):
    """One end of the conversation. While it waits for an answer it answers the other side's questions.

    `find` looks up a name on this side. The end that judges has nothing to look up, and is guarded for that.
    """

    def __init__(self, incoming: int, outgoing: int, *, find: Callable[[str], Foreign] | None = None) -> None:
        self.ended = False
        # Calls of the other side's functions, and what these raised that nothing here has expected yet.
        self.calls = 0
        self.unexpected: dict[int, BaseException] = {}
        self._incoming, self._outgoing = incoming, outgoing
        self._guarded = find is None
        self._find = find
        self._own: list[Foreign] = []
        self._number_of: dict[int, int] = {}
        self._exceptions: dict[str, type[Exception]] = {}
        self._raised_by_us: list[list[object]] = []
        self._returned: dict[int, BaseException] = {}

    def ask(self, action: str, *operands: Foreign) -> Foreign:
        self.send(["ask", action, [self.encode(operand) for operand in operands]])
        while True:
            message = self.receive()
            if message[0] == "ask":
                self._answer(message[1], message[2])
            elif message[0] == "value":
                return self.decode(message[1])
            else:
                raise self._exception(*message[1:])

    def call(self, function: Foreign, arguments: list[Foreign], keywords: dict[str, Foreign]) -> Foreign:
        """Calls what the other side owns; lists, dicts and sets that the call changed are changed here too."""
        self.calls += 1
        try:
            value, changes = self.ask("call", function, arguments, keywords)
        except BaseException as error:
            # An exception of the test's own function is no surprise when it comes back through the solution.
            returned = _describe(error) in self._raised_by_us
            (self._returned if returned else self.unexpected)[id(error)] = error
            raise
        for position, content in changes:
            _refill(arguments[position], content)
        return value

    def expect(self, error: BaseException | None) -> bool:
        """Takes an exception, and those that led to it, for expected; whether any of them came from the other side."""
        found, seen = False, set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            found |= any(known.pop(id(error), None) is not None for known in (self.unexpected, self._returned))
            error = error.__cause__ or error.__context__
        return found

    def serve(self) -> None:
        """Answers until the other side is gone."""
        while True:
            try:
                message = self.receive()
            except Ended:
                return
            self._answer(message[1], message[2])

    def send(self, message: list[object]) -> None:
        data = json.dumps(message).encode()
        try:
            write_frame(self._outgoing, data)
        except OSError:
            self._end()

    def receive(self) -> list[Foreign]:
        frame = read_frame(self._incoming)
        if frame is None:
            self._end()
        try:
            message = json.loads(frame)
        except ValueError:
            self._end()  # only a solution that writes to the pipe itself gets here
        if not isinstance(message, list) or len(message) < 2:
            self._end()
        return message

    def _answer(self, action: str, encoded: list[Foreign]) -> None:
        try:
            if self._guarded:
                self._refuse_what_was_not_handed_over(action, encoded)
            operands = [self.decode(operand) for operand in encoded]
            if action == "call":
                value = self._call(encoded[1], *operands)
            else:
                value = _ACTIONS[action](self, *operands)
            reply = ["value", self.encode(value)]
        except Ended:
            raise
        except BaseException as error:  # boundary: the solution, or a function of the test's
            # Also SystemExit and KeyboardInterrupt: a solution does not end the conversation by raising.
            described = _describe(error)
            if self._guarded and not self.expect(error):
                self._raised_by_us.append(described)
            reply = ["raised", *described]
        self.send(reply)

    def _call(
        self, encoded: Foreign, function: Foreign, arguments: list[Foreign], keywords: dict[str, Foreign]
    ) -> object:
        value = function(*arguments, **keywords)
        changes = []
        for position, argument in enumerate(arguments):
            if isinstance(argument, list | dict | set) and self.encode(argument) != encoded[position]:
                changes.append((position, argument))
        return value, changes

    def _refuse_what_was_not_handed_over(self, action: str, encoded: list[object]) -> None:
        target = encoded[1] if action == "operate" else encoded[0]
        if not (isinstance(target, dict) and "yours" in target):
            raise PermissionError(f"{action} reaches only what a test handed to the solution")

    def _attribute(self, owner: Foreign, name: str) -> Foreign:
        self._guard(owner, name)
        return getattr(owner, name)

    def _set_attribute(self, owner: object, name: str, value: object) -> None:
        self._guard(owner, name)
        setattr(owner, name, value)

    def _guard(self, owner: object, name: str) -> None:
        # Attributes of built-in kinds lead on: a generator's frame knows the test's variables.
        if self._guarded and (name.startswith("_") or type(owner).__module__ != TEST_MODULE):
            raise AttributeError(f"{name} is not shown to the solution")

    def _look_up(self, path: str) -> Foreign:
        return self._find(path) if self._find else None

    def _look_up_module(self, path: str) -> str | None:
        value = self._look_up(path)
        return value.__name__ if isinstance(value, type(sys)) else None

    def _end(self) -> NoReturn:
        self.ended = True
        raise Ended

    def encode_object(self, value: object) -> object:
        if type(value) is Remote:
            return {"yours": _number(value)}
        name = getattr(value, "__name__", None)
        if isinstance(name, str) and name in _HARMLESS_BUILTINS and getattr(builtins, name) is value:
            return {"builtin": name}
        if isinstance(value, type) and issubclass(value, Exception):
            return {"exception": [value.__name__, _builtin_base(value)]}
        number = self._number_of.get(id(value))
        if number is None:
            number = self._number_of[id(value)] = len(self._own)
            self._own.append(value)
        return {"mine": number}

    def decode_object(self, tag: str, content: Foreign) -> Foreign:
        if tag == "mine":
            return Remote(self, content)
        if tag == "yours":
            return self._own[content]
        if tag == "exception":
            return self._exception_class(*content)
        if tag == "builtin" and content in _HARMLESS_BUILTINS:
            return getattr(builtins, content)
        return super().decode_object(tag, content)

    def _exception(self, name: str, base: str, text: str, arguments: Foreign) -> BaseException:
        if base in ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException"):
            return SolutionExit(f"the solution raised {name}: {text}" if text else f"the solution raised {name}")
        error = self._exception_class(name, base)
        try:
            return error(*self.decode(arguments)) if arguments is not None else error(text)
        except Exception:  # its constructor asks for more than a message
            return Exception(f"{name}: {text}")

    def _exception_class(self, name: str, base: str) -> type[Exception]:
        """The same class here for an exception that the solution defines, so that a test can catch it."""
        foundation = getattr(builtins, base, None)
        if not (isinstance(foundation, type) and issubclass(foundation, Exception)):
            foundation = Exception
        if name == base:
            return foundation
        return self._exceptions.setdefault(name, type(name, (foundation,), {}))


class Remote:
    """An object of the other process. It can be called, looked into and iterated, but decides no comparison.

    Operators between two objects of the other side are its own business. With a plain value on one side, comparing is
    false and arithmetic may give only another of its objects: else an object that equals everything, or whose
    difference to anything is zero, would pass every test.
    """

    __slots__ = ("_remote_number_", "_remote_peer_")

    def __init__(self, peer: Peer, number: int) -> None:
        object.__setattr__(self, "_remote_peer_", peer)
        object.__setattr__(self, "_remote_number_", number)

    def __call__(self, /, *arguments: Foreign, **keywords: Foreign) -> Foreign:
        return _peer(self).call(self, list(arguments), keywords)

    def __getattr__(self, name: str) -> Foreign:
        return _peer(self).ask("get", self, name)

    def __setattr__(self, name: str, value: object) -> None:
        _peer(self).ask("set", self, name, value)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Remote) and bool(_peer(self).ask("isinstance", instance, self))

    def __hash__(self) -> int:
        return hash(_number(self))


def _peer(remote: Remote) -> Peer:
    peer: Peer = object.__getattribute__(remote, "_remote_peer_")
    return peer


def _number(remote: Remote) -> int:
    number: int = object.__getattribute__(remote, "_remote_number_")
    return number


def _make_forwarding(name: str) -> Callable[..., object]:
    def method(self: Remote, *operands: object) -> object:
        return _peer(self).ask("operate", name, self, *operands)

    return method


def _make_comparison(name: str) -> Callable[..., object]:
    def method(self: Remote, other: object) -> object:
        if not isinstance(other, Remote):
            return NotImplemented
        return bool(_peer(self).ask("operate", name, self, other))

    return method


def _make_arithmetic(name: str) -> Callable[..., object]:
    swapped = name.startswith("r_")
    plain_name = name.removeprefix("r_")

    def method(self: Remote, other: object) -> object:
        operands = (other, self) if swapped else (self, other)
        value = _peer(self).ask("operate", plain_name, *operands)
        if not isinstance(other, Remote) and not isinstance(value, Remote):
            raise TypeError(
                f"{plain_name} of an object of the solution and a plain value must give another such object"
            )
        return value

    return method


_OPERATIONS: dict[str, Callable[..., object]] = {
    **{name: getattr(builtins, name) for name in ("len", "iter", "next", "bool", "str", "repr", "reversed")},
    **{name: getattr(operator, name) for name in ("getitem", "setitem", "delitem", "eq", "ne", "lt", "le", "gt", "ge")},
}
for _name in ("len", "iter", "next", "bool", "str", "repr", "reversed", "getitem", "setitem", "delitem"):
    setattr(Remote, f"__{_name}__", _make_forwarding(_name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Remote, f"__{_name}__", _make_comparison(_name))
_ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
for _name in _ARITHMETIC:
    _OPERATIONS[_name] = getattr(operator, f"__{_name}__")
    setattr(Remote, f"__{_name}__", _make_arithmetic(_name))
    setattr(Remote, f"__r{_name}__", _make_arithmetic(f"r_{_name}"))


_ACTIONS: dict[str, Callable[..., object]] = {
    "get": Peer._attribute,
    "set": Peer._set_attribute,
    "name": Peer._look_up,
    "module": Peer._look_up_module,
    "isinstance": lambda peer, instance, kind: isinstance(instance, kind),
    "operate": lambda peer, name, *operands: _OPERATIONS[name](*operands),
    "takes_one": lambda peer, function: _takes_one(function),
}

# Functions that tests and solutions hand to each other; none of them runs text or looks into objects.
_HARMLESS_BUILTINS = frozenset({
    "abs", "all", "any", "ascii", "bin", "bool", "bytes", "callable", "chr", "complex", "dict", "divmod", "enumerate",
    "filter", "float", "format", "frozenset", "hash", "hex", "int", "isinstance", "issubclass", "iter", "len", "list",
    "map", "max", "min", "next", "oct", "ord", "pow", "print", "range", "repr", "reversed", "round", "set", "slice",
    "sorted", "str", "sum", "tuple", "zip",
})  # fmt: skip


def _takes_one(function: Foreign) -> bool:
    """Whether a list given to this function is its one argument rather than its list of arguments."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    bound = 1 if hasattr(function, "__self__") else 0
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return True
    positional: int = code.co_argcount - bound
    required = positional - len(getattr(plain, "__defaults__", None) or ())
    return positional >= 1 and required <= 1


def _describe(error: BaseException) -> list[object]:
    """Class, closest built-in class, text and plain arguments of an exception."""
    kind = type(error)
    try:
        text = str(error)
    except Exception:
        text = ""
    plain = all(type(argument) in (str, int, float, bool, type(None)) for argument in error.args)
    return [kind.__name__, _builtin_base(kind), text[:2000], list(error.args) if plain else None]


def _builtin_base(kind: type) -> str:
    names = (base.__name__ for base in kind.__mro__ if getattr(builtins, base.__name__, None) is base)
    return str(next(names))


def last_line_in(file: str, error: BaseException) -> int | None:
    """The innermost line of the file that an exception came through."""
    place, line = error.__traceback__, None
    while place is not None:
        if place.tb_frame.f_code.co_filename == file:
            line = place.tb_lineno
        place = place.tb_next
    return line


def _refill(container: object, content: Foreign) -> None:
    if isinstance(container, list):
        container[:] = content
    elif isinstance(container, dict | set):
        container.clear()
        container.update(content)


def write_frame(descriptor: int, data: bytes) -> None:
    view = memoryview(struct.pack("=Q", len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_frame(descriptor: int) -> bytes | None:
    """The next frame, or None where the other side has ended."""
    header = _read_exactly(descriptor, 8)
    return None if header is None else _read_exactly(descriptor, struct.unpack("=Q", header)[0])


def _read_exactly(descriptor: int, count: int) -> bytes | None:
    # Never more than asked for: the next frame on the pipe may be for another process.
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
