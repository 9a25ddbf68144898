"""What counts as a provider: an object with `execute(task)`, whatever it is derived from."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any

from themis.core.entities import GenerationRecord, GenerationTask
from themis.exceptions import ConfigurationError, ProviderError
from themis.interfaces import StatelessTaskExecutor

__all__ = ["as_provider", "refuse_unfit"]

_EXPECTED = (
    "a provider is a class with a method execute(task) that returns a GenerationRecord, or a function that makes one"
)


def refuse_unfit(name: str, target: Any) -> None:
    """Raises at registration where no call could ever succeed: what is missing, and what is expected."""
    if inspect.isclass(target):
        execute = inspect.getattr_static(target, "execute", None)
        if inspect.isabstract(target) or not callable(getattr(target, "execute", None)):
            raise ConfigurationError(f"provider {name!r}: {target.__name__} has no method execute(task); {_EXPECTED}")
        if inspect.isfunction(execute) and not _takes(execute, 2):
            taken = ", ".join(inspect.signature(execute).parameters)
            raise ConfigurationError(
                f"provider {name!r}: {target.__name__}.execute({taken}) cannot be called with a task; {_EXPECTED}"
            )
    elif not callable(target):
        hint = f"; register its class, or `lambda: {name}`" if callable(getattr(target, "execute", None)) else ""
        raise ConfigurationError(
            f"provider {name!r} must be a class or a function that builds one, got {target!r}{hint}"
        )


def as_provider(name: str, made: Any) -> StatelessTaskExecutor:
    """What a factory made, as the engine takes it."""
    execute = getattr(made, "execute", None)
    if not callable(execute) or not _takes(execute, 1):
        raise ProviderError(
            f"provider {name!r} built {type(made).__name__}, which has no method execute(task); {_EXPECTED}"
        )
    return made if isinstance(made, StatelessTaskExecutor) else _DuckTyped(made)


def _takes(function: Any, arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError:
        return False
    except ValueError:  # built in C: it will speak for itself
        return True
    return True


class _DuckTyped(StatelessTaskExecutor):
    """An object that has the method and not the base class; everything else that it has is found behind this one."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        for name in ("prompt_only", "instant", "is_local"):
            setattr(self, name, bool(getattr(provider, name, False)))
        # The very method, so that a coroutine function is seen as one.
        self.execute = provider.execute  # type: ignore[method-assign]

    def execute(self, task: GenerationTask) -> GenerationRecord | Awaitable[GenerationRecord]:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_provider"], name)
