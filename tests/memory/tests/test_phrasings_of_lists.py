"""Answers in JSON: every careless way of writing it is read, and what is not the answer is no answer."""

from __future__ import annotations

import json

import pytest

from themis.memory.scoring import grade_members, grade_order, grade_quantities
from themis.memory.tests.sallyanne import grade_place

# How models wrap JSON; each must leave the value as it is.
WRAPPINGS = [
    "{value}",
    " {value} ",
    "\n\n{value}\n",
    "```json\n{value}\n```",
    "```\n{value}\n```",
    "```JSON\n{value}\n```",
    "Here it is:\n```json\n{value}\n```\nAnything else?",
    "Sure! {value}",
    "The answer is {value}",
    "The answer is {value}.",
    "{value} – that is all I know.",
    "Of course.\n\n{value}\n\nLet me know if you need more.",
    "**Answer:** {value}",
    "As JSON: {value}",
    "{value} // from memory",
    "I believe it's this: {value}",
    "{single}",
    "```json\n{single}\n```",
    "Here: {single}",
    "{indented}",
    "```json\n{indented}\n```",
    "Result:\n{indented}",
    "{trailing}",
    "{cut}",
    "My answer follows.\n{single}",
]
NOT_JSON = [
    "",
    " ",
    "null",
    "true",
    "42",
    "I do not know.",
    "None",
    "Terence and Jane",
    "- Terence\n- Jane",
    "Terence, Jane",
    "{}",
    "{{",
    "]",
    '{"a":',
    "NaN",
    '"Terence"',
    "[[[[[[[[[[",
    "undefined",
    "{'x': {'y': {'z': []}}}",
    "<list/>",
    '{"names": 3}',
    '{"item": null}',
    "\u0000",
    "🙂",
    "I would have to look that up: {name}",
]


def written(value):
    """The value in each of the ways of writing it."""
    plain = json.dumps(value)
    forms = {
        "value": plain,
        "single": repr(value),
        "indented": json.dumps(value, indent=4),
        "trailing": plain[:-1] + ("," if value else "") + plain[-1],
        "cut": plain[:-1],
    }
    return [_filled(wrapping, forms) for wrapping in WRAPPINGS]


def _filled(wrapping, forms):
    for name, text in forms.items():
        wrapping = wrapping.replace("{" + name + "}", text)
    return wrapping


MEMBERS = [
    (["Terence", "Jane", "Liam", "Orla"], 1.0),
    (["terence", "JANE", "liam", "orla"], 1.0),
    (["Orla", "Liam", "Jane", "Terence"], 1.0),
    ([{"name": "Terence"}, {"name": "Jane"}, {"name": "Liam"}, {"name": "Orla"}], 1.0),
    ({"names": ["Terence", "Jane", "Liam", "Orla"]}, 1.0),
    (["Terence", "Jane", "Liam", "Órla"], 1.0),
    ([" Terence ", "Jane.", "“Liam”", "Orla!"], 1.0),
    (["Terence", "Jane", "Liam"], 0.75),
    (["Terence", "Jane", "Liam", "Bob"], 0.75),
    (["Terence", "Jane", "Liam", "Orla", "Bob"], 0.8),
    (["Terence", "Jane"], 0.5),
    (["Terence", "Terence", "Terence", "Terence"], 0.25),
    (["Terence", "Jane", "Liam", "Orla", "Orla"], 0.8),
    (["Bob"], 0.0),
    ([], 0.0),
    ([None, 3, {"a": 1}, ["Terence"]], 0.0),
    (["Terence Jane Liam Orla"], 0.0),
    ("Terence", 0.0),
    ({"a": ["Terence"], "b": ["Jane"]}, 0.0),
    ({"names": "Terence, Jane, Liam, Orla"}, 0.0),
    ([f"Name{n}" for n in range(96)] + ["Terence", "Jane", "Liam", "Orla"], 0.04),
    (["Jan", "Tere", "Li", "Or"], 0.0),
    ([True, False], 0.0),
    (["terence jane", "liam", "orla"], 0.5),
    ([{"name": "Terence", "age": 3}, "Jane", "Liam", "Orla"], 0.75),
]


def test_a_list_of_names_scores_its_right_share():
    expected = ["Terence", "Jane", "Liam", "Orla"]

    assert [reply for reply in written(expected) if grade_members(reply, expected).score != 1] == []
    assert [reply for reply in NOT_JSON if grade_members(reply, expected).score != 0] == []
    for value, score in MEMBERS:
        assert grade_members(json.dumps(value), expected).score == pytest.approx(score), value


