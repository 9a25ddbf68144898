"""The tests, corrections and effect sizes against scipy, statsmodels and brute force: 500 random cases and 50 nasty ones."""

import itertools
import math
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from themis.comparison.effects import paired_effects, proportion_effects
from themis.comparison.statistics import (
    benjamini_hochberg,
    holm,
    mcnemar_test,
    paired_permutation_test,
    paired_t_test,
    risk_difference_interval,
    wilcoxon_test,
)
from themis.core.intervals import estimate_mean


def random_cases(count, largest=60):
    """Scores as metrics give them: continuous, heavy-tailed, 0/1, and graded in fifths, thirds or points of ten."""
    rng = np.random.default_rng(20240)
    for number in range(count):
        n = int(rng.integers(2, largest))
        shift = rng.normal() * 0.5
        kind = number % 6
        if kind == 0:
            a = rng.normal(size=n)
            yield a, 0.5 * a + rng.normal(size=n) + shift
        elif kind == 1:
            yield rng.standard_t(2, size=n), rng.standard_t(2, size=n) * 3 + shift
        elif kind == 2:
            yield (rng.random(n) < 0.6) * 1.0, (rng.random(n) < 0.4) * 1.0
        else:
            grades = (5, 3, 10)[kind - 3]
            yield rng.integers(0, grades + 1, n) / grades, rng.integers(0, grades + 1, n) / grades


def nasty_cases():
    """Scales, offsets, ties, outliers and sizes at which careless arithmetic fails."""
    rng = np.random.default_rng(20241)
    for n in (2, 3, 4, 5, 6):
        yield rng.normal(size=n), rng.normal(size=n)
    for scale in (1e-120, 1e-30, 1e-9, 1e9, 1e30, 1e120):
        yield rng.normal(size=12) * scale, rng.normal(size=12) * scale
    for offset in (1e3, -1e6, 2.0**30, -(2.0**40)):
        yield offset + rng.integers(-8, 9, 15) / 8, offset + rng.integers(-8, 9, 15) / 8
    for outlier in (1e3, -1e6, 1e9):
        yield np.append(rng.normal(size=10), outlier), rng.normal(size=11)
    for ties in (1, 5, 9):
        a = rng.normal(size=10)
        yield a, np.concatenate([a[:ties], rng.normal(size=10 - ties)])
    for tenths in range(6):
        yield rng.integers(0, 11, 14) / 10, (rng.integers(0, 11, 14) + tenths % 2) / 10
    for dtype in (bool, np.int8, np.float32):
        yield rng.integers(0, 2, 16).astype(dtype), np.resize([0, 1, 1], 16).astype(dtype)
    for denominator in (3, 6, 7, 9, 11, 13):
        yield rng.integers(0, denominator + 1, 13) / denominator, rng.integers(0, denominator + 1, 13) / denominator
    yield np.arange(20.0), np.arange(20.0)[::-1]
    yield np.arange(11.0), np.full(11, 3.0)
    yield np.array([0.1 + 0.2, 0.7, 1.1]), np.array([0.3, 0.6, 0.8])
    yield np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 1.0, 4.0, 3.0])
    for _ in range(10):
        yield np.exp(rng.normal(size=14) * 5), np.exp(rng.normal(size=14) * 5)


CASES = [*random_cases(500), *nasty_cases()]


def enumerated_p_value(differences):
    """Every way of signing the differences, one by one."""
    differing = differences[differences != 0]
    signs = np.array(list(itertools.product([1, -1], repeat=differing.size)))
    sums = np.abs(signs @ np.abs(differing)) if differing.size else np.zeros(1)
    return float(np.mean(sums >= abs(differing.sum()) - 2e-15 * np.abs(differing).sum()))


