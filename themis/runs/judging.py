"""Judges answers beside the calls, and gives judges a way to ask: through the engine, with every reply stored before it is
used and never paid for twice. `rejudge` does so with stored answers."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from themis.core.codec import decode, digest, encode, fingerprint
from themis.core.entities import (
    EvaluationRecord,
    ExperimentReport,
    GenerationRecord,
    GenerationTask,
    PromptRender,
    PromptSpec,
    Result,
)
from themis.core.redaction import Redactor
from themis.core.tokens import count_tokens
from themis.core.values import HOOK
from themis.evaluation.judges import Reply, find_judges
from themis.exceptions import EvaluationError, RunFailedError
from themis.generation.attempts import Request, own_words
from themis.generation.engine import Caller, Engine, EngineSettings
from themis.generation.pools import BlockingProvider
from themis.generation.providers import create_provider, parse_model
from themis.interfaces import Metric
from themis.runs.lifecycle import gc_paused, stop_on_signals
from themis.runs.manifest import call_identity, evaluation_identity
from themis.runs.prices import Budget, Price, is_paid, max_completion_tokens, price_of, refuse_unknown_cost
from themis.runs.report import build_report, summarise_run, why_not_judged
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import ScoreRow, score_rows
from themis.storage.writing import RunWriter

logger = logging.getLogger(__name__)

# How long judging goes on before answers are looked for again, and how many samples may wait for it.
_TURN_SECONDS = 0.002
_MOST_WAITING = 1_024
_MOST_WAITING_FOR_THREADS = 4
_STORED_TOGETHER = 512
_STORED_AFTER_SECONDS = 0.25
# How often whoever waits for threads looks whether the run is stopped.
_LOOK_SECONDS = 0.25


def open_evaluation(writer: RunWriter, run_id: str, identity: tuple[str, Mapping[str, object]]) -> int:
    """The id of a way of judging a run, which becomes its current one; says what of it cannot be recognised again."""
    fingerprint, config = identity
    unknown = config.get("unknown")
    if isinstance(unknown, list) and unknown:
        logger.warning(
            "%s: what makes the scores is not wholly known: %s. Every answer is judged anew each time. To keep scores, give "
            "the object an attribute or method %s that says what it is, or pass what decides as a parameter of the metric",
            run_id,
            "; ".join(map(str, unknown)),
            HOOK,
        )
    return writer.open_evaluation(fingerprint, config)


@contextmanager
def connect_judges(
    metrics: Sequence[Metric],
    storage: ExperimentStorage,
    writer: RunWriter,
    settings: EngineSettings,
    budget: Budget | None = None,
) -> Iterator[list[Engine]]:
    """Binds every judge among the metrics to its model while the block runs; the engines through which they ask."""
    engines: list[Engine] = []
    with ExitStack() as stack:
        for judge in find_judges(metrics):
            spec = parse_model(judge.model, judge.provider_options)
            executor = create_provider(spec.provider, judge.provider_options, model_identifier=spec.identifier)
            identity = call_identity(
                provider=spec.provider,
                model=spec.identifier,
                options=judge.provider_options,
                sampling=judge.sampling,
                seed=None,
            )
            calls = stack.enter_context(closing(BlockingProvider(executor, settings.timeout_seconds)))
            price = price_of(spec.identifier, spec.provider, is_local=bool(getattr(executor, "is_local", False)))
            engine = Engine(calls, replace(settings, counts_tokens=is_paid(price)))
            ask = _CachedJudgeClient(
                spec, judge.sampling, fingerprint(identity), engine, storage, writer, price, budget
            )
            ask.redactor = Redactor(judge.provider_options)
            judge.bind(ask)
            engines.append(engine)
        yield engines


def check_judges(metrics: Sequence[Metric]) -> None:
    """Raises where a metric asks a model that cannot be asked: of an unknown name, without its key."""
    for judge in find_judges(metrics):
        spec = parse_model(judge.model, judge.provider_options)
        create_provider(spec.provider, judge.provider_options, model_identifier=spec.identifier)


def refuse_unpriced_judges(metrics: Sequence[Metric]) -> None:
    """Raises where a metric asks a model whose price is not known."""
    for judge in find_judges(metrics):
        if price_of_judge(judge.model, judge.provider_options) is None:
            named = parse_model(judge.model, judge.provider_options).identifier
            refuse_unknown_cost(f"the judge {judge.name}, {named!r}")


def price_of_judge(model: str, options: Mapping[str, object]) -> Price | None:
    """What the tokens of a judge's model cost, where that is known."""
    spec = parse_model(model, options)
    executor = create_provider(spec.provider, options, model_identifier=spec.identifier)
    return price_of(spec.identifier, spec.provider, is_local=bool(getattr(executor, "is_local", False)))


