"""From a specification to a driver of a sample run: every name becomes what it stands for, every mistake is found."""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from themis.backends.execution import EXECUTION_BACKENDS, LocalExecutionBackend, SequentialExecutionBackend
from themis.config.specification import SampleSpecification, load_specification
from themis.core.codec import to_plain
from themis.core.entities import GenerationRecord, GenerationTask, ModelSpec, SamplingConfig
from themis.core.redaction import redact
from themis.core.secrets import REDACTED
from themis.evaluation.extractors import EXTRACTORS, IdentityExtractor
from themis.evaluation.metrics import METRICS
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.evaluation.strategies import FixedStrategy, strategy_from_name
from themis.exceptions import ConfigurationError
from themis.experiment.datasets import Source, StoredRows, resolve_dataset
from themis.experiment.run import SampleDriver, Settings
from themis.generation.attempts import TRIPS_AFTER, Retry
from themis.generation.engine import EngineSettings
from themis.generation.few_shot import FewShotTemplate
from themis.generation.providers import PROVIDERS, parse_model, provider_accepts, provider_maker
from themis.generation.templates import PromptTemplate
from themis.presets.benchmarks import JUDGE, part_name
from themis.presets.catalogue import CATALOGUE
from themis.presets.lm_eval.index import is_lm_eval_task
from themis.presets.protocols import Protocol
from themis.runs.prices import is_paid, price_of
from themis.storage import ExperimentStorage
from themis.storage.runs import new_run_id, validate_run_id


def assemble(
    asked: SampleSpecification,
    store: ExperimentStorage,
) -> SampleDriver:
    """Everything a run is made of; what is wrong with it is found here or while its rows are stored."""
    spec = parse_model(asked.model, asked.provider_options or {})
    source = resolve_dataset(asked)
    settings = settle(asked, source, store)
    asked = _with_system_prompt(asked, spec, settings.protocol if source.written_with is None else None)
    options = _provider_options(spec, asked)
    pipeline = _build_pipeline(asked, source, settings)
    wiring = {"answers": _stored_answers(store, spec.identifier)} if spec.provider == "replay" else {}
    make_executor = provider_maker(spec.provider, {**options, **wiring}, model_identifier=spec.identifier)
    executor = make_executor()
    workers, backend = _execution(asked)
    price = price_of(spec.identifier, spec.provider, is_local=bool(getattr(executor, "is_local", False)))
    run_id = asked.run_id
    if run_id is None:
        run_id = new_run_id(datetime.datetime.now(datetime.UTC), secrets.token_hex(3))
    obstacle = _why_program_is_needed(spec, source, asked, options)
    return SampleDriver(
        specification=replace(
            asked,
            run_id=validate_run_id(run_id),
            needs_program=obstacle,
            tags=redact(dict(asked.tags or {})),
            num_samples=settings.attempts,
            reducer=settings.reducer,
            # Rows of such a benchmark say their own sampling, which what is said for the whole run would replace.
            **{
                name: value
                for name, value in vars(settings.sampling).items()
                if value != () and source.pipeline is None
            },
        ),
        source=source,
        spec=spec,
        asked_with=settings,
        executor=executor,
        pipeline=pipeline,
        provider_options=options,
        settings=EngineSettings(
            workers=workers,
            retry=Retry(attempts=max(1, asked.max_retries)),
            timeout_seconds=asked.timeout_seconds,
            deadline_seconds=asked.deadline_seconds,
            rate=asked.rate_limit,
            counts_tokens=is_paid(price),
            stop_after_failures=None if asked.keep_going else TRIPS_AFTER,
        ),
        execution_backend=backend,
        make_executor=make_executor,
        price=price,
    )


