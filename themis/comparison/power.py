"""How many items a comparison needs, or which difference a given number of items can show.

Two designs answer the same three questions: `PairedMeans` for graded scores (Student's test), `PairedProportions` for
scores of 0 or 1 (McNemar's exact test). All powers are two-sided. `plan_comparison` answers them from stored runs: a pilot of
two runs tells how much their differences vary; with one run alone that is guessed from its own spread and an assumed
correlation, and the plan says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from themis.comparison.judging import describe_differences, how_to_judge_alike, judging_differences
from themis.comparison.scores import (
    RunScores,
    ScoredRun,
    StoreLocation,
    align,
    common_metrics,
    open_scores,
    open_store,
    overlap_of_runs,
    refuse_no_mean,
)
from themis.comparison.statistics import pair, stderr_of_mean
from themis.core.intervals import Floats, Labels, Scores, finite_scores, normal_quantile, student_quantile
from themis.exceptions import ConfigurationError, MetricError

_MOST_ITEMS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Plan:
    """With `n` items, a true `difference` is found significant at `alpha` with probability `power`."""

    n: int
    difference: float
    power: float
    alpha: float


@dataclass(frozen=True, kw_only=True)
class _Design:
    """What two kinds of scores have in common; a difference is one of means, or of shares of right answers."""

    alpha: float = 0.05

    def power(self, *, n: int, difference: float) -> Plan:
        """The probability that `n` items show this difference."""
        return Plan(n=n, difference=difference, power=self._power(n, difference), alpha=self.alpha)

    def required_n(self, *, difference: float, power: float = 0.8) -> Plan:
        """The fewest items that show this difference with this probability."""
        n = _fewest(lambda n: self._power(n, difference), difference, power, self.alpha)
        return self.power(n=n, difference=difference)

    def _power(self, n: int, difference: float) -> float:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PairedMeans(_Design):
    """A paired t-test of differences with standard deviation `sd`."""

    sd: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.sd) and self.sd > 0):
            raise MetricError(f"the standard deviation of the differences must be a positive number, got {self.sd}")
        _check_share("alpha", self.alpha)

    @classmethod
    def from_pilot(cls, a: Scores, b: Scores, *, alpha: float = 0.05) -> PairedMeans:
        """Takes the spread of the differences from two runs that were already made."""
        pairs = pair(a, b)
        if pairs.constant:
            raise MetricError(f"the {pairs.n} differences of the pilot do not vary, so they cannot plan a comparison")
        return cls(sd=float(pairs.differences.std(ddof=1)), alpha=alpha)

    @classmethod
    def from_variances(
        cls,
        *,
        between_a: float,
        between_b: float,
        correlation: float,
        within_a: float = 0.0,
        within_b: float = 0.0,
        attempts_a: int = 1,
        attempts_b: int = 1,
        alpha: float = 0.05,
    ) -> PairedMeans:
        """From the variance of the items' true scores, their correlation, and the variance of repeated attempts at one.

        Attempts at an item are averaged, so more of them shrink only the part within items.
        """
        if min(between_a, between_b, within_a, within_b) < 0 or not -1 <= correlation <= 1:
            raise ConfigurationError(
                f"variances cannot be negative and a correlation lies between -1 and 1, got between "
                f"{between_a}, {between_b}, within {within_a}, {within_b}, correlation {correlation}"
            )
        if min(attempts_a, attempts_b) < 1:
            raise ConfigurationError(f"each run makes at least one attempt an item, got {attempts_a} and {attempts_b}")
        between = between_a + between_b - 2 * correlation * math.sqrt(between_a * between_b)
        return cls(sd=math.sqrt(between + within_a / attempts_a + within_b / attempts_b), alpha=alpha)

    def detectable(self, *, n: int, power: float = 0.8) -> Plan:
        """The smallest difference that `n` items show with this probability."""
        _check_target(power, self.alpha)
        most = self.sd
        while self._power(n, most) < power:
            most *= 2
        return self.power(n=n, difference=_smallest(lambda difference: self._power(n, difference), most, power))

    def _power(self, n: int, difference: float) -> float:
        _check_n(n)
        critical = student_quantile(1 - self.alpha / 2, n - 1)
        shift = abs(difference) / self.sd * math.sqrt(n)
        right_sign = 1 - _noncentral_t(critical, n - 1, shift)
        # The other tail, written as an upper one of the opposite shift, which keeps more digits.
        wrong_sign = 1 - _noncentral_t(critical, n - 1, -shift)
        return min(1.0, right_sign + wrong_sign)


@dataclass(frozen=True, kw_only=True)
class PairedProportions(_Design):
    """McNemar's exact test when a share `discordant` of the items is answered rightly by one run only."""

    discordant: float

    def __post_init__(self) -> None:
        if not 0 < self.discordant <= 1:
            raise MetricError(f"the share of discordant items lies above 0 and up to 1, got {self.discordant}")
        _check_share("alpha", self.alpha)

    @classmethod
    def from_pilot(cls, a: Scores, b: Scores, *, alpha: float = 0.05) -> PairedProportions:
        """Takes the share of discordant items from two runs that were already made."""
        pairs = pair(a, b)
        if not pairs.binary:
            raise MetricError("a plan for proportions needs scores that are 0 or 1; use PairedMeans for graded scores")
        share = float(np.count_nonzero(pairs.differences)) / pairs.n
        if share == 0:
            raise MetricError(
                f"the two runs of the pilot agree on all {pairs.n} items, so they cannot plan a comparison"
            )
        return cls(discordant=share, alpha=alpha)

    def detectable(self, *, n: int, power: float = 0.8) -> Plan:
        """The smallest difference that `n` items show with this probability; refused if even the largest is not shown."""
        _check_target(power, self.alpha)
        largest = self._power(n, self.discordant)
        if largest < power:
            raise MetricError(
                f"{n} items of which {self.discordant:.1%} are discordant show even the largest possible difference "
                f"with a power of {largest:.2f} only, below {power}: use more items"
            )
        outcomes = self._outcomes(n)
        difference = _smallest(lambda difference: self._power_of(outcomes, difference), self.discordant, power)
        return self.power(n=n, difference=difference)

    def _power(self, n: int, difference: float) -> float:
        _check_n(n)
        if abs(difference) > self.discordant:
            raise MetricError(
                f"a difference of {difference:g} is impossible when {self.discordant:g} of the items are discordant"
            )
        return self._power_of(self._outcomes(n), difference)

    def _outcomes(self, n: int) -> _Outcomes:
        """How many items may be discordant, within nine standard deviations: beyond lies less than 1e-18."""
        from scipy.special import bdtr

        spread = 9 * math.sqrt(n * self.discordant * (1 - self.discordant)) + 9
        first = max(0, math.floor(n * self.discordant - spread))
        counts = np.arange(first, min(n, math.ceil(n * self.discordant + spread)) + 1)
        before = float(bdtr(first - 1.0, n, self.discordant)) if first else 0.0
        probabilities = np.diff(bdtr(counts, n, self.discordant), prepend=before)
        return _Outcomes(counts=counts, probabilities=probabilities, bounds=_rejection_bounds(counts, self.alpha))

    def _power_of(self, outcomes: _Outcomes, difference: float) -> float:
        from scipy.special import bdtr, bdtrc

        share_a = (1 + difference / self.discordant) / 2
        counts, bounds, possible = outcomes.counts, outcomes.bounds, outcomes.bounds >= 0
        few = np.where(possible, bdtr(np.maximum(bounds, 0), counts, share_a), 0.0)
        many = np.where(possible, bdtrc(np.maximum(counts - bounds - 1, 0), counts, share_a), 0.0)
        return min(1.0, float((outcomes.probabilities * (few + many)).sum()))


