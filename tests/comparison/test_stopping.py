"""A run may stop as soon as it is decided, and not before."""

from __future__ import annotations

import time

import pytest
from scored_runs import Number, scored_run

import themis
from themis.comparison import StopWhenDecided
from themis.core.entities import EvaluationRecord, MetricScore
from themis.exceptions import MetricError, StorageError

ROWS = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(1200)]


@pytest.fixture
def store(tmp_path):
    themis.evaluate(ROWS, model="fake/noisy-0.5", prompt="{question}", storage=tmp_path, run_id="baseline")
    return tmp_path


def candidate(store, model, **settings):
    stop = StopWhenDecided("baseline", "ExactMatch", storage_path=store)
    return themis.evaluate(
        ROWS, model=model, prompt="{question}", storage=store, run_id="candidate", stop_when=stop, **settings
    )


def answer_in_its_own_time(row):
    """Slower than answers are judged, as every model is."""
    time.sleep(0.005)
    return "" if row["id"] % 10 == 0 else row["question"].removeprefix("say ")


def test_a_much_better_run_stops_early_and_says_why(store):
    report = candidate(store, answer_in_its_own_time, workers=4)
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


def test_a_metric_is_found_by_any_spelling_and_a_wrong_one_is_an_error(store):
    assert StopWhenDecided("baseline", "exact_match", storage_path=store).metric == "ExactMatch"
    with pytest.raises(MetricError, match="did you mean 'ExactMatch'"):
        StopWhenDecided("baseline", "ExactMach", storage_path=store)


def test_scores_beyond_zero_and_one_are_refused_before_the_first_call(tmp_path):
    scored_run(tmp_path, "long", [30, 40])
    with pytest.raises(MetricError, match="scores from 0 to 1, Number of 'long' has 30"):
        StopWhenDecided("long", "Number", storage_path=tmp_path)


def test_a_lower_value_is_better_news_where_lower_is_better(tmp_path):
    scored_run(tmp_path, "costly", [1] * 60, metrics=[Number("Cost", higher_is_better=False)])
    stop = StopWhenDecided("costly", "Cost", storage_path=tmp_path)

    said = [stop(EvaluationRecord(str(item), [MetricScore("Cost", 0.0)])) for item in range(60)]

    assert next(filter(None, said)).startswith("better than costly on Cost")
