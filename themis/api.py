"""`evaluate`: turns its arguments into one Experiment and runs it.

Everything a user can get wrong is found here or while the rows are stored, before the first model call.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import datetime
import json
import logging
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from themis.backends.execution import EXECUTION_BACKENDS, LocalExecutionBackend, SequentialExecutionBackend
from themis.core.codec import jsonable
from themis.core.entities import (
    EvaluationRecord,
    ExperimentReport,
    GenerationRecord,
    GenerationTask,
    ModelSpec,
    SamplingConfig,
)
from themis.core.redaction import REDACTED, Redactor, redact, redact_options
from themis.core.registry import nearest
from themis.evaluation.extractors import EXTRACTORS, IdentityExtractor
from themis.evaluation.metrics import METRICS
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.registering import resolve_extractor, resolve_metric
from themis.evaluation.strategies import strategy_from_name
from themis.exceptions import ConfigurationError, DatasetError
from themis.experiment.experiment import Experiment, Observer
from themis.experiment.mirror import BackendMirror
from themis.experiment.progress import ProgressBar, someone_watches
from themis.experiment.run import run
from themis.experiment.tables import TableRows, is_table
from themis.generation.attempts import Retry
from themis.generation.breaker import TRIPS_AFTER
from themis.generation.engine import EngineSettings
from themis.generation.limits import RateLimit
from themis.generation.providers import PROVIDERS, parse_model, provider_accepts, provider_maker
from themis.generation.templates import PromptTemplate
from themis.integrations.trackers import watchers
from themis.presets import BenchmarkPreset, get_benchmark_preset
from themis.presets.catalogue import CATALOGUE
from themis.presets.loading import READABLE_SUFFIXES, read_rows
from themis.runs.prices import is_paid, price_of
from themis.runs.resuming import NEEDS_PROGRAM
from themis.runs.stopping import RunHandle
from themis.storage import DEFAULT_STORAGE, ExperimentStorage
from themis.storage.runs import new_run_id, validate_run_id

__all__ = ["evaluate", "evaluate_async", "resume", "stored_pipeline"]

logger = logging.getLogger(__name__)

_PROVIDER_OPTIONS = (
    *("api_key", "base_url", "api_base", "api_version", "timeout", "n_parallel", "organization", "api_type"),
    *("region_name", "system_prompt"),
)


def evaluate(
    benchmark_or_dataset: str | Path | Iterable[Mapping[str, Any]] | Any,
    *,
    model: str,
    limit: int | None = None,
    prompt: str | PromptTemplate | None = None,
    reference_field: str | None = None,
    dataset_id_field: str | None = None,
    metrics: Sequence[Any] | None = None,
    extractor: Any = None,
    reducer: str | None = None,
    evaluation_pipeline: Any = None,
    temperature: float = 0.0,
    max_tokens: int = 512,
    top_p: float = 0.95,
    seed: int | None = None,
    num_samples: int = 1,
    run_id: str | None = None,
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
    rate_limit: Mapping[str, float] | RateLimit | None = None,
    budget_usd: float | None = None,
    keep_going: bool = False,
    provider_options: Mapping[str, Any] | None = None,
    max_records_in_memory: int | None = None,
    cluster_field: str | None = None,
    data: str | Path | None = None,
    sample: bool = False,
    on_result: Callable[[GenerationRecord], Any] | None = None,
    stop_when: Callable[[EvaluationRecord], str | None] | None = None,
    progress: bool | None = None,
    observers: Sequence[Any] = (),
    tags: Mapping[str, str] | None = None,
    **options: Any,
) -> ExperimentReport:
    """Asks a model every row of a dataset, judges the answers, stores everything, and reports.

    `benchmark_or_dataset` is a benchmark's name, a file (`.jsonl`, `.json`, `.csv`, `.tsv`, `.parquet`), a table (a
    DataFrame of pandas or polars, a dataset of the Hub, an Arrow table) or any iterable of dicts. With `data` a
    benchmark's rows are read from that file or folder; with `sample=True` they are the few that are shipped: a smoke
    test, not a result.
    The same call with the same `run_id` goes on where an earlier one stopped and never makes a finished call again.
    `observers` hear of the run while it goes on: trackers ("wandb", "mlflow", ...) and observers of your own.

    Five equal failures in a row that every further call would meet too (a wrong key, model, address or option) end the run
    unless `keep_going`. A run that ends so, or in which nothing was answered or judged, raises `RunFailedError`.
    """
    return _evaluate(handle=None, **locals())


async def evaluate_async(benchmark_or_dataset: Any, *, model: str, **arguments: Any) -> ExperimentReport:
    """`evaluate` for code that runs on an event loop.

    Cancelling it stops the run as Ctrl-C does: calls that are under way are finished and saved, the run is `interrupted`,
    then `asyncio.CancelledError` is raised here; other tasks of the loop go on. Cancelled again, it does not wait for
    those calls.
    """
    handle = RunHandle()

    def work() -> ExperimentReport | KeyboardInterrupt:
        known = _signature_defaults()
        extra = {name: value for name, value in arguments.items() if name not in known}
        named = {name: arguments.get(name, default) for name, default in known.items()}
        try:
            return _evaluate(
                handle=handle, benchmark_or_dataset=benchmark_or_dataset, model=model, options=extra, **named
            )
        except KeyboardInterrupt as stopped:
            # It ends whatever event loop it is raised in, with everything that runs there.
            return stopped

    # No task of its own, which a loop that closes would cancel while the thread goes on.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)
    try:
        outcome = await asyncio.shield(running)
    except asyncio.CancelledError:
        await _stopped(running, handle)
        raise
    if isinstance(outcome, KeyboardInterrupt):
        raise asyncio.CancelledError(str(outcome))
    return outcome


async def _stopped(running: asyncio.Future[ExperimentReport | KeyboardInterrupt], handle: RunHandle) -> None:
    """Waits until the run is saved; whoever cancels again does not wait for the calls that are under way."""
    while not running.done():
        handle.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([running])
    if not running.cancelled() and (error := running.exception()) is not None:
        logger.error("the cancelled run ended with %s: %s", type(error).__name__, error)


def resume(
    run_id: str, *, storage: str | Path | ExperimentStorage = DEFAULT_STORAGE, **changes: Any
) -> ExperimentReport:
    """Goes on with a stored run from what the store knows of it; `changes` are arguments of `evaluate` that only decide
    how calls are made (workers, budget_usd, progress, ...)."""
    store = storage if isinstance(storage, ExperimentStorage) else ExperimentStorage(storage)
    stored = store.get_run(run_id)
    if stored.kind != "samples":
        raise ConfigurationError(
            f"run {run_id!r} is a {stored.kind} run; the command that started it goes on where it stopped: "
            "themis memory run -c CONFIGURATION -a AGENT"
        )
    arguments = _stored_arguments(store, run_id)
    dataset = arguments.pop("dataset")
    arguments["provider_options"] = _without_redacted(arguments.pop("provider_options", {}))
    if not store.is_planned(run_id) and dataset is None:
        raise ConfigurationError(
            f"run {run_id!r} stopped before its dataset was stored, and it came from Python; run that program again"
        )
    lost_rows = store.count_lost_rows(run_id)
    if lost_rows and dataset is None:
        raise ConfigurationError(
            f"run {run_id!r} has lost {lost_rows} rows of its dataset, which came from Python; run that program again: it "
            "stores them anew and asks only for what is missing"
        )
    named = {**_signature_defaults(), **arguments, "storage": store, "run_id": run_id, **changes}
    rows: Any = dataset
    if store.is_planned(run_id) and not lost_rows:
        rows, frame = _StoredRows(store, run_id), store.reader(run_id).frame
        # What is stored has been checked, and may have been a template made in Python.
        prompt = PromptTemplate(frame.prompt.name, frame.prompt.template, metadata={"as_written": True})
        named.update(limit=None, reference_field=frame.reference_field or "", prompt=prompt)
    return _evaluate(handle=None, benchmark_or_dataset=rows, options={}, benchmark=stored.benchmark, **named)


def stored_pipeline(store: ExperimentStorage, run_id: str, **changes: Any) -> Any:
    """How a stored run is judged, with other metrics, extractor or reducer where given."""
    given = {**_signature_defaults(), **_stored_arguments(store, run_id, judged_anew=bool(changes.get("metrics")))}
    given.update({name: value for name, value in changes.items() if value is not None})
    benchmark = store.get_run(run_id).benchmark
    preset = get_benchmark_preset(benchmark) if benchmark else None
    return _pipeline(
        given,
        default_metrics=preset.metrics if preset else ("exact_match",),
        default_extractor=preset.extractor if preset else None,
    )


def _stored_arguments(store: ExperimentStorage, run_id: str, *, judged_anew: bool = False) -> dict[str, Any]:
    arguments = dict(store.get_run(run_id).config_snapshot.get("invocation", {}))
    if not arguments:
        raise ConfigurationError(
            f"run {run_id!r} was not made by evaluate, so it cannot be taken up from the store alone"
        )
    arguments.pop(NEEDS_PROGRAM, None)
    if arguments.pop("custom_pipeline", False) and not judged_anew:
        raise ConfigurationError(
            f"run {run_id!r} was judged by a pipeline made in Python; run that program again, or name metrics to judge it by"
        )
    _refuse_lost_secrets(run_id, arguments, judged_anew=judged_anew)
    return arguments


def _without_redacted(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keys are not stored; they come from the environment again."""
    return {name: value for name, value in options.items() if value != REDACTED}


