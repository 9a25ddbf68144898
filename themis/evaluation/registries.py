"""The names of metrics, extractors and aggregations, and where what they stand for is imported from on first use.

`resolve` turns a name into an object; users register their own there.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from themis.core.registry import Registry, add_own_files
from themis.exceptions import MetricError

EXTRACTOR_CLASSES = {
    "boxed": "themis.evaluation.extractors.answers:BoxedExtractor",
    "chain": "themis.evaluation.extractors.text:ChainExtractor",
    "code_block": "themis.evaluation.extractors.structured:CodeBlockExtractor",
    "confidence": "themis.evaluation.extractors.confidence:ConfidenceExtractor",
    "countdown_expression": "themis.evaluation.extractors.countdown:CountdownExpressionExtractor",
    "error_taxonomy": "themis.evaluation.extractors.text:ErrorTaxonomyExtractor",
    "final_answer": "themis.evaluation.extractors.answers:FinalAnswerExtractor",
    "identity": "themis.evaluation.extractors.text:IdentityExtractor",
    "json_field": "themis.evaluation.extractors.structured:JsonFieldExtractor",
    "last_number": "themis.evaluation.extractors.numbers:LastNumberExtractor",
    "multiple_choice": "themis.evaluation.extractors.choice:MultipleChoiceExtractor",
    "regex": "themis.evaluation.extractors.text:RegexExtractor",
    "think_tag_stripper": "themis.evaluation.extractors.text:ThinkTagStripper",
    "xml_tag": "themis.evaluation.extractors.structured:XmlTagExtractor",
}

METRIC_CLASSES = {
    "answer_judge": "themis.evaluation.judges:AnswerJudge",
    "bbh_match": "themis.evaluation.metrics.passages:BbhMatch",
    "acc": "themis.evaluation.metrics.likelihood:OptionAccuracy",
    "acc_mutual_info": "themis.evaluation.metrics.likelihood:MutualInformationAccuracy",
    "acc_norm": "themis.evaluation.metrics.likelihood:NormalizedOptionAccuracy",
    "bertscore": "themis.evaluation.metrics.overlap:BertScore",
    "accuracy": "themis.evaluation.metrics.classification:Accuracy",
    "balanced_accuracy": "themis.evaluation.metrics.classification:BalancedAccuracy",
    "bits_per_byte": "themis.evaluation.metrics.likelihood:BitsPerByte",
    "bleu": "themis.evaluation.metrics.overlap:Bleu",
    "brier": "themis.evaluation.metrics.calibration:Brier",
    "byte_perplexity": "themis.evaluation.metrics.likelihood:BytePerplexity",
    "chrf": "themis.evaluation.metrics.overlap:Chrf",
    "composite": "themis.evaluation.metrics.combined:CompositeMetric",
    "consistency": "themis.evaluation.metrics.combined:ConsistencyMetric",
    "corpus_bleu": "themis.evaluation.metrics.translation:CorpusBleu",
    "corpus_chrf": "themis.evaluation.metrics.translation:CorpusChrf",
    "countdown_strict": "themis.evaluation.metrics.countdown:CountdownStrict",
    "countdown_validity": "themis.evaluation.metrics.countdown:CountdownValidity",
    "ece": "themis.evaluation.metrics.calibration:Ece",
    "drop": "themis.evaluation.metrics.passages:DropScore",
    "edit_similarity": "themis.evaluation.metrics.text:EditSimilarity",
    "embedding_similarity": "themis.evaluation.metrics.overlap:EmbeddingSimilarity",
    "exact_match": "themis.evaluation.metrics.text:ExactMatch",
    "execution_accuracy": "themis.evaluation.metrics.code:ExecutionAccuracy",
    "f1": "themis.evaluation.metrics.text:TokenF1",
    "final_state": "themis.evaluation.metrics.transcripts:FinalState",
    "group_mean": "themis.evaluation.metrics.combined:GroupMean",
    "greedy_match": "themis.evaluation.metrics.likelihood:GreedyMatch",
    "includes": "themis.evaluation.metrics.text:Includes",
    "json_equal": "themis.evaluation.metrics.structured:JsonEqual",
    "json_schema": "themis.evaluation.metrics.structured:JsonSchema",
    "json_subset": "themis.evaluation.metrics.structured:JsonSubset",
    "kappa": "themis.evaluation.metrics.classification:Kappa",
    "latency": "themis.evaluation.metrics.text:Latency",
    "length_difference": "themis.evaluation.metrics.text:LengthDifferenceTolerance",
    "list_f1": "themis.evaluation.metrics.structured:ListF1",
    "longbench": "themis.evaluation.metrics.passages:LongBenchScore",
    "macro_f1": "themis.evaluation.metrics.classification:MacroF1",
    "map": "themis.evaluation.metrics.ranking:MeanAveragePrecision",
    "math_verify": "themis.evaluation.metrics.maths:MathVerifyAccuracy",
    "mcc": "themis.evaluation.metrics.classification:Mcc",
    "meteor": "themis.evaluation.metrics.overlap:Meteor",
    "mrr": "themis.evaluation.metrics.ranking:MeanReciprocalRank",
    "multiple_choice": "themis.evaluation.metrics.text:MultipleChoice",
    "ndcg": "themis.evaluation.metrics.ranking:Ndcg",
    "no_tool_called": "themis.evaluation.metrics.transcripts:NoToolCalled",
    "numeric": "themis.evaluation.metrics.numeric:Numeric",
    "pairwise_judge": "themis.evaluation.judges:PairwiseJudge",
    "parts_found": "themis.evaluation.metrics.passages:PartsFound",
    "pass_at_k": "themis.evaluation.metrics.code:PassAtK",
    "perplexity": "themis.evaluation.metrics.likelihood:Perplexity",
    "precision": "themis.evaluation.metrics.ranking:PrecisionAtK",
    "recall": "themis.evaluation.metrics.ranking:RecallAtK",
    "regex_match": "themis.evaluation.metrics.text:RegexMatch",
    "response_length": "themis.evaluation.metrics.text:ResponseLength",
    "rouge1": "themis.evaluation.metrics.overlap:Rouge1",
    "rouge2": "themis.evaluation.metrics.overlap:Rouge2",
    "rougeL": "themis.evaluation.metrics.overlap:RougeL",
    "rubric_judge": "themis.evaluation.judges:RubricJudge",
    "steps": "themis.evaluation.metrics.transcripts:Steps",
    "ter": "themis.evaluation.metrics.translation:Ter",
    "tool_arguments": "themis.evaluation.metrics.transcripts:ToolArguments",
    "tool_called": "themis.evaluation.metrics.transcripts:ToolCalled",
    "tool_errors": "themis.evaluation.metrics.transcripts:ToolErrors",
    "weighted_f1": "themis.evaluation.metrics.classification:WeightedF1",
    "word_perplexity": "themis.evaluation.metrics.likelihood:WordPerplexity",
}

AGGREGATION_CLASSES = {
    "accuracy": "themis.evaluation.aggregations:AccuracyOfClasses",
    "balanced_accuracy": "themis.evaluation.aggregations:BalancedAccuracyOfClasses",
    "bits_per_byte": "themis.evaluation.aggregations:BitsOfSums",
    "brier": "themis.evaluation.aggregations:BrierScore",
    "corpus_bleu": "themis.evaluation.aggregations:BleuOfSums",
    "corpus_chrf": "themis.evaluation.aggregations:ChrfOfSums",
    "ece": "themis.evaluation.aggregations:CalibrationError",
    "kappa": "themis.evaluation.aggregations:KappaOfClasses",
    "lm_eval": "themis.presets.lm_eval.aggregation:LmEvalAggregation",
    "lm_eval_mean": "themis.presets.lm_eval.aggregation:LmEvalMean",
    "macro_f1": "themis.evaluation.aggregations:MacroF1OfClasses",
    "mean_of_groups": "themis.evaluation.aggregations:MeanOfGroups",
    "mcc": "themis.evaluation.aggregations:MccOfClasses",
    "attempted_share": "themis.evaluation.aggregations:AttemptedShare",
    "perplexity": "themis.evaluation.aggregations:PerplexityOfSums",
    "ratio": "themis.evaluation.aggregations:RatioOfSums",
    "ter": "themis.evaluation.aggregations:TerOfSums",
    "weighted_f1": "themis.evaluation.aggregations:WeightedF1OfClasses",
}

# Every extractor by name: a class, a factory, or the object that a decorated function became.
EXTRACTORS: Registry[object] = Registry(
    "extractor", lambda: add_own_files(EXTRACTOR_CLASSES, "themis.evaluation.extractors")
)
_OWN = "a plain function with @themis.metric"
# What promptfoo, Inspect, lm-eval and DeepEval call their assertions, scorers and metrics.
_METRICS_ELSEWHERE = {
    "answer_relevancy": "a rubric_judge with that criterion",
    "choice": "multiple_choice",
    "contains": "includes(case_sensitive=True)",
    "contains_all": _OWN,
    "contains_any": "includes, with a reference that is a list",
    "contains_json": "json_schema(schema={...})",
    "equals": "exact_match(case_sensitive=True)",
    "exact": "exact_match",
    "factuality": "answer_judge(model='...')",
    "faithfulness": "a rubric_judge with that criterion",
    "g_eval": "rubric_judge(model='...', rubric='...')",
    "geval": "rubric_judge(model='...', rubric='...')",
    "hallucination": "a rubric_judge with that criterion",
    "icontains": "includes",
    "is_json": "json_schema(schema={...})",
    "javascript": _OWN,
    "levenshtein": "edit_similarity",
    "llm_rubric": "rubric_judge(model='...', rubric='...')",
    "match": "numeric for numbers, exact_match for whole answers, else a plain function with @themis.metric",
    "model_graded_closedqa": "answer_judge(model='...')",
    "model_graded_fact": "answer_judge(model='...')",
    "model_graded_qa": "rubric_judge(model='...', rubric='...')",
    "pattern": "exact_match, and regex(pattern='...') as the extractor",
    "python": _OWN,
    "regex": "regex_match(pattern='...')",
    "rouge_n": "rouge1",
    "select_best": "pairwise_judge(model='...', other_field='...')",
    "similar": "embedding_similarity",
    "starts_with": _OWN,
}
# Every metric by name, likewise: built in, registered here, or a plugin's.
METRICS: Registry[object] = Registry(
    "metric",
    lambda: add_own_files(METRIC_CLASSES, "themis.evaluation.metrics"),
    error=MetricError,
    elsewhere=_METRICS_ELSEWHERE,
)
# How items' statistics become one number over a run, where that is no mean.
AGGREGATIONS: Registry[object] = Registry("aggregation", AGGREGATION_CLASSES)


def load_class(package: str, classes: Mapping[str, str], name: str) -> object:
    """A class by its own name, imported now: the `__getattr__` of a package that offers it."""
    for module, _, class_name in (target.partition(":") for target in classes.values()):
        if class_name == name:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
