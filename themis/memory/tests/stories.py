"""Stories to be followed: who believes what, how a tale goes on, what coded messages mean together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from random import Random
from typing import ClassVar, TypedDict

from themis.exceptions import DatasetError
from themis.memory.actions import Grade, Wait
from themis.memory.examples import TestExample
from themis.memory.scoring.claims import find_claims, grade_claim
from themis.memory.scoring.lists import parse_json_field
from themis.memory.scoring.numbers import parse_number, remove_non_answers
from themis.memory.scoring.words import find_phrases, fold, shorten
from themis.memory.tests.kind import BuiltinTest, one_of, whole_number
from themis.memory.tests.word_lists import STORY_NAMES, SURNAMES

# --- what people believe ----------------------------------------------------------------------------------------------
#
# Who is in the room sees what happens there, and sees who else sees it; who is elsewhere learns nothing. The thing lies in a
# closed container, so coming back tells nothing either. Beliefs are simulated event by event, to the second order: what A
# believes, and what A believes that B believes.

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
_INTRODUCTION = (
    "A film is on television. I will tell you what happens, each time beginning with (On TV). Nobody in it sees what "
    "happens in a room that they are not in, and all containers are closed."
)


@dataclass(kw_only=True)
class SallyAnne(BuiltinTest):
    """Theory of mind over a distance.

    Scores: perfect 1, memoryless 0, a guess among the story's containers at most 1/3. The answer comes from a simulation
    of who was present at which event, for beliefs and for beliefs about beliefs. `data_location` names a file in the
    layout of ToMi to take stories from instead. A reply without a JSON object with `answer` scores 0. About 200 tokens.
    Interferes with no other test: its people live on television.
    """

    kind: ClassVar[str] = "sallyanne"
    name: ClassVar[str] = "SallyAnne"
    description: ClassVar[str] = "The agent follows a story and must tell where somebody believes a thing to be."
    answers: ClassVar[Sequence[str]] = CONTAINERS

    question_type: str = one_of("any", QUESTION_TYPES)
    data_location: str | None = None

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        self.check_arguments()
        if self.data_location is None:
            stories = [tell_story(self.random(number), self.question_type) for number in range(num_examples)]
        else:
            stories = self._sample_file(self.data_location, num_examples)
        return [self._ask_about(number, story) for number, story in enumerate(stories)]

    def _sample_file(self, path: str, wanted: int) -> list[Story]:
        stories = read_stories(path, self.question_type)
        if len(stories) < wanted:
            raise DatasetError(
                f"sallyanne: {path!r} has {len(stories)} stories of type {self.question_type}, {wanted} wanted"
            )
        return self.random("file").sample(stories, wanted)

    def _ask_about(self, number: int, story: Story) -> TestExample:
        statements = [_INTRODUCTION, *(f"(On TV) {line}" for line in story.lines)]
        question = f'{story.question} Answer with JSON of the form {{"answer": "<container>"}}.'
        return self.tell_and_ask(number, statements, [question], [story.answer])

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps({"answer": example.expected_responses[0]})]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_place(responses[0], expected[0])


def grade_place(reply: str, expected: str) -> Grade:
    """1 if the field `answer` of the JSON object names the expected container and no other."""
    answer = parse_json_field(reply, "answer")
    if not isinstance(answer, str):
        return Grade(0.0, (f"no JSON object with a text as `answer` in: {shorten(reply)}",))
    return grade_claim(answer.replace("_", " "), expected.replace("_", " "), CONTAINERS)


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


def tell_story(rng: Random, question_type: str) -> Story:
    """Somebody leaves, the thing is moved, perhaps others leave and return; then a question about one of them."""
    first, second, third = rng.sample(STORY_NAMES, 3)
    room, elsewhere = rng.sample(_ROOMS, 2)
    thing = rng.choice(_THINGS)
    containers = rng.sample(CONTAINERS, 4)
    world = World(containers[0], [first, second, third])
    world.put(containers[0])
    lines = [
        f"{first}, {second} and {third} are in the {room}.",
        f"All three see that the {thing} is in the {containers[0]}.",
    ]
    for container in containers[1 : rng.randint(3, 4)]:
        if len(world.present) > 1 and rng.random() < 0.7:
            lines.append(_leave(world, rng, room, elsewhere))
        if rng.random() < 0.4:
            lines.append(rng.choice(_NOISE).format(person=rng.choice((first, second, third))))
        mover = rng.choice(world.present)
        lines.append(f"{mover} moves the {thing} to the {container}.")
        world.put(container)
        if len(world.present) < 3 and rng.random() < 0.3:
            lines.append(_return(world, rng, (first, second, third), room))
    question, answer = _pose_question(world, rng, question_type, thing, containers[0], (first, second, third))
    return Story(tuple(lines), question, answer)


def _leave(world: World, rng: Random, room: str, elsewhere: str) -> str:
    person = rng.choice(world.present)
    world.present.remove(person)
    return f"{person} leaves the {room} and goes to the {elsewhere}."


def _return(world: World, rng: Random, people: tuple[str, ...], room: str) -> str:
    person = rng.choice([person for person in people if person not in world.present])
    world.present.append(person)
    return f"{person} comes back to the {room}."


def _pose_question(
    world: World, rng: Random, question_type: str, thing: str, beginning: str, people: tuple[str, ...]
) -> tuple[str, str]:
    kinds = {"world_model": ("beginning", "really"), "theory_of_mind": ("first", "second")}
    kind = rng.choice(kinds.get(question_type, ("beginning", "really", "first", "second")))
    person, other = rng.sample(people, 2)
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


# --- how a tale goes on -----------------------------------------------------------------------------------------------
#
# A journey has four circumstances: who comes along, how they travel, what they carry, where they go. Each chapter changes
# one of them. The true opening of the next chapter has all four right; every other opening has exactly one wrong, if
# possible a value that was right in an earlier chapter.

OPTIONS = 6
SPLITS = ("tale", "goodai", "pg19", "ao3", "all")
# Samples of the public file that can be solved from their context: the ones that published results are about.
_GOODAI_SAMPLES = ("12653258_1", "47583370_7", "90051444_0")
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
# English prose has about four characters to a token; three leave room for other tokenizers.
_CHARACTERS_PER_TOKEN = 3
_OPTION = re.compile(
    r"\b(?:option|answer|number|choice|it's|it is)\b\W*(?:is\W+)?(?:option\W+|number\W+)?(\d+)\b", re.IGNORECASE
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_ORDINAL = re.compile(rf"\b({'|'.join(_ORDINALS)})(?= (?:option|one|opening|beginning)\b|\W{{0,5}}\Z)")


@dataclass(kw_only=True)
class ChapterBreak(BuiltinTest):
    """Understanding a long text as a whole.

    Scores: perfect 1, memoryless 0, a guess 1/6. By default a tale of so many `chapters` is made, in which each wrong
    continuation contradicts one circumstance that was told. `split` pg19, ao3, all or goodai takes samples from the public
    ChapterBreak file at `data_location` (JSON, decompressed). Runs without interruption. About 150 tokens per chapter and
    500 for the options; public samples about 9,000. Interferes with no other test.
    """

    kind: ClassVar[str] = "chapterbreak"
    name: ClassVar[str] = "ChapterBreak"
    description: ClassVar[str] = "The agent reads a long text and must recognise how it goes on."
    reset_message: ClassVar[str] = "We have put the book away: please forget its text and the options."
    answers: ClassVar[Sequence[str]] = tuple(f"Option {number}" for number in range(1, OPTIONS + 1))

    split: str = one_of("tale", SPLITS)
    chapters: int = whole_number(5, least=2)
    data_location: str | None = None

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return super().generate_examples(num_examples) if self.split == "tale" else self._sample_file(num_examples)

    def make_example(self, number: int, rng: Random) -> TestExample:
        tale = tell_tale(self.chapters, rng)
        return self._read_out(str(number), "\n\n".join(tale.chapters), tale.openings, tale.answer)

    def _sample_file(self, wanted: int) -> list[TestExample]:
        self.check_arguments()
        samples = read_samples(self.data_location, self.split)
        if len(samples) < wanted:
            raise DatasetError(f"chapterbreak: {len(samples)} samples in split {self.split}, {wanted} wanted")
        rng = self.random("file")
        examples = []
        for sample_id in rng.sample(sorted(samples), wanted):
            sample = samples[sample_id]
            openings, answer = list(sample["negs"])[: OPTIONS - 1], rng.randrange(OPTIONS)
            openings.insert(answer, sample["pos"])
            examples.append(self._read_out(sample_id, sample["ctx"], openings, answer + 1))
        return examples

    def _read_out(self, example_id: str, text: str, openings: Sequence[str], answer: int) -> TestExample:
        size = max(1, self.max_message_size - 20) * _CHARACTERS_PER_TOKEN
        script = [
            "I am going to read you a book, page by page. Later you will have to tell how it goes on.",
            *split_pages(text, size),
            "That is how far we have read. Now come the options for the beginning of the next chapter.",
            *(
                page
                for number, text in enumerate(openings, 1)
                for page in split_pages(f"Option {number}:\n{text}", size)
            ),
            "Which of the options is the true beginning of the next chapter? Answer with the number of the option only.",
        ]
        waits = [Wait() for _ in script]
        return TestExample(
            dataset=self, example_id=example_id, script=script, waits=waits, expected_responses=[str(answer)]
        )

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_option(responses[-1], expected[0])


def grade_option(reply: str, expected: str) -> Grade:
    """1 if the number that the reply settles on, or the only one that it calls an option, is the expected one."""
    text = _ORDINAL.sub(lambda ordinal: str(_ORDINALS.index(ordinal[1]) + 1), fold(reply))
    chosen = parse_number(text)
    if chosen is None:
        called = {float(number) for number in _OPTION.findall(remove_non_answers(text)) if len(number) < 10}
        chosen = called.pop() if len(called) == 1 else None
    if chosen is None:
        return Grade(0.0, (f"expected option {expected}; no single number in: {shorten(reply)}",))
    return Grade.when(chosen == float(expected), f"expected option {expected}, got {chosen:g}")


def split_pages(text: str, size: int) -> list[str]:
    """The text in parts of at most so many characters, cut between sentences where that is possible; nothing is lost."""
    cut = []
    while len(text) > size:
        end = max(text.rfind(mark, 0, size) + len(mark) for mark in (". ", "\n", "! ", "? "))
        end = end if end > size // 2 else size
        cut.append(text[:end])
        text = text[end:]
    return [*cut, text]


class Sample(TypedDict):
    """A text, its true continuation, and others, as the public ChapterBreak file names them."""

    ctx: str
    pos: str
    negs: list[str]


def read_samples(path: str | None, split: str) -> dict[str, Sample]:
    """The samples of a split with enough wrong continuations, by `<book>_<index>`."""
    if path is None:
        raise DatasetError(f"chapterbreak: split {split!r} needs data_location, the public file; or say split: tale")
    try:
        content = Path(path).read_bytes()
        if content.startswith(_ZSTANDARD):
            raise DatasetError(f"chapterbreak: {path!r} is compressed; decompress it first: zstd -d {path!r}")
        books = json.loads(content)
        wanted = {
            f"{book}_{index}": sample
            for part in (("pg19", "ao3") if split in ("all", "goodai") else (split,))
            for book, samples in books[part].items()
            for index, sample in enumerate(samples)
            if len(sample["negs"]) >= OPTIONS - 1 and sample["ctx"] and sample["pos"]
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"chapterbreak: {path!r} cannot be read as ChapterBreak data: {error!r}") from error
    return {name: wanted[name] for name in _GOODAI_SAMPLES if name in wanted} if split == "goodai" else wanted


CIRCUMSTANCES = {
    "companion": (
        "an old ferryman", "a runaway apprentice", "a deaf cartographer", "a travelling surgeon", "a retired juggler",
        "a shepherd girl", "a one-eyed trumpeter", "a novice nun", "a disgraced judge",
    ),
    "transport": (
        "on foot", "in a mule cart", "on a river barge", "on skis", "in a sledge drawn by dogs", "on two grey ponies",
        "in a leaking rowing boat", "in the mail coach", "on a raft of barrels",
    ),
    "burden": (
        "a sealed copper box", "a cage with a raven", "a roll of forbidden maps", "a bell without a clapper",
        "a sack of seed corn", "a portrait in oils", "a jar of quicksilver", "a broken crown", "a letter for the queen",
    ),
    "destination": (
        "the salt mines", "the drowned abbey", "the winter fair", "the glass harbour", "the hermit's tower",
        "the border fort", "the valley of mills", "the isle of lamps", "the old capital",
    ),
}  # fmt: skip
_CHANGES = {
    "companion": "That night {old} turned back without a farewell, and in the morning {new} asked to come along instead.",
    "transport": "They had travelled {old} so far, but the road ended there; from then on they went {new}.",
    "burden": "At the crossing {hero} traded {old} for {new}, and would not say why.",
    "destination": "A message came: it was useless to go to {old}. They were expected at {new}.",
}
_SCENES = (
    "The wind had turned, and the smoke of the last farms lay flat over the fields.",
    "Nobody spoke for an hour; there was only the creak of leather and the crows.",
    "A milestone leaned by the wayside, its letters eaten by moss.",
    "They ate what was left of the bread and shook the crumbs out for the sparrows.",
    "Far below, a mill turned without any sound reaching them.",
    "It rained until noon, then the clouds tore and the hills steamed.",
    "An inn stood empty, its sign taken down, a chair still on the table.",
    "Somebody had tied red thread around every birch along the path.",
    "The moon came up so large that it seemed to belong to another country.",
    "Dogs barked in a village that they never saw.",
    "A pedlar passed and offered needles, news and a cough medicine.",
    "The bridge had lost its railing, and they crossed it one after the other.",
    "Frost lay on the ropes in the morning and crackled when they were untied.",
    "There were footprints ahead of theirs, small ones, which stopped at a wall.",
    "The stars were out, and they quarrelled mildly over their names.",
    "A bell rang thirteen times somewhere in the fog.",
)
_OPENING = (
    "{hero} arrived at {destination} {transport}, with {companion} a step behind. The guard pointed at {burden}. "
    '"{remark}" he said, and the gate was opened.'
)
_REMARKS = (
    "So that is what all the fuss is about,",
    "You are later than the letter promised,",
    "We had given you up,",
    "Not a word to anyone inside,",
    "I have lost a wager on you,",
    "Wipe your boots, both of you,",
)


@dataclass(frozen=True)
class Tale:
    chapters: tuple[str, ...]
    openings: tuple[str, ...]
    # Which of the openings is true, counted from 1.
    answer: int


def tell_tale(chapters: int, rng: Random) -> Tale:
    hero = rng.choice(STORY_NAMES)
    state = {facet: rng.choice(values) for facet, values in CIRCUMSTANCES.items()}
    stale: dict[str, list[str]] = {facet: [] for facet in CIRCUMSTANCES}
    start = (
        f"{hero} set out {state['transport']} for {state['destination']}, carrying {state['burden']}. "
        f"With {hero} went {state['companion']}."
    )
    told = [_write_chapter(1, [start], rng)]
    facets: list[str] = []
    for number in range(2, chapters + 1):
        if not facets:
            facets = rng.sample(tuple(CIRCUMSTANCES), len(CIRCUMSTANCES))
        told.append(_write_chapter(number, [_change_circumstance(facets.pop(), hero, state, stale, rng)], rng))
    openings = [(_write_opening(hero, state, remark), remark) for remark in _REMARKS]
    answer = rng.randrange(OPTIONS)
    texts = [text for text, _ in openings]
    wrong_facets = [facet for facet in CIRCUMSTANCES for _ in range(2)]
    rng.shuffle(wrong_facets)
    used: set[tuple[str, str]] = set()
    for place in range(OPTIONS):
        if place != answer:
            texts[place] = _write_opening(
                hero, _spoil_circumstance(state, stale, wrong_facets.pop(), used, rng), _REMARKS[place]
            )
    return Tale(tuple(told), tuple(texts), answer + 1)


def _write_chapter(number: int, events: list[str], rng: Random) -> str:
    before, after = rng.sample(_SCENES, 3), rng.sample(_SCENES, 3)
    return f"Chapter {number}\n" + " ".join([*before, *events, *(scene for scene in after if scene not in before)])


def _change_circumstance(facet: str, hero: str, state: dict[str, str], stale: dict[str, list[str]], rng: Random) -> str:
    fresh = [value for value in CIRCUMSTANCES[facet] if value != state[facet] and value not in stale[facet]]
    old, new = state[facet], rng.choice(fresh or [value for value in CIRCUMSTANCES[facet] if value != state[facet]])
    stale[facet] = [value for value in (*stale[facet], old) if value != new]
    state[facet] = new
    return _CHANGES[facet].format(hero=hero, old=old, new=new)


def _write_opening(hero: str, state: dict[str, str], remark: str) -> str:
    return _OPENING.format(hero=hero, remark=remark, **state)


def _spoil_circumstance(
    state: dict[str, str], stale: dict[str, list[str]], facet: str, used: set[tuple[str, str]], rng: Random
) -> dict[str, str]:
    """The state with one circumstance that does not hold; one that once held, while there is one left."""
    candidates = [value for value in stale[facet] if (facet, value) not in used] or [
        value for value in CIRCUMSTANCES[facet] if value != state[facet] and (facet, value) not in used
    ]
    value = rng.choice(candidates)
    used.add((facet, value))
    return {**state, facet: value}


# --- coded messages ---------------------------------------------------------------------------------------------------

# No keyword occurs in any hint, so repeating the hints is not enough.
# Part of the meeting -> (hint, words of which one must be in the answer).
HINTS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "time": (
        ("when both hands point to heaven and the soup is served", ("noon", "midday", "12 pm", "twelve o'clock")),
        ("when the cock clears his throat", ("dawn", "sunrise", "daybreak", "early morning")),
        ("when the owl reads its letters and the date changes", ("midnight", "12 am")),
        ("when the west catches fire", ("sunset", "dusk", "sundown", "twilight")),
        ("when the English put the kettle on", ("teatime", "tea time", "tea-time", "afternoon")),
    ),
    "place": (
        ("where the dead lie in rows under stone", ("cemetery", "graveyard", "churchyard", "burial ground")),
        ("where paper sleeps on shelves and nobody may raise his voice", ("library", "reading room")),
        ("where iron horses rest between two journeys", ("railway station", "train station", "station", "railway")),
        ("where the bears and the lions look at you through bars", ("zoo", "zoological garden", "menagerie")),
        ("where the sick wait in white beds", ("hospital", "clinic", "infirmary")),
    ),
    "thing": (
        ("something that keeps the sky off your head", ("umbrella", "parasol")),
        ("something that makes a small sun at the press of a thumb", ("torch", "flashlight", "lighter", "lamp")),
        ("something that shows the way north and never speaks", ("compass",)),
        ("something with which one crosses a river and stays dry", ("boat", "canoe", "raft", "dinghy", "kayak")),
    ),
}
_LEADS = {
    "time": "The meeting takes place {hint}.",
    "place": "Be {hint}.",
    "thing": "Do not come without {hint}.",
}


@dataclass(kw_only=True)
class SpyMeeting(BuiltinTest):
    """Understanding hints and putting them together.

    Scores: perfect 1, memoryless 0; repeating the hints scores 0, naming every time, place and thing too. A third for
    each part that is named by one of its keywords, whatever the case, while no keyword of another time, place or thing is
    named for it. About 40 tokens per message. Interferes with no other test.
    """

    kind: ClassVar[str] = "spy_meeting"
    name: ClassVar[str] = "Spy Meeting"
    description: ClassVar[str] = "The agent must understand three coded messages and tell the meeting they arrange."
    answers: ClassVar[Sequence[str]] = tuple(
        word for variants in HINTS.values() for _, keywords in variants for word in keywords
    )

    def make_example(self, number: int, rng: Random) -> TestExample:
        first_names, surnames = rng.sample(STORY_NAMES, 3), rng.sample(SURNAMES, 3)
        spies = [f"{first} {last}" for first, last in zip(first_names, surnames, strict=True)]
        parts = rng.sample(tuple(HINTS), 3)
        hints = {part: rng.choice(HINTS[part]) for part in parts}
        statements = [
            f"You will be contacted in secret by {spies[0]}, {spies[1]} and {spies[2]}. Their messages are coded.",
            *(
                f"A message from {spy}: “{_LEADS[part].format(hint=hints[part][0])}”"
                for spy, part in zip(spies, parts, strict=True)
            ),
        ]
        question = (
            "When and where is the secret meeting, and what should I bring? Do not quote the messages: decode them."
        )
        return self.tell_and_ask(number, statements, [question], [list(hints[part][1]) for part in parts])

    def ideal_answers(self, example: TestExample) -> list[str]:
        return ["; ".join(keywords[0] for keywords in example.expected_responses)]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[Sequence[str]]) -> Grade:
        """The share of parts of which a keyword is claimed, and no keyword of another variant of the part."""
        points, reasons = 0, []
        for keywords in expected:
            claimed = find_claims(responses[0], {*keywords, *_list_rivals(keywords)})
            wrong = claimed - set(keywords)
            if claimed and not wrong:
                points += 1
                reasons.append(f"understood: {', '.join(sorted(claimed))}")
            elif find_phrases(responses[0], keywords):
                reasons.append(f"names {keywords[0]!r}, but also {', '.join(sorted(wrong)[:5])}")
            else:
                reasons.append(f"none of {', '.join(keywords)} in the answer")
        return Grade.share(points, len(expected), *reasons)


def _list_rivals(keywords: Sequence[str]) -> Iterable[str]:
    """The keywords of the other variants of the same part."""
    for variants in HINTS.values():
        if any(set(keywords) & set(own) for _, own in variants):
            return [word for _, own in variants if not set(keywords) & set(own) for word in own]
    return ()
