"""Stories of people who see, or do not see, a thing being moved, and what each of them must then believe.

Who is in the room sees what happens there, and sees who else sees it; who is elsewhere learns nothing. The thing lies in
a closed container, so coming back tells nothing either. Beliefs are simulated event by event, to the second order: what A
believes, and what A believes that B believes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from random import Random

from themis.exceptions import DatasetError
from themis.memory.material.names import STORY_NAMES

__all__ = ["CONTAINERS", "QUESTION_TYPES", "Story", "World", "read_stories", "tell_story"]

QUESTION_TYPES = ("any", "world_model", "theory_of_mind")
CONTAINERS = (
    "barrel", "basket", "biscuit tin", "bucket", "cabinet", "chest", "crate", "drawer", "hamper", "locker", "rucksack",
    "satchel", "sideboard", "suitcase", "trunk", "wardrobe",
)  # fmt: skip
_THINGS = (
    "compass", "flute", "hourglass", "lantern", "medal", "parcel", "passport", "pocket watch", "puppet", "scarf",
    "seashell", "telescope", "violin bow", "walking stick",
)  # fmt: skip
_ROOMS = ("attic", "ballroom", "conservatory", "laundry", "library", "pantry", "studio", "workshop")
_NOISE = (
    "{person} hums a tune.",
    "{person} likes the smell of rain.",
    "{person} cannot stand the wallpaper.",
    "{person} looks out of the window.",
)


@dataclass(frozen=True)
class Story:
    lines: tuple[str, ...]
    question: str
    answer: str


@dataclass
class World:
    """What is the case, and what everybody takes to be the case."""

    place: str
    present: list[str]
    belief: dict[str, str] = field(default_factory=dict)
    # What the first believes that the second believes.
    belief_about: dict[tuple[str, str], str] = field(default_factory=dict)

    def put(self, container: str) -> None:
        """The thing is put somewhere, before the eyes of all who are present."""
        self.place = container
        for person in self.present:
            self.belief[person] = container
        for pair in permutations(self.present, 2):
            self.belief_about[pair] = container


def tell_story(chance: Random, question_type: str) -> Story:
    """Somebody leaves, the thing is moved, perhaps others leave and return; then a question about one of them."""
    first, second, third = chance.sample(STORY_NAMES, 3)
    room, elsewhere = chance.sample(_ROOMS, 2)
    thing = chance.choice(_THINGS)
    containers = chance.sample(CONTAINERS, 4)
    world = World(containers[0], [first, second, third])
    world.put(containers[0])
    lines = [
        f"{first}, {second} and {third} are in the {room}.",
        f"All three see that the {thing} is in the {containers[0]}.",
    ]
    for container in containers[1 : chance.randint(3, 4)]:
        if len(world.present) > 1 and chance.random() < 0.7:
            lines.append(_leave(world, chance, room, elsewhere))
        if chance.random() < 0.4:
            lines.append(chance.choice(_NOISE).format(person=chance.choice((first, second, third))))
        mover = chance.choice(world.present)
        lines.append(f"{mover} moves the {thing} to the {container}.")
        world.put(container)
        if len(world.present) < 3 and chance.random() < 0.3:
            lines.append(_return(world, chance, (first, second, third), room))
    question, answer = _ask(world, chance, question_type, thing, containers[0], (first, second, third))
    return Story(tuple(lines), question, answer)


def _leave(world: World, chance: Random, room: str, elsewhere: str) -> str:
    person = chance.choice(world.present)
    world.present.remove(person)
    return f"{person} leaves the {room} and goes to the {elsewhere}."


def _return(world: World, chance: Random, people: tuple[str, ...], room: str) -> str:
    person = chance.choice([person for person in people if person not in world.present])
    world.present.append(person)
    return f"{person} comes back to the {room}."


def _ask(
    world: World, chance: Random, question_type: str, thing: str, beginning: str, people: tuple[str, ...]
) -> tuple[str, str]:
    kinds = {"world_model": ("beginning", "really"), "theory_of_mind": ("first", "second")}
    kind = chance.choice(kinds.get(question_type, ("beginning", "really", "first", "second")))
    person, other = chance.sample(people, 2)
    if kind == "beginning":
        return f"Where was the {thing} at the beginning?", beginning
    if kind == "really":
        return f"Where is the {thing} really?", world.place
    if kind == "first":
        return f"Where will {person} look for the {thing}?", world.belief[person]
    question = f"Where does {person} think that {other} will look for the {thing}?"
    return question, world.belief_about[person, other]


def read_stories(path: str, question_type: str) -> list[Story]:
    """Stories from a file in the layout of ToMi: numbered lines, the last one a question, a tab and the answer."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"sallyanne: data_location {path!r} cannot be read: {error}") from error
    stories, lines = [], []
    for number, line in enumerate(filter(str.strip, text.splitlines()), start=1):
        content = line.strip().partition(" ")[2]
        question, tab, rest = content.partition("\t")
        if not tab:
            lines.append(content)
            continue
        answer = rest.partition("\t")[0].strip().replace("_", " ")
        if not question or not answer:
            raise DatasetError(f"sallyanne: line {number} of {path!r} has a tab but no question with an answer")
        of_world = "really" in question or "beginning" in question
        if question_type == "any" or of_world == (question_type == "world_model"):
            stories.append(Story(tuple(lines), question, answer))
        lines = []
    return stories
