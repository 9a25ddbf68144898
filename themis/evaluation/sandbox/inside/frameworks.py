"""Runs what test code only defines, as its framework would: functions and classes named test, unittest's test cases.

Neither framework's own runner is used: the first failure is raised where the examiner looks for it. `pytest` itself is
not in the sandbox; what tests take from it is here.
"""

from __future__ import annotations

import importlib
import itertools
import math
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping

from themis.evaluation.sandbox.inside.wire import TEST_MODULE, Foreign


def run_collected(names: dict[str, object], already_run: set[str]) -> None:
    """Runs every test function, test class and test case that the test code defines and has not run itself."""
    unittest = sys.modules.get("unittest")
    own = [
        (name, value)
        for name, value in list(names.items())
        if isinstance(value, type | types.FunctionType) and value.__module__ == TEST_MODULE
    ]
    _call_if_there(names, "setup_module")
    for name, value in own:
        if isinstance(value, types.FunctionType):
            if name.startswith("test") and name not in already_run:
                _call_if_there(names, "setup_function")
                for keywords in _cases(value):
                    value(**keywords)
        elif unittest is not None and issubclass(value, unittest.TestCase):
            _run_test_case(unittest, value)
        elif name.startswith("Test"):
            _run_class(value)


def _run_class(kind: type) -> None:
    for name in [name for name in dir(kind) if name.startswith("test")]:
        for keywords in _cases(getattr(kind, name)):
            instance = kind()
            _call_if_there(vars(kind), "setup_method", instance)
            getattr(instance, name)(**keywords)
            _call_if_there(vars(kind), "teardown_method", instance)


def _run_test_case(unittest: Foreign, kind: type) -> None:
    failures: list[BaseException] = []
    result = unittest.TestResult()

    def note(test: object, error: object, of_part: object = None) -> None:
        found = of_part or error
        if isinstance(found, tuple):
            failures.append(found[1])

    result.addFailure = result.addError = result.addSubTest = note
    unittest.defaultTestLoader.loadTestsFromTestCase(kind).run(result)
    if failures:
        raise failures[0]


def _call_if_there(names: Mapping[str, object], name: str, *arguments: object) -> None:
    function = names.get(name)
    if isinstance(function, types.FunctionType):
        function(*arguments[: function.__code__.co_argcount])


def _cases(function: object) -> Iterator[dict[str, object]]:
    """The arguments of each call: one empty set of them, or what `parametrize` lists."""
    for combination in itertools.product(*getattr(function, "_cases", ())):
        yield {name: value for case in combination for name, value in case.items()}


# --- what tests take from pytest ------------------------------------------------------------------------------------


def offer_frameworks(source: str) -> None:
    """Lets the test import `pytest`; runners do nothing, for whatever they would run is run afterwards."""
    pytest = types.ModuleType("pytest")
    for function in (raises, approx, fail, param):
        setattr(pytest, function.__name__, function)
    pytest.mark = _Marks()  # type: ignore[attr-defined]
    pytest.main = _nothing  # type: ignore[attr-defined]
    sys.modules["pytest"] = pytest
    if "unittest" in source:
        # Takes longer to import than all the rest of a test.
        importlib.import_module("unittest").main = _nothing  # type: ignore[attr-defined]


def _nothing(*arguments: object, **keywords: object) -> int:
    return 0


class raises:
    """`with raises(ValueError, match="..."):`, or a call with a function and its arguments."""

    def __init__(self, expected: Foreign, *arguments: Foreign, match: str | None = None, **keywords: object) -> None:
        self.expected, self.match = expected, match
        if arguments:
            function, *rest = arguments
            with self:
                function(*rest, **keywords)

    def __enter__(self) -> object:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None:
            raise AssertionError(f"did not raise {getattr(self.expected, '__name__', self.expected)}")
        if not isinstance(error, self.expected):
            return False
        self.value, self.type = error, type(error)
        if self.match is not None and not re.search(self.match, str(error)):
            raise AssertionError(f"{str(error)!r} does not match {self.match!r}")
        return True


class approx:
    """Equal within 1e-6 of its size, or 1e-12: a number, or lists and dicts of numbers."""

    def __init__(self, expected: object, rel: float | None = None, abs: float | None = None) -> None:
        self._expected = expected
        # A given absolute tolerance stands alone, as in pytest.
        self._relative = rel if rel is not None else (0.0 if abs is not None else 1e-6)
        self._absolute = abs if abs is not None else 1e-12

    def __eq__(self, actual: object) -> bool:
        return self._close(actual, self._expected)

    def __repr__(self) -> str:
        return f"approx({self._expected!r})"

    __hash__ = None  # type: ignore[assignment]

    def _close(self, actual: Foreign, expected: object) -> bool:
        if isinstance(expected, dict):
            same_keys = isinstance(actual, dict) and actual.keys() == expected.keys()
            return same_keys and all(self._close(actual[key], expected[key]) for key in expected)
        if isinstance(expected, list | tuple):
            same_size = isinstance(actual, list | tuple) and len(actual) == len(expected)
            return same_size and all(map(self._close, actual, expected))
        if isinstance(expected, int | float) and isinstance(actual, int | float):
            return math.isclose(actual, expected, rel_tol=self._relative, abs_tol=self._absolute)
        return bool(actual == expected)


def fail(reason: str = "", *_: object, **__: object) -> None:
    raise AssertionError(reason)


class _Param(tuple[object, ...]):
    """The values of one case, told apart from a value that is itself a tuple."""


def param(*values: object, **_: object) -> _Param:
    return _Param(values)


class _Marks:
    """`mark.parametrize`; any other mark is one that changes nothing here."""

    def parametrize(
        self, names: str | Iterable[str], values: Iterable[Foreign], **_: object
    ) -> Callable[[Foreign], Foreign]:
        wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        single = len(wanted) == 1
        rows = [(case,) if single and not isinstance(case, _Param) else case for case in values]
        cases = [dict(zip(wanted, row, strict=True)) for row in rows]

        def mark(function: Foreign) -> Foreign:
            function._cases = [*getattr(function, "_cases", ()), cases]
            return function

        return mark

    def __getattr__(self, name: str) -> object:
        def mark(*arguments: object, **_: object) -> object:
            return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else mark

        return mark
