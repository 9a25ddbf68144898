"""What made a score: an object's class and parameters, the code it reaches, and the values that this code reads.

`describe_object` gives it as JSON, so that a store keeps it and a comparison can name what differs. Code of the user's and
of Themis is followed through every function, class and module that it names; the standard library counts by name, an
installed distribution by its version. `core.values` says what a value is, `core.source` what code says.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import functools
import importlib.util
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from themis.core.codec import canonical_json, digest
from themis.core.source import (
    DEFINITIONS,
    Function,
    Import,
    Origin,
    Path,
    SourceFile,
    Uses,
    library_version,
    open_source,
    origin_of,
    typed_in,
)
from themis.core.values import HOOK, Values, relative_to_project, shorten, type_name

__all__ = ["code_fingerprint", "describe_object", "find_unknown"]


def describe_object(value: object) -> dict[str, object]:
    """Class, parameters and code of a metric, extractor, strategy or function, with what the code reads.

    The description has `class` (or `function`, `partial`) and `parameters`, `code` as one digest, and where there is
    something to say: `made_of` (digests of the functions and classes of the user's own, by name), `reads` (globals, class
    attributes, defaults and closures by name; long ones as digests), `libraries` (versions), `unknown` (what has no
    canonical form, by name: whatever it decided cannot be recognised again) and `without_source`.

    Args:
        value: Anything; what it calls and reads is found by itself.

    >>> from themis.evaluation.metrics import Numeric
    >>> described = describe_object(Numeric(tolerance=0.1))
    >>> described["class"], described["parameters"]["tolerance"]
    ('themis.evaluation.metrics.text.Numeric', 0.1)
    """
    return _Reach(value).describe()


def code_fingerprint(value: object) -> str:
    """Digest of the code alone of a class or function, with all that it reaches."""
    reach = _Reach(value)
    reach.describe()
    return reach.code_digest()


def find_unknown(described: object) -> list[str]:
    """What a description, or anything made of descriptions, could not know, each once."""
    found: list[str] = []
    if isinstance(described, Mapping):
        names = described.get("unknown")
        found += [str(name) for name in names] if isinstance(names, list) else []
        found += [name for below in described.values() for name in find_unknown(below)]
    elif isinstance(described, list):
        found += [name for below in described for name in find_unknown(below)]
    return list(dict.fromkeys(found))


class _Read(NamedTuple):
    """A value that code reads by a name of its module."""

    namespace: Mapping[str, Any]
    name: str
    value: object
    in_any_order: bool


class _Definition(NamedTuple):
    """The statements that give a variable its first value, as one digest, and whether they read anything."""

    digest: str
    reads: bool


# Made by the interpreter, or said elsewhere.
_NO_MEMBERS = frozenset({"_abc_impl", "_is_protocol", "_is_runtime_protocol", "__class__"})
_UNCHANGING = (bool, int, float, str, bytes, tuple, frozenset, type(None), FunctionType, type)
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "__setstate__")
# Who calls these may read any name of the module.
_LOOKING_ANYWHERE = frozenset({"eval", "exec", "globals"})
_MISSING = object()


class _Reach:
    """Everything that one object's score rests on, found by following names from it."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._home: str | None = None
        self._code: set[tuple[str, str]] = set()
        self._own: dict[str, set[str]] = {}
        self._reads: dict[str, object] = {}
        self._libraries: dict[str, str] = {}
        self._without_source: set[str] = set()
        self._seen: set[int] = set()
        self._kept: list[object] = []  # so that no id is given twice
        self._pending: dict[tuple[int, str], _Read] = {}
        self._waiting: list[FunctionType | type] = []
        self._written: set[tuple[int, str]] = set()
        self._mutated: set[int] = set()
        self._values = Values(
            describe_code=self._describe_code,
            visit=self._visit,
            private=_private_parameters,
            is_read=lambda kind: _origin_of_class(kind).is_read,
        )

    def describe(self) -> dict[str, object]:
        described = self._describe_root()
        self._follow()
        described["code"] = self.code_digest()
        parts: dict[str, object] = {
            "made_of": {name: digest(*sorted(texts))[:12] for name, texts in sorted(self._own.items())},
            "reads": dict(sorted(self._reads.items())),
            "libraries": dict(sorted(self._libraries.items())),
            "unknown": sorted(set(self._values.unknown)),
            "without_source": sorted(self._without_source),
        }
        return {**described, **{name: part for name, part in parts.items() if part}}

    def code_digest(self) -> str:
        return digest(*(part for pair in sorted(self._code) for part in pair))

    def _describe_root(self) -> dict[str, object]:
        root = self._root
        described = self._values.describe(root, type(root).__qualname__)
        if not isinstance(described, dict):
            return {"class": type_name(type(root)), "parameters": {"value": described}}
        return described

    # --- following -----------------------------------------------------------------------------------------------------

    def _visit(self, code: object) -> None:
        """Whatever a value leads to: functions and classes are read, anything else is counted by its library."""
        if id(code) in self._seen:
            return
        self._seen.add(id(code))
        self._kept.append(code)
        if isinstance(code, ModuleType):
            self._read_module(code)
            return
        if not isinstance(code, FunctionType | type):
            self._count_library(str(getattr(code, "__module__", None) or getattr(code, "__name__", "")))
            return
        if self._home is None and _origin_of_code(code) is Origin.OWN:
            self._home = _module_of(code)
        self._waiting.append(code)

    def _follow(self) -> None:
        while self._waiting or self._pending:
            while self._waiting:
                code = self._waiting.pop()
                if isinstance(code, FunctionType):
                    self._follow_function(code)
                else:
                    self._follow_class(code)
            # Values last: by then it is known which of them the code itself changes.
            pending, self._pending = self._pending, {}
            for read in pending.values():
                self._resolve(read)

    def _follow_function(self, function: FunctionType) -> None:
        origin, module = _origin_of_code(function), _module_of(function)
        if not origin.is_read:
            self._count_library(module)
            return
        code, namespace = function.__code__, function.__globals__
        source, node = _source_of(function)
        if origin is Origin.OWN and not _LOOKING_ANYWHERE.isdisjoint(_names_in(code) - namespace.keys()):
            self._read_names(namespace)
        if source is None or node is None:
            self._put_code(origin, module, code.co_qualname, _byte_code(code, function.__doc__))
            self._without_source.add(code.co_qualname)
            self._read_all(Uses(reads={(name,) for name in _names_in(code)}), namespace)
            return
        self._put_code(origin, module, code.co_qualname, source.says(node))
        uses = source.uses(node)
        self._note_writes(uses, namespace)
        self._read_all(uses, namespace, only=_names_in(code))
        for imported in uses.imports.values():
            self._import(imported, namespace)

    def _put_code(self, origin: Origin, module: str, name: str, text: str) -> None:
        # The module of the user's code is no part of it: a class may move, and a script be imported.
        key = f"{module}.{name}" if origin is Origin.THEMIS else name
        said = digest(text)
        self._code.add((key, said))
        if origin is Origin.OWN:
            # Lambdas, and functions of one name in modules of their own, stand together.
            self._own.setdefault(key, set()).add(said)

    def _note_writes(self, uses: Uses, namespace: Mapping[str, object]) -> None:
        for path in uses.writes | uses.assigns:
            if path[0] not in namespace and path[0] not in uses.imports:
                continue
            if (found := self._look_up(path, uses, namespace)) is None:
                continue
            owner, name, value = found
            if isinstance(value, FunctionType | type):
                continue
            self._written.add((id(owner), name))
            if not isinstance(value, _UNCHANGING):
                self._mutated.add(id(value))
                self._kept.append(value)

    def _read_all(self, uses: Uses, namespace: Mapping[str, object], only: set[str] | None = None) -> None:
        for path in sorted(uses.reads):
            name = path[0]
            # Others are locals, variables of a function around this one, or Python's own.
            if name in uses.imports or (name in namespace and (only is None or name in only)):
                self._read(path, uses, namespace)

    def _read(self, path: Path, uses: Uses, namespace: Mapping[str, object]) -> None:
        start = namespace.get(path[0])
        if isinstance(start, ModuleType) and start.__name__ != path[0] and not origin_of(start.__name__).is_read:
            self._put_read(str(namespace.get("__name__", "")), path[0], {"module": start.__name__})
        if (found := self._look_up(path, uses, namespace)) is None:
            return
        owner, name, value = found
        if isinstance(value, ModuleType):
            self._read_module(value)
        else:
            earlier = self._pending.get((id(owner), name))
            in_any_order = path[0] in uses.in_any_order and (earlier is None or earlier.in_any_order)
            self._pending[(id(owner), name)] = _Read(owner, name, value, in_any_order)

    def _look_up(
        self, path: Path, uses: Uses, namespace: Mapping[str, object]
    ) -> tuple[Mapping[str, Any], str, Any] | None:
        """The value of a name, or of what it names in a module; with the namespace it stands in."""
        imported = uses.imports.get(path[0])
        owner, name = namespace, path[0]
        if imported is None:
            value = namespace.get(name, _MISSING)
        else:
            value = self._import(imported, namespace)
            if imported.attribute is not None and (module := _load(imported, namespace)) is not None:
                owner, name = vars(module), imported.attribute
        for below in path[1:]:
            if not isinstance(value, ModuleType):
                break
            if not origin_of(value.__name__).is_read:
                self._count_library(value.__name__)
                return None
            owner, name, value = vars(value), below, _attribute(value, below)
        return None if value is _MISSING else (owner, name, value)

    def _import(self, imported: Import, namespace: Mapping[str, object]) -> object:
        module = _load(imported, namespace)
        if module is None:
            self._count_library(imported.module)
            return _MISSING
        return module if imported.attribute is None else _attribute(module, imported.attribute)

    def _read_module(self, module: ModuleType) -> None:
        """A module as a value, of which anything may be asked: all that it defines."""
        if not origin_of(module.__name__).is_read:
            self._count_library(module.__name__)
            return
        self._read_names(vars(module))

    def _read_names(self, namespace: Mapping[str, object]) -> None:
        for name, value in namespace.items():
            if not name.startswith("__") and not isinstance(value, ModuleType):
                self._pending[(id(namespace), name)] = _Read(namespace, name, value, False)

    def _count_library(self, module: str) -> None:
        if module and origin_of(module) is Origin.INSTALLED:
            top = module.partition(".")[0]
            self._libraries[top] = library_version(top)

    # --- globals ---------------------------------------------------------------------------------------------------------

    def _resolve(self, read: _Read) -> None:
        module, value = str(read.namespace.get("__name__", "")), read.value
        where = f"global `{read.name}` of module {module}"
        is_code = isinstance(value, FunctionType | type | types.BuiltinFunctionType)
        if is_code:
            described = self._values.describe(value, where)
            if not _is_named_by_its_text(value, read.name, described):
                self._put_read(module, read.name, described)
        elif origin_of(module) is Origin.THEMIS:
            self._resolve_our_own(read, f"{module}.{read.name}", where)
        elif (id(read.namespace), read.name) in self._written or id(value) in self._mutated:
            definition = self._define(read.namespace, read.name)
            text = type_name(type(value)) if definition is None else definition.digest
            self._put_read(module, read.name, {"changed by the code, begins as": text})
        else:
            value = relative_to_project(value, read.namespace.get("__file__"))
            self._put_read(module, read.name, self._values.describe(value, where, in_any_order=read.in_any_order))

    def _put_read(self, module: str, name: str, described: object) -> None:
        if origin_of(module) is Origin.THEMIS:
            self._code.add((f"{module}.{name} as read", digest(canonical_json(described))))
            return
        label = name if module == self._home else f"{module.rpartition('.')[2]}.{name}"
        described = shorten(described)
        if self._reads.get(label, described) != described:
            label = f"{label}#{digest(canonical_json(described))[:8]}"
        self._reads[label] = described

    def _resolve_our_own(self, read: _Read, key: str, where: str) -> None:
        """A constant of ours is what our source says, on every machine; one that is written out there, what it is now."""
        definition = self._define(read.namespace, read.name)
        if hasattr(type(read.value), HOOK) or definition is None or not definition.reads:
            self._code.add((key, digest(canonical_json(self._values.describe(read.value, where)))))
        else:
            self._code.add((key, definition.digest))

    def _define(self, namespace: Mapping[str, object], name: str) -> _Definition | None:
        """The first value of a global, with what it is made of; None where its statement is not to be found."""
        for source in _sources_of_module(namespace):
            statements = source.bindings.get(name, [])
            if statements and isinstance(statements[-1], ast.Import | ast.ImportFrom):
                imported = source.uses(statements[-1]).imports.get(name)
                module = None if imported is None else _load(imported, namespace)
                if imported is None or imported.attribute is None or module is None or vars(module) is namespace:
                    return None
                return self._define(vars(module), imported.attribute)
            if statements:
                return self._define_by(statements, source, namespace, {name})
        return None

    def _define_by(
        self, statements: list[ast.stmt], source: SourceFile, namespace: Mapping[str, object], besides: set[str]
    ) -> _Definition:
        reads = False
        for statement in statements:
            uses = source.uses(statement)
            names = {path[0] for path in uses.reads} - besides
            reads = reads or bool(names - {"re"})
            self._read_all(uses, namespace, only=names)
        return _Definition(digest(*(source.says(statement) for statement in statements)), reads)

    # --- functions -------------------------------------------------------------------------------------------------------

    def _describe_code(self, code: object, where: str) -> object:
        """A function or class where it stands as a value: its name, and what it was given when it was made."""
        self._visit(code)
        if isinstance(code, type):
            return {"class": _name_of(code)}
        if not isinstance(code, FunctionType):
            return self._describe_built_in(code, where)
        described: dict[str, object] = {"function": _name_of(code)}
        if not _origin_of_code(code).is_read:
            # A decorator of a library: what it was given stands in the text of what it decorates.
            wrapped = getattr(code, "__wrapped__", None)
            parts = {"wraps": None if wrapped is None else self._values.describe(wrapped, where)}
            if isinstance(registry := getattr(code, "registry", None), Mapping):
                parts["registry"] = self._values.describe({type_name(key): one for key, one in registry.items()}, where)
        else:
            parts = {"defaults": self._defaults(code, where), "closure": self._closure(code, where)}
            source, node = _source_of(code)
            text = _byte_code(code.__code__, code.__doc__) if source is None or node is None else source.says(node)
            parts["code"] = digest(text)[:12]
            parts["attributes"] = self._function_attributes(code, source, node)
        return {**described, **{name: part for name, part in parts.items() if part}}

    def _function_attributes(
        self, function: FunctionType, source: SourceFile | None, node: Function | None
    ) -> dict[str, object]:
        """What was set on a function, but for what it counts on itself."""
        uses = Uses() if source is None or node is None else source.uses(node)
        changed = {path[1] for path in uses.writes | uses.assigns if len(path) > 1 and path[0] == function.__name__}
        return {
            name: self._values.describe(value, f"attribute `{name}` of {function.__qualname__}")
            for name, value in sorted(vars(function).items())
            if name not in changed and not name.startswith("__")
        }

    def _describe_built_in(self, code: object, where: str) -> object:
        owner = getattr(code, "__self__", None)
        name = f"{getattr(code, '__module__', None) or type_name(type(owner))}.{getattr(code, '__qualname__', code)}"
        if owner is None or isinstance(owner, ModuleType | type):
            return {"function": name}
        return {"method": name, "of": self._values.describe(owner, where)}

    def _defaults(self, function: FunctionType, where: str) -> dict[str, object]:
        """Values of parameters that are not written out in the text."""
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        given = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
        given.update(function.__kwdefaults__ or {})
        _, node = _source_of(function)
        written_out = _written_out_defaults(node) if node is not None else set()
        return {
            name: self._values.describe(value, f"default `{name}` of {function.__qualname__}")
            for name, value in sorted(given.items())
            if name not in written_out
        }

    def _closure(self, function: FunctionType, where: str) -> dict[str, object]:
        source, node = _source_of(function)
        changed: set[str] = set()
        bindings: dict[str, list[ast.stmt]] = {}
        if source is not None and node is not None:
            uses = source.uses(node)
            changed = {path[0] for path in uses.writes | uses.assigns}
            bindings = source.find_variables(function.__code__.co_qualname.rpartition(".<locals>.")[0])
        found: dict[str, object] = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name in _NO_MEMBERS or (value := _content(cell)) is _MISSING:
                continue
            if source is not None and name in changed and name in bindings:
                definition = self._define_by(bindings[name], source, function.__globals__, {name})
                found[name] = {"changed by the code, begins as": definition.digest}
            else:
                found[name] = shorten(
                    self._values.describe(value, f"variable `{name}` that {function.__qualname__} closes over")
                )
        return found

    # --- classes ---------------------------------------------------------------------------------------------------------

    def _follow_class(self, kind: type) -> None:
        origin = _origin_of_class(kind)
        if not origin.is_read:
            self._count_library(kind.__module__)
            return
        for base in (*kind.__mro__[1:], type(kind)):
            if base not in (object, type):
                self._visit(base)
        source, node = _source_of_class(kind)
        shell = ""
        if source is not None and node is not None:
            statements = [one for one in node.body if not isinstance(one, (*DEFINITIONS, ast.Expr, ast.Pass))]
            shell = "".join(map(source.says, [*node.decorator_list, *node.bases, *node.keywords, *statements]))
            if origin is Origin.THEMIS:
                self._define_by(statements, source, vars(sys.modules[kind.__module__]), set())
        self._put_code(origin, kind.__module__, kind.__qualname__, shell)
        changed = _changed_attributes(kind)
        for name, member in sorted(vars(kind).items()):
            if isinstance(member, _CODE_MEMBERS):
                self._follow_method(kind, name, member)
            elif origin is Origin.OWN and name not in changed and not _is_made_by_python(kind, name, member):
                self._read_attribute(kind, name, member)
        if origin is Origin.OWN and "__dataclass_fields__" in vars(kind):
            self._read_fields(kind)

    def _follow_method(self, kind: type, name: str, member: object) -> None:
        function = getattr(member, "__func__", member)
        if isinstance(function, FunctionType) and _is_generated(kind, name, function):
            return
        described = self._values.describe(member, f"`{kind.__qualname__}.{name}`")
        if not _is_named_by_its_text(function, name, described):
            self._put_member(kind, name, described)

    def _read_attribute(self, kind: type, name: str, member: object) -> None:
        value = member.value if isinstance(member, enum.Enum) else member
        self._put_member(kind, name, self._values.describe(value, f"attribute `{name}` of class {kind.__qualname__}"))

    def _read_fields(self, kind: Any) -> None:
        for field in dataclasses.fields(kind):
            made = field.default if field.default is not dataclasses.MISSING else field.default_factory
            if made is not dataclasses.MISSING and field.name not in vars(kind):
                where = f"default of the field `{field.name}` of {kind.__qualname__}"
                self._put_member(kind, field.name, self._values.describe(made, where))

    def _put_member(self, kind: type, name: str, described: object) -> None:
        # Classes have names of their own in the user's code, wherever they stand.
        module = kind.__module__ if _origin_of_class(kind) is Origin.THEMIS else str(self._home)
        self._put_read(module, f"{kind.__qualname__}.{name}", described)


