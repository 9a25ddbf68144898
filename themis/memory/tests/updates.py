"""What changes while it is told: an attribute with its last value or all of them, a list, a count over reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import find_first_claim, grade_claim
from themis.memory.scoring.lists import grade_members, grade_quantities
from themis.memory.scoring.numbers import grade_number
from themis.memory.scoring.words import find_phrases
from themis.memory.small_talk import wrap
from themis.memory.tests.kind import BuiltinTest, whole_number
from themis.memory.tests.word_lists import FIRST_NAMES, MONTHS

# --- the user's name --------------------------------------------------------------------------------------------------

_NAMINGS = (
    "Please call me {name}.",
    "My name is {name}.",
    "I have taken a new name: {name}.",
    "I go by the name of {name}.",
    "You may address me as {name}.",
    "At the registry office they put me down as {name}.",
)


@dataclass(kw_only=True)
class Names(BuiltinTest):
    """Overwriting one attribute.

    Scores: perfect 1, memoryless 0. The answer is the name in the last statement. It must be the only one that the reply
    claims, among all names that tests give to users. About 20 tokens per name. Interferes with name_list, which gives the
    user other names.
    """

    kind: ClassVar[str] = "names"
    name: ClassVar[str] = "Names"
    description: ClassVar[str] = "The user gives a new name several times; the agent must know the last one."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"name_list"})
    answers: ClassVar[Sequence[str]] = FIRST_NAMES

    name_changes: int = whole_number(3, least=1, most=len(FIRST_NAMES))

    def make_example(self, number: int, rng: Random) -> TestExample:
        names = rng.sample(FIRST_NAMES, self.name_changes)
        statements = [rng.choice(_NAMINGS).format(name=name) for name in names]
        return self.tell_and_ask(number, statements, ["What is my name?"], [names[-1]])

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [[len(example.script) - 2]]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_claim(responses[0], expected[0], FIRST_NAMES)


@dataclass(kw_only=True)
class NameList(BuiltinTest):
    """Keeping every value of one attribute.

    Scores: perfect 1, memoryless 0. A reply scores its right names divided by the longer of the expected and the given
    list, so listing all names that exist scores next to nothing; a reply without a JSON list scores 0. The answer is the
    names of the statements. About 20 tokens per name. Interferes with names.
    """

    kind: ClassVar[str] = "name_list"
    name: ClassVar[str] = "NameList"
    description: ClassVar[str] = "The user gives a new name several times; the agent must list all of them."
    reset_message: ClassVar[str] = "Please forget every name that I have told you I go by."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"names"})
    answers: ClassVar[Sequence[str]] = FIRST_NAMES

    name_changes: int = whole_number(3, least=1, most=len(FIRST_NAMES))

    def make_example(self, number: int, rng: Random) -> TestExample:
        names = rng.sample(FIRST_NAMES, self.name_changes)
        statements = [rng.choice(_NAMINGS).format(name=name) for name in names]
        question = "Which names have I told you I go by, all of them? Answer with a JSON list of strings."
        return self.tell_and_ask(number, statements, [question], names)

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps(example.expected_responses)]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_members(responses[0], expected)


# --- a favourite colour -----------------------------------------------------------------------------------------------

COLOURS = (
    "amber", "beige", "black", "blue", "crimson", "green", "indigo", "lilac", "maroon", "orange", "pink", "purple",
    "scarlet", "silver", "tan", "teal", "turquoise", "violet", "white", "yellow",
)  # fmt: skip
_LIKING = Phrasing(
    "My favourite colour is {colour}.",
    "[I have taken|It seems I have taken] a liking to {colour}: it is the colour I love most.",
    "There is no colour like {colour} for me.",
    "If you ask for my favourite colour, it is {colour}.",
    "[They asked me at the paint shop|My niece wanted to know], and I said {colour}, "
    "[my favourite colour|for I like no colour better].",
    "I used to like {former}, but [these days|by now] my favourite colour is {colour}.",
    "Forget what I said about my favourite colour[ before|], it is not {former} but {colour}.",
    "Of all colours I [like|love] {colour} best[ now| these days|].",
    "I am having [the bicycle|the hall|my coat] done in {colour}, my favourite colour[ of all|].",
    "Whoever wants to [please|cheer] me gives me something {colour}, since that is my favourite colour.",
    colour=any_of(COLOURS),
    former=any_of(COLOURS),
)  # fmt: skip
# Colours of other people and things: not what is asked for.
_OTHER_COLOUR = Phrasing(
    "[My aunt|My neighbour|The man next door] has [painted|dyed] [everything|half the house] {colour}, of all colours.",
    "They only had {colour} left at the shop, so I came home with nothing.",
    "The new trams are {colour}, which nobody asked for.",
    colour=any_of(COLOURS),
)
_ASK_COLOUR = Phrasing(
    "What is my favourite colour?",
    "[Tell me|Do you remember]: which colour is my favourite[ now| at the moment|]?",
    "Which colour do I like best[ now| at present|]?",
)


@dataclass(kw_only=True)
class Colours(BuiltinTest):
    """Overwriting one attribute whose values are common words.

    Scores: perfect 1, memoryless 0; naming every colour scores 0. The answer is the colour of the last statement, which
    differs from the one before. A colour may come back after another. Colours of other things are mentioned too. About 50
    tokens per colour. Interferes with no other test: no other one speaks of the user's favourite colour.
    """

    kind: ClassVar[str] = "colours"
    name: ClassVar[str] = "Colours"
    description: ClassVar[str] = "The user's favourite colour changes several times; the agent must know the last one."
    latest_counts: ClassVar[bool] = True
    answers: ClassVar[Sequence[str]] = COLOURS

    colour_changes: int = whole_number(3, least=1)

    def make_example(self, number: int, rng: Random) -> TestExample:
        colours: list[str] = []
        statements = []
        for _ in range(self.colour_changes):
            former = colours[-1] if colours else rng.choice(COLOURS)
            colours.append(rng.choice([colour for colour in COLOURS if colour != former]))
            told = _LIKING.say(rng, colour=colours[-1], former=former)
            if rng.random() < 0.3:
                other = _OTHER_COLOUR.say(rng, colour=rng.choice(COLOURS))
                told = " ".join(rng.sample((told, other), 2))
            statements.append(wrap(rng, told))
        return self.tell_and_ask(number, statements, [_ASK_COLOUR.say(rng)], [colours[-1]])

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [[len(example.script) - 2]]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_claim(responses[-1], expected[0], COLOURS)

    @classmethod
    def make_reader(cls) -> Reader:
        return _ColoursReader()


class _ColoursReader(Reader):
    def __init__(self) -> None:
        self._colour = ""

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _LIKING.read_all(message):
            self._colour = told["colour"]
        return self._colour if _ASK_COLOUR.matches(message) else None


# --- a room at a date -------------------------------------------------------------------------------------------------

# Rooms in which a choir rehearses.
ROOMS = (
    "Alder", "Beech", "Cedar", "Elm", "Hazel", "Juniper", "Larch", "Linden", "Maple", "Poplar", "Rowan", "Spruce",
    "Sycamore", "Willow",
)  # fmt: skip


@dataclass(kw_only=True)
class KnowledgeUpdate(BuiltinTest):
    """Updating without overwriting.

    Scores: perfect 1, memoryless 0; half for the latest value, half for the one that held at a date in the past. Each
    statement carries its date, so both follow from the statements alone. Naming several rooms is wrong. About 25 tokens
    per update. Interferes with no other test.
    """

    kind: ClassVar[str] = "knowledge_update"
    name: ClassVar[str] = "Knowledge Update"
    description: ClassVar[str] = "A fact changes several times; the agent must know it now and as of an earlier date."
    answers: ClassVar[Sequence[str]] = ROOMS

    updates: int = whole_number(3, least=2, most=len(MONTHS))

    def make_example(self, number: int, rng: Random) -> TestExample:
        months = sorted(rng.sample(range(len(MONTHS)), self.updates))
        rooms = rng.sample(ROOMS, self.updates)
        days = [rng.randint(2, 12) for _ in months]
        statements = [
            f"On {day} {MONTHS[month]} our choir moved to the {room} room and has rehearsed there ever since."
            for day, month, room in zip(days, months, rooms, strict=True)
        ]
        then = rng.randrange(self.updates - 1)
        date = f"{days[then] + rng.randint(3, 15)} {MONTHS[months[then]]}"
        questions = [
            "In which room does our choir rehearse, after all these changes?",
            f"And in which room did our choir rehearse on {date} of the same year? Name the room only.",
        ]
        return self.tell_and_ask(number, statements, questions, [rooms[-1], rooms[then]])

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(f"the {room} room") for room in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return Grade.mean([grade_claim(responses[0], expected[0], ROOMS), grade_as_of(responses[1], expected[1])])


def grade_as_of(reply: str, expected: str) -> Grade:
    """1 if the room that the reply names first, apart from what it denies, is that of the time, with at most one more."""
    named = find_phrases(reply, ROOMS)
    right = find_first_claim(reply, ROOMS) == {expected} and len(named) <= 2
    return Grade.when(right, f"expected {expected!r}, got {', '.join(sorted(named)[:5]) or 'no room'}")


# --- a shopping list --------------------------------------------------------------------------------------------------

# No item is part of another's name.
GOODS = (
    "apple", "bar of chocolate", "battery", "bottle of olive oil", "box of matches", "bread roll", "candle",
    "carton of eggs", "cucumber", "bag of flour", "jar of honey", "lemon", "light bulb", "mango", "notebook", "onion",
    "packet of rice", "pear", "pineapple", "pumpkin", "sponge", "tea towel", "tin of beans", "toothbrush",
)  # fmt: skip
_ADDITIONS = (
    "Put {more}{quantity} × {item} on my shopping list.",
    "I need {more}{quantity} × {item}; please add that to the shopping list.",
    "For the shopping list: {more}{quantity} × {item}.",
)
_REMOVALS = (
    "Take {quantity} × {item} off my shopping list.",
    "I found {quantity} × {item} at home, so strike that from the shopping list.",
)


@dataclass(kw_only=True)
class Shopping(BuiltinTest):
    """Keeping count while a list changes.

    Scores: perfect 1, memoryless 0. A third for the items found, a third for their quantities, a third for nothing else;
    see `grade_quantities`. The answer is kept by the generator as it writes the statements; the list is never empty at
    the end. About 25 tokens per change. Interferes with no other test.
    """

    kind: ClassVar[str] = "shopping"
    name: ClassVar[str] = "Shopping"
    description: ClassVar[str] = "A shopping list changes step by step; the agent must know what is on it."
    reset_message: ClassVar[str] = "I have done my shopping: please forget the whole shopping list."
    answers: ClassVar[Sequence[object]] = tuple(
        {"item": item, "quantity": quantity} for item in GOODS for quantity in (1, 2, 3)
    )

    item_changes: int = whole_number(3, least=1)

    def make_example(self, number: int, rng: Random) -> TestExample:
        listed: dict[str, int] = {}
        statements = [_change(listed, rng) for _ in range(self.item_changes)]
        question = (
            "What is on my shopping list? Answer with a JSON list of objects with the fields `item` and `quantity` "
            "(a number)."
        )
        return self.tell_and_ask(number, statements, [question], [[item, count] for item, count in listed.items()])

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps([{"item": item, "quantity": quantity} for item, quantity in example.expected_responses])]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[tuple[str, int]]
    ) -> Grade:
        return grade_quantities(responses[0], expected)


def _change(listed: dict[str, int], rng: Random) -> str:
    """One change of the list and the sentence that tells of it; the last thing on the list is never struck off."""
    if sum(listed.values()) > 1 and rng.random() < 1 / 4:
        item = rng.choice(list(listed))
        quantity = rng.randint(1, min(listed[item], sum(listed.values()) - 1))
        listed[item] -= quantity
        if not listed[item]:
            del listed[item]
        return rng.choice(_REMOVALS).format(quantity=quantity, item=item)
    item, quantity = rng.choice(GOODS), rng.randint(1, 3)
    sentence = rng.choice(_ADDITIONS).format(more="another " if item in listed else "", quantity=quantity, item=item)
    listed[item] = listed.get(item, 0) + quantity
    return sentence


# --- reports of a workshop --------------------------------------------------------------------------------------------

# What a workshop repairs.
REPAIRS = ("accordions", "bicycles", "clocks", "kettles", "lanterns", "prams", "typewriters", "umbrellas")


@dataclass(kw_only=True)
class Aggregation(BuiltinTest):
    """Putting together what was never said together.

    Scores: perfect 1, memoryless 0. A third each for a sum over all reports, for the number of reports that speak of a
    thing, and for what was repaired most often. All are computed from the reports; the last one is unique. One wrong or
    forgotten report makes an answer wrong. About 30 tokens per report. Interferes with no other test.
    """

    kind: ClassVar[str] = "aggregation"
    name: ClassVar[str] = "Aggregation"
    description: ClassVar[str] = "The agent must add up and count over reports that lie far apart."
    answers: ClassVar[Sequence[str]] = (*map(str, range(100)), *REPAIRS)

    sessions: int = whole_number(5, least=3)

    def make_example(self, number: int, rng: Random) -> TestExample:
        while True:
            kinds = rng.sample(REPAIRS, 3)
            reports = [
                {kind: rng.randint(2, 9) for kind in rng.sample(kinds, rng.randint(1, 3))} for _ in range(self.sessions)
            ]
            totals = {kind: sum(report.get(kind, 0) for report in reports) for kind in kinds}
            seen = {kind: sum(1 for report in reports if kind in report) for kind in kinds}
            ranking = sorted(totals.values())
            # A count of one is often written as the pronoun, and a tie has no answer.
            if min(seen.values()) > 1 and ranking[-1] > ranking[-2]:
                break
        summed, counted = rng.sample(kinds, 2)
        statements = [
            f"Report from my workshop: repaired {' and '.join(f'{count} {kind}' for kind, count in report.items())}."
            for report in reports
        ]
        questions = [
            f"How many {summed} have been repaired, all my workshop reports taken together? Answer with a number.",
            f"In how many of my workshop reports were there any {counted}? Answer with a number.",
            "What has my workshop repaired most often, all reports taken together? Answer with one word.",
        ]
        most = max(kinds, key=lambda kind: totals[kind])
        return self.tell_and_ask(number, statements, questions, [str(totals[summed]), str(seen[counted]), most])

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return Grade.mean(
            [
                grade_number(responses[0], int(expected[0])),
                grade_number(responses[1], int(expected[1])),
                grade_claim(responses[2], expected[2], REPAIRS),
            ]
        )
