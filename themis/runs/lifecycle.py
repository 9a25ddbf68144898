"""The life of a run, whatever its kind: start or resume, store its items, work, stop, finish, report.

A driver (rows x prompt x model, or one long conversation) says what the run is and works off its items. Identity, lease,
budget, signals, observers, status, report and the hint how to go on are decided here, once.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from themis.config.specification import STORED_AS, Specification
from themis.core.entities import EvaluationRecord, ExperimentReport, GenerationRecord, Result
from themis.core.redaction import Redactor, redact_text
from themis.exceptions import (
    ConfigurationError,
    RunBusyError,
    RunFailedError,
    RunInterrupted,
    StorageError,
    ThemisError,
)
from themis.runs.observers import Observer, Progress, RunStart
from themis.runs.prices import Budget
from themis.runs.report import build_report, summarise_run, why_not_answered, why_not_judged
from themis.runs.resuming import how_to_resume, say_how_to_resume
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.batches import read_open_batches
from themis.storage.queries import RunReader
from themis.storage.runs import Item
from themis.storage.writing import RunDescription, RunWriter

logger = logging.getLogger(__name__)

_FEWER_COLLECTIONS = 50_000
# A terminal and a program that passes signals on may both send one for a single key press.
_ONE_PRESS_SECONDS = 0.2


class Driver(ABC):
    """What one kind of run does with its items; everything else is the lifecycle's."""

    # What the run was asked to be, with its id.
    specification: Specification
    # Who answers, and the name of what is asked where it has one, as lists show them.
    model: str
    benchmark: str | None

    @abstractmethod
    def find_drift(self, storage: ExperimentStorage) -> list[str]:
        """In which dimensions the stored run differs from what is asked for, a line each."""

    @abstractmethod
    def items(self) -> Iterable[Item]:
        """The rows of a dataset, or the tests of a conversation."""

    @abstractmethod
    def describe(self) -> RunDescription:
        """Everything that decides an answer, and the manifest. All items have been read."""

    @abstractmethod
    def work(self, run: OpenRun) -> None:
        """Asks, commits and judges through `run` until all items are done or `run.stopping`."""

    @abstractmethod
    def stop(self, *, at_once: bool) -> int:
        """Starts nothing new; returns how many calls are still in flight. Called from any thread."""

    # While it works, the clock of the whole process may show another time: nothing may run beside it.
    moves_clock: bool = False

    @property
    def metric_names(self) -> list[str]:
        """What its items will be scored by."""
        return []

    @property
    def most_cost_usd(self) -> float | None:
        """The most that an answer may cost of whoever has no price and says itself what one did."""
        return None

    def check(self) -> None:
        """Finds what is wrong with the machine or the inputs before there is a run."""
        return

    def refuse_unknown_costs(self) -> None:
        """Raises where somebody would be called whose price is not known: a budget could not bind. `check` was called."""
        return

    def close(self) -> None:
        """Lets go of what `check` took."""
        return

    def ways_on(self, storage: ExperimentStorage) -> list[str]:
        """What to do about drift besides the usual, a line each."""
        return []

    def connect(self, run: OpenRun) -> AbstractContextManager[None]:
        """Makes whoever is asked ready, such as judges and agents: a refusal leaves nothing behind."""
        return contextlib.nullcontext()

    def progress(self) -> Progress:
        """How work stands."""
        return Progress()

    def say_what_goes_on(self, run: OpenRun) -> str:
        """What others go on with when the run has stopped, in sentences; empty where nothing does."""
        return ""

    def report(self, run: OpenRun) -> ExperimentReport:
        """The report of the run as it is stored."""
        return build_report(run.storage, run.run_id)

    def why_nothing_worked(self, report: ExperimentReport) -> str:
        """Empty if anything was answered and judged."""
        return why_not_answered(report) or why_not_judged(report)

    def summary(self) -> dict[str, object]:
        """What lists and pages show of this kind of run beside what they show of every run."""
        return {}


@dataclass(frozen=True)
class Stop:
    """Why a run ends before its items are done."""

    reason: str
    status: RunStatus = RunStatus.INTERRUPTED
    by_user: bool = False
    # With which the run would go on, where a budget was too small.
    larger_budget_usd: float | None = None


