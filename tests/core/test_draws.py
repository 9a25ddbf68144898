"""pass@k and pass^k are what counting every draw gives."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.core.intervals import pass_at_k, pass_hat_k


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_the_estimates_are_the_shares_of_all_draws(outcomes, data):
    k = data.draw(st.integers(1, len(outcomes)))
    draws = list(combinations(outcomes, k))

    assert pass_at_k(sum(outcomes), len(outcomes), k) == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-12)
    assert pass_hat_k(sum(outcomes), len(outcomes), k) == pytest.approx(sum(map(all, draws)) / len(draws), abs=1e-12)


def test_many_attempts_are_counted_without_overflow():
    exact = 1 - math.comb(1990, 100) / math.comb(2000, 100)

    assert pass_at_k(10, 2000, 100) == pytest.approx(exact, abs=1e-12)


@settings(max_examples=60)
@given(st.integers(0, 12))
def test_more_attempts_help_to_pass_once_and_hinder_passing_always(passed):
    once = [pass_at_k(passed, 12, k) for k in range(1, 13)]
    always = [pass_hat_k(passed, 12, k) for k in range(1, 13)]

    assert once[0] == pytest.approx(always[0]) == pytest.approx(passed / 12)
    assert all(np.diff(once) >= -1e-12)
    assert all(np.diff(always) <= 1e-12)


def test_the_estimate_is_unbiased():
    rng = np.random.default_rng(1)
    chance = rng.random(400)
    truth = np.mean(1 - (1 - chance) ** 3)
    estimates = [np.mean([pass_at_k(passed, 6, 3) for passed in rng.binomial(6, chance)]) for _ in range(300)]

    assert np.mean(estimates) == pytest.approx(truth, abs=4 * np.std(estimates) / math.sqrt(300))
