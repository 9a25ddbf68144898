"""The specification of a run: what is evaluated, by whom, how it is judged, and under which name it is kept.

Arguments of `evaluate`, options of the command line and stored runs all become one of these two, and are checked here,
once. A resumed run loads it, `themis reproduce` prints it as a command.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import PurePath
from typing import Any, ClassVar, Self, cast

from themis.config.schema import LEAST_FILLER_TOKENS
from themis.core.codec import to_plain, write_word
from themis.core.redaction import Redactor, redact_options
from themis.core.registry import nearest
from themis.core.secrets import REDACTED
from themis.exceptions import ConfigurationError
from themis.generation.limits import RateLimit
from themis.generation.templates import SYNTAXES, PromptTemplate
from themis.storage import RunMetadata

__all__ = ["MemorySpecification", "SampleSpecification", "Specification", "load_specification", "name_of_code"]

# Under this name the specification is stored beside a run.
STORED_AS = "specification"
# Before the name of a task of lm-eval, whose rows say their own sampling.
LM_EVAL_PREFIX = "lm-eval:"


def _stored(default: object, option: str = "") -> Any:
    """A field that is stored. `option` is its name on the command line."""
    return field(default=default, metadata={"stored": True, "option": option})


def _transient(default: object) -> Any:
    """A field that only says how to go about it this time."""
    return field(default=default, metadata={"stored": False, "option": ""})


@dataclass(frozen=True, kw_only=True)
class Specification:
    """What a run of either kind says.

    Args:
        run_id: Name of the run; made from the time, or from the configuration's name, by default.
        experiment: The group of runs that this one belongs to; `default` by default.
        tags: Names and values that lists of runs can be filtered by.
        seed: Of sampling, or of everything that a memory run draws at random.
        budget_usd: Never spend more than this on the run, earlier sessions included.
        workers: Calls in flight at once, at most.
        keep_going: Go on after failures that every further call would meet too.
        resume: With False a stored run of this id is archived and the run starts anew.
        allow_drift: Where inputs have changed, start anew but take every stored answer that still fits.

    >>> asked = SampleSpecification.from_values({"dataset": "demo", "model": "fake/perfect", "budget_usd": 2.0})
    >>> asked.to_stored()
    {'kind': 'samples', 'budget_usd': 2.0, 'dataset': 'demo', 'model': 'fake/perfect'}
    """

    kind: ClassVar[str]

    run_id: str | None = _transient(None)
    experiment: str | None = _stored(None, "--experiment")
    tags: Mapping[str, str] | None = _stored(None)
    seed: int | None = _stored(None, "--seed")
    budget_usd: float | None = _stored(None, "--budget-usd")
    workers: int = _stored(4, "--workers")
    resume: bool = _transient(True)
    allow_drift: bool = _transient(False)
    # Why the store alone is not enough to go on, where it is not.
    needs_program: str = _stored("")

    def __post_init__(self) -> None:
        for one in fields(self):
            if misfit := self.explain_misfit(one.name, getattr(self, one.name)):
                raise ConfigurationError(misfit)

    @classmethod
    def explain_misfit(cls, name: str, value: object) -> str:
        """Why a value is not what a field takes; empty if it is.

        Args:
            name: The field.
            value: What it would be given.

        >>> SampleSpecification.explain_misfit("temperature", "hot")
        "temperature is a number of at least 0, got 'hot'"
        """
        if value is None and cls.__dataclass_fields__[name].default is None:
            return ""
        rules = ((what, fits) for what, names, fits in _EXPECTED if name in names)
        broken = next((what for what, fits in rules if not fits(value)), None)
        return "" if broken is None else f"{name} is {broken}, got {value!r}"

    @property
    def secret_options(self) -> list[str]:
        """Options that hold a secret, which is not stored."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """The words behind `themis` that ask for this; what is no text of a command line is left out."""
        raise NotImplementedError

    def to_stored(self) -> dict[str, object]:
        """As plain values without secrets; objects of the program are left out."""
        kept: dict[str, object] = {"kind": self.kind}
        for one in fields(self):
            value = _plain(getattr(self, one.name))
            if one.metadata["stored"] and value not in (None, one.default) and value != []:
                kept[one.name] = _without_secrets(one.name, value)
        return kept

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Self:
        """From names and values, as a command line or a store has them.

        Args:
            values: By the names of the fields.

        Raises:
            ConfigurationError: There is no such field; names the nearest.
        """
        for name in values:
            if name not in cls.__dataclass_fields__:
                raise ConfigurationError(f"unknown setting {name!r}{nearest(name, list(cls.__dataclass_fields__))}")
        return cls(**cast(Any, dict(values)))

    def _option_words(self) -> list[str]:
        words: list[str] = []
        for one in fields(self):
            words += _words_of(one, getattr(self, one.name))
        for name, value in (self.tags or {}).items():
            words += ["--tag", f"{name}={value}"]
        return words


@dataclass(frozen=True, kw_only=True)
class SampleSpecification(Specification):
    """Every row of a dataset, asked of a model; the fields are arguments of `evaluate`, which says more.

    Args:
        dataset: A benchmark's name, a file or folder of rows, `hf://owner/name/split`, or rows of the program's.
        model: Who answers: `provider/model`, `python:FILE.py:NAME`, an address, `command:PROGRAM`, `agent:NAME`, or a function.
        limit: Only the first so many rows.
        prompt: Text over the row's fields, or messages of such texts; a benchmark has its own.
        prompt_syntax: `format` or `jinja`; known from the text by default.
        system_prompt: What the system says; a row's own field of that name wins.
        attach: The row's fields that name images and files to be sent with the prompt.
        tools: What the model may call while it answers.
        user: Who talks to the model after the prompt: `model`, `persona`, `goal`.
        script: A function of a row that yields what is said, as a memory test does.
        max_turns: The most answers of the model in one sample, where it takes several.
        max_sample_tokens: The most tokens of one sample, all its steps together.
        max_sample_seconds: The most time of one sample.
        max_sample_usd: The most that one sample may cost.
        load: Python files that register what the names mean.
        reference_field: The row's field with the expected answer.
        dataset_id_field: The row's field that names it.
        metrics: Names, or objects of the program's.
        extractor: A name, or an object of the program's.
        evaluation_pipeline: In place of metrics, extractor and reducer.
        judge: The model that grades answers, for benchmarks whose answers a model grades.
        temperature: Of sampling; 0 for the likeliest answer.
        top_p: Of sampling; not sent where neither you nor the benchmark's protocol says one.
        max_tokens: Longest answer; -1 for no limit.
        stop: Texts at which an answer ends.
        num_samples: Attempts at each row.
        shots: Examples before the question.
        reducer: How several attempts become one score; `average` by default.
        cluster_field: The row's field that groups rows which are not independent.
        max_retries: Calls for one answer in total.
        timeout_seconds: For one call.
        deadline_seconds: For one answer with all its retries.
        requests_per_minute: The most to send; no limit by default.
        tokens_per_minute: The most to use; no limit by default.
        batch: Ask in batches that the provider works off within a day, for half the price.
        batch_size: Items in a batch at most; as many as the provider takes by default.
        batch_poll_seconds: Before a batch is first looked at; later looks are further apart.
        batch_deadline_seconds: A batch that takes longer is cancelled, and the rest of it asked singly.
        cancel_batches: Cancel what is in batches, keep what they have answered, and ask nothing more.
        settled: Which of `temperature`, `top_p`, `max_tokens` and `stop` nobody gave: they are the benchmark's, or the defaults.
        truncated_limit: The share of answers that may be cut off before the report says that its means are too low.
        provider_options: Options of the provider, such as `base_url`; secrets in them are not stored.
        execution_backend: Where calls are made: `local`, `sequential`, `ray`, or a backend of the program's.
        data: A file or folder to read a benchmark's rows from.
        sample: Use the benchmark's few shipped rows.
        task_options: Of a task of lm-eval: `include`, `chat`, `unsafe_code` and others.
        cache: Where stored answers may come from: this `run`, the whole `store`, or `off`.
        max_records_in_memory: How many records the report shows.

    Raises:
        ConfigurationError: A value is not what its field takes.

    >>> asked = SampleSpecification(dataset="gsm8k", model="openai/gpt-4o", limit=200)
    >>> " ".join(asked.command())
    'eval gsm8k --model openai/gpt-4o --limit 200'
    """

    kind: ClassVar[str] = "samples"

    dataset: object = _stored(None)
    # A name, or a function, class or object of the program's.
    model: object = _stored("")
    limit: int | None = _stored(None, "--limit")
    prompt: str | Sequence[Mapping[str, object]] | PromptTemplate | None = _stored(None)  # noqa: RUF009
    prompt_syntax: str | None = _stored(None, "--prompt-syntax")
    system_prompt: str | None = _stored(None, "--system")
    attach: Sequence[str] = _stored(())
    # Names, or functions and classes of the program's.
    tools: Sequence[object] = _stored(())
    # A model that plays the user, with a persona and a goal; or a script of the program's, by name or as a function.
    user: Mapping[str, object] | None = _stored(None)
    script: object = _stored(None, "--script")
    max_turns: int = _stored(10, "--max-turns")
    max_sample_tokens: int | None = _stored(None, "--max-sample-tokens")
    max_sample_seconds: float | None = _stored(None, "--max-sample-seconds")
    max_sample_usd: float | None = _stored(None, "--max-sample-usd")
    # Python files that register metrics, providers or tools.
    load: Sequence[str] = _stored(())
    reference_field: str | None = _stored(None)
    dataset_id_field: str | None = _stored(None)
    metrics: Sequence[object] | None = _stored(None)
    extractor: object = _stored(None)
    evaluation_pipeline: object = _stored(None)
    judge: str | None = _stored(None, "--judge")
    # What is None of these is the benchmark's to say; once a run is assembled, all are said.
    temperature: float | None = _stored(None, "--temperature")
    top_p: float | None = _stored(None, "--top-p")
    max_tokens: int | None = _stored(None, "--max-tokens")
    stop: Sequence[str] | None = _stored(None)
    # Says how the values above came to be, and changes none of them.
    settled: Sequence[str] = field(default=(), compare=False, metadata={"stored": True, "option": ""})
    num_samples: int | None = _stored(None, "--num-samples")
    shots: int | None = _stored(None, "--shots")
    reducer: str | None = _stored(None, "--reducer")
    cluster_field: str | None = _stored(None, "--cluster-field")
    max_retries: int = _stored(3, "--max-retries")
    timeout_seconds: float = _stored(600.0, "--timeout")
    deadline_seconds: float = _stored(1800.0, "--deadline")
    requests_per_minute: float | None = _stored(None, "--rpm")
    tokens_per_minute: float | None = _stored(None, "--tpm")
    batch: bool = _stored(False, "--batch")
    batch_size: int | None = _stored(None, "--batch-size")
    batch_poll_seconds: float = _stored(1.0, "--batch-poll")
    batch_deadline_seconds: float = _stored(86_400.0, "--batch-deadline")
    cancel_batches: bool = _transient(False)
    truncated_limit: float = _stored(0.05, "--truncated-limit")
    execution_backend: object = _stored(None, "--execution")
    provider_options: Mapping[str, Any] | None = _stored(None)
    data: str | None = _stored(None, "--data")
    sample: bool = _stored(False, "--sample")
    task_options: Mapping[str, Any] | None = _stored(None)
    keep_going: bool = _transient(False)
    cache: str = _transient("run")
    max_records_in_memory: int | None = _transient(None)
    # The benchmark whose stored rows `dataset` holds, when a run is resumed.
    benchmark: str | None = _transient(None)
    # Which of `metrics`, `extractor` and `evaluation_pipeline` are objects of the program's, which are not stored.
    made_in_python: Sequence[str] = _stored(())

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cache not in ("run", "store", "off"):
            raise ConfigurationError(f"cache is 'run', 'store' or 'off', got {self.cache!r}")
        if self.metrics is not None and (isinstance(self.metrics, str) or not self.metrics):
            raise ConfigurationError(f"metrics is a list of names, such as ['exact_match'], got {self.metrics!r}")

    def to_stored(self) -> dict[str, object]:
        kept = super().to_stored()
        dataset = self.dataset
        if not isinstance(self.model, str):
            kept["model"] = name_of_code(self.model)
        if isinstance(self.prompt, list | tuple):
            kept["prompt"] = [dict(turn) for turn in self.prompt]
        kept["dataset"] = str(dataset) if isinstance(dataset, str | PurePath) else getattr(dataset, "name", None)
        judging = ("metrics", "extractor", "evaluation_pipeline")
        lost = [name for name in judging if getattr(self, name) is not None and name not in kept]
        return {**kept, "made_in_python": lost} if lost else kept

    @property
    def rate_limit(self) -> RateLimit:
        """Both limits together, as the engine takes them."""
        return RateLimit(requests_per_minute=self.requests_per_minute, tokens_per_minute=self.tokens_per_minute)

    @property
    def secret_options(self) -> list[str]:
        return _with_secrets(self.provider_options or {})

    def command(self) -> list[str]:
        words = ["eval", str(self.dataset), "--model", str(self.model)]
        for option, value in (
            ("--prompt", self.prompt),
            ("--id-field", self.dataset_id_field),
            ("--reference-field", self.reference_field),
            ("--extractor", self.extractor),
        ):
            words += [option, value] if isinstance(value, str) else []
        for metric in self.metrics or ():
            words += ["--metric", metric] if isinstance(metric, str) else []
        for option, values in (("--stop", self.stop), ("--attach", self.attach), ("--load", self.load)):
            for text in values or ():
                words += [option, text]
        for tool in self.tools:
            words += ["--tool", tool] if isinstance(tool, str) else []
        for name, value in (self.user or {}).items():
            words += ["--user", f"{name}={write_word(value)}"]
        words += self._option_words()
        for name, value in (self.task_options or {}).items():
            for path in value if name == "include" else ():
                words += ["--include", path]
            words += [] if name == "include" else ["--task-option", f"{name}={write_word(value)}"]
        for name, value in (self.provider_options or {}).items():
            if name not in self.secret_options and (name != "seed" or value != self.seed):
                words += ["--option", f"{name}={write_word(value)}"]
        return words


@dataclass(frozen=True, kw_only=True)
class MemorySpecification(Specification):
    """The tests of a configuration, held with an agent. What is None is the configuration's to say.

    Args:
        configuration: The name of a shipped configuration, or the path of a YAML file.
        agent: Who is tested, such as `openai/gpt-4o`, `window(2000)` or `http://localhost:8080`.
        max_prompt_tokens: The most that the agent is sent at once.
        agent_options: Options of the agent; secrets in them are not stored.
        isolated: Each test in a conversation of its own.
        is_local: The agent's calls cost nothing, whatever the price list says.
        span_tokens: Of every test, in place of the configuration's; definitions of another span or seed are kept under a name
            of their own.
        judge: The model that judges what code cannot.
        judge_options: Options of its provider.
        filler: What is said between tests: a registered name or a file.
        clock: How virtual time reaches the agent: `jump`, `signal` or `wait`.
        max_message_tokens: Longest filler message, at least 60.
        workers: Isolated tests at once.
        definitions: A folder of `.def.json` files with the tests, in place of generating them.
        load: Python files that register tests, agents or fillers.
        regenerate: Generate the tests anew, though stored ones fit.

    Raises:
        ConfigurationError: A value is not what its field takes.

    >>> asked = MemorySpecification(configuration="benchmark-32k", agent="window(2000)", span_tokens=8000)
    >>> " ".join(asked.command())
    'memory run -c benchmark-32k -a window(2000) --span 8000'
    """

    kind: ClassVar[str] = "memory"

    configuration: str = _stored("")
    agent: str = _stored("")
    max_prompt_tokens: int | None = _stored(None, "--max-prompt-size")
    agent_options: Mapping[str, Any] | None = _stored(None)
    isolated: bool = _stored(False, "--isolated")
    is_local: bool = _stored(False, "--local")
    span_tokens: int | None = _stored(None, "--span")
    judge: str | None = _stored(None, "--judge")
    judge_options: Mapping[str, Any] | None = _stored(None)
    filler: str | None = _stored(None, "--filler")
    clock: str | None = _stored(None, "--clock")
    max_message_tokens: int | None = _stored(None, "--max-message-tokens")
    workers: int = _stored(1, "--workers")
    definitions: str | None = _stored(None, "--definitions")
    load: Sequence[str] = _stored(())
    regenerate: bool = _transient(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers > 1 and not self.isolated:
            raise ConfigurationError("--workers needs -i: only isolated tests are independent of each other")

    @property
    def shown_agent(self) -> str:
        """The agent's name without a secret that an address may hold."""
        return str(redact_options({"agent": self.agent})["agent"])

    @property
    def secret_options(self) -> list[str]:
        agent = ["agent"] if REDACTED in self.shown_agent else []
        return [*agent, *_with_secrets(self.agent_options or {}), *_with_secrets(self.judge_options or {})]

    def command(self) -> list[str]:
        words = ["memory", "run", "-c", self.configuration, "-a", self.shown_agent, *self._option_words()]
        for option, given in (("--option", self.agent_options), ("--judge-option", self.judge_options)):
            for name, value in (given or {}).items():
                if name not in self.secret_options:
                    words += [option, f"{name}={write_word(value)}"]
        for path in self.load:
            words += ["--load", path]
        return words


