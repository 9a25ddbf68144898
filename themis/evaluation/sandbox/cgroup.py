"""A control group that counts all memory of a sandbox's code together: its processes, its files in memory, everything.

Where none can be made (no right to, or a container that shows no groups) each process has a limit of its own, and the
calls that make memory outside of it are refused.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from themis.evaluation.sandbox.protection import Limits, Protection

_ROOT = Path("/sys/fs/cgroup")
_REMOVING_SECONDS = 2.0


@contextlib.contextmanager
def memory_cgroup(limits: Limits, protection: Protection) -> Iterator[str | None]:
    """The directory of a new group, or None; it is removed when the sandbox is gone."""
    if protection.is_container:  # Docker makes its own, and neither it nor bubblewrap shows ours
        yield None
        return
    # The working directory and shared memory lie in memory too, each up to the limit on files.
    limit_bytes = (limits.memory_mb + 2 * limits.file_mb) << 20
    group = _make(limit_bytes)
    try:
        yield None if group is None else str(group)
    finally:
        if group is not None:
            _remove(group)


def _make(limit_bytes: int) -> Path | None:
    for parent, file in _parents():
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
            _remove(group)
    return None


def _parents() -> Iterator[tuple[Path, str]]:
    """Where a group may be made, with the name of its limit: beside and below our own, in either version of groups."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for number, controllers, path in (line.split(":", 2) for line in lines):
        if "memory" in controllers.split(","):
            yield _ROOT / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
        elif number == "0" and not controllers:
            own = _ROOT / path.lstrip("/")
            # A group that holds processes can have no limited children: then one beside it.
            for parent in (own, own.parent):
                if _ROOT in (parent, *parent.parents):
                    yield parent, "memory.max"


def _remove(group: Path) -> None:
    until = time.monotonic() + _REMOVING_SECONDS
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            # Its last processes are still being taken down.
            if time.monotonic() > until:
                return
            time.sleep(0.01)
