"""Which protections this machine allows: tried once by running a program under them, then remembered."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator

from themis.evaluation.sandbox.launch import Job, launch
from themis.evaluation.sandbox.protection import Limits, Protection, SandboxError
from themis.exceptions import ConfigurationError

_BY_NAME = ("bubblewrap", "docker", "docker:IMAGE")
_ENGINE_SECONDS = 30


def sandbox_level() -> str:
    """The level at which code runs on this machine, as recorded in scores: `namespaces+user+seccomp`, `limits`, ..."""
    return strongest_protection().level


def strongest_protection() -> Protection:
    """The best that works here, found out on first use."""
    global _STRONGEST
    if os.name != "posix":
        raise SandboxError(f"model-written code is run on Linux and macOS, not on {sys.platform}")
    with _LOCK:
        if _STRONGEST is None:
            refusals: list[str] = []
            _STRONGEST = next((each for each in _candidates() if _works(each, refusals)), None)
        if _STRONGEST is None:
            as_root = (
                "it is never run as root, so run as an ordinary user, or install a Python that every user can read"
            )
            way_on = as_root if os.geteuid() == 0 else "run outside the container or policy that refuses its limits"
            raise SandboxError(f"no sandbox works here for model-written code: {way_on} ({'; '.join(refusals)})")
        return _STRONGEST


def get_protection(name: str) -> Protection:
    """The strongest of our own for "", else the one that was chosen: `bubblewrap`, `docker` or `docker:IMAGE`."""
    if not name:
        return strongest_protection()
    kind, _, image = name.partition(":")
    if kind == "bubblewrap" and not image:
        return _bubblewrap()
    if kind == "docker":
        return _docker(image or f"python:{sys.version_info.major}.{sys.version_info.minor}-slim")
    raise ConfigurationError(f"sandbox is one of {', '.join(_BY_NAME)}, or empty for the strongest here, got {name!r}")


@functools.cache
def _bubblewrap() -> Protection:
    if shutil.which("bwrap") is None:
        raise SandboxError(
            "sandbox='bubblewrap' needs the program bwrap, which is not in PATH: apt-get install bubblewrap, or leave "
            "the choice of the sandbox open"
        )
    return _first_that_works(
        "bubblewrap",
        [
            Protection(("bubblewrap", *filters), interpreter)
            for interpreter in _interpreters(every_user=os.geteuid() == 0)
            for filters in (("seccomp",), ())
        ],
    )


@functools.cache
def _docker(image: str) -> Protection:
    if shutil.which("docker") is None:
        raise SandboxError(
            "sandbox='docker' needs the program docker, which is not in PATH; install it, or choose another"
        )
    try:
        asked = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"],
            capture_output=True,
            text=True,
            timeout=_ENGINE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SandboxError(f"sandbox='docker': the engine did not answer for {_ENGINE_SECONDS} s") from None
    if asked.returncode != 0:
        said = asked.stderr.strip().rpartition("\n")[2]
        raise SandboxError(f"sandbox='docker': no engine answers; start it, or choose another sandbox ({said})")
    return _first_that_works("docker", [Protection(("docker", "seccomp"), "python", image)])


def _first_that_works(name: str, candidates: list[Protection]) -> Protection:
    refusals: list[str] = []
    found = next((each for each in candidates if _works(each, refusals)), None)
    if found is None:
        raise SandboxError(f"sandbox={name!r} does not work here: {'; '.join(refusals)}")
    return found


def available_protections() -> list[Protection]:
    """Everything that works here, strongest first: to test each of them."""
    return [each for each in _candidates() if _works(each, [])]


_STRONGEST: Protection | None = None
_LOCK = threading.Lock()

# Imports something that is not in memory yet: a user who cannot read the interpreter's files fails here.
_TRIAL = "import os, wave; assert not os.listdir('.'); print('works')"


def _candidates() -> Iterator[Protection]:
    """From the strongest to the weakest."""
    user = ("user",) if os.geteuid() == 0 else ()
    files_and_processes: list[tuple[str, ...]] = [("namespaces",), ("landlock",), ()]
    for base in files_and_processes if sys.platform == "linux" else [()]:
        for filters in (("seccomp",), ()) if sys.platform == "linux" else ((),):
            layers = (*base, *user, *filters)
            for interpreter in _interpreters(every_user=bool(user) and "namespaces" not in base):
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
