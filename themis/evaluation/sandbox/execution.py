"""Runs model-written code: as a program, or against tests. Everything else in this package serves these two methods."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from themis.evaluation.sandbox.code_tests import AssertTest, CallTest, CodeTest, ProgramTest, Verdict, compare_output
from themis.evaluation.sandbox.inside.wire import AssertDescription, CallDescription, Report, Values
from themis.evaluation.sandbox.launch import Job, launch
from themis.evaluation.sandbox.levels import get_protection
from themis.evaluation.sandbox.protection import Limits, Protection, SandboxError, read_weaknesses
from themis.exceptions import ConfigurationError


@dataclass(frozen=True)
class Execution:
    """What became of a program.

    `outcome` is one of: ok (it ended with status 0), error, timeout, memory, output (it wrote too much), crashed.
    """

    outcome: str
    reason: str
    stdout: str
    stderr: str
    seconds: float
    level: str


@dataclass(frozen=True)
class Sandbox:
    """Runs code in processes of its own, under limits, at the strongest level that this machine allows.

    Any number of threads may use it at once. A `SandboxError` means that the sandbox failed, or is too weak to be
    used; it says nothing about the code.

    Args:
        limits: What the code may use of the machine.
        protection: One of `available_protections()`, whatever it leaves open; by default the one that `name` says.
        name: "bubblewrap", "docker" or "docker:IMAGE"; empty for the strongest of our own that works here.
        allow_weak: What the sandbox may leave open: "files", "processes", "network". By default nothing; what
            THEMIS_ALLOW_WEAK_SANDBOX says is allowed too.
        packages: Names of installed packages that the code may import beside the standard library.
    """

    limits: Limits = field(default_factory=Limits)
    protection: Protection | None = None
    name: str = ""
    allow_weak: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def level(self) -> str:
        return self.chosen.level

    @property
    def chosen(self) -> Protection:
        """What the code runs under; raises where that leaves more open than was allowed."""
        if self.protection is not None:
            return self.protection
        found = get_protection(self.name)
        found.refuse_unless_allowed(read_weaknesses(self.allow_weak))
        return found

    def check(self) -> None:
        """Raises where code could not be run here, or the packages that it may import cannot be."""
        self.chosen  # noqa: B018 -- raises
        if self.packages:
            tried = self.run_program(f"import {', '.join(self.packages)}")
            if tried.outcome != "ok":
                raise SandboxError(f"in the sandbox ({tried.level}) its packages cannot be imported: {tried.reason}")

    def run_program(self, code: str, *, stdin: str = "") -> Execution:
        (report,) = self._launch(code, [Job("program", stdin.encode("utf-8", "surrogatepass"))])
        return Execution(**report, level=self.level)

    def run_tests(self, code: str, tests: Sequence[CodeTest]) -> list[Verdict]:
        """One verdict a test, each from fresh processes. After three timeouts the rest count as timed out unseen."""
        for test in tests:
            if isinstance(test, AssertTest):
                test.refuse_if_it_tests_nothing()
        reports = self._launch(code, [_job(test) for test in tests])
        return [_verdict(test, report) for test, report in zip(tests, reports, strict=True)]

    def _launch(self, code: str, jobs: Sequence[Job]) -> list[Report]:
        if not jobs:
            return []
        protection = self.chosen
        reports = launch(protection, self.limits, code, jobs, locate_packages(self.packages))
        missing = len(jobs) - len(reports)
        if not missing:
            return reports
        if reports and reports[-1]["outcome"] == "timeout":
            unseen = _report("timeout", "not tried: the code had already run out of time on others")
        elif protection.shields_processes:
            raise SandboxError(f"the sandbox ({protection.level}) was lost after {len(reports)} of {len(jobs)} jobs")
        else:
            unseen = _report("ended", "the code ended the sandbox")
        return [*reports, *[unseen] * missing]


def _report(outcome: str, reason: str) -> Report:
    return {"outcome": outcome, "reason": reason, "stdout": "", "stderr": "", "seconds": 0.0}


def _job(test: CodeTest) -> Job:
    if isinstance(test, ProgramTest):
        return Job("program", test.stdin.encode("utf-8", "surrogatepass"))
    described = _describe_call(test) if isinstance(test, CallTest) else _describe_asserts(test)
    return Job("test", json.dumps(described).encode())


def _describe_call(test: CallTest) -> CallDescription:
    values = Values()
    return {
        "function": test.function,
        "arguments": values.encode(test.arguments),
        "keywords": values.encode(dict(test.keywords)),
        "expected": values.encode(test.expected),
        "spread": test.spread,
        "tolerance": test.tolerance,
    }


def _describe_asserts(test: AssertTest) -> AssertDescription:
    return {"setup": test.setup, "code": test.code, "names": test.names_of_solution()}


def _verdict(test: CodeTest, report: Report) -> Verdict:
    outcome, reason = report["outcome"], report["reason"]
    if isinstance(test, ProgramTest) and outcome == "ok":
        # Compared here: what the program should have printed never came near it.
        outcome, reason = compare_output(report["stdout"], test.stdout)
    return Verdict(outcome, reason, report["seconds"], report["stdout"])


@functools.cache
def locate_packages(names: tuple[str, ...]) -> tuple[str, ...]:
    """The directories and files of these packages, with the shared libraries that wheels put beside them."""
    found: list[str] = []
    for name in names:
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
        if spec is None or not (spec.origin or spec.submodule_search_locations):
            raise ConfigurationError(
                f"packages names {name!r}, which is no importable package here; it is a list of names such as ['numpy']"
            )
        places = list(spec.submodule_search_locations or [str(spec.origin)])
        libraries = [f"{os.path.dirname(place)}/{name}.libs" for place in places]
        found += [os.path.realpath(path) for path in (*places, *libraries) if os.path.exists(path)]
    return tuple(found)
