"""What one server process holds: the store, the listeners, and a cache of responses."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import Response

from themis.comparison.engine import ComparisonEngine
from themis.comparison.reports import ComparisonReport
from themis.core.codec import json_bytes
from themis.core.redaction import Redactor
from themis.core.registry import nearest
from themis.exceptions import StorageError
from themis.server.live import Hub
from themis.server.settings import Settings
from themis.server.tokens import TokenTries
from themis.server.views import NotFound
from themis.storage import ExperimentStorage
from themis.storage.queries import RunReader
from themis.storage.search import find_runs, store_version

# A list may be this old, and is made anew behind the scenes when it is half as old: a crowd never waits for the store.
_FRESH_SECONDS = 0.2
# Whether a run's writer still lives is not in the store's version.
_KEPT_SECONDS = 5.0
_KEPT_ANSWERS = 500
_PACKED_FROM_BYTES = 2_000
_KEPT_BYTES = 16_000_000
_HEAVY_AT_ONCE = 2
_HEAVY_WAIT_SECONDS = 60

# What an answer was made from; another one means that it must be made again.
Version = tuple[object, ...]


class AppState:
    """Reached from every route as `request.app.state.themis`.

    Args:
        settings: What is served, to whom, and how much of it.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = ExperimentStorage(settings.storage_path)
        self.hub = Hub(self.store, settings.poll_seconds)
        self.redactor = Redactor()
        self.cache = ResponseCache(self.store)
        self.token_tries = TokenTries()
        self._heavy = threading.Semaphore(_HEAVY_AT_ONCE)

    def reader(self, run_id: str) -> RunReader:
        """A stored run, its row read once; an unknown one is a 404 that names the nearest."""
        found = self.store.find_run(run_id)
        if found is None:
            known = find_runs(self.store.engine, limit=1_000).runs if self.store.exists() else []
            raise NotFound(f"Run not found: {run_id}{nearest(run_id, [run.run_id for run in known])}")
        return found

    def compare(
        self,
        run_ids: Sequence[str],
        *,
        metrics: Sequence[str] | None = None,
        statistical_test: str,
        alpha: float = 0.05,
        correction: str | None = "holm-bonferroni",
        across: bool = False,
    ) -> ComparisonReport:
        """Every two of the runs on the metrics that all have, or on those named."""
        for run_id in run_ids:
            self.reader(run_id)
        engine = ComparisonEngine(
            storage=self.store,
            statistical_test=statistical_test,
            alpha=alpha,
            multiple_comparison_correction=correction,
            across=across,
        )
        with self.limit_heavy():
            return engine.compare_runs(run_ids, metrics=metrics)

    @contextlib.contextmanager
    def limit_heavy(self) -> Iterator[None]:
        """Comparisons and exports of long runs wait for each other, so that pages stay quick."""
        if not self._heavy.acquire(timeout=_HEAVY_WAIT_SECONDS):
            raise StorageError("the server is busy with other comparisons and exports; try again in a minute")
        try:
            yield
        finally:
            self._heavy.release()


async def get_state(request: Request) -> AppState:
    """For routes. Asynchronous, because FastAPI sends every other dependency through a thread."""
    found: AppState = request.app.state.themis
    return found


# How a route asks for the state.
State = Annotated[AppState, Depends(get_state)]


def json_answer(value: object) -> Response:
    """JSON that every reader takes: NaN is null, and half a character is replaced, whatever a model said."""
    return Response(json_bytes(value), media_type="application/json", headers={"cache-control": "no-store"})


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
    version: Version
    made: float
    checked: float


class ResponseCache:
    """Answers that are made again only when the store has changed; many askers of one question share the work."""

    def __init__(self, store: ExperimentStorage) -> None:
        self._store = store
        # The longest unchanged first.
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self.kept_bytes = 0
        self._making: dict[Hashable, asyncio.Task[Answer]] = {}

    async def get(
        self, question: Hashable, make: Callable[[], Answer], version: Callable[[], Version] | None = None
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
        read_version: Callable[[], Version],
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

    def _version(self) -> Version:
        return store_version(self._store.engine) if self._store.exists() else ()
