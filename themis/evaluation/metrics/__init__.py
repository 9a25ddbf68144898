"""Metrics score one extracted answer against its references; every one has a name and an example.

The classes are imported when they are first used, and the packages that some of them need when they first compute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from themis.evaluation.registries import METRIC_CLASSES, METRICS, load_class

if TYPE_CHECKING:
    from themis.evaluation.judges import PairwiseJudge as PairwiseJudgeMetric
    from themis.evaluation.judges import RubricJudge as RubricJudgeMetric
    from themis.evaluation.metrics.calibration import Brier, Ece
    from themis.evaluation.metrics.classification import (
        Accuracy,
        BalancedAccuracy,
        Kappa,
        MacroF1,
        Mcc,
        WeightedF1,
    )
    from themis.evaluation.metrics.code import ExecutionAccuracy, PassAtK
    from themis.evaluation.metrics.combined import CompositeMetric, ConsistencyMetric, GroupMean
    from themis.evaluation.metrics.countdown import CountdownStrict, CountdownValidity
    from themis.evaluation.metrics.likelihood import (
        BitsPerByte,
        BytePerplexity,
        GreedyMatch,
        MutualInformationAccuracy,
        NormalizedOptionAccuracy,
        OptionAccuracy,
        Perplexity,
        WordPerplexity,
    )
    from themis.evaluation.metrics.maths import MathVerifyAccuracy
    from themis.evaluation.metrics.numeric import Numeric
    from themis.evaluation.metrics.overlap import (
        BertScore,
        Bleu,
        Chrf,
        EmbeddingSimilarity,
        Meteor,
        Rouge1,
        Rouge2,
        RougeL,
    )
    from themis.evaluation.metrics.passages import BbhMatch, DropScore, LongBenchScore, PartsFound
    from themis.evaluation.metrics.ranking import (
        MeanAveragePrecision,
        MeanReciprocalRank,
        Ndcg,
        PrecisionAtK,
        RecallAtK,
    )
    from themis.evaluation.metrics.structured import JsonEqual, JsonSchema, JsonSubset, ListF1
    from themis.evaluation.metrics.text import (
        EditSimilarity,
        ExactMatch,
        Includes,
        Latency,
        LengthDifferenceTolerance,
        MultipleChoice,
        RegexMatch,
        ResponseLength,
        TokenF1,
    )
    from themis.evaluation.metrics.transcripts import (
        FinalState,
        NoToolCalled,
        Steps,
        ToolArguments,
        ToolCalled,
        ToolErrors,
    )
    from themis.evaluation.metrics.translation import CorpusBleu, CorpusChrf, Ter

__all__ = [
    "METRICS",
    "Accuracy",
    "BalancedAccuracy",
    "BbhMatch",
    "BertScore",
    "BitsPerByte",
    "Bleu",
    "Brier",
    "BytePerplexity",
    "Chrf",
    "CompositeMetric",
    "ConsistencyMetric",
    "CorpusBleu",
    "CorpusChrf",
    "CountdownStrict",
    "CountdownValidity",
    "DropScore",
    "Ece",
    "EditSimilarity",
    "EmbeddingSimilarity",
    "ExactMatch",
    "ExecutionAccuracy",
    "FinalState",
    "GreedyMatch",
    "GroupMean",
    "Includes",
    "JsonEqual",
    "JsonSchema",
    "JsonSubset",
    "Kappa",
    "Latency",
    "LengthDifferenceTolerance",
    "ListF1",
    "LongBenchScore",
    "MacroF1",
    "MathVerifyAccuracy",
    "Mcc",
    "MeanAveragePrecision",
    "MeanReciprocalRank",
    "Meteor",
    "MultipleChoice",
    "MutualInformationAccuracy",
    "Ndcg",
    "NoToolCalled",
    "NormalizedOptionAccuracy",
    "Numeric",
    "OptionAccuracy",
    "PairwiseJudgeMetric",
    "PartsFound",
    "PassAtK",
    "Perplexity",
    "PrecisionAtK",
    "RecallAtK",
    "RegexMatch",
    "ResponseLength",
    "Rouge1",
    "Rouge2",
    "RougeL",
    "RubricJudgeMetric",
    "Steps",
    "Ter",
    "TokenF1",
    "ToolArguments",
    "ToolCalled",
    "ToolErrors",
    "WeightedF1",
    "WordPerplexity",
]

# What the tutorial calls the two judges: the very classes of `themis.evaluation.judges`.
_TUTORIAL_NAMES = {"PairwiseJudgeMetric": "PairwiseJudge", "RubricJudgeMetric": "RubricJudge"}


def __getattr__(name: str) -> object:
    return load_class(__name__, METRIC_CLASSES, _TUTORIAL_NAMES.get(name, name))
