"""The batches of a provider, in one form for all vendors: sent, found again, looked at, cancelled, read.

`openai` and `anthropic` say how each vendor has it. Nothing here waits or tries again: that is the pool's
(`pool`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, TypeVar

import msgspec

from themis.core.batches import Batch
from themis.core.entities import GenerationRecord, GenerationTask
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.providers.endpoints import KNOWN_ENDPOINTS

if TYPE_CHECKING:  # the client for HTTP takes long to import, and the engine knows batches in every run
    from yarl import URL

    from themis.generation.providers.http import Reply

T = TypeVar("T")

# A batch is looked for among those of this long before it was sent: clocks are read a little apart.
CLOCK_MARGIN_SECONDS = 60.0
_WITHOUT_BATCHES = (404, 405, 501)


@dataclass(frozen=True, kw_only=True)
class BatchStatus:
    """How a batch stands at its provider.

    `said` is the provider's own word for it. Of `total` items so many are `done`, and so many of these `answered`, which is what
    is paid for. `failure` is why nothing of it was worked off, `is_over_limit` that the only
    reason was how much waits there already. `results` are the files with what became of its items.
    """

    id: str
    said: str
    created_at: float
    is_over: bool = False
    total: int = 0
    done: int = 0
    answered: int = 0
    results: tuple[str, ...] = ()
    failure: str = ""
    is_over_limit: bool = False
    was_cancelled: bool = False


class Search(NamedTuple):
    """What a provider has under a token: a batch, nothing, or what cannot be told before other batches have ended."""

    found: BatchStatus | None = None
    is_undecided: bool = False


class ItemResult(NamedTuple):
    """What became of one item: the body of its answer, or an error; `is_untried` where nobody has asked the model."""

    name: str
    body: bytes = b""
    error: ProviderCallError | None = None
    is_untried: bool = False


class Send(Protocol):
    def __call__(
        self,
        method: str,
        url: URL,
        data: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        is_file: bool = False,
    ) -> Awaitable[Reply]: ...


class Download(Protocol):
    def __call__(self, url: URL, file: BinaryIO, *, most_bytes: int | None = None) -> Awaitable[None]: ...


@dataclass(frozen=True, kw_only=True)
class SingleCalls:
    """A provider's single calls, as its batches need them: the same bodies, the same reading, the same connections."""

    # Who it is for people, and where its single calls go.
    label: str
    url: URL
    address: str
    send: Send
    download: Download
    write: Callable[[GenerationTask], bytes]
    read: Callable[[GenerationTask, bytes], GenerationRecord]
    refuse: Callable[[int, bytes], ProviderCallError]


class BatchEndpoint(ABC):
    """Batches at one endpoint."""

    # How many requests one may hold, and how large it may be.
    most_items: int
    most_bytes: int
    # What stands before, between and behind its items.
    opening: bytes = b""
    separator: bytes = b"\n"
    closing: bytes = b"\n"

    def __init__(self, calls: SingleCalls) -> None:
        self.label = calls.label
        self.address = calls.address
        self._calls = calls
        self._clock_offset = 0.0

    @abstractmethod
    def write_item(self, name: str, task: GenerationTask) -> bytes:
        """A request as it stands in a batch, under a name of ours."""

    @abstractmethod
    async def submit(self, content: Path, batch: Batch, note: Callable[[], None]) -> BatchStatus:
        """Sends a batch; `note` is called when `batch.files` has changed. After a broken connection it may be there or not."""

    @abstractmethod
    async def find(self, batch: Batch, known: Collection[str]) -> Search:
        """Looks for a batch that was to be sent; the ids that are `known` are others."""

    @abstractmethod
    async def retrieve(self, batch_id: str) -> BatchStatus:
        """How a batch stands."""

    @abstractmethod
    async def cancel(self, batch_id: str) -> BatchStatus:
        """Has a batch end; what was answered before is kept and paid for."""

    @abstractmethod
    async def fetch(self, status: BatchStatus, file: BinaryIO) -> None:
        """Writes what became of the items of a batch that is over to a file, a line each, in any order."""

    @abstractmethod
    def read_result(self, line: bytes) -> ItemResult | None:
        """One such line; None where nobody can tell which item it is about."""

    async def discard(self, batch: Batch) -> None:
        """Removes what was left there of a batch that never came to be."""
        return

    @property
    @abstractmethod
    def _list_url(self) -> URL:
        """Where batches are listed."""

    async def check(self) -> None:
        """Raises where the endpoint has no batches, or refuses whoever asks for them."""
        try:
            await self._ask("GET", self._list_url.update_query(limit=1))
        except ProviderCallError as error:
            if error.status in _WITHOUT_BATCHES:
                raise ConfigurationError(f"{refuse_batches(self.label)} ({error})") from error
            if not error.retryable:
                raise

    def read(self, task: GenerationTask, body: bytes) -> GenerationRecord:
        """The answer in a result, read as that of a single call is."""
        return self._calls.read(task, body)

    @property
    def clock(self) -> float:
        """Seconds since 1970 as the provider counts them."""
        return time.time() + self._clock_offset

    async def _ask(self, method: str, url: URL, data: object = None, headers: Mapping[str, str] | None = None) -> bytes:
        reply = await self._calls.send(method, url, data, headers=headers, is_file=True)
        self._read_clock(reply.headers.get("Date", ""))
        return reply.body

    def _decode(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProviderCallError(
                f"{self.label} did not answer with a batch ({error}): {body[:200]!r}",
                kind="invalid_response",
                retryable=True,
            ) from error

    async def _download(self, url: URL, file: BinaryIO, *, most_bytes: int | None = None) -> None:
        await self._calls.download(url, file, most_bytes=most_bytes)

    def _read_clock(self, date: str) -> None:
        try:
            moment = parsedate_to_datetime(date)
        except ValueError:
            return
        self._clock_offset = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time()


def refuse_batches(who: str) -> str:
    """That there are none, and where there are."""
    named = [*(name for name, known in KNOWN_ENDPOINTS.items() if known.batches), "anthropic"]
    return (
        f"{who} takes no batches; they work with {', '.join(named[:-1])} and {named[-1]}, and with an OpenAI-compatible server "
        "that has /batches (the option base_url). Leave --batch (batch=True) out to ask one by one"
    )


def parse_moment(text: object) -> float:
    """Seconds since 1970 of a moment as providers write it; 0 where there is none."""
    if isinstance(text, int | float):
        return float(text)
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
