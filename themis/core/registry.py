"""One registry class for every kind of thing that is looked up by name.

Built-ins enter as `"module:attribute"` strings, listed or found by a function when the first name is looked up, and are
imported on first use; users register objects; other packages enter by the entry-point group `themis`, with names such as
`metric.my_metric` or `provider.my_provider`. `parse_call` reads a name with parameters behind it.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Generic, NamedTuple, TypeVar, cast

from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, DependencyError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind (a provider, a metric, ...) and what stands behind them. The last registration wins.

    Args:
        kind: What is registered, as errors call it and as entry points begin.
        builtin: name -> "module:attribute"; or a function that finds these, or the "module:attribute" of a whole table, when
            the first name is looked up.
        error: What an unknown name raises.
        elsewhere: What other tools call such things, in snake case -> how that is said here, for that error.

    Example:
        >>> animals: Registry[type] = Registry("animal")
        >>> animals.register("cat", dict)
        >>> animals.get("Cat")
        <class 'dict'>
    """

    def __init__(
        self,
        kind: str,
        builtin: Mapping[str, str] | Callable[[], Mapping[str, str]] | str | None = None,
        *,
        error: type[Exception] = ConfigurationError,
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self._elsewhere = elsewhere or {}
        self._targets: dict[str, T | str] = dict(builtin) if isinstance(builtin, Mapping) else {}
        self._find_builtin = None if isinstance(builtin, Mapping) else builtin
        self._registered: set[str] = set()
        self._error = error
        self._plugins_read = False

    def __themis_identity__(self) -> str:
        """What is registered besides decides nothing for who looks up one name: what is found counts by itself."""
        return self.kind

    def register(self, name: str, target: T | str) -> None:
        if not name or not isinstance(name, str):
            raise ConfigurationError(f"a {self.kind} is registered under a non-empty string, got {name!r}")
        self._read_plugins()
        self._targets[name] = target
        self._registered.add(name)

    def get(self, name: str) -> T:
        """Exact name, then without regard to case, then CamelCase as snake_case."""
        key = self.find(name)
        if key is None:
            raise self._error(self._unknown(name))
        target = self._targets[key]
        if isinstance(target, str):
            target = self._import(key, target)
            self._targets[key] = target
        return target

    def find(self, name: str) -> str | None:
        """The registered spelling of a name, or None."""
        self._read_plugins()
        for candidate in (name, name.lower(), snake_case(name)):
            if candidate in self._targets:
                return candidate
        folded, snake = name.casefold(), snake_case(name)
        return next(
            (known for known in self._targets if known.casefold() == folded or snake_case(known) == snake), None
        )

    def names(self) -> list[str]:
        self._read_plugins()
        return sorted(self._targets)

    def is_of_this_program(self, name: str) -> bool:
        """Whether it was registered by the program that runs, so that another process would not know it."""
        return self.find(name) in self._registered

    def target(self, name: str) -> T | str:
        """What is registered, without importing it."""
        return self._targets[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _unknown(self, name: str) -> str:
        if here := self._elsewhere.get(snake_case(name).replace("-", "_")):
            return f"unknown {self.kind} {name!r}: here it is {here}"
        return f"unknown {self.kind} {name!r}{nearest(name, self.names())}; known: {', '.join(self.names()) or 'none'}"

    def _import(self, name: str, target: str) -> T:
        try:
            return cast(T, _import_target(target))
        except DependencyError:
            raise
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(
                f"{self.kind} {name!r} points to {target!r}, which cannot be loaded: {error}"
            ) from error

    def _read_plugins(self) -> None:
        if self._plugins_read:
            return
        if self._find_builtin is not None:
            find = self._find_builtin
            found = _import_target(find) if isinstance(find, str) else find()
            self._targets = {**cast("Mapping[str, T | str]", found), **self._targets}
        self._plugins_read = True
        for kind, name, value in _plugin_entries():
            if kind == self.kind.replace(" ", "-"):
                self._targets.setdefault(name, value)


def _import_target(target: str) -> object:
    module_name, _, attribute = target.partition(":")
    found: object = importlib.import_module(module_name)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


class WrittenCall(NamedTuple):
    """A name and the parameters behind it."""

    name: str
    args: list[object]
    kwargs: dict[str, object]


def parse_call(written: str, kind: str) -> WrittenCall:
    """A name and its parameters, if it has any.

    Args:
        written: As the user wrote it.
        kind: What it names, for errors.

    Raises:
        ConfigurationError: The parameters are no literals.

    >>> parse_call("numeric(tolerance=0.01)", "metric")
    WrittenCall(name='numeric', args=[], kwargs={'tolerance': 0.01})
    """
    call = re.fullmatch(r"\s*([^()]+?)\s*\((.*)\)\s*", written, re.DOTALL)
    if call is None:
        # `ndcg@10` is how the field writes ndcg(k=10).
        cut = re.fullmatch(r"\s*(\w+)@(\d+)\s*", written)
        return WrittenCall(written.strip(), [], {}) if cut is None else WrittenCall(cut[1], [], {"k": int(cut[2])})
    try:
        parsed = ast.parse(f"_({call[2]})", mode="eval").body
        if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name):
            raise SyntaxError("not one list of parameters")
        args = [ast.literal_eval(argument) for argument in parsed.args]
        kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in parsed.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ConfigurationError(
            f"cannot read the parameters of {kind} {redact_text(written)!r}: expected literals, as in {call[1]}(name=0.5) "
            f"({error if isinstance(error, SyntaxError) else 'one of them is none'})"
        ) from error
    return WrittenCall(call[1], args, kwargs)


def add_own_files(builtin: Mapping[str, str], package: str) -> dict[str, str]:
    """A table of built-ins, and each file of their package that defines the class it is called after.

    `same_length.py` with the class `SameLength` is `same_length`. Files are read, not imported.

    Args:
        builtin: name -> "module:attribute"; files that it names are passed over.
        package: Where the files lie.
    """
    found = dict(builtin)
    modules = {target.partition(":")[0] for target in builtin.values()}
    for folder in importlib.import_module(package).__path__:
        for file in sorted(Path(folder).glob("[!_]*.py")):
            module = f"{package}.{file.stem}"
            classes = re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
            called = [name for name in classes if snake_case(name) == file.stem]
            if called and module not in modules:
                found.setdefault(file.stem, f"{module}:{called[0]}")
    return found


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """A module of a package that only one of our extras installs.

    Raises:
        DependencyError: It is missing; the message says what for, and how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DependencyError.for_extra(module.partition(".")[0], extra, purpose) from error


_ENTRIES: list[tuple[str, str, str]] | None = None


def _plugin_entries() -> list[tuple[str, str, str]]:
    """(kind, name, target) of every entry point in our group; reading the metadata of all packages is done once."""
    global _ENTRIES
    if _ENTRIES is None:
        from importlib.metadata import entry_points

        _ENTRIES = []
        for entry in entry_points(group="themis"):
            kind, _, name = entry.name.partition(".")
            if name:
                _ENTRIES.append((kind, name, entry.value))
    return _ENTRIES


def snake_case(name: str) -> str:
    """`ExactMatch` -> `exact_match`, `rougeL` -> `rouge_l`, `F1Score` -> `f1_score`."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", spaced)
    return re.sub(r"[\s\-]+", "_", spaced).lower()


def nearest(name: str, known: Iterable[str], *, render: Callable[[str], str] = repr) -> str:
    """` (did you mean 'x'?)` for the closest known name, or nothing."""
    by_fold = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(str(name).casefold(), by_fold, n=1, cutoff=0.6)
    return f" (did you mean {render(by_fold[close[0]])}?)" if close else ""
