"""How a sandbox's first process is started: as it is, by bubblewrap, or in a container of Docker's.

The layers of our own are built from inside by that process; what these two programs build is there when it starts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from themis.evaluation.sandbox.limits import Limits
from themis.evaluation.sandbox.protection import Protection

__all__ = ["command", "place_of_work", "user_of"]

_WORK = "/box"
_HARNESS = "/themis-sandbox"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_NOBODY = 65534
# As in `inside.confinement`: a user of its own for each sandbox that root starts.
_FIRST_OWN_USER = 0x70000000
# For the processes that watch and judge, beside what the code itself may use.
_OWN_MEGABYTES = 256


def place_of_work(protection: Protection, directory: str) -> str:
    """The directory that the code works in: the one that was made for it, or one that exists only inside."""
    return _WORK if protection.is_container else directory


def user_of(protection: Protection) -> dict[str, Any]:
    """Whom bubblewrap is started as: never as root, who owns what is shown."""
    if "bubblewrap" not in protection.layers or os.geteuid() != 0:
        return {}
    user = _FIRST_OWN_USER + os.getpid()
    return {"user": user, "group": user, "extra_groups": []}


def command(
    protection: Protection, limits: Limits, request: Mapping[str, Any], harness: str, options: Sequence[str]
) -> list[str]:
    """The command line that starts the supervisor; `harness` is the directory of this package."""
    if not protection.is_container:
        return [protection.interpreter, *options, harness, "supervisor"]
    start = [protection.interpreter, *options, _HARNESS, "supervisor"]
    if "docker" in protection.layers:
        return [*_docker(limits, harness, request["packages"]), protection.image, *start]
    return [*_bubblewrap(limits, harness, request["visible"], request["packages"]), *start]


def _bubblewrap(
    limits: Limits, harness: str, visible: Mapping[str, Sequence[str]], packages: Sequence[str]
) -> list[str]:
    words = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    words += ["--proc", "/proc"]
    for path in (*visible["directories"], *visible["files"]):
        words += ["--ro-bind", path, path]
    for path in visible["hidden"]:
        words += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    for path in packages:
        words += ["--ro-bind", path, f"/packages/{os.path.basename(path)}"]
    words += ["--ro-bind", harness, _HARNESS, "--dir", "/dev"]
    for device in _DEVICES:
        words += ["--dev-bind-try", f"/dev/{device}", f"/dev/{device}"]
    for directory in (_WORK, "/dev/shm"):
        words += ["--size", str(limits.file_mb << 20), "--tmpfs", directory]
    return [*words, "--remount-ro", "/", "--chdir", "/"]


def _docker(limits: Limits, harness: str, packages: Sequence[str]) -> list[str]:
    words = ["docker", "run", "--rm", "--interactive", "--network", "none", "--read-only", "--cap-drop", "ALL"]
    words += ["--security-opt", "no-new-privileges", "--user", f"{_NOBODY}:{_NOBODY}", "--workdir", "/"]
    memory = f"{limits.memory_mb + _OWN_MEGABYTES}m"
    words += ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes + 8)]
    words += [
        "--tmpfs",
        f"{_WORK}:rw,nosuid,nodev,size={limits.file_mb}m,mode=1777",
        "--shm-size",
        f"{limits.file_mb}m",
    ]
    for name in ("LANG", "PYTHONUTF8", "PYTHONHASHSEED", "MALLOC_ARENA_MAX"):
        words += ["--env", name]
    words += ["--volume", f"{harness}:{_HARNESS}:ro"]
    for path in packages:
        words += ["--volume", f"{path}:/packages/{os.path.basename(path)}:ro"]
    return words
