"""A run may stop as soon as it is decided, and not before."""

from __future__ import annotations

import pytest

import themis
from themis.comparison import StopWhenDecided
from themis.exceptions import StorageError

ROWS = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(1200)]


@pytest.fixture
def store(tmp_path):
    themis.evaluate(ROWS, model="fake/noisy-0.5", prompt="{question}", storage=tmp_path, run_id="baseline")
    return tmp_path


def candidate(store, model, **rule):
    stop = StopWhenDecided("baseline", "ExactMatch", storage_path=store, **rule)
    return themis.evaluate(ROWS, model=model, prompt="{question}", storage=store, run_id="candidate", stop_when=stop)


def test_a_much_better_run_stops_early_and_says_why(store):
    report = candidate(store, "fake/noisy-0.1")
    assert report.metadata["stopped"].startswith("better than baseline on ExactMatch after ")
    assert report.metric("exact_match").count < 1200


def test_a_worse_run_is_known_to_be_worse(store):
    assert candidate(store, "fake/noisy-0.9").metadata["stopped"].startswith("worse than baseline")


def test_the_same_run_never_stops_without_a_margin_and_is_equivalent_with_one(store):
    report = candidate(store, "fake/noisy-0.5")
    assert "stopped" not in report.metadata
    assert report.metric("exact_match").count == 1200
    stop = StopWhenDecided("baseline", "ExactMatch", storage_path=store, margin=0.1)
    again = themis.evaluate(
        ROWS, model="fake/noisy-0.5", prompt="{question}", storage=store, run_id="again", stop_when=stop
    )
    assert again.metadata["stopped"].startswith("as good as baseline")


def test_a_baseline_that_is_not_there_is_an_error(store):
    with pytest.raises(StorageError, match="did you mean 'baseline'"):
        StopWhenDecided("baselin", "ExactMatch", storage_path=store)
