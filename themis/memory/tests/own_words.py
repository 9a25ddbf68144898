"""What the agent itself has said: names it has chosen and promises it has made must still hold later."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Ask, Grade, Script, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import drop_others, find_claims, weigh_claim
from themis.memory.scoring.words import shorten
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.word_lists import TOWNS

# What wants a name, and names that nothing else in these tests has.
_NOUNS = (
    "allotment", "balloon", "barge", "bookshop", "canoe", "caravan", "cider", "cottage", "donkey", "goat", "hedgehog",
    "kayak", "locomotive", "loom", "owl", "parrot", "pony", "puppet", "raft", "robot", "rowing boat", "sheepdog", "sledge",
    "sourdough starter", "tandem", "telescope", "tortoise", "tractor", "tugboat", "wheelbarrow",
)  # fmt: skip
_THINGS = tuple(f"{old} {noun}" for old in ("big", "first", "new", "old", "second", "small") for noun in _NOUNS)
_HEADS = ("Bram", "Cinder", "Drift", "Ember", "Fiddle", "Glimmer", "Hob", "Jubi", "Kindle", "Lark", "Mizzle", "Nimb",
          "Pebble", "Quill", "Rumble", "Saffr", "Thistle", "Umbr", "Wander", "Zeph")  # fmt: skip
_TAILS = (
    "abel",
    "by",
    "dora",
    "elot",
    "foot",
    "gast",
    "ino",
    "kin",
    "lore",
    "mire",
    "nox",
    "otta",
    "rook",
    "song",
    "ully",
)
NAMES = tuple(head + tail for tail in _TAILS for head in _HEADS)
# What can be promised: what was asked for, and the words by which it is known again.
PROMISES = (
    "a bedtime story", "a crossword", "a farewell speech", "a fortune for the new year", "a haiku", "a lullaby",
    "a marching song", "a menu in verse", "a mock trial", "a nursery rhyme", "a packing list", "a quiz", "a recipe for soup",
    "a riddle", "a speech for the goat", "a tongue twister", "a toast", "a treasure hunt", "a weather report", "an anagram",
    "an epitaph", "an ode", "an opening line", "an oracle",
)  # fmt: skip
OCCASIONS = (
    "boat race", "bonfire night", "cheese fair", "chess final", "choir trip", "dog show",
    "flower market", "housewarming", "ice festival", "jumble sale", "kite day", "lantern walk",
    "midsummer ball", "mushroom hunt", "open day", "picnic", "rose show", "school reunion",
    "spring cleaning", "street party", "tombola", "village fete", "wine tasting", "winter fair",
)  # fmt: skip
_NAME = any_of(NAMES)
_OCCASION = rf"the \w+ (?:{any_of(OCCASIONS)})"
_NAMING = Phrasing(
    "I cannot decide what to call my {thing}: {a}, {b} or {c}. Choose one for me.",
    "My {thing} [needs|wants] a name, and [you shall give it|it should come from you]: {a}, {b} or {c}? Pick one.",
    "[Help me|Be so kind]: is my {thing} to be called {a}, {b} or {c}? One of them, please.",
    "There are three names [left|on the list] for my {thing}, {a}, {b} and {c}, and the choice is yours. Which one?",
    "[The family cannot agree|We have argued all day]: {a}, {b} or {c} for my {thing}? Your word shall count, so name one.",
    thing=any_of(_THINGS), a=_NAME, b=_NAME, c=_NAME,
)  # fmt: skip
_PROMISING = Phrasing(
    "For {occasion} I want you to promise me one thing: {a}, {b} or {c}. Which will it be?",
    "[Would you|Could you] contribute {a}, {b} or {c} to {occasion}? Promise me one of them and say which.",
    "Everybody [does something at|helps with] {occasion}. Will you give us {a}, {b} or {c}? Commit yourself to one.",
    "I have put you down for {occasion}, but not yet for what: {a}, {b} or {c}? Give me your word on one.",
    "[Let us|I should like to] fix what you owe me at {occasion}: {a}, {b} or {c}. Say which one you promise.",
    occasion=_OCCASION, a=any_of(PROMISES), b=any_of(PROMISES), c=any_of(PROMISES),
)  # fmt: skip
_ASK_NAME = Phrasing(
    "Which name did you choose for my {thing}? Answer with the name.",
    "What is my {thing} called, since you named it? Answer with the name.",
    "You once gave my {thing} a name. Which one? Answer with the name.",
    thing=any_of(_THINGS),
)
_ASK_PROMISE = Phrasing(
    "What was it that you promised me for {occasion}? Answer with that one thing.",
    "You gave me your word on something for {occasion}. On what? Answer with that one thing.",
    "What do you owe me at {occasion}? Answer with that one thing.",
    occasion=_OCCASION,
)


@dataclass(kw_only=True)
class OwnWords(BuiltinTest):
    """Keeping to what one has said oneself.

    Scores: perfect 1, memoryless 0; the share of choices that the agent still knows. It is asked to choose names and to
    make promises, each time one of three, and later asked what it chose; what it chose is right. A choice that it does not
    make, or makes twice, is lost. The questions do not name the three again. About 70 tokens per choice. Interferes with no
    other test.
    """

    kind: ClassVar[str] = "own_words"
    name: ClassVar[str] = "Own Words"
    description: ClassVar[str] = "The agent chooses names and makes promises, and must know later what it chose."
    interferes_with_itself: ClassVar[bool] = False
    answers: ClassVar[Sequence[str]] = (*NAMES, *PROMISES)

    choices: int = whole_number(4, least=1, most=8)

    def make_example(self, number: int, rng: Random) -> TestExample:
        rounds = []
        for turn in range(self.choices):
            if turn % 2 == 0:
                about = self.world.draw(rng, "thing with a name", _THINGS)
                options = self.world.sample(rng, "name of a thing", NAMES, 3)
                asked = _NAMING.say(rng, thing=about, a=options[0], b=options[1], c=options[2])
                again = _ASK_NAME.say(rng, thing=about)
            else:
                about = f"the {self.world.towns(rng, 1)[0]} {rng.choice(OCCASIONS)}"
                options = rng.sample(PROMISES, 3)
                asked = _PROMISING.say(rng, occasion=about, a=options[0], b=options[1], c=options[2])
                again = _ASK_PROMISE.say(rng, occasion=about)
            rounds.append({"options": options, "asked": self.chat(rng, asked), "again": again})
        return TestExample(
            dataset=self,
            example_id=str(number),
            expected_responses=[one["options"] for one in rounds],
            material={"rounds": rounds, "order": rng.sample(range(self.choices), self.choices)},
        )

    def every_answer(self, example: TestExample) -> list[object]:
        return [option for options in example.expected_responses for option in options]

    def play(self, example: TestExample) -> Script:
        rounds = example.material["rounds"]
        chosen: list[str | None] = []
        choosing, recalling, expected, replies = [], [], [], []
        for place, one in enumerate(rounds, start=1):
            reply = yield Ask(one["asked"], ideal=one["options"][0], needs=())
            chosen.append(find_choice(reply, one["options"]))
            choosing.append(
                Grade.when(chosen[-1] is not None, f"chose {chosen[-1] or 'nothing'}: {shorten(reply, 60)}")
            )
            yield Wait(until_share=place * LAST_SHARE / len(rounds))
        for place in example.material["order"]:
            choice = chosen[place]
            ideal = "I have chosen none." if choice is None else choice
            reply = yield Ask(rounds[place]["again"], ideal=ideal, needs=(place,))
            if choice is None:
                recalling.append(Grade(0.0, ("there is nothing to remember, for it did not choose",)))
            else:
                about = drop_others(drop_others(reply, rounds[place]["again"], TOWNS), rounds[place]["again"], _NOUNS)
                recalling.append(grade_choice(about, choice))
            expected.append(choice)
            replies.append(reply)
        recalled = yield from settle([reply.message for reply in replies], replies, expected, recalling)
        mean = Grade.mean(recalled)
        yield Grade.combine(mean.score, [*choosing, *recalled])

    @classmethod
    def make_reader(cls) -> Reader:
        return _OwnWordsReader()


def find_choice(reply: str, options: Sequence[str]) -> str | None:
    """The one option that a reply settles on; None where it names none or several."""
    claimed = find_claims(reply, [_strip(option) for option in options])
    return next((option for option in options if claimed == {_strip(option)}), None)


def grade_choice(reply: str, choice: str) -> Grade:
    """1 if the reply names what was chosen and nothing else that could have been."""
    return weigh_claim(_ASIDE.sub("", reply), _strip(choice), map(_strip, NAMES if choice in NAMES else PROMISES))


# What it was chosen from, and what came after it.
_ASIDE = lazy_pattern(
    r"\b(?:out of|from|between|among|of)\b[^.!?;:\n]{1,80}?(?=\bi (?:chose|picked|took|went|promised|settled)\b)"
    r"|[^.!?;,\n]{1,40}\b(?:came second|was second|was the runner-up|came close)\b",
    re.IGNORECASE,
)


def _strip(option: str) -> str:
    """The option without its article, which nobody must repeat."""
    return option.removeprefix("an ").removeprefix("a ")


class _OwnWordsReader(Reader):
    """Always takes the first, and remembers of what."""

    def __init__(self) -> None:
        self._chosen: dict[str, str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for phrasing, about in ((_NAMING, "thing"), (_PROMISING, "occasion")):
            if put := phrasing.read(message):
                self._chosen[put[about]] = put["a"]
                return put["a"]
        for phrasing, about in ((_ASK_NAME, "thing"), (_ASK_PROMISE, "occasion")):
            if asked := phrasing.read(message):
                return self._chosen.get(asked[about], "I do not know.")
        return None