def load_specification(run: RunMetadata) -> Specification:
    """What a stored run was asked to be; its own id is set.

    Args:
        run: As the store lists it.

    Raises:
        ConfigurationError: The run does not say how it was started.

    >>> import themis
    >>> from themis.storage import ExperimentStorage
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=2, run_id="first", progress=False)
    >>> asked = load_specification(ExperimentStorage().get_run("first"))
    >>> asked.run_id, asked.dataset, asked.limit
    ('first', 'demo', 2)
    """
    stored = run.config_snapshot.get(STORED_AS)
    if not isinstance(stored, Mapping):
        raise ConfigurationError(
            f"run {run.run_id!r} does not say how it was started; run the program or the command that made it again with "
            "this run id, or, if it was imported, look at it with: themis show"
        )
    values = {name: value for name, value in stored.items() if name != "kind"}
    if run.kind == SampleSpecification.kind and not str(values.get("dataset")).startswith(LM_EVAL_PREFIX):
        values = {**_started_with(run), **values}
    kinds: dict[str, type[Specification]] = {one.kind: one for one in (SampleSpecification, MemorySpecification)}
    loaded = kinds[run.kind].from_values(values)
    return replace(loaded, run_id=run.run_id)


def _started_with(run: RunMetadata) -> dict[str, object]:
    """What the run's answers were drawn with, which its specification may not say: it was the default of its time."""
    task = run.config_snapshot.get("task") or {}
    values = {**task.get("sampling", {}), "num_samples": task.get("attempts")}
    return {name: value for name, value in values.items() if value not in (None, [])}


