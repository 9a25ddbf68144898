"""Comparisons of the answer with a reference as texts."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.core.entities import MetricScore
from themis.evaluation.metrics.reading import reference_texts, text_or_none, zero
from themis.evaluation.metrics.sequences import edit_distance
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric

__all__ = [
    "SPACELESS",
    "EditSimilarity",
    "ExactMatch",
    "Includes",
    "RegexMatch",
    "TokenF1",
    "overlap_f1",
    "squad_words",
    "without_articles",
    "without_punctuation",
]


@dataclass
class ExactMatch(Metric):
    """1 if the answer equals any of the references, by default without regard to case and outer whitespace."""

    example: ClassVar[str] = 'ExactMatch().compute(prediction=" paris ", references=["Paris"]).value == 1.0'

    case_sensitive: bool = False
    strip_whitespace: bool = True
    ignore_punctuation: bool = False
    ignore_articles: bool = False
    name: str = "ExactMatch"
    score_range = (0.0, 1.0)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        answer = self._normalised(prediction)
        for reference in references:
            if reference is None:
                raise MetricError(f"{self.name}: a reference is None")
            if self._normalised(reference) == answer:
                return MetricScore(self.name, 1.0, {"matched_reference": reference})
        if not references:
            raise MetricError(f"{self.name} compares with a reference, and this sample has none")
        return MetricScore(self.name, 0.0) if isinstance(answer, str) else zero(self.name, prediction)

    def _normalised(self, value: Any) -> Any:
        if type(value) is not str:
            # Other values equal only their like; None equals nothing, since a reference is never None.
            if not isinstance(value, str | int | float):
                return value
            value = str(value)
        if not value.isascii():
            value = unicodedata.normalize("NFC", value)
        if not self.case_sensitive:
            value = value.casefold()
        if self.ignore_punctuation:
            value = without_punctuation(value)
        if self.ignore_articles:
            value = without_articles(value)
        return value.strip() if self.strip_whitespace else value


@dataclass
class Includes(Metric):
    """1 if the answer contains any of the references (`every=True`: all of them), as whole words on request."""

    example: ClassVar[str] = 'Includes().compute(prediction="It is Paris.", references=["paris"]).value == 1.0'

    case_sensitive: bool = False
    whole_words: bool = False
    every: bool = False
    name: str = "Includes"
    score_range = (0.0, 1.0)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        answer = self._folded(answer)
        found = [text for text in texts if self._contains(answer, self._folded(text))]
        value = float(len(found) == len(texts) if self.every else bool(found))
        return MetricScore(self.name, value, {"found": found})

    def _folded(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text).strip()
        return text if self.case_sensitive else text.casefold()

    def _contains(self, answer: str, wanted: str) -> bool:
        if not self.whole_words:
            return wanted in answer
        return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", answer) is not None


@dataclass
class RegexMatch(Metric):
    """1 if a regular expression matches somewhere in the answer: the `pattern`, else any of the references."""

    example: ClassVar[str] = r'RegexMatch(pattern=r"\d{4}").compute(prediction="in 1969", references=[]).value == 1.0'

    pattern: str | None = None
    full: bool = False
    ignore_case: bool = False
    name: str = "RegexMatch"
    score_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        self.requires_reference = self.pattern is None
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ConfigurationError(f"regex_match: pattern {self.pattern!r} is invalid: {error}") from error

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        patterns = [self.pattern] if self.pattern is not None else reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        for pattern in patterns:
            try:
                compiled = re.compile(pattern, re.IGNORECASE if self.ignore_case else 0)
            except re.error as error:
                raise MetricError(
                    f"{self.name}: the reference {pattern!r} is not a regular expression: {error}"
                ) from error
            found = compiled.fullmatch(answer) if self.full else compiled.search(answer)
            if found:
                return MetricScore(self.name, 1.0, {"matched_pattern": pattern, "match": found.group()[:200]})
        return MetricScore(self.name, 0.0)


@dataclass
class TokenF1(Metric):
    """Overlap of words with the best reference, as for SQuAD: case, punctuation and articles do not count."""

    example: ClassVar[str] = 'TokenF1().compute(prediction="the cat sat", references=["A cat"]).value == 2 / 3'

    name: str = "F1"
    score_range = (0.0, 1.0)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        said = Counter(squad_words(answer))
        best = max((overlap_f1(said, Counter(squad_words(text))) for text in texts), key=lambda score: score["f1"])
        return MetricScore(self.name, best["f1"], {"precision": best["precision"], "recall": best["recall"]})


@dataclass
class EditSimilarity(Metric):
    """1 minus the Levenshtein distance to the nearest reference, as a share of the longer text."""

    example: ClassVar[str] = 'EditSimilarity().compute(prediction="kitten", references=["sitten"]).value == 5 / 6'

    case_sensitive: bool = True
    # The cost grows with the product of the lengths: longer texts are compared by their beginnings.
    max_characters: int = 20_000
    name: str = "EditSimilarity"
    score_range = (0.0, 1.0)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        scores = [self._similarity(answer, text) for text in texts]
        truncated = max(map(len, [answer, *texts])) > self.max_characters
        return MetricScore(self.name, max(scores), {"truncated": True} if truncated else {})

    def _similarity(self, one: str, other: str) -> float:
        one, other = (self._folded(text)[: self.max_characters] for text in (one, other))
        longer = max(len(one), len(other))
        return 1.0 - edit_distance(one, other) / longer if longer else 1.0

    def _folded(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text)
        return text if self.case_sensitive else text.casefold()


def overlap_f1(said: Counter[Any], expected: Counter[Any]) -> dict[str, float]:
    """Precision, recall and F1 of two bags; two empty bags are equal."""
    common = (said & expected).total()
    if not said or not expected:
        equal = float(said == expected)
        return {"precision": equal, "recall": equal, "f1": equal}
    precision, recall = common / said.total(), common / expected.total()
    return {"precision": precision, "recall": recall, "f1": 2 * common / (said.total() + expected.total())}


_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Ranges of the scripts that put no space between words: they are compared by character.
SPACELESS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SPACELESS_CHARACTER = re.compile(f"([{SPACELESS}])")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def squad_words(text: str) -> list[str]:
    text = without_articles(without_punctuation(unicodedata.normalize("NFC", text).casefold()))
    return _SPACELESS_CHARACTER.sub(r" \1 ", text).split()


def without_punctuation(text: str) -> str:
    text = text.translate(_ASCII_PUNCTUATION)
    if text.isascii():
        return text
    return "".join(character for character in text if not unicodedata.category(character).startswith("P"))


def without_articles(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text).split())
