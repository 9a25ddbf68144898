"""Who believes what: a film in which things are moved while somebody is out of the room.

Who is in the room sees what happens there, and sees who else sees it; who is elsewhere learns nothing. The thing lies in a
closed container, so coming back tells nothing either. Beliefs are simulated event by event, to the second order: what A
believes, and what A believes that B believes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, permutations
from pathlib import Path
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.exceptions import DatasetError
from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import grade_claim
from themis.memory.scoring.listing import parse_json_field
from themis.memory.scoring.words import fold, shorten
from themis.memory.tests.kind import BuiltinTest, one_of, settle
from themis.memory.tests.telling import name_characters, tell

QUESTION_TYPES = ("any", "world_model", "theory_of_mind")
CONTAINERS = (
    "barrel", "basket", "biscuit tin", "bucket", "cabinet", "chest", "churn", "coal scuttle", "crate", "cupboard",
    "desk", "drawer", "hamper", "hatbox", "ice box", "kettle", "linen press", "locker", "medicine case", "piano stool",
    "rucksack", "safe", "satchel", "sewing box", "sideboard", "suitcase", "tea caddy", "toolbox", "trunk", "tureen",
    "vase", "wardrobe", "wine cask", "wood bin",
)  # fmt: skip
_KINDS_OF_THING = (
    "brooch", "candlestick", "chess queen", "compass", "diary", "flute", "hourglass", "inkwell", "key", "lantern",
    "letter opener", "locket", "medal", "mirror", "music roll", "parcel", "passport", "pistol", "pocket watch", "puppet",
    "ring", "scarf", "seashell", "snuffbox", "spyglass", "stamp album", "telescope", "thimble", "violin bow", "whistle",
)  # fmt: skip
_LOOKS_OF_THING = (
    "antique", "bent", "brass", "broken", "carved", "copper", "dented", "engraved", "faded", "gilded", "green", "heavy",
    "ivory", "jewelled", "little", "painted", "polished", "rusty", "silver", "stolen", "striped", "tiny", "velvet", "worn",
)  # fmt: skip
_ROOMS = (
    "attic", "ballroom", "boathouse", "cellar", "chapel", "conservatory", "dining room", "gun room", "kitchen", "laundry",
    "library", "music room", "nursery", "observatory", "pantry", "parlour", "stable", "studio", "study", "workshop",
)  # fmt: skip
_TITLES = (
    ("Amber", "Crooked", "Distant", "Eleventh", "Forgotten", "Hollow", "Iron", "Last", "Northern", "Paper", "Quiet", "Salt",
     "Scarlet", "Second", "Sleepless", "Sunken", "Velvet", "Wandering", "Winter", "Wrong"),
    ("Accordion", "Balcony", "Caller", "Daughter", "Ferry", "Gardener", "Harvest", "Heiress", "Inspector", "Lodger",
     "Mazurka", "Neighbour", "Passenger", "Regatta", "Signal", "Staircase", "Summer", "Telegram", "Tenant", "Verdict"),
)  # fmt: skip
_SLOTS = {
    "thing": rf"(?:{any_of(_LOOKS_OF_THING)}) (?:{any_of(_KINDS_OF_THING)})",
    "other": rf"(?:{any_of(_LOOKS_OF_THING)}) (?:{any_of(_KINDS_OF_THING)})",
    "container": any_of(CONTAINERS),
    "old": any_of(CONTAINERS),
    "room": any_of(_ROOMS),
    "elsewhere": any_of(_ROOMS),
    **dict.fromkeys(("person", "first", "second", "third"), r"[^\W\d_]+"),
    "title": r"The \w+ \w+",
}

# --- what happens in the film -----------------------------------------------------------------------------------------

_INTRODUCTION = Phrasing(
    "I am watching a film, “{title}”, and will tell you bit by bit what happens in it[ as it comes|]; nobody in it sees what "
    "goes on in a room that they are not in, and all containers are shut.",
    "They are showing “{title}” tonight, so let me keep you posted about it; mind that its people only see what happens in "
    "the room they are in, and that every container in it is closed.",
    "I promised to tell you the plot of “{title}” while I watch: whoever is out of a room learns nothing of what "
    "happens there, and nothing lies about openly, all containers have lids.",
    **_SLOTS,
)
_PUT = Phrasing(
    "{first}, {second} and {third} stand in the {room}, and all of them see that the {thing} is in the {container}.",
    "In the {room}, {first} opens the {container}, shows {second} and {third} the {thing} inside, and shuts it again.",
    "{first}, {second} and {third} meet in the {room}, where {first} shuts the {thing} up in the {container} before the others' "
    "eyes.",
    "The first scene is set in the {room}: {first}, {second} and {third} watch the {thing} being laid into the {container}.",
    "It begins with {first}, {second} and {third} in the {room}, all three looking on as the {thing} is put into the "
    "{container}.",
    **_SLOTS,
)
_MOVE = Phrasing(
    "{person} takes the {thing} out of the {old} and puts it into the {container}.",
    "{person} moves the {thing} to the {container}.",
    "The {thing} goes from the {old} into the {container}[, by {person}'s hand|: {person} has seen to it].",
    "[Without a word|With a quick glance at the door], {person} hides the {thing} in the {container}.",
    "{person} finds that the {old} is no place for the {thing} and gives it a new one, the {container}.",
    "“Not the {old},” says {person}, and the {thing} ends up in the {container}.",
    "The {old} is emptied: {person} lets the {thing} slide into the {container}.",
    "{person} [grabs|snatches] the {thing} and stows it away in the {container}.",
    "Now it is the {container} that holds the {thing}, since {person} [changes|swaps] its hiding place.",
    "{person} [hesitates|looks about], then shuts the {thing} up in the {container} instead of the {old}.",
    "What {person} does next is to carry the {thing} over to the {container} and close the lid on it.",
    **_SLOTS,
)
_LEAVE = Phrasing(
    "{person} leaves for the {elsewhere}.",
    "The door of the {room} falls shut behind {person}.",
    "{person} has had enough of the others and walks out[ of the {room}|].",
    "Somebody calls from the {elsewhere}, and {person} goes to see what it is.",
    "{person} slips away to the {elsewhere} [unhurriedly|with a candle|for some air].",
    "A bell rings, and {person} is wanted in the {elsewhere}[ and goes|] at once.",
    "{person} makes an excuse and is next seen in the {elsewhere}.",
    "Cut: {person} [steps|wanders] out of the {room} and over to the {elsewhere}.",
    "It is {person} who goes, [slamming|quietly closing] the door of the {room}.",
    "{person} must fetch something from the {elsewhere} and is off.",
    **_SLOTS,
)
_RETURN = Phrasing(
    "{person} comes back to the {room}.",
    "The door opens, and {person} is in the {room} again.",
    "{person} returns from the {elsewhere} as if nothing had happened.",
    "Footsteps, and {person} joins the rest in the {room} once more.",
    "{person} is done in the {elsewhere} and walks in again.",
    "Back in the {room}, {person} [sits|settles] down.",
    **_SLOTS,
)
# Nothing of this changes where the thing is, or what anybody believes.
_NOISE = Phrasing(
    "{person} thinks of putting the {thing} into the {container}, but leaves it where it is.",
    "{person} has half a mind to hide the {thing} in the {container} and decides against it.",
    "{person} puts the {other} into the {container}; the {thing} stays where it was.",
    "The {other}, which nobody cares about, is carried to the {container} by {person}.",
    "{person} [hums a tune|yawns|looks out of the window|cannot stand the wallpaper|asks for tea].",
    "{person} wonders aloud whether the {thing} would not be safer in the {container}, and does nothing about it.",
    **_SLOTS,
)
_WHERE_AT_FIRST = Phrasing(
    "In the film “{title}”: where was the {thing} at the beginning?",
    "Going back to “{title}”, where did the {thing} lie at the beginning of the film?",
    "You remember “{title}”: which container was the {thing} in at the very beginning?",
    **_SLOTS,
)
_WHERE_REALLY = Phrasing(
    "In the film “{title}”: where is the {thing} really?",
    "As far as I have told you “{title}”, which container is the {thing} really in by now?",
    "Going back to “{title}”, where would one really find the {thing}?",
    **_SLOTS,
)
_WHERE_FOR = Phrasing(
    "In the film “{title}”: where will {first} look for the {thing}?",
    "You remember “{title}”: if {first} wants the {thing}, where will {first} look first?",
    "Going back to “{title}”, where does {first} believe the {thing} to be?",
    **_SLOTS,
)
_WHERE_FOR_OTHER = Phrasing(
    "In the film “{title}”: where does {first} think that {second} will look for the {thing}?",
    "You remember “{title}”: if you asked {first} where {second} will look for the {thing}, what would {first} say?",
    "Going back to “{title}”, where would {first} expect {second} to look for the {thing}?",
    **_SLOTS,
)
_FORM = 'Answer with JSON of the form {"answer": "<container>"}.'


@dataclass(kw_only=True)
class SallyAnne(BuiltinTest):
    """Theory of mind over a distance.

    Scores: perfect 1, memoryless 0, a guess among the story's containers at most 1/3. The answer comes from a simulation
    of who was present at which event, for beliefs and for beliefs about beliefs. Things that were not moved after all, and
    other things that were, are told as well. `data_location` names a file in the layout of ToMi to take stories from
    instead. A reply without a JSON object with `answer` scores 0, unless it is nothing but the container,
    which is for the judge. About 300 tokens. Interferes with no other test: its
    people live on television, and have names of their own.
    """

    kind: ClassVar[str] = "sallyanne"
    name: ClassVar[str] = "SallyAnne"
    description: ClassVar[str] = "The agent follows a story and must tell where somebody believes a thing to be."
    answers: ClassVar[Sequence[str]] = CONTAINERS

    question_type: str = one_of("any", QUESTION_TYPES)
    data_location: str | None = None

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        if self.data_location is None:
            return super().generate_examples(num_examples)
        self.check_arguments()
        stories = self._sample_file(self.data_location, num_examples)
        return [self._ask_about(number, story) for number, story in enumerate(stories)]

    def make_example(self, number: int, rng: Random) -> TestExample:
        title = self.world.make(rng, "film", lambda rng: f"The {rng.choice(_TITLES[0])} {rng.choice(_TITLES[1])}")
        film = Film(
            rng, name_characters(self.world, rng, 3), [self.world.make(rng, "thing", _name_thing) for _ in range(2)]
        )
        film.shoot(self.question_type)
        statements = [_INTRODUCTION.say(rng, title=title), *film.lines]
        question = f"{film.question.say(rng, title=title, **film.asked)} {_FORM}"
        told = [tell(rng, line, self.memory_span) for line in statements]
        needed = [line + 1 for line in film.needed]
        return self.tell_and_ask(number, told, [question], [film.answer], needed=[needed])

    def _sample_file(self, path: str, wanted: int) -> list[Story]:
        stories = read_stories(path, self.question_type)
        if len(stories) < wanted:
            raise DatasetError(
                f"sallyanne: {path!r} has {len(stories)} stories of type {self.question_type}, {wanted} wanted"
            )
        return self.random("file").sample(stories, wanted)

    def _ask_about(self, number: int, story: Story) -> TestExample:
        introduction = (
            "A film is on television. I will tell you what happens, each time beginning with (On TV). Nobody in it sees "
            "what happens in a room that they are not in, and all containers are closed."
        )
        statements = [introduction, *(f"(On TV) {line}" for line in story.lines)]
        return self.tell_and_ask(number, statements, [f"{story.question} {_FORM}"], [story.answer])

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps({"answer": example.expected_responses[0]})]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = [grade_place(responses[0], expected[0], self.answers)]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    def is_readable(self, example: TestExample) -> bool:
        return self.data_location is None

    @classmethod
    def make_reader(cls) -> Reader:
        return _FilmReader()


def grade_place(reply: str, expected: str, among: Iterable[str] = CONTAINERS) -> Grade:
    """1 if the field `answer` of the JSON object names the expected container and no other.

    Of several objects the last one counts if something is said before it; one that repeats the form that was asked for is
    none.
    """
    answer = _find_answer(reply)
    if answer is None and grade_claim(reply, expected.replace("_", " "), among).score:
        return Grade.failure(f"the right container, but not in the form that was asked for: {shorten(reply)}")
    if answer is None:
        return Grade(0.0, (f"no JSON object with a text as `answer` in: {shorten(reply)}",))
    return grade_claim(answer.replace("_", " "), expected.replace("_", " "), among)


def _find_answer(reply: str) -> str | None:
    objects = [
        (found.start(), found.end(), value)
        for found in islice(_OBJECT.finditer(reply), _MOST_OBJECTS)
        if isinstance(value := parse_json_field(found[0], "answer"), str) and "<" not in value
    ]
    if len({fold(value) for _, _, value in objects}) > 1:
        (_, end, _), (start, _, last) = objects[-2:]
        # Who only lists objects has not chosen one.
        return last if len(reply[end:start].split()) > 1 else " or ".join(value for _, _, value in objects)
    value = objects[0][2] if objects else parse_json_field(reply, "answer")
    return value if isinstance(value, str) else None


_OBJECT = lazy_pattern(r"\{[^{}]{1,2000}\}")
_MOST_OBJECTS = 100
_OBJECT_MARK = lazy_pattern(r"[{}\[\]<>:=]")


def _name_thing(rng: Random) -> str:
    return f"{rng.choice(_LOOKS_OF_THING)} {rng.choice(_KINDS_OF_THING)}"


# --- the simulation ---------------------------------------------------------------------------------------------------


@dataclass
class Beliefs:
    """What is the case, and what everybody takes to be the case, with the line that it was told in."""

    present: list[str]
    place: str = ""
    line: int = 0
    # What the first believes that the second believes; of somebody and himself: what he believes. Container and line.
    held: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    # Who may well think that somebody who is out saw what he himself did not.
    unsure: set[tuple[str, str]] = field(default_factory=set)

    def put(self, container: str, line: int = 0) -> None:
        """The thing is put somewhere, before the eyes of all who are present.

        Whoever sees it come from another place than he thought knows that it was moved behind his back, and not who was there.
        """
        startled = {one for one in self.present if self.place and self.held[one, one][0] != self.place}
        self.unsure |= {(one, other) for one, other in self.held if one in startled}
        self.unsure -= {(one, other) for one in self.present for other in self.present}
        self.place, self.line = container, line
        for one in self.present:
            for other in self.present:
                self.held[one, other] = (container, line)


class Film:
    """Somebody leaves, the thing is moved, perhaps others leave and return; then a question about one of them."""

    def __init__(self, rng: Random, people: Sequence[str], things: Sequence[str]) -> None:
        self._rng = rng
        self._people = list(people)
        self._thing, self._other = things
        self._room, *self._elsewhere = rng.sample(_ROOMS, 3)
        # The thing lies in one of the first four; each of the others is named once at most, beside the point.
        self._containers = rng.sample(CONTAINERS, 7)
        self._beliefs = Beliefs(list(people))
        self._away: dict[str, str] = {}
        # Lines in which a person comes or goes.
        self._walks: dict[str, list[int]] = {person: [] for person in people}
        self.lines: list[str] = []
        self.question = _WHERE_REALLY
        self.asked: dict[str, str] = {}
        self.answer = ""
        self.needed: list[int] = []

    def shoot(self, question_type: str) -> None:
        """Makes the lines, the question and its answer."""
        rng, beliefs = self._rng, self._beliefs
        hiding, spare = self._containers[:4], self._containers[4:]
        first, second, third = self._people
        self._say(_PUT, first=first, second=second, third=third, container=hiding[0])
        beliefs.put(hiding[0], 0)
        moves = hiding[1 : rng.randint(3, 4)]
        # Somebody is out before the last move at the latest, or there would be nothing to be wrong about.
        sure = rng.randrange(len(moves))
        for place, container in enumerate(moves):
            if len(beliefs.present) > 1 and (place == sure or rng.random() < 0.5):
                self._leave()
            if rng.random() < 0.5:
                self._say(_NOISE, person=rng.choice(beliefs.present), container=spare.pop())
            # Nobody who is still wrong about it takes it, as long as there is anybody else.
            knowing = [one for one in beliefs.present if beliefs.held[one, one][0] == beliefs.place]
            self._say(_MOVE, person=rng.choice(knowing or beliefs.present), container=container, old=beliefs.place)
            beliefs.put(container, len(self.lines) - 1)
            if len(beliefs.present) < 3 and rng.random() < 0.4:
                self._return()
        self._ask(question_type)

    def _say(self, phrasing: Phrasing, **values: str) -> None:
        self.lines.append(phrasing.say(self._rng, thing=self._thing, other=self._other, room=self._room, **values))

    def _leave(self) -> None:
        person = self._rng.choice(self._beliefs.present)
        self._beliefs.present.remove(person)
        self._walks[person].append(len(self.lines))
        self._away[person] = self._rng.choice(self._elsewhere)
        self._say(_LEAVE, person=person, elsewhere=self._away[person])

    def _return(self) -> None:
        person = self._rng.choice([person for person in self._people if person not in self._beliefs.present])
        self._beliefs.present.append(person)
        self._walks[person].append(len(self.lines))
        self._say(_RETURN, person=person, elsewhere=self._away[person])

    def _ask(self, question_type: str) -> None:
        kinds = {"world_model": ("beginning", "really"), "theory_of_mind": ("first", "second")}
        kind = self._rng.choice(kinds.get(question_type, ("beginning", "really", "first", "second")))
        first, second = self._choose_pair(kind)
        self.asked = {"thing": self._thing, "first": first, "second": second}
        if kind == "beginning":
            self.question, self.answer, self.needed = _WHERE_AT_FIRST, self._containers[0], [0]
        elif kind == "really":
            self.question, self.answer, self.needed = _WHERE_REALLY, self._beliefs.place, [self._beliefs.line]
        else:
            self.question = _WHERE_FOR if kind == "first" else _WHERE_FOR_OTHER
            second = first if kind == "first" else second
            self.answer, line = self._beliefs.held[first, second]
            walks = {walk for person in (first, second) for walk in self._walks[person] if walk > line}
            self.needed = [line, *sorted(walks)]

    def _choose_pair(self, kind: str) -> tuple[str, str]:
        """Two people; mostly somebody who is wrong, where there is one."""
        pairs = [pair for pair in permutations(self._people, 2) if kind != "second" or pair not in self._beliefs.unsure]
        wrong = [
            (first, second)
            for first, second in pairs
            if self._beliefs.held[first, first if kind == "first" else second][0] != self._beliefs.place
        ]
        return self._rng.choice(wrong if wrong and self._rng.random() < 0.7 else pairs)


class _FilmReader(Reader):
    """Remembers what happened in order. Whoever has not been said to be out is in the room."""

    def __init__(self) -> None:
        # Who comes (True) or goes (False), or which thing comes into which container.
        self._events: list[tuple[str, str | bool]] = []

    def answer(self, message: str, now: datetime) -> str | None:
        if answer := self._reply(message):
            return json.dumps({"answer": answer})
        for told in (*_PUT.read_all(message), *_MOVE.read_all(message)):
            self._events.append((told["thing"], told["container"]))
        for phrasing, comes in ((_LEAVE, False), (_RETURN, True)):
            self._events += [(told["person"].capitalize(), comes) for told in phrasing.read_all(message)]
        return None

    def _reply(self, message: str) -> str | None:
        if asked := _WHERE_AT_FIRST.read(message):
            return next((str(place) for what, place in self._events if what == asked["thing"]), "unknown")
        for phrasing in (_WHERE_REALLY, _WHERE_FOR, _WHERE_FOR_OTHER):
            if asked := phrasing.read(message):
                return self._find(asked["thing"], {asked[who] for who in ("first", "second") if who in asked})
        return None

    def _find(self, thing: str, witnesses: set[str]) -> str:
        """Where the thing was put last before the eyes of all witnesses."""
        absent: set[str] = set()
        place = "unknown"
        for what, event in self._events:
            if what in witnesses:
                absent = absent - {what} if event else absent | {what}
            elif what == thing and not absent:
                place = str(event)
        return place


# --- stories of others ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Story:
    """A story of a file, line by line, with its question and answer."""

    lines: tuple[str, ...]
    question: str
    answer: str


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
