"""How far judges agree with each other and with people, and what their mean is worth: pure functions over ratings."""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from themis.core.intervals import exact_interval, normal_quantile, proportion_interval, student_interval
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
        rate_ci=proportion_interval(inconsistent, len(swapped)),
        first_place=swapped.count(("A", "A")),
        second_place=swapped.count(("B", "B")),
    )


@dataclass(frozen=True)
class Calibration:
    """A judge held against people's labels.

    `corrected_mean` is the mean that people would have given all judged items, by prediction-powered inference: the judge
    says how many items there are of each verdict, the labels say what people make of items of that verdict. Its interval
    covers that mean however biased the judge is and however few labels there are; `labels_wanted` is about how many make
    it reach 0.05 to either side.
    """

    labelled: int
    judged: int
    accuracy: float
    kappa: float
    bias: float
    judge_mean: float
    corrected_mean: float
    corrected_ci: tuple[float, float]
    labels_wanted: int


def calibrate(judged: Mapping[str, float], labels: Mapping[str, float], *, threshold: float = 0.5) -> Calibration:
    """Holds a judge against people's labels.

    Args:
        judged: The judge's values by item, from 0 to 1.
        labels: People's values for some of the same items, taken at random, from 0 to 1.
        threshold: From which value on an item counts as right, for accuracy and kappa.

    Raises:
        MetricError: Fewer than two of the judged items have a label.

    >>> found = calibrate({"a": 1.0, "b": 1.0, "c": 0.0}, {"a": 1.0, "b": 0.0, "c": 0.0})
    >>> round(found.corrected_mean, 2), [round(end, 2) for end in found.corrected_ci]
    (0.33, [0.0, 0.86])
    """
    shared = [item for item in labels if item in judged]
    if len(shared) < 2:
        raise MetricError(
            f"calibration needs at least two items with both a label and a verdict, got {len(shared)}; 20 labels of items "
            "taken at random are a beginning, 200 tell a few points apart"
        )
    pairs = [(judged[item], labels[item]) for item in shared]
    votes = [(value >= threshold, label >= threshold) for value, label in pairs]
    corrected = prediction_powered_mean(list(judged.values()), pairs)
    return Calibration(
        labelled=len(shared),
        judged=len(judged),
        accuracy=sum(a == b for a, b in votes) / len(votes),
        kappa=cohens_kappa([a for a, _ in votes], [b for _, b in votes]),
        bias=statistics.fmean(value - label for value, label in pairs),
        judge_mean=statistics.fmean(judged.values()),
        corrected_mean=corrected.mean,
        corrected_ci=corrected.ci,
        labels_wanted=corrected.labels_wanted,
    )


@dataclass(frozen=True)
class PredictionPoweredMean:
    """What the mean label of all items would be, its 95 % interval, and about how many labels make that +-0.05."""

    mean: float
    ci: tuple[float, float]
    labels_wanted: int


# Verdicts of more than two values are put into groups of about so many labels, and into no more groups than this.
_LABELS_A_GROUP = 10
_MOST_GROUPS = 5
_WANTED_REACH = 0.05


def prediction_powered_mean(
    predictions: Sequence[float], labelled: Sequence[tuple[float, float]]
) -> PredictionPoweredMean:
    """The mean label of all items, from predictions of all and labels of some.

    Items are grouped by their prediction. The mean is that of the groups' mean labels, weighted by how many items each has;
    its interval puts together the exact intervals of the groups (the square root of the sum of squares of their distances)
    and what is not known of the weights; to that a group without labels adds all that it could be wrong by. So a group whose
    labels all agree is not taken as certain, and labelled items that are among the predicted ones are not counted twice.

    Args:
        predictions: Of every item, from 0 to 1, the labelled ones included.
        labelled: (prediction, label) of items that were taken at random, from 0 to 1.

    >>> found = prediction_powered_mean([1.0] * 90 + [0.0] * 10, [(1.0, 1.0)] * 18 + [(0.0, 0.0)] * 2)
    >>> found.mean, [round(end, 2) for end in found.ci]
    (0.9, [0.72, 1.0])
    """
    cuts = _cut_predictions(predictions, len(labelled))
    sizes = Counter(bisect.bisect_right(cuts, value) for value in predictions)
    labels: dict[int, list[float]] = {group: [] for group in sizes}
    for value, label in labelled:
        labels[bisect.bisect_right(cuts, value)].append(label)
    shares = {group: size / len(predictions) for group, size in sizes.items()}
    of_unlabelled = {group: [v for v in predictions if bisect.bisect_right(cuts, v) == group]
                     for group, known in labels.items() if not known}  # fmt: skip
    # Where there is no label the judge is taken at its word, and the interval of that group is everything.
    means = {group: statistics.fmean(known or of_unlabelled[group]) for group, known in labels.items()}
    mean = math.fsum(shares[group] * means[group] for group in means)
    below, above, spread, unknown = list[float](), list[float](), list[float](), [0.0, 0.0]
    for group, known in labels.items():
        spread.append(shares[group] * (means[group] - mean) ** 2)
        low, high = _mean_interval(known)
        reach = (shares[group] * (means[group] - min(low, means[group])),
                 shares[group] * (max(high, means[group]) - means[group]))  # fmt: skip
        if known:
            below.append(reach[0] ** 2)
            above.append(reach[1] ** 2)
        else:
            # What nobody has looked at is no chance that might cancel another: it counts in full.
            unknown = [unknown[0] + reach[0], unknown[1] + reach[1]]
    z = normal_quantile(0.975)
    of_shares = z * z * math.fsum(spread) / len(predictions)
    ci = (max(0.0, mean - unknown[0] - math.sqrt(math.fsum([*below, of_shares]))),
          min(1.0, mean + unknown[1] + math.sqrt(math.fsum([*above, of_shares]))))  # fmt: skip
    # The variance of a label within its group, never taken as none.
    rates = {group: (math.fsum(known) + 1) / (len(known) + 2) for group, known in labels.items()}
    within = math.fsum(shares[group] * rate * (1 - rate) for group, rate in rates.items())
    return PredictionPoweredMean(mean, ci, math.ceil(z * z * within / _WANTED_REACH**2))


def _cut_predictions(predictions: Sequence[float], labels: int) -> list[float]:
    """Where groups of predictions begin: each value of a yes-or-no judge, or equal parts of a grading one's."""
    values = sorted(set(predictions))
    if len(values) <= 2:
        return values[1:]
    groups = max(1, min(_MOST_GROUPS, labels // _LABELS_A_GROUP))
    ranked = sorted(predictions)
    starts = {ranked[len(ranked) * group // groups] for group in range(1, groups)}
    return sorted(starts - {values[0]})


def _mean_interval(labels: Sequence[float]) -> tuple[float, float]:
    """Exact for labels of 0 and 1. Grades vary less: with a 0 and a 1 added, Student's interval of them may be shorter."""
    low, high = exact_interval(math.fsum(labels), len(labels))
    if len(labels) < 2 or all(label in (0, 1) for label in labels):
        return low, high
    graded = student_interval([*labels, 0.0, 1.0])
    return graded if graded[1] - graded[0] < high - low else (low, high)