def difference_of(a, b):
    """a - b, with zero for scores that are equal but for the last digit."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.where(np.isclose(a, b, rtol=4e-16, atol=0), 0.0, a - b)


def test_there_are_fifty_nasty_cases():
    assert len(list(nasty_cases())) == 50


def test_the_paired_t_test_agrees_with_scipy():
    for a, b in CASES:
        ours = paired_t_test(a, b)
        d = difference_of(a, b)
        if np.ptp(d) <= 1e-12 * np.abs(d).max():
            assert (ours.p_value, ours.significant) == (1.0, False)
            continue
        theirs = stats.ttest_rel(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-9)
        assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-9, rel=1e-9)
        assert ours.ci == pytest.approx(tuple(theirs.confidence_interval()), rel=1e-9, abs=1e-9 * ours.stderr)


def test_the_clustered_t_test_agrees_with_statsmodels():
    rng = np.random.default_rng(5)
    for size in (1, 2, 5, 9):
        for _ in range(20):
            clusters = np.repeat(np.arange(rng.integers(2, 9)), size)
            a, b = rng.normal(size=(2, clusters.size))
            fit = sm.OLS(a - b, np.ones(len(a))).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
            ours = paired_t_test(a, b, clusters=clusters)
            assert ours.p_value == pytest.approx(fit.pvalues[0], abs=1e-9)
            assert ours.ci == pytest.approx(tuple(fit.conf_int()[0]), abs=1e-9)


def test_the_clustered_t_test_weighs_unequal_clusters_by_cr2_and_satterthwaite():
    rng = np.random.default_rng(5)
    for a, b in random_cases(60):
        clusters = rng.integers(0, 6, len(a))
        if np.unique(clusters).size < 2 or np.ptp(a - b) == 0:
            continue
        estimate = estimate_mean(a - b, clusters)
        if estimate.stderr < 1e-12:
            continue
        ours = paired_t_test(a, b, clusters=clusters)
        expected = stats.t(estimate.degrees_of_freedom, scale=estimate.stderr)
        assert ours.p_value == pytest.approx(2 * expected.sf(abs(np.mean(a - b))), abs=1e-9)
        assert ours.ci == pytest.approx(np.mean(a - b) + np.array(expected.interval(0.95)), abs=1e-9)


def test_the_permutation_test_is_exact_for_few_items():
    for a, b in [*random_cases(500, largest=11), *(case for case in nasty_cases() if len(case[0]) <= 13)]:
        ours = paired_permutation_test(a, b)
        assert ours.exact
        assert ours.p_value == pytest.approx(enumerated_p_value(difference_of(a, b)), abs=1e-12)


def test_the_permutation_test_agrees_with_scipy():
    for a, b in random_cases(24, largest=9):
        theirs = stats.permutation_test(
            (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=1000
        )
        assert paired_permutation_test(a, b).p_value == pytest.approx(theirs.pvalue, abs=1e-9)


def test_the_permutation_test_is_exact_for_many_graded_items():
    """Against the convolution of all items' coin flips, one item after the other."""
    rng = np.random.default_rng(6)
    for n in (40, 150, 400):
        for shift in (0, 1, 3):
            steps = rng.integers(-4, 5, n) + (rng.random(n) < 0.1 * shift)
            distribution = np.ones(1)
            for step in np.abs(steps[steps != 0]):
                flipped = np.zeros(2 * step + 1)
                flipped[[0, -1]] += 0.5
                distribution = np.convolve(distribution, flipped)
            sums = np.arange(distribution.size) - distribution.size // 2
            expected = distribution[np.abs(sums) >= abs(steps.sum())].sum()

            ours = paired_permutation_test(steps / 7, np.zeros(n))
            assert ours.exact
            assert ours.p_value == pytest.approx(expected, rel=1e-9)


def test_exact_p_values_keep_their_digits_however_small():
    gains = np.tile([0.2, 0.4, 0.6], 60)
    gains[0] = -0.2

    ours = paired_permutation_test(gains, np.zeros(180))

    # Only turning none, or one of the sixty smallest, is as extreme.
    assert ours.p_value == pytest.approx(2 * 61 / 2.0**180, rel=1e-9)


def test_the_sampled_permutation_test_agrees_with_the_exact_one():
    rng = np.random.default_rng(7)
    for effect in (0.0, 0.1, 0.2, 0.3):
        a = rng.integers(0, 11, 300) / 10 + effect / 10
        b = rng.integers(0, 11, 300) / 10
        exact = paired_permutation_test(a, b)
        sampled = paired_permutation_test(a + rng.normal(size=300) * 1e-7, b, resamples=20_000)
        assert exact.exact
        assert not sampled.exact
        error = math.sqrt(exact.p_value * (1 - exact.p_value) / 20_000)
        assert sampled.p_value == pytest.approx(exact.p_value, abs=4.5 * error + 1e-4)


