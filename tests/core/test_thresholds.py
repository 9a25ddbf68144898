"""Measured means against limits: what holds, and what is said where it does not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.entities import MetricAggregate, MetricScore

NUMBERS = st.floats(-10, 10)


def measured(mean: float, ci: tuple[float, float] | None = None, count: int = 200, failed: int = 0) -> MetricAggregate:
    return MetricAggregate("ExactMatch", count=count, mean=mean, failed=failed, ci=ci)


def test_a_comparison_with_a_number_is_one_of_the_mean():
    metric = measured(0.8, (0.7, 0.9))

    assert metric >= 0.8
    assert metric <= 0.8
    assert metric == 0.8
    assert [metric > 0.8, metric < 0.8, metric != 0.8] == [False, False, False]
    assert 0.7 <= metric < 1


def test_where_nothing_was_scored_no_limit_is_kept():
    nothing = measured(math.nan, count=0, failed=12)

    for limit in (-math.inf, 0.0, 0.8, math.inf):
        kept = [
            nothing >= limit,
            nothing > limit,
            nothing <= limit,
            nothing < limit,
            nothing == limit,
            nothing != limit,
        ]
        kept += [nothing.surely_at_least(limit), nothing.surely_at_most(limit)]
        kept += [nothing.possibly_at_least(limit), nothing.possibly_at_most(limit)]
        assert not any(kept)
    assert nothing.explain_limit(">=", 0.8) == "nothing was scored (12 failed), so that no limit is kept"


@given(mean=NUMBERS, below=st.floats(0, 5), above=st.floats(0, 5), limit=NUMBERS)
def test_what_is_sure_is_so_and_what_is_so_is_possible(mean, below, above, limit):
    metric = measured(mean, (mean - below, mean + above))

    for surely, is_so, possibly in (
        (metric.surely_at_least(limit), metric >= limit, metric.possibly_at_least(limit)),
        (metric.surely_at_most(limit), metric <= limit, metric.possibly_at_most(limit)),
    ):
        assert bool(surely) <= is_so <= bool(possibly)


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        (
            measured(0.78, (0.71, 0.84), failed=3),
            "0.7800 [0.7100, 0.8400] of 200 (3 failed) is below 0.8, but 0.8 lies within the interval: too few samples to tell",
        ),
        (measured(0.6, (0.53, 0.67)), "0.6000 [0.5300, 0.6700] of 200 is below 0.8, and so is the whole interval"),
        (measured(0.0, count=1), "0.0000 of 1 is below 0.8; one sample has no interval"),
        # Rounded it would be 0.8000, and not below.
        (
            measured(0.79999, (0.79998, 0.799995)),
            "0.79999 [0.8000, 0.8000] of 200 is below 0.8, and so is the whole interval",
        ),
    ],
)
def test_a_limit_that_is_not_kept_is_explained(metric, says):
    assert not metric >= 0.8
    assert metric.explain_limit(">=", 0.8) == says
    assert repr(metric.surely_at_least(0.8)) == f"ExactMatch is not surely at least 0.8: {says}"


def test_a_mean_that_is_good_enough_may_not_be_surely_so():
    metric = measured(0.85, (0.78, 0.9))

    assert metric >= 0.8
    assert repr(metric.surely_at_least(0.8)) == (
        "ExactMatch is not surely at least 0.8: 0.8500 [0.7800, 0.9000] of 200 is above 0.8, but 0.8 lies within the "
        "interval: too few samples to be sure"
    )


def test_two_measured_means_are_left_to_the_comparison_of_runs():
    with pytest.raises(TypeError, match=r"themis\.comparison\.compare_runs pairs the samples"):
        assert measured(0.8) >= measured(0.7)


def test_a_mean_is_not_compared_with_a_text():
    with pytest.raises(TypeError, match=r"compared with a number, such as metric >= 0\.8, got str"):
        assert measured(0.8) >= "0.8"
    assert measured(0.8) != "0.8"


def test_aggregates_are_equal_if_everything_of_them_is():
    scores = [MetricScore("ExactMatch", 1.0), MetricScore("ExactMatch", 0.0)]

    assert MetricAggregate.from_scores("ExactMatch", scores) == MetricAggregate.from_scores("ExactMatch", scores)
    assert MetricAggregate.from_scores("ExactMatch", scores) != MetricAggregate.from_scores("F1", scores)
