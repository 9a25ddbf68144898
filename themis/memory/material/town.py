"""A town whose places are told one by one, each relative to the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from themis.memory.material.words import DIRECTIONS, OPPOSITE, PLACES

__all__ = ["Leg", "Town", "build_town", "position_after"]

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


@dataclass(frozen=True)
class Leg:
    """A straight way: so many kilometres in one direction."""

    distance_km: int
    direction: str


@dataclass(frozen=True)
class Town:
    places: tuple[str, ...]
    legs: tuple[Leg, ...]
    statements: tuple[str, ...]


def build_town(places: int, chance: Random, *, in_line: bool) -> Town:
    """So many places, no two on the same spot; `in_line`: the last one lies on an axis through the first."""
    while True:
        legs = tuple(Leg(chance.randint(1, 4), chance.choice(tuple(DIRECTIONS))) for _ in range(places - 1))
        spots = [position_after(legs[:count]) for count in range(places)]
        if len(set(spots)) == places and (not in_line or 0 in spots[-1]):
            break
    named = tuple(chance.sample(PLACES, places))
    backward = [False] * len(legs)
    # The legs that are told backward must not cancel out, or repeating the statements would lead to the right place.
    while position_after([leg for leg, back in zip(legs, backward, strict=True) if back]) == (0, 0):
        backward = [chance.random() < 0.5 for _ in legs]
    told = [
        _told(chance, here, there, leg, back)
        for here, there, leg, back in zip(named, named[1:], legs, backward, strict=False)
    ]
    return Town(named, legs, (_FIRST.format(place=named[0]), *told))


def position_after(legs: Sequence[Leg]) -> tuple[int, int]:
    """Where one stands after walking, in kilometres east and north of the start."""
    steps = [(leg.distance_km, DIRECTIONS[leg.direction]) for leg in legs]
    return sum(length * x for length, (x, _) in steps), sum(length * y for length, (_, y) in steps)


def _told(chance: Random, here: str, there: str, leg: Leg, backward: bool) -> str:
    direction = OPPOSITE[leg.direction] if backward else leg.direction
    sentence = chance.choice(_BACKWARD if backward else _FORWARD)
    return sentence.format(here=here, there=there, distance=leg.distance_km, direction=direction)
