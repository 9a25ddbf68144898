"""Runs model-written code, as a program or against tests, under the best protection that this machine allows.

Everything else in this package serves these two methods. Which protections work is tried once, by running a program under
them, then remembered.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from themis.evaluation.sandbox.code_tests import AssertTest, CodeTest, ProgramTest, Verdict, compare_output
from themis.evaluation.sandbox.inside.wire import (
    AssertDescription,
    CallDescription,
    CollectedFolder,
    Report,
    StepDescription,
    Values,
)
from themis.evaluation.sandbox.launch import Job, last_line, launch
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
        programs: Names of programs that the code may start beside Python and the shell.
    """

    limits: Limits = field(default_factory=Limits)
    protection: Protection | None = None
    name: str = ""
    allow_weak: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

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

    def run_step(self, code: str, step: StepDescription) -> tuple[Execution, CollectedFolder | None]:
        """Runs a program in a working directory that earlier ones left; what is left of it, None where that was lost."""
        (report,) = self._launch(code, [Job("step", json.dumps(step).encode())])
        left = cast("dict[str, CollectedFolder]", report).pop("folder", None)
        return Execution(**report, level=self.level), left

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
        reports = launch(protection, self.limits, code, jobs, locate_packages(self.packages), self.programs)
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
    described: CallDescription | AssertDescription
    if isinstance(test, AssertTest):
        described = {"setup": test.setup, "code": test.code, "names": test.names_of_solution()}
    else:
        encode = Values().encode
        described = {
            "function": test.function,
            "arguments": encode(test.arguments),
            "keywords": encode(dict(test.keywords)),
            "expected": encode(test.expected),
            "spread": test.spread,
            "tolerance": test.tolerance,
        }
    return Job("test", json.dumps(described).encode())


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


# --- which protections this machine allows --------------------------------------------------------------------------

_ENGINE_SECONDS = 30


def sandbox_level() -> str:
    """The level at which code runs on this machine, as recorded in scores: `namespaces+user+seccomp`, `limits`, ..."""
    return strongest_protection().level


def strongest_protection() -> Protection:
    """The best that works here, found out on first use."""
    if os.name != "posix":
        raise SandboxError(f"model-written code is run on Linux and macOS, not on {sys.platform}")
    with _LOCK:
        return _strongest()


# The threads that judge ask at the same time; one of them finds out.
_LOCK = threading.Lock()


@functools.cache
def _strongest() -> Protection:
    as_root = "it is never run as root, so run as an ordinary user, or install a Python that every user can read"
    advice = as_root if os.geteuid() == 0 else "run outside the container or policy that refuses its limits"
    return _first_that_works(_candidates(), f"no sandbox works here for model-written code: {advice} (%s)")


def get_protection(name: str) -> Protection:
    """The strongest of our own for "", else the one that was chosen: `bubblewrap`, `docker` or `docker:IMAGE`."""
    if not name:
        return strongest_protection()
    kind, _, image = name.partition(":")
    if kind == "bubblewrap" and not image:
        return _bubblewrap()
    if kind == "docker":
        return _docker(image or f"python:{sys.version_info.major}.{sys.version_info.minor}-slim")
    known = "bubblewrap, docker, docker:IMAGE"
    raise ConfigurationError(f"sandbox is one of {known}, or empty for the strongest here, got {name!r}")


@functools.cache
def _bubblewrap() -> Protection:
    if shutil.which("bwrap") is None:
        raise SandboxError(
            "sandbox='bubblewrap' needs the program bwrap, which is not in PATH: apt-get install bubblewrap, or leave "
            "the choice of the sandbox open"
        )
    candidates = [
        Protection(("bubblewrap", *filters), interpreter)
        for interpreter in _interpreters(every_user=os.geteuid() == 0)
        for filters in (("seccomp",), ())
    ]
    return _first_that_works(candidates, "sandbox='bubblewrap' does not work here: %s")


@functools.cache
def _docker(image: str) -> Protection:
    if shutil.which("docker") is None:
        raise SandboxError(
            "sandbox='docker' needs the program docker, which is not in PATH; install it, or choose another"
        )
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        asked = subprocess.run(command, capture_output=True, timeout=_ENGINE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise SandboxError(f"sandbox='docker': the engine did not answer for {_ENGINE_SECONDS} s") from None
    if asked.returncode != 0:
        said = last_line(asked.stderr)
        raise SandboxError(f"sandbox='docker': no engine answers; start it, or choose another sandbox ({said})")
    candidates = [Protection(("docker", "seccomp"), "python", image)]
    return _first_that_works(candidates, "sandbox='docker' does not work here: %s")


def _first_that_works(candidates: Iterable[Protection], problem: str) -> Protection:
    refusals: list[str] = []
    found = next((each for each in candidates if _works(each, refusals)), None)
    if found is None:
        raise SandboxError(problem % "; ".join(refusals))
    return found


def available_protections() -> list[Protection]:
    """Everything that works here, strongest first: to test each of them."""
    return [each for each in _candidates() if _works(each, [])]


# Imports something that is not in memory yet: a user who cannot read the interpreter's files fails here.
_TRIAL = "import os, wave; assert not os.listdir('.'); print('works')"


def _candidates() -> Iterator[Protection]:
    """From the strongest to the weakest."""
    user = ("user",) if os.geteuid() == 0 else ()
    linux = sys.platform == "linux"
    for base in ("namespaces", "landlock", "") if linux else ("",):
        for filters in ("seccomp", "") if linux else ("",):
            layers = tuple(layer for layer in (base, *user, filters) if layer)
            for interpreter in _interpreters(every_user=bool(user) and base != "namespaces"):
                yield Protection(layers, interpreter)


def _interpreters(*, every_user: bool) -> Iterator[str]:
    """Ours; for other users the system's too: root's Python often lies in root's home, where nobody else can read it."""
    own = getattr(sys, "_base_executable", None) or sys.executable
    yield own
    for system in ("/usr/bin/python3", "/usr/local/bin/python3") if every_user else ():
        if os.path.realpath(system) != os.path.realpath(own) and os.path.exists(system):
            yield system


def _works(protection: Protection, refusals: list[str]) -> bool:
    try:
        reports = launch(protection, Limits(), _TRIAL, [Job("program", b"")])
    except SandboxError as error:
        refusals.append(f"{protection.level}: {error}")
        return False
    if reports and reports[0]["outcome"] == "ok" and reports[0]["stdout"] == "works\n":
        return True
    refusals.append(f"{protection.level}: {reports[0]['reason'] if reports else 'no report'}")
    return False
