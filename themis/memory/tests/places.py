"""A town whose places are told one by one, each relative to the one before; ways through it must be worked out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from themis.core.json_repair import parse_json
from themis.memory.actions import Consult, Grade, Grading, Judgement
from themis.memory.examples import TestExample
from themis.memory.scoring.numbers import count_directions, read_ways
from themis.memory.scoring.words import find_phrases, shorten
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, whole_number

PLACES = (
    "aquarium", "bakery", "brewery", "cathedral", "cinema", "dairy", "foundry", "greenhouse", "lighthouse", "monastery",
    "observatory", "orchard", "pharmacy", "quarry", "sawmill", "stadium", "theatre", "windmill",
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
    with another and lies straight north, east, south or west of the first. A reply that ends as asked, or gives one single
    way, is settled without a judge. About 25 tokens per place. Interferes with locations_directions, which is set in
    another town.
    """

    kind: ClassVar[str] = "locations"
    name: ClassVar[str] = "Locations"
    description: ClassVar[str] = "The agent is told where places lie and must find the way from the last to the first."
    reset_message: ClassVar[str] = "We are leaving this town: please forget where its places are."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"locations_directions"})
    answers: ClassVar[Sequence[str]] = tuple(f"{km} km {direction}" for km in range(1, 20) for direction in DIRECTIONS)

    known_locations: int = whole_number(5, least=2, most=len(PLACES))

    def make_example(self, number: int, rng: Random) -> TestExample:
        town = build_town(self.known_locations, rng, in_line=True)
        east, north = position_after(town.legs)
        if north:
            expected = f"{abs(north)} km {'South' if north > 0 else 'North'}"
        else:
            expected = f"{abs(east)} km {'West' if east > 0 else 'East'}"
        question = (
            f"I am at the {town.places[-1]}. In which direction and how far, as the crow flies, is the {town.places[0]}? "
            "Think step by step and end with one line of the form `Answer: <number> km <direction>`."
        )
        return self.tell_and_ask(number, town.statements, [question], [expected])

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [f"Answer: {example.expected_responses[0]}"]

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
    ways = read_ways(_CONCLUSION.split(reply)[-1][:200]) or read_ways(reply)
    if len(set(ways)) == 1:
        return Grade.when(ways[0] == wanted, f"expected {expected}, got {ways[0][0]:g} km {ways[0][1]}")
    if wanted not in ways:
        return Grade(0.0, (f"expected {expected}, which is not in: {shorten(reply)}",))
    return None


_CONCLUSION = re.compile(r"\b(?:answer|net|result|total|overall|therefore|thus|so)\b", re.IGNORECASE)


# --- along the places -------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class LocationsDirections(BuiltinTest):
    """Turning statements into directions.

    Scores: perfect 1, memoryless 0; repeating the statements scores 0, since at least one is told from its other end.
    Right is whatever leads from the first place to the last, by the sum of its legs. A reply whose legs can be read is
    settled without a judge; the judge only rewrites one whose legs cannot be. About 25 tokens per place. Interferes with
    locations, which is set in another town.
    """

    kind: ClassVar[str] = "locations_directions"
    name: ClassVar[str] = "Locations Directions"
    description: ClassVar[str] = "The agent is told where places lie and must describe the way along them."
    reset_message: ClassVar[str] = "We are leaving this town: please forget where its places are."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"locations"})
    answers: ClassVar[Sequence[str]] = tuple(f"{km} km {direction}" for km in range(1, 5) for direction in DIRECTIONS)

    known_locations: int = whole_number(5, least=2, most=len(PLACES))

    def make_example(self, number: int, rng: Random) -> TestExample:
        town = build_town(self.known_locations, rng, in_line=False)
        question = (
            f"How do I get from the {town.places[0]} to the {town.places[-1]}, passing the places that I told you of in "
            "that order? Give one leg a line, each of the form `From A, go <number> km <direction> to B.`"
        )
        legs = zip(town.places, town.places[1:], town.legs, strict=False)
        route = [f"From {here}, go {leg.distance_km} km {leg.direction} to {there}." for here, there, leg in legs]
        return self.tell_and_ask(number, town.statements, [question], ["\n".join(route)])

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grading:
        return grade_route(responses[0], expected[0]) or _judge_route(responses[0], expected[0])