@dataclass(frozen=True)
class _Outcomes:
    """Numbers of discordant items, their probabilities, and the largest smaller count that is significant for each."""

    counts: npt.NDArray[np.int64]
    probabilities: Floats
    bounds: Floats


def _noncentral_t(point: float, degrees_of_freedom: int, shift: float) -> float:
    """Probability below a point."""
    from scipy.special import nctdtr

    probability = float(nctdtr(degrees_of_freedom, shift, point))
    # scipy gives up only where shift and point are so far apart that 0 or 1 is right to all digits.
    return (1.0 if shift < point else 0.0) if math.isnan(probability) else probability


def _rejection_bounds(counts: npt.NDArray[np.int64], alpha: float) -> Floats:
    """For each number of discordant items, the largest smaller count that is still significant; -1 if none is."""
    from scipy.special import bdtr

    # The normal approximation is off by one or two; step until the exact tail agrees.
    bounds = np.maximum(np.floor(counts / 2 + normal_quantile(alpha / 2) * np.sqrt(counts) / 2), -1.0)
    while (too_many := (bounds >= 0) & (2 * bdtr(np.maximum(bounds, 0), counts, 0.5) > alpha)).any():
        bounds[too_many] -= 1
    while (too_few := (bounds + 1 < counts / 2) & (2 * bdtr(bounds + 1, counts, 0.5) <= alpha)).any():
        bounds[too_few] += 1
    return bounds


