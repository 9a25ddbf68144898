"""What agents of known ability score: perfect memory everything, no memory nothing, and whoever says everything little."""

from __future__ import annotations

import json

import pytest

from tests.memory.tests.conversation import TESTS, Reciter, Repeater, example, play
from themis.memory.agents.calibration import Amnesiac, Oracle, Parrot, Window

# A hundred of them by benchmarks/memory_keys.py.
SEEDS = range(12)
# Of all the tokens that a test takes, this share is within the window.
WINDOWS = (1.0, 0.9, 0.6, 0.3, 0.05)
# The most that an agent without memory reaches by chance. Ours do not guess, so for each test it is nothing.
CHANCE = dict.fromkeys(TESTS, 0.0)


@pytest.mark.parametrize("name", TESTS)
def test_perfect_memory_scores_exactly_one(name):
    for seed in SEEDS:
        played = play(example(name, seed), Oracle())

        assert played.grade.score == 1.0, (seed, played.grade.reasons)
        assert played.grade.reasons
        assert played.judged == 0


@pytest.mark.parametrize("agent", [Amnesiac, Parrot])
@pytest.mark.parametrize("name", TESTS)
def test_without_memory_nobody_scores_more_than_chance(name, agent):
    for seed in SEEDS:
        played = play(example(name, seed), agent())

        assert played.grade.score <= CHANCE[name], (seed, played.grade.reasons)
        assert played.grade.reasons


@pytest.mark.parametrize("name", TESTS)
def test_a_window_that_holds_the_whole_test_scores_one_and_less_the_more_it_misses(name):
    totals = dict.fromkeys(WINDOWS, 0.0)
    for seed in SEEDS:
        test = example(name, seed)
        whole = play(test, Oracle(), span_tokens=2_000).tokens
        for share in WINDOWS:
            played = play(test, Window(round(share * whole), "words"), span_tokens=2_000)
            assert played.grade.score == 1.0 or share < 1, (seed, played.grade.reasons)
            totals[share] += played.grade.score

    means = [total / len(SEEDS) for total in totals.values()]
    assert means == sorted(means, reverse=True)
    assert means[0] == 1.0
    assert means[-2] < 1.0
    assert means[-1] == 0.0


@pytest.mark.parametrize("name", TESTS)
def test_reciting_all_that_was_said_scores_less_than_half(name):
    for seed in SEEDS:
        grade = play(example(name, seed), Reciter(), judge="no").grade

        assert grade.score < 0.5, (seed, grade.reasons)


FORMS = {
    "sentence": " and ".join,
    "sentences": ". ".join,
    "lines": "\n".join,
    "claims": lambda everything: " ".join(f"It is {one}." for one in everything),
    "conclusions": lambda everything: " ".join(f"So the answer is {one}." for one in everything),
    "JSON list": json.dumps,
    "JSON answer": lambda everything: json.dumps({"answer": everything}),
}


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("name", TESTS)
def test_naming_everything_there_is_scores_less_than_half(name, form):
    for seed in SEEDS[::6]:
        test = example(name, seed)
        everything = test.dataset.every_answer(test)
        assert everything, f"{name} must say in `answers` what its answers can be"
        if "JSON" not in form:
            everything = [one if isinstance(one, str) else json.dumps(one) for one in everything]
        grade = play(test, Repeater(FORMS[form](everything)), judge="no").grade

        assert grade.score < 0.5, (seed, grade.reasons)


@pytest.mark.parametrize("name", TESTS)
def test_one_fixed_answer_is_never_enough(name):
    for reply in ("yes", "I don't know.", "0", "[]", "{}", ""):
        for seed in range(5):
            assert play(example(name, seed), Repeater(reply), judge="no").grade.score < 0.5


UNDECIDED = {
    "confidence": lambda test: next(
        f"Something {present.split()[0]}." for present, kept in test.expected_responses if kept
    ),
    "summary": lambda test: f"{test.expected_responses[0]['retracted'][0]} no longer holds.",
    "jokes": lambda test: "The one with " + " ".join(test.expected_responses[0].split()[1::2]),
    "locations": lambda test: f"{test.expected_responses[0]} and then 1 km north, 2 km east, 9 km west",
    "locations_directions": lambda test: "Walk north past 2 ponds, then right.",
    "trigger_response": lambda test: " ".join(next(filter(None, test.expected_responses)).split()[:-2]) + " oh well",
    "restaurant": lambda test: "I would like the soup and the fish, or some tea.",
}


@pytest.mark.parametrize("name", sorted(UNDECIDED))
def test_what_words_do_not_settle_is_a_failure_that_names_the_judge(name):
    test = example(name, 0)
    reply = UNDECIDED[name](test)

    without = play(test, Repeater(reply)).grade
    nonsense = play(test, Repeater(reply), judge="Hm, who can say?").grade

    assert without.failed
    assert any("--judge" in reason for reason in without.reasons)
    assert nonsense.failed


def test_a_judge_settles_what_words_do_not():
    for name in ("jokes", "locations"):
        test = example(name, 0)
        agreed = play(test, Repeater(UNDECIDED[name](test)), judge="Yes.")
        denied = play(test, Repeater(UNDECIDED[name](test)), judge="No, it is not.")

        assert (agreed.grade.score, agreed.judged) == (1.0, 1)
        assert denied.grade.score == 0.0
    test = example("locations_directions", 0)
    legs = [{"kilometers": 40, "direction": "north"}]
    assert play(test, Repeater("Walk north past 2 ponds."), judge=json.dumps(legs)).grade.score == 0.0
