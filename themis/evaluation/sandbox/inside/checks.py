"""Which checks test code holds, how many of them a run of it made, and what it did with exceptions that it hid.

Test code that never compares anything would pass whatever the solution does, and so would a comparison that an exception
skips. The test's code, never the solution's, is therefore compiled with counters in it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, TracebackType

from themis.evaluation.sandbox.inside.wire import Foreign, Peer, Remote

# What the counters are called in the test's own names.
_COUNTER = "__checks__"
_BROAD = ("Exception", "BaseException", "AssertionError")
# These take the exception that is to come; as a block they check when it is left, as a call when it returns.
_EXPECTATIONS = (
    *("assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs"),
    *("raises", "warns"),
)
_WAYS_TO_FAIL = ("fail", "exit", "quit", "_exit")


# --- before anything runs -------------------------------------------------------------------------------------------


def find_missing_check(setup: str, code: str) -> str:
    """Why a run of this test code could fail nobody; empty where some check can be reached."""
    trees = [ast.parse(setup), ast.parse(code)]
    if not any(_is_check(node) for tree in trees for node in ast.walk(tree)):
        return "it holds no assertion and nothing else that could fail"
    used = _names_used(trees)
    idle: list[str] = []
    if any(_has_live_check(tree.body, used, idle) for tree in trees):
        return ""
    return f"its checks stand in {', '.join(dict.fromkeys(idle))}, which nothing calls"


def _names_used(trees: Iterable[ast.AST]) -> set[str]:
    used = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                used.add(node.id)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
    return used


def _has_live_check(
    body: Iterable[ast.AST], used: set[str], idle: list[str], owner: ast.ClassDef | None = None
) -> bool:
    """Whether running these statements may come upon a check; functions that hold one and are not called go to `idle`."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            called = node.name in used or node.name.startswith("__") or _is_collected(node, owner)
            if called and _has_live_check(node.body, used, idle):
                return True
            if not called and any(_is_check(inner) for inner in ast.walk(node)):
                idle.append(f"{owner.name}.{node.name}" if owner else node.name)
        elif isinstance(node, ast.ClassDef):
            if _has_live_check(node.body, used, idle, node):
                return True
        elif _is_check(node) or _has_live_check(ast.iter_child_nodes(node), used, idle, owner):
            return True
    return False


def _is_collected(function: ast.FunctionDef | ast.AsyncFunctionDef, owner: ast.ClassDef | None) -> bool:
    """Whether `frameworks` calls this function though the test itself does not."""
    if isinstance(function, ast.AsyncFunctionDef) or not function.name.startswith(("test", "runTest")):
        return False
    if owner is not None and not owner.name.startswith("Test"):
        bases = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in owner.bases]
        if not any(base.endswith("TestCase") for base in bases):
            return False
    needed = len(function.args.args) - len(function.args.defaults) - (owner is not None)
    decorated = any("parametrize" in ast.dump(decorator) for decorator in function.decorator_list)
    return needed <= 0 or decorated


def _is_check(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not _is_constant(node.test)
    if isinstance(node, ast.If):
        return not _is_constant(node.test) and (_must_fail(node.body) or _must_fail(node.orelse))
    if isinstance(node, ast.Match):
        return any(_must_fail(case.body) for case in node.cases)
    if isinstance(node, ast.Try):
        return _must_fail(node.body) or _must_fail(node.orelse)
    if isinstance(node, ast.Call):
        return _called_name(node).startswith("assert") or _is_expectation(node)
    return False


def _is_constant(expression: ast.expr) -> bool:
    """`True`, `1 == 1`: nothing in it depends on anything."""
    return not any(isinstance(node, ast.Name | ast.Call | ast.Attribute) for node in ast.walk(expression))


def _must_fail(body: Iterable[ast.stmt]) -> bool:
    """Whether these statements fail if they are all run: `raise`, `assert False`, `fail(...)`, `sys.exit(1)`."""
    for node in body:
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Assert) and _is_constant(node.test)):
            return True
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and _called_name(node.value) in _WAYS_TO_FAIL
        ):
            return True
    return False


