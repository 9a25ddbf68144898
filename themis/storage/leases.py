"""The lease of an experiment: one process at a time spends its budget, as one process at a time writes a run.

It stands among the store's own values, renewed by a heartbeat; that of a dead process is taken over.
"""

from __future__ import annotations

import json
import secrets
import threading
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import IntegrityError

from themis.core.codec import digest
from themis.exceptions import RunBusyError, StorageError
from themis.storage import schema
from themis.storage.database import clock, format_holder, holder_is_dead, process_identity, retry_read
from themis.storage.writing import LEASE_SECONDS

__all__ = ["ExperimentLease"]


@dataclass(frozen=True)
class _Held:
    """Who holds a lease, until when by the database's clock, as it is written down."""

    holder: str
    until: float

    def written(self) -> str:
        return json.dumps({"holder": self.holder, "until": self.until})


class ExperimentLease:
    """The right to spend an experiment's budget. Use as a context manager: it is let go at the end, whatever happened.

    Raises:
        RunBusyError: Another process has it.
    """

    def __init__(self, engine: Engine, experiment: str) -> None:
        self._engine = engine
        self._experiment = experiment
        self._key = f"experiment:{digest(experiment)[:32]}"
        # The token tells two experiments of one process apart.
        self._holder = f"{process_identity()}:{secrets.token_hex(4)}"
        self._is_over = threading.Event()
        self._heartbeat = threading.Thread(target=self._send_heartbeats, name="experiment-lease", daemon=True)

    def __enter__(self) -> Self:
        self._take()
        self._heartbeat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._heartbeat.join()
        retry_read(self._engine, self._release)

    def _take(self) -> None:
        meta = schema.meta
        try:
            with self._engine.begin() as connection:
                now = float(connection.execute(sa.select(clock())).scalar_one())
                mine = _Held(self._holder, now + LEASE_SECONDS).written()
                found = connection.execute(self._select()).scalar()
                if found is None:
                    connection.execute(sa.insert(meta).values(key=self._key, value=mine))
                    return
                self._refuse_if_held(_Held(**json.loads(found)), now)
                taken = connection.execute(self._replace(found, mine))
        except IntegrityError:
            pass  # it was put there since it was looked for
        else:
            if taken.rowcount == 1:
                return
        raise RunBusyError(
            f"experiment {self._experiment!r} was begun by another process this very moment; wait for it"
        )

    def _refuse_if_held(self, held: _Held, now: float) -> None:
        if held.until > now and not holder_is_dead(held.holder):
            raise RunBusyError(
                f"experiment {self._experiment!r} is being run by {format_holder(held.holder)}, and its budget is for one "
                "process at a time; wait for it, or stop it. If that process is gone, its hold ends in "
                f"{held.until - now:.0f} s"
            )

    def _select(self) -> schema.AnySelect:
        return sa.select(schema.meta.c.value).where(schema.meta.c.key == self._key)

    def _replace(self, old: str, new: str) -> sa.Update:
        """Only where it is still as it was read: of two processes one succeeds."""
        meta = schema.meta.c
        return sa.update(schema.meta).where(meta.key == self._key, meta.value == old).values(value=new)

    def _send_heartbeats(self) -> None:
        while not self._is_over.wait(LEASE_SECONDS / 4):
            try:
                retry_read(self._engine, self._renew)
            except StorageError:
                continue  # the runs' own commits meet the same trouble where it can be reported

    def _renew(self, connection: Connection) -> None:
        found = connection.execute(self._select()).scalar()
        if found is not None and _Held(**json.loads(found)).holder == self._holder:
            now = float(connection.execute(sa.select(clock())).scalar_one())
            connection.execute(self._replace(found, _Held(self._holder, now + LEASE_SECONDS).written()))
            connection.commit()

    def _release(self, connection: Connection) -> None:
        meta = schema.meta.c
        mine = meta.value.contains(json.dumps(self._holder), autoescape=True)
        connection.execute(sa.delete(schema.meta).where(meta.key == self._key, mine))
        connection.commit()
