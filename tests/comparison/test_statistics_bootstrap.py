"""Bootstrap intervals against scipy's, and each way of drawing resamples against the plain one."""

import numpy as np
import pytest
from scipy import stats

from themis.comparison import resampling
from themis.comparison.resampling import BootstrapInterval, bootstrap_interval, resample_sums
from themis.comparison.statistics import bootstrap_test, pair

SHAPES = {
    "normal": lambda rng: rng.normal(size=60),
    "skewed": lambda rng: rng.exponential(size=60) ** 2,
    "binary": lambda rng: (rng.random(60) < 0.2) * 1.0,
    "graded": lambda rng: rng.integers(0, 6, 60) / 5,
    "few": lambda rng: rng.normal(size=8),
    "many": lambda rng: rng.lognormal(size=4500),
    "outlier": lambda rng: np.append(rng.normal(size=4500), 30.0),
}


def interval(values, clusters=None, **options) -> BootstrapInterval:
    """Of the mean of one column of scores."""
    return bootstrap_interval(pair(values, np.zeros(len(values)), clusters=clusters).units, **options)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_agree_with_scipy_but_for_chance(shape, method):
    values = SHAPES[shape](np.random.default_rng(1))
    resamples = 20_000 if values.size < 100 else 6_000
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=resamples, method=method, rng=np.random.default_rng(2), batch=500
    )
    ours = interval(values, method=method, resamples=resamples)

    assert ours.method == method
    assert ours.estimate == pytest.approx(values.mean())
    assert ours.stderr == pytest.approx(theirs.standard_error, rel=0.04)
    # The ends of 0/1 scores move by whole items; BCa reaches far into the tail of skewed ones.
    chance = 1.01 / 60 if shape == "binary" else 0.15 * ours.stderr
    assert ours.ci == pytest.approx(tuple(theirs.confidence_interval), abs=chance)


def test_a_bootstrap_of_the_difference_is_one_of_the_differences():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 50))

    assert bootstrap_test(a, b).ci == pytest.approx(interval(a - b).ci, abs=1e-12)


def test_the_level_is_that_of_alpha():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 50))

    assert bootstrap_test(a, b, alpha=0.2).ci == pytest.approx(interval(a - b, level=0.8).ci, abs=1e-12)


@pytest.mark.parametrize("sizes", ["equal", "unequal"])
def test_a_cluster_bootstrap_draws_whole_clusters(sizes):
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(40), 5) if sizes == "equal" else np.repeat(np.arange(40), rng.integers(1, 12, 40))
    values = rng.normal(size=40)[clusters] + rng.normal(size=clusters.size) * 0.3
    members = [values[clusters == cluster] for cluster in range(40)]
    replicates = [np.concatenate([members[cluster] for cluster in rng.integers(0, 40, 40)]).mean() for _ in range(4000)]

    ours = interval(values, clusters=clusters, method="percentile")

    assert ours.stderr == pytest.approx(np.std(replicates), rel=0.05)
    assert ours.ci == pytest.approx(tuple(np.quantile(replicates, [0.025, 0.975])), abs=0.12 * ours.stderr)
    assert ours.stderr > 1.5 * interval(values).stderr


def test_every_way_of_drawing_has_the_same_distribution():
    """Counts of equal values, cells of neighbouring ones and plain draws, on the same lognormal scores."""
    rng = np.random.default_rng(5)
    values = np.round(rng.lognormal(size=5000), 2)
    plain = resampling._sums_of_draws(values[:, None], 4000, np.random.default_rng(6))[:, 0]
    cells = resampling._sums_of_cells(np.sort(values), 4000, np.random.default_rng(7))
    unique, counts = np.unique(values, return_counts=True)
    counted = resampling._sums_of_counts(unique[:, None], counts / 5000, 5000, 4000, np.random.default_rng(8))[:, 0]

    for other in (cells, counted):
        assert stats.ks_2samp(plain, other).pvalue > 0.01
        assert other.std() == pytest.approx(plain.std(), rel=0.04)


def test_memory_does_not_grow_with_the_number_of_resamples():
    """A chunk holds a bounded number of draws, so many resamples of many rows come in many chunks."""
    drawn = []

    class Watched(np.random.Generator):
        def integers(self, low, high, size):
            drawn.append(size)
            return super().integers(low, high, size=size)

    rng = np.random.default_rng(9)
    resample_sums(rng.normal(size=(3000, 2)), 500, Watched(np.random.PCG64(1)))

    assert sum(rows for rows, _ in drawn) == 500
    assert max(rows * width for rows, width in drawn) <= 2**18


def test_values_without_spread_have_an_interval_without_width():
    ours = interval([0.1] * 20)

    assert ours.ci == pytest.approx((0.1, 0.1), abs=1e-15)
    assert ours.method == "percentile"
    assert "BCa is not defined" in ours.note


def test_a_large_offset_does_not_cost_the_digits_of_a_small_spread():
    values = np.random.default_rng(10).normal(size=200)
    here, there = interval(values), interval(values + 2.0**30)

    assert there.ci == pytest.approx((here.ci[0] + 2.0**30, here.ci[1] + 2.0**30), abs=0.05 * here.stderr, rel=0)