def _fewest(power_of: Callable[[int], float], difference: float, power: float, alpha: float) -> int:
    """The smallest n of this power, by doubling and halving."""
    _check_target(power, alpha)
    if difference == 0:
        raise MetricError("no number of items shows a difference of 0; name the smallest difference that matters")
    high = 2
    while power_of(high) < power:
        if high > _MOST_ITEMS:
            raise MetricError(f"a difference of {difference:g} needs more than {_MOST_ITEMS:,} items")
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if power_of(middle) < power else (low, middle)
    return high


def _smallest(power_of: Callable[[float], float], most: float, power: float) -> float:
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if power_of(middle) < power else (low, middle)
    return high


def _check_n(n: int) -> None:
    if n < 2:
        raise MetricError(f"a paired comparison needs at least two items, got {n}")


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ConfigurationError(f"{name} lies between 0 and 1, got {value}")


def _check_target(power: float, alpha: float) -> None:
    _check_share("power", power)
    if power <= alpha:
        raise ConfigurationError(f"a power of {power} is reached by chance alone at alpha {alpha}; ask for more")


# --- attempts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AttemptAgreement:
    """Intraclass correlation of attempts: the share of all variance that lies between items.

    1 means that attempts at an item always agree, 0 that items do not matter; the estimate itself can fall below 0, and
    is None if no score varies. `within` is the variance of attempts at one item, `between` that of the items' true
    means: the two numbers that `PairedMeans.from_variances` plans with. `ci` is exact for equally many attempts with normal
    scores; for right and wrong it holds the jackknife's interval as well, which knows no such shape.
    """

    items: int
    attempts: int
    icc: float | None
    ci: tuple[float, float] | None
    between: float
    within: float


def attempt_agreement(scores: Sequence[Scores], *, level: float = 0.95) -> AttemptAgreement:
    """One-way intraclass correlation.

    Args:
        scores: For each item, the scores of its attempts.
        level: Confidence level of the interval.

    Raises:
        MetricError: There are fewer than two items, or no item has two attempts.
    """
    columns = [finite_scores(item) for item in scores]
    sizes = np.array([column.size for column in columns], dtype=np.float64)
    if len(columns) < 2 or sizes.min() < 1 or sizes.max() < 2:
        raise MetricError(
            f"agreement of attempts needs at least two items with an attempt each and an item with two, got "
            f"{len(columns)} items with {int(sizes.sum())} attempts"
        )
    values = np.concatenate(columns)
    items, attempts = len(columns), int(values.size)
    if values.min() == values.max():
        return AttemptAgreement(items=items, attempts=attempts, icc=None, ci=None, between=0.0, within=0.0)
    df_between, df_within = items - 1, attempts - items
    centred = [column - values.mean() for column in columns]
    item_means = np.array([column.mean() for column in centred])
    mean_between = float((sizes * item_means**2).sum()) / df_between
    within = sum(float(((column - column.mean()) ** 2).sum()) for column in centred) / df_within
    typical_size = (attempts - float((sizes**2).sum()) / attempts) / df_between
    between = (mean_between - within) / typical_size
    ratios = _ratio_interval(mean_between, within, df_between, df_within, level)
    if ratios is not None and bool(((values == 0) | (values == 1)).all()):
        wider = _jackknife_ratio_interval(sizes, centred, mean_between / within, level)
        ratios = min(ratios[0], wider[0]), max(ratios[1], wider[1])
    return AttemptAgreement(
        items=items,
        attempts=attempts,
        icc=between / (between + within),
        ci=None if ratios is None else (_correlation(ratios[0], typical_size), _correlation(ratios[1], typical_size)),
        between=between,
        within=within,
    )


def _ratio_interval(
    mean_between: float, within: float, df_between: int, df_within: int, level: float
) -> tuple[float, float] | None:
    """The interval of the variance ratio by F, exact for normal scores; None where attempts never differ."""
    from scipy.special import fdtri

    # Attempts that always agree leave at most rounding.
    if within <= 1e-14 * mean_between:
        return None
    ratio = mean_between / within
    tail = (1 - level) / 2
    high, low = (float(fdtri(df_between, df_within, share)) for share in (tail, 1 - tail))
    return ratio / low, ratio / high


