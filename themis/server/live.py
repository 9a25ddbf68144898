"""Tells whoever listens what is committed, by this process or any other: one look into the store serves all listeners.

Nothing is asked of the store while nobody listens. What a slow listener cannot take is dropped and it is told so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator

from themis.core.codec import decode, json_bytes
from themis.core.redaction import Redactor
from themis.exceptions import ThemisError
from themis.runs.report import running_scores
from themis.server.views import JSONObject, count_answered, run_event, run_line, sample_event
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.queries import RunReader
from themis.storage.search import (
    changed_runs,
    new_records,
    newest,
    store_version,
)

logger = logging.getLogger(__name__)

# The topic of those who watch the list rather than one run.
ALL_RUNS = "*"
_WAITING_EVENTS = 1_000
_EVENTS_AT_ONCE = 200
# Scores are committed after their records, so a run is looked at again for a while after it was still.
_SETTLING_LOOKS = 4
_TURNS_AHEAD = 5_000
# Of the time between two looks, what adding up a long run's scores may take.
_SHARE_FOR_MEANS = 0.1


class Event:
    """What happened, with its JSON text, which is made once for all listeners."""

    __slots__ = ("kind", "text", "topic")

    def __init__(self, topic: str, body: JSONObject) -> None:
        self.topic = topic
        self.kind = str(body["type"])
        self.text = json_bytes(body).decode()


class Subscription:
    """One listener's queue and the topics it has asked for."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue(_WAITING_EVENTS)
        self._dropped = 0

    def offer(self, event: Event | None) -> None:
        try:
            if self._dropped and self._queue.qsize() < _WAITING_EVENTS // 2:
                lagged = {"type": "lagged", "dropped": self._dropped}
                self._queue.put_nowait(Event(ALL_RUNS, lagged))
                self._dropped = 0
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._dropped += 1

    async def next(self) -> Event | None:
        """The next event; None when the server stops."""
        return await self._queue.get()


class Hub:
    """Keeps the listeners and looks into the store for them."""

    def __init__(self, store: ExperimentStorage, poll_seconds: float) -> None:
        self._watch = _Watch(store)
        self._poll_seconds = poll_seconds
        self._listeners: set[Subscription] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def start(self) -> None:
        self._task = asyncio.create_task(self._poll())

    def close(self) -> None:
        """Ends every stream, so that a server can stop while pages are open."""
        self._closed = True
        for listener in self._listeners:
            listener.offer(None)
        if self._task is not None:
            self._task.cancel()

    @contextlib.contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """A subscription for as long as the block lasts."""
        listener = Subscription()
        self._listeners.add(listener)
        if self._closed:
            listener.offer(None)
        self._wake.set()
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def snapshot(self, run_id: str) -> Event | None:
        """How a run stands now; None for one that is not there yet."""
        body = await asyncio.to_thread(self._watch.state, run_id)
        return None if body is None else Event(run_id, body)

    async def _poll(self) -> None:
        while True:
            if not self._listeners:
                self._wake.clear()
                await self._wake.wait()
            topics = {topic for listener in self._listeners for topic in listener.topics}
            try:
                events = await asyncio.to_thread(self._watch.look, topics)
            except ThemisError as error:
                # A store that is busy or gone for a moment must not end the watching.
                logger.warning("looking for news failed: %s", error)
                events = []
            self._publish(events)
            await asyncio.sleep(self._poll_seconds)

    def _publish(self, events: Iterable[Event]) -> None:
        for event in events:
            for listener in self._listeners:
                wants_all = event.kind == "run" and ALL_RUNS in listener.topics
                if event.topic in listener.topics or wants_all:
                    listener.offer(event)


class _Watched:
    """How far a run has been told of."""

    def __init__(self, since: float, last_turn: int) -> None:
        self.since = since
        # Every turn up to this one is told; `ahead` holds those beyond it, for side-by-side tests commit out of order.
        self.last_turn = last_turn
        self.ahead: set[int] = set()
        self.looks_left = _SETTLING_LOOKS
        self.means: dict[str, tuple[float, int]] = {}
        self.means_again_at = 0.0
        self.is_unheard = False