# --- where code stands ----------------------------------------------------------------------------------------------------

_CODE_MEMBERS = (
    *(FunctionType, staticmethod, classmethod, property, functools.cached_property, type),
    *(type(functools.lru_cache(repr)), functools.partialmethod),
)


def _module_of(code: FunctionType | type) -> str:
    # A decorator gives its wrapper the name of what it wraps: the code is where its globals are.
    return str(code.__globals__.get("__name__", "") if isinstance(code, FunctionType) else code.__module__)


def _origin_of_code(code: FunctionType | type) -> Origin:
    return origin_of(_module_of(code)) if isinstance(code, FunctionType) else _origin_of_class(code)


def _origin_of_class(kind: type) -> Origin:
    module = str(kind.__module__)
    if module == "builtins" and getattr(builtins, kind.__name__, None) is not kind:
        return Origin.OWN if type(kind).__module__ != "builtins" or kind.__flags__ & _HEAP else Origin.STANDARD
    return origin_of(module)


_HEAP = 1 << 9  # made by a class statement, not compiled in


def _name_of(code: FunctionType | type) -> str:
    module, name = _module_of(code), code.__qualname__
    return name if _origin_of_code(code) is Origin.OWN else f"{module}.{name}"


def _source_of(function: FunctionType) -> tuple[SourceFile | None, Function | None]:
    source = open_source(function.__code__.co_filename)
    if source is None:
        return None, None
    return source, source.find_function(function.__code__, trusted=_origin_of_code(function) is Origin.THEMIS)


