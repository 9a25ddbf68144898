"""How far judges agree with each other and with people, and what their mean is worth: pure functions over ratings."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from themis.core.intervals import student_quantile, wilson_interval
from themis.exceptions import MetricError


def cohens_kappa(one: Sequence[object], other: Sequence[object]) -> float:
    """Agreement of two raters beyond chance; NaN when chance alone would make them agree fully.

    Args:
        one: A rater's labels, one an item.
        other: Another rater's labels of the same items, in the same order.

    >>> cohens_kappa([1, 1, 0, 0], [1, 1, 0, 1])
    0.5
    """
    if len(one) != len(other) or not one:
        raise MetricError(f"two raters rate the same items; got {len(one)} and {len(other)} ratings")
    n = len(one)
    observed = sum(a == b for a, b in zip(one, other, strict=True)) / n
    counts_one, counts_other = Counter(one), Counter(other)
    expected = sum(counts_one[label] * counts_other[label] for label in counts_one) / n**2
    return math.nan if expected == 1 else (observed - expected) / (1 - expected)


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]], *, level: str = "nominal") -> float:
    """Agreement of any number of raters, beyond chance.

    Args:
        ratings: One sequence a rater over the same items, None where an item was not rated.
        level: "nominal" (labels: equal or not) or "interval" (numbers: squared difference).

    >>> krippendorff_alpha([[1, 0, None], [1, 0, 1]])
    1.0
    """
    if level not in ("nominal", "interval"):
        raise MetricError(f"level is 'nominal' or 'interval', got {level!r}")
    units = [[value for value in unit if value is not None] for unit in zip(*ratings, strict=True)]
    units = [unit for unit in units if len(unit) >= 2]
    values = [value for unit in units for value in unit]
    if len(values) < 2:
        raise MetricError("alpha needs at least one item that two raters rated")

    def distance(a: float, b: float) -> float:
        return float(a != b) if level == "nominal" else (a - b) ** 2

    observed = math.fsum(
        math.fsum(distance(a, b) for a in unit for b in unit) / (len(unit) - 1) for unit in units
    ) / len(values)
    counts = Counter(values)
    n = len(values)
    expected = math.fsum(
        counts[a] * counts[b] * distance(a, b) for a in counts for b in counts
    ) / (n * (n - 1))  # fmt: skip
    return math.nan if expected == 0 else 1 - observed / expected


@dataclass(frozen=True)
class Agreement:
    """How far judges agree on the items: alpha of all of them, and kappa of every two on a vote for (0.5 or more)."""

    items: int
    krippendorff_alpha: float
    cohens_kappa: dict[str, float]


def agreement_of(judged: Mapping[str, Mapping[str, float]]) -> Agreement:
    """Agreement of judges with each other.

    Args:
        judged: Judge -> item -> value; an item that a judge has no verdict on counts for the others.

    >>> agreement_of({"one": {"a": 1.0, "b": 0.0}, "two": {"a": 1.0, "b": 0.0}}).cohens_kappa
    {'one / two': 1.0}
    """
    if len(judged) < 2:
        raise MetricError(f"agreement is between at least two judges, got {len(judged)}")
    items = sorted(set().union(*judged.values()))
    ratings = [[values.get(item) for item in items] for values in judged.values()]
    kappas = {}
    for (one, first), (other, second) in itertools.combinations(judged.items(), 2):
        shared = [item for item in items if item in first and item in second]
        if shared:
            votes = [(first[item] >= 0.5, second[item] >= 0.5) for item in shared]
            kappas[f"{one} / {other}"] = cohens_kappa([a for a, _ in votes], [b for _, b in votes])
    return Agreement(len(items), krippendorff_alpha(ratings, level="interval"), kappas)


@dataclass(frozen=True)
class SwapConsistency:
    """How often a pairwise judge's verdict changed with the order of the answers.

    `first_place` counts those in which it preferred what stood first both times, `second_place` what stood second.
    """

    pairs: int
    inconsistent: int
    rate: float
    rate_ci: tuple[float, float]
    first_place: int
    second_place: int


def swap_consistency(said: Sequence[Sequence[str]]) -> SwapConsistency:
    """How often the order of the answers decided.

    Args:
        said: What the judge said in both orders, "A" being the first place: the `said` of each pairwise score's details.

    >>> swap_consistency([["A", "B"], ["A", "A"]]).rate
    0.5
    """
    swapped = [tuple(pair) for pair in said if len(pair) == 2]
    if not swapped:
        raise MetricError("no pair was judged in both orders; PairwiseJudge does so unless swap=False")
    consistent = {("A", "B"), ("B", "A"), ("tie", "tie")}
    inconsistent = sum(pair not in consistent for pair in swapped)
    return SwapConsistency(
        pairs=len(swapped),
        inconsistent=inconsistent,
        rate=inconsistent / len(swapped),
        rate_ci=wilson_interval(inconsistent, len(swapped)),
        first_place=swapped.count(("A", "A")),
        second_place=swapped.count(("B", "B")),
    )


@dataclass(frozen=True)
class Calibration:
    """A judge held against people's labels.

    `corrected_mean` is the judge's mean over all items less its bias on the labelled ones (prediction-powered inference); its
    interval covers the mean that people would have given, however biased the judge is.
    """

    labelled: int
    judged: int
    accuracy: float
    kappa: float
    bias: float
    judge_mean: float
    corrected_mean: float
    corrected_stderr: float
    corrected_ci: tuple[float, float]


def calibrate(judged: Mapping[str, float], labels: Mapping[str, float], *, threshold: float = 0.5) -> Calibration:
    """Holds a judge against people's labels.

    Args:
        judged: The judge's values by item, from 0 to 1.
        labels: People's values for some of the same items, from 0 to 1.
        threshold: From which value on an item counts as right, for accuracy and kappa.

    >>> round(calibrate({"a": 1.0, "b": 1.0, "c": 0.0}, {"a": 1.0, "b": 0.0}).corrected_mean, 2)
    0.17
    """
    shared = [item for item in labels if item in judged]
    if len(shared) < 2:
        raise MetricError(f"calibration needs at least two items with both a label and a verdict, got {len(shared)}")
    values = list(judged.values())
    pairs = [(judged[item], labels[item]) for item in shared]
    gaps = [value - label for value, label in pairs]
    bias, mean = statistics.fmean(gaps), statistics.fmean(values)
    stderr = math.sqrt(statistics.variance(values) / len(values) + statistics.variance(gaps) / len(gaps))
    corrected = mean - bias
    # The few labels, not the many verdicts, decide how well the spread is known.
    reach = student_quantile(0.975, len(gaps) - 1) * stderr
    votes = [(value >= threshold, label >= threshold) for value, label in pairs]
    return Calibration(
        labelled=len(shared),
        judged=len(values),
        accuracy=sum(a == b for a, b in votes) / len(votes),
        kappa=cohens_kappa([a for a, _ in votes], [b for _, b in votes]),
        bias=bias,
        judge_mean=mean,
        corrected_mean=corrected,
        corrected_stderr=stderr,
        # People's mean lies between 0 and 1, however little the labels say.
        corrected_ci=(max(0.0, corrected - reach), min(1.0, corrected + reach)),
    )
