"""What an extractor reads: the model's text, or what the extractor before it in a chain has found."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, TypeVar

from themis.evaluation.extractors.exceptions import FieldExtractionError

__all__ = ["last_of", "shortened", "text_of"]


T = TypeVar("T")


def text_of(raw_output: Any) -> str:
    """Strings as they are, numbers as text; anything else was not said by a model and cannot be searched."""
    if isinstance(raw_output, str):
        return raw_output
    if isinstance(raw_output, int | float):
        return str(raw_output)
    raise FieldExtractionError(f"expected text, got {type(raw_output).__name__}")


def shortened(text: str, limit: int = 60) -> str:
    """For messages: the end of a long text, where answers stand."""
    text = text.strip()
    return repr(text) if len(text) <= limit else repr("..." + text[3 - limit :])


def last_of(items: Iterable[T]) -> T | None:
    """The last of several finds: a model that corrects itself means what it said last."""
    return next(iter(deque(items, maxlen=1)), None)
