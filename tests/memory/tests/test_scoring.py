"""What scorers make of several replies, and of replies that say more than was asked."""

from __future__ import annotations

import pytest

from tests.memory.tests.conversation import dataset
from tests.memory.tests.known_replies import score_of
from themis.memory.actions import Grade
from themis.memory.scoring.claims import abstains, extract_about, grade_claim, weigh_answers, weigh_claim
from themis.memory.scoring.lists import grade_passage
from themis.memory.scoring.prominence import stand_apart
from themis.memory.scoring.words import mentions
from themis.memory.tests.beliefs import grade_place
from themis.memory.tests.exact import grade_code
from themis.memory.tests.facts import combine_abstention, combine_forgetting, weigh_abstention, weigh_forgetting
from themis.memory.tests.recall import ISLAND_KINDS
from themis.memory.tests.standing_requests import TriggerResponse, grade_recital
from themis.memory.tests.updates import COLOURS

QUOTATION = "It is not down in any map; true places never are."
PHRASE = "Read it a chapter about the sea"
LOCKS = ("wine vault", "garden shed", "wine vault")
CODE, OTHER = "0123abcd-4567-89ab-cdef-0123456789ab", "ffffabcd-4567-89ab-cdef-0123456789ab"


def test_a_word_inside_another_word_is_not_a_claim():
    for reply in ("I shared it.", "The tanker", "scarletina", "unorangelike", "blueish"):
        assert grade_claim(reply, "red", [*COLOURS, "red"]).score == 0
    assert grade_claim("navy dark blue", "blue", ["dark blue", "blue"]).score == 0
    assert grade_claim("dark blue", "dark blue", ["dark blue", "blue"]).score == 1


def test_the_reason_tells_a_word_that_is_missing_from_one_that_is_not_claimed():
    assert "which is not in" in grade_claim("I forget.", "red", ["red", "blue"]).reasons[0]
    assert "which is only mentioned in" in grade_claim("It is not red.", "red", ["red", "blue"]).reasons[0]


@pytest.mark.parametrize(
    ("reply", "phrase"),
    [("two batteries", "battery"), ("3 jars of honey", "jar of honey"), ("boxes of matches", "box of matches")],
)
def test_a_thing_may_be_named_in_another_number(reply, phrase):
    assert mentions(reply, phrase)
    assert mentions("a bicycle", "bicycles")
    assert not mentions("Agne", "Agnes"), "a name has no singular"


def test_reciting_every_fact_answers_no_question():
    expected = ["Torvane", "Ysolde", "korrins", "Ossel"]
    sheet = "The capital is Torvane, the queen Ysolde, people pay in korrins, the river is the Ossel."
    nearly = ["Torvane on the Ossel", "Queen Ysolde", "korrins", "the Grindle"]

    assert Grade.mean(weigh_answers([sheet] * 4, expected, ISLAND_KINDS)).score == 0
    assert Grade.mean(weigh_answers(expected, expected, ISLAND_KINDS)).score == 1
    assert Grade.mean(weigh_answers(nearly, expected, ISLAND_KINDS)).score == 0.75
    assert Grade.mean(weigh_answers(expected[:2], expected, ISLAND_KINDS)).score == 0.5


def test_what_is_said_of_others_is_told_apart():
    assert extract_about("Ann likes tea, Bob coffee.", "Ann", ["Bob"]).strip() == "ann likes tea"
    assert "coffee" in extract_about("Unlike Bob, Ann likes coffee.", "Ann", ["Bob"])
    assert "tea" not in extract_about("Bob likes tea, a lot of it. Ann does not.", "Ann", ["Bob"])


def test_a_quotation_belongs_into_one_reply_only():
    assert grade_recital(["I will.", "Fine.", f"4. {QUOTATION}"], QUOTATION, 3).score == 1
    assert grade_recital(["I will.", QUOTATION, "4"], QUOTATION, 3).score == 0
    assert grade_recital([QUOTATION, QUOTATION, QUOTATION], QUOTATION, 3).score == 0
    assert grade_recital(["I will.", "Fine."], QUOTATION, 3).score == 0
    assert grade_recital(["I will.", "Fine.", QUOTATION, QUOTATION], QUOTATION, 3).score == 1


def verdict(replies, expected):
    with pytest.raises(StopIteration) as end:
        next(TriggerResponse().evaluate(["?"] * len(replies), replies, expected))
    return end.value.value.score


def test_a_false_alarm_costs_as_much_as_all_triggers_bring():
    expected = [PHRASE, None, PHRASE]

    assert verdict([PHRASE, "How nice.", PHRASE], expected) == 1
    assert verdict([PHRASE, "How nice.", "Poor thing."], expected) == 0.5
    assert verdict([PHRASE, PHRASE, PHRASE], expected) == 0


