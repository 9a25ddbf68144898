"""Where users' metrics and extractors enter, and where a name becomes an object.

`metric` and `extractor` turn plain functions into what the pipeline takes; `resolve_metric` and `resolve_extractor`
accept a name, a name with parameters such as `"numeric(tolerance=0.01)"`, a class, an object or a function.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast, overload

from themis.core.entities import MetricScore
from themis.core.redaction import learn_secrets, redact_text
from themis.core.registry import Registry, nearest
from themis.evaluation.extractors import EXTRACTORS
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.metrics import METRICS
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Extractor, Metric

__all__ = [
    "Description",
    "FunctionExtractor",
    "FunctionMetric",
    "describe",
    "extractor",
    "get_registered_extractors",
    "get_registered_metrics",
    "metric",
    "register_extractor",
    "register_metric",
    "resolve_extractor",
    "resolve_metric",
]

_USER_METRICS: dict[str, Any] = {}
_USER_EXTRACTORS: dict[str, Any] = {}


def register_metric(name: str, target: Any) -> None:
    """Makes a metric known under a name: a class with `compute`, an object of one, a factory of one, or a function.

    A function takes at least the prediction (see `metric`); a factory takes nothing. The last registration of a name
    wins, also over a built-in one.
    """
    _refuse_unfit(target, "compute", "metric", MetricError)
    if inspect.isfunction(target) and _required_parameters(target):
        target = FunctionMetric(target, name=name)
    METRICS.register(name, target)
    _USER_METRICS[name] = target


def register_extractor(name: str, target: Any) -> None:
    """Makes an extractor known under a name: a class with `extract`, an object or factory of one, or a function."""
    _refuse_unfit(target, "extract", "extractor", ConfigurationError)
    if inspect.isfunction(target) and _required_parameters(target):
        target = FunctionExtractor(target)
    EXTRACTORS.register(name, target)
    _USER_EXTRACTORS[name] = target


def get_registered_metrics() -> dict[str, Any]:
    """What users have registered, by name; a copy."""
    return dict(_USER_METRICS)


def get_registered_extractors() -> dict[str, Any]:
    """What users have registered, by name; a copy."""
    return dict(_USER_EXTRACTORS)


@overload
def metric(function: Callable[..., Any], /) -> FunctionMetric: ...
@overload
def metric(
    *,
    name: str | None = None,
    higher_is_better: bool | None = True,
    score_range: tuple[float | None, float | None] | None = None,
) -> Callable[[Callable[..., Any]], FunctionMetric]: ...
def metric(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    higher_is_better: bool | None = True,
    score_range: tuple[float | None, float | None] | None = None,
) -> Any:
    """Turns a plain function into a registered metric: `@metric` or `@metric(name="...")`.

    The function takes the prediction and, as far as it names them, `reference` (called once for each, the best
    counts), `references` and `metadata`. It returns a number, a bool, `(value, details)` or a `MetricScore`. Say
    `higher_is_better=False` of a time or a distance, and None of what is neither good nor bad. With `score_range=(0, 1)`
    no interval leaves it, and a score outside is a failure of the metric.
    """

    def decorate(function: Callable[..., Any]) -> FunctionMetric:
        built = FunctionMetric(function, name or function.__name__, higher_is_better, score_range)
        register_metric(built.name, built)
        return built

    return decorate if function is None else decorate(function)


@overload
def extractor(function: Callable[[str], Any], /) -> FunctionExtractor: ...
@overload
def extractor(*, name: str | None = None) -> Callable[[Callable[[str], Any]], FunctionExtractor]: ...
def extractor(function: Callable[[str], Any] | None = None, /, *, name: str | None = None) -> Any:
    """Turns a function of the model's text into a registered extractor; None from it means that there is no answer."""

    def decorate(function: Callable[[str], Any]) -> FunctionExtractor:
        built = FunctionExtractor(function)
        register_extractor(name or function.__name__, built)
        return built

    return decorate if function is None else decorate(function)


def resolve_metric(metric: Any) -> Metric:
    """The metric behind a name (with or without parameters), class, object, factory or function."""
    found = _resolve(metric, METRICS, "compute")
    if inspect.isfunction(found):
        found = FunctionMetric(found, name=found.__name__)
    if not isinstance(getattr(found, "name", None), str):
        raise MetricError(f"the metric {found!r} has no name: give its class an attribute name = '...'")
    _refuse_uncallable(found.compute, "metric", prediction="", references=[], metadata={})
    return cast(Metric, found)


def resolve_extractor(extractor: Any) -> Extractor:
    """The extractor behind a name (with or without parameters), class, object, factory or function."""
    found = _resolve(extractor, EXTRACTORS, "extract")
    if inspect.isfunction(found):
        found = FunctionExtractor(found)
    _refuse_uncallable(found.extract, "extractor", "")
    return cast(Extractor, found)


class Description(NamedTuple):
    """What `themis list metrics --verbose` says of one."""

    name: str
    summary: str
    example: str


