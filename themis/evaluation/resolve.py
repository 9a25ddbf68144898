"""Turns names, classes, objects and plain functions into metrics and extractors, and lets users register theirs.

`metric` and `extractor` wrap plain functions; `resolve_metric` and `resolve_extractor` accept a name, a name with
parameters such as `"numeric(tolerance=0.01)"`, a class, an object, a factory or a function.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

from themis.core.entities import MetricScore
from themis.core.redaction import learn_secrets
from themis.core.registry import Registry, WrittenCall, nearest, parse_call
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.registries import AGGREGATIONS, EXTRACTOR_CLASSES, EXTRACTORS, METRIC_CLASSES, METRICS
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Extractor, Metric, Row

if TYPE_CHECKING:
    from themis.evaluation.aggregations import Aggregation

ScoreRange = tuple[float | None, float | None]


def register_metric(name: str, target: object) -> None:
    """Makes a metric known under a name; the last registration of a name wins, also over a built-in one.

    Args:
        name: What it is asked for by, in `metrics=["my_metric"]` and `--metric my_metric`.
        target: A class with `compute`, an object of one, a factory of one that takes nothing, or a function that takes
            at least the prediction (see `metric`).

    Raises:
        MetricError: The target could not score anything.

    >>> register_metric("close", lambda prediction, reference: abs(float(prediction) - float(reference)) < 1)
    >>> resolve_metric("close").compute(prediction="4.5", references=["5"]).value
    1.0
    """
    _refuse_unfit(target, "compute", "metric", MetricError)
    if inspect.isfunction(target) and _required_parameters(target):
        target = FunctionMetric(target, name=name)
    METRICS.register(name, target)


def register_extractor(name: str, target: object) -> None:
    """Makes an extractor known under a name; the last registration of a name wins, also over a built-in one.

    Args:
        name: What it is asked for by, in `extractor="my_extractor"`.
        target: A class with `extract`, an object or factory of one, or a function of the model's text.

    Raises:
        ConfigurationError: The target could not extract anything.

    >>> register_extractor("first_word", lambda text: text.split()[0])
    >>> resolve_extractor("first_word").extract("Paris, of course")
    'Paris,'
    """
    _refuse_unfit(target, "extract", "extractor", ConfigurationError)
    if inspect.isfunction(target) and _required_parameters(target):
        target = FunctionExtractor(target)
    EXTRACTORS.register(name, target)


def get_registered_metrics() -> dict[str, object]:
    """What users have registered, by name; a copy.

    >>> register_metric("always", lambda prediction: 1)
    >>> "always" in get_registered_metrics(), "exact_match" in get_registered_metrics()
    (True, False)
    """
    return {name: METRICS.target(name) for name in METRICS if METRICS.is_of_this_program(name)}


@overload
def metric(function: Callable[..., object], /) -> FunctionMetric: ...
@overload
def metric(
    *,
    name: str | None = None,
    higher_is_better: bool | None = True,
    score_range: ScoreRange | None = None,
    aggregation: str | None = None,
) -> Callable[[Callable[..., object]], FunctionMetric]: ...
def metric(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    higher_is_better: bool | None = True,
    score_range: ScoreRange | None = None,
    aggregation: str | None = None,
) -> FunctionMetric | Callable[[Callable[..., object]], FunctionMetric]:
    """Turns a plain function into a registered metric: `@metric` or `@metric(name="...")`.

    Args:
        function: Takes the prediction and, as far as it names them, `reference` (called once for each, the best counts),
            `references` and `metadata`: the row's other fields, and `metadata["model_output"]`, all that the model returned
            (a `ModelOutput`, with tool calls and the transcript of several steps). Returns a number, a bool, `(value,
            details)` or a `MetricScore`.
        name: What it is registered and reported as; the function's own name by default.
        higher_is_better: False of a time or a distance, None of what is neither good nor bad.
        score_range: The least and the most that a score can be; no interval leaves it, and a score outside is a failure
            of the metric.
        aggregation: How the run's number is made, where that is no mean: the name of an aggregation
            (`register_aggregation`), which gets what the function returns as `(value, {"statistics": ...})`.

    >>> @metric
    ... def same_length(prediction, reference):
    ...     return len(prediction) == len(reference)
    >>> resolve_metric("same_length").compute(prediction="abc", references=["xyz"]).value
    1.0
    """

    def decorate(function: Callable[..., object]) -> FunctionMetric:
        built = FunctionMetric(function, name or function.__name__, higher_is_better, score_range, aggregation)
        register_metric(built.name, built)
        return built

    return decorate if function is None else decorate(function)


@overload
def extractor(function: Callable[[str], object], /) -> FunctionExtractor: ...
@overload
def extractor(
    *, name: str | None = None, part: str = "text"
) -> Callable[[Callable[[str], object]], FunctionExtractor]: ...
def extractor(
    function: Callable[[str], object] | None = None, /, *, name: str | None = None, part: str = "text"
) -> FunctionExtractor | Callable[[Callable[[str], object]], FunctionExtractor]:
    """Turns a function of the model's text into a registered extractor: `@extractor` or `@extractor(name="...")`.

    Args:
        function: Takes the text and returns the answer; None means that there is none.
        name: What it is registered as; the function's own name by default.
        part: What of the reply it takes: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> @extractor
    ... def after_arrow(text):
    ...     return text.partition("=>")[2].strip() or None
    >>> resolve_extractor("after_arrow").extract("so => 7")
    '7'
    """

    def decorate(function: Callable[[str], object]) -> FunctionExtractor:
        built = FunctionExtractor(function, part)
        register_extractor(name or function.__name__, built)
        return built

    return decorate if function is None else decorate(function)


def resolve_metric(metric: object) -> Metric:
    """The metric behind a name (with or without parameters), class, object, factory or function.

    >>> resolve_metric("numeric(tolerance=0.5)").tolerance
    0.5
    """
    found = _resolve(metric, METRICS, "compute")
    if inspect.isfunction(found):
        found = FunctionMetric(found, name=found.__name__)
    if not isinstance(getattr(found, "name", None), str):
        raise MetricError(f"the metric {found!r} has no name: give its class an attribute name = '...'")
    resolved = cast(Metric, found)
    _refuse_uncallable(resolved.compute, "metric", prediction="", references=[], metadata={})
    return resolved


def resolve_extractor(extractor: object) -> Extractor:
    """The extractor behind a name (with or without parameters), class, object, factory or function.

    >>> resolve_extractor("chain('boxed', 'last_number')").extract(r"so \\boxed{x = 3}")
    '3'
    """
    found = _resolve(extractor, EXTRACTORS, "extract")
    if inspect.isfunction(found):
        found = FunctionExtractor(found)
    resolved = cast(Extractor, found)
    _refuse_uncallable(resolved.extract, "extractor", "")
    return resolved


def resolve_aggregation(name: str) -> Aggregation:
    """The aggregation behind a name, with or without parameters.

    >>> resolve_aggregation("ece(bins=15)").bins
    15
    """
    try:
        return cast("Aggregation", _resolve(name, AGGREGATIONS, "compute"))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error}; one of your own is known once the module that registers it is imported"
        ) from error


def is_known_aggregation(name: str) -> bool:
    """Whether an aggregation is built in, a plugin's, or registered by this program."""
    return parse_call(name, "aggregation").name in AGGREGATIONS