def _build_pipeline(asked: SampleSpecification, source: Source, settings: Settings) -> EvaluationPipeline:
    """How answers are judged: as the specification says, or as the dataset is judged by default."""
    custom: Any = asked.evaluation_pipeline
    if custom is not None:
        clashing = [name for name in ("metrics", "extractor", "reducer") if getattr(asked, name) is not None]
        if clashing:
            raise ConfigurationError(f"evaluation_pipeline has its own {clashing[0]}; give one or the other")
        missing = [n for n in ("evaluate", "evaluation_fingerprint", "metric_names") if not hasattr(custom, n)]
        if missing:
            raise ConfigurationError(f"evaluation_pipeline {type(custom).__name__} has no {', '.join(missing)}")
        pipeline: EvaluationPipeline = custom
        return pipeline
    if source.pipeline is not None and asked.metrics is None and asked.extractor is None:
        if asked.reducer is not None:
            raise ConfigurationError(
                f"{source.benchmark} judges its own attempts; leave the reducer out, or name metrics"
            )
        return source.pipeline
    extractor = asked.extractor if asked.extractor is not None else source.extractor
    metrics = [resolve_metric(metric) for metric in asked.metrics or _name_judge(source, asked.judge)]
    strategy = None
    if settings.reducer is not None:
        strategy = strategy_from_name(settings.reducer, metrics, attempts=settings.attempts)
    elif settings.attempts > 1:
        strategy = strategy_from_name("average")
    return EvaluationPipeline(
        extractor=IdentityExtractor() if extractor is None else resolve_extractor(extractor),
        metrics=metrics,
        strategy_resolver=None if strategy is None else FixedStrategy(strategy),
    )


# --- the protocol, and what is asked otherwise ------------------------------------------------------------------------

# Of what may be said about a task of lm-eval, what decides its figure.
_OF_THE_TASK = ("shots", "seed", "chat", "multiturn", "system", "generation", "metadata")
# What was sent where nothing was said, before a benchmark had a protocol.
_ONCE_THE_DEFAULT = SamplingConfig(temperature=0.0, top_p=0.95, max_tokens=512)


def settle(asked: SampleSpecification, source: Source, store: ExperimentStorage | None = None) -> Settings:
    """What is asked for, and for the rest what the protocol says; of a stored run, what it was started with."""
    usual = _find_defaults(asked, source, store)
    sampling = SamplingConfig(
        temperature=usual.sampling.temperature if asked.temperature is None else asked.temperature,
        top_p=usual.sampling.top_p if asked.top_p is None else asked.top_p,
        max_tokens=usual.sampling.max_tokens if asked.max_tokens is None else asked.max_tokens,
        stop=usual.sampling.stop if asked.stop is None else tuple(asked.stop),
    )
    attempts = usual.attempts if asked.num_samples is None else asked.num_samples
    reducer = usual.reducer if asked.reducer is None else asked.reducer
    shots = source.template.examples.count if isinstance(source.template, FewShotTemplate) else 0
    if source.written_with is not None and usual.protocol is not None:
        shots = usual.protocol.shots
    settled = Settings(sampling=sampling, attempts=attempts, reducer=reducer, shots=shots, protocol=usual.protocol)
    if settled.protocol is None:
        return settled
    return replace(settled, deviations=tuple(_find_deviations(asked, source, settled, settled.protocol)))


def _find_deviations(
    asked: SampleSpecification, source: Source, settled: Settings, protocol: Protocol
) -> Iterator[str]:
    """In what a run is not its benchmark's protocol, a phrase each."""
    now, published = vars(settled.sampling), vars(protocol.sampling)
    for name in now:
        if now[name] != published[name]:
            yield f"{name} {_say(now[name])} instead of {_say(published[name])}"
    if settled.attempts != protocol.attempts:
        yield f"num_samples {settled.attempts} instead of {protocol.attempts}"
    reducers = [one or "average" for one in (settled.reducer, protocol.reducer)]
    if reducers[0] != reducers[1]:
        yield f"reducer {reducers[0]} instead of {reducers[1]}"
    if settled.shots != protocol.shots:
        yield f"{settled.shots} shots instead of {protocol.shots}"
    if asked.prompt is not None and getattr(asked.prompt, "template", asked.prompt) != protocol.prompt:
        yield "another prompt"
    if (asked.provider_options or {}).get("system_prompt", protocol.system_prompt) != protocol.system_prompt:
        yield "another system prompt"
    for name, value in (source.written_with or {}).items():
        if name in _OF_THE_TASK:
            yield f"{name} {json.dumps(value)} instead of the task's own"
    yield from _find_other_judging(asked, protocol)
    if asked.sample and protocol.split:
        yield f"the shipped sample rows instead of {protocol.dataset.partition('@')[0]}, {protocol.split}"


def _find_other_judging(asked: SampleSpecification, protocol: Protocol) -> Iterator[str]:
    if asked.evaluation_pipeline is not None:
        yield "another evaluation pipeline"
        return
    if asked.extractor is not None and asked.extractor != protocol.extractor:
        yield f"extractor {part_name(asked.extractor)} instead of {protocol.extractor}"
    given = [part_name(metric) for metric in asked.metrics or ()]
    missing = [metric for metric in protocol.metrics if metric not in given] if given else []
    if missing:
        yield f"metrics without {', '.join(missing)}"


