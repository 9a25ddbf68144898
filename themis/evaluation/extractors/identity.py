"""The whole text as the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from themis.evaluation.extractors.text import text_of

__all__ = ["IdentityExtractor"]


@dataclass(frozen=True)
class IdentityExtractor:
    """The whole text is the answer."""

    example: ClassVar[str] = 'IdentityExtractor().extract(" Paris\\n") == "Paris"'

    strip_whitespace: bool = True

    def extract(self, raw_output: str) -> Any:
        text = text_of(raw_output)
        return text.strip() if self.strip_whitespace else text
