"""The rows of `batches`: what a run has given its provider to answer together."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from themis.core.batches import Batch, BatchItem, BatchState
from themis.core.codec import decode, encode
from themis.storage import schema
from themis.storage.database import retry_read
from themis.storage.queries import RunReader

__all__ = ["find_runs_with_open_batches", "read_batch_ids", "read_batches", "read_open_batches", "to_row"]

_OPEN = [state for state in BatchState if state.is_open]


def read_batches(reader: RunReader, *, states: Sequence[BatchState] = tuple(BatchState)) -> list[Batch]:
    """A run's batches in the order in which they were sent.

    Args:
        reader: Of the run.
        states: Only those that stand so.
    """
    table = schema.batches.c
    query = sa.select(schema.batches).where(table.run == reader.run, table.state.in_([one.value for one in states]))
    return [
        Batch(
            number=row.number,
            token=row.token,
            provider=row.provider,
            endpoint=row.endpoint,
            state=BatchState(row.state),
            id=row.batch_id,
            files=decode(row.files),
            items=[BatchItem(*item) for item in decode(row.requests)],
            created_at=row.created_at,
        )
        for row in reader.read_rows(query.order_by(table.number))
    ]


def read_open_batches(reader: RunReader) -> list[Batch]:
    """Those whose items may still be answered."""
    return read_batches(reader, states=_OPEN)


def find_runs_with_open_batches(engine: Engine) -> set[str]:
    """The ids of the runs that a provider still answers for."""
    runs, batches = schema.runs.c, schema.batches.c
    query = sa.select(runs.run_id).where(runs.run == batches.run, batches.state.in_([one.value for one in _OPEN]))
    return retry_read(engine, lambda connection: set(connection.execute(query).scalars()))


def read_batch_ids(reader: RunReader) -> set[str]:
    """The providers' ids of all batches of the store: whatever else a provider lists is somebody else's, or lost."""
    table = schema.batches.c
    query = sa.select(table.batch_id).where(table.batch_id.is_not(None))
    return {str(row.batch_id) for row in reader.read_rows(query)}


def to_row(run: int, batch: Batch, now: float) -> tuple[object, ...]:
    """In the order of the table's columns."""
    return (
        *(run, batch.number, batch.token, batch.provider, batch.endpoint, batch.state.value, batch.id),
        *(encode(batch.files), encode([list(item) for item in batch.items]), batch.created_at, now),
    )
