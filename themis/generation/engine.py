"""Makes the calls of a run: bounded concurrency, rate-limited, retried with backoff, each with a hard deadline.

`Engine.run` is a generator in the caller's thread. It hands requests to a pool, which does nothing but single calls (on one
event loop for async providers, in threads for sync ones, on the spot for instant ones), takes the replies back and decides
here, in one thread, what each means: finished, or to be tried again and when. Results come out at once, those that finished
meanwhile together, so that the caller commits what has arrived and never waits for more.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import itertools
import random
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from themis.core.entities import GenerationRecord, GenerationTask, ModelError, ModelOutput, Result
from themis.core.messages import REASONING_HINT, Message, begins_with_reasoning, read_text, split_reasoning
from themis.core.tokens import count_prompt_tokens, count_tokens
from themis.generation.attempts import (
    PENDING,
    TRIPS_AFTER,
    CircuitBreaker,
    Request,
    Retry,
    final_error,
    is_lost,
    is_rate_limit,
    is_untried,
    provider_call,
    record_of,
    retry_delay,
)
from themis.generation.batches.pool import BatchPool
from themis.generation.limits import LONGEST_WAIT_SECONDS, Limiter, RateLimit
from themis.generation.pools import Pool, open_pool
from themis.interfaces import StatelessTaskExecutor

_LARGEST_BATCH = 512
# Answers that come faster than calls can be started (short calls, instant providers) are committed together for this long.
_BATCH_SECONDS = 0.05
_NEVER = 1e9
# How long nothing need happen before the caller is given a turn.
_TURN_SECONDS = 0.25
# How long to wait where neither a call is under way nor a request is there yet.
_PENDING_SECONDS = 0.002
# A wait that is longer is shown to the user.
_NOTICE_SECONDS = 3.0
# Answers that have come meanwhile are taken up before more calls than these are prepared.
_STARTED_TOGETHER = 64
# How long an answer is taken to be, of the tokens a minute, before any has come.
_FIRST_ESTIMATE_TOKENS = 256


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """How to make calls; none of it changes what a call returns."""

    workers: int = 4
    retry: Retry = field(default_factory=Retry)
    # For one call, and for one answer with all its retries.
    timeout_seconds: float = 600.0
    deadline_seconds: float = 1800.0
    rate: RateLimit = field(default_factory=RateLimit)
    # Where tokens cost money, those that an answer says nothing of are counted here; they were not free.
    counts_tokens: bool = False
    # So many equal permanent failures in a row end the run; None goes on whatever happens.
    stop_after_failures: int | None = TRIPS_AFTER


@dataclass(frozen=True)
class SlowRequest:
    """A request that has been under way for long, and what it is waiting for."""

    item_id: str
    seconds: float
    waiting_for: str


@dataclass(frozen=True)
class Waiting:
    """Nothing is sent until that moment (monotonic seconds), and why; None where nobody knows how long."""

    until: float | None
    why: str
    # Told in the log too: not what the user asked for, as with a rate of their own.
    unasked: bool

    @property
    def seconds(self) -> float:
        return 0.0 if self.until is None else max(0.0, self.until - time.monotonic())

    def __str__(self) -> str:
        return self.why if self.until is None else f"waiting {self.seconds:.0f} s: {self.why}"


class Caller:
    """What the caller of `Engine.run` has to do between batches; here, nothing."""

    def is_busy(self) -> bool:
        """Whether it has work of its own, so that the engine need not wait for answers."""
        return False

    def is_full(self) -> bool:
        """Whether it can take no more work: nothing new is started until it can."""
        return False


Admit = Callable[[Request], bool]


class Mapper(Protocol):
    """An execution backend, as far as the engine knows it."""

    def map(
        self, func: Callable[[Request], Result], items: Iterable[Request], *, max_workers: int | None = None
    ) -> Iterable[Result]: ...


class Engine:
    """Drives one provider.

    `admit` is asked before every call; while it says no, nothing starts. `on_result` hears of every result at once, before its
    batch comes out.
    """

    def __init__(
        self,
        executor: StatelessTaskExecutor,
        settings: EngineSettings | None = None,
        *,
        admit: Admit | None = None,
        on_result: Callable[[Result], None] | None = None,
        caller: Caller | None = None,
        seed: int = 0,
    ) -> None:
        self.executor = executor
        self.settings = settings or EngineSettings()
        self.limiter = Limiter(
            self.settings.workers,
            self.settings.rate,
            account=str(getattr(executor, "account", "") or ""),
            longest_wait_seconds=min(LONGEST_WAIT_SECONDS, self.settings.deadline_seconds),
        )
        self.breaker = CircuitBreaker(self.settings.stop_after_failures)
        self.waiting: Waiting | None = None
        self._caller = caller or Caller()
        self._usual_answer_tokens: float | None = None
        # For those who ask one by one in threads of their own (`complete`).
        self._lock = threading.Lock()
        self._admit = admit
        self._on_result = on_result
        self._chance = random.Random(seed)
        self._counts_tokens = self.settings.counts_tokens or self.limiter.counts_tokens
        self._pool: Pool | None = None
        self._delayed: list[tuple[float, int, Request]] = []
        self._order = itertools.count()
        self._under_way: dict[int, Request] = {}
        self._given_up: list[Result] = []
        self._stopping = False
        self._giving_up = False

    def run(self, requests: Iterable[Request], pool: Pool | None = None) -> Generator[list[Result]]:
        """Results in batches, in the order in which they finish; an empty batch while nothing does.

        `pool` is where the calls are made, if not here.
        """
        if pool is None and self.executor.instant:
            yield from self._run_here(iter(requests))
            return
        with pool or open_pool(self.executor, self.settings.workers) as opened:
            self._pool = opened
            yield from self._run_pooled(iter(requests), opened)

    def run_batched(self, requests: Iterable[Request], pool: BatchPool) -> Generator[list[Result]]:
        """The same by batches that the provider works off: what they do not answer is asked singly.

        Neither rates nor timeouts of single calls hold for them; a budget does.
        """
        with pool:
            self._pool = pool
            yield from self._run_batched(iter(requests), pool)

    def run_through(self, backend: Mapper, requests: Iterable[Request]) -> Generator[list[Result]]:
        """The same through an execution backend of the user's: `backend.map(function, requests, max_workers=...)`."""
        rest = iter(requests)
        refused: list[Request] = []

        def admitted() -> Iterator[Request]:
            while not self._stopping and (request := refused.pop() if refused else next(rest, None)) is not None:
                if self._admit is not None and not self._admit(request):
                    refused.append(request)
                    return
                yield request

        while True:
            made = 0
            for result in backend.map(self.complete, admitted(), max_workers=self.settings.workers):
                made += 1
                yield [result]
            # What was set aside for calls that are over now may do for the one that was refused.
            if not (refused and made) or self._stopping:
                return

    def complete(self, request: Request) -> Result:
        """One request from first call to result, in the thread that asks; many threads may."""
        request.began = time.monotonic()
        while True:
            self._throttle(request)
            began = time.perf_counter()
            reply = _call(provider_call(self.executor), request.task)
            if inspect.isawaitable(reply):
                reply = asyncio.run(_await_within(reply, self.settings.timeout_seconds))
            request.reply, request.reply_seconds = reply, time.perf_counter() - began
            with self._lock:
                handled = self._handle_reply(request)
            if isinstance(handled, Result):
                return handled
            time.sleep(handled)

    def _throttle(self, request: Request) -> None:
        """Waits until the limits let the call start."""
        while True:
            with self._lock:
                now = time.monotonic()
                request.estimated_tokens = self._estimate_tokens(request)
                wait = self.limiter.wait(now, request.estimated_tokens)
                if wait <= 1e-6:
                    self.limiter.started(now, request.estimated_tokens)
                    return
            time.sleep(min(wait, _TURN_SECONDS))

    def on_result(self, result: Result) -> None:
        """Notes a result, wherever its calls were made; equal permanent failures in a row stop the engine."""
        error = result.record.error
        if error is None:
            self.breaker.on_success()
        else:
            self.breaker.on_failure(error)
            if self.breaker.tripped_by is not None:
                self._stopping = True
        if self._on_result is not None:
            self._on_result(result)

    def stop(self, *, at_once: bool = False) -> None:
        """Starts nothing more; what is under way is finished and comes out of `run`, or, at once, is given up."""
        self._stopping = True
        self._giving_up = at_once

    def wake(self) -> None:
        """Has `run` look for what is to be done next; for other threads than the caller's."""
        if (wake := getattr(self._pool, "wake", None)) is not None:
            wake()

    @property
    def in_flight(self) -> int:
        """Calls that are being made now."""
        return self._pool.active if self._pool else 0

    def late(self, after_seconds: float) -> list[SlowRequest]:
        """Requests that have been under way for longer than that, the latest first."""
        now = time.monotonic()
        waiting = {id(request): due for due, _, request in self._delayed}
        late = []
        for request in list(self._under_way.values()):
            age = now - request.began
            if age < after_seconds:
                continue
            due = waiting.get(id(request))
            if due is not None:
                reason = f"call {request.tries + 1}, in {max(0.0, due - now):.0f} s, after {request.last_error}"
            else:
                reason = f"the answer to call {request.tries + 1}"
            late.append(SlowRequest(str(request.task.metadata.get("dataset_id", "")), age, reason))
        return sorted(late, key=lambda entry: -entry.seconds)

    # --- instant providers: called on the spot -----------------------------------------------------------------------

    def _run_here(self, requests: Iterator[Request]) -> Iterator[list[Result]]:
        execute, clock = provider_call(self.executor), time.perf_counter
        batch: list[Result] = []
        opened = time.monotonic()
        for request in requests:
            while self._caller.is_full() and not self._stopping:
                yield batch
                batch = []
            if request is PENDING and not self._stopping:
                time.sleep(0.0 if batch else _PENDING_SECONDS)
                yield batch
                batch = []
                continue
            if self._stopping or (self._admit is not None and not self._admit(request)):
                break
            while True:
                began = clock()
                request.reply = _call(execute, request.task)
                request.reply_seconds = clock() - began
                handled = self._handle_reply(request)
                if isinstance(handled, Result):
                    break
                time.sleep(handled)
            batch.append(handled)
            if len(batch) >= _LARGEST_BATCH or time.monotonic() - opened > _BATCH_SECONDS:
                yield batch
                batch, opened = [], time.monotonic()
        if batch:
            yield batch

    # --- everything else: through a pool -----------------------------------------------------------------------------

    def _run_pooled(self, requests: Iterator[Request], pool: Pool) -> Iterator[list[Result]]:
        exhausted = False
        held: Request | None = None  # not admitted yet
        batch: list[Result] = []
        opened = time.monotonic()
        while not self._giving_up:
            now = time.monotonic()
            pause, wait = self._resubmit(pool, now), 0.0
            batch += self._take_given_up()
            ready: list[Request] = []
            full, pending = self._caller.is_full(), False
            while not (exhausted or self._stopping or full) and self._has_room(pool, len(ready)):
                held = held or self._next_request(requests)
                if held is None:
                    exhausted = True
                    break
                if held is PENDING:
                    held, pending = None, True
                    break
                wait = self.limiter.wait(now, held.estimated_tokens)
                if wait > 1e-6 or (self._admit is not None and not self._admit(held)):
                    pause = min(pause, wait or pause)
                    break
                self.limiter.started(now, held.estimated_tokens)
                held.began = now
                self._under_way[id(held)] = held
                self._set_timeout(held, now)
                ready.append(held)
                held = None
                if len(ready) >= _STARTED_TOGETHER:
                    pause = 0.0
                    break
            pool.submit(ready)
            self._note_waiting(now, wait, pause, idle=pool.in_flight == 0)
            if pool.in_flight == 0:
                if self._stopping or (pause >= _NEVER and not full and not pending):
                    break  # nothing left, or nothing more is admitted
                if not self._caller.is_busy():
                    time.sleep(min(max(pause, 0.001), _PENDING_SECONDS if pending else _TURN_SECONDS))
            else:
                answered = pool.collect(0.0 if self._caller.is_busy() else min(pause, _TURN_SECONDS), _LARGEST_BATCH)
                batch += self._handle_replies(answered, pool)
                if len(ready) >= _STARTED_TOGETHER and len(batch) < _LARGEST_BATCH and now - opened < _BATCH_SECONDS:
                    continue
            # An empty batch gives the caller a turn, and tells it that time passes.
            yield batch
            batch, opened = [], time.monotonic()
        self._give_up_retries()
        if batch := [*batch, *self._take_given_up()]:
            yield batch

    def _has_room(self, pool: Pool, ready: int) -> bool:
        """While it is not known that calls succeed, none is handed out ahead of its turn, nor beside one that is retried."""
        if self.breaker.is_calm:
            return pool.in_flight + ready < pool.room
        return len(self._under_way) < min(self.settings.workers, pool.room)

    def _next_request(self, requests: Iterator[Request]) -> Request | None:
        request = next(requests, None)
        if request is not None and request is not PENDING:
            request.estimated_tokens = self._estimate_tokens(request)
        return request

    def _set_timeout(self, request: Request, now: float) -> None:
        left = self.settings.deadline_seconds - (now - request.began)
        request.timeout_seconds = max(0.001, min(self.settings.timeout_seconds, left))

    def _estimate_tokens(self, request: Request) -> int:
        """How many of the tokens a minute a call will use: its prompt, and an answer as long as they usually are."""
        if not self.limiter.counts_tokens:
            return 0
        usual = self._usual_answer_tokens
        if usual is None:
            most = request.task.sampling.max_tokens
            usual = min(most, _FIRST_ESTIMATE_TOKENS) if most >= 0 else _FIRST_ESTIMATE_TOKENS
        return count_prompt_tokens(request.task.prompt.text, request.task.metadata) + round(usual)

    def _note_waiting(self, now: float, wait: float, pause: float, *, idle: bool) -> None:
        """Keeps what the run is waiting for, where it is for more than a moment."""
        wait = max(wait, self.limiter.resume_at - now)
        known = self.waiting
        # One that is told of is told of to its end.
        moment = _NOTICE_SECONDS if known is None else 0.0
        if wait > moment:
            waiting = Waiting(now + wait, self.limiter.reason(now), unasked=self.limiter.resume_at > now)
        elif idle and self._delayed and moment < pause < _NEVER:
            waiting = Waiting(now + pause, f"trying again after {self._delayed[0][2].last_error}", unasked=True)
        else:
            self.waiting = None
            return
        if known is None or known.why != waiting.why or abs(known.seconds - waiting.seconds) > 1.0:
            self.waiting = waiting

    def _resubmit(self, pool: Pool, now: float) -> float:
        """Sends the retries that are due; seconds until the next one is (a very long time if there is none)."""
        if self._stopping:
            self._give_up_retries()
            pool.withdraw()
        while self._delayed and self._delayed[0][0] <= now:
            request = self._delayed[0][2]
            if request.in_batch:
                # From now on it is a call like any other.
                request.in_batch, request.began = False, now
                self._under_way[id(request)] = request
            wait = self.limiter.wait(now, request.estimated_tokens)
            if wait > 1e-6:
                return wait
            if self._admit is not None and not self._admit(request):
                return _NEVER
            heapq.heappop(self._delayed)
            self.limiter.started(now, request.estimated_tokens)
            self._set_timeout(request, now)
            pool.submit([request])
        return self._delayed[0][0] - now if self._delayed else _NEVER

    def _give_up_retries(self) -> None:
        """Those that wait are unfinished, not failed: the next resume takes them up. What was paid for is kept as it stands."""
        waiting, self._delayed = [request for _, _, request in self._delayed], []
        paid = [one for one in waiting if one.told_usd or one.prompt_tokens or one.completion_tokens]
        self._given_up += [self._give_up(request) for request in paid]

    def _give_up(self, request: Request) -> Result:
        """A request that is not tried again, as what its last call came to."""
        kind, _, message = request.last_error.partition(": ")
        self._under_way.pop(id(request), None)
        error = final_error(request.task, ModelError(message, kind=kind), request.calls)
        return self._finish(request, GenerationRecord(request.task, None, error))

    def _take_given_up(self) -> list[Result]:
        given_up, self._given_up = self._given_up, []
        return given_up

    def _handle_replies(self, answered: list[Request], pool: Pool) -> list[Result]:
        finished: list[Result] = []
        for request in answered:
            handled = self._handle_reply(request)
            if isinstance(handled, Result):
                self._under_way.pop(id(request), None)
                finished.append(handled)
            else:
                heapq.heappush(self._delayed, (time.monotonic() + handled, next(self._order), request))
        pool.set_limit(self.limiter.limit, self.limiter.resume_at)
        return finished

    # --- batches -----------------------------------------------------------------------------------------------------

    def _run_batched(self, requests: Iterator[Request], pool: BatchPool) -> Iterator[list[Result]]:
        filling = _Filling()
        while not self._giving_up:
            # Whoever took the last results has stored them.
            pool.note_committed()
            pause = self._resubmit(pool, time.monotonic())
            if not self._stopping:
                self._fill(requests, pool, filling)
            if pool.in_flight == 0 and (self._stopping or pause >= _NEVER):
                break
            self._note_batches(pool)
            patience = 0.0 if filling.has_more or self._caller.is_busy() else min(pause, _TURN_SECONDS)
            answered = pool.collect(patience, 0 if self._caller.is_full() else _LARGEST_BATCH)
            if pool.has_answers:
                self.breaker.note_answers()
            yield [*self._take_given_up(), *self._handle_replies(answered, pool)]
        self._give_up_retries()
        yield self._take_given_up()
        self.waiting = None

    def _fill(self, requests: Iterator[Request], pool: BatchPool, filling: _Filling) -> None:
        """Puts the next requests into batches, as far as they are admitted; then what is there is sent."""
        if filling.is_exhausted:
            return
        for _ in range(_LARGEST_BATCH):
            request = filling.held or next(requests, None)
            filling.held, filling.is_exhausted = request, request is None
            if request is not None:
                request.in_batch = True
            if request is None or (self._admit is not None and not self._admit(request)):
                filling.has_more = False
                pool.flush()
                return
            pool.add(request)
            filling.held = None
        filling.has_more = True

    def _note_batches(self, pool: BatchPool) -> None:
        said = pool.describe()
        if said != (self.waiting.why if self.waiting is not None else ""):
            self.waiting = Waiting(None, said, unasked=False) if said else None

    # --- what a reply means ------------------------------------------------------------------------------------------

    def _handle_reply(self, request: Request) -> Result | float:
        """The result of a request, or the seconds of backoff before it is tried again."""
        request.seconds += request.reply_seconds
        record = record_of(request.reply, request.task)
        request.reply = None
        self._add_usage(request, record)
        if record.error is not None:
            return self._handle_error(request, record, record.error)
        request.tries += 1
        output = record.output
        if output is not None and (output.transcript or REASONING_HINT.search(output.text) is not None):
            record.output = _separate_reasoning(output)
        if not request.in_batch:
            self.limiter.on_success()
        quota = record.metrics.pop("rate_limit", None)
        if quota:
            self.limiter.on_quota_headers(time.monotonic(), quota)
        return self._finish(request, record)

    def _handle_error(self, request: Request, record: GenerationRecord, error: ModelError) -> Result | float:
        now = time.monotonic()
        if is_rate_limit(error):
            request.rate_limited += 1
            if not request.in_batch:
                self.limiter.on_rate_limited(now, error.details.get("retry_after_seconds"))
        elif is_lost(error):
            request.lost += 1
            # At once: it may have been paid for.
            self.on_result(Result(request.position, request.attempt, request.key, record))
        elif not is_untried(error):
            request.tries += 1
        request.note_error(error)
        delay = retry_delay(error, request, self.settings.retry, self._chance)
        if delay is not None and request.began:
            error, delay = self._within_deadline(request, error, delay, now)
        if delay is not None:
            return delay
        final = final_error(request.task, error, request.calls)
        return self._finish(request, GenerationRecord(request.task, None, final, record.metrics))

    def _within_deadline(
        self, request: Request, error: ModelError, delay: float, now: float
    ) -> tuple[ModelError, float | None]:
        """The delay if it can be waited for; otherwise what became of the answer."""
        deadline = self.settings.deadline_seconds
        left = deadline - (now - request.began)
        asked = error.details.get("retry_after_seconds")
        if isinstance(asked, int | float) and asked > left:
            # Once may be a slip of the provider's; twice it means it.
            request.asked_too_long += 1
            if request.asked_too_long > 1 or delay > left:
                said = f"the provider asks to wait {asked:,.0f} s, longer than deadline_seconds={deadline:g} leaves"
                return ModelError(f"{said}: {error.message}", kind="wait_too_long", details=error.details), None
        if delay > left:
            said = f"no answer within deadline_seconds={deadline:g}; last: {error.message}"
            return ModelError(said, kind="deadline", details=error.details), None
        return error, delay

    def _add_usage(self, request: Request, record: GenerationRecord) -> None:
        """Adds the tokens of a call: as the provider tells them, or counted where that matters."""
        output = record.output
        usage = output.usage if output is not None else record.metrics.pop("usage", None)
        told = output.cost_usd if output is not None else record.metrics.pop("told_usd", None)
        if told is not None:
            request.told_usd = (request.told_usd or 0.0) + told
        if not usage and not self._counts_tokens:
            return
        usage = usage or {}
        prompt, completion = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
        if output is not None and self._counts_tokens:
            prompt = prompt or count_prompt_tokens(request.task.prompt.text, request.task.metadata)
            completion = completion or count_tokens(output.text) + count_tokens(output.reasoning or "")
        if self.limiter.counts_tokens and not request.in_batch:
            self.limiter.used(time.monotonic(), prompt + completion, estimated=request.estimated_tokens)
            if output is not None:
                usual = self._usual_answer_tokens
                self._usual_answer_tokens = completion if usual is None else 0.9 * usual + 0.1 * completion
        if output is not None:
            record.metrics["prompt_tokens"], record.metrics["response_tokens"] = prompt, completion
        request.prompt_tokens += prompt
        request.completion_tokens += completion
        if request.in_batch:
            request.batch_prompt_tokens += prompt
            request.batch_completion_tokens += completion
        if cached := usage.get("cached_tokens"):
            request.cached_tokens += cached
        if written := usage.get("cache_write_tokens"):
            request.cache_write_tokens += written

    def _finish(self, request: Request, record: GenerationRecord) -> Result:
        calls, metrics, output = request.calls, record.metrics, record.output
        record.task = request.task
        if not request.in_batch:  # how long a model took in a batch nobody tells
            metrics["generation_time_ms"] = round(request.seconds * 1000, 3)
        metrics["prompt_chars"] = len(request.task.prompt.text)
        metrics["generation_attempts"] = calls
        if request.errors:
            metrics["retry_errors"] = request.errors
        if output is not None:
            metrics["response_chars"] = len(output.text)
        result = Result(
            request.position,
            request.attempt,
            request.key,
            record,
            calls,
            request.prompt_tokens,
            request.completion_tokens,
            request.seconds,
            batch_prompt_tokens=request.batch_prompt_tokens,
            batch_completion_tokens=request.batch_completion_tokens,
            cached_tokens=request.cached_tokens,
            cache_write_tokens=request.cache_write_tokens,
            told_usd=request.told_usd,
        )
        self.on_result(result)
        return result


