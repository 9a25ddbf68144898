"""Reads options that are given as K=V."""

from __future__ import annotations

from typing import Any

from themis.core.words import read_word
from themis.exceptions import ConfigurationError

__all__ = ["pairs"]


def pairs(texts: tuple[str, ...], *, parsed: bool = False) -> dict[str, Any]:
    """`k=v` texts as a dict; parsed values are what they look like: numbers, lists, text."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigurationError(f"expected K=V, got {text!r}")
        found[name.strip()] = read_word(value) if parsed else value
    return found
