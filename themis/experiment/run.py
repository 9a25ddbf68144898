"""One run from start to report: plan, skip what is stored, generate, commit, observe, judge, commit, report.

The page to read to understand a sample run. Rows are an iterator, work in flight is bounded, and the report is built from the
store, so memory does not grow with the dataset. A finished call is committed before anyone is told of it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from themis.core.codec import canonical_json
from themis.core.entities import EvaluationRecord, ExperimentReport, GenerationRecord
from themis.core.fingerprint import digest, fingerprint
from themis.core.redaction import Redactor
from themis.core.tokens import count_told
from themis.exceptions import RunFailedError, RunInterrupted, StorageError
from themis.experiment.experiment import Experiment, Observer
from themis.experiment.judging import JudgingQueue, bound_judges, collecting_less
from themis.experiment.manifest import evaluation_identity
from themis.experiment.planning import identity_of_calls, make_room, opened, store_plan
from themis.experiment.report import build_report, summarise_run, why_not_answered, why_not_judged
from themis.generation.attempts import is_lost, own_words
from themis.generation.breaker import TRIPS_AFTER
from themis.generation.engine import Engine, Job, Outcome, Waiting
from themis.generation.remote import RemotePool
from themis.runs.budget import Budget, PricedCalls, refuse_unknown_cost
from themis.runs.prices import longest_answer
from themis.runs.resuming import how_to_resume, say_how_to_resume
from themis.runs.stopping import stop_on_signals
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.reading import RunReader
from themis.storage.records import Call, whole_record
from themis.storage.writing import RunWriter

__all__ = ["run"]

logger = logging.getLogger(__name__)


def run(experiment: Experiment, storage: ExperimentStorage, observers: Iterable[Observer] = ()) -> ExperimentReport:
    """Runs an experiment, or what is left of it, and reports on all of it."""
    observers = tuple(observers)
    reusable = make_room(experiment, storage)
    with opened(experiment, storage) as writer, _judges(experiment, storage, writer) as (budget, judges):
        store_plan(experiment, storage, writer)
        # Not before the judges can be asked: the run keeps the scores it has if they cannot.
        evaluation = writer.open_evaluation(*evaluation_identity(experiment.pipeline))
        session = _Session(experiment, storage, writer, observers, reusable, evaluation, budget, judges)
        if experiment.handle is not None:
            experiment.handle.attach(session.stop)
        try:
            with stop_on_signals(session.stop), collecting_less(), closing(session):
                session.show_stored()
                session.generate()
                session.judge_rest()
        except BaseException as error:
            at_once = isinstance(error, KeyboardInterrupt)
            status = RunStatus.INTERRUPTED if at_once else RunStatus.FAILED
            with contextlib.suppress(StorageError):  # a full disk must not hide what happened
                session.end(status, error="stopped by the user" if at_once else f"{type(error).__name__}: {error}")
            if at_once:
                raise _interrupted(experiment, storage) from error
            raise say_how_to_resume(error, _how_to_resume(experiment, storage)) from error.__cause__
        if session.interrupted:
            session.end(RunStatus.INTERRUPTED, error="stopped by the user")
            raise _interrupted(experiment, storage)
        if session.dead:
            report = session.end(RunStatus.FAILED, error=session.dead)
        elif stopped := session.stopped_early or session.budget_reached:
            report = session.end(RunStatus.INTERRUPTED, error=stopped)
        else:
            report = session.end(RunStatus.COMPLETED)
        if report.metadata.get("stopped"):
            larger = budget.larger_cap_usd() if budget is not None and session.budget_reached else None
            report.metadata["resume"] = _how_to_resume(experiment, storage, larger)
        if report.metadata["status"] == RunStatus.FAILED:
            raise RunFailedError(experiment.run_id, report.metadata["stopped"], report)
        return report


@contextlib.contextmanager
def _judges(
    experiment: Experiment, storage: ExperimentStorage, writer: RunWriter
) -> Iterator[tuple[Budget | None, list[Engine]]]:
    """Lets metrics that ask a model do so while the run goes on, from the budget that they share with it."""
    budget = _make_budget(experiment, storage)
    metrics = getattr(experiment.pipeline, "metrics", ())
    with bound_judges(metrics, storage, writer, experiment.engine, budget) as engines:
        yield budget, engines


def _make_budget(experiment: Experiment, storage: ExperimentStorage) -> Budget | None:
    if experiment.budget_usd is None:
        return None
    if experiment.price is None:
        refuse_unknown_cost(f"the model {experiment.model.identifier!r}")
    stored = storage.get_run(experiment.run_id)
    return Budget(experiment.budget_usd, (stored.cost_usd or 0.0) + (stored.judge_cost_usd or 0.0))


def _interrupted(experiment: Experiment, storage: ExperimentStorage) -> RunInterrupted:
    return RunInterrupted(experiment.run_id, _how_to_resume(experiment, storage))


def _how_to_resume(experiment: Experiment, storage: ExperimentStorage, budget_usd: float | None = None) -> str:
    larger = [] if budget_usd is None else ["--budget-usd", f"{budget_usd:g}"]
    return how_to_resume(experiment.run_id, experiment.invocation, storage.location, options=larger)


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
        judges: list[Engine],
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
        self._judges = judges
        self._judging = JudgingQueue(
            experiment.pipeline,
            writer,
            evaluation,
            experiment.engine.workers,
            on_judged=self._judged,
            on_stored=self._verdicts_stored,
        )
        self._waiting: Waiting | None = None
        self._priced: PricedCalls | None = None
        if budget is not None and experiment.price is not None:
            self._priced = PricedCalls(budget, experiment.price, longest_answer(experiment.sampling.max_tokens))
        self._engine = Engine(
            experiment.executor,
            experiment.engine,
            admit=self._admit if self._priced else None,
            settled=self._settled if self._priced else None,
            caller=self._judging,
        )

    @property
    def budget_reached(self) -> str:
        if self._priced is None:
            return ""
        budget = self._priced.budget
        left = self._reader.count_samples() - self._reader.count_records()[0] if self._priced.exhausted else 0
        if left:
            return f"{budget.reached}; {left} samples are left"
        return f"{budget.reached}; {budget.given_up} questions to judges are left" if budget.given_up else ""

    def stop(self, at_once: bool = False) -> None:
        self.interrupted = True
        under_way = self._engine.in_flight
        self._engine.stop(at_once=at_once)
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

    @property
    def dead(self) -> str:
        """Why every further call would fail, if a model or a judge has shown that."""
        for engine, what in ((self._engine, "calls"), *((judge, "calls of a judge") for judge in self._judges)):
            if (error := engine.breaker.tripped_by) is not None:
                return f"{TRIPS_AFTER} {what} in a row failed alike: {own_words(error)}"
        return ""

    def generate(self) -> None:
        """Gets the missing answers, commits them as they come, tells of them, and judges between commits."""
        # Closed here and not when it is collected: then calls would still be under way when the process ends.
        with closing(self._batches(self._jobs())) as batches:
            for outcomes in batches:
                calls = self._commit(outcomes)
                try:
                    self._tell(calls)
                    self._judging.work()
                except Exception:
                    # Somebody else's error ends the run, but what is paid for is stored first.
                    self._engine.stop()
                    for answered in batches:
                        self._commit(answered)
                    raise
                if self.dead:
                    self._engine.stop()
                self._note_waiting()
        if self.interrupted:
            self._judging.stop()
        else:
            self._judging.finish()

    def judge_rest(self) -> None:
        """Judges what was answered but not judged: by an earlier process, or under another evaluation."""
        if self.interrupted or not self._resumed:
            return
        for position, record in self._reader.unjudged(self._evaluation):
            self._judging.add(position, record)
            while self._judging.is_full():
                self._judging.work()
            if self.interrupted or self.dead:
                self._judging.stop()
                return
        self._judging.finish()

    def close(self) -> None:
        self._judging.close()

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
        if status is RunStatus.COMPLETED and (nothing := self._why_nothing_worked(report)):
            status, error = RunStatus.FAILED, nothing
        if error is not None:
            report.metadata["stopped"] = self._redactor.text(error)
        self._writer.finish(status, summary=summarise_run(report), error=report.metadata.get("stopped"))
        report.metadata["status"] = status.value
        for observer in self._observers:
            observer.ended(status, report)
        return report

    def _why_nothing_worked(self, report: ExperimentReport) -> str:
        # Whoever says that there are no references wants the answers alone.
        answers_alone = self._experiment.reference_field == ""
        return why_not_answered(report) or ("" if answers_alone else why_not_judged(report))

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

    def _batches(self, jobs: Iterator[Job]) -> Generator[list[Outcome]]:
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
        self._store([call])
        self._tell([call])
        return True

    def _commit(self, outcomes: list[Outcome]) -> list[Call]:
        calls = [self._call(outcome) for outcome in outcomes]
        self._store(calls)
        return calls

    def _store(self, calls: list[Call]) -> None:
        # Only a sample that had answers before can have been judged.
        judged = [call.position for call in calls if call.position in self._partly_stored]
        self._writer.commit_calls(calls, invalidates=(self._evaluation, judged) if judged else None)

    def _tell(self, calls: list[Call]) -> None:
        """What follows when calls are stored: everyone hears of them, and complete samples are judged."""
        for observer in self._observers:
            if calls:
                observer.advanced(calls)
            else:
                observer.idle()
        for position, record in self._complete(calls):
            if self._experiment.on_result is not None:
                self._experiment.on_result(record)
            if record.error is None:
                self._judging.add(position, record)

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
            raw = output.raw if output.raw is None else self._redactor.data(output.raw)
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

    def _judged(self, record: EvaluationRecord) -> None:
        if self._experiment.stop_when is not None and not self.stopped_early:
            self.stopped_early = self._experiment.stop_when(record) or ""
            if self.stopped_early:
                self._engine.stop()

    def _verdicts_stored(self, judged: list[EvaluationRecord]) -> None:
        for observer in self._observers:
            observer.judged(judged)

    def _note_waiting(self) -> None:
        """Says what the run waits for: in the log if nobody asked for it, and in the store for who looks from elsewhere."""
        waiting = self._engine.waiting
        if waiting is self._waiting:
            return
        self._waiting = waiting
        if waiting is not None and waiting.unasked:
            logger.warning("%s: %s", self._experiment.run_id, waiting)
        self._writer.update(waiting=None if waiting is None else str(waiting))

    def _admit(self, job: Job) -> bool:
        assert self._priced is not None
        return self._priced.admit(job, count_told(job.task.prompt.text, job.task.metadata))

    def _settled(self, outcome: Outcome) -> None:
        assert self._priced is not None
        if outcome.record.error is not None and is_lost(outcome.record.error):
            self._priced.forfeit(outcome.job)
            return
        self._priced.settle(outcome.job, outcome.prompt_tokens, outcome.completion_tokens)


def _conversation(row: Mapping[str, Any]) -> str:
    """What a chat provider takes from a row beside the prompt."""
    said = [row.get("system_prompt"), row.get("messages")]
    return canonical_json(said) if any(said) else ""
