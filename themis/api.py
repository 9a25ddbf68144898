"""The doors of the product in Python: `evaluate`, `evaluate_async`, `resume`, and `perform` behind all of them.

Arguments become a specification, the specification a driver, and the lifecycle of runs does the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from themis.config.specification import SampleSpecification, Specification, load_specification
from themis.core.entities import EvaluationRecord, ExperimentReport, GenerationRecord
from themis.core.registry import Registry, nearest
from themis.exceptions import ConfigurationError
from themis.experiment.assemble import load_sample_specification
from themis.generation.limits import RateLimit
from themis.generation.templates import PromptTemplate
from themis.integrations.trackers import as_observers
from themis.runs.lifecycle import CURRENT_HANDLE, Driver, RunHandle, run
from themis.runs.observers import Observer
from themis.runs.prices import Budget
from themis.runs.progress import make_bar
from themis.storage import DEFAULT_STORAGE, ExperimentStorage

__all__ = ["evaluate", "evaluate_async", "load_for_resuming", "make_driver", "perform", "resume"]

logger = logging.getLogger(__name__)

# What makes a kind of run, by the kind of its specification; the other kind is not imported.
_DRIVERS: Registry[Callable[..., Driver]] = Registry(
    "kind of run",
    {"samples": "themis.experiment.assemble:assemble", "memory": "themis.memory.assembling:assemble_driver"},
)
# Options of the provider that may be given beside the others.
_PROVIDER_OPTIONS = (
    *("api_key", "base_url", "api_base", "api_version", "timeout", "n_parallel", "organization", "api_type"),
    *("region_name", "reasoning_effort", "thinking_budget", "strict_parameters", "prompt_cache"),
)


def evaluate(
    benchmark_or_dataset: str | Path | Iterable[Mapping[str, Any]] | Any,
    *,
    model: str | Callable[..., Any] | object,
    limit: int | None = None,
    prompt: str | Sequence[Mapping[str, object]] | PromptTemplate | None = None,
    prompt_syntax: str | None = None,
    system_prompt: str | None = None,
    attach: Sequence[str] = (),
    tools: Sequence[object] = (),
    user: Mapping[str, object] | None = None,
    script: object = None,
    max_turns: int = 10,
    max_sample_tokens: int | None = None,
    max_sample_seconds: float | None = None,
    max_sample_usd: float | None = None,
    reference_field: str | None = None,
    dataset_id_field: str | None = None,
    metrics: Sequence[Any] | None = None,
    extractor: Any = None,
    reducer: str | None = None,
    evaluation_pipeline: Any = None,
    judge: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    top_p: float | None = None,
    stop: Sequence[str] | None = None,
    seed: int | None = None,
    num_samples: int | None = None,
    shots: int | None = None,
    run_id: str | None = None,
    experiment: str | None = None,
    resume: bool = True,
    allow_drift: bool = False,
    cache: str = "run",
    storage: str | Path | Any = None,
    storage_path: str | Path | None = None,
    storage_backend: Any = None,
    execution_backend: Any = None,
    workers: int = 4,
    max_retries: int = 3,
    timeout_seconds: float = 600.0,
    deadline_seconds: float = 1800.0,
    rate_limit: Mapping[str, float] | RateLimit | float | None = None,
    budget_usd: float | None = None,
    batch: bool = False,
    batch_size: int | None = None,
    batch_poll_seconds: float = 1.0,
    batch_deadline_seconds: float = 86_400.0,
    keep_going: bool = False,
    provider_options: Mapping[str, Any] | None = None,
    max_records_in_memory: int | None = None,
    cluster_field: str | None = None,
    truncated_limit: float = 0.05,
    data: str | Path | None = None,
    sample: bool = False,
    task_options: Mapping[str, object] | None = None,
    on_result: Callable[[GenerationRecord], Any] | None = None,
    stop_when: Callable[[EvaluationRecord], str | None] | None = None,
    progress: bool | None = None,
    observers: Sequence[Any] = (),
    tags: Mapping[str, str] | None = None,
    **options: Any,
) -> ExperimentReport:
    """Asks a model every row of a dataset, judges the answers, stores everything, and reports.

    The same call with the same `run_id` goes on where an earlier one stopped and never makes a finished call again.

    Args:
        benchmark_or_dataset: A benchmark's name, a task of lm-eval as `lm-eval:TASK`, a file (`.jsonl`, `.json`, `.csv`, `.tsv`,
            `.parquet`), a table (a DataFrame of pandas or polars, a dataset of the Hub, an Arrow table), or any
            iterable of dicts.
        model: Who answers: a model as `provider/model` (`openai/gpt-4o`, `local/smollm2`, `fake/perfect`); a function, plain or
            async, a class or an object of yours, which gets the prompt, the messages or the row and returns a text or a dict; a
            function by name (`python:app.py:answer`); an application behind an address (`http://localhost:8000/ask`); a program
            (`command:./app`); an agent that was written for memory runs, or its name (`agent:rag(openai/gpt-4o)`).
        limit: Only the first so many rows; all by default.
        prompt: Text over the row's fields, such as `"Q: {question}"`, or messages of such texts. A benchmark has its own; rows of
            yours need one, unless they have `messages`, or whoever answers gets the row.
        prompt_syntax: `format` or `jinja`; by default known from the text.
        system_prompt: What the system says to every row; a row's own field `system_prompt` wins.
        attach: The row's fields that name images and files (paths, addresses, bytes) to be sent with the prompt.
        tools: What the model may call while it answers: functions, classes, and names such as `python`, `shell`, `mcp:COMMAND`.
        user: Somebody who talks to the model after the prompt, played by another model: `{"model": ..., "persona": ..., "goal":
            ...}`.
        script: A function of a row that yields what is said to the model, with the actions of a memory test; or its name.
        max_turns: The most answers of the model in one sample, where it takes several.
        max_sample_tokens: The most tokens of one sample, all its steps together.
        max_sample_seconds: The most time of one sample.
        max_sample_usd: The most that one sample may cost.
        reference_field: The row's field with the expected answer. By default `answer`, or `reference`; `""` for rows that have
            none and are only answered.
        dataset_id_field: The row's field that names it; `id` by default, the row's number where it has none.
        metrics: Names, or objects of your own; what the benchmark is judged by, or `exact_match`, by default.
        extractor: How the answer is read from the reply, a name or an object; the whole reply by default.
        reducer: How several attempts at a row become one score: `average` (the default), `best`, `majority`, `pass@3`.
        evaluation_pipeline: A pipeline of your own in place of `metrics`, `extractor` and `reducer`.
        judge: The model that grades answers, as `provider/model`, for benchmarks whose answers a model grades (`simpleqa`).
        temperature: Of sampling, 0 for the likeliest answer. This and the next four are the benchmark's protocol's by default;
            for rows of yours 0, 512, none, none and 1.
        max_tokens: Longest answer; -1 for no limit.
        top_p: Of sampling; not sent where nobody says one.
        stop: Texts at which an answer ends.
        num_samples: Attempts at each row.
        shots: Worked examples before the question, of those that the benchmark's dataset has; the protocol's number by default.
        seed: Of sampling, for providers that take one.
        run_id: Name of the run; made from the time by default.
        experiment: The group of runs that this one belongs to; `default` by default.
        resume: With False a stored run of this id is archived and the run starts anew.
        allow_drift: Where inputs have changed, start anew but take every stored answer that still fits.
        cache: Where stored answers may come from: this `run`, the whole `store`, or `off`.
        storage: A folder, a database's address or an `ExperimentStorage`; `.cache/experiments` by default.
        storage_path: Another name for `storage`.
        storage_backend: A backend that has an `experiment_storage`.
        execution_backend: Where calls are made: `local`, `sequential`, `ray`, or a backend of yours.
        workers: Calls in flight at once, at most.
        max_retries: Calls for one answer in total; 0 and 1 both mean that nothing is tried again.
        timeout_seconds: For one call.
        deadline_seconds: For one answer with all its retries.
        rate_limit: Requests a minute, or `{"requests_per_minute": ..., "tokens_per_minute": ...}`.
        budget_usd: Never spend more than this on the run, earlier sessions included.
        batch: Ask in batches, which OpenAI, Anthropic and servers that speak as they do work off within a day for half the price.
            The run waits for them; stopped or killed, the same call finds them again and submits nothing twice.
        batch_size: Items in a batch at most; by default as many as the provider takes (50,000 or 100,000).
        batch_poll_seconds: Before a batch is first looked at; later looks are further apart, up to sixty times that.
        batch_deadline_seconds: A batch that takes longer, a day by default, is cancelled, and the rest of it asked singly.
        keep_going: Go on after five equal failures in a row that every further call would meet too (a wrong key, model,
            address or option); by default the run ends there as failed.
        provider_options: Options of the provider, such as `api_key`, `base_url` or `system_prompt`.
        max_records_in_memory: How many records the report shows; all, read as they are looked at, by default.
        cluster_field: The row's field that groups rows which are not independent, for the interval.
        truncated_limit: The share of answers that may be cut off at `max_tokens` before the report says, ahead of its means, that
            they are too low.
        data: A file or folder to read a benchmark's rows from.
        sample: Use the benchmark's few shipped rows: a smoke test, not a result.
        task_options: Of an `lm-eval:TASK`: `include` (folders with tasks of your own), `chat`, `multiturn`, `system`, `seed`,
            `generation`, `metadata`, and `unsafe_code` where a task runs what the model writes.
        on_result: Called with each sample's record after it is stored; an exception ends the run.
        stop_when: Called with each verdict; a text ends the run, as the reason.
        progress: Whether to draw a bar on stderr or in the notebook; by default if someone is watching.
        observers: Told of the run while it goes on: trackers (`"wandb"`, `"mlflow"`, ...) and observers of your own.
        tags: Names and values that lists of runs can be filtered by.
        **options: Options of the provider, for short: `api_key`, `base_url`, `timeout`, ...

    Returns:
        The report: metrics with intervals, records and failures read from the store, costs.

    Raises:
        ConfigurationError: An argument is wrong, or the run exists with other inputs; nothing was called.
        RunFailedError: Nothing was answered or judged, or every further call would fail; has the report.
        RunInterrupted: The user stopped the run; everything finished is stored.

    >>> import themis
    >>> rows = [{"id": "1", "question": "2+2?", "answer": "4"}, {"id": "2", "question": "3+4?", "answer": "7"}]
    >>> report = themis.evaluate(rows, model="fake/perfect", prompt="{question}", storage="runs", progress=False)
    >>> report.metric("exact_match").mean
    1.0
    """
    asked = SampleSpecification(
        dataset=benchmark_or_dataset,
        model=model,
        limit=limit,
        prompt=prompt,
        prompt_syntax=prompt_syntax,
        system_prompt=system_prompt,
        attach=attach,
        tools=tools,
        user=user,
        script=script,
        max_turns=max_turns,
        max_sample_tokens=max_sample_tokens,
        max_sample_seconds=max_sample_seconds,
        max_sample_usd=max_sample_usd,
        reference_field=reference_field,
        dataset_id_field=dataset_id_field,
        metrics=metrics,
        extractor=extractor,
        reducer=reducer,
        evaluation_pipeline=evaluation_pipeline,
        judge=judge,
        temperature=temperature,
        max_tokens=max_tokens,
        top_p=top_p,
        stop=stop,
        seed=seed,
        num_samples=num_samples,
        shots=shots,
        run_id=run_id,
        experiment=experiment,
        resume=resume,
        allow_drift=allow_drift,
        cache=cache,
        execution_backend=execution_backend,
        workers=workers,
        max_retries=max_retries,
        timeout_seconds=timeout_seconds,
        deadline_seconds=deadline_seconds,
        **_parse_rate(rate_limit),
        budget_usd=budget_usd,
        batch=batch,
        batch_size=batch_size,
        batch_poll_seconds=batch_poll_seconds,
        batch_deadline_seconds=batch_deadline_seconds,
        keep_going=keep_going,
        provider_options=_parse_options(options, provider_options),
        max_records_in_memory=max_records_in_memory,
        cluster_field=cluster_field,
        truncated_limit=truncated_limit,
        data=None if data is None else str(data),
        sample=sample,
        task_options=task_options,
        tags=tags,
    )
    store = _open_storage(storage, storage_path, storage_backend)
    return perform(asked, store, on_result=on_result, stop_when=stop_when, progress=progress, observers=observers)


async def evaluate_async(benchmark_or_dataset: Any, *, model: object, **arguments: Any) -> ExperimentReport:
    """`evaluate` for code that runs on an event loop.

    Cancelling it stops the run as Ctrl-C does: calls in flight are finished and saved, the run is `interrupted`, then
    `asyncio.CancelledError` is raised here; other tasks of the loop go on. Cancelled again, it does not wait for those calls.

    Args:
        benchmark_or_dataset: As for `evaluate`.
        model: As for `evaluate`.
        **arguments: The others of `evaluate`.

    Returns:
        The report, as of `evaluate`.

    >>> import asyncio, themis
    >>> asyncio.run(themis.evaluate_async("demo", model="fake/perfect", run_id="first", progress=False))
    ExperimentReport(first: 10 samples; ExactMatch=1.0000)
    """
    handle = RunHandle()

    def work() -> ExperimentReport | KeyboardInterrupt:
        CURRENT_HANDLE.set(handle)
        try:
            return evaluate(benchmark_or_dataset, model=model, **arguments)
        except KeyboardInterrupt as stopped:
            # It ends whatever event loop it is raised in, with everything that runs there.
            return stopped

    # No task of its own, which a loop that closes would cancel while the thread goes on.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)
    try:
        outcome = await asyncio.shield(running)
    except asyncio.CancelledError:
        await _wait_until_saved(running, handle)
        raise
    if isinstance(outcome, KeyboardInterrupt):
        raise asyncio.CancelledError(str(outcome))
    return outcome


async def _wait_until_saved(running: asyncio.Future[ExperimentReport | KeyboardInterrupt], handle: RunHandle) -> None:
    """Whoever cancels again does not wait for the calls in flight."""
    while not running.done():
        handle.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([running])
    if not running.cancelled() and (error := running.exception()) is not None:
        logger.error("the cancelled run ended with %s: %s", type(error).__name__, error)


def resume(
    run_id: str,
    *,
    storage: str | Path | ExperimentStorage = DEFAULT_STORAGE,
    workers: int | None = None,
    budget_usd: float | None = None,
    execution_backend: object = None,
    batch: bool | None = None,
    cancel_batches: bool = False,
    keep_going: bool = False,
    max_records_in_memory: int | None = None,
    on_result: Callable[[GenerationRecord], Any] | None = None,
    stop_when: Callable[[EvaluationRecord], str | None] | None = None,
    progress: bool | None = None,
    observers: Sequence[object] = (),
) -> ExperimentReport:
    """Goes on with a stored run of either kind from what the store knows of it.

    Args:
        run_id: The run.
        storage: Where it is kept; `.cache/experiments` by default.
        workers: Calls in flight at once, in place of what the run was started with; likewise the next two.
        budget_usd: The most that the run may cost, what it has cost included.
        execution_backend: Where calls are made; for sample runs.
        batch: Whether what is left is asked in batches, in place of what the run was started with; for sample runs. What is in
            batches already is waited for either way.
        cancel_batches: Cancel what is in batches, keep what they have answered, and ask nothing more.
        keep_going: Go on after failures that every further call would meet too; for sample runs.
        max_records_in_memory: How many records the report shows; all, read as they are looked at, by default.
        on_result: Called with the record of each sample or ended test after it is stored.
        stop_when: Called with each verdict; a text ends the run, as the reason.
        progress: Whether to draw a bar on stderr or in the notebook; by default if someone is watching.
        observers: Told of the run while it goes on.

    Returns:
        The report on the whole run, earlier sessions included.

    Raises:
        ConfigurationError: The store alone is not enough to go on; says what is missing.

    >>> import themis
    >>> stop = lambda record: "seen enough" if record.sample_id == "2" else None
    >>> report = themis.evaluate("demo", model="fake/perfect", run_id="first", stop_when=stop, progress=False)
    >>> resume("first", progress=False)
    ExperimentReport(first: 10 samples; ExactMatch=1.0000)
    """
    store = storage if isinstance(storage, ExperimentStorage) else ExperimentStorage(storage)
    of_samples = {
        "execution_backend": execution_backend,
        "batch": batch,
        "cancel_batches": cancel_batches or None,
        "keep_going": keep_going or None,
    }
    changes = {
        "workers": workers,
        "budget_usd": budget_usd,
        **of_samples,
        "max_records_in_memory": max_records_in_memory,
    }
    asked = load_for_resuming(store, run_id, {name: value for name, value in changes.items() if value is not None})
    return perform(asked, store, on_result=on_result, stop_when=stop_when, progress=progress, observers=observers)


def load_for_resuming(store: ExperimentStorage, run_id: str, changes: Mapping[str, Any]) -> Specification:
    """What a stored run was asked to be, with what is to be done otherwise this time.

    Args:
        store: Where the run is kept.
        run_id: The run.
        changes: Settings that decide no answer, such as `workers` and `budget_usd`, by name.

    Raises:
        ConfigurationError: The store alone is not enough to go on, or runs of this kind have no such setting.
    """
    loaded = load_specification(store.get_run(run_id))
    for name in changes:
        if not hasattr(loaded, name):
            raise ConfigurationError(f"run {run_id!r} is a {loaded.kind} run, which has no {name}")
    if isinstance(loaded, SampleSpecification):
        loaded = load_sample_specification(store, run_id)
    return replace(loaded, **dict(changes))


def perform(
    asked: Specification,
    store: ExperimentStorage,
    *,
    on_result: Callable[[GenerationRecord], Any] | None = None,
    stop_when: Callable[[EvaluationRecord], str | None] | None = None,
    confirm: Callable[[str], bool] = lambda question: True,
    progress: bool | None = None,
    observers: Sequence[object] = (),
    within: Budget | None = None,
) -> ExperimentReport:
    """Does what a specification asks for: a run of either kind, started or resumed.

    Args:
        asked: What to do.
        store: Where it is kept.
        on_result: Called with the record of each sample or ended test after it is stored.
        stop_when: Called with each verdict; a text ends the run, as the reason.
        confirm: Asked before stored definitions of memory tests are used.
        progress: Whether to draw a bar on stderr or in the notebook; by default if someone is watching.
        observers: Told of the run while it goes on.
        within: A budget that this run shares with others, beside its own.

    Returns:
        The report on the whole run.

    Raises:
        ConfigurationError: Something asked for cannot be done; nothing was called.

    >>> asked = SampleSpecification(dataset="demo", model="fake/perfect", run_id="first")
    >>> perform(asked, ExperimentStorage("runs"), progress=False)
    ExperimentReport(first: 10 samples; ExactMatch=1.0000)
    """
    for name, function in (("on_result", on_result), ("stop_when", stop_when)):
        if function is not None and not callable(function):
            raise ConfigurationError(f"{name} is a function of one record, got {function!r}")
    watching: list[Observer] = [] if observers == () else as_observers(observers)
    driver = make_driver(asked, store, confirm)
    if progress is not False and (bar := make_bar(progress)) is not None:
        watching.append(bar)  # last, so that what others print stands above it
    return run(driver, store, watching, on_result=on_result, stop_when=stop_when, within=within)


def make_driver(
    asked: Specification,
    store: ExperimentStorage,
    confirm: Callable[[str], bool] = lambda question: True,
    *,
    keep: bool = True,
) -> Driver:
    """Everything that a run of either kind is made of; what is wrong with it is found here, or when its items are read.

    Args:
        asked: What to do.
        store: Where it is kept.
        confirm: Asked before stored definitions of memory tests are used.
        keep: Store definitions that are made anew; without it nothing is written.

    Raises:
        ConfigurationError: Something asked for cannot be done.
    """
    if not isinstance(asked, Specification):
        raise ConfigurationError(f"a specification is of samples or of memory tests, got {type(asked).__name__}")
    of_definitions = {"reuse": confirm, "keep": keep} if asked.kind == "memory" else {}
    return _DRIVERS.get(asked.kind)(asked, store, **of_definitions)


# --- arguments --------------------------------------------------------------------------------------------------------


def _parse_options(options: Mapping[str, object], provider_options: object) -> Any:
    """The provider's options, from both places where they may stand."""
    for name in options:
        if name not in _PROVIDER_OPTIONS:
            known = [*(evaluate.__kwdefaults__ or {}), *_PROVIDER_OPTIONS]
            raise ConfigurationError(
                f"Unsupported option(s): {name}{nearest(name, known)}. Options of the provider go into provider_options={{...}}"
            )
    given = {name: value for name, value in options.items() if value is not None}
    if "base_url" in given and "api_base" not in given:
        given["api_base"] = given.pop("base_url")
    if provider_options is not None and not isinstance(provider_options, Mapping):
        return provider_options  # refused with the others
    return {**given, **(provider_options or {})}


