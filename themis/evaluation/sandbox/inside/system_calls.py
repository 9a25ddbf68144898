"""The filter over system calls: what no solution to an exercise needs, and what reaches beyond its own processes.

Everything is allowed except what is named here. A refused call returns EPERM, so ordinary code sees a PermissionError.
"""

from __future__ import annotations

import errno
import struct

from themis.evaluation.sandbox.inside import kernel

__all__ = ["filter_program"]

# The network (pairs of connected sockets remain: asyncio needs them), other processes' memory, kernel surface that has
# been a way out before, and everything that would undo a namespace.
_REFUSED = (
    "socket", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "add_key", "request_key", "keyctl", "bpf",
    "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_by_handle_at",
    "unshare", "setns", "chroot", "pivot_root", "mount", "umount2", "open_tree", "move_mount", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr",
    # Memory that no limit on a process's address space counts.
    "memfd_create", "memfd_secret", "shmget", "semget", "msgget", "mq_open",
)  # fmt: skip

# Where the program shares its user with us: calls whose first argument is the process they act on ...
_ON_A_PROCESS = (
    "kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "prlimit64", "sched_setparam", "sched_setscheduler",
    "sched_setaffinity", "sched_setattr", "migrate_pages", "move_pages",
)  # fmt: skip
# ... and those that name processes in other ways.
_REFUSED_TO_OUR_USER = (
    "tkill", "pidfd_send_signal", "setpriority", "ioprio_set",
)  # fmt: skip

_AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_CALLS = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW... flag

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def filter_program(*, only_itself: int | None) -> bytes:
    """The BPF program; with a process id, calls that act on any other process are refused too."""
    if kernel.MACHINE not in _AUDIT_ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system call filter for {kernel.MACHINE}")
    number = kernel.SYSTEM_CALLS[kernel.MACHINE]
    refused = [number[name] for name in _REFUSED]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _AUDIT_ARCHITECTURES[kernel.MACHINE]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_CALLS),
        (_RETURN, 0, 0, _KILL),
        # clone3 hides its flags behind a pointer. Told that it is missing, the C library falls back to clone.
        (_EQUAL, 0, 1, number["clone3"]),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        (_EQUAL, 0, 4, number["clone"]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    if only_itself is not None:
        refused += [number[name] for name in _REFUSED_TO_OUR_USER]
        for name in _ON_A_PROCESS:
            program += [
                (_EQUAL, 0, 5, number[name]),
                (_LOAD, 0, 0, _FIRST_ARGUMENT),
                (_EQUAL, 1, 0, only_itself),
                (_EQUAL, 0, 1, 0),  # zero is the caller or its own group
                (_RETURN, 0, 0, _ALLOW),
                (_RETURN, 0, 0, _REFUSE | errno.EPERM),
            ]
    for call in refused:
        program += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
