"""A sample run's batches: which are open, who has them, and where they are written down.

`experiment.run` asks through it where a run is asked for by batches, or has some left from before: then their items are waited
for, whether or not new ones are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from themis.config.specification import SampleSpecification
from themis.core.batches import Batch
from themis.exceptions import ConfigurationError
from themis.generation.attempts import Request
from themis.generation.batches.endpoint import BatchEndpoint, refuse_batches
from themis.generation.batches.patience import BatchSettings
from themis.generation.batches.pool import BatchPool, Restore, check_endpoint, forget_task
from themis.interfaces import StatelessTaskExecutor
from themis.runs.lifecycle import Stop
from themis.storage.batches import read_batch_ids, read_batches, read_open_batches
from themis.storage.queries import RunReader
from themis.storage.writing import RunWriter

__all__ = ["Batching", "open_endpoint", "say_cancelled", "say_what_goes_on"]


def open_endpoint(executor: StatelessTaskExecutor, asked: SampleSpecification) -> BatchEndpoint | None:
    """The batches of a provider; None where it has none and nobody asks for them.

    Raises:
        ConfigurationError: It has none, or calls are to be made elsewhere.
    """
    opened: Callable[[], BatchEndpoint | None] = getattr(executor, "open_batches", lambda: None)
    endpoint = opened()
    if asked.batch and endpoint is None:
        raise ConfigurationError(refuse_batches(f"the provider of {asked.model}"))
    if asked.batch and asked.execution_backend not in (None, "local"):
        raise ConfigurationError("batches are worked off by the provider; leave execution_backend (--execution) out")
    return endpoint


@dataclass
class Batching:
    """What a session knows of its run's batches."""

    asked: SampleSpecification
    executor: StatelessTaskExecutor
    endpoint: BatchEndpoint
    reader: RunReader
    writer: RunWriter
    _open: list[Batch] = field(init=False)
    # (position, attempt) -> its key and the number of the newest open batch that has it.
    _held: dict[tuple[int, int], tuple[str, int]] = field(init=False)
    _adopted: dict[int, list[Request]] = field(default_factory=dict, init=False)
    _count: int = field(init=False)

    def __post_init__(self) -> None:
        self._open = read_open_batches(self.reader)
        self._held = {(one.position, one.attempt): (one.key, b.number) for b in self._open for one in b.items}
        self._count = len(read_batches(self.reader))

    @classmethod
    def begin(
        cls,
        asked: SampleSpecification,
        executor: StatelessTaskExecutor,
        endpoint: BatchEndpoint,
        reader: RunReader,
        writer: RunWriter,
    ) -> Batching | None:
        """None where nothing of the run is in batches, or is to be."""
        batching = cls(asked, executor, endpoint, reader, writer)
        return batching if batching._open or asked.batch or asked.cancel_batches else None

    def check(self) -> None:
        """Raises where the server has no batches, before anything is sent."""
        if self.asked.batch and not self._open:
            check_endpoint(self.executor, self.endpoint)

    def holds(self, position: int, attempt: int) -> bool:
        """Whether an answer may be under way in a batch."""
        return (position, attempt) in self._held

    def adopt(self, requests: Iterable[Request], note: Callable[[Request], None]) -> None:
        """Takes those requests up that are in open batches and unanswered; `note` hears of each."""
        for request in requests:
            key, number = self._held[request.position, request.attempt]
            if key != request.key:
                # Asked otherwise than then: that answer would be another.
                del self._held[request.position, request.attempt]
                continue
            note(request)
            forget_task(request)
            self._adopted.setdefault(number, []).append(request)

    def open_pool(self, restore: Restore) -> BatchPool:
        """A pool that waits for the open batches."""
        asked = self.asked
        settings = BatchSettings(
            size=asked.batch_size,
            poll_seconds=asked.batch_poll_seconds,
            deadline_seconds=asked.batch_deadline_seconds,
            sends=asked.batch and not asked.cancel_batches,
            cancels=asked.cancel_batches,
        )
        pool = BatchPool(self.executor, self.endpoint, asked.workers, ledger=self, restore=restore, settings=settings)
        for batch in self._open:
            pool.adopt(batch, self._adopted.pop(batch.number, []))
        return pool

    # --- the ledger of the pool ---------------------------------------------------------------------------------------

    def save(self, batch: Batch) -> None:
        self.writer.save_batch(batch)

    def next_number(self) -> int:
        self._count += 1
        return self._count - 1

    def known_ids(self) -> Collection[str]:
        return read_batch_ids(self.reader)


def say_what_goes_on(reader: RunReader) -> str:
    """Of a run that has stopped: the batches that its provider still works off; empty where there are none."""
    said = [f"{batch.named} goes on at {batch.provider}" for batch in read_open_batches(reader)]
    if not said:
        return ""
    it = "it" if len(said) == 1 else "them"
    return f"{'; '.join(said)}: going on with the run collects {it}, with --cancel-batches it cancels {it}. "


def say_cancelled(cancelled: Sequence[tuple[Batch, int]]) -> Stop:
    """The end of a run whose batches were cancelled."""
    said = [f"{batch.named} was cancelled, {left:,} of them are not answered" for batch, left in cancelled]
    return Stop("; ".join(said) or "no batch is open any more, and nothing else was asked")