def _refuse_lost_secrets(run_id: str, arguments: Mapping[str, Any], *, judged_anew: bool) -> None:
    """A secret inside an option or a metric, such as a header, comes from nowhere again."""
    options = _without_redacted(arguments.get("provider_options", {}))
    lost = [f"the option {name}" for name, value in options.items() if REDACTED in json.dumps(value, default=str)]
    if not judged_anew:
        metrics = arguments.get("metrics", ())
        lost += [f"the metric {metric.partition('(')[0]}" for metric in metrics if REDACTED in metric]
    if lost:
        raise ConfigurationError(
            f"run {run_id!r} was given a secret in {', '.join(lost)}, and secrets are not stored; run the command that started "
            "it again: it goes on. Written as ${NAME}, the name of an environment variable, it would be found again"
        )


def _signature_defaults() -> dict[str, Any]:
    return dict(evaluate.__kwdefaults__ or {})


def _evaluate(
    *,
    handle: RunHandle | None,
    benchmark_or_dataset: Any,
    model: str,
    benchmark: str | None = None,
    **given: Any,
) -> ExperimentReport:
    """`benchmark` says what stored rows are of, when a run is taken up again."""
    _check(given)
    store = _storage(given)
    spec = parse_model(model, {**given["options"], **(given["provider_options"] or {})})
    provider_options = _provider_options(spec, given)
    source = _source(benchmark_or_dataset, given, benchmark)
    wiring: dict[str, Any] = {}
    if spec.provider == "replay":
        wiring["answers"] = _stored_answers(store, spec.identifier)
    make_executor = provider_maker(spec.provider, {**provider_options, **wiring}, model_identifier=spec.identifier)
    executor = make_executor()
    workers, backend = _execution(given)
    price = price_of(spec.identifier, is_local=bool(getattr(executor, "is_local", False)))
    experiment = Experiment(
        run_id=validate_run_id(given["run_id"]) if given["run_id"] is not None else _fresh_run_id(),
        rows=source.rows,
        template=source.template,
        model=spec,
        executor=executor,
        pipeline=source.pipeline,
        sampling=SamplingConfig(given["temperature"], given["top_p"], given["max_tokens"]),
        num_samples=given["num_samples"],
        seed=given["seed"],
        provider_options=provider_options,
        id_field=source.id_field,
        reference_field=source.reference_field,
        cluster_field=given["cluster_field"],
        limit=source.limit,
        benchmark=source.benchmark,
        dataset_source=source.description,
        engine=EngineSettings(
            workers=workers,
            retry=Retry(attempts=max(1, given["max_retries"])),
            timeout_seconds=given["timeout_seconds"],
            deadline_seconds=given["deadline_seconds"],
            rate=_rate(given["rate_limit"]),
            counts_tokens=is_paid(price),
            stop_after_failures=None if given["keep_going"] else TRIPS_AFTER,
        ),
        execution_backend=backend,
        make_executor=make_executor,
        price=price,
        budget_usd=given["budget_usd"],
        tags=redact(dict(given["tags"] or {})),
        resume=given["resume"],
        allow_drift=given["allow_drift"],
        cache=given["cache"],
        max_records_in_memory=given["max_records_in_memory"],
        on_result=given["on_result"],
        stop_when=given["stop_when"],
        invocation={
            **_invocation(benchmark_or_dataset, model, given, provider_options),
            NEEDS_PROGRAM: _why_program_is_needed(spec, source, given, provider_options),
        },
        handle=handle,
    )
    return run(experiment, store, _observers(given, experiment))


