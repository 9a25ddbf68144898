"""One metric over a run, and its mean held against a limit: what tests assert, and the sentence where it does not hold."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

from themis.core.intervals import Labels, Scores, summarise

if TYPE_CHECKING:
    from themis.core.entities import MetricScore

__all__ = ["LimitCheck", "Measurement", "MetricAggregate", "format_measured"]

# Beyond these, digits behind the point say nothing or everything.
_LEAST_FIXED = 1e-3
_MOST_FIXED = 1e5

_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, repr=False)
class LimitCheck:
    """Whether a limit is kept: true or false wherever a truth value is asked for, with the sentence that says why.

    Args:
        holds: Whether it is kept.
        sentence: Mean, interval, counts, and how the limit lies to them.

    >>> LimitCheck(False, "ExactMatch is not surely at least 0.8: 0.8500 [0.7812, 0.9034] of 200 goes down to 0.7812")
    ExactMatch is not surely at least 0.8: 0.8500 [0.7812, 0.9034] of 200 goes down to 0.7812
    """

    holds: bool
    sentence: str

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return self.sentence


class Measurement:
    """A mean with its interval, which can be compared with a number.

    `>=`, `>`, `<=`, `<`, `==` and `!=` compare the mean alone; `surely_...` asks it of the whole 95 % interval,
    `possibly_...` of any part of it. Where nothing was scored the mean is NaN, and nothing holds.

    >>> from themis.core.entities import MetricAggregate
    >>> exact = MetricAggregate("ExactMatch", count=200, mean=0.85, ci=(0.78, 0.9))
    >>> exact >= 0.8, bool(exact.possibly_at_least(0.88))
    (True, True)
    >>> exact.surely_at_least(0.75)
    ExactMatch is surely at least 0.75: 0.8500 [0.7800, 0.9000] of 200 is above 0.75, and so is the whole interval
    """

    name: str
    count: int
    mean: float
    failed: int
    ci: tuple[float, float] | None

    def __ge__(self, limit: float) -> bool:
        return self._compare(">=", limit)

    def __gt__(self, limit: float) -> bool:
        return self._compare(">", limit)

    def __le__(self, limit: float) -> bool:
        return self._compare("<=", limit)

    def __lt__(self, limit: float) -> bool:
        return self._compare("<", limit)

    def __eq__(self, other: object) -> bool:
        if type(other) is type(self):
            return vars(self) == vars(other)
        return self._compare("==", other) if isinstance(other, Real) else NotImplemented

    def __ne__(self, other: object) -> bool:
        if type(other) is type(self):
            return vars(self) != vars(other)
        return self._compare("!=", other) if isinstance(other, Real) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _compare(self, relation: str, limit: object) -> bool:
        if isinstance(limit, Measurement):
            raise TypeError(
                "two measured means differ by chance too: themis.comparison.compare_runs pairs the samples of two runs and "
                "says whether they differ; for the means alone compare their .mean"
            )
        if not isinstance(limit, Real):
            raise TypeError(f"{self.name} is compared with a number, such as metric >= 0.8, got {type(limit).__name__}")
        return not math.isnan(self.mean) and _HOLDS[relation](self.mean, float(limit))

    def surely_at_least(self, limit: float) -> LimitCheck:
        """Whether the whole 95 % interval lies at or above a limit. False without an interval, or with nothing scored.

        Args:
            limit: The least that is good enough.
        """
        return self._check(self.ci is not None and self.ci[0] >= limit, "surely at least", ">=", limit)

    def surely_at_most(self, limit: float) -> LimitCheck:
        """Whether the whole 95 % interval lies at or below a limit. False without an interval, or with nothing scored.

        Args:
            limit: The most that is good enough.
        """
        return self._check(self.ci is not None and self.ci[1] <= limit, "surely at most", "<=", limit)

    def possibly_at_least(self, limit: float) -> LimitCheck:
        """Whether the mean, or any part of its 95 % interval, lies at or above a limit. False with nothing scored.

        Args:
            limit: The least that is good enough; what falls short of it only by chance is let through.
        """
        highest = self.mean if self.ci is None else max(self.mean, self.ci[1])
        return self._check(highest >= limit, "possibly at least", ">=", limit)

    def possibly_at_most(self, limit: float) -> LimitCheck:
        """Whether the mean, or any part of its 95 % interval, lies at or below a limit. False with nothing scored.

        Args:
            limit: The most that is good enough; what exceeds it only by chance is let through.
        """
        lowest = self.mean if self.ci is None else min(self.mean, self.ci[0])
        return self._check(lowest <= limit, "possibly at most", "<=", limit)

    def _check(self, holds: bool, words: str, relation: str, limit: float) -> LimitCheck:
        is_or_not = "is" if holds else "is not"
        return LimitCheck(holds, f"{self.name} {is_or_not} {words} {limit:g}: {self.explain_limit(relation, limit)}")

    def explain_limit(self, relation: str, limit: float) -> str:
        """Where a limit lies to the mean and its interval, in a sentence.

        Args:
            relation: What is asked of the mean, such as `>=`.
            limit: The limit.
        """
        if math.isnan(self.mean):
            return f"{self.describe()}, so that no limit is kept"
        if self.mean == limit:
            where = f"is {limit:g} itself"
        else:
            where = f"is {'below' if self.mean < limit else 'above'} {limit:g}"
        mean, shown = format_measured(self.mean), self.describe()
        if mean == format_measured(limit) and self.mean != limit:
            shown = shown.replace(mean, repr(float(self.mean)), 1)
        return f"{shown} {where}{self._say_how_sure(relation, limit)}"

    def _say_how_sure(self, relation: str, limit: float) -> str:
        holds = _HOLDS[relation](self.mean, limit)
        if self.ci is None:
            return "; one sample has no interval" if self.count == 1 else "; there is no interval"
        low, high = self.ci
        if low <= limit <= high and low < high:
            joint = "and" if self.mean == limit else "but"
            return f", {joint} {limit:g} lies within the interval: too few samples to {'be sure' if holds else 'tell'}"
        return ", and so is the whole interval"

    def describe(self) -> str:
        """The mean with its interval and how many samples it is of, as every line for people tells it."""
        failed = f"{self.failed:,} failed" if self.failed else ""
        if math.isnan(self.mean):
            return f"nothing was scored{f' ({failed})' if failed else ''}"
        interval = "" if self.ci is None else f" [{format_measured(self.ci[0])}, {format_measured(self.ci[1])}]"
        return f"{format_measured(self.mean)}{interval} of {self.count:,}{f' ({failed})' if failed else ''}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self.describe()})"


def format_measured(value: float) -> str:
    """A number with four digits behind the point, or four digits in all where it is very small or large.

    Args:
        value: Any number.

    >>> format_measured(0.78), format_measured(0.00001234), format_measured(2_500_000)
    ('0.7800', '1.234e-05', '2.5e+06')
    """
    size = abs(value)
    return f"{value:.4f}" if size == 0 or _LEAST_FIXED <= size < _MOST_FIXED else f"{value:.4g}"


@dataclass(eq=False, repr=False)
class MetricAggregate(Measurement):
    """One metric over a run. With nothing scored the mean is NaN, and no limit holds.

    Args:
        name: The metric's name.
        count: Samples that have a score.
        mean: Over those. Where every attempt keeps its score, a sample counts with the mean of its own, so that one with
            fewer answers does not weigh less; of a metric with an aggregation (corpus
            BLEU, macro-F1) the value that all samples have together.
        per_sample: Their scores, as many as the report keeps.
        per_sample_complete: Whether that is all of them.
        truncated_count: How many are not kept.
        failed: Samples without a score, counted beside the mean and never in it.
        unparsed: Those among the scored whose answer no extractor could read, in none of the attempts.
        partial: Those among the scored on which some judge of a panel gave no verdict.
        stderr: Standard error of the mean.
        ci: 95 % interval, inside the metric's `score_range`; None for fewer than two samples, and for equal scores that
            nothing bounds.
        ci_method: How it was computed (`core.intervals.Summary`): "mid-p" for scores that are all 0 or 1, "beta" for
            others in a `score_range`, "hall" for those without one, "clustered" where a cluster field was given,
            "jackknife" for an aggregation.
        attempts: Answers that were asked for, over all samples.
        failed_attempts: Those of them that no score holds: the call failed, or the metric did on one of several answers.
        successes: The sum of the samples' scores, where they lie from 0 to 1 and more is better: of scores that are 0 or 1,
            how many samples passed. None of any other measure.
        higher_is_better: What the metric says of its scores: False of a time or a distance, None of what is neither good nor
            bad. No surface calls such scores passed.
        details: What explains an aggregation: the confusion matrix, the bins of a reliability diagram.

    >>> from themis.core.entities import MetricScore
    >>> exact = MetricAggregate.from_scores("ExactMatch", [MetricScore("ExactMatch", value) for value in (1, 1, 0, 1)])
    >>> exact.mean, exact.count, exact.ci_method
    (0.75, 4, 'mid-p')
    >>> exact
    MetricAggregate(ExactMatch: 0.7500 [0.2423, 0.9875] of 4)
    >>> exact >= 0.7, bool(exact.surely_at_least(0.7))
    (True, False)
    """

    name: str
    count: int
    mean: float
    per_sample: Sequence[MetricScore] = ()
    per_sample_complete: bool = True
    truncated_count: int = 0
    failed: int = 0
    unparsed: int = 0
    partial: int = 0
    stderr: float | None = None
    ci: tuple[float, float] | None = None
    ci_method: str | None = None
    attempts: int = 0
    failed_attempts: int = 0
    successes: float | None = None
    higher_is_better: bool | None = True
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_values(
        cls,
        name: str,
        values: Scores,
        *,
        clusters: Labels | None = None,
        score_range: tuple[float | None, float | None] | None = None,
    ) -> MetricAggregate:
        """The mean of one number a sample, with its standard error and interval.

        Args:
            name: The metric's name.
            values: One a sample.
            clusters: The group of each sample, where samples are not independent.
            score_range: The least and the most that a score can be, which the interval does not leave.
        """
        summary = summarise(values, clusters=clusters, score_range=score_range)
        return cls(
            name=name,
            count=summary.count,
            mean=summary.mean,
            stderr=summary.stderr,
            ci=summary.ci,
            ci_method=summary.method,
        )

    @classmethod
    def from_scores(
        cls,
        name: str,
        scores: Sequence[MetricScore],
        *,
        score_range: tuple[float | None, float | None] | None = None,
    ) -> MetricAggregate:
        """The aggregate of scores that are in memory.

        Args:
            name: The metric's name.
            scores: One a sample.
            score_range: The least and the most that a score can be, which the interval does not leave.
        """
        found = cls.from_values(name, [score.value for score in scores], score_range=score_range)
        found.per_sample = list(scores)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything but the samples' scores and the details, as every file, list and page tells it; a mean of nothing is None.

        >>> MetricAggregate("ExactMatch", count=0, mean=math.nan, failed=3).to_dict()["mean"] is None
        True
        """
        return {
            "mean": None if math.isnan(self.mean) else self.mean,
            "count": self.count,
            "failed": self.failed,
            "unparsed": self.unparsed,
            "partial": self.partial,
            "stderr": self.stderr,
            "ci": list(self.ci) if self.ci else None,
            "ci_method": self.ci_method,
            "attempts": self.attempts,
            "failed_attempts": self.failed_attempts,
        }