def test_the_clustered_permutation_test_flips_whole_clusters():
    rng = np.random.default_rng(8)
    for _ in range(50):
        a, b = rng.normal(size=24), rng.normal(size=24)
        clusters = rng.integers(0, 8, 24)
        sums = np.array([(a - b)[clusters == cluster].sum() for cluster in np.unique(clusters)])
        ours = paired_permutation_test(a, b, clusters=clusters)
        assert ours.p_value == pytest.approx(enumerated_p_value(sums), abs=1e-12)


def test_mcnemar_agrees_with_statsmodels():
    rng = np.random.default_rng(9)
    for _ in range(500):
        n = int(rng.integers(2, 300))
        a, b = rng.random(n) < rng.random(), rng.random(n) < rng.random()
        table = [[np.sum(a & b), np.sum(a & ~b)], [np.sum(~a & b), np.sum(~a & ~b)]]
        theirs = mcnemar(table, exact=True)
        ours = mcnemar_test(a, b)
        assert ours.statistic == theirs.statistic
        assert ours.p_value == pytest.approx(min(theirs.pvalue, 1.0), abs=1e-9, rel=1e-9)


def test_on_binary_scores_permutation_wilcoxon_and_mcnemar_are_one_test():
    for a, b in random_cases(60):
        if set(a) | set(b) <= {0.0, 1.0}:
            expected = mcnemar_test(a, b).p_value
            assert paired_permutation_test(a, b).p_value == pytest.approx(expected, abs=1e-12)
            assert wilcoxon_test(a, b).p_value == pytest.approx(expected, abs=1e-12)


def test_wilcoxon_agrees_with_scipy_where_scipy_is_exact():
    rng = np.random.default_rng(10)
    for _ in range(300):
        n = int(rng.integers(2, 51))
        a, b = rng.normal(size=n), rng.normal(size=n) + rng.normal() * 0.5
        theirs = stats.wilcoxon(a, b, method="exact")
        ours = wilcoxon_test(a, b)
        assert ours.exact
        assert ours.statistic == pytest.approx(theirs.statistic)
        assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-9)


def test_wilcoxon_is_exact_with_ties_where_scipy_approximates():
    for a, b in random_cases(200, largest=11):
        d = np.round(a - b, 12)
        d = d[d != 0]
        ranks = np.sign(d) * stats.rankdata(np.abs(d))
        assert wilcoxon_test(a, b).p_value == pytest.approx(enumerated_p_value(ranks), abs=1e-12)


def test_wilcoxon_agrees_with_scipy_where_both_approximate():
    rng = np.random.default_rng(11)
    for number in range(40):
        n = int(rng.integers(400, 2000))
        a, b = rng.normal(size=n), rng.normal(size=n) + 0.05
        if number % 2:
            a, b = np.round(a, 2), np.round(b, 2)
        theirs = stats.wilcoxon(np.round(a - b, 12), method="approx", correction=False)
        ours = wilcoxon_test(a, b)
        if not ours.exact:
            assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-9)


def test_corrections_agree_with_statsmodels():
    rng = np.random.default_rng(12)
    for number in range(500):
        p_values = rng.random(rng.integers(1, 40)) ** rng.integers(1, 6)
        if number % 3 == 0:
            p_values = np.round(p_values, 1)
        theirs = multipletests(p_values, method="fdr_bh")[1]
        assert np.allclose(benjamini_hochberg(p_values), theirs, rtol=0, atol=1e-12)
        # Holm takes statsmodels a second on a busy machine.
        if number % 50 == 0:
            theirs = multipletests(p_values, method="holm")[1]
            assert np.allclose(holm(p_values), theirs, rtol=0, atol=1e-12)


def test_holm_is_its_definition():
    """Each p-value times the number of those at least as large, and never below a smaller one's."""
    rng = np.random.default_rng(15)
    for _ in range(500):
        p_values = np.round(rng.random(rng.integers(1, 20)), 2)
        stepped = [min(1.0, p * sum(q >= p for q in p_values)) for p in p_values]
        expected = [max(s for s, q in zip(stepped, p_values, strict=True) if q <= p) for p in p_values]
        assert np.allclose(holm(p_values), expected, rtol=0, atol=1e-12)


def test_a_p_value_equal_to_alpha_is_rejected_as_statsmodels_does():
    assert [p <= 0.05 for p in holm([0.025, 0.05])] == multipletests([0.025, 0.05], 0.05, "holm")[0].tolist()


