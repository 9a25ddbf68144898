"""Tales of two travellers, of any length, of which every opening of a next chapter but one contradicts what was told.

A journey has four circumstances: who comes along, how one travels, what is carried, where it goes. They change on the way, a
plan comes to nothing now and then, and another traveller with circumstances of his own is on the road as well. The openings
differ in two circumstances, in all combinations of two values of one and three of the other: without the tale all of them
are equally likely. One of the two was told for the last time in the first part of the tale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle, product
from random import Random

from themis.memory.phrasing import Phrasing, any_of

# --- circumstances ----------------------------------------------------------------------------------------------------

_COMPANIONS = (
    ("blind", "bearded", "careful", "cheerful", "clumsy", "deaf", "disgraced", "drowsy", "foreign", "freckled", "gloomy",
     "hoarse", "limping", "long-legged", "pious", "quarrelsome", "retired", "runaway", "silent", "stammering", "thirsty",
     "toothless", "travelling", "wealthy"),
    ("actor", "apprentice", "beekeeper", "bell founder", "cartographer", "clerk", "cobbler", "cook", "dancing master",
     "ferryman", "fiddler", "glazier", "juggler", "lawyer", "locksmith", "midwife", "miller", "novice", "organist", "pedlar",
     "poacher", "schoolmaster", "sergeant", "shepherd", "surgeon", "tailor", "trumpeter", "weaver"),
)  # fmt: skip
_VEHICLES = (
    ("borrowed", "bright blue", "creaking", "crowded", "draughty", "dusty", "freshly tarred", "gilded", "hired", "leaking",
     "lopsided", "narrow", "painted", "patched", "rattling", "red-wheeled", "rickety", "slow", "stolen", "tall", "tiny",
     "soot-black", "windowless", "worm-eaten"),
    ("in a {} cart", "in a {} coach", "in a {} litter", "in a {} rowing boat", "in a {} sledge", "in a {} wagon",
     "in a {} wicker chair", "on a {} barge", "on a {} ferry", "on a {} hay wain", "on a {} plough horse", "on a {} pony",
     "on a {} raft", "on a {} river steamer", "on a {} timber float", "on a {} mule"),
)  # fmt: skip
_BURDENS = (
    ("brass", "clay", "copper", "cracked", "empty", "forged", "frozen", "glass", "half-burnt", "hollow", "jewelled", "leather",
     "locked", "marble", "musty", "nameless", "numbered", "oaken", "perfumed", "rolled-up", "scorched", "sealed", "tattered",
     "wooden"),
    ("almanac", "altar cloth", "banner", "birdcage", "bread stamp", "casket", "chess set", "crown", "death mask", "drum",
     "family tree", "globe", "harp", "hymn book", "letter case", "lute", "music box", "portrait", "pulpit lamp", "relic",
     "saddle", "spinning wheel", "treaty", "weather vane"),
)  # fmt: skip
_DESTINATIONS = (
    ("abandoned", "burnt", "drowned", "eastern", "floating", "forbidden", "fortified", "furthest", "great", "half-built",
     "haunted", "hidden", "lower", "new", "old", "plundered", "royal", "second", "sleeping", "snowbound", "twin", "upper",
     "walled", "windy"),
    ("abbey", "alum mine", "assay office", "border fort", "bishop's palace", "brickworks", "cattle market", "copper mill",
     "customs house", "dye works", "fishing port", "garrison", "glass harbour", "hermitage", "hunting lodge", "lazaretto",
     "mint", "mountain pass", "observatory", "powder tower", "saltworks", "shipyard", "toll bridge", "winter fair"),
)  # fmt: skip
FACETS = ("companion", "transport", "burden", "destination")


def draw_circumstance(rng: Random, facet: str) -> str:
    """Any of the values that a circumstance can have."""
    if facet == "transport":
        return rng.choice(_VEHICLES[1]).format(rng.choice(_VEHICLES[0]))
    first, second = {"companion": _COMPANIONS, "burden": _BURDENS, "destination": _DESTINATIONS}[facet]
    look = rng.choice(first)
    article = "the" if facet == "destination" else "an" if look[0] in "aeiou" else "a"
    return f"{article} {look} {rng.choice(second)}"


_PATTERNS = {
    "companion": rf"an? (?:{any_of(_COMPANIONS[0])}) (?:{any_of(_COMPANIONS[1])})",
    "transport": rf"(?:in|on) an? (?:{any_of(_VEHICLES[0])}) (?:{any_of(name.split('{} ')[1] for name in _VEHICLES[1])})",
    "burden": rf"an? (?:{any_of(_BURDENS[0])}) (?:{any_of(_BURDENS[1])})",
    "destination": rf"the (?:{any_of(_DESTINATIONS[0])}) (?:{any_of(_DESTINATIONS[1])})",
}
_WHO = {"who": r"[^\W\d_]+"}
_START = Phrasing(
    "{who} set out {transport} for {destination}, carrying {burden}, and with {who} went {companion}.",
    "{transport} {who} left home with {companion}; the way led to {destination}, and there was {burden} to be delivered.",
    "It was {companion} who persuaded {who} to bring {burden} to {destination}, and off they went, {transport}.",
    "{burden} had to be taken to {destination}, so {who} hired {companion} and started {transport}.",
    **_WHO,
    **_PATTERNS,
)
# In which words one circumstance takes the place of another.
_CHANGES = {
    "companion": (
        "That night {old} left {who} without a farewell, and in the morning {new} came along instead.",
        "{who} paid {old} off at the ford; from there on it was {new} who kept {who} company.",
        "Where {old} had got to {who} never learnt, but {new} asked to come along and was allowed to.",
        "{new} took the place of {old} at the side of {who}, and nobody spoke of it again.",
        "“I am going no further,” said {old}, and so {who} went on with {new}.",
    ),
    "transport": (
        "{who} had travelled {old} so far, but the road ended there; from then on it went {new}.",
        "Nobody could have got through {old}, and {who} continued {new}.",
        "What {who} got for two candles and a coat was a place {new}; there was no travelling further {old}.",
        "From that day {who} was seen {new} and no longer {old}.",
        "A wheelwright shook his head at anyone arriving {old}, and it was {new} that {who} left his yard.",
    ),
    "burden": (
        "At the crossing {who} traded {old} for {new}, and would not say why.",
        "{old} was stolen at night, but the thief, in his hurry, left {who} {new}, which had to do.",
        "{who} buried {old} under a beech and carried {new} from there.",
        "It turned out that {who} had been given {old} by mistake; what was wanted, and now handed over, was {new}.",
        "The river took {old}, and all that {who} had to carry after that was {new}.",
    ),
    "destination": (
        "A message reached {who}: it was useless to go to {old}, the order now was {new}.",
        "{who} turned the map round twice and made for {new} instead of {old}.",
        "Since {old} was said to be closed to strangers, {who} chose {new}.",
        "“Not {old},” a rider called out to {who}; “they expect you at {new}!”",
        "With the war between here and {old}, {who} had to head for {new}.",
    ),
}
# The same circumstances, and nothing changes.
_PLANS = {
    "companion": (
        "{who} met {new} at an inn, and they parted there the same evening.",
        "There had been talk of {new} joining {who}, but nothing came of it.",
    ),
    "transport": (
        "{who} would rather have gone {new}, only there was nobody to ask.",
        "Somebody offered to take {who} along {new}, and the offer was declined.",
    ),
    "burden": (
        "{who} was offered {new} and would not touch it.",
        "At a stall {who} admired {new} and left it where it lay.",
    ),
    "destination": (
        "{who} had always wanted to see {new}, but not this year.",
        "A signpost pointed to {new}, and {who} went past it.",
    ),
}


def _compile(sentences: Mapping[str, tuple[str, ...]]) -> dict[str, Phrasing]:
    return {
        facet: Phrasing(*said, old=_PATTERNS[facet], new=_PATTERNS[facet], **_WHO) for facet, said in sentences.items()
    }


_CHANGING, _PLANNING = _compile(_CHANGES), _compile(_PLANS)
_OPENING = Phrasing(
    "{who} reached {destination} {transport}, {companion} close behind, and set down {burden} at the gate.",
    "At {destination} a guard stopped {who}, who had come {transport} with {companion}, and pointed at {burden}.",
    "It was late when {who}, arriving {transport}, showed {companion} the lights of {destination} and hid {burden}.",
    "“Open,” said {companion}, and {destination} let in {who}, come {transport}, with {burden} and all.",
    "Nobody at {destination} had seen anyone bring {burden} {transport}, as {who} did, let alone with {companion}.",
    "{burden} was the first thing they asked about at {destination} when {who} and {companion} got there {transport}.",
    **_WHO,
    **_PATTERNS,
)

# --- what else is told ------------------------------------------------------------------------------------------------

_SCENES = Phrasing(
    "The wind had turned, and the smoke of the last {farms} lay flat over the {fields}.",
    "Nobody spoke for [an hour|half a day|a mile or two]; all that was heard was {sound} and {sound2}.",
    "A milestone leaned by the wayside, its letters eaten by [moss|frost|lichen|rain], and on it sat {creature}.",
    "They ate what was left of the {food} and shook the crumbs out for the {birds}.",
    "Far below, a {building} [shone|smoked|glittered] without any sound reaching them.",
    "It {weathered} until [noon|dusk|the bells rang], then the clouds tore and the {fields} steamed.",
    "A {building} stood empty, its {part} taken down, {creature} asleep on the doorstep.",
    "Somebody had tied [red|white|blue|black] thread around every {tree} along the path.",
    "The moon came up so [large|pale|late|yellow] that it seemed to belong to another country.",
    "Dogs barked in a village that [they never saw|was not on any map|had no lights], and {sound} answered.",
    "A {trader} passed and offered {goods}, news and a cough medicine.",
    "The {crossing} was slippery, and one crossed it [holding one's breath|on hands and knees|one by one].",
    "Frost lay on the {part} in the morning and crackled when it was touched.",
    "There were footprints ahead, small ones, which stopped at a {crossing}.",
    "The stars were out, and there was a mild quarrel over [their names|which of them was north|how many there were].",
    "A bell rang [thirteen|three|nineteen] times somewhere in the fog, and after it came {sound}.",
    "An old woman sold {food} from a window and asked after her son, who had gone away with a {trader}.",
    "For [two|three|five] days it {weathered}, and the talk was of {goods} and the price of {food}.",
    "Under a {tree} somebody had left {goods2}, neatly folded, with a note that the rain had washed clean.",
    "The {building} of the next village was [shut|full|on fire|being painted], so the night was spent under a {tree}.",
    "Everybody woke before dawn, as if at {sound}; it was only {creature} at the {food}.",
    "A [child|soldier|deacon|widow] by the road wanted to know whether it {weathered} on the other side too.",
    "The {fields} were full of {birds}, which rose all at once and settled again [behind|further on].",
    "There was a dispute about a {part} and another about {food}, and by evening both were forgotten.",
    "In the register of the {building} somebody had drawn {creature} beside every second name.",
    "The soup tasted of {tree}, which the landlord took for praise.",
    "A letter without an address was nailed to a {tree}; it spoke of {goods} and of {sound}.",
    "[Mile after mile|All afternoon|Beyond the hill] there was nothing but {fields} and now and then a {tree}.",
)
_WORDS = {
    "farms": ("farms", "charcoal burners", "kilns", "cottages", "watch fires", "stubble fires", "bonfires", "limekilns"),
    "fields": ("fields", "marshes", "hills", "vineyards", "meadows", "orchards", "moors", "terraces", "turnips", "dunes"),
    "sound": ("the creak of leather", "the crows", "a far-off saw", "somebody's whistling", "the drip of thaw", "hoofbeats",
              "a loose shutter", "the hum of wires", "a cuckoo", "an axe", "running water", "a donkey", "distant thunder"),
    "creature": ("a toad", "a grey cat", "a tame crow", "a hedgehog", "a goose", "a one-horned goat", "a hare", "an owl",
                 "a fox cub", "a wet dog", "a peacock", "a snail", "a jackdaw", "a stray calf"),
    "food": ("bread", "cheese", "chestnuts", "smoked eel", "cold pancakes", "pears", "barley porridge", "radishes", "plum cake",
             "salt pork", "onions", "walnuts"),
    "birds": ("sparrows", "starlings", "rooks", "lapwings", "finches", "storks", "gulls", "doves", "larks"),
    "building": ("mill", "tavern", "chapel", "smithy", "school", "toll house", "tannery", "granary", "bathhouse", "brick kiln"),
    "weathered": ("rained", "snowed", "hailed", "blew", "drizzled", "stormed"),
    "part": ("sign", "door", "bell", "gate", "chimney", "weathercock", "shutter", "rope", "pump handle"),
    "tree": ("birch", "lime", "walnut", "poplar", "pear tree", "juniper", "hornbeam", "willow", "larch", "hazel"),
    "trader": ("tinker", "ragman", "rat catcher", "tooth puller", "ribbon seller", "knife grinder", "hop buyer"),
    "goods": ("needles", "almanacs", "candle ends", "spectacles", "buttons", "tobacco", "mousetraps", "pomade", "ballads"),
    "crossing": ("bridge", "footbridge", "ford", "weir", "stile", "culvert", "wall", "level crossing"),
}  # fmt: skip
_WORDS |= {"goods2": ("a coat", "a wedding dress", "a flag", "two shirts", "a cassock", "a tent")}


def _write_scene(form: int, rng: Random) -> str:
    words = {slot: words[rng.randrange(len(words))] for slot, words in _WORDS.items()}
    words["sound2"] = rng.choice([sound for sound in _WORDS["sound"] if sound != words["sound"]])
    return _SCENES.render(form, rng, **words)


# --- the tale ---------------------------------------------------------------------------------------------------------

# The last change of one of the circumstances that are asked for comes within this part of the tale.
_EARLY = 0.05
OPTIONS = 6


@dataclass
class Traveller:
    """Somebody's circumstances, those that used to hold, and the chapter in which each was told last."""

    name: str
    state: dict[str, str] = field(default_factory=dict)
    stale: dict[str, list[str]] = field(default_factory=lambda: {facet: [] for facet in FACETS})
    told_in: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Tale:
    """Chapters, openings of the next one, which of them is true (from 1), and the chapters that one needs to tell."""

    chapters: tuple[str, ...]
    openings: tuple[str, ...]
    answer: int
    needed: tuple[int, ...]


