"""The mean of a column of scores, its standard error and its interval, against statsmodels and scipy."""

import math
import statistics
import subprocess
import sys

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from themis.core.intervals import Summary, student_interval, summarise, wilson_interval
from themis.exceptions import ConfigurationError, MetricError

SCORES = st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 6)), min_size=2, max_size=60)


def test_nothing_scored_has_no_mean():
    summary = summarise([])

    assert math.isnan(summary.mean)
    assert (summary.count, summary.stderr, summary.ci, summary.method) == (0, None, None, None)


def test_one_score_has_a_mean_but_no_interval():
    assert summarise([0.25]) == Summary(count=1, mean=0.25, stderr=None, ci=None, method=None)


def test_scores_of_zero_and_one_get_wilsons_interval():
    summary = summarise([1, 0, 1, 1, True, False, 1.0, 1])

    assert (summary.count, summary.mean, summary.method) == (8, 0.75, "wilson")
    assert summary.stderr == pytest.approx(math.sqrt(0.75 * 0.25 / 7))
    assert summary.ci == pytest.approx(proportion_confint(6, 8, method="wilson"), abs=1e-12)


def test_all_right_is_not_certainty():
    summary = summarise([1.0] * 10)

    assert (summary.mean, summary.stderr) == (1.0, 0.0)
    assert summary.ci == (pytest.approx(0.7224672), 1.0)


def test_graded_scores_get_students_interval():
    scores = [0.1, 0.4, 0.4, 0.9]
    summary = summarise(scores)

    assert summary.method == "student"
    assert summary.mean == pytest.approx(0.45)
    assert summary.stderr == pytest.approx(statistics.stdev(scores) / 2)
    assert summary.ci == pytest.approx(tuple(stats.ttest_1samp(scores, 0).confidence_interval()), abs=1e-12)


def test_equal_graded_scores_have_no_spread_invented_by_rounding():
    assert summarise([0.1] * 7) == Summary(count=7, mean=0.1, stderr=0.0, ci=(0.1, 0.1), method="student")


def test_wilson_agrees_with_statsmodels_everywhere():
    rng = np.random.default_rng(1)
    for _ in range(500):
        n = int(rng.integers(1, 5000))
        successes = int(rng.integers(0, n + 1))
        level = float(rng.uniform(0.5, 0.999))
        expected = proportion_confint(successes, n, alpha=1 - level, method="wilson")
        assert wilson_interval(successes, n, level) == pytest.approx(expected, abs=1e-9)


def test_student_agrees_with_scipy_everywhere():
    rng = np.random.default_rng(2)
    for _ in range(500):
        scores = rng.normal(rng.normal() * 100, 10 ** rng.uniform(-3, 3), size=rng.integers(2, 200))
        level = float(rng.uniform(0.5, 0.999))
        expected = stats.ttest_1samp(scores, 0).confidence_interval(level)
        assert student_interval(scores, level) == pytest.approx(tuple(expected), abs=1e-9, rel=1e-9)


