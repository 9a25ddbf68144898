"""Programs that try to get out of the sandbox, run by whoever starts this file: prints which of them succeeded, as JSON.

A program that raises was held; one that comes to its end has broken out. Run as a process of its own, so that it can be
another user's, and can refuse itself system calls first, as containers do.
"""

from __future__ import annotations

import json
import os
import platform
import struct
import sys
from typing import Any

# What every program may use: system calls by number, and the demand that something be so.
_TOOLS = """
import ctypes, os, sys, socket, signal, time
libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def need(holds):
    if not holds:
        raise OSError('held')
def any_process(file, what):
    return any(what in open(f'/proc/{p}/{file}', 'rb').read() for p in os.listdir('/proc') if p.isdigit())
def fill(name):
    for i in range(LIMIT_MB + 8):
        open(f'{name}{i}', 'wb').write(b'x' * (1 << 20))
def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as opened:
        opened.settimeout(2)
        opened.connect(address)
"""

NETWORK = {
    "tcp to this machine": "connect(socket.AF_INET, ('127.0.0.1', PORT))",
    "tcp over ipv6": "connect(socket.AF_INET6, ('::1', PORT))",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))\nsyscall(41, 2, 1, 0)",
    "unix socket": "connect(socket.AF_UNIX, '/run/docker.sock')",
    "abstract unix socket": "connect(socket.AF_UNIX, '\\0' + 'themis-hostile')",
    "raw packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "virtual machine socket": "connect(40, (2, 1024))",
    "name lookup": "need(socket.getaddrinfo('example.com', 80))",
    "listening": "s = socket.socket()\ns.bind(('0.0.0.0', 0))\ns.listen()",
}
FILES = {
    "a file that everybody may read": "open(CANARY).read()",
    "the same by its directory": "need(os.path.basename(CANARY) in os.listdir(os.path.dirname(CANARY)))",
    "the same by a link": "os.symlink(CANARY, 'link')\nopen('link').read()",
    "the same by a hard link": "os.link(CANARY, 'hard')\nopen('hard').read()",
    "the same by the way up": "open('../' * 20 + CANARY[1:]).read()",
    "the same by a process's root": "open('/proc/self/root' + CANARY).read()",
    "the same by the harness's root": "open(f'/proc/{os.getppid()}/root' + CANARY).read()",
    "the same by its working directory": "open(f'/proc/{os.getppid()}/cwd' + CANARY).read()",
    "users": "open('/etc/passwd').read()",
    "passwords": "open('/etc/shadow').read()",
    "name of the machine": "open('/etc/hostname').read()",
    "a home": "need([name for name in os.listdir(os.path.expanduser('~root')) if name != '.pyenv'])",
    "temporary files": "need(os.listdir('/tmp'))",
    "logs": "need(os.listdir('/var/log'))",
    "programs of the system": "need([name for name in os.listdir('/usr/bin') if not name.startswith('python')])",
    "sources": "need(os.listdir('/usr/src'))",
    "headers": "need(os.listdir('/usr/include'))",
    "an application's data": "need(os.listdir('/srv'))",
    "installed packages": "import sysconfig\nneed(os.listdir(os.path.dirname(os.__file__) + '/site-packages'))",
    "kernel's settings": "need(os.listdir('/sys'))",
    "memory of the machine": "open('/dev/mem', 'rb').read(1)",
    "kernel's log": "open('/dev/kmsg', 'rb').read(1)",
    "a disk": "[open(f'/dev/{d}', 'rb').read(1) for d in ('vda', 'sda', 'nvme0n1') if os.path.exists(f'/dev/{d}')][0]",
    "a new device": "os.mknod('disk', 0o60600, os.makedev(8, 0))\nopen('disk', 'rb').read(1)",
    "files left open": "need([fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}') or not fails(fd)])",
    "a file by its handle": "syscall(304, -100, ctypes.create_string_buffer(32), 0)",
}  # fmt: skip
WRITING = {
    "writing beside the canary": "open(os.path.dirname(CANARY) + '/written', 'w').write('x')",
    "writing the canary": "open(CANARY, 'a').write('x')",
    "writing the standard library": "open(os.__file__, 'a').write('x')",
    "a module in the standard library": "open(os.path.dirname(os.__file__) + '/hostile.py', 'w').write('x')",
    "removing the standard library": "os.unlink(os.__file__)",
    "writing the interpreter": "open(os.path.realpath(sys.executable), 'r+b').write(b'x')",
    "writing the shell": "open('/bin/sh', 'r+b').write(b'x')",
    "writing beside it": "open('/bin/hostile', 'w').write('x')",
    "a file in the root": "open('/hostile', 'w').write('x')",
    "a file in /etc": "os.makedirs('/etc', exist_ok=True)\nopen('/etc/hostile', 'w').write('x')",
    "a file in /tmp": "open('/tmp/hostile', 'w').write('x')",
    "rights of the interpreter": "os.chmod(os.path.realpath(sys.executable), 0o777)",
    "time of a library file": "os.utime(os.__file__, (1, 1))",
    "a program with another's rights": "open('x', 'w').write('')\nos.chown('x', 0, 0)",
}
PROCESSES = {
    "signal to all": "os.kill(-1, 0)\nos.kill(HOST, 0)",
    "signal to us": "os.kill(HOST, 0)\nneed('themis' in open(f'/proc/{HOST}/cmdline').read())",
    "our environment": "need(b'CANARY' in open(f'/proc/{HOST}/environ', 'rb').read())",
    "any environment": "need(any_process('environ', b'PLANTED'))",
    "any command line": "need(any_process('cmdline', b'hostile.py'))",
    "our memory": "open(f'/proc/{HOST}/mem', 'rb').read(1)",
    "the harness's memory": "open(f'/proc/{os.getppid()}/mem', 'rb').seek(4096)",
    "the harness's files": "need(os.listdir(f'/proc/{os.getppid()}/fd'))",
    "own environment": "need('PLANTED' in str(os.environ))",
    "priority of others": "os.setpriority(os.PRIO_PROCESS, HOST, 5)",
    "limits of others": "import resource\nresource.prlimit(HOST, resource.RLIMIT_NOFILE)",
    "a handle on us": "signal.pidfd_send_signal(os.pidfd_open(HOST), 0)",
}
CALLS = {
    "attaching to the harness": "syscall(101, 16, os.getppid(), 0, 0)",
    "reading its memory": "b = ctypes.create_string_buffer(64)\nsyscall(310, os.getppid(), b, 1, b, 1, 0)",
    "becoming root": "os.setuid(0)",
    "another group": "os.setgroups([0])",
    "keeping capabilities": "libc.prctl(8, 1) and need(0)\nos.setresuid(0, 0, 0)",
    "mount": "syscall(165, b'tmpfs', b'/box', b'tmpfs', 0, 0)",
    "unmount": "syscall(166, b'/', 2)",
    "another root": "syscall(155, b'/', b'/')",
    "chroot": "os.chroot('/box')",
    "new user namespace": "syscall(272, 0x10000000)",
    "new network namespace": "syscall(272, 0x40000000)",
    "new namespace by clone": "need(syscall(56, 0x10000000 | 17, 0, 0, 0, 0) > 0)",
    "entering a namespace": "syscall(308, os.open('/', 0), 0)",
    "a new mount tree": "syscall(428, -100, b'/', 1)",
    "kernel keys": "syscall(250, 0, -3, 0)",
    "kernel programs": "syscall(321, 0, 0, 0)",
    "performance counters": "syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)",
    "page faults": "syscall(323, 0)",
    "asynchronous calls": "syscall(425, 4, ctypes.create_string_buffer(120))",
    "name of the host": "socket.sethostname('hostile')",
    "the clock": "time.clock_settime(time.CLOCK_REALTIME, 1)",
    "kernel module": "syscall(175, b'', 0, b'')",
    "restarting": "syscall(169, 0xfee1dead, 672274793, 0, 0)",
    "ports": "syscall(172, 3)",
    "swap": "syscall(167, b'/dev/vda', 0)",
    "accounting": "syscall(163, b'/box/acct')",
}
MEMORY = {
    "a file in memory": "os.memfd_create('x')",
    "many files in memory": "fds = [os.memfd_create(str(i)) for i in range(50)]\n[os.ftruncate(fd, 1 << 25) for fd in fds]",
    "secret memory": "syscall(447, 0)",
    "shared memory": "syscall(29, 0, 1 << 28, 0o1600)",
    "message queues": "syscall(68, 0, 0o1600)",
    "semaphores": "syscall(64, 0, 1000, 0o1600)",
    "filling the working directory": "need(WALLED or BUBBLE)\nfill('f')",
    "filling /dev/shm": "fill('/dev/shm/f')",
    "one large block": "bytearray(600 << 20)",
    "a shared mapping": "import mmap\nmmap.mmap(-1, 600 << 20)",
    "endless small files": "need(WALLED)\n[open(f's{i}', 'w').close() for i in range(4200)]",
    "a hundred threads": "import threading\nfor _ in range(100): threading.Thread(target=time.sleep, args=(0.5,)).start()",
    "a hundred open files": "files = [open('/dev/null') for _ in range(100)]",
}  # fmt: skip


