"""Starts a sandbox's processes (as they are, by bubblewrap, or in a container of Docker's) and collects their reports.

Nothing of the code runs in our process: what comes back is read as JSON. The layers of our own are built from inside by
the first process; what the two programs build is there when it starts.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from themis.evaluation.sandbox.cgroup import memory_cgroup
from themis.evaluation.sandbox.inside.wire import Report, Request
from themis.evaluation.sandbox.protection import Limits, Protection, SandboxError

_PACKAGE = str(Path(__file__).parent)

# The supervisor keeps the time. These only cover one that cannot even start, or is itself stuck.
_START_SECONDS = 120
_SPARE_SECONDS_PER_JOB = 10
_STOP_SECONDS = 10

# Imports one module without the package around it: half the start-up time, and no site-packages on the path.
_START = """
import importlib, sys, types
for name in ("themis", "themis.evaluation", "themis.evaluation.sandbox"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [sys.argv[1]]
importlib.import_module("themis.evaluation.sandbox.inside." + sys.argv[2]).main()
"""
_OPTIONS = ("-s", "-S", "-P", "-c", _START)
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    # The order of sets of strings is part of what a program computes; a score must not depend on chance.
    "PYTHONHASHSEED": "0",
    # Each arena reserves address space, which is what the memory limit counts.
    "MALLOC_ARENA_MAX": "1",
}


@dataclass(frozen=True)
class Job:
    """`program` with its standard input, or `test` with its description."""

    kind: str
    material: bytes


def launch(
    protection: Protection, limits: Limits, code: str, jobs: Sequence[Job], packages: Sequence[str] = ()
) -> list[Report]:
    """One report a job. Fewer come back where too many jobs timed out, or where the code ended the sandbox.

    `packages` are the directories and files of packages that the code may import beside the standard library.
    """
    directory = tempfile.mkdtemp(prefix="themis-sandbox-")
    try:
        with memory_cgroup(limits, protection) as group:
            request: Request = {
                "layers": list(protection.layers),
                "limits": asdict(limits),
                "directory": working_directory(protection, directory),
                "visible": _runtime_files(protection, tuple(packages)),
                "packages": list(packages),
                "cgroup": group,
                "code": code,
                "jobs": len(jobs),
            }
            frames = [json.dumps(request).encode()]
            for job in jobs:
                frames += [job.kind.encode(), job.material]
            deadline = _START_SECONDS + len(jobs) * (limits.wall_seconds + _SPARE_SECONDS_PER_JOB)
            message = b"".join(struct.pack("=Q", len(frame)) + frame for frame in frames)
            output = _exchange(
                start_command(protection, limits, request, _PACKAGE, _OPTIONS), protection, message, deadline
            )
    finally:
        _remove_directory(directory)
    reports = [json.loads(frame) for frame in _read_frames(output)]
    for report in reports:
        if "broken" in report:
            raise SandboxError(f"the sandbox ({protection.level}) cannot be set up: {report['broken']}")
    return reports


@functools.lru_cache
def _runtime_files(protection: Protection, packages: tuple[str, ...]) -> dict[str, list[str]]:
    """What the interpreter needs of this machine; an image brings its own."""
    if sys.platform != "linux" or protection.image:
        return {"directories": [], "files": [], "hidden": []}
    asked = [protection.interpreter, *_OPTIONS, _PACKAGE, "runtime_files", *packages]
    try:
        listed = subprocess.run(asked, capture_output=True, env=_environment(), timeout=_START_SECONDS, check=False)
    except OSError as error:
        raise SandboxError(f"the sandbox's interpreter {protection.interpreter} does not start: {error}") from error
    try:
        found: dict[str, list[str]] = json.loads(listed.stdout)
    except ValueError:
        last_line = listed.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise SandboxError(f"the sandbox ended with status {listed.returncode}: {last_line}") from None
    return found


def _environment(*, for_docker: bool = False) -> dict[str, str]:
    if for_docker:  # its command line needs ours, and hands on to the container only what it is told to
        return {**os.environ, **_ENVIRONMENT, "PATH": os.environ.get("PATH", os.defpath)}
    # Some interpreters do not start without; the program's own is emptied.
    needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {**_ENVIRONMENT, **needed}


def _exchange(command: Sequence[str], protection: Protection, request: bytes, timeout_seconds: float) -> bytes:
    # Bubblewrap is never started as root, who owns what is shown.
    user = _FIRST_OWN_USER + os.getpid() if "bubblewrap" in protection.layers and os.geteuid() == 0 else None
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(for_docker=bool(protection.image)),
            cwd="/",
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    except OSError as error:
        raise SandboxError(f"the sandbox's interpreter {protection.interpreter} does not start: {error}") from error
    try:
        output, complaints = process.communicate(request, timeout=timeout_seconds)
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"the sandbox did not answer for {timeout_seconds} s") from error
    finally:
        _stop(process)
    if process.returncode != 0 and not output:
        last_line = complaints.decode(errors="replace").strip().rpartition("\n")[2]
        raise SandboxError(f"the sandbox ended with status {process.returncode}: {last_line}")
    return output


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Asks the supervisor to end what it started; its first process takes the others with it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _remove_directory(directory: str) -> None:
    try:
        shutil.rmtree(directory)
    except (OSError, RecursionError):
        # The code may have nested or locked its directories beyond what rmtree can follow.
        for command in (["chmod", "-R", "u+rwx", directory], ["rm", "-rf", directory]):
            subprocess.run(command, capture_output=True, check=False)


def _read_frames(output: bytes) -> Iterator[bytes]:
    position = 0
    while position + 8 <= len(output):
        (size,) = struct.unpack_from("=Q", output, position)
        position += 8
        if position + size <= len(output):
            yield output[position : position + size]
        position += size


_WORK = "/box"
_HARNESS = "/themis-sandbox"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_NOBODY = 65534
# As in `inside.confinement`: a user of its own for each sandbox that root starts.
_FIRST_OWN_USER = 0x70000000
# For the processes that watch and judge, beside what the code itself may use.
_OWN_MEGABYTES = 256


def working_directory(protection: Protection, directory: str) -> str:
    """The directory that the code works in: the one that was made for it, or one that exists only inside."""
    return _WORK if protection.is_container else directory


def start_command(
    protection: Protection, limits: Limits, request: Request, harness: str, options: Sequence[str]
) -> list[str]:
    """The command line that starts the supervisor; `harness` is the directory of this package."""
    if not protection.is_container:
        return [protection.interpreter, *options, harness, "supervisor"]
    start = [protection.interpreter, *options, _HARNESS, "supervisor"]
    if "docker" in protection.layers:
        return [*_docker_command(limits, harness, request["packages"]), protection.image, *start]
    return [*_bubblewrap_command(limits, harness, request["visible"], request["packages"]), *start]


def _bubblewrap_command(
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


def _docker_command(limits: Limits, harness: str, packages: Sequence[str]) -> list[str]:
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
