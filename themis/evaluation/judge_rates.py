"""How often a judge is right about answers whose truth is known, and what a score is worth that it gave.

Pure functions over judgments, wherever those were made: `experiment.judge_audit` asks for them, and reads them from files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from themis.core.intervals import exact_interval
from themis.exceptions import MetricError

__all__ = [
    "CorrectedDifference",
    "CorrectedScore",
    "JudgeRates",
    "Judgment",
    "Rate",
    "correct_score",
    "corrected_difference",
    "judge_rates",
]


@dataclass(frozen=True)
class Judgment:
    """A judge's verdict on an answer of which the truth is known.

    Args:
        is_right: Whether the answer is right.
        accepted: Whether the judge took it as right; None where it gave no verdict.
        kind: What sort of answer it is, such as "vague"; empty where nobody says.
        item_id: Of which item; answers to one item are not independent.

    >>> Judgment(is_right=False, accepted=True, kind="vague").accepted
    True
    """

    is_right: bool
    accepted: bool | None
    kind: str = ""
    item_id: str = ""


@dataclass(frozen=True)
class Rate:
    """A share with its exact 95 % interval.

    Args:
        count: In how many cases it was so.
        n: Of how many.
        effective_n: How many independent cases they are worth, where several belong to one item.
        value: The share.
        ci: 95 % interval (Clopper and Pearson).
    """

    count: int
    n: int
    effective_n: float
    value: float
    ci: tuple[float, float]

    @classmethod
    def of(cls, outcomes: Sequence[bool], items: Sequence[str] | None = None) -> Rate:
        """The share of what is true.

        >>> Rate.of([True, True, True, False]).value
        0.75
        """
        n, count = len(outcomes), sum(outcomes)
        if not n:
            return cls(0, 0, 0.0, math.nan, (0.0, 1.0))
        effective = _effective_size(outcomes, items) if items is not None else float(n)
        return cls(count, n, effective, count / n, _exact(count / n, effective))


def _exact(share: float, n: float) -> tuple[float, float]:
    whole = max(1, math.floor(n))
    return exact_interval(share * whole, whole)


def _effective_size(outcomes: Sequence[bool], items: Sequence[str]) -> float:
    """So many independent outcomes have the variance that these have, with the outcomes of one item taken together."""
    n, mean = len(outcomes), sum(outcomes) / len(outcomes)
    sums: dict[str, float] = {}
    sizes: dict[str, int] = {}
    for place, (outcome, item) in enumerate(zip(outcomes, items, strict=True)):
        key = item or f"\0{place}"
        sums[key] = sums.get(key, 0.0) + outcome - mean
        sizes[key] = sizes.get(key, 0) + 1
    groups = len(sums)
    if groups == n:
        return float(n)
    alone = mean * (1 - mean)
    if alone == 0 or groups < 2:
        # Nothing varies, so nothing shows how alike the answers to one item are: each item counts once.
        return float(groups)
    together = math.fsum(total * total for total in sums.values()) * groups / (groups - 1) / n
    return min(float(n), max(n * alone / together, 1.0)) if together > 0 else float(n)


@dataclass(frozen=True)
class JudgeRates:
    """How a judge does on answers whose truth is known.

    Args:
        sensitivity: Share of right answers that it accepts.
        specificity: Share of wrong answers that it refuses.
        by_kind: For each kind of answer, the share that it accepts.
        right_kinds: Which of the kinds are right.
        failed: Answers on which it gave no verdict; in no share.

    >>> judged = [Judgment(True, True)] * 9 + [Judgment(True, False)] + [Judgment(False, False)] * 10
    >>> round(judge_rates(judged).informedness, 2)
    0.9
    """

    sensitivity: Rate
    specificity: Rate
    by_kind: Mapping[str, Rate]
    right_kinds: tuple[str, ...] = ()
    failed: int = 0

    @property
    def wrong_kinds(self) -> list[str]:
        """The kinds of wrong answers."""
        return [kind for kind in self.by_kind if kind not in self.right_kinds]

    @property
    def informedness(self) -> float:
        """Sensitivity + specificity - 1: 1 for a judge that is always right, 0 for one that says nothing."""
        return self.sensitivity.value + self.specificity.value - 1


def judge_rates(judgments: Iterable[Judgment]) -> JudgeRates:
    """Sensitivity and specificity with exact intervals, and what is accepted of each kind.

    Args:
        judgments: Of at least one right and one wrong answer.

    Raises:
        MetricError: Right answers or wrong ones are missing.

    >>> judged = [Judgment(True, True)] * 19 + [Judgment(True, False)]
    >>> judged += [Judgment(False, True)] * 6 + [Judgment(False, False)] * 4
    >>> rates = judge_rates(judged)
    >>> rates.sensitivity.value, rates.specificity.value, [round(end, 2) for end in rates.specificity.ci]
    (0.95, 0.4, [0.12, 0.74])
    """
    given = list(judgments)
    read = [one for one in given if one.accepted is not None]
    right, wrong = ([one for one in read if one.is_right is truth] for truth in (True, False))
    for what, found in (("right", right), ("wrong", wrong)):
        if not found:
            raise MetricError(
                f"none of {len(given)} judgments is of a {what} answer that has a verdict; an audit needs right and wrong ones"
            )
    kinds = dict.fromkeys(one.kind for one in read if one.kind)
    return JudgeRates(
        sensitivity=Rate.of([bool(one.accepted) for one in right], [one.item_id for one in right]),
        specificity=Rate.of([not one.accepted for one in wrong], [one.item_id for one in wrong]),
        by_kind={kind: _accepted([one for one in read if one.kind == kind]) for kind in kinds},
        right_kinds=tuple(kind for kind in kinds if all(one.is_right for one in read if one.kind == kind)),
        failed=len(given) - len(read),
    )


def _accepted(judgments: Sequence[Judgment]) -> Rate:
    return Rate.of([bool(one.accepted) for one in judgments], [one.item_id for one in judgments])


@dataclass(frozen=True)
class CorrectedScore:
    """The share of answers that are right, from the share that a judge accepted.

    Args:
        n: Answers that were judged.
        accepted: Share of them that the judge accepted.
        score: That share corrected for the judge's errors (Rogan and Gladen), between 0 and 1; NaN where the judge says nothing.
        ci: 95 % interval, which holds what is not known of the answers, the sensitivity and the specificity.
        note: What is to be known before it is used; empty if nothing.
    """

    n: int
    accepted: float
    score: float
    ci: tuple[float, float]
    note: str = ""


# Of scores from 0 to 1 that are tried.
_GRID = 2_000
TOO_FEW = "too few answers were audited to be sure that the judge tells right from wrong"
SAYS_NOTHING = "the judge accepts wrong answers as often as right ones: its scores say nothing about the answers"


def correct_score(
    accepted: int, n: int, sensitivity: Rate, specificity: Rate, *, effective_n: float | None = None
) -> CorrectedScore:
    """Corrects a judge's score for its sensitivity and specificity (Rogan and Gladen).

    A judge accepts p = score x sensitivity + (1 - score) x (1 - specificity) of the answers, so that the score is
    (p + specificity - 1) / (sensitivity + specificity - 1). The interval holds every score at which both sides of the first
    equation agree within the exact intervals of its three shares, put together as the root of the sum of squares. A judge
    that cannot tell right from wrong gives an interval from 0 to 1.

    Args:
        accepted: How many answers the judge accepted.
        n: How many it judged.
        sensitivity: Of the judge, from an audit.
        specificity: Likewise. It holds for wrong answers of the audit's kinds.
        effective_n: How many independent answers n are worth; n by default.

    Raises:
        MetricError: Nothing was judged.

    >>> sensitivity, specificity = Rate.of([True] * 95 + [False] * 5), Rate.of([True] * 40 + [False] * 60)
    >>> found = correct_score(390, 500, sensitivity, specificity)
    >>> round(found.accepted, 2), round(found.score, 3), [round(end, 2) for end in found.ci]
    (0.78, 0.514, [0.29, 0.7])
    """
    import numpy as np

    if n < 1:
        raise MetricError("no answer was judged, so there is no score to correct")
    share = accepted / n
    low, high = _exact(share, n if effective_n is None else effective_n)
    right, refused = sensitivity.value, specificity.value
    scores = np.linspace(0.0, 1.0, _GRID + 1)
    gap = share - scores * right - (1 - scores) * (1 - refused)
    below = gap - np.sqrt(
        (share - low) ** 2
        + (scores * (sensitivity.ci[1] - right)) ** 2
        + ((1 - scores) * (refused - specificity.ci[0])) ** 2
    )
    above = gap + np.sqrt(
        (high - share) ** 2
        + (scores * (right - sensitivity.ci[0])) ** 2
        + ((1 - scores) * (specificity.ci[1] - refused)) ** 2
    )
    possible = scores[(below <= 0) & (above >= 0)]
    informedness = right + refused - 1
    if informedness <= 0:
        return CorrectedScore(n, share, math.nan, (0.0, 1.0), SAYS_NOTHING)
    score = min(1.0, max(0.0, (share + refused - 1) / informedness))
    if not possible.size:
        return CorrectedScore(n, share, score, (0.0, 1.0), _why_impossible(share, right, refused))
    # Never shorter than what is not known of the accepted share alone.
    ci = (
        max(0.0, min(float(possible[0]), score - share + low)),
        min(1.0, max(float(possible[-1]), score + high - share)),
    )
    tells = sensitivity.ci[0] + specificity.ci[0] > 1
    return CorrectedScore(n, share, score, ci, "" if tells else TOO_FEW)


def _why_impossible(share: float, sensitivity: float, specificity: float) -> str:
    return (
        f"the judge accepted {share:.1%} of the answers, and no share of right ones among them fits what it accepted in the "
        f"audit ({sensitivity:.1%} of right and {1 - specificity:.1%} of wrong answers): the answers are of other kinds"
    )


@dataclass(frozen=True)
class CorrectedDifference:
    """A difference between two runs by one judge, corrected for that judge's errors.

    Args:
        difference: As the judge sees it, A - B.
        corrected: Divided by sensitivity + specificity - 1; NaN where the judge says nothing.
        ci: 95 % interval of the corrected difference.
        survives: Whether the interval lies on one side of zero: the difference is there if both runs' wrong answers are of the
            audit's mixture of kinds.
        survives_any_kind: Whether it is there even if one run's wrong answers were all of the kind that is accepted most often
            and the other's all of the kind that is accepted least; None where the audit has no kinds.
    """

    difference: float
    corrected: float
    ci: tuple[float, float]
    survives: bool
    survives_any_kind: bool | None


def corrected_difference(
    mean_a: float, mean_b: float, interval: tuple[float, float], rates: JudgeRates
) -> CorrectedDifference:
    """Corrects the difference of two runs that one judge has judged.

    Args:
        mean_a: Share of run A's answers that the judge accepted.
        mean_b: Of run B's.
        interval: 95 % interval of mean_a - mean_b, as the comparison found it.
        rates: The judge's, from an audit.

    >>> judged = [Judgment(True, True)] * 95 + [Judgment(True, False)] * 5
    >>> judged += [Judgment(False, True)] * 60 + [Judgment(False, False)] * 40
    >>> found = corrected_difference(0.80, 0.72, (0.03, 0.13), judge_rates(judged))
    >>> round(found.corrected, 2), [round(end, 2) for end in found.ci], found.survives
    (0.23, [0.08, 0.43], True)
    """
    difference, slope = mean_a - mean_b, rates.informedness
    # Distances of the two shares' intervals, put together as the root of the sum of squares.
    below = math.hypot(
        rates.sensitivity.value - rates.sensitivity.ci[0], rates.specificity.value - rates.specificity.ci[0]
    )
    above = math.hypot(
        rates.sensitivity.ci[1] - rates.sensitivity.value, rates.specificity.ci[1] - rates.specificity.value
    )
    if slope - below <= 0:
        corrected = math.nan if slope <= 0 else max(-1.0, min(1.0, difference / slope))
        return CorrectedDifference(difference, corrected, (-1.0, 1.0), False, False if rates.wrong_kinds else None)
    low, high = _ratio_interval(difference, interval, slope, (slope - below, slope + above))
    survives = low > 0 or high < 0
    return CorrectedDifference(
        difference=difference,
        corrected=max(-1.0, min(1.0, difference / slope)),
        ci=(max(-1.0, low), min(1.0, high)),
        survives=survives,
        survives_any_kind=_survives_any_kind(mean_a, mean_b, interval, rates) if rates.wrong_kinds else None,
    )


def _ratio_interval(
    top: float, top_ci: tuple[float, float], bottom: float, bottom_ci: tuple[float, float]
) -> tuple[float, float]:
    """The interval of a ratio from those of its parts (Donner and Zou), the lower part being above zero."""
    (l1, u1), (l2, u2) = top_ci, bottom_ci

    def end(limit: float, other: float, sign: float) -> float:
        across = top * bottom
        inside = across * across - limit * other * (2 * top - limit) * (2 * bottom - other)
        return (across + sign * math.sqrt(max(0.0, inside))) / (other * (2 * bottom - other))

    # A bound of the lower part beyond twice its value would turn the ratio's sign.
    return end(l1, min(u2, 1.999 * bottom), -1.0), end(u1, l2, 1.0)


def _survives_any_kind(mean_a: float, mean_b: float, interval: tuple[float, float], rates: JudgeRates) -> bool:
    """Whether A is still better if its wrong answers were those that pass most easily, and B's those that pass least."""
    a_is_better = mean_a > mean_b
    better, worse = (mean_a, mean_b) if a_is_better else (mean_b, mean_a)
    least = interval[0] if a_is_better else -interval[1]
    passing = [rates.by_kind[kind].value for kind in rates.wrong_kinds]
    lenient, strict, right = max(passing), min(passing), rates.sensitivity.value
    if right <= lenient or least <= 0:
        return False
    # The chance in the difference stands on the side of the better run.
    better -= better - worse - least
    return (better - lenient) / (right - lenient) > (worse - strict) / (right - strict)
