"""Likeness of the answer to a reference text: BLEU, chrF, ROUGE, METEOR, and embeddings."""

from __future__ import annotations

import importlib.util
import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from themis.core.entities import MetricScore
from themis.evaluation.metrics.reading import TextMetric, need_package
from themis.evaluation.metrics.text import SPACELESS, lcs_length
from themis.exceptions import ConfigurationError, DependencyError

# The slower of these algorithms take time with the product of the lengths: longer texts are compared by their beginnings.
_MAX_WORDS = 10_000


@dataclass
class Bleu(TextMetric):
    """Sentence BLEU by sacrebleu against all references, between 0 and 1.

    Args:
        name: What the scores are reported as.

    >>> Bleu().compute(prediction="the cat sat here", references=["the cat sat here"]).value
    1.0
    """

    name: str = "bleu"

    def __post_init__(self) -> None:
        need_package("sacrebleu", "sacrebleu", "nlp", "the metric bleu")

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        import sacrebleu

        bleu = sacrebleu.sentence_bleu(answer, texts)
        details = {
            "precisions": [precision / 100 for precision in bleu.precisions],
            "brevity_penalty": bleu.bp,
            "answer_words": bleu.sys_len,
            "reference_words": bleu.ref_len,
        }
        return MetricScore(self.name, _share(bleu.score), details)


@dataclass
class Chrf(TextMetric):
    """chrF by sacrebleu (F-score of character n-grams) against the best reference, between 0 and 1.

    Args:
        word_order: Longest n-gram of words that counts too: 0 for chrF, 2 for chrF++.
        name: What the scores are reported as.

    >>> Chrf().compute(prediction="Haus", references=["Haus"]).value
    1.0
    """

    word_order: int = 0
    name: str = "chrf"

    def __post_init__(self) -> None:
        need_package("sacrebleu", "sacrebleu", "nlp", "the metric chrf")

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        import sacrebleu

        return MetricScore(self.name, _share(sacrebleu.sentence_chrf(answer, texts, word_order=self.word_order).score))


def _share(percent: float) -> float:
    # 100.00000000000004 is sacrebleu's way of saying equal.
    return min(percent / 100, 1.0)


@dataclass
class _Rouge(TextMetric):
    """Agrees with rouge-score on Latin text; reads other scripts as well, of which rouge-score drops every letter."""

    stem: bool = True

    def __post_init__(self) -> None:
        if self.stem:
            need_package("nltk", "nltk", "nlp", f"the metric {self.name} with stem=True")

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        said = self._words(answer)
        best = max((self._shared(said, self._words(text)) for text in texts), key=lambda shared: shared.f1)
        return MetricScore(self.name, best.f1, {"precision": best.precision, "recall": best.recall})

    def _words(self, text: str) -> list[str]:
        words = _WORD.findall(text.lower())[:_MAX_WORDS]
        return [_stem(word) if len(word) > 3 else word for word in words] if self.stem else words

    @abstractmethod
    def _shared(self, said: list[str], expected: list[str]) -> _Shared: ...


@dataclass
class Rouge1(_Rouge):
    """ROUGE-1: F1 of the words shared with the best reference, stemmed.

    Args:
        stem: Whether words count by their stem, so that `cats` is `cat`.
        name: What the scores are reported as.

    >>> Rouge1().compute(prediction="cats sat", references=["the cat sat"]).value
    0.8
    """

    name: str = "rouge1"

    def _shared(self, said: list[str], expected: list[str]) -> _Shared:
        return _Shared((Counter(said) & Counter(expected)).total(), len(said), len(expected))


@dataclass
class Rouge2(_Rouge):
    """ROUGE-2: F1 of the pairs of neighbouring words shared with the best reference, stemmed.

    Args:
        stem: Whether words count by their stem, so that `cats` is `cat`.
        name: What the scores are reported as.

    >>> Rouge2().compute(prediction="cats sat down", references=["cat sat here"]).value
    0.5
    """

    name: str = "rouge2"

    def _shared(self, said: list[str], expected: list[str]) -> _Shared:
        one, other = (Counter(pairwise(words)) for words in (said, expected))
        return _Shared((one & other).total(), one.total(), other.total())