def test_standardised_effects_follow_from_the_t_test():
    for a, b in CASES:
        ours = paired_effects(a, b)
        t = paired_t_test(a, b).statistic
        if t is None or ours.n < 3:
            continue
        degrees = ours.n - 1
        factor = (
            stats.chi(degrees).expect(lambda x: 1 / x) * math.sqrt(degrees) if degrees < 6 and degrees > 1 else None
        )
        assert ours.cohens_dz == pytest.approx(t / math.sqrt(ours.n), rel=1e-9, abs=1e-15)
        if factor is not None:
            # The factor is what makes the standardised mean unbiased.
            assert ours.hedges_g * factor == pytest.approx(ours.cohens_dz, rel=1e-6)


def test_the_paired_error_is_what_correlation_leaves_of_the_unpaired_one():
    rng = np.random.default_rng(13)
    for _ in range(100):
        a = rng.normal(size=50)
        b = rng.uniform(-1, 1) * a + rng.normal(size=50)
        ours = paired_effects(a, b)
        shared = 2 * ours.correlation * ours.stderr_a * ours.stderr_b
        assert ours.correlation == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-12)
        assert ours.stderr_difference**2 == pytest.approx(ours.stderr_a**2 + ours.stderr_b**2 - shared, rel=1e-9)
        assert ours.stderr_unpaired**2 == pytest.approx(ours.stderr_a**2 + ours.stderr_b**2)


def test_the_odds_ratio_agrees_with_scipys_exact_binomial():
    rng = np.random.default_rng(14)
    for _ in range(100):
        a, b = rng.integers(0, 2, (2, 30))
        ours = proportion_effects(a, b)
        exact = stats.binomtest(ours.only_a, ours.only_a + ours.only_b).proportion_ci(method="exact")
        assert ours.odds_ratio == pytest.approx(ours.only_a / ours.only_b)
        assert ours.odds_ratio_ci == pytest.approx((exact.low / (1 - exact.low), exact.high / (1 - exact.high)))


@pytest.mark.parametrize(("only_a", "only_b", "n"), [(9, 2, 40), (5, 5, 30), (0, 6, 25), (12, 0, 20), (30, 45, 400)])
def test_the_risk_difference_interval_inverts_the_score_test(only_a, only_b, n):
    """The variance at each end comes from maximising the likelihood under that difference numerically."""
    for difference, sign in zip(risk_difference_interval(only_a, only_b, n), (1, -1), strict=True):
        both = n - only_a - only_b

        def misfit(share_b, difference=difference, both=both):
            share_a = share_b + difference
            return -sum(
                stats.binom.logpmf(count, count, np.clip(share, 1e-300, 1))
                for count, share in ((only_a, share_a), (only_b, share_b), (both, 1 - share_a - share_b))
            )

        low, high = max(0.0, -difference), (1 - difference) / 2
        share_b = optimize.minimize_scalar(misfit, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
        stderr = math.sqrt((2 * share_b + difference - difference**2) / n)
        z = ((only_a - only_b) / n - difference) / stderr
        assert sign * z == pytest.approx(1.959964, abs=1e-3)


def test_counts_of_right_and_wrong_are_told_apart():
    ours = proportion_effects([1, 1, 1, 0, 0, 1], [1, 0, 0, 1, 0, 1])

    assert (ours.both_right, ours.only_a, ours.only_b, ours.both_wrong) == (2, 2, 1, 1)
    assert ours.risk_difference == pytest.approx(1 / 6)
    assert ours.odds_ratio == 2.0


def test_a_tie_is_half_a_win():
    ours = paired_effects([0.9, 0.5, 0.5, 0.1], [0.1, 0.5, 0.5, 0.0])

    assert (ours.wins, ours.ties, ours.losses, ours.win_rate) == (2, 2, 0, 0.75)
    assert ours.win_rate_ci[1] <= 1.0


def test_the_worked_example_of_220_items():
    """Unpaired, 46 against 30 fixed items would not be significant; McNemar's pairing shows it."""
    a = np.array([1] * 150 + [1] * 24 + [0] * 8 + [0] * 38)
    b = np.array([1] * 150 + [0] * 24 + [1] * 8 + [0] * 38)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = mcnemar_test(a, b)

    assert ours.p_value == pytest.approx(stats.binomtest(8, 32).pvalue)
    assert ours.significant
    assert stats.ttest_ind(a, b).pvalue > 0.05
