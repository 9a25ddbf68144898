"""Whatever an agent says, every scorer gives a number from 0 to 1 or asks the judge; it never raises and never hangs."""

from __future__ import annotations

import math
import random
from functools import cache

import pytest

from tests.memory.tests.conversation import TESTS, Repeater, example, play
from themis.memory.actions import Grade
from themis.memory.scoring.claims import abstains, grade_claim, weigh_answers, weigh_claim_about
from themis.memory.scoring.lists import grade_members, grade_order, grade_passage, grade_quantities
from themis.memory.scoring.numbers import grade_number
from themis.memory.tests.beliefs import grade_place
from themis.memory.tests.exact import grade_code
from themis.memory.tests.facts import combine_forgetting, weigh_abstention, weigh_forgetting
from themis.memory.tests.invented import grade_invented
from themis.memory.tests.jokes import grade_joke
from themis.memory.tests.people import grade_conflict
from themis.memory.tests.places import grade_route, grade_way
from themis.memory.tests.recall import ISLAND_KINDS
from themis.memory.tests.restaurant import notices, read_order
from themis.memory.tests.spies import SpyMeeting
from themis.memory.tests.standing_requests import grade_recital, says_phrase
from themis.memory.tests.tales import grade_option
from themis.memory.tests.times import grade_days
from themis.memory.tests.updates import grade_as_of
from themis.memory.tests.word_lists import FIRST_NAMES

JOKES = (
    "A shy volcano joined a choir, but the echo answered first.",
    "My suitcase took up fencing, so the goat had to sign for it.",
)


def settle(verdict):
    """The grade, or None where a judge is asked."""
    return verdict if isinstance(verdict, Grade) else None


CODE = "0123abcd-4567-89ab-cdef-0123456789ab"
SCORERS = {
    "claim": lambda reply: grade_claim(reply, "Agnes", FIRST_NAMES),
    "answers": lambda reply: Grade.mean(weigh_answers([reply, reply], ["Torvane", "korrins"], ISLAND_KINDS)),
    "members": lambda reply: grade_members(reply, ["Agnes", "Ivo"]),
    "quantities": lambda reply: grade_quantities(reply, [["lemon", 2], ["candle", 1]]),
    "no quantities": lambda reply: grade_quantities(reply, []),
    "order": lambda reply: grade_order(reply, ["hedge", "piano", "fence"]),
    "number": lambda reply: grade_number(reply, 7),
    "days": lambda reply: grade_days(reply, 14),
    "passage": lambda reply: grade_passage(reply, JOKES[0]),
    "joke": lambda reply: grade_joke(reply, JOKES[0], JOKES),
    "abstention": lambda reply: weigh_abstention([reply, reply], ["Moreau", None], ["dentist", "vet"])[1],
    "abstains": lambda reply: Grade.when(abstains(reply)),
    "option": lambda reply: grade_option(reply, "4"),
    "conflict": lambda reply: grade_conflict(reply, "Bergen", "Porto", relative="sister"),
    "forgetting": lambda reply: combine_forgetting(
        weigh_forgetting([reply] * 3, ["wine vault", "garden shed", "wine vault"], "osprey", "plover", "curlew")
    ),
    "code": lambda reply: grade_code(reply, CODE, given="?"),
    "as of": lambda reply: grade_as_of(reply, "Willow"),
    "way": lambda reply: grade_way(reply, "3 km North"),
    "route": lambda reply: grade_route(reply, "From a, go 3 km north to b.\nFrom b, go 1 km east to c."),
    "recital": lambda reply: grade_recital([reply, reply], "No man is an island, entire of itself.", 2),
    "notices": lambda reply: Grade.when(bool(notices(reply, "Gazpacho", "Fish broth"))),
    "menu": lambda reply: Grade.when(bool(read_order(reply, ("Gazpacho",)).items)),
    "place": lambda reply: grade_place(reply, "crate"),
    "spies": lambda reply: settle(SpyMeeting().evaluate([""], [reply], [["noon"], ["zoo"], ["compass"]])),
    "of others": lambda reply: weigh_claim_about("Moreau", ["Szabo"], reply, "Agnes", FIRST_NAMES),
    "invented": lambda reply: grade_invented(reply, "Agnes", ["Agnes", "Ivo", "lemon"]),
    "phrase": lambda reply: Grade.when(bool(says_phrase(reply, "Then it is always teatime", 0.75))),
}
FRAGMENTS = [
    "Agnes",
    "Ivo",
    "Torvane",
    "korrins",
    "lemon",
    "candle",
    "hedge",
    "piano",
    "fence",
    "noon",
    "zoo",
    "compass",
    "crate",
    "Willow",
    "Elm",
    "Bergen",
    "Porto",
    "osprey",
    "plover",
    "curlew",
    "Moreau",
    "Gazpacho",
    "3 km north",
    "1 km east",
    "north",
    "km",
    CODE,
    "7",
    "14 days",
    "two weeks",
    "-1",
    "1e999",
    "NaN",
    "Infinity",
    "9" * 50,
    "0x10",
    "½",
    "٣",
    "²",
    "null",
    "None",
    "true",
    "not",
    "n't",
    "never",
    "now",
    "was",
    "instead of",
    "I don't know",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'",
    ":",
    ",",
    '{"answer":',
    '{"answer": null}',
    '{"answer": ["crate"]}',
    '{"item": "lemon", "quantity": ',
    '[{"item": null}]',
    "[[[[",
    "```json\n",
    "```",
    "\n",
    "\t",
    "\r\n",
    "\x00",
    "\ud800",
    "\u202e",
    "😀",
    "é",
    "ﷺ",
    "İ",
    "ß",
    "\ufeff",
    "“",
    "”",
    "…",
    "<script>",
    "{{7*7}}",
    "%s%n",
    "\\u0000",
    "\\",
    "*",
    "**",
    "_",
    "#",
    "Option 4",
    "Answer:",
    JOKES[0],
    JOKES[1],
    "No man is an island, entire of itself.",
    "Then it is always teatime",
    "(" * 20,
    ")" * 20,
    ". " * 20,
    "a" * 300,
]


