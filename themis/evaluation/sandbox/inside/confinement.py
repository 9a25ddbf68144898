"""Builds the box that model-written code runs in, and puts a process into it for good.

`enter` is called once by the supervisor and makes what processes share: namespaces, a file system of its own.
`reset_working_directory` gives each job an empty working directory.
`confine` is called by each process before it touches foreign code: limits, another user, no way back.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import struct
import sys

from themis.evaluation.sandbox.inside import kernel
from themis.evaluation.sandbox.inside.wire import Request

_NOBODY = 65534
# A user id of its own for every sandbox: limits on processes count by user, and one user's programs can signal each
# other. Ids this high belong to nobody on any system that hands them out as ranges to people or services.
_FIRST_OWN_USER = 0x70000000
_MEGABYTE = 1024 * 1024
_OPEN_FILES = 64
_STACK_MEGABYTES = 64
_WRITABLE = ("/box", "/dev/shm")
_PACKAGES = "/packages"
_DEVICES = ("null", "zero", "full", "random", "urandom")


class Box:
    """The sandbox as its supervisor sees it after entering."""

    def __init__(self, request: Request) -> None:
        self.layers = frozenset(request["layers"])
        self.limits: dict[str, int] = request["limits"]
        # The directory that the caller has made for us, and within the box the one of the present job.
        self.place: str = request["directory"]
        self.directory = ""
        self.renewed = 0
        self.user: int | None = None
        self.processes = self.limits["processes"]
        # With a process namespace, ending its first process ends all others.
        self.hidden = "namespaces" in self.layers
        self.visible: dict[str, list[str]] = request["visible"]
        self.packages: list[str] = request["packages"]
        # Open files of the group that counts the code's memory, if there is one: who is in it, and what happened to them.
        self.cgroup: int | None = None
        self.memory_events: int | None = None


def enter(request: Request) -> Box:
    """Builds the box; with namespaces, returns in a child that is the first process of its own process tree."""
    box = Box(request)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return box
    with contextlib.suppress(OSError):  # the memory limit still holds for each process
        _write("/proc/self/oom_score_adj", "1000")
    _open_cgroup(box, request["cgroup"])
    box.processes = _process_limit(box)
    if "user" in box.layers:
        box.user = _own_user()
    if box.hidden:
        _enter_namespaces(box)
    else:
        kernel.set_parent_death_signal(signal.SIGTERM)
        kernel.set_child_subreaper()
        if box.user is not None:
            os.chmod(box.place, 0o711)
    if "user" not in box.layers:
        kernel.set_undumpable()
    if box.packages:
        sys.path.append(_show_packages(box))
    return box


def reset_working_directory(box: Box) -> None:
    """An empty working directory, out of reach of what earlier jobs left."""
    box.renewed += 1
    if box.hidden:
        box.directory = "/box"
        for directory in _WRITABLE:
            if box.renewed > 1:
                kernel.unmount(directory)
            size = f"size={box.limits['file_mb']}m,nr_inodes=4096,mode=700"
            kernel.mount("tmpfs", directory, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, size)
    else:
        if box.directory:
            shutil.rmtree(box.directory, ignore_errors=True)
        box.directory = f"{box.place}/{box.renewed}"
        os.mkdir(box.directory, 0o700)
    if box.user is not None:
        for directory in _WRITABLE if box.hidden else (box.directory,):
            os.chown(directory, box.user, box.user)


def join_cgroup(box: Box) -> None:
    """From now on the memory of this process, and of all it starts, counts together."""
    if box.cgroup is not None:
        os.write(box.cgroup, b"0")


def count_oom_kills(box: Box) -> int:
    """How many processes of the group the kernel has ended because all of them together needed too much."""
    if box.memory_events is None:
        return 0
    words = os.pread(box.memory_events, 4096, 0).split()
    return int(words[words.index(b"oom_kill") + 1]) if b"oom_kill" in words else 0


def confine(box: Box, *, trusted: bool) -> None:
    """Gives up everything that the box does not grant. `trusted` marks the process that judges: no other may look in."""
    os.setsid()
    os.chdir(box.directory)
    os.umask(0o077)
    _set_limits(box)
    if box.user is not None:
        os.setgroups([])
        os.setresgid(box.user, box.user, box.user)
        os.setresuid(box.user, box.user, box.user)
    if sys.platform == "linux":
        kernel.set_parent_death_signal(signal.SIGKILL)
        kernel.set_no_new_privileges()
        if box.hidden and box.user is None:
            kernel.drop_capabilities()
        if "landlock" in box.layers:
            _restrict_with_landlock(box)
        if trusted:
            kernel.set_undumpable()
        if "seccomp" in box.layers:
            shares_our_user = not box.hidden and box.user is None
            only_itself = os.getpid() if shares_our_user else None
            kernel.install_seccomp_filter(kernel.seccomp_program(only_itself=only_itself))
    os.environ.clear()
    os.environ.update(HOME=box.directory, TMPDIR=box.directory, PATH="/usr/bin:/bin", LANG="C.UTF-8")
    if box.packages:
        # Each thread of a linear algebra library reserves memory, which is what the limit counts.
        os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")


def _open_cgroup(box: Box, group: str | None) -> None:
    if group is None:
        return
    box.cgroup = os.open(f"{group}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    for name in ("memory.events", "memory.oom_control"):
        if os.path.exists(f"{group}/{name}"):
            box.memory_events = os.open(f"{group}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            return


def _process_limit(box: Box) -> int:
    """The kernel counts processes by user: ours and everybody's where the sandbox has no user and no namespace of its own."""
    supervisors = 4
    allowed = box.limits["processes"] + supervisors
    counted_by_namespace = kernel.RELEASE >= (5, 14)
    if "user" in box.layers or (box.hidden and counted_by_namespace):
        return allowed
    return allowed + _threads_of_user(os.getuid())


