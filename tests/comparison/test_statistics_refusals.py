"""Too few items, no spread, ties, NaN: a refusal that says why, or an honest result, never a significant one."""

import math

import numpy as np
import pytest

from themis.comparison.effects import paired_effects, proportion_effects
from themis.comparison.resampling import bootstrap_interval
from themis.comparison.statistics import (
    benjamini_hochberg,
    bootstrap_test,
    holm,
    mcnemar_test,
    pair,
    paired_permutation_test,
    paired_t_test,
    risk_difference_interval,
    wilcoxon_test,
)
from themis.exceptions import ConfigurationError, MetricError

TESTS = [paired_t_test, paired_permutation_test, bootstrap_test, wilcoxon_test, mcnemar_test]
CLUSTERED = [paired_t_test, paired_permutation_test, bootstrap_test]


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([], [], "at least two shared items, got 0"),
        ([1.0], [0.0], "at least two shared items, got 1"),
        ([1.0, 0.0, 1.0], [1.0, 0.0], "cannot pair 3 scores with 2"),
        ([1.0, math.nan, 0.0], [1.0, 0.0, 0.0], "1 of 3 scores are not finite"),
        ([1.0, 0.0], [math.inf, None], "2 of 2 scores are not finite"),
        (["yes", "no"], [1, 0], "scores must be numbers"),
    ],
)
def test_what_cannot_be_compared_is_refused(test, a, b, message):
    with pytest.raises(MetricError, match=message):
        test(a, b)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("alpha", [0, 1, 5])
def test_alpha_is_a_share(test, alpha):
    with pytest.raises(ConfigurationError, match="alpha lies between 0 and 1"):
        test([1, 0], [0, 1], alpha=alpha)


@pytest.mark.parametrize("test", TESTS)
def test_equal_runs_do_not_differ(test):
    result = test([1, 0, 1, 1], [1, 0, 1, 1])

    assert not result.significant
    assert result.difference == 0
    assert result.p_value in (1.0, None)
    assert result.ci is None or result.ci[0] <= 0 <= result.ci[1]
    assert result.note == "all 4 pairs are equal"


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_items_that_all_favour_one_run_are_no_verdict(test, n):
    result = test([1.0] * n, [0.0] * n)

    assert result.difference == 1.0
    assert not result.significant
    assert result.note


@pytest.mark.parametrize("test", [paired_t_test, bootstrap_test])
@pytest.mark.parametrize("n", [2, 40])
def test_a_constant_difference_has_no_spread_to_weigh_it_by(test, n):
    scores = np.arange(n) / 10
    result = test(scores + 0.1, scores)

    assert not result.significant
    assert f"all {n} differences are 0.1" in result.note
    assert "permutation test can" in result.note


def test_the_permutation_test_weighs_a_constant_difference_by_its_signs():
    scores = np.arange(40) / 10
    result = paired_permutation_test(scores + 0.1, scores)

    assert result.p_value == pytest.approx(2.0**-39)
    assert result.significant


def test_a_bootstrap_of_few_differing_items_is_stretched_to_zero():
    """Four gains among a thousand items: resamples without any are rare, yet four signs agree once in eight times."""
    a = np.zeros(1000)
    a[:4] = 1.0
    result = bootstrap_test(a, np.zeros(1000), method="percentile")

    assert bootstrap_interval(pair(a, np.zeros(1000)).units, method="percentile").ci[0] > 0
    assert result.ci is not None
    assert result.ci[0] == 0
    assert not result.significant
    assert "only 4 of 1000 items differ" in result.note


def test_differences_that_only_rounding_made_are_none():
    result = wilcoxon_test([0.3, 0.7, 1.1, 0.6], [0.1 + 0.2, 0.8 - 0.1, 0.8 + 0.3, 0.2 * 3])

    assert (result.statistic, result.p_value) == (0.0, 1.0)
    assert result.note == "all 4 pairs are equal"


def test_a_difference_whose_spread_is_rounding_is_constant():
    a = np.array([0.3, 0.7, 0.9, 0.4])
    result = paired_t_test(a, a - 0.1)

    assert (result.statistic, result.p_value) == (None, 1.0)
    assert result.difference == pytest.approx(0.1)


