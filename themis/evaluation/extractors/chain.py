"""Extractors one after the other."""

from __future__ import annotations

from typing import Any, ClassVar

from themis.evaluation.registering import resolve_extractor
from themis.exceptions import ConfigurationError
from themis.interfaces import Extractor

__all__ = ["ChainExtractor"]


class ChainExtractor:
    """Each extractor reads what the one before it found; names and objects can be mixed."""

    example: ClassVar[str] = 'ChainExtractor("think_tag_stripper", "last_number").extract("<think>1</think> 2") == "2"'

    def __init__(self, *extractors: str | Extractor) -> None:
        if not extractors:
            raise ConfigurationError("a chain needs at least one extractor, e.g. ChainExtractor('boxed')")
        self.extractors = tuple(resolve_extractor(extractor) for extractor in extractors)

    def extract(self, raw_output: str) -> Any:
        found: Any = raw_output
        for extractor in self.extractors:
            found = extractor.extract(found)
        return found

    def __repr__(self) -> str:
        return f"ChainExtractor({', '.join(map(repr, self.extractors))})"
