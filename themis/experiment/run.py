"""The driver of sample runs: ask every row that has no answer, commit what comes, judge it meanwhile.

The page to read to understand a sample run; `runs.lifecycle` calls it. Rows are an iterator, work in flight is bounded, and
the report is built from the store, so memory does not grow with the dataset. A finished call is committed before anyone is
told of it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from themis.config.specification import STORED_AS, SampleSpecification
from themis.core.codec import canonical_json
from themis.core.continuations import BASELINES, CONTINUATIONS
from themis.core.entities import ExperimentReport, GenerationRecord, ModelSpec, Result, SamplingConfig
from themis.core.fingerprint import digest, fingerprint
from themis.core.redaction import Redactor
from themis.core.tokens import count_prompt_tokens
from themis.evaluation.pipeline import EvaluationPipeline
from themis.exceptions import ConfigurationError
from themis.experiment.datasets import RowReader, Source
from themis.generation.attempts import TRIPS_AFTER, Request, explain_no_scorer, find_scorer, is_lost, own_words
from themis.generation.engine import Engine, EngineSettings, Waiting
from themis.generation.remote import RemotePool
from themis.interfaces import StatelessTaskExecutor
from themis.presets.protocols import Protocol
from themis.runs.judging import JudgingQueue, connect_judges, open_evaluation
from themis.runs.lifecycle import Driver, OpenRun, Stop
from themis.runs.manifest import (
    build_reproducibility_manifest,
    call_identity,
    diff_identity,
    evaluation_identity,
    manifest_hash,
    run_identity,
)
from themis.runs.observers import Progress
from themis.runs.prices import Price, PricedCalls, max_completion_tokens, refuse_unknown_cost
from themis.runs.report import build_report, why_not_answered, why_not_judged
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import Frame, Item, whole_record
from themis.storage.writing import RunDescription

logger = logging.getLogger(__name__)

_LATE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What decides answers beside the rows and the prompt. `deviations` say what is not as the protocol has it."""

    sampling: SamplingConfig
    attempts: int = 1
    reducer: str | None = None
    shots: int = 0
    protocol: Protocol | None = None
    deviations: tuple[str, ...] = ()


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

    judges: list[Engine] = field(default_factory=list, init=False)
    _reader: RowReader = field(init=False)
    _rows_are_spent: bool = field(default=False, init=False)
    _session: _Session | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.model = self.spec.model_key
        self.benchmark = self.source.benchmark
        self._reader = self._row_reader()

    @cached_property
    def evaluation(self) -> tuple[str, dict[str, Any]]:
        """The fingerprint of how answers are judged, and what it is made of: as it is before the first is."""
        return evaluation_identity(self.pipeline)

    # --- what the run is ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        if hasattr(self.pipeline, "check_machine"):
            self.pipeline.check_machine()
        if hasattr(self.pipeline, "check_attempts"):
            self.pipeline.check_attempts(self.asked_with.attempts)

    def find_drift(self, storage: ExperimentStorage) -> list[str]:
        if iter(self.source.rows) is self.source.rows and self.specification.allow_drift:
            # A generator can be read only once, and its rows are needed for the items.
            return ["dataset: given as a generator, so it cannot be compared and used too"]
        reader = self._row_reader()
        for _ in reader:
            pass
        self._rows_are_spent = iter(self.source.rows) is self.source.rows
        return diff_identity(storage.reader(str(self.specification.run_id)).identity, _identify_run(self, reader))

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
        return _describe_run(self, self._reader)

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
            no_scorer="" if find_scorer(self.executor) else explain_no_scorer(self.specification.model),
        )

    # --- what it does -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def connect(self, run: OpenRun) -> Iterator[None]:
        """Lets metrics that ask a model do so while the run goes on, from the budget that they share with it."""
        if run.budget.is_capped and self.price is None:
            refuse_unknown_cost(f"the model {self.spec.identifier!r}")
        run.redactor = Redactor(self.provider_options)
        metrics = getattr(self.pipeline, "metrics", ())
        with connect_judges(metrics, run.storage, run.writer, self.settings, run.budget) as self.judges:
            yield

    def work(self, run: OpenRun) -> None:
        self._session = _Session(self, run)
        with closing(self._session):
            run.notify_start()
            self._session.show_stored()
            self._session.generate()
            self._session.judge_rest()

    def stop(self, *, at_once: bool) -> int:
        return 0 if self._session is None else self._session.stop(at_once=at_once)

    def progress(self) -> Progress:
        return Progress() if self._session is None else self._session.progress()

    def report(self, run: OpenRun) -> ExperimentReport:
        return build_report(
            run.storage, run.run_id, pipeline=self.pipeline, keep=self.specification.max_records_in_memory
        )

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
        self._call_identity = fingerprint(_identify_calls(driver))
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
        self._waiting: Waiting | None = None
        self._priced: PricedCalls | None = None
        if run.budget.is_capped and driver.price is not None:
            self._priced = PricedCalls(run.budget, driver.price)
        self._engine = Engine(
            driver.executor,
            driver.settings,
            admit=self._admit if self._priced else None,
            on_result=self._on_result if self._priced else None,
            caller=self._judging,
        )
        if run.stopping:
            self._engine.stop()

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
        # Closed here and not when it is collected: then calls would still be under way when the process ends.
        with closing(self._batches(self._requests())) as batches:
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

    def _requests(self) -> Iterator[Request]:
        driver = self._driver
        template, frame, executor = driver.source.template, self._reader.frame, driver.executor
        wanted = range(self._attempts)
        for sample, stored in self._reader.unfinished(self._attempts):
            text = template.fill(sample.row)
            added = driver.source.complete(sample.row, text)
            material = _conversation({**sample.row, **added}) if executor.prompt_only else sample.fingerprint
            if added and not executor.prompt_only:
                material = digest(material, canonical_json(added))
            attempts = [attempt for attempt in wanted if attempt not in stored]
            if stored or len(attempts) > 1:
                self._missing[sample.position] = len(attempts)
            if stored:
                self._partly_stored.add(sample.position)
            for attempt in attempts:
                key = digest(self._call_identity, text, material, str(attempt))
                task = frame.task(sample.item_id, sample.row, text, attempt)
                task.metadata.update(added)
                request = Request(sample.position, attempt, key, task)
                if not self._reuse(request):
                    yield request

    def _batches(self, requests: Iterator[Request]) -> Generator[list[Result]]:
        driver = self._driver
        backend, make = driver.execution_backend, driver.make_executor
        if backend is None:
            return self._engine.run(requests)
        if hasattr(backend, "open_workers") and make is not None:
            return self._engine.run(requests, RemotePool(backend, make, driver.executor, driver.settings.workers))
        return self._engine.run_through(backend, requests)

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
            result.cost_usd = None if price is None else price.of(result.prompt_tokens, result.completion_tokens)
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
            text = self._run.redactor.values(output.text)
            raw = output.raw if output.raw is None else self._run.redactor.data(output.raw)
            if text is not output.text or raw is not output.raw:
                record.output = type(output)(text, raw, output.usage)
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
        left = self._reader.count_samples() - self._reader.count_records()[0] if self._priced.exhausted else 0
        if left:
            reached = f"{budget.reached}; {left} samples are left"
        elif budget.given_up:
            reached = f"{budget.reached}; {budget.given_up} questions to judges are left"
        if reached:
            self._run.end_early(Stop(reached, larger_budget_usd=budget.larger_cap_usd()))

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
        task = request.task
        tokens = count_prompt_tokens(task.prompt.text, task.metadata)
        most = max_completion_tokens(task.sampling.max_tokens)
        return self._priced.admit((request.position, request.attempt), tokens, most)

    def _on_result(self, result: Result) -> None:
        assert self._priced is not None
        call = (result.position, result.attempt)
        if result.record.error is not None and is_lost(result.record.error):
            self._priced.forfeit(call)
            return
        self._priced.settle(call, result.prompt_tokens, result.completion_tokens)


