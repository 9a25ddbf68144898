"""Comparisons of the answer with a reference as texts: equal, included, matched, near, the same choice, as long."""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass

from themis.core.entities import MetricScore
from themis.evaluation.extractors.choice import find_choice, parse_letters, parse_options
from themis.evaluation.metrics.reading import TextMetric, reference_texts, text_or_none, zero
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric, Row


@dataclass
class ExactMatch(Metric):
    """1 if the answer equals any of the references, by default without regard to case and outer whitespace.

    Args:
        case_sensitive: Whether `Paris` and `paris` differ.
        strip_whitespace: Whether space at both ends is left out.
        ignore_punctuation: Whether punctuation is left out.
        ignore_articles: Whether a, an and the are left out.
        name: What the scores are reported as.

    >>> ExactMatch().compute(prediction=" paris ", references=["Paris"]).value
    1.0
    """

    case_sensitive: bool = False
    strip_whitespace: bool = True
    ignore_punctuation: bool = False
    ignore_articles: bool = False
    name: str = "ExactMatch"
    score_range = (0.0, 1.0)
    pass_fail = True

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        answer = self._normalise(prediction)
        for reference in references:
            if reference is None:
                raise MetricError(f"{self.name}: a reference is None")
            if self._normalise(reference) == answer:
                return MetricScore(self.name, 1.0, {"matched_reference": reference})
        if not references:
            raise MetricError(f"{self.name} compares with a reference, and this sample has none")
        return MetricScore(self.name, 0.0) if isinstance(answer, str) else zero(self.name, prediction)

    def _normalise(self, value: object) -> object:
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
            value = strip_punctuation(value)
        if self.ignore_articles:
            value = strip_articles(value)
        return value.strip() if self.strip_whitespace else value


@dataclass
class Includes(TextMetric):
    """1 if the answer contains any of the references.

    Args:
        case_sensitive: Whether `Paris` and `paris` differ.
        whole_words: Whether `art` in `party` counts as contained: not with True.
        every: Whether all of the references must be contained.
        name: What the scores are reported as.

    >>> Includes().compute(prediction="It is Paris.", references=["paris"]).value
    1.0
    """

    case_sensitive: bool = False
    whole_words: bool = False
    every: bool = False
    name: str = "Includes"
    pass_fail = True

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        answer = self._fold(answer)
        found = [text for text in texts if self._contains(answer, self._fold(text))]
        value = float(len(found) == len(texts) if self.every else bool(found))
        return MetricScore(self.name, value, {"found": found})

    def _fold(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text).strip()
        return text if self.case_sensitive else text.casefold()

    def _contains(self, answer: str, wanted: str) -> bool:
        if not self.whole_words:
            return wanted in answer
        return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", answer) is not None


@dataclass
class RegexMatch(Metric):
    r"""1 if a regular expression matches somewhere in the answer: the `pattern`, else any of the references.

    Args:
        pattern: The regular expression; without it the references are such.
        full: Whether the whole answer must match.
        ignore_case: Whether case does not count.
        name: What the scores are reported as.

    >>> RegexMatch(pattern=r"\d{4}").compute(prediction="in 1969", references=[]).value
    1.0
    """

    pattern: str | None = None
    full: bool = False
    ignore_case: bool = False
    name: str = "RegexMatch"
    score_range = (0.0, 1.0)
    pass_fail = True

    def __post_init__(self) -> None:
        self.requires_reference = self.pattern is None
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ConfigurationError(f"regex_match: pattern {self.pattern!r} is invalid: {error}") from error

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
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
class TokenF1(TextMetric):
    """Overlap of words with the best reference, as for SQuAD: case, punctuation and articles do not count.

    Args:
        name: What the scores are reported as.

    >>> TokenF1().compute(prediction="the cat sat on", references=["A cat"]).value
    0.5
    """

    name: str = "F1"

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        said = Counter(squad_words(answer))
        best = max((overlap_f1(said, Counter(squad_words(text))) for text in texts), key=lambda score: score["f1"])
        return MetricScore(self.name, best["f1"], {"precision": best["precision"], "recall": best["recall"]})