@dataclass
class RougeL(_Rouge):
    """ROUGE-L: F1 of the longest common subsequence of words with the best reference, stemmed.

    Args:
        stem: Whether words count by their stem, so that `cats` is `cat`.
        name: What the scores are reported as.

    >>> RougeL().compute(prediction="a c b d", references=["a b c d"]).value
    0.75
    """

    name: str = "rougeL"

    def _shared(self, said: list[str], expected: list[str]) -> _Shared:
        return _Shared(lcs_length(said, expected), len(said), len(expected))


class _Shared(NamedTuple):
    """How many units two texts share, of how many in each."""

    common: int
    said: int
    expected: int

    @property
    def precision(self) -> float:
        return self.common / max(self.said, 1)

    @property
    def recall(self) -> float:
        return self.common / max(self.expected, 1)

    @property
    def f1(self) -> float:
        return 2 * self.common / max(self.said + self.expected, 1)


_WORD = re.compile(rf"[{SPACELESS}]|[^\W_{SPACELESS}]+")


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@dataclass
class Meteor(TextMetric):
    """METEOR by nltk against the best reference: exact and stemmed words, synonyms on request.

    Args:
        alpha: Weight of precision against recall.
        beta: Shape of the penalty for words in another order.
        gamma: Weight of that penalty.
        synonyms: Whether synonyms match; needs nltk's WordNet, which is downloaded separately. Without it the score is
            the same on every machine.
        name: What the scores are reported as.

    >>> Meteor().compute(prediction="dog", references=["cat"]).value
    0.0
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    synonyms: bool = False
    name: str = "meteor"

    def __post_init__(self) -> None:
        need_package("nltk", "nltk", "nlp", "the metric meteor")
        if self.synonyms:
            _wordnet()

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        from nltk.translate.meteor_score import single_meteor_score

        said = _WORD.findall(answer)[:_MAX_WORDS]
        scores = [
            single_meteor_score(
                _WORD.findall(text)[:_MAX_WORDS],
                said,
                stemmer=_stemmer(),
                wordnet=_wordnet() if self.synonyms else _NoSynonyms(),
                alpha=self.alpha,
                beta=self.beta,
                gamma=self.gamma,
            )
            for text in texts
        ]
        return MetricScore(self.name, float(max(scores)))


class _NoSynonyms:
    """A WordNet in which no word has a synonym."""

    def synsets(self, word: str) -> tuple[()]:
        return ()


def _wordnet() -> Any:
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError as error:
        raise ConfigurationError(
            "meteor(synonyms=True) needs WordNet: python -m nltk.downloader wordnet; synonyms=False works without"
        ) from error
    return wordnet


_LOADING = Lock()


@dataclass
class EmbeddingSimilarity(TextMetric):
    """Cosine of the answer's and the nearest reference's embeddings; static ones inside wordllama, no download.

    The value lies between -1 and 1; texts that mean the same are near 1, unrelated ones near 0.

    Args:
        max_characters: Longer texts are compared by their beginnings.
        name: What the scores are reported as.

    >>> EmbeddingSimilarity().compute(prediction="cat", references=["cat"]).value
    1.0
    """

    # Longer texts are compared by their beginnings.
    max_characters: int = 20_000
    name: str = "EmbeddingSimilarity"
    score_range = (-1.0, 1.0)

    def __post_init__(self) -> None:
        need_package("wordllama", "wordllama", "nlp", "the metric embedding_similarity")

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
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
class BertScore(TextMetric):
    """BERTScore F1 against the best reference, by the package bert-score and a model that must be on this machine.

    Args:
        model: Name or folder of the model.
        layers: Which layer's vectors count; bert-score knows it of the models it names.
        name: What the scores are reported as.

    >>> BertScore().compute(prediction="a cat", references=["a cat"]).value  # doctest: +SKIP
    1.0
    """

    model: str = "roberta-large"
    layers: int | None = None
    name: str = "bertscore"
    score_range = None

    def __post_init__(self) -> None:
        if importlib.util.find_spec("bert_score") is None:
            raise DependencyError(
                "the metric bertscore needs the package bert-score, with a model on this machine: pip install bert-score; "
                "embedding_similarity needs neither"
            )

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        with _LOADING:
            scorer = _bert_scorer(self.model, self.layers)
        precision, recall, f1 = (float(values[0]) for values in scorer.score([answer], [texts]))
        return MetricScore(self.name, f1, {"precision": precision, "recall": recall})


@cache
def _bert_scorer(model: str, layers: int | None) -> Any:
    import bert_score

    return bert_score.BERTScorer(model_type=model, num_layers=layers)
