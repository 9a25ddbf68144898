"""Scores of benchmarks by their own published rules: DROP, LongBench, RULER and BIG-Bench Hard."""

from __future__ import annotations

import difflib
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from themis.core.entities import MetricScore
from themis.evaluation.extractors.choice import find_choice, parse_options
from themis.evaluation.extractors.numbers import find_numbers
from themis.evaluation.extractors.text import last_of
from themis.evaluation.metrics.overlap import RougeL
from themis.evaluation.metrics.reading import TextMetric, reference_texts, text_or_none, zero
from themis.evaluation.metrics.text import overlap_f1, squad_words
from themis.exceptions import MetricError
from themis.interfaces import Metric, Row

# --- DROP ---------------------------------------------------------------------------------------------------------------


@dataclass
class DropScore(TextMetric):
    """DROP's own score of an answer of one or several parts: F1 of bags of words, or exact match.

    The parts of a reply and of a reference stand between semicolons or on lines of their own; of several references the best
    counts. Parts are matched so that the sum of their F1 is greatest; a part with a number is only matched by one that
    has a number in common.

    Args:
        exact: Whether all parts must be equal, and nothing else counts.
        name: What the scores are reported as, `drop_f1` or `drop_em` by default.

    >>> DropScore().compute(prediction="the red team; Ajax", references=["Ajax; red team"]).value
    1.0
    """

    exact: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        self.pass_fail = self.exact
        self.name = self.name or ("drop_em" if self.exact else "drop_f1")

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        return MetricScore(self.name, max(self._score(_parts(answer), _parts(text)) for text in texts))

    def _score(self, said: Sequence[str], expected: Sequence[str]) -> float:
        predicted, gold = [_drop_words(part) for part in said], [_drop_words(part) for part in expected]
        if self.exact:
            joined = [{" ".join(words) for words in parts} for parts in (predicted, gold)]
            return float(joined[0] == joined[1] and len(predicted) == len(gold))
        return _aligned_f1([set(words) for words in predicted], [set(words) for words in gold])


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[;\n]", text) if part.strip()] or [text]


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
    import numpy as np
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
class PartsFound(TextMetric):
    """The share of a reference's parts that the answer contains, whatever the letters' case; RULER's score.

    Parts stand between semicolons; of several references the best counts.

    Args:
        name: What the scores are reported as.

    >>> PartsFound().compute(prediction="It was 12 and 40.", references=["12; 40; 77; 5"]).value
    0.5
    """

    name: str = "PartsFound"

    def compare(self, answer: str, texts: Sequence[str]) -> MetricScore:
        folded = answer.casefold()
        wanted = [[part.strip() for part in _parts(text)] for text in texts]
        found = [[part for part in parts if part.casefold() in folded] for parts in wanted]
        shares = [len(some) / len(parts) for some, parts in zip(found, wanted, strict=True)]
        best = max(range(len(texts)), key=shares.__getitem__)
        return MetricScore(self.name, shares[best], {"found": found[best]})


# --- BIG-Bench Hard -----------------------------------------------------------------------------------------------------


@dataclass
class BbhMatch(Metric):
    """1 if the answer is the reference's: the letter of an option, a number, or the same words or brackets.

    Args:
        question_field: The row's field with the question, whose options an answer may spell out.
        name: What the scores are reported as.

    >>> BbhMatch().compute(prediction="B", references=["(B)"]).value
    1.0
    """

    question_field: str = "input"
    name: str = "BbhMatch"
    score_range = (0.0, 1.0)
    pass_fail = True

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        texts = reference_texts(self.name, references)
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction)
        question = str((metadata or {}).get(self.question_field, ""))
        return MetricScore(self.name, float(any(_is_bbh_answer(answer, text, question) for text in texts)))


def _is_bbh_answer(answer: str, expected: str, question: str) -> bool:
    if letter := re.fullmatch(r"\(([A-Z])\)", expected.strip()):
        letters = string.ascii_uppercase
        return find_choice(answer, letters, parse_options(question, letters)) == letter[1]
    if re.fullmatch(r"-?\d+", expected.strip()):
        said = last_of(find_numbers(answer))
        return said is not None and said.value == int(expected)
    return _compact_words(answer) == _compact_words(expected)


def _compact_words(text: str) -> str:
    """Brackets are the answer of one task, so that only commas and a full stop are left out."""
    return "".join(text.casefold().replace(",", " ").strip(" .*`\"'").split())
