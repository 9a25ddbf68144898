"""A pool that puts calls into batches, has the provider work them off, and gives them back with their replies.

A batch outlives the process that sent it, so each step is written down (`Ledger`) before and after it is made: killed at any
moment, the next process finds the batch again, and nothing that is in it is asked for a second time. Everything happens on the
event loop of the pool for single calls, in the thread of whoever collects. What a batch did not answer goes back to the engine
as an error, and from there to that pool.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import logging
import secrets
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

from themis.core.batches import Batch, BatchItem, BatchState
from themis.core.entities import GenerationRecord, GenerationTask
from themis.exceptions import ProviderCallError, ProviderError, ThemisError
from themis.generation.attempts import UNTRIED, Request, error_from
from themis.generation.batches.endpoint import BatchEndpoint, BatchStatus, ItemResult
from themis.generation.batches.patience import BatchSettings, Ledger, PatientEndpoint, create_file
from themis.generation.pools import AsyncPool, close_calls, no_loop_running
from themis.interfaces import StatelessTaskExecutor

logger = logging.getLogger(__name__)

# A batch that has left more items unanswered than this is followed by another; fewer are asked singly.
_MANY = 1_000
# In so many batches an item may be; then it is asked singly.
_MOST_BATCHES = 3
# So often results are read, where fewer come than the provider says there are.
_MOST_FETCHES = 5
# Of a batch that has failed as a whole, when that has been put right.
_SENT_AGAIN = "Going on with the run sends its items again"
# Items whose tasks are in memory at once.
_TOGETHER = 256
# Replies that wait here to be stored, at most.
_MOST_ANSWERED = 1_024

# Gives requests their tasks back, which are not kept while a batch is waited for.
Restore = Callable[[Sequence[Request]], None]


class _Stage(enum.Enum):
    """What is being done about a batch."""

    WRITING = enum.auto()  # its requests, to a file
    SENDING = enum.auto()
    FINDING = enum.auto()  # out whether the provider has it
    WAITING = enum.auto()
    READING = enum.auto()
    READ = enum.auto()  # and its last results are on their way to the store


@dataclass(eq=False)
class _Work:
    """A batch, and those of its requests that have no reply yet, by their names in it."""

    batch: Batch
    requests: dict[str, Request]
    stage: _Stage
    # Those that it did not answer.
    left: list[Request] = field(default_factory=list)
    status: BatchStatus | None = None
    task: asyncio.Task[None] | None = None


class _Found(NamedTuple):
    """What was read of a batch's results: items with one, those with an answer, and lines that are none."""

    named: int = 0
    answered: int = 0
    unreadable: int = 0


