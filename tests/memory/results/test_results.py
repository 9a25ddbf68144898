"""Results and summaries: what is read from the store, and the numbers that are made of it."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.comparison import compare_scores
from themis.exceptions import ConfigurationError
from themis.memory.results import (
    DatasetScore,
    Message,
    StoredResult,
    bounded_interval,
    dataset_scores,
    interval_of_sum,
    load_results,
    summarise_results,
)
from themis.memory.spans import SpanStatus
from themis.memory.timeline import read_timeline
from themis.storage import ExperimentStorage


def result(dataset: str, number: int, score: float | None, *, ended: bool = True, **fields: object) -> StoredResult:
    return StoredResult(
        run_name="r", agent_name="a", dataset_name=dataset, example_id=str(number), score=score, ended=ended, **fields
    )


def test_a_perfect_agent_scores_as_many_points_as_there_are_datasets(finished: ExperimentStorage) -> None:
    summary = summarise_results(load_results(finished, "small - oracle"))

    assert (summary.score, summary.max_score, summary.accuracy) == (5.0, 5, 100.0)
    assert summary.score_interval is not None
    low, high = summary.score_interval
    assert low < 5.0 == high


def test_an_agent_without_memory_scores_nothing_and_has_no_span(finished: ExperimentStorage) -> None:
    summary = summarise_results(load_results(finished, "small - amnesiac"))

    assert summary.score == 0.0
    assert summary.ltm_score == 0.0
    assert summary.effective_span is not None
    assert (summary.effective_span.tokens, summary.effective_span.status) == (0, SpanStatus.NOTHING_REMEMBERED)


def test_a_result_says_where_its_needles_lie(finished: ExperimentStorage) -> None:
    found = {one.test_id: one for one in load_results(finished, "small - oracle").results}
    shopping, colours = found["Shopping - 0"], found["Colours - 0"]

    assert shopping.needles == colours.needles == 3
    assert len(shopping.needle_distances) == 3, "every change of the list counts"
    assert shopping.needle_distances == sorted(shopping.needle_distances, reverse=True)
    assert shopping.distance_tokens == shopping.questions[0].tokens_before - shopping.messages[0].tokens_before
    assert len(colours.needle_distances) == 1, "only the last colour counts"
    assert colours.distance_tokens == colours.questions[0].tokens_before - colours.messages[2].tokens_before


def test_a_test_that_listens_is_as_far_as_the_reply_that_decided_it(finished: ExperimentStorage) -> None:
    found = {one.test_id: one for one in load_results(finished, "small - oracle").results}
    recital = found["Prospective Memory - 0"]

    assert recital.distance_tokens == recital.ended_tokens - recital.messages[0].tokens_before


def test_only_what_an_answer_needs_counts_for_its_distance() -> None:
    messages = [
        Message(1, "old", "", False, True, 0),
        Message(2, "new", "", False, True, 700),
        Message(3, "which?", "", True, False, 1_000, needs=(1,)),
    ]

    assert result("D", 0, 1.0, messages=messages).needle_distances == [300]


def test_a_failure_is_counted_but_not_scored() -> None:
    scores = dataset_scores([result("D", 0, 1.0), result("D", 1, None), result("D", 2, None, ended=False)])

    assert [(one.mean, one.scored, one.undecided, one.missing) for one in scores] == [(1.0, 1, 1, 1)]


def test_a_dataset_without_a_verdict_has_no_mean() -> None:
    (score,) = dataset_scores([result("D", 0, None)])

    assert math.isnan(score.mean)
    assert score.interval is None


def test_a_run_of_samples_is_refused(tmp_path) -> None:
    storage = ExperimentStorage(tmp_path)
    storage.start_run("plain")

    with pytest.raises(ConfigurationError, match="kind 'samples', expected a memory run"):
        load_results(storage, "plain")


def test_the_interval_of_a_sum_is_narrower_than_the_sum_of_the_intervals() -> None:
    one = DatasetScore("a", 0.5, None, bounded_interval([0.0, 1.0, 0.0, 1.0]), 4)
    assert one.interval is not None
    low, high = interval_of_sum([one, one, one, one]) or (0.0, 0.0)

    width = one.interval[1] - one.interval[0]
    # Four independent means: errors add up in squares, so twice the width of one and not four times.
    assert high - low == pytest.approx(2 * width)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_of_scores_holds_their_mean_and_stays_between_0_and_1(scores: list[float]) -> None:
    low, high = bounded_interval(scores)

    assert 0.0 <= low <= sum(scores) / len(scores) + 1e-9
    assert sum(scores) / len(scores) - 1e-9 <= high <= 1.0


# --- the timeline -----------------------------------------------------------------------------------------------------


def test_the_timeline_has_every_test_and_every_token(finished: ExperimentStorage) -> None:
    line = read_timeline(finished.reader("small - oracle").turns())
    found = load_results(finished, "small - oracle")

    assert {test.test_id for test in line.tests} == {one.test_id for one in found.results}
    assert line.tokens == found.run.summary["memory"]["conversation_tokens"]
    assert line.turns == found.run.summary["memory"]["turns"]
    places = {test.test_id: test for test in line.tests}
    for one in found.results:
        assert places[one.test_id].began[0] == one.began_tokens
    assert line.jumps, "jokes are told hours apart"


def test_isolated_conversations_are_laid_end_to_end(finished: ExperimentStorage) -> None:
    run_id = "small - oracle isolated"
    line = read_timeline(finished.reader(run_id).turns(), isolated=True)

    assert line.tokens == finished.get_run(run_id).summary["memory"]["conversation_tokens"]
    ends = [(test.began[0], test.ended[0]) for test in line.tests if test.ended]
    assert len(ends) == len(line.tests)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ends))


# --- comparisons --------------------------------------------------------------------------------------------------------


def test_agents_are_paired_by_test() -> None:
    good = {("", f"t{n}"): 1.0 for n in range(12)}
    bad = {("", f"t{n}"): 0.0 for n in range(12)} | {("", "only here"): 1.0}
    (pair,) = compare_scores({"good": good, "bad": bad})

    assert (len(pair.run_a_samples), pair.delta, pair.winner) == (12, 1.0, "good")


def test_three_tests_cannot_separate_two_agents() -> None:
    (pair,) = compare_scores({"a": {("", f"t{n}"): 1.0 for n in range(3)}, "b": {("", f"t{n}"): 0.0 for n in range(3)}})

    assert pair.winner == "tie"
    assert "too few" in pair.note


def test_tests_of_one_conversation_are_not_independent() -> None:
    # Ten tests in each of two conversations that differ as a whole: two observations, not twenty.
    good = {(conversation, f"t{n}"): 1.0 for conversation in "xy" for n in range(10)}
    bad = dict.fromkeys(good, 0.0)
    (pair,) = compare_scores({"good": good, "bad": bad})

    assert pair.test_result is not None
    assert pair.test_result.clusters == 2
    assert pair.winner == "tie"
