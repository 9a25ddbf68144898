"""A long text, read page by page: the agent must recognise how it goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import ClassVar, TypedDict

from themis.core.patterns import lazy_pattern
from themis.exceptions import DatasetError
from themis.memory.actions import Grade, Grading, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.phrasing import Phrasing
from themis.memory.reader import Reader
from themis.memory.scoring.claims import abstains, remove_guesses
from themis.memory.scoring.lists import measure_recall
from themis.memory.scoring.nearness import reduce_word
from themis.memory.scoring.numbers import parse_number, remove_non_answers
from themis.memory.scoring.prominence import is_prominent
from themis.memory.scoring.words import find_correction, shorten, split_words
from themis.memory.tests.journeys import OPTIONS, read_circumstances, read_opening, tell_tale
from themis.memory.tests.kind import BuiltinTest, one_of, settle, whole_number
from themis.memory.tests.telling import name_characters

SPLITS = ("tale", "goodai", "pg19", "ao3", "all")
# Samples of the public file that can be solved from their context: the ones that published results are about.
_GOODAI_SAMPLES = ("12653258_1", "47583370_7", "90051444_0")
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
# English prose has about four characters to a token; three leave room for other tokenizers.
_CHARACTERS_PER_TOKEN = 3
# What is said between the pages takes the rest of the nine tenths of the span.
_OWN_SHARE = 0.6
# Of our own prose, for how many pages fill a span.
_OWN_CHARACTERS_PER_TOKEN = 4.2
# Everything besides the chapters: the introduction, the options and the question.
_FRAME_TOKENS = 420
_CHAPTER_TOKENS = (60, 400)
_CHAPTERS_AT_LEAST = 8
_OPTION = lazy_pattern(
    r"\b(?:option|answer|number|choice|it's|it is)\b\W*(?:is\W+)?(?:option\W+|number\W+)?(\d+)\b", re.IGNORECASE
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_ORDINAL = lazy_pattern(
    rf"\b(?:({'|'.join(_ORDINALS)})|(\d)(?:st|nd|rd|th))(?= (?:option|one|opening|beginning)\b|\W{{0,5}}\Z)"
)
# What a reply that weighs several options comes to.
_CHOSEN = lazy_pattern(
    r"\b(?:only(?= (?:option|number)? ?\d\b)|leaves|so|therefore|thus|hence|final answer|answer|choose|pick"
    r"|go(?:ing)? (?:with|for)|must be|has to be|settle on)\b"
    r"(?: (?:is|it|it's|must|has|to|be|only|just|with|i'd|say|choose|pick|the|my))*"
    r"\W{0,6}(?:(?:option|number|no\.?)\W{0,4})?(\d)\b"
    r"(?!\W{1,6}(?:(?:or|and|to)\b\W{0,3})?(?:option\W{1,3})?\d)"
)


@dataclass(kw_only=True)
class ChapterBreak(BuiltinTest):
    """Understanding a long text as a whole.

    Scores: perfect 1, memoryless 0, a guess 1/6. By default a tale is made that is as long as the span allows: it is read
    in pages over nine tenths of it, and takes six tenths itself. Every wrong continuation contradicts a circumstance that
    was told; the options are all combinations of what differs, so that none gives itself away. `chapters` sets how many
    there are, 0 for as many as fit. `split` pg19, ao3, all or goodai takes samples from the public ChapterBreak file at
    `data_location` (JSON, decompressed) and reads them without interruption, about 9,000 tokens. Interferes with no other
    test.
    """

    kind: ClassVar[str] = "chapterbreak"
    name: ClassVar[str] = "ChapterBreak"
    description: ClassVar[str] = "The agent reads a long text and must recognise how it goes on."
    answers: ClassVar[Sequence[str]] = tuple(f"Option {number}" for number in range(1, OPTIONS + 1))

    split: str = one_of("tale", SPLITS)
    chapters: int = whole_number(0, least=0)
    data_location: str | None = None

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return super().generate_examples(num_examples) if self.split == "tale" else self._sample_file(num_examples)

    def make_example(self, number: int, rng: Random) -> TestExample:
        title = self.world.make(rng, "book", lambda rng: f"{rng.choice(_TITLES[0])} {rng.choice(_TITLES[1])}")
        hero, rival = name_characters(self.world, rng, 2)
        chapters, characters = self._measure_chapters()
        tale = tell_tale(rng, (hero, rival), chapters=chapters, characters=characters)
        pages = self._bind_pages(tale.chapters)
        options = "\n".join(f"Option {place}: {text}" for place, text in enumerate(tale.openings, 1))
        script = [
            _INTRODUCTION.say(rng, title=title),
            *(
                f"“{title}”, {'continued' if page else 'the beginning'}:\n{text}"
                for page, (_, text) in enumerate(pages)
            ),
            f"{_OPTIONS.say(rng, title=title)}\n{options}",
            _QUESTION.say(rng, title=title),
        ]
        places = {chapter: page + 1 for page, (bound, _) in enumerate(pages) for chapter in bound}
        needed = sorted({*(places[chapter] for chapter in tale.needed), len(script) - 2})
        shares = [LAST_SHARE * (page + 1) / len(pages) for page in range(len(pages))]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=script,
            waits=[Wait(), *(Wait(until_share=share) for share in shares), Wait(), Wait()],
            expected_responses=[str(tale.answer)],
            material={"needed": [needed]},
        )

    def _measure_chapters(self) -> tuple[int, int]:
        """How many chapters fill the span, and how many characters each of them has."""
        shortest, longest = _CHAPTER_TOKENS
        tokens = max(2 * shortest, _OWN_SHARE * self.memory_span - _FRAME_TOKENS)
        each = min(longest, max(shortest, tokens / _CHAPTERS_AT_LEAST))
        if self.chapters:
            return self.chapters, int(each * _OWN_CHARACTERS_PER_TOKEN)
        chapters = round(tokens / each)
        return chapters, int(tokens / chapters * _OWN_CHARACTERS_PER_TOKEN)

    def _bind_pages(self, chapters: Sequence[str]) -> list[tuple[list[int], str]]:
        """Chapters in pages that leave room for others between them, each with the numbers of its chapters."""
        most = min(
            (self.max_message_size - 20) * _CHARACTERS_PER_TOKEN, self.memory_span * _OWN_CHARACTERS_PER_TOKEN / 20
        )
        pages: list[tuple[list[int], str]] = []
        for number, text in enumerate(chapters):
            if pages and len(pages[-1][1]) + len(text) <= most:
                bound, before = pages[-1]
                pages[-1] = ([*bound, number], f"{before}\n\n{text}")
            else:
                pages.append(([number], text))
        return pages

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

    def evaluate_example(self, example: TestExample, questions: Sequence[str], responses: Sequence[str]) -> Grading:
        told = "\n".join(example.script[:-1])
        options = dict(_OPTION_TEXT.findall(told))
        grade = grade_option(responses[-1], example.expected_responses[0], options)
        return Grade.mean((yield from settle(questions[-1:], responses[-1:], example.expected_responses, [grade])))

    def is_readable(self, example: TestExample) -> bool:
        return self.split == "tale"

    @classmethod
    def make_reader(cls) -> Reader:
        return _TaleReader()


_TITLES = (
    ("Along", "Before", "Beneath", "Beside", "Between", "Beyond", "Far from", "Letters from", "North of", "On", "Past",
     "Songs of", "South of", "The Book of", "The Road to", "The Smoke over", "Towards", "Under", "Winter in", "Without"),
    ("Amber Rivers", "Black Harvests", "Broken Bells", "Cold Lanterns", "Crooked Steeples", "Distant Mills", "Empty Roads",
     "Fallen Poplars", "Forty Bridges", "Grey Geese", "Hollow Hills", "Lame Horses", "Long Shadows", "Lost Mittens",
     "Paper Crowns", "Red Thread", "Salt Winds", "Seven Fords", "Silent Orchards", "Wet Stones"),
)  # fmt: skip
_SLOTS = {"title": r"[^“”]+"}
_INTRODUCTION = Phrasing(
    "I am reading a book, “{title}”, and will read it out to you page by page; later you will have to tell how it goes on.",
    "Let me read “{title}” to you, a few pages at a time, and in the end you tell me how the next chapter begins.",
    **_SLOTS,
)
_OPTIONS = Phrasing(
    "That is how far “{title}” has come, and one of these is how its next chapter begins:",
    "Here we stop reading “{title}”, and only one of the following beginnings of the next chapter fits all that was told:",
    **_SLOTS,
)
_QUESTION = Phrasing(
    "Which of the options is the true beginning of the next chapter of “{title}”? Answer with the number of the option only.",
    "How does the next chapter of “{title}” begin? Answer with nothing but the number of the option.",
    **_SLOTS,
)
_LISTED = lazy_pattern(r"^Option (\d+): (.+)$", re.MULTILINE)
_OPTION_TEXT = lazy_pattern(r"^Option (\d+):\s(.{1,4000})$", re.MULTILINE)


class _TaleReader(Reader):
    """Knows how everybody in every book travels, and which option of a book agrees with that."""

    def __init__(self) -> None:
        self._state: dict[tuple[str, str], str] = {}
        self._fitting: dict[str, str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        if asked := _QUESTION.read(message):
            return self._fitting.get(asked["title"], "unknown")
        if told := _OPTIONS.read(message):
            fitting = [number for number, text in _LISTED.findall(message) if self._fits(text)]
            self._fitting[told["title"]] = fitting[0] if len(fitting) == 1 else "unknown"
        elif "Chapter " in message:
            for who, facet, value in read_circumstances(message):
                self._state[who, facet] = value
        return None

    def _fits(self, text: str) -> bool:
        opening = read_opening(text)
        if opening is None:
            return False
        who, circumstances = opening
        return all(self._state.get((who, facet), value) == value for facet, value in circumstances.items())


def grade_option(reply: str, expected: str, options: Mapping[str, str] | None = None) -> Grade:
    """1 if the number that the reply settles on, or the only one that it calls an option, is the expected one.

    Args:
        reply: What was answered.
        expected: The number of the right option.
        options: The options by number, one of which a reply may quote instead of its number.
    """
    text = _ORDINAL.sub(_to_number, remove_guesses(reply))
    chosen = _find_chosen(text)
    quoted = [number for number, option in (options or {}).items() if _quotes(reply, option)]
    if len(quoted) == 1 and chosen != float(quoted[0]):
        if chosen is not None:
            return Grade.failure(f"gives the number of one option and the text of another: {shorten(reply)}")
        return Grade.when(quoted == [expected], f"expected option {expected}, quotes option {quoted[0]}")
    if not _DIGITS.search(text) and (described := _find_described(reply, options or {})):
        if len(described) > 1 and expected in described:
            return Grade.failure(f"describes what several options have: {shorten(reply)}")
        return Grade.when(described == [expected], f"expected option {expected}, describes {', '.join(described)}")
    if chosen != float(expected) and is_prominent(left := _remove_ruled_out(text), expected, _DIGITS.findall(left)):
        return Grade.failure(f"it is not clear whether this chooses option {expected}: {shorten(reply)}")
    if chosen is None:
        return Grade(0.0, (f"expected option {expected}; no single number in: {shorten(reply)}",))
    return Grade.when(chosen == float(expected), f"expected option {expected}, got {chosen:g}")


def _find_described(reply: str, options: Mapping[str, str]) -> list[str]:
    """The options that have everything that a reply says of one and that not all of them have."""
    texts = {number: {reduce_word(word) for word in split_words(option)} for number, option in options.items()}
    if not texts or abstains(reply) or max(map(len, options.values())) > _ONE_SENTENCE:
        return []
    said = {reduce_word(word) for word in split_words(reply) if len(word) > _SHORT}
    telling = {word for word in said if 0 < sum(word in words for words in texts.values()) < len(texts)}
    return [number for number, words in texts.items() if telling <= words] if len(telling) >= _FEW_WORDS else []


# Shorter words tell no option from another, nor does a single one; of pages of prose any reply has some.
_SHORT, _FEW_WORDS, _ONE_SENTENCE = 4, 2, 300


def _quotes(reply: str, option: str) -> bool:
    return bool(split_words(option)) and measure_recall(reply, option) >= _QUOTED


# Of an option's words so many are a quotation.
_QUOTED = 0.9


def _to_number(ordinal: re.Match[str]) -> str:
    return ordinal[2] or str(_ORDINALS.index(ordinal[1]) + 1)


def _find_chosen(text: str) -> float | None:
    text = _remove_ruled_out(_HOW_MANY.sub(" ", text))
    answers = remove_non_answers(text)
    if len(set(_FITTING.findall(text))) == 1 and len(set(_DIGITS.findall(text))) > 2:
        return float(_FITTING.findall(text)[0])
    chosen = _CHOSEN.findall(find_correction(answers) or answers)
    if len(set(chosen)) == 1 and len(set(_DIGITS.findall(answers))) > 1:
        return float(chosen[-1])
    if (number := parse_number(text)) is not None:
        return number
    called = {float(number) for number in _OPTION.findall(answers) if len(number) < 10}
    if len(called) == 1:
        return called.pop()
    if all(map(_ONLY_OPTION.fullmatch, text.split("\n"))):
        return None
    # Whoever has weighed all of them ends with a line such as `Left: 4`.
    return float(last[1]) if (last := _LAST_LINE.search(text.rstrip())) else None


def _remove_ruled_out(text: str) -> str:
    """The text without the numbers of which it says somewhere that they are out, unless those are all that it names."""
    out = {number for listed in _OUT.finditer(text) for number in _DIGITS.findall(listed[0])}
    kept = re.sub(rf"(?i:\b(?:option|number) )?\b(?:{'|'.join(sorted(out))})\b", " ", text) if out else text
    return kept if _DIGITS.search(kept) else text


_SERIES = r"\d(?:(?:,| and|, and| or|, or|,? option| and option) \d){0,4}"
_OUT = lazy_pattern(
    rf"\b{_SERIES}(?:,? both|,? all)? (?:is|are|was|were) (?:both |all |therefore |thus )?"
    r"(?:out|ruled out|excluded|eliminated|impossible|off the table)\b"
    rf"|\b{_SERIES} (?:drops?|falls?|go(?:es)?) (?:out|away)\b"
    rf"|\b(?:rul(?:e[sd]?|ing) out|exclud(?:e[sd]?|ing)|eliminat(?:e[sd]?|ing)) (?:options? )?{_SERIES}\b",
    re.IGNORECASE,
)
_HOW_MANY = lazy_pattern(
    r"\b(?:none|neither|any|each|all|no one) of (?:the|these|those|all) (?:6|six)\b|\b(?:out )?(?:of )?(?:the|all"
    r"|these) 6 (?:options|beginnings|openings)\b"
)
# One line or clause for each option: `2: yes`.
_FITTING = lazy_pattern(
    r"(?:^|[.;,\n]\s{0,3})\W{0,4}(?:option )?(\d)\s?[:–-]\W{0,3}(?:yes|fits|matches|correct|right|true|consistent)\b(?! ?not\b)"
)
_DIGITS = lazy_pattern(r"\b\d\b")
# Whoever lists options, one a line, has chosen none.
_ONLY_OPTION = lazy_pattern(r"\W{0,4}(?:(?:(?:option|number) )?\d\W{0,4})?", re.IGNORECASE)
_LAST_LINE = lazy_pattern(r"\n\W{0,4}(?:(?!not\b|no\b)[a-z]{1,12}\W{1,4}){0,3}(\d)\W{0,4}\Z", re.IGNORECASE)


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