def _conversation(row: Mapping[str, Any]) -> str:
    """What a provider takes from a row beside the prompt."""
    said = [row.get("system_prompt"), row.get("messages")]
    # Those that most rows do not have add nothing to the key of a row without them.
    said += [{name: row[name]} for name in ("sampling", CONTINUATIONS, BASELINES) if row.get(name) is not None]
    return canonical_json(said) if any(said) else ""


# --- what a sample run is known by: everything that decides an answer, and the manifest of what made it -----------------


def _identify_calls(run: SampleDriver) -> dict[str, str]:
    """Everything but the prompt that could change an answer."""
    # Where the calls go, which the environment may have decided; behind the # is a digest of the key.
    endpoint = str(getattr(run.executor, "account", "")).partition("#")[0]
    return call_identity(
        endpoint=endpoint,
        provider=run.spec.provider,
        model=run.spec.identifier,
        options=run.provider_options,
        sampling=run.asked_with.sampling,
        seed=run.specification.seed,
    )


def _identify_run(run: SampleDriver, reader: RowReader) -> dict[str, str]:
    """What a resumed run must have in common with the stored one; the reader has read all rows."""
    return run_identity(
        _identify_calls(run),
        prompt=_identify_prompt(run, reader),
        dataset=f"{reader.count} rows, {reader.fingerprint[:16]}",
        num_samples=run.asked_with.attempts,
        reference_field=reader.found_reference,
        protocol=_identify_protocol(run.asked_with),
    )