def _source_of_class(kind: type) -> tuple[SourceFile | None, ast.ClassDef | None]:
    methods = [
        member.__code__
        for member in vars(kind).values()
        if isinstance(member, FunctionType) and member.__code__.co_qualname.startswith(f"{kind.__qualname__}.")
    ]
    module = sys.modules.get(kind.__module__)
    filename = methods[0].co_filename if methods else getattr(module, "__file__", None)
    source = None if filename is None else open_source(filename)
    if source is None:
        return None, None
    return source, source.find_class(kind.__qualname__, min((one.co_firstlineno for one in methods), default=None))


def _sources_of_module(namespace: Mapping[str, object]) -> Iterator[SourceFile]:
    filename = namespace.get("__file__")
    if filename is None:
        yield from typed_in()
    elif (found := open_source(str(filename))) is not None:
        yield found


def _load(imported: Import, namespace: Mapping[str, object]) -> ModuleType | None:
    """A module that code imports when it runs; only what is read is loaded for it."""
    name = imported.module
    if imported.level:
        package = str(namespace.get("__package__") or str(namespace.get("__name__", "")).rpartition(".")[0])
        try:
            name = importlib.util.resolve_name("." * imported.level + imported.module, package)
        except ImportError:
            return None
    if not origin_of(name).is_read:
        return None
    try:
        if imported.attribute is not None and origin_of(f"{name}.{imported.attribute}").is_read:
            module = importlib.import_module(name)
            if not hasattr(module, imported.attribute):
                importlib.import_module(f"{name}.{imported.attribute}")
            return module
        return importlib.import_module(name)
    except Exception:  # boundary: a module of the user's, which fails when it is needed as well
        return sys.modules.get(name)