@dataclass
class EditSimilarity(TextMetric):
    """1 minus the Levenshtein distance to the nearest reference, as a share of the longer text.

    Args:
        case_sensitive: Whether `Paris` and `paris` differ.
        max_characters: Longer texts are compared by their beginnings: the cost grows with the product of the lengths.
        name: What the scores are reported as.

    >>> EditSimilarity().compute(prediction="cats", references=["cat"]).value
    0.75
    """

    case_sensitive: bool = True
    # The cost grows with the product of the lengths: longer texts are compared by their beginnings.
    max_characters: int = 20_000
    name: str = "EditSimilarity"

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        scores = [self._similarity(answer, text) for text in texts]
        truncated = max(map(len, [answer, *texts])) > self.max_characters
        return MetricScore(self.name, max(scores), {"truncated": True} if truncated else {})

    def _similarity(self, one: str, other: str) -> float:
        one, other = (self._fold(text)[: self.max_characters] for text in (one, other))
        longer = max(len(one), len(other))
        return 1.0 - edit_distance(one, other) / longer if longer else 1.0

    def _fold(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text)
        return text if self.case_sensitive else text.casefold()


def overlap_f1(said: Counter[str], expected: Counter[str]) -> dict[str, float]:
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
    text = strip_articles(strip_punctuation(unicodedata.normalize("NFC", text).casefold()))
    return _SPACELESS_CHARACTER.sub(r" \1 ", text).split()


def strip_punctuation(text: str) -> str:
    text = text.translate(_ASCII_PUNCTUATION)
    if text.isascii():
        return text
    return "".join(character for character in text if not unicodedata.category(character).startswith("P"))


def strip_articles(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text).split())


@dataclass
class MultipleChoice(Metric):
    """1 if the option that the answer chooses is the reference's, whether by letter or spelled out.

    Args:
        choices: The letters there are, as a range or one by one.
        options_fields: Fields of the row that may hold the options: a list, a mapping by letter, or a printed block.
        index_base: What the first option's number is, 0 or 1, where references are numbers; else a reference is a letter
            or the text of an option.
        name: What the scores are reported as.

    >>> MultipleChoice().compute(prediction="The answer is (B).", references=["B"]).value
    1.0
    """

    choices: str = "A-Z"
    options_fields: tuple[str, ...] = ("options", "choices")
    index_base: int | None = None
    name: str = "MultipleChoice"
    score_range = (0.0, 1.0)
    pass_fail = True

    def __post_init__(self) -> None:
        parse_letters(self.choices)
        if self.index_base not in (None, 0, 1):
            raise ConfigurationError(f"multiple_choice: index_base must be 0, 1 or None, got {self.index_base!r}")

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        letters = parse_letters(self.choices)
        fields = (metadata or {}).get
        given = next((fields(name) for name in self.options_fields if fields(name) is not None), None)
        options = parse_options(given, letters)
        if not references:
            raise MetricError(f"{self.name} compares with a reference, and this sample has none")
        right = {self._letter(reference, letters, options) for reference in references}
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction, "a choice")
        chosen = find_choice(answer, letters, options)
        if chosen is None:
            return MetricScore(self.name, 0.0, {"reason": "no choice found in the answer"})
        return MetricScore(self.name, float(chosen in right), {"chosen": chosen})

    def _letter(self, reference: object, letters: str, options: Mapping[str, str]) -> str:
        if isinstance(reference, str):
            written = re.fullmatch(rf"\W*([{letters}])\W*", reference.strip(), re.IGNORECASE)
            by_text = {text.strip().casefold(): letter for letter, text in options.items()}
            letter = written[1].upper() if written else by_text.get(reference.strip().casefold())
            if letter is not None:
                return letter
        elif isinstance(reference, int) and not isinstance(reference, bool) and self.index_base is not None:
            position = reference - self.index_base
            if 0 <= position < (len(options) or len(letters)):
                return letters[position]
        hint = "; for positions give index_base=0 or 1" if isinstance(reference, int) else ""
        raise MetricError(
            f"{self.name}: the reference {reference!r:.80} is neither a letter nor one of the options{hint}"
        )


