"""What one server process holds: the store, the listeners, the pages, answers that are still fresh."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from themis.core.redaction import Redactor
from themis.core.registry import nearest
from themis.exceptions import StorageError
from themis.server.errors import NotFound
from themis.server.limits import ClientThrottle
from themis.server.live import Hub
from themis.server.settings import Settings
from themis.storage import ExperimentStorage
from themis.storage.queries import RunReader
from themis.storage.search import find_runs, store_version

__all__ = ["Answer", "FreshAnswers", "Served", "served"]

# A list may be this old, and is made anew behind the scenes when it is half as old: a crowd never waits for the store.
_FRESH_SECONDS = 0.2
# Whether a run's writer still lives is not in the store's version.
_KEPT_SECONDS = 5.0
_KEPT_ANSWERS = 500
_PACKED_FROM_BYTES = 2_000
_KEPT_BYTES = 16_000_000
_HEAVY_AT_ONCE = 2
_HEAVY_WAIT_SECONDS = 60


class Served:
    """Reached from every route as `request.app.state.served`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = ExperimentStorage(settings.storage_path)
        self.hub = Hub(self.store, settings.poll_seconds)
        self.redactor = Redactor()
        self.answers = FreshAnswers(self.store)
        # Tries at the login page: a few at once, then one in ten seconds, for each client.
        self.logins = ClientThrottle(per_second=0.1, burst=5)
        self._heavy = threading.Semaphore(_HEAVY_AT_ONCE)

    def reader(self, run_id: str) -> RunReader:
        """A stored run, its row read once; an unknown one is a 404 that names the nearest."""
        found = self.store.find_run(run_id)
        if found is None:
            known = (
                [run.run_id for run in find_runs(self.store.engine, limit=1_000).runs] if self.store.exists() else []
            )
            raise NotFound(f"Run not found: {run_id}{nearest(run_id, known)}")
        return found

    @contextlib.contextmanager
    def heavy(self) -> Iterator[None]:
        """Comparisons and exports of long runs wait for each other, so that pages stay quick."""
        if not self._heavy.acquire(timeout=_HEAVY_WAIT_SECONDS):
            raise StorageError("the server is busy with other comparisons and exports; try again in a minute")
        try:
            yield
        finally:
            self._heavy.release()


async def served(request: Request) -> Served:
    """For routes. Asynchronous, because FastAPI sends every other dependency through a thread."""
    found: Served = request.app.state.served
    return found


@dataclass(frozen=True)
class Answer:
    """The body of a response, the same for everyone who may ask; packed once, for those who can unpack it."""

    body: bytes
    media_type: str = "text/html"
    headers: dict[str, str] = field(default_factory=dict)
    packed: bytes | None = field(init=False)

    def __post_init__(self) -> None:
        is_worth_it = len(self.body) > _PACKED_FROM_BYTES
        object.__setattr__(self, "packed", gzip.compress(self.body, 4, mtime=0) if is_worth_it else None)

    @property
    def size(self) -> int:
        return len(self.body) + len(self.packed or b"")

    def response(self, request: Request) -> Response:
        headers = {**self.headers, "cache-control": "no-store", "vary": "accept-encoding"}
        if self.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            return Response(self.packed, headers=headers, media_type=self.media_type)
        return Response(self.body, headers=headers, media_type=self.media_type)


@dataclass
class _Kept:
    answer: Answer
    version: tuple[Any, ...]
    made: float
    checked: float


class FreshAnswers:
    """Answers that are made again only when the store has changed; many askers of one question share the work."""

    def __init__(self, store: ExperimentStorage) -> None:
        self._store = store
        # The longest unchanged first.
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self.kept_bytes = 0
        self._making: dict[Hashable, asyncio.Task[Answer]] = {}

    async def get(
        self, question: Hashable, make: Callable[[], Answer], version: Callable[[], tuple[Any, ...]] | None = None
    ) -> Answer:
        """`version` says what the answer depends on, where that is more than the list of runs."""
        kept = self._kept.get(question)
        age = _FRESH_SECONDS if kept is None else time.monotonic() - kept.checked
        if kept is not None and age < _FRESH_SECONDS / 2:
            return kept.answer
        task = self._making.get(question)
        if task is None:
            task = asyncio.create_task(self._make(question, kept, make, version or self._version))
            self._making[question] = task
            task.add_done_callback(lambda made: self._made(question, made))
        if kept is not None and age < _FRESH_SECONDS:
            return kept.answer
        # One asker who goes away must not take the answer from the others.
        return await asyncio.shield(task)

    async def _make(
        self,
        question: Hashable,
        kept: _Kept | None,
        make: Callable[[], Answer],
        read_version: Callable[[], tuple[Any, ...]],
    ) -> Answer:
        now = time.monotonic()
        version = await asyncio.to_thread(read_version)
        if kept is not None and kept.version == version and now - kept.made < _KEPT_SECONDS:
            kept.checked = now
            return kept.answer
        answer = await asyncio.to_thread(make)
        self._keep(question, _Kept(answer, version, now, now))
        return answer

    def _keep(self, question: Hashable, made: _Kept) -> None:
        before = self._kept.pop(question, None)
        if before is not None:
            self.kept_bytes -= before.answer.size
        self._kept[question] = made
        self.kept_bytes += made.answer.size
        while self.kept_bytes > _KEPT_BYTES or len(self._kept) > _KEPT_ANSWERS:
            _, oldest = self._kept.popitem(last=False)
            self.kept_bytes -= oldest.answer.size

    def _made(self, question: Hashable, task: asyncio.Task[Answer]) -> None:
        self._making.pop(question, None)
        if not task.cancelled():
            task.exception()  # whoever waits has it too; nobody may be waiting

    def _version(self) -> tuple[Any, ...]:
        return store_version(self._store.engine) if self._store.exists() else ()
