"""What changes while it is told: an attribute of the user with its last value or all of them, a room at a date."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import (
    abstains,
    find_conclusion,
    find_first_claim,
    find_possible_claims,
    grade_retelling,
    weigh_claim,
)
from themis.memory.scoring.languages import is_foreign
from themis.memory.scoring.listing import parse_json_list
from themis.memory.scoring.lists import grade_members
from themis.memory.scoring.prominence import is_prominent
from themis.memory.scoring.spelling import spell_like
from themis.memory.scoring.words import find_phrases, fold, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.word_lists import FIRST_NAMES, MONTHS, VILLAGES

_TOWN = r"[A-Z]\w+"


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """How one attribute of the user is told of.

    Args:
        told: Sentences that give it a value.
        changed: Sentences that also name the value it had before.
        held: Sentences that say what something else in a town has for a value.
        taken_over: Sentences that give the attribute the value of that, without naming it.
        others: Sentences with values that it does not have.
        holders: What may have a value of its own.
    """

    told: Phrasing
    changed: Phrasing
    held: Phrasing
    taken_over: Phrasing
    others: Phrasing
    holders: Sequence[str]

    def tell(self, test: BuiltinTest, rng: Random, values: Sequence[str], others: Sequence[str]) -> _History:
        """One message a value, and one more where the last value is taken over from something that was told of before.

        Values of `others` are mentioned in some of the messages; no first value is told as a change.
        """
        # Before which of the statements it is told what is taken over in the last one.
        held_before = rng.randrange(len(values)) if rng.random() < _TAKEN_OVER_SHARE else None
        holder = rng.choice(self.holders)
        town = "" if held_before is None else test.world.draw(rng, "village", VILLAGES)
        lines: list[str] = []
        needed: list[int] = []
        for place, value in enumerate(values):
            if place == held_before:
                needed.append(len(lines))
                lines.append(test.chat(rng, self.held.say(rng, value=values[-1], holder=holder, town=town)))
            if held_before is not None and place == len(values) - 1:
                said = self.taken_over.say(rng, holder=holder, town=town)
            elif place and rng.random() < _CHANGED_SHARE:
                said = self.changed.say(rng, value=value, former=values[place - 1])
            else:
                said = self.told.say(rng, value=value)
            if others and rng.random() < _OTHERS_SHARE:
                aside = self.others.say(rng, value=rng.choice(others))
                said = " ".join(rng.sample((said, aside), 2))
            lines.append(test.chat(rng, said))
        return _History(lines, [*needed, len(lines) - 1])


_TAKEN_OVER_SHARE, _CHANGED_SHARE, _OTHERS_SHARE = 0.3, 0.4, 0.4


@dataclass(frozen=True)
class _History:
    """What is said of an attribute, and which lines its last value rests on."""

    lines: list[str]
    needed: list[int]


class AttributeReader(Reader):
    """Keeps every value that the user gave to an attribute, in order, until it is told to forget them."""

    def __init__(self, attribute: Attribute, reset_message: str = "") -> None:
        self._attribute = attribute
        self._reset_message = reset_message
        self._held: dict[tuple[str, str], str] = {}
        self.values: list[str] = []

    def hear(self, message: str) -> None:
        """Takes in what a message says of the attribute."""
        for held in self._attribute.held.read_all(message):
            self._held[held["holder"], held["town"]] = held["value"]
        for told in (self._attribute.told.read(message), self._attribute.changed.read(message)):
            if told is not None:
                self.values.append(told["value"])
        taken_over = self._attribute.taken_over.read(message)
        if taken_over is not None:
            self.values.append(self._held.get((taken_over["holder"], taken_over["town"]), ""))
        if message == self._reset_message:
            self.values.clear()


# --- the user's name --------------------------------------------------------------------------------------------------

_NAME = {"value": any_of(FIRST_NAMES), "former": any_of(FIRST_NAMES), "town": _TOWN}
_NAMESAKES = (
    "great-aunt",
    "great-uncle",
    "godparent",
    "first teacher",
    "old neighbour",
    "former landlady",
    "pen friend",
)
NAME = Attribute(
    told=Phrasing(
        "[Please call|Do call|Kindly call] me {value}[ from here on| from this day on|].",
        "[At the registry office|At the town hall] they [put me down|entered me] as {value}, [as I had asked|at my own wish].",
        "[My passport|My identity card|The new badge] [came|arrived] [today|with the post], and the name in it is {value}, "
        "[just as I wanted|as I had wished].",
        "You may address me as {value}, [everybody at work does so already|my friends have got used to it already].",
        "[Whoever|If anybody] [telephones|rings], [they should|let them] ask for {value}, since that is me.",
        "This is {value} [writing|speaking], the same [person|old me] as ever under a new name.",
        "The plate on my door [was changed to {value} this morning|reads {value} now], so the post should find me.",
        "[When|If] somebody shouts {value} in the street, I am the one who turns round[ these days|].",
        "[Everything|Whatever] I [sign|write] [these days|now] is signed {value}.",
        "I have [grown tired of|had enough of] the old name and [chosen|settled on] {value} for myself.",
        "[The judge agreed|It is official]: in law and in life I am {value} [now|from today].",
        holder=any_of(_NAMESAKES),
        **_NAME,
    ),
    changed=Phrasing(
        "[Not {former}|No more {former}], please: I answer to {value} [now|these days].",
        "I have put {former} behind me and [had my cards printed with|introduce myself as] {value}.",
        "You [still have|will have] me down as {former}, but [it is {value} these days|make that {value} now].",
        "{former} [was nice while it lasted|never suited me], so [call me|now I am] {value} instead.",
        **_NAME,
    ),
    held=Phrasing(
        "My {holder} in {town} was [called|christened] {value}, [a name one does not forget|which I always liked].",
        "{value} was the name of my {holder} in {town}, [a dear soul|long gone now].",
        holder=any_of(_NAMESAKES),
        **_NAME,
    ),
    taken_over=Phrasing(
        "I have [taken|adopted] the name of my {holder} in {town}[, and wish to be called by it|, so please use it].",
        "[From now on|From today] I [bear|go by] the name that my {holder} in {town} had.",
        holder=any_of(_NAMESAKES),
        **_NAME,
    ),
    others=Phrasing(
        "[My cousin|A colleague|The couple upstairs] [has a new baby|has a new dog] called {value}.",
        "[At the bank|In the surgery] they [took|mistook] me for a certain {value}, [whoever that is|no idea who that is].",
        "For a while I [thought of|toyed with] {value}, but [dropped the idea|nothing came of it].",
        "The new [postman|conductor|caretaker] is called {value}, if you please.",
        **_NAME,
    ),
    holders=_NAMESAKES,
)
_RESET_NAMES = "Please forget every name that I have told you I go by."
_ASK_NAME = Phrasing(
    "What is my name?",
    "What am I called [now|at present]?",
    "[Tell me|Do you remember]: which name do I go by [now|at the moment]?",
    "How should one address me [now|at present]? [Give the name only|The name will do].",
)
_ASK_NAMES = Phrasing(
    "Which names have I told you I go by, all of them, [former ones included|with the former ones]? "
    "Answer with a JSON list of strings.",
    "[List|Give me] every name [by which|under which] I have told you to know me, [former ones included|old and new]. "
    "Answer with a JSON list of strings.",
    "What are all the names that I have gone by, [from the first to the last|old and new], as far as I have told you? "
    "Answer with a JSON list of strings.",
)


@dataclass(kw_only=True)
class OwnNames(BuiltinTest):
    """What tests about the names of the user have in common: the names, how they are told, that they are to be forgotten."""

    reset_message: ClassVar[str] = _RESET_NAMES
    answers: ClassVar[Sequence[str]] = FIRST_NAMES

    name_changes: int = whole_number(3, least=1, most=len(FIRST_NAMES) - 2)

    def tell_names(self, rng: Random) -> tuple[list[str], _History]:
        """The names that the user goes by, one after the other, and what is said of them."""
        *names, other, another = rng.sample(FIRST_NAMES, self.name_changes + 2)
        return names, NAME.tell(self, rng, names, (other, another))


@dataclass(kw_only=True)
class Names(OwnNames):
    """Overwriting one attribute.

    Scores: perfect 1, memoryless 0. The answer is the name in the last statement, which may be that of somebody told of
    before. It must be the only one that the reply claims, among all names that tests give to users. Names that the user
    does not have are mentioned too. About 35 tokens per name. Interferes with name_list, which gives the user other names.
    """

    kind: ClassVar[str] = "names"
    name: ClassVar[str] = "Names"
    description: ClassVar[str] = "The user gives a new name several times; the agent must know the last one."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"name_list"})

    def make_example(self, number: int, rng: Random) -> TestExample:
        names, history = self.tell_names(rng)
        return self.tell_and_ask(number, history.lines, [_ASK_NAME.say(rng)], [names[-1]], needed=[history.needed])

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        retold = grade_retelling(responses[0], NAME.told, NAME.changed)
        grade = retold or weigh_claim(responses[0], expected[0], self.answers)
        if not retold and not grade.score and _names_holder(responses[0]):
            grade = Grade.failure(f"says whose name it is, and not which: {shorten(responses[0])}")
        return Grade.mean((yield from settle(questions, responses, expected, [grade])))

    @classmethod
    def make_reader(cls) -> Reader:
        return _NamesReader(NAME, _RESET_NAMES)


def _names_holder(reply: str) -> bool:
    """Whether the reply gives the name as that of somebody else, without saying it."""
    return not find_phrases(reply, FIRST_NAMES) and not abstains(reply) and _LIKE_HOLDER.search(fold(reply)) is not None


_LIKE_HOLDER = lazy_pattern(
    r"\b(?:the (?:same )?name (?:of|as)|the same as|(?:called|named) (?:after|like|the same as)|after|like)\b"
    rf"[^.!?\n]{{0,20}}\b(?:{'|'.join(_NAMESAKES)})\b"
)


class _NamesReader(AttributeReader):
    def answer(self, message: str, now: datetime) -> str | None:
        self.hear(message)
        if _ASK_NAME.matches(message):
            return self.values[-1] if self.values else "You have not told me."
        return None


@dataclass(kw_only=True)
class NameList(OwnNames):
    """Keeping every value of one attribute.

    Scores: perfect 1, memoryless 0. A reply scores its right names divided by the longer of the expected and the given
    list, so listing all names that exist scores next to nothing; a reply without a JSON list scores 0. The answer is the
    names of the statements, not those that are only mentioned. About 35 tokens per name. Interferes with names.
    """

    kind: ClassVar[str] = "name_list"
    name: ClassVar[str] = "NameList"
    description: ClassVar[str] = "The user gives a new name several times; the agent must list all of them."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"names"})

    def make_example(self, number: int, rng: Random) -> TestExample:
        names, history = self.tell_names(rng)
        return self.tell_and_ask(number, history.lines, [_ASK_NAMES.say(rng)], names)

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps(example.expected_responses)]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        reply = spell_like(responses[0], self.answers, *expected)
        grade = grade_members(reply, expected)
        # `{"current": "Ann", "former": ["Bo"]}` has a list of some.
        listed = find_phrases(json.dumps(parse_json_list(reply), ensure_ascii=False), expected)
        if listed < find_phrases(reply, expected):
            grade = Grade.failure(f"right names, but not in the form that was asked for: {shorten(reply)}")
        return Grade.mean((yield from settle(questions, responses, expected, [grade])))

    @classmethod
    def make_reader(cls) -> Reader:
        return _NameListReader(NAME, _RESET_NAMES)


class _NameListReader(AttributeReader):
    def answer(self, message: str, now: datetime) -> str | None:
        self.hear(message)
        return json.dumps(list(dict.fromkeys(filter(None, self.values)))) if _ASK_NAMES.matches(message) else None


# --- a favourite colour -----------------------------------------------------------------------------------------------

COLOURS = (
    "amber", "beige", "black", "blue", "bronze", "crimson", "cyan", "emerald", "green", "indigo", "ivory", "khaki",
    "lilac", "magenta", "maroon", "mauve", "ochre", "orange", "pink", "purple", "russet", "scarlet", "silver", "tan",
    "teal", "turquoise", "ultramarine", "violet", "white", "yellow",
)  # fmt: skip
_COLOUR = {"value": any_of(COLOURS), "former": any_of(COLOURS), "town": _TOWN}
_SIGHTS = (
    "band stand",
    "clock tower",
    "ferry",
    "lighthouse",
    "lock keeper's house",
    "signal box",
    "water tower",
    "windmill",
)
COLOUR = Attribute(
    told=Phrasing(
        "My favourite colour [is|has come to be] {value}.",
        "[I have taken|It seems I have taken] a liking to {value}: it is the colour I love most.",
        "There is no colour like {value} for me.",
        "[Should anybody ask|If you are asked] for my favourite colour, [say|it is] {value}.",
        "[They asked me at the paint shop|My niece wanted to know], and I said {value}, for I like no colour better.",
        "Of all colours I [like|love] {value} best[ now| these days|].",
        "I am having [the bicycle|the hall|my coat] done in {value}, my favourite colour[ of all|].",
        "[Whoever|Anybody who] wants to [please|cheer] me gives me something {value}, since that is my favourite colour.",
        "[Show me a hundred colours|Let me choose among all colours] and I will [take|point at] {value}, every time.",
        "Nothing makes me as happy [at the moment|these days] as the colour {value}.",
        "[The wallpaper|The kitchen], the curtains, the bedspread: all of it {value}, the colour after my own heart.",
        **_COLOUR,
    ),
    changed=Phrasing(
        "I used to [like|love] {former}, but [these days|by now] my favourite colour is {value}.",
        "Forget what I said about my favourite colour[ before|], it is not {former} but {value}.",
        "I have gone off {former} [altogether|completely]: no colour pleases me like {value}[ now|].",
        "{former} [bores|tires] me [by now|these days], and {value} has taken its place as my favourite colour.",
        **_COLOUR,
    ),
    held=Phrasing(
        "The {holder} at {town} is [painted|all] {value}, [you can see it for miles|which suits it].",
        "They have painted the {holder} at {town} {value}[, of all colours|].",
        holder=any_of(_SIGHTS),
        **_COLOUR,
    ),
    taken_over=Phrasing(
        "My favourite colour is [now|these days] [that of|the one of] the {holder} at {town}.",
        "I like no colour better [now|these days] than that of the {holder} at {town}.",
        holder=any_of(_SIGHTS),
        **_COLOUR,
    ),
    # Colours of other people and things: not what is asked for.
    others=Phrasing(
        "[My aunt|My neighbour|The man next door] has painted [everything|half the house] {value}, of all colours.",
        "They only had {value} left at the shop, so I came home with nothing.",
        "The new trams are {value}, which nobody asked for.",
        "[My sister|My flatmate] swears by {value}, but [I cannot see why|I do not share that].",
        "For a day or two I thought I might [come to like|take to] {value}, but [it passed|that was a whim].",
        **_COLOUR,
    ),
    holders=_SIGHTS,
)
_ASK_COLOUR = Phrasing(
    "What is my favourite colour?",
    "[Tell me|Do you remember]: which colour is my favourite[ now| at the moment|]?",
    "Which colour do I like best[ now| at present|]?",
    "[If you had to buy me a scarf|If you chose a present for me], in which colour would I [want|like] it most, going by what I "
    "told you of my taste?",
)


@dataclass(kw_only=True)
class Colours(BuiltinTest):
    """Overwriting one attribute whose values are common words.

    Scores: perfect 1, memoryless 0; naming every colour scores 0. The answer is the colour of the last statement, which
    differs from the one before and may be that of something told of before. A colour may come back after another. Colours
    of other people and things are mentioned too. About 35 tokens per colour. Interferes with no other test: no other one
    speaks of the user's favourite colour.
    """

    kind: ClassVar[str] = "colours"
    name: ClassVar[str] = "Colours"
    description: ClassVar[str] = "The user's favourite colour changes several times; the agent must know the last one."
    latest_counts: ClassVar[bool] = True
    answers: ClassVar[Sequence[str]] = COLOURS

    colour_changes: int = whole_number(3, least=1)

    def make_example(self, number: int, rng: Random) -> TestExample:
        colours = [rng.choice(COLOURS)]
        while len(colours) < self.colour_changes:
            colours.append(rng.choice([colour for colour in COLOURS if colour != colours[-1]]))
        history = COLOUR.tell(self, rng, colours, [colour for colour in COLOURS if colour not in colours])
        return self.tell_and_ask(number, history.lines, [_ASK_COLOUR.say(rng)], [colours[-1]], needed=[history.needed])

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        # Of a published test there may be a reply to each line.
        retold = grade_retelling(responses[-1], COLOUR.told, COLOUR.changed)
        grade = retold or grade_colour(responses[-1], expected[0], self.answers)
        return Grade.mean((yield from settle(questions[-1:], responses[-1:], expected, [grade])))

    @classmethod
    def make_reader(cls) -> Reader:
        return _ColoursReader(COLOUR)


def grade_colour(reply: str, expected: str, among: Sequence[str]) -> Grade:
    """As any claim; `emerald green` is emerald, and who expects green may ask back."""
    shades = "|".join(colour for colour in among if colour not in _BASIC)
    pair = re.compile(rf"\b({shades})[ -]({'|'.join(_BASIC)})\b", re.IGNORECASE)
    meant = pair.sub(r"\1", reply) if shades else reply
    grade = weigh_claim(meant, expected, among)
    if expected not in _BASIC and not grade.failed and not grade.score and _TONE.search(fold(reply)):
        return Grade.failure(f"it is not clear whether this shade is {expected!r}: {shorten(reply)}")
    if expected in _BASIC and not grade.score and any(basic.lower() == expected for _, basic in pair.findall(reply)):
        return Grade.failure(f"it is not clear whether this shade is {expected!r}: {shorten(reply)}")
    return grade


_BASIC = (
    "black",
    "blue",
    "brown",
    "gray",
    "green",
    "grey",
    "orange",
    "pink",
    "purple",
    "red",
    "violet",
    "white",
    "yellow",
)


_TONE = lazy_pattern(rf"\b(?:deep|dark|light|bright|pale|soft|strong|warm) (?:{'|'.join(_BASIC)})\b")


class _ColoursReader(AttributeReader):
    def answer(self, message: str, now: datetime) -> str | None:
        self.hear(message)
        if _ASK_COLOUR.matches(message):
            return self.values[-1] if self.values else "You have not told me."
        return None


# --- a room at a date -------------------------------------------------------------------------------------------------

# Rooms in which a society meets.
ROOMS = (
    "Alder", "Aspen", "Beech", "Birch", "Cedar", "Chestnut", "Cypress", "Elm", "Hawthorn", "Hazel", "Juniper", "Larch",
    "Laurel", "Linden", "Magnolia", "Maple", "Mulberry", "Poplar", "Rowan", "Spruce", "Sycamore", "Walnut", "Willow",
)  # fmt: skip
_SOCIETIES = ("chess club", "choir", "drama group", "fencing club", "history society", "orchestra", "poetry circle")
# Any year that is no leap year: statements and questions keep to one year and never name it.
_YEAR = 2023
_SOCIETY = {
    "who": any_of(_SOCIETIES),
    "town": _TOWN,
    "room": any_of(ROOMS),
    "former": any_of(ROOMS),
    "date": rf"\d{{1,2}} (?:{any_of(MONTHS)})",
    "days": r"\d+",
}
_MOVED = Phrasing(
    "On {date} the {town} {who} moved to the {room} room[, where it met from then on|].",
    "The {town} {who} [met|gathered] in the {room} room from {date} on.",
    "[From|Since] {date} the {town} {who} was to be found in the {room} room.",
    "The {room} room became [the home|the place] of the {town} {who} on {date}.",
    "{date} was the day [on which|when] the {town} {who} carried its chairs to the {room} room.",
    "They gave the {town} {who} the keys of the {room} room on {date}, and it [moved in|took it over] the same day.",
    "I [helped|watched] the {town} {who} [move|settle] into the {room} room on {date}.",
    "[Whoever|Anybody who] looked for the {town} {who} after {date} had to go to the {room} room, its new quarters from that "
    "day.",
    "A burst pipe drove the {town} {who} into the {room} room on {date}.",
    "[My diary|The minutes] for {date}: {town} {who} [transferred|moved over] to the {room} room.",
    **_SOCIETY,
)
_MOVED_AFTER = Phrasing(
    "{days} days after it had moved into the {former} room the {town} {who} moved on to the {room} room.",
    "The {town} {who} kept the {former} room for {days} days and then [went|moved] to the {room} room.",
    "After {days} days in the {former} room the {town} {who} exchanged it for the {room} room.",
    **_SOCIETY,
)
_NOT_MOVED = Phrasing(
    "There was talk that the {town} {who} would move to the {room} room on {date}, but nothing came of it.",
    "The {town} {who} very nearly [went|moved] to the {room} room on {date}, then [somebody objected|the roof leaked] and it "
    "stayed.",
    "The {who} [of|in] {town} had asked for the {room} room as well, in vain.",
    **_SOCIETY,
)
_ASK_ROOM = Phrasing(
    "In which room does the {town} {who} meet, after all the moves that I have told you of?",
    "Where is the {town} {who} to be found in the end, by the latest of the dates I gave you? Name the room.",
    "Which room was the last one that the {town} {who} moved to, going by the dates?",
    **_SOCIETY,
)
_ASK_ROOM_THEN = Phrasing(
    "[And in|In] which room did the {town} {who} meet on {date} of the same year? Name the room only.",
    "Which room did the {town} {who} have on {date} of that year? Name the room only.",
    "Suppose it is {date} of that year: in which room is the {town} {who}? Name the room only.",
    **_SOCIETY,
)


@dataclass(frozen=True)
class _Move:
    day: date
    room: str
    line: int
    # The move that its date is counted from.
    after: _Move | None = None

    @property
    def needed(self) -> list[int]:
        return [self.line, *(self.after.needed if self.after else ())]


@dataclass(kw_only=True)
class KnowledgeUpdate(BuiltinTest):
    """Updating without overwriting.

    Scores: perfect 1, memoryless 0; half for the latest value, half for the one that held at a date in the past. Moves are
    told in any order, with their dates or with the days since an earlier one; moves that did not come about and those of
    a society with a similar name are told too. Naming several rooms is wrong. About 35 tokens per update. Interferes with
    no other test: no other one speaks of these societies.
    """

    kind: ClassVar[str] = "knowledge_update"
    name: ClassVar[str] = "Knowledge Update"
    description: ClassVar[str] = "A fact changes several times; the agent must know it now and as of an earlier date."
    answers: ClassVar[Sequence[str]] = ROOMS

    updates: int = whole_number(3, least=2, most=len(MONTHS))

    def make_example(self, number: int, rng: Random) -> TestExample:
        town, other_town = self.world.look_alikes(rng, "village", VILLAGES, 2)
        who = rng.choice(_SOCIETIES)
        rooms = rng.sample(ROOMS, self.updates + 1)
        months = sorted(rng.sample(range(1, len(MONTHS) + 1), self.updates))
        days = [date(_YEAR, month, rng.randint(2, 12)) for month in months]
        # Told from the first to the last, or with the first told last.
        order = list(range(self.updates))
        if rng.random() < 0.5:
            order = [*order[1:], order[0]]
        lines: list[str] = []
        moves: dict[int, _Move] = {}
        for place in order:
            before = moves.get(place - 1)
            if before is not None and rng.random() < 0.4 and not (before.day.month < 3 <= days[place].month):
                said = _MOVED_AFTER.say(
                    rng, town=town, who=who, room=rooms[place], former=before.room, days=(days[place] - before.day).days
                )
                moves[place] = _Move(days[place], rooms[place], len(lines), before)
            else:
                said = _MOVED.say(rng, town=town, who=who, room=rooms[place], date=_format_day(days[place]))
                moves[place] = _Move(days[place], rooms[place], len(lines))
            if rng.random() < 0.4:
                said = " ".join(rng.sample((said, self._tell_other(rng, town, other_town, who, rooms[-1])), 2))
            lines.append(self.chat(rng, said))
        then, last = moves[rng.randrange(self.updates - 1)], moves[self.updates - 1]
        asked = _format_day(then.day + timedelta(rng.randint(3, 15)))
        questions = [_ASK_ROOM.say(rng, town=town, who=who), _ASK_ROOM_THEN.say(rng, town=town, who=who, date=asked)]
        needed = [last.needed, then.needed]
        return self.tell_and_ask(number, lines, questions, [last.room, then.room], needed=needed)

    def _tell_other(self, rng: Random, town: str, other_town: str, who: str, room: str) -> str:
        day = _format_day(date(_YEAR, rng.randint(1, 12), rng.randint(13, 28)))
        if rng.random() < 0.5:
            return _MOVED.say(rng, town=other_town, who=who, room=room, date=day)
        return _NOT_MOVED.say(rng, town=town, who=who, room=room, date=day)

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = [
            grade_retelling(responses[0], _MOVED, _MOVED_AFTER, slot="room")
            or weigh_claim(responses[0], expected[0], self.answers),
            grade_retelling(responses[1], _MOVED, _MOVED_AFTER, slot="room")
            or grade_as_of(responses[1], expected[1], self.answers),
        ]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _RoomsReader()


_FEW_ROOMS = 3


def grade_as_of(reply: str, expected: str, among: Sequence[str] = ROOMS) -> Grade:
    """1 if the room that the reply names first, apart from what it denies, is that of the time, with at most one more."""
    rooms = {*among, expected}
    reply = spell_like(reply, rooms, expected)
    named = find_phrases(reply, rooms)
    if not named and is_foreign(reply):
        return weigh_claim(reply, expected, rooms)
    first = find_first_claim(reply, rooms) == {expected}
    if first and find_conclusion(reply, rooms) == {expected} and len(named) <= _FEW_ROOMS:
        return Grade(1.0, (f"concludes with {expected!r}",))
    if first and 2 < len(named) <= _FEW_ROOMS and len(split_words(reply)) > len(named) + 2:
        return Grade.failure(f"it is not clear whether this names {expected!r} for the day: {shorten(reply)}")
    right = first and len(named) <= 2
    if not right and is_prominent(reply, expected, rooms, find_possible_claims(reply, rooms)):
        return Grade.failure(f"it is not clear whether this names {expected!r} for the day: {shorten(reply)}")
    return Grade.when(right, f"expected {expected!r}, got {', '.join(sorted(named)[:5]) or 'no room'}")


class _RoomsReader(Reader):
    def __init__(self) -> None:
        self._moves: dict[tuple[str, str], list[tuple[date, str]]] = {}
        # What was counted from a move that is told of later, or never.
        self._waiting: list[dict[str, str]] = []

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _MOVED.read_all(message):
            self._add(told, _parse_day(told["date"]))
        self._waiting += _MOVED_AFTER.read_all(message)
        for told in list(self._waiting):
            for day, room in self._moves.get((told["town"], told["who"]), ()):
                if room == told["former"]:
                    self._waiting.remove(told)
                    self._add(told, day + timedelta(int(told["days"])))
                    break
        if asked := _ASK_ROOM_THEN.read(message):
            return self._find(asked, until=_parse_day(asked["date"]))
        asked = _ASK_ROOM.read(message)
        return None if asked is None else self._find(asked, until=date.max)

    def _add(self, told: dict[str, str], day: date) -> None:
        self._moves.setdefault((told["town"], told["who"]), []).append((day, told["room"]))

    def _find(self, asked: dict[str, str], until: date) -> str:
        moves = [move for move in self._moves.get((asked["town"], asked["who"]), ()) if move[0] <= until]
        return max(moves)[1] if moves else "You have not told me."


def _format_day(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]}"


def _parse_day(text: str) -> date:
    day, month = text.split()
    return date(_YEAR, MONTHS.index(month) + 1, int(day))
