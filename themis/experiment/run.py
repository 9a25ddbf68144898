"""The driver of sample runs: ask every row that has no answer, commit what comes, judge it meanwhile.

The page to read to understand a sample run; `runs.lifecycle` calls it. Rows are an iterator, work in flight is bounded, and
the report is built from the store, so memory does not grow with the dataset. A finished call is committed before anyone is
told of it.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from themis.config.specification import SampleSpecification
from themis.core.codec import canonical_json, digest, encode, fingerprint
from themis.core.continuations import BASELINES, CONTINUATIONS
from themis.core.entities import (
    ExperimentReport,
    GenerationRecord,
    GenerationTask,
    ModelOutput,
    ModelSpec,
    Result,
    Step,
)
from themis.core.redaction import Redactor
from themis.core.tokens import count_prompt_tokens
from themis.evaluation.pipeline import EvaluationPipeline
from themis.exceptions import ConfigurationError
from themis.experiment.batching import Batching, say_cancelled, say_what_goes_on
from themis.experiment.datasets import RowReader, Source
from themis.experiment.identity import Settings, describe_run, identify_calls, identify_run
from themis.generation.attempts import TRIPS_AFTER, Request, explain_no_scorer, find_scorer, is_lost, own_words
from themis.generation.batches.endpoint import BatchEndpoint
from themis.generation.engine import Engine, EngineSettings, Waiting
from themis.generation.episodes import EpisodeLimits, EpisodeRunner, Scene, Toolset
from themis.generation.remote import RemotePool
from themis.generation.users import SimulatedUser
from themis.interfaces import StatelessTaskExecutor
from themis.runs.judging import (
    JudgingQueue,
    check_judges,
    connect_judges,
    open_evaluation,
    refuse_unpriced_judges,
)
from themis.runs.lifecycle import Driver, OpenRun, Stop
from themis.runs.manifest import (
    diff_identity,
    evaluation_identity,
)
from themis.runs.observers import Progress
from themis.runs.prices import NAME_THE_PRICE, Price, PricedCalls, cost_of, max_completion_tokens, refuse_unknown_cost
from themis.runs.report import build_report, why_not_answered, why_not_judged
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.queries import RunReader
from themis.storage.runs import ATTACHED, Item, find_digests, whole_record
from themis.storage.writing import RunDescription

logger = logging.getLogger(__name__)

_LATE_SECONDS = 30.0
# Stored answers that tell how a provider counts tokens.
_LEARNT_FROM = 20


@dataclass(kw_only=True)
class SampleDriver(Driver):
    """Rows x prompt x model: everything such a run is made of, resolved and checked."""

    specification: SampleSpecification
    source: Source
    spec: ModelSpec
    asked_with: Settings
    executor: StatelessTaskExecutor
    pipeline: EvaluationPipeline
    provider_options: Mapping[str, Any] = field(default_factory=dict)
    settings: EngineSettings = field(default_factory=EngineSettings)
    execution_backend: Any = None
    # Builds the executor again, in a process of the backend's.
    make_executor: Callable[[], StatelessTaskExecutor] | None = None
    price: Price | None = None
    # Where an answer may take several steps.
    toolset: Toolset | None = None
    scene: Scene | None = None
    # The provider's batches, where it has them.
    batches: BatchEndpoint | None = None

    judges: list[Engine] = field(default_factory=list, init=False)
    _reader: RowReader = field(init=False)
    _rows_are_spent: bool = field(default=False, init=False)
    _session: _Session | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.model = self.spec.model_key
        self.benchmark = self.source.benchmark
        self._reader = self._row_reader()

    @property
    def most_cost_usd(self) -> float | None:
        most: float | None = getattr(self.executor, "most_cost_usd", None)
        return most

    @cached_property
    def evaluation(self) -> tuple[str, dict[str, Any]]:
        """The fingerprint of how answers are judged, and what it is made of: as it is before the first is."""
        return evaluation_identity(self.pipeline)

    @property
    def metric_names(self) -> list[str]:
        return list(self.pipeline.metric_names)

    # --- what the run is ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        if hasattr(self.pipeline, "check_machine"):
            self.pipeline.check_machine()
        if hasattr(self.pipeline, "check_attempts"):
            self.pipeline.check_attempts(self.asked_with.attempts)
        if (check_sampling := getattr(self.executor, "check_sampling", None)) is not None:
            check_sampling(self.spec.identifier, self.asked_with.sampling)
        check_judges(getattr(self.pipeline, "metrics", ()))

    def refuse_unknown_costs(self) -> None:
        if self.price is None and self.most_cost_usd is None:
            refuse_unknown_cost(f"the model {self.spec.model_key!r}", _how_to_bound(self.spec.provider))
        if isinstance(self.scene, SimulatedUser) and not self.scene.can_be_bounded:
            refuse_unknown_cost(
                "the model that plays the user", f"its options say most_cost_usd=0.05, or {NAME_THE_PRICE}"
            )
        refuse_unpriced_judges(getattr(self.pipeline, "metrics", ()))

    def find_drift(self, storage: ExperimentStorage) -> list[str]:
        if iter(self.source.rows) is self.source.rows and self.specification.allow_drift:
            # A generator can be read only once, and its rows are needed for the items.
            return ["dataset: given as a generator, so it cannot be compared and used too"]
        reader = self._row_reader()
        for _ in reader:
            pass
        self._rows_are_spent = iter(self.source.rows) is self.source.rows
        return diff_identity(storage.reader(str(self.specification.run_id)).identity, identify_run(self, reader))

    def ways_on(self, storage: ExperimentStorage) -> list[str]:
        return ["allow_drift=True (--allow-drift): the same, with every stored answer that still fits"]

    def items(self) -> Iterable[Item]:
        if self._rows_are_spent:
            raise ConfigurationError(
                f"run {self.specification.run_id!r} has lost rows of its dataset, which was given as a generator and can be "
                "read only once; give it as a list"
            )
        return self._reader

    def describe(self) -> RunDescription:
        return describe_run(self, self._reader)

    def _row_reader(self) -> RowReader:
        return RowReader(
            rows=self.source.rows,
            template=self.source.template,
            id_field=self.source.id_field,
            reference_field=self.source.reference_field,
            cluster_field=self.specification.cluster_field,
            limit=None if self.source.is_limited else self.specification.limit,
            compared=getattr(self.pipeline, "compared_with_rows", ()),
            check=getattr(self.pipeline, "row_check", None),
            complete=None if self.source.continuations is None else self.source.complete,
            no_scorer=self._explain_no_scorer(),
            attach=self.source.attach,
            scene=self.scene,
        )

    def _explain_no_scorer(self) -> str:
        """Why rows with `continuations` cannot be asked; empty where they can."""
        if self.specification.batch:
            return "`continuations` are not scored in batches; leave --batch (batch=True) out"
        return "" if find_scorer(self.executor) else explain_no_scorer(f"{self.spec.provider}/{self.spec.identifier}")

    # --- what it does -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def connect(self, run: OpenRun) -> Iterator[None]:
        """Lets metrics that ask a model do so while the run goes on, from the budget that they share with it."""
        # Not the run's own reader, which is made when its items are stored.
        if (batching := self.begin_batching(run, run.storage.reader(run.run_id))) is not None:
            batching.check()
        run.redactor = Redactor(self.provider_options)
        if isinstance(self.scene, SimulatedUser):
            self.scene.budget = run.budget
        metrics = getattr(self.pipeline, "metrics", ())
        with connect_judges(metrics, run.storage, run.writer, self.settings, run.budget) as self.judges:
            yield

    def begin_batching(self, run: OpenRun, reader: RunReader) -> Batching | None:
        """None where nothing of the run is in batches, or is to be."""
        if self.batches is None:
            return None
        return Batching.begin(self.specification, self.executor, self.batches, reader, run.writer)

    def say_what_goes_on(self, run: OpenRun) -> str:
        return say_what_goes_on(run.reader)

    def work(self, run: OpenRun) -> None:
        self._session = _Session(self, run)
        with closing(self._session):
            run.notify_start()
            self._session.show_stored()
            self._session.generate()
            self._session.judge_rest()

    def close(self) -> None:
        """Ends what was opened for the run: tools, and whoever plays the user."""
        for one in (self.toolset, self.scene):
            if (close := getattr(one, "close", None)) is not None:
                close()

    def stop(self, *, at_once: bool) -> int:
        return 0 if self._session is None else self._session.stop(at_once=at_once)

    def progress(self) -> Progress:
        return Progress() if self._session is None else self._session.progress()

    def report(self, run: OpenRun) -> ExperimentReport:
        report = build_report(
            run.storage, run.run_id, pipeline=self.pipeline, keep=self.specification.max_records_in_memory
        )
        if sent := getattr(self.executor, "sent_parameters", None):
            told = {"sent": sent, "left_out": getattr(self.executor, "left_out", {})}
            report.metadata["parameters"] = run.redactor.data(told)
        return report

    def why_nothing_worked(self, report: ExperimentReport) -> str:
        # Whoever says that there are no references wants the answers alone.
        answers_alone = self.source.reference_field == ""
        return why_not_answered(report) or ("" if answers_alone else why_not_judged(report))


class _Session:
    """One process's share of a run: what it generates and judges until it ends or is stopped."""

    def __init__(self, driver: SampleDriver, run: OpenRun) -> None:
        self._driver = driver
        self._run = run
        self._reader = run.reader
        self._attempts = driver.asked_with.attempts
        self._call_identity = fingerprint(identify_calls(driver))
        # Not before the judges can be asked: the run keeps the scores it has if they cannot.
        self._evaluation = open_evaluation(run.writer, run.run_id, driver.evaluation)
        self._resumed = sum(self._reader.count_records()) > 0
        # Of samples that more than one answer completes: how many are missing, and the new ones.
        self._missing: dict[int, int] = {}
        self._fresh: dict[int, list[Result]] = {}
        self._partly_stored: set[int] = set()
        self._judging = JudgingQueue(
            driver.pipeline,
            run.writer,
            self._evaluation,
            driver.settings.workers,
            on_judged=run.check_verdict,
            on_stored=run.notify_scores,
        )
        self._attached = _AttachmentCache(self._reader) if driver.source.attach is not None else None
        self._waiting: Waiting | None = None
        self._batching = driver.begin_batching(run, self._reader)
        self._priced: PricedCalls | None = None
        if run.budget.is_capped:
            self._priced = PricedCalls(run.budget, driver.price, driver.most_cost_usd)
            self._learn_counting(self._priced)
        # By which answers may be longer than their limit, because the model thinks first.
        added_tokens = getattr(driver.executor, "added_tokens", None)
        self._added_tokens = 0 if added_tokens is None else added_tokens(driver.spec.identifier)
        self._engine = Engine(
            driver.executor,
            driver.settings,
            admit=self._admit if self._priced else None,
            on_result=self._on_result if self._priced else None,
            caller=self._judging,
        )
        if self._resumed and self._has_stored_answers():
            self._engine.breaker.note_answers()
        if run.stopping:
            self._engine.stop()

    def _has_stored_answers(self) -> bool:
        stored = self._reader.count_attempts()
        return stored.made > stored.failed

    def stop(self, *, at_once: bool) -> int:
        in_flight = self._engine.in_flight
        self._engine.stop(at_once=at_once)
        return in_flight

    def progress(self) -> Progress:
        engine = self._engine
        summary = f"{engine.in_flight} under way (limit {engine.limiter.limit})" if engine.in_flight else ""
        return Progress(
            summary=summary,
            waiting="" if engine.waiting is None else str(engine.waiting),
            late=[
                f"sample {entry.item_id}: {entry.seconds:.0f} s, waiting for {entry.waiting_for}"
                for entry in engine.late(_LATE_SECONDS)
            ],
        )

    def show_stored(self) -> None:
        """Tells `on_result` of every sample that is complete already."""
        if self._run.on_result is None or not self._resumed:
            return
        for _, record in self._reader.records():
            if len(record.attempts) >= self._attempts and record.error is None:
                self._run.hand_over(record)

    def generate(self) -> None:
        """Gets the missing answers, commits them as they come, and judges between commits."""
        if (expect_calls := getattr(self._driver.executor, "expect_calls", None)) is not None:
            expect_calls((self._reader.count_samples() - self._reader.count_records()[0]) * self._attempts)
        # Closed here and not when it is collected: then calls would still be under way when the process ends.
        with closing(self._batches()) as batches:
            for results in batches:
                self._commit(results)
                try:
                    self._hand_on(results)
                    self._judging.work()
                except Exception:
                    # Somebody else's error ends the run, but what is paid for is stored first.
                    self._engine.stop()
                    for answered in batches:
                        self._commit(answered)
                    raise
                self._check_breakers()
                self._note_waiting()
        self._check_budget()
        self._judging.finish(lambda: self._run.is_interrupted)
        # Judges may be out of reach or of money only now that all answers are there.
        self._check_breakers()
        self._check_budget()

    def judge_rest(self) -> None:
        """Judges what was answered but not judged: by an earlier process, or under another evaluation."""
        if self._run.is_interrupted or not self._resumed:
            return
        for position, record in self._reader.unjudged(self._evaluation):
            self._judging.add_when_room(position, record, lambda: self._run.is_interrupted)
            self._check_breakers()
            if self._run.is_interrupted or self._dead:
                self._judging.stop()
                return
        self._judging.finish(lambda: self._run.is_interrupted)
        self._check_breakers()
        self._check_budget()

    def close(self) -> None:
        self._judging.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _requests(self, is_wanted: Callable[[int, int], bool] | None = None) -> Iterator[Request]:
        """What is to be asked; `is_wanted` chooses by position and attempt."""
        driver = self._driver
        template, frame = driver.source.template, self._reader.frame
        # Tools, scripts and users are given the row.
        prompt_only = driver.executor.prompt_only and driver.toolset is None
        wanted = range(self._attempts)
        for sample, stored in self._reader.unfinished(self._attempts):
            attempts = missing = [attempt for attempt in wanted if attempt not in stored]
            if is_wanted is not None:
                attempts = [attempt for attempt in missing if is_wanted(sample.position, attempt)]
                if not attempts:
                    continue
            text = template.fill(sample.row)
            added = driver.source.complete(sample.row, text)
            material = _conversation({**sample.row, **added}) if prompt_only else sample.fingerprint
            if added and not prompt_only:
                material = digest(material, canonical_json(added))
            if stored or len(missing) > 1:
                self._missing.setdefault(sample.position, len(missing))
            if stored:
                self._partly_stored.add(sample.position)
            for attempt in attempts:
                key = digest(self._call_identity, text, material, str(attempt))
                task = frame.task(sample.item_id, sample.row, text, attempt)
                task.metadata.update(added)
                if self._attached is not None:
                    task.metadata[ATTACHED] = self._attached(added)
                request = Request(sample.position, attempt, key, task)
                if not self._reuse(request):
                    yield request

    def _batches(self) -> Generator[list[Result]]:
        driver = self._driver
        backend, make = driver.execution_backend, driver.make_executor
        if self._batching is not None:
            return self._ask_in_batches(self._batching)
        requests = self._requests()
        if driver.toolset is not None:
            return self._episodes(driver.toolset).run(requests)
        if backend is None:
            return self._engine.run(requests)
        if hasattr(backend, "open_workers") and make is not None:
            return self._engine.run(requests, RemotePool(backend, make, driver.executor, driver.settings.workers))
        return self._engine.run_through(backend, requests)

    def _episodes(self, toolset: Toolset) -> EpisodeRunner:
        driver, asked = self._driver, self._driver.specification
        started = self._reader.started() if self._resumed or self._run.is_resumed else set()
        return EpisodeRunner(
            self._engine,
            scene=driver.scene,
            toolset=toolset,
            limits=EpisodeLimits(
                max_turns=asked.max_turns,
                max_sample_tokens=asked.max_sample_tokens,
                max_sample_seconds=asked.max_sample_seconds,
                max_sample_usd=asked.max_sample_usd,
            ),
            commit=self._commit_steps,
            stored=lambda position, attempt: (
                self._reader.steps(position, attempt) if (position, attempt) in started else []
            ),
            cost_of=lambda result: cost_of(result, driver.price),
            workers=driver.settings.workers,
        )

    def _commit_steps(self, steps: list[Step]) -> None:
        """Stores steps of unfinished answers."""
        self._run.writer.commit_steps(steps)
        self._run.notify_progress()

    def _ask_in_batches(self, batching: Batching) -> Generator[list[Result]]:
        """What is in batches already is waited for; the rest goes into new ones, or is asked singly if nobody wants them."""
        asked = self._driver.specification
        batching.adopt(self._requests(batching.holds), self._reserve_sent)
        rest = self._requests(lambda position, attempt: not batching.holds(position, attempt))
        if asked.cancel_batches:
            rest = iter(())
        elif not asked.batch:
            yield from self._engine.run(rest)
            rest = iter(())
        elif self._priced is not None and not self._priced.is_calibrated:
            rest = yield from self._calibrate(rest)
        pool = batching.open_pool(self._restore_tasks)
        yield from self._engine.run_batched(rest, pool)
        if pool.cancelled or (asked.cancel_batches and self._count_left()):
            self._run.end_early(say_cancelled(pool.cancelled))

    def _calibrate(self, requests: Iterator[Request]) -> Generator[list[Result], None, Iterator[Request]]:
        """Asks singly until an answer has told how the provider counts: before, a budget cannot admit many at once."""
        assert self._priced is not None
        for request in requests:
            is_asked = False
            for results in self._engine.run(iter([request])):
                is_asked = is_asked or bool(results)
                yield results
            if not is_asked:
                return itertools.chain([request], requests)
            if self._priced.is_calibrated or self._run.stopping:
                break
        return requests

    def _learn_counting(self, priced: PricedCalls) -> None:
        """From what an earlier process was answered: nothing need be asked to know how the provider counts."""
        if self._driver.toolset is not None:
            return  # their usage is that of many prompts
        for _, record in itertools.islice(self._reader.records(), _LEARNT_FROM):
            usage = (record.output and record.output.usage) or {}
            counted = count_prompt_tokens(record.task.prompt.text, record.task.metadata)
            priced.learn(counted, int(usage.get("prompt_tokens") or 0))

    def _restore_tasks(self, requests: Sequence[Request]) -> None:
        """Gives requests of a batch their tasks back, which are not kept while it is waited for."""
        source, frame = self._driver.source, self._reader.frame
        of_sample: dict[int, list[Request]] = {}
        for request in requests:
            of_sample.setdefault(request.position, []).append(request)
        for sample in self._reader.samples_at(list(of_sample)):
            text = source.template.fill(sample.row)
            added = source.complete(sample.row, text)
            for request in of_sample[sample.position]:
                request.task = frame.task(sample.item_id, sample.row, text, request.attempt)
                request.task.metadata.update(added)
                if self._attached is not None:
                    request.task.metadata[ATTACHED] = self._attached(added)

    def _reuse(self, request: Request) -> bool:
        """Takes a stored answer of another run, where the user allows it."""
        cache, reusable = self._driver.specification.cache, self._run.reusable
        if cache == "off" or (cache != "store" and not reusable):
            return False
        found = self._run.storage.find_answer(request.key, None if cache == "store" else reusable)
        if found is None:
            return False
        record = GenerationRecord(request.task, found.output, None, {**found.metrics, "reused": True})
        results = [Result(request.position, request.attempt, request.key, record, calls=0, reused=True)]
        self._store(results)
        self._hand_on(results)
        return True

    def _commit(self, results: list[Result]) -> None:
        """Stores results, with what they cost and without secrets."""
        price = self._driver.price
        for result in results:
            result.cost_usd = cost_of(result, price)
            self._remove_secrets(result.record)
        self._store(results)
        self._run.notify_progress()

    def _store(self, results: list[Result]) -> None:
        # Only a sample that had answers before can have been judged.
        judged = [result.position for result in results if result.position in self._partly_stored]
        self._run.commit(results, invalidates=(self._evaluation, judged) if judged else None)

    def _hand_on(self, results: list[Result]) -> None:
        """What follows when results are stored: samples that are complete are told of and judged."""
        for position, record in self._complete(results):
            self._run.hand_over(record)
            if record.error is None:
                self._judging.add(position, record)

    def _remove_secrets(self, record: GenerationRecord) -> None:
        error, output = record.error, record.output
        if error is not None:
            cleaned = self._run.redactor.deep({"message": error.message, "details": error.details})
            record.error = type(error)(cleaned["message"], error.kind, cleaned["details"])
        if output is not None:
            record.output = _redact_output(output, self._run.redactor)
        if "retry_errors" in record.metrics:
            record.metrics["retry_errors"] = self._run.redactor.deep(record.metrics["retry_errors"])

    def _complete(self, results: list[Result]) -> Iterator[tuple[int, GenerationRecord]]:
        """Samples whose last missing attempt is among these results."""
        for result in results:
            position = result.position
            if position not in self._missing:
                yield position, whole_record([result.record])
                continue
            self._fresh.setdefault(position, []).append(result)
            self._missing[position] -= 1
            if self._missing[position]:
                continue
            del self._missing[position]
            fresh = self._fresh.pop(position)
            if position in self._partly_stored:
                self._partly_stored.discard(position)
                yield from self._reader.records(positions=[position])
            else:
                fresh.sort(key=lambda one: one.attempt)
                yield position, whole_record([one.record for one in fresh])

    @property
    def _dead(self) -> str:
        """Why every further call would fail, if a model or a judge has shown that."""
        judges = ((judge, "calls of a judge") for judge in self._driver.judges)
        for engine, what in ((self._engine, "calls"), *judges):
            if (error := engine.breaker.tripped_by) is not None:
                return f"{TRIPS_AFTER} {what} in a row failed alike: {own_words(error)}"
        return ""

    def _check_breakers(self) -> None:
        if dead := self._dead:
            self._run.end_early(Stop(dead, RunStatus.FAILED))

    def _check_budget(self) -> None:
        if self._priced is None:
            return
        budget, reached = self._priced.budget, ""
        # Where somebody plays a user, what was given up are messages of theirs, and the samples wait for them.
        exhausted = self._priced.exhausted or (budget.given_up and self._driver.scene is not None)
        left = self._count_left() if exhausted else 0
        if left:
            reached = f"{budget.reached}; {left} samples are left"
        elif budget.given_up:
            reached = f"{budget.reached}; {budget.given_up} questions to judges are left"
        if reached:
            self._run.end_early(Stop(reached, larger_budget_usd=budget.larger_cap_usd()))

    def _count_left(self) -> int:
        """Samples that lack an answer, or one of their attempts."""
        return self._reader.count_unfinished(self._attempts)

    def _note_waiting(self) -> None:
        """Says what the run waits for: in the log if nobody asked for it, and in the store for who looks from elsewhere."""
        waiting = self._engine.waiting
        if waiting is self._waiting:
            return
        self._waiting = waiting
        if waiting is not None and waiting.unasked:
            logger.warning("%s: %s", self._run.run_id, waiting)
        self._run.writer.update(waiting=None if waiting is None else str(waiting))

    def _admit(self, request: Request) -> bool:
        assert self._priced is not None
        call = (request.position, request.attempt)
        most = self._most_tokens(request.task)
        return self._priced.admit(call, *most, in_batch=request.in_batch, before=request)

    def _reserve_sent(self, request: Request) -> None:
        if self._priced is not None:
            self._priced.reserve_sent((request.position, request.attempt), *self._most_tokens(request.task))

    def _most_tokens(self, task: GenerationTask) -> tuple[int, int]:
        """Of the prompt, and at most of the answer."""
        most = max_completion_tokens(task.sampling.max_tokens) + self._added_tokens
        return count_prompt_tokens(task.prompt.text, task.metadata), most

    def _on_result(self, result: Result) -> None:
        assert self._priced is not None
        call = (result.position, result.attempt)
        if result.record.error is not None and is_lost(result.record.error):
            self._priced.forfeit(call)
            return
        self._priced.settle(call, result)


