"""Planning: powers against statsmodels and enumeration, and the three questions answering each other."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from themis.comparison.power import PairedMeans, PairedProportions
from themis.comparison.statistics import mcnemar_test, paired_t_test
from themis.exceptions import ConfigurationError, MetricError


def test_the_power_of_means_agrees_with_statsmodels():
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(500):
        n, alpha = int(10 ** rng.uniform(0.4, 5)), float(10 ** rng.uniform(-3, -0.5))
        difference, sd = float(rng.uniform(0, 6) / math.sqrt(n)), 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = TTestPower().power(difference / sd, n, alpha)
        # statsmodels answers NaN where the tail of the wrong sign underflows.
        if not math.isnan(theirs):
            compared += 1
            ours = PairedMeans(sd=sd, alpha=alpha).power(n=n, difference=difference)
            assert ours.power == pytest.approx(theirs, abs=1e-9)
    assert compared > 400


@pytest.mark.parametrize("difference", [0.3, 1.0, 50.0, 1e4])
def test_the_power_of_means_reaches_certainty_without_failing(difference):
    assert PairedMeans(sd=1.0).power(n=2000, difference=difference).power == pytest.approx(1.0)


def test_the_power_of_proportions_is_the_sum_over_all_outcomes():
    for n, discordant, difference, alpha in (
        (15, 0.5, 0.3, 0.05),
        (25, 0.3, 0.3, 0.05),
        (12, 1.0, 0.5, 0.1),
        (30, 0.9, -0.4, 0.01),
        (8, 0.2, 0.1, 0.3),
        (3, 0.5, 0.1, 0.05),
    ):
        share = (1 + difference / discordant) / 2
        expected = sum(
            stats.binom.pmf(count, n, discordant) * stats.binom.pmf(wins, count, share)
            for count in range(1, n + 1)
            for wins in range(count + 1)
            if stats.binomtest(wins, count).pvalue <= alpha
        )
        ours = PairedProportions(discordant=discordant, alpha=alpha).power(n=n, difference=difference)
        assert ours.power == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "design", [PairedMeans(sd=0.4), PairedMeans(sd=0.1, alpha=0.01), PairedProportions(discordant=0.2)]
)
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_the_three_questions_answer_each_other(design, power):
    plan = design.required_n(difference=0.06, power=power)

    assert plan.power >= power > design.power(n=plan.n - 1, difference=0.06).power
    assert design.detectable(n=plan.n, power=power).difference == pytest.approx(0.06, rel=0.02)
    assert design.detectable(n=plan.n, power=power).power == pytest.approx(power, abs=1e-6)
    assert design.power(n=plan.n, difference=-0.06).power == pytest.approx(plan.power)


def test_the_known_example_of_planning():
    """The normal formula gives 969 items for a difference of 0.03 at a variance of 1/9; Student's test needs two more."""
    plan = PairedMeans.from_variances(between_a=1 / 9, between_b=1 / 9, correlation=0.5).required_n(difference=0.03)

    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert math.ceil(z**2 / 9 / 0.03**2) == 969
    assert plan.n == 971


def test_more_attempts_shrink_only_the_part_within_items():
    def design(attempts):
        return PairedMeans.from_variances(
            between_a=0.1,
            between_b=0.2,
            correlation=0.5,
            within_a=0.3,
            within_b=0.1,
            attempts_a=attempts,
            attempts_b=attempts,
        )

    between = 0.3 - math.sqrt(0.02)
    assert design(1).sd ** 2 == pytest.approx(between + 0.4)
    assert design(8).sd ** 2 == pytest.approx(between + 0.05)


def test_a_pilot_plans_the_comparison():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 30))
    right_a, right_b = rng.random((2, 50)) < 0.5

    assert PairedMeans.from_pilot(a, b).sd == pytest.approx(np.std(a - b, ddof=1))
    assert PairedProportions.from_pilot(right_a, right_b).discordant == np.mean(right_a != right_b)


def test_planned_comparisons_succeed_as_often_as_planned():
    rng = np.random.default_rng(3)
    means = PairedMeans(sd=1.0).required_n(difference=0.4, power=0.7)
    found = sum(paired_t_test(rng.normal(size=means.n) + 0.4, np.zeros(means.n)).significant for _ in range(1000))
    proportions = PairedProportions(discordant=0.3).required_n(difference=0.15, power=0.7)
    outcomes = rng.choice([1, 0, -1], p=[0.225, 0.7, 0.075], size=(1000, proportions.n))
    shown = sum(mcnemar_test(outcome == 1, outcome == -1).significant for outcome in outcomes)

    assert found / 1000 == pytest.approx(0.7, abs=0.045)
    assert shown / 1000 == pytest.approx(0.7, abs=0.045)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PairedMeans(sd=0), "positive number, got 0"),
        (lambda: PairedMeans(sd=math.nan), "positive number, got nan"),
        (lambda: PairedMeans(sd=1).power(n=1, difference=0.1), "at least two items, got 1"),
        (lambda: PairedMeans(sd=1).required_n(difference=0), "difference of 0"),
        (lambda: PairedMeans(sd=1).required_n(difference=1e-5), "more than 10,000,000 items"),
        (lambda: PairedMeans.from_pilot([1, 2, 3], [0, 1, 2]), "do not vary"),
        (lambda: PairedProportions(discordant=0), "got 0"),
        (lambda: PairedProportions(discordant=0.1).power(n=50, difference=0.2), "impossible"),
        (lambda: PairedProportions(discordant=0.1).detectable(n=20), "use more items"),
        (lambda: PairedProportions.from_pilot([1, 0, 1], [1, 0, 1]), "agree on all 3 items"),
        (lambda: PairedProportions.from_pilot([1, 0.5], [1, 0]), "0 or 1"),
    ],
)
def test_plans_that_cannot_be_made_are_refused(call, message):
    with pytest.raises(MetricError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: PairedMeans(sd=1, alpha=0),
        lambda: PairedMeans(sd=1).required_n(difference=0.1, power=1.0),
        lambda: PairedMeans(sd=1).detectable(n=10, power=0.05),
        lambda: PairedProportions(discordant=0.3, alpha=2),
        lambda: PairedMeans.from_variances(between_a=-1, between_b=1, correlation=0),
        lambda: PairedMeans.from_variances(between_a=1, between_b=1, correlation=0, attempts_a=0),
    ],
)
def test_options_out_of_range_are_refused(call):
    with pytest.raises(ConfigurationError):
        call()
