"""Checks the arguments that a configuration gives to a memory test, before anything is generated."""

from __future__ import annotations

from typing import Any

from themis.core.registry import nearest
from themis.exceptions import ConfigurationError

__all__ = ["require_choice", "require_number"]


def require_number(test: str, argument: str, value: Any, *, least: int, most: int | None = None) -> None:
    """Whole numbers only, within what the test's material can give."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least and (most is None or value <= most):
        return
    allowed = f"at least {least}" if most is None else f"between {least} and {most}"
    raise ConfigurationError(f"memory test {test}: {argument} must be a whole number {allowed}, got {value!r}")


def require_choice(test: str, argument: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        hint = nearest(str(value), choices)
        raise ConfigurationError(f"memory test {test}: {argument} is one of {', '.join(choices)}, got {value!r}{hint}")