class JudgingQueue(Caller):
    """Judges answered samples while calls go on, and stores what comes of it.

    A few at a time between commits of answers, or in threads where metrics do more than compute: an answer that arrives is
    never kept waiting for a verdict on another. Verdicts are stored together; those that a kill takes are made again.
    """

    def __init__(
        self,
        pipeline: Any,
        writer: RunWriter,
        evaluation: int,
        workers: int,
        *,
        on_judged: Callable[[EvaluationRecord], None] = lambda judged: None,
        on_stored: Callable[[list[EvaluationRecord]], None] = lambda judged: None,
    ) -> None:
        # A user's own pipeline has only `evaluate`.
        self._judge: Callable[[GenerationRecord], EvaluationRecord] = getattr(pipeline, "judge", None) or partial(
            _judge_alone, pipeline
        )
        self._expected: Callable[[GenerationRecord, EvaluationRecord], Iterable[str]] = getattr(
            pipeline, "expected_metrics", lambda record, judged: pipeline.metric_names
        )
        self._writer = writer
        self._evaluation = evaluation
        self._on_judged = on_judged
        self._on_stored = on_stored
        self._threads = ThreadPoolExecutor(workers) if getattr(pipeline, "is_slow", False) else None
        self._most = _MOST_WAITING if self._threads is None else _MOST_WAITING_FOR_THREADS * workers
        self._waiting: deque[tuple[int, GenerationRecord]] = deque()
        self._under_way: dict[Future[EvaluationRecord], tuple[int, GenerationRecord]] = {}
        self._judged: list[EvaluationRecord] = []
        self._rows: list[ScoreRow] = []
        self._stored_at = time.monotonic()

    def is_busy(self) -> bool:
        return bool(self._waiting)

    def is_full(self) -> bool:
        return len(self._waiting) + len(self._under_way) >= self._most

    def add(self, position: int, record: GenerationRecord) -> None:
        if self._threads is None:
            self._waiting.append((position, record))
        else:
            self._under_way[self._threads.submit(self._judge, record)] = (position, record)

    def add_when_room(
        self, position: int, record: GenerationRecord, is_stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """Adds a record, then judges until another one may come, unless it is stopped meanwhile."""
        self.add(position, record)
        while self.is_full() and not is_stopped():
            self._await_threads()
            self.work()

    def work(self) -> None:
        """Judges for a moment in this thread, takes what the threads have finished, and stores it when it is time."""
        end = time.perf_counter() + _TURN_SECONDS
        while self._waiting:
            position, record = self._waiting.popleft()
            self._take(position, record, self._judge(record))
            if time.perf_counter() > end:
                break
        for future in [future for future in self._under_way if future.done()]:
            self._take(*self._under_way.pop(future), future.result())
        if len(self._judged) >= _STORED_TOGETHER or time.monotonic() - self._stored_at > _STORED_AFTER_SECONDS:
            self._store()

    def finish(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Judges and stores the rest, unless it is stopped meanwhile."""
        while self._waiting or self._under_way:
            if is_stopped():
                self.stop()
                return
            self._await_threads()
            self.work()
        self._store()

    def _await_threads(self) -> None:
        if self._under_way:
            wait(self._under_way, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)

    def stop(self) -> None:
        """Starts nothing more and stores what is judged; the rest is judged when the run is taken up again."""
        self._store()
        self.close()

    def close(self) -> None:
        """Starts nothing more."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _take(self, position: int, record: GenerationRecord, judged: EvaluationRecord) -> None:
        self._rows.extend(score_rows(position, judged, self._expected(record, judged), record.task.metadata))
        self._judged.append(judged)
        self._on_judged(judged)

    def _store(self) -> None:
        rows, judged = self._rows, self._judged
        self._rows, self._judged, self._stored_at = [], [], time.monotonic()
        if judged:
            self._writer.commit_scores(self._evaluation, rows)
            self._on_stored(judged)


def _judge_alone(pipeline: Any, record: GenerationRecord) -> EvaluationRecord:
    found: list[EvaluationRecord] = list(pipeline.evaluate([record]).records)
    if len(found) == 1:
        return found[0]
    return EvaluationRecord(record.task.metadata.get("dataset_id"), [], ["the pipeline returned no record"])


class _CachedJudgeClient:
    """Asks the judge's model. A reply is committed, with its cost, before the judge sees it."""

    def __init__(
        self,
        spec: Any,
        sampling: Any,
        identity: str,
        engine: Engine,
        storage: ExperimentStorage,
        writer: RunWriter,
        price: Price | None,
        budget: Budget | None,
    ) -> None:
        self.redactor = Redactor()
        self._spec = spec
        self._sampling = sampling
        self._identity = identity
        self._engine = engine
        self._storage = storage
        self._writer = writer
        self._price = price
        self._budget = budget

    def __call__(self, prompt: str, *, anew: bool = False) -> Reply:
        key = digest(self._identity, prompt)
        stored = None if anew else self._storage.find_judgement(key)
        if stored is not None:
            return Reply(str(decode(stored)["text"]), stored=True)
        if (tripped := self._engine.breaker.tripped_by) is not None:
            raise EvaluationError(self.redactor.text(f"the judge is not asked any more: {own_words(tripped)}"))
        render = PromptRender(PromptSpec("judge", ""), prompt)
        task = GenerationTask(render, self._spec, self._sampling, {"dataset_id": key})
        result = self._pay(Request(0, 0, key, task))
        error, output = result.record.error, result.record.output
        if error is not None or output is None:
            reason = own_words(error) if error is not None else "no output"
            self._writer.add_judge_cost(result.calls, result.cost_usd)
            raise EvaluationError(self.redactor.text(f"the judge did not answer: {reason}"))
        text = self.redactor.values(output.text)
        body = encode({"text": text, "usage": output.usage, "model": self._spec.model_key})
        self._writer.save_judgement(key, body, calls=result.calls, cost_usd=result.cost_usd)
        return Reply(text, stored=False)

    def _pay(self, request: Request) -> Result:
        """The result with what it cost, if the budget allows the most that it could."""
        if self._budget is None or self._price is None or not self._budget.is_capped:
            return self._complete(request)
        most = self._price.most(
            count_tokens(request.task.prompt.text), max_completion_tokens(self._sampling.max_tokens)
        )
        # Many threads ask at once: what each may spend is set aside before it does.
        with self._budget.reserving(most) as reserved:
            if reserved is None:
                raise EvaluationError(f"{self._budget.reached}: this answer is not judged")
            result = self._complete(request)
            reserved.cost_usd = result.cost_usd
            return result

    def _complete(self, request: Request) -> Result:
        result = self._engine.complete(request)
        tokens = (result.prompt_tokens, result.completion_tokens, result.cached_tokens, result.cache_write_tokens)
        result.cost_usd = None if self._price is None else self._price.of(*tokens)
        return result


# --- judging again -----------------------------------------------------------------------------------------------------


def rejudge(
    storage: ExperimentStorage, run_id: str, pipeline: Any, tell: Callable[[int], None] = lambda judged: None
) -> ExperimentReport:
    """Makes the pipeline's evaluation the run's current one, judging what it has not judged yet."""
    if hasattr(pipeline, "check_machine"):
        pipeline.check_machine()
    if hasattr(pipeline, "check_attempts"):
        pipeline.check_attempts(storage.reader(run_id).frame.attempts)
    stored = storage.get_run(run_id)
    # A run that failed because nothing could be judged is whole once it is.
    answered = stored.status is RunStatus.FAILED and stored.successful_generations == stored.total_samples
    status = RunStatus.COMPLETED if answered else stored.status
    with (
        storage.open_run(run_id) as writer,
        connect_judges(pipeline.metrics, storage, writer, EngineSettings()),
        gc_paused(),
    ):
        # Not before the judges can be asked: the run keeps the scores it has if they cannot.
        evaluation = open_evaluation(writer, run_id, evaluation_identity(pipeline))
        queue = JudgingQueue(
            pipeline, writer, evaluation, EngineSettings().workers, on_stored=lambda judged: tell(len(judged))
        )
        # A flag, for an interrupt in the midst of a future's lock would leave its thread waiting for ever.
        stopped = threading.Event()
        with stop_on_signals(stopped.set), closing(queue):
            for position, record in storage.reader(run_id).unjudged(evaluation):
                queue.add_when_room(position, record, stopped.is_set)
                if stopped.is_set():
                    break
            queue.finish(stopped.is_set)
        if stopped.is_set():
            raise KeyboardInterrupt
        report = build_report(storage, run_id, evaluation, pipeline=pipeline)
        not_judged = why_not_judged(report)
        status = RunStatus.FAILED if not_judged else status
        writer.finish(status, summary=summarise_run(report), error=not_judged or None)
    if not not_judged and report.metadata["total_samples"] and not report.metadata["successful_generations"]:
        status = RunStatus.FAILED
        not_judged = f"nothing of run {run_id!r} was answered, so there is nothing to judge: themis resume asks again"
    if not_judged:
        report.metadata.update(status=status.value, stopped=not_judged)
        raise RunFailedError(run_id, not_judged, report)
    return report
