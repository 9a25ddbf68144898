"""Places are told one by one; the way along them from the first to the last must be described."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.core.json_repair import parse_json
from themis.memory.actions import Action, Consult, Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.town import Town, build_town
from themis.memory.material.words import DIRECTIONS, PLACES
from themis.memory.scoring import directions_named, mentioned, read_ways, shortened
from themis.memory.tests.arguments import require_number

__all__ = ["LocationsDirections", "settle_route"]

Ways = list[tuple[float, str]]
# A line of the form that was asked for.
_LEG = re.compile(r"^\W*(?:\d{1,2}\W+)?(from .{1,200})$", re.IGNORECASE | re.MULTILINE)


@dataclass(kw_only=True)
class LocationsDirections(DatasetInterface):
    """Turning statements into directions.

    Scores: perfect 1, memoryless 0; repeating the statements scores 0, since at least one is told from its other end.
    Right is whatever leads from the first place to the last, by the sum of its legs. A reply whose legs can be read is
    settled without a judge; the judge only rewrites one whose legs cannot be. About 25 tokens per place. Interferes with
    locations, which is set in another town.
    """

    name: ClassVar[str] = "Locations Directions"
    description: ClassVar[str] = "The agent is told where places lie and must describe the way along them."
    reset_message: ClassVar[str] = "We are leaving this town: please forget where its places are."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"locations"})

    known_locations: int = 5

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("locations_directions", "known_locations", self.known_locations, least=2, most=len(PLACES))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        town = build_town(self.known_locations, self.random(number), in_line=False)
        question = (
            f"How do I get from the {town.places[0]} to the {town.places[-1]}, passing the places that I told you of in "
            "that order? Give one leg a line, each of the form `From A, go <number> km <direction> to B.`"
        )
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*town.statements, question],
            expected_responses=[_route(town)],
        )

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Any
    ) -> Grade | Generator[Action, Any, Grade]:
        return settle_route(responses[0], expected[0]) or _ask_judge(responses[0], expected[0])


def _route(town: Town) -> str:
    legs = zip(town.places, town.places[1:], town.legs, strict=False)
    return "\n".join(f"From {here}, go {leg.distance_km} km {leg.direction} to {there}." for here, there, leg in legs)


def settle_route(reply: str, expected: str) -> Grade | None:
    """The verdict where every leg of the reply can be read; None where directions are given in some other way."""
    wanted = read_ways(expected)
    as_asked = read_ways("\n".join(_LEG.findall(reply)))
    ways = as_asked if len(as_asked) == len(wanted) else read_ways(reply)
    if ways and _end(ways) == _end(wanted):
        return Grade(1.0, (f"its {len(ways)} legs lead to the right place",))
    if ways and len(ways) >= min(directions_named(reply), len(wanted)):
        return Grade(0.0, (f"its {len(ways)} legs lead {_shown(ways)}, not {_shown(wanted)}",))
    if not mentioned(reply, DIRECTIONS) or not any(character.isdigit() for character in reply):
        return Grade(0.0, (f"gives no distances with directions: {shortened(reply)}",))
    return None


def _ask_judge(reply: str, expected: str) -> Generator[Action, Any, Grade]:
    ruling = yield Consult(
        f"Here are directions that somebody gave:\n{reply}\n\nRewrite them as a JSON list with one object per leg, in "
        'order, each of the form {"kilometers": 2, "direction": "east"}. Use north, east, south and west only. '
        "Leave out what is not there; do not correct anything. Answer with the list only.",
        parse=_parse_legs,
        purpose="read the legs of these directions",
    )
    if ruling.failed:
        return Grade.failure(f"directions that only a judge (--judge) can read: {ruling.failure}")
    right = bool(ruling.value) and _end(ruling.value) == _end(read_ways(expected))
    return Grade.when(right, f"as read by the judge its legs lead {_shown(ruling.value)}")


def _parse_legs(text: str) -> Ways:
    legs = parse_json(text)
    if not isinstance(legs, list) or not all(isinstance(leg, dict) for leg in legs):
        raise ValueError(f"expected a JSON list of legs, got {text[:80]!r}")
    ways = [(float(leg["kilometers"]), str(leg["direction"]).lower()) for leg in legs]
    if not all(direction in DIRECTIONS and 0 <= km < 10_000 for km, direction in ways):
        raise ValueError(f"a leg has no distance or direction that exists: {text[:80]!r}")
    return ways


def _end(ways: Ways) -> tuple[float, float]:
    steps = [(km, DIRECTIONS[direction]) for km, direction in ways]
    return round(sum(km * x for km, (x, _) in steps), 3), round(sum(km * y for km, (_, y) in steps), 3)


def _shown(ways: Ways) -> str:
    east, north = _end(ways)
    return f"{east:g} km east and {north:g} km north"
