"""Places that are told of one by one, each relative to another; ways along them must be worked out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from random import Random
from typing import ClassVar, NamedTuple

from themis.core.json_repair import parse_json
from themis.core.patterns import lazy_pattern
from themis.memory.actions import Consult, Grade, Grading, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.numbers import count_directions, read_distances, read_ways
from themis.memory.scoring.words import shorten
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, whole_number
from themis.memory.tests.telling import join_names, tell
from themis.memory.world import World

# What stands there. No name of a place contains a direction.
_BUILDINGS = (
    "Abbey", "Bakery", "Brewery", "Cinema", "Dairy", "Farm", "Foundry", "Garage", "Inn", "Kennels", "Lighthouse", "Mill",
    "Nursery", "Orchard", "Pottery", "Quarry", "Sawmill", "School", "Stables", "Tannery", "Theatre", "Tower",
)  # fmt: skip
_STEMS = (
    "Ald", "Bar", "Bram", "Cal", "Cran", "Dal", "Fal", "Gal", "Garn", "Harl", "Holl", "Ing", "Kel", "Lang", "Lor", "Marl",
    "Mel", "Pell", "Rad", "Rav", "Ros", "Sel", "Tal", "Thorn", "Ul", "Var", "Wend", "Yar",
)  # fmt: skip
# Two endings of one stem are easily taken for each other.
_ENDINGS = ("ley", "lea", "ford", "forth", "ham", "holme", "combe", "gate")
# What one knows a place by.
_MARKS = (
    ("blue", "broken", "copper", "crooked", "gigantic", "green", "granite", "leaning", "mossy", "painted", "pink", "rusty",
     "striped", "tiled", "whitewashed", "yellow"),
    ("balcony", "bell", "bench", "bicycle", "chimney", "clock", "door", "flagpole", "fountain", "gate", "lantern",
     "signboard", "window", "staircase", "statue", "weathervane"),
)  # fmt: skip
# Unit steps: east is positive x, north is positive y.
DIRECTIONS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
_OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
# Kilometres and direction of each leg.
Ways = list[tuple[float, str]]

# --- straight back ----------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Locations(BuiltinTest):
    """Putting together statements that only make sense together.

    Scores: perfect 1, memoryless 0. The answer is computed from the places' coordinates; the last place never coincides
    with another and lies straight north, east, south or west of the first. Some ways are told from their other end, one is
    corrected, one place is referred to by what stands there. A reply that ends as asked, or gives one single way, is
    settled without a judge. About 40 tokens per place. Interferes with no other test: its places have names of their own.
    """

    kind: ClassVar[str] = "locations"
    name: ClassVar[str] = "Locations"
    description: ClassVar[str] = "The agent is told where places lie and must find the way from the last to the first."
    answers: ClassVar[Sequence[str]] = tuple(f"{km} km {direction}" for km in range(1, 20) for direction in DIRECTIONS)

    known_locations: int = whole_number(5, least=2, most=20)

    def make_example(self, number: int, rng: Random) -> TestExample:
        town = build_town(self.world, self.known_locations, rng, in_line=True)
        east, north = position_after(town.legs)
        if north:
            expected = f"{abs(north)} km {'South' if north > 0 else 'North'}"
        else:
            expected = f"{abs(east)} km {'West' if east > 0 else 'East'}"
        question = _ASK_BACK.say(rng, here=town.places[-1], there=town.places[0])
        return _tell(self, number, rng, town, question, expected)

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [f"Answer: {example.expected_responses[0]}"]

    @classmethod
    def make_reader(cls) -> Reader:
        return _WayReader()

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grading:
        return grade_way(responses[0], expected[0]) or ask_yes_or_no(
            f"Question:\n{questions[0]}\n\nRight answer: {expected[0]}\n\nGiven answer:\n{responses[0]}\n\n"
            "Does the given answer conclude with the right distance and direction?",
            purpose="is this the way?",
            undecided="names several ways; only a judge (--judge) can tell what it concludes",
            reason=f"names several ways; the judge was asked whether it concludes with {expected[0]}",
        )


def grade_way(reply: str, expected: str) -> Grade | None:
    """The verdict where the reply concludes as asked or names one way or none; None where it must be understood."""
    wanted = read_ways(expected)[0]
    if (slanting := _SLANTING.search(reply)) and not read_ways(slanting[0]):
        return Grade(0.0, (f"expected {expected}, got {shorten(slanting[0])}",))
    concluded = _CONCLUSION.split(reply)[-1][:200]
    ways = read_ways(concluded) or read_ways(reply)
    reasoned = _REASONED.findall(_LAST_LINE.sub("", reply))
    if len(set(ways)) == 1 and ways[0] != wanted and reasoned and read_ways(reasoned[-1]) == [wanted]:
        return None
    if len(set(ways)) == 1 and _OR_ANOTHER.search(concluded):
        return Grade(0.0, (f"expected only {expected}, cannot choose: {shorten(reply)}",))
    if len(set(ways)) == 1:
        return Grade.when(ways[0] == wanted, f"expected {expected}, got {ways[0][0]:g} km {ways[0][1]}")
    if wanted not in ways:
        return Grade(0.0, (f"expected {expected}, which is not in: {shorten(reply)}",))
    if len(set(read_ways(concluded))) == 2 and _EITHER.search(concluded):
        return Grade(0.0, (f"expected only {expected}, cannot choose: {shorten(reply)}",))
    return None


# No right way is slanting.
_SLANTING = lazy_pattern(
    r"\banswer\W{1,6}(?:\w{1,12} ){0,3}\d[\d.]{0,6} ?(?:km|kilomet(?:re|er)s?)\W{0,3}(?:\w{1,5} ){0,3}(?:north"
    r"|south)[- ]?(?:east|west)\b",
    re.IGNORECASE,
)
_CONCLUSION = lazy_pattern(r"\b(?:answer|net|result|total|overall|therefore|thus|so)\b", re.IGNORECASE)
# What the lines before the answer come to.
_REASONED = lazy_pattern(r"\b(?:so|therefore|thus|hence)\b[^.!?\n]{1,80}", re.IGNORECASE)
_LAST_LINE = lazy_pattern(r"\n[^\n]*\S\s*\Z")
_OR_ANOTHER = lazy_pattern(r"\bor (?:\w{1,12} ){0,2}\d[\d.]{0,6} ?k", re.IGNORECASE)
_EITHER = lazy_pattern(r"\bor\b", re.IGNORECASE)


# --- along the places -------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class LocationsDirections(BuiltinTest):
    """Turning statements into directions.

    Scores: perfect 1, memoryless 0; repeating the statements scores 0, since at least one is told from its other end.
    Right is whatever leads from the first place to the last, by the sum of its legs; a summary that says the same once more
    does no harm. A reply whose legs can be read is settled without a judge; the judge only rewrites one whose legs cannot
    be. About 50 tokens per place. Interferes with no other test: its places have names of their own.
    """

    kind: ClassVar[str] = "locations_directions"
    name: ClassVar[str] = "Locations Directions"
    description: ClassVar[str] = "The agent is told where places lie and must describe the way along them."
    answers: ClassVar[Sequence[str]] = tuple(f"{km} km {direction}" for km in range(1, 5) for direction in DIRECTIONS)

    known_locations: int = whole_number(5, least=2, most=20)

    def make_example(self, number: int, rng: Random) -> TestExample:
        town = build_town(self.world, self.known_locations, rng, in_line=False)
        here, *between, there = town.places
        question = (
            _ASK_ALONG.say(rng, here=here, there=there, between=join_names(between))
            if between
            else _ASK_LEG.say(rng, here=here, there=there)
        )
        return _tell(self, number, rng, town, question, _format_route(town.places, town.legs))

    @classmethod
    def make_reader(cls) -> Reader:
        return _RouteReader()

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grading:
        return grade_route(responses[0], expected[0]) or _judge_route(responses[0], expected[0])


def grade_route(reply: str, expected: str) -> Grade | None:
    """The verdict where every leg of the reply can be read; None where directions are given in some other way.

    A route may be summed up or told again after it was given. One that is told again in another way, or beside another
    one, must be understood.
    """
    wanted = read_ways(expected)
    reply = "\n".join(map(_correct_line, reply.split("\n")))
    route = _read_route(reply, len(wanted))
    if not route.as_asked and _retells(reply):
        return Grade(0.0, (f"repeats what was said instead of giving the way: {shorten(reply)}",))
    right = position_after(route.legs) == position_after(wanted)
    unread = count_directions(reply) > len(route.legs) + len(route.rest)
    if not route.legs:
        named = count_directions(reply) and any(character.isdigit() for character in reply)
        return None if named else Grade(0.0, (f"gives no legs: {shorten(reply)}",))
    if _ALTERNATIVE.search(reply) and route.rest:
        return None
    if right and not (unread and len(route.legs) < len(wanted)):
        return _grade_rest(route, wanted)
    if route.rest and position_after(route.rest) == position_after(wanted):
        return None
    if _pair_in_order(reply) == wanted:
        return Grade(1.0, (f"its {len(wanted)} legs lead to the right place",))
    if not unread or len(route.legs) >= len(wanted):
        return Grade(0.0, (f"its {len(route.legs)} legs lead {_format_end(route.legs)}, not {_format_end(wanted)}",))
    return None


def _pair_in_order(reply: str) -> Ways:
    """The legs of a reply that has as many distances as directions, in whatever words between them."""
    if _EITHER.search(reply):
        return []
    text = re.sub(r"\([^()]{0,80}\)", " ", reply)
    distances, directions = read_distances(text)
    return list(zip(distances, directions, strict=True)) if len(distances) == len(directions) else []


def _correct_line(line: str) -> str:
    """A line without the leg that it takes back: `go 4 km north – sorry, go 1 km north`."""
    before, *after = _TAKEN_BACK.split(line)
    return after[-1] if after and len(read_ways(before)) == len(read_ways(after[-1])) == 1 else line


_TAKEN_BACK = lazy_pattern(
    r"\b(?:sorry|no, wait|wait|correction|corrected|i mean|or rather|actually|scratch that|no,)\b", re.IGNORECASE
)


def _grade_rest(route: _Route, wanted: Ways) -> Grade | None:
    """The verdict on a right route by what is said after it."""
    rest = route.rest
    if not rest or position_after(rest) == position_after(wanted) or all(way in route.legs for way in rest):
        return Grade(1.0, (f"its {len(route.legs)} legs lead to the right place",))
    if route.as_asked or len(rest) >= max(2, len(wanted) - 1):
        return None
    legs = [*route.legs, *rest]
    return Grade(0.0, (f"its {len(legs)} legs lead {_format_end(legs)}, not {_format_end(wanted)}",))


class _Route(NamedTuple):
    """The legs of a reply, and those that are named after them."""

    legs: Ways
    rest: Ways
    # One line for each leg, in the form that was asked for.
    as_asked: bool = False


def _retells(reply: str) -> bool:
    """Whether the reply says again what no directions are made of: the question, hearsay, or what a place looks like."""
    told = (_MARK_TOLD, _MARKED_LEG, _CORRECTED, _RUMOUR)
    return "<number> km <direction>" in reply or any(phrasing.matches(reply) for phrasing in told)


def _read_route(reply: str, length: int) -> _Route:
    if listed := _read_list(reply):
        return _Route(listed, [])
    again = _AGAIN.split(reply)[-1]
    text = again if len(read_ways(again)) >= length else reply
    lines = list(_LEG.finditer(text))
    legs = read_ways("\n".join(line[1] for line in lines))
    if len(legs) == length:
        return _Route(legs, read_ways(text[lines[-1].end() :]), as_asked=True)
    ways = read_ways(text)
    # More legs than there are may lead to the same place; else the first of them are the route.
    return _Route(ways[:length], ways[length:]) if len(ways) > length and _repeats(ways, length) else _Route(ways, [])


def _repeats(ways: Ways, length: int) -> bool:
    """Whether a route of so many legs is followed by something that is no part of it: its sum, or the same once more."""
    first, rest = ways[:length], ways[length:]
    return len(rest) >= length or position_after(first) == position_after(rest)


def _read_list(reply: str) -> Ways:
    """The legs of a reply that is a JSON list."""
    try:
        parsed = parse_json(reply) if "{" in reply else None
    except ValueError:
        return []
    legs = []
    for entry in parsed if isinstance(parsed, list) else []:
        fields = {str(name).casefold(): value for name, value in entry.items()} if isinstance(entry, dict) else {}
        km = next((_parse_distance(fields[name]) for name in _DISTANCES if name in fields), None)
        if km is None or (direction := str(fields.get("direction", "")).casefold()) not in DIRECTIONS:
            return []
        legs.append((km, direction))
    return legs


def _parse_distance(value: object) -> float | None:
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d{1,4}(?:\.\d{1,3})?) ?(?:km)?\s*", value)
        return float(found[1]) if found else None
    return float(value) if isinstance(value, int | float) and 0 <= value < 10_000 else None


_DISTANCES = ("km", "kilometers", "kilometres", "distance", "distance_km")
_ALTERNATIVE = lazy_pattern(
    r"\b(?:alternatively|another (?:way|route|option)|or you (?:can|could)|option 2)\b", re.IGNORECASE
)
_AGAIN = lazy_pattern(
    r"\b(?:begin again|start (?:again|over)|let me (?:correct|redo|fix)|no, wait|correction:|sorry[,:]|the (?:whole"
    r"|corrected|right|full) (?:way|route)|scratch that|i mean)\b",
    re.IGNORECASE,
)
# A line of the form that was asked for.
_LEG = lazy_pattern(r"^[^\w\n]*(?:\d{1,2}[^\w\n]+)?(from .{1,200})$", re.IGNORECASE | re.MULTILINE)


def _judge_route(reply: str, expected: str) -> Judgement:
    ruling = yield Consult(
        f"Here are directions that somebody gave:\n{reply}\n\nRewrite them as a JSON list with one object per leg, in "
        'order, each of the form {"kilometers": 2, "direction": "east"}. Use north, east, south and west only. '
        "Leave out what is not there; do not correct anything. Answer with the list only.",
        parse=_parse_legs,
        purpose="read the legs of these directions",
    )
    if ruling.failed:
        return Grade.failure(f"directions that only a judge (--judge) can read: {ruling.failure}")
    right = bool(ruling.value) and position_after(ruling.value) == position_after(read_ways(expected))
    return Grade.when(right, f"as read by the judge its legs lead {_format_end(ruling.value)}")


def _parse_legs(text: str) -> Ways:
    legs = parse_json(text)
    if not isinstance(legs, list) or not all(isinstance(leg, dict) for leg in legs):
        raise ValueError(f"expected a JSON list of legs, got {text[:80]!r}")
    ways = [(float(leg["kilometers"]), str(leg["direction"]).lower()) for leg in legs]
    if not all(direction in DIRECTIONS and 0 <= km < 10_000 for km, direction in ways):
        raise ValueError(f"a leg has no distance or direction that exists: {text[:80]!r}")
    return ways


def _format_end(ways: Ways) -> str:
    east, north = position_after(ways)
    return f"{east:g} km east and {north:g} km north"


# --- the town ---------------------------------------------------------------------------------------------------------

_PLACE = rf"(?:{any_of(_STEMS)})(?:{any_of(_ENDINGS)}) (?:{any_of(_BUILDINGS)})"
_MARK = rf"(?:{any_of(_MARKS[0])}) (?:{any_of(_MARKS[1])})"
_SLOTS = {
    "here": _PLACE, "there": _PLACE, "other": _PLACE, "between": r"[^.!?;:\n]+?", "mark": _MARK,
    "far": r"\d+", "wrong": r"\d+", "direction": "north|east|south|west", "opposite": "north|east|south|west",
}  # fmt: skip
# From {here} to {there} it is so far in the direction.
_LEG_TOLD = Phrasing(
    "{there} is {far} km {direction} of {here}.",
    "Go {far} km {direction} from {here} and you [reach|come to|stand before] {there}.",
    "{far} km to the {direction} of {here} lies {there}.",
    "Whoever [walks|cycles|drives] {far} km due {direction} from {here} is at {there}.",
    "The road from {here} to {there} runs {far} km straight {direction}.",
    "[Coming from|Starting at] {here} it is {far} km {direction} until one sees {there}.",
    "They have built {there} exactly {far} km {direction} of {here}.",
    "If {here} is behind you and you have gone {direction} for {far} km, that is {there} in front of you.",
    "To get to {there} I [always|usually] set out from {here} and keep {direction} for {far} km.",
    "{here} has {there} for a neighbour, {far} km to its {direction}.",
    "From {there} one looks {opposite} over {far} km of fields to {here}.",
    **_SLOTS,
)
# The same of a place that is known by what stands there.
_MARK_TOLD = Phrasing(
    "{here} is the place with the {mark}, by the way.",
    "You cannot miss {here}: it has a {mark}, the only one far and wide.",
    "They have put up a {mark} at {here}[, of all things|].",
    **_SLOTS,
)
_MARKED_LEG = Phrasing(
    "{far} km {direction} of the place with the {mark} is {there}.",
    "From where the {mark} stands it is {far} km {direction} to {there}.",
    "To {there} it is {far} km {direction} from the place that has the {mark}.",
    **_SLOTS,
)
_CORRECTED = Phrasing(
    "I have to correct myself: from {here} it is {far} km {direction} to {there}, not {wrong} km.",
    "What I said about {there} was wrong, it is not {wrong} but {far} km {direction} of {here}.",
    "My map was out of date: {there} lies {far} km {direction} of {here} and not {wrong} km.",
    **_SLOTS,
)
# Nothing of this tells where anything is.
_RUMOUR = Phrasing(
    "Somebody insisted that {there} was {wrong} km {opposite} of {here}, which is nonsense.",
    "I once dreamt of a road of {wrong} km going {opposite} from {here} to {there}, but there is none.",
    "{other} is closed for good, they say, and nobody knows the way there any more.",
    "They meant to move {there} {wrong} km further {opposite}, and then there was no money for it.",
    **_SLOTS,
)
_ASK_BACK = Phrasing(
    "I am at {here}. In which direction and how far, as the crow flies, is {there}? Think step by step and end with one line "
    "of the form `Answer: <number> km <direction>`.",
    "If I stand at {here}, how far is it to {there} in a straight line, and in which direction? Work it out and give a last "
    "line of the form `Answer: <number> km <direction>`.",
    **_SLOTS,
)
_ASK_ALONG = Phrasing(
    "How do I get from {here} to {there} by way of {between}, in this order? Give one leg a line, each of the form "
    "`From A, go <number> km <direction> to B.`",
    "I want to go from {here} by {between} to {there}, in just this order. Describe the way with one line for each leg, of the "
    "form `From A, go <number> km <direction> to B.`",
    **_SLOTS,
)
_ASK_LEG = Phrasing(
    "How do I get from {here} to {there}? Answer with a line of the form `From A, go <number> km <direction> to B.`",
    **_SLOTS,
)


class Leg(NamedTuple):
    """A straight way: so many kilometres in one direction."""

    distance_km: int
    direction: str


@dataclass(frozen=True)
class Town:
    """Places, the legs between each and the next, what is said of them, and which of that one needs."""

    places: tuple[str, ...]
    legs: tuple[Leg, ...]
    statements: tuple[str, ...]
    needed: tuple[int, ...]


def build_town(world: World, places: int, rng: Random, *, in_line: bool) -> Town:
    """So many places, no two on the same spot; `in_line`: the last one lies on an axis through the first."""
    while True:
        legs = tuple(Leg(rng.randint(1, 4), rng.choice(tuple(DIRECTIONS))) for _ in range(places - 1))
        spots = [position_after(legs[:count]) for count in range(places)]
        if len(set(spots)) == places and (not in_line or 0 in spots[-1]):
            break
    named = _name_places(world, places, rng)
    backward = [False] * len(legs)
    corrected = rng.randrange(len(legs)) if len(legs) > 2 else None
    # A leg from a place that the statement before has told the mark of.
    marked = rng.choice([place for place in range(1, len(legs)) if place != corrected]) if len(legs) > 2 else None
    # The legs that are told backward must not cancel out, or repeating the statements would lead to the right place.
    while position_after([leg for leg, back in zip(legs, backward, strict=True) if back]) == (0, 0):
        backward = [rng.random() < 0.5 and place != marked for place in range(len(legs))]
    mark = world.make(rng, "mark of a place", lambda rng: f"{rng.choice(_MARKS[0])} {rng.choice(_MARKS[1])}")
    told: list[str] = []
    needed: set[int] = set()
    late = ""
    for place, leg in enumerate(legs):
        ends = _Ends.of(named[place], named[place + 1], leg, backward=backward[place])
        needed.add(len(told))
        if place == corrected:
            wrong = rng.choice([far for far in range(1, 6) if far != leg.distance_km])
            late = _CORRECTED.say(rng, far=leg.distance_km, wrong=wrong, **ends._asdict())
            needed.remove(len(told))
            told.append(_LEG_TOLD.say(rng, far=wrong, **ends._asdict()))
        elif place == marked:
            told[-1] = f"{told[-1]} {_MARK_TOLD.say(rng, here=ends.here, mark=mark)}"
            needed.add(len(told) - 1)
            told.append(_MARKED_LEG.say(rng, far=leg.distance_km, mark=mark, **ends._asdict()))
        else:
            told.append(_LEG_TOLD.say(rng, far=leg.distance_km, **ends._asdict()))
        if rng.random() < 0.4:
            other = world.make(rng, "place", _name_place)
            told[-1] = f"{told[-1]} {_RUMOUR.say(rng, wrong=rng.randint(1, 9), other=other, **ends._asdict())}"
    if late:
        needed.add(len(told))
        told.append(late)
    return Town(named, legs, tuple(told), tuple(sorted(needed)))


class _Ends(NamedTuple):
    """A leg as it is told: from where to where, in which direction."""

    here: str
    there: str
    direction: str
    opposite: str

    @classmethod
    def of(cls, here: str, there: str, leg: Leg, *, backward: bool) -> _Ends:
        direction, opposite = leg.direction, _OPPOSITE[leg.direction]
        return cls(there, here, opposite, direction) if backward else cls(here, there, direction, opposite)


def _name_places(world: World, count: int, rng: Random) -> tuple[str, ...]:
    """Names that no other test uses; two of them much alike."""
    first = world.make(rng, "place", _name_place)
    start, building = first.split()
    stem = next(stem for stem in sorted(_STEMS, key=len, reverse=True) if start.startswith(stem))
    alike = world.make(rng, "place", lambda rng: f"{stem}{rng.choice(_ENDINGS)} {rng.choice((building, *_BUILDINGS))}")
    names = [first, alike, *(world.make(rng, "place", _name_place) for _ in range(count - 2))]
    return tuple(rng.sample(names, count))


def _name_place(rng: Random) -> str:
    return f"{rng.choice(_STEMS)}{rng.choice(_ENDINGS)} {rng.choice(_BUILDINGS)}"


def _tell(test: BuiltinTest, number: int, rng: Random, town: Town, question: str, expected: str) -> TestExample:
    told = [tell(rng, statement, test.memory_span) for statement in town.statements]
    return test.tell_and_ask(number, told, [question], [expected], needed=[town.needed])


def _format_route(places: Sequence[str], legs: Sequence[tuple[float, str]]) -> str:
    steps = zip(places, places[1:], legs, strict=False)
    return "\n".join(f"From {here}, go {km:g} km {direction} to {there}." for here, there, (km, direction) in steps)


def position_after(legs: Sequence[tuple[float, str]]) -> tuple[float, float]:
    """Where one stands after walking, in kilometres east and north of the start."""
    steps = [(km, DIRECTIONS[direction]) for km, direction in legs]
    return round(sum(km * x for km, (x, _) in steps), 3), round(sum(km * y for km, (_, y) in steps), 3)


# --- reading the town -------------------------------------------------------------------------------------------------


class _TownReader(Reader):
    """Draws a map of everything that is said, the latest statement about two places being the one that counts."""

    def __init__(self) -> None:
        # From one place to another.
        self._legs: dict[tuple[str, str], Leg] = {}
        self._marked: dict[str, str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _MARK_TOLD.read_all(message):
            self._marked[told["mark"]] = told["here"].title()
        for phrasing in (_LEG_TOLD, _MARKED_LEG, _CORRECTED):
            for told in phrasing.read_all(message):
                self._draw(told)
        return None

    def _draw(self, told: Mapping[str, str]) -> None:
        here = told["here"].title() if "here" in told else self._marked.get(told["mark"], "")
        there = told["there"].title()
        direction = told["direction"] if "direction" in told else _OPPOSITE[told["opposite"]]
        self._legs[here, there] = Leg(int(told["far"]), direction)
        self._legs[there, here] = Leg(int(told["far"]), _OPPOSITE[direction])


class _WayReader(_TownReader):
    def answer(self, message: str, now: datetime) -> str | None:
        if asked := _ASK_BACK.read(message):
            return self._measure(asked["here"].title(), asked["there"].title())
        return super().answer(message, now)

    def _measure(self, here: str, there: str) -> str:
        """The straight way between two places that ways connect."""
        spots: dict[str, tuple[float, float]] = {here: (0, 0)}
        reached = [here]
        for place in reached:
            for (start, end), leg in self._legs.items():
                if start == place and end not in spots:
                    east, north = position_after([leg])
                    spots[end] = (spots[place][0] + east, spots[place][1] + north)
                    reached.append(end)
        east, north = spots.get(there, (0, 0))
        if north:
            return f"Answer: {abs(north):g} km {'north' if north > 0 else 'south'}"
        return f"Answer: {abs(east):g} km {'east' if east > 0 else 'west'}"


class _RouteReader(_TownReader):
    def answer(self, message: str, now: datetime) -> str | None:
        if asked := _ASK_ALONG.read(message) or _ASK_LEG.read(message):
            between = asked.get("between", "").replace(" and ", ", ").split(", ")
            stops = [place.title() for place in (asked["here"], *between, asked["there"]) if place]
            return _format_route(stops, [self._legs.get(pair, Leg(0, "north")) for pair in pairwise(stops)])
        return super().answer(message, now)
