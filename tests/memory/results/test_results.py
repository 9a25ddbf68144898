"""Results and summaries: what is read from the store, and the numbers that are made of it."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.comparison import compare_scores
from themis.exceptions import ConfigurationError
from themis.memory import create_agent, create_filler, run
from themis.memory.actions import Grade, Wait
from themis.memory.benchmark import Benchmark
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.questions import QuestionScore
from themis.memory.results import (
    Message,
    ScoredTest,
    StoredResult,
    dataset_scores,
    interval_of_mean,
    interval_of_sum,
    load_results,
    points_of,
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
    (asked,) = shopping.questions
    assert [needle.message for needle in asked.needles] == [0, 1, 2], "every change of the list counts"
    assert shopping.distance_tokens == shopping.messages[3].tokens_before - shopping.messages[0].tokens_before
    (needle,) = colours.questions[0].needles
    assert needle.message == 2, "only the last colour counts"
    assert needle.distance_tokens == colours.messages[3].tokens_before - colours.messages[2].tokens_before
    assert needle.distance_time == colours.messages[3].now - colours.messages[2].now
    assert colours.questions[0].score == 1.0, "the only question scores what the test does"


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

    assert result("D", 0, 1.0, messages=messages).questions[0].distance_tokens == 300


def _asked_near_and_far() -> list[Message]:
    return [
        Message(1, "old", "", False, True, 0),
        Message(2, "new", "", False, True, 9_000),
        Message(3, "old?", "", True, False, 10_000, needs=(0,)),
        Message(4, "new?", "", True, False, 10_000, needs=(1,)),
        Message(5, "what is 2 + 2?", "", True, False, 10_000, needs=()),
    ]


def test_each_question_is_a_point_at_its_own_distance() -> None:
    found = result("D", 0, 1 / 3, messages=_asked_near_and_far())
    found.question_scores = [QuestionScore(0.0), QuestionScore(1.0), QuestionScore(1.0)]

    points = [(point.distance_tokens, point.score) for point in points_of([found])]

    assert points == [(10_000, 0.0), (1_000, 1.0)], "what needs nothing says nothing about memory"


def test_questions_far_apart_without_scores_of_their_own_say_nothing_about_distance() -> None:
    assert points_of([result("D", 0, 0.5, messages=_asked_near_and_far())]) == []


def test_questions_at_about_one_distance_share_the_score_of_their_test() -> None:
    messages = [
        Message(1, "old", "", False, True, 0),
        Message(2, "and?", "", True, False, 10_000, needs=(0,)),
        Message(3, "more?", "", True, False, 10_100, needs=(0,)),
    ]

    (point,) = points_of([result("D", 0, 0.5, messages=messages)])

    assert (point.distance_tokens, point.score) == (10_100, 0.5)


def test_a_window_is_found_where_it_is_by_questions_asked_at_many_distances(tmp_path) -> None:
    storage = ExperimentStorage(tmp_path)
    tests = Diary(memory_span=8_000).generate_examples(6)
    benchmark = Benchmark(
        run_id="diary",
        name="diary",
        tests=tests,
        kinds={test.test_id: "diary" for test in tests},
        conflicts={"diary": ["diary"]},
        agent_name="window(3000)",
        make_agent=lambda session: create_agent("window(3000)", session=session),
        filler=create_filler("facts"),
    )
    run(benchmark, storage)

    found = load_results(storage, "diary")
    scores = {question.score for one in found.results for question in one.questions}
    span = summarise_results(found).effective_span

    assert scores == {0.0, 1.0}, "some were remembered, some forgotten"
    assert all(one.score == math.fsum(q.score for q in one.questions) / 8 for one in found.results)
    assert 2_000 <= span.tokens <= 3_000
    assert span.low <= 3_000 <= span.high <= 5_000


@dataclass(kw_only=True)
class Diary(DatasetInterface):
    """Eight days, each told once and asked for at the end."""

    name = "Diary"

    def generate_examples(self, num_examples):
        days = [f"On day {day} I saw a heron." for day in range(8)]
        asked = [f"What did I see on day {day}?" for day in range(8)]
        return [
            TestExample(
                dataset=self,
                example_id=str(number),
                script=[*days, *asked],
                is_question=[False] * 8 + [True] * 8,
                waits=[*(Wait(until_share=(day + 1) / 9) for day in range(8)), *[Wait()] * 8],
                expected_responses=["a heron"] * 8,
            )
            for number in range(num_examples)
        ]

    def needed_lines(self, example):
        return [[day] for day in range(8)]

    def evaluate(self, questions, responses, expected):
        return Grade.mean(Grade.when("heron" in response) for response in responses)


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


def scored(scores, conversations=None) -> list[ScoredTest]:
    return [ScoredTest(score, conversations[place] if conversations else None) for place, score in enumerate(scores)]


def test_the_interval_of_a_sum_is_narrower_than_the_sum_of_the_intervals() -> None:
    one = scored([0.0, 1.0, 0.0, 1.0] * 5)
    low, high = interval_of_sum([one, one, one, one]) or (0.0, 0.0)

    alone = interval_of_mean(one)
    # Four independent means: errors add up in squares, so twice the width of one and not four times.
    assert high - low == pytest.approx(2 * (alone[1] - alone[0]), rel=0.1)


def test_the_total_of_one_dataset_is_its_score() -> None:
    tests = scored([1.0, 0.5, 0.0])

    assert interval_of_sum([tests]) == interval_of_mean(tests)
    assert interval_of_sum([]) is None


def test_datasets_that_are_all_right_leave_the_total_in_doubt() -> None:
    low, high = interval_of_sum([scored([1.0] * 3)] * 11) or (0.0, 0.0)

    assert 9.5 < low < 10.5
    assert high == 11


def test_one_test_that_fails_does_not_settle_a_sum_in_which_it_weighs_as_much_as_fifty() -> None:
    fifty = scored([1.0] * 45 + [0.0] * 5)
    low, high = interval_of_sum([scored([0.0]), fifty, fifty]) or (0.0, 0.0)

    assert low < 2.0
    assert high > 2.7


def test_tests_of_one_conversation_count_as_one() -> None:
    scores, names = [1.0] * 6 + [0.0] * 6, ["a"] * 6 + ["b"] * 6
    together, apart = (interval_of_mean(scored(scores, labels)) for labels in (names, None))

    assert together[0] < apart[0]
    assert together[1] > apart[1]
    total = interval_of_sum([scored(scores, names)] * 2) or (0.0, 0.0)
    alone = interval_of_sum([scored(scores)] * 2) or (0.0, 0.0)
    assert total[1] - total[0] > alone[1] - alone[0]


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=1, max_size=6), st.booleans())
def test_a_total_and_its_parts_hold_what_they_are_of_and_stay_in_their_range(groups, shared) -> None:
    datasets = [scored(group, [place % 2 for place in range(len(group))] if shared else None) for group in groups]
    for tests in datasets:
        low, high = interval_of_mean(tests)
        mean = sum(test.score for test in tests) / len(tests)
        assert 0.0 <= low <= mean + 1e-9
        assert mean - 1e-9 <= high <= 1.0
        assert high - low > 0.01
    low, high = interval_of_sum(datasets) or (0.0, 0.0)
    total = sum(sum(group) / len(group) for group in groups)
    assert 0.0 <= low <= total + 1e-9
    assert total - 1e-9 <= high <= len(groups) + 1e-9
    assert high - low > 0.01


@pytest.mark.parametrize(("datasets", "tests", "share"), [(11, 3, 0.5), (11, 3, 0.9), (18, 1, 0.7), (11, 10, 0.7)])
def test_the_interval_of_a_total_covers(datasets, tests, share) -> None:
    rng = random.Random(5)
    covered = 0
    for _ in range(300):
        drawn = [scored([float(rng.random() < share) for _ in range(tests)]) for _ in range(datasets)]
        low, high = interval_of_sum(drawn) or (0.0, 0.0)
        covered += low <= datasets * share <= high

    assert covered >= 0.92 * 300


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
