"""Asks a provider about batches until it answers, and never has it take one twice.

An outage passes; what the provider has is not lost by it. Where it is not known whether a batch was taken, that is found out
before it is sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from themis.core.batches import Batch
from themis.exceptions import ProviderCallError, ProviderError
from themis.generation.batches.endpoint import BatchEndpoint, BatchStatus
from themis.generation.limits import LONGEST_WAIT_SECONDS

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Waits grow by this, up to so many times the first.
_FACTOR, _LONGEST = 1.5, 60
# For so many times the first wait, a batch that was to be sent may still turn up at the provider.
_SETTLING = 30
_GONE = (404, 410)


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """How batches are made and waited for; none of it changes an answer."""

    # Items in one; None for as many as the provider takes.
    size: int | None = None
    # Before a batch is first looked at; later looks are further apart, up to sixty times that.
    poll_seconds: float = 1.0
    # A batch that takes longer is cancelled, and what it has not answered is asked singly.
    deadline_seconds: float = 86_400.0
    # Whether new batches are sent, or only those are collected that were sent before.
    sends: bool = True
    # Whether those are cancelled, and what they have not answered is left.
    cancels: bool = False


class Ledger(Protocol):
    """Where batches are written down; what is saved outlives this process."""

    def save(self, batch: Batch) -> None: ...

    def next_number(self) -> int:
        """Of the next batch of this run."""

    def known_ids(self) -> Collection[str]:
        """The ids of all batches that are accounted for."""


class Backoff:
    """Waits that grow."""

    def __init__(self, first_seconds: float) -> None:
        self._seconds = first_seconds
        self._most_seconds = _LONGEST * first_seconds

    async def wait(self, asked_seconds: float | None = None) -> None:
        await asyncio.sleep(max(self._seconds, min(asked_seconds or 0.0, LONGEST_WAIT_SECONDS)))
        self._seconds = min(self._most_seconds, self._seconds * _FACTOR)


class PatientEndpoint:
    """A provider's batches, waited for. `trouble` is what the last question failed with, if it did."""

    def __init__(self, endpoint: BatchEndpoint, ledger: Ledger, settings: BatchSettings) -> None:
        self.trouble = ""
        self._endpoint = endpoint
        self._ledger = ledger
        self._settings = settings

    async def submit(self, batch: Batch, content: Path) -> BatchStatus:
        """Sends a batch until the provider has it, once."""
        backoff = self.make_backoff()
        while True:
            try:
                return await self._endpoint.submit(content, batch, lambda: self._ledger.save(batch))
            except ProviderCallError as error:
                if not error.retryable:
                    raise
                self._note_trouble(error)
                await backoff.wait(error.retry_after_seconds)
                # Who is told to slow down was not heard; after anything else it may have been taken.
                if error.status != 429 and (found := await self.find(batch)) is not None:
                    return found

    async def find(self, batch: Batch) -> BatchStatus | None:
        """The batch, if the provider has it; None once it is certain that it has not."""
        backoff = self.make_backoff()
        # What was on its way when its sender was killed may be taken up a little later.
        settled_at = time.monotonic() + _SETTLING * self._settings.poll_seconds
        while True:
            search = await self._ask(lambda: self._endpoint.find(batch, self._ledger.known_ids()))
            if search.found is not None or (not search.is_undecided and time.monotonic() >= settled_at):
                return search.found
            await backoff.wait()

    async def discard(self, batch: Batch) -> None:
        """Removes what lies about of a batch that never came to be; what cannot be removed expires by itself."""
        with contextlib.suppress(ProviderCallError):
            await self._endpoint.discard(batch)

    async def retrieve(self, batch: Batch) -> BatchStatus:
        """How a batch stands.

        Raises:
            ProviderError: The provider does not know it.
        """
        try:
            return await self._ask(lambda: self._endpoint.retrieve(str(batch.id)))
        except ProviderCallError as error:
            if error.status not in _GONE:
                raise
            raise ProviderError(
                f"{batch.provider} does not know {batch.named} of this run ({error}). Go on with the key that it was sent "
                "with, or give it up with --cancel-batches (cancel_batches=True): its items are asked again then"
            ) from error

    async def await_end(self, batch: Batch, status: BatchStatus, note: Callable[[BatchStatus], None]) -> BatchStatus:
        """How a batch has ended; `note` hears how it stands meanwhile. One that is late, or unwanted, is cancelled."""
        backoff, is_cancelled = self.make_backoff(), False
        while not status.is_over:
            note(status)
            if not is_cancelled and (self._settings.cancels or self.is_late(batch)):
                is_cancelled = True
                await self._cancel(batch)
            await backoff.wait()
            status = await self.retrieve(batch)
        note(status)
        return status

    def is_late(self, batch: Batch) -> bool:
        return self._endpoint.clock > batch.created_at + self._settings.deadline_seconds

    async def _cancel(self, batch: Batch) -> None:
        if not self._settings.cancels:
            hours = self._settings.deadline_seconds / 3600
            logger.warning("%s has not ended within %.3g h and is cancelled", batch.named, hours)
        try:
            await self._ask(lambda: self._endpoint.cancel(str(batch.id)))
        except ProviderCallError as error:
            # It has ended by itself meanwhile.
            logger.info("%s cannot be cancelled: %s", batch.named, error)

    async def fetch(self, batch: Batch, status: BatchStatus, path: Path) -> bool:
        """Writes the results to a file; False where the provider keeps them no longer."""

        async def fetch() -> None:
            with create_file(path) as file:
                await self._endpoint.fetch(status, file)

        try:
            await self._ask(fetch)
        except ProviderCallError as error:
            if error.status not in _GONE:
                raise
            logger.warning("the results of %s are gone, and its items are asked again: %s", batch.named, error)
            return False
        return True

    async def _ask(self, call: Callable[[], Awaitable[T]]) -> T:
        backoff = self.make_backoff()
        while True:
            try:
                answer = await call()
            except ProviderCallError as error:
                if not error.retryable:
                    raise
                self._note_trouble(error)
                await backoff.wait(error.retry_after_seconds)
            else:
                self.trouble = ""
                return answer

    def _note_trouble(self, error: ProviderCallError) -> None:
        if not self.trouble:
            logger.warning("batches wait: %s", error)
        self.trouble = str(error)[:120]

    def make_backoff(self) -> Backoff:
        return Backoff(self._settings.poll_seconds)


def create_file(path: Path) -> BinaryIO:
    return path.open("wb")