@cache
def hostile_replies():
    """Thousands of replies out of fragments, some of them very long."""
    chance = random.Random(8)
    replies = ["", " ", *FRAGMENTS]
    while len(replies) < 2_475:
        glue = chance.choice(["", " ", " ", ", ", "\n"])
        replies.append(glue.join(chance.choices(FRAGMENTS, k=chance.randint(1, 12))))
    repeated = (
        "[",
        '{"a":',
        "Agnes ",
        "9",
        "not ",
        "3 km north ",
        "\n",
        "(",
        '"',
        "a.",
        "lemon, ",
        "ﷺ",
        ",1",
        "* ",
        "- ",
        "['",
        "=1 ",
        " ",
        "answer: 1 km ",
        "Agnes. And Ivo. ",
        "Ivo? No. ",
        "not a, the ",
    )
    replies += [fragment * 1_500 for fragment in repeated]
    replies += [" ".join(chance.choices(FRAGMENTS, k=1_500)) for _ in range(2_500 - len(replies))]
    return replies


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_a_scorer_survives_thousands_of_hostile_replies(scorer):
    judge = SCORERS[scorer]
    replies = hostile_replies()

    assert len(replies) >= 2_500
    for reply in replies:
        grade = judge(reply)
        settled = grade is not None and not grade.failed
        assert not settled or (math.isfinite(grade.score) and 0.0 <= grade.score <= 1.0), reply[:200]


@pytest.mark.parametrize("name", TESTS)
def test_a_whole_test_survives_hostile_replies(name):
    chance = random.Random(name)
    for seed, reply in enumerate(chance.sample(hostile_replies()[:2_475], 40)):
        grade = play(example(name, seed), Repeater(reply)).grade
        assert (0.0 <= grade.score <= 1.0) or any("--judge" in reason for reason in grade.reasons), reply[:200]
        assert all("raised" not in reason for reason in grade.reasons), reply[:200]
