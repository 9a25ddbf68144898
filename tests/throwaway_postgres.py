"""A PostgreSQL server in a temporary directory that lives as long as the process it was started for.

`start` runs this file as a program of its own: a keeper that starts the server, waits for the process to end, by whatever
end, then stops the server and removes its directory. So nothing is left behind even by a test run that was killed.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Where `make test` unpacks the wheel with PostgreSQL's programs, on machines that have no others.
WHEEL = Path(__file__).parent.parent / ".make" / "pgserver"
_START_SECONDS = 300


def find_programs() -> Path | None:
    """The directory with initdb and postgres: in PATH, where Debian puts them, or from the wheel of `make test`."""
    candidates = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    candidates += [WHEEL / "pgserver/pginstall/bin"]
    return next(
        (folder for folder in candidates if (folder / "initdb").exists() and (folder / "postgres").exists()), None
    )


def start(programs: Path, lives_for: int) -> str:
    """The URL of a new server that ends with the process `lives_for`."""
    keeper = subprocess.Popen(
        [sys.executable, __file__, str(programs), str(lives_for)],
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert keeper.stdout is not None
    url = keeper.stdout.readline().strip()
    if not url:
        raise RuntimeError(f"PostgreSQL of {programs} did not start; its reason is above")
    return url


class Restartable:
    """A server that can be stopped and started again, at the same address with the same data."""

    def __init__(self, programs: Path) -> None:
        self._keeper = subprocess.Popen(
            [sys.executable, __file__, str(programs), str(os.getpid()), "restartable"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        self.url = self._hear()

    def stop(self, how: str) -> None:
        """`fast` ends every connection, `immediate` lets the server die as in a crash."""
        self._say(f"stop {how}")

    def start(self) -> None:
        self._say("start")

    def close(self) -> None:
        self._say("end")
        self._keeper.wait()

    def _say(self, what: str) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.write(f"{what}\n")
        self._keeper.stdin.flush()
        self._hear()

    def _hear(self) -> str:
        assert self._keeper.stdout is not None
        return self._keeper.stdout.readline().strip()


def _keep(programs: Path, lives_for: int, *, restartable: bool) -> None:
    with _folder() as folder:
        become = _unprivileged(folder)
        if become and programs.is_relative_to(WHEEL):
            # Somebody else may not be able to read our checkout.
            shutil.copytree(WHEEL, folder / "wheel", symlinks=True)
            _give_away(folder / "wheel", become)
            programs = folder / "wheel" / programs.relative_to(WHEEL)
        data = folder / "data"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": sys.stderr, "cwd": "/", **become}
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "themis", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True,
            **quiet,
        )
        port = _free_port()
        # Nothing in here outlives the tests, so nothing has to reach the disk.
        options = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "200"}
        if restartable:
            del options["synchronous_commit"]  # what was committed is to be there after a crash of the server
        command = [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder]
        command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]

        def start_server() -> subprocess.Popen[bytes]:
            with (folder / "log").open("a") as log:
                started = subprocess.Popen(command, **{**quiet, "stderr": log})
            _wait_until_ready(started, port, folder / "log")
            return started

        server = start_server()
        try:
            print(f"postgresql://themis@127.0.0.1:{port}/postgres", flush=True)
            while restartable and (order := _next_order(lives_for)) is not None:
                if order == "start":
                    server = start_server()
                elif order.startswith("stop"):
                    server.send_signal(signal.SIGQUIT if order.endswith("immediate") else signal.SIGINT)
                    server.wait()
                print(order, flush=True)
            if not restartable:
                _wait_for_end(lives_for)
        finally:
            _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGQUIT)  # stop without waiting for connections
        server.wait()


def _next_order(lives_for: int) -> str | None:
    """What is to be done next; None when the process is gone or has said that it needs no more."""
    sources = [sys.stdin, *([os.pidfd_open(lives_for)] if hasattr(os, "pidfd_open") else [])]
    select.select(sources, [], [])
    line = sys.stdin.readline().strip() if select.select([sys.stdin], [], [], 0)[0] else ""
    if line == "end":
        print(line, flush=True)
    return None if line in ("", "end") else line


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="themis-postgres-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged(folder: Path) -> dict[str, object]:
    """How to start a process as somebody else when we are root, which PostgreSQL refuses to be; the folder becomes theirs."""
    if os.geteuid() != 0:
        return {}
    user = next(user for name in ("postgres", "nobody") if (user := _user(name)) is not None)
    become = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    _give_away(folder, become)
    return become


def _user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _give_away(folder: Path, become: dict[str, object]) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, become["user"], become["group"], follow_symlinks=False)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _wait_until_ready(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(f"postgresql://themis@127.0.0.1:{port}/postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise SystemExit(f"PostgreSQL did not start:\n{log.read_text()}")


def _wait_for_end(process: int) -> None:
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(process)], [], [])
        return
    while True:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(1)


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), int(sys.argv[2]), restartable="restartable" in sys.argv[3:])