def run(
    driver: Driver,
    storage: ExperimentStorage,
    observers: Sequence[Observer] = (),
    *,
    on_result: Callable[[GenerationRecord], object] | None = None,
    stop_when: Callable[[EvaluationRecord], str | None] | None = None,
    within: Budget | None = None,
) -> ExperimentReport:
    """Starts a run or goes on with it, and reports on all of it, whatever kind it is.

    Args:
        driver: What the run is and how its items are worked off.
        storage: Where it is kept.
        observers: Told of everything after it is stored.
        on_result: Called with each item's record after it is stored; an exception ends the run.
        stop_when: Called with each item's verdict; a text ends the run, as the reason.
        within: The budget that this run shares with others.

    Raises:
        ConfigurationError: The run exists with other inputs, or cannot be made as it is asked for; nothing was called.
        RunInterrupted: The user stopped it; everything finished is stored.
        RunFailedError: Nothing worked, or every further call would fail; has the report.
    """
    with contextlib.closing(driver):
        driver.check()
        reusable = start_or_resume(driver, storage)
        with _open_for_writing(str(driver.specification.run_id), storage) as writer:
            opened = OpenRun(driver, storage, writer, observers, reusable, within)
            opened.on_result, opened.stop_when = on_result, stop_when
            if opened.budget.is_capped:
                driver.refuse_unknown_costs()
            with driver.connect(opened), gc_paused():
                opened.is_resumed = _store_items(driver, storage, writer)
                return opened.live()


def start_or_resume(driver: Driver, storage: ExperimentStorage) -> list[int]:
    """Starts the run, or sees that the stored one may be resumed. Returns archived versions whose answers may be used."""
    asked = driver.specification
    run_id = str(asked.run_id)
    exists = storage.run_exists(run_id)
    differences = find_changed_inputs(driver, storage)
    if exists and (differences or not asked.resume):
        _refuse_open_batches(storage, run_id)
        archived = storage.archive_run(run_id)
        logger.info("run %s starts anew; the earlier one is archived as %s", run_id, archived)
        exists = False
    if not exists:
        try:
            storage.start_run(
                run_id,
                asked.experiment or "default",
                kind=asked.kind,
                model=driver.model,
                benchmark=driver.benchmark,
                tags=asked.tags,
                config={STORED_AS: asked.to_stored()},
            )
        except StorageError as error:
            if not storage.run_exists(run_id):
                raise
            raise RunBusyError(
                f"run {run_id!r} was started by another process this very moment; wait for it"
            ) from error
    return storage.archived_versions(run_id) if asked.allow_drift else []


def _refuse_open_batches(storage: ExperimentStorage, run_id: str) -> None:
    """A run that starts anew would ask again what is being answered, and paid for, already."""
    for batch in read_open_batches(storage.reader(run_id)):
        raise ConfigurationError(
            f"run {run_id!r} has {batch.named} at {batch.provider}; collect it first (themis resume {run_id}), or cancel it "
            f"(themis resume {run_id} --cancel-batches)"
        )


def find_changed_inputs(driver: Driver, storage: ExperimentStorage, renamed: str = "another run_id") -> list[str]:
    """In what a stored run of this id differs from what is asked for, where it is to be gone on with and may differ.

    Args:
        driver: Of the run that is asked for.
        storage: Where the stored one is.
        renamed: How whoever asks gives the run another name.

    Raises:
        ConfigurationError: It may not differ, or is a run of another kind; says what to do.
    """
    asked = driver.specification
    run_id = str(asked.run_id)
    if not storage.run_exists(run_id):
        return []
    if (kind := storage.get_run(run_id).kind) != asked.kind:
        raise ConfigurationError(f"run {run_id!r} is a run of kind {kind!r}; give this one another run id (--run-id)")
    if not asked.resume or not storage.reader(run_id).has_dataset:
        return []
    differences = driver.find_drift(storage)
    if differences and not asked.allow_drift:
        anew = f"resume=False (--no-resume): starts anew, the old one is kept as {run_id}@n"
        ways = [renamed, anew, *driver.ways_on(storage)]
        raise ConfigurationError(
            "\n  ".join([f"run {run_id!r} exists with other inputs:", *differences])
            + "\n  ".join(["\nWays on:", *ways])
        )
    return differences


@contextlib.contextmanager
def _open_for_writing(run_id: str, storage: ExperimentStorage) -> Iterator[RunWriter]:
    """The run under its lease. Nothing is left of one that is refused before its items are stored."""
    with storage.open_run(run_id) as writer:
        try:
            yield writer
        except BaseException:
            with contextlib.suppress(StorageError):  # a store that is lost must not hide what happened
                if not storage.reader(run_id).has_dataset:
                    writer.close()
                    storage.delete_run(run_id)
            raise


def _store_items(driver: Driver, storage: ExperimentStorage, writer: RunWriter) -> bool:
    """Stores what is to be worked off and what decides it, before the first call. Whether an earlier process has done so."""
    run_id = writer.run_id
    if storage.reader(run_id).has_dataset:
        if lost := storage.reader(run_id).count_lost_rows():
            writer.restore_rows(driver.items())
            logger.info("run %s: %d items that were lost are stored again", run_id, lost)
        writer.update(status=RunStatus.IN_PROGRESS.value, error=None)
        return True
    writer.clear_dataset()
    total = writer.store_dataset(driver.items(), driver.describe)
    logger.info("run %s: %d items stored", run_id, total)
    return False