def test_clustered_errors_agree_with_statsmodels_everywhere():
    rng = np.random.default_rng(3)
    for _ in range(100):
        n = int(rng.integers(4, 200))
        clusters = rng.integers(0, rng.integers(2, n), size=n)
        if np.unique(clusters).size < 2:
            continue
        scores = rng.normal(size=n) + rng.normal(size=n)[clusters]
        fit = sm.OLS(scores, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
        summary = summarise(scores, clusters=clusters)

        assert summary.method == "clustered"
        assert summary.stderr == pytest.approx(fit.bse[0], abs=1e-9)
        assert summary.ci == pytest.approx(tuple(fit.conf_int()[0]), abs=1e-9)


def test_clusters_of_one_item_change_nothing_but_the_name():
    scores = [0.2, 0.5, 0.9, 0.3]
    plain, clustered = summarise(scores), summarise(scores, clusters=["a", "b", "c", "d"])

    assert clustered.stderr == pytest.approx(plain.stderr, rel=1e-14)
    assert clustered.ci == pytest.approx(plain.ci, rel=1e-14)


def test_a_cluster_repeated_is_no_more_evidence():
    scores, clusters = [1.0, 0.0, 0.5, 0.25], ["a", "b", "c", "d"]

    once = summarise(scores, clusters=clusters)
    thrice = summarise(scores * 3, clusters=clusters * 3)

    assert thrice.stderr == pytest.approx(once.stderr)
    assert thrice.ci == pytest.approx(once.ci)


def test_one_cluster_has_no_interval():
    assert summarise([0.2, 0.4, 0.9], clusters=["chat"] * 3) == Summary(3, pytest.approx(0.5), None, None, None)


def test_clustered_accuracy_stays_within_its_range():
    scores = [1] * 9 + [0]
    summary = summarise(scores, clusters=[0, 0, 1, 1, 2, 2, 3, 3, 4, 4])

    assert summary.ci is not None
    assert 0 < summary.ci[0] < summary.ci[1] == 1.0


def test_clusters_that_are_all_right_are_not_certainty():
    summary = summarise([1] * 12, clusters=["a", "b", "c"] * 4)

    assert summary.ci == wilson_interval(3, 3)


def test_clusters_may_be_named_by_anything_that_can_be_a_key():
    scores = [0.1, 0.2, 0.4, 0.8]
    named = summarise(scores, clusters=[("chat", 1), "chat", ("chat", 1), "chat"])

    assert named == summarise(scores, clusters=np.array([7, 3, 7, 3]))


@pytest.mark.parametrize("bad", [math.nan, math.inf, None])
def test_what_is_not_a_finite_number_is_refused_and_counted(bad):
    with pytest.raises(MetricError, match="2 of 4 scores are not finite"):
        summarise([1.0, bad, 0.5, bad])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: summarise(["good"]), "scores must be numbers"),
        (lambda: summarise([[1.0, 0.0]]), "one flat sequence"),
        (lambda: summarise([1.0, 0.0], clusters=["a"]), "1 cluster labels for 2 values"),
        (lambda: summarise([1.0, 0.0], clusters=["a", None]), "1 of 2 cluster labels are missing"),
        (lambda: student_interval([1.0]), "at least two values, got 1"),
        (lambda: wilson_interval(3, 2), "3 of 2"),
    ],
)
def test_what_cannot_be_computed_is_refused(call, message):
    with pytest.raises(MetricError, match=message):
        call()


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_is_a_share(level):
    with pytest.raises(ConfigurationError, match=f"got {level}"):
        summarise([0.1, 0.2], level=level)


@settings(max_examples=60, deadline=None)
@given(scores=SCORES, shift=st.integers(-1000, 1000))
def test_shifting_scores_shifts_the_interval(scores, shift):
    summary, shifted = student_interval(scores), student_interval([score + shift for score in scores])

    assert shifted == pytest.approx((summary[0] + shift, summary[1] + shift), abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(scores=SCORES, level=st.floats(0.5, 0.98))
def test_more_confidence_is_a_wider_interval_around_the_mean(scores, level):
    narrow, wide = summarise(scores, level=level), summarise(scores, level=level + 0.01)

    assert narrow.ci is not None
    assert wide.ci is not None
    assert wide.ci[0] <= narrow.ci[0] <= narrow.mean <= narrow.ci[1] <= wide.ci[1]


GRADES = st.lists(st.floats(0, 1), min_size=2, max_size=30)


@given(scores=GRADES, groups=st.integers(2, 5), clustered=st.booleans())
def test_no_interval_leaves_the_range_of_the_scores(scores, groups, clustered):
    clusters = [place % groups for place in range(len(scores))] if clustered else None
    found = summarise(scores, clusters=clusters, score_range=(0.0, 1.0))

    assert 0.0 <= found.ci[0] <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.ci[1] <= 1.0


def test_a_range_cuts_the_interval_and_nothing_else():
    scores = [1.0] * 9 + [0.9]
    free, bounded = summarise(scores), summarise(scores, score_range=(0.0, 1.0))

    assert free.ci[1] > 1.0
    assert bounded.ci == (free.ci[0], 1.0)
    assert (bounded.mean, bounded.stderr, bounded.method) == (free.mean, free.stderr, free.method)
    assert summarise([0.0, 9.0, 0.5], score_range=(0.0, None)).ci[0] == 0.0
    assert summarise([0.5, 9.0, 0.5], score_range=(0.0, 1.0)) == summarise([0.5, 9.0, 0.5])


def test_importing_loads_neither_numpy_nor_scipy():
    code = "import sys, themis.core.intervals; print({'numpy', 'scipy'} & set(sys.modules))"

    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_summarising_never_loads_the_slow_half_of_scipy():
    code = (
        "import sys; from themis.core.intervals import summarise; summarise([0.1, 0.2, 0.4]); "
        "summarise([1, 0]); print('scipy.stats' in sys.modules)"
    )

    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
