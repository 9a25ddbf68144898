"""Compares stored runs: reads their scores, lines them up by item, tests every pair, corrects, and reports.

Works on any two runs of a store, for a memory test that has ended is a record with scores like any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from themis.comparison.hypotheses import (
    StatisticalTest,
    TestSettings,
    beyond_testing,
    difference_interval,
    examine,
    parse_test,
)
from themis.comparison.ranking import Ranking, rank_runs
from themis.comparison.reports import TIE, ComparisonReport, ComparisonResult, WinLossMatrix
from themis.comparison.scores import (
    RunScores,
    SharedScores,
    common_metrics,
    direction_of,
    find_metric,
    line_up,
    read_scores,
    shared_by_all,
)
from themis.comparison.statistics import benjamini_hochberg, holm
from themis.comparison.store import open_store
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, MetricError
from themis.storage import ExperimentStorage

__all__ = ["CORRECTIONS", "ComparisonEngine", "compare_runs"]

CORRECTIONS: dict[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "holm-bonferroni": holm,
    "benjamini-hochberg": benjamini_hochberg,
}


def compare_runs(
    run_ids: Sequence[str],
    *,
    storage_path: str | Path,
    metrics: Iterable[str] | None = None,
    statistical_test: StatisticalTest | str = StatisticalTest.BOOTSTRAP,
    alpha: float = 0.05,
) -> ComparisonReport:
    """Compares every two of these runs on the metrics that all of them have, or on those named."""
    engine = ComparisonEngine(storage_path=storage_path, statistical_test=statistical_test, alpha=alpha)
    return engine.compare_runs(run_ids, metrics=metrics)


class ComparisonEngine:
    """How runs are compared; one engine may compare any number of them.

    `multiple_comparison_correction` is "holm-bonferroni", "benjamini-hochberg" or None. It applies to all p-values of a
    report together; a bootstrap has none. Which way a metric is good it says itself (`Metric.higher_is_better`);
    `lower_is_better` names those whose smaller value wins whatever they say.
    """

    def __init__(
        self,
        *,
        storage: Any = None,
        storage_path: str | Path | None = None,
        statistical_test: StatisticalTest | str = StatisticalTest.BOOTSTRAP,
        alpha: float = 0.05,
        n_bootstrap: int = 10_000,
        n_permutations: int = 10_000,
        multiple_comparison_correction: str | None = "holm-bonferroni",
        lower_is_better: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        correction = multiple_comparison_correction
        if correction is not None and correction not in CORRECTIONS:
            raise ConfigurationError(
                f"unknown multiple_comparison_correction {correction!r}{nearest(correction, CORRECTIONS)}; "
                f"known: {', '.join(CORRECTIONS)}, or None for no correction"
            )
        self.storage: ExperimentStorage = open_store(storage, storage_path)
        self.statistical_test = parse_test(statistical_test)
        self.settings = TestSettings(alpha=alpha, n_bootstrap=n_bootstrap, n_permutations=n_permutations, seed=seed)
        self.multiple_comparison_correction = correction
        self.lower_is_better = tuple(lower_is_better)

    def compare_runs(
        self,
        run_ids: Sequence[str],
        *,
        metrics: Iterable[str] | None = None,
        statistical_test: StatisticalTest | str | None = None,
    ) -> ComparisonReport:
        run_ids = _checked_ids(run_ids)
        test = self.statistical_test if statistical_test is None else parse_test(statistical_test)
        for run_id in run_ids:
            self.storage.get_run(run_id)
        names = common_metrics(self.storage, run_ids, metrics)
        directions = self._directions(run_ids, names)
        results: list[ComparisonResult] = []
        best: dict[str, str | None] = {}
        rankings: dict[str, Ranking] = {}
        left_out: dict[str, str] = {}
        for metric in names:
            scores = {run_id: read_scores(self.storage, run_id, metric) for run_id in run_ids}
            # A metric that was asked for is compared or refused; of all of them those are compared that can be.
            if metrics is None and len(names) > 1 and (reason := _without_scores(list(scores.values()))):
                left_out[metric] = reason
                continue
            direction = directions[metric]
            results += [
                self._compare(one, other, test, direction) for one, other in itertools.combinations(scores.values(), 2)
            ]
            best[metric] = None if direction is None else _best(list(scores.values()), direction)
            if len(run_ids) > 2 and direction is not None:
                ranking = self._ranking(list(scores.values()), direction)
                rankings.update({} if ranking is None else {metric: ranking})
        if len(left_out) == len(names):
            raise MetricError(
                f"nothing can be compared: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}"
            )
        names = [name for name in names if name not in left_out]
        corrected = self._correct(results)
        for result in results:
            result.winner = self._winner(result, test)
        matrices = {
            metric: WinLossMatrix.from_results(run_ids, metric, [r for r in results if r.metric_name == metric])
            for metric in names
        }
        return ComparisonReport(
            run_ids=run_ids,
            metrics=names,
            pairwise_results=results,
            win_loss_matrices=matrices,
            best_run_per_metric=best,
            overall_best_run=_most_ahead(run_ids, matrices),
            metadata={
                "statistical_test": test.value,
                "alpha": self.settings.alpha,
                "n_runs": len(run_ids),
                "n_metrics": len(names),
                "multiple_comparison_correction": self.multiple_comparison_correction,
                "n_hypotheses_corrected": corrected,
                "seed": self.settings.seed,
                **({"left_out": left_out} if left_out else {}),
            },
            rankings=rankings,
        )

    def _directions(self, run_ids: Sequence[str], names: Sequence[str]) -> dict[str, bool | None]:
        found = {metric: direction_of(self.storage, run_ids, metric) for metric in names}
        for name in self.lower_is_better:
            found[find_metric(name, names, "the compared metrics")] = False
        return found

    def _compare(
        self, one: RunScores, other: RunScores, test: StatisticalTest, direction: bool | None
    ) -> ComparisonResult:
        shared = line_up(one, other)
        mean_a, mean_b = float(shared.a.mean()), float(shared.b.mean())
        delta = _difference(mean_a, mean_b)
        result = ComparisonResult(
            metric_name=one.metric,
            run_a_id=one.run_id,
            run_b_id=other.run_id,
            run_a_mean=mean_a,
            run_b_mean=mean_b,
            delta=delta,
            delta_percent=100 * delta / abs(mean_b) if mean_b else 0.0,
            winner=TIE,
            run_a_samples=shared.a.tolist(),
            run_b_samples=shared.b.tolist(),
            note=beyond_testing(shared),
            higher_is_better=direction,
        )
        if test is not StatisticalTest.NONE and not result.note:
            self._weigh(result, shared, test)
        return result

    def _weigh(self, result: ComparisonResult, shared: SharedScores, test: StatisticalTest) -> None:
        verdict = examine(shared, test, self.settings)
        result.test_result, result.note = verdict, verdict.note
        if verdict.confidence_interval is not None:
            result.interval, result.interval_method = verdict.confidence_interval, verdict.test_name
        else:
            result.interval = difference_interval(shared, self.settings.alpha)
            result.interval_method = None if result.interval is None else "student"

    def _correct(self, results: list[ComparisonResult]) -> int:
        """Corrects the p-values of all rows together and returns how many there were."""
        if self.multiple_comparison_correction is None:
            return 0
        tested = [(r, r.test_result.p_value) for r in results if r.test_result and r.test_result.p_value is not None]
        adjusted = CORRECTIONS[self.multiple_comparison_correction]([p_value for _, p_value in tested])
        for (result, _), p_value in zip(tested, adjusted, strict=True):
            result.corrected_p_value = p_value
            result.corrected_significant = p_value <= self.settings.alpha
        return len(tested)

    def _winner(self, result: ComparisonResult, test: StatisticalTest) -> str:
        separated = result.delta != 0 if test is StatisticalTest.NONE else result.is_significant()
        if not separated or result.delta == 0 or result.higher_is_better is None:
            return TIE
        first_is_better = (result.delta > 0) == result.higher_is_better
        return result.run_a_id if first_is_better else result.run_b_id

    def _ranking(self, scores: list[RunScores], higher_is_better: bool) -> Ranking | None:
        """The places of the runs on the items that all share; None where those cannot tell how much chance moves them."""
        shared = shared_by_all(scores)
        clusters = next((run.clusters for run in shared if run.clusters is not None), None)
        if len(shared[0].item_ids if clusters is None else set(clusters)) < 2:
            return None
        return rank_runs(
            {run.run_id: run.values for run in shared},
            clusters=clusters,
            higher_is_better=higher_is_better,
            level=1 - self.settings.alpha,
            seed=self.settings.seed,
        )


def _checked_ids(run_ids: Sequence[str]) -> list[str]:
    if isinstance(run_ids, str):
        raise ConfigurationError(f"run_ids is a list of run ids, got the text {run_ids!r}")
    run_ids = list(run_ids)
    if len(run_ids) < 2:
        raise ConfigurationError(f"a comparison needs at least two runs, got {len(run_ids)}: {run_ids}")
    if doubled := next((run_id for run_id in run_ids if run_ids.count(run_id) > 1), None):
        raise ConfigurationError(f"run {doubled!r} is given twice; a run does not differ from itself")
    return run_ids


def _without_scores(scores: Sequence[RunScores]) -> str | None:
    """Why a metric cannot be compared between every two of the runs, if so."""
    for run in scores:
        if not run.item_ids:
            return f"run {run.run_id!r} has no score of it"
    for one, other in itertools.combinations(scores, 2):
        if not set(one.item_ids) & set(other.item_ids):
            return f"runs {one.run_id!r} and {other.run_id!r} have no scored item in common"
    return None


def _best(scores: list[RunScores], higher_is_better: bool) -> str | None:
    """The run with the best mean on the items that all share, or on its own ones if there are none; None for a tie."""
    shared = shared_by_all(scores)
    means = {run.run_id: float(run.values.mean()) for run in (shared if shared[0].item_ids else scores)}
    best = max(means.values()) if higher_is_better else min(means.values())
    leaders = [run_id for run_id, mean in means.items() if _difference(mean, best) == 0]
    return leaders[0] if len(leaders) == 1 else None


def _difference(one: float, other: float) -> float:
    """Zero where only rounding separates two means."""
    difference = one - other
    return 0.0 if abs(difference) <= 1e-12 * max(abs(one), abs(other)) else difference


def _most_ahead(run_ids: list[str], matrices: dict[str, WinLossMatrix]) -> str | None:
    """The run that has won more than it has lost, and more so than any other, over all metrics."""
    ahead = {
        run_id: sum(matrix.win_counts[run_id] - matrix.loss_counts[run_id] for matrix in matrices.values())
        for run_id in run_ids
    }
    most = max(ahead.values())
    leaders = [run_id for run_id, margin in ahead.items() if margin == most]
    return leaders[0] if most > 0 and len(leaders) == 1 else None