# --- what is evaluated ----------------------------------------------------------------------------------------------


class _Source:
    """A dataset with everything that belongs to it: prompt, fields, how it is judged."""

    def __init__(
        self,
        *,
        rows: Iterable[Mapping[str, Any]],
        template: PromptTemplate,
        pipeline: Any,
        id_field: str,
        reference_field: str | None,
        limit: int | None,
        benchmark: str | None = None,
        description: Mapping[str, Any],
    ) -> None:
        self.rows = rows
        self.template = template
        self.pipeline = pipeline
        self.id_field = id_field
        self.reference_field = reference_field
        self.limit = limit
        self.benchmark = benchmark
        self.description = description


def _source(dataset: Any, given: Mapping[str, Any], benchmark: str | None) -> _Source:
    if (given["data"] is not None or given["sample"]) and (not isinstance(dataset, str) or _is_row_file(dataset)):
        raise ConfigurationError("data and sample say where a benchmark's rows come from; here the rows are given")
    if benchmark is not None:
        return _benchmark(get_benchmark_preset(benchmark), given, rows=dataset)
    if isinstance(dataset, BenchmarkPreset):
        return _benchmark(dataset, given)
    if isinstance(dataset, str | Path) and _is_row_file(dataset):
        path = Path(dataset)
        if not path.exists():
            raise DatasetError(f"no file {str(dataset)!r}; a benchmark's name has no ending like {path.suffix!r}")
        return _custom(_FileRows(path), given, {"kind": "file", "path": str(dataset)})
    if isinstance(dataset, str):
        return _benchmark(get_benchmark_preset(dataset, data=given["data"], sample=given["sample"]), given)
    if hasattr(dataset, "iter_samples"):
        return _custom(dataset.iter_samples(), given, {"kind": type(dataset).__name__})
    if is_table(dataset):
        return _custom(TableRows(dataset), given, {"kind": type(dataset).__name__})
    if isinstance(dataset, Mapping) or not isinstance(dataset, Iterable):
        raise DatasetError(
            f"a dataset is a benchmark's name, a file or an iterable of dicts, got {type(dataset).__name__}"
            f"{_parts_hint(dataset)}"
        )
    return _custom(dataset, given, {"kind": type(dataset).__name__, **_hub_facts(dataset)})


