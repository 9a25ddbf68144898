"""Answers that are ordered lists of ids, against those that are relevant: MRR, nDCG, recall and precision at k, MAP.

An answer is a list, a mapping of ids to scores, or text: JSON, a numbered or bulleted list, lines, or ids between commas. What is
named twice counts where it stands first and takes no second place. An empty list, or an answer that is none, scores 0.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from themis.core.entities import MetricScore
from themis.core.json_repair import parse_json
from themis.evaluation.metrics.reading import text_or_none, zero
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric, Row

_BULLET = re.compile(r"^\s*(?:[-*•+]|\(?\d+[.):\]]|\[\d+\])\s+(?=\S)")
_EDGES = " \t`'\"*_.,;"


@dataclass
class _OfRanks(Metric):
    """Reads the list and the relevant ids; what is made of them is the subclass's."""

    k: int | None = None
    name: str = ""
    score_range = (0.0, 1.0)
    pass_fail = False
    named: ClassVar[str]

    def __post_init__(self) -> None:
        if self.k is not None and (not isinstance(self.k, int) or self.k < 1):
            raise ConfigurationError(
                f"{self.named}: k is a number of places of at least 1, as in {self.named}@10, got {self.k!r}"
            )
        self.name = self.name or (self.named if self.k is None else f"{self.named}@{self.k}")

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        relevant = _relevant(self.name, references)
        ranked = _ranked(prediction)
        if ranked is None:
            return zero(self.name, prediction, "a list of ids")
        gains = [relevant.get(one, 0.0) for one in ranked]
        return MetricScore(
            self.name, self.of_gains(gains, relevant), {"ranked": ranked[:20], "found": sum(map(bool, gains))}
        )

    @abstractmethod
    def of_gains(self, gains: Sequence[float], relevant: Mapping[str, float]) -> float:
        """The score of the relevances of the answer's ids, in its order."""


def _relevant(name: str, references: Sequence[object]) -> dict[str, float]:
    """The relevance of each relevant id: as a mapping says, else 1."""
    found: dict[str, float] = {}
    for reference in references:
        value = _parsed(reference) if isinstance(reference, str) else reference
        if isinstance(value, Mapping):
            for one, grade in value.items():
                if isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 <= grade < math.inf:
                    raise MetricError(f"{name}: the relevance of {one!r} is a number of at least 0, got {grade!r}")
                found[_id(one)] = float(grade)
        else:
            found.update({_id(one): 1.0 for one in (value if isinstance(value, list) else [value])})
    found = {one: grade for one, grade in found.items() if grade > 0}
    if not found:
        raise MetricError(f"{name} needs at least one relevant id in the reference, and this sample has none")
    return found


def _ranked(prediction: object) -> list[str] | None:
    """The ids of an answer, the best first, each once; None where it is no list."""
    value = _parsed(prediction) if isinstance(prediction, str) else prediction
    if isinstance(value, Mapping):
        lists = [one for one in value.values() if isinstance(one, list)]
        if len(lists) == 1:
            value = lists[0]
        elif value and all(isinstance(grade, int | float) for grade in value.values()):
            # Equal scores stay in the order in which they were written.
            value = [one for one, _ in sorted(value.items(), key=lambda one: -one[1])]
    if isinstance(value, str):
        value = _lines(value)
    if isinstance(value, int | float):
        value = [value]
    if not isinstance(value, list | tuple):
        return None
    ids = [_id(_of_entry(one)) for one in value]
    return list(dict.fromkeys(one for one in ids if one))


def _parsed(text: str) -> object:
    """The JSON of a text that holds a list or an object, else the text itself."""
    if "[" not in text and "{" not in text:
        return text
    try:
        found = parse_json(text)
    except ValueError:
        return text
    return found if isinstance(found, list | dict) and found != {} else text


def _of_entry(entry: object) -> object:
    """The id in an entry of a list, which may be an object that says more of it."""
    if isinstance(entry, Mapping):
        return next((entry[name] for name in ("id", "doc_id", "document_id", "docid") if name in entry), "")
    return entry