def programs() -> dict[str, str]:
    """All of them; those by the number of a system call only where the numbers are known."""
    plain = {**NETWORK, **FILES, **WRITING, **PROCESSES, **CALLS, **MEMORY}
    numbered = platform.machine() == "x86_64"
    return {name: code for name, code in plain.items() if numbered or "syscall(" not in code}


def refuse(*numbers: int) -> None:
    """Refuses this process system calls for good, as the policy of a container does."""
    from themis.evaluation.sandbox.inside import kernel

    load_number, jump_if_equal, leave = 0x20, 0x15, 0x06
    program = [(load_number, 0, 0, 0)]
    for number in numbers:
        program += [(jump_if_equal, 0, 1, number), (leave, 0, 0, 0x00050001)]
    program.append((leave, 0, 0, 0x7FFF0000))
    kernel.set_no_new_privileges()
    kernel.install_seccomp_filter(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))


def run(request: dict[str, Any]) -> dict[str, Any]:
    refuse(*request.get("refuse", ()))
    from themis.evaluation.sandbox import Limits, Sandbox, SandboxError
    from themis.evaluation.sandbox.code_tests import ProgramTest

    sandbox = Sandbox(Limits(cpu_seconds=2, wall_seconds=20), name=request.get("sandbox", ""))
    try:
        level = sandbox.level
    except SandboxError as error:
        return {"refused": str(error)}
    walls = f"WALLED = {'namespaces' in level}\nBUBBLE = {'bubblewrap' in level}\n"
    known = {"CANARY": request["canary"], "PORT": request["port"], "HOST": os.getpid(), "LIMIT_MB": 32}
    code = f"{_TOOLS}\nglobals().update({known!r})\n{walls}PROGRAMS = {programs()!r}\n" + (
        "def fails(fd):\n    try: os.fstat(fd)\n    except OSError: return True\n"
        "try:\n    exec(PROGRAMS[input()])\nexcept BaseException as error: print('held', type(error).__name__, error)\n"
        "else: print('broke out')\n"
    )
    names = list(programs())
    verdicts = sandbox.run_tests(code, [ProgramTest(name, "held") for name in names])
    said = {name: verdict.stdout.strip() or verdict.reason for name, verdict in zip(names, verdicts, strict=True)}
    return {"level": level, "said": said, "files": sandbox.run_program(_LIST_FILES).stdout.split("\n")}


_LIST_FILES = """
import os
for place, directories, files in os.walk('/'):
    if place.startswith(('/proc', os.path.dirname(os.__file__))) and place != os.path.dirname(os.__file__) + '/site-packages':
        directories.clear() if place.startswith('/proc') else None
        continue
    for name in files:
        print(os.path.join(place, name))
"""

if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