@dataclass
class ResponseLength(Metric):
    """Number of characters of the answer.

    Args:
        name: What the scores are reported as.

    >>> ResponseLength().compute(prediction="Paris", references=[]).value
    5.0
    """

    name: str = "ResponseLength"
    score_range = (0.0, None)
    requires_reference = False
    higher_is_better = None

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        return MetricScore(self.name, float(0 if prediction is None else len(str(prediction))))


@dataclass
class LengthDifferenceTolerance(TextMetric):
    """1 if the answer is at most `max_delta` characters longer or shorter than a reference.

    Args:
        max_delta: How many characters the lengths may differ by.
        name: What the scores are reported as.

    >>> LengthDifferenceTolerance(max_delta=2).compute(prediction="abcd", references=["ab"]).value
    1.0
    """

    max_delta: int = 0
    name: str = "LengthDifferenceTolerance"
    pass_fail = True

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        delta = min(abs(len(answer) - len(text)) for text in texts)
        return MetricScore(self.name, float(delta <= self.max_delta), {"delta": delta})


@dataclass
class Latency(Metric):
    """Milliseconds that the generation took, from the metadata's `generation_time_ms`.

    Args:
        name: What the scores are reported as.

    >>> Latency().compute(prediction="", references=[], metadata={"generation_time_ms": 12.5}).value
    12.5
    """

    name: str = "Latency"
    score_range = (0.0, None)
    requires_reference = False
    requires_answer = False
    higher_is_better = False

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        elapsed = (metadata or {}).get("generation_time_ms")
        if isinstance(elapsed, bool) or not isinstance(elapsed, int | float) or not math.isfinite(elapsed):
            raise MetricError(f"{self.name}: the sample has no generation_time_ms (it is {elapsed!r})")
        return MetricScore(self.name, float(elapsed))


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Levenshtein distance: the fewest insertions, deletions and replacements (Myers 1999, in Hyyrö's form)."""
    start, end_one, end_other = 0, len(one), len(other)
    while start < min(end_one, end_other) and one[start] == other[start]:
        start += 1
    while start < min(end_one, end_other) and one[end_one - 1] == other[end_other - 1]:
        end_one, end_other = end_one - 1, end_other - 1
    one, other = one[start:end_one], other[start:end_other]
    if not one or not other:
        return len(one) + len(other)
    places = _bit_positions(one, set(other))
    everything = (1 << len(one)) - 1
    last = 1 << (len(one) - 1)
    distance = len(one)
    # Bit i of `up` (`down`): the column of the table grows (shrinks) by one from row i to row i + 1.
    up, down = everything, 0
    for element in other:
        matches = places.get(element, 0)
        diagonal = (((matches & up) + up) ^ up) | matches | down
        right = down | (everything & ~(diagonal | up))
        left = up & diagonal
        distance += bool(right & last) - bool(left & last)
        right = (right << 1) | 1
        up = (left << 1) & everything | (everything & ~(diagonal | right))
        down = right & diagonal & everything
    return distance


def lcs_length(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence (Hyyrö 2004)."""
    places = _bit_positions(one, set(other))
    everything = (1 << len(one)) - 1
    row = everything
    for element in other:
        matched = row & places.get(element, 0)
        row = ((row + matched) | (row - matched)) & everything
    return len(one) - row.bit_count()


def _bit_positions(sequence: Sequence[Hashable], wanted: Set[Hashable]) -> dict[Hashable, int]:
    """For each wanted element the bits of the places where it stands."""
    positions: dict[Hashable, bytearray] = {}
    size = len(sequence) // 8 + 1
    for index, element in enumerate(sequence):
        if element in wanted:
            positions.setdefault(element, bytearray(size))[index >> 3] |= 1 << (index & 7)
    return {element: int.from_bytes(bits, "little") for element, bits in positions.items()}