def _jackknife_ratio_interval(
    sizes: Floats, centred: Sequence[Floats], ratio: float, level: float
) -> tuple[float, float]:
    """The interval of the variance ratio from how its logarithm moves as each item is left out."""
    if ratio <= 0 or len(sizes) < 3:
        return 0.0, math.inf
    sums = np.array([column.sum() for column in centred])
    squares = np.array([((column - column.mean()) ** 2).sum() for column in centred])
    left, items = sizes.sum() - sizes, len(sizes) - 1
    weighted = (sums**2 / sizes).sum() - sums**2 / sizes
    between = (weighted - (sums.sum() - sums) ** 2 / left) / (items - 1)
    within = (squares.sum() - squares) / np.maximum(left - items, 1)
    # An item without which nothing varies, within items or between them, leaves that side open.
    reach = [0.0, math.inf]
    if float(between.min()) > 1e-14 and float(within.min()) > 1e-14:
        logs = np.log(between / within)
        stderr = math.sqrt(float(((logs - logs.mean()) ** 2).sum()) * items / (items + 1))
        step = math.exp(student_quantile((1 + level) / 2, items) * stderr)
        reach = [ratio / step, ratio * step]
    elif float(between.min()) > 1e-14:
        reach[0] = ratio
    elif float(within.min()) > 1e-14:
        reach[1] = ratio
    return reach[0], reach[1]


def _correlation(ratio: float, size: float) -> float:
    """What a ratio of the variances is as intraclass correlation, with this many attempts an item."""
    return 1.0 if ratio == math.inf else (ratio - 1) / (ratio + size - 1)