@pytest.mark.parametrize("test", CLUSTERED)
def test_one_cluster_says_nothing_about_its_spread(test):
    with pytest.raises(MetricError, match="all 3 items are in one cluster"):
        test([1.0, 0.5, 0.2], [0.0, 0.1, 0.3], clusters=["chat"] * 3)


@pytest.mark.parametrize("test", CLUSTERED)
def test_every_item_needs_its_cluster(test):
    with pytest.raises(MetricError, match="2 cluster labels for 3 values"):
        test([1.0, 0.5, 0.2], [0.0, 0.1, 0.3], clusters=["chat", "other"])


@pytest.mark.parametrize("test", CLUSTERED)
def test_clusters_are_what_is_counted(test):
    """Three conversations cannot decide anything, however many items they hold."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(["a", "b", "c"], 100)
    b = rng.random(300)
    a = b + np.repeat([0.1, 0.2, 0.15], 100)

    result = test(a, b, clusters=clusters)

    assert result.clusters == 3
    assert "only 3 of 3 clusters differ" in result.note
    assert not result.significant or test is paired_t_test
    assert test(a + rng.normal(size=300) / 1e3, b).significant


def test_clusters_that_cancel_have_no_spread():
    result = paired_t_test([1.0, 0.0, 0.5, 0.25], [0.0, 1.0, 0.25, 0.5], clusters=[0, 0, 1, 1])

    assert (result.p_value, result.significant) == (1.0, False)
    assert "no spread between clusters" in result.note


def test_mcnemar_is_for_zeros_and_ones():
    with pytest.raises(MetricError, match="0 or 1"):
        mcnemar_test([0.5, 1.0], [0.0, 1.0])
    with pytest.raises(MetricError, match="0 or 1"):
        proportion_effects([0.5, 1.0], [0.0, 1.0])


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(ConfigurationError, match="at least 100 resamples"):
        bootstrap_test([1, 0], [0, 1], resamples=10)
    with pytest.raises(ConfigurationError, match="unknown bootstrap method 'bcb'"):
        bootstrap_test([1, 0], [0, 1], method="bcb")
    with pytest.raises(ConfigurationError, match="at least one resample"):
        paired_permutation_test([1, 0], [0, 1], resamples=0)
    with pytest.raises(ConfigurationError, match=r"got 1\.5"):
        risk_difference_interval(1, 2, 10, level=1.5)
    with pytest.raises(ConfigurationError, match="got 0"):
        bootstrap_interval(pair([1, 2, 3], [0, 0, 0]).units, level=0)


def test_impossible_counts_are_refused():
    with pytest.raises(MetricError, match="9 \\+ 3 discordant pairs of 10"):
        risk_difference_interval(9, 3, 10)


def test_p_values_that_are_none_are_refused():
    for correction in (holm, benjamini_hochberg):
        assert correction([]) == ()
        with pytest.raises(MetricError, match="2 of 3 p-values are not between 0 and 1"):
            correction([0.1, math.nan, 1.5])


def test_effects_without_spread_are_none_not_infinite():
    constant = paired_effects([0.5, 0.6, 0.7], [0.4, 0.5, 0.6])
    equal = paired_effects([0.5, 0.6, 0.7], [0.5, 0.6, 0.7])
    flat = paired_effects([1, 1, 1], [0, 1, 0])

    assert (constant.cohens_dz, constant.hedges_g) == (None, None)
    assert (equal.cohens_dz, equal.hedges_g, equal.win_rate) == (0.0, 0.0, 0.5)
    assert flat.correlation is None


def test_two_items_have_no_unbiased_effect():
    assert paired_effects([0.5, 0.9], [0.4, 0.2]).hedges_g is None


def test_runs_that_agree_everywhere_have_no_odds():
    agreeing = proportion_effects([1, 0, 1, 1], [1, 0, 1, 1])
    one_sided = proportion_effects([1, 1, 1, 0], [0, 0, 1, 0])

    assert (agreeing.odds_ratio, agreeing.odds_ratio_ci) == (None, None)
    assert agreeing.risk_difference_ci[0] < 0 < agreeing.risk_difference_ci[1]
    assert one_sided.odds_ratio == math.inf
    assert one_sided.odds_ratio_ci[1] == math.inf
    assert one_sided.odds_ratio_ci[0] < 1
