"""The code that a score rests on: whose it is, and what it says, as text that only a change of meaning changes.

Code of the user's and of Themis is known by what it says; an installed distribution by its version, and by its files as well
where it came from a folder or a repository, whose version promises nothing. Comments, docstrings, formatting and places in a
file are no part of the text, and it is the same under every version of Python. `core.identity` asks here; a file is parsed
once.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import linecache
import pathlib
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from importlib import metadata
from importlib.util import find_spec
from types import CodeType
from typing import Any, ClassVar, TypeAlias, TypeVar

__all__ = [
    "Function",
    "Import",
    "Origin",
    "Path",
    "SourceFile",
    "Uses",
    "canonical_code",
    "find_uses",
    "library_version",
    "open_source",
    "origin_of",
    "typed_in",
]

Path: TypeAlias = tuple[str, ...]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_JUMPS = (ast.Break, ast.Continue)
# Where a statement has others below it.
_BELOW = ("body", "orelse", "handlers", "finalbody", "cases")
_Node = TypeVar("_Node", bound=ast.AST)
_NO_MEANING = frozenset({"ctx", "type_comment", "kind", "type_ignores"})
# How the containers of the standard library are changed in place.
_MUTATORS = frozenset({
    *("append", "appendleft", "add", "clear", "discard", "extend", "extendleft", "insert", "pop", "popitem", "popleft"),
    *("remove", "reverse", "rotate", "setdefault", "sort", "subtract", "update", "__setitem__", "__delitem__"),
    *("difference_update", "intersection_update", "symmetric_difference_update", "move_to_end"),
})  # fmt: skip


# --- files --------------------------------------------------------------------------------------------------------------


def open_source(filename: str) -> SourceFile | None:
    """The file of that name, or what was typed under it; None where its text is not to be had or is no Python."""
    linecache.checkcache(filename)
    lines = linecache.getlines(filename)
    if not lines:
        return None
    known = _OPENED.get(filename)
    if known is None or known.lines is not lines:
        text = "".join(lines)
        if known is None or known.text != text:
            _OPENED[filename] = known = _parse(filename, text, lines)
        else:
            known.lines = lines
    return known if known.tree is not None else None


def typed_in() -> Iterator[SourceFile]:
    """What was typed into this process, the latest first: the cells of a notebook, the lines of an interpreter."""
    names = [name for name, entry in linecache.cache.items() if len(entry) > 2 and entry[1] is None]
    for name in reversed(names):
        if (found := open_source(name)) is not None:
            yield found


@dataclass
class SourceFile:
    """One parsed text, with its functions and classes by qualified name."""

    filename: str
    text: str
    lines: list[str]
    tree: ast.Module | None

    def find_class(self, qualname: str, near: int | None = None) -> ast.ClassDef | None:
        """The class of that name; of several the one that begins last before the line, or the last."""
        found = self._definitions[1].get(qualname, ())
        before = [node for node in found if near is None or node.lineno <= near]
        return before[-1] if before else None

    def find_function(self, code: CodeType, *, trusted: bool = False) -> Function | None:
        """What a loaded function was compiled from; None where the text has changed since.

        Args:
            code: The function's.
            trusted: Whether the text is taken to be what was loaded, without compiling it to compare.
        """
        if trusted:
            return self._node_at(code)
        same = (one for one in self._compiled.get(code.co_qualname, ()) if _is_same(one, code))
        node = next((self._node_at(one) for one in same), None)
        try:
            return node if node is not None and self.says(node) and self.uses(node) else None
        except RecursionError:  # nested beyond what can be walked
            return None

    def find_variables(self, function: str) -> dict[str, list[ast.stmt]]:
        """The statements that bind variables of a function, by name."""
        if function not in self._variables:
            nodes = self._definitions[0].get(function, ())
            self._variables[function] = _bindings(nodes[0].body) if len(nodes) == 1 else {}
        return self._variables[function]

    @cached_property
    def bindings(self) -> dict[str, list[ast.stmt]]:
        """The statements of the module itself that bind a name, by name."""
        return _bindings(self.tree.body) if self.tree is not None else {}

    def uses(self, node: ast.AST) -> Uses:
        if id(node) not in self._uses:
            self._uses[id(node)] = find_uses(node)
        return self._uses[id(node)]

    def says(self, node: ast.AST) -> str:
        if id(node) not in self._texts:
            self._texts[id(node)] = canonical_code(node)
        return self._texts[id(node)]

    def _node_at(self, code: CodeType) -> Function | None:
        if code.co_name == "<lambda>":
            return self._lambda_at(code)
        nodes = self._definitions[0].get(code.co_qualname, ())
        here = [node for node in nodes if _first_line(node) == code.co_firstlineno]
        found = here or nodes
        return found[-1] if found else None

    def _lambda_at(self, code: CodeType) -> ast.Lambda | None:
        nodes = self._lambdas.get(code.co_firstlineno, ())
        if len(nodes) < 2:
            return nodes[0] if nodes else None
        places = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
        if not places:
            return None
        around = [node for node in nodes if (node.lineno, node.col_offset) < places[-1] <= _end(node)]
        return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)

    @cached_property
    def _definitions(self) -> tuple[dict[str, list[ast.FunctionDef]], dict[str, list[ast.ClassDef]]]:
        functions: dict[str, list[ast.FunctionDef]] = {}
        classes: dict[str, list[ast.ClassDef]] = {}
        waiting = [(statement, "") for statement in reversed(self.tree.body if self.tree is not None else [])]
        while waiting:
            node, prefix = waiting.pop()
            inner = prefix
            if isinstance(node, _FUNCTIONS):
                functions.setdefault(prefix + node.name, []).append(node)  # type: ignore[arg-type]
                inner = f"{prefix}{node.name}.<locals>."
            elif isinstance(node, ast.ClassDef):
                classes.setdefault(prefix + node.name, []).append(node)
                inner = f"{prefix}{node.name}."
            waiting.extend((below, inner) for below in reversed(list(_statements_of(node))))
        return functions, classes

    @cached_property
    def _lambdas(self) -> dict[int, list[ast.Lambda]]:
        found: dict[int, list[ast.Lambda]] = {}
        for node in ast.walk(self.tree) if self.tree is not None else ():
            if isinstance(node, ast.Lambda):
                found.setdefault(node.lineno, []).append(node)
        return found

    @cached_property
    def _compiled(self) -> dict[str, list[CodeType]]:
        found: dict[str, list[CodeType]] = {}
        try:
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as notebooks do
            assert self.tree is not None
            waiting = [compile(self.tree, self.filename, "exec", flags=flags, dont_inherit=True)]
        except (SyntaxError, ValueError, RecursionError):
            return found
        while waiting:
            code = waiting.pop()
            found.setdefault(code.co_qualname, []).append(code)
            waiting.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
        return found

    def __post_init__(self) -> None:
        self._uses: dict[int, Uses] = {}
        # Kept, for texts and uses are known by the nodes' addresses.
        self._variables: dict[str, dict[str, list[ast.stmt]]] = {}
        self._texts: dict[int, str] = {}


_OPENED: dict[str, SourceFile] = {}


def _parse(filename: str, text: str, lines: list[str]) -> SourceFile:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        tree = None
    return SourceFile(filename, text, lines, tree)


def _is_same(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects do the same, wherever they stand."""
    for name in (
        "co_code",
        "co_names",
        "co_varnames",
        "co_freevars",
        "co_cellvars",
        "co_argcount",
        "co_kwonlyargcount",
    ):
        if getattr(one, name) != getattr(other, name):
            return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    pairs = zip(one.co_consts, other.co_consts, strict=True)
    return all(
        _is_same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else type(a) is type(b) and _equals(a, b)
        for a, b in pairs
    )


