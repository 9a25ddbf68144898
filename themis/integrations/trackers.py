"""The trackers by name, made from options as a command line or a configuration gives them, and let to watch runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from themis.core.entities import ExperimentReport
from themis.core.redaction import look_up_secrets
from themis.core.registry import Registry, nearest
from themis.exceptions import ConfigurationError
from themis.runs.observers import Observer

__all__ = ["TRACKERS", "as_observers", "make_tracker", "make_trackers"]


class Tracker(Protocol):
    """Somewhere a run can be shown: afterwards with `publish`, or while it goes on with its `observer`."""

    def publish(self, report: ExperimentReport) -> str:
        """Sends a finished run and says where it is to be found."""
        ...

    def observer(self) -> Observer: ...


TRACKERS: Registry[Callable[..., Tracker]] = Registry(
    "tracker",
    {
        "wandb": "themis.integrations.wandb:WandbTracker",
        "mlflow": "themis.integrations.mlflow:MlflowTracker",
        "hub": "themis.integrations.huggingface:hub_tracker",
        "otel": "themis.integrations.opentelemetry:OpenTelemetryTracker",
    },
)

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def as_observers(given: Any) -> list[Observer]:
    """Observers from trackers, their names, and observers of the user's own."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(f"observers is a list, such as ['wandb'], got {given!r}")
    return [_as_observer(one) for one in given]


def _as_observer(given: Any) -> Observer:
    if isinstance(given, str):
        given = make_tracker(given)
    if isinstance(given, Observer):
        return given
    if callable(getattr(given, "observer", None)):
        observer: Observer = given.observer()
        return observer
    raise ConfigurationError(
        f"an observer is a tracker's name ({', '.join(TRACKERS)}), a tracker or an Observer, got {given!r}"
    )


def make_trackers(names: Iterable[str], options: Mapping[str, Any]) -> dict[str, Tracker]:
    """Trackers that share options: each takes those it has, and `otel.endpoint` is for otel alone."""
    has = {name: tuple(inspect.signature(TRACKERS.get(name)).parameters) for name in names}
    given: dict[str, dict[str, Any]] = {name: {} for name in has}
    for option, value in options.items():
        tracker, dot, own = option.rpartition(".")
        if dot and tracker not in has:
            raise ConfigurationError(f"option {option!r} is for {tracker!r}; the run goes to {', '.join(has)}")
        takers = [tracker] if dot else [name for name in has if own in has[name]]
        # Nobody has it: the first tracker says so, and what it has.
        for taker in takers or list(has)[:1]:
            given[taker][own] = value
    return {name: make_tracker(name, given[name]) for name in has}


def make_tracker(name: str, options: Mapping[str, Any] | None = None) -> Tracker:
    """A tracker with its options; those given as text become what the option is."""
    factory = TRACKERS.get(name)
    parameters = inspect.signature(factory).parameters
    given = {}
    for option, value in look_up_secrets(options or {}).items():
        if option not in parameters:
            raise ConfigurationError(
                f"{name} has no option {option!r}{nearest(option, parameters)}; it has {', '.join(parameters)}"
            )
        given[option] = _typed(name, option, value, parameters[option].default)
    for option, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and option not in given:
            raise ConfigurationError(f"{name} needs the option {option}=...")
    return factory(**given)


def _typed(tracker: str, option: str, value: Any, default: Any) -> Any:
    if not isinstance(value, str):
        return value
    if isinstance(default, bool):
        if value.lower() not in _TRUTH:
            raise ConfigurationError(f"{tracker}'s option {option} is true or false, got {value!r}")
        return _TRUTH[value.lower()]
    if isinstance(default, int):
        try:
            return int(value)
        except ValueError as error:
            raise ConfigurationError(f"{tracker}'s option {option} is a whole number, got {value!r}") from error
    return value