def grade_route(reply: str, expected: str) -> Grade | None:
    """The verdict where every leg of the reply can be read; None where directions are given in some other way."""
    wanted = read_ways(expected)
    as_asked = read_ways("\n".join(_LEG.findall(reply)))
    ways = as_asked if len(as_asked) == len(wanted) else read_ways(reply)
    if ways and position_after(ways) == position_after(wanted):
        return Grade(1.0, (f"its {len(ways)} legs lead to the right place",))
    if ways and len(ways) >= min(count_directions(reply), len(wanted)):
        return Grade(0.0, (f"its {len(ways)} legs lead {_format_end(ways)}, not {_format_end(wanted)}",))
    if not find_phrases(reply, DIRECTIONS) or not any(character.isdigit() for character in reply):
        return Grade(0.0, (f"gives no distances with directions: {shorten(reply)}",))
    return None


# A line of the form that was asked for.
_LEG = re.compile(r"^\W*(?:\d{1,2}\W+)?(from .{1,200})$", re.IGNORECASE | re.MULTILINE)


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

_FIRST = "The {place} is in the centre of the town."
_FORWARD = (
    "The {there} is {distance} km {direction} of the {here}.",
    "Go {distance} km {direction} from the {here} and you reach the {there}.",
    "{distance} km to the {direction} of the {here} lies the {there}.",
)
# Told from the other end: whoever only repeats the statements has not understood the way.
_BACKWARD = (
    "The {here} is {distance} km {direction} of the {there}.",
    "Go {distance} km {direction} from the {there} and you reach the {here}.",
    "{distance} km to the {direction} of the {there} lies the {here}.",
)


class Leg(NamedTuple):
    """A straight way: so many kilometres in one direction."""

    distance_km: int
    direction: str


@dataclass(frozen=True)
class Town:
    places: tuple[str, ...]
    legs: tuple[Leg, ...]
    statements: tuple[str, ...]


def build_town(places: int, rng: Random, *, in_line: bool) -> Town:
    """So many places, no two on the same spot; `in_line`: the last one lies on an axis through the first."""
    while True:
        legs = tuple(Leg(rng.randint(1, 4), rng.choice(tuple(DIRECTIONS))) for _ in range(places - 1))
        spots = [position_after(legs[:count]) for count in range(places)]
        if len(set(spots)) == places and (not in_line or 0 in spots[-1]):
            break
    named = tuple(rng.sample(PLACES, places))
    backward = [False] * len(legs)
    # The legs that are told backward must not cancel out, or repeating the statements would lead to the right place.
    while position_after([leg for leg, back in zip(legs, backward, strict=True) if back]) == (0, 0):
        backward = [rng.random() < 0.5 for _ in legs]
    told = [
        _describe_leg(rng, here, there, leg, back)
        for here, there, leg, back in zip(named, named[1:], legs, backward, strict=False)
    ]
    return Town(named, legs, (_FIRST.format(place=named[0]), *told))


def position_after(legs: Sequence[tuple[float, str]]) -> tuple[float, float]:
    """Where one stands after walking, in kilometres east and north of the start."""
    steps = [(km, DIRECTIONS[direction]) for km, direction in legs]
    return round(sum(km * x for km, (x, _) in steps), 3), round(sum(km * y for km, (_, y) in steps), 3)


def _describe_leg(rng: Random, here: str, there: str, leg: Leg, backward: bool) -> str:
    direction = _OPPOSITE[leg.direction] if backward else leg.direction
    sentence = rng.choice(_BACKWARD if backward else _FORWARD)
    return sentence.format(here=here, there=there, distance=leg.distance_km, direction=direction)
