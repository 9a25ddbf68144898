"""The agreement of attempts at one item, against its definition and the textbook."""

import math

import numpy as np
import pytest
from scipy import stats

from themis.comparison.power import attempt_agreement
from themis.exceptions import MetricError


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[1, 0]], "at least two items"),
        ([[1], [0], [1]], "an item with two"),
        ([[1, 0], []], "at least two items"),
        ([[1, math.nan], [0, 1]], "1 of 2 scores"),
    ],
)
def test_what_cannot_be_estimated_is_refused(scores, message):
    with pytest.raises(MetricError, match=message):
        attempt_agreement(scores)


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


def test_right_and_wrong_attempts_get_an_interval_that_covers():
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(300):
        chances = rng.beta(0.5, 0.5, size=30)
        low, high = attempt_agreement(list((rng.random((30, 2)) < chances[:, None]).astype(float))).ci
        covered += low <= 0.5 <= high

    # By F alone, which takes scores as normal, 90 %.
    assert covered >= 0.94 * 300


def test_the_jackknife_leaves_each_item_out_in_turn():
    rng = np.random.default_rng(6)
    scores = [
        (rng.random(size) < chance).astype(float) for size, chance in zip([3, 4, 2, 5] * 8, rng.random(32), strict=True)
    ]
    found = attempt_agreement(scores)

    ratios = []
    for place in range(-1, len(scores)):
        kept = [column for number, column in enumerate(scores) if number != place]
        ratios.append(math.log(stats.f_oneway(*kept).statistic))
    spread = np.std(ratios[1:]) * math.sqrt(31)
    half = stats.t.ppf(0.975, 31) * spread
    sizes = np.array([column.size for column in scores])
    typical = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / 31
    low, high = ((ratio - 1) / (ratio + typical - 1) for ratio in np.exp([ratios[0] - half, ratios[0] + half]))
    assert found.ci[0] <= low + 1e-9
    assert high - 1e-9 <= found.ci[1]
    assert found.ci[0] == pytest.approx(low) or found.ci[1] == pytest.approx(high)


@pytest.mark.parametrize("scores", [[[1, 0], [1, 1]], [[1, 0], [1, 1], [1, 1]], [[1, 0], [0, 0], [1, 1], [1, 1]]])
def test_few_attempts_leave_the_agreement_open(scores):
    found = attempt_agreement(scores)

    assert found.ci[1] - found.ci[0] > 0.8
    assert found.ci[0] <= found.icc <= found.ci[1] <= 1.0
