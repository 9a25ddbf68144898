"""What people cannot bear, mentioned once, and advice that must respect it without being reminded."""

from __future__ import annotations

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
from themis.memory.scoring.choices import grade_choice
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.naming import PERSON, make_namesake, make_person
from themis.memory.tests.word_lists import TOWNS


@dataclass(frozen=True)
class Domain:
    """Something to be chosen for somebody.

    Args:
        asked: What is to be chosen, as in `which cake`.
        options: What it is called.
        tastes: For what somebody may be unable to bear, how that is said of a person, and what is told of an option that
            has it.
    """

    asked: str
    options: tuple[str, ...]
    tastes: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]


# An option has two of three such things; so each of three options could be the right one, and only the taste decides.
DOMAINS = (
    Domain(
        "cake",
        (
            "lemon torte",
            "cherry roll",
            "plum square",
            "quince tart",
            "ginger loaf",
            "marble log",
            "peach crown",
            "apricot wreath",
            "poppy slice",
            "carrot ring",
        ),
        {
            "nuts": (
                (
                    "must not eat nuts of any kind",
                    "swells up at the trace of a nut",
                    "once had to be taken to hospital over a nut",
                ),
                ("walnuts", "hazelnuts", "almonds", "pecans"),
            ),
            "alcohol": (
                (
                    "has not touched alcohol for years and wants it to stay that way",
                    "gets a headache from the smallest drop of drink",
                    "refuses whatever has alcohol in it",
                ),
                ("rum", "kirsch", "brandy", "sherry"),
            ),
            "milk": (
                (
                    "cannot digest milk or anything made from it",
                    "has to keep away from dairy, doctor's orders",
                    "pays dearly for every spoonful of dairy",
                ),
                ("whipped cream", "custard", "buttermilk", "mascarpone"),
            ),
            "dried grapes": (
                (
                    "picks every raisin out of everything",
                    "cannot stand dried grapes in any form",
                    "thinks that dried grapes ruin whatever they are in",
                ),
                ("raisins", "sultanas", "currants"),
            ),
        },
    ),
    Domain(
        "holiday flat",
        (
            "canal flat",
            "terrace flat",
            "bookshop flat",
            "harbour flat",
            "orchard flat",
            "mill flat",
            "market flat",
            "bridge flat",
        ),
        {
            "cats": (
                (
                    "is allergic to cats",
                    "starts to wheeze as soon as a cat is near",
                    "cannot breathe where a cat lives",
                ),
                ("a tomcat", "two kittens", "a Siamese on the sofa"),
            ),
            "climbing": (
                (
                    "can hardly climb anything with that knee",
                    "walks with a stick and manages three steps at most",
                    "is not to put any strain on the new hip",
                ),
                ("four flights of stairs", "a ladder up to the bed", "sixty steps to the door"),
            ),
            "noise": (
                ("wakes at the slightest noise", "needs absolute quiet to sleep", "goes to pieces after a loud night"),
                ("a bar downstairs", "a tram stop under the window", "a drummer next door"),
            ),
            "smoke": (
                (
                    "coughs for days after any smoke",
                    "has bad lungs and must keep away from smoke",
                    "cannot be in a room where something burns",
                ),
                ("an open fireplace", "a wood stove", "a landlord who smokes cigars"),
            ),
        },
    ),
    Domain(
        "day trip",
        (
            "Otter tour",
            "Badger tour",
            "Lynx tour",
            "Marten tour",
            "Stoat tour",
            "Beaver tour",
            "Weasel tour",
            "Dormouse tour",
        ),
        {
            "heights": (
                (
                    "is afraid of heights",
                    "feels faint on a kitchen chair already",
                    "never goes near a railing with a drop behind it",
                ),
                ("a rope bridge", "a walk across the rooftops", "a climb up a rock face"),
            ),
            "water": (
                (
                    "cannot swim and is terrified of deep water",
                    "has not gone near a lake since that accident",
                    "would not get into a boat for any money",
                ),
                ("a kayak stretch", "a raft ride", "an hour of snorkelling"),
            ),
            "narrow places": (
                (
                    "panics in narrow places",
                    "cannot even use a lift, for fear of being shut in",
                    "gets into a sweat wherever the walls are close",
                ),
                ("a crawl through a cave", "a visit to the catacombs", "a walk through a tunnel"),
            ),
            "horses": (
                (
                    "has been scared of horses since a fall",
                    "sneezes for hours wherever a horse has been",
                    "will not go near anything with hooves",
                ),
                ("a pony ride", "a mule trek", "a carriage drive"),
            ),
        },
    ),
    Domain(
        "jacket",
        (
            "Como jacket",
            "Verona jacket",
            "Siena jacket",
            "Parma jacket",
            "Modena jacket",
            "Pavia jacket",
            "Lucca jacket",
            "Rimini jacket",
        ),
        {
            "wool": (
                (
                    "gets a rash from wool",
                    "itches terribly from whatever came off a sheep",
                    "cannot wear wool next to the skin",
                ),
                ("a merino lining", "tweed sleeves", "a lambswool collar"),
            ),
            "feathers": (
                (
                    "cannot be near feathers",
                    "sneezes at every pillow that is stuffed with down",
                    "objects to anything plucked from a goose",
                ),
                ("down padding", "a plume on the hood", "goose-down pockets"),
            ),
            "leather": (
                (
                    "wears nothing made from hides",
                    "gave away everything made of leather on principle",
                    "will not have the skin of a cow about the body",
                ),
                ("oxhide patches", "calfskin buttons", "a cowhide belt"),
            ),
            "synthetics": (
                (
                    "sweats and reddens in anything synthetic",
                    "cannot stand man-made fibres",
                    "cannot bear plastic on the skin",
                ),
                ("a polyester back", "a nylon hood", "acrylic cuffs"),
            ),
        },
    ),
    Domain(
        "play",
        (
            "Gardener's Wedding",
            "Quarrel over Cheese",
            "Miser of Lorne",
            "Widow's Ledger",
            "Three Cousins",
            "Late Supper",
            "Ferryman's Daughter",
            "Crown of Straw",
        ),
        {
            "ghosts": (
                (
                    "cannot bear stories with ghosts in them",
                    "has nightmares after anything that is haunted",
                    "leaves the room when the dead start to walk",
                ),
                ("a haunted attic", "a séance", "a headless rider"),
            ),
            "war": (
                (
                    "wants no more of war, having lived through one",
                    "turns pale when guns go off, even in a story",
                    "will not watch soldiers die",
                ),
                ("a siege", "a battlefield scene", "an air raid"),
            ),
            "singing": (
                (
                    "finds singing on a stage unbearable",
                    "walks out as soon as anybody starts to sing",
                    "says that whoever sings has nothing to say",
                ),
                ("three arias", "a chorus of sailors", "a long duet"),
            ),
            "swearing": (
                (
                    "takes offence at every coarse word",
                    "cannot listen to bad language",
                    "was brought up never to hear an oath",
                ),
                ("a cursing coachman", "a foul-mouthed bishop", "an act full of oaths"),
            ),
        },
    ),
    Domain(
        "course",
        (
            "pottery course",
            "calligraphy course",
            "weaving course",
            "engraving course",
            "upholstery course",
            "origami course",
            "basketry course",
            "mosaic course",
        ),
        {
            "mornings": (
                (
                    "is of no use to anyone before ten in the morning",
                    "never gets up before the church bells have struck nine",
                    "works nights and sleeps until noon",
                ),
                ("a start at cockcrow", "a session at sunrise", "lessons at daybreak"),
            ),
            "screens": (
                (
                    "gets migraines from screens",
                    "is not to look at anything that flickers",
                    "owns no computer and will never touch one",
                ),
                ("video calls", "homework on a tablet", "exercises at a computer"),
            ),
            "crowds": (
                (
                    "cannot stand being among many people",
                    "goes silent as soon as more than five people are in a room",
                    "panics in a full hall",
                ),
                ("two hundred pupils", "a public show at the end", "a packed studio"),
            ),
            "fumes": (
                (
                    "faints from the smell of paint",
                    "must keep away from solvents",
                    "gets sick from whatever has a sharp chemical smell",
                ),
                ("turpentine on every table", "strong glue", "pots of varnish"),
            ),
        },
    ),
    Domain(
        "route",
        (
            "northern route",
            "coastal route",
            "valley route",
            "border route",
            "lake route",
            "forest route",
            "desert route",
            "moor route",
        ),
        {
            "flying": (
                (
                    "refuses to fly, whatever the distance",
                    "has sworn never to get into an aircraft again",
                    "shakes with fear as soon as the wheels lift off",
                ),
                ("a short flight", "a hop in a small plane", "a helicopter leg"),
            ),
            "the sea": (
                ("is seasick on a calm day", "turns green on the water", "never sets foot on a ship"),
                ("a ferry", "a hydrofoil", "a night on a freighter"),
            ),
            "buses": (
                ("gets sick on every bus", "has not sat in a coach since that crash", "cannot bear the smell of a bus"),
                ("a coach ride", "a minibus", "a shuttle bus"),
            ),
            "riding at night": (
                (
                    "never travels after dark",
                    "sees next to nothing at night and stays where there is light",
                    "is never on the road once the sun is down",
                ),
                ("a midnight departure", "a sleeper train", "six hours of driving in the dark"),
            ),
        },
    ),
    Domain(
        "gift basket",
        (
            "spring basket",
            "country basket",
            "harvest basket",
            "picnic basket",
            "garden basket",
            "festive basket",
            "village basket",
            "alpine basket",
        ),
        {
            "scents": (
                (
                    "gets headaches from perfume",
                    "airs the house for a day when something smells of roses",
                    "cannot stand scented things",
                ),
                ("scented soap", "lavender bags", "perfumed candles"),
            ),
            "sugar": (
                (
                    "is diabetic and must not have sugar",
                    "has not eaten anything sweet since the diagnosis",
                    "has bad teeth and leaves sweets alone",
                ),
                ("toffees", "marzipan", "candied violets"),
            ),
            "spice": (
                (
                    "cannot eat anything hot",
                    "bursts into tears over the mildest pepper",
                    "has a stomach that rebels against spice",
                ),
                ("chilli oil", "hot mustard", "cayenne sauce"),
            ),
            "fish": (
                (
                    "will not eat what has lived in water",
                    "feels ill from the very smell of fish",
                    "must not have fish because of an allergy",
                ),
                ("smoked eel", "tinned sardines", "anchovy paste"),
            ),
        },
    ),
)
_AVERSIONS = {
    aversion: taste for domain in DOMAINS for taste, (aversions, _) in domain.tastes.items() for aversion in aversions
}
_FEATURES = {
    feature: taste for domain in DOMAINS for taste, (_, features) in domain.tastes.items() for feature in features
}
_ASIDES = ("by the way", "as you may not know", "poor soul", "I am told", "for better or worse")
_STATED = Phrasing(
    "You should know that {who} {aversion}.",
    "{who} {aversion}, {aside}.",
    "Whatever one plans with {who}: {who} {aversion}.",
    "My cousin was telling me about {who}, who {aversion}.",
    "I learnt something new about {who} [today|yesterday]: it seems that {who} {aversion}.",
    "{who} called, and once again I had to hear that {who} {aversion}.",
    "There is nothing to be done about it, {who} {aversion}.",
    "I must remember that {who} {aversion}, which I forgot [last time|once already].",
    "It was embarrassing: nobody had told the hosts that {who} {aversion}.",
    "I have known {who} for [a long time|years], and there is one thing to mind: {who} {aversion}.",
    who=PERSON,
    aversion=any_of(_AVERSIONS),
    aside=any_of(_ASIDES),
)
# Told in two messages: who it is, and what holds for that one.
_INTRODUCED = Phrasing(
    "My [old friend|colleague] in {town} is called {who}.",
    "The lodger whom I had in {town} was {who}.",
    "{who} is the one I know from {town}.",
    "I got to know {who} in {town} [years ago|on holiday].",
    who=PERSON,
    town=any_of(TOWNS),
)
_REFERRED = Phrasing(
    "Whoever it was that I know from {town}, I am reminded that this person {aversion}.",
    "That acquaintance of mine from {town} {aversion}.",
    "My {town} acquaintance wrote, [and again I read|reminding me] that this is somebody who {aversion}.",
    town=any_of(TOWNS),
    aversion=any_of(_AVERSIONS),
)
_CORRECTED = Phrasing(
    "I mixed something up about {who}, [of whom I told you wrongly|whom I took for somebody else]: it is {who} who "
    "{aversion}, and the rest "
    "was nonsense.",
    "What I said of {who} was wrong; the truth is that {who} {aversion}, and nothing else.",
    who=PERSON,
    aversion=any_of(_AVERSIONS),
)
_ADVICE = Phrasing(
    "Which {thing} shall I [get|choose] for {who}: {options}? Name one of them.",
    "I need a {thing} for {who} and can have {options}. Which one is it to be? Name one only.",
    "A {thing} for {who}: would you take {options}? One of them, please.",
    thing=any_of(domain.asked for domain in DOMAINS),
    who=PERSON,
    options=r"[^?:.]+",
)
_NAMED = any_of(option for domain in DOMAINS for option in domain.options)
_OPTION = lazy_pattern(rf"the ({_NAMED}) with ({any_of(_FEATURES)}) and ({any_of(_FEATURES)})", re.IGNORECASE)
_SPREAD_FROM = 4_000
_NAMESAKE_SHARE, _INTRODUCED_SHARE, _CORRECTED_SHARE = 0.4, 0.25, 0.25


