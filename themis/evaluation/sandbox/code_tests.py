"""The three kinds of test that code is put to, and the verdict on each."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from themis.evaluation.sandbox.inside.checks import find_missing_check
from themis.evaluation.sandbox.inside.wire import SOLUTION_MODULE
from themis.exceptions import ConfigurationError


@dataclass(frozen=True)
class CallTest:
    """Calls a function, or `Class.method`, and compares what it returns; tuples equal lists.

    Args:
        function: Its name in the code.
        arguments: The list of arguments if `spread`, the one argument if not.
        expected: What it must return.
        keywords: Arguments by name.
        spread: By default a list is spread unless the function takes one argument.
        tolerance: Relative difference within which numbers are equal.
    """

    function: str
    arguments: object
    expected: object
    keywords: Mapping[str, object] = field(default_factory=dict)
    spread: bool | None = None
    tolerance: float = 1e-6


@dataclass(frozen=True)
class AssertTest:
    """Test code that passes if it makes at least one check and none fails, as `assert add(1, 2) == 3`.

    It runs in a process of its own, as `python test.py` would run it; what it only defines is then run as its framework
    would: functions and classes named test, unittest's test cases.

    Args:
        code: The test code.
        setup: Run first; part of the test, not of the solution.
        names: Those that it takes from the solution; by default whatever it uses without defining it.
    """

    code: str
    setup: str = ""
    names: tuple[str, ...] | None = None

    def names_of_solution(self) -> tuple[str, ...]:
        return _free_names(self.setup, self.code) if self.names is None else self.names

    def refuse_if_it_tests_nothing(self) -> None:
        """Raises where a run of this test could fail nobody, or is not about the solution."""
        names = self.names_of_solution()
        why = find_missing_check(self.setup, self.code)
        if not why and not names and not _imports_solution(self.setup, self.code):
            why = "it uses nothing of the solution"
        if why:
            raise ConfigurationError(
                f"a test that tests nothing: {why}; write an assertion about what the solution does, or name the row's "
                f"entry_point for a check(candidate): {self.code[:200]!r}"
            )


@dataclass(frozen=True)
class ProgramTest:
    """Runs the code as a program and compares what it prints, without regard to space at the ends of lines.

    Args:
        stdin: What it reads.
        stdout: What it must print.
    """

    stdin: str
    stdout: str


CodeTest = CallTest | AssertTest | ProgramTest


@dataclass(frozen=True)
class Verdict:
    """Whether a test was passed, and if not, why.

    `outcome` is one of: passed, failed (a wrong answer), error (it raised), timeout, memory, output (it wrote too
    much), crashed (by a signal), ended (it left before it had answered), broken (the test's own code does not run).
    """

    outcome: str
    reason: str = ""
    seconds: float = 0.0
    stdout: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


def _free_names(setup: str, code: str) -> tuple[str, ...]:
    """What test code uses and nobody there defines; where that is nothing, the built-in functions that it calls.

    A solution may be named like a built-in function, but is then the only thing that the test is about: were every
    name the solution's, it could redefine `abs` and pass `abs(f(x) - 1) < 0.01`.
    """
    used: set[str] = set()
    called: set[str] = set()
    defined: set[str] = set()
    for source in (setup, code):
        for node in ast.walk(_parse(source)):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.arg):
                defined.add(node.arg)
            elif isinstance(node, ast.alias):
                defined.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.ExceptHandler) and node.name:
                defined.add(node.name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called.add(node.func.id)
    free = used - defined
    unknown = {name for name in free if not hasattr(builtins, name)}
    return tuple(sorted(unknown or (free & called)))


def _imports_solution(*sources: str) -> bool:
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return SOLUTION_MODULE in imported + [node.module for node in nodes if isinstance(node, ast.ImportFrom)]


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigurationError(f"the test code does not parse: {error}: {source[:200]!r}") from error


def compare_output(printed: str, expected: str) -> tuple[str, str]:
    """passed or failed, with the first line that differs."""
    lines = itertools.zip_longest(_lines(expected), _lines(printed))
    for number, (wanted, got) in enumerate(lines, start=1):
        if got != wanted:
            return "failed", f"line {number}: expected {_quote(wanted)}, got {_quote(got)}"
    return "passed", ""


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _quote(line: str | None) -> str:
    return "nothing" if line is None else repr(line[:200])
