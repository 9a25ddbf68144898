"""What agents of known ability score: perfect memory everything, no memory nothing, and whoever says everything little."""

from __future__ import annotations

import json
import re

import pytest

from tests.memory.tests.conversation import Reciter, Repeater, example, play
from themis.memory.agents.calibration import Amnesiac, Oracle, Parrot, Window
from themis.memory.material import (
    inns,
    island,
    life,
    machine,
    menu,
    names,
    preferences,
    quotations,
    spies,
    triggers,
    words,
)
from themis.memory.material.beliefs import CONTAINERS
from themis.memory.material.jokes import JOKES
from themis.memory.tests import BUILTIN_TESTS
from themis.memory.tests.instruction_exceptions import STORES

SEEDS = range(100)
TESTS = sorted(BUILTIN_TESTS)
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


EVERYTHING = {
    "abstention": [*names.SURNAMES, "I don't know."],
    "aggregation": [*map(str, range(100)), *life.REPAIRS],
    "chapterbreak": [f"Option {number}" for number in range(1, 7)],
    "colours": words.COLOURS,
    "conflicting_personal_info": life.CITIES,
    "contradiction": names.STORY_NAMES,
    "delayed_recall": [value for kind in island.KINDS for value in kind],
    "forgetting": life.PASSWORDS,
    "how_to_think": inns.INNS,
    "instruction_exceptions": STORES,
    "instruction_recall": [value for kind in machine.KINDS for value in kind],
    "interference": [value for _, _, values in life.ATTRIBUTES.values() for value in values],
    "jokes": JOKES,
    "knowledge_update": life.ROOMS,
    "kv": lambda test: re.findall(r"[0-9a-f-]{36}", " ".join(test.script[:-1])),
    "locations": [f"{km} km {direction}" for km in range(1, 20) for direction in words.DIRECTIONS],
    "locations_directions": [f"{km} km {direction}" for km in range(1, 5) for direction in words.DIRECTIONS],
    "name_list": names.FIRST_NAMES,
    "names": names.FIRST_NAMES,
    "preference": [value for one in preferences.PREFERENCES for value in (*one.fitting, *one.violating)],
    "prospective_memory": [quotation for quotation, _ in quotations.QUOTATIONS],
    "restaurant": [*menu.DRINKS, *menu.DISHES, "That is not what I ordered."],
    "sallyanne": CONTAINERS,
    "shopping": [{"item": item, "quantity": quantity} for item in words.GOODS for quantity in (1, 2, 3)],
    "spy_meeting": [word for variants in spies.HINTS.values() for _, keywords in variants for word in keywords],
    "temporal_order": [*life.DEEDS, *map(str, range(100))],
    "trigger_response": [trigger.phrase for trigger in triggers.TRIGGERS],
    "verbatim": lambda test: test.script[:-1],
}


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
    for seed in SEEDS:
        test = example(name, seed)
        everything = EVERYTHING[name](test) if callable(EVERYTHING[name]) else list(EVERYTHING[name])
        if "JSON" not in form:
            everything = [one if isinstance(one, str) else json.dumps(one) for one in everything]
        grade = play(test, Repeater(FORMS[form](everything)), judge="no").grade

        assert grade.score < 0.5, (seed, grade.reasons)


@pytest.mark.parametrize("name", TESTS)
def test_one_fixed_answer_is_never_enough(name):
    for reply in ("yes", "I don't know.", "0", "[]", "{}", ""):
        for seed in range(10):
            assert play(example(name, seed), Repeater(reply), judge="no").grade.score < 0.5


UNDECIDED = {
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