def test_a_chain_of_codes_ends_on_the_answer():
    assert grade_code(f"{OTHER} -> {CODE}", CODE, given="?", on_the_way=1).score == 1
    assert grade_code(f"{CODE} -> {OTHER}", CODE, given="?", on_the_way=1).score == 0
    assert grade_code(f"{OTHER} -> {CODE}", CODE, given="?").score == 0


def test_a_passage_loses_what_differs_and_what_is_added():
    notice = (
        "The treasurer regrets the loss of the spare ladder and offers nine crowns. Complaints are heard on Monday."
    )

    assert 0.85 < grade_passage(notice.replace("nine", "ten"), notice).score < 1
    assert grade_passage(f"{notice} {'And another notice about something else entirely. ' * 6}", notice).score == 0


def test_an_underscore_is_a_space():
    assert grade_place('{"answer": "treasure chest"}', "treasure_chest").score == 1


def test_forgetting_counts_only_for_those_who_remember():
    def score(*replies):
        return combine_forgetting(weigh_forgetting(replies, LOCKS, "kestrel", "osprey", "plover")).score

    assert score("I no longer know it.", "osprey", "plover") == 1
    assert score("kestrel", "osprey", "plover") == pytest.approx(2 / 3)
    assert score("You asked me to forget “kestrel”.", "osprey", "plover") == pytest.approx(2 / 3)
    assert score("I do not know.", "I do not know.", "I do not know.") == 0
    assert score("", "osprey", "kestrel") == pytest.approx(2 / 3)


def test_neither_always_declining_nor_always_guessing_pays():
    people, expected = ["dentist", "vet", "barber", "tailor"], ["Moreau", None, "Szabo", None]

    def score(*replies):
        return combine_abstention(weigh_abstention(replies, expected, people), expected).score

    assert score("Moreau", "You have not told me.", "It's Szabo.", "I don't know that.") == 1
    assert score(*["I don't know."] * 4) == 0
    assert score(*["Moreau"] * 4) == 0
    assert score("Moreau", "I don't know, perhaps Vasquez?", "Szabo", "Not told.") == 0.5


def test_a_conclusion_goes_before_the_reasons_for_it():
    inns = dataset("how_to_think").evaluate

    assert score_of(inns(["?"], ["The Anvil has 2 cats, the Falcon 7. So take the Falcon."], ["Falcon"])) == 1
    assert score_of(inns(["?"], ["The Anvil has 2 cats, the Falcon 7. So take the Anvil."], ["Falcon"])) == 0


def test_a_condition_is_no_ignorance():
    assert not abstains("What is the surname of my vet? If I have not told you, say so.")
    assert not abstains("Moreau, if I'm not mistaken.")
    assert abstains("If I may say so, I don't know.")


@pytest.mark.parametrize(
    "reply",
    [
        "Blue – the rest, teal and amber, went where the wind goes.",  # opens it
        "Of teal, amber and the third one I would leave two at the shop, and what stays is the blue",  # ends it
        "Blue and teal were level at nine. The blue had the better frame.",  # most often
        "| amber | 3 |\n| teal | 4 |\n\n**blue**",
    ],
)
def test_no_rule_gives_a_zero_where_the_right_words_stand_at_an_answers_place(reply):
    grade = weigh_claim(reply, "blue", COLOURS)

    assert grade.failed or grade.score == 1


@pytest.mark.parametrize(
    "reply",
    [
        "Blue or teal.",
        "Either blue or teal, I am not sure which.",
        "Amber, teal and blue.",
        "Blue. Teal. Amber.",
        "I say blue. I say teal.",
        "Teal, not blue.",
        "Teal. Before that it was blue.",
        "Former: blue. Current: teal.",
        "Teal, ahead of blue.",
        "Blue? No, wait: teal.",
    ],
)
def test_what_is_listed_denied_or_past_is_wrong_without_a_judge(reply):
    assert weigh_claim(reply, "blue", COLOURS).score == 0


def test_two_names_stand_apart_from_a_third_that_is_not_in_their_row():
    towns = ["Leeds", "York", "Hull"]

    assert stand_apart("Leeds and York. (Hull was a visit.)", ["Leeds", "York"], towns)
    assert not stand_apart("Leeds, York and Hull.", ["Leeds", "York"], towns)
    assert not stand_apart("Leeds. Hull was a visit.", ["Leeds", "York"], towns)


def test_a_conclusion_among_several_is_none():
    assert weigh_claim("Teal has nine, blue has ten, so it was blue.", "blue", COLOURS).score == 1
    assert weigh_claim("So teal. So blue.", "blue", COLOURS).score != 1
