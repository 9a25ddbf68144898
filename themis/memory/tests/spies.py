"""Coded messages that arrange a meeting: each hint must be understood, and the right ones put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Grading, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import abstains, find_claims
from themis.memory.scoring.languages import is_foreign
from themis.memory.scoring.prominence import is_prominent
from themis.memory.scoring.spelling import spell_like
from themis.memory.scoring.words import TAG, find_phrases, fold, shorten, tag_phrases
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no
from themis.memory.tests.telling import join_names, name_characters, tell

# --- general knowledge ------------------------------------------------------------------------------------------------
#
# No keyword occurs in any clue, so repeating the clues is not enough. A hint joins two of the three clues of a thing; each
# alone might fit others.

# Words of which one must be in the answer -> clues.
PLACES: dict[tuple[str, ...], tuple[str, str, str]] = {
    ("cemetery", "graveyard", "churchyard", "burial ground"): (
        "everybody lies in rows under stone", "the names are cut deep and nobody answers to them", "flowers are laid down"),
    ("library", "reading room"): (
        "paper sleeps on shelves", "nobody may raise his voice", "one borrows and pays only for being late"),
    ("railway station", "train station", "station", "railway"): (
        "iron horses rest between two journeys", "a large clock decides who runs", "people wave handkerchiefs on platforms"),
    ("zoo", "zoological garden", "menagerie"): (
        "bears and lions look at you through bars", "feeding hours are posted", "the lodgers never chose their rooms"),
    ("hospital", "clinic", "infirmary"): (
        "people wait in white beds", "visitors bring grapes", "one is asked to put out one's tongue"),
    ("bakery", "baker's"): (
        "the day begins before all others", "it smells of crust", "the ovens cool down when others get up"),
    ("lighthouse",): (
        "a lamp turns all night for strangers", "ships are told to keep away", "the stairs wind up to a great lens"),
    ("theatre", "theater", "playhouse"): (
        "a curtain rises in the evening", "people pay to see others pretend", "the dead stand up again and bow"),
    ("swimming pool", "swimming baths", "lido"): (
        "the water is blue and goes nowhere", "one walks barefoot past the showers", "a board is for jumping off"),
    ("school", "schoolhouse"): (
        "a gong sets the small ones free", "chalk is used up", "those who know raise a finger"),
    ("prison", "jail", "gaol"): (
        "nobody stays of his own free will", "the windows are barred", "time is what one is given"),
    ("bank",): (
        "other people's money spends the night", "the thickest door of the street is", "one whispers about interest"),
    ("airport", "airfield", "aerodrome"): (
        "metal birds come down", "a sleeve on a pole shows the wind", "one takes off one's shoes for strangers"),
    ("harbour", "harbor", "docks", "port"): (
        "gulls quarrel over fish heads", "cranes bow to hulls", "ships are tied up by the neck"),
    ("museum",): (
        "old things are stared at and may not be touched", "every crown has a small card beside it", "the guards sit on chairs"),
    ("church", "cathedral", "chapel"): (
        "people sing on their knees", "coloured glass tells stories", "a tower calls on Sundays"),
    ("bridge", "viaduct"): (
        "one stands over water with dry feet", "two shores shake hands", "trolls used to collect the toll"),
    ("observatory",): (
        "the roof opens at night", "a great eye looks for the faintest of lights", "people count what twinkles"),
    ("brewery", "brewhouse"): (
        "hops and barley meet", "copper kettles foam", "the cellar is full of what the inns will sell"),
    ("barber shop", "barber's", "barbershop", "hairdresser's", "hairdresser"): (
        "a striped pole turns", "one comes out lighter by a few locks", "a stranger holds a razor to one's throat"),
    ("post office",): (
        "stamps are licked", "letters queue for the world", "parcels are weighed before they travel"),
    ("cinema", "movie theatre", "movie theater", "picture house"): (
        "everyone looks the same way in the dark", "shadows twenty feet tall kiss", "one eats popcorn beside strangers"),
    ("circus", "big top"): (
        "sawdust lies in a ring", "a man swallows swords", "somebody flies from one swing to another"),
    ("stadium", "football ground", "sports ground"): (
        "thousands shout at one ball", "eleven quarrel with eleven", "the seats go round a lawn"),
    ("windmill", "mill"): (
        "four arms turn without tiring", "grain becomes dust", "a Spanish knight once saw giants"),
    ("pharmacy", "chemist's", "drugstore", "apothecary"): (
        "pills are counted into bottles", "a snake winds round a cup over the door", "doctors' handwriting can be read"),
    ("court", "courthouse", "courtroom", "law court"): (
        "wigs and gowns are worn in earnest", "a gavel ends the talking", "one swears before one speaks"),
    ("vineyard",): (
        "next year's wine hangs in rows", "the hill is combed like hair", "September comes with baskets and knives"),
    ("quarry", "stone pit"): (
        "the hill is taken away block by block", "walls are born", "they blow a horn before the blast"),
}  # fmt: skip
THINGS: dict[tuple[str, ...], tuple[str, str, str]] = {
    ("umbrella", "parasol", "brolly"): (
        "keeps the sky off your head", "opens like a black flower", "is left behind on every bus"),
    ("torch", "flashlight"): (
        "makes a small sun at the press of a thumb", "eats batteries", "cuts a white hole into the night"),
    ("compass",): (
        "always knows where north is", "trembles and points one way", "saved sailors when the stars were hidden"),
    ("boat", "canoe", "dinghy", "kayak", "rowing boat"): (
        "crosses a river and keeps you dry", "is driven backwards by two oars", "leaks only once"),
    ("ladder", "stepladder"): (
        "has rungs and no voice", "takes you up a wall", "brings bad luck to those who walk beneath"),
    ("key", "keys"): (
        "has teeth and cannot bite", "opens what is locked", "hangs on a ring"),
    ("camera",): (
        "remembers a face in a blink", "has one glass eye", "makes people say cheese"),
    ("candle", "candles", "taper"): (
        "grows shorter as it shines", "weeps wax", "is blown out at birthdays"),
    ("rope", "ropes", "cord"): (
        "is nothing but knots waiting", "is coiled on every deck", "holds climbers together"),
    ("map", "chart"): (
        "shows the whole country and fits into a pocket", "can never be folded as it was", "has roads but no dust"),
    ("mirror", "looking glass"): (
        "shows you whoever asks", "turns left into right", "is honest about wrinkles"),
    ("newspaper",): (
        "is old by the next morning", "is black and white and read", "wraps fish when it has been read"),
    ("scissors", "shears"): (
        "joins two knives in an embrace", "is no friend of paper", "has two rings for your fingers"),
    ("spectacles", "glasses", "eyeglasses"): (
        "sits on a nose and helps it not at all", "gives one face two windows", "is looked for on one's forehead"),
    ("hammer", "mallet"): (
        "hits nails on the head", "has a head and no thoughts", "is hard on thumbs"),
    ("trumpet", "bugle"): (
        "is brass and wakes barracks", "is blown and never sneezes", "brought down the walls of Jericho"),
    ("kite",): (
        "flies only when it is held back", "climbs the wind on a string", "has a tail and no legs"),
    ("gloves", "mittens"): (
        "has ten fingers and no bones", "leaves no prints", "is what snowballs are made with"),
    ("dictionary", "lexicon"): (
        "knows every word from A to Z", "never tells a story", "settles quarrels about spelling"),
    ("spade", "shovel"): (
        "digs", "turns the garden over", "is buried last of all treasure"),
    ("bell",): (
        "has one tongue and speaks to the whole village", "is hung round a cow", "is rung"),
    ("suitcase", "valise"): (
        "is packed the night before", "is carried by its one handle", "is the first thing that hotels see of you"),
    ("whistle",): (
        "hides a pea and stops a match", "makes dogs turn round", "is at a referee's lips"),
    ("broom", "besom"): (
        "sweeps", "is said to carry witches", "is new when it does its work well"),
    ("telescope", "spyglass", "binoculars"): (
        "brings the moon down to the window", "pulls out like a long tube", "lets admirals see ships at the horizon"),
    ("pillow", "cushion"): (
        "is under every dream", "is stuffed with feathers", "is what children fight with"),
    ("needle", "sewing needle"): (
        "has one eye and is blind", "is hard to find in a haystack", "mends what is torn"),
    ("coin", "coins"): (
        "has a head and a tail and no body", "decides a wager in the air", "is thrown into fountains"),
}  # fmt: skip
# What there are so many of, for the hours of a clock.
NUMBERS: dict[int, tuple[str, ...]] = {
    1: ("a cyclops has eyes", "a unicorn has horns", "a wheelbarrow has wheels"),
    2: ("a bicycle has wheels", "a pair is", "a bird has wings"),
    3: ("a triangle has corners", "a tricycle has wheels", "a trio has players"),
    4: ("a year has seasons", "a violin has strings", "a horse has legs"),
    5: ("a hand has fingers", "there are rings in the Olympic flag", "the alphabet has vowels"),
    6: ("an insect has legs", "a die has faces", "a guitar has strings"),
    7: ("a week has days", "Snow White had dwarfs", "the old world had wonders"),
    8: ("a spider has legs", "an octopus has arms", "an octave has notes"),
    9: ("a cat is said to have lives", "the Greeks had muses", "skittles stand in the alley"),
    10: ("there are commandments", "two hands have fingers", "a decade has years"),
    11: ("a football side has players", "there are months besides this one", "a dozen leaves when one is taken"),
    12: ("a year has months", "there were apostles", "a dozen has eggs"),
}  # fmt: skip
_HALVES = {
    "past midnight": 0, "into the new day": 0, "after the date has changed": 0,
    "past noon": 12, "after the sun has stood highest": 12, "into the second half of the day": 12,
}  # fmt: skip
_WORDS = (
    "twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
)  # fmt: skip


def _list_time_words(hour: int) -> tuple[str, ...]:
    """In which ways an hour of the day is written, as on the clock of 24 hours first."""
    half, spoken = ("am", "pm")[hour // 12], hour % 12 or 12
    words = [f"{hour:02d}:00", f"{hour}:00", f"{hour:02d}00", f"{hour:02d}h00", f"{hour:02d}h"]
    words += _NAMED_HOURS.get(hour, [])
    if hour > 12:
        words += [f"{hour} o'clock", f"{hour} hours"]
    words += [f"{spoken}{half}", f"{spoken}:00{half}"]
    for figure in (str(spoken), f"{spoken}:00", f"{spoken} o'clock", _WORDS[hour % 12], f"{_WORDS[hour % 12]} o'clock"):
        words += [f"{figure} {name}" for name in (half, f"{half[0]} m", *_list_parts_of_day(hour))]
    return tuple(dict.fromkeys(words))


def _list_parts_of_day(hour: int) -> tuple[str, ...]:
    if hour in _NAMED_HOURS:
        return ()
    if hour < 12:
        return ("in the morning", "at night") if hour < 5 else ("in the morning",)
    return (
        *(("in the afternoon",) if hour < 20 else ("at night", "tonight")),
        *(("in the evening", "this evening") if hour > 16 else ()),
    )


# Of the two that a figure on the dial does not tell apart.
_NAMED_HOURS = {
    0: ["24:00", "midnight"],
    12: ["noon", "midday", "twelve o'clock", "12 o'clock", "noontime", "high noon"],
}
# Times that are no hour: whoever answers with one has not answered with the right one.
_OTHER_TIMES = ("dawn", "sunrise", "daybreak", "sunset", "dusk", "sundown", "twilight", "teatime", "tea time")
TIMES = {hour: _list_time_words(hour) for hour in range(24)}
# Of a part of the meeting: every list of keywords that it can have.
KEYWORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "time": tuple(TIMES.values()),
    "place": tuple(PLACES),
    "thing": tuple(THINGS),
}
_CLUES = {
    "place": {clue: words for words, clues in PLACES.items() for clue in clues},
    "thing": {clue: words for words, clues in THINGS.items() for clue in clues},
}
_COUNTS = {clue: number for number, clues in NUMBERS.items() for clue in clues}

# --- what is said -----------------------------------------------------------------------------------------------------

_SLOTS = {
    "spy": r"[^\W\d_]+ [^\W\d_]+",
    "spies": r"[^.!?;:\n]+?",
    "ring": r"\w+ \w+",
    "count": any_of(_COUNTS),
    "half": any_of(_HALVES),
    **{f"{which}{part}": any_of(clues) for part, clues in _CLUES.items() for which in ("first_", "second_")},
}
_ROLE = Phrasing(
    "My contacts in the {ring} ring are {spies}[, and nobody else|]; [should anybody else write about its meeting|whoever else "
    "writes about its meeting], it is a trap.",
    "Of the {ring} ring I trust only {spies}; others who claim to arrange its meeting want to mislead me.",
    "The {ring} ring will send word through {spies}, in code; a message about its meeting from any other person is false.",
    **_SLOTS,
)
_SENT = Phrasing(
    "A [note|card|slip of paper] from {spy}[ lay under the door| came with the milk|]: “{code}”",
    "{spy} [whispered|murmured] to me in passing: “{code}”",
    "{spy} [called|rang up], said only this and hung up: “{code}”",
    "Inside a [loaf|hat|library book] I found a line in the hand of {spy}: “{code}”",
    "{spy} sends word: “{code}”",
    "On the back of a [bus ticket|laundry bill] {spy} has written: “{code}”",
    code=r"[^“”\n]+",
    **_SLOTS,
)
_TIME = Phrasing(
    "We meet as many hours {half} as {count}.",
    "Count as many hours as {count}, {half}, and come then.",
    "We sit down together as many hours {half} as {count}, and no sooner.",
    "The hour? As many {half} as {count}.",
    **_SLOTS,
)
_PLACE = Phrasing(
    "We meet where {first_place} and {second_place}.",
    "Be where {first_place}, and where {second_place}.",
    "Look for us where {first_place}; you know, where {second_place}.",
    "Where {first_place} and where {second_place}, there we shall be.",
    **_SLOTS,
)
_THING = Phrasing(
    "Do not come without what {first_thing} and {second_thing}.",
    "Have with you what {first_thing}, the same that {second_thing}.",
    "You will need what {first_thing} and what {second_thing}.",
    "Bring what {first_thing}; it {second_thing}, as everybody knows.",
    **_SLOTS,
)
_CODES = {"time": _TIME, "place": _PLACE, "thing": _THING}
_INSTEAD = Phrasing("Forget my last message.", "Plans have changed.", "Burn what I sent you before.")
_ASKED = Phrasing(
    "When and where does the {ring} ring meet, and what should I bring? Do not quote the messages, decode them; give the time "
    "as on a 24-hour clock, the place and the thing in one or two words each.",
    "Tell me about the meeting of the {ring} ring: at what time (on a 24-hour clock), in what kind of place, and what do I "
    "have to bring? Decode the messages, one or two words for each.",
    **_SLOTS,
)
_RINGS = (
    ("Amber", "Blind", "Brass", "Copper", "Crystal", "Double", "Eastern", "Fallen", "Golden", "Hidden", "Ivory", "Jade",
     "Lonely", "Marble", "Midnight", "Painted", "Pearl", "Silent", "Silver", "Sleeping", "Tin", "Velvet", "Violet", "White"),
    ("Badger", "Carp", "Cobra", "Condor", "Dolphin", "Falcon", "Ferret", "Gazelle", "Heron", "Ibex", "Jackdaw", "Leopard",
     "Lobster", "Magpie", "Mongoose", "Otter", "Panther", "Pelican", "Raven", "Scorpion", "Sparrow", "Stork", "Tortoise",
     "Walrus"),
)  # fmt: skip


@dataclass(kw_only=True)
class SpyMeeting(BuiltinTest):
    """Understanding hints and putting them together.

    Scores: perfect 1, memoryless 0; repeating the hints scores 0, naming every time, place and thing too. A third for
    each part that is named by one of its keywords, whatever the case, while no keyword of another time, place or thing is
    named for it; a part that is described in other words is for the judge. One message may replace another, and somebody
    with a contact's first name sends a false one. About 350 tokens. Interferes with no other test.
    """

    kind: ClassVar[str] = "spy_meeting"
    name: ClassVar[str] = "Spy Meeting"
    description: ClassVar[str] = "The agent must understand three coded messages and tell the meeting they arrange."
    answers: ClassVar[Sequence[str]] = tuple(
        word for variants in KEYWORDS.values() for keywords in variants for word in keywords
    )

    def make_example(self, number: int, rng: Random) -> TestExample:
        ring = self.world.make(rng, "ring of spies", lambda rng: f"{rng.choice(_RINGS[0])} {rng.choice(_RINGS[1])}")
        first, second, third, *last = name_characters(self.world, rng, 7)
        decoy = f"{first} {last[3]}"
        spies = rng.sample(
            [f"{name} {surname}" for name, surname in zip((first, second, third), last, strict=False)], 3
        )
        parts = rng.sample(tuple(KEYWORDS), 3)
        # For each part: the false one of the decoy, the one that is replaced, the one that holds.
        meant = {part: rng.sample(KEYWORDS[part], 3) for part in parts}
        changed = rng.choice(parts)
        sent = [
            (spies[place], part, meant[part][wrong])
            for place, part in enumerate(parts)
            for wrong in ((1, 2) if part == changed else (2,))
        ]
        sent.insert(rng.randint(1, len(sent)), (decoy, (trap := rng.choice(parts)), meant[trap][0]))
        statements = [_ROLE.say(rng, ring=ring, spies=join_names(spies))]
        needed = {0}
        for spy, part, words in sent:
            code = _encode(rng, part, words)
            if part == changed and spy != decoy and words == meant[part][2]:
                code = f"{_INSTEAD.say(rng)} {code}"
            if spy != decoy and words == meant[part][2]:
                needed.add(len(statements))
            statements.append(_SENT.say(rng, spy=spy, code=code))
        told = [tell(rng, statement, self.memory_span) for statement in statements]
        expected = [list(meant[part][2]) for part in KEYWORDS]
        return self.tell_and_ask(number, told, [_ASKED.say(rng, ring=ring)], expected, needed=[sorted(needed)])

    def ideal_answers(self, example: TestExample) -> list[str]:
        return ["; ".join(keywords[0] for keywords in example.expected_responses)]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[Sequence[str]]
    ) -> Grading:
        return grade_meeting(responses[0], expected, self.answers)

    @classmethod
    def make_reader(cls) -> Reader:
        return _SpyReader()


def _encode(rng: Random, part: str, words: tuple[str, ...]) -> str:
    """A hint at what the keywords name."""
    if part == "time":
        hour = next(hour for hour, own in TIMES.items() if own == words)
        # Noon is twelve hours after midnight, and midnight twelve after noon.
        count = hour % 12 or 12
        half = rng.choice([name for name, first in _HALVES.items() if (first + count) % 24 == hour])
        return _TIME.say(rng, half=half, count=rng.choice(NUMBERS[count]))
    first, second = rng.sample((PLACES if part == "place" else THINGS)[words], 2)
    return _CODES[part].say(rng, **{f"first_{part}": first, f"second_{part}": second})


class _SpyReader(Reader):
    """Knows what everybody knows; learns who belongs to which ring and what each of them wrote last."""

    def __init__(self) -> None:
        self._rings: dict[str, list[str]] = {}
        self._last: dict[tuple[str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        if asked := _ASKED.read(message):
            spies = self._rings.get(asked["ring"].lower(), [])
            found = {part: word for spy in spies for (who, part), word in self._last.items() if who == spy}
            return "; ".join(found.get(part, "unknown") for part in KEYWORDS)
        for told in _ROLE.read_all(message):
            self._rings[told["ring"].lower()] = told["spies"].replace(" and ", ", ").lower().split(", ")
        for told in _SENT.read_all(message):
            for part, word in _decode(told["code"]):
                self._last[told["spy"].lower(), part] = word
        return None


def _decode(code: str) -> Iterator[tuple[str, str]]:
    """The parts that a message is about, with the first keyword of what it means."""
    for told in _TIME.read_all(code):
        yield "time", TIMES[(_HALVES[told["half"]] + _COUNTS[told["count"]]) % 24][0]
    for part, clues in _CLUES.items():
        for told in _CODES[part].read_all(code):
            yield part, clues[told[f"first_{part}"]][0]


# --- the verdict ------------------------------------------------------------------------------------------------------


def grade_meeting(reply: str, expected: Sequence[Sequence[str]], answers: Iterable[str]) -> Grading:
    """The share of parts of which a keyword is claimed, and no keyword of another variant of the part.

    A part that the reply may describe in other words is for the judge.

    Args:
        reply: What the agent answered.
        expected: For each part the keywords of which one must be named.
        answers: All keywords that the test could have: rivals are taken from them.
    """
    vocabulary = frozenset(answers)
    understood = [_understands(reply, keywords, vocabulary) for keywords in expected]
    known = [*chain.from_iterable(expected), *sorted(vocabulary)]
    if None in understood and (any(understood) or is_foreign(reply)) and _has_more_to_say(reply, known):
        return _judge_parts(reply, expected, understood)
    return _sum_up(reply, expected, [bool(right) for right in understood])


def _understands(reply: str, keywords: Sequence[str], vocabulary: frozenset[str]) -> bool | None:
    """Whether the reply has the part right; None where it names nothing that the part could be."""
    rivals = [word for word in _list_rivals(keywords) if word in vocabulary]
    if vocabulary >= _OWN and any(word in _TIME_WORDS for word in keywords):
        rivals += _OTHER_TIMES
    candidates = {*keywords, *rivals}
    text = spell_like(_IDIOM.sub(" ", reply), candidates, *keywords)
    if claimed := find_claims(text, candidates):
        unclear = not claimed <= set(keywords) and any(is_prominent(text, word, candidates) for word in keywords)
        return None if unclear else claimed <= set(keywords)
    if named := find_phrases(text, candidates):
        # Mentioned in a way that no rule reads as saying so.
        return None if named & set(keywords) else False
    # A keyword of ours stands alone; of others also within a longer word: a pick is a lockpick.
    foreign = [re.escape(fold(word)) for word in keywords if word not in _OWN and len(word) >= 4]
    return True if foreign and re.search("|".join(foreign), fold(text)) else None


def _list_rivals(keywords: Sequence[str]) -> Iterator[str]:
    """The keywords of the other variants of the same part."""
    for variants in KEYWORDS.values():
        if any(set(keywords) & set(own) for own in variants):
            yield from (word for own in variants if not set(keywords) & set(own) for word in own)


def _has_more_to_say(reply: str, known: Sequence[str]) -> bool:
    """Whether there are words that might describe what no keyword names."""
    if abstains(reply) or _GAVE_UP.search(fold(reply)):
        return False
    rest = TAG.sub(" ", tag_phrases(fold(reply), tuple(dict.fromkeys(known))))
    return any(
        word not in _EMPTY and not word.endswith("ly")
        for word in re.findall(r"\d|[^\W_]{2,}", _LINE_NUMBER.sub(" ", rest))
    )


def _judge_parts(reply: str, expected: Sequence[Sequence[str]], understood: Sequence[bool | None]) -> Judgement:
    settled = []
    for keywords, right in zip(expected, understood, strict=True):
        if right is None:
            ruling = yield from ask_yes_or_no(
                f"Somebody decoded secret messages like this:\n{reply}\n\nOne part of the right solution is "
                f"{' or '.join(keywords[:4])}. Does the text name it, in whatever words?",
                purpose="is this part of the meeting understood?",
                undecided=f"only a judge (--judge) can tell whether {keywords[0]!r} is meant in {shorten(reply, 60)!r}",
                reason=f"the judge was asked whether {keywords[0]!r} is meant",
            )
            if ruling.failed:
                return ruling
            right = ruling.score == 1.0
        settled.append(right)
    return _sum_up(reply, expected, settled)


def _sum_up(reply: str, expected: Sequence[Sequence[str]], understood: Sequence[bool]) -> Grade:
    reasons = [
        f"understood: {keywords[0]}" if right else f"expected {' or '.join(keywords[:3])}, not in: {shorten(reply)}"
        for keywords, right in zip(expected, understood, strict=True)
    ]
    return Grade.share(sum(understood), len(expected), *reasons)


_TIME_WORDS = frozenset(word for own in TIMES.values() for word in own)
_OWN = frozenset(word for variants in KEYWORDS.values() for own in variants for word in own)
# Keywords that are none.
_IDIOM = lazy_pattern(
    r"\b(?:the key (?:is|to|here|point|detail)\b|key (?:point|detail|information|thing)s?\b|(?:rings?|ringing) a bell\b"
    r"|(?:past|after|from|since) (?:noon|midday|midnight)\b"
    r"|bridge the\b|24-?\s?hours?\b|needless\b)",
    re.IGNORECASE,
)
_GAVE_UP = lazy_pattern(
    r"(?:n't|\bnot|\bunable|\bno idea|\bcannot)\b[^.!?\n]{0,40}"
    r"\b(?:work(?:ed)? out|figured?|make|made|decipher|decoded?|tell|rest)\b"
)
_LINE_NUMBER = lazy_pattern(r"^\s{0,10}\d{1,2}[.)](?=\s)", re.MULTILINE)
# Words of an answer that describe neither a time nor a place nor a thing.
_EMPTY_WORDS = """
about accordingly after again alone along am an and answer are around arrive as at back be because been before
bring bringing by can carry carrying clock code coded codes come contact contacts could date decode decoded
decoding do does dont down equipped everything exactly find for from get give given go going good grab had
hand hands has have here hes his hour hours how ill im in into is it item items its itself just know known let
local location luck may me mean meaning means meet meeting message messages might must my named need needed
next no not note now object of off old on one or our out part parts people place planned please point pointing
prepared rendezvous right ring said say scheduled secret see set shall she should so some something somewhere spies spot spy sure
take taken takes taking tell that the their them then there these they theyll thing things think this three
time to together told town up us venue wait want was we well what when where which who will with would yes you
youll your youre
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
