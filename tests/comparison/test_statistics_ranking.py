"""Places of many runs on shared items."""

import numpy as np
import pytest

from themis.comparison.ranking import rank_runs
from themis.exceptions import ConfigurationError, MetricError


def test_clear_differences_have_certain_places():
    rng = np.random.default_rng(1)
    difficulty = rng.random(2000)
    ranking = rank_runs({name: difficulty < skill for name, skill in (("low", 0.3), ("top", 0.9), ("mid", 0.6))})

    assert [(run.run, run.rank, run.best, run.worst) for run in ranking.runs] == [
        ("top", 1, 1, 1),
        ("mid", 2, 2, 2),
        ("low", 3, 3, 3),
    ]
    assert [run.share_best for run in ranking.runs] == [1.0, 0.0, 0.0]
    assert (ranking.items, ranking.clusters, ranking.level, ranking.seed) == (2000, None, 0.95, 0)


def test_equal_runs_may_have_any_place_and_share_the_first():
    scores = np.random.default_rng(2).random(50)
    ranking = rank_runs({"a": scores, "b": scores, "c": scores.copy()})

    for run in ranking.runs:
        assert (run.rank, run.best, run.worst) == (1, 1, 3)
        assert run.share_best == pytest.approx(1 / 3)


def test_pairing_tells_runs_apart_that_their_spread_would_hide():
    rng = np.random.default_rng(3)
    difficulty = rng.normal(size=200) * 5
    a, b = difficulty + rng.normal(size=200) * 0.1 + 0.1, difficulty + rng.normal(size=200) * 0.1

    assert rank_runs({"b": b, "a": a}).runs[0].worst == 1
    assert rank_runs({"b": rng.permutation(b), "a": a}).runs[0].worst == 2


def test_clusters_make_places_less_certain():
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(8), 50)
    b = rng.normal(size=400)
    a = b + np.repeat(rng.normal(0.25, 0.6, size=8), 50)

    alone, clustered = rank_runs({"a": a, "b": b}), rank_runs({"a": a, "b": b}, clusters=clusters)

    assert [run.worst for run in alone.runs] == [1, 2]
    assert [run.worst for run in clustered.runs] == [2, 2]
    assert clustered.clusters == 8


def test_lower_can_be_better():
    rng = np.random.default_rng(5)
    fast, slow = rng.normal(1, 0.1, size=100), rng.normal(2, 0.1, size=100)
    ranking = rank_runs({"slow": slow, "fast": fast}, higher_is_better=False)

    assert [run.run for run in ranking.runs] == ["fast", "slow"]
    assert ranking.runs[0].mean == pytest.approx(fast.mean())


def test_a_constant_gap_is_not_sure():
    scores = np.arange(5) / 10
    ranking = rank_runs({"a": scores + 0.1, "b": scores})

    assert [(run.run, run.rank, run.best, run.worst) for run in ranking.runs] == [("a", 1, 1, 2), ("b", 2, 1, 2)]


def test_all_true_places_are_covered_together_as_often_as_promised():
    """Three runs of equal skill and one better: places 1 and 2 to 4, all to be covered in one breath."""
    rng = np.random.default_rng(6)
    covered = 0
    for seed in range(200):
        difficulty = rng.normal(size=(80, 1))
        scores = difficulty + rng.normal(size=(80, 4)) + [0.2, 0, 0, 0]
        ranking = rank_runs(dict(zip("abcd", scores.T, strict=True)), resamples=200, seed=seed)
        places = {run.run: run for run in ranking.runs}
        covered += places["a"].best == 1 and all(places[run].worst >= 4 and places[run].best <= 2 for run in "bcd")

    assert covered / 200 >= 0.92


def test_a_seed_repeats_the_ranking():
    rng = np.random.default_rng(7)
    scores = {"a": rng.normal(size=40), "b": rng.normal(size=40)}

    assert rank_runs(scores, seed=5) == rank_runs(scores, seed=5)
    assert rank_runs(scores, seed=5) != rank_runs(scores, seed=6)


@pytest.mark.parametrize(
    ("scores", "options", "error", "message"),
    [
        ({"a": [1, 0]}, {}, ConfigurationError, "at least two runs, got 1"),
        ({"a": [1, 0], "b": [1, 0, 1]}, {}, MetricError, "same items"),
        ({"a": [1], "b": [0]}, {}, MetricError, "at least two shared items, got 1"),
        ({"a": [1, None], "b": [0, 1]}, {}, MetricError, "1 of 2 scores"),
        ({"a": [1, 0], "b": [0, 1]}, {"clusters": [1, 1]}, MetricError, "one cluster"),
        ({"a": [1, 0], "b": [0, 1]}, {"level": 95}, ConfigurationError, "got 95"),
        ({"a": [1, 0], "b": [0, 1]}, {"resamples": 5}, ConfigurationError, "at least 100"),
    ],
)
def test_what_cannot_be_ranked_is_refused(scores, options, error, message):
    with pytest.raises(error, match=message):
        rank_runs(scores, **options)
