"""Compares runs: reads their scores, aligns them by item, tests every pair, corrects, and reports.

Works on any two runs of a store, for a memory test that has ended is a record with scores like any other. `run_tests` is the
part that needs no store: agents of a sweep are compared by it too (`compare_scores`), with whole conversations as clusters.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from themis.comparison.corpus import PairedCorpora
from themis.comparison.judge_correction import correct_for_judges
from themis.comparison.judging import compare_judging, describe_differences, how_to_judge_alike, judging_differences
from themis.comparison.pairing import Overlap, Pairing
from themis.comparison.ranking import Ranking, rank_corpora, rank_runs
from themis.comparison.reports import (
    TIE,
    ComparisonReport,
    ComparisonResult,
    ReportMetadata,
    RunCounts,
    StatisticalTestResult,
    WinLossMatrix,
)
from themis.comparison.scores import (
    RunScores,
    ScoredRun,
    StoreLocation,
    align,
    common_metrics,
    find_metric,
    is_higher_better,
    open_scores,
    open_store,
    overlap_of_runs,
    restrict_to_shared,
)
from themis.comparison.statistics import (
    PairedTest,
    Pairs,
    agree_with_test,
    benjamini_hochberg,
    bootstrap_test,
    holm,
    mcnemar_test,
    paired_permutation_test,
    paired_t_test,
    summarise_difference,
    wilcoxon_test,
)
from themis.core.intervals import Summary, clip
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, MetricError
from themis.runs.judge_audits import AUDITS

CORRECTIONS: dict[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "holm-bonferroni": holm,
    "benjamini-hochberg": benjamini_hochberg,
}


class StatisticalTest(enum.StrEnum):
    """How a difference is tested.

    >>> StatisticalTest("auto")
    <StatisticalTest.AUTO: 'auto'>
    """

    # Student's paired test.
    T_TEST = "t_test"
    # An interval from resampled items; has no p-value.
    BOOTSTRAP = "bootstrap"
    # Signs of the differences swapped at random, or all of them where they are few.
    PERMUTATION = "permutation"
    # For scores of 0 or 1.
    MCNEMAR = "mcnemar"
    # Signed ranks of the differences.
    WILCOXON = "wilcoxon"
    # The one that fits the scores; the result says why.
    AUTO = "auto"
    # The better mean wins.
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class TestSettings:
    """What every test of a comparison has in common; `correction` is for the number of p-values, None for no correction."""

    __test__ = False

    test: StatisticalTest = StatisticalTest.AUTO
    alpha: float = 0.05
    correction: str | None = "holm-bonferroni"
    n_bootstrap: int = 10_000
    n_permutations: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_bootstrap", "n_permutations"):
            if (count := getattr(self, name)) < 1:
                raise ConfigurationError(f"{name} is at least 1 (10,000 is usual), got {count}")
        if not 0 < self.alpha < 1:
            raise ConfigurationError(f"alpha lies between 0 and 1 (0.05 is usual), got {self.alpha}")
        if self.correction is not None and self.correction not in CORRECTIONS:
            raise ConfigurationError(
                f"unknown multiple_comparison_correction {self.correction!r}{nearest(self.correction, CORRECTIONS)}; "
                f"known: {', '.join(CORRECTIONS)}, or None for no correction"
            )


def compare_runs(
    run_ids: Sequence[str],
    *,
    storage_path: str | Path,
    metrics: Iterable[str] | None = None,
    statistical_test: StatisticalTest | str = StatisticalTest.AUTO,
    alpha: float = 0.05,
    across: bool = False,
) -> ComparisonReport:
    """Compares every two of these runs on the items that are the same in both, content included.

    Args:
        run_ids: At least two runs of one store.
        storage_path: Where the store is: a folder, or the URL of a database.
        metrics: Names of metrics; without them, all that every run has.
        statistical_test: How differences are tested; "auto" takes what fits the scores.
        alpha: Accepted rate of false alarms, for all comparisons of the report together.
        across: Pair items by id, whatever their content, and weigh runs that were judged differently; the report says so.

    Raises:
        StorageError: The store or a run is not there.
        MetricError: The runs have no metric or no scored item in common.

    >>> import themis
    >>> for run_id, model in (("baseline", "fake/noisy-0.9"), ("candidate", "fake/perfect")):
    ...     report = themis.evaluate("demo", model=model, run_id=run_id, storage="runs", progress=False)
    >>> report = compare_runs(["baseline", "candidate"], storage_path="runs")
    >>> result = report.pairwise_results[0]
    >>> round(result.delta, 2), result.test_result.test_name, result.winner, result.pairing.n
    (-0.8, 'mcnemar', 'candidate', 10)
    """
    engine = ComparisonEngine(storage_path=storage_path, statistical_test=statistical_test, alpha=alpha, across=across)
    return engine.compare_runs(run_ids, metrics=metrics)


def compare_scores(
    scores: Mapping[str, Mapping[tuple[Hashable, str], float | None]],
    contents: Mapping[str, Mapping[tuple[Hashable, str], str]] | None = None,
    judging: Mapping[str, Sequence[Mapping[str, object]]] | None = None,
) -> list[ComparisonResult]:
    """Compares every two of these runs, or agents, by a permutation test, with p-values corrected for their number.

    Scores are paired by cluster and item. Items of one cluster (tests of one conversation) are not independent of each
    other: where two runs share several clusters, whole clusters are what is swapped.

    Args:
        scores: For each run its score, from 0 to 1, of every (cluster, item); None for an item that has none.
        contents: For each run a fingerprint of what each item holds: items that differ in it are not paired. By default
            items of one name are one item.
        judging: For each run the stored ways in which it was judged; runs that were judged differently have no verdict.

    >>> good, bad = {("", f"t{n}"): 1.0 for n in range(12)}, {("", f"t{n}"): 0.0 for n in range(12)}
    >>> (result,) = compare_scores({"good": good, "bad": bad})
    >>> result.delta, result.winner
    (1.0, 'good')
    """
    hypotheses = []
    for one, other in itertools.combinations(scores, 2):
        held = [dict.fromkeys(scores[run], "") if contents is None else contents[run] for run in (one, other)]
        pairs, pairing = _align_clusters(scores[one], scores[other], *held)
        ways = itertools.product(*(judging[run] for run in (one, other))) if judging is not None else ()
        differing = next((found for first, second in ways if (found := compare_judging(first, second, "score"))), [])
        hypotheses.append(
            Hypothesis("score", one, other, pairs, pairing=pairing, judged_differently=describe_differences(differing))
        )
    return run_tests(hypotheses, TestSettings(test=StatisticalTest.PERMUTATION))


def _align_clusters(
    a: Mapping[tuple[Hashable, str], float | None],
    b: Mapping[tuple[Hashable, str], float | None],
    contents_a: Mapping[tuple[Hashable, str], str],
    contents_b: Mapping[tuple[Hashable, str], str],
) -> tuple[Pairs, Pairing]:
    named = a.keys() & b.keys()
    shared = [key for key in named if contents_a.get(key) == contents_b.get(key)]
    scored = sorted((key for key in shared if a[key] is not None and b[key] is not None), key=str)
    clusters = [cluster for cluster, _ in scored]
    changed = named.difference(shared)
    pairing = Pairing(
        n=len(scored),
        items_a=len(a),
        items_b=len(b),
        changed=len(changed),
        only_a=len(a) - len(named),
        only_b=len(b) - len(named),
        unscored_a=sum(a[key] is None for key in shared),
        unscored_b=sum(b[key] is None for key in shared),
    )
    pairs = Pairs(
        a=np.array([a[key] for key in scored], dtype=np.float64),
        b=np.array([b[key] for key in scored], dtype=np.float64),
        clusters=clusters if len(set(clusters)) > 1 else None,
        score_range=(0.0, 1.0),
    )
    return pairs, pairing


class ComparisonEngine:
    """How runs are compared; one engine may compare any number of them.

    >>> import themis
    >>> for run_id, model in (("baseline", "fake/noisy-0.9"), ("candidate", "fake/perfect")):
    ...     report = themis.evaluate("demo", model=model, run_id=run_id, storage="runs", progress=False)
    >>> engine = ComparisonEngine(storage_path="runs", statistical_test="auto", seed=1)
    >>> result = engine.compare_runs(["baseline", "candidate"]).pairwise_results[0]
    >>> result.test_result.test_name, result.winner
    ('mcnemar', 'candidate')
    """

    def __init__(
        self,
        *,
        storage: StoreLocation | None = None,
        storage_path: StoreLocation | None = None,
        statistical_test: StatisticalTest | str = StatisticalTest.AUTO,
        alpha: float = 0.05,
        n_bootstrap: int = 10_000,
        n_permutations: int = 10_000,
        multiple_comparison_correction: str | None = "holm-bonferroni",
        lower_is_better: Collection[str] = (),
        seed: int = 0,
        across: bool = False,
    ) -> None:
        """Opens the store.

        Args:
            storage: A store that is open already, or a storage backend.
            storage_path: Instead of it, where the store is.
            statistical_test: How differences are tested; "auto" takes what fits the scores.
            alpha: Accepted rate of false alarms; one minus the level of intervals.
            n_bootstrap: Resamples of a bootstrap.
            n_permutations: Random swaps of a permutation test that is not exact.
            multiple_comparison_correction: "holm-bonferroni", "benjamini-hochberg" or None. It applies to all p-values
                of a report together. A bootstrap has none: with either its intervals hold for all comparisons at once.
            lower_is_better: Metrics whose smaller value wins, whatever they say themselves (`Metric.higher_is_better`).
            seed: Of everything that is drawn at random.
            across: Pair items by id, whatever their content, and weigh runs that were judged differently; every output
                says so.

        Raises:
            ConfigurationError: An option is unknown or out of its range.
            StorageError: There is no such store.
        """
        self.settings = TestSettings(
            test=_parse_test(statistical_test),
            alpha=alpha,
            correction=multiple_comparison_correction,
            n_bootstrap=n_bootstrap,
            n_permutations=n_permutations,
            seed=seed,
        )
        self.storage = open_store(storage, storage_path)
        self.lower_is_better = tuple(lower_is_better)
        self.across = across

    def compare_runs(
        self,
        run_ids: Sequence[str],
        *,
        metrics: Iterable[str] | None = None,
        statistical_test: StatisticalTest | str | None = None,
    ) -> ComparisonReport:
        """Compares every two of these runs.

        Args:
            run_ids: At least two runs of the store.
            metrics: Names of metrics; without them, all that every run has.
            statistical_test: In place of the engine's.

        Raises:
            StorageError: A run is not there.
            MetricError: The runs have no metric or no scored item in common.
        """
        run_ids = _check_ids(run_ids)
        settings = self.settings
        if statistical_test is not None:
            settings = replace(settings, test=_parse_test(statistical_test))
        runs = open_scores(self.storage, run_ids, across=self.across)
        names = common_metrics(runs, metrics)
        first = [run.read(names[0]) for run in runs]
        overlaps = [overlap_of_runs(one, other) for one, other in itertools.combinations(runs, 2)]
        directions = self._directions(runs, names)
        hypotheses: list[Hypothesis] = []
        best: dict[str, str | None] = {}
        rankings: dict[str, Ranking] = {}
        left_out: dict[str, str] = {}
        for metric in names:
            scores = first if metric == names[0] else [run.read(metric) for run in runs]
            # A metric that was asked for is compared or refused; of all of them those are compared that can be.
            if metrics is None and len(names) > 1 and (reason := _why_left_out(scores)):
                left_out[metric] = reason
                continue
            direction = directions[metric]
            found = self._pair_up(metric, runs, scores, overlaps, direction)
            hypotheses += found
            is_ranked = direction is not None and all(hypothesis.is_comparable for hypothesis in found)
            best[metric] = _best_run(scores, bool(direction)) if is_ranked else None
            if len(run_ids) > 2 and is_ranked and (ranking := _rank(scores, bool(direction), settings)):
                rankings[metric] = ranking
        if not hypotheses:
            raise MetricError(
                f"nothing can be compared: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}"
            )
        report = _report(runs, run_tests(hypotheses, settings), best, rankings, left_out, settings)
        if self.storage.has_experiment(AUDITS):
            report.judge_corrections = correct_for_judges(self.storage, runs, report.pairwise_results)
        return report

    def _pair_up(
        self,
        metric: str,
        runs: Sequence[ScoredRun],
        scores: Sequence[RunScores],
        overlaps: Sequence[Overlap],
        direction: bool | None,
    ) -> list[Hypothesis]:
        """A metric of every two runs."""
        every = zip(itertools.combinations(runs, 2), itertools.combinations(scores, 2), overlaps, strict=True)
        return [pair_up(metric, pair, both, overlap, direction) for pair, both, overlap in every]

    def _directions(self, runs: Sequence[ScoredRun], names: Sequence[str]) -> dict[str, bool | None]:
        found = {metric: is_higher_better(runs, metric) for metric in names}
        for name in self.lower_is_better:
            found[find_metric(name, names, "the compared metrics")] = False
        return found


# --- tests ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hypothesis:
    """Two runs do not differ on a metric; `higher_is_better` is None where neither value is.

    `judged_differently` says in what their judging differs, `judge_alike` what to do about it.
    """

    metric: str
    run_a: str
    run_b: str
    pairs: Pairs
    higher_is_better: bool | None = True
    pairing: Pairing | None = None
    judged_differently: str = ""
    judge_alike: str = ""

    @property
    def is_comparable(self) -> bool:
        """Whether a verdict on the difference is one on the runs, or is asked for all the same."""
        return not self.judged_differently or (self.pairing is not None and self.pairing.across)


def pair_up(
    metric: str,
    runs: tuple[ScoredRun, ScoredRun],
    scores: tuple[RunScores, RunScores],
    overlap: Overlap,
    direction: bool | None,
) -> Hypothesis:
    """A metric of two runs, with how their items were paired and in what their judging differs."""
    (one, other), (a, b) = runs, scores
    differences = judging_differences(one, other, metric)
    return Hypothesis(
        metric,
        one.run_id,
        other.run_id,
        align(a, b),
        direction,
        overlap.count(one.items, other.items, a.keys, b.keys),
        describe_differences(differences),
        how_to_judge_alike(one, other) if differences else "",
    )


def run_tests(hypotheses: Iterable[Hypothesis], settings: TestSettings) -> list[ComparisonResult]:
    """Tests every hypothesis, corrects all p-values together, and says who won."""
    hypotheses = list(hypotheses)
    # Without p-values there is nothing to correct afterwards: every interval is made to hold together with the others.
    family = sum(hypothesis.is_comparable and not why_untestable(hypothesis.pairs) for hypothesis in hypotheses)
    is_simultaneous = settings.test is StatisticalTest.BOOTSTRAP and settings.correction is not None
    results = [_test(hypothesis, settings, family if is_simultaneous else 1) for hypothesis in hypotheses]
    tested = [(r, r.test_result.p_value) for r in results if r.test_result and r.test_result.p_value is not None]
    if settings.correction is not None:
        adjusted = CORRECTIONS[settings.correction]([p_value for _, p_value in tested])
        for (result, _), p_value in zip(tested, adjusted, strict=True):
            result.corrected_p_value = p_value
            result.corrected_significant = p_value <= settings.alpha
    for hypothesis, result in zip(hypotheses, results, strict=True):
        result.winner = _winner(result, settings.test) if hypothesis.is_comparable else None
    return results


def _test(hypothesis: Hypothesis, settings: TestSettings, simultaneous: int) -> ComparisonResult:
    pairs = hypothesis.pairs
    mean_a, mean_b = pairs.means if pairs.n else (math.nan, math.nan)
    delta = _difference(mean_a, mean_b) if pairs.n else 0.0
    result = ComparisonResult(
        metric_name=hypothesis.metric,
        run_a_id=hypothesis.run_a,
        run_b_id=hypothesis.run_b,
        run_a_mean=mean_a,
        run_b_mean=mean_b,
        delta=delta,
        delta_percent=100 * delta / abs(mean_b) if mean_b else 0.0,
        winner=TIE,
        run_a_samples=pairs.a.tolist(),
        run_b_samples=pairs.b.tolist(),
        note=why_untestable(pairs),
        higher_is_better=hypothesis.higher_is_better,
        pairing=hypothesis.pairing,
        judged_differently=hypothesis.judged_differently,
        judge_alike=hypothesis.judge_alike,
    )
    if settings.test is StatisticalTest.NONE or result.note or not hypothesis.is_comparable:
        return result
    verdict = run_test(pairs, replace(settings, alpha=settings.alpha / simultaneous))
    if simultaneous > 1:
        _widen(verdict, pairs, settings.alpha / simultaneous)
    result.test_result, result.note = verdict, verdict.note
    found = difference_with_interval(pairs, verdict)
    result.interval, result.interval_method = found.ci, found.method
    return result


def _widen(verdict: StatisticalTestResult, pairs: Pairs, alpha: float) -> None:
    """Far from the middle few items leave resamples too little to go by: the interval that fits is held as well."""
    bootstrap, fitting = verdict.confidence_interval, summarise_difference(pairs, level=1 - alpha).ci
    if bootstrap is not None and fitting is not None:
        low, high = min(bootstrap[0], fitting[0]), max(bootstrap[1], fitting[1])
        verdict.confidence_interval, verdict.significant = (low, high), not low <= 0 <= high


def why_untestable(pairs: Pairs) -> str:
    """Why no test can say anything about these scores; empty if one can."""
    if pairs.n < 2:
        return f"{'only one' if pairs.n else 'no'} item is shared, and a test needs at least two"
    if pairs.unit_count < 2:
        return f"all {pairs.n} shared items are in one cluster, and a test needs at least two clusters"
    return ""


def run_test(pairs: Pairs, settings: TestSettings) -> StatisticalTestResult:
    """The verdict of the test that was asked for, or of the one that fits, on scores that can be tested."""
    if pairs.corpora is not None:
        return _test_corpora(pairs, pairs.corpora, settings)
    chosen, reason = _choose_test(pairs) if settings.test is StatisticalTest.AUTO else (settings.test, "")
    if pairs.clusters is not None and chosen in (StatisticalTest.MCNEMAR, StatisticalTest.WILCOXON):
        raise MetricError(
            f"the test {chosen.value!r} takes items as independent, but these come in {pairs.unit_count} clusters; "
            "use permutation, t_test or bootstrap, which keep clusters whole"
        )
    result = _TESTS[chosen](pairs, settings)
    return StatisticalTestResult(
        test_name=result.name,
        statistic=result.statistic,
        p_value=result.p_value,
        significant=result.significant,
        confidence_level=1 - settings.alpha,
        effect_size=pairs.cohens_dz,
        confidence_interval=None if result.ci is None else clip(result.ci, pairs.difference_range),
        inference_mode="ci_only" if result.p_value is None else "hypothesis_test",
        n=result.n,
        clusters=result.clusters,
        exact=result.exact,
        resamples=result.resamples,
        seed=None if result.resamples is None else result.seed,
        reason=reason,
        note=result.note,
        opposes_mean=result.opposes_mean,
    )


def _test_corpora(pairs: Pairs, corpora: PairedCorpora, settings: TestSettings) -> StatisticalTestResult:
    """The verdict on numbers that are no means: by swapping whole items, or by resampling them."""
    if settings.test not in (StatisticalTest.AUTO, StatisticalTest.PERMUTATION, StatisticalTest.BOOTSTRAP):
        raise MetricError(
            f"the test {settings.test.value!r} is about the mean of items' scores, and this metric's number is none; "
            "use auto, permutation or bootstrap"
        )
    resamples: int | None
    if settings.test is StatisticalTest.BOOTSTRAP:
        name, p_value, exact = "bootstrap_bca", None, False
        interval = corpora.bootstrap_interval(settings.alpha, settings.n_bootstrap, settings.seed)
        resamples = corpora.count_resamples(settings.n_bootstrap)
        significant = not interval[0] <= 0 <= interval[1]
    else:
        name, interval = "paired_permutation", None
        p_value, exact = corpora.permute(settings.n_permutations, settings.seed)
        resamples = None if exact else corpora.count_resamples(settings.n_permutations)
        significant = p_value <= settings.alpha
    is_chosen = settings.test is StatisticalTest.AUTO
    return StatisticalTestResult(
        test_name=name,
        statistic=corpora.difference,
        p_value=p_value,
        significant=significant,
        confidence_level=1 - settings.alpha,
        confidence_interval=interval,
        inference_mode="ci_only" if p_value is None else "hypothesis_test",
        n=pairs.n,
        clusters=pairs.cluster_count,
        exact=exact,
        resamples=resamples,
        seed=None if resamples is None else settings.seed,
        reason="permutation, because the runs' numbers are no means and it swaps whole items" if is_chosen else "",
    )


def difference_with_interval(pairs: Pairs, verdict: StatisticalTestResult) -> Summary:
    """The mean difference with the interval that goes with a test: its own, or the one that fits the scores."""
    found = summarise_difference(pairs, level=verdict.confidence_level)
    if verdict.confidence_interval is not None:
        return replace(found, ci=verdict.confidence_interval, method=verdict.test_name)
    # Signed ranks ask something else than the mean difference does, so they do not rule on its interval.
    if found.ci is None or verdict.test_name == "wilcoxon":
        return found
    return replace(found, ci=agree_with_test(found.ci, found.mean, is_significant=verdict.significant))


def _choose_test(pairs: Pairs) -> tuple[StatisticalTest, str]:
    if pairs.clusters is not None:
        return (
            StatisticalTest.PERMUTATION,
            f"permutation, because the items come in {pairs.unit_count} clusters and it swaps whole clusters",
        )
    if pairs.binary:
        return StatisticalTest.MCNEMAR, "McNemar's test, because every score is 0 or 1 and it is exact for those"
    return StatisticalTest.PERMUTATION, "permutation, because the scores are graded and it assumes no distribution"


_TESTS: dict[StatisticalTest, Callable[[Pairs, TestSettings], PairedTest]] = {
    StatisticalTest.T_TEST: lambda pairs, settings: paired_t_test(pairs, alpha=settings.alpha),
    StatisticalTest.BOOTSTRAP: lambda pairs, settings: bootstrap_test(
        pairs, alpha=settings.alpha, resamples=settings.n_bootstrap, seed=settings.seed
    ),
    StatisticalTest.PERMUTATION: lambda pairs, settings: paired_permutation_test(
        pairs, alpha=settings.alpha, resamples=settings.n_permutations, seed=settings.seed
    ),
    StatisticalTest.MCNEMAR: lambda pairs, settings: mcnemar_test(pairs, alpha=settings.alpha),
    StatisticalTest.WILCOXON: lambda pairs, settings: wilcoxon_test(pairs, alpha=settings.alpha),
}


def _winner(result: ComparisonResult, test: StatisticalTest) -> str:
    separated = result.delta != 0 if test is StatisticalTest.NONE else result.is_significant()
    if not separated or result.delta == 0 or result.higher_is_better is None:
        return TIE
    if result.test_result is not None and result.test_result.opposes_mean:
        return TIE
    first_is_better = (result.delta > 0) == result.higher_is_better
    return result.run_a_id if first_is_better else result.run_b_id


# --- the report -------------------------------------------------------------------------------------------------------


def _report(
    runs: Sequence[ScoredRun],
    results: list[ComparisonResult],
    best: dict[str, str | None],
    rankings: dict[str, Ranking],
    left_out: dict[str, str],
    settings: TestSettings,
) -> ComparisonReport:
    run_ids = [run.run_id for run in runs]
    matrices = {
        metric: WinLossMatrix.from_results(run_ids, metric, [r for r in results if r.metric_name == metric])
        for metric in best
    }
    metadata = ReportMetadata(
        statistical_test=settings.test.value,
        alpha=settings.alpha,
        n_runs=len(run_ids),
        n_metrics=len(best),
        multiple_comparison_correction=settings.correction,
        n_hypotheses_corrected=sum(result.corrected_p_value is not None for result in results),
        seed=settings.seed,
        runs={
            run.run_id: RunCounts(
                items=len(run.items.keys),
                attempts=run.attempts.made,
                failed_attempts=run.attempts.failed,
                caveats=run.caveats,
            )
            for run in runs
        },
        across=any(run.across for run in runs),
    )
    if left_out:
        metadata["left_out"] = left_out
    return ComparisonReport(
        run_ids=run_ids,
        metrics=list(best),
        pairwise_results=results,
        win_loss_matrices=matrices,
        best_run_per_metric=best,
        overall_best_run=_most_ahead(run_ids, matrices),
        metadata=metadata,
        rankings=rankings,
    )


def _rank(scores: Sequence[RunScores], higher_is_better: bool, settings: TestSettings) -> Ranking | None:
    """The places of the runs on the items that all share; None where those cannot tell how much chance moves them."""
    shared = restrict_to_shared(scores)
    clusters = next((run.clusters for run in shared if run.clusters is not None), None)
    if len(shared[0].item_ids if clusters is None else set(clusters)) < 2:
        return None
    if shared[0].aggregation is not None:
        return rank_corpora(
            shared[0].aggregation,
            {run.run_id: run.statistics for run in shared},
            clusters=clusters,
            higher_is_better=higher_is_better,
            level=1 - settings.alpha,
            seed=settings.seed,
        )
    return rank_runs(
        {run.run_id: run.values for run in shared},
        clusters=clusters,
        higher_is_better=higher_is_better,
        level=1 - settings.alpha,
        seed=settings.seed,
    )


def _parse_test(test: StatisticalTest | str) -> StatisticalTest:
    try:
        return StatisticalTest(test)
    except ValueError:
        known = [member.value for member in StatisticalTest]
        raise ConfigurationError(
            f"unknown statistical test {test!r}{nearest(str(test), known)}; known: {', '.join(known)}"
        ) from None


def _check_ids(run_ids: Sequence[str]) -> list[str]:
    if isinstance(run_ids, str):
        raise ConfigurationError(f"run_ids is a list of run ids, got the text {run_ids!r}")
    run_ids = list(run_ids)
    if len(run_ids) < 2:
        raise ConfigurationError(f"a comparison needs at least two runs, got {len(run_ids)}: {run_ids}")
    if doubled := next((run_id for run_id in run_ids if run_ids.count(run_id) > 1), None):
        raise ConfigurationError(f"run {doubled!r} is given twice; a run does not differ from itself")
    return run_ids


def _why_left_out(scores: Sequence[RunScores]) -> str | None:
    """Why a metric cannot be compared between every two of the runs, if so."""
    for run in scores:
        if not run.keys:
            return f"run {run.run_id!r} has no score of it"
    for one, other in itertools.combinations(scores, 2):
        if not set(one.keys) & set(other.keys):
            return f"runs {one.run_id!r} and {other.run_id!r} have no scored item in common"
    return None


def _best_run(scores: Sequence[RunScores], higher_is_better: bool) -> str | None:
    """The run with the best mean on the items that all share, or on its own ones if there are none; None for a tie."""
    shared = restrict_to_shared(scores)
    means = {run.run_id: run.mean for run in (shared if shared[0].item_ids else scores)}
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