class OpenRun:
    """A run that is being worked on: the only way in which a driver touches what others see."""

    def __init__(
        self,
        driver: Driver,
        storage: ExperimentStorage,
        writer: RunWriter,
        observers: Sequence[Observer],
        reusable: Sequence[int],
        within: Budget | None = None,
    ) -> None:
        self.run_id = writer.run_id
        self.storage = storage
        self.writer = writer
        # Archived versions of this run whose answers may be used.
        self.reusable = list(reusable)
        stored = storage.get_run(self.run_id)
        spent_usd = stored.count_spent_usd(driver.most_cost_usd)
        self.budget = Budget(driver.specification.budget_usd, spent_usd, within)
        self.redactor = Redactor()
        self.is_resumed = False
        self.on_result: Callable[[GenerationRecord], object] | None = None
        self.stop_when: Callable[[EvaluationRecord], str | None] | None = None
        self._driver = driver
        self._observers = list(observers)
        self._stop: Stop | None = None
        # Its status is stored.
        self._is_closed = False
        self._reader: RunReader | None = None

    @property
    def reader(self) -> RunReader:
        """What is stored of the run; its items are."""
        if self._reader is None:
            self._reader = self.storage.reader(self.run_id)
        return self._reader

    # --- what a driver does through it --------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        return self._stop is not None

    @property
    def is_interrupted(self) -> bool:
        """By the user, who does not want to wait for what is not in flight."""
        return self._stop is not None and self._stop.by_user

    def end_early(self, stop: Stop) -> None:
        """Ends the run before its items are done; the first reason counts."""
        if self._stop is None:
            self._stop = stop
            self._driver.stop(at_once=False)

    def commit(
        self,
        results: list[Result],
        *,
        invalidates: tuple[int, Sequence[int]] | None = None,
        totals: Mapping[str, float] | None = None,
    ) -> None:
        """Makes answers durable, then tells of them; the arguments are `RunWriter.commit_results`'s."""
        self.writer.commit_results(results, invalidates=invalidates, totals=totals)
        if results:
            self._notify(lambda observer: observer.on_answers(results))

    def hand_over(self, record: GenerationRecord) -> None:
        """Gives an item's stored record to whoever asked for all of them."""
        if self.on_result is not None:
            self.on_result(record)

    def check_verdict(self, record: EvaluationRecord) -> None:
        """Ends the run where the user's rule says that this verdict is enough."""
        if self.stop_when is not None and not self.stopping and (reason := self.stop_when(record)):
            self.end_early(Stop(reason))

    def notify_scores(self, records: list[EvaluationRecord]) -> None:
        self._notify(lambda observer: observer.on_scores(records))

    def notify_progress(self) -> None:
        self._notify(lambda observer: observer.on_progress(self._driver.progress))

    def notify_start(self) -> None:
        """Tells where the run stands before its first call, also a rule that looks at its items first (`begin`)."""
        if (begin := getattr(self.stop_when, "begin", None)) is not None:
            begin(self.storage, self.run_id)
        total, done = self.reader.count_samples(), self.reader.count_records()[0]
        if done:
            logger.info("resuming %s: %d of %d items already answered", self.run_id, done, total)
        if not self._observers:
            return
        start = RunStart(
            run_id=self.run_id,
            kind=self._driver.specification.kind,
            total=total,
            done=done,
            is_resumed=self.is_resumed,
            manifest_hash=self.storage.get_run(self.run_id).manifest_hash,
        )
        self._notify(lambda observer: observer.on_start(start))

    def _notify(self, tell: Callable[[Observer], None]) -> None:
        """An observer that fails is reported and hears no more; the run goes on."""
        for observer in list(self._observers):
            try:
                tell(observer)
            except Exception as error:  # boundary: an observer is the user's code, or another system
                self._observers.remove(observer)
                logger.warning(
                    "%s failed and hears no more of this run, which goes on: %s: %s",
                    getattr(observer, "name", type(observer).__name__), type(error).__name__, redact_text(str(error)),
                )  # fmt: skip

    def resume_hint(self, larger_budget_usd: float | None = None) -> str:
        """How to go on with the run once it has stopped."""
        larger = [] if larger_budget_usd is None else ["--budget-usd", f"{larger_budget_usd:g}"]
        needs_program = self._driver.specification.needs_program
        going_on = ""
        with contextlib.suppress(StorageError):  # a store that is lost must not hide what happened
            going_on = self._driver.say_what_goes_on(self)
        return going_on + how_to_resume(self.run_id, needs_program, self.storage.location, options=larger)

    # --- from the first call to the report ----------------------------------------------------------------------------

    def live(self) -> ExperimentReport:
        """Works until the items are done or the run is stopped; either way its status says so before anyone is told."""
        if (handle := CURRENT_HANDLE.get()) is not None:
            handle.attach(self.interrupt)
        try:
            with stop_on_signals(self.interrupt):
                self._driver.work(self)
        except BaseException as error:
            self._fail(error)
        return self._finish()

    def interrupt(self, at_once: bool = False) -> None:
        """The user stops the run: what is in flight is finished and saved, unless at once."""
        self._stop = Stop("stopped by the user", by_user=True)
        in_flight = self._driver.stop(at_once=at_once)
        self._notify(lambda observer: observer.on_stop(in_flight))

    def _fail(self, error: BaseException) -> NoReturn:
        """Somebody's error ends the run: stored as its reason, then raised to whoever started it."""
        hint = self.resume_hint()
        by_user = isinstance(error, KeyboardInterrupt)
        reason = str(error) if isinstance(error, ThemisError) else f"{type(error).__name__}: {error}"
        self._stop = Stop("stopped by the user", by_user=True) if by_user else Stop(reason, RunStatus.FAILED)
        # Neither a full disk nor one more Ctrl-C must hide what happened.
        with contextlib.suppress(StorageError, *([KeyboardInterrupt] if by_user else [])):
            self._close(self._stop)
        if by_user:
            raise RunInterrupted(self.run_id, hint) from error
        raise say_how_to_resume(error, hint) from error.__cause__

    def _finish(self) -> ExperimentReport:
        try:
            report, stop = self._close(self._stop)
        except KeyboardInterrupt as error:  # once more, while the report is made
            if self._is_closed:
                raise RunInterrupted(self.run_id, self.resume_hint()) from error
            self._fail(error)
        if stop is None:
            return report
        report.metadata["resume"] = self.resume_hint(stop.larger_budget_usd)
        if stop.larger_budget_usd is not None:
            report.metadata["larger_budget_usd"] = stop.larger_budget_usd
        if stop.by_user:
            raise RunInterrupted(self.run_id, report.metadata["resume"])
        if stop.status is RunStatus.FAILED:
            raise RunFailedError(self.run_id, report.metadata["stopped"], report)
        return report

    def _close(self, stop: Stop | None) -> tuple[ExperimentReport, Stop | None]:
        """Stores the run's status and summary, and tells of its end."""
        good, failed = self.reader.count_records()
        self.writer.update(succeeded=good, failed=failed)
        report = self._driver.report(self)
        if stop is None and (nothing := self._driver.why_nothing_worked(report)):
            stop = Stop(nothing, RunStatus.FAILED)
        status = RunStatus.COMPLETED if stop is None else stop.status
        report.metadata["status"] = status.value
        if stop is not None:
            report.metadata["stopped"] = self.redactor.text(stop.reason)
        summary = {**summarise_run(report), **self._driver.summary()}
        self.writer.finish(status, summary=summary, error=report.metadata.get("stopped"))
        self._is_closed = True
        self._notify(lambda observer: observer.on_end(status, report))
        return report, stop


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """With thousands of records in hand the garbage collector would walk them all again and again and find nothing."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _FEWER_COLLECTIONS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


# --- stopping ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """While the block runs, the first SIGINT or SIGTERM calls `stop`; the next one raises KeyboardInterrupt, at once.

    Outside of the main thread, where Python takes no signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = 0.0

    def receive(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed and time.monotonic() - pressed > _ONE_PRESS_SECONDS:
            raise KeyboardInterrupt
        if not pressed:
            pressed = time.monotonic()
            stop()

    try:
        before = {
            number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM) if _is_free(number)
        }
    except ValueError:  # the main thread of an interpreter inside another one
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def interrupt_on_termination() -> Iterator[None]:
    """For a command: SIGTERM means what Ctrl-C does, also before and after a run."""
    if threading.current_thread() is not threading.main_thread() or not _is_free(signal.SIGTERM):
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _is_free(number: signal.Signals) -> bool:
    """A program that has something of its own to do when it is terminated goes on doing that."""
    return number is signal.SIGINT or signal.getsignal(number) in (signal.SIG_DFL, _interrupt)


class RunHandle:
    """Stops a run from another thread, as Ctrl-C does; asked twice, the run does not wait for what is under way."""

    def __init__(self) -> None:
        self._stop: Callable[[bool], None] | None = None
        self._asked = 0

    def stop(self) -> None:
        self._asked += 1
        if self._stop is not None:
            self._stop(self._asked > 1)

    def attach(self, stop: Callable[[bool], None]) -> None:
        """`stop` is called with whether to stop at once; now, if that was asked for before the run began."""
        self._stop = stop
        if self._asked:
            stop(self._asked > 1)


# The handle of whoever has started a run in this context, so that others can stop it.
CURRENT_HANDLE: ContextVar[RunHandle | None] = ContextVar("themis_run_handle", default=None)
