"""Metrics score one extracted answer against its references; every one has a name and an example.

The classes are imported when they are first used, and the packages that some of them need when they first compute.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from themis.core.registry import Registry
from themis.exceptions import MetricError

if TYPE_CHECKING:
    from themis.evaluation.metrics.choice import MultipleChoice
    from themis.evaluation.metrics.code import ExecutionAccuracy, PassAtK
    from themis.evaluation.metrics.combined import CompositeMetric, ConsistencyMetric
    from themis.evaluation.metrics.embeddings import BertScore, EmbeddingSimilarity
    from themis.evaluation.metrics.json_schema import JsonSchema
    from themis.evaluation.metrics.maths import MathVerifyAccuracy
    from themis.evaluation.metrics.measures import Latency, LengthDifferenceTolerance, ResponseLength
    from themis.evaluation.metrics.numeric import Numeric
    from themis.evaluation.metrics.overlap import Bleu, Chrf, Meteor, Rouge1, Rouge2, RougeL
    from themis.evaluation.metrics.structured import JsonEqual, JsonSubset, ListF1
    from themis.evaluation.metrics.text import EditSimilarity, ExactMatch, Includes, RegexMatch, TokenF1

__all__ = [
    "METRICS",
    "BertScore",
    "Bleu",
    "Chrf",
    "CompositeMetric",
    "ConsistencyMetric",
    "EditSimilarity",
    "EmbeddingSimilarity",
    "ExactMatch",
    "ExecutionAccuracy",
    "Includes",
    "JsonEqual",
    "JsonSchema",
    "JsonSubset",
    "Latency",
    "LengthDifferenceTolerance",
    "ListF1",
    "MathVerifyAccuracy",
    "Meteor",
    "MultipleChoice",
    "Numeric",
    "PassAtK",
    "RegexMatch",
    "ResponseLength",
    "Rouge1",
    "Rouge2",
    "RougeL",
    "TokenF1",
]

_BUILTIN = {
    "bertscore": "themis.evaluation.metrics.embeddings:BertScore",
    "bleu": "themis.evaluation.metrics.overlap:Bleu",
    "chrf": "themis.evaluation.metrics.overlap:Chrf",
    "composite": "themis.evaluation.metrics.combined:CompositeMetric",
    "consistency": "themis.evaluation.metrics.combined:ConsistencyMetric",
    "countdown_strict": "themis.evaluation.metrics.countdown:CountdownStrict",
    "countdown_validity": "themis.evaluation.metrics.countdown:CountdownValidity",
    "edit_similarity": "themis.evaluation.metrics.text:EditSimilarity",
    "embedding_similarity": "themis.evaluation.metrics.embeddings:EmbeddingSimilarity",
    "exact_match": "themis.evaluation.metrics.text:ExactMatch",
    "execution_accuracy": "themis.evaluation.metrics.code:ExecutionAccuracy",
    "f1": "themis.evaluation.metrics.text:TokenF1",
    "includes": "themis.evaluation.metrics.text:Includes",
    "json_equal": "themis.evaluation.metrics.structured:JsonEqual",
    "json_schema": "themis.evaluation.metrics.json_schema:JsonSchema",
    "json_subset": "themis.evaluation.metrics.structured:JsonSubset",
    "latency": "themis.evaluation.metrics.measures:Latency",
    "length_difference": "themis.evaluation.metrics.measures:LengthDifferenceTolerance",
    "list_f1": "themis.evaluation.metrics.structured:ListF1",
    "math_verify": "themis.evaluation.metrics.maths:MathVerifyAccuracy",
    "meteor": "themis.evaluation.metrics.overlap:Meteor",
    "multiple_choice": "themis.evaluation.metrics.choice:MultipleChoice",
    "numeric": "themis.evaluation.metrics.numeric:Numeric",
    "pairwise_judge": "themis.evaluation.judges:PairwiseJudge",
    "pass_at_k": "themis.evaluation.metrics.code:PassAtK",
    "regex_match": "themis.evaluation.metrics.text:RegexMatch",
    "response_length": "themis.evaluation.metrics.measures:ResponseLength",
    "rouge1": "themis.evaluation.metrics.overlap:Rouge1",
    "rouge2": "themis.evaluation.metrics.overlap:Rouge2",
    "rougeL": "themis.evaluation.metrics.overlap:RougeL",
    "rubric_judge": "themis.evaluation.judges:RubricJudge",
}

# What stands behind a name: a class, or the object that a decorated function became.
METRICS: Registry[Any] = Registry("metric", _BUILTIN, package=__name__, error=MetricError)

_CLASSES = {class_name: module for module, _, class_name in (target.partition(":") for target in _BUILTIN.values())}


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        raise AttributeError(f"module 'themis.evaluation.metrics' has no attribute {name!r}")
    return getattr(importlib.import_module(_CLASSES[name]), name)
