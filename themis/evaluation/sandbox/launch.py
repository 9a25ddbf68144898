"""Starts a sandbox's processes, hands them the code and the jobs, and collects their reports.

Nothing of the code runs in our process: what comes back is read as JSON.
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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from themis.evaluation.sandbox.containers import command, place_of_work, user_of
from themis.evaluation.sandbox.limits import Limits
from themis.evaluation.sandbox.memory_group import limited_memory
from themis.evaluation.sandbox.protection import Protection, SandboxError

__all__ = ["Job", "launch"]

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
) -> list[dict[str, Any]]:
    """One report a job. Fewer come back where too many jobs timed out, or where the code ended the sandbox.

    `packages` are the directories and files of packages that the code may import beside the standard library.
    """
    directory = tempfile.mkdtemp(prefix="themis-sandbox-")
    try:
        with limited_memory(limits, protection) as group:
            request = {
                "layers": list(protection.layers),
                "limits": asdict(limits),
                "directory": place_of_work(protection, directory),
                "visible": _visible_files(protection, tuple(packages)),
                "packages": list(packages),
                "memory_group": group,
                "code": code,
                "jobs": len(jobs),
            }
            frames = [json.dumps(request).encode()]
            for job in jobs:
                frames += [job.kind.encode(), job.material]
            deadline = _START_SECONDS + len(jobs) * (limits.wall_seconds + _SPARE_SECONDS_PER_JOB)
            message = b"".join(struct.pack("=Q", len(frame)) + frame for frame in frames)
            output = _converse(command(protection, limits, request, _PACKAGE, _OPTIONS), protection, message, deadline)
    finally:
        _remove(directory)
    reports = [json.loads(frame) for frame in _frames(output)]
    for report in reports:
        if "broken" in report:
            raise SandboxError(f"the sandbox ({protection.level}) cannot be set up: {report['broken']}")
    return reports


@functools.lru_cache
def _visible_files(protection: Protection, packages: tuple[str, ...]) -> dict[str, list[str]]:
    """What the interpreter needs of this machine; an image brings its own."""
    if sys.platform != "linux" or protection.image:
        return {"directories": [], "files": [], "hidden": []}
    asked = [protection.interpreter, *_OPTIONS, _PACKAGE, "visible", *packages]
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


def _converse(command: Sequence[str], protection: Protection, request: bytes, timeout_seconds: float) -> bytes:
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(for_docker=bool(protection.image)),
            cwd="/",
            start_new_session=True,
            **user_of(protection),
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


def _remove(directory: str) -> None:
    try:
        shutil.rmtree(directory)
    except (OSError, RecursionError):
        # The code may have nested or locked its directories beyond what rmtree can follow.
        for command in (["chmod", "-R", "u+rwx", directory], ["rm", "-rf", directory]):
            subprocess.run(command, capture_output=True, check=False)


def _frames(output: bytes) -> Iterator[bytes]:
    position = 0
    while position + 8 <= len(output):
        (size,) = struct.unpack_from("=Q", output, position)
        position += 8
        if position + size <= len(output):
            yield output[position : position + size]
        position += size