def _equals(one: object, other: object) -> bool:
    return one == other if isinstance(one, frozenset) else repr(one) == repr(other)


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _end(node: ast.expr) -> tuple[int, int]:
    return (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


def _statements_of(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements directly below one, also in its branches."""
    for name in _BELOW:
        below = getattr(node, name, None)
        for child in below if isinstance(below, list) else ():
            if isinstance(child, ast.stmt):
                yield child
            else:
                yield from _statements_of(child)


def _bindings(body: Iterable[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """The statements of one scope that bind a name, and those that fill what it stands for, by name."""
    found: dict[str, list[ast.stmt]] = {}
    waiting = list(body)
    for node in waiting:
        if not isinstance(node, (*DEFINITIONS, ast.Import, ast.ImportFrom)):
            for name in {path[0] for path in find_uses(node).writes}:
                found.setdefault(name, []).append(_cut_out(node, name))
    while waiting:
        node = waiting.pop(0)
        for name in _names_bound(node):
            found.setdefault(name, []).append(node)  # after those that fill it: the last one says where it is from
        if not isinstance(node, DEFINITIONS):
            waiting[:0] = _statements_of(node)
    return found


def _cut_out(node: ast.stmt, name: str) -> ast.stmt:
    """The statement without those below it that have no part in what a variable stands for.

    What a loop of a script does besides filling a list, such as the evaluations that it makes, is not what the list is made of.
    """
    parts = list(_parts_of(node, set()))
    needed, kept = {name}, set[int]()
    while found := [one for one in parts if id(one[0]) not in kept and (one[1] & needed or isinstance(one[0], _JUMPS))]:
        for part, _, reads in found:
            kept.add(id(part))
            needed |= reads
    return _without_others(node, kept)


def _parts_of(node: ast.AST, around: set[str]) -> Iterator[tuple[ast.stmt, set[str], set[str]]]:
    """The simple statements of one that has others below it: what each binds or changes, and what it reads or hangs on."""
    if _has_statements(node):
        around = around | {path[0] for path in find_uses(_without_others(node, set())).reads}
        for statement in _statements_of(node):
            yield from _parts_of(statement, around)
    elif isinstance(node, ast.stmt):
        uses = find_uses(node)
        bound = {path[0] for path in uses.writes | uses.assigns} | {*_names_bound(node)}
        bound |= {node.name} if isinstance(node, DEFINITIONS) else set()
        yield node, bound, around | {path[0] for path in uses.reads}


def _without_others(node: _Node, kept: set[int]) -> _Node:
    """A copy of a statement in which of the simple ones below it only some are left."""
    if not _has_statements(node):
        return node
    cut = copy.copy(node)
    for name in _BELOW:
        below = getattr(node, name, None)
        if isinstance(below, list):
            left = [_without_others(child, kept) for child in below]
            setattr(cut, name, [child for child in left if id(child) in kept or _has_statements(child)])
    return cut


def _has_statements(node: ast.AST) -> bool:
    """Whether it is a loop, a condition and the like, with something in it; what is defined is one statement."""
    return not isinstance(node, DEFINITIONS) and next(_statements_of(node), None) is not None


def _names_bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
        return
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        for part in ast.walk(target) if isinstance(target, ast.AST) else ():
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


# --- text ---------------------------------------------------------------------------------------------------------------


def canonical_code(node: ast.AST) -> str:
    """One text for code that means the same."""
    parts: list[str] = []
    _write(node, parts.append)
    return "".join(parts)


def _write(node: object, put: Callable[[str], None]) -> None:
    if isinstance(node, ast.Constant):
        put(f"{type(node.value).__name__}:{_constant_text(node.value)}")
    elif isinstance(node, ast.JoinedStr):
        # Some versions of Python leave empty texts between the fields of an f-string.
        put("f-string")
        _write([part for part in node.values if not isinstance(part, ast.Constant) or part.value != ""], put)
    elif isinstance(node, ast.AST):
        put(f"{type(node).__name__}(")
        for name in node._fields:
            value = getattr(node, name, None)
            if value is None or name in _NO_MEANING:
                continue
            if name in ("body", "orelse", "finalbody") and isinstance(value, list):
                value = [child for child in value if not _does_nothing(child)]
            # What a later Python adds to the grammar is empty in code that does not use it.
            if value == []:
                continue
            put(f"{name}=")
            _write(value, put)
            put(",")
        put(")")
    elif isinstance(node, list):
        put("[")
        for child in node:
            _write(child, put)
            put(",")
        put("]")
    else:
        put(repr(node))


def _constant_text(value: object) -> str:
    if isinstance(value, tuple | frozenset):
        return repr(
            sorted(map(_constant_text, value)) if isinstance(value, frozenset) else list(map(_constant_text, value))
        )
    return repr(value)


def _does_nothing(node: ast.AST) -> bool:
    """A docstring, a text that stands for a comment, `pass` or `...`."""
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


# --- names --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """A name that a function imports when it runs; `attribute` of a module, or the module itself."""

    module: str
    level: int
    attribute: str | None


@dataclass
class Uses:
    """What code reads and changes, by dotted path from a name."""

    reads: set[Path] = field(default_factory=set)
    # Names of which every use looks something up by key, so that the order of a mapping does not matter.
    in_any_order: set[str] = field(default_factory=set)
    # Changed in place or counted up, and given another value: the latter may be what a setter does.
    writes: set[Path] = field(default_factory=set)
    assigns: set[Path] = field(default_factory=set)
    imports: dict[str, Import] = field(default_factory=dict)


def find_uses(node: ast.AST) -> Uses:
    """The names in a function's body, or in a statement; annotations are read by nobody who scores."""
    finder = _Finder()
    if isinstance(node, _FUNCTIONS):
        for statement in node.body:
            finder.visit(statement)
    elif isinstance(node, ast.Lambda):
        finder.visit(node.body)
    else:
        finder.visit(node)
    found = finder.uses
    found.in_any_order = finder.looked_up - finder.used_whole
    return found


class _Finder:
    """Walks code once."""

    def __init__(self) -> None:
        self.uses = Uses()
        self.looked_up: set[str] = set()
        self.used_whole: set[str] = set()
        self._declared: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        special = self._SPECIAL.get(type(node))
        if special is not None:
            special(self, node)
        else:
            self._visit_below(node)

    def _visit_below(self, node: ast.AST) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                for child in value:
                    if isinstance(child, ast.AST):
                        self.visit(child)
            elif isinstance(value, ast.AST) and name not in ("ctx", "annotation", "returns"):
                self.visit(value)

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.uses.reads.add((node.id,))
            self.used_whole.add(node.id)
        elif node.id in self._declared:
            self.uses.writes.add((node.id,))

    def _attribute(self, node: ast.Attribute) -> None:
        path = _path_of(node)
        if path is None:
            if not isinstance(node.ctx, ast.Load) and (base := _base_of(node.value)) is not None:
                self.uses.writes.add(base)
            self._visit_below(node)
        elif isinstance(node.ctx, ast.Load):
            self.uses.reads.add(path)
            self.used_whole.add(path[0])
        else:
            self.uses.assigns.add(path)

    def _subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load) and (base := _base_of(node.value)) is not None:
            self.uses.writes.add(base)
        self._look_up(node.value)
        self.visit(node.slice)

    def _look_up(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            self.uses.reads.add((node.id,))
            self.looked_up.add(node.id)
        else:
            self.visit(node)

    def _compare(self, node: ast.Compare) -> None:
        self.visit(node.left)
        for operator, other in zip(node.ops, node.comparators, strict=True):
            (self._look_up if isinstance(operator, ast.In | ast.NotIn) else self.visit)(other)

    def _call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr in _MUTATORS and (base := _base_of(function.value)) is not None:
                self.uses.writes.add(base)
            if function.attr == "get" and isinstance(function.value, ast.Name):
                self._look_up(function.value)
            else:
                self.visit(function)
        else:
            self.visit(function)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def _augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.uses.reads.add((node.target.id,))
        elif (path := _path_of(node.target)) is not None:
            self.uses.writes.add(path)
        self._visit_below(node)

    def _global(self, node: ast.Global | ast.Nonlocal) -> None:
        self._declared.update(node.names)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            module = alias.name if alias.asname else alias.name.partition(".")[0]
            self.uses.imports[name] = Import(module, 0, None)
            if not alias.asname and "." in alias.name:
                # `import a.b` binds a, and a.b has to be loaded before it can be looked at.
                self.uses.imports[alias.name] = Import(alias.name, 0, None)

    def _import_from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.uses.imports[alias.asname or alias.name] = Import(node.module or "", node.level, alias.name)

    _SPECIAL: ClassVar[dict[type, Callable[[_Finder, Any], None]]] = {
        ast.Name: _name, ast.Attribute: _attribute, ast.Subscript: _subscript, ast.Compare: _compare, ast.Call: _call,
        ast.AugAssign: _augmented, ast.Global: _global, ast.Nonlocal: _global, ast.Import: _import,
        ast.ImportFrom: _import_from,
    }  # fmt: skip


def _path_of(node: ast.AST) -> Path | None:
    """`a.b.c` as a path from its name; `type(self).b` and `self.__class__.b` are `self.b`."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        if node.attr != "__class__":
            names.append(node.attr)
        node = node.value
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "type"
        and len(node.args) == 1
    ):
        node = node.args[0]
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else None


def _base_of(node: ast.AST) -> Path | None:
    """Whose content an expression is part of: `a.b` of `a.b[0]["x"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return _path_of(node)


# --- whose it is --------------------------------------------------------------------------------------------------------

_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
# Ours too, but what everything speaks, what takes secrets out and where programs are run decides no score.
_CONTRACTS = frozenset({
    *("themis.interfaces", "themis.exceptions", "themis.core.entities", "themis.core.registry", "themis.core.secrets"),
    *("themis.core.redaction", "themis.evaluation.sandbox.execution", "themis.evaluation.sandbox.launch"),
    *("themis.evaluation.sandbox.protection", "themis.evaluation.pipeline"),
})  # fmt: skip


class Origin(Enum):
    """Who answers for a module's code."""

    OWN = "own"
    THEMIS = "themis"
    CONTRACT = "contract"
    STANDARD = "standard"
    INSTALLED = "installed"

    @property
    def is_read(self) -> bool:
        """Whether the code is known by what it says, instead of by a name and a version."""
        return self in (Origin.OWN, Origin.THEMIS)


def origin_of(module: str) -> Origin:
    """Whose a module is; one that nobody could import (typed in, built by a program) is the user's own."""
    if module.partition(".")[0] == "themis":
        return Origin.CONTRACT if module in _CONTRACTS else Origin.THEMIS
    if module in ("__main__", "__mp_main__"):
        return Origin.OWN
    loaded = sys.modules.get(module)
    return _origin_of_file(module, getattr(loaded, "__file__", None) if loaded is not None else _file_of(module))


@lru_cache(maxsize=4_096)
def _origin_of_file(module: str, file: str | None) -> Origin:
    if file is None:
        return Origin.STANDARD if module.partition(".")[0] in sys.stdlib_module_names else Origin.OWN
    if not _INSTALLED.isdisjoint(pathlib.Path(file).parts):
        return Origin.INSTALLED
    return Origin.STANDARD if file.startswith(_STANDARD) else Origin.OWN


def _file_of(module: str) -> str | None:
    """Where a module that is not loaded would come from; its package is looked for, and nothing is run."""
    top = module.partition(".")[0]
    try:
        spec = find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec is not None and spec.has_location else None


@lru_cache(maxsize=1_024)
def library_version(top: str) -> str:
    """The version of the distribution that an importable name belongs to, and a digest of its files where that says more."""
    distribution = _distribution(top)
    if distribution is None:
        loaded = sys.modules.get(top)
        file = getattr(loaded, "__file__", None) or _file_of(top)
        if file is not None and not file.endswith(".py") and pathlib.Path(file).is_file():
            # Compiled, and of the user's own making.
            return "sha256 " + hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()[:16]
        return "absent" if file is None and loaded is None else str(getattr(loaded, "__version__", "unknown"))
    if distribution.read_text("direct_url.json") is None:
        return distribution.version
    code = sorted(line for line in (distribution.read_text("RECORD") or "").splitlines() if ".py,sha256=" in line)
    return f"{distribution.version}, files {hashlib.sha256(chr(10).join(code).encode()).hexdigest()[:16]}"


def _distribution(top: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(top)
    except (metadata.PackageNotFoundError, ValueError):
        pass
    # Some are installed under another name than they are imported by: yaml is PyYAML's.
    names = _distributions_by_package().get(top, ())
    return metadata.distribution(sorted(names)[0]) if names else None


@lru_cache(maxsize=1)
def _distributions_by_package() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())
