"""The Linux system calls that Python does not offer, each raising OSError where the kernel refuses, and the seccomp filter.

`confinement` builds the sandbox out of them; elsewhere than on Linux none of them is called.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_NODIRATIME, MS_BIND, MS_REC, MS_PRIVATE, MS_RELATIME = 1024, 2048, 4096, 16384, 1 << 18, 1 << 21

MACHINE = os.uname().machine
RELEASE = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
CAN_MOUNT_TREES_READ_ONLY = RELEASE >= (5, 12)

# Numbers differ between machines. Filters are written only for the two listed; all else goes without.
SYSTEM_CALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        "shmget": 29, "socket": 41, "clone": 56, "kill": 62, "semget": 64, "msgget": 68, "ptrace": 101,
        "rt_sigqueueinfo": 129, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "pivot_root": 155,
        "chroot": 161, "mount": 165, "umount2": 166, "tkill": 200, "sched_setaffinity": 203, "tgkill": 234,
        "mq_open": 240, "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251, "migrate_pages": 256,
        "unshare": 272, "move_pages": 279, "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "prlimit64": 302,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
        "sched_setattr": 314, "memfd_create": 319, "bpf": 321, "userfaultfd": 323,
    },
    "aarch64": {
        "ioprio_set": 30, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "unshare": 97, "ptrace": 117,
        "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "kill": 129, "tkill": 130,
        "tgkill": 131, "rt_sigqueueinfo": 138, "setpriority": 140, "mq_open": 180, "msgget": 186, "semget": 190,
        "shmget": 194, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
        "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "prlimit64": 261,
        "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271,
        "sched_setattr": 274, "memfd_create": 279, "bpf": 280, "userfaultfd": 282,
    },
}  # fmt: skip
# Newer calls have one number everywhere.
_EVERYWHERE = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446,
    "memfd_secret": 447,
}  # fmt: skip
for _numbers in SYSTEM_CALLS.values():
    _numbers.update(_EVERYWHERE)

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _raise_if_failed("unshare", _libc.unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    _raise_if_failed(
        f"mount {target}",
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            options.encode() or None,
        ),
    )


def mount_read_only(target: str) -> None:
    """Makes a mount and those below it read-only; without CAN_MOUNT_TREES_READ_ONLY only the mount itself."""
    if CAN_MOUNT_TREES_READ_ONLY:
        attributes = struct.pack("=QQQQ", MS_RDONLY | MS_NOSUID | MS_NODEV, 0, 0, 0)
        status = _syscall("mount_setattr", _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes, len(attributes))
        _raise_if_failed(f"mount_setattr {target}", status)
        return
    inherited = os.statvfs(target).f_flag & (MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
    mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_RELATIME | inherited)


def unmount(target: str) -> None:
    detach = 2
    _raise_if_failed(f"unmount {target}", _libc.umount2(os.fsencode(target), ctypes.c_int(detach)))


def pivot_root(new: str, old: str) -> None:
    _raise_if_failed("pivot_root", _syscall("pivot_root", os.fsencode(new), os.fsencode(old)))


def set_parent_death_signal(signal_number: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def set_child_subreaper() -> None:
    """Descendants whose parent has ended become children of this process, so that none escapes."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_undumpable() -> None:
    """Processes of the same user can no longer read this one's memory or descriptors."""
    _prctl(_PR_SET_DUMPABLE, 0)


def set_no_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _raise_if_failed("capset", _libc.capset(header, b"\0" * 24))


def install_seccomp_filter(program: bytes) -> None:
    """Installs a classic BPF program over the system calls of this process and all it will start."""
    instructions = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    _raise_if_failed("seccomp", _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, description, 0, 0))


def landlock_abi() -> int:
    ask_for_version = 1
    return _raise_if_failed("landlock", _syscall("landlock_create_ruleset", None, 0, ask_for_version))