# --- from stored runs -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """What the stored number of items can show, and what a wanted difference needs; `basis` says what was assumed.

    `shows` is None if even the largest possible difference would be missed too often; `needs` if no difference was wanted.
    """

    baseline: str
    metric: str
    n: int
    mean: float
    power: float
    alpha: float
    basis: str
    shows: Plan | None
    needs: Plan | None
    # The chance that the stored number of items shows the wanted difference.
    power_now: float | None
    # How much attempts at one item resemble each other, where the run has kept the scores of several.
    agreement: AttemptAgreement | None

    def to_dict(self) -> dict[str, object]:
        return {
            "baseline": self.baseline,
            "metric": self.metric,
            "n": self.n,
            "mean": self.mean,
            "power": self.power,
            "alpha": self.alpha,
            "basis": self.basis,
            "detectable_difference": None if self.shows is None else self.shows.difference,
            "wanted_difference": None if self.needs is None else self.needs.difference,
            "required_n": None if self.needs is None else self.needs.n,
            "power_now": self.power_now,
            **({} if self.agreement is None else {"attempt_agreement": vars(self.agreement)}),
        }


def plan_comparison(
    baseline: str,
    metric: str,
    *,
    storage: StoreLocation | None = None,
    storage_path: StoreLocation | None = None,
    pilot: str | None = None,
    difference: float | None = None,
    correlation: float = 0.5,
    power: float = 0.8,
    alpha: float = 0.05,
    across: bool = False,
) -> ComparisonPlan:
    """Plans a comparison with a stored run.

    Args:
        baseline: The stored run, with the items to compare on.
        metric: The metric to compare by.
        storage: A store that is open already, or a storage backend.
        storage_path: Instead of it, where the store is.
        pilot: A second run on the same items, which tells how much differences vary.
        difference: The smallest difference that matters, to learn how many items show it.
        correlation: Of the two runs' scores, assumed where there is no pilot.
        power: Wanted chance to see the difference.
        alpha: Accepted rate of false alarms.
        across: Pair the pilot's items by id, whatever their content, and take it though it was judged differently.

    Raises:
        ConfigurationError: A number is out of its range.
        MetricError: The stored scores do not vary, or there are fewer than two; or the pilot shares no item with the
            baseline, or was judged differently.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/noisy-0.5", run_id="baseline", storage="runs", progress=False)
    >>> plan = plan_comparison("baseline", "ExactMatch", storage_path="runs", difference=0.05)
    >>> plan.n, plan.needs.n
    (10, 689)
    """
    if not -1 < correlation < 1:
        raise ConfigurationError(f"a correlation lies between -1 and 1, got {correlation}")
    store, run_ids = open_store(storage, storage_path), [baseline] if pilot is None else [baseline, pilot]
    runs = open_scores(store, run_ids, across=across)
    metric = common_metrics(runs, [metric])[0]
    refuse_no_mean(runs[0], metric, "a plan of items")
    scores = runs[0].read(metric)
    if len(scores.item_ids) < 2:
        raise MetricError(
            f"run {baseline!r} has {len(scores.item_ids)} items with a score of {metric}; a plan needs two"
        )
    if pilot is not None:
        basis = _from_pilot(runs, scores, difference, alpha)
    else:
        basis = _from_one_run(scores, correlation, difference, alpha)
    design, n = basis.design, basis.n
    return ComparisonPlan(
        baseline=baseline,
        metric=metric,
        n=n,
        mean=float(scores.values.mean()),
        power=power,
        alpha=alpha,
        basis=basis.text,
        shows=_detectable(design, n, power),
        needs=None if difference is None else design.required_n(difference=difference, power=power),
        power_now=None if difference is None else design.power(n=n, difference=difference).power,
        agreement=attempt_agreement(scores.attempts) if any(len(made) > 1 for made in scores.attempts) else None,
    )


@dataclass(frozen=True)
class _Basis:
    """The design to plan with, for `n` items, and where it comes from."""

    design: PairedMeans | PairedProportions
    n: int
    text: str


def _from_pilot(runs: Sequence[ScoredRun], baseline: RunScores, difference: float | None, alpha: float) -> _Basis:
    pilot, overlap = runs[1].read(baseline.metric), overlap_of_runs(runs[0], runs[1])
    differences = judging_differences(runs[0], runs[1], baseline.metric)
    if differences and not runs[1].across:
        raise MetricError(
            f"runs {baseline.run_id!r} and {pilot.run_id!r} were judged differently on {baseline.metric}: "
            f"{describe_differences(differences)}; {how_to_judge_alike(runs[0], runs[1])}"
        )
    pairs = align(baseline, pilot)
    pairing = overlap.count(runs[0].items, runs[1].items, baseline.keys, pilot.keys)
    where = f"{baseline.run_id} and {pilot.run_id} on {pairing.describe(baseline.run_id, pilot.run_id)}"
    if pairs.binary and pairs.clusters is None:
        discordant = float(np.count_nonzero(pairs.differences)) / pairs.n
        if discordant == 0:
            raise MetricError(
                f"{where} agree everywhere, so they do not tell how much two runs differ; take another pilot"
            )
        return _proportions(
            discordant, f"{where}: {discordant:.1%} are right in one run only", pairs.n, difference, alpha
        )
    return _means(_spread(pairs.differences, pairs.clusters), where, pairs.n, alpha)


def _from_one_run(baseline: RunScores, correlation: float, difference: float | None, alpha: float) -> _Basis:
    values, n = baseline.values, len(baseline.item_ids)
    where = f"{baseline.run_id} alone, on {n} items, and an assumed correlation of {correlation:g} with the other run"
    # Two runs of equal spread: the variance of their differences is twice their own times what they do not share.
    if baseline.clusters is None and bool(((values == 0) | (values == 1)).all()):
        share = float(values.mean())
        discordant = 2 * share * (1 - share) * (1 - correlation)
        if discordant == 0:
            raise MetricError(
                f"all {n} scores of {baseline.run_id!r} are {share:g}, so they do not vary; name a pilot run"
            )
        text = f"{where}: {discordant:.1%} would be right in one run only"
        return _proportions(discordant, text, n, difference, alpha)
    sd = _spread(values, baseline.clusters) * math.sqrt(2 * (1 - correlation))
    return _means(sd, where, n, alpha)


def _proportions(discordant: float, text: str, n: int, difference: float | None, alpha: float) -> _Basis:
    if difference is not None and abs(difference) > discordant:
        # So many must differ for the difference to be possible at all.
        discordant = abs(difference)
        text += f"; a difference of {difference:g} needs {discordant:.1%}, which was used"
    return _Basis(PairedProportions(discordant=min(discordant, 1.0), alpha=alpha), n, text)


def _means(sd: float, where: str, n: int, alpha: float) -> _Basis:
    if sd == 0:
        raise MetricError(
            f"the differences of {where} do not vary, so they cannot plan a comparison; take another pilot"
        )
    return _Basis(PairedMeans(sd=sd, alpha=alpha), n, f"{where}: differences with a standard deviation of {sd:.4g}")


def _spread(values: Floats, clusters: Labels | None) -> float:
    """Standard deviation that an item counts with; items of one cluster say less than independent ones."""
    return stderr_of_mean(values, clusters) * math.sqrt(values.size)


def _detectable(design: PairedMeans | PairedProportions, n: int, power: float) -> Plan | None:
    try:
        return design.detectable(n=n, power=power)
    except MetricError:
        return None
