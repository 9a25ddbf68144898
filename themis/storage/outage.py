"""Waits out a database server that is away: a restart, a dropped connection, a network that comes back.

Only where a run is being written: whoever just looks is told at once. The wait is told, and it ends.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine

from themis.exceptions import ConfigurationError, StorageError

__all__ = ["DatabaseAwayError", "Outage", "outage_of", "outlast"]

logger = logging.getLogger(__name__)

_LONGEST_OUTAGE_SECONDS = 300.0
_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 0.05, 2.0
_TOLD_EVERY_SECONDS = 30.0

T = TypeVar("T")


class DatabaseAwayError(StorageError):
    """The server cannot be reached, or the connection to it broke."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"the database {where} went away: {reason}. `themis doctor` checks the connection")
        self.reason = reason


class _TooLongError(DatabaseAwayError):
    """Nobody waits any longer."""

    def __init__(self, where: str, reason: str, away_seconds: float) -> None:
        StorageError.__init__(
            self,
            f"the database {where} has been away for {away_seconds:.0f} s ({reason}); everything committed so far is safe. "
            "Run the same command again when it is back: it goes on where it stopped",
        )
        self.reason = reason


class Outage:
    """How long a server has been away, for all connections to it. A run that is written makes it `patient`."""

    def __init__(self, where: str) -> None:
        self.patient = False
        self._longest_seconds = _longest_outage_seconds()
        self._where = where
        self._lock = threading.Lock()
        self._since: float | None = None
        self._told = self._delay = 0.0

    def wait(self, error: Exception) -> None:
        """A while before the next try; raises when nobody wants to wait, or the server has been away too long."""
        if not self.patient or isinstance(error, _TooLongError):
            raise error
        with self._lock:
            now = time.monotonic()
            if self._since is None:
                self._since, self._told, self._delay = now, now - _TOLD_EVERY_SECONDS, _FIRST_DELAY_SECONDS
            away = now - self._since
            if away > self._longest_seconds:
                raise _TooLongError(self._where, _reason(error), away) from error
            if now - self._told >= _TOLD_EVERY_SECONDS:
                self._told = now
                logger.warning(
                    "waiting for the database %s, away for %.0f s, at most %.0f s (%s)",
                    *(self._where, away, self._longest_seconds, _reason(error)),
                )
            delay = self._delay
            self._delay = min(_LONGEST_DELAY_SECONDS, delay * 2)
        time.sleep(delay)

    def end(self) -> None:
        """The server has answered."""
        with self._lock:
            if self._since is not None:
                logger.warning("the database %s is back after %.1f s", self._where, time.monotonic() - self._since)
            self._since = None


def _longest_outage_seconds() -> float:
    given = os.environ.get("THEMIS_DATABASE_WAIT_SECONDS") or _LONGEST_OUTAGE_SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ConfigurationError(f"THEMIS_DATABASE_WAIT_SECONDS is a number of seconds, got {given!r}")
    return seconds


def _reason(error: Exception) -> str:
    if isinstance(error, DatabaseAwayError):
        return error.reason
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def outage_of(engine: Engine) -> Outage | None:
    """None for a file, which is never away."""
    found: Outage | None = engine.get_execution_options().get("outage")
    return found


def outlast(engine: Engine, work: Callable[[Connection], T]) -> T:
    """Reads something, and reads it again if the server goes away meanwhile."""
    outage = outage_of(engine)
    while True:
        try:
            with engine.connect() as connection:
                result = work(connection)
        except DatabaseAwayError as error:
            if outage is None:
                raise
            outage.wait(error)
            continue
        if outage is not None:
            outage.end()
        return result