# --- values -----------------------------------------------------------------------------------------------------------


def name_of_code(value: object) -> str:
    """What a function, class or object of the program's is called where only a name can stand."""
    return f"python:{getattr(value, '__qualname__', None) or type(value).__qualname__}"


def _plain(value: object) -> object:
    """A value as JSON has it; None for what it cannot hold, which is an object of the program's."""
    if isinstance(value, PromptTemplate) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return list(value) if isinstance(value, Sequence) and all(isinstance(one, str) for one in value) else None
    if isinstance(value, Mapping):
        return {str(name): to_plain(one) for name, one in value.items()} or None
    return value if isinstance(value, str | int | float | bool) else None


def _without_secrets(name: str, value: object) -> object:
    if name in ("provider_options", "agent_options", "judge_options", "tags"):
        return redact_options(cast("Mapping[str, Any]", value))
    if name in ("agent", "metrics"):
        return (
            redact_options({name: value})[name]
            if name == "agent"
            else [*map(Redactor().values, cast("list[str]", value))]
        )
    return value


def _with_secrets(options: Mapping[str, object]) -> list[str]:
    return [
        name for name, value in options.items() if REDACTED in json.dumps(redact_options({name: value}), default=str)
    ]


def _words_of(one: Field[object], value: object) -> list[str]:
    option, default = one.metadata["option"], one.default
    if not option or value is None or value == default:
        return []
    if isinstance(value, bool):
        return [option]
    return (
        [option, f"{value:g}" if isinstance(value, float) else str(value)]
        if isinstance(value, str | int | float)
        else []
    )


