"""From a specification to a driver of a sample run: every name becomes what it stands for, every mistake is found."""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from themis.backends.execution import EXECUTION_BACKENDS, LocalExecutionBackend, SequentialExecutionBackend
from themis.config.specification import SampleSpecification, load_specification, name_of_code
from themis.core.codec import to_plain
from themis.core.entities import GenerationRecord, GenerationTask, ModelSpec, PromptSpec, SamplingConfig
from themis.core.redaction import look_up_secrets, redact
from themis.core.secrets import REDACTED
from themis.core.user_code import load_user_code
from themis.evaluation.extractors import EXTRACTORS, IdentityExtractor
from themis.evaluation.metrics import METRICS
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.evaluation.strategies import FixedStrategy, strategy_from_name
from themis.exceptions import ConfigurationError
from themis.experiment.batching import open_endpoint
from themis.experiment.datasets import Source, StoredRows, resolve_dataset
from themis.experiment.identity import Settings
from themis.experiment.run import SampleDriver
from themis.generation.attempts import TRIPS_AFTER, Retry
from themis.generation.engine import EngineSettings
from themis.generation.episodes import SCENES, Scene
from themis.generation.few_shot import FewShotTemplate
from themis.generation.providers import PROVIDERS, parse_model, provider_accepts, provider_maker
from themis.generation.providers.functions import is_agent, make_function_subject
from themis.generation.templates import PromptTemplate, read_template
from themis.generation.tools import Toolset
from themis.generation.users import check_user
from themis.interfaces import StatelessTaskExecutor
from themis.presets.benchmarks import BENCHMARKS, JUDGE, part_name
from themis.presets.pipes import STANDARD_INPUT
from themis.presets.protocols import Protocol
from themis.runs.judging import price_of_judge
from themis.runs.prices import is_paid, price_of
from themis.storage import ExperimentStorage
from themis.storage.runs import SYSTEM_PROMPT, new_run_id, validate_run_id


def assemble(
    asked: SampleSpecification,
    store: ExperimentStorage,
) -> SampleDriver:
    """Everything a run is made of; what is wrong with it is found here or while its rows are stored."""
    for path in asked.load:
        load_user_code(path)
    spec = find_subject(asked.model, asked.provider_options or {})
    source = resolve_dataset(asked)
    settings = settle(asked, source, store)
    asked = _with_system_prompt(asked, spec, settings.protocol if source.written_with is None else None)
    source = _with_template(source, asked)
    options = _provider_options(spec, asked)
    pipeline = build_pipeline(asked, source, settings)
    given = [name for name in _SAMPLING if getattr(asked, name) is not None and name not in asked.settled]
    metrics = getattr(pipeline, "metrics", ())
    expected = frozenset(name for metric in metrics for name in getattr(metric, "expected_fields", ()))
    make_executor = partial(_make_blind, _executor_maker(asked.model, spec, options, store, given), expected)
    executor = make_executor()
    batches = open_endpoint(executor, asked) if asked.batch or hasattr(executor, "open_batches") else None
    workers, backend = _execution(asked)
    toolset, scene = _stage(asked)
    if (backend is not None or asked.batch) and toolset is not None:
        elsewhere = "execution_backend" if backend is not None else "batch (--batch)"
        raise ConfigurationError(f"tools, a user and a script need calls made here, one by one; leave {elsewhere} out")
    price = price_of(spec.identifier, spec.provider, is_local=bool(getattr(executor, "is_local", False)))
    price = None if price is None else price.cached_for(options.get("prompt_cache"))
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
            settled=[name for name in _SAMPLING if name not in given],
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
        toolset=toolset,
        scene=scene,
        batches=batches,
    )


def _stage(asked: SampleSpecification) -> tuple[Toolset | None, Scene | None]:
    """What an answer of several steps is played with: tools, and a script or somebody who talks to the model."""
    if asked.user is not None and asked.script is not None:
        raise ConfigurationError("user and script both say what is said to the model; give one of them")
    scene: Scene | None = None
    if asked.user is not None:
        check_user(asked.user)
        options = asked.user.get("options")
        price = price_of_judge(str(asked.user["model"]), options if isinstance(options, Mapping) else {})
        scene = SCENES.get("user")(**asked.user, price=price)
    elif asked.script is not None:
        scene = SCENES.get("script")(asked.script)
    # Whoever is talked to may call tools, also where there are none, and is told so.
    return (Toolset(list(asked.tools or ())) if asked.tools or scene is not None else None), scene


