"""Runs compared each with a baseline of its own, all p-values corrected together."""

from __future__ import annotations

import pytest

import themis
from themis.comparison.baselines import compare_to_baselines
from themis.comparison.engine import TestSettings
from themis.storage import ExperimentStorage

ROWS = [{"id": str(n), "question": f"{n} + 1?", "answer": str(n + 1)} for n in range(40)]


@pytest.fixture
def storage(tmp_path):
    for run_id, model in (("good", "fake/perfect"), ("fair", "fake/noisy-0.2"), ("poor", "fake/noisy-0.7")):
        themis.evaluate(ROWS, model=model, prompt="{question}", run_id=run_id, storage=tmp_path, progress=False)
    themis.evaluate("demo", model="fake/perfect", run_id="elsewhere", storage=tmp_path, progress=False)
    return ExperimentStorage(tmp_path)


def test_a_difference_is_the_run_minus_its_baseline(storage):
    found = compare_to_baselines(storage, [("good", "poor"), ("poor", "fair")])

    assert [(one.run_a_id, one.run_b_id, one.pairing.n, one.winner) for one in found.results] == [
        ("good", "poor", 40, "good"),
        ("poor", "fair", 40, "fair"),
    ]
    assert found.results[0].delta > 0 > found.results[1].delta


def test_all_pairs_are_corrected_together(storage):
    alone = compare_to_baselines(storage, [("good", "fair")]).results[0]
    together = compare_to_baselines(storage, [("good", "fair"), ("good", "poor"), ("fair", "poor")])

    assert together.results[0].test_result.p_value == alone.test_result.p_value
    assert together.results[0].corrected_p_value >= alone.corrected_p_value
    assert "3 p-values corrected by holm-bonferroni" in together.method_line()


def test_a_pair_that_shares_nothing_is_named_and_keeps_the_others(storage):
    found = compare_to_baselines(storage, [("elsewhere", "good"), ("fair", "good"), ("lost", "good")])

    assert [one.run_a_id for one in found.results] == ["fair"]
    assert found.left_out[0].startswith("elsewhere - good: ")
    assert found.left_out[1].startswith("lost - good: ")


def test_how_differences_are_tested_may_be_said_and_runs_be_called_otherwise(storage):
    settings = TestSettings(alpha=0.01, correction=None)
    found = compare_to_baselines(storage, [("good", "good-copy")], settings=settings)

    assert found.method_line() == "Test: auto, alpha 0.01"
    assert found.notes({"good": "Good"}) == list(found.left_out)
