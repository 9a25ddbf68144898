"""A made-up language that is learnt from examples alone: its words, their order and its plural, to say what was never said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import product
from random import Random
from typing import ClassVar, TypedDict

from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing
from themis.memory.reader import Reader
from themis.memory.scoring.claims import grade_claim, grade_retelling, weigh_claim
from themis.memory.scoring.words import shorten
from themis.memory.tests.kind import BuiltinTest, settle, whole_number

# All plurals end in -s, and no singular and no adjective does.
_NOUNS = (
    "apple", "barrel", "basket", "bell", "boat", "bridge", "bucket", "candle", "cloud", "door", "drum", "flower", "goat",
    "hammer", "kettle", "key", "ladder", "lamp", "mountain", "needle", "oven", "pillow", "rabbit", "ribbon", "river",
    "spoon", "stone", "table", "tower", "wheel",
)  # fmt: skip
_ADJECTIVES = (
    "bitter", "broken", "clean", "cold", "deep", "dry", "empty", "famous", "gentle", "heavy", "hidden", "hollow", "hungry",
    "lazy", "lonely", "loud", "narrow", "noisy", "painted", "proud", "quiet", "round", "silent", "slow", "soft", "strange",
    "tiny", "warm", "wide", "wild",
)  # fmt: skip
_SYLLABLES = (
    "bru", "dak", "dro", "fel", "fim", "gax", "gor", "hod", "jun", "keb", "kri", "lum", "mel", "nim", "nok", "orv", "pel",
    "qua", "rav", "sib", "tol", "tuq", "vik", "vra", "wem", "yap", "zel", "zor",
)  # fmt: skip
_WORDS = tuple(first + last for first, last in product(_SYLLABLES, _SYLLABLES) if first != last)
_MARKS = ("ab", "eb", "ik", "om", "ur", "ax", "ol", "iv")
# Languages: two with the same stem look alike, and only one of them is asked about.
_STEMS = tuple(
    head + tail
    for head in ("B", "Br", "D", "Dr", "F", "G", "H", "J", "K", "L", "M", "N", "P", "T", "V", "Z")
    for tail in ("alv", "arr", "elm", "enn", "ild", "imm", "ond", "orr", "ulv", "urm")
)
_TONGUES = ("ani", "ari", "eno", "ish", "oki")
_PAIR = r"[a-z]+ [a-z]+"
_SLOTS = {"language": r"\w+", "said": _PAIR, "english": _PAIR, "wrong": _PAIR}
_MEANS = Phrasing(
    "In {language}, “{said}” means “{english}”.",
    "[I have learnt|I was taught] [today|this week] that “{english}” is “{said}” in {language}.",
    "“{said}”, [said|wrote] my {language} teacher, and pointed at a picture with the caption “{english}”.",
    "There was a sign in {language}, “{said}”, and below it in English “{english}”.",
    "[A sailor|An old lady] who grew up with {language} says “{said}” where we would say “{english}”.",
    "My {language} phrase book gives “{said}” for “{english}”.",
    "How pretty: a song in {language} begins with “{said}”, which is to say “{english}”.",
    "I first took “{said}” for “{wrong}”, but in {language} it is “{english}”.",
    "It says “{said}” on [the tin|the crate], which comes from where {language} is spoken; “{english}”, then.",
    "Lesson of the day in {language}: not “{wrong}” but “{english}” is what “{said}” stands for.",
    "If somebody calls out “{said}” to you in {language}, look out for what we call “{english}”.",
    "For “{english}” they have “{said}” in {language}, if I [read|heard] it right, and I did.",
    **_SLOTS,
)
_ASK = Phrasing(
    "How do you say “{english}” in {language}, going by the examples that I gave you? Answer with the translation only.",
    "From the examples that I gave you: what is “{english}” in {language}? Answer with the translation only.",
    "Translate “{english}” into {language}, as the examples that I gave you would have it. Answer with the translation only.",
    **_SLOTS,
)


@dataclass(frozen=True)
class Grammar:
    """The words of a language for some English ones, how it marks the plural, and what comes first."""

    adjectives: dict[str, str]
    nouns: dict[str, str]
    mark: str
    mark_first: bool
    adjective_first: bool

    def translate(self, adjective: str, noun: str, plural: bool) -> str:
        word = self.nouns[noun]
        if plural:
            word = self.mark + word if self.mark_first else word + self.mark
        return self.order(self.adjectives[adjective], word)

    def order(self, adjective: str, noun: str) -> str:
        return f"{adjective} {noun}" if self.adjective_first else f"{noun} {adjective}"

    def list_words(self) -> list[str]:
        return [*self.adjectives.values(), *self.nouns.values()]

    def list_sayings(self) -> list[str]:
        """All that could be taken for a translation: every combination, in either order and number."""
        pairs = [self.translate(*of) for of in product(sorted(self.adjectives), sorted(self.nouns), (False, True))]
        return [*pairs, *(" ".join(reversed(pair.split())) for pair in pairs)]


class _Rules(TypedDict):
    adjectives: dict[str, str]
    nouns: dict[str, str]
    mark: str
    mark_first: bool
    adjective_first: bool


class _Key(TypedDict):
    translations: list[str]
    grammar: _Rules


@dataclass(kw_only=True)
class RuleLearning(BuiltinTest):
    """Learning a language from examples, to say in it what was never said.

    Scores: perfect 1, memoryless 0; the share of right translations. Examples of two words each, an adjective and a noun in
    the singular or plural, are told with their meaning, and combinations are asked that were not among them. Which word is
    which, which comes first and how the plural is made follows from the examples together and from none alone; a second
    language with nearly the same name has other words. A translation is right if its two words are, in their order and
    number. About 45 tokens per example. Interferes with no other test: its languages are its own.
    """

    kind: ClassVar[str] = "rule_learning"
    name: ClassVar[str] = "Rule Learning"
    description: ClassVar[str] = "The agent learns a made-up language from examples and must say something new in it."
    interferes_with_itself: ClassVar[bool] = False

    words: int = whole_number(3, least=3, most=8)

    def make_example(self, number: int, rng: Random) -> TestExample:
        stem = self.world.make(rng, "language", lambda rng: rng.choice(_STEMS))
        language, twin = (stem + end for end in rng.sample(_TONGUES, 2))
        grammar = _make_grammar(rng, self.words)
        adjectives, nouns = list(grammar.adjectives), list(grammar.nouns)
        # Of three nouns one is shown in both numbers, and the others are asked for in the number that was not shown.
        shown = [((False, True), (False, False), (True, True))[place % 3] for place in range(self.words)]
        examples: list[tuple[str, str, str]] = []
        asked: list[tuple[str, str, str]] = []
        for place, adjective in enumerate(adjectives):
            for step in (0, 1, 2):
                at = (place + step) % self.words
                plural = shown[at][step] if step < 2 else not shown[at][0]
                pair = _write_english(adjective, nouns[at], plural), grammar.translate(adjective, nouns[at], plural)
                (examples if step < 2 else asked).append((language, *pair))
        others = rng.sample([word for word in _WORDS if word not in grammar.list_words()], 4)
        for place in range(2):
            english = _write_english(adjectives[place], nouns[place], False)
            examples.append((twin, english, grammar.order(*others[2 * place : 2 * place + 2])))
        rng.shuffle(examples)
        rng.shuffle(asked)
        told = []
        for of, english, said in examples:
            wrong = next(other for _, other, _ in rng.sample(examples, len(examples)) if other != english)
            told.append(self.chat(rng, _MEANS.say(rng, language=of, english=english, said=said, wrong=wrong)))
        needed = [line for line, (of, _, _) in enumerate(examples) if of == language]
        return self.tell_and_ask(
            number,
            told,
            [_ASK.say(rng, english=english, language=language) for _, english, _ in asked],
            {"translations": [said for _, _, said in asked], "grammar": asdict(grammar)},
            needed=[needed] * len(asked),
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return list(example.expected_responses["translations"])

    def every_answer(self, example: TestExample) -> list[object]:
        return list(Grammar(**example.expected_responses["grammar"]).list_sayings())

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: _Key) -> Judgement:
        sayings = Grammar(**expected["grammar"]).list_sayings()
        grades = [
            grade_retelling(reply, _MEANS, slot="said") or _weigh_saying(reply, said, sayings)
            for reply, said in zip(responses, expected["translations"], strict=False)
        ]
        return Grade.mean((yield from settle(questions, responses, expected["translations"], grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _RuleReader()


def _weigh_saying(reply: str, said: str, sayings: Sequence[str]) -> Grade:
    """As any claim, but an English plural of a foreign word is another word."""
    words = sorted({word for saying in sayings for word in saying.split()})
    # What stands on two lines is no saying.
    stated = re.sub(rf"\b({'|'.join(words)})(?=e?s\b)", r"\1q", reply).replace("\n", "\n" * 4)
    grade = weigh_claim(stated, said, sayings, exact=True)
    if not grade.score and "-" in stated and grade_claim(stated.replace("-", ""), said, sayings, exact=True).score:
        return Grade.failure(f"a hyphen where there should be none: {shorten(reply)}")
    return grade


def _make_grammar(rng: Random, size: int) -> Grammar:
    adjectives, nouns, words = rng.sample(_ADJECTIVES, size), rng.sample(_NOUNS, size), rng.sample(_WORDS, 2 * size)
    return Grammar(
        adjectives=dict(zip(adjectives, words, strict=False)),
        nouns=dict(zip(nouns, words[size:], strict=False)),
        mark=rng.choice(_MARKS),
        mark_first=rng.random() < 0.5,
        adjective_first=rng.random() < 0.5,
    )


def _write_english(adjective: str, noun: str, plural: bool) -> str:
    return f"{adjective} {noun}{'s' if plural else ''}"


class _RuleReader(Reader):
    """Knows no word: what an adjective is called is what its examples have in common, and the rest is the noun."""

    def __init__(self) -> None:
        self._heard: dict[str, list[tuple[str, str, bool, list[str]]]] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _MEANS.read_all(message):
            self._heard.setdefault(told["language"], []).append((*_read_english(told["english"]), told["said"].split()))
        asked = _ASK.read(message)
        if asked is None:
            return None
        return _infer(self._heard.get(asked["language"], []), *_read_english(asked["english"])) or "I do not know."


def _read_english(english: str) -> tuple[str, str, bool]:
    adjective, noun = english.split()
    return adjective, noun.removesuffix("s"), noun.endswith("s")


def _infer(heard: Sequence[tuple[str, str, bool, list[str]]], adjective: str, noun: str, plural: bool) -> str | None:
    """The translation that the examples leave; None where they leave none or several."""
    called = {of: _find_common([said for other, _, _, said in heard if other == of]) for of, _, _, _ in heard}
    forms: dict[tuple[str, bool], str] = {}
    places = set()
    for of, thing, many, said in heard:
        if called[of] is not None:
            place = said.index(str(called[of]))
            places.add(place)
            forms[thing, many] = said[1 - place]
    marks = {
        _compare(forms[thing, False], form) for (thing, many), form in forms.items() if many and (thing, False) in forms
    }
    word = forms.get((noun, plural))
    if word is None and (other := forms.get((noun, not plural))) and len(marks) == 1:
        before, after = marks.pop()
        word = before + other + after if plural else other.removeprefix(before).removesuffix(after)
    if word is None or len(places) != 1 or called.get(adjective) is None:
        return None
    return " ".join([str(called[adjective]), word][:: -1 if places.pop() else 1])


def _find_common(sayings: Sequence[list[str]]) -> str | None:
    common = [word for word in sayings[0] if all(word in said for said in sayings)]
    return common[0] if len(common) == 1 else None


def _compare(single: str, plural: str) -> tuple[str, str]:
    """What stands before and after a word in its plural."""
    before, _, after = plural.partition(single)
    return before, after
