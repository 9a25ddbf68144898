"""Runs compared by numbers that are no means: items are swapped, resampled and left out whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import themis
from themis.comparison import Gate, compare_runs
from themis.comparison.corpus import PairedCorpora
from themis.comparison.power import plan_comparison
from themis.comparison.ranking import rank_corpora
from themis.comparison.sequential import StopWhenDecided
from themis.core.entities import GenerationRecord, ModelOutput
from themis.exceptions import MetricError
from themis.interfaces import StatelessTaskExecutor


class Told(StatelessTaskExecutor):
    """Answers the n-th row with the n-th of the answers that it was made with."""

    instant = True

    def __init__(self, *, answers):
        self.answers = answers

    def execute(self, task):
        return GenerationRecord(task, ModelOutput(self.answers[int(task.prompt.context["n"])]), None)


@pytest.fixture
def classify(tmp_path):
    """Makes a run that answers rows, which alternate between three classes, with a share of right answers."""
    themis.register_provider("told", Told)

    def run(run_id, share, seed, n=90, **options):
        rng = np.random.default_rng(seed)
        expected = ["abc"[place % 3] for place in range(n)]
        answers = [right if rng.random() < share else str(rng.choice(list("abcd"))) for right in expected]
        rows = [
            {"id": str(place), "n": str(place), "answer": right, "passage": str(place // 3)}
            for place, right in enumerate(expected)
        ]
        metrics = ["macro_f1", "mcc", "accuracy"]
        return themis.evaluate(rows, model="told/it", provider_options={"answers": answers}, prompt="{n}", metrics=metrics,
                               run_id=run_id, storage=tmp_path, progress=False, **options)  # fmt: skip

    run.storage = tmp_path
    return run


def drawn(seed: int, n: int, share: float):
    rng = np.random.default_rng(seed)
    return [[["ab"[place % 2], "ab"[place % 2] if rng.random() < share else "ba"[place % 2]]] for place in range(n)]


def test_few_items_are_swapped_in_all_ways():
    a, b = drawn(1, 7, 0.9), drawn(2, 7, 0.4)
    observed = abs(PairedCorpora.build("macro_f1", a, b).difference)
    reached = [
        abs(PairedCorpora.build("macro_f1", *map(list, zip(*made, strict=True))).difference) >= observed - 1e-12
        for made in itertools.product(*([(one, other), (other, one)] for one, other in zip(a, b, strict=True)))
    ]

    assert PairedCorpora.build("macro_f1", a, b).permute(100, 0) == (pytest.approx(np.mean(reached)), True)


@pytest.mark.parametrize("aggregation", ["macro_f1", "mcc", "kappa"])
def test_comparing_the_other_way_round_mirrors(aggregation):
    a, b = drawn(3, 40, 0.9), drawn(4, 40, 0.6)
    there, back = PairedCorpora.build(aggregation, a, b), PairedCorpora.build(aggregation, b, a)

    assert there.difference == pytest.approx(-back.difference)
    assert there.interval(0.05) == pytest.approx([-end for end in reversed(back.interval(0.05))])
    assert there.permute(500, 0) == back.permute(500, 0)
    assert there.bootstrap_interval(0.05, 500, 0) == pytest.approx(
        [-end for end in reversed(back.bootstrap_interval(0.05, 500, 0))], abs=0.01
    )


def test_clusters_are_swapped_whole():
    a, b = drawn(5, 12, 0.95), drawn(6, 12, 0.3)
    tripled = [[one for one in run for _ in range(3)] for run in (a, b)]
    alone = PairedCorpora.build("macro_f1", a, b)
    clustered = PairedCorpora.build("macro_f1", *tripled, [place // 3 for place in range(36)])

    assert clustered.units == 12
    assert clustered.permute(100, 0) == alone.permute(100, 0)
    assert clustered.interval(0.05) == pytest.approx(alone.interval(0.05))


def test_runs_that_do_not_differ_are_seldom_told_apart():
    alarms = 0
    for seed in range(120):
        a, b = drawn(2 * seed, 40, 0.75), drawn(2 * seed + 1, 40, 0.75)
        alarms += PairedCorpora.build("macro_f1", a, b).permute(199, 0)[0] <= 0.05
    assert alarms <= 13


def test_stored_runs_are_compared_corrected_and_ranked(classify):
    reports = [
        classify(run_id, share, seed) for run_id, share, seed in (("good", 0.9, 1), ("fair", 0.6, 2), ("twin", 0.9, 3))
    ]

    report = compare_runs(["good", "fair", "twin"], storage_path=classify.storage, statistical_test="auto")

    results = {(one.metric_name, one.run_a_id, one.run_b_id): one for one in report.pairwise_results}
    found = results["macro_f1", "good", "fair"]
    assert found.run_a_mean == pytest.approx(reports[0].metric("macro_f1").mean)
    assert found.delta == pytest.approx(reports[0].metric("macro_f1").mean - reports[1].metric("macro_f1").mean)
    assert (found.winner, found.test_result.test_name, found.interval_method) == (
        "good",
        "paired_permutation",
        "jackknife",
    )
    assert found.interval[0] < found.delta < found.interval[1]
    assert found.corrected_p_value >= found.test_result.p_value
    assert results["mcc", "good", "twin"].winner == "tie"
    # Accuracy is a mean: what is known of means applies.
    assert results["accuracy", "good", "fair"].test_result.test_name == "mcnemar"
    ranking = report.rankings["macro_f1"]
    assert {place.run: place.mean for place in ranking.runs}["fair"] == pytest.approx(
        reports[1].metric("macro_f1").mean
    )
    assert ranking.runs[-1].run == "fair"
    assert report.best_run_per_metric["macro_f1"] in ("good", "twin")


def test_a_bootstrap_gives_an_interval_and_tests_of_means_are_refused(classify):
    classify("good", 0.9, 1)
    classify("fair", 0.6, 2)

    given = {"storage_path": classify.storage, "metrics": ["mcc"]}
    (result,) = compare_runs(["good", "fair"], statistical_test="bootstrap", **given).pairwise_results
    assert result.winner == "good"
    assert result.interval[0] < result.delta < result.interval[1]
    for test in ("t_test", "mcnemar", "wilcoxon"):
        with pytest.raises(MetricError, match="this metric's number is none; use auto, permutation or bootstrap"):
            compare_runs(["good", "fair"], statistical_test=test, **given)


def test_whole_clusters_are_compared(classify):
    classify("good", 0.9, 1, cluster_field="passage")
    classify("fair", 0.6, 2, cluster_field="passage")

    (result,) = compare_runs(
        ["good", "fair"], storage_path=classify.storage, metrics=["macro_f1"], statistical_test="auto"
    ).pairwise_results

    assert (result.test_result.n, result.test_result.clusters, result.winner) == (90, 30, "good")


def test_a_gate_goes_by_the_number_itself(classify):
    candidate, baseline = classify("good", 0.9, 1), classify("fair", 0.6, 2)

    verdict = Gate(baseline="fair", metric="macro_f1", significant=True).judge("good", storage_path=classify.storage)

    assert verdict.passed
    assert verdict.candidate_mean == pytest.approx(candidate.metric("macro_f1").mean)
    assert verdict.delta == pytest.approx(candidate.metric("macro_f1").mean - baseline.metric("macro_f1").mean)


def test_what_knows_means_only_says_so(classify):
    classify("fair", 0.6, 2)

    with pytest.raises(MetricError, match="a plan of items goes by the mean of items' scores, and macro_f1 is none"):
        plan_comparison("fair", "macro_f1", storage_path=classify.storage, difference=0.05)
    with pytest.raises(MetricError, match="stopping early goes by the mean"):
        StopWhenDecided("fair", "mcc", storage_path=classify.storage)


def test_a_lower_number_wins_where_less_is_better():
    runs = {"near": [[[1, 10]], [[2, 10]], [[1, 12]], [[0, 9]]], "far": [[[8, 10]], [[9, 10]], [[9, 12]], [[8, 9]]]}

    ranking = rank_corpora("ter", runs, higher_is_better=False)

    assert [place.run for place in ranking.runs] == ["near", "far"]
    assert ranking.runs[0].mean == pytest.approx(4 / 41)