def tell_tale(rng: Random, people: tuple[str, str], *, chapters: int, characters: int) -> Tale:
    """A tale of so many chapters.

    Args:
        rng: Decides everything.
        people: The traveller that it is about, and another one.
        chapters: How many.
        characters: About how long each of them is.
    """
    hero, rival = (Traveller(name) for name in people)
    order = rng.sample(FACETS, len(FACETS))
    # In which chapter each circumstance of the hero changes for the last time; the first of them early.
    early = max(1, int(_EARLY * chapters))
    last = {facet: rng.randrange(1, chapters) if chapters > 1 else 0 for facet in order}
    last[order[0]] = min(early, chapters - 1)
    told = []
    for number in range(chapters):
        events = [_set_out(hero, number, rng), _set_out(rival, number, rng)] if number == 0 else []
        events += [_change(hero, facet, number, rng) for facet in FACETS if number and last[facet] == number]
        events += _happen(hero, rival, last, number, rng) if number else ()
        told.append(f"Chapter {number + 1}\n{_write_chapter(events, characters, rng)}")
    asked = rng.sample([order[0], rng.choice(order[1:])], 2)
    openings, answer = _write_openings(hero, rival, asked, rng)
    return Tale(tuple(told), openings, answer, tuple(sorted({hero.told_in[facet] for facet in asked})))