def find_subject(model: object, options: Mapping[str, object]) -> ModelSpec:
    """Who a run asks: a model by its name, or code of the program's, known by its own."""
    if isinstance(model, str):
        return parse_model(model, options)
    if model is None or isinstance(model, bool | int | float | Mapping | list | tuple):
        raise ConfigurationError(f"a model is named as 'provider/model', or is a function or a class, got {model!r}")
    return ModelSpec(name_of_code(model).partition(":")[2], "agent" if is_agent(model) else "python")


def _executor_maker(
    model: object,
    spec: ModelSpec,
    options: Mapping[str, object],
    store: ExperimentStorage,
    asked_parameters: Sequence[str],
) -> Callable[[], StatelessTaskExecutor]:
    """Makes who is asked; also in another process, which does not know what was registered in this one."""
    if isinstance(model, str):
        wiring = {"answers": _stored_answers(store, spec.identifier)} if spec.provider == "replay" else {}
        return provider_maker(
            spec.provider, {**options, **wiring}, model_identifier=spec.identifier, asked_parameters=asked_parameters
        )
    return partial(make_function_subject, model, look_up_secrets(options))


def _make_blind(make: Callable[[], StatelessTaskExecutor], expected: frozenset[str]) -> StatelessTaskExecutor:
    """Makes who is asked, and hides from it the row's fields that its answers are compared with."""
    executor = make()
    if hasattr(executor, "withheld"):
        executor.withheld = expected
    return executor


def _with_template(source: Source, asked: SampleSpecification) -> Source:
    """The dataset's template, with what the system says and what is attached: both are stored with it."""
    told: dict[str, object] = {}
    if asked.system_prompt:
        told[SYSTEM_PROMPT] = asked.system_prompt
    if asked.attach:
        told["attach"] = list(asked.attach)
    if not told:
        return source
    template = source.template
    return replace(source, template=replace(template, metadata={**(template.metadata or {}), **told}))


def build_pipeline(asked: SampleSpecification, source: Source, settings: Settings) -> EvaluationPipeline:
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
    usual = ["script_grade"] if asked.script is not None else _name_judge(source, asked.judge)
    metrics = [resolve_metric(metric) for metric in asked.metrics or usual]
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

_SAMPLING = ("temperature", "top_p", "max_tokens", "stop")
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
    said = asked.system_prompt or (asked.provider_options or {}).get(SYSTEM_PROMPT, protocol.system_prompt)
    if said != protocol.system_prompt:
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
    if loaded.dataset in (None, STANDARD_INPUT) and (lost or not is_stored):
        what = f"has lost {lost} rows of its dataset" if lost else "stopped before its dataset was stored"
        whence = (
            "from Python; run that program again"
            if loaded.dataset is None
            else "by standard input; run that command again with the same rows"
        )
        raise ConfigurationError(
            f"run {run_id!r} {what}, which came {whence}: it stores them and asks only for what is missing"
        )
    if lost or not is_stored:
        return loaded
    frame = store.reader(run_id).frame
    # What is stored has been checked, and may have been a template made in Python.
    prompt = FewShotTemplate.from_spec(frame.prompt) or _stored_template(frame.prompt)
    return replace(
        loaded,
        dataset=StoredRows(store, run_id),
        benchmark=run.benchmark,
        data=None,
        sample=False,
        limit=None,
        prompt=prompt,
        system_prompt=frame.prompt.metadata.get(SYSTEM_PROMPT) or loaded.system_prompt,
        reference_field=frame.reference_field or "",
    )


