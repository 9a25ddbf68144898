"""How many items the next comparison needs, from runs that are stored.

A pilot of two runs tells how much their differences vary. With one run alone that is guessed from its own spread and an
assumed correlation, and the plan says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from themis.comparison.pairs import pair, stderr_of_mean
from themis.comparison.power import PairedMeans, PairedProportions, Plan
from themis.comparison.scores import RunScores, common_metrics, line_up, read_scores
from themis.comparison.store import open_store
from themis.core.intervals import Floats, Labels
from themis.exceptions import ConfigurationError, MetricError

__all__ = ["ComparisonPlan", "plan_comparison"]


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

    def to_dict(self) -> dict[str, Any]:
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
        }


def plan_comparison(
    baseline: str,
    metric: str,
    *,
    storage: Any = None,
    storage_path: str | Path | None = None,
    pilot: str | None = None,
    difference: float | None = None,
    correlation: float = 0.5,
    power: float = 0.8,
    alpha: float = 0.05,
) -> ComparisonPlan:
    """Plans a comparison with a stored run. `pilot` is a second run on the same items; without one, scores of the two
    runs are taken to have this correlation."""
    if not -1 < correlation < 1:
        raise ConfigurationError(f"a correlation lies between -1 and 1, got {correlation}")
    store = open_store(storage, storage_path)
    run_ids = [baseline] if pilot is None else [baseline, pilot]
    for run_id in run_ids:
        store.get_run(run_id)
    metric = common_metrics(store, run_ids, [metric])[0]
    scores = read_scores(store, baseline, metric)
    if len(scores.item_ids) < 2:
        raise MetricError(
            f"run {baseline!r} has {len(scores.item_ids)} items with a score of {metric}; a plan needs two"
        )
    if pilot is not None:
        basis = _from_pilot(scores, read_scores(store, pilot, metric), difference, alpha)
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
    )


@dataclass(frozen=True)
class _Basis:
    """The design to plan with, for `n` items, and where it comes from."""

    design: PairedMeans | PairedProportions
    n: int
    text: str


def _from_pilot(baseline: RunScores, pilot: RunScores, difference: float | None, alpha: float) -> _Basis:
    shared = line_up(baseline, pilot)
    differences = pair(shared.a, shared.b).differences
    where = f"{baseline.run_id} and {pilot.run_id} on {shared.n} shared items"
    if shared.is_binary and shared.clusters is None:
        discordant = float(np.count_nonzero(differences)) / shared.n
        if discordant == 0:
            raise MetricError(
                f"{where} agree everywhere, so they do not tell how much two runs differ; take another pilot"
            )
        return _proportions(
            discordant, f"{where}: {discordant:.1%} are right in one run only", shared.n, difference, alpha
        )
    return _means(_spread(differences, shared.clusters), f"{where}", shared.n, alpha)


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