def _attribute(module: ModuleType, name: str) -> object:
    try:
        return getattr(module, name)
    except Exception:  # boundary: a module may have a `__getattr__` of its own
        return _MISSING


# --- what code says -------------------------------------------------------------------------------------------------------


def _names_in(code: CodeType) -> set[str]:
    nested = [item for item in code.co_consts if isinstance(item, CodeType)]
    return set(code.co_names).union(*(_names_in(item) for item in nested))


def _byte_code(code: CodeType, documentation: str | None) -> str:
    constants = list(code.co_consts)
    if documentation is not None and constants and constants[0] == documentation:
        del constants[0]
    said = [_byte_code(one, None) if isinstance(one, CodeType) else _constant(one) for one in constants]
    return f"{code.co_name}{code.co_code.hex()}{code.co_names}{code.co_varnames}{said}"


def _constant(item: object) -> str:
    # `x in {"a", "b"}` compiles to a frozen set, whose order is another in every process.
    return repr(sorted(map(repr, item)) if isinstance(item, frozenset) else item)


def _is_named_by_its_text(code: Any, name: str, described: object) -> bool:
    """Whether a function or class under its own name is wholly said by its text, or is one of our contracts."""
    if isinstance(described, list):  # the parts of a property, which have one name
        return all(isinstance(one, dict) and one.keys() <= {"function", "code"} for one in described)
    if not isinstance(described, dict) or not described.keys() <= {"function", "class", "code"}:
        return False
    code = inspect.unwrap(getattr(code, "func", code))
    if not isinstance(code, FunctionType | type) or code.__name__ != name:
        return False
    origin = _origin_of_code(code)
    return origin.is_read or origin is Origin.CONTRACT