def _identify_protocol(asked_with: Settings) -> str:
    protocol = asked_with.protocol
    if protocol is None:
        return ""
    return "; ".join([f"{protocol.benchmark} version {protocol.version}", *asked_with.deviations])


def _identify_prompt(run: SampleDriver, reader: RowReader) -> str:
    """The template's text, and where code fills it what that made of the rows."""
    template = run.source.template
    if not reader.filled_prompts:
        return template.template
    return f"{reader.filled_prompts[:12]} made by {type(template).__qualname__}: {template.template}"


def _describe_run(run: SampleDriver, reader: RowReader) -> RunDescription:
    """What the run is; the reader has read all rows."""
    manifest = _manifest(run, reader)
    stamp = manifest_hash(manifest)
    frame = Frame(
        model=run.spec,
        sampling=run.asked_with.sampling,
        prompt=run.source.template.spec,
        id_field=run.source.id_field,
        reference_field=reader.found_reference,
        manifest_hash=stamp,
        attempts=run.asked_with.attempts,
    )
    config = {
        "reproducibility_manifest": manifest,
        "manifest_hash": stamp,
        "task": frame.to_config(),
        STORED_AS: run.specification.to_stored(),
    }
    return RunDescription(identity=_identify_run(run, reader), config=config, manifest_hash=stamp)


def _manifest(run: SampleDriver, reader: RowReader) -> dict[str, Any]:
    pipeline = run.pipeline
    extractor = getattr(pipeline, "extractor", pipeline)
    metrics = getattr(pipeline, "metrics", ())
    return build_reproducibility_manifest(
        model=run.spec.identifier,
        provider=run.spec.provider,
        provider_options=run.provider_options,
        sampling=run.asked_with.sampling,
        num_samples=run.asked_with.attempts,
        evaluation_config={
            "metrics": sorted(f"{_class_name(metric)}:{metric.name}" for metric in metrics)
            or sorted(pipeline.metric_names),
            "extractor": _class_name(extractor),
            "fingerprint": run.evaluation[0],
        },
        seeds={"provider_seed": run.provider_options.get("seed"), "sampling_seed": run.specification.seed},
        dataset_fingerprint=reader.fingerprint,
        prompt_fingerprint=fingerprint(_identify_prompt(run, reader)),
        benchmark_id=run.source.benchmark,
        dataset_source=run.source.description,
        protocol=_describe_protocol(run.asked_with),
        shots=run.asked_with.shots,
    )


def _describe_protocol(asked_with: Settings) -> dict[str, object] | None:
    protocol = asked_with.protocol
    return None if protocol is None else {**protocol.to_dict(), "deviations": list(asked_with.deviations)}


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
