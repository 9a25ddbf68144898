"""Extractors find the answer in what the model said; each raises `FieldExtractionError` where there is none.

Anything with a method `extract(raw_output)` is an extractor; these are the ones that have a name. The classes are
imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from themis.core.registry import Registry
from themis.evaluation.extractors.exceptions import FieldExtractionError

if TYPE_CHECKING:
    from themis.evaluation.extractors.boxed import BoxedExtractor
    from themis.evaluation.extractors.chain import ChainExtractor
    from themis.evaluation.extractors.choices import MultipleChoiceExtractor
    from themis.evaluation.extractors.final_answer import FinalAnswerExtractor
    from themis.evaluation.extractors.identity import IdentityExtractor
    from themis.evaluation.extractors.json_field import JsonFieldExtractor
    from themis.evaluation.extractors.markup import CodeBlockExtractor, ThinkTagStripper, XmlTagExtractor
    from themis.evaluation.extractors.numbers import LastNumberExtractor
    from themis.evaluation.extractors.regex import RegexExtractor
    from themis.evaluation.extractors.taxonomy import ErrorTaxonomyExtractor

__all__ = [
    "EXTRACTORS",
    "BoxedExtractor",
    "ChainExtractor",
    "CodeBlockExtractor",
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

_BUILTIN = {
    "boxed": "themis.evaluation.extractors.boxed:BoxedExtractor",
    "chain": "themis.evaluation.extractors.chain:ChainExtractor",
    "code_block": "themis.evaluation.extractors.markup:CodeBlockExtractor",
    "countdown_expression": "themis.evaluation.extractors.countdown:CountdownExpressionExtractor",
    "error_taxonomy": "themis.evaluation.extractors.taxonomy:ErrorTaxonomyExtractor",
    "final_answer": "themis.evaluation.extractors.final_answer:FinalAnswerExtractor",
    "identity": "themis.evaluation.extractors.identity:IdentityExtractor",
    "json_field": "themis.evaluation.extractors.json_field:JsonFieldExtractor",
    "last_number": "themis.evaluation.extractors.numbers:LastNumberExtractor",
    "multiple_choice": "themis.evaluation.extractors.choices:MultipleChoiceExtractor",
    "regex": "themis.evaluation.extractors.regex:RegexExtractor",
    "think_tag_stripper": "themis.evaluation.extractors.markup:ThinkTagStripper",
    "xml_tag": "themis.evaluation.extractors.markup:XmlTagExtractor",
}

# What stands behind a name: a class, or the object that a decorated function became.
EXTRACTORS: Registry[Any] = Registry("extractor", _BUILTIN, package=__name__)

_CLASSES = {class_name: module for module, _, class_name in (target.partition(":") for target in _BUILTIN.values())}


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        raise AttributeError(f"module 'themis.evaluation.extractors' has no attribute {name!r}")
    return getattr(importlib.import_module(_CLASSES[name]), name)