@dataclass(kw_only=True)
class PreferenceFollowing(BuiltinTest):
    """Using what is known without being asked for it.

    Scores: perfect 1, memoryless 0, a guess 1/3; the share of requests that were advised well. Of three options each has two
    of three things that somebody might be unable to bear, so only what was said of the person decides; it is said in other
    words than the options have, sometimes over two messages or corrected, and a namesake has another taste. Naming several is
    wrong. About 35 tokens per preference and 55 per request. Interferes with no other test.
    """

    kind: ClassVar[str] = "preference"
    name: ClassVar[str] = "Preference Following"
    description: ClassVar[str] = "The agent must give advice that fits preferences mentioned long before."
    answers: ClassVar[Sequence[str]] = tuple(option for domain in DOMAINS for option in domain.options)

    preferences: int = whole_number(3, least=1, most=40)

    def make_example(self, number: int, rng: Random) -> TestExample:
        told = _Told()
        cases = []
        domains = rng.sample(DOMAINS, len(DOMAINS))
        for place in range(self.preferences):
            domain, who = domains[place % len(domains)], make_person(self.world, rng)
            taste, *others = rng.sample(tuple(domain.tastes), 3)
            needed = self._tell(told, domain, who, taste, others[0], rng)
            question, fitting = _ask_advice(domain, who, taste, others, rng)
            cases.append((question, fitting, needed))
        asked = rng.sample(cases, len(cases))
        statements = [self.chat(rng, sentence) for sentence in told.in_order]
        return self.tell_and_ask(
            number,
            statements,
            [question for question, _, _ in asked],
            [fitting for _, fitting, _ in asked],
            needed=[[told.place_of(sentence) for sentence in needed] for _, _, needed in asked],
        )

    def _tell(self, told: _Told, domain: Domain, who: str, taste: str, other: str, rng: Random) -> list[str]:
        """Adds what is said of a person; the sentences that count."""
        aversion, wrong = rng.choice(domain.tastes[taste][0]), rng.choice(domain.tastes[other][0])
        aside, chance = rng.choice(_ASIDES), rng.random()
        roomy = self.memory_span >= _SPREAD_FROM
        if roomy and chance < _INTRODUCED_SHARE:
            town = self.world.make(rng, "acquaintance's town", lambda rng: rng.choice(TOWNS))
            sentences = [
                _INTRODUCED.say(rng, who=who, town=town),
                _REFERRED.say(rng, town=town, aversion=aversion),
            ]
            needed = sentences
        elif roomy and chance < _INTRODUCED_SHARE + _CORRECTED_SHARE:
            sentences = [
                _STATED.say(rng, who=who, aversion=wrong, aside=aside),
                _CORRECTED.say(rng, who=who, aversion=aversion),
            ]
            needed = sentences[1:]
        else:
            sentences = needed = [_STATED.say(rng, who=who, aversion=aversion, aside=aside)]
        told.add(sentences)
        if rng.random() < _NAMESAKE_SHARE:
            namesake = make_namesake(self.world, rng, who)
            told.append(_STATED.say(rng, who=namesake, aversion=wrong, aside=aside))
        return needed

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        options = [_strip_article(option) for option in (*self.answers, *expected)]
        grades = [
            grade_choice(question, reply, _strip_article(fitting), options)
            for question, reply, fitting in zip(questions, responses, expected, strict=False)
        ]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _TasteReader()


