"""Extractors find the answer in what the model said; each raises `FieldExtractionError` where there is none.

Anything with a method `extract(raw_output)` is an extractor; these are the ones that have a name. The classes are
imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.registries import EXTRACTOR_CLASSES, EXTRACTORS, load_class

if TYPE_CHECKING:
    from themis.evaluation.extractors.answers import BoxedExtractor, FinalAnswerExtractor
    from themis.evaluation.extractors.choice import MultipleChoiceExtractor
    from themis.evaluation.extractors.confidence import ConfidenceExtractor
    from themis.evaluation.extractors.countdown import CountdownExpressionExtractor
    from themis.evaluation.extractors.numbers import LastNumberExtractor
    from themis.evaluation.extractors.structured import CodeBlockExtractor, JsonFieldExtractor, XmlTagExtractor
    from themis.evaluation.extractors.text import (
        ChainExtractor,
        ErrorTaxonomyExtractor,
        IdentityExtractor,
        RegexExtractor,
        ThinkTagStripper,
    )

__all__ = [
    "EXTRACTORS",
    "BoxedExtractor",
    "ChainExtractor",
    "CodeBlockExtractor",
    "ConfidenceExtractor",
    "CountdownExpressionExtractor",
    "ErrorTaxonomyExtractor",
    "FieldExtractionError",
    "FinalAnswerExtractor",
    "IdentityExtractor",
    "JsonFieldExtractor",
    "LastNumberExtractor",
    "MultipleChoiceExtractor",
    "RegexExtractor",
    "ThinkTagStripper",
    "XmlTagExtractor",
]


def __getattr__(name: str) -> object:
    return load_class(__name__, EXTRACTOR_CLASSES, name)