class Description(NamedTuple):
    """What `themis list metrics --verbose` says of one."""

    name: str
    summary: str
    example: str


def describe(registry: Registry[Any], name: str) -> Description:
    """What is registered under a name: its description or the first line of its documentation, and its example."""
    target = registry.get(name)
    # A plain function stands inside the metric or extractor that it became.
    documentation = inspect.getdoc(getattr(target, "function", target)) or ""
    about = getattr(target, "description", "") or documentation
    return Description(name, about.strip().partition("\n")[0], _first_example(documentation))


_EXAMPLE = re.compile(r"^>>> (.*(?:\n\.\.\. .*)*)(?:\n(?!>>>)(\S.*))?", re.MULTILINE)


def _first_example(documentation: str) -> str:
    """The first example in a docstring on one line, `source == output`."""
    found = _EXAMPLE.search(documentation)
    if found is None:
        return ""
    joined = re.sub(r",?\n\.\.\. +(?=\))", "", found[1])
    joined = re.sub(r"(,?)\n\.\.\. +", lambda line: ", " if line[1] else "", joined)
    source = re.sub(r"^\w+ = ", "", joined).partition("  #")[0]
    return f"{source} == {found[2]}" if found[2] else source


@dataclass
class FunctionMetric(Metric):
    """A plain function as a metric; see `metric`."""

    function: Callable[..., object]
    name: str
    higher_is_better: bool | None = True
    score_range: ScoreRange | None = None
    aggregation: str | None = None

    def __post_init__(self) -> None:
        if self.aggregation is not None:
            resolve_aggregation(self.aggregation)
        self._roles = _roles(self.function)
        self.requires_reference = bool({"reference", "references"} & set(self._roles.values()))

    @property
    def reads_output(self) -> bool:  # type: ignore[override]
        """Whoever takes the row's fields is shown what the model returned too, whatever other metrics there are."""
        return "metadata" in self._roles.values()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.function(*args, **kwargs)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        roles = self._roles
        given: Row = {"prediction": prediction, "references": references, "metadata": metadata or {}}
        if "reference" not in roles.values():
            return self._score(self.function(**{name: given[role] for name, role in roles.items()}))
        if not references:
            raise MetricError(f"metric {self.name!r} compares with a reference, and this sample has none")
        calls = ({**given, "reference": reference} for reference in references)
        scores = [self._score(self.function(**{name: call[role] for name, role in roles.items()})) for call in calls]
        return (min if self.higher_is_better is False else max)(scores, key=lambda score: score.value)

    def _score(self, returned: object) -> MetricScore:
        details: Mapping[str, object] = {}
        value: Any = returned
        if isinstance(returned, MetricScore):
            value, details = returned.value, returned.details
        elif isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping):
            value, details = returned
        try:
            number = math.nan if value is None or isinstance(value, str | bytes) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise MetricError(
                f"metric {self.name!r} returned {value!r}, expected a finite number, a bool or (value, details)"
            )
        return MetricScore(self.name, number, dict(details))


