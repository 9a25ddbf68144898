"""Standing instructions by which later cases are decided: a rule with its exceptions, a way of choosing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.choices import grade_choice
from themis.memory.scoring.words import find_phrases
from themis.memory.tests.invented import InventedTest
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.naming import CLUB, make_club, make_rival_club
from themis.memory.tests.word_lists import CITIES

# From this span on a rule is told over several messages.
_SPREAD_FROM = 4_000

# --- parcels, by a rule with exceptions -------------------------------------------------------------------------------

STORES = (
    "annexe", "arcade", "armoury", "barn", "belfry", "boathouse", "brewhouse", "buttery", "chapel", "cloister", "cowshed",
    "crypt", "dairy", "dovecote", "gatehouse", "granary", "greenhouse", "hayloft", "icehouse", "infirmary",
    "kennel", "larder",
    "laundry", "loft", "lodge", "orangery", "pantry", "pavilion", "rectory", "refectory", "sacristy", "scullery", "smithy",
    "stable", "tannery", "undercroft", "vestry", "washhouse", "windmill", "woodshed",
)  # fmt: skip
_PARCEL_SLOTS = {"club": CLUB, "store": any_of(STORES), "former": any_of(STORES), "city": any_of(CITIES)}
_USUAL_PLACE = Phrasing(
    "Whenever I announce a parcel for the {club}, begin your reply with the place where it goes, which is the "
    "{store} unless I "
    "say otherwise.",
    "Parcels for the {club} go to the {store}; whenever I announce one, [tell me where it goes|begin your reply "
    "with the place].",
    "You are to sort the post of the {club}: when I announce a parcel, name the place it goes to, normally the {store}.",
    "I [look after|see to] the post of the {club}, and you are to help: name the place for each parcel that I "
    "announce, which "
    "is the {store} if nothing speaks against it.",
    "Should a parcel [come|arrive] for the {club}, tell me at once where to put it; as a rule that is the {store}.",
    "The {club} have the {store} for their parcels, so when I announce one, that is what you [answer|tell me] "
    "unless another "
    "place is due.",
    **_PARCEL_SLOTS,
)
_EXCEPTION = Phrasing(
    "Parcels from {city} for the {club} go to the {store} instead.",
    "What comes from {city} for the {club} [belongs in|goes to] the {store}.",
    "For the {club} there is an exception: [anything|whatever comes] from {city} goes to the {store}.",
    "The {store} is for what the {club} [get|are sent] from {city}.",
    "If {city} sends something to the {club}, it goes to the {store}.",
    "The {club} want [their things|everything] from {city} in the {store}.",
    "Only in the {store} is there room for what the {club} are sent from {city}.",
    "[Also|Besides], parcels of the {club} that were posted in {city} go straight to the {store}.",
    "{city} is a special case for the {club}: its parcels go to the {store}.",
    "I promised the {club} to keep their {city} parcels in the {store}.",
    **_PARCEL_SLOTS,
)
_MOVED = Phrasing(
    "I was wrong about {city}: what the {club} get from there goes to the {store}, not to the {former}.",
    "Not the {former}, as I said, but the {store} is where the {city} parcels of the {club} go.",
    "The {former} is full, so [from now on|from today] the {city} parcels of the {club} go to the {store}.",
    "The {club} have changed their minds: {city} parcels no longer go to the {former} but to the {store}.",
    **_PARCEL_SLOTS,
)
_FRAGILE = Phrasing(
    "Whatever is marked fragile among the parcels of the {club} goes to the {store}, wherever it comes from.",
    "Fragile parcels of the {club} [always|all] go to the {store}, whoever sent them.",
    "One more thing about the {club}: if a parcel is fragile, it goes to the {store}, and its origin no longer matters.",
    "The {club} want nothing broken, so what is marked fragile goes to the {store}, from whatever town.",
    "Before anything else look whether a parcel for the {club} is fragile: those go to the {store}, wherever they "
    "come from.",
    "For the {club} the {store} is where fragile things go, no matter from where.",
    **_PARCEL_SLOTS,
)
# Of another club, for which nobody announces anything.
_NOT_OURS = Phrasing(
    "The {club} keep all their post in the {store}, but that is [their own affair|none of our business].",
    "I hear that the {club} put whatever they get into the {store}, which is nothing to do with us.",
    "Somebody else sorts the post of the {club}, into the {store}, I believe.",
    **_PARCEL_SLOTS,
)
_FRAGILE_NOTES = (
    ", marked fragile", ", with a fragile sticker on it", ", and the label says fragile",
    ", fragile according to the label",
)  # fmt: skip
_OTHER_NOTES = (
    "", "", "", ", and nothing on it says fragile", ", not marked fragile", ", rather dented", ", tied with string",
)  # fmt: skip
_ANNOUNCED = Phrasing(
    "A parcel from {city} has arrived for the {club}, {kg} kg{note}.",
    "The postman just brought something for the {club}: from {city}, {kg} kg{note}.",
    "There is a [box|parcel] for the {club} at the door, sent from {city}{note}.",
    "I have here another parcel for the {club}, posted in {city}{note}.",
    "{city} has sent the {club} a parcel of {kg} kg{note}.",
    "For the {club} there came a parcel from {city} [today|this morning|just now]{note}.",
    kg=r"\d+",
    note=any_of({*_FRAGILE_NOTES, *_OTHER_NOTES}),
    **_PARCEL_SLOTS,
)


@dataclass(kw_only=True)
class InstructionExceptions(BuiltinTest):
    """Following an instruction with exceptions over a long time.

    Scores: perfect 1, memoryless 0, a guess one in as many as there are stores; the share of parcels sent to the right
    one. The rule is of one club's parcels; it is told over several messages where the span allows it, an exception is often
    changed later, and a club of a like name keeps its post elsewhere. Fragile goes before origin, origin before the rest, and
    among the parcels every case occurs. About 45 tokens per part of the rule and 30 per parcel. Interferes with no other test.
    """

    kind: ClassVar[str] = "instruction_exceptions"
    name: ClassVar[str] = "Instruction with Exceptions"
    description: ClassVar[str] = "The agent must sort parcels by a rule with exceptions that was given once."
    answers: ClassVar[Sequence[str]] = STORES

    exceptions: int = whole_number(2, least=1, most=len(CITIES) - 1)
    requests: int = whole_number(5, least=lambda test: test.exceptions + 2)

    def make_example(self, number: int, rng: Random) -> TestExample:
        club = make_club(self.world, rng)
        usual, fragile, moved, elsewhere, *others = rng.sample(STORES, self.exceptions + 4)
        cities = rng.sample(CITIES, len(CITIES))
        special = dict(zip(cities, others, strict=False))
        parts = [_USUAL_PLACE.say(rng, club=club, store=usual)]
        told = {"usual": 0}
        for city, store in special.items():
            told[city] = len(parts)
            parts.append(_EXCEPTION.say(rng, club=club, city=city, store=store))
        told["fragile"] = len(parts)
        parts.append(_FRAGILE.say(rng, club=club, store=fragile))
        if rng.random() < 0.5:
            city = rng.choice(list(special))
            told[city] = len(parts)
            parts.append(_MOVED.say(rng, club=club, city=city, store=moved, former=special[city]))
            special[city] = moved
        if rng.random() < 0.5:
            place = rng.randrange(len(parts))
            rival = make_rival_club(self.world, rng, club)
            parts[place] += " " + _NOT_OURS.say(rng, club=rival, store=elsewhere)
        lines = self._spread_parts(len(parts))
        statements = [
            self.chat(rng, " ".join(part for part, line in zip(parts, lines, strict=True) if line == number))
            for number in range(lines[-1] + 1)
        ]
        cases = self._draw_cases(cities, special, rng)
        announced = [
            _ANNOUNCED.say(
                rng,
                club=club,
                city=city,
                kg=rng.randint(2, 30),
                note=rng.choice(_FRAGILE_NOTES if breaks else _OTHER_NOTES),
            )
            for city, breaks in cases
        ]
        stores = [fragile if breaks else special.get(city, usual) for city, breaks in cases]
        needed = [
            [lines[told["fragile" if breaks else city if city in special else "usual"]]] for city, breaks in cases
        ]
        return self.tell_and_ask(number, statements, announced, stores, needed=needed)

    def _spread_parts(self, count: int) -> list[int]:
        """In which message each part of the rule is told."""
        if self.memory_span >= _SPREAD_FROM:
            return list(range(count))
        # What changes the rule comes later than the rule.
        return [0] * (count // 2) + [1] * (count - count // 2)

    def _draw_cases(self, cities: Sequence[str], special: dict[str, str], rng: Random) -> list[tuple[str, bool]]:
        """Where parcels come from and whether they are fragile, each case of the rule at least once."""
        ordinary = cities[self.exceptions :]
        cases = [(rng.choice(ordinary), False), (rng.choice(list(special)), True), *((city, False) for city in special)]
        while len(cases) < self.requests:
            cases.append((rng.choice(cities), rng.random() < 0.3))
        rng.shuffle(cases)
        return cases

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = [
            grade_choice(question, _drop_rules(reply, self.answers), store, (*self.answers, *expected))
            for question, reply, store in zip(questions, responses, expected, strict=False)
        ]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _ParcelReader()


def _drop_rules(reply: str, stores: Sequence[str]) -> str:
    """The reply without rules about other parcels, unless it says nothing else."""
    said = _RULE.sub(" ", reply)
    return said if find_phrases(said, stores) else reply


_RULE = lazy_pattern(
    r"\b(?:only |while )?(?:[\w-]{1,20} ){0,2}(?:parcels|ones|items|things)(?: from [\w-]{1,20})?(?: \w{1,10})? "
    r"(?:go|belong|would go|in|into|to)\b[^.,;:–—\n]{0,60}",
    re.IGNORECASE,
)


class _ParcelReader(Reader):
    """Knows every club's rule: its usual place, its place for fragile things, its places by city."""

    def __init__(self) -> None:
        self._usual: dict[str, str] = {}
        self._fragile: dict[str, str] = {}
        self._by_city: dict[tuple[str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _USUAL_PLACE.read_all(message):
            self._usual[told["club"]] = told["store"]
        for told in _FRAGILE.read_all(message):
            self._fragile[told["club"]] = told["store"]
        for phrasing in (_EXCEPTION, _MOVED):
            for told in phrasing.read_all(message):
                self._by_city[told["club"], told["city"]] = told["store"]
        parcel = _ANNOUNCED.read(message)
        if parcel is None:
            return None
        club = parcel["club"]
        if parcel["note"] in _FRAGILE_NOTES and club in self._fragile:
            place = self._fragile[club]
        else:
            place = self._by_city.get((club, parcel["city"]), self._usual.get(club, ""))
        return f"To the {place}." if place else None


# --- choices between inns, by an arbitrary rule -----------------------------------------------------------------------

INNS = (
    "Anvil", "Falcon", "Hammer", "Mermaid", "Nutmeg", "Painted Drum",
    *(
        f"{adjective} {noun}"
        for adjective in ("Blue", "Crooked", "Dancing", "Empty", "Gilded", "Iron", "Jolly", "Laughing", "Old",
        "Quiet", "Sleeping",
                          "Twisted")
        for noun in ("Barrel", "Boot", "Cannon", "Goat", "Kettle", "Lobster", "Miller", "Oar", "Saddle", "Thistle",
        "Trout", "Wheel")
    ),
)  # fmt: skip
# What is told of an inn, in numbers.
_COUNTED = (
    "balconies", "beds", "bells", "cats", "chimneys", "clocks", "fireplaces", "garden benches", "mirrors", "pear trees",
    "staircases", "steps up to the door", "stuffed owls", "weathercocks",
)  # fmt: skip
_EXTREMES = {f"the {word} {thing}": (thing, word == "most") for thing in _COUNTED for word in ("most", "fewest")}
_RULE_SLOTS = {"club": CLUB, "extreme": any_of(_EXTREMES), "former": any_of(_EXTREMES)}
_FIRST_RULE = Phrasing(
    "Whenever I have to choose an inn for the {club}, take the one with {extreme}[ for me|].",
    "When it comes to inns for the {club}, what counts first is {extreme}.",
    "The {club} ask one thing of an inn before all others: {extreme}.",
    "For the {club} choose inns [like this|by this rule]: the one with {extreme} wins.",
    "An inn for the {club} must above all be the one with {extreme}.",
    "Think like this for me whenever the {club} need an inn: the one with {extreme} is theirs.",
    "You will be asked about inns for the {club}; look for {extreme}, and for nothing else at first.",
    "I have my own way of choosing inns for the {club}, namely by {extreme}.",
    "It may sound odd, but the {club} are only happy in the inn with {extreme}.",
    "Do not think of prices when the {club} need an inn, think of {extreme}.",
    **_RULE_SLOTS,
)
_SECOND_RULE = Phrasing(
    "If that does not decide it for the {club}, take of those the one with {extreme}.",
    "Should two inns be equal in that, {extreme} decides for the {club}.",
    "Where my first rule for the {club} leaves a tie, the one with {extreme} wins.",
    "The {club} may well be left with two inns by that rule; then {extreme} settles it.",
    "And if there is a draw between inns for the {club}, I go by {extreme}.",
    "Second comes {extreme}, but for the {club} only among inns that are equal in the first point.",
    **_RULE_SLOTS,
)
_FIRST_CORRECTED = Phrasing(
    "I put it wrongly: what comes first in an inn for the {club} is not {former} but {extreme}.",
    "[Forget|Never mind] {former}: the first thing in an inn for the {club} is {extreme}, I had mixed it up.",
    "The {club} complained, so from now on their first rule for inns is {extreme} and no longer {former}.",
    **_RULE_SLOTS,
)
_SECOND_CORRECTED = Phrasing(
    "I put it wrongly: what breaks a tie between inns for the {club} is not {former} but {extreme}.",
    "[Forget|Never mind] {former}: a tie between inns for the {club} is broken by {extreme}, I had mixed it up.",
    "The {club} complained, so from now on a tie between inns is broken by {extreme} and no longer by {former}.",
    **_RULE_SLOTS,
)
_OTHER_RULE = Phrasing(
    "The {club}, on the other hand, [swear|go] by {extreme}, but they book their own inns.",
    "I know that the {club} always look for {extreme} in an inn, but I never book for them.",
    **_RULE_SLOTS,
)
_DILEMMA = Phrasing(
    "I must choose an inn for the {club}: {inns}. Which one do I take?",
    "The {club} need an inn again: {inns}. Which of them is it to be?",
    "Which inn shall I book for the {club}, if {inns}?",
    "Several inns have answered the {club}: {inns}. Name the one that I book.",
    club=CLUB,
    inns=r"[^.?!:]+",
)
_INN = lazy_pattern(rf"\bthe ({any_of(INNS)}) has ([^;]+)", re.IGNORECASE)
_COUNT = lazy_pattern(rf"(\d+) ({any_of(_COUNTED)})")
_DISTRACTION_SHARE, _CORRECTION_SHARE = 0.4, 0.4


@dataclass(kw_only=True)
class HowToThink(InventedTest):
    """Applying a rule that was given long ago.

    Scores: perfect 1, memoryless 0, a guess 1/3 with three options; the share of right choices. A choice is right if the
    reply claims one inn and the rule chooses it; the rule is one club's, arbitrary, and always decides, half of the time
    only by its second part. Both parts are told in messages of their own, one of them is often corrected, and a club of a like
    name goes by something else. About 35 tokens for each part and 80 per choice. Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    kind: ClassVar[str] = "how_to_think"
    name: ClassVar[str] = "How to Think"
    description: ClassVar[str] = "The agent is given a rule for choosing and must follow it in later choices."
    invention: ClassVar[str] = (
        "Invent an arbitrary rule by which somebody wants choices to be made, told in the first person. Then pose "
        "five choices "
        "between named options that the rule decides and common sense does not; the answer is the name of the option."
    )
    answers: ClassVar[Sequence[str]] = INNS

    dilemmas: int = whole_number(5, least=1)
    options: int = whole_number(3, least=3, most=9)

    def make_example(self, number: int, rng: Random) -> TestExample:
        club = make_club(self.world, rng)
        first, second, third = rng.sample(_COUNTED, 3)
        rule = Rule(_draw_extreme(first, rng), _draw_extreme(second, rng))
        wrong = _draw_extreme(third, rng)
        corrected = rng.randrange(2) if rng.random() < _CORRECTION_SHARE else None
        said = [wrong if corrected == 0 else rule.first, wrong if corrected == 1 else rule.second]
        statements = [
            _FIRST_RULE.say(rng, club=club, extreme=said[0]),
            _SECOND_RULE.say(rng, club=club, extreme=said[1]),
        ]
        lines = [0, 1]
        if corrected is not None:
            lines[corrected] = len(statements)
            correction = (_FIRST_CORRECTED, _SECOND_CORRECTED)[corrected]
            extreme = (rule.first, rule.second)[corrected]
            statements.append(correction.say(rng, club=club, extreme=extreme, former=wrong))
        if rng.random() < _DISTRACTION_SHARE:
            place = rng.randrange(len(statements))
            rival = make_rival_club(self.world, rng, club)
            statements[place] += " " + _OTHER_RULE.say(
                rng, club=rival, extreme=_draw_extreme(rng.choice(_COUNTED), rng)
            )
        dilemmas = [_pose_dilemma(club, rule, self.options, rng) for _ in range(self.dilemmas)]
        return self.tell_and_ask(
            number,
            [self.chat(rng, statement) for statement in statements],
            [dilemma.question for dilemma in dilemmas],
            [dilemma.answer for dilemma in dilemmas],
            needed=[lines if dilemma.tied else lines[:1] for dilemma in dilemmas],
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = [
            grade_choice(question, reply, inn, (*self.answers, *expected))
            for question, reply, inn in zip(questions, responses, expected, strict=False)
        ]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _InnReader()


@dataclass(frozen=True)
class Rule:
    """First by one extreme, such as `the most beds`; where that is equal, by another."""

    first: str
    second: str

    def choose(self, inns: dict[str, dict[str, int]]) -> str:
        ranked = [_EXTREMES[extreme] for extreme in (self.first, self.second) if extreme]
        return max(inns, key=lambda inn: [inns[inn].get(thing, 0) * (1 if most else -1) for thing, most in ranked])


@dataclass(frozen=True)
class Dilemma:
    """A choice between inns; `tied` if only the second part of the rule decides it."""

    question: str
    answer: str
    tied: bool


def _draw_extreme(thing: str, rng: Random) -> str:
    return f"the {rng.choice(('most', 'fewest'))} {thing}"


def _pose_dilemma(club: str, rule: Rule, options: int, rng: Random) -> Dilemma:
    (first, most), (second, _) = _EXTREMES[rule.first], _EXTREMES[rule.second]
    distractor = rng.choice([thing for thing in _COUNTED if thing not in (first, second)])
    inns = rng.sample(INNS, options)
    extreme = rng.randint(4, 7)
    tied = rng.sample(inns, 2 if rng.random() < 0.5 else 1)
    worse = (2, 3) if most else (8, 9)
    seconds = rng.sample(range(2, 12), options)
    facts = {
        inn: {
            first: extreme if inn in tied else rng.choice(worse),
            second: seconds[place],
            distractor: rng.randint(2, 9),
        }
        for place, inn in enumerate(inns)
    }
    described = "; ".join(f"the {inn} has {_describe_inn(facts[inn], rng)}" for inn in inns)
    return Dilemma(_DILEMMA.say(rng, club=club, inns=described), rule.choose(facts), len(tied) > 1)


def _describe_inn(facts: dict[str, int], rng: Random) -> str:
    names = rng.sample(tuple(facts), len(facts))
    parts = [f"{facts[name]} {name}" for name in names]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


@dataclass
class _InnReader(Reader):
    """Knows every club's first and second rule."""

    first: dict[str, str] = field(default_factory=dict)
    second: dict[str, str] = field(default_factory=dict)

    def answer(self, message: str, now: datetime) -> str | None:
        for phrasing, rules in (
            (_FIRST_RULE, self.first),
            (_SECOND_RULE, self.second),
            (_FIRST_CORRECTED, self.first),
            (_SECOND_CORRECTED, self.second),
        ):
            for told in phrasing.read_all(message):
                rules[told["club"]] = told["extreme"]
        asked = _DILEMMA.read(message)
        if asked is None or asked["club"] not in self.first:
            return None
        inns = {
            inn[1]: {thing: int(count) for count, thing in _COUNT.findall(inn[2])}
            for inn in _INN.finditer(asked["inns"])
        }
        rule = Rule(self.first[asked["club"]], self.second.get(asked["club"], ""))
        return f"The {rule.choose(inns)}." if inns else None