def _happen(hero: Traveller, rival: Traveller, last: Mapping[str, int], number: int, rng: Random) -> Iterator[str]:
    """What happens in a chapter besides the last changes: earlier ones, those of the other traveller, and plans."""
    facet = rng.choice(FACETS)
    if number < last[facet] and rng.random() < 0.4:
        yield _change(hero, facet, number, rng)
    elif rng.random() < 0.5:
        yield _change(rival, rng.choice(FACETS), number, rng)
    if rng.random() < 0.3:
        facet = rng.choice(FACETS)
        yield _PLANNING[facet].say(rng, who=hero.name, new=_draw_other(rng, facet, hero, rival))


def _set_out(who: Traveller, number: int, rng: Random) -> str:
    who.state = {facet: draw_circumstance(rng, facet) for facet in FACETS}
    who.told_in = dict.fromkeys(FACETS, number)
    return _START.say(rng, who=who.name, **who.state)


def _change(who: Traveller, facet: str, number: int, rng: Random) -> str:
    old, new = who.state[facet], _draw_other(rng, facet, who)
    who.stale[facet].append(old)
    who.state[facet], who.told_in[facet] = new, number
    return _CHANGING[facet].say(rng, who=who.name, old=old, new=new)


def _draw_other(rng: Random, facet: str, *travellers: Traveller) -> str:
    """A value that holds and held for none of them."""
    while True:
        value = draw_circumstance(rng, facet)
        if not any(value == who.state[facet] or value in who.stale[facet] for who in travellers):
            return value


