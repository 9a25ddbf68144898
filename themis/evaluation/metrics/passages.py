"""Scores of reading benchmarks by their own published rules: DROP and LongBench."""

from __future__ import annotations

import difflib
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from themis.core.entities import MetricScore
from themis.evaluation.metrics.overlap import RougeL
from themis.evaluation.metrics.reading import TextMetric, reference_texts, text_or_none, zero
from themis.evaluation.metrics.text import overlap_f1, squad_words
from themis.exceptions import MetricError
from themis.interfaces import Metric, Row

# --- DROP ---------------------------------------------------------------------------------------------------------------


@dataclass
class DropScore(TextMetric):
    """DROP's own score of an answer of one or several parts: F1 of bags of words, or exact match.

    All references together are one answer: a part each. The parts of a reply stand on lines of their own or between
    semicolons. Parts are matched so that the sum of their F1 is greatest; a part with a number is only matched by one that
    has a number in common.

    Args:
        exact: Whether all parts must be equal, and nothing else counts.
        name: What the scores are reported as, `drop_f1` or `drop_em` by default.

    >>> DropScore().compute(prediction="the red team; Ajax", references=["Ajax", "red team"]).value
    1.0
    """

    exact: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        self.pass_fail = self.exact
        self.name = self.name or ("drop_em" if self.exact else "drop_f1")

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        said = [part for part in re.split(r"[;\n]", answer) if part.strip()] or [answer]
        predicted, gold = [_drop_words(part) for part in said], [_drop_words(text) for text in texts]
        if self.exact:
            joined = [{" ".join(words) for words in parts} for parts in (predicted, gold)]
            return MetricScore(self.name, float(joined[0] == joined[1] and len(predicted) == len(gold)))
        return MetricScore(self.name, _aligned_f1([set(words) for words in predicted], [set(words) for words in gold]))


def _drop_words(text: str) -> list[str]:
    words = [_drop_word(word) for word in re.split(r"[ \-]", text)]
    return [word for word in words if word.strip()]


def _drop_word(word: str) -> str:
    word = word.lower()
    if not _is_number(word):
        word = "".join(character for character in word if character not in string.punctuation)
    if _is_number(word):
        word = str(float(word))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", word).split())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _aligned_f1(predicted: Sequence[set[str]], gold: Sequence[set[str]]) -> float:
    from scipy.optimize import linear_sum_assignment

    scores = np.array([[_bag_f1(said, expected) for said in predicted] for expected in gold])
    rows, columns = linear_sum_assignment(-scores)
    # As published: to two places.
    return round(float(scores[rows, columns].sum()) / max(len(gold), len(predicted)), 2)


def _bag_f1(said: set[str], expected: set[str]) -> float:
    numbers = {word for word in expected if _is_number(word)}
    if numbers and not numbers & {word for word in said if _is_number(word)}:
        return 0.0
    common = len(said & expected)
    precision = common / len(said) if said else 1.0
    recall = common / len(expected) if expected else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


# --- LongBench ----------------------------------------------------------------------------------------------------------


@dataclass
class LongBenchScore(Metric):
    """LongBench's score of an answer, by the kind of task that the row's field names.

    Questions are scored by F1 of words, summaries by ROUGE-L, classes by the class that is named, paragraphs and counts by
    the numbers that are named, code by its similarity to the next line. Against several references the best counts.

    Args:
        task_field: The row's field with the task, such as `hotpotqa`.
        name: What the scores are reported as.

    >>> LongBenchScore().compute(prediction="It is 7.", references=["7"], metadata={"task": "passage_count"}).value
    1.0
    """

    task_field: str = "task"
    name: str = "LongBench"
    score_range = (0.0, 1.0)
    pass_fail = False

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        self._scorer(row)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        row = metadata or {}
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        task = str(row[self.task_field])
        if task in _ANSWERED_IN_ONE_LINE:
            answer = answer.lstrip("\n").partition("\n")[0]
        score = self._scorer(row)
        listed = row.get("all_classes")
        classes = [str(one) for one in listed] if isinstance(listed, Sequence) else []
        return MetricScore(self.name, max(score(answer, text, classes) for text in texts), {"task": task})

    def _scorer(self, row: Mapping[str, object]) -> Callable[[str, str, list[str]], float]:
        task = str(row.get(self.task_field))
        if task.removesuffix("_e") not in LONGBENCH_TASKS:
            raise MetricError(
                f"{self.name}: the row's {self.task_field} {task!r} is none of {', '.join(LONGBENCH_TASKS)}"
            )
        return LONGBENCH_TASKS[task.removesuffix("_e")]


def _question(answer: str, expected: str, _: list[str]) -> float:
    return overlap_f1(Counter(squad_words(answer)), Counter(squad_words(expected)))["f1"]


def _summary(answer: str, expected: str, _: list[str]) -> float:
    return RougeL().compute(prediction=answer, references=[expected]).value


def _class(answer: str, expected: str, classes: list[str]) -> float:
    named = [one for one in classes if one in answer]
    # A class whose name is part of the right one's is named with it.
    named = [one for one in named if one == expected or one not in expected]
    return 1 / len(named) if expected in named else 0.0


def _paragraph(answer: str, expected: str, _: list[str]) -> float:
    wanted = re.search(r"\d+", expected)
    return _share_of_numbers(answer, wanted.group() if wanted else expected)


def _count(answer: str, expected: str, _: list[str]) -> float:
    return _share_of_numbers(answer, expected)


def _share_of_numbers(answer: str, expected: str) -> float:
    said = re.findall(r"\d+", answer)
    return said.count(expected.strip()) / len(said) if said else 0.0


def _code(answer: str, expected: str, _: list[str]) -> float:
    lines = answer.lstrip("\n").split("\n")
    line = next((line for line in lines if not any(mark in line for mark in ("`", "#", "//"))), "")
    return round(difflib.SequenceMatcher(None, line, expected, autojunk=False).ratio(), 2)


LONGBENCH_TASKS: Mapping[str, Callable[[str, str, list[str]], float]] = {
    **dict.fromkeys(
        ("narrativeqa", "qasper", "multifieldqa_en", "hotpotqa", "2wikimqa", "musique", "triviaqa"), _question
    ),
    **dict.fromkeys(("gov_report", "qmsum", "multi_news", "samsum"), _summary),
    "trec": _class,
    "passage_retrieval_en": _paragraph,
    "passage_count": _count,
    **dict.fromkeys(("lcc", "repobench-p"), _code),
}
_ANSWERED_IN_ONE_LINE = ("trec", "triviaqa", "samsum")


# --- RULER --------------------------------------------------------------------------------------------------------------


@dataclass
class ReferencesFound(TextMetric):
    """The share of the references that the answer contains, whatever the letters' case; RULER's score.

    Args:
        name: What the scores are reported as.

    >>> ReferencesFound().compute(prediction="It was 12 and 40.", references=["12", "40", "77", "5"]).value
    0.5
    """

    name: str = "ReferencesFound"

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        folded = answer.casefold()
        found = [text for text in texts if text.casefold() in folded]
        return MetricScore(self.name, len(found) / len(texts), {"found": found})