def _threads_of_user(user: int) -> int:
    threads = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == user:
                    threads += len(os.listdir(f"/proc/{entry.name}/task"))
            except OSError:
                continue  # it has ended meanwhile
    return threads


def _own_user() -> int:
    """A free user id; where a container maps only the usual ids, nobody's."""
    with open("/proc/self/uid_map") as lines:
        mapped = [tuple(map(int, line.split())) for line in lines]
    wanted = _FIRST_OWN_USER + os.getpid()
    return wanted if any(first <= wanted < first + count for first, _, count in mapped) else _NOBODY


def _enter_namespaces(box: Box) -> None:
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    user, group = os.geteuid(), os.getegid()
    if box.user is None:
        kernel.unshare(flags | kernel.CLONE_NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{_NOBODY} {user} 1")
        _write("/proc/self/gid_map", f"{_NOBODY} {group} 1")
    else:
        kernel.unshare(flags)
    _build_file_system(box)
    kernel.set_parent_death_signal(signal.SIGKILL)
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.set_parent_death_signal(signal.SIGKILL)


def _build_file_system(box: Box) -> None:
    """A root of its own: the interpreter and its libraries, read-only, and an empty directory that vanishes with it."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    root = box.place
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")
    for directory in ("/dev", _PACKAGES, *_WRITABLE):
        os.mkdir(root + directory)
    for path in (*box.visible["directories"], *box.visible["files"]):
        _show(path, root + path)
    for path in box.packages:
        _show(path, f"{root}{_PACKAGES}/{os.path.basename(path)}")
    for path in box.visible["hidden"]:
        kernel.mount("tmpfs", root + path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=4k,mode=755")
    devices = [f"/dev/{device}" for device in _DEVICES if os.path.exists(f"/dev/{device}")]
    for device in devices:
        _make_target(root + device, directory=False)
    kernel.mount_read_only(root)
    for device in devices:
        kernel.mount(device, root + device, None, kernel.MS_BIND)
    os.chdir(root)
    kernel.pivot_root(".", ".")
    kernel.unmount(".")
    os.chdir("/")


def _show(path: str, target: str) -> None:
    _make_target(target, directory=os.path.isdir(path))
    kernel.mount(path, target, None, kernel.MS_BIND | kernel.MS_REC)
    if not kernel.CAN_MOUNT_TREES_READ_ONLY:
        kernel.mount_read_only(target)


def _make_target(target: str, *, directory: bool) -> None:
    os.makedirs(target if directory else os.path.dirname(target), mode=0o755, exist_ok=True)
    if not directory:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))


def find_packages(box: Box) -> str:
    """The directory in which the allowed packages can be imported."""
    return (
        _PACKAGES if box.hidden or "bubblewrap" in box.layers or "docker" in box.layers else f"{box.place}{_PACKAGES}"
    )


def _show_packages(box: Box) -> str:
    links = find_packages(box)
    if links == _PACKAGES:
        return links
    os.mkdir(links, 0o755)
    for path in box.packages:
        os.symlink(path, f"{links}/{os.path.basename(path)}")
    return links


def _set_limits(box: Box) -> None:
    limits = box.limits
    file_bytes, memory_bytes = limits["file_mb"] * _MEGABYTE, limits["memory_mb"] * _MEGABYTE
    for kind, value in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_STACK, _STACK_MEGABYTES * _MEGABYTE),
    ):
        _lower(kind, value)
    # The soft limit ends a program with a signal of its own, the hard one those that ignore it.
    _lower(resource.RLIMIT_CPU, limits["cpu_seconds"], spare=1)
    if sys.platform == "linux":
        # Elsewhere the processes of our user cannot be counted cheaply, and a limit below their number would bar them all.
        _lower(resource.RLIMIT_NPROC, box.processes)


def _lower(kind: int, value: int, *, spare: int = 0) -> None:
    present = resource.getrlimit(kind)[1]
    hard = value + spare if present == resource.RLIM_INFINITY else min(value + spare, present)
    try:
        resource.setrlimit(kind, (min(value, hard), hard))
    except (ValueError, OSError):
        if sys.platform == "linux":
            raise
        # macOS refuses a limit on address space; time and file limits still hold.


def _restrict_with_landlock(box: Box) -> None:
    """Landlock: reading what Python needs, writing the working directory, nothing else of the file system."""
    abi = kernel.landlock_abi()
    execute, write_file, read_file, read_directory = 1, 2, 4, 8
    every_right = (1 << {1: 13, 2: 14}.get(abi, 15)) - 1
    tcp, signals_and_abstract_sockets = (3 if abi >= 4 else 0), (3 if abi >= 6 else 0)
    fields = [every_right, tcp, signals_and_abstract_sockets][: 1 + (abi >= 4) + (abi >= 6)]
    ruleset = kernel.landlock_ruleset(struct.pack(f"={len(fields)}Q", *fields))
    read = execute | read_file
    rules = [(path, read) for path in box.visible["files"]]
    for path in (*box.visible["directories"], *box.packages):
        rules += _readable_tree(path, box.visible["hidden"], read, read_directory)
    if box.packages:
        rules.append((f"{box.place}{_PACKAGES}", read | read_directory))
    rules += [(f"/dev/{device}", read_file | write_file) for device in _DEVICES if os.path.exists(f"/dev/{device}")]
    rules.append((box.directory, every_right))
    kernel.landlock_restrict(ruleset, rules)
    os.close(ruleset)


def _readable_tree(path: str, hidden: list[str], read: int, read_directory: int) -> list[tuple[str, int]]:
    """Rules only add: what is hidden inside a directory is left out by naming everything else in it."""
    if not os.path.isdir(path):
        return [(path, read)]
    if not any(name.startswith(f"{path}/") for name in hidden):
        return [(path, read | read_directory)]
    entries = [entry.path for entry in os.scandir(path) if entry.path not in hidden]
    inner = [(entry, read | (read_directory if os.path.isdir(entry) else 0)) for entry in entries]
    return [(path, read_directory), *inner]


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