def _write_chapter(events: list[str], characters: int, rng: Random) -> str:
    """The events among scenes, so many characters long."""
    sentences, length = list(events), sum(map(len, events))
    # No form comes again before all have come.
    forms = cycle(rng.sample(range(len(_SCENES)), len(_SCENES)))
    while length < characters:
        sentences.append(_write_scene(next(forms), rng))
        length += len(sentences[-1]) + 1
    # The events keep their order.
    places = sorted(rng.sample(range(len(sentences)), len(events)))
    scenes, happening = iter(sentences[len(events) :]), iter(events)
    return " ".join(next(happening) if place in places else next(scenes) for place in range(len(sentences)))


def _write_openings(hero: Traveller, rival: Traveller, asked: list[str], rng: Random) -> tuple[tuple[str, ...], int]:
    """All combinations of two values of one circumstance and three of another, and which of them is true."""
    values = []
    for facet, count in zip(asked, (2, 3), strict=True):
        foils = [value for value in (*hero.stale[facet][-2:], rival.state[facet]) if value != hero.state[facet]]
        while len(set(foils)) < count - 1:
            foils.append(_draw_other(rng, facet, hero, rival))
        wrong = rng.sample(list(dict.fromkeys(foils)), count - 1)
        values.append([hero.state[facet], *wrong])
    combinations = rng.sample(list(product(*values)), OPTIONS)
    openings = [
        _OPENING.say(rng, who=hero.name, **{**hero.state, **dict(zip(asked, chosen, strict=True))})
        for chosen in combinations
    ]
    return tuple(openings), combinations.index((values[0][0], values[1][0])) + 1


# --- reading it -------------------------------------------------------------------------------------------------------


def read_circumstances(text: str) -> Iterator[tuple[str, str, str]]:
    """Whose circumstance becomes what, in the order of the text."""
    chapters = text.split("Chapter ")
    for chapter in chapters:
        for told in _START.read_all(chapter):
            yield from ((told["who"].lower(), facet, told[facet].lower()) for facet in FACETS)
        for facet, phrasing in _CHANGING.items():
            for told in phrasing.read_all(chapter):
                yield told["who"].lower(), facet, told["new"].lower()


def read_opening(text: str) -> tuple[str, dict[str, str]] | None:
    """Who is spoken of, with what circumstances."""
    told = _OPENING.read(text)
    return None if told is None else (told["who"].lower(), {facet: told[facet].lower() for facet in FACETS})
