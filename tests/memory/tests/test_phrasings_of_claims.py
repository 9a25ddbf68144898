"""Short answers in words: what a person would call right is right, what they would call wrong is wrong.

One table of phrasings serves all tests whose answer is one of several things; it is read with each one's own words.
"""

from __future__ import annotations

import pytest

from themis.memory.scoring.claims import grade_claim
from themis.memory.tests.facts import PASSWORDS
from themis.memory.tests.instructions import INNS, STORES
from themis.memory.tests.people import TRAITS
from themis.memory.tests.preferences import DOMAINS
from themis.memory.tests.recall import ISLAND_KINDS, MACHINE_KINDS
from themis.memory.tests.tallies import REPAIRS
from themis.memory.tests.updates import COLOURS, ROOMS
from themis.memory.tests.word_lists import FIRST_NAMES, SURNAMES

VOCABULARIES = {
    "names": FIRST_NAMES,
    "abstention": SURNAMES,
    "colours": COLOURS,
    "delayed_recall": ISLAND_KINDS[0],
    "instruction_recall": MACHINE_KINDS[4],
    "how_to_think": INNS,
    "knowledge_update": ROOMS,
    "aggregation": REPAIRS,
    "forgetting": PASSWORDS,
    "interference": TRAITS["trade"].values,
    "instruction_exceptions": STORES,
    "preference": DOMAINS[2].options,
}

RIGHT = [
    "{right}",
    "{right}.",
    "**{right}**",
    "_{right}_",
    '"{right}"',
    "“{right}”!",
    "`{right}`",
    "It is {right}.",
    "It's {right}!",
    "That would be {right}.",
    "The answer is {right}.",
    "Answer: {right}",
    "You told me that it is {right}.",
    "If I am not mistaken, it is {right}.",
    "I'm not sure, but I think it is {right}.",
    "I am not entirely certain, but it should be {right}.",
    "As you told me earlier, {right}.",
    "Earlier you said {right}.",
    "You mentioned {right} before.",
    "{right}, not {wrong}.",
    "Not {wrong} but {right}.",
    "It isn't {wrong} any more, it's {right}.",
    "It is no longer {wrong}; it is {right}.",
    "It was {wrong}, but now it is {right}.",
    "It used to be {wrong}. Now it is {right}.",
    "First {wrong}, then {other}, and now {right}.",
    "{right} (previously {wrong}).",
    "{right}, formerly {wrong}.",
    "Currently {right}; before that {wrong} and {other}.",
    "You changed it from {wrong} to {right}.",
    "{wrong} was replaced by {right}.",
    "{right} instead of {wrong}.",
    "{right} rather than {wrong}.",
    "The latest was {right}. Before, you had said {wrong} and {other}.",
    "The most recent one is {right}, after {wrong} and {other}.",
    "The last one you gave me was {right}.",
    "It is {right}. However, you have mentioned several others, including {wrong} and {other}.",
    "It is {right}, although you've also mentioned {wrong}, {other} at other times.",
    "- {right}",
    "1. {right}",
    "# {right}\n",
    "Sure! It's {right}. Anything else?",
    "Of course I remember: {right}.",
    "Don't worry, it is {right}.",
    "Hmm, let me think. {right}.",
    "RIGHT NOW? {RIGHT}.",
    "{right}\n\nLet me know if that has changed.",
    "My notes say: {right}",
    "{right}, {right} and once more {right}!",
    "I believe you said: “{right}”.",
    "Maybe {right}?",
    "At first you told me {wrong}; in the end it was {right}.",
]

WRONG = [
    "",
    "{wrong}",
    "**{wrong}**",
    "It is {wrong}.",
    "I don't know.",
    "I do not know; you never told me.",
    "I'm sorry, I don't have access to that information.",
    "Could you tell me again?",
    "It is not {right}.",
    "It isn't {right}.",
    "Anything but not {right}.",
    "Never {right}!",
    "It is no longer {right}.",
    "It used to be {right}.",
    "It was {right}, but now it is {wrong}.",
    "{wrong}, not {right}.",
    "{wrong} instead of {right}.",
    "{wrong} rather than {right}.",
    "{right} was replaced by {wrong}.",
    "You changed it from {right} to {wrong}.",
    "First {right}, then {other}, and now {wrong}.",
    "{wrong} (previously {right}).",
    "{wrong}, formerly {right}.",
    "Currently {wrong}; before that {right}.",
    "It is {wrong}, although you've also mentioned {right} and {other}.",
    "The last one you gave me was {wrong}. Before, it was {right}.",
    "{right} or {wrong}.",
    "Either {wrong} or {right}.",
    "{right} and {wrong}.",
    "{right}, {wrong}, {other}",
    "{wrong}, {other}, {right}",
    "It could be {right}, {wrong} or {other}.",
    "You have told me {right}, {wrong} and {other}.",
    "{right}? Or {wrong}?",
    "- {right}\n- {wrong}\n- {other}",
    "It is {right}. It is {wrong}.",
    "pre{right}ish",
    "x{right}",
    "null",
    "{{}}",
    "[]",
    "42",
    "Understood.",
    "What do you mean?",
    "I cannot recall whether it was {right}.",
    "You did not say {right}.",
    "Neither {right} nor {wrong}.",
    "{other}",
    "The answer is {other}, I am sure.",
    "Something between {right} and {wrong}.",
    "¯\\_(ツ)_/¯",
    "now now now {wrong}",
]


@pytest.mark.parametrize("test", VOCABULARIES)
def test_a_claim_is_read_as_a_person_would_read_it(test):
    words = list(VOCABULARIES[test])
    right, wrong, other = words[0], words[1], words[-1]

    def verdict(phrasing):
        reply = phrasing.format(right=right, wrong=wrong, other=other, RIGHT=right.upper())
        return grade_claim(reply, right, words).score

    assert len(RIGHT) >= 50
    assert len(WRONG) >= 50
    assert [phrasing for phrasing in RIGHT if verdict(phrasing) != 1] == []
    assert [phrasing for phrasing in WRONG if verdict(phrasing) != 0] == []
