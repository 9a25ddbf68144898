"""What must hold for any two runs: mirror images, shifts, seeds, and uniform p-values where nothing differs."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from themis.comparison.effects import paired_effects, proportion_effects
from themis.comparison.ranking import rank_runs
from themis.comparison.statistics import (
    benjamini_hochberg,
    bootstrap_test,
    holm,
    mcnemar_test,
    paired_permutation_test,
    paired_t_test,
    wilcoxon_test,
)

GRADES = st.integers(0, 20).map(lambda grade: grade / 20)
PAIRS = st.lists(st.tuples(GRADES, GRADES), min_size=2, max_size=40).map(lambda pairs: tuple(zip(*pairs, strict=True)))
TESTS = [paired_t_test, paired_permutation_test, bootstrap_test, wilcoxon_test]
P_VALUES = st.lists(st.floats(0, 1), max_size=30)


def quick(test):
    """The bootstrap with few resamples, any other test as it is."""
    return (lambda a, b, **options: bootstrap_test(a, b, resamples=400, **options)) if test is bootstrap_test else test


@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS)
def test_swapping_the_runs_mirrors_the_result(test, pairs):
    a, b = pairs
    forth, back = quick(test)(a, b), quick(test)(b, a)

    assert back.difference == pytest.approx(-forth.difference, abs=1e-15)
    assert back.p_value == forth.p_value
    assert back.significant == forth.significant
    symmetric = sorted(np.round(np.subtract(a, b), 9)) == sorted(np.round(np.subtract(b, a), 9))
    # Resamples of a symmetric sample have no orientation to mirror.
    if forth.ci is not None and not (symmetric and test is bootstrap_test):
        assert back.ci == pytest.approx((-forth.ci[1], -forth.ci[0]), abs=1e-12)


@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS, shift=st.integers(-50, 50))
def test_shifting_both_runs_changes_nothing(test, pairs, shift):
    a, b = pairs
    here = quick(test)(a, b)
    there = quick(test)([score + shift for score in a], [score + shift for score in b])

    assert there.difference == pytest.approx(here.difference, abs=1e-12)
    assert there.p_value == pytest.approx(here.p_value, abs=1e-9)
    assert there.significant == here.significant


@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=40, deadline=None)
@given(pairs=PAIRS, order=st.randoms(use_true_random=False))
def test_the_order_of_the_items_does_not_matter(test, pairs, order):
    shuffled = list(zip(*pairs, strict=True))
    order.shuffle(shuffled)
    a, b = zip(*shuffled, strict=True)
    here, there = quick(test)(*pairs), quick(test)(a, b)

    assert there.p_value == pytest.approx(here.p_value, abs=1e-12)
    assert there.significant == here.significant


@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS)
def test_no_test_calls_significant_what_no_signs_could_make_so(pairs):
    """Five differing items can all favour one run by chance once in sixteen times."""
    a, b = pairs
    if np.count_nonzero(np.subtract(a, b)) <= 5:
        for test in (paired_permutation_test, quick(bootstrap_test), wilcoxon_test):
            assert not test(a, b).significant


@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS)
def test_a_bootstrap_is_significant_exactly_when_its_interval_excludes_zero(pairs):
    result = bootstrap_test(*pairs, resamples=200)

    assert result.p_value is None
    assert result.ci is not None
    assert result.ci[0] <= result.ci[1]
    assert result.significant == (result.ci[0] > 0 or result.ci[1] < 0)


@settings(max_examples=80, deadline=None)
@given(p_values=P_VALUES)
def test_corrections_keep_the_order_and_never_make_a_p_value_smaller(p_values):
    for adjusted in (holm(p_values), benjamini_hochberg(p_values)):
        assert len(adjusted) == len(p_values)
        assert all(p - 1e-12 <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
        order = np.argsort(p_values, kind="stable")
        assert all(np.diff(np.array(adjusted)[order]) >= 0)
    assert all(h >= b - 1e-12 for h, b in zip(holm(p_values), benjamini_hochberg(p_values), strict=True))


@settings(max_examples=40, deadline=None)
@given(pairs=PAIRS)
def test_wins_and_losses_change_places_with_the_runs(pairs):
    a, b = pairs
    forth, back = paired_effects(a, b), paired_effects(b, a)

    assert (forth.wins, forth.losses, forth.ties) == (back.losses, back.wins, back.ties)
    assert forth.win_rate == pytest.approx(1 - back.win_rate)


def test_swapping_the_runs_mirrors_risk_difference_and_odds():
    a, b = [1, 1, 1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 1, 1, 1]
    forth, back = proportion_effects(a, b), proportion_effects(b, a)

    low, high = forth.risk_difference_ci
    assert back.risk_difference_ci == pytest.approx((-high, -low))
    assert back.odds_ratio == pytest.approx(1 / forth.odds_ratio)
    assert back.odds_ratio_ci == pytest.approx((1 / forth.odds_ratio_ci[1], 1 / forth.odds_ratio_ci[0]))


@pytest.mark.parametrize("n", [60, 6000])
def test_a_seed_repeats_everything_and_another_seed_does_not(n):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, n))
    for test in (paired_permutation_test, bootstrap_test):
        first, second, other = (test(a, b, seed=seed, resamples=500) for seed in (3, 3, 4))
        assert first == second
        assert first != other
        assert (first.seed, first.resamples) == (3, 500)


def test_the_global_generators_are_left_alone():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 80))
    before = random.getstate(), np.random.get_state()[1].tolist()

    for test in TESTS:
        test(a, b)
    bootstrap_test(a, b, clusters=np.arange(80) // 4)
    rank_runs({"a": a, "b": b})

    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]


@pytest.mark.parametrize(
    ("test", "options"),
    [
        (paired_t_test, {}),
        (paired_t_test, {"clusters": np.arange(80) // 2}),
        (paired_permutation_test, {"resamples": 499}),
        (paired_permutation_test, {"resamples": 499, "clusters": np.arange(80) // 2}),
        (wilcoxon_test, {}),
    ],
)
def test_p_values_are_uniform_when_nothing_differs(test, options):
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(300):
        a = rng.normal(size=80)
        p_values.append(test(a, a + rng.normal(size=80), **options).p_value)

    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_the_exact_tests_of_discrete_scores_raise_too_few_alarms_rather_than_too_many():
    rng = np.random.default_rng(4)
    p_values = [mcnemar_test(*(rng.random((2, 40)) < 0.6)).p_value for _ in range(1000)]

    for alpha in (0.01, 0.05, 0.1, 0.3):
        alarms = np.mean(np.array(p_values) <= alpha)
        assert alarms <= alpha + 2.6 * np.sqrt(alpha * (1 - alpha) / 1000)