class _Watch:
    """What is new in the store since the last look."""

    def __init__(self, store: ExperimentStorage) -> None:
        self._store = store
        self._redactor = Redactor()
        # Looking and a listener's first question come from different threads.
        self._lock = threading.Lock()
        self._since: float | None = None
        self._watched: dict[str, _Watched] = {}
        # Asked for before they began: of these everything is new.
        self._awaited: set[str] = set()

    def look(self, topics: set[str]) -> list[Event]:
        with self._lock:
            if not self._store.exists():
                self._since = 0.0  # whatever the store will hold when it comes is new
                return []
            return self._look(topics)

    def _look(self, topics: set[str]) -> list[Event]:
        changed = self._changed_runs()
        events = []
        for run_id in topics - {ALL_RUNS}:
            events += self._look_at(run_id, run_id in changed)
        told = topics - {ALL_RUNS}
        if ALL_RUNS in topics:
            events += [self._run_event(run) for run_id, run in changed.items() if run_id not in told]
        self._awaited &= topics
        self._forget(topics)
        return events

    def _forget(self, topics: set[str]) -> None:
        """Lets go of runs that nobody listens to, at the second look: a listener may have come since the first began."""
        for run_id in self._watched.keys() - topics:
            if self._watched[run_id].is_unheard:
                del self._watched[run_id]
            else:
                self._watched[run_id].is_unheard = True

    def state(self, run_id: str) -> JSONObject | None:
        """How a run stands; whatever comes after this will be told."""
        with self._lock:
            reader = self._store.find_run(run_id)
            if reader is None:
                self._awaited.add(run_id)
                return None
            watched = self._start_watching(run_id, reader)
            return run_event(reader.metadata, count_answered(reader), _update_means(reader, watched))

    def _changed_runs(self) -> dict[str, RunMetadata]:
        if self._since is None:
            self._since = store_version(self._store.engine)[1] or 0.0
        found = changed_runs(self._store.engine, self._since)
        if found:
            self._since = max(run.updated_at.timestamp() for run in found)
        return {run.run_id: run for run in found}

    def _run_event(self, run: RunMetadata) -> Event:
        reader = self._store.find_run(run.run_id)
        return Event(run.run_id, {"type": "run", **run_line(run, None if reader is None else count_answered(reader))})

    def _look_at(self, run_id: str, has_changed: bool) -> list[Event]:
        reader = self._store.find_run(run_id)
        if reader is None:
            self._awaited.add(run_id)
            return []
        watched = self._start_watching(run_id, reader)
        watched.is_unheard = False
        events = self._new_samples(reader, watched) + self._new_turns(reader, watched)
        if events or has_changed:
            watched.looks_left = _SETTLING_LOOKS
        if watched.looks_left > 0:
            watched.looks_left -= 1
            progress = run_event(reader.metadata, count_answered(reader), _update_means(reader, watched))
            events.append(Event(run_id, progress))
        return events

    def _start_watching(self, run_id: str, reader: RunReader) -> _Watched:
        if run_id not in self._watched:
            start = (0.0, -1) if run_id in self._awaited else newest(reader)
            self._watched[run_id] = _Watched(*start)
        return self._watched[run_id]

    def _new_samples(self, reader: RunReader, watched: _Watched) -> list[Event]:
        run_id = reader.metadata.run_id
        found = new_records(reader, watched.since, limit=_EVENTS_AT_ONCE)
        if found:
            watched.since = max(record.created_at for record in found)
        return [Event(run_id, sample_event(run_id, record)) for record in found]

    def _new_turns(self, reader: RunReader, watched: _Watched) -> list[Event]:
        run_id, events = reader.metadata.run_id, list[Event]()
        limit = _EVENTS_AT_ONCE + len(watched.ahead)
        for turn in reader.read_turns(after=watched.last_turn, limit=limit):
            if turn.seq in watched.ahead:
                continue
            watched.ahead.add(turn.seq)
            body = self._redactor.deep(decode(turn.body))
            fields = {"seq": turn.seq, "kind": turn.kind, "test_id": turn.test_id, "body": body}
            events.append(Event(run_id, {"type": "turn", "run_id": run_id, **fields}))
        if len(watched.ahead) > _TURNS_AHEAD:
            watched.last_turn = max(watched.ahead)  # a gap that nobody fills any more
            watched.ahead.clear()
        while watched.last_turn + 1 in watched.ahead:
            watched.last_turn += 1
            watched.ahead.discard(watched.last_turn)
        return events


def _update_means(reader: RunReader, watched: _Watched) -> dict[str, tuple[float, int]]:
    """Adds the scores up again, as seldom as their number demands."""
    if reader.metadata.status is not RunStatus.IN_PROGRESS or reader.evaluation is None:
        return {}
    began = time.monotonic()
    if began >= watched.means_again_at:
        watched.means = running_scores(reader)
        took = time.monotonic() - began
        watched.means_again_at = began + took / _SHARE_FOR_MEANS
    return watched.means