def describe(registry: Registry[Any], name: str) -> Description:
    """What is registered under a name: its description or the first line of its documentation, and its example."""
    target = registry.get(name)
    # A plain function stands inside the metric or extractor that it became.
    about = getattr(target, "description", "") or inspect.getdoc(getattr(target, "function", target)) or ""
    return Description(name, about.strip().partition("\n")[0], getattr(target, "example", ""))


@dataclass
class FunctionMetric(Metric):
    """A plain function as a metric."""

    example: ClassVar[str] = ""

    function: Callable[..., Any]
    name: str
    higher_is_better: bool | None = True
    score_range: tuple[float | None, float | None] | None = None

    def __post_init__(self) -> None:
        self._roles = _roles(self.function)
        self.requires_reference = bool({"reference", "references"} & set(self._roles.values()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        roles = self._roles
        given = {"prediction": prediction, "references": references, "metadata": metadata or {}}
        if "reference" not in roles.values():
            return self._score(self.function(**{name: given[role] for name, role in roles.items()}))
        if not references:
            raise MetricError(f"metric {self.name!r} compares with a reference, and this sample has none")
        calls = ({**given, "reference": reference} for reference in references)
        scores = [self._score(self.function(**{name: call[role] for name, role in roles.items()})) for call in calls]
        return (min if self.higher_is_better is False else max)(scores, key=lambda score: score.value)

    def _score(self, returned: Any) -> MetricScore:
        details: Mapping[str, Any] = {}
        value = returned
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
    """A plain function as an extractor."""

    example: ClassVar[str] = ""

    function: Callable[[str], Any]

    def __post_init__(self) -> None:
        _refuse_async(self.function, "extractor")

    def __call__(self, raw_output: str) -> Any:
        return self.function(raw_output)

    def extract(self, raw_output: str) -> Any:
        found = self.function(raw_output)
        if found is None:
            raise FieldExtractionError(f"{self.function.__name__} found no answer")
        return found


_ROLES = ("prediction", "reference", "references", "metadata")
# What the parameters of a function with names of its own are taken for.
_ROLES_BY_POSITION = ("prediction", "reference", "metadata")


def _roles(function: Callable[..., Any]) -> dict[str, str]:
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


def _required_parameters(function: Callable[..., Any]) -> list[str]:
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _refuse_async(function: Callable[..., Any], kind: str) -> None:
    if inspect.iscoroutinefunction(function):
        raise ConfigurationError(f"{kind} {function.__name__} is async; scoring is not: write it as a plain function")


def _refuse_uncallable(method: Callable[..., Any], kind: str, *args: Any, **kwargs: Any) -> None:
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


def _refuse_unfit(target: Any, method: str, kind: str, error: type[Exception]) -> None:
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


def _resolve(wanted: Any, registry: Registry[Any], method: str) -> Any:
    """An object with the method, or a function for the caller to wrap."""
    label, target = repr(wanted), wanted
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    if isinstance(wanted, str):
        name, args, kwargs = _parse_call(wanted, registry.kind)
        learn_secrets(kwargs)
        target, label = registry.get(name), repr(name)
        if inspect.isfunction(target):
            target = target()
    if inspect.isclass(target):
        target = _build(target, args, kwargs, f"{registry.kind} {label}")
    elif args or kwargs:
        raise ConfigurationError(f"{registry.kind} {label} takes no parameters")
    elif not inspect.isfunction(target) and not callable(getattr(target, method, None)) and callable(target):
        target = _made(target, f"{registry.kind} {label}")
    if not inspect.isfunction(target) and not callable(getattr(target, method, None)):
        raise ConfigurationError(
            f"{registry.kind} {label} is a {type(target).__name__}, expected a name, an object with {method}() or a function"
        )
    return target


def _made(factory: Callable[[], Any], label: str) -> Any:
    try:
        return factory()
    except TypeError as error:
        raise ConfigurationError(f"{label} is neither a plain function nor a factory: {error}") from error


def _parse_call(written: str, kind: str) -> tuple[str, list[Any], dict[str, Any]]:
    """`numeric(tolerance=0.01)` as a name and parameters; only literals are read, nothing is evaluated."""
    call = re.fullmatch(r"\s*([^()]+?)\s*\((.*)\)\s*", written, re.DOTALL)
    if call is None:
        return written.strip(), [], {}
    try:
        parsed = ast.parse(f"_({call[2]})", mode="eval").body
        if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name):
            raise SyntaxError("not one list of parameters")
        args = [ast.literal_eval(argument) for argument in parsed.args]
        kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in parsed.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ConfigurationError(
            f"cannot read the parameters of {kind} {redact_text(written)!r}: expected literals, as in {call[1]}(name=0.5) "
            f"({error})"
        ) from error
    return call[1], args, kwargs


def _build(target: type, args: list[Any], kwargs: dict[str, Any], label: str) -> Any:
    signature = inspect.signature(target)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        unknown = next((name for name in kwargs if name not in signature.parameters), None)
        hint = nearest(unknown, signature.parameters) if unknown else ""
        example = getattr(target, "example", "")
        raise ConfigurationError(
            f"{label}: {error}{hint}; it takes {', '.join(signature.parameters) or 'no parameters'}"
            + (f", e.g. {example}" if example else "")
        ) from error
    return target(*args, **kwargs)