EXPECTED_GOODS = [["lemon", 2], ["jar of honey", 1], ["candle", 3]]
RIGHT_GOODS = [
    {"item": "lemon", "quantity": 2},
    {"item": "jar of honey", "quantity": 1},
    {"item": "candle", "quantity": 3},
]
GOODS = [
    (RIGHT_GOODS, 1.0),
    (RIGHT_GOODS[::-1], 1.0),
    (
        [
            {"item": "Lemons", "quantity": 2},
            {"item": "Jar of Honey", "quantity": 1},
            {"item": "CANDLES", "quantity": 3},
        ],
        1.0,
    ),
    (
        [{"Item": "lemon", "Quantity": 2}, {"Item": "jar of honey", "Quantity": 1}, {"Item": "candle", "Quantity": 3}],
        1.0,
    ),
    ([{"item": "lemon", "quantity": "2"}, {"item": "jar of honey", "quantity": "1"}, RIGHT_GOODS[2]], 1.0),
    ([{"item": "lemon", "quantity": 2.0}, *RIGHT_GOODS[1:]], 1.0),
    ([{"name": "lemon", "quantity": 2}, *RIGHT_GOODS[1:]], 1.0),
    ({"list": RIGHT_GOODS}, 1.0),
    ([{"item": "lemon", "quantity": 9}, *RIGHT_GOODS[1:]], 8 / 9),
    ([{"item": "lemon", "quantity": None}, *RIGHT_GOODS[1:]], 8 / 9),
    ([{"item": "lemon", "quantity": True}, *RIGHT_GOODS[1:]], 8 / 9),
    ([{"item": "lemon", "quantity": [2]}, *RIGHT_GOODS[1:]], 8 / 9),
    ([{"item": "lemon"}, *RIGHT_GOODS[1:]], 8 / 9),
    (["lemon", "jar of honey", "candle"], 2 / 3),
    (RIGHT_GOODS[:2], 7 / 9),
    (RIGHT_GOODS[:1], 5 / 9),
    ([*RIGHT_GOODS, {"item": "pear", "quantity": 1}], 2 / 3),
    ([*RIGHT_GOODS, RIGHT_GOODS[0]], 2 / 3),
    ([*RIGHT_GOODS, *[{"item": f"thing {n}", "quantity": 1} for n in range(9)]], 2 / 3 * 3 / 12),
    ([{"item": "pear", "quantity": 2}], 0.0),
    ([], 0.0),
    ([None, 3, [], {}, {"item": {"item": "lemon"}}], 0.0),
    ({"lemon": 2, "jar of honey": 1, "candle": 3}, 0.0),
    ("2 lemons, a jar of honey, 3 candles", 0.0),
    ([{"item": "lemonade", "quantity": 2}, *RIGHT_GOODS[1:]], 1 / 3 * (2 / 3 + 2 / 3)),
]


def test_a_shopping_list_scores_items_quantities_and_nothing_else():
    assert [reply for reply in written(RIGHT_GOODS) if grade_quantities(reply, EXPECTED_GOODS).score != 1] == []
    assert [reply for reply in NOT_JSON if grade_quantities(reply, EXPECTED_GOODS).score != 0] == []
    for value, score in GOODS:
        assert grade_quantities(json.dumps(value), EXPECTED_GOODS).score == pytest.approx(score), value


PLACES = [
    ({"answer": "crate"}, 1),
    ({"answer": "Crate"}, 1),
    ({"answer": "the crate"}, 1),
    ({"answer": "in the crate"}, 1),
    ({"Answer": "crate"}, 1),
    ({"answer": "crate."}, 1),
    ({"answer": "The CRATE!"}, 1),
    ({"answer": "crate", "why": "seen"}, 1),
    ({"answer": "a crate"}, 1),
    ({"answer": "crate, not the basket"}, 1),
    ({"answer": "It is in the crate."}, 1),
    ({"answer": "basket"}, 0),
    ({"answer": "crate or basket"}, 0),
    ({"answer": "crate, basket, chest"}, 0),
    ({"answer": "not the crate"}, 0),
    ({"answer": None}, 0),
    ({"answer": 3}, 0),
    ({"answer": ["crate"]}, 0),
    ({"answer": {"place": "crate"}}, 0),
    ({"answer": ""}, 0),
    ({}, 0),
    (["crate"], 0),
    ({"place": "crate"}, 0),
    ({"answer": "incrate"}, 0),
    ("crate", 0),
    ({"answer": True}, 0),
]


def test_the_place_in_a_json_object_is_found_or_not():
    assert [reply for reply in written({"answer": "crate"}) if grade_place(reply, "crate").score != 1] == []
    assert [reply for reply in NOT_JSON if grade_place(reply, "crate").score != 0] == []
    for value, score in PLACES:
        assert grade_place(json.dumps(value), "crate").score == score, value
    assert grade_place('{"answer": "treasure chest"}', "treasure_chest").score == 1


ORDERS = [
    (["hedge", "piano", "fence", "canoe"], 1.0),
    (["Hedge", "PIANO", "fence.", "canoe"], 1.0),
    ({"order": ["hedge", "piano", "fence", "canoe"]}, 1.0),
    (["piano", "hedge", "fence", "canoe"], 4 / 6),
    (["hedge", "piano", "canoe", "fence"], 4 / 6),
    (["canoe", "fence", "piano", "hedge"], 0.0),
    (["hedge", "piano", "fence"], 0.5),
    (["hedge", "piano"], 1 / 6),
    (["hedge"], 0.0),
    ([], 0.0),
    (["hedge", "hedge", "piano", "fence", "canoe"], 0.5),
    (["hedge", "piano", "fence", "canoe", "novel"], 5 / 6),
    (["hedge", "piano", "fence", "canoe", 1, None, {}], 3 / 6),
    ("hedge, piano, fence, canoe", 0.0),
    ([["hedge", "piano", "fence", "canoe"]], 0.0),
]


def test_an_order_scores_its_right_pairs_minus_its_wrong_ones():
    expected = ["hedge", "piano", "fence", "canoe"]

    assert [reply for reply in written(expected) if grade_order(reply, expected).score != 1] == []
    assert [reply for reply in NOT_JSON if grade_order(reply, expected).score != 0] == []
    for value, score in ORDERS:
        assert grade_order(json.dumps(value), expected).score == pytest.approx(score), value
