"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

_PATIENCE_SECONDS = 300  # long, for a machine that is busy with other things


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, f"still not so after {_PATIENCE_SECONDS} s"
        time.sleep(0.02)
