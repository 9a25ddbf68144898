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


def _keep(programs: Path, lives_for: int) -> None:
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
        command = [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder]
        command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(command, **{**quiet, "stderr": log})
        try:
            _wait_until_ready(server, port, folder / "log")
            print(f"postgresql://themis@127.0.0.1:{port}/postgres", flush=True)
            _wait_for_end(lives_for)
        finally:
            server.terminate()
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                server.send_signal(3)  # SIGQUIT: stop without waiting for connections
                server.wait()


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
    _keep(Path(sys.argv[1]), int(sys.argv[2]))
