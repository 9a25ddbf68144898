"""The trackers by name, made from options as a command line or a configuration gives them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from themis.core.registry import Registry, nearest
from themis.exceptions import ConfigurationError
from themis.integrations.watching import Tracker

__all__ = ["TRACKERS", "make_tracker"]

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


def make_tracker(name: str, options: Mapping[str, Any] | None = None) -> Tracker:
    """A tracker with its options; those given as text become what the option is."""
    factory = TRACKERS.get(name)
    parameters = inspect.signature(factory).parameters
    given = {}
    for option, value in (options or {}).items():
        if option not in parameters:
            raise ConfigurationError(
                f"{name} has no option {option!r}{nearest(option, parameters)}; it has {', '.join(parameters)}"
            )
        given[option] = _typed(name, option, value, parameters[option].default)
    for option, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and option not in given:
            raise ConfigurationError(f"{name} needs the option {option}, for example --option {option}=...")
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
