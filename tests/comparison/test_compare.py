"""Stored runs are compared on the items they share, by tests that agree with scipy and statsmodels."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scored_runs import Number, scored_run
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

import themis
from themis.comparison import ComparisonEngine, StatisticalTest, compare_runs
from themis.comparison.scores import RunScores, align
from themis.core.codec import digest
from themis.core.entities import (
    GenerationRecord,
    ModelOutput,
    ModelSpec,
    PromptSpec,
    Result,
)
from themis.exceptions import ConfigurationError, MetricError, RunFailedError, StorageError
from themis.storage import ExperimentStorage
from themis.storage.runs import SCORED, Frame, Item, ScoreRow

GRADED = [0.1, 0.4, 0.35, 0.8, 0.7, 0.65, 0.2, 0.9, 0.5, 0.55]
BETTER = [0.3, 0.5, 0.30, 0.9, 0.9, 0.75, 0.4, 0.9, 0.7, 0.45]
EVERY_TEST = [test for test in StatisticalTest if test is not StatisticalTest.NONE]


def compared(tmp_path, *runs, test="t_test", **options):
    """Compares runs that are given as columns of scores, named a, b, c, ..."""
    names = [chr(ord("a") + number) for number in range(len(runs))]
    for name, scores in zip(names, runs, strict=True):
        scored_run(tmp_path, name, scores)
    return ComparisonEngine(storage_path=tmp_path, statistical_test=test, **options).compare_runs(names)


# --- the numbers ----------------------------------------------------------------------------------------------------


def test_a_t_test_agrees_with_scipy(tmp_path):
    (row,) = compared(tmp_path, GRADED, BETTER).pairwise_results

    expected = scipy.stats.ttest_rel(GRADED, BETTER)
    interval = expected.confidence_interval(0.95)
    assert row.test_result.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert row.test_result.p_value == pytest.approx(expected.pvalue, abs=1e-9)
    assert row.test_result.confidence_interval == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert row.interval == row.test_result.confidence_interval


def test_a_permutation_test_agrees_with_scipys_enumeration(tmp_path):
    (row,) = compared(tmp_path, GRADED, BETTER, test="permutation").pairwise_results

    expected = scipy.stats.permutation_test(
        (GRADED, BETTER), lambda a, b: np.mean(a) - np.mean(b), permutation_type="samples", n_resamples=np.inf
    )
    assert row.test_result.exact
    assert row.test_result.p_value == pytest.approx(expected.pvalue, abs=1e-9)
    assert row.interval_method == "hall"
    # Student's interval, and further where the differences are skewed.
    low, high = scipy.stats.ttest_rel(GRADED, BETTER).confidence_interval(0.95)
    assert row.interval[0] <= low + 1e-9
    assert high - 1e-9 <= row.interval[1] <= 0


def test_wilcoxons_test_agrees_with_scipy(tmp_path):
    first, second = [1, 2, 3, 4, 5, 6, 7], [2, 4, 6, 3, 9, 12, 14]
    (row,) = compared(tmp_path, first, second, test="wilcoxon").pairwise_results

    expected = scipy.stats.wilcoxon(first, second, method="exact")
    assert (row.test_result.statistic, row.test_result.p_value) == pytest.approx((expected.statistic, expected.pvalue))


def test_mcnemars_test_agrees_with_statsmodels(tmp_path):
    first = [1] * 20 + [1] * 9 + [0] * 2 + [0] * 9
    second = [1] * 20 + [0] * 9 + [1] * 2 + [0] * 9
    (row,) = compared(tmp_path, first, second, test="mcnemar").pairwise_results

    expected = mcnemar([[20, 9], [2, 9]], exact=True)
    assert (row.test_result.statistic, row.test_result.p_value) == pytest.approx((expected.statistic, expected.pvalue))


def test_four_runs_give_six_rows_with_holm_corrected_p_values(tmp_path):
    rng = np.random.default_rng(0)
    runs = [(rng.random(40) < share).astype(float).tolist() for share in (0.2, 0.4, 0.5, 0.9)]

    report = compared(tmp_path, *runs)

    rows = report.pairwise_results
    assert [(row.run_a_id, row.run_b_id) for row in rows] == list(itertools.combinations("abcd", 2))
    raw = [scipy.stats.ttest_rel(one, other).pvalue for one, other in itertools.combinations(runs, 2)]
    rejected, adjusted, *_ = multipletests(raw, alpha=0.05, method="holm")
    assert [row.corrected_p_value for row in rows] == pytest.approx(list(adjusted))
    assert [row.is_significant() for row in rows] == list(rejected)
    assert [row.corrected_significant for row in rows] == list(rejected)
    # Corrected, fewer rows are significant than each one for itself.
    assert sum(row.is_significant() for row in rows) < sum(row.test_result.significant for row in rows)
    assert report.metadata["n_hypotheses_corrected"] == 6
    assert report.metadata["multiple_comparison_correction"] == "holm-bonferroni"


def test_other_corrections_and_none_can_be_asked_for(tmp_path):
    runs = [[0, 0, 1, 0, 1, 0, 0, 1], [1, 0, 1, 1, 1, 1, 0, 1], [1, 1, 1, 1, 1, 1, 1, 1]]

    rows = compared(tmp_path, *runs, multiple_comparison_correction="benjamini-hochberg").pairwise_results

    raw = [row.test_result.p_value for row in rows]
    assert [row.corrected_p_value for row in rows] == pytest.approx(list(multipletests(raw, method="fdr_bh")[1]))
    engine = ComparisonEngine(storage_path=tmp_path, statistical_test="t_test", multiple_comparison_correction=None)
    uncorrected = engine.compare_runs(["a", "b", "c"])
    assert {row.corrected_p_value for row in uncorrected.pairwise_results} == {None}
    assert uncorrected.metadata["n_hypotheses_corrected"] == 0


def test_p_values_of_all_metrics_are_corrected_together(tmp_path):
    both = [Number("One"), Number("Two")]
    scored_run(tmp_path, "a", GRADED, metrics=both)
    scored_run(tmp_path, "b", BETTER, metrics=both)

    report = ComparisonEngine(storage_path=tmp_path, statistical_test="t_test").compare_runs(["a", "b"])

    single = scipy.stats.ttest_rel(GRADED, BETTER).pvalue
    assert [row.corrected_p_value for row in report.pairwise_results] == pytest.approx([2 * single, 2 * single])
    assert report.metrics == ["One", "Two"]


def test_a_bootstrap_has_an_interval_and_no_p_value(tmp_path):
    report = compared(tmp_path, GRADED, BETTER, test="bootstrap", n_bootstrap=2000)

    (row,) = report.pairwise_results
    assert (row.test_result.inference_mode, row.test_result.p_value, row.corrected_p_value) == ("ci_only", None, None)
    low, high = row.test_result.confidence_interval
    assert low < row.delta < high
    assert row.is_significant() == (not low <= 0 <= high)
    assert report.metadata["n_hypotheses_corrected"] == 0
    assert "CI-only" in row.summary()
    assert (row.test_result.resamples, row.test_result.seed) == (2000, 0)


def test_the_same_comparison_gives_the_same_numbers(tmp_path):
    first = compared(tmp_path, GRADED, BETTER, test="bootstrap")

    again = compare_runs(["a", "b"], storage_path=tmp_path, statistical_test="bootstrap")
    assert first.to_dict() == again.to_dict()


# --- pairing --------------------------------------------------------------------------------------------------------


def test_a_difference_is_the_first_run_minus_the_second(tmp_path):
    (row,) = compared(tmp_path, [1, 0, 0, 0], [1, 1, 1, 1]).pairwise_results

    assert (row.run_a_mean, row.run_b_mean, row.delta, row.delta_percent) == (0.25, 1.0, -0.75, -75.0)
    assert (row.run_a_samples, row.run_b_samples) == ([1, 0, 0, 0], [1, 1, 1, 1])


def test_a_percentage_of_zero_is_zero(tmp_path):
    (row,) = compared(tmp_path, [1, 0, 1], [0, 0, 0]).pairwise_results

    assert row.delta_percent == 0.0


def test_items_are_paired_by_id_in_whatever_order_they_were_asked(tmp_path):
    scored_run(tmp_path, "a", {"x": 1, "y": 0, "z": 1})
    scored_run(tmp_path, "b", {"z": 1, "only-b": 1, "y": 1, "x": 0})

    (row,) = compare_runs(["a", "b"], storage_path=tmp_path).pairwise_results

    assert (row.run_a_samples, row.run_b_samples) == ([1, 0, 1], [0, 1, 1])


def test_what_failed_is_no_score_and_is_not_compared(tmp_path):
    scored_run(tmp_path, "a", [1, 1, "no number", 1])
    scored_run(tmp_path, "b", [1, 0, 0, 1])

    (row,) = compare_runs(["a", "b"], storage_path=tmp_path).pairwise_results

    assert (row.run_a_mean, row.run_b_mean, len(row.run_a_samples)) == (1.0, pytest.approx(2 / 3), 3)


def test_attempts_are_averaged_inside_an_item_first(tmp_path):
    # Every attempt says the same, so three attempts must weigh no more than one.
    scored_run(tmp_path, "a", GRADED, num_samples=3, reducer="keep")
    scored_run(tmp_path, "b", BETTER)

    engine = ComparisonEngine(storage_path=tmp_path, statistical_test="t_test")
    (row,) = engine.compare_runs(["a", "b"]).pairwise_results

    assert len(row.run_a_samples) == len(GRADED)
    assert row.test_result.p_value == pytest.approx(scipy.stats.ttest_rel(GRADED, BETTER).pvalue)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_aligning_keeps_every_item_with_its_own_score(values, random):
    ids = [f"item {number}" for number in range(len(values))]
    kept = sorted(random.sample(ids, random.randint(1, len(ids))))
    whole = RunScores("a", "m", ids, ids, np.array(values), None)
    order = sorted(ids)
    part = RunScores("b", "m", kept, kept, np.array([-values[ids.index(name)] for name in kept]), None)

    shared = align(RunScores("a", "m", order, order, np.array([values[ids.index(name)] for name in order]), None), part)

    assert shared.a.tolist() == [values[ids.index(name)] for name in kept]
    assert (shared.a == -shared.b).all()
    assert align(whole, whole).n == len(values)


# --- clusters -------------------------------------------------------------------------------------------------------


def test_clusters_of_the_runs_are_kept_whole(tmp_path):
    first = [1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0]
    second = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    passages = [name for name in "pqrs" for _ in range(3)]
    scored_run(tmp_path, "a", first, clusters=passages)
    scored_run(tmp_path, "b", second, clusters=passages)

    engine = ComparisonEngine(storage_path=tmp_path, statistical_test="permutation")
    (row,) = engine.compare_runs(["a", "b"]).pairwise_results

    # Four clusters, of which three differ, two for a: of 8 signs all but the two extremes of 3 are as far from zero.
    assert (row.test_result.clusters, row.test_result.p_value) == (4, 1.0)


def test_one_runs_clusters_serve_for_both(tmp_path):
    scored_run(tmp_path, "a", GRADED, clusters=["p", "q"] * 5)
    scored_run(tmp_path, "b", BETTER, fields={"passage": ["p", "q"] * 5})

    (row,) = compare_runs(["b", "a"], storage_path=tmp_path).pairwise_results

    assert row.test_result.clusters == 2


def test_a_test_of_independent_items_refuses_clusters(tmp_path):
    scored_run(tmp_path, "a", [1, 0, 1, 1], clusters=["p", "p", "q", "q"])
    scored_run(tmp_path, "b", [0, 0, 1, 0], clusters=["p", "p", "q", "q"])

    with pytest.raises(MetricError, match=r"'mcnemar' takes items as independent.*2 clusters; use permutation"):
        compare_runs(["a", "b"], storage_path=tmp_path, statistical_test="mcnemar")


def test_runs_that_cluster_differently_are_not_compared(tmp_path):
    fields = {"chapter": ["p", "p", "q", "q"], "page": ["p", "q", "q", "q"]}
    scored_run(tmp_path, "a", [1, 0, 1, 1], fields=fields, cluster_field="chapter")
    scored_run(tmp_path, "b", [0, 0, 1, 0], fields=fields, cluster_field="page")

    with pytest.raises(MetricError, match="item '1' into different clusters"):
        compare_runs(["a", "b"], storage_path=tmp_path)


# --- verdicts that must not be reached ------------------------------------------------------------------------------


@pytest.mark.parametrize("test", EVERY_TEST)
def test_one_shared_item_is_never_significant(tmp_path, test):
    report = compared(tmp_path, [1], [0], test=test)

    (row,) = report.pairwise_results
    assert (row.delta, row.is_significant(), row.winner, row.test_result) == (1.0, False, "tie", None)
    assert "only one item is shared" in row.note
    assert report.overall_best_run is None


@pytest.mark.parametrize("test", EVERY_TEST)
def test_identical_runs_tie(tmp_path, test):
    report = compared(tmp_path, [1, 0, 1, 1, 0], [1, 0, 1, 1, 0], test=test)

    (row,) = report.pairwise_results
    assert (row.delta, row.is_significant(), row.winner) == (0.0, False, "tie")
    assert report.best_run_per_metric == {"Number": None}
    assert report.overall_best_run is None
    assert "no run is ahead" in report.summary()


def test_all_items_in_one_cluster_give_no_verdict(tmp_path):
    scored_run(tmp_path, "a", [1, 1, 1, 1], clusters=["p"] * 4)
    scored_run(tmp_path, "b", [0, 0, 0, 0], clusters=["p"] * 4)

    (row,) = compare_runs(["a", "b"], storage_path=tmp_path, statistical_test="permutation").pairwise_results

    assert (row.is_significant(), row.winner) == (False, "tie")
    assert "in one cluster" in row.note


def test_a_higher_mean_without_evidence_is_best_on_its_metric_but_not_overall(tmp_path):
    report = compared(tmp_path, [1, 0, 1, 0], [1, 0, 0, 0])

    assert report.best_run_per_metric == {"Number": "a"}
    assert report.overall_best_run is None
    assert "a (0.5000), but not better beyond chance" in report.summary()


def test_two_leaders_that_nothing_separates_leave_no_overall_best_run(tmp_path):
    good, bad = [1] * 19 + [0], [0] * 20
    report = compared(tmp_path, good, good[::-1], bad)

    matrix = report.win_loss_matrices["Number"]
    assert matrix.get_result("a", "c") == matrix.get_result("b", "c") == "win"
    assert matrix.get_result("a", "b") == "tie"
    assert report.overall_best_run is None


# --- which test -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "clusters", "name", "why"),
    [
        ([1, 0, 1, 1], [0, 0, 1, 0], None, "mcnemar", "every score is 0 or 1"),
        ([0.5, 0.2, 0.9, 0.1], [0.4, 0.3, 0.2, 0.2], None, "paired_permutation", "scores are graded"),
        ([1, 0, 1, 1], [0, 0, 1, 0], ["p", "p", "q", "q"], "paired_permutation", "2 clusters"),
    ],
)
def test_auto_takes_what_fits_and_says_why(tmp_path, first, second, clusters, name, why):
    scored_run(tmp_path, "a", first, clusters=clusters)
    scored_run(tmp_path, "b", second, clusters=clusters)

    report = compare_runs(["a", "b"], storage_path=tmp_path, statistical_test=StatisticalTest.AUTO)

    (row,) = report.pairwise_results
    assert row.test_result.test_name == name
    assert why in row.test_result.reason
    assert any(why in line for line in report.notes())


def test_without_a_test_the_better_mean_wins(tmp_path):
    report = compared(tmp_path, [1, 0, 1], [1, 0, 0], test="none")

    (row,) = report.pairwise_results
    assert (row.test_result, row.interval, row.winner, report.overall_best_run) == (None, None, "a", "a")


def test_a_smaller_value_wins_where_it_is_better(tmp_path):
    two_runs(tmp_path, Number("Cost", higher_is_better=False))

    report = compare_runs(["more", "less"], storage_path=tmp_path)

    assert report.pairwise_results[0].delta > 0
    assert report.pairwise_results[0].winner == report.best_run_per_metric["Cost"] == "less"
    assert report.pairwise_results[0].summary().startswith("Cost (lower is better): more ")


def test_a_measure_that_is_neither_good_nor_bad_has_no_winner(tmp_path):
    two_runs(tmp_path, Number("Length", higher_is_better=None))

    report = compare_runs(["more", "less"], storage_path=tmp_path)

    assert report.pairwise_results[0].is_significant()
    assert (report.pairwise_results[0].winner, report.best_run_per_metric["Length"]) == ("tie", None)
    assert "they differ, and neither is better" in report.summary(include_details=True)
    assert report.pairwise_results[0].to_dict()["higher_is_better"] is None


def test_a_metric_that_does_not_say_so_can_be_named_as_better_when_lower(tmp_path):
    two_runs(tmp_path, Number("UserCost"))

    def winner(**options):
        engine = ComparisonEngine(storage_path=tmp_path, **options)
        return engine.compare_runs(["more", "less"]).pairwise_results[0].winner

    assert winner() == "more"
    assert winner(lower_is_better=["user_cost"]) == "less"
    with pytest.raises(MetricError, match="did you mean 'UserCost'"):
        winner(lower_is_better=["UserCosts"])


def two_runs(store, metric):
    scored_run(store, "more", [120, 130, 125, 140, 150, 128, 133, 141], metrics=[metric])
    scored_run(store, "less", [20, 31, 26, 40, 49, 28, 35, 42], metrics=[metric])


def test_many_runs_are_ranked_with_the_places_they_may_have(tmp_path):
    rng = np.random.default_rng(1)
    report = compared(tmp_path, *[(rng.random(60) < share).astype(int).tolist() for share in (0.9, 0.1, 0.85)])

    places = {place.run: place for place in report.rankings["Number"].runs}
    assert (places["b"].best, places["b"].worst) == (3, 3)
    assert (places["a"].best, places["a"].worst) == (1, 2)
    assert [place["run_id"] for place in report.to_dict()["places"]["Number"]][-1] == "b"


# --- every kind of store and run -------------------------------------------------------------------------------------


def test_runs_are_compared_in_either_database(store_location):
    scored_run(store_location, "a", GRADED, num_samples=2, reducer="keep")
    scored_run(store_location, "b", BETTER)

    (row,) = compare_runs(["a", "b"], storage_path=store_location, statistical_test="t_test").pairwise_results

    assert row.test_result.p_value == pytest.approx(scipy.stats.ttest_rel(GRADED, BETTER).pvalue)


def memory_run(store, run_id, scores):
    """Ended memory tests, as their runner leaves them in the store."""
    frame = Frame(model=ModelSpec("agent", "agent"), prompt=PromptSpec("conversation", ""))
    store.start_run(run_id, kind="memory", config={"task": frame.to_config()})
    with store.open_run(run_id) as writer:
        writer.store_dataset(Item(n, test_id, digest(test_id), "{}") for n, test_id in enumerate(scores))
        evaluation = writer.open_evaluation("f" * 32, {})
        for n, (test_id, score) in enumerate(scores.items()):
            task = frame.task(test_id, {}, f"question of {test_id}")
            writer.commit_results(
                [Result(n, 0, digest(run_id, test_id), GenerationRecord(task, ModelOutput("yes"), None))]
            )
            writer.commit_scores(evaluation, [ScoreRow(n, "memory", 0, score, SCORED, None)])
    store.complete_run(run_id)


def test_memory_runs_are_compared_test_by_test(tmp_path):
    store = ExperimentStorage(tmp_path)
    memory_run(store, "forgetful", {"names 0": 0.0, "names 1": 0.5, "trivia 0": 1.0})
    memory_run(store, "attentive", {"names 0": 1.0, "names 1": 1.0, "trivia 0": 1.0})

    (row,) = ComparisonEngine(storage=store).compare_runs(["attentive", "forgetful"]).pairwise_results

    assert (row.metric_name, row.delta, len(row.run_a_samples)) == ("memory", 0.5, 3)


# --- what is refused ------------------------------------------------------------------------------------------------


def test_fewer_than_two_runs_are_refused(tmp_path):
    scored_run(tmp_path, "a", [1, 0])

    with pytest.raises(ConfigurationError, match="at least two runs, got 1"):
        compare_runs(["a"], storage_path=tmp_path)
    with pytest.raises(ConfigurationError, match="'a' is given twice"):
        compare_runs(["a", "a"], storage_path=tmp_path)
    with pytest.raises(ConfigurationError, match="list of run ids"):
        compare_runs("ab", storage_path=tmp_path)


def test_an_unknown_run_is_named_with_the_nearest(tmp_path):
    scored_run(tmp_path, "countdown-baseline", [1, 0])
    scored_run(tmp_path, "countdown-variant", [1, 0])

    with pytest.raises(StorageError, match=r"no run 'countdown-varient'.*did you mean 'countdown-variant'"):
        compare_runs(["countdown-baseline", "countdown-varient"], storage_path=tmp_path)


def test_a_store_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(StorageError, match="there is no store"):
        compare_runs(["a", "b"], storage_path=tmp_path / "nowhere")

    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(ConfigurationError, match="where the runs are"):
        ComparisonEngine()


def test_runs_without_a_shared_item_are_refused(tmp_path):
    scored_run(tmp_path, "a", {"x": 1, "y": 0})
    scored_run(tmp_path, "b", {"p": 1, "q": 0})

    with pytest.raises(MetricError, match=r"have no item in common: they have 2 and 2 items.*'x' and 'p'"):
        compare_runs(["a", "b"], storage_path=tmp_path)


def test_a_metric_without_scores_in_one_run_is_left_out_and_named(tmp_path):
    scored_run(tmp_path, "a", {"x": 1, "y": 0}, metrics=[Number(), OnlyOfX("Silent")])
    with pytest.raises(RunFailedError, match="Silent: ValueError: not x"):
        scored_run(tmp_path, "b", {"y": 1, "z": 0}, metrics=[Number(), OnlyOfX("Silent")])

    report = compare_runs(["a", "b"], storage_path=tmp_path)

    assert report.metrics == ["Number"]
    assert report.left_out() == ["Left out: Silent: run 'b' has no score of it"]
    assert report.left_out()[0] in report.summary()
    with pytest.raises(MetricError, match="no item with a score of Silent in common"):
        compare_runs(["a", "b"], storage_path=tmp_path, metrics=["Silent"])


def test_runs_of_which_nothing_can_be_compared_are_refused(tmp_path):
    for run_id, scores in (("a", {"x": 1, "y": "no number"}), ("b", {"x": "no number", "y": 1})):
        scored_run(tmp_path, run_id, scores, metrics=[Number("One"), Number("Two")])

    with pytest.raises(
        MetricError, match="nothing can be compared: One: runs 'a' and 'b' have no scored item in common"
    ):
        compare_runs(["a", "b"], storage_path=tmp_path)


class OnlyOfX(Number):
    """Scores the item x, and fails on every other."""

    def compute(self, *, prediction, references, metadata=None):
        if metadata["sample_id"] != "x":
            raise ValueError("not x")
        return super().compute(prediction=prediction, references=references)


def test_runs_without_a_shared_metric_are_refused(tmp_path):
    scored_run(tmp_path, "a", [1, 0], metrics=[Number("One")])
    scored_run(tmp_path, "b", [1, 0], metrics=[Number("Two")])

    with pytest.raises(MetricError, match="no metric in common: 'a' has One; 'b' has Two"):
        compare_runs(["a", "b"], storage_path=tmp_path)


def test_a_run_in_which_every_call_failed_says_so(tmp_path):
    scored_run(tmp_path, "a", [1, 0])
    rows = [{"id": "0", "said": "1"}, {"id": "1", "said": "0"}]
    # A fake model that should answer with the reference fails where there is none.
    with pytest.raises(RunFailedError):
        themis.evaluate(rows, model="fake/perfect", prompt="{said}", metrics=[Number()], run_id="b", storage=tmp_path)

    with pytest.raises(MetricError, match="'b' has no scores: 0 of its 2 samples are answered, 2 failed"):
        compare_runs(["a", "b"], storage_path=tmp_path)


def test_a_metric_is_found_in_any_spelling_and_an_unknown_one_is_named_with_the_nearest(tmp_path):
    scored_run(tmp_path, "a", [1, 0, 1], metrics=[Number("ExactMatch")])
    scored_run(tmp_path, "b", [1, 0, 0], metrics=[Number("ExactMatch")])

    assert compare_runs(["a", "b"], storage_path=tmp_path, metrics=["exact_match"]).metrics == ["ExactMatch"]
    with pytest.raises(MetricError, match="did you mean 'ExactMatch'"):
        compare_runs(["a", "b"], storage_path=tmp_path, metrics=["ExactMacth"])


def test_unknown_options_are_refused(tmp_path):
    scored_run(tmp_path, "a", [1, 0, 1])

    with pytest.raises(ConfigurationError, match="did you mean 'bootstrap'"):
        ComparisonEngine(storage_path=tmp_path, statistical_test="bootstrp")
    with pytest.raises(ConfigurationError, match="unknown multiple_comparison_correction 'bonferroni'"):
        ComparisonEngine(storage_path=tmp_path, multiple_comparison_correction="bonferroni")
    with pytest.raises(ConfigurationError, match="alpha lies between 0 and 1"):
        ComparisonEngine(storage_path=tmp_path, alpha=5)


# --- reports --------------------------------------------------------------------------------------------------------


def test_a_report_as_json_has_the_documented_keys(tmp_path):
    report = compared(tmp_path, GRADED, BETTER, [0.5] * 10, test="permutation")

    payload = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    documented = {"run_ids", "metrics", "best_run_per_metric", "overall_best_run", "pairwise_results"}
    assert documented | {"win_loss_summary", "metadata"} <= payload.keys()
    assert list(payload["pairwise_results"][0])[:12] == [
        *("metric", "run_a", "run_b", "run_a_mean", "run_b_mean", "delta", "delta_percent", "winner", "significant"),
        *("p_value", "corrected_significant", "corrected_p_value"),
    ]
    assert payload["win_loss_summary"]["Number"]["rankings"][0].keys() == {"run_id", "wins", "losses", "ties"}
    assert payload["metadata"]["statistical_test"] == "permutation"
    assert payload["metadata"]["n_runs"] == 3


def test_a_summary_names_runs_metrics_and_the_best(tmp_path):
    report = compared(tmp_path, GRADED, BETTER)

    text = report.summary()
    assert text.splitlines()[0] == "=" * 80
    assert "COMPARISON REPORT" in text
    assert "Comparing 2 runs across 1 metrics" in text
    assert "row against column" not in text
    detailed = report.summary(include_details=True)
    assert "Number: row against column" in detailed
    assert report.pairwise_results[0].summary() in detailed
    assert report.get_comparison("b", "a", "Number") is report.pairwise_results[0]
    assert report.get_comparison("a", "b", "Other") is None


def test_wins_and_losses_mirror_each_other(tmp_path):
    report = compared(tmp_path, [1] * 20, [0] * 20, [1, 0] * 10, test="permutation")

    matrix = report.win_loss_matrices["Number"]
    assert matrix.matrix == [["-", "win", "win"], ["loss", "-", "loss"], ["loss", "win", "-"]]
    assert matrix.rank_runs() == [("a", 2, 0, 0), ("c", 1, 1, 0), ("b", 0, 2, 0)]
    assert report.overall_best_run == "a"
    with pytest.raises(MetricError, match="'d' is not in this comparison"):
        matrix.get_result("a", "d")


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["themis.comparison", "themis.experiment.comparison"])
def test_the_names_can_be_imported_first_from_either_place(module):
    program = f"from {module} import compare_runs, StatisticalTest, ComparisonEngine; print(compare_runs.__module__)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "themis.comparison.engine"


def test_looking_at_the_package_imports_nothing_heavy():
    program = "import sys, themis.comparison; print([name for name in ('numpy', 'sqlalchemy') if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
