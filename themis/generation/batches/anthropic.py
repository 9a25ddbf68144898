"""Batches as Anthropic has them: all requests in one body, results as lines once every request has been dealt with.

There is no place for a mark of ours but the names of the requests, and these are shown with the results only. So a batch whose
id was lost is known for ours, or not, when it has ended.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import BinaryIO

import msgspec
from yarl import URL

from themis.core.batches import Batch
from themis.core.entities import GenerationTask
from themis.exceptions import ProviderCallError
from themis.generation.batches.endpoint import (
    CLOCK_MARGIN_SECONDS,
    BatchEndpoint,
    BatchStatus,
    ItemResult,
    Search,
    SingleCalls,
    parse_moment,
)

_PAGE = 100
# Enough of the results to read the first name.
_PEEKED_BYTES = 4_096
# What an error of an item would have been answered with, had it been called singly.
_STATUS = {
    "invalid_request": 400,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches(BatchEndpoint):
    """Batches of messages."""

    most_items = 100_000
    most_bytes = 256_000_000
    opening, separator, closing = b'{"requests":[', b",", b"]}"

    def __init__(self, calls: SingleCalls) -> None:
        super().__init__(calls)
        self._foreign: set[str] = set()

    def write_item(self, name: str, task: GenerationTask) -> bytes:
        return msgspec.json.encode({"custom_id": name, "params": msgspec.Raw(self._calls.write(task))})

    async def submit(self, content: Path, batch: Batch, note: Callable[[], None]) -> BatchStatus:
        return self._read_status(await self._ask("POST", self._list_url, _open(content)))

    async def find(self, batch: Batch, known: Collection[str]) -> Search:
        is_undecided = False
        async for one in self._list(batch.created_at - CLOCK_MARGIN_SECONDS):
            if one.id in known or one.id in self._foreign or one.request_counts.total != len(batch.items):
                continue
            if one.processing_status != "ended":
                is_undecided = True
            elif await self._peek(one.id, batch.token):
                return Search(_status_of(one))
            else:
                self._foreign.add(one.id)
        return Search(is_undecided=is_undecided)

    async def _peek(self, batch_id: str, token: str) -> bool:
        """Whether the first result bears our token."""
        with tempfile.TemporaryFile() as file:
            try:
                await self._download(self._url(batch_id, "results"), file, most_bytes=_PEEKED_BYTES)
            except ProviderCallError as error:
                if error.status == 404:  # kept no longer
                    return False
                raise
            file.seek(0)
            return f'"{token}-'.encode() in file.read()

    async def _list(self, since: float) -> AsyncIterator[_Batch]:
        """The newest first, as far back as that moment."""
        query: dict[str, str | int] = {"limit": _PAGE}
        while True:
            page = self._decode(await self._ask("GET", self._list_url.update_query(query)), _Page)
            for one in page.data:
                if parse_moment(one.created_at) < since:
                    return
                yield one
            if not page.has_more or not page.data:
                return
            query["after_id"] = page.data[-1].id

    async def retrieve(self, batch_id: str) -> BatchStatus:
        return self._read_status(await self._ask("GET", self._url(batch_id)))

    async def cancel(self, batch_id: str) -> BatchStatus:
        return self._read_status(await self._ask("POST", self._url(batch_id, "cancel")))

    async def fetch(self, status: BatchStatus, file: BinaryIO) -> None:
        # Not `results_url`, which names a host of its own: the key is for this one.
        await self._download(self._url(status.id, "results"), file)

    def read_result(self, line: bytes) -> ItemResult | None:
        try:
            found = _LINES.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        result = found.result
        if result.type == "succeeded":
            return ItemResult(found.custom_id, bytes(result.message))
        if result.type == "errored":
            return ItemResult(found.custom_id, error=self._explain(bytes(result.error)))
        error = ProviderCallError(
            f"{self.label} did not answer in the batch: the request was {result.type}",
            kind=f"batch_{result.type}",
            retryable=True,
        )
        return ItemResult(found.custom_id, error=error, is_untried=True)

    def _explain(self, said: bytes) -> ProviderCallError:
        """As the error of a single call; it is told in an envelope, or bare."""
        outer = self._decode(said, _Error)
        inner = outer.error or outer
        return self._calls.refuse(_STATUS.get(inner.type, 500), msgspec.json.encode({"error": inner}))

    def _read_status(self, body: bytes) -> BatchStatus:
        return _status_of(self._decode(body, _Batch))

    @property
    def _list_url(self) -> URL:
        return self._url()

    def _url(self, *parts: str) -> URL:
        url = self._calls.url
        return url.with_path("/".join([url.path, "batches", *parts]), keep_query=True)


class _Counts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        return self.processing + self.succeeded + self.errored + self.canceled + self.expired


class _Batch(msgspec.Struct):
    id: str
    processing_status: str = ""
    created_at: str = ""
    request_counts: _Counts = msgspec.field(default_factory=_Counts)
    cancel_initiated_at: str | None = None


class _Page(msgspec.Struct):
    data: list[_Batch]
    has_more: bool = False


class _Error(msgspec.Struct):
    type: str = ""
    message: str = ""
    error: _Error | None = None


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result


_LINES = msgspec.json.Decoder(_Line)


def _status_of(batch: _Batch) -> BatchStatus:
    counts, is_over = batch.request_counts, batch.processing_status == "ended"
    return BatchStatus(
        id=batch.id,
        said=batch.processing_status,
        created_at=parse_moment(batch.created_at),
        is_over=is_over,
        total=counts.total,
        done=counts.total - counts.processing,
        answered=counts.succeeded,
        results=(batch.id,) if is_over else (),
        was_cancelled=is_over and batch.cancel_initiated_at is not None and counts.canceled > 0,
    )


def _open(path: Path) -> BinaryIO:
    return path.open("rb")
