"""The interval that may be looked at after every value."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.comparison.sequential import ConfidenceSequence
from themis.exceptions import ConfigurationError, MetricError

DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), max_size=60)


def test_before_the_first_value_everything_is_possible():
    sequence = ConfidenceSequence()

    assert (sequence.interval, sequence.decision, sequence.count) == ((-1.0, 1.0), "undecided", 0)
    assert math.isnan(sequence.mean)


def test_a_clear_difference_ends_the_comparison_early():
    sequence = ConfidenceSequence(horizon=1000)
    verdicts = [sequence.update(1.0) for _ in range(30)]

    assert verdicts[0] == "undecided"
    assert verdicts[-1] == "above"
    assert verdicts == sorted(verdicts, key=["undecided", "above"].index)
    assert sequence.interval[0] > 0


def test_extending_stops_at_the_value_that_decides():
    sequence = ConfidenceSequence()

    assert sequence.extend([-1.0] * 500) == "below"
    assert sequence.count < 60
    assert sequence.verdict.ci == sequence.interval
    assert sequence.verdict.mean == -1.0


def test_runs_that_do_not_differ_end_by_equivalence():
    rng = np.random.default_rng(1)
    sequence = ConfidenceSequence(margin=0.1)

    assert sequence.extend(rng.choice([-1.0, 0.0, 1.0], p=[0.02, 0.96, 0.02], size=5000)) == "equivalent"
    assert sequence.count < 3000
    assert -0.1 < sequence.interval[0] < sequence.interval[1] < 0.1


def test_one_run_can_be_held_against_a_threshold():
    rng = np.random.default_rng(2)
    sequence = ConfidenceSequence(low=0.0, high=1.0, null=0.7)

    assert sequence.extend(rng.random(2000) < 0.9) == "above"
    assert sequence.interval[0] > 0.7


@settings(max_examples=50, deadline=None)
@given(values=DIFFERENCES)
def test_intervals_only_shrink_and_decisions_stay(values):
    sequence = ConfidenceSequence(alpha=0.2, margin=0.3)
    interval, decision = sequence.interval, sequence.decision
    for value in values:
        sequence.update(value)
        assert interval[0] <= sequence.interval[0] <= sequence.interval[1] <= interval[1]
        assert decision in ("undecided", sequence.decision)
        interval, decision = sequence.interval, sequence.decision


@settings(max_examples=30, deadline=None)
@given(values=DIFFERENCES)
def test_swapping_the_runs_mirrors_the_interval(values):
    forth, back = ConfidenceSequence(), ConfidenceSequence()
    for value in values:
        forth.update(value)
        back.update(-value)

    assert back.interval == pytest.approx((-forth.interval[1], -forth.interval[0]), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(values=DIFFERENCES)
def test_the_interval_is_never_narrower_than_the_bets_allow(values):
    """Against the wealth computed afresh at the interval's lower end: no mean below it could have survived."""
    sequence = ConfidenceSequence()
    total, squares, wealth, past = 0.0, 0.25, [], []
    for count, value in enumerate(values):
        sequence.update(value)
        scaled = (value + 1) / 2
        stake = min(math.sqrt(2 * math.log(40) / (squares / (count + 1) * (count + 1) * math.log(count + 2))), 0.75)
        past.append((stake, scaled))
        total += scaled
        squares += (scaled - (0.5 + total) / (count + 2)) ** 2
        lowest = (sequence.interval[0] + 1) / 2
        wealth.append(sum(math.log1p(stake * (scaled - lowest)) for stake, scaled in past))

    assert sequence.interval[0] == -1.0 or max(wealth) >= math.log(40) - 1e-9


@pytest.mark.parametrize("horizon", [None, 300])
def test_false_alarms_stay_below_alpha_though_every_value_is_looked_at(horizon):
    rng = np.random.default_rng(3)
    alarms = 0
    for values in rng.choice([-1.0, 0.0, 1.0], p=[0.15, 0.7, 0.15], size=(150, 300)):
        alarms += ConfidenceSequence(alpha=0.1, horizon=horizon).extend(values) != "undecided"

    assert alarms / 150 <= 0.1


def test_a_value_outside_the_bounds_is_refused():
    sequence = ConfidenceSequence()
    for value in (1.5, -1.01, math.nan):
        with pytest.raises(MetricError, match="outside the bounds"):
            sequence.update(value)
    assert sequence.count == 0


@pytest.mark.parametrize(
    "options",
    [
        {"low": 1.0, "high": 0.0},
        {"high": math.inf},
        {"null": 1.0},
        {"alpha": 0.0},
        {"margin": 0.0},
        {"horizon": 0},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigurationError):
        ConfidenceSequence(**options)
