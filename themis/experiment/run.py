"""One run from start to report: plan, skip what is stored, generate, commit, observe, judge, commit, report.

The page to read to understand a sample run. Rows are an iterator, work in flight is bounded, and the report is built from the
store, so memory does not grow with the dataset. A finished call is committed before anyone is told of it.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from themis.core.entities import ExperimentReport, GenerationRecord
from themis.core.fingerprint import canonical_json, digest, fingerprint
from themis.core.redaction import Redactor
from themis.core.tokens import count_told
from themis.exceptions import ConfigurationError, RunInterrupted, StorageError
from themis.experiment.cost import Budget, longest_answer
from themis.experiment.experiment import Experiment, Observer
from themis.experiment.judging import bound_judges, collecting_less, judge_together
from themis.experiment.manifest import evaluation_identity
from themis.experiment.planning import identity_of_calls, make_room, opened, store_plan
from themis.experiment.report import build_report, summarise_run
from themis.generation.attempts import is_lost
from themis.generation.engine import Engine, Job, Outcome
from themis.generation.remote import RemotePool
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.reading import RunReader
from themis.storage.records import Call, verdicts, whole_record
from themis.storage.writing import RunWriter

__all__ = ["run"]

logger = logging.getLogger(__name__)

_JUDGED_TOGETHER = 256


def run(experiment: Experiment, storage: ExperimentStorage, observers: Iterable[Observer] = ()) -> ExperimentReport:
    """Runs an experiment, or what is left of it, and reports on all of it."""
    observers = tuple(observers)
    reusable = make_room(experiment, storage)
    with opened(experiment, storage) as writer, _judges(experiment, storage, writer) as budget:
        store_plan(experiment, storage, writer)
        # Not before the judges can be asked: the run keeps the scores it has if they cannot.
        evaluation = writer.open_evaluation(*evaluation_identity(experiment.pipeline))
        session = _Session(experiment, storage, writer, observers, reusable, evaluation, budget)
        if experiment.handle is not None:
            experiment.handle.attach(session.stop)
        try:
            with _stopping_on_interrupt(session), collecting_less():
                session.show_stored()
                session.generate()
                session.judge_rest()
        except BaseException as error:
            at_once = isinstance(error, KeyboardInterrupt)
            status = RunStatus.INTERRUPTED if at_once else RunStatus.FAILED
            with contextlib.suppress(StorageError):  # a full disk must not hide what happened
                session.end(status, error="stopped by the user" if at_once else f"{type(error).__name__}: {error}")
            if at_once:
                raise _interrupted(experiment.run_id) from error
            raise
        if session.interrupted:
            session.end(RunStatus.INTERRUPTED, error="stopped by the user")
            raise _interrupted(experiment.run_id)
        if stopped := session.stopped_early or session.budget_reached:
            return session.end(RunStatus.INTERRUPTED, error=stopped)
        return session.end(RunStatus.COMPLETED)


@contextlib.contextmanager
def _judges(experiment: Experiment, storage: ExperimentStorage, writer: RunWriter) -> Iterator[Budget | None]:
    """Lets metrics that ask a model do so while the run goes on, from the budget that they share with it."""
    budget = _make_budget(experiment, storage)
    metrics = getattr(experiment.pipeline, "metrics", ())
    with bound_judges(metrics, storage, writer, experiment.engine, budget):
        yield budget


def _make_budget(experiment: Experiment, storage: ExperimentStorage) -> Budget | None:
    if experiment.budget_usd is None:
        return None
    if experiment.price is None:
        raise ConfigurationError(
            f"budget_usd needs a price, and {experiment.model.identifier!r} is not in the price table; add it to a file "
            "and name that file in THEMIS_PRICES"
        )
    stored = storage.get_run(experiment.run_id)
    spent = (stored.cost_usd or 0.0) + (stored.judge_cost_usd or 0.0)
    return Budget(experiment.budget_usd, spent, experiment.price, longest_answer(experiment.sampling.max_tokens))


def _interrupted(run_id: str) -> RunInterrupted:
    return RunInterrupted(run_id, f"Go on with: themis resume {run_id}")


class _Session:
    """One process's share of a run: what it generates and judges until it ends or is stopped."""

    def __init__(
        self,
        experiment: Experiment,
        storage: ExperimentStorage,
        writer: RunWriter,
        observers: tuple[Observer, ...],
        reusable: list[int],
        evaluation: int,
        budget: Budget | None,
    ) -> None:
        self.interrupted = False
        self.stopped_early = ""
        self._experiment = experiment
        self._storage = storage
        self._writer = writer
        self._observers = observers
        self._reusable = reusable
        self._reader: RunReader = storage.reader(experiment.run_id)
        self._redactor = Redactor(experiment.provider_options)
        self._call_identity = fingerprint(identity_of_calls(experiment))
        self._evaluation = evaluation
        self._resumed = sum(self._reader.count_records()) > 0
        # Attempts of samples that are not complete yet: how many are missing, and the new ones.
        self._missing: dict[int, int] = {}
        self._fresh: dict[int, list[Call]] = {}
        self._partly_stored: set[int] = set()
        self._budget = budget
        self._engine = Engine(
            experiment.executor,
            experiment.engine,
            admit=self._admit if self._budget else None,
            settled=self._settled if self._budget else None,
        )

    @property
    def budget_reached(self) -> str:
        if self._budget is None or not self._budget.exhausted:
            return ""
        left = self._reader.count_samples() - self._reader.count_records()[0]
        return f"budget_usd={self._budget.cap_usd:g} allows no further call; {left} samples are left" if left else ""

    def stop(self) -> None:
        self.interrupted = True
        under_way = self._engine.in_flight
        self._engine.stop()
        for observer in self._observers:
            observer.stopping(under_way)

    def show_stored(self) -> None:
        """Tells observers where the run stands, and `on_result` of every sample that is complete already."""
        experiment = self._experiment
        good, _ = self._reader.count_records() if self._resumed else (0, 0)
        total = self._reader.count_samples()
        if self._resumed:
            logger.info("resuming %s: %d of %d samples already answered", experiment.run_id, good, total)
        for observer in self._observers:
            observer.started(experiment.run_id, total, good, self._engine)
        if experiment.on_result is not None and good:
            for _, record in self._reader.records():
                if len(record.attempts) >= experiment.num_samples and record.error is None:
                    experiment.on_result(record)

    def generate(self) -> None:
        """Gets the missing answers, commits them in batches, then tells of them and judges them."""
        batches = self._batches(self._jobs())
        for outcomes in batches:
            if not outcomes:
                for observer in self._observers:
                    observer.idle()
                continue
            calls = self._commit(outcomes)
            try:
                self._tell(calls)
            except Exception:
                # Somebody else's error ends the run, but what is paid for is stored first.
                self._engine.stop()
                for answered in batches:
                    self._commit(answered)
                raise

    def judge_rest(self) -> None:
        """Judges what was answered but not judged: by an earlier process, or under another evaluation."""
        batch: list[tuple[int, GenerationRecord]] = []
        if not self._resumed:
            return
        for position, record in self._reader.unjudged(self._evaluation):
            if self.interrupted:
                return
            batch.append((position, record))
            if len(batch) >= _JUDGED_TOGETHER:
                self._judge(batch)
                batch = []
        self._judge(batch)

    def end(self, status: RunStatus, error: str | None = None) -> ExperimentReport:
        good, failed = self._reader.count_records()
        self._writer.update(succeeded=good, failed=failed)
        report = build_report(
            self._storage,
            self._experiment.run_id,
            self._evaluation,
            pipeline=self._experiment.pipeline,
            keep=self._experiment.max_records_in_memory,
        )
        if error is not None:
            report.metadata["stopped"] = self._redactor.text(error)
        self._writer.finish(status, summary=summarise_run(report), error=report.metadata.get("stopped"))
        report.metadata["status"] = status.value
        for observer in self._observers:
            observer.ended(status, report)
        return report

    # --- inside ------------------------------------------------------------------------------------------------------

    def _jobs(self) -> Iterator[Job]:
        experiment = self._experiment
        template, frame, executor = experiment.template, self._reader.frame, experiment.executor
        wanted = range(experiment.num_samples)
        for sample, stored in self._reader.unfinished(experiment.num_samples):
            text = template.fill(sample.row)
            material = _conversation(sample.row) if executor.prompt_only else sample.fingerprint
            attempts = [attempt for attempt in wanted if attempt not in stored]
            self._missing[sample.position] = len(attempts)
            if stored:
                self._partly_stored.add(sample.position)
            for attempt in attempts:
                key = digest(self._call_identity, text, material, str(attempt))
                task = frame.task(sample.item_id, sample.row, text, attempt)
                job = Job(sample.position, attempt, key, task)
                if not self._reuse(job):
                    yield job

    def _batches(self, jobs: Iterator[Job]) -> Iterator[list[Outcome]]:
        backend, make = self._experiment.execution_backend, self._experiment.make_executor
        if backend is None:
            return self._engine.run(jobs)
        if hasattr(backend, "open_workers") and make is not None:
            executor, settings = self._experiment.executor, self._experiment.engine
            return self._engine.run(jobs, RemotePool(backend, make, executor, settings.workers))
        return self._engine.run_through(backend, jobs)

    def _reuse(self, job: Job) -> bool:
        """Takes a stored answer of another run, where the user allows it."""
        cache = self._experiment.cache
        if cache != "store" and not self._reusable:
            return False
        found = self._storage.find_answer(job.key, None if cache == "store" else self._reusable)
        if found is None:
            return False
        record = GenerationRecord(job.task, found.output, None, {**found.metrics, "reused": True})
        call = Call(job.position, job.attempt, job.key, record, cost_usd=0.0, calls=0, reused=True)
        self._writer.commit_calls([call], unsettles=self._evaluation if self._resumed else None)
        self._tell([call])
        return True

    def _commit(self, outcomes: list[Outcome]) -> list[Call]:
        calls = [self._call(outcome) for outcome in outcomes]
        self._writer.commit_calls(calls, unsettles=self._evaluation if self._resumed else None)
        return calls

    def _tell(self, calls: list[Call]) -> None:
        """What follows when calls are stored: everyone hears of them, and complete samples are judged."""
        for observer in self._observers:
            observer.advanced(calls)
        complete = self._complete(calls)
        if self._experiment.on_result is not None:
            for _, record in complete:
                self._experiment.on_result(record)
        self._judge(complete)

    def _call(self, outcome: Outcome) -> Call:
        price, job = self._experiment.price, outcome.job
        cost = None if price is None else price.of(outcome.prompt_tokens, outcome.completion_tokens)
        record = self._without_secrets(outcome.record)
        return Call(
            position=job.position,
            attempt=job.attempt,
            key=job.key,
            record=record,
            cost_usd=cost,
            calls=outcome.calls,
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            seconds=outcome.seconds,
        )

    def _without_secrets(self, record: GenerationRecord) -> GenerationRecord:
        error, output = record.error, record.output
        if error is not None:
            cleaned = self._redactor.deep({"message": error.message, "details": error.details})
            record.error = type(error)(cleaned["message"], error.kind, cleaned["details"])
        if output is not None:
            text = self._redactor.values(output.text)
            raw = output.raw if output.raw is None else self._redactor.deep(output.raw)
            if text is not output.text or raw is not output.raw:
                record.output = type(output)(text, raw, output.usage)
        if "retry_errors" in record.metrics:
            record.metrics["retry_errors"] = self._redactor.deep(record.metrics["retry_errors"])
        return record

    def _complete(self, calls: list[Call]) -> list[tuple[int, GenerationRecord]]:
        """Samples whose last missing attempt is among these calls."""
        complete: list[tuple[int, GenerationRecord]] = []
        for call in calls:
            self._fresh.setdefault(call.position, []).append(call)
            self._missing[call.position] -= 1
            if self._missing[call.position]:
                continue
            del self._missing[call.position]
            fresh = self._fresh.pop(call.position)
            if call.position in self._partly_stored:
                self._partly_stored.discard(call.position)
                complete.extend(self._reader.records(positions=[call.position]))
            else:
                fresh.sort(key=lambda one: one.attempt)
                complete.append((call.position, whole_record([one.record for one in fresh])))
        return complete

    def _judge(self, records: list[tuple[int, GenerationRecord]]) -> None:
        answered = [(position, record) for position, record in records if record.error is None]
        if not answered:
            return
        pipeline = self._experiment.pipeline
        judged = judge_together(pipeline, [record for _, record in answered], self._experiment.engine.workers)
        names = pipeline.metric_names
        rows = [
            row
            for (position, record), result in zip(answered, judged, strict=True)
            for row in verdicts(position, result, names, record.task.metadata)
        ]
        self._writer.commit_verdicts(self._evaluation, rows)
        for observer in self._observers:
            observer.judged(judged)
        if self._experiment.stop_when is not None and not self.stopped_early:
            reasons = (self._experiment.stop_when(result) for result in judged)
            self.stopped_early = next((reason for reason in reasons if reason), "")
            if self.stopped_early:
                self._engine.stop()

    def _admit(self, job: Job) -> bool:
        assert self._budget is not None
        return self._budget.admit(job, count_told(job.task.prompt.text, job.task.metadata))

    def _settled(self, outcome: Outcome) -> None:
        assert self._budget is not None
        if outcome.record.error is not None and is_lost(outcome.record.error):
            self._budget.forfeit(outcome.job)
            return
        self._budget.settle(outcome.job, outcome.prompt_tokens, outcome.completion_tokens)


def _conversation(row: Mapping[str, Any]) -> str:
    """What a chat provider takes from a row beside the prompt."""
    said = [row.get("system_prompt"), row.get("messages")]
    return canonical_json(said) if any(said) else ""


@contextlib.contextmanager
def _stopping_on_interrupt(session: _Session) -> Iterator[None]:
    """Ctrl-C once: finish and save what is under way. Twice: stop now. SIGTERM is the same, said by a program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = 0.0

    def stop(number: int, frame: Any) -> None:
        nonlocal pressed
        if pressed and time.monotonic() - pressed > 0.2:
            raise KeyboardInterrupt
        if not pressed:
            pressed = time.monotonic()
            session.stop()

    # A program that has something of its own to do when it is terminated goes on doing that.
    ours = [number for number in (signal.SIGINT, signal.SIGTERM) if _is_free(number)]
    try:
        before = {number: signal.signal(number, stop) for number in ours}
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_free(number: signal.Signals) -> bool:
    return number is signal.SIGINT or signal.getsignal(number) is signal.SIG_DFL
