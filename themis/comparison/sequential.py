"""A confidence interval that may be looked at after every item: stop a comparison as soon as it has an answer.

A gambler bets against every possible mean, on each new value, at stakes set by the earlier ones. Against the true mean
his wealth ever multiplies by 2/alpha with probability alpha/2 at most, however long he plays (Ville's inequality), so a
mean against which he has grown that rich is excluded. The stakes are those of Waudby-Smith and Ramdas (2024).

`StopWhenDecided` is the rule for `evaluate(stop_when=...)` that is made of it. It assumes that samples come in no particular
order: shuffle a dataset that is sorted by difficulty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from themis.comparison.judging import describe_differences, how_to_judge_alike, judging_differences
from themis.comparison.scores import (
    ScoredRun,
    StoreLocation,
    common_metrics,
    is_higher_better,
    open_scores,
    open_store,
    overlap_of_runs,
    refuse_no_mean,
)
from themis.core.entities import EvaluationRecord
from themis.core.intervals import Floats
from themis.exceptions import ConfigurationError, MetricError
from themis.storage import ExperimentStorage

Decision = Literal["undecided", "above", "below", "equivalent"]

_GRID = 500
# On a scale from 0 to 1 a stake below one cannot lose everything on a single value.
_LARGEST_STAKE = 0.75


@dataclass(frozen=True, kw_only=True)
class SequentialVerdict:
    """Where a confidence sequence stands: valid now even if it was looked at after each of the `count` values."""

    count: int
    mean: float
    ci: tuple[float, float]
    decision: Decision
    alpha: float


class ConfidenceSequence:
    """Interval for the mean of values between `low` and `high`, valid at all times together with probability 1 - alpha.

    `decision` is "above" or "below" once the interval excludes `null`, "equivalent" once it lies within `margin` of it;
    a decision does not change again. `horizon` is the number of values that there can be, if it is known: it makes the
    interval narrowest there and never makes it wrong. The defaults fit differences of two scores between 0 and 1.
    """

    def __init__(
        self,
        *,
        low: float = -1.0,
        high: float = 1.0,
        null: float = 0.0,
        margin: float | None = None,
        alpha: float = 0.05,
        horizon: int | None = None,
    ) -> None:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ConfigurationError(f"values need finite bounds with low < high, got {low} and {high}")
        if not low < null < high:
            raise ConfigurationError(f"null must lie between the bounds {low} and {high}, got {null}")
        if margin is not None and margin <= 0:
            raise ConfigurationError(f"an equivalence margin must be positive, got {margin}")
        if not 0 < alpha < 1:
            raise ConfigurationError(f"alpha lies between 0 and 1 (0.05 is usual), got {alpha}")
        if horizon is not None and horizon < 1:
            raise ConfigurationError(f"a horizon is a number of values, at least one, got {horizon}")
        self.alpha = alpha
        self.low, self.high, self.null, self.margin, self.horizon = low, high, null, margin, horizon
        self.count = 0
        self._total = 0.0
        self._scaled_total = 0.0
        self._squares = 0.25
        self._enough = math.log(2 / alpha)
        self.interval = (low, high)
        self.decision: Decision = "undecided"
        # The null is a point of the grid, so that excluding it never waits for the grid's fineness.
        self._grid: Floats = np.unique(np.append(np.linspace(0.0, 1.0, _GRID + 1), self._scaled(null)))
        self._log_wealth_above: Floats = np.zeros(self._grid.size)
        self._log_wealth_below: Floats = np.zeros(self._grid.size)

    @property
    def mean(self) -> float:
        """NaN before the first value."""
        return self._total / self.count if self.count else math.nan

    @property
    def verdict(self) -> SequentialVerdict:
        return SequentialVerdict(
            count=self.count, mean=self.mean, ci=self.interval, decision=self.decision, alpha=self.alpha
        )

    def update(self, value: float) -> Decision:
        """Takes one more value; stop when the answer is no longer "undecided"."""
        if not self.low <= value <= self.high:
            raise MetricError(f"value {value} is outside the bounds {self.low} to {self.high} of this sequence")
        scaled = self._scaled(value)
        gains = self._stake() * (scaled - self._grid)
        self._log_wealth_above += np.log1p(gains)
        self._log_wealth_below += np.log1p(-gains)
        self._remember(value, scaled)
        self._narrow()
        self._decide()
        return self.decision

    def extend(self, values: Iterable[float]) -> Decision:
        """Takes values until one decides or none is left; `count` says how many were taken."""
        for value in values:
            if self.update(value) != "undecided":
                break
        return self.decision

    def _stake(self) -> float:
        """Set by the values before this one only: that is what makes every moment a valid one to stop."""
        variance = self._squares / (self.count + 1)
        moment = self.count + 1
        spread_over = moment * math.log(1 + moment) if self.horizon is None else self.horizon
        return min(math.sqrt(2 * self._enough / (variance * spread_over)), _LARGEST_STAKE)

    def _remember(self, value: float, scaled: float) -> None:
        self.count += 1
        self._total += float(value)
        self._scaled_total += scaled
        # Mean and variance start from one imagined value in the middle, so that they exist from the beginning.
        self._squares += (scaled - (0.5 + self._scaled_total) / (self.count + 1)) ** 2

    def _narrow(self) -> None:
        """Intersects with the earlier intervals, all of which hold at once."""
        lowest = _crossing(self._grid, self._log_wealth_above, self._enough)
        highest = 1 - _crossing((1 - self._grid)[::-1], self._log_wealth_below[::-1], self._enough)
        width = self.high - self.low
        low, high = self.interval
        # An empty intersection means the mean has drifted; the later end stays at the earlier one.
        low = min(max(low, self.low + width * lowest), high)
        self.interval = (low, max(min(high, self.low + width * highest), low))

    def _decide(self) -> None:
        if self.decision != "undecided":
            return
        low, high = self.interval
        if low > self.null:
            self.decision = "above"
        elif high < self.null:
            self.decision = "below"
        elif self.margin is not None and self.null - self.margin < low and high < self.null + self.margin:
            self.decision = "equivalent"

    def _scaled(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)


def _crossing(grid: Floats, log_wealth: Floats, enough: float) -> float:
    """Where the wealth, which falls along the grid, stops being enough.

    A logarithm of wealth is concave, so the straight line between two points lies below it: the crossing of the line
    comes first, and errs on the side of the wider interval.
    """
    excluded = int(np.searchsorted(-log_wealth, -enough, side="right"))
    if excluded == 0:
        return 0.0
    before, after = float(log_wealth[excluded - 1]), float(log_wealth[excluded])
    step = float(grid[excluded] - grid[excluded - 1])
    return float(grid[excluded - 1]) + step * (before - enough) / (before - after)


# --- stopping a run ---------------------------------------------------------------------------------------------------


_DECISION_WORDS: dict[bool | None, dict[str, str]] = {
    True: {"above": "better than", "below": "worse than", "equivalent": "as good as"},
    False: {"above": "worse than", "below": "better than", "equivalent": "as good as"},
    None: {"above": "above", "below": "below", "equivalent": "as"},
}


class StopWhenDecided:
    """Compares every verdict with the baseline's on the same item; says why once better, worse or equal is sure.

    Args:
        baseline: The stored run to compare with.
        metric: The metric to decide by; its scores are between 0 and 1.
        storage_path: Where the store is.
        storage: Instead of it, a store that is open already, or a storage backend.
        alpha: Accepted rate of false alarms, however often is looked.
        margin: The difference that does not matter: with one, "equivalent" is a decision too.
        horizon: How many samples there can be, if that is known.
        across: Pair items by id, whatever their content, and go on where the runs are judged differently.

    Raises:
        StorageError: The store or the run is not there.
        MetricError: The run has no scores of the metric, or some outside 0 to 1; or, when the run begins, it shares no
            item with the baseline or is judged differently.

    >>> import themis
    >>> rows = [{"id": n, "question": f"{n} + 1", "answer": str(n + 1)} for n in range(200)]
    >>> common = {"prompt": "{question}", "storage": "runs", "progress": False}
    >>> report = themis.evaluate(rows, model="fake/noisy-0.9", run_id="baseline", **common)
    >>> rule = StopWhenDecided("baseline", "ExactMatch", storage_path="runs")
    >>> report = themis.evaluate(rows, model="fake/perfect", run_id="candidate", stop_when=rule, **common)
    >>> rule.sequence.decision
    'above'
    """

    def __init__(
        self,
        baseline: str,
        metric: str,
        *,
        storage_path: StoreLocation | None = None,
        storage: StoreLocation | None = None,
        alpha: float = 0.05,
        margin: float | None = None,
        horizon: int | None = None,
        across: bool = False,
    ) -> None:
        runs = open_scores(open_store(storage, storage_path), [baseline], across=across)
        self.baseline = baseline
        self.metric = common_metrics(runs, [metric])[0]
        refuse_no_mean(runs[0], self.metric, "stopping early")
        found = runs[0].read(self.metric)
        if outside := next((value for value in found.values if not 0 <= value <= 1), None):
            raise MetricError(f"stopping early needs scores from 0 to 1, {self.metric} of {baseline!r} has {outside:g}")
        # A difference above zero is good, bad, or neither.
        self._words = _DECISION_WORDS[is_higher_better(runs, self.metric)]
        self.sequence = ConfidenceSequence(alpha=alpha, margin=margin, horizon=horizon)
        self._run, self._found = runs[0], found
        # What is said of a run that was compared across other content.
        self._mark = ""
        self._scores = dict(zip(found.item_ids, map(float, found.values), strict=True))

    def begin(self, storage: ExperimentStorage, run_id: str) -> None:
        """Pairs the items of a run that begins with the baseline's, by what they hold.

        Args:
            storage: Where the run is kept.
            run_id: The run.

        Raises:
            MetricError: It shares no item with the baseline, or is judged differently.
        """
        reader, across = storage.reader(run_id), self._run.across
        config = {} if reader.evaluation is None else reader.evaluation_config(reader.evaluation)
        beginning = ScoredRun(run_id, reader, reader.evaluation or 0, [], config, across)
        overlap = overlap_of_runs(beginning, self._run)
        if across:
            self._mark = f", {overlap.count(beginning.items, self._run.items, (), ()).mark}"
        differences = judging_differences(beginning, self._run, self.metric)
        if differences and not across:
            raise MetricError(
                f"runs {run_id!r} and {self.baseline!r} are judged differently on {self.metric}: "
                f"{describe_differences(differences)}; {how_to_judge_alike(beginning, self._run)}"
            )
        by_key = dict(zip(self._found.keys, map(float, self._found.values), strict=True))
        mine = zip(beginning.items.item_ids, beginning.items.keys, strict=True)
        self._scores = {item_id: by_key[key] for item_id, key in mine if key in by_key}

    def __call__(self, record: EvaluationRecord) -> str | None:
        values = [score.value for score in record.scores if score.metric_name == self.metric]
        other = self._scores.get(record.sample_id or "")
        if not values or other is None:
            return None
        self.sequence.update(sum(values) / len(values) - other)
        if self.sequence.decision == "undecided":
            return None
        low, high = self.sequence.interval
        return (
            f"{self._words[self.sequence.decision]} {self.baseline} on {self.metric} after {self.sequence.count} samples: "
            f"difference {self.sequence.mean:+.4f} [{low:+.4f}, {high:+.4f}]{self._mark}"
        )
