"""Numbers over a whole run that are no mean: each a function of statistics that are summed over the items.

A metric names its aggregation (`Metric.aggregation`) and leaves every item's statistics in its score; both are stored, so that
`runs.report` and comparisons compute value and interval without the metric itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from themis.core.intervals import Floats, ScoreRange
from themis.evaluation.corpus import Corpus, jackknife_interval
from themis.evaluation.registries import AGGREGATIONS
from themis.exceptions import ConfigurationError, MetricError

# A matrix with a row an item: an array, or scipy's sparse array of the same shape.
Rows: TypeAlias = Any
OTHER = "(other)"


class Aggregation(ABC):
    """How items' statistics become one number; parameters are keywords of the class.

    `compute` gets many sums at once, a row each, since an interval needs thousands of them.

    >>> class Ratio(Aggregation):
    ...     value_range = (0.0, None)
    ...     def compute(self, sums):
    ...         return sums[:, 0] / sums[:, 1]
    >>> ratio = Ratio()
    >>> ratio.compute(ratio.tabulate([[1, 4], [1, 2]]).sum(axis=0, keepdims=True))
    array([0.33333333])
    """

    # The least and the most that the value can be; intervals stay inside.
    value_range: ScoreRange | None = (0.0, 1.0)
    # The value is the mean of the items' own scores: everything that is known of means applies to it.
    is_mean: ClassVar[bool] = False
    # How `interval` is computed, as reports call it.
    interval_name: ClassVar[str] = "jackknife"
    # Each value takes as long as a look at all items: intervals then stand on groups of items, comparisons on fewer resamples.
    costly: bool = False

    def tabulate(self, statistics: Sequence[object]) -> Rows:
        """The items' statistics as rows of numbers that can be added up.

        Args:
            statistics: What each item's score holds: by default a list of numbers, equally many for all.
        """
        try:
            rows = np.asarray(statistics, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise MetricError(f"an item's statistics are a list of numbers, equally many for all: {error}") from error
        return rows.reshape(len(statistics), -1)

    @abstractmethod
    def compute(self, sums: Floats) -> Floats:
        """The value for each row of sums.

        Args:
            sums: Columns as `tabulate` makes them, summed over items; weights may make them fractions.
        """

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        """What explains the value and is shown with it, such as a confusion matrix; nothing by default.

        Args:
            statistics: Of all items.
            weights: How often each counts: 1, or a part of it where several attempts were made.
        """
        return {}

    def interval(self, corpus: Corpus, level: float) -> tuple[float, float] | None:
        """The interval of the value: Student's around the jackknifed value, on a scale without ends.

        Args:
            corpus: At least two units, with the value and its standard error.
            level: Confidence level.
        """
        stderr = corpus.stderr
        return (
            None if stderr is None else jackknife_interval(corpus.value, stderr, corpus.units, self.value_range, level)
        )


def register_aggregation(
    name: str, target: type[Aggregation] | Callable[[Floats], Floats], *, value_range: ScoreRange | None = None
) -> None:
    """Makes an aggregation known under a name, which metrics of this program may then name as theirs.

    Args:
        name: What `Metric.aggregation` names it by.
        target: A class, or a function that takes sums (a line each, with a column for each of the item's statistics) and
            returns a value a line.
        value_range: The least and the most that the function's values can be.

    Raises:
        ConfigurationError: The target is neither.

    >>> register_aggregation("edits_per_word", lambda sums: sums[:, 0] / sums[:, 1], value_range=(0.0, None))
    """
    if isinstance(target, type):
        if not issubclass(target, Aggregation):
            raise ConfigurationError(
                f"cannot register {target.__name__} as an aggregation: it is no subclass of Aggregation"
            )
        AGGREGATIONS.register(name, target)
    elif callable(target):
        AGGREGATIONS.register(name, FunctionAggregation(target, value_range))
    else:
        raise ConfigurationError(f"an aggregation is a subclass of Aggregation or a function of sums, got {target!r}")


@dataclass(frozen=True)
class FunctionAggregation(Aggregation):
    """A plain function of sums as an aggregation; see `register_aggregation`."""

    function: Callable[[Floats], Floats]
    value_range: ScoreRange | None = None

    def compute(self, sums: Floats) -> Floats:
        return np.asarray(self.function(sums), dtype=np.float64).reshape(len(sums))


@dataclass(frozen=True)
class AttemptedShare(Aggregation):
    """Of [correct, attempted, 1]: the correct share of what was attempted, or its harmonic mean with that of all.

    Args:
        harmonic: Whether it is the mean with the correct share of all items.

    >>> AttemptedShare().compute(np.array([[3.0, 4, 6]]))
    array([0.75])
    """

    harmonic: bool = False

    def compute(self, sums: Floats) -> Floats:
        correct, attempted, count = sums[:, 0], sums[:, 1], sums[:, 2]
        below = (attempted + count) / 2 if self.harmonic else attempted
        with np.errstate(divide="ignore", invalid="ignore"):
            share: Floats = np.where(below > 0, correct / below, 0.0)
        return share

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        correct, attempted, count = (weights @ self.tabulate(statistics)).tolist()
        return {"correct": _whole(correct), "attempted": _whole(attempted), "not_attempted": _whole(count - attempted)}


class RatioOfSums(Aggregation):
    """Of [part, whole]: the share that all items' parts have of all their wholes, as of instructions followed.

    >>> RatioOfSums().compute(np.array([[3.0, 4]]))
    array([0.75])
    """

    def compute(self, sums: Floats) -> Floats:
        part, whole = sums[:, 0], sums[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            share: Floats = np.where(whole > 0, part / whole, 0.0)
        return share

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        part, whole = (weights @ self.tabulate(statistics)).tolist()
        return {"part": _whole(part), "whole": _whole(whole)}


@dataclass(frozen=True)
class MeanOfGroups(Aggregation):
    """The mean of groups' means, each group counting alike; an item's statistics are (group, score).

    Args:
        low: The least that a score can be; None for no limit.
        high: The most.

    >>> groups = MeanOfGroups()
    >>> groups.compute(groups.tabulate([["a", 1.0], ["a", 1.0], ["b", 0.0]]).sum(axis=0, keepdims=True))
    array([0.5])
    """

    low: float | None = 0.0
    high: float | None = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value_range", (self.low, self.high))

    def tabulate(self, statistics: Sequence[object]) -> Rows:
        pairs = [_group_and_score(one) for one in statistics]
        number = {group: place for place, group in enumerate(sorted({group for group, _ in pairs}))}
        rows = np.zeros((len(pairs), 2 * len(number)))
        for line, (group, score) in enumerate(pairs):
            rows[line, 2 * number[group]] = score
            rows[line, 2 * number[group] + 1] = 1.0
        return rows

    def compute(self, sums: Floats) -> Floats:
        totals, counts = sums[:, 0::2], sums[:, 1::2]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(counts > 0, totals / counts, 0.0)
        value: Floats = means.sum(axis=1) / (counts > 0).sum(axis=1)
        return value

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        totals: dict[str, list[float]] = {}
        for one, weight in zip(statistics, weights.tolist(), strict=True):
            group, score = _group_and_score(one)
            total = totals.setdefault(group, [0.0, 0.0])
            total[0] += weight * score
            total[1] += weight
        return {
            "by_group": [
                {"group": group, "mean": total / count, "count": _whole(count)}
                for group, (total, count) in sorted(totals.items())
                if count
            ]
        }


def _group_and_score(statistics: object) -> tuple[str, float]:
    if isinstance(statistics, list | tuple) and len(statistics) == 2:
        return str(statistics[0]), float(statistics[1])
    raise MetricError(f"a group's statistics are (group, score), got {statistics!r:.80}")


# --- texts -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BleuOfSums(Aggregation):
    """Corpus BLEU, as sacrebleu computes it from [answer words, reference words, matches of each order, n-grams of each].

    Args:
        smooth_method: `exp`, `floor`, `add-k` or `none`.
        smooth_value: That of `floor` and `add-k`; None for 0.1 and 1.

    >>> BleuOfSums().compute(np.array([[4.0, 4, 4, 3, 2, 1, 4, 3, 2, 1]]))
    array([1.])
    """

    smooth_method: str = "exp"
    smooth_value: float | None = None

    def compute(self, sums: Floats) -> Floats:
        order = (sums.shape[1] - 2) // 2
        said, expected = sums[:, 0], sums[:, 1]
        matches, totals = sums[:, 2 : 2 + order].copy(), sums[:, 2 + order :].copy()
        found_any = matches.any(axis=1)
        value = {"floor": 0.1, "add-k": 1.0}.get(self.smooth_method, 0.0)
        value = value if self.smooth_value is None else self.smooth_value
        if self.smooth_method == "add-k":
            matches[:, 1:] += value
            totals[:, 1:] += value
        numerators = matches
        if self.smooth_method == "exp":
            # Each order without a match halves what the order counts for once more.
            misses = np.cumsum((matches == 0) & (totals > 0), axis=1)
            numerators = np.where(matches == 0, 0.5**misses, matches)
        elif self.smooth_method == "floor":
            numerators = np.where(matches == 0, value, matches)
        # Above an order without n-grams none counts.
        reached = np.logical_and.accumulate(totals > 0, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(reached, np.log(numerators) - np.log(totals), -np.inf)
            penalty = np.where(said < expected, np.exp(1 - expected / said), 1.0)
        bleu: Floats = np.where(found_any & (said > 0), penalty * np.exp(logs.mean(axis=1)), 0.0)
        return bleu

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        sums = weights @ self.tabulate(statistics)
        order = (len(sums) - 2) // 2
        precisions = [
            float(found / total) if total else 0.0
            for found, total in zip(sums[2 : 2 + order], sums[2 + order :], strict=True)
        ]
        short = sums[0] < sums[1]
        return {
            "precisions": precisions,
            "brevity_penalty": (math.exp(1 - sums[1] / sums[0]) if sums[0] else 0.0) if short else 1.0,
            "answer_words": float(sums[0]),
            "reference_words": float(sums[1]),
        }


@dataclass(frozen=True)
class ChrfOfSums(Aggregation):
    """Corpus chrF, as sacrebleu computes it from [n-grams of the answer, of the reference, matches] of each order.

    Args:
        beta: How much more recall counts than precision.

    >>> ChrfOfSums().compute(np.array([[5.0, 4, 4]])).round(3)
    array([0.952])
    """

    beta: float = 2

    def compute(self, sums: Floats) -> Floats:
        said, expected, matches = sums[:, 0::3], sums[:, 1::3], sums[:, 2::3]
        counts = (said > 0) & (expected > 0)
        orders = np.maximum(counts.sum(axis=1), 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            precision = np.where(counts, matches / said, 0.0).sum(axis=1) / orders
            recall = np.where(counts, matches / expected, 0.0).sum(axis=1) / orders
            factor = self.beta**2
            score = (1 + factor) * precision * recall / (factor * precision + recall)
        chrf: Floats = np.where(precision + recall > 0, score, 0.0)
        return chrf


@dataclass(frozen=True)
class TerOfSums(Aggregation):
    """Translation edit rate over a corpus: edits a word of the references, from [edits, reference words].

    >>> TerOfSums().compute(np.array([[3.0, 12]]))
    array([0.25])
    """

    value_range = (0.0, None)

    def compute(self, sums: Floats) -> Floats:
        edits, words = sums[:, 0], sums[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate: Floats = np.where(words > 0, edits / words, (edits > 0).astype(np.float64))
        return rate

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        edits, words = weights @ self.tabulate(statistics)
        return {"edits": float(edits), "reference_words": float(words)}


# --- log-probabilities --------------------------------------------------------------------------------------------------

# A larger exponent is no number any more.
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class PerplexityOfSums(Aggregation):
    """Perplexity a unit of text (a target, a word, a byte), from [log-probability in nats, units].

    >>> PerplexityOfSums().compute(np.array([[-6.931471805599453, 10]]))
    array([2.])
    """

    value_range = (1.0, None)

    def compute(self, sums: Floats) -> Floats:
        perplexity: Floats = np.exp(np.clip(_divide(-sums[:, 0], sums[:, 1]), 0.0, _LARGEST_EXPONENT))
        return perplexity

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        logprob, units = weights @ self.tabulate(statistics)
        return {"logprob": float(logprob), "units": _whole(float(units))}


class BitsOfSums(PerplexityOfSums):
    """Bits a unit of text, from [log-probability in nats, units].

    >>> BitsOfSums().compute(np.array([[-6.931471805599453, 10]]))
    array([1.])
    """

    value_range = (0.0, None)

    def compute(self, sums: Floats) -> Floats:
        bits: Floats = np.maximum(_divide(-sums[:, 0], sums[:, 1]), 0.0) / math.log(2)
        return bits


# --- classes -----------------------------------------------------------------------------------------------------------


class OfClasses(Aggregation):
    """What is computed of a confusion matrix; an item's statistics are (expected class, predicted class or None).

    The classes are those that are expected somewhere, or `labels`; every other prediction is one more column, which is no
    class of its own: it is wrong for whichever class was expected. Columns of the sums are, with K classes, the K
    diagonal cells, the K sums of rows, and the K + 1 sums of columns.

    Args:
        labels: All classes, where some may not occur.
    """

    def __init__(self, labels: Sequence[str] | None = None) -> None:
        self.labels = None if labels is None else list(labels)

    def tabulate(self, statistics: Sequence[object]) -> Rows:
        from scipy.sparse import csr_array

        pairs = [_pair(one) for one in statistics]
        number = {label: place for place, label in enumerate(self._classes(pairs))}
        classes = len(number)
        columns, starts = [], [0]
        for expected, predicted in pairs:
            row, column = number[expected], (classes if predicted is None else number.get(predicted, classes))
            columns += [row] if row == column else []
            columns += [classes + row, 2 * classes + column]
            starts.append(len(columns))
        ones = np.ones(len(columns))
        return csr_array((ones, columns, starts), shape=(len(pairs), 3 * classes + 1))

    def compute(self, sums: Floats) -> Floats:
        classes = (sums.shape[1] - 1) // 3
        return self.of_counts(sums[:, :classes], sums[:, classes : 2 * classes], sums[:, 2 * classes :])

    @abstractmethod
    def of_counts(self, right: Floats, expected: Floats, predicted: Floats) -> Floats:
        """The value from how often each class was right, expected and predicted; predictions have one column more."""

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        pairs = [_pair(one) for one in statistics]
        classes = self._classes(pairs)
        known = set(classes)
        counts: dict[tuple[str, str], float] = {}
        for (expected, predicted), weight in zip(pairs, weights.tolist(), strict=True):
            cell = (expected, predicted if predicted in known else OTHER)
            counts[cell] = counts.get(cell, 0.0) + weight
        order = {label: place for place, label in enumerate([*classes, OTHER])}
        cells = sorted(counts, key=lambda cell: (order[cell[0]], order[cell[1]]))
        return {
            "classes": classes,
            "confusion": [{"expected": cell[0], "predicted": cell[1], "count": _whole(counts[cell])} for cell in cells],
            "by_class": _by_class(classes, counts),
        }

    def _classes(self, pairs: Sequence[tuple[str, str | None]]) -> list[str]:
        expected = {expected for expected, _ in pairs}
        if self.labels is None:
            return sorted(expected)
        return [*self.labels, *sorted(expected.difference(self.labels))]


def _by_class(classes: Sequence[str], counts: Mapping[tuple[str, str], float]) -> list[dict[str, object]]:
    expected, predicted = dict.fromkeys(classes, 0.0), dict.fromkeys([*classes, OTHER], 0.0)
    for (row, column), count in counts.items():
        expected[row] += count
        predicted[column] += count
    found = []
    for label in classes:
        right, told, said = counts.get((label, label), 0.0), expected[label], predicted[label]
        found.append(
            {
                "class": label,
                "expected": _whole(told),
                "predicted": _whole(said),
                "precision": right / said if said else 0.0,
                "recall": right / told if told else 0.0,
                "f1": 2 * right / (told + said) if told + said else 0.0,
            }
        )
    return found


def _pair(statistics: object) -> tuple[str, str | None]:
    if isinstance(statistics, list | tuple) and len(statistics) == 2:
        expected, predicted = statistics
        return str(expected), None if predicted is None else str(predicted)
    raise MetricError(f"a class's statistics are (expected, predicted), got {statistics!r:.80}")


def _whole(count: float) -> float:
    return int(count) if count == int(count) else round(count, 6)


class AccuracyOfClasses(OfClasses):
    """Share of items whose class is right: the mean of the items' scores."""

    is_mean = True

    def of_counts(self, right: Floats, expected: Floats, predicted: Floats) -> Floats:
        return _divide(right.sum(axis=1), expected.sum(axis=1))


class BalancedAccuracyOfClasses(OfClasses):
    """The mean of the classes' recalls: every class counts the same, however rare."""

    def of_counts(self, right: Floats, expected: Floats, predicted: Floats) -> Floats:
        occurs = expected > 0
        return _divide(_divide(right, expected).sum(axis=1), occurs.sum(axis=1))


class MacroF1OfClasses(OfClasses):
    """The mean of the classes' F1: every class that occurs or is predicted counts the same."""

    def of_counts(self, right: Floats, expected: Floats, predicted: Floats) -> Floats:
        seen = expected + predicted[:, :-1]
        return _divide(_divide(2 * right, seen).sum(axis=1), (seen > 0).sum(axis=1))


class WeightedF1OfClasses(OfClasses):
    """The mean of the classes' F1, weighted by how often each is expected."""

    def of_counts(self, right: Floats, expected: Floats, predicted: Floats) -> Floats:
        f1 = _divide(2 * right, expected + predicted[:, :-1])
        return _divide((f1 * expected).sum(axis=1), expected.sum(axis=1))


class MccOfClasses(OfClasses):
    """Matthews' correlation coefficient of expected and predicted classes, for any number of them."""

    value_range = (-1.0, 1.0)

    def of_counts(self, right: Floats, expected: Floats, predicted: Floats) -> Floats:
        n = expected.sum(axis=1)
        together = (expected * predicted[:, :-1]).sum(axis=1)
        spread = (n**2 - (expected**2).sum(axis=1)) * (n**2 - (predicted**2).sum(axis=1))
        return _divide(right.sum(axis=1) * n - together, np.sqrt(np.maximum(spread, 0.0)))


class KappaOfClasses(OfClasses):
    """Cohen's kappa of expected and predicted classes: agreement beyond what their frequencies alone would give."""

    value_range = (-1.0, 1.0)

    def of_counts(self, right: Floats, expected: Floats, predicted: Floats) -> Floats:
        n = expected.sum(axis=1)
        by_chance = (expected * predicted[:, :-1]).sum(axis=1)
        return _divide(right.sum(axis=1) * n - by_chance, n**2 - by_chance)


def _divide(numerator: Floats, denominator: npt.NDArray[Any]) -> Floats:
    """Nothing of nothing is zero."""
    denominator = np.asarray(denominator, dtype=np.float64)
    shape = np.broadcast_shapes(np.shape(numerator), denominator.shape)
    quotient: Floats = np.divide(numerator, denominator, out=np.zeros(shape), where=denominator > 0)
    return quotient


# --- calibration -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CalibrationError(Aggregation):
    """Expected calibration error over bins of equal width; an item's statistics are [confidence, correctness].

    Args:
        bins: How many; confidences of 0 to 1 are sorted into them, and a confidence on an edge belongs below it.

    >>> CalibrationError(bins=2).compute(CalibrationError(bins=2).tabulate([[0.9, 1], [0.7, 0]]).sum(axis=0)[None])
    array([0.3])
    """

    bins: int = 10
    interval_name = "calibration_model"

    def __post_init__(self) -> None:
        if self.bins < 1:
            raise ConfigurationError(f"a calibration error needs at least one bin (10 is usual), got {self.bins}")

    def tabulate(self, statistics: Sequence[object]) -> Rows:
        given = super().tabulate(statistics)
        rows = np.zeros((len(given), 2 * self.bins))
        numbers, place = self._bins(given[:, 0]), np.arange(len(given))
        rows[place, numbers] = given[:, 0] - given[:, 1]
        rows[place, self.bins + numbers] = 1.0
        return rows

    def compute(self, sums: Floats) -> Floats:
        return _divide(np.abs(sums[:, : self.bins]).sum(axis=1), sums[:, self.bins :].sum(axis=1))

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        given = Aggregation.tabulate(self, statistics)
        numbers = self._bins(given[:, 0])
        counts = np.bincount(numbers, weights=weights, minlength=self.bins)
        confidences = np.bincount(numbers, weights=weights * given[:, 0], minlength=self.bins)
        correct = np.bincount(numbers, weights=weights * given[:, 1], minlength=self.bins)
        return {
            "reliability": [
                {
                    "low": place / self.bins,
                    "high": (place + 1) / self.bins,
                    "count": _whole(float(counts[place])),
                    "confidence": float(confidences[place] / counts[place]) if counts[place] else None,
                    "accuracy": float(correct[place] / counts[place]) if counts[place] else None,
                }
                for place in range(self.bins)
            ]
        }

    def interval(self, corpus: Corpus, level: float) -> tuple[float, float] | None:
        """The miscalibrations under which an error such as the observed one is not rare.

        Noise never cancels in a sum of absolute gaps: the error of a perfectly calibrated model is above zero, the more so the
        fewer items, and resampling repeats that. So the gaps are scaled by a factor, from none to several times the observed
        ones, items are drawn from each such model, and those are kept under which the observed error is no tail event.
        """
        around = super().interval(corpus, level)
        if around is None:
            return None
        gaps, counts = corpus.totals[: self.bins], corpus.totals[self.bins :]
        given = np.asarray(corpus.statistics, dtype=np.float64)
        confidence = np.bincount(
            self._bins(given[:, 0]), weights=corpus.weights * given[:, 0], minlength=self.bins
        ) / np.maximum(counts, 1e-12)
        model = _Miscalibration(gaps, counts, confidence, _design_effect(corpus))
        tail = (1 - level) / 2
        low = model.find_factor(lambda share: share.at_least >= tail, corpus.value)
        high = model.find_factor(lambda share: share.at_most < tail, corpus.value)
        # Large errors carry no such bias, and there the jackknife sees more of what moves them.
        return min(model.error(low), around[1]), max(model.error(high), around[1])

    def _bins(self, confidences: Floats) -> npt.NDArray[np.intp]:
        # 0.7 is the end of a bin, though 0.7 times ten is a little more than seven.
        numbers: npt.NDArray[np.intp] = np.ceil(confidences * self.bins - 1e-9).astype(np.intp) - 1
        return np.clip(numbers, 0, self.bins - 1)


class BrierScore(CalibrationError):
    """Brier score: the mean of the items' scores, with the bins of a reliability diagram."""

    is_mean = True

    def compute(self, sums: Floats) -> Floats:
        return _divide(sums[:, 0], sums[:, 1])

    def tabulate(self, statistics: Sequence[object]) -> Rows:
        given = Aggregation.tabulate(self, statistics)
        return np.column_stack([(given[:, 0] - given[:, 1]) ** 2, np.ones(len(given))])


_MOST_FACTOR = 8.0
_HALVINGS = 10
_DRAWS = 1_000


class _Tails(NamedTuple):
    """How often a model's error is at most, and at least, the observed one."""

    at_most: float
    at_least: float


class _Miscalibration:
    """Bins whose true gaps are the observed ones times a factor, from which items are drawn anew."""

    def __init__(self, gaps: Floats, counts: Floats, confidence: Floats, design_effect: float) -> None:
        self._filled = counts > 0
        self._counts = counts[self._filled]
        self._confidence = confidence[self._filled]
        self._gaps = gaps[self._filled] / self._counts
        # Items of one cluster say less than as many of their own.
        self._items = max(1, round(float(counts.sum()) / design_effect))
        self._drawn = np.random.default_rng(0).multinomial(self._items, self._counts / self._counts.sum(), size=_DRAWS)

    def error(self, factor: float) -> float:
        """The calibration error of the model itself."""
        return float((self._counts * np.abs(self._confidence - self._accuracy(factor))).sum() / self._counts.sum())

    def find_factor(self, holds: Callable[[_Tails], bool], observed: float) -> float:
        """The least factor for whose tails this holds, where it does for all larger ones; found by halving."""
        if holds(self._tails(0.0, observed)):
            return 0.0
        low, high = 0.0, _MOST_FACTOR
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(self._tails(middle, observed)) else (middle, high)
        return high

    def _tails(self, factor: float, observed: float) -> _Tails:
        # The same draws for every factor, so that neighbouring factors do not differ by chance.
        right = np.random.default_rng(1).binomial(self._drawn, self._accuracy(factor))
        errors = np.abs(self._drawn * self._confidence - right).sum(axis=1) / self._items
        noise = 1e-12
        return _Tails(float((errors <= observed + noise).mean()), float((errors >= observed - noise).mean()))

    def _accuracy(self, factor: float) -> Floats:
        accuracy: Floats = np.clip(self._confidence - factor * self._gaps, 0.0, 1.0)
        return accuracy


def _design_effect(corpus: Corpus) -> float:
    """How much more the value varies than if its items were independent; at least 1."""
    if not corpus.clustered:
        return 1.0
    rows = corpus.aggregation.tabulate(corpus.statistics)
    alone = corpus.aggregation.compute(corpus.totals - corpus.weights[:, None] * rows)
    spread = float(((alone - alone.mean()) ** 2).sum())
    stderr = corpus.stderr or 0.0
    return max(1.0, stderr**2 / spread) if spread > 0 else 1.0
