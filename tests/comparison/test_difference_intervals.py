"""The interval that a difference is shown with: which one, and that it goes with the test."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.comparison.engine import StatisticalTest, TestSettings, difference_with_interval, run_test
from themis.comparison.ranking import rank_runs
from themis.comparison.statistics import Pairs, bootstrap_test, mcnemar_test, pair, summarise_difference

GRADES = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])
COLUMNS = st.lists(st.tuples(GRADES, GRADES), min_size=3, max_size=30)


def pairs_of(a, b, clusters=None, score_range=(0.0, 1.0)) -> Pairs:
    return Pairs(np.asarray(a, dtype=float), np.asarray(b, dtype=float), clusters, score_range)


def test_the_scores_decide_which_interval():
    right, graded = [1, 0, 1, 1], [0.2, 0.4, 0.9, 1.0]

    assert summarise_difference(pairs_of(right, [0, 0, 1, 0])).method == "tango"
    assert summarise_difference(pairs_of(right, [0, 0, 1, 0], clusters=[1, 1, 2, 2])).method == "clustered"
    assert summarise_difference(pairs_of(graded, right)).method == "beta"
    assert summarise_difference(pairs_of(graded, right, score_range=None)).method == "hall"


def test_right_and_wrong_in_clusters_are_bounded_without_being_told():
    free = summarise_difference(pairs_of([1, 1, 1, 1], [0, 0, 0, 0], clusters=[1, 1, 2, 2], score_range=None))

    assert -1 < free.ci[0] < free.ci[1] == 1


def test_items_that_all_differ_alike_are_no_certainty():
    found = summarise_difference(pairs_of([0.9] * 6, [0.4] * 6))

    assert found.ci[0] < 0.4
    assert found.ci[1] > 0.6
    assert summarise_difference(pairs_of([20] * 6, [10] * 6, score_range=None)).ci is None


@settings(max_examples=80, deadline=None)
@given(columns=COLUMNS, ranged=st.booleans(), clustered=st.booleans())
def test_verdict_and_interval_never_disagree_about_zero(columns, ranged, clustered):
    a, b = zip(*columns, strict=True)
    clusters = [place // 2 for place in range(len(a))] if clustered else None
    pairs = pairs_of(a, b, clusters, (0.0, 1.0) if ranged else None)
    verdict = run_test(pairs, TestSettings(test=StatisticalTest.AUTO))
    interval = difference_with_interval(pairs, verdict).ci

    assert interval is not None
    assert -1 <= interval[0] <= pairs.difference + 1e-12 or not ranged
    if verdict.significant:
        assert not interval[0] < 0 < interval[1]
    else:
        assert interval[0] <= 0 <= interval[1]


@settings(max_examples=60, deadline=None)
@given(columns=COLUMNS, clustered=st.booleans())
def test_swapping_the_runs_mirrors_the_interval(columns, clustered):
    a, b = zip(*columns, strict=True)
    clusters = [place // 2 for place in range(len(a))] if clustered else None
    forth, back = summarise_difference(pairs_of(a, b, clusters)), summarise_difference(pairs_of(b, a, clusters))

    assert back.ci == pytest.approx((-forth.ci[1], -forth.ci[0]), abs=1e-6)
    assert forth.ci[1] - forth.ci[0] > 0.01
    assert -1 <= forth.ci[0] < forth.ci[1] <= 1


def test_tangos_interval_excludes_zero_wherever_the_exact_test_does():
    for differing in (*range(1, 20), 37, 80):
        for only_a in range(differing + 1):
            a, b = [1] * only_a + [0] * (differing - only_a), [0] * only_a + [1] * (differing - only_a)
            test = mcnemar_test(pair([*a, 1], [*b, 1]))
            # Not moved to zero, but clear of it.
            assert not test.significant or test.ci[0] > 0 or test.ci[1] < 0


def test_a_bootstrap_of_few_items_says_that_it_was_widened():
    few, many = (bootstrap_test([1.0, 0.5, 0.75] * size, [0.25, 0.5, 0.7] * size) for size in (4, 12))

    assert "resamples of 12 items vary too little" in few.note
    assert many.note == ""


@pytest.mark.parametrize("n", [5, 30])
def test_places_of_equal_runs_are_left_open(n):
    rng = np.random.default_rng(8)
    held = 0
    for seed in range(150):
        scores = rng.normal(size=(n, 1)) + rng.normal(size=(n, 5))
        places = rank_runs(dict(zip("abcde", scores.T, strict=True)), resamples=100, seed=seed).runs
        held += all(place.best == 1 and place.worst == 5 for place in places)

    assert held >= 0.9 * 150


def test_the_difference_covers_where_a_tenth_of_the_items_gain():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(300):
        gains = np.where(rng.random(30) < 0.1, rng.random(30), 0.0)
        low, high = summarise_difference(pairs_of(gains, np.zeros(30))).ci
        covered += low <= 0.05 <= high

    # Student's interval holds in 84 of 100.
    assert covered >= 0.93 * 300