def _is_generated(kind: type, name: str, function: FunctionType) -> bool:
    """Put in by Python or a class decorator, as a dataclass's `__init__` is: what it does follows from the class."""
    code = getattr(inspect.unwrap(function), "__code__", function.__code__)
    if name.startswith("_") and _origin_of_code(function) is Origin.STANDARD:
        return True
    makes = any(hasattr(kind, mark) for mark in ("__dataclass_fields__", "__attrs_attrs__", "_fields"))
    is_written = code.co_qualname == f"{kind.__qualname__}.{name}" or not code.co_filename.startswith("<")
    return makes and name.startswith("__") and not is_written


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _written_out_defaults(node: Function) -> set[str]:
    arguments = node.args
    by_place = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    defaults = dict(zip(reversed(by_place), reversed(arguments.defaults), strict=False))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            defaults[argument.arg] = default
    return {name for name, default in defaults.items() if isinstance(default, ast.Constant)}


def _is_made_by_python(kind: type, name: str, member: object) -> bool:
    return (
        name in _NO_MEMBERS
        or (name.startswith("__") and name.endswith("__"))
        or isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType)
        or (hasattr(kind, "_fields") and type(member).__name__ == "_tuplegetter")
        or (issubclass(kind, enum.Enum) and name.startswith("_"))
    )