def _parts_hint(dataset: Any) -> str:
    """A mapping of names to rows, as the Hub's splits come, holds datasets and is none."""
    parts = dataset if isinstance(dataset, Mapping) else {}
    named = [repr(name) for name, part in parts.items() if isinstance(part, Iterable) and not isinstance(part, str)]
    if named and all(isinstance(part, list) and part and not isinstance(part[0], Mapping) for part in parts.values()):
        return "; its parts are columns, so give them as a table, such as pandas.DataFrame(...), or as rows"
    return f"; give one of its parts: {', '.join(named)}" if named else ""


class _FileRows:
    """The rows of a file, which can be read more than once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Any:
        return read_rows(self._path)


class _StoredRows:
    """The rows of a stored run, which can be read more than once."""

    def __init__(self, store: ExperimentStorage, run_id: str) -> None:
        self._store, self._run_id = store, run_id

    def __iter__(self) -> Any:
        return self._store.load_dataset(self._run_id)


def _is_row_file(dataset: str | Path) -> bool:
    return isinstance(dataset, Path) or dataset.lower().endswith(READABLE_SUFFIXES)


def _hub_facts(dataset: Any) -> dict[str, Any]:
    """Where a Hugging Face dataset came from, as far as it says."""
    info = getattr(dataset, "info", None)
    facts = {
        "name": getattr(info, "dataset_name", None) or getattr(info, "builder_name", None),
        "config": getattr(info, "config_name", None),
        "version": str(getattr(info, "version", None) or "") or None,
        "split": str(dataset.split) if getattr(dataset, "split", None) else None,
    }
    return {name: value for name, value in facts.items() if value}


def _custom(rows: Iterable[Mapping[str, Any]], given: Mapping[str, Any], description: Mapping[str, Any]) -> _Source:
    prompt = given["prompt"]
    if prompt is None:
        raise ConfigurationError('rows of your own need a prompt, for example prompt="Q: {question}\\nA:"')
    return _Source(
        rows=rows,
        template=_template(prompt),
        pipeline=_pipeline(given, default_metrics=("exact_match",), default_extractor=None),
        id_field=given["dataset_id_field"] or "id",
        reference_field=given["reference_field"],
        limit=given["limit"],
        description=description,
    )


def _benchmark(preset: BenchmarkPreset, given: Mapping[str, Any], rows: Any = None) -> _Source:
    template = preset.prompt_template if given["prompt"] is None else _template(given["prompt"])
    reference = preset.reference_field if given["reference_field"] is None else given["reference_field"]
    return _Source(
        rows=preset.load_dataset(given["limit"]) if rows is None else rows,
        template=template,
        pipeline=_pipeline(given, default_metrics=preset.metrics, default_extractor=preset.extractor),
        id_field=given["dataset_id_field"] or preset.dataset_id_field,
        reference_field=reference,
        # The loader has been told already; it may stand for more rows than it was asked for.
        limit=given["limit"],
        benchmark=preset.name,
        description={"kind": "benchmark", "name": preset.name},
    )


def _template(prompt: str | PromptTemplate) -> PromptTemplate:
    return prompt if isinstance(prompt, PromptTemplate) else PromptTemplate("default", prompt)


def _pipeline(given: Mapping[str, Any], *, default_metrics: Sequence[Any], default_extractor: Any) -> Any:
    custom = given["evaluation_pipeline"]
    if custom is not None:
        clashing = [name for name in ("metrics", "extractor", "reducer") if given[name] is not None]
        if clashing:
            raise ConfigurationError(f"evaluation_pipeline has its own {clashing[0]}; give one or the other")
        missing = [n for n in ("evaluate", "evaluation_fingerprint", "metric_names") if not hasattr(custom, n)]
        if missing:
            raise ConfigurationError(f"evaluation_pipeline {type(custom).__name__} has no {', '.join(missing)}")
        return custom
    extractor = given["extractor"] if given["extractor"] is not None else default_extractor
    metrics = [resolve_metric(metric) for metric in given["metrics"] or default_metrics]
    strategy = None
    if given["reducer"] is not None:
        strategy = strategy_from_name(given["reducer"], metrics, attempts=given["num_samples"])
    elif given["num_samples"] > 1:
        strategy = strategy_from_name("average")
    return EvaluationPipeline(
        extractor=IdentityExtractor() if extractor is None else resolve_extractor(extractor),
        metrics=metrics,
        strategy_resolver=None if strategy is None else _always(strategy),
    )


def _always(strategy: Any) -> Callable[[GenerationRecord], Any]:
    def resolve(record: GenerationRecord) -> Any:
        return strategy

    return resolve


# --- how and where --------------------------------------------------------------------------------------------------


def _check(given: Mapping[str, Any]) -> None:
    unknown = [name for name in given["options"] if name not in _PROVIDER_OPTIONS]
    if unknown:
        known = [*_signature_defaults(), *_PROVIDER_OPTIONS]
        hints = ", ".join(f"{name}{nearest(name, known)}" for name in unknown)
        raise ConfigurationError(
            f"Unsupported option(s): {hints}. Options of the provider go into provider_options={{...}}"
        )
    defaults = _signature_defaults()
    for what, names, fits in _EXPECTED:
        for name in names:
            left_open = given[name] is None and defaults[name] is None
            if not left_open and not fits(given[name]):
                raise ConfigurationError(f"{name} is {what}, got {given[name]!r}")
    if given["cache"] not in ("run", "store", "off"):
        raise ConfigurationError(f"cache is 'run', 'store' or 'off', got {given['cache']!r}")
    if given["metrics"] is not None and (isinstance(given["metrics"], str) or not given["metrics"]):
        raise ConfigurationError(f"metrics is a list of names, such as ['exact_match'], got {given['metrics']!r}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and not math.isnan(value))


_EXPECTED: tuple[tuple[str, tuple[str, ...], Callable[[Any], bool]], ...] = (
    (
        "a whole number of at least 1",
        ("num_samples", "workers", "limit", "max_records_in_memory"),
        lambda value: _whole(value) and value >= 1,
    ),
    ("a whole number of at least 0", ("max_retries",), lambda value: _whole(value) and value >= 0),
    ("a whole number", ("max_tokens", "seed"), _whole),
    ("at least 1, or -1 for no limit", ("max_tokens",), lambda value: value != 0),
    ("a number of at least 0", ("temperature",), lambda value: _number(value) and value >= 0),
    ("a number from 0 to 1", ("top_p",), lambda value: _number(value) and 0 <= value <= 1),
    (
        "a number greater than 0",
        ("timeout_seconds", "deadline_seconds", "budget_usd"),
        lambda value: _number(value) and value > 0,
    ),
    ("a dict", ("provider_options", "tags"), lambda value: isinstance(value, Mapping)),
    ("a function of one record", ("on_result", "stop_when"), callable),
    ("a name, such as 'average' or 'pass@3'", ("reducer",), lambda value: isinstance(value, str)),
)


def _provider_options(spec: ModelSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in given["options"].items() if value is not None}
    if "base_url" in options and "api_base" not in options:
        options["api_base"] = options.pop("base_url")
    options.update(given["provider_options"] or {})
    if given["seed"] is not None and "seed" not in options and provider_accepts(spec.provider, "seed", options):
        options["seed"] = given["seed"]
    return options


def _storage(given: Mapping[str, Any]) -> ExperimentStorage:
    named = [name for name in ("storage", "storage_path") if given[name] is not None]
    if len(named) > 1:
        raise ConfigurationError("storage and storage_path mean the same; give one of them")
    chosen = given[named[0]] if named else None
    backend = given["storage_backend"]
    if chosen is not None and not isinstance(chosen, str | Path):
        backend, chosen = chosen, None
    if backend is not None:
        unwrapped = getattr(backend, "experiment_storage", backend)
        if isinstance(unwrapped, ExperimentStorage):
            return unwrapped
        if not hasattr(unwrapped, "start_run"):
            raise ConfigurationError(
                f"storage_backend {type(backend).__name__} has neither experiment_storage nor start_run"
            )
    return ExperimentStorage(chosen if chosen is not None else DEFAULT_STORAGE)


def _execution(given: Mapping[str, Any]) -> tuple[int, Any]:
    """How many workers, and the backend to map through; our own local ones are what the engine does anyway."""
    backend = given["execution_backend"]
    if backend is None or backend == "local":
        return given["workers"], None
    if isinstance(backend, str):
        backend = EXECUTION_BACKENDS.get(backend)()
    if not callable(getattr(backend, "map", None)):
        raise ConfigurationError(f"execution_backend {type(backend).__name__} has no method map(func, items, ...)")
    if type(backend) in (LocalExecutionBackend, SequentialExecutionBackend):
        return min(backend.workers, given["workers"]), None
    return given["workers"], backend


def _rate(value: Mapping[str, float] | RateLimit | None) -> RateLimit:
    if value is None:
        return RateLimit()
    if isinstance(value, RateLimit):
        return value
    if isinstance(value, int | float):
        value = {"requests_per_minute": float(value)}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"rate_limit is requests a minute, or a dict of limits, got {value!r}")
    known = ("requests_per_minute", "tokens_per_minute")
    for name in value:
        if name not in known:
            raise ConfigurationError(f"unknown rate limit {name!r}{nearest(name, known)}; known: {', '.join(known)}")
        if not (_number(value[name]) and value[name] > 0):
            raise ConfigurationError(
                f"{name} is a number greater than 0, got {value[name]!r}; leave it out for no limit"
            )
    return RateLimit(**value)


def _observers(given: Mapping[str, Any], experiment: Experiment) -> list[Observer]:
    observers: list[Observer] = []
    if given["progress"] or (given["progress"] is None and someone_watches()):
        observers.append(ProgressBar())
    observers.extend(watchers(given["observers"]))
    for candidate in (given["storage_backend"], given["storage"]):
        backend = getattr(candidate, "experiment_storage", candidate)
        if hasattr(backend, "start_run") and not isinstance(backend, ExperimentStorage):
            observers.append(BackendMirror(backend, experiment.pipeline))
    return observers


def _stored_answers(store: ExperimentStorage, run_id: str) -> Callable[[GenerationTask], GenerationRecord | None]:
    reader = store.reader(run_id)

    def answer(task: GenerationTask) -> GenerationRecord | None:
        found = reader.record(str(task.metadata.get("dataset_id")))
        if found is None:
            return None
        attempt = task.metadata.get("attempts", 0)
        return next((one for one in found[1].attempts if one.task.metadata.get("attempts", 0) == attempt), None)

    return answer


def _fresh_run_id() -> str:
    return new_run_id(datetime.datetime.now(datetime.UTC), secrets.token_hex(3))


def _why_program_is_needed(
    spec: ModelSpec, source: _Source, given: Mapping[str, Any], options: Mapping[str, Any]
) -> str:
    """What a command would lack that takes the run up from the store; nothing if it has all."""
    if PROVIDERS.is_of_this_program(spec.provider):
        return f"the provider {spec.provider!r} is the program's own"
    if given["evaluation_pipeline"] is not None:
        return "the evaluation_pipeline is the program's own"
    if not isinstance(given["prompt"], str | None):
        return "the prompt is an object of the program's"
    if source.benchmark is not None and source.benchmark.lower() not in CATALOGUE:
        return f"the benchmark {source.benchmark!r} is the program's own"
    for kind, registry, named in (
        ("metric", METRICS, given["metrics"] or ()),
        ("extractor", EXTRACTORS, (given["extractor"],) if given["extractor"] is not None else ()),
    ):
        for one in named:
            if not isinstance(one, str) or registry.is_of_this_program(one.partition("(")[0]):
                return f"its {kind} {one if isinstance(one, str) else type(one).__name__} is the program's own"
    for name, value in redact(dict(options)).items():
        if value != options[name]:
            return f"the option {name} is a secret, which is not stored"
        if jsonable(value) != value:
            return f"the option {name} is an object of the program's"
    return ""


def _invocation(dataset: Any, model: str, given: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """What a command line needs to take the run up again; objects and secrets are left out."""
    kept: dict[str, Any] = {
        name: given[name]
        for name in (
            *(
                "limit",
                "reference_field",
                "dataset_id_field",
                "temperature",
                "max_tokens",
                "top_p",
                "seed",
                "num_samples",
            ),
            *(
                "workers",
                "max_retries",
                "timeout_seconds",
                "deadline_seconds",
                "budget_usd",
                "cluster_field",
                "reducer",
            ),
        )
        if given[name] is not None
    }
    kept["model"] = model
    kept["dataset"] = str(dataset) if isinstance(dataset, str | Path) else getattr(dataset, "name", None)
    if isinstance(given["prompt"], str):
        kept["prompt"] = given["prompt"]
    if given["metrics"] is not None and all(isinstance(metric, str) for metric in given["metrics"]):
        kept["metrics"] = [Redactor().values(metric) for metric in given["metrics"]]
    if isinstance(given["extractor"], str):
        kept["extractor"] = given["extractor"]
    if isinstance(given["execution_backend"], str):
        kept["execution_backend"] = given["execution_backend"]
    kept["provider_options"] = redact_options(options)
    kept["custom_pipeline"] = given["evaluation_pipeline"] is not None
    return kept