def _say(value: object) -> str:
    if value in (None, ()):
        return "none"
    return json.dumps(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


def _find_defaults(asked: SampleSpecification, source: Source, store: ExperimentStorage | None) -> Settings:
    if isinstance(asked.dataset, StoredRows):
        frame = asked.dataset.frame
        return Settings(sampling=frame.sampling, attempts=frame.attempts)
    protocol = source.protocol
    if store is not None and _is_older(asked, store):
        return Settings(sampling=_ONCE_THE_DEFAULT, protocol=protocol)
    if protocol is None:
        return Settings(sampling=SamplingConfig())
    return Settings(sampling=protocol.sampling, attempts=protocol.attempts, reducer=protocol.reducer, protocol=protocol)


def _is_older(asked: SampleSpecification, store: ExperimentStorage) -> bool:
    """Whether the run that is gone on with was started when benchmarks had no protocol."""
    if asked.run_id is None or not asked.resume or not store.run_exists(asked.run_id):
        return False
    reader = store.reader(asked.run_id)
    return reader.has_dataset and not reader.frame.rows_have_sampling


def _name_judge(source: Source, judge: str | None) -> Sequence[Any]:
    """The dataset's own metrics, with the user's model where a model is to grade."""
    if not any(isinstance(metric, str) and JUDGE in metric for metric in source.metrics):
        return source.metrics
    if judge is None:
        raise ConfigurationError(
            f"answers to {source.benchmark} are graded by a model: name one, judge='provider/model' (--judge MODEL), or judge "
            "them otherwise with metrics of your own (--metric)"
        )
    return [metric.replace(JUDGE, judge) if isinstance(metric, str) else metric for metric in source.metrics]


# --- stored runs ------------------------------------------------------------------------------------------------------


def load_sample_specification(
    store: ExperimentStorage, run_id: str, *, for_judging: bool = False
) -> SampleSpecification:
    """What a stored run was asked to be, with its rows and prompt as they are stored.

    With `for_judging` it is judged by other metrics than its own, so that those may be lost.
    """
    run = store.get_run(run_id)
    loaded = load_specification(run)
    if not isinstance(loaded, SampleSpecification):
        raise ConfigurationError(f"run {run_id!r} is a {run.kind} run")
    if loaded.made_in_python and not for_judging:
        raise ConfigurationError(
            f"run {run_id!r} was judged by {' and '.join(loaded.made_in_python)} made in Python; run that program again, or "
            "name metrics to judge it by"
        )
    options = {name: value for name, value in (loaded.provider_options or {}).items() if value != REDACTED}
    loaded = replace(loaded, provider_options=options)
    _refuse_lost_secrets(loaded, for_judging=for_judging)
    is_stored, lost = store.reader(run_id).has_dataset, store.reader(run_id).count_lost_rows()
    if loaded.dataset is None and (lost or not is_stored):
        what = f"has lost {lost} rows of its dataset" if lost else "stopped before its dataset was stored"
        raise ConfigurationError(
            f"run {run_id!r} {what}, which came from Python; run that program again: it stores them and asks only for what "
            "is missing"
        )
    if lost or not is_stored:
        return loaded
    frame = store.reader(run_id).frame
    # What is stored has been checked, and may have been a template made in Python.
    prompt = FewShotTemplate.from_spec(frame.prompt) or PromptTemplate(
        frame.prompt.name, frame.prompt.template, metadata={"as_written": True}
    )
    return replace(
        loaded,
        dataset=StoredRows(store, run_id),
        benchmark=run.benchmark,
        data=None,
        sample=False,
        limit=None,
        prompt=prompt,
        reference_field=frame.reference_field or "",
    )


def stored_pipeline(
    store: ExperimentStorage,
    run_id: str,
    *,
    metrics: list[str] | None = None,
    extractor: str | None = None,
    reducer: str | None = None,
) -> EvaluationPipeline:
    """How a stored run is judged, with other metrics, extractor or reducer where given."""
    loaded = load_sample_specification(store, run_id, for_judging=metrics is not None)
    chosen = {"metrics": metrics, "extractor": extractor, "reducer": reducer}
    asked = replace(loaded, **{name: value for name, value in chosen.items() if value is not None})  # type: ignore[arg-type]
    source = resolve_dataset(asked)
    return _build_pipeline(asked, source, settle(asked, source))


def _refuse_lost_secrets(loaded: SampleSpecification, *, for_judging: bool) -> None:
    """A secret inside an option or a metric, such as a header, comes from nowhere again."""
    options = loaded.provider_options or {}
    lost = [f"the option {name}" for name, value in options.items() if REDACTED in json.dumps(value, default=str)]
    if not for_judging:
        metrics = [metric for metric in loaded.metrics or () if isinstance(metric, str)]
        lost += [f"the metric {metric.partition('(')[0]}" for metric in metrics if REDACTED in metric]
    if lost:
        raise ConfigurationError(
            f"run {loaded.run_id!r} was given a secret in {', '.join(lost)}, and secrets are not stored; run the command that "
            "started it again: it goes on. Written as ${NAME}, the name of an environment variable, it would be found again"
        )


# --- parts ------------------------------------------------------------------------------------------------------------


def _with_system_prompt(asked: SampleSpecification, spec: ModelSpec, protocol: Protocol | None) -> SampleSpecification:
    """With the protocol's, where nobody gave another; it is an option of the provider, and stored like one."""
    options = asked.provider_options or {}
    if protocol is None or protocol.system_prompt is None or "system_prompt" in options:
        return asked
    if not provider_accepts(spec.provider, "system_prompt", options):
        raise ConfigurationError(
            f"the protocol of {protocol.benchmark!r} has a system prompt, which the provider {spec.provider!r} does not take; "
            "choose another provider, or rows of your own"
        )
    return replace(asked, provider_options={**options, "system_prompt": protocol.system_prompt})


def _provider_options(spec: ModelSpec, asked: SampleSpecification) -> dict[str, Any]:
    options = dict(asked.provider_options or {})
    if asked.seed is not None and "seed" not in options and provider_accepts(spec.provider, "seed", options):
        options["seed"] = asked.seed
    return options


def _execution(asked: SampleSpecification) -> tuple[int, Any]:
    """How many workers, and the backend to map through; our own local ones are what the engine does anyway."""
    backend: Any = asked.execution_backend
    if backend is None or backend == "local":
        return asked.workers, None
    if isinstance(backend, str):
        backend = EXECUTION_BACKENDS.get(backend)()
    if not callable(getattr(backend, "map", None)):
        raise ConfigurationError(f"execution_backend {type(backend).__name__} has no method map(func, items, ...)")
    if type(backend) in (LocalExecutionBackend, SequentialExecutionBackend):
        return min(backend.workers, asked.workers), None
    return asked.workers, backend


def _stored_answers(store: ExperimentStorage, run_id: str) -> Callable[[GenerationTask], GenerationRecord | None]:
    reader = store.reader(run_id)

    def answer(task: GenerationTask) -> GenerationRecord | None:
        found = reader.record(str(task.metadata.get("dataset_id")))
        if found is None:
            return None
        attempt = task.metadata.get("attempts", 0)
        return next((one for one in found[1].attempts if one.task.metadata.get("attempts", 0) == attempt), None)

    return answer


def _why_program_is_needed(
    spec: ModelSpec, source: Source, asked: SampleSpecification, options: Mapping[str, Any]
) -> str:
    """What a command would lack that takes the run up from the store; nothing if it has all."""
    if isinstance(asked.dataset, StoredRows):
        return asked.needs_program
    if PROVIDERS.is_of_this_program(spec.provider):
        return f"the provider {spec.provider!r} is the program's own"
    if asked.evaluation_pipeline is not None:
        return "the evaluation_pipeline is the program's own"
    if isinstance(asked.prompt, PromptTemplate):
        return "the prompt is an object of the program's"
    is_known = source.benchmark is None or source.benchmark.lower() in CATALOGUE or is_lm_eval_task(source.benchmark)
    if not is_known:
        return f"the benchmark {source.benchmark!r} is the program's own"
    for kind, registry, named in (
        ("metric", METRICS, asked.metrics or ()),
        ("extractor", EXTRACTORS, (asked.extractor,) if asked.extractor is not None else ()),
    ):
        for one in named:
            if not isinstance(one, str) or registry.is_of_this_program(one.partition("(")[0]):
                return f"its {kind} {one if isinstance(one, str) else type(one).__name__} is the program's own"
    for name, value in redact(dict(options)).items():
        if value != options[name]:
            return f"the option {name} is a secret, which is not stored"
        if to_plain(value) != value:
            return f"the option {name} is an object of the program's"
    return ""
