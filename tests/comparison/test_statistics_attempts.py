"""pass@k, pass^k and the agreement of attempts, against their definitions."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from themis.comparison.attempts import attempt_agreement, pass_at_k, pass_hat_k
from themis.core.intervals import summarise
from themis.exceptions import ConfigurationError, MetricError


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_both_are_the_mean_over_every_choice_of_k_attempts(k):
    outcomes = [[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1, 1, 1, 0, 1]]
    at_least_one = [np.mean([any(chosen) for chosen in combinations(item, k)]) for item in outcomes]
    every_one = [np.mean([all(chosen) for chosen in combinations(item, k)]) for item in outcomes]
    successes, attempts = [sum(item) for item in outcomes], [len(item) for item in outcomes]

    assert pass_at_k(successes, attempts, k).estimate == pytest.approx(np.mean(at_least_one), abs=1e-12)
    assert pass_hat_k(successes, attempts, k).estimate == pytest.approx(np.mean(every_one), abs=1e-12)


def test_many_attempts_are_counted_without_overflow():
    exact = 1 - math.comb(1990, 100) / math.comb(2000, 100)

    assert pass_at_k([10], 2000, 100).estimate == pytest.approx(exact, abs=1e-12)


def test_the_interval_is_over_items():
    estimate = pass_at_k([3, 0, 10, 5, 7], 10, 2)
    expected = summarise([1 - math.comb(10 - c, 2) / math.comb(10, 2) for c in (3, 0, 10, 5, 7)])

    assert estimate.items == 5
    assert estimate.stderr == pytest.approx(expected.stderr)
    assert estimate.ci == pytest.approx((max(expected.ci[0], 0), min(expected.ci[1], 1)))
    assert 0 <= estimate.ci[0] <= estimate.estimate <= estimate.ci[1] <= 1


def test_one_attempt_an_item_is_accuracy_with_wilsons_interval():
    estimate = pass_at_k([1, 0, 1, 1], 1, 1)

    assert (estimate.estimate, estimate.method, estimate.ci) == (0.75, "wilson", summarise([1, 0, 1, 1]).ci)


def test_items_of_one_source_are_clustered():
    successes = [4, 4, 0, 0, 2, 2]
    estimate = pass_at_k(successes, 4, 2, clusters=["a", "a", "b", "b", "c", "c"])

    assert estimate.method == "clustered"
    assert estimate.stderr > pass_at_k(successes, 4, 2).stderr


@settings(max_examples=60, deadline=None)
@given(counts=st.lists(st.integers(0, 12), min_size=2, max_size=20))
def test_more_attempts_help_to_pass_once_and_hinder_passing_always(counts):
    once = [pass_at_k(counts, 12, k).estimate for k in range(1, 13)]
    always = [pass_hat_k(counts, 12, k).estimate for k in range(1, 13)]

    assert once[0] == pytest.approx(always[0]) == pytest.approx(np.mean(counts) / 12)
    assert all(np.diff(once) >= -1e-12)
    assert all(np.diff(always) <= 1e-12)


def test_the_estimate_is_unbiased():
    rng = np.random.default_rng(1)
    chance = rng.random(400)
    truth = np.mean(1 - (1 - chance) ** 3)
    estimates = [pass_at_k(rng.binomial(6, chance), 6, 3).estimate for _ in range(300)]

    assert np.mean(estimates) == pytest.approx(truth, abs=4 * np.std(estimates) / math.sqrt(300))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pass_at_k([1, 2], [4, 2], 3), "1 of 2 items have fewer"),
        (lambda: pass_at_k([5, 2], 4, 1), "1 of 2 items do not have"),
        (lambda: pass_at_k([0.5, 2], 4, 1), "1 of 2 items do not have"),
        (lambda: pass_at_k([], 4, 1), "0 items"),
        (lambda: pass_hat_k([1, 2], [4], 1), "one number an item"),
        (lambda: attempt_agreement([[1, 0]]), "at least two items"),
        (lambda: attempt_agreement([[1], [0], [1]]), "an item with two"),
        (lambda: attempt_agreement([[1, 0], []]), "at least two items"),
        (lambda: attempt_agreement([[1, math.nan], [0, 1]]), "1 of 2 scores"),
    ],
)
def test_what_cannot_be_estimated_is_refused(call, message):
    with pytest.raises(MetricError, match=message):
        call()


def test_k_is_at_least_one():
    with pytest.raises(ConfigurationError, match="got 0"):
        pass_at_k([1, 2], 4, 0)


def test_a_single_item_has_an_estimate_but_no_interval():
    estimate = pass_hat_k([3], 4, 2)

    assert (estimate.estimate, estimate.ci) == (0.5, None)


def test_agreement_of_the_textbook_table():
    """Six targets, four judges: 0.17 with an interval from -0.13 to 0.72 (Shrout and Fleiss 1979)."""
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    agreement = attempt_agreement(table)

    assert agreement.icc == pytest.approx(0.1657, abs=1e-4)
    assert agreement.ci == pytest.approx((-0.1329, 0.7226), abs=1e-4)
    assert (agreement.items, agreement.attempts) == (6, 24)


def test_agreement_follows_from_the_f_ratio_of_equal_groups():
    rng = np.random.default_rng(2)
    for _ in range(100):
        scores = rng.normal(size=(12, 5)) + rng.normal(size=(12, 1)) * rng.uniform(0, 2)
        ratio = stats.f_oneway(*scores).statistic
        assert attempt_agreement(scores).icc == pytest.approx((ratio - 1) / (ratio + 4), abs=1e-9)


def test_the_two_variances_are_found_again():
    rng = np.random.default_rng(3)
    scores = [rng.normal(mean, 2.0, size=rng.integers(1, 9)) for mean in rng.normal(0, 3.0, size=4000)]
    agreement = attempt_agreement(scores)

    assert agreement.within == pytest.approx(4.0, rel=0.05)
    assert agreement.between == pytest.approx(9.0, rel=0.05)
    assert agreement.ci[0] < 9 / 13 < agreement.ci[1]


def test_attempts_that_always_agree_leave_nothing_within():
    agreement = attempt_agreement([[1, 1, 1], [0, 0, 0], [0.3, 0.3]])

    assert agreement.icc == pytest.approx(1.0)
    assert agreement.ci is None


def test_scores_that_do_not_vary_have_no_agreement():
    agreement = attempt_agreement([[1, 1], [1, 1]])

    assert (agreement.icc, agreement.ci) == (None, None)
    assert "all 4 scores are 1" in agreement.note