def _stored_template(spec: PromptSpec) -> PromptTemplate:
    syntax = str(spec.metadata.get("syntax") or "format")
    return read_template(
        spec.metadata.get("messages") or spec.template,
        name=spec.name,
        syntax=syntax if "syntax" in spec.metadata or "messages" not in spec.metadata else None,
        metadata={"as_written": True},
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
    for path in asked.load:
        load_user_code(path)
    source = resolve_dataset(asked)
    return build_pipeline(asked, source, settle(asked, source))


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
    """With what the system says in one place: as an option of the provider too, or as the protocol has it."""
    options = dict(asked.provider_options or {})
    given = options.get(SYSTEM_PROMPT)
    if isinstance(asked.model, str) and isinstance(given, str) and _takes_system_prompt(spec, options):
        # There it would be sent and not shown with the samples.
        del options[SYSTEM_PROMPT]
        return replace(asked, system_prompt=asked.system_prompt or given, provider_options=options)
    if protocol is None or protocol.system_prompt is None or asked.system_prompt or SYSTEM_PROMPT in options:
        return asked
    if isinstance(asked.model, str) and not provider_accepts(spec.provider, SYSTEM_PROMPT, options):
        raise ConfigurationError(
            f"the protocol of {protocol.benchmark!r} has a system prompt, which the provider {spec.provider!r} does not take; "
            "choose another provider, or rows of your own"
        )
    return replace(asked, system_prompt=protocol.system_prompt)


def _takes_system_prompt(spec: ModelSpec, options: Mapping[str, object]) -> bool:
    """Whether it is one of ours, which say a task's system prompt; code of the user's may know its own option alone."""
    is_own = spec.provider in ("python", "agent") or PROVIDERS.is_of_this_program(spec.provider)
    return not is_own and provider_accepts(spec.provider, SYSTEM_PROMPT, options)


def _provider_options(spec: ModelSpec, asked: SampleSpecification) -> dict[str, Any]:
    options = dict(asked.provider_options or {})
    if not isinstance(asked.model, str):
        return options
    if asked.seed is not None and "seed" not in options and provider_accepts(spec.provider, "seed", options):
        options["seed"] = asked.seed
    is_own = PROVIDERS.is_of_this_program(spec.provider)
    if asked.system_prompt and is_own and provider_accepts(spec.provider, SYSTEM_PROMPT, options):
        # A class of the user's may look for it there and nowhere else.
        options.setdefault(SYSTEM_PROMPT, asked.system_prompt)
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
    spec: ModelSpec, source: Source, asked: SampleSpecification, options: Mapping[str, object]
) -> str:
    """What a command would lack that takes the run up from the store; nothing if it has all."""
    if isinstance(asked.dataset, StoredRows):
        return asked.needs_program
    if not isinstance(asked.model, str):
        return f"the model {spec.identifier} is the program's own"
    if named := next(
        (one for one in [*asked.tools, asked.script] if one is not None and not isinstance(one, str)), None
    ):
        return f"{name_of_code(named).partition(':')[2]} is the program's own"
    if PROVIDERS.is_of_this_program(spec.provider) and not asked.load:
        return f"the provider {spec.provider!r} is the program's own"
    if asked.evaluation_pipeline is not None:
        return "the evaluation_pipeline is the program's own"
    if isinstance(asked.prompt, PromptTemplate):
        return "the prompt is an object of the program's"
    if source.benchmark is not None and BENCHMARKS.is_of_this_program(source.benchmark) and not asked.load:
        return f"the benchmark {source.benchmark!r} is the program's own"
    for kind, registry, named in (
        ("metric", METRICS, asked.metrics or ()),
        ("extractor", EXTRACTORS, (asked.extractor,) if asked.extractor is not None else ()),
    ):
        for one in named:
            is_own = isinstance(one, str) and registry.is_of_this_program(one.partition("(")[0]) and not asked.load
            if not isinstance(one, str) or is_own:
                return f"its {kind} {one if isinstance(one, str) else type(one).__name__} is the program's own"
    for name, value in redact(dict(options)).items():
        if value != options[name]:
            return f"the option {name} is a secret, which is not stored"
        if to_plain(value) != value:
            return f"the option {name} is an object of the program's"
    return ""
