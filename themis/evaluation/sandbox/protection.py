"""What stands between model-written code and the machine, and what it leaves open.

namespaces  its own processes, network, host name and file system, in which only the interpreter can be read
landlock    where there are no namespaces: no files but the interpreter's to read and the working directory to write
user        where we are root: another user, who owns nothing
seccomp     no sockets, no debugging, nothing that reaches other processes, undoes the rest or hides memory from its limit
bubblewrap  chosen by name: namespaces as the program bwrap makes them
docker      chosen by name: a container without network
limits      none of these: processor time, memory, file size, processes, output and wall time, as on every level
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields

from themis.exceptions import ConfigurationError, EvaluationError

# What a weak sandbox gives up, by the word that allows it.
GIVEN_UP = {
    "network": "can open network connections",
    "files": "can read your files, or those of them that every user may read",
    "processes": "can look into your other processes, their keys included, or end them",
}
ALLOWED_VARIABLE = "THEMIS_ALLOW_WEAK_SANDBOX"
_WALLS = ("namespaces", "bubblewrap", "docker")


class SandboxError(EvaluationError):
    """The sandbox could not be set up or was lost: a failure of the world, which says nothing about the code."""


@dataclass(frozen=True)
class Protection:
    """The layers of a sandbox, the interpreter that runs in it, and for Docker the image that it comes from."""

    layers: tuple[str, ...]
    interpreter: str
    image: str = ""

    @property
    def level(self) -> str:
        return "+".join(self.layers) or "limits"

    @property
    def is_container(self) -> bool:
        """Whether its first process is started by another program, inside walls that are already there."""
        return self._has("bubblewrap", "docker")

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """The words of what it leaves open; none at the level that is asked for by default."""
        closed = {
            "network": self.denies_network,
            "files": self.hides_files,
            "processes": self.hides_environment and self.shields_processes,
        }
        return tuple(word for word in GIVEN_UP if not closed[word])

    @property
    def denies_network(self) -> bool:
        return self._has(*_WALLS, "seccomp")

    @property
    def hides_files(self) -> bool:
        """Our files can be neither read nor written."""
        return self._has(*_WALLS, "landlock")

    @property
    def hides_environment(self) -> bool:
        """Our environment cannot be read; the program's own is always empty of it."""
        return self.hides_files or "user" in self.layers

    @property
    def shields_processes(self) -> bool:
        """Other processes cannot be signalled or looked into."""
        return self._has(*_WALLS, "user", "seccomp")

    def _has(self, *layers: str) -> bool:
        return any(layer in self.layers for layer in layers)

    def refuse_unless_allowed(self, allowed: Sequence[str]) -> None:
        """Raises where code would get at more than `allowed` says, with what to do about it."""
        left_open = [word for word in self.weaknesses if word not in allowed]
        if not left_open:
            return
        words = ",".join(self.weaknesses)
        raise SandboxError(
            f"model-written code is not run here: in the strongest sandbox that works on this machine ({self.level}) it "
            f"{', '.join(GIVEN_UP[word] for word in left_open)}. Run where user namespaces or Landlock are allowed, choose "
            "another by sandbox='bubblewrap' or 'docker' of the metric or tool, or accept it with --allow-weak-sandbox "
            f"{words} (in Python {ALLOWED_VARIABLE}={words}, or allow_weak_sandbox={words!r} of the metric or tool)"
        )


def read_weaknesses(given: str | Sequence[str]) -> tuple[str, ...]:
    """The words that allow a weak sandbox, with those of the environment; `files,network` is two of them."""
    words = given.split(",") if isinstance(given, str) else list(given)
    words += os.environ.get(ALLOWED_VARIABLE, "").split(",")
    known = [word.strip() for word in words if word.strip()]
    for word in known:
        if word not in GIVEN_UP:
            choices = "; ".join(f"{name}: code {means}" for name, means in GIVEN_UP.items())
            raise ConfigurationError(f"a weak sandbox is allowed by what it gives up ({choices}), got {word!r}")
    return tuple(dict.fromkeys(known))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Of one program or one test. Memory and processor time count for each of its processes.

    Args:
        cpu_seconds: Processor time.
        wall_seconds: From when the program's first line is about to run: starting the interpreter is not its fault.
        memory_mb: Address space; where control groups can be made, also of all its processes together.
        file_mb: Size of a file, and of all files in the working directory.
        processes: Threads count too.
        output_kb: Writing more to either stream ends the program.
    """

    cpu_seconds: int = 5
    wall_seconds: int = 15
    memory_mb: int = 512
    file_mb: int = 32
    processes: int = 32
    output_kb: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigurationError(f"the limit {field.name} is a whole number of at least 1, got {value!r}")
        smallest_interpreter_mb = 64
        if self.memory_mb < smallest_interpreter_mb:
            raise ConfigurationError(f"memory_mb is at least {smallest_interpreter_mb}, got {self.memory_mb}")
