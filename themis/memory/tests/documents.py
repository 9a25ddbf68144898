"""A long document that is read once, page by page; its length follows the span."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, product
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import extract_about, grade_retelling, weigh_claim
from themis.memory.scoring.numbers import write_years
from themis.memory.scoring.words import find_phrases
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.word_lists import SURNAMES, TOWNS

# A document takes this share of the span, a page at most that one, and all are read by the time that the last has passed.
_DOCUMENT_SHARE, _PAGE_SHARE, _READ_SHARE = 0.1, 0.04, 0.3
_LETTERS_PER_TOKEN = 4.3
# So much of the longest message is left for how a page opens, and in case its words are short.
_PAGE_FILL = 0.8
# Places that are easily mistaken for each other: Upper Heron Mill, Lower Heron Mill, Lower Heron Lock.
_WHICH = ("Far", "Great", "High", "Little", "Long", "Lower", "Middle", "Nether", "Old", "Outer", "Over", "Upper")
_AFTER = (
    "Alder", "Badger", "Beacon", "Bramble", "Clover", "Cuckoo", "Drover", "Falcon", "Friar", "Gosling", "Hazel", "Heron",
    "Ivy", "Juniper", "Kestrel", "Lapwing", "Linnet", "Marten", "Mistle", "Nettle", "Otter", "Pilgrim", "Plover", "Quail",
    "Rowan", "Sedge", "Shepherd", "Sparrow", "Starling", "Swallow", "Thorn", "Tinker", "Wagtail", "Willow", "Yarrow",
)  # fmt: skip
_KINDS = ("Barn", "Chapel", "Ferry", "Forge", "Grange", "Kiln", "Lock", "Lodge", "Mill", "Quarry", "Weir", "Wharf")
GOODS = (
    "alum", "barley", "beeswax", "charcoal", "cider", "copperas", "flax", "gypsum", "hemp rope", "hides", "honey", "hops",
    "indigo", "lamp oil", "madder", "millstones", "mustard seed", "nails", "ochre", "oyster shells", "pitch", "potash",
    "saffron", "saltpetre", "slates", "soap", "sulphur", "tallow", "tar", "vinegar", "walnuts", "whetstones",
)  # fmt: skip
ROOFS = (
    "bark", "bracken", "canvas", "clay tile", "copper", "heather", "iron sheet", "larch shingle", "lead", "oak shingle",
    "reed", "rye straw", "sandstone slab", "sod", "tin", "wheat straw", "zinc",
)  # fmt: skip
# Goods that somebody who does not remember the word may mean as a roof.
_ALSO_ON_ROOFS = frozenset({"hides", "pitch", "slates", "tar"})
_PLACE = rf"(?:{'|'.join(_WHICH)}) (?:{'|'.join(_AFTER)}) (?:{'|'.join(_KINDS)})"
_SLOTS = {
    "town": any_of(TOWNS), "place": _PLACE, "other": _PLACE, "keeper": r"[A-Z]\w+", "former": r"[A-Z]\w+",
    "year": r"1\d{3}", "wrong_year": r"1\d{3}", "goods": any_of(GOODS), "wrong_goods": any_of(GOODS),
    "roof": any_of(ROOFS), "wrong_roof": any_of(ROOFS),
}  # fmt: skip
_OPENING = Phrasing(
    "[Page {page} of|Now page {page} of|This is page {page} of] the Survey of {town}:",
    "[Here comes|Next comes|Read this as] page {page} of the Survey of {town}:",
    **_SLOTS, page=r"\d+",
)  # fmt: skip
_SECTION = Phrasing(
    "[We come now to|The next entry is|Further on lies] {place}.",
    "{place} [stands by itself|lies off the road|is reached by a footpath].",
    "{place} is not to be confused with {other}.",
    "A mile beyond {other} [lies|one finds] {place}.",
    "The surveyors spent [a day|a morning|two days] at {place}.",
    "Next, {place}.",
    **_SLOTS,
)
_KEEPER = Phrasing(
    "It is kept by one {keeper}.",
    "The keeper is called {keeper}.",
    "{keeper} has charge of it.",
    "Whoever wants the key must ask {keeper}.",
    "The rent is paid by {keeper}, who looks after it.",
    "{former} gave it up, and {keeper} keeps it now.",
    "The survey was received there by {keeper}, the keeper.",
    "Not {former}, as the parish roll has it, but {keeper} is its keeper.",
    "It is in the hands of {keeper}, a careful keeper.",
    "As keeper the register gives {keeper}.",
    **_SLOTS,
)
_BUILT = Phrasing(
    "It was built in {year}.",
    "The lintel bears the date {year}, when it was put up.",
    "Its foundation stone was laid in {year}.",
    "It has stood there since {year}.",
    "The builders finished it in {year}.",
    "It is no older than {year}, the year of its building.",
    "Tradition has it built in {wrong_year}, but the accounts say {year}.",
    "It went up in {year}, at the expense of the county.",
    "Before {year}, when it was raised, there was nothing here but grass.",
    "Not in {wrong_year} but in {year} was it built.",
    **_SLOTS,
)
_STORES = Phrasing(
    "It is used to store {goods}.",
    "They keep nothing but {goods} inside.",
    "Inside lies a store of {goods}.",
    "It holds {goods} these days, and no longer {wrong_goods}.",
    "The carts that call there are after {goods}.",
    "It [lives by|trades in] {goods}.",
    "There was talk of {wrong_goods}, but it has never held anything but {goods}.",
    "The floor is stacked with {goods}.",
    "What is stored in it is {goods}.",
    "Its stock in trade is {goods}.",
    **_SLOTS,
)
_ROOFED = Phrasing(
    "It has a roof of {roof}.",
    "The roof is of {roof}.",
    "It is roofed with {roof}.",
    "{roof} keeps the rain out.",
    "A new roof of {roof} replaced the old one of {wrong_roof}.",
    "Overhead there is nothing but {roof}.",
    "For its roof they chose {roof} over {wrong_roof}.",
    "The rafters carry {roof}.",
    "The weather has been kind to its roof, which is {roof}.",
    "Somebody has covered it with {roof}.",
    **_SLOTS,
)
_ASIDES = Phrasing(
    "The path there is [steep|muddy|pleasant|overgrown] [in spring|after rain|all year round].",
    "[A stream|A hedge|A low wall] runs along one side.",
    "[Nettles|Elder bushes|Brambles] [grow|stand] [close by|all around|up to the windows].",
    "The view to the [north|south|east|west] is [fine|wide|blocked by trees].",
    "The surveyors [drew a plan|made a sketch|took no measurements].",
    "There is [a bench|a well|a milestone] [in front|behind it|by the gate].",
    "[Swifts|Jackdaws|Bats] nest under the eaves.",
    "Nothing odd was [noted|put down] there.",
    "The ground is [firm|marshy|stony] and the air is [good|damp|sharp].",
    "[Travellers|Drovers|Pedlars] [seldom|often|never] stop there.",
)
_ASK = {
    "keeper": Phrasing(
        "Who is the keeper of {place}, according to the Survey of {town}? Answer with the name only.",
        "In the Survey of {town}, which keeper does {place} have? Answer with the name only.",
        **_SLOTS,
    ),
    "year": Phrasing(
        "In which year was {place} built, according to the Survey of {town}? Answer with the year only.",
        "What does the Survey of {town} say, when was {place} built? Answer with the year only.",
        **_SLOTS,
    ),
    "goods": Phrasing(
        "What is stored at {place}, according to the Survey of {town}? Answer with that one thing.",
        "Which goods does {place} hold by the Survey of {town}? Answer with that one thing.",
        **_SLOTS,
    ),
    "roof": Phrasing(
        "What is the roof of {place} made of, according to the Survey of {town}? Answer with the material only.",
        "Which material does the Survey of {town} give for the roof of {place}? Answer with the material only.",
        **_SLOTS,
    ),
}
_DETAILS = {"keeper": _KEEPER, "year": _BUILT, "goods": _STORES, "roof": _ROOFED}


@dataclass(kw_only=True)
class Document(BuiltinTest):
    """Knowing the details of a long document that was read once.

    Scores: perfect 1, memoryless 0; the share of right answers. A survey of places with similar names is read page by page in
    the first third of the span. It takes about a tenth of the span, whatever that is, in pages of at most `max_message_size`
    tokens; most sentences of an entry do not name the place that they are about. Asked are keepers, years, goods and roofs of
    several places; an answer is right if it names the right one and no other. About a tenth of the span and 30 tokens per
    question. Interferes with no other test: its document has a name of its own.
    """

    kind: ClassVar[str] = "document"
    name: ClassVar[str] = "Document"
    description: ClassVar[str] = "The agent reads a long document once and must know its details at the end."
    interferes_with_itself: ClassVar[bool] = False
    answers: ClassVar[Sequence[str]] = (*SURNAMES, *map(str, range(1500, 1900)), *GOODS, *ROOFS)

    questions: int = whole_number(4, least=1, most=10)

    def make_example(self, number: int, rng: Random) -> TestExample:
        (town,) = self.world.towns(rng, 1)
        sections = self._write_sections(rng)
        pages = list(_paginate([section.text for section in sections], self._page_letters))
        page_of = [number for number, page in enumerate(pages) for _ in page]
        asked = _choose_details(rng, sections, self.questions)
        lines = [
            f"{_OPENING.say(rng, page=number, town=town)}\n\n" + "\n\n".join(page)
            for number, page in enumerate(pages, start=1)
        ]
        questions = [_ASK[detail].say(rng, place=sections[at].place, town=town) for at, detail in asked]
        read = [Wait(until_share=number * _READ_SHARE / len(pages)) for number in range(1, len(pages))]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*lines, *questions],
            is_question=[False] * len(lines) + [True] * len(questions),
            waits=[*read, Wait(until_share=LAST_SHARE), *[Wait()] * len(questions)],
            expected_responses=[[detail, sections[at].details[detail]] for at, detail in asked],
            material={"needed": [[page_of[at]] for at, _ in asked]},
        )

    @property
    def _page_letters(self) -> int:
        tokens = min(self.memory_span * _PAGE_SHARE, self.max_message_size * _PAGE_FILL)
        return round(tokens * _LETTERS_PER_TOKEN)

    def _write_sections(self, rng: Random) -> list[_Section]:
        letters = round(self.memory_span * _DOCUMENT_SHARE * _LETTERS_PER_TOKEN)
        brief = self.memory_span < _LONG_ENTRIES_FROM
        sections: list[_Section] = []
        for place, other in _name_places(rng):
            if letters <= 0 and len(sections) >= 2:
                break
            sections.append(_write_section(rng, place, other, brief=brief))
            letters -= len(sections[-1].text)
        return sections

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [value for _, value in example.expected_responses]

    def every_answer(self, example: TestExample) -> list[object]:
        return [*self.ideal_answers(example), *self.answers[::_SAMPLED]]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[Sequence[str]]
    ) -> Judgement:
        grades = [
            _grade_detail(_extract_about_place(reply, question), *one)
            for question, reply, one in zip(questions, responses, expected, strict=False)
        ]
        return Grade.mean((yield from settle(questions, responses, [value for _, value in expected], grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _DocumentReader()


# Of all years, names, goods and roofs every twentieth stands for the rest.
_SAMPLED = 20
# From this span on an entry has all details and talk between them.
_LONG_ENTRIES_FROM = 6_000


@dataclass(frozen=True)
class _Section:
    place: str
    details: dict[str, str]
    text: str


def _name_places(rng: Random) -> Iterator[tuple[str, str]]:
    """Pairs of places, none of them twice; four in a row share the middle of their names, two also another part."""
    which, kinds = rng.sample(_WHICH, len(_WHICH)), rng.sample(_KINDS, len(_KINDS))
    blocks = list(product(_AFTER, range(0, len(which), 2), range(0, len(kinds), 2)))
    for middle, first, second in rng.sample(blocks, len(blocks)):
        for one in which[first : first + 2]:
            yield f"{one} {middle} {kinds[second]}", f"{one} {middle} {kinds[second + 1]}"


def _write_section(rng: Random, place: str, other: str, *, brief: bool) -> _Section:
    details = {
        "keeper": rng.choice(SURNAMES),
        "year": str(rng.randrange(1500, 1900)),
        "goods": rng.choice(GOODS),
        "roof": rng.choice(ROOFS),
    }
    kept = rng.sample(list(details), 2 if brief else 4)
    details = {detail: details[detail] for detail in kept}
    sentences = [_SECTION.say(rng, place=place, other=other)]
    for detail, value in details.items():
        if not brief and rng.random() < 0.5:
            aside = _ASIDES.say(rng)
            sentences += [] if aside in sentences else [aside]
        sentences.append(_DETAILS[detail].say(rng, **{detail: value}, **_invent_wrong(rng, value)))
    return _Section(place, details, " ".join(sentences))


def _invent_wrong(rng: Random, value: str) -> dict[str, str]:
    """What a sentence may deny: of each kind something else than the truth."""
    pools = {
        "former": SURNAMES,
        "wrong_year": [str(year) for year in range(1500, 1900)],
        "wrong_goods": GOODS,
        "wrong_roof": ROOFS,
    }
    return {slot: next(one for one in rng.sample(pool, 2) if one != value) for slot, pool in pools.items()}


def _paginate(texts: Sequence[str], letters: int) -> Iterator[list[str]]:
    """The texts in pages of at most so many letters, or of one text each."""
    page: list[str] = []
    for text in texts:
        if page and sum(map(len, page)) + len(text) > letters:
            yield page
            page = []
        page.append(text)
    yield page


def _choose_details(rng: Random, sections: Sequence[_Section], count: int) -> list[tuple[int, str]]:
    """Details of as many different sections as there are, spread over the whole document."""
    order = rng.sample(range(len(sections)), len(sections))
    every = [
        [(at, detail) for detail in rng.sample(list(sections[at].details), len(sections[at].details))] for at in order
    ]
    rounds = [one[place] for place in range(len(_DETAILS)) for one in every if place < len(one)]
    return rounds[:count]


def _extract_about_place(reply: str, question: str) -> str:
    """The reply without what it says of other places than the one in question."""
    asked = re.search(_PLACE, question)
    others = set(re.findall(rf"\b(?:{_PLACE})\b", reply)) - {asked[0]} if asked else set()
    return extract_about(reply, asked[0], others) if asked and others and asked[0] in reply else reply


def _grade_detail(reply: str, detail: str, value: str) -> Grade:
    if retold := grade_retelling(reply, _DETAILS[detail], slot=detail):
        return retold
    rivals: dict[str, Sequence[str]] = {"keeper": SURNAMES, "goods": GOODS, "roof": ROOFS}
    # What was built was built once: the past is no former state.
    stated = write_years(_WAS.sub("is", reply)) if detail == "year" else reply
    # Whoever names what is told of something else does not mean this in other words.
    told = set(chain.from_iterable(rivals[other] for other in rivals if other != detail)) - _ALSO_ON_ROOFS
    elsewhere = bool(find_phrases(stated, told))
    return weigh_claim(stated, value, rivals.get(detail) or _YEAR.findall(stated), in_full=elsewhere)


_WAS = lazy_pattern(r"\bwas\b")
_YEAR = lazy_pattern(r"\b1\d{3}\b")


class _DocumentReader(Reader):
    """Reads a page entry by entry: what is said of `it` is said of the place that was named last as an entry's own."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        if opened := _OPENING.read(message):
            for entry in message.split("\n\n")[1:]:
                if section := _SECTION.read(entry):
                    for detail, phrasing in _DETAILS.items():
                        if told := phrasing.read(entry):
                            self._known[opened["town"], section["place"], detail] = told[detail]
        for detail, phrasing in _ASK.items():
            if asked := phrasing.read(message):
                return self._known.get((asked["town"], asked["place"], detail), "I do not know.")
        return None
