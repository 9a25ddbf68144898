"""The process that tests: runs one test against the solution in the other process, and writes down the verdict."""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
import types
from collections.abc import Mapping, Sequence, Set

from themis.evaluation.sandbox.inside.checks import Checks, instrument
from themis.evaluation.sandbox.inside.frameworks import offer_frameworks, run_collected
from themis.evaluation.sandbox.inside.wire import (
    SOLUTION_MODULE,
    TEST_MODULE,
    AssertDescription,
    CallDescription,
    Ended,
    Peer,
    Remote,
    SolutionExit,
    last_line_in,
)

# Below this a difference is none, whatever the size of the numbers.
_ABSOLUTE_TOLERANCE = 1e-9
# Twelve bytes a character at worst, and a pipe takes 4,096 bytes whole or not at all.
_REASON_CHARACTERS = 300


def examine(test: CallDescription | AssertDescription, incoming: int, outgoing: int, verdict: int) -> int:
    """Outcomes: passed, failed (a wrong answer), error (the solution raised), ended, broken (the test itself)."""
    peer = Peer(incoming, outgoing)
    outcome, reason = _judge(test, peer)
    if peer.ended:
        # Also where the test swallowed it: a test that expects an exception is not passed by a process that vanishes.
        outcome, reason = "ended", "the program ended before it had answered"
    os.write(verdict, json.dumps({"outcome": outcome, "reason": reason[:_REASON_CHARACTERS]}).encode())
    return 0


def _judge(test: CallDescription | AssertDescription, peer: Peer) -> tuple[str, str]:
    try:
        state, text = peer.receive()
        if state != "loaded":
            return "error", f"the code does not load: {text}"
        return _run_call(test, peer) if "function" in test else _run_asserts(test, peer)
    except Ended:
        return "ended", ""
    except SolutionExit as error:
        return "error", str(error)
    except MemoryError:
        return "error", "MemoryError"
    except BaseException as error:  # boundary: the solution's exceptions arrive here as if raised by the test
        return "error", f"{type(error).__name__}: {error}".strip(": ")


def _run_call(test: CallDescription, peer: Peer) -> tuple[str, str]:
    function = peer.ask("name", test["function"])
    arguments, keywords = peer.decode(test["arguments"]), peer.decode(test["keywords"])
    if test["spread"] is None and isinstance(arguments, list):
        spread = not peer.ask("takes_one", function)
    else:
        spread = bool(test["spread"])
    got = peer.call(function, list(arguments) if spread else [arguments], keywords)
    expected = peer.decode(test["expected"])
    if _matches(got, expected, test["tolerance"]):
        return "passed", ""
    return "failed", f"expected {_short(expected)}, got {_short(got)}"


def _run_asserts(test: AssertDescription, peer: Peer) -> tuple[str, str]:
    module = types.ModuleType(TEST_MODULE)
    sys.modules[TEST_MODULE] = module
    sys.argv = [TEST_MODULE]
    names = module.__dict__
    checks = Checks(peer, names)
    offer_frameworks(test["setup"] + test["code"])
    try:
        code = instrument({"<setup>": test["setup"], "<test>": test["code"]})
        exec(code["<setup>"], names)
    except Exception as error:  # boundary: the dataset's code
        return "broken", f"{type(error).__name__}: {error}"
    sys.modules[SOLUTION_MODULE] = _Solution(peer)
    for name in test["names"]:
        found = _from_solution(peer, name)
        if found is not None:
            names[name] = found
    try:
        exec(code["<test>"], names)
        run_collected(names, checks.functions_run)
    except SolutionExit:
        raise
    except AssertionError as error:
        return "failed", f"AssertionError: {error}".strip(": ") + _place(error, test["code"])
    except ModuleNotFoundError as error:
        if peer.expect(error):
            raise
        return "broken", f"ModuleNotFoundError: {error}"
    except SystemExit:
        return "error", "the test called exit"
    return checks.objection() or ("passed", "")


class _Solution(types.ModuleType):
    """The solution as a module, for tests that begin with `from solution import f`."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(SOLUTION_MODULE)
        self._peer = peer

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._peer.ask("name", name)
        except NameError as error:
            raise AttributeError(str(error)) from None


def _from_solution(peer: Peer, name: str) -> object:
    """What the solution calls by this name. A module is imported here: its functions must not be the solution's."""
    try:
        module = peer.ask("module", name)
    except NameError:
        return None
    if module is None:
        return peer.ask("name", name)
    if str(module).partition(".")[0] in sys.stdlib_module_names:
        return importlib.import_module(module)
    return None


def _place(error: BaseException, code: str) -> str:
    lines, line = code.splitlines(), last_line_in("<test>", error)
    return f" at `{lines[line - 1].strip()}`" if line and line <= len(lines) else ""


def _matches(got: object, expected: object, tolerance: float) -> bool:
    """Equality for expectations that came as JSON: no tuples, no sets, only text as keys, and rounded numbers."""
    if isinstance(got, Remote):
        return False
    if isinstance(got, float) or isinstance(expected, float):
        if not (isinstance(got, int | float) and isinstance(expected, int | float)):
            return False
        if math.isnan(got) or math.isnan(expected):
            return math.isnan(got) and math.isnan(expected)
        return math.isclose(got, expected, rel_tol=tolerance, abs_tol=_ABSOLUTE_TOLERANCE)
    if isinstance(expected, list | tuple):
        if isinstance(got, Set):
            unmatched = list(got)
            return len(got) == len(expected) and all(_take(item, unmatched, tolerance) for item in expected)
        if not isinstance(got, Sequence) or isinstance(got, str | bytes) or len(got) != len(expected):
            return False
        return all(_matches(a, b, tolerance) for a, b in zip(got, expected, strict=True))
    if isinstance(expected, Mapping):
        if not isinstance(got, Mapping) or len(got) != len(expected):
            return False
        by_key = got if all(key in got for key in expected) else {str(key): value for key, value in got.items()}
        return all(key in by_key and _matches(by_key[key], value, tolerance) for key, value in expected.items())
    return bool(got == expected)


def _take(wanted: object, among: list[object], tolerance: float) -> bool:
    for position, item in enumerate(among):
        if _matches(item, wanted, tolerance):
            del among[position]
            return True
    return False


def _short(value: object) -> str:
    text = "an object of the solution's own" if isinstance(value, Remote) else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
