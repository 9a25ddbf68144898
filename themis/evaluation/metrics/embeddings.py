"""Nearness of meaning, by vectors of words or texts."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from themis.core.entities import MetricScore
from themis.evaluation.metrics.reading import need_package, reference_texts, text_or_none, zero
from themis.exceptions import DependencyError
from themis.interfaces import Metric

__all__ = ["BertScore", "EmbeddingSimilarity"]

_LOADING = Lock()


@dataclass
class EmbeddingSimilarity(Metric):
    """Cosine of the answer's and the nearest reference's embeddings; static ones inside wordllama, no download.

    The value lies between -1 and 1; texts that mean the same are near 1, unrelated ones near 0.
    """

    example: ClassVar[str] = 'EmbeddingSimilarity().compute(prediction="cat", references=["cat"]).value == 1.0'

    # Longer texts are compared by their beginnings.
    max_characters: int = 20_000
    name: str = "EmbeddingSimilarity"
    score_range = (-1.0, 1.0)

    def __post_init__(self) -> None:
        need_package("wordllama", "wordllama", "nlp", "the metric embedding_similarity")

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        if not answer.strip():
            return MetricScore(self.name, 0.0, {"reason": "the answer is empty"})
        with _LOADING:
            model = _wordllama()
        mine, *theirs = model.embed([self._readable(text) for text in (answer, *texts)])
        return MetricScore(self.name, max(_cosine(mine, other) for other in theirs))

    def _readable(self, text: str) -> str:
        # Half a surrogate pair, which a model can produce, is not text to the tokenizer.
        return text[: self.max_characters].encode("utf-8", "replace").decode("utf-8")


def _cosine(one: Any, other: Any) -> float:
    lengths = math.sqrt(float(one @ one) * float(other @ other))
    # A text without a word has no direction, and rounding may leave 1.0000001.
    return max(-1.0, min(1.0, float(one @ other) / lengths)) if lengths else 0.0


@cache
def _wordllama() -> Any:
    import wordllama

    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


@dataclass
class BertScore(Metric):
    """BERTScore F1 against the best reference, by the package bert-score and a model that must be on this machine."""

    example: ClassVar[str] = 'BertScore().compute(prediction="a cat", references=["a cat"]).value > 0.99'

    model: str = "roberta-large"
    layers: int | None = None
    name: str = "bertscore"

    def __post_init__(self) -> None:
        if importlib.util.find_spec("bert_score") is None:
            raise DependencyError(
                "the metric bertscore needs the package bert-score, with a model on this machine: pip install bert-score; "
                "embedding_similarity needs neither"
            )

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        with _LOADING:
            scorer = _bert_scorer(self.model, self.layers)
        precision, recall, f1 = (float(values[0]) for values in scorer.score([answer], [texts]))
        return MetricScore(self.name, f1, {"precision": precision, "recall": recall})


@cache
def _bert_scorer(model: str, layers: int | None) -> Any:
    import bert_score

    return bert_score.BERTScorer(model_type=model, num_layers=layers)
