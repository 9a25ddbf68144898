"""Gives judges a way to ask: through the engine, with every reply stored before it is used and never paid for twice."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

from themis.core.codec import decode, encode
from themis.core.entities import EvaluationRecord, GenerationRecord, GenerationTask, PromptRender, PromptSpec
from themis.core.fingerprint import digest, fingerprint
from themis.core.redaction import Redactor
from themis.core.tokens import count_tokens
from themis.evaluation.judges import Reply, judges_in
from themis.exceptions import ConfigurationError, EvaluationError
from themis.experiment.cost import Budget, Price, is_paid, longest_answer, price_of
from themis.experiment.manifest import call_identity
from themis.generation.blocking import BlockingProvider
from themis.generation.engine import Engine, EngineSettings, Job, Outcome
from themis.generation.providers import create_provider, parse_model
from themis.interfaces import Metric
from themis.storage import ExperimentStorage
from themis.storage.writing import RunWriter

__all__ = ["bound_judges", "collecting_less", "judge_together"]

_FEWER_COLLECTIONS = 50_000


@contextmanager
def collecting_less() -> Iterator[None]:
    """With thousands of records in hand the collector would walk them all again and again and find nothing."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _FEWER_COLLECTIONS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def bound_judges(
    metrics: Sequence[Metric],
    storage: ExperimentStorage,
    writer: RunWriter,
    settings: EngineSettings,
    budget: Budget | None = None,
) -> Iterator[None]:
    """Binds every judge among the metrics to its model while the block runs."""
    with ExitStack() as stack:
        for judge in judges_in(metrics):
            spec = parse_model(judge.model, judge.options)
            executor = create_provider(spec.provider, judge.options, model_identifier=spec.identifier)
            identity = call_identity(
                provider=spec.provider,
                model=spec.identifier,
                options=judge.options,
                sampling=judge.sampling,
                seed=None,
            )
            calls = stack.enter_context(closing(BlockingProvider(executor, settings.timeout_seconds)))
            price = price_of(spec.identifier, is_local=bool(getattr(executor, "is_local", False)))
            if budget is not None and price is None:
                raise ConfigurationError(
                    f"budget_usd needs the price of the judge {judge.name}, and {spec.identifier!r} is not in the price "
                    "table; add it to a file and name that file in THEMIS_PRICES"
                )
            engine = Engine(calls, replace(settings, counts_tokens=is_paid(price)))
            ask = _StoredAsk(spec, judge.sampling, fingerprint(identity), engine, storage, writer, price, budget)
            ask.redactor = Redactor(judge.options)
            judge.bind(ask)
        yield


def judge_together(pipeline: Any, records: Sequence[GenerationRecord], workers: int) -> list[EvaluationRecord]:
    """Judges records, in threads where metrics do more than compute."""
    if not getattr(pipeline, "is_slow", False):
        return [_judge_one(pipeline, record) for record in records]
    with ThreadPoolExecutor(workers) as threads:
        return list(threads.map(lambda record: _judge_one(pipeline, record), records))


def _judge_one(pipeline: Any, record: GenerationRecord) -> EvaluationRecord:
    judge = getattr(pipeline, "judge", None)
    if judge is not None:
        judged: EvaluationRecord = judge(record)
        return judged
    # A user's own pipeline has only `evaluate`.
    found: list[EvaluationRecord] = list(pipeline.evaluate([record]).records)
    if len(found) == 1:
        return found[0]
    return EvaluationRecord(record.task.metadata.get("dataset_id"), [], ["the pipeline returned no record"])


class _StoredAsk:
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
        render = PromptRender(PromptSpec("judge", ""), prompt)
        task = GenerationTask(render, self._spec, self._sampling, {"dataset_id": key})
        outcome, cost = self._paid(Job(0, 0, key, task))
        error, output = outcome.record.error, outcome.record.output
        if error is not None or output is None:
            reason = error.message if error is not None else "no output"
            self._writer.add_judge_cost(outcome.calls, cost)
            raise EvaluationError(self.redactor.text(f"the judge did not answer: {reason}"))
        text = self.redactor.values(output.text)
        body = encode({"text": text, "usage": output.usage, "model": self._spec.model_key})
        self._writer.save_judgement(key, body, calls=outcome.calls, cost_usd=cost)
        return Reply(text, stored=False)

    def _paid(self, job: Job) -> tuple[Outcome, float | None]:
        """The outcome and what it cost, if the budget allows the most that it could."""
        if self._budget is None or self._price is None:
            outcome = self._engine.complete(job)
            return outcome, None if self._price is None else self._cost(outcome)
        most = self._price.of(count_tokens(job.task.prompt.text), longest_answer(self._sampling.max_tokens))
        # Many threads ask at once: what each may spend is set aside before it does.
        if not self._budget.reserve(most):
            raise EvaluationError(f"budget_usd={self._budget.cap_usd:g} allows no further judge call")
        cost = 0.0
        try:
            outcome = self._engine.complete(job)
            cost = self._cost(outcome)
        finally:
            self._budget.spend(cost, reserved_usd=most)
        return outcome, cost

    def _cost(self, outcome: Outcome) -> float:
        assert self._price is not None
        return self._price.of(outcome.prompt_tokens, outcome.completion_tokens)