class _Told:
    """Sentences in messages: what belongs together comes one after the other, with other people's in between."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._later: list[str] = []

    def add(self, sentences: Sequence[str]) -> None:
        self._first.append(sentences[0])
        self._later += sentences[1:]

    def append(self, sentence: str) -> None:
        """Goes into the message of the last one."""
        self._first[-1] += f" {sentence}"

    @property
    def in_order(self) -> list[str]:
        return [*self._first, *self._later]

    def place_of(self, sentence: str) -> int:
        return next(place for place, said in enumerate(self.in_order) if said.startswith(sentence))


def _ask_advice(domain: Domain, who: str, taste: str, others: Sequence[str], rng: Random) -> tuple[str, str]:
    """A request for advice and the option that fits: each option lacks one of the three things."""
    tastes = [taste, *others]
    named = rng.sample(domain.options, 3)
    described = []
    for option, lacking in zip(named, tastes, strict=True):
        features = [rng.choice(domain.tastes[has][1]) for has in tastes if has != lacking]
        described.append(f"the {option} with {' and '.join(rng.sample(features, 2))}")
    options = rng.sample(described, 3)
    listed = f"{options[0]}, {options[1]} or {options[2]}"
    return _ADVICE.say(rng, thing=domain.asked, who=who, options=listed), f"the {named[0]}"


def _strip_article(option: str) -> str:
    """The option without its article, which nobody must repeat."""
    return option.removeprefix("the ").removeprefix("The ").removeprefix("A ")


class _TasteReader(Reader):
    """Remembers what each person cannot bear, and who is meant by the one from a town."""

    def __init__(self) -> None:
        self._tastes: dict[str, str] = {}
        self._people: dict[str, str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _INTRODUCED.read_all(message):
            self._people[told["town"]] = told["who"]
        for phrasing in (_STATED, _CORRECTED):
            for told in phrasing.read_all(message):
                self._tastes[told["who"]] = _AVERSIONS[told["aversion"]]
        for told in _REFERRED.read_all(message):
            if told["town"] in self._people:
                self._tastes[self._people[told["town"]]] = _AVERSIONS[told["aversion"]]
        asked = _ADVICE.read(message)
        if asked is None or asked["who"] not in self._tastes:
            return None
        taste = self._tastes[asked["who"]]
        for option, *features in _OPTION.findall(asked["options"]):
            if taste not in [_FEATURES[feature] for feature in features]:
                return f"The {option}."
        return None