@dataclass
class FunctionExtractor:
    """A plain function as an extractor; see `extractor`."""

    function: Callable[[str], object]
    part: str = "text"

    def __post_init__(self) -> None:
        _refuse_async(self.function, "extractor")

    def __call__(self, raw_output: str) -> Any:
        return self.function(raw_output)

    def extract(self, raw_output: str) -> object:
        found = self.function(raw_output)
        if found is None:
            raise FieldExtractionError(f"{self.function.__name__} found no answer")
        return found


_ROLES = ("prediction", "reference", "references", "metadata")
# What the parameters of a function with names of its own are taken for.
_ROLES_BY_POSITION = ("prediction", "reference", "metadata")


def _roles(function: Callable[..., object]) -> dict[str, str]:
    """Which of the function's parameters receives what."""
    _refuse_async(function, "metric")
    required = _required_parameters(function)
    roles = {name: name for name in inspect.signature(function).parameters if name in _ROLES}
    for position, name in enumerate(required):
        if name not in roles and position < len(_ROLES_BY_POSITION):
            roles[name] = _ROLES_BY_POSITION[position]
    if set(required) - set(roles) or len(set(roles.values())) < len(roles) or not roles:
        raise MetricError(
            f"metric function {function.__name__}{inspect.signature(function)} cannot be called: it takes "
            "(prediction), (prediction, reference) or (prediction, references, metadata)"
        )
    return roles