def landlock_ruleset(attributes: bytes) -> int:
    return _raise_if_failed("landlock", _syscall("landlock_create_ruleset", attributes, len(attributes), 0))


def landlock_restrict(ruleset: int, rules: list[tuple[str, int]]) -> None:
    """Allows each (path, rights) and gives up every other right that the rule set handles."""
    beneath_path = 1
    for path, rights in rules:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except PermissionError:
            continue  # what this user cannot reach anyway needs no rule
        try:
            rule = struct.pack("=Qi", rights, descriptor)
            _raise_if_failed(f"landlock {path}", _syscall("landlock_add_rule", ruleset, beneath_path, rule, 0))
        finally:
            os.close(descriptor)
    _raise_if_failed("landlock", _syscall("landlock_restrict_self", ruleset, 0))


def _prctl(option: int, value: int) -> None:
    _raise_if_failed(
        "prctl", _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    )


def _syscall(name: str, *arguments: int | bytes | None) -> int:
    numbers = SYSTEM_CALLS.get(MACHINE, _EVERYWHERE)
    if name not in numbers:
        raise OSError(f"{name} is not known on {MACHINE}")
    passed = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    return int(_libc.syscall(ctypes.c_long(numbers[name]), *passed))


def _raise_if_failed(what: str, status: int) -> int:
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return status


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

_BPF_LOAD, _BPF_EQUAL, _BPF_AT_LEAST, _BPF_ANY_BIT, _BPF_RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_SECCOMP_ALLOW, _SECCOMP_REFUSE, _SECCOMP_KILL = 0x7FFF0000, 0x00050000, 0x80000000


def seccomp_program(*, only_itself: int | None) -> bytes:
    """The BPF program; with a process id, calls that act on any other process are refused too."""
    if MACHINE not in _AUDIT_ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system call filter for {MACHINE}")
    number = SYSTEM_CALLS[MACHINE]
    refused = [number[name] for name in _REFUSED]
    program = [
        (_BPF_LOAD, 0, 0, _ARCHITECTURE),
        (_BPF_EQUAL, 1, 0, _AUDIT_ARCHITECTURES[MACHINE]),
        (_BPF_RETURN, 0, 0, _SECCOMP_KILL),
        (_BPF_LOAD, 0, 0, _NUMBER),
        (_BPF_AT_LEAST, 0, 1, _X32_CALLS),
        (_BPF_RETURN, 0, 0, _SECCOMP_KILL),
        # clone3 hides its flags behind a pointer. Told that it is missing, the C library falls back to clone.
        (_BPF_EQUAL, 0, 1, number["clone3"]),
        (_BPF_RETURN, 0, 0, _SECCOMP_REFUSE | errno.ENOSYS),
        (_BPF_EQUAL, 0, 4, number["clone"]),
        (_BPF_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_BPF_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_BPF_RETURN, 0, 0, _SECCOMP_REFUSE | errno.EPERM),
        (_BPF_RETURN, 0, 0, _SECCOMP_ALLOW),
    ]
    if only_itself is not None:
        refused += [number[name] for name in _REFUSED_TO_OUR_USER]
        for name in _ON_A_PROCESS:
            program += [
                (_BPF_EQUAL, 0, 5, number[name]),
                (_BPF_LOAD, 0, 0, _FIRST_ARGUMENT),
                (_BPF_EQUAL, 1, 0, only_itself),
                (_BPF_EQUAL, 0, 1, 0),  # zero is the caller or its own group
                (_BPF_RETURN, 0, 0, _SECCOMP_ALLOW),
                (_BPF_RETURN, 0, 0, _SECCOMP_REFUSE | errno.EPERM),
            ]
    for call in refused:
        program += [(_BPF_EQUAL, 0, 1, call), (_BPF_RETURN, 0, 0, _SECCOMP_REFUSE | errno.EPERM)]
    program.append((_BPF_RETURN, 0, 0, _SECCOMP_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
