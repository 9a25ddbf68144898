"""Names that tests make up for people and clubs: so many that a conversation never runs out of them."""

from __future__ import annotations

from random import Random

from themis.memory.phrasing import any_of
from themis.memory.tests.word_lists import FIRST_NAMES, SURNAMES, TOWNS
from themis.memory.world import World

CLUBS = (
    "archers", "beekeepers", "bell ringers", "bookbinders", "botanists", "campanologists", "chess players", "cyclists",
    "fiddlers", "foragers", "gardeners", "glassblowers", "kite flyers", "lacemakers", "landscape painters", "morris dancers",
    "philatelists", "potters", "puppeteers", "quilters", "ramblers", "rowers", "skaters", "stargazers", "storytellers",
    "weavers",
)  # fmt: skip
# What a slot of a phrasing holds.
CLUB = rf"[^\W\d_]+ (?:{any_of(CLUBS)})"
PERSON = r"[^\W\d_]+ [^\W\d_]+"


def make_person(world: World, rng: Random) -> str:
    """Somebody with a first name and a surname whom nobody else speaks of."""
    return world.make(rng, "made-up person", lambda rng: f"{rng.choice(FIRST_NAMES)} {rng.choice(SURNAMES)}")


def make_namesake(world: World, rng: Random, person: str) -> str:
    """Somebody else with the same first name."""
    return world.make(rng, "made-up person", lambda rng: f"{person.split()[0]} {rng.choice(SURNAMES)}")


def make_club(world: World, rng: Random) -> str:
    """A club that nobody else speaks of: `Dalwick ramblers`."""
    return world.make(rng, "club", lambda rng: f"{rng.choice(TOWNS)} {rng.choice(CLUBS)}")


def make_rival_club(world: World, rng: Random, club: str) -> str:
    """Another club whose name is easily taken for this one: of the same town, or of one that begins alike."""
    town, _, kind = club.partition(" ")
    alike = [other for other in TOWNS if other[:3] == town[:3] and other != town]

    def make(rng: Random) -> str:
        return f"{rng.choice(alike)} {kind}" if alike and rng.random() < 0.5 else f"{town} {rng.choice(CLUBS)}"

    return world.make(rng, "club", make)