def _is_whole(value: object) -> bool:
    """Of a size that a database keeps."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_number(value: object) -> bool:
    return _is_whole(value) or (isinstance(value, float) and not math.isnan(value))


def _at_least(least: float) -> Callable[[Any], bool]:
    return lambda value: _is_whole(value) and value >= least


_EXPECTED: tuple[tuple[str, tuple[str, ...], Callable[[Any], bool]], ...] = (
    (
        "a whole number of at least 1",
        (
            *("num_samples", "workers", "limit", "max_records_in_memory", "span_tokens", "max_prompt_tokens"),
            *("max_turns", "max_sample_tokens", "batch_size"),
        ),
        _at_least(1),
    ),
    (f"a whole number of at least {LEAST_FILLER_TOKENS}", ("max_message_tokens",), _at_least(LEAST_FILLER_TOKENS)),
    ("a whole number of at least 0", ("max_retries", "shots"), _at_least(0)),
    ("a whole number", ("max_tokens", "seed"), _is_whole),
    ("at least 1, or -1 for no limit", ("max_tokens",), lambda value: value >= 1 or value == -1),
    ("a number of at least 0", ("temperature",), lambda value: _is_number(value) and value >= 0),
    ("a number from 0 to 1", ("top_p", "truncated_limit"), lambda value: _is_number(value) and 0 <= value <= 1),
    (
        "a number greater than 0",
        (
            *("timeout_seconds", "deadline_seconds", "budget_usd", "max_sample_seconds", "max_sample_usd"),
            *("batch_poll_seconds", "batch_deadline_seconds"),
        ),
        lambda value: _is_number(value) and value > 0,
    ),
    (
        "a number greater than 0, and left out for no limit",
        ("requests_per_minute", "tokens_per_minute"),
        lambda value: _is_number(value) and value > 0,
    ),
    (
        "a dict",
        ("provider_options", "agent_options", "judge_options", "tags", "user"),
        lambda value: isinstance(value, Mapping),
    ),
    (
        "a list of texts at which an answer ends",
        ("stop",),
        lambda value: isinstance(value, list | tuple) and all(isinstance(text, str) and text for text in value),
    ),
    (
        "a list",
        ("attach", "tools", "load"),
        lambda value: isinstance(value, list | tuple),
    ),
    ("format or jinja", ("prompt_syntax",), lambda value: value in SYNTAXES),
    ("a text", ("system_prompt",), lambda value: isinstance(value, str)),
    ("a name, such as 'average' or 'pass@3'", ("reducer",), lambda value: isinstance(value, str)),
    ("a name", ("experiment",), lambda value: isinstance(value, str) and bool(value.strip())),
)