def _redact_output(output: ModelOutput, redactor: Redactor) -> ModelOutput:
    """An answer without secrets, the same object where it has none."""
    changed: dict[str, Any] = {}
    text = redactor.values(output.text)
    if text is not output.text:
        changed["text"] = text
    elif not (
        output.raw or output.reasoning or output.refusal or output.tool_calls or output.parts or output.transcript
    ):
        return output
    for name in _OTHER_PARTS:
        value = getattr(output, name)
        if value and (cleaned := redactor.data(value)) != value:
            changed[name] = cleaned
    if output.tool_calls:
        calls = tuple(replace(call, arguments=redactor.data(call.arguments)) for call in output.tool_calls)
        if calls != output.tool_calls:
            changed["tool_calls"] = calls
    for name in ("parts", "transcript"):
        value = getattr(output, name)
        # Written once and looked through as a whole: a transcript may be long, and hardly ever holds a secret.
        if value and redactor.values(written := encode(value)) is not written:
            changed[name] = tuple(redactor.data(value))
    return replace(output, **changed) if changed else output


# Of an answer, what may hold a secret beside its text.
_OTHER_PARTS = ("raw", "reasoning", "refusal")


class _AttachmentCache:
    """The contents that messages name by digest; those of the last samples are kept, as rows often share them."""

    _MOST = 64

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._kept: dict[str, bytes] = {}

    def __call__(self, added: Mapping[str, object]) -> dict[str, bytes]:
        digests = find_digests(canonical_json(added.get("messages", [])))
        return {digest: self._read(digest) for digest in digests}

    def _read(self, digest: str) -> bytes:
        if digest not in self._kept:
            found = self._reader.attachment(digest)
            if found is None:
                raise ConfigurationError(f"the attachment {digest[:12]} of this run is not in the store")
            while len(self._kept) >= self._MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[digest] = found.content
        return self._kept[digest]


def _conversation(row: Mapping[str, object]) -> str:
    """What a provider takes from a row beside the prompt."""
    said = [row.get("system_prompt"), row.get("messages")]
    # Those that most rows do not have add nothing to the key of a row without them.
    said += [{name: row[name]} for name in _OTHERS_SAID if row.get(name) is not None]
    return canonical_json(said) if any(said) else ""


# Of a row, what decides an answer beside its messages.
_OTHERS_SAID = ("sampling", CONTINUATIONS, BASELINES, "tools", "tool_choice")


def _how_to_bound(provider: str) -> str:
    if provider in ("python", "http", "https", "command", "agent"):
        return (
            "give the most that an answer may cost with the option most_cost_usd=0.05 (what an answer says in `cost_usd` is "
            "counted), or is_local=true if it costs nothing"
        )
    return NAME_THE_PRICE
