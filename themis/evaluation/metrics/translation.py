"""Measures of machine translation over a whole corpus, equal to sacrebleu's: BLEU, chrF and TER.

An item's score is that of its sentence; the run's is computed from the statistics of all sentences together, as papers report it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from themis.core.entities import MetricScore
from themis.core.registry import nearest
from themis.evaluation.corpus import STATISTICS
from themis.evaluation.metrics.reading import need_package, reference_texts, text_or_none
from themis.exceptions import ConfigurationError
from themis.interfaces import Metric, Row


class _OfCorpus(Metric):
    """What the three have in common: an answer that is no text counts as an empty one."""

    score_range: tuple[float | None, float | None] | None = (0.0, 1.0)
    pass_fail = False
    # sacrebleu's own metric: the statistics of a segment are its, and so is the score of a sentence.
    _corpus: Any
    _sentence: Any

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction) or ""
        (statistics,) = self._corpus._extract_corpus_statistics([answer], [[text] for text in texts])
        score = self._sentence.sentence_score(answer, texts).score / 100
        # 100.00000000000004 is sacrebleu's way of saying equal.
        value = score if self.higher_is_better is False else min(score, 1.0)
        return MetricScore(self.name, value, {STATISTICS: [_plain(number) for number in statistics]})


def _plain(number: float) -> float:
    return int(number) if number == int(number) else float(number)


@dataclass
class CorpusBleu(_OfCorpus):
    """BLEU of the whole run by sacrebleu, between 0 and 1; papers print a hundred times as much.

    Matches and n-grams of all answers are added up before precisions are taken. The mean of sentence BLEU (`bleu`) is another
    number.

    Args:
        tokenize: sacrebleu's tokeniser: `13a`, `intl`, `zh`, `char`, `none` and others.
        lowercase: Whether case does not count.
        smooth_method: Of orders without a match: `exp`, `floor`, `add-k` or `none`.
        smooth_value: That of `floor` and `add-k`; None for 0.1 and 1.
        max_ngram_order: Longest n-gram that counts.
        name: What the scores are reported as.

    >>> CorpusBleu().compute(prediction="the cat sat here", references=["the cat sat here"]).details
    {'statistics': [4, 4, 4, 3, 2, 1, 4, 3, 2, 1]}
    """

    tokenize: str = "13a"
    lowercase: bool = False
    smooth_method: str = "exp"
    smooth_value: float | None = None
    max_ngram_order: int = 4
    name: str = "corpus_bleu"

    def __post_init__(self) -> None:
        need_package("sacrebleu", "sacrebleu", "nlp", "the metric corpus_bleu")
        from sacrebleu.metrics.bleu import BLEU

        for option, value, known in (
            ("tokenize", self.tokenize, BLEU.TOKENIZERS),
            ("smooth_method", self.smooth_method, BLEU.SMOOTH_DEFAULTS),
        ):
            if value not in known:
                raise ConfigurationError(
                    f"corpus_bleu: unknown {option} {value!r}{nearest(value, known)}; known: {', '.join(sorted(known))}"
                )
        if self.max_ngram_order < 1:
            raise ConfigurationError(f"corpus_bleu: max_ngram_order is at least 1, got {self.max_ngram_order}")
        options: dict[str, Any] = {
            "tokenize": self.tokenize,
            "lowercase": self.lowercase,
            "smooth_method": self.smooth_method,
            "smooth_value": self.smooth_value,
            "max_ngram_order": self.max_ngram_order,
        }
        try:
            self._corpus, self._sentence = BLEU(**options), BLEU(**options, effective_order=True)
        except (RuntimeError, ImportError) as error:
            raise ConfigurationError(f"corpus_bleu: the tokeniser {self.tokenize!r} cannot be used: {error}") from error
        self.aggregation = f"corpus_bleu(smooth_method={self.smooth_method!r}, smooth_value={self.smooth_value!r})"


@dataclass
class CorpusChrf(_OfCorpus):
    """chrF of the whole run by sacrebleu (F-score of character n-grams), between 0 and 1.

    Args:
        word_order: Longest n-gram of words that counts too: 0 for chrF, 2 for chrF++.
        char_order: Longest n-gram of characters that counts.
        beta: How much more recall counts than precision.
        lowercase: Whether case does not count.
        name: What the scores are reported as.

    >>> CorpusChrf().compute(prediction="Haus", references=["Haus"]).value
    1.0
    """

    word_order: int = 0
    char_order: int = 6
    beta: int = 2
    lowercase: bool = False
    name: str = "corpus_chrf"

    def __post_init__(self) -> None:
        need_package("sacrebleu", "sacrebleu", "nlp", "the metric corpus_chrf")
        from sacrebleu.metrics.chrf import CHRF

        if self.char_order < 1 or self.word_order < 0:
            raise ConfigurationError(
                f"corpus_chrf: char_order is at least 1 and word_order at least 0, got {self.char_order} and "
                f"{self.word_order}"
            )
        self._corpus = self._sentence = CHRF(
            char_order=self.char_order, word_order=self.word_order, beta=self.beta, lowercase=self.lowercase
        )
        self.aggregation = f"corpus_chrf(beta={self.beta!r})"


@dataclass
class Ter(_OfCorpus):
    """Translation edit rate of the whole run by sacrebleu: edits a word of the references; less is better.

    An edit inserts, deletes or replaces a word, or moves a phrase. An empty answer costs as many as the reference has words,
    and a wordy one may cost more than 1.

    Args:
        normalized: Whether punctuation and XML characters are normalised first.
        no_punct: Whether punctuation is left out.
        asian_support: Whether those two know Chinese, Japanese and Korean characters too.
        case_sensitive: Whether case counts.
        name: What the scores are reported as.

    >>> Ter().compute(prediction="the cat sat", references=["the cat sat here"]).value
    0.25
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False
    name: str = "ter"
    higher_is_better = False
    score_range = (0.0, None)
    aggregation = "ter"

    def __post_init__(self) -> None:
        need_package("sacrebleu", "sacrebleu", "nlp", "the metric ter")
        from sacrebleu.metrics.ter import TER

        self._corpus = self._sentence = TER(
            normalized=self.normalized,
            no_punct=self.no_punct,
            asian_support=self.asian_support,
            case_sensitive=self.case_sensitive,
        )
