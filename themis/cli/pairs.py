"""Reads options that are given as K=V."""

from __future__ import annotations

from typing import Any

from themis.exceptions import ConfigurationError

__all__ = ["pairs"]


def pairs(texts: tuple[str, ...], *, parsed: bool = False) -> dict[str, Any]:
    """`k=v` texts as a dict; parsed values are read as YAML, so that numbers and lists are what they look like."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigurationError(f"expected K=V, got {text!r}")
        if parsed:
            import yaml

            found[name.strip()] = yaml.safe_load(value)
        else:
            found[name.strip()] = value
    return found