# --- what methods do with attributes ----------------------------------------------------------------------------------------


def _methods_of(kind: type) -> Iterator[tuple[str, SourceFile, Function]]:
    for base in kind.__mro__:
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and _origin_of_code(function).is_read:
                source, node = _source_of(function)
                if source is not None and node is not None:
                    yield name, source, node


def _changed_attributes(kind: type) -> set[str]:
    """Attributes of the class that its methods count up or change in place: state. One that is set may have a setter."""
    changed: set[str] = set()
    for _, source, node in _methods_of(kind):
        arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)][:1]
        owners = {*arguments, kind.__name__}
        uses = source.uses(node)
        changed |= {path[1] for path in uses.writes if len(path) > 1 and path[0] in owners}
        changed |= {path[1] for path in uses.assigns if len(path) > 1 and path[0] in owners and path[1][0] == "_"}
    return changed


@functools.lru_cache(maxsize=256)
def _private_parameters(kind: type) -> frozenset[str]:
    """Underscored attributes that a constructor fills from its arguments and that no other method changes."""
    given: set[str] = set()
    changed: set[str] = set()
    for name, source, node in _methods_of(kind):
        arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        if name not in _CONSTRUCTORS:
            uses = source.uses(node)
            changed |= {path[1] for path in uses.writes | uses.assigns if len(path) > 1 and path[0] in arguments[:1]}
            continue
        for statement in ast.walk(node):
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                read = {part.id for part in ast.walk(statement.value) if isinstance(part, ast.Name)}
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if read & set(arguments[1:]):
                    given |= {one.attr for one in targets if isinstance(one, ast.Attribute) and one.attr[0] == "_"}
    return frozenset(given - changed)