def _parse_rate(value: Mapping[str, float] | RateLimit | float | None) -> dict[str, Any]:
    known = ("requests_per_minute", "tokens_per_minute")
    if value is None:
        return {}
    if isinstance(value, RateLimit):
        return {name: getattr(value, name) for name in known}
    if isinstance(value, int | float):
        return {"requests_per_minute": float(value)}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"rate_limit is requests a minute, or a dict of limits, got {value!r}")
    for name in value:
        if name not in known:
            raise ConfigurationError(f"unknown rate limit {name!r}{nearest(name, known)}; known: {', '.join(known)}")
        if value[name] is None:
            raise ConfigurationError(f"{name} is a number greater than 0, got None; leave it out for no limit")
    return dict(value)


def _open_storage(storage: object, storage_path: str | Path | None, storage_backend: object) -> ExperimentStorage:
    if storage is not None and storage_path is not None:
        raise ConfigurationError("storage and storage_path mean the same; give one of them")
    chosen = storage_backend if storage_backend is not None else storage if storage is not None else storage_path
    if chosen is None or isinstance(chosen, str | Path):
        return ExperimentStorage(chosen if chosen is not None else DEFAULT_STORAGE)
    unwrapped = getattr(chosen, "experiment_storage", chosen)
    if not isinstance(unwrapped, ExperimentStorage):
        raise ConfigurationError(
            f"storage is a folder, a database's address or an ExperimentStorage, got {type(chosen).__name__}"
        )
    return unwrapped
