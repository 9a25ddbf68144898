"""pass@k and pass^k are what counting every draw gives, for one item and for a column of them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.draws import all_pass, some_pass


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_the_estimates_are_the_shares_of_all_draws(outcomes, data):
    k = data.draw(st.integers(1, len(outcomes)))
    draws = list(combinations(outcomes, k))

    assert some_pass(sum(outcomes), len(outcomes), k) == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-12)
    assert all_pass(sum(outcomes), len(outcomes), k) == pytest.approx(sum(map(all, draws)) / len(draws), abs=1e-12)


def test_a_column_gives_what_its_items_give():
    passed, attempts = np.array([0.0, 1.0, 3.0, 5.0]), np.array([5.0, 4.0, 6.0, 5.0])

    assert some_pass(passed, attempts, 3).tolist() == [
        some_pass(c, n, 3) for c, n in zip(passed, attempts, strict=True)
    ]
    assert all_pass(passed, attempts, 3).tolist() == [all_pass(c, n, 3) for c, n in zip(passed, attempts, strict=True)]
