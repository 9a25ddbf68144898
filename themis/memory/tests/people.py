"""Facts about people that are easily confused, or that do not fit together."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import drop_others, extract_about, grade_recital_of, weigh_claim_about
from themis.memory.scoring.lists import grade_members
from themis.memory.scoring.nearness import Near, compare_with
from themis.memory.scoring.prominence import stand_apart
from themis.memory.scoring.spelling import spell_like
from themis.memory.scoring.words import find_phrases, fold, shorten, split_words
from themis.memory.tests.invented import BUILTIN, InventedTest
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.word_lists import CITIES, FIRST_NAMES, MONTHS, SURNAMES, TOWNS, VILLAGES

_TOWN = r"[A-Z]\w+"
_FULL_NAME = r"[A-Z]\w+ [A-Z]\w+"

# --- people who share a name ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Trait:
    """Something that is told of people who are easily confused.

    Args:
        values: What it can be.
        told: Sentences of a `{who}` and a `{value}`.
        given_up: Sentences that also name a `{former}` value, which no longer holds.
        asked: Questions for it.
    """

    values: tuple[str, ...]
    told: Phrasing
    given_up: Phrasing
    asked: Phrasing


def _make_trait(values: tuple[str, ...], told: Sequence[str], given_up: Sequence[str], asked: Sequence[str]) -> Trait:
    # Of a person described before: `the Agnes of Mill Lane`.
    who = rf"{_FULL_NAME}|the [A-Z]\w+ from [A-Z]\w+"
    slots = {"who": who, "value": any_of(values), "former": any_of(values)}
    return Trait(
        values=values,
        told=Phrasing(*told, **slots),
        given_up=Phrasing(*given_up, **slots),
        asked=Phrasing(*asked, **slots),
    )


TRAITS = {
    "instrument": _make_trait(
        ("banjo", "bassoon", "cello", "clarinet", "dulcimer", "harp", "mandolin", "oboe", "trombone", "tuba"),
        ("{who} plays the {value}.", "[You should hear|I love to hear] {who} on the {value}.",
         "{who} never travels without the {value} and practises every night.",
         "Next door to {who} one hears the {value} all evening."),
        ("{who} sold the {former} and has taken up the {value} instead.",
         "It is the {value} that {who} plays, not the {former}, as I [said|thought] once."),
        ("Which instrument does {who} play?", "What instrument would {who} bring to a concert? Name it only."),
    ),
    "animal": _make_trait(
        ("chinchilla", "donkey", "ferret", "gecko", "hedgehog", "marmoset", "parakeet", "raccoon", "tortoise", "whippet"),
        ("{who} keeps a {value}.", "There is a {value} living with {who}, [of all things|and it rules the house].",
         "{who} had to leave early to feed the {value} at home.",
         "[Mind your shoes|Watch out] at the place of {who}: the {value} bites."),
        ("{who} gave the {former} away and keeps a {value} now.",
        "{who} [always wanted|nearly bought] a {former}, but came home with a "
         "{value} to keep."),
        ("Which animal does {who} keep?", "What pet is there in the home of {who}? Name the animal only."),
    ),
    "sport": _make_trait(
        ("archery", "badminton", "bowling", "croquet", "curling", "fencing", "handball", "rowing", "table tennis", "water polo"),
        ("{who} spends every weekend on {value}.", "Ask {who} about {value} and [you will never get away|the evening is over].",
         "{who} won a [cup|medal] in {value} [again|last month].", "For {who} no Sunday passes without {value}."),
        ("{who} has dropped {former} and [trains|goes in] for {value} now.",
        "It is {value} that {who} is mad about, {former} was only a "
         "phase."),
        ("On which sport does {who} spend the free time?", "What sport does {who} go in for? Name it only."),
    ),
    "trade": _make_trait(
        ("cooper", "farrier", "glazier", "locksmith", "midwife", "notary", "saddler", "stonemason", "surveyor", "thatcher"),
        ("{who} works as a {value}.", "{who} earns a living as a {value}.",
        "They are looking for a {value}, so I gave them the number "
         "of {who}, who is one.", "{who} has been a {value} for [years|longer than I can say]."),
        ("{who} trained as a {former}, but works as a {value}.",
        "{who} is no longer a {former}; a {value} is what {who} is now."),
        ("What does {who} work as?", "By which trade does {who} make a living? Name it only."),
    ),
    "language": _make_trait(
        ("Basque", "Catalan", "Danish", "Finnish", "Greek", "Hungarian", "Icelandic", "Swahili", "Turkish", "Welsh"),
        ("{who} is learning {value}.", "{who} takes lessons in {value} [twice a week|every Monday].",
         "All over the flat of {who} there are slips of paper with {value} words to be learnt.",
         "{who} sits over {value} grammar every "
         "night."),
        ("{who} gave up on {former} and is learning {value} instead.",
        "{who} meant to learn {former}, then [signed up for|chose] {value}."),
        ("Which language is {who} learning?", "What language does {who} take lessons in? Name it only."),
    ),
    "drink": _make_trait(
        ("barley water", "buttermilk", "cocoa", "elderflower cordial", "ginger beer", "hot broth", "iced tea", "oat milk",
         "peppermint tea", "tomato juice"),
        ("{who} starts the day with {value}.", "Before {who} has had {value} in the morning, nobody may speak.",
         "{who} orders {value} for breakfast wherever we stay.", "The first thing {who} reaches for in the morning is {value}."),
        ("{who} has changed from {former} to {value} in the morning.", "{who} cannot stand {former} any more and has {value} for "
         "breakfast."),
        ("With which drink does {who} start the day?", "What does {who} drink in the morning? Name it only."),
    ),
}  # fmt: skip
_HAILS_FROM = Phrasing(
    "{who} [is the one|comes] from {town}, [as you may know|to tell them apart].",
    "[Do not mix them up|Mind you]: {who} [lives|grew up] in {town}.",
    who=_FULL_NAME,
    town=_TOWN,
)
_GIVEN_UP_SHARE, _FROM_TOWN_SHARE = 0.3, 0.3


@dataclass(kw_only=True)
class Interference(BuiltinTest):
    """Keeping similar memories apart.

    Scores: perfect 1, memoryless 0; the share of right answers. People share their first name and their surnames begin
    alike; they are told of in turns, some things with what held before, some of a person who is only called the one from
    a town. An answer is right if it names what was told of the person asked about and nothing else of its kind. About 20
    tokens per statement and per question. Interferes with no other test: no other one speaks of these people.
    """

    kind: ClassVar[str] = "interference"
    name: ClassVar[str] = "Interference"
    description: ClassVar[str] = "The agent must keep apart people who share a first name."
    answers: ClassVar[Sequence[str]] = tuple(value for trait in TRAITS.values() for value in trait.values)

    people: int = whole_number(2, least=2, most=6)
    attributes: int = whole_number(3, least=1, most=len(TRAITS))

    def make_example(self, number: int, rng: Random) -> TestExample:
        # Nobody else has their surnames, whatever the first name.
        first_name = rng.choice(FIRST_NAMES)
        surnames = self.world.look_alikes(rng, "surname", SURNAMES, self.people)
        people = [f"{first_name} {surname}" for surname in surnames]
        # One of them comes from a town, which is told at first and then stands for the name.
        townsman = rng.choice(people) if rng.random() < 0.5 else None
        town = self.world.draw(rng, "village", VILLAGES) if townsman else ""
        lines = [self.chat(rng, _HAILS_FROM.say(rng, who=townsman, town=town))] if townsman else []
        asked = []
        for name in rng.sample(tuple(TRAITS), self.attributes):
            trait = TRAITS[name]
            *values, former = rng.sample(trait.values, self.people + 1)
            pairs = list(zip(people, values, strict=True))
            needed: dict[str, list[int]] = {}
            for who, value in rng.sample(pairs, len(pairs)):
                by_town = who == townsman and rng.random() < _FROM_TOWN_SHARE * 2
                called = f"the {first_name} from {town}" if by_town else who
                needed[who] = [0, len(lines)] if by_town else [len(lines)]
                if rng.random() < _GIVEN_UP_SHARE:
                    said = trait.given_up.say(rng, who=called, value=value, former=former)
                else:
                    said = trait.told.say(rng, who=called, value=value)
                lines.append(self.chat(rng, said))
            who, value = rng.choice(pairs)
            asked.append((trait.asked.say(rng, who=who), value, needed[who]))
        rng.shuffle(asked)
        questions, expected, lines_needed = zip(*asked, strict=True)
        return self.tell_and_ask(number, lines, questions, list(expected), needed=lines_needed)

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = []
        for question, reply, value in zip(questions, responses, expected, strict=True):
            values = next((trait.values for trait in TRAITS.values() if value in trait.values), ())
            recital = grade_recital_of(reply, value, expected)
            grades.append(recital or weigh_claim_about(_find_surname(question), SURNAMES, reply, value, values))
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _NamesakesReader()


def _find_surname(question: str) -> str:
    return next((surname for surname in SURNAMES if surname in question), "")


class _NamesakesReader(Reader):
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._names: dict[str, str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _HAILS_FROM.read_all(message):
            self._names[f"the {told['who'].split()[0]} from {told['town']}".casefold()] = told["who"]
        for name, trait in TRAITS.items():
            for phrasing in (trait.told, trait.given_up):
                for told in phrasing.read_all(message):
                    who = self._names.get(told["who"].casefold(), told["who"])
                    self._known[name, who] = told["value"]
            if asked := trait.asked.read(message):
                return self._known.get((name, asked["who"]), "You have not told me.")
        return None


# --- birthdays that do not fit together -------------------------------------------------------------------------------

_BORN = {"who": any_of(FIRST_NAMES), "month": any_of(MONTHS), "other": any_of(MONTHS), "town": _TOWN}
_BIRTHDAY = Phrasing(
    "The birthday of {who} in {town} is in {month}.",
    "{who} in {town} was born in {month}.",
    "{who} in {town} turns a year older every {month}.",
    "Every {month} there is birthday cake at the place of {who} in {town}.",
    "It was in {month} that {who} in {town} came into the world.",
    "If you want to give {who} in {town} something for the birthday, have it ready in {month}.",
    "We [sang|are going to sing] for {who} in {town} in {month}, as on every birthday.",
    "{who} in {town} shares the month of birth with my [uncle|boss], which is {month}.",
    "[My calendar|The list on my wall] has the birthday of {who} in {town} under {month}.",
    "{who} in {town} [likes|hates] having a birthday in {month}, [with all the other feasts|of all months].",
    "It is not in {other}, [as people think|as one might expect], but in {month} that {who} in {town} has a birthday.",
    **_BORN,
)
_BIRTHDAY_NEXT_TO = Phrasing(
    "The birthday of {who} in {town} falls in the month after {other}.",
    "{who} in {town} was born in the month that comes before {before}.",
    before=any_of(MONTHS),
    **_BORN,
)
_NO_BIRTHDAY = Phrasing(
    "{who} in {town} got married in {month}, [I was there|in the rain].",
    "{who} in {town} [always goes away|takes a holiday] in {month}.",
    "The [dog|cat] of {who} in {town} has a birthday in {month}, [they bake for it|believe it or not].",
    **_BORN,
)
_ASK_CONTRADICTED = Phrasing(
    "I have told you the birthdays of {people} people in {town}, each of them twice. About which of them have I contradicted "
    "myself? "
    "Answer with a JSON list of their first names.",
    "Of the {people} people in {town} whose month of birth I gave you: for which of them did I name two different months? "
    "Answer with a "
    "JSON list of their first names.",
    "Whose birthday have I told you in two ways that do not fit together, among the {people} people in {town}? Answer with a "
    "JSON list "
    "of their first names.",
    people=r"\d+",
    town=_TOWN,
)


@dataclass(kw_only=True)
class ContradictionDetection(BuiltinTest):
    """Noticing what does not fit together.

    Scores: perfect 1, memoryless 0. Everybody's birthday is told twice, for some in another month the second time; other
    things that happen to them in a month do not matter. A reply scores its right names divided by the longer of the
    expected and the given list, so naming everybody scores the share that is contradictory, at most a third. About 20
    tokens per statement. Interferes with no other test: no other one speaks of these people.
    """

    kind: ClassVar[str] = "contradiction"
    name: ClassVar[str] = "Contradiction Detection"
    description: ClassVar[str] = "The agent must tell about whom the user has contradicted themselves."
    answers: ClassVar[Sequence[str]] = FIRST_NAMES

    people: int = whole_number(6, least=3, most=24)
    contradictions: int = whole_number(2, least=1, most=lambda test: test.people // 3)

    def make_example(self, number: int, rng: Random) -> TestExample:
        # Nobody else speaks of people there, whatever their names.
        town = self.world.draw(rng, "village", VILLAGES)
        people = rng.sample(FIRST_NAMES, self.people)
        contradicted = rng.sample(people, self.contradictions)
        lines: list[str] = []
        needed: list[int] = []
        months: dict[str, str] = {}
        for who in [*people, *rng.sample(people, len(people))]:
            month = months.get(who) or rng.choice(MONTHS)
            if who in months and who in contradicted:
                month = rng.choice([other for other in MONTHS if other != month])
            months[who] = month
            said = _tell_birthday(rng, who, town, month)
            if rng.random() < 0.15:
                aside = _NO_BIRTHDAY.say(rng, who=who, town=town, month=rng.choice(MONTHS))
                said = " ".join(rng.sample((said, aside), 2))
            if who in contradicted:
                needed.append(len(lines))
            lines.append(self.chat(rng, said) if self.memory_span > 4_000 else said)
        question = _ASK_CONTRADICTED.say(rng, people=self.people, town=town)
        return self.tell_and_ask(
            number, lines, [question], [who for who in people if who in contradicted], needed=[needed]
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps(example.expected_responses)]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = [grade_members(responses[0], expected, FIRST_NAMES)]
        return Grade.mean((yield from settle(questions, responses, [", ".join(expected)], grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _BirthdaysReader()


def _tell_birthday(rng: Random, who: str, town: str, month: str) -> str:
    place = MONTHS.index(month)
    if rng.random() < 0.15:
        before, after = MONTHS[(place + 1) % 12], MONTHS[place - 1]
        return _BIRTHDAY_NEXT_TO.say(rng, who=who, town=town, other=after, before=before)
    other = rng.choice([one for one in MONTHS if one != month])
    return _BIRTHDAY.say(rng, who=who, town=town, month=month, other=other)


class _BirthdaysReader(Reader):
    def __init__(self) -> None:
        # For each town the months told of each person.
        self._months: dict[str, dict[str, list[str]]] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _BIRTHDAY.read_all(message):
            self._add(told, told["month"])
        for told in _BIRTHDAY_NEXT_TO.read_all(message):
            place = MONTHS.index(told["before"]) - 1 if "before" in told else MONTHS.index(told["other"]) + 1
            self._add(told, MONTHS[place % 12])
        asked = _ASK_CONTRADICTED.read(message)
        if asked is None:
            return None
        told_of = self._months.get(asked["town"], {})
        return json.dumps([who for who, months in told_of.items() if len(dict.fromkeys(months)) > 1])

    def _add(self, told: dict[str, str], month: str) -> None:
        self._months.setdefault(told["town"], {}).setdefault(told["who"], []).append(month)


# --- where a relative lives -------------------------------------------------------------------------------------------

# Any first name fits them.
RELATIVES = ("cousin", "foster child", "godchild", "godparent", "grandchild", "half-sibling", "stepchild", "twin")
# Whom a reply may name besides.
KIN = (*RELATIVES, "sister", "brother", "aunt", "godmother", "uncle", "niece", "nephew")
_RELATIVE = {"relative": any_of(RELATIVES), "who": any_of(FIRST_NAMES), "town": _TOWN, "other": _TOWN}
# Where somebody has always lived: two of these with different towns cannot both be true.
_ALWAYS_LIVED = Phrasing(
    "My {relative} {who} has lived in {town} from birth and has never left.",
    "My {relative} {who} has never lived anywhere but in {town}.",
    "{town} is where my {relative} {who} was born, grew up and lives to this day, without a single year elsewhere.",
    "In all these years my {relative} {who} never once moved away from {town}.",
    "My {relative} {who} is {town} through and through: born there, living there, never away for longer than a holiday.",
    "You will find my {relative} {who} in {town}, in the very house where the cradle stood, always the same address.",
    "My {relative} {who} has had one home in a whole lifetime, and that is in {town}.",
    "From the first day until now {town} has been the only home of my {relative} {who}.",
    "My {relative} {who} swears never to have slept a month outside {town}, where the family house stands.",
    "If my {relative} {who} were ever to leave {town}, it would be for the first time since birth.",
    "My {relative} {who} still lives in the town of birth, {town}, and has known no other.",
    **_RELATIVE,
)
_LIVES = Phrasing(
    "My {relative} {who} has a flat in {town}.",
    "My {relative} {who} [moved to|settled in] {town} [last year|some time ago].",
    "[I sent|We sent] a parcel to {town}, where my {relative} {who} lives.",
    "My {relative} {who} writes from {town}, [the new home|where the new house stands].",
    **_RELATIVE,
)
_PASSED_THROUGH = Phrasing(
    "My {relative} {who} went on a trip to {town} [once|last summer], [and did not like it|for two days].",
    "My {relative} {who} was offered a job in {town}, but [turned it down|did not take it].",
    "My {relative} {who} dreams of {town}, but [will never go|only in the bath].",
    **_RELATIVE,
)
_ASK_HOME = Phrasing(
    "Where does my {relative} {who} live? If I have told you several things that do not fit together, name them all.",
    "In which town is my {relative} {who} at home? Should I have told you things that do not fit together, name every one of "
    "them.",
    "What have I told you about where my {relative} {who} lives? If it does not fit together, name all of it.",
    **_RELATIVE,
)
_BRIEF_WORDS = 40
_DENIED = lazy_pattern(r"\b(?:not|never|no longer|isn't|rather than|instead of) (?:in )?(?!left|sure)[a-z]{1,20}")


@dataclass(kw_only=True)
class ConflictingPersonalInfo(InventedTest):
    """Keeping both sides of a conflict.

    Scores: perfect 1, memoryless 0. Both towns and no other is right; only the later one is half right; anything else,
    and any town of somebody else, is wrong, so repeating all statements scores 0. Where others live, and where the
    relative did not go, is told between. About 30 tokens per statement. Interferes with no other test: no other one says
    where these relatives live.
    With `generator: model` the model `generation_model` invents the material.
    """

    kind: ClassVar[str] = "conflicting_personal_info"
    name: ClassVar[str] = "Conflicting Personal Information"
    description: ClassVar[str] = "The user contradicts an earlier statement; the agent must know both versions."
    invention: ClassVar[str] = (
        "Invent two statements that a person makes about themselves and that cannot both be true, with two unrelated statements "
        "between them. Then ask one question on the matter that asks for everything that was said; the answer names both."
    )
    answers: ClassVar[Sequence[str]] = (*CITIES, *TOWNS)

    other_relatives: int = whole_number(2, least=1, most=len(RELATIVES) - 1)

    def make_example(self, number: int, rng: Random) -> TestExample:
        relatives = rng.sample(RELATIVES, self.other_relatives + 1)
        people: list[dict[str, str]] = []
        for relative in relatives:
            # No two of them have one name.
            names = [name for name in FIRST_NAMES if all(name != other["who"] for other in people)]
            who = self.world.draw(rng, relative, names)
            people.append({"relative": relative, "who": who})
        earlier, later, *elsewhere = rng.sample(TOWNS, self.other_relatives + 3)
        lines = [self.chat(rng, _ALWAYS_LIVED.say(rng, town=earlier, **people[0]))]
        for other, town in zip(people[1:], elsewhere, strict=False):
            said = _LIVES.say(rng, town=town, **other)
            if rng.random() < 0.3:
                whom = rng.choice([people[0], other])
                said = " ".join(rng.sample((said, _PASSED_THROUGH.say(rng, town=elsewhere[-1], **whom)), 2))
            lines.append(self.chat(rng, said))
        lines.append(self.chat(rng, _ALWAYS_LIVED.say(rng, town=later, **people[0])))
        question = _ASK_HOME.say(rng, **people[0])
        return self.tell_and_ask(number, lines, [question], [[earlier, later]], needed=[[0, len(lines) - 1]])

    def ideal_answers(self, example: TestExample) -> list[str]:
        if self.generator != BUILTIN:
            return super().ideal_answers(example)
        return [_name_both(example.expected_responses[0])]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        if self.generator != BUILTIN:
            return super().needed_lines(example)
        return BuiltinTest.needed_lines(self, example)

    def grade_builtin(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[Sequence[str]]
    ) -> Judgement:
        relative = next((one for one in KIN if one in questions[0]), "")
        who = next(iter(find_phrases(questions[0], FIRST_NAMES)), "")
        grades = [grade_conflict(responses[0], *expected[0], relative=relative, who=who)]
        return Grade.mean((yield from settle(questions, responses, [_name_both(expected[0])], grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _HomesReader()


def grade_conflict(reply: str, earlier: str, later: str, *, relative: str, who: str = "") -> Grade:
    """1 for both, 0.5 for the later alone, 0 otherwise; a short reply may also say where one other relative lives.

    Args:
        reply: What was answered.
        earlier: The town that was told first.
        later: The other one.
        relative: Whom it is about, such as `uncle`.
        who: The name of that relative; what is said of others by name does not count.
    """
    others = find_phrases(reply, FIRST_NAMES) - {who}
    # Who repeats what was said of everybody has not answered.
    few = len(others) < 2 and len(split_words(reply)) <= _BRIEF_WORDS
    reply = drop_others(reply, who, FIRST_NAMES) if few or _CONTRADICTS.search(fold(reply)) else reply
    towns = {*CITIES, *TOWNS, earlier, later}
    reply = spell_like(reply, towns, earlier, later)
    one_more = len(find_phrases(reply, towns) - {earlier, later}) == 1 and len(split_words(reply)) <= _BRIEF_WORDS
    answer = extract_about(reply, relative, KIN) if one_more and relative else fold(reply)
    answer = _DENIED.sub("", _PASSING.sub("", answer))
    named = find_phrases(answer, towns)
    if named == {earlier, later} and _SMOOTHED.search(answer):
        return Grade.failure(f"it is not clear whether this keeps both apart: {shorten(reply)}")
    if named == {later} and compare_with(_remove_phrase(answer, later), earlier, towns) is not Near.FAR:
        return Grade.failure(f"it is not clear whether this names {earlier}: {shorten(reply)}")
    if named == {earlier, later}:
        return Grade(1.0, (f"names both {earlier} and {later}",))
    if named == {later}:
        return Grade(0.5, (f"names only the later {later}, not {earlier}",))
    if not named:
        return Grade(0.0, (f"expected {earlier} and {later}, got: {shorten(reply)}",))
    if {earlier, later} < named and len(named) <= _FEW_TOWNS and stand_apart(reply, (earlier, later), towns):
        return Grade.failure(f"it is not clear what this says of the other towns: {shorten(reply)}")
    return Grade(0.0, (f"expected {earlier} and {later}, got {', '.join(sorted(named))}",))


_FEW_TOWNS = 4
_CONTRADICTS = lazy_pattern(r"\b(?:contradict\w*|conflict\w*|inconsisten\w*|disagree\w*|clash\w*)\b")


def _remove_phrase(text: str, phrase: str) -> str:
    """The words of a text that may be another name."""
    return " ".join(word for word in re.findall(r"[a-z]{6,}", text) if word != fold(phrase))


# `Leeds was only a holiday` says where nobody lives.
_PASSING = lazy_pattern(
    r"[^.;!?,()\n]{1,60}\b(?:(?:only|just|merely|no more than) (?:for )?(?:a|an|on a|on|where|somewhere) "
    r"(?:[\w-]{1,12} ){0,3}(?:trip|visit|holiday|weekend|stay|tour|stop|offer|job|post|plan|idea|dream|rumou?r|option|wish"
    r"|thought|passed|stayed|studied|worked|considered)"
    r"|(?:was|were|is) (?:only |just |merely )?(?:considered|turned down|thought about|a rumou?r|ruled out|out of it"
    r"|left out|irrelevant|beside the point)"
    r"|(?:does|do|did)(?: not|n't) (?:count|matter)|i(?:'m| am)? (?:leav(?:e|ing)|set(?:ting)?) aside"
    r"|(?:holiday|visit|trip) only)\b[^.;!?()\n]{0,40}"
    r"|\bi(?:'m| am)? (?:(?:do not|don't|not) count(?:ing)?|ignor(?:e|ing)|leav(?:e|ing) (?:aside|out)|set(?:ting)? aside)\b"
    r"[^.;!?()\n]{1,60}"
)
# One after the other, as if nothing were wrong.
_SMOOTHED = lazy_pattern(
    r"\bused to live\b[^.!?\n]{1,60}\b(?:moved|now)\b|\b(?:has|have|had) (?:since |then |later )?moved (?:from|to)\b"
)


def _name_both(towns: Sequence[str]) -> str:
    return f"You have told me things that do not fit together: {', and later '.join(towns)}."


class _HomesReader(Reader):
    def __init__(self) -> None:
        self._homes: dict[tuple[str, str], list[str]] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for phrasing in (_ALWAYS_LIVED, _LIVES):
            for told in phrasing.read_all(message):
                self._homes.setdefault((told["relative"], told["who"]), []).append(told["town"])
        asked = _ASK_HOME.read(message)
        if asked is None:
            return None
        homes = list(dict.fromkeys(self._homes.get((asked["relative"], asked["who"]), ())))
        return (_name_both(homes) if homes[1:] else homes[0]) if homes else "You have not told me."