def _called_name(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_expectation(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called_name(node) in _EXPECTATIONS


# --- compiling ------------------------------------------------------------------------------------------------------


def instrument(sources: dict[str, str]) -> dict[str, CodeType]:
    """Code of the files of one test, with counters at its checks, its exception handlers and its test functions."""
    trees = {file: ast.parse(source, file) for file, source in sources.items()}
    counters = _Counters(trees.values())
    return {
        file: compile(ast.fix_missing_locations(counters.visit(tree)), file, "exec", dont_inherit=True)
        for file, tree in trees.items()
    }


class _Counters(ast.NodeTransformer):
    """Puts calls of `Checks` into the test's code; lines and results stay what they were."""

    def __init__(self, trees: Iterable[ast.AST]) -> None:
        nodes = [node for tree in trees for node in ast.walk(tree)]
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        self._own = {function.name for function in functions}
        self._imported = {
            alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        self._checking: set[str] = set()
        while found := {f.name for f in functions if self._holds_check(f.body)} - self._checking:
            self._checking |= found

    def _holds_check(self, body: Iterable[ast.stmt]) -> bool:
        for node in (node for statement in body for node in ast.walk(statement)):
            if _is_check(node) or (isinstance(node, ast.Call) and _called_name(node) in self._checking):
                return True
        return False

    def _visit_condition(self, node: ast.AST) -> ast.AST:
        check, tested = _is_check(node), "subject" if isinstance(node, ast.Match) else "test"
        self.generic_visit(node)
        if check:
            setattr(node, tested, _count("checked", getattr(node, tested)))
        return node

    visit_Assert = visit_If = visit_Match = _visit_condition

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name, function = _called_name(node), node.func
        # A bare name that the test does not import may be the solution's.
        foreign = isinstance(function, ast.Attribute) or name in self._imported
        checks_now = len(node.args) > 1 if name in _EXPECTATIONS else name.startswith("assert")
        self.generic_visit(node)
        if foreign and checks_now and name not in self._own:
            node.func = _count("counting", node.func, ast.Constant(name in _EXPECTATIONS))
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        expecting = [_is_expectation(item.context_expr) for item in node.items]
        self.generic_visit(node)
        for item, expects in zip(node.items, expecting, strict=True):
            if expects:
                item.context_expr = _count("expecting", item.context_expr)
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        wants_exception = _must_fail(node.body) or _must_fail(node.orelse)
        hides_check = self._holds_check(node.body)
        handlers = [(_ignores(each.body), _hides_failures(each)) for each in node.handlers]
        self.generic_visit(node)
        for handler, (ignores, broad) in zip(node.handlers, handlers, strict=True):
            facts = (ignores, broad, hides_check, wants_exception)
            note = ast.Expr(_count("caught", *map(ast.Constant, facts)))
            handler.body.insert(0, ast.copy_location(note, handler))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        parameters = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        note = None
        if node.name == "__exit__" and len(parameters) > 2:
            note = _count("leaving", ast.Name(parameters[2], ast.Load()))
        elif node.name.startswith("test"):
            note = _count("entered", ast.Constant(node.name))
        if note is not None:
            node.body.insert(0, ast.copy_location(ast.Expr(note), node.body[0]))
        return node


def _count(method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(_COUNTER, ast.Load()), method, ast.Load()), list(arguments), [])


def _hides_failures(handler: ast.ExceptHandler) -> bool:
    """Whether a failed assertion would be caught by it."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _BROAD) for kind in kinds)


def _ignores(body: Iterable[ast.stmt]) -> bool:
    """Whether a handler does nothing that the rest of the test could notice; printing is nothing."""
    for node in body:
        harmless = isinstance(node, ast.Pass | ast.Continue | ast.Break)
        harmless = harmless or (isinstance(node, ast.Return) and node.value is None)
        if isinstance(node, ast.Expr):
            printing = isinstance(node.value, ast.Call) and _called_name(node.value) in _PRINTING
            harmless = isinstance(node.value, ast.Constant) or printing
        if not harmless:
            return False
    return True


_PRINTING = ("print", "print_exc", "debug", "info", "warning", "error", "exception", "log", "write")


# --- while it runs --------------------------------------------------------------------------------------------------


class Checks:
    """Counts for one run of a test. Its methods are called from the test's own code, as `__checks__`."""

    def __init__(self, peer: Peer, names: dict[str, object]) -> None:
        self.made = 0
        self.functions_run: set[str] = set()
        self._peer = peer
        self._hidden = ""
        names[_COUNTER] = self
        self._watch_suppress()

    def objection(self) -> tuple[str, str] | None:
        """Why a test that ended without an error is not passed all the same."""
        if self._hidden:
            return "failed", self._hidden
        for error in self._peer.unexpected.values():
            said = f"{type(error).__name__}: {error}".strip(": ")
            return "error", f"{said}: raised by the solution, and nothing in the test expects it"
        if self.made:
            return None
        if self._peer.calls:
            return "failed", "no check was made: what the solution did kept every assertion from being reached"
        return "broken", "it ended without a single check"

    def checked(self, value: object) -> object:
        self.made += 1
        return value

    def counting(self, function: Foreign, expects: bool) -> Foreign:
        """The function, counted when it returns; what a solution calls `assert...` is no check."""
        if isinstance(function, Remote):
            return function

        @functools.wraps(function, updated=())
        def counted(*arguments: object, **keywords: object) -> object:
            before = set(self._peer.unexpected)
            result = function(*arguments, **keywords)
            if expects:
                self._peer.unexpected = {k: e for k, e in self._peer.unexpected.items() if k in before}
            self.made += 1
            return result

        return counted

    @contextlib.contextmanager
    def expecting(self, context: Foreign) -> Iterator[object]:
        """`with assertRaises(...)`, counted as a check when it is left in peace."""
        error = None
        with context as entered:
            try:
                yield entered
            except BaseException as raised:
                error = raised
                raise
        self.leaving(error)
        self.made += 1

    def entered(self, function: str) -> None:
        self.functions_run.add(function)

    def leaving(self, error: BaseException | None) -> None:
        """The test's own context manager has seen the exception."""
        self._peer.expect(error)

    def caught(self, ignores: bool, broad: bool, hides_check: bool, wants_exception: bool) -> None:
        """A handler of the test's has begun: was the exception what the test waits for, or is a failure being hidden?"""
        error = sys.exc_info()[1]
        from_solution = self._peer.expect(error)
        if error is None:
            return
        failed_by_test = not from_solution and (wants_exception or isinstance(error, AssertionError))
        if from_solution and wants_exception:
            self.made += 1
        elif ignores and broad and (hides_check or failed_by_test):
            self._hide(error)

    def suppressed(self, error: BaseException, broad: bool) -> None:
        from_solution = self._peer.expect(error)
        if broad and (from_solution or isinstance(error, AssertionError)):
            self._hide(error)

    def _hide(self, error: BaseException) -> None:
        said = f"{type(error).__name__}: {error}".strip(": ")
        self._hidden = self._hidden or f"{said}: the test hides it, and what it was to check was not checked"

    def _watch_suppress(self) -> None:
        original, checks = contextlib.suppress.__exit__, self

        def leave(
            self: Foreign, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> bool:
            result = original(self, kind, error, trace)
            if result and error is not None:
                broad = any(each in (Exception, BaseException, AssertionError) for each in self._exceptions)
                checks.suppressed(error, broad)
            return result

        contextlib.suppress.__exit__ = leave  # type: ignore[method-assign]
