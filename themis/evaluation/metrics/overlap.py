"""Overlap of the answer's words and characters with a reference text: BLEU, chrF, ROUGE, METEOR."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from themis.core.entities import MetricScore
from themis.evaluation.metrics.reading import need_package, reference_texts, text_or_none, zero
from themis.evaluation.metrics.sequences import lcs_length
from themis.evaluation.metrics.text import SPACELESS
from themis.exceptions import ConfigurationError
from themis.interfaces import Metric

__all__ = ["Bleu", "Chrf", "Meteor", "Rouge1", "Rouge2", "RougeL"]

# The slower of these algorithms take time with the product of the lengths: longer texts are compared by their beginnings.
_MAX_WORDS = 10_000


@dataclass
class Bleu(Metric):
    """Sentence BLEU by sacrebleu against all references, between 0 and 1."""

    example: ClassVar[str] = (
        'Bleu().compute(prediction="the cat sat here", references=["the cat sat here"]).value == 1.0'
    )

    name: str = "bleu"
    score_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        need_package("sacrebleu", "sacrebleu", "nlp", "the metric bleu")

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        import sacrebleu

        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        bleu = sacrebleu.sentence_bleu(answer, texts)
        details = {
            "precisions": [precision / 100 for precision in bleu.precisions],
            "brevity_penalty": bleu.bp,
            "answer_words": bleu.sys_len,
            "reference_words": bleu.ref_len,
        }
        return MetricScore(self.name, _share(bleu.score), details)


@dataclass
class Chrf(Metric):
    """chrF by sacrebleu (F-score of character n-grams) against the best reference, between 0 and 1."""

    example: ClassVar[str] = 'Chrf().compute(prediction="Haus", references=["Haus"]).value == 1.0'

    word_order: int = 0
    name: str = "chrf"
    score_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        need_package("sacrebleu", "sacrebleu", "nlp", "the metric chrf")

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        import sacrebleu

        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        return MetricScore(self.name, _share(sacrebleu.sentence_chrf(answer, texts, word_order=self.word_order).score))


def _share(percent: float) -> float:
    # 100.00000000000004 is sacrebleu's way of saying equal.
    return min(percent / 100, 1.0)


@dataclass
class _Rouge(Metric):
    """Agrees with rouge-score on Latin text; reads other scripts as well, of which rouge-score drops every letter."""

    stem: bool = True
    score_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.stem:
            need_package("nltk", "nltk", "nlp", f"the metric {self.name} with stem=True")

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
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
    """ROUGE-1: F1 of the words shared with the best reference, stemmed."""

    example: ClassVar[str] = 'Rouge1().compute(prediction="cats sat", references=["the cat sat"]).value == 0.8'

    name: str = "rouge1"

    def _shared(self, said: list[str], expected: list[str]) -> _Shared:
        return _Shared((Counter(said) & Counter(expected)).total(), len(said), len(expected))


@dataclass
class Rouge2(_Rouge):
    """ROUGE-2: F1 of the pairs of neighbouring words shared with the best reference, stemmed."""

    example: ClassVar[str] = 'Rouge2().compute(prediction="cats sat", references=["the cat sat"]).value == 2 / 3'

    name: str = "rouge2"

    def _shared(self, said: list[str], expected: list[str]) -> _Shared:
        one, other = (Counter(pairwise(words)) for words in (said, expected))
        return _Shared((one & other).total(), one.total(), other.total())


@dataclass
class RougeL(_Rouge):
    """ROUGE-L: F1 of the longest common subsequence of words with the best reference, stemmed."""

    example: ClassVar[str] = 'RougeL().compute(prediction="a c b", references=["a b c"]).value == 2 / 3'

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
class Meteor(Metric):
    """METEOR by nltk against the best reference: exact and stemmed words, synonyms on request.

    `synonyms=True` needs the WordNet data of nltk, which is downloaded separately; without it the score is the same
    on every machine.
    """

    example: ClassVar[str] = 'Meteor().compute(prediction="dog", references=["cat"]).value == 0.0'

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    synonyms: bool = False
    name: str = "meteor"
    score_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        need_package("nltk", "nltk", "nlp", "the metric meteor")
        if self.synonyms:
            _wordnet()

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        from nltk.translate.meteor_score import single_meteor_score

        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
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
