"""A Ray cluster of two CPUs on this machine, for as long as a block lasts; it ends with this process, by whatever end."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

# Nobody is told of it, nothing is written into the home of whoever runs the tests, and no patience ends, nor is a
# process killed, because the machine is busy.
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Its mode is left to `ray.init`, which tells it to a Ray that was imported before.
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_health_check_failure_threshold": "100",
}
OPTIONS = {"num_cpus": 2, "object_store_memory": 80 * 2**20}
# Ray gives its processes half a minute to start, however busy the machine is.
ATTEMPTS = 3


class NotStarted(Exception):
    """Ray's processes cannot work here: a sandbox without sockets, too little memory."""


@dataclass(frozen=True)
class Cluster:
    address: str
    folder: Path


@contextmanager
def surroundings() -> Iterator[Path]:
    """The folder for a cluster's files, and an environment that every Ray of this process and its children takes over."""
    # Not pytest's: the path of a socket has about a hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    with mock.patch.dict(os.environ, {**_SETTINGS, "RAY_TMPDIR": str(folder)}):
        for name in ("RAY_ADDRESS", "RAY_AUTH_MODE"):
            os.environ.pop(name, None)
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def connected() -> Iterator[Cluster]:
    """A cluster that this process is connected to."""
    at_sigterm, at_exceptions = signal.getsignal(signal.SIGTERM), sys.excepthook
    with surroundings() as folder:
        import ray

        for attempt in range(ATTEMPTS):
            try:
                started = ray.init(
                    "local",
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="error",
                    # Memory that is shared through /dev/shm is scarce in containers.
                    _plasma_directory=str(folder),
                    _temp_dir=str(folder),
                    **OPTIONS,
                )
                break
            except Exception as error:
                with suppress(Exception):
                    ray.shutdown()
                if attempt == ATTEMPTS - 1:
                    raise NotStarted(str(error)) from error
        try:
            yield Cluster(started.address_info["gcs_address"], folder)
        finally:
            ray.shutdown()
            # Ray puts its own in their place, for good.
            signal.signal(signal.SIGTERM, at_sigterm)
            sys.excepthook = at_exceptions
