"""Which protections this machine allows: tried once by running a program under them, then remembered.

namespaces  its own processes, network, host name and file system, in which only the interpreter can be read
landlock    where there are no namespaces: no files but the interpreter's to read and the working directory to write
user        where we are root: another user, who owns nothing
seccomp     no sockets, no debugging, nothing that reaches other processes or undoes the rest
limits      none of these: processor time, memory, file size, processes, output and wall time, as on every level
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from themis.evaluation.sandbox.launch import Job, SandboxError, launch
from themis.evaluation.sandbox.limits import Limits

__all__ = ["Protection", "available_protections", "sandbox_level", "strongest_protection"]


@dataclass(frozen=True)
class Protection:
    """What stands between model-written code and the machine, and what that promises."""

    layers: tuple[str, ...]
    interpreter: str

    @property
    def level(self) -> str:
        return "+".join(self.layers) or "limits"

    @property
    def denies_network(self) -> bool:
        return "namespaces" in self.layers or "seccomp" in self.layers

    @property
    def hides_files(self) -> bool:
        """Our files can be neither read nor written."""
        return "namespaces" in self.layers or "landlock" in self.layers

    @property
    def protects_files(self) -> bool:
        """Our files cannot be written."""
        return self.hides_files or "user" in self.layers

    @property
    def hides_environment(self) -> bool:
        """Our environment cannot be read; the program's own is always empty of it."""
        return self.hides_files or "user" in self.layers

    @property
    def shields_processes(self) -> bool:
        """Other processes cannot be signalled or looked into."""
        return any(layer in self.layers for layer in ("namespaces", "user", "seccomp"))


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
            raise SandboxError(
                "model-written code is not run as root, and no other way works here: run as an ordinary user, or install "
                f"a Python that every user can read ({'; '.join(refusals)})"
            )
        return _STRONGEST


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
    own = getattr(sys, "_base_executable", None) or sys.executable
    for base in files_and_processes if sys.platform == "linux" else [()]:
        for filters in (("seccomp",), ()) if sys.platform == "linux" else ((),):
            layers = (*base, *user, *filters)
            yield Protection(layers, own)
            if user and "namespaces" not in base:
                # Root's Python often lies in root's home, where no other user can read it.
                for system in ("/usr/bin/python3", "/usr/local/bin/python3"):
                    if os.path.realpath(system) != os.path.realpath(own) and os.path.exists(system):
                        yield Protection(layers, system)


def _works(protection: Protection, refusals: list[str]) -> bool:
    try:
        reports = launch(protection.interpreter, protection.layers, Limits(), _TRIAL, [Job("program", b"")])
    except SandboxError as error:
        refusals.append(f"{protection.level}: {error}")
        return False
    if reports and reports[0]["outcome"] == "ok" and reports[0]["stdout"] == "works\n":
        return True
    refusals.append(f"{protection.level}: {reports[0]['reason'] if reports else 'no report'}")
    return False
