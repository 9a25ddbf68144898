"""The one error an extractor raises when the model gave no answer that can be read."""

from __future__ import annotations

__all__ = ["FieldExtractionError"]


class FieldExtractionError(RuntimeError):
    """No answer could be found in the model's text: the model's fault, scored 0.0 and counted as `unparsed`."""