def _lines(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    bulleted = [line for line in lines if _BULLET.match(line)]
    if bulleted:
        return [_BULLET.sub("", line) for line in bulleted]
    return lines[0].split(",") if len(lines) == 1 else lines


def _id(value: object) -> str:
    """An id as text: 3 and 3.0 and "3" are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (text_or_none(value) or "").strip().strip(_EDGES)


@dataclass
class MeanReciprocalRank(_OfRanks):
    """1 / the place of the first relevant id, 0 where none is there; the run's mean is MRR.

    Args:
        k: Only so many places count; as in `mrr@10`.
        name: What the scores are reported as; with k, `mrr@k`.

    >>> MeanReciprocalRank().compute(prediction=["d7", "d2"], references=["d2", "d5"]).value
    0.5
    """

    named = "mrr"

    def of_gains(self, gains: Sequence[float], relevant: Mapping[str, float]) -> float:
        return next((1 / place for place, gain in enumerate(gains[: self.k], 1) if gain), 0.0)


@dataclass
class Ndcg(_OfRanks):
    """Normalised discounted cumulative gain: relevances divided by log2(place + 1), against those of the best order.

    The reference is a list of relevant ids, or a mapping of ids to relevances. As scikit-learn's `ndcg_score` for a list
    without ties.

    Args:
        k: Only so many places count; as in `ndcg@10`.
        gain: `linear` for the relevance itself, `exponential` for 2 to its power, minus 1.
        name: What the scores are reported as; with k, `ndcg@k`.

    >>> round(Ndcg(k=2).compute(prediction=["b", "a"], references=[{"a": 3, "b": 1}]).value, 4)
    0.7967
    """

    gain: Literal["linear", "exponential"] = "linear"
    named = "ndcg"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gain not in ("linear", "exponential"):
            raise ConfigurationError(f"ndcg: gain is 'linear' or 'exponential', got {self.gain!r}")

    def of_gains(self, gains: Sequence[float], relevant: Mapping[str, float]) -> float:
        best = self._discounted(sorted(relevant.values(), reverse=True))
        return min(self._discounted(gains) / best, 1.0)

    def _discounted(self, gains: Sequence[float]) -> float:
        told = gains if self.gain == "linear" else [2.0**gain - 1 for gain in gains]
        return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(told[: self.k], 1))


@dataclass
class RecallAtK(_OfRanks):
    """Share of the relevant ids that are among the first k of the answer.

    Args:
        k: How many places count; as in `recall@5`. Without it, all of the answer.
        name: What the scores are reported as; with k, `recall@k`.

    >>> RecallAtK(k=2).compute(prediction="1. d2\\n2. d9\\n3. d5", references=["d2", "d5"]).value
    0.5
    """

    named = "recall"

    def of_gains(self, gains: Sequence[float], relevant: Mapping[str, float]) -> float:
        return sum(map(bool, gains[: self.k])) / len(relevant)


@dataclass
class PrecisionAtK(_OfRanks):
    """Share of the first k places that hold a relevant id; places that the answer leaves empty hold none.

    Args:
        k: How many places count; as in `precision@5`. Without it, as many as the answer has.
        name: What the scores are reported as; with k, `precision@k`.

    >>> PrecisionAtK(k=2).compute(prediction='["d2", "d9"]', references=["d2", "d5"]).value
    0.5
    """

    named = "precision"

    def of_gains(self, gains: Sequence[float], relevant: Mapping[str, float]) -> float:
        places = len(gains) if self.k is None else self.k
        return sum(map(bool, gains[: self.k])) / places if places else 0.0


@dataclass
class MeanAveragePrecision(_OfRanks):
    """Mean of the precisions at the places of the relevant ids; one that is missing counts 0. The run's mean is MAP.

    Args:
        k: Only so many places count, and no more relevant ids than those are expected; as in `map@10`.
        name: What the scores are reported as; with k, `map@k`.

    >>> round(MeanAveragePrecision().compute(prediction=["a", "x", "b"], references=["a", "b"]).value, 4)
    0.8333
    """

    named = "map"

    def of_gains(self, gains: Sequence[float], relevant: Mapping[str, float]) -> float:
        places = [place for place, gain in enumerate(gains[: self.k], 1) if gain]
        expected = len(relevant) if self.k is None else min(len(relevant), self.k)
        return math.fsum(found / place for found, place in enumerate(places, 1)) / expected