class BatchPool:
    """Batches at one endpoint, and single calls beside them.

    Args:
        executor: The provider.
        endpoint: Its batches.
        workers: Single calls at once, at most.
        ledger: Where batches are written down.
        restore: Gives requests their tasks back.
        settings: How batches are made and waited for.
    """

    def __init__(
        self,
        executor: StatelessTaskExecutor,
        endpoint: BatchEndpoint,
        workers: int,
        *,
        ledger: Ledger,
        restore: Restore,
        settings: BatchSettings | None = None,
    ) -> None:
        # Batches that somebody has cancelled, and how many of their items are left.
        self.cancelled: list[tuple[Batch, int]] = []
        # Whether an item of any batch was answered.
        self.has_answers = False
        self._endpoint = endpoint
        self._ledger = ledger
        self._restore = restore
        self._settings = settings or BatchSettings()
        self._provider = PatientEndpoint(endpoint, ledger, self._settings)
        self._singles = AsyncPool(executor, workers)
        self._unsent: deque[Request] = deque()
        self._works: list[_Work] = []
        self._answered: deque[Request] = deque()
        self._has_room = asyncio.Event()
        self._size = min(self._settings.size or endpoint.most_items, endpoint.most_items)
        self._is_flushing = self._is_withdrawn = False
        # Once the provider has said that too much waits there: one batch at a time.
        self._is_limited = False
        self._backoff = self._provider.make_backoff()
        self._failure: ThemisError | None = None
        self._files = tempfile.TemporaryDirectory(prefix="themis-batches-")

    def __enter__(self) -> BatchPool:
        for work in self._works:
            work.task = self._singles.start(self._tend(work))
        return self

    def __exit__(self, *reason: object) -> None:
        self._singles.__exit__(*reason)
        self._files.cleanup()

    # --- for the engine ----------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        return self._singles.room

    @property
    def in_flight(self) -> int:
        # One that is being tended is not over, though nothing of it may be left.
        tended = [work for work in self._works if work.stage is not _Stage.READ]
        batched = sum(max(1, len(work.requests) + len(work.left)) for work in tended)
        untold = 0 if self._failure is None else 1
        return self._singles.in_flight + len(self._unsent) + len(self._answered) + batched + untold

    @property
    def active(self) -> int:
        return self._singles.active

    def adopt(self, batch: Batch, requests: Sequence[Request]) -> None:
        """Takes up a batch of an earlier process, with those of its items that have no answer yet."""
        if not requests:
            batch.state = BatchState.COLLECTED
            self._ledger.save(batch)
            return
        for request in requests:
            _enter_batch(request)
        named = {_name(batch.token, request): request for request in requests}
        stage = _Stage.FINDING if batch.state is BatchState.INTENDED else _Stage.WAITING
        self._works.append(_Work(batch, named, stage))

    def add(self, request: Request) -> None:
        """Takes a request for the next batch, which is sent when it is full."""
        _enter_batch(request)
        self._unsent.append(request)
        self._is_flushing = False
        self._send()

    def flush(self) -> None:
        """Nothing more comes for now: what is there is sent."""
        self._is_flushing = True
        self._send()

    def submit(self, requests: Sequence[Request]) -> None:
        """Makes single calls."""
        self._singles.submit(requests)

    def withdraw(self) -> None:
        """Sends nothing more, and leaves batches to the provider; what is being sent or read comes to its end."""
        self._is_withdrawn = True
        self._singles.withdraw()
        self._unsent.clear()
        for work in list(self._works):
            if work.stage in (_Stage.WRITING, _Stage.FINDING, _Stage.WAITING):
                self._works.remove(work)
                if work.task is not None:
                    work.task.cancel()

    def collect(self, timeout: float, most: int) -> list[Request]:
        is_reading = any(work.stage is _Stage.READING for work in self._works)
        if self._failure is not None and not (self._answered or is_reading or self._singles.in_flight):
            raise self._failure
        answered = self._singles.collect(0.0 if self._answered and most else timeout, most)
        answered += [self._answered.popleft() for _ in range(min(most, len(self._answered)))]
        self._has_room.set()
        return answered

    def note_committed(self) -> None:
        """Everything that was collected is stored: batches of which nothing is left are closed."""
        if self._answered:
            return
        for work in [one for one in self._works if one.stage is _Stage.READ]:
            self._works.remove(work)
            self._close(work, BatchState.COLLECTED)
        self._send()

    def set_limit(self, limit: int, resume_at: float) -> None:
        self._singles.set_limit(limit, resume_at)

    def describe(self) -> str:
        """What is waited for, in words; empty where nothing is."""
        sending = sum(len(one.requests) for one in self._works if one.stage in (_Stage.WRITING, _Stage.SENDING))
        finding = sum(len(one.requests) for one in self._works if one.stage is _Stage.FINDING)
        there = [work for work in self._works if work.stage is _Stage.WAITING]
        label = self._endpoint.label
        said = [_describe(there, label)] if there else []
        said += [f"sending {sending:,} items to {label}"] if sending else []
        said += [f"finding out whether {label} has a batch of {finding:,} items"] if finding else []
        if self._is_limited and self._unsent:
            said.append(f"{len(self._unsent):,} items wait until {label} has room for them")
        trouble = self._provider.trouble
        return "; ".join(said) + (f" ({trouble})" if said and trouble else "")

    # --- sending -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Starts batches of what there is: full ones, or all of it where nothing more comes."""
        while self._unsent and (self._is_flushing or len(self._unsent) >= self._size):
            if self._is_limited and any(work.stage is not _Stage.READ for work in self._works):
                return
            self._start([self._unsent.popleft() for _ in range(min(self._size, len(self._unsent)))])

    def _start(self, requests: Sequence[Request]) -> None:
        token = secrets.token_hex(8)
        batch = Batch(
            number=-1,  # while it is not written down
            token=token,
            provider=self._endpoint.label,
            endpoint=self._endpoint.address,
            items=[],
            created_at=0.0,
        )
        work = _Work(batch, {_name(token, request): request for request in requests}, _Stage.WRITING)
        self._works.append(work)
        work.task = self._singles.start(self._tend(work))

    async def _tend(self, work: _Work) -> None:
        """One batch from its requests to their replies."""
        try:
            status = await self._hand_in(work)
            if status is not None and not self._is_withdrawn:
                status = await self._provider.await_end(work.batch, status, lambda now: setattr(work, "status", now))
                await self._take_results(work, status)
        except ThemisError as error:
            self._failure = self._failure or error
        except Exception as error:  # nobody would tend this batch, and the run would wait for it for ever
            logger.exception("%s", work.batch.named)
            self._failure = self._failure or ProviderError(f"batches failed: {type(error).__name__}: {error}")
        if work in self._works and work.stage is not _Stage.READ:
            self._works.remove(work)
        self._singles.end_waiting()

    async def _hand_in(self, work: _Work) -> BatchStatus | None:
        """Sees to it that the provider has the batch; None where it has not, and its items are dealt with."""
        batch = work.batch
        if work.stage is _Stage.WRITING:
            return await self._submit(work)
        if work.stage is _Stage.WAITING:
            try:
                return await self._provider.retrieve(batch)
            except ProviderError as error:
                # Who gives a batch up need not be able to reach it.
                if not self._settings.cancels:
                    raise
                logger.warning("%s is given up: %s", batch.named, error)
        elif (status := await self._provider.find(batch)) is not None:
            self._note_submitted(work, status)
            return status
        await self._dissolve(work)
        left, work.requests = list(work.requests.values()), {}
        if self._settings.cancels:
            self.cancelled.append((batch, len(left)))
        elif self._settings.sends:
            self._put_back(work, left)
        else:
            await self._give_back(work, left, _untried(f"{batch.named} never came to be"))
        return None

    async def _submit(self, work: _Work) -> BatchStatus | None:
        batch, path = work.batch, Path(self._files.name, work.batch.token)
        await self._write(work, path)
        if not work.requests:
            return None
        work.stage = _Stage.SENDING
        batch.number, batch.created_at = self._ledger.next_number(), self._endpoint.clock
        batch.items = [BatchItem(one.position, one.attempt, one.key) for one in work.requests.values()]
        self._ledger.save(batch)
        try:
            status = await self._provider.submit(batch, path)
        except ProviderCallError as refused:
            await self._dissolve(work)
            if refused.status != 413 or len(work.requests) == 1:
                raise ProviderError(f"{batch.named} was refused: {refused}. {_SENT_AGAIN}") from refused
            # Too large for somebody on the way: halves may not be.
            self._size = max(1, len(work.requests) // 2)
            self._put_back(work, list(work.requests.values()))
            return None
        finally:
            _remove(path)
        self._note_submitted(work, status)
        return status

    async def _write(self, work: _Work, path: Path) -> None:
        """Writes the batch to a file; what does not fit waits for the next one."""
        endpoint, named = self._endpoint, list(work.requests.items())
        size = len(endpoint.opening) + len(endpoint.closing)
        is_full = False
        with create_file(path) as file:
            file.write(endpoint.opening)
            for start in range(0, len(named), _TOGETHER):
                for name, request, item in self._encode(work, named[start : start + _TOGETHER]):
                    is_full = is_full or size + len(endpoint.separator) + len(item) > endpoint.most_bytes
                    if is_full:
                        self._keep_back(work, [(name, request)])
                        continue
                    separator = endpoint.separator if file.tell() > len(endpoint.opening) else b""
                    size += file.write(separator) + file.write(item)
                if is_full:
                    self._keep_back(work, named[start + _TOGETHER :])
                    break
                await asyncio.sleep(0)  # others have their turn
            file.write(endpoint.closing)

    def _keep_back(self, work: _Work, named: Sequence[tuple[str, Request]]) -> None:
        for name, request in named:
            del work.requests[name]
            self._unsent.append(request)

    def _encode(self, work: _Work, named: Sequence[tuple[str, Request]]) -> Iterator[tuple[str, Request, bytes]]:
        """Requests as they are sent; those that cannot be are answered with the reason."""
        self._restore([request for _, request in named])
        endpoint = self._endpoint
        for name, request in named:
            try:
                item = endpoint.write_item(name, request.task)
                if len(item) + len(endpoint.opening + endpoint.closing) > endpoint.most_bytes:
                    raise _untried("the request is larger than a batch may be")
            except ProviderCallError as error:
                del work.requests[name]
                self._deliver(request, error)
                continue
            forget_task(request)
            yield name, request, item

    def _note_submitted(self, work: _Work, status: BatchStatus) -> None:
        work.batch.id = status.id
        self._close(work, BatchState.SUBMITTED)
        work.stage, work.status = _Stage.WAITING, status
        logger.info("%s was sent to %s", work.batch.named, work.batch.provider)

    async def _dissolve(self, work: _Work) -> None:
        await self._provider.discard(work.batch)
        self._close(work, BatchState.DISSOLVED)

    def _put_back(self, work: _Work, requests: Sequence[Request]) -> None:
        """Requests of a batch that never came to be are the next to be sent."""
        work.requests = {}
        self._works.remove(work)
        if not self._is_withdrawn:
            self._unsent.extendleft(reversed(requests))
            self._is_flushing = True
            self._send()

    # --- reading -----------------------------------------------------------------------------------------------------

    async def _take_results(self, work: _Work, status: BatchStatus) -> None:
        batch = work.batch
        if status.failure:
            self._close(work, BatchState.FAILED)
            if not status.is_over_limit:
                raise ProviderError(f"{batch.provider} failed {batch.named}: {status.failure}. {_SENT_AGAIN}")
            return await self._wait_for_room(work, status.failure)
        work.stage = _Stage.READING
        path = Path(self._files.name, batch.token)
        # To a file first: storing may take longer than a connection lasts.
        await self._fetch(batch, status, path)
        for lines in _read_lines(path):
            await self._read(work, lines)
        _remove(path)
        for request in work.requests.values():
            request.reply = _untried(f"{batch.named} has no result for it")
        work.left, work.requests = [*work.left, *work.requests.values()], {}
        is_unwanted = self._settings.cancels or (status.was_cancelled and not self._provider.is_late(batch))
        if work.left and is_unwanted:
            self.cancelled.append((batch, len(work.left)))
        elif not self._is_withdrawn:
            await self._ask_again(work)
        work.left, work.stage = [], _Stage.READ

    async def _fetch(self, batch: Batch, status: BatchStatus, path: Path) -> None:
        """Writes the results to a file, again where there are fewer than the provider says: what lacks one is paid for twice."""
        backoff = self._provider.make_backoff()
        for _ in range(_MOST_FETCHES):
            is_kept = await self._provider.fetch(batch, status, path)
            found = self._count_results(batch, path) if is_kept else _Found()
            self.has_answers = self.has_answers or found.answered > 0
            if not is_kept or found.named >= status.done or self._settings.cancels:
                return
            logger.warning("%s has %s results, and %s were read: read again", batch.named, status.done, found.named)
            await backoff.wait()
            status = await self._provider.retrieve(batch)  # its files may be named later than its end
        # What was refused costs nothing, and some servers tell of it in numbers only: it may be asked again.
        if found.unreadable or found.answered < status.answered:
            raise ProviderError(
                f"{batch.provider} says that {status.done:,} items of {batch.named} are dealt with, and {found.named:,} results "
                "can be read. Going on with the run reads them again; with --cancel-batches (cancel_batches=True) what can be "
                "read is kept, and the rest asked again later"
            )

    def _count_results(self, batch: Batch, path: Path) -> _Found:
        names, answered, unreadable = set[str](), set[str](), 0
        for line in itertools.chain.from_iterable(_read_lines(path)):
            if (result := self._endpoint.read_result(line)) is None:
                unreadable += 1
            elif result.name.startswith(f"{batch.token}-"):
                names.add(result.name)
                if result.error is None:
                    answered.add(result.name)
        return _Found(len(names), len(answered), unreadable)

    async def _read(self, work: _Work, lines: Sequence[bytes]) -> None:
        """Gives out the replies in some lines, keeps back what is to be asked again."""
        found: list[tuple[Request, ItemResult]] = []
        for line in lines:
            result = self._endpoint.read_result(line)
            request = None if result is None else work.requests.pop(result.name, None)
            if result is None or request is None:
                continue
            if result.error is not None and (result.is_untried or result.error.retryable):
                request.reply = _untried(str(result.error)) if result.is_untried else result.error
                work.left.append(request)
            else:
                found.append((request, result))
        self._restore([request for request, _ in found])
        for request, result in found:
            self._deliver(request, result.error or self._read_answer(work, request, result.body))
        await self._wait_until_stored()

    def _read_answer(self, work: _Work, request: Request, body: bytes) -> object:
        try:
            record: GenerationRecord = self._endpoint.read(request.task, body)
        except Exception as error:  # boundary: what a provider says may be anything
            return error
        record.metrics["batch"] = work.batch.id
        return record

    async def _ask_again(self, work: _Work) -> None:
        """What a batch left unanswered: in another one where it is much, else singly, through the engine."""
        again = [one for one in work.left if one.batches < _MOST_BATCHES] if self._settings.sends else []
        if len(again) <= _MANY:
            again = []
        singly = [one for one in work.left if one.batches >= _MOST_BATCHES] if again else work.left
        if work.left:
            how = f"{len(again):,} go into another batch, {len(singly):,} are asked singly where retries are left"
            logger.warning("%s left %s items unanswered: %s", work.batch.named, f"{len(work.left):,}", how)
        for request in again:
            _enter_batch(request)
        work.left = list(singly)
        for start in range(0, len(again), self._size):
            self._start(again[start : start + self._size])
        await self._give_back(work, singly)

    async def _give_back(self, work: _Work, requests: Sequence[Request], error: Exception | None = None) -> None:
        """Hands requests to the engine as failed, which asks them singly."""
        for start in range(0, len(requests), _TOGETHER):
            together = requests[start : start + _TOGETHER]
            work.left = list(requests[start + _TOGETHER :])
            self._restore(together)
            for request in together:
                self._deliver(request, error or request.reply)
            await self._wait_until_stored()

    def _deliver(self, request: Request, reply: object) -> None:
        request.reply, request.reply_seconds = reply, 0.0
        self._answered.append(request)

    async def _wait_until_stored(self) -> None:
        self._singles.end_waiting()
        while len(self._answered) >= _MOST_ANSWERED:
            self._has_room.clear()
            await self._has_room.wait()
        await asyncio.sleep(0)

    async def _wait_for_room(self, work: _Work, why: str) -> None:
        """The provider has too much of the account's waiting: less at once, and one batch after another."""
        logger.warning("%s does not take %s yet: %s", work.batch.provider, work.batch.named, why)
        self._is_limited = True
        if not any(one is not work and one.stage is _Stage.WAITING for one in self._works):
            self._size = max(1, len(work.requests) // 2)
            await self._backoff.wait()
        self._put_back(work, list(work.requests.values()))

    def _close(self, work: _Work, state: BatchState) -> None:
        work.batch.state = state
        self._ledger.save(work.batch)


def check_endpoint(executor: StatelessTaskExecutor, endpoint: BatchEndpoint) -> None:
    """Raises where batches cannot be had there; before anything is sent."""

    async def check() -> None:
        try:
            await endpoint.check()
        finally:
            await close_calls(executor, [])

    loop = asyncio.new_event_loop()
    try:
        with no_loop_running():
            loop.run_until_complete(check())
    finally:
        loop.close()


def _enter_batch(request: Request) -> None:
    if isinstance(request.reply, ProviderCallError) and request.reply.kind != UNTRIED:
        request.tries += 1
        request.note_error(error_from(request.reply))
    request.reply, request.in_batch = None, True
    request.batches += 1
    forget_task(request)


def forget_task(request: Request) -> None:
    """Keeps no row in memory while its answer takes hours; the pool restores it."""
    request.task = cast(GenerationTask, None)


def _name(token: str, request: Request) -> str:
    """The request's name in a batch: at most 64 characters of those that every provider takes."""
    return f"{token}-{request.position}-{request.attempt}"


def _untried(why: str) -> ProviderCallError:
    return ProviderCallError(why, kind=UNTRIED, retryable=True)


def _describe(works: Sequence[_Work], label: str) -> str:
    statuses = [work.status for work in works if work.status is not None]
    words = Counter(status.said.replace("_", " ") for status in statuses)
    done, total = sum(status.done for status in statuses), sum(len(work.batch.items) for work in works)
    if len(works) == 1:
        which, said = f"batch {works[0].batch.id} at {label}", ", ".join(words) or "asking how it stands"
    else:
        which = f"{len(works)} batches at {label}"
        said = ", ".join(f"{count} {word}" for word, count in words.items()) or "asking how they stand"
    return f"{which}: {said}, {done:,} of {total:,} done"


def _read_lines(path: Path) -> Iterator[list[bytes]]:
    if not path.exists():
        return
    with path.open("rb") as file:
        lines = (line for line in file if not line.isspace())
        while together := list(itertools.islice(lines, _TOGETHER)):
            yield together


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
