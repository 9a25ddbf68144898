"""Starts a sandbox's processes (as they are, by bubblewrap, or in a container of Docker's) and collects their reports.

Nothing of the code runs in our process: what comes back is read as JSON. The layers of our own are built from inside by
the first process; what the two programs build is there when it starts.

A control group counts all memory of the code together: its processes, its files in memory, everything. Where none can be
made (no right to, or a container that shows no groups) each process has a limit of its own, and the calls that make
memory outside of it are refused.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

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
OPTIONS = ("-s", "-S", "-P", "-c", _START)
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
    """`program` with its standard input, `step` or `test` with its description."""

    kind: str
    material: bytes


def launch(
    protection: Protection,
    limits: Limits,
    code: str,
    jobs: Sequence[Job],
    packages: Sequence[str] = (),
    programs: Sequence[str] = (),
) -> list[Report]:
    """One report a job. Fewer come back where too many jobs timed out, or where the code ended the sandbox.

    `packages` are the directories and files of packages that the code may import beside the standard library, `programs`
    the names of those that it may start beside Python and the shell.
    """
    directory = tempfile.mkdtemp(prefix="themis-sandbox-")
    try:
        with memory_cgroup(limits, protection) as group:
            request: Request = {
                "layers": list(protection.layers),
                "limits": asdict(limits),
                "directory": _WORK if protection.is_container else directory,
                "visible": _runtime_files(protection, (*packages, *(f"+{name}" for name in programs))),
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
            output = _exchange(start_command(protection, limits, request), protection, message, deadline)
    finally:
        _remove_directory(directory)
    reports = [json.loads(frame) for frame in _read_frames(output)]
    for report in reports:
        if "broken" in report:
            raise SandboxError(f"the sandbox ({protection.level}) cannot be set up: {report['broken']}")
    return reports


@functools.lru_cache
def _runtime_files(protection: Protection, shown: tuple[str, ...]) -> dict[str, list[str]]:
    """What the interpreter needs of this machine; an image brings its own."""
    if sys.platform != "linux" or protection.image:
        return {"directories": [], "files": [], "hidden": []}
    asked = [protection.interpreter, *OPTIONS, _PACKAGE, "runtime_files", *shown]
    try:
        listed = subprocess.run(asked, capture_output=True, env=_environment(), timeout=_START_SECONDS, check=False)
    except OSError as error:
        raise SandboxError(f"the sandbox's interpreter {protection.interpreter} does not start: {error}") from error
    try:
        found: dict[str, list[str]] = json.loads(listed.stdout)
    except ValueError:
        raise SandboxError(f"the sandbox ended with status {listed.returncode}: {last_line(listed.stderr)}") from None
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
    with process:
        try:
            output, complaints = process.communicate(request, timeout=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"the sandbox did not answer for {timeout_seconds} s") from error
        finally:
            _stop(process)
    if process.returncode != 0 and not output:
        raise SandboxError(f"the sandbox ended with status {process.returncode}: {last_line(complaints)}")
    return output


def last_line(complaints: bytes) -> str:
    return complaints.decode(errors="replace").strip().rpartition("\n")[2]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Asks the supervisor to end what it started; its first process takes the others with it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _remove_directory(directory: str) -> None:
    try:
        shutil.rmtree(directory)
    except (OSError, RecursionError):
        # The code may have nested or locked its directories beyond what rmtree can follow.
        for command in (["chmod", "-R", "u+rwx", directory], ["rm", "-rf", directory]):
            subprocess.run(command, capture_output=True, check=False)


def _read_frames(output: bytes) -> Iterator[bytes]:
    """Every whole frame; the last may have been cut off with the process that wrote it."""
    stream = io.BytesIO(output)
    while len(header := stream.read(8)) == 8:
        (size,) = struct.unpack("=Q", header)
        if len(frame := stream.read(min(size, len(output)))) == size:
            yield frame


_WORK = "/box"
_HARNESS = "/themis-sandbox"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_NOBODY = 65534
# As in `inside.confinement`: a user of its own for each sandbox that root starts.
_FIRST_OWN_USER = 0x70000000
# For the processes that watch and judge, beside what the code itself may use.
_OWN_MEGABYTES = 256


def start_command(protection: Protection, limits: Limits, request: Request) -> list[str]:
    """The command line that starts the supervisor."""
    start = [protection.interpreter, *OPTIONS, _HARNESS if protection.is_container else _PACKAGE, "supervisor"]
    if "docker" in protection.layers:
        return [*_docker_command(limits, request["packages"]), protection.image, *start]
    return [*_bubblewrap_command(limits, request), *start] if protection.is_container else start


def _bubblewrap_command(limits: Limits, request: Request) -> list[str]:
    visible = request["visible"]
    words = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent", "--new-session"]
    words += ["--cap-drop", "ALL", "--proc", "/proc"]
    for path in (*visible["directories"], *visible["files"]):
        words += ["--ro-bind", path, path]
    for path in visible["hidden"]:
        words += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    for path in request["packages"]:
        words += ["--ro-bind", path, f"/packages/{os.path.basename(path)}"]
    words += ["--ro-bind", _PACKAGE, _HARNESS, "--dir", "/dev"]
    for device in _DEVICES:
        words += ["--dev-bind-try", f"/dev/{device}", f"/dev/{device}"]
    for directory in (_WORK, "/dev/shm"):
        words += ["--size", str(limits.file_mb << 20), "--tmpfs", directory]
    return [*words, "--remount-ro", "/", "--chdir", "/"]


def _docker_command(limits: Limits, packages: Sequence[str]) -> list[str]:
    words = ["docker", "run", "--rm", "--interactive", "--network", "none", "--read-only", "--cap-drop", "ALL"]
    words += ["--security-opt", "no-new-privileges", "--user", f"{_NOBODY}:{_NOBODY}", "--workdir", "/"]
    memory = f"{limits.memory_mb + _OWN_MEGABYTES}m"
    words += ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes + 8)]
    words += ["--tmpfs", f"{_WORK}:rw,nosuid,nodev,size={limits.file_mb}m,mode=1777"]
    words += ["--shm-size", f"{limits.file_mb}m"]
    for name in ("LANG", "PYTHONUTF8", "PYTHONHASHSEED", "MALLOC_ARENA_MAX"):
        words += ["--env", name]
    words += ["--volume", f"{_PACKAGE}:{_HARNESS}:ro"]
    for path in packages:
        words += ["--volume", f"{path}:/packages/{os.path.basename(path)}:ro"]
    return words


_CGROUPS = Path("/sys/fs/cgroup")
_REMOVE_SECONDS = 2.0


@contextlib.contextmanager
def memory_cgroup(limits: Limits, protection: Protection) -> Iterator[str | None]:
    """The directory of a new group, or None; it is removed when the sandbox is gone."""
    if protection.is_container:  # Docker makes its own, and neither it nor bubblewrap shows ours
        yield None
        return
    # The working directory and shared memory lie in memory too, each up to the limit on files.
    limit_bytes = (limits.memory_mb + 2 * limits.file_mb) << 20
    group = _make_cgroup(limit_bytes)
    try:
        yield None if group is None else str(group)
    finally:
        if group is not None:
            _remove_cgroup(group)


def _make_cgroup(limit_bytes: int) -> Path | None:
    for parent, file in _cgroup_parents():
        group = parent / f"themis-{os.getpid()}-{time.monotonic_ns():x}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(str(limit_bytes))
            with contextlib.suppress(OSError):  # a machine without swap has no such file
                (group / "memory.swap.max").write_text("0")
            return group
        except OSError:
            _remove_cgroup(group)
    return None


def _cgroup_parents() -> Iterator[tuple[Path, str]]:
    """Where a group may be made, with the name of its limit: beside and below our own, in either version of groups."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for number, controllers, path in (line.split(":", 2) for line in lines):
        if "memory" in controllers.split(","):
            yield _CGROUPS / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
        elif number == "0" and not controllers:
            own = _CGROUPS / path.lstrip("/")
            # A group that holds processes can have no limited children: then one beside it.
            for parent in (own, own.parent):
                if _CGROUPS in (parent, *parent.parents):
                    yield parent, "memory.max"


def _remove_cgroup(group: Path) -> None:
    until = time.monotonic() + _REMOVE_SECONDS
    while time.monotonic() < until:
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.01)  # its last processes are still being taken down
