"""Facts about people and things: told or never told, to be forgotten, easily confused, or in conflict with each other."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import TestExample
from themis.memory.scoring.claims import (
    abstains,
    extract_about,
    find_claims,
    grade_claim,
    grade_claim_about,
    grade_recital_of,
)
from themis.memory.scoring.lists import grade_members
from themis.memory.scoring.words import find_phrases, fold, mentions, shorten, split_words
from themis.memory.tests.invented import BUILTIN, InventedTest
from themis.memory.tests.kind import BuiltinTest, whole_number
from themis.memory.tests.word_lists import CITIES, MONTHS, STORY_NAMES, SURNAMES

# --- what was told, and what was not ----------------------------------------------------------------------------------

# People of whom the surname is told, or is not.
ACQUAINTANCES = (
    "accountant", "barber", "dentist", "driving instructor", "gardener", "landlord", "optician", "piano teacher",
    "plumber", "solicitor", "tailor", "vet",
)  # fmt: skip


@dataclass(kw_only=True)
class Abstention(BuiltinTest):
    """Knowing what one does not know.

    Scores: perfect 1, memoryless 0, and 0 for whoever always abstains or never does. The score is the share of told names
    that were given plus the share of untold ones that were declined, minus 1, not below 0. A reply that declines and
    guesses nevertheless is wrong. About 15 tokens per fact and 20 per question. Interferes with no other test: no other
    one names these people.
    """

    kind: ClassVar[str] = "abstention"
    name: ClassVar[str] = "Abstention"
    description: ClassVar[str] = "The agent must give what it was told and admit what it was not told."
    answers: ClassVar[Sequence[str]] = (*SURNAMES, "I don't know.")

    facts: int = whole_number(4, least=1, most=len(ACQUAINTANCES) - 1)
    unknowns: int = whole_number(4, least=1, most=lambda test: len(ACQUAINTANCES) - test.facts)

    def make_example(self, number: int, rng: Random) -> TestExample:
        people = rng.sample(ACQUAINTANCES, self.facts + self.unknowns)
        names = rng.sample(SURNAMES, self.facts)
        told = dict(zip(people, names, strict=False))
        asked = rng.sample(people, len(people))
        return self.tell_and_ask(
            number,
            [f"The surname of my {person} is {name}." for person, name in told.items()],
            [f"What is the surname of my {person}? If I have not told you, say so." for person in asked],
            [told.get(person) for person in asked],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [name or "You have not told me." for name in example.expected_responses]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        # That nothing was told is known only to those who remember everything.
        return [example.lines_with(f" {name}.") if name else None for name in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str | None]) -> Grade:
        people = [next((one for one in ACQUAINTANCES if one in question), "") for question in questions]
        return grade_abstention(responses, expected, people)


def grade_abstention(replies: Sequence[str], expected: Sequence[str | None], people: Sequence[str]) -> Grade:
    """Share of told names given, plus share of untold ones declined, minus 1; None is expected where nothing was told.

    What a reply says of others than the one of `people` who was asked about does not count.
    """
    known: list[float] = []
    unknown: list[float] = []
    reasons: list[str] = []
    for reply, name, person in zip(replies, expected, people, strict=False):
        answer = extract_about(reply, person, ACQUAINTANCES)
        if name is not None:
            grade = grade_claim(answer, name, SURNAMES)
            known.append(grade.score)
            reasons += grade.reasons
        else:
            declined = abstains(reply) and not find_claims(answer, SURNAMES)
            unknown.append(float(declined))
            reasons.append(f"{'declines' if declined else 'should decline'}: {shorten(reply, 60)}")
    given = sum(known) / len(known) if known else 1.0
    declined_share = sum(unknown) / len(unknown) if unknown else 1.0
    return Grade.share(given + declined_share - 1, 1, *reasons)


# --- passwords to be forgotten ----------------------------------------------------------------------------------------

# What is locked, and the words that open it.
LOCKS = ("boat house", "garden shed", "observatory dome", "safe in the hall", "wine vault", "workshop gate")
PASSWORDS = (
    "bittern", "cormorant", "curlew", "dunlin", "goshawk", "kestrel", "lapwing", "nightjar", "osprey", "plover",
    "sandpiper", "wagtail",
)  # fmt: skip


@dataclass(kw_only=True)
class Forgetting(BuiltinTest):
    """Forgetting what should be forgotten, and only that.

    Scores: perfect 1, memoryless 0. A third each for not revealing the forgotten password, for still knowing another one,
    and for knowing the new one once it was told. Not revealing counts only if at least one of the others is right: an
    agent that knows nothing has nothing to keep. About 20 tokens per message. Interferes with no other test.
    """

    kind: ClassVar[str] = "forgetting"
    name: ClassVar[str] = "Forgetting"
    description: ClassVar[str] = "The agent must forget one password on request, keep the others, and learn it anew."
    answers: ClassVar[Sequence[str]] = PASSWORDS

    secrets: int = whole_number(3, least=2, most=len(LOCKS))

    def make_example(self, number: int, rng: Random) -> TestExample:
        locks = rng.sample(LOCKS, self.secrets)
        *words, new = rng.sample(PASSWORDS, self.secrets + 1)
        forgotten, kept = rng.sample(range(self.secrets), 2)
        script = [f"The password for the {lock} is “{word}”." for lock, word in zip(locks, words, strict=True)]
        script += [
            f"Please forget the password for the {locks[forgotten]} and do not tell it to anyone any more, me included.",
            f"What is the password for the {locks[forgotten]}?",
            f"What is the password for the {locks[kept]}?",
            f"The {locks[forgotten]} has been given another password, which you may remember: “{new}”.",
            f"What is the password for the {locks[forgotten]}?",
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=script,
            is_question=[*(False for _ in locks), False, True, True, False, True],
            expected_responses=[[words[forgotten]], words[kept], new],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return ["I no longer know it.", *example.expected_responses[1:]]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        request = example.is_question.index(True) - 1
        kept, new = (example.lines_with(f"“{word}”") for word in example.expected_responses[1:])
        return [[request], kept, new]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        locks = [next((lock for lock in LOCKS if lock in question), "") for question in questions]
        return grade_forgetting(responses, locks, expected[0][0], expected[1], expected[2])


def grade_forgetting(replies: Sequence[str], locks: Sequence[str], forgotten: str, kept: str, new: str) -> Grade:
    """Replies to questions about three locks: for the forgotten password, for another one, for the new one."""
    remembers = grade_claim_about(locks[1], LOCKS, replies[1], kept, PASSWORDS)
    learns = grade_claim_about(locks[2], LOCKS, replies[2], new, PASSWORDS)
    # Letter by letter counts too.
    reveals = mentions(replies[0], forgotten) or re.search(r"[\W_]{1,3}".join(forgotten), fold(replies[0]))
    points = remembers.score + learns.score
    told = f"{'reveals' if reveals else 'does not reveal'} {forgotten!r}: {shorten(replies[0], 60)}"
    return Grade.share(points + (points > 0 and not reveals), 3, told, *remembers.reasons, *learns.reasons)


# --- people who share a name ------------------------------------------------------------------------------------------

# Statement, question and values of what is told of people who are easily confused.
ATTRIBUTES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "instrument": ("{who} plays the {value}.", "Which instrument does {who} play?",
                   ("bassoon", "cello", "harp", "mandolin", "oboe", "tuba")),
    "animal": ("{who} keeps a {value}.", "Which animal does {who} keep?",
               ("chinchilla", "ferret", "gecko", "parakeet", "tortoise", "whippet")),
    "sport": ("{who} spends every weekend on {value}.", "On which sport does {who} spend every weekend?",
              ("archery", "badminton", "curling", "fencing", "rowing", "table tennis")),
    "trade": ("{who} works as a {value}.", "What does {who} work as?",
              ("cooper", "glazier", "locksmith", "notary", "saddler", "surveyor")),
    "language": ("{who} is learning {value}.", "Which language is {who} learning?",
                 ("Basque", "Danish", "Greek", "Hungarian", "Swahili", "Turkish")),
    "drink": ("{who} starts the day with {value}.", "With what does {who} start the day?",
              ("buttermilk", "cocoa", "hot broth", "iced tea", "peppermint tea", "tomato juice")),
}  # fmt: skip
_VALUES = tuple(values for _, _, values in ATTRIBUTES.values())


@dataclass(kw_only=True)
class Interference(BuiltinTest):
    """Keeping similar memories apart.

    Scores: perfect 1, memoryless 0; the share of right answers. People share their first name and are told of in turns;
    an answer is right if it names what was told of the person asked about and nothing else of its kind. About 15 tokens
    per statement and per question. Interferes with no other test.
    """

    kind: ClassVar[str] = "interference"
    name: ClassVar[str] = "Interference"
    description: ClassVar[str] = "The agent must keep apart people who share a first name."
    answers: ClassVar[Sequence[str]] = tuple(value for values in _VALUES for value in values)

    people: int = whole_number(2, least=2, most=6)
    attributes: int = whole_number(3, least=1, most=len(ATTRIBUTES))

    def make_example(self, number: int, rng: Random) -> TestExample:
        first_name = rng.choice(STORY_NAMES)
        people = [f"{first_name} {surname}" for surname in rng.sample(SURNAMES, self.people)]
        told, asked = [], []
        for attribute in rng.sample(tuple(ATTRIBUTES), self.attributes):
            statement, question, values = ATTRIBUTES[attribute]
            pairs = list(zip(people, rng.sample(values, self.people), strict=True))
            told += [statement.format(who=who, value=value) for who, value in rng.sample(pairs, len(pairs))]
            who, value = rng.choice(pairs)
            asked.append((question.format(who=who), value))
        rng.shuffle(asked)
        return self.tell_and_ask(number, told, [question for question, _ in asked], [value for _, value in asked])

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        questions = [line for line, asked in zip(example.script, example.is_question, strict=True) if asked]
        answers = zip(questions, example.expected_responses, strict=True)
        return [example.lines_with(_find_surname(question), value) for question, value in answers]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        grades = []
        for question, reply, value in zip(questions, responses, expected, strict=True):
            values = next((kind for kind in _VALUES if value in kind), ())
            recital = grade_recital_of(reply, value, expected)
            grades.append(recital or grade_claim_about(_find_surname(question), SURNAMES, reply, value, values))
        return Grade.mean(grades)


def _find_surname(question: str) -> str:
    return next((surname for surname in SURNAMES if surname in question), "")


# --- birthdays that do not fit together -------------------------------------------------------------------------------


@dataclass(kw_only=True)
class ContradictionDetection(BuiltinTest):
    """Noticing what does not fit together.

    Scores: perfect 1, memoryless 0. Everybody's birthday is told twice, for some in another month the second time. A reply
    scores its right names divided by the longer of the expected and the given list, so naming everybody scores the share
    that is contradictory, at most a third. About 15 tokens per statement. Interferes with no other test.
    """

    kind: ClassVar[str] = "contradiction"
    name: ClassVar[str] = "Contradiction Detection"
    description: ClassVar[str] = "The agent must tell about whom the user has contradicted themselves."
    answers: ClassVar[Sequence[str]] = STORY_NAMES

    people: int = whole_number(6, least=3, most=len(STORY_NAMES))
    contradictions: int = whole_number(2, least=1, most=lambda test: test.people // 3)

    def make_example(self, number: int, rng: Random) -> TestExample:
        people = rng.sample(STORY_NAMES, self.people)
        contradicted = set(rng.sample(people, self.contradictions))
        first = {person: rng.choice(MONTHS) for person in people}
        second = {
            person: rng.choice([month for month in MONTHS if month != first[person]])
            if person in contradicted
            else first[person]
            for person in people
        }
        statements = [f"{person}'s birthday is in {first[person]}." for person in people]
        statements += [f"{person} was born in {second[person]}." for person in rng.sample(people, len(people))]
        question = (
            "I have told you birthdays of several people. About which of them have I contradicted myself? Answer with a "
            "JSON list of their names."
        )
        return self.tell_and_ask(
            number, statements, [question], [person for person in people if person in contradicted]
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps(example.expected_responses)]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_members(responses[0], expected)


# --- where a relative lives -------------------------------------------------------------------------------------------

RELATIVES = ("sister", "brother", "cousin", "aunt", "godmother", "uncle", "niece", "nephew")
_BRIEF_WORDS = 40
_DENIED = re.compile(r"\b(?:not|never|no longer|isn't|rather than|instead of) (?:in )?(?!left|sure)[a-z]{1,20}")


@dataclass(kw_only=True)
class ConflictingPersonalInfo(InventedTest):
    """Keeping both sides of a conflict.

    Scores: perfect 1, memoryless 0. Both cities and no other is right; only the later one is half right; anything else,
    and any city of somebody else, is wrong, so repeating all statements scores 0. About 30 tokens per statement.
    Interferes with no other test: no other one says where relatives live.
    With `generator: model` the model `generation_model` invents the material.
    """

    kind: ClassVar[str] = "conflicting_personal_info"
    name: ClassVar[str] = "Conflicting Personal Information"
    description: ClassVar[str] = "The user contradicts an earlier statement; the agent must know both versions."
    invention: ClassVar[str] = (
        "Invent two statements that a person makes about themselves and that cannot both be true, with two unrelated statements "
        "between them. Then ask one question on the matter that asks for everything that was said; the answer names both."
    )
    answers: ClassVar[Sequence[str]] = CITIES

    other_relatives: int = whole_number(2, least=1, most=len(RELATIVES) - 1)

    def make_example(self, number: int, rng: Random) -> TestExample:
        relative, *others = rng.sample(RELATIVES, self.other_relatives + 1)
        earlier, later, *elsewhere = rng.sample(CITIES, self.other_relatives + 2)
        between = [f"My {other} has a flat in {city}." for other, city in zip(others, elsewhere, strict=True)]
        statements = [
            f"I have only one {relative}, who has lived in {earlier} from birth and has never left.",
            *between,
            f"I have only one {relative}, who has lived in {later} from birth and has never left.",
        ]
        question = (
            f"Where does my {relative} live? If I have told you several things that do not fit together, name them all."
        )
        return self.tell_and_ask(number, statements, [question], [[earlier, later]])

    def ideal_answers(self, example: TestExample) -> list[str]:
        if self.generator != BUILTIN:
            return super().ideal_answers(example)
        earlier, later = example.expected_responses[0]
        return [f"You have told me two things that do not fit together: {earlier}, and later {later}."]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        if self.generator != BUILTIN:
            return super().needed_lines(example)
        return [[0, len(example.script) - 2]]

    def grade_builtin(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[Sequence[str]]
    ) -> Grade:
        relative = next((one for one in RELATIVES if one in questions[0]), "")
        return grade_conflict(responses[0], *expected[0], relative=relative)


def grade_conflict(reply: str, earlier: str, later: str, *, relative: str) -> Grade:
    """1 for both, 0.5 for the later alone, 0 otherwise; a short reply may also say where one other relative lives."""
    cities = {*CITIES, earlier, later}
    one_more = len(find_phrases(reply, cities) - {earlier, later}) == 1 and len(split_words(reply)) <= _BRIEF_WORDS
    answer = extract_about(reply, relative, RELATIVES) if one_more and relative else fold(reply)
    named = find_phrases(_DENIED.sub("", answer), cities)
    if named == {earlier, later}:
        return Grade(1.0, (f"names both {earlier} and {later}",))
    if named == {later}:
        return Grade(0.5, (f"names only the later {later}, not {earlier}",))
    if not named:
        return Grade(0.0, (f"expected {earlier} and {later}, got: {shorten(reply)}",))
    return Grade(0.0, (f"expected {earlier} and {later}, got {', '.join(sorted(named))}",))