@dataclass
class _Filling:
    """How far requests have been put into batches: the one that was not admitted, and whether more may follow at once."""

    held: Request | None = None
    has_more: bool = True
    is_exhausted: bool = False


def _separate_reasoning(output: ModelOutput) -> ModelOutput:
    """The answer without what the model thought before it, where that stands in the text between tags; so all that it said
    on the way."""
    transcript = tuple(map(_separate_message, output.transcript))
    text, reasoning = _separate_text(output.text, output.reasoning)
    return replace(output, text=text, reasoning=reasoning, transcript=transcript)


def _separate_message(message: Message) -> Message:
    content = message.get("content")
    text = read_text(content) if message.get("role") == "assistant" else ""
    answer, reasoning = _separate_text(text, message.get("reasoning"))
    if answer is text:
        return message
    others = [part for part in content if part.get("type") != "text"] if isinstance(content, list) else []
    said = [{"type": "text", "text": answer}, *others] if others else answer
    return {**message, "content": said, "reasoning": reasoning}


def _separate_text(text: str, told: str | None) -> tuple[str, str | None]:
    """The answer, and what was thought of which some may be told apart from the text already."""
    thought, answer = split_reasoning(text)
    # Some servers tell it apart and leave it in the text, too; a closing tag alone is then something that the answer shows.
    if thought is None or (told and not begins_with_reasoning(text) and thought not in told):
        return text, told
    return answer, told if told and thought in told else "\n\n".join(filter(None, (told, thought)))


def _call(execute: Callable[[GenerationTask], object], task: GenerationTask) -> object:
    try:
        return execute(task)
    except Exception as error:  # boundary: a provider is the user's code
        return error


async def _await_within(reply: Awaitable[object], seconds: float) -> object:
    try:
        async with asyncio.timeout(seconds):
            return await reply
    except Exception as error:  # boundary: a provider is the user's code
        return error
