"""Which place each of many runs may have, given that they were scored on a sample of items.

A run's best place is one below those that are surely better, its worst one above those that are surely worse; "surely" is
decided for all pairs of runs at once, so the places hold together with the given level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from themis.comparison.corpus import draw_units, leave_out, tabulate_runs
from themis.comparison.resampling import resample_sums
from themis.core.intervals import (
    Floats,
    Labels,
    Scores,
    check_level,
    cluster_degrees_of_freedom,
    cluster_totals,
    finite_scores,
    student_quantile,
)
from themis.evaluation.corpus import weigh
from themis.evaluation.resolve import resolve_aggregation
from themis.exceptions import ConfigurationError, MetricError

_FEWEST_RESAMPLED = 100


@dataclass(frozen=True, kw_only=True)
class RankInterval:
    """One run's place: `rank` by its mean (ties share the better one), and the places from `best` to `worst` it may have.

    `share_best` is how often it comes first when the items are drawn again; runs that tie share it.
    """

    run: str
    mean: float
    rank: int
    best: int
    worst: int
    share_best: float


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All runs, the best first."""

    runs: tuple[RankInterval, ...]
    items: int
    clusters: int | None
    level: float
    resamples: int
    seed: int


def rank_runs(
    scores: Mapping[str, Scores],
    *,
    clusters: Labels | None = None,
    higher_is_better: bool = True,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Ranking:
    """Ranks runs that were scored on the same items, given in the same order."""
    table = _table(scores)
    _check_options(level, resamples)
    sign = 1.0 if higher_is_better else -1.0
    sums, sizes = _by_unit(sign * table, clusters)
    means = sums.sum(axis=0) / sizes.sum()
    drawn = resample_sums(np.column_stack([sums, sizes]), resamples, np.random.default_rng(seed))
    replicates = drawn[:, :-1] / drawn[:, -1:]
    stderr = _stderr_of_differences(sums, sizes, means)
    return Ranking(
        runs=_places(list(scores), means, replicates, stderr, level, cluster_degrees_of_freedom(sizes), sign),
        items=len(table),
        clusters=None if clusters is None else len(sums),
        level=level,
        resamples=resamples,
        seed=seed,
    )


def rank_corpora(
    aggregation: str,
    statistics: Mapping[str, Sequence[Sequence[object]]],
    *,
    clusters: Labels | None = None,
    higher_is_better: bool = True,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Ranking:
    """Ranks runs by a number that is no mean; for each run what its attempts at the same items left, in one order."""
    _check_options(level, resamples)
    found = resolve_aggregation(aggregation)
    tables = tabulate_runs(found, list(statistics.values()), clusters)
    units, sign = tables[0].shape[0], 1.0 if higher_is_better else -1.0
    values = sign * np.array([float(found.compute(weigh(rows, np.ones((1, units))))[0]) for rows in tables])
    left_out = sign * np.column_stack([leave_out(found, rows) for rows in tables])
    pulls = left_out - left_out.mean(axis=0)
    replicates = sign * np.concatenate(
        [
            np.column_stack([found.compute(weigh(rows, drawn)) for rows in tables])
            for drawn in draw_units(tables[0], resamples, np.random.default_rng(seed))
        ]
    )
    stderr = _stderr_of_pairs((units - 1) / units * pulls.T @ pulls)
    return Ranking(
        runs=_places(list(statistics), values, replicates, stderr, level, units - 1, sign),
        items=len(next(iter(statistics.values()))),
        clusters=None if clusters is None else units,
        level=level,
        resamples=resamples,
        seed=seed,
    )


def _places(
    runs: list[str],
    means: Floats,
    replicates: Floats,
    stderr: Floats,
    level: float,
    degrees_of_freedom: float,
    sign: float,
) -> tuple[RankInterval, ...]:
    """Every run's place, the best first; `means` and `replicates` are such that more is better, by `sign`."""
    better = _surely_better(means, replicates, stderr, level, degrees_of_freedom)
    above = np.count_nonzero(means[None, :] > means[:, None] + _noise(means), axis=1)
    firsts = replicates >= replicates.max(axis=1, keepdims=True) - _noise(means)
    share_best = (firsts / firsts.sum(axis=1, keepdims=True)).mean(axis=0)
    places = [
        RankInterval(
            run=run,
            mean=sign * float(means[column]),
            rank=1 + int(above[column]),
            best=1 + int(np.count_nonzero(better[:, column])),
            worst=len(runs) - int(np.count_nonzero(better[column])),
            share_best=float(share_best[column]),
        )
        for column, run in enumerate(runs)
    ]
    return tuple(sorted(places, key=lambda run: run.rank))


def _check_options(level: float, resamples: int) -> None:
    check_level(level)
    if resamples < 100:
        raise ConfigurationError(f"a ranking needs at least 100 resamples (2000 is usual), got {resamples}")


def _table(scores: Mapping[str, Scores]) -> Floats:
    if len(scores) < 2:
        raise ConfigurationError(f"a ranking needs at least two runs, got {len(scores)}")
    columns = {run: finite_scores(values) for run, values in scores.items()}
    lengths = {run: column.size for run, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise MetricError(f"runs must be scored on the same items, but their numbers of scores are {lengths}")
    if next(iter(lengths.values())) < 2:
        raise MetricError(f"a ranking needs at least two shared items, got {next(iter(lengths.values()))}")
    return np.column_stack(list(columns.values()))


def _by_unit(table: Floats, clusters: Labels | None) -> tuple[Floats, Floats]:
    if clusters is None:
        return table, np.ones(len(table))
    totals = [cluster_totals(table[:, column], clusters) for column in range(table.shape[1])]
    if totals[0].sums.size < 2:
        raise MetricError("all items are in one cluster; a ranking needs at least two clusters to see any spread")
    return np.column_stack([total.sums for total in totals]), totals[0].sizes


def _stderr_of_differences(sums: Floats, sizes: Floats, means: Floats) -> Floats:
    """Standard error of the difference of every two means, on the same units (CR2, as for one mean)."""
    residuals = (sums - sizes[:, None] * means) / np.sqrt(1 - sizes[:, None] / sizes.sum())
    return _stderr_of_pairs(residuals.T @ residuals / sizes.sum() ** 2)


def _stderr_of_pairs(products: Floats) -> Floats:
    """Standard error of every two values' difference, from their variances and covariances."""
    variances = np.diag(products)
    together = variances[:, None] + variances[None, :]
    difference = together - 2 * products
    # Runs that differ by a constant leave what rounding makes of it.
    stderr: Floats = np.sqrt(np.where(difference > 1e-14 * together, difference, 0.0))
    return stderr


def _surely_better(
    means: Floats, replicates: Floats, stderr: Floats, level: float, degrees_of_freedom: float
) -> npt.NDArray[np.bool_]:
    """Whether the run of a row is better than that of a column by more than chance makes the widest gap of all pairs."""
    # Differences without spread cannot be weighed, and a run does not differ from itself.
    comparable = stderr > 1e-12 * max(float(np.abs(means).max()), float(stderr.max()))
    shifts = replicates - means
    widest = np.zeros(len(replicates))
    for run in range(means.size):
        others = comparable[run]
        if others.any():
            gaps = np.abs(shifts[:, others] - shifts[:, run, None]) / stderr[run, others]
            widest = np.maximum(widest, gaps.max(axis=1))
    critical = _critical_gap(float(np.quantile(widest, level)), means.size, level, degrees_of_freedom)
    standardised = np.divide(means[:, None] - means[None, :], stderr, out=np.zeros_like(stderr), where=comparable)
    better: npt.NDArray[np.bool_] = standardised > critical
    return better


def _critical_gap(resampled: float, runs: int, level: float, degrees_of_freedom: float) -> float:
    """How many standard errors the widest gap of equal runs keeps within, at this level.

    Resamples know how the runs hang together and not how badly few units know their standard errors, so their quantile is
    carried over to Student's distribution. Below a hundred units it is at least that of pairs which have nothing to do with
    each other (Bonferroni), and always that of a single pair.
    """
    # Resamples of n units spread as if these were n - 1.
    spread = resampled * math.sqrt((degrees_of_freedom + 1) / degrees_of_freedom)
    pairs = runs * (runs - 1) / 2 if degrees_of_freedom < _FEWEST_RESAMPLED - 1 else 1
    tail = min(0.5 * math.erfc(spread / math.sqrt(2)), (1 - level) / 2 / pairs)
    return -student_quantile(tail, degrees_of_freedom)


def _noise(means: Floats) -> float:
    """Means closer than this are ties."""
    return 1e-12 * max(float(np.abs(means).max()), math.ulp(0.0))
