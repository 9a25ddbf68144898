"""Things told in a few messages that must be given back in detail: an island that does not exist, a machine that does not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import ClassVar, NamedTuple

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import extract_about, find_conclusion, weigh_answers
from themis.memory.scoring.words import find_phrases, mentions, shorten
from themis.memory.tests.invented import InventedTest
from themis.memory.tests.kind import settle, whole_number
from themis.memory.tests.telling import tell

# So many facts or steps are told in one message.
_AT_ONCE = 3


def _combine(beginnings: str, endings: str) -> tuple[str, ...]:
    return tuple(first + last for first in beginnings.split() for last in endings.split())


# --- an island that does not exist ------------------------------------------------------------------------------------


class _Fact(NamedTuple):
    """What an island may have: sentences that tell it, sentences that ask for it, and all that it can be."""

    told: tuple[str, ...]
    asked: tuple[str, ...]
    answers: tuple[str, ...]


# No answer of one kind occurs in another.
_ISLAND_FACTS: dict[str, _Fact] = {
    "capital": _Fact(
        ("The capital of {island} is {answer}.", "Whoever governs {island} does so from {answer}, its capital.",
         "All roads on {island} end in the capital, {answer}.", "They have made {answer} the capital of {island}.",
         "The parliament, the ministries and the mint of {island} are all in {answer}."),
        ("What is the capital of {island}?", "Which town is the capital of {island}?",
         "From which town is {island} governed?"),
        _combine("Ashk Brack Brov Cind Dorm Drav Elst Ferr Gask Grond Harrow Hulm Ilver Irv Jask Korv Krest Lorn Maxt Mender "
                 "Nald Nyl Ostr Parv Plov Quen Rusk Sild Skel Tambr Torv Trast Ulm Vash Wynd Zast",
                 "aven ane ory uston ermere ovia"),
    ),
    "queen": _Fact(
        ("{island} is ruled by Queen {answer}.", "The crown of {island} is worn by a queen called {answer}.",
         "On every stamp of {island} you see the face of its queen, {answer}.",
         "Queen {answer} has reigned over {island} since before I was born.",
         "When its queen, {answer}, was crowned, the whole of {island} had three days off."),
        ("Which queen rules {island}?", "What is the name of the queen of {island}?",
         "Who wears the crown on {island}?"),
        _combine("Erm Fenn Galath Hild Jor Lys Marav Nym Ond Pell Sev Thess Ulr Yso", "anda essa ilde orra uvine"),
    ),
    "currency": _Fact(
        ("People on {island} pay in {answer}.", "For a loaf of bread on {island} one counts out four {answer}.",
         "The money of {island} is called {answer}.", "My pockets were full of {answer} when I came back from {island}.",
         "A night at an inn on {island} cost me nine {answer}."),
        ("In which currency do people pay on {island}?", "What is the money of {island} called?",
         "What would I have to pay with on {island}?"),
        _combine("bresk drubb gimm korr lumm moid nasp ostr pell quill tann vesh zerr", "ins ots als erds"),
    ),
    "river": _Fact(
        ("The longest river of {island} is the {answer}.", "No river on {island} is longer than the {answer}.",
         "One can follow the {answer}, the longest river there is on {island}, for nine days.",
         "Of all the rivers of {island} the {answer} has the longest way to the sea.",
         "On {island} a boat needs nine days down the {answer}, and for every other river fewer."),
        ("What is the longest river of {island} called?", "Which river is the longest on {island}?",
         "No river on {island} is as long as which one?"),
        _combine("Addr Birr Esk Grind Hurm Liskar Oss Pravv Tarr Umb Vaunt Wenn", "ow el ick usk"),
    ),
    "emblem": _Fact(
        ("The emblem of {island} shows the {answer}.", "You find the {answer} in the coat of arms of {island}.",
         "Wherever {island} puts its emblem, you see the {answer}.", "The flag of {island} has the {answer} on it, its emblem.",
         "Every official letter from {island} is sealed with the {answer}."),
        ("Which animal does the emblem of {island} show?", "What animal is in the emblem of {island}?",
         "Which animal stands for {island} on seals and flags?"),
        ("badger", "beaver", "bison", "camel", "cockerel", "dormouse", "egret", "gecko", "hedgehog", "heron", "lynx", "mole",
         "moose", "newt", "otter", "panda", "porpoise", "puffin", "raccoon", "stag beetle", "stoat", "toad", "walrus"),
    ),
    "meal": _Fact(
        ("Every meal on {island} contains {answer}.", "Nobody on {island} sits down to a meal without {answer}.",
         "The cooks of {island} put {answer} into every single meal.",
         "I ate eleven times on {island}, and each meal had {answer} in it.",
         "Without {answer} a cook on {island} would not call it food."),
        ("Which food does every meal on {island} contain?", "What do the people of {island} put into every meal?",
         "What is never missing from a dish on {island}?"),
        ("barley", "beetroot", "capers", "chestnuts", "coconut", "dried figs", "fennel", "garlic", "goat cheese", "horseradish",
         "lentils", "mustard", "nettles", "olives", "parsnips", "pickled plums", "pumpkin", "quinces", "saffron", "seaweed",
         "smoked eel", "sorrel", "tofu", "turnips"),
    ),
    "feast": _Fact(
        ("The great feast of {island} is held in honour of {answer}.", "It is for {answer} that {island} holds its great feast.",
         "Once a year {island} celebrates {answer} with its great feast.",
         "Everyone on {island} dances for {answer} when the great feast comes round.",
         "The great feast, for which all of {island} dances, belongs to {answer}."),
        ("In whose honour is the great feast of {island} held?", "Whom does {island} celebrate with its great feast?",
         "Whom do they honour with the great feast on {island}?"),
        ("the beekeepers", "the bell founders", "the charcoal burners", "the chimney sweeps", "the clockmakers", "the coopers",
         "the dyers", "the glass blowers", "the grave diggers", "the lamplighters", "the midwives", "the net menders",
         "the pilots", "the potters", "the quarrymen", "the rat catchers", "the rope makers", "the shepherds",
         "the stonemasons", "the well diggers"),
    ),
    "dress": _Fact(
        ("On Sundays everybody on {island} wears {answer}.",
         "You can tell a Sunday on {island} by the {answer} that everybody wears.",
         "Nobody on {island} leaves the house on a Sunday without {answer}.",
         "It was Sunday when I landed on {island}, and everybody had {answer} on.",
         "Go out on a Sunday on {island} and you will see nothing but {answer}."),
        ("What does everybody on {island} wear on Sundays?", "On Sundays, what do all the people of {island} have on?",
         "How would I have to dress on {island} on a Sunday?"),
        ("bow ties", "brass buckles", "checked trousers", "feather boas", "fur caps", "green gloves", "knitted vests",
         "lace collars", "leather aprons", "long veils", "oilskins", "paper crowns", "purple stockings", "red sashes",
         "silk ribbons", "spectacles", "straw hats", "striped scarves", "top hats", "white capes", "wooden shoes"),
    ),
    "roofs": _Fact(
        ("The roofs of {island} are made of {answer}.", "On {island} they cover their roofs with {answer}.",
         "From above {island} is all {answer}, since that is what its roofs are made of.",
         "A house on {island} gets its roof of {answer} last.",
         "When it hails on {island}, it drums on {answer} over everybody's head."),
        ("What are the roofs of {island} made of?", "With what do they cover their roofs on {island}?",
         "What are the houses of {island} covered with?"),
        ("bamboo", "birch bark", "canvas", "copper sheets", "cork", "glazed tiles", "heather", "oyster shells", "palm leaves",
         "pumice", "sailcloth", "slate", "tarred felt", "thatch", "turf", "whale bone"),
    ),
    "lesson": _Fact(
        ("Children on {island} learn {answer} before they learn to read.",
         "Reading comes second for the children of {island}, {answer} comes first.",
         "The first thing that a child is taught on {island} is {answer}, long before the letters.",
         "No child on {island} may learn to read before it has learnt {answer}.",
         "At five a child on {island} is good at {answer} and cannot yet spell its own name."),
        ("What do children on {island} learn before they learn to read?",
         "What is the first thing that a child is taught on {island}?",
         "Which skill comes before the alphabet on {island}?"),
        ("basket weaving", "bread baking", "bird calling", "candle making", "darning", "drumming", "falconry", "fence mending",
         "goat milking", "juggling", "kite building", "knot tying", "map drawing", "rowing", "sheep shearing", "skiing",
         "star gazing", "stilt walking", "swimming", "whittling"),
    ),
    "volcano": _Fact(
        ("The volcano of {island} last erupted in the year of the {answer}.",
         "Since the year of the {answer} the volcano of {island} has not erupted again.",
         "They remember the year of the {answer} on {island} because it was the last time that the volcano erupted.",
         "In the year of the {answer} the volcano of {island} threw up its ashes for the last time.",
         "The last ashes from the volcano of {island} fell in the year of the {answer}."),
        ("In the year of what did the volcano of {island} last erupt?",
         "They name years on {island}: in the year of what was the last eruption of its volcano?",
         "The year in which the mountain of {island} last spat fire is called the year of what?"),
        ("comet", "double harvest", "drought", "eclipse", "great marriage", "green snow", "locusts", "long frost", "lost fleet",
         "missing bell", "plague", "red tide", "shipwreck", "three popes", "two kings", "white whale"),
    ),
    "welcome": _Fact(
        ("Visitors to {island} are greeted with {answer}.", "Whoever lands on {island} is greeted with {answer}.",
         "I had hardly set foot on {island} when they greeted me with {answer}.",
         "It is {answer} with which {island} greets its visitors.",
         "At the pier of {island} it is {answer} first and passports later."),
        ("With what are visitors to {island} greeted?", "How does {island} greet its visitors?",
         "What does one get as a welcome on {island}?"),
        ("a cannon shot", "a clap of hands", "a drum roll", "a feather", "a hot towel", "a kiss on the ear", "a pear",
         "a pinch of salt", "a poem", "a riddle", "a song", "a spoonful of honey", "a warm pebble", "three bows", "two coins",
         "wet hands"),
    ),
}  # fmt: skip
ISLAND_KINDS = tuple(fact.answers for fact in _ISLAND_FACTS.values())
_ISLANDS = (
    "Ambr Brann Calv Cress Dunm Ebb Estr Fenn Fjall Ghel Gwyll Hesp Holm Iska Jorund Kell Kvarn Lamm Lund Morv Nerr Ninn Orr "
    "Pask Prym Quill Rhod Ryss Skarr Sorl Thurl Tyrr Ussm Varn Vell Wisk Wrenn Yarr Zell Zimm",
    "aday away emar ery isel omay onda uway",
)
_ISLAND_NAME = "".join(f"(?:{any_of(syllables.split())})" for syllables in _ISLANDS)
# An island may be meant by its capital, once that was told.
_WITH_CAPITAL = "the island with the capital "
_ISLAND = rf"{_ISLAND_NAME}|{_WITH_CAPITAL}(?:{any_of(_ISLAND_FACTS['capital'].answers)})"
_TELL_ISLAND = {
    key: Phrasing(*fact.told, island=_ISLAND, answer=any_of(fact.answers)) for key, fact in _ISLAND_FACTS.items()
}
_ASK_ISLAND = {key: Phrasing(*fact.asked, island=_ISLAND_NAME) for key, fact in _ISLAND_FACTS.items()}
_WRONG_BEFORE = Phrasing(
    "I [told|gave] you something wrong [the other day|before], it is this:",
    "[No|Wait], I mixed something up in what I told you, so take it like this:",
    "I have looked it up again, and here I was mistaken:",
)
_LEAD_INS = (
    "Back to the island I told you about.",
    "A question about that island.",
    "Do you remember the island?",
    "Let us return to the island for a moment.",
    "I was thinking of my travels again.",
)


@dataclass(kw_only=True)
class DelayedRecall(InventedTest):
    """Recall of many facts given once.

    Scores: perfect 1, memoryless 0; the share of right answers. An answer is right if it names what was told and nothing
    else of its kind; reciting all facts each time scores 0. The island and its facts are made up, so no model knows them
    beforehand. Another island with a similar name is told of too, one fact is corrected, and one is told of the island
    by its capital alone. About 20 tokens per fact, once told and once asked. Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    kind: ClassVar[str] = "delayed_recall"
    name: ClassVar[str] = "Delayed Recall"
    description: ClassVar[str] = "The agent is told facts about an invented island and asked for them later."
    invention: ClassVar[str] = (
        "Invent a fictional place and ten facts about it that nobody could guess, one sentence each. Then ask one question per "
        "fact."
    )
    answers: ClassVar[Sequence[str]] = tuple(answer for kind in ISLAND_KINDS for answer in kind)

    facts: int = whole_number(10, least=2, most=len(ISLAND_KINDS))

    def make_example(self, number: int, rng: Random) -> TestExample:
        island = self.world.make(rng, "island", lambda rng: rng.choice(_combine(*_ISLANDS)))
        # The other one begins alike, as long as there are such names.
        alike = [name for name in _combine(*_ISLANDS) if name[:4] == island[:4]]
        names = (*alike * 200, *_combine(*_ISLANDS))
        twin = self.world.make(rng, "island", lambda rng: rng.choice(names))
        keys = rng.sample(tuple(_ISLAND_FACTS), self.facts)
        # What is true, and what is told of the other island, or was told before it was corrected.
        values = {key: rng.sample(_ISLAND_FACTS[key].answers, 2) for key in keys if key != "capital"}
        if "capital" in keys:
            # An island may be meant by its capital, so no other one has it.
            values["capital"] = self.world.sample(rng, "capital", _ISLAND_FACTS["capital"].answers, 2)
        told, needed = _tell_island(rng, island, keys, values)
        for key in rng.sample(keys[1:], min(3, len(keys) - 1)):
            told[rng.randrange(len(told))].append(_TELL_ISLAND[key].say(rng, island=twin, answer=values[key][1]))
        asked = rng.sample(keys, len(keys))
        questions = [f"{rng.choice(_LEAD_INS)} {_ASK_ISLAND[key].say(rng, island=island)}" for key in asked]
        statements = [tell(rng, " ".join(facts), self.memory_span) for facts in told]
        return self.tell_and_ask(
            number,
            statements,
            questions,
            [values[key][0] for key in asked],
            needed=[sorted(needed[key]) for key in asked],
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        replies = [
            _extract_about_island(reply, question) for reply, question in zip(responses, questions, strict=False)
        ]
        kinds = [[_remove_article(answer) for answer in kind] for kind in ISLAND_KINDS]
        grades = weigh_answers(replies, [_remove_article(answer) for answer in expected], kinds, questions)
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _IslandReader()


def _extract_about_island(reply: str, question: str) -> str:
    """The reply without what it says of another island than the one in question."""
    asked = re.search(_ISLAND_NAME, question)
    others = set(re.findall(rf"\b{_ISLAND_NAME}\b", reply)) - {asked[0]} if asked else set()
    return extract_about(reply, asked[0], others) if asked and others else reply


def _remove_article(answer: str) -> str:
    return re.sub(r"\A(?:an?|the) ", "", answer)


def _tell_island(
    rng: Random, island: str, keys: Sequence[str], values: Mapping[str, Sequence[str]]
) -> tuple[list[list[str]], dict[str, set[int]]]:
    """What is told in each message, and for each fact the messages that one needs to know it."""
    told: list[list[str]] = []
    needed: dict[str, set[int]] = {}
    for place, key in enumerate(keys):
        if place % _AT_ONCE == 0:
            told.append([])
        by_capital = "capital" in needed and keys[0] != "capital" and rng.random() < 0.3
        name = f"{_WITH_CAPITAL}{values['capital'][0]}" if by_capital else island
        told[-1].append(_TELL_ISLAND[key].say(rng, island=name, answer=values[key][place == 0]))
        needed[key] = {len(told) - 1} | (needed["capital"] if by_capital else set())
    corrected = _TELL_ISLAND[keys[0]].say(rng, island=island, answer=values[keys[0]][0])
    told.append([_WRONG_BEFORE.say(rng), corrected])
    needed[keys[0]] = {len(told) - 1}
    return told, needed


class _IslandReader(Reader):
    """What was told last of every island."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for key, phrasing in _ASK_ISLAND.items():
            if asked := phrasing.read(message):
                return self._facts.get((asked["island"], key), "I do not know.")
        # Capitals first: islands are meant by them.
        for key in sorted(_TELL_ISLAND, key=lambda key: key != "capital"):
            for told in _TELL_ISLAND[key].read_all(message):
                self._facts[self._identify(told["island"]), key] = told["answer"]
        return None

    def _identify(self, island: str) -> str:
        capital = island.removeprefix(_WITH_CAPITAL).removeprefix(_WITH_CAPITAL.capitalize())
        meant = (name for (name, key), value in self._facts.items() if key == "capital" and value == capital)
        return island if capital == island else next(meant, "")


# --- a machine that does not exist ------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """A step with a detail: sentences that tell it, sentences that ask for the detail, and all that it can be."""

    told: tuple[str, ...]
    asked: tuple[str, ...]
    details: tuple[str, ...]


_STEPS: dict[str, _Step] = {
    "flap": _Step(
        ("Unlock the {detail} flap.", "Of all flaps, open the {detail} flap.", "The {detail} flap must be unlocked."),
        ("Which flap do I unlock?", "Which of its flaps has to be unlocked?"),
        ("dented", "hidden", "hinged", "left-hand", "lower", "narrow", "rear", "right-hand", "round", "upper"),
    ),
    "liquid": _Step(
        ("Pour in {detail}.", "Fill the tank with {detail}.", "What goes into the tank is {detail}, up to the brim."),
        ("What do I pour in?", "With what do I fill the tank?"),
        ("buttermilk", "cider", "cold tea", "glycerine", "lamp oil", "lemon juice", "rainwater", "sea water", "treacle",
         "turpentine", "vinegar", "whey"),
    ),
    "crank": _Step(
        ("Turn the crank {detail} times.", "Give the crank {detail} turns.", "The crank goes round {detail} times."),
        ("How many times do I turn the crank?", "The crank: how many turns does it need?"),
        tuple(str(number) for number in range(3, 28)),
    ),
    "pause": _Step(
        ("Wait {detail} minutes.", "Leave it alone for {detail} minutes.", "Let {detail} minutes go by."),
        ("How many minutes do I wait?", "It wants to be left alone: for how many minutes?"),
        tuple(str(number) for number in range(2, 30)),
    ),
    "dial": _Step(
        ("Tap the dial with a {detail}.", "The dial wants a tap with a {detail}.", "Take a {detail} and tap the dial with it."),
        ("With what do I tap the dial?", "What do I use to tap the dial?"),
        ("carrot", "chopstick", "conker", "knitting needle", "pebble", "pencil", "shoehorn", "spoon", "thimble", "toothbrush",
         "tuning fork", "walnut"),
    ),
    "weight": _Step(
        ("Hang the {detail} weight on the chain.", "The {detail} weight goes on the chain.",
         "Choose the {detail} weight and let the chain have it."),
        ("Which weight do I hang on the chain?", "Which of the weights goes on the chain?"),
        ("brass", "cast-iron", "ceramic", "chalk", "granite", "leaden", "marble", "pewter", "sandstone", "wooden"),
    ),
    "word": _Step(
        ("Say the word “{detail}” into the funnel.", "Speak “{detail}”, loud and clear, into the funnel.",
         "The funnel expects you to say “{detail}” into it."),
        ("Which word do I say into the funnel?", "What must be said into the funnel?"),
        ("albatross", "bravo", "cinnamon", "encore", "fortnight", "gazpacho", "hallelujah", "marmalade", "nevertheless",
         "perhaps", "rhubarb", "thursday"),
    ),
    "lens": _Step(
        ("Wipe the lens with {detail}.", "Clean the lens, and use {detail} for it.", "The lens must be polished with {detail}."),
        ("With what do I wipe the lens?", "What do I use to clean the lens?"),
        ("blotting paper", "chamois", "cotton wool", "felt", "flannel", "linen", "moss", "muslin", "newspaper", "silk"),
    ),
    "lever": _Step(
        ("Move the lever to the {detail} mark.", "Push the lever until it meets the {detail} mark.",
         "The lever belongs at the {detail} mark."),
        ("To which mark do I move the lever?", "At which mark does the lever belong?"),
        ("acorn", "anchor", "anvil", "crescent", "dolphin", "feather", "harp", "moon", "owl", "pineapple", "snail", "star"),
    ),
    "buttons": _Step(
        ("Feed it {detail} buttons.", "Drop {detail} buttons into the slot.", "It is given {detail} buttons to swallow."),
        ("How many buttons do I feed it?", "How many buttons go into the slot?"),
        tuple(str(number) for number in range(3, 25)),
    ),
    "close": _Step(
        ("Close your {detail}.", "Your {detail} is to be closed now.", "From here on your {detail} must be closed."),
        ("What of mine do I close?", "What of mine has to be closed?"),
        ("briefcase", "coat", "collar", "eyes", "fan", "ledger", "mouth", "notebook", "purse", "umbrella"),
    ),
    "ring": _Step(
        ("Ring for the {detail}.", "Pull the cord, which calls the {detail}.", "The {detail} has to be rung for."),
        ("For whom do I ring?", "Who is called when I pull the cord?"),
        ("bookkeeper", "caretaker", "chauffeur", "chaplain", "gardener", "janitor", "night nurse", "nightwatchman", "pianist",
         "plumber", "stoker", "upholsterer"),
    ),
}  # fmt: skip
MACHINE_KINDS = tuple(step.details for step in _STEPS.values())
_MACHINES = (
    "cloud dream dust echo fog frost ghost hail honey ink lightning memory moss pollen rumour shadow silence sleep smoke steam "
    "thunder tide twilight weather yawn",
    "bellows clock engine kiln lamp loom mangle organ pendulum piano pipe press pump sieve still telegraph",
)
_MACHINE = rf"(?:{any_of(_MACHINES[0].split())}) (?:{any_of(_MACHINES[1].split())})"
# Not in figures: a number in the question could be taken for the answer.
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
)  # fmt: skip
_SLOTS = {"machine": _MACHINE, "place": any_of(_ORDINALS)}
_TELL_STEP = {key: Phrasing(*step.told, detail=any_of(step.details)) for key, step in _STEPS.items()}
_ASK_STEP = {key: Phrasing(*step.asked) for key, step in _STEPS.items()}
_STARTING = Phrasing(
    "This is how one starts the {machine}, from the {place} step on:",
    "To get the {machine} going, this is what comes as its {place} step and after that:",
    "About starting the {machine} you must know, beginning with the {place} step:",
    "My uncle's {machine} is started like this, from its {place} step:",
    **_SLOTS,
)
_REVISED = Phrasing(
    "The {machine} has been rebuilt, so its {place} step is another one now:",
    "What I said about the {place} step of starting the {machine} was wrong, it goes like this:",
    "Forget the {place} step of starting the {machine} as I gave it to you, the manual says:",
    **_SLOTS,
)
_AT_WORK = Phrasing(
    "I am [starting|about to start] the {machine}.",
    "I am starting the {machine} and have come to the {place} step.",
    "Help me start the {machine}.",
    **_SLOTS,
)
_ASK_PLACE = Phrasing(
    "What must I do as the {place} step of starting the {machine}? Name only this step.",
    "I am starting the {machine}: which is the {place} step, and only that?",
    **_SLOTS,
)


@dataclass(kw_only=True)
class InstructionRecall(InventedTest):
    """Recall of a procedure.

    Scores: perfect 1, memoryless 0; the share of right answers. An answer is right if it gives the detail of the step and
    no other one; reciting the instructions each time scores 0. Machine and steps are made up; some are asked for by their
    place alone, one is changed later, and another machine is told of too. About 20 tokens per step and 25 per question.
    Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    kind: ClassVar[str] = "instruction_recall"
    name: ClassVar[str] = "Instruction Recall"
    description: ClassVar[str] = "The agent is told how to start an invented machine and asked for the steps later."
    invention: ClassVar[str] = (
        "Invent a fictional machine or craft and the ten steps of using it, one sentence each, with odd details. Then ask five "
        "questions about details of single steps."
    )
    answers: ClassVar[Sequence[str]] = tuple(detail for kind in MACHINE_KINDS for detail in kind)

    steps: int = whole_number(10, least=2, most=len(_STEPS))
    questions: int = whole_number(5, least=1, most=lambda test: test.steps)

    def make_example(self, number: int, rng: Random) -> TestExample:
        machine, twin = (self.world.make(rng, "machine", _name_machine) for _ in range(2))
        keys = rng.sample(tuple(_STEPS), self.steps)
        details = {key: rng.sample(_STEPS[key].details, 3) for key in keys}
        told = [
            _tell_steps(rng, machine, first, [(key, details[key][0]) for key in keys[first : first + _AT_ONCE]])
            for first in range(0, len(keys), _AT_ONCE)
        ]
        lines = {key: place // _AT_ONCE for place, key in enumerate(keys)}
        other = [(key, details[key][1]) for key in rng.sample(keys, min(2, len(keys)))]
        at = rng.randint(1, len(told))
        told.insert(at, _tell_steps(rng, twin, 0, other))
        lines = {key: line + (line >= at) for key, line in lines.items()}
        changed = rng.choice(keys)
        step = _TELL_STEP[changed].say(rng, detail=details[changed][2])
        told.append(f"{_REVISED.say(rng, machine=machine, place=_ORDINALS[keys.index(changed)])} {step}")
        answers = {**{key: details[key][0] for key in keys}, changed: details[changed][2]}
        lines[changed] = len(told) - 1
        asked = rng.sample(keys, self.questions)
        return self.tell_and_ask(
            number,
            [tell(rng, said, self.memory_span) for said in told],
            [_ask_for_detail(rng, machine, keys.index(key), key) for key in asked],
            [answers[key] for key in asked],
            needed=[[lines[key]] for key in asked],
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = [
            _weigh_step(grade, reply, answer, question)
            for grade, reply, answer, question in zip(
                weigh_answers(responses, expected, MACHINE_KINDS, questions),
                responses,
                expected,
                questions,
                strict=False,
            )
        ]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _MachineReader()


def _weigh_step(grade: Grade, reply: str, answer: str, question: str) -> Grade:
    """The grade, unless only this step was asked for and a right reply gives others as well."""
    if grade.score != 1 or " only " not in question:
        return grade
    head, _, last = reply.rpartition("\n")
    # A line of its own below the answer, which does not come back to it, is about something else.
    reply = head if mentions(head, answer) and not mentions(last, answer) and not _STEP_NUMBER.search(last) else reply
    reply = _drop_neighbours(reply, answer)
    others = [detail for kind in MACHINE_KINDS if answer not in kind for detail in kind if not detail.isdigit()]
    concluded = find_conclusion(reply, (*others, answer)) == {answer}
    if not concluded and (more := find_phrases(reply, (*others, answer)) - {answer} - find_phrases(question, others)):
        return Grade(0.0, (f"asked for one step, gives {', '.join(sorted(more))} as well",))
    if len(set(re.findall(r"\d+", _STEP_NUMBER.sub(" ", reply))) - {answer}) > 1:
        return Grade.failure(f"it is not clear whether this gives only {answer!r}: {shorten(reply)}")
    return grade


def _drop_neighbours(reply: str, answer: str) -> str:
    """The reply without what it says, beside the answer, of the steps before and after it."""
    parts = _STEP_PARTS.split(reply)
    kept = [part for part in parts if mentions(part, answer) or not _NEIGHBOUR.search(part)]
    return " ".join(kept)


_STEP_PARTS = lazy_pattern(r"(?<=[.!?;\n])\s|(?=\()|(?<=\))")
# In brackets, or said of a step by its place.
_NEIGHBOUR = lazy_pattern(
    r"\A\(|\b(?:comes? (?:right |just )?(?:after|next|before|then)|(?:is|are) (?:next|left)|remains?|previous|just before"
    r"|step \d+ (?:was|is))\b",
    re.IGNORECASE,
)
_STEP_NUMBER = lazy_pattern(r"\bsteps? \d+(?: (?:to|and) \d+)?|^\W*\d+[.):]", re.IGNORECASE | re.MULTILINE)


def _name_machine(rng: Random) -> str:
    return f"{rng.choice(_MACHINES[0].split())} {rng.choice(_MACHINES[1].split())}"


def _tell_steps(rng: Random, machine: str, first: int, steps: Sequence[tuple[str, str]]) -> str:
    told = [_TELL_STEP[key].say(rng, detail=detail) for key, detail in steps]
    return " ".join([_STARTING.say(rng, machine=machine, place=_ORDINALS[first]), *told])


def _ask_for_detail(rng: Random, machine: str, place: int, key: str) -> str:
    """For the detail of one step, sometimes by its place alone."""
    if not _STEPS[key].details[0].isdigit() and rng.random() < 0.3:
        return _ASK_PLACE.say(rng, machine=machine, place=_ORDINALS[place])
    return f"{_AT_WORK.say(rng, machine=machine, place=_ORDINALS[place])} {_ASK_STEP[key].say(rng)}"


class _MachineReader(Reader):
    """Which step of which machine comes when, and with what detail."""

    def __init__(self) -> None:
        self._details: dict[tuple[str, str], str] = {}
        self._places: dict[tuple[str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        if asked := _ASK_PLACE.read(message):
            return self._places.get((asked["machine"], asked["place"]), "I do not know.")
        if asked := _AT_WORK.read(message):
            keys = (key for key, phrasing in _ASK_STEP.items() if phrasing.read(message) is not None)
            return next((self._details.get((asked["machine"], key), "I do not know.") for key in keys), None)
        if told := _STARTING.read(message) or _REVISED.read(message):
            first = _ORDINALS.index(told["place"])
            for place, (key, detail) in enumerate(_find_steps(message)):
                self._details[told["machine"], key] = detail
                self._places[told["machine"], _ORDINALS[first + place]] = detail
        return None


def _find_steps(message: str) -> list[tuple[str, str]]:
    """The steps of a message in their order, each with its detail."""
    found = []
    for sentence in re.split(r"(?<=[.:]) ", message):
        found += [(key, told["detail"]) for key, phrasing in _TELL_STEP.items() if (told := phrasing.read(sentence))]
    return found