def _required_parameters(function: Callable[..., object]) -> list[str]:
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _refuse_async(function: Callable[..., object], kind: str) -> None:
    if inspect.iscoroutinefunction(function):
        raise ConfigurationError(f"{kind} {function.__name__} is async; scoring is not: write it as a plain function")


def _refuse_uncallable(method: Callable[..., object], kind: str, *args: object, **kwargs: object) -> None:
    """A method that cannot be called as the pipeline calls it would fail on every answer, after it is paid for."""
    _refuse_async(method, kind)
    try:
        signature = inspect.signature(method)
        signature.bind(*args, **kwargs)
    except TypeError as error:
        owner = type(getattr(method, "__self__", None)).__name__
        expected = ", ".join(["raw_output"] if args else ["*", *kwargs])
        raise ConfigurationError(
            f"the {kind} {owner} cannot be used: {method.__name__}({', '.join(signature.parameters)}) is called as "
            f"{method.__name__}({expected}) ({error})"
        ) from error
    except ValueError:  # built in C: it will speak for itself
        return


def _refuse_unfit(target: object, method: str, kind: str, error: type[Exception]) -> None:
    expected = f"expected a class or object with {method}(), or a function"
    if inspect.isclass(target):
        if not callable(getattr(target, method, None)):
            raise error(f"cannot register {target.__name__} as a {kind}: it has no method {method}(); {expected}")
        if inspect.isabstract(target):
            missing = ", ".join(sorted(getattr(target, "__abstractmethods__", ())))
            raise error(f"cannot register {target.__name__} as a {kind}: it does not define {missing}")
        target = getattr(target, method)
    elif not callable(target) and not callable(getattr(target, method, None)):
        raise error(f"cannot register {target!r} as a {kind}: {expected}")
    if inspect.isfunction(target):
        _refuse_async(target, kind)


def _resolve(wanted: object, registry: Registry[object], method: str) -> object:
    """An object with the method, or a function for the caller to wrap."""
    label, target = repr(wanted), wanted
    call = WrittenCall("", [], {})
    if isinstance(wanted, str):
        call = parse_call(wanted, registry.kind)
        learn_secrets(call.kwargs)
        target, label = _find_registered(registry, call.name), repr(call.name)
        if inspect.isfunction(target):
            target = target()
    if inspect.isclass(target):
        target = _build(target, call, f"{registry.kind} {label}")
    elif call.args or call.kwargs:
        raise ConfigurationError(f"{registry.kind} {label} takes no parameters")
    elif not inspect.isfunction(target) and not callable(getattr(target, method, None)) and callable(target):
        try:
            target = target()
        except TypeError as error:
            raise ConfigurationError(
                f"{registry.kind} {label} is neither a plain function nor a factory: {error}"
            ) from error
    if not inspect.isfunction(target) and not callable(getattr(target, method, None)):
        raise ConfigurationError(
            f"{registry.kind} {label} is a {type(target).__name__}, expected a name, an object with {method}() or a function"
        )
    return target


def _find_registered(registry: Registry[object], name: str) -> object:
    """What is registered under a name, or the built-in whose class is called so: `MathVerifyAccuracy` is `math_verify`.

    A report calls most metrics by their class.
    """
    classes = METRIC_CLASSES if registry is METRICS else EXTRACTOR_CLASSES
    called = (known for known, target in classes.items() if target.endswith(f":{name}"))
    return registry.get(name if name in registry else next(called, name))


def _build(target: type, call: WrittenCall, label: str) -> object:
    signature = inspect.signature(target)
    try:
        signature.bind(*call.args, **call.kwargs)
    except TypeError as error:
        unknown = next((name for name in call.kwargs if name not in signature.parameters), None)
        hint = nearest(unknown, signature.parameters) if unknown else ""
        example = _first_example(inspect.getdoc(target) or "")
        raise ConfigurationError(
            f"{label}: {error}{hint}; it takes {', '.join(signature.parameters) or 'no parameters'}"
            + (f", e.g. {example}" if example else "")
        ) from error
    return target(*call.args, **call.kwargs)
