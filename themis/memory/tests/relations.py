"""Facts about people that only lead somewhere together: who works where, who runs it, where that person comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import grade_retelling, leaves_open, weigh_claim
from themis.memory.scoring.words import shorten
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.word_lists import TOWNS

_PLACES = (
    "archive", "bell foundry", "boatyard", "brewery", "cannery", "glassworks", "herbarium", "mint", "observatory",
    "paper mill", "printing works", "quarry", "salt works", "seed bank", "tannery", "waterworks",
)  # fmt: skip
_NAME = r"\w+ \w+"
_SLOTS = {"who": _NAME, "head": _NAME, "place": any_of(_PLACES), "town": any_of(TOWNS), "former": any_of(TOWNS)}
_WORKS = Phrasing(
    "{who} works at the {place} in {town}.",
    "{who} has [found a post|been taken on] at the {place} in {town}.",
    "I ran into {who}, who [earns a living|spends the days] at the {place} in {town}.",
    "The {place} in {town} is where {who} goes to work[ every morning|].",
    "Since [the spring|last autumn|the new year] the {place} in {town} has {who} on its payroll.",
    "{who} told me about the goings-on at work: that is the {place} in {town}.",
    "They gave {who} a desk at the {place} in {town}, right by the window.",
    "If you are looking for {who} on a weekday, try the {place} in {town}.",
    "{who} did not stay in {former}, but [went to|took a job at] the {place} in {town}.",
    "People think that {who} works in {former}; in truth it is the {place} in {town}.",
    **_SLOTS,
)
_RUNS = Phrasing(
    "{head} runs the {place} in {town}.",
    "The {place} in {town} is run by {head}.",
    "At the {place} in {town} {head} has the last word.",
    "{head} is in charge of the {place} in {town}.",
    "The one who signs the letters of the {place} in {town} is {head}.",
    "{head} took over the {place} in {town} [years ago|from an uncle|after the strike].",
    "Everybody at the {place} in {town} answers to {head}.",
    "For complaints about the {place} in {town} you would have to write to {head}, who heads it.",
    "It was not easy, but {head} now manages the {place} in {town}.",
    "The {place} in {town} got {head} as its new director.",
    **_SLOTS,
)
_COMES = Phrasing(
    "{head} comes from {town}.",
    "{head} grew up in {town}.",
    "{town} is where {head} was born.",
    "You can hear that {head} was raised in {town}.",
    "{head} still misses {town}, the town of those first years.",
    "As a child {head} lived in {town}.",
    "There is a photograph of {head} as a baby, taken at home in {town}.",
    "{head} went to school in {town}, as all children of that town did.",
    "[They say|I once heard] that {head} is from {former}, but no: the birthplace is {town}.",
    "{town} put up a plaque for {head}, its most famous child.",
    **_SLOTS,
)
_ASK = Phrasing(
    "Where does the person come from who runs the place where {who} works? Answer with the name of the town.",
    "From which town does the head of the place where {who} works come? Answer with the name of the town.",
    "{who} has a boss at the top of the house. From which town is that person? Answer with the name of the town.",
    **_SLOTS,
)


@dataclass(kw_only=True)
class MultiHop(BuiltinTest):
    """Following a chain of facts that were told at different times.

    Scores: perfect 1, memoryless 0; the share of right answers. Each answer takes three facts: where somebody works, who
    runs that place, where that person comes from. The chains are alike and told in a mixed order, and no fact names both
    ends of one; an answer is right if it names the town at the end of its chain and no other. About 60 tokens per fact.
    Interferes with no other test: its people and places are its own.
    """

    kind: ClassVar[str] = "multi_hop"
    name: ClassVar[str] = "Multi-Hop"
    description: ClassVar[str] = "The agent must follow chains of facts that were told at different times."
    interferes_with_itself: ClassVar[bool] = False
    answers: ClassVar[Sequence[str]] = TOWNS

    chains: int = whole_number(2, least=2, most=8)

    def make_example(self, number: int, rng: Random) -> TestExample:
        workers, heads = self.world.people(rng, self.chains), self.world.people(rng, self.chains)
        seats, origins = self.world.towns(rng, self.chains), self.world.towns(rng, self.chains)
        facts: list[tuple[str, int]] = []
        for chain in range(self.chains):
            place = rng.choice(_PLACES)
            # Where people are wrongly thought to be is a town of another chain, so that nothing sets it apart.
            other = (chain + 1) % self.chains
            facts += [
                (_WORKS.say(rng, who=workers[chain], place=place, town=seats[chain], former=origins[other]), chain),
                (_RUNS.say(rng, head=heads[chain], place=place, town=seats[chain]), chain),
                (_COMES.say(rng, head=heads[chain], town=origins[chain], former=seats[other]), chain),
            ]
        rng.shuffle(facts)
        asked = rng.sample(range(self.chains), self.chains)
        return self.tell_and_ask(
            number,
            [self.chat(rng, fact) for fact, _ in facts],
            [_ASK.say(rng, who=workers[chain]) for chain in asked],
            # The town of the place of work lies on the way, and whoever explains the answer names it.
            [[origins[chain], seats[chain]] for chain in asked],
            needed=[[line for line, (_, of) in enumerate(facts) if of == chain] for chain in asked],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [origin for origin, _ in example.expected_responses]

    def every_answer(self, example: TestExample) -> list[object]:
        # Every tenth town stands for the rest.
        return [*self.ideal_answers(example), *self.answers[::10]]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[Sequence[str]]
    ) -> Judgement:
        grades = [_grade_town(*one) for one in zip(responses, expected, strict=False)]
        origins = [origin for origin, _ in expected]
        return Grade.mean((yield from settle(questions, responses, origins, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _MultiHopReader()


def _grade_town(reply: str, expected: Sequence[str]) -> Grade:
    origin, seat = expected
    if retold := grade_retelling(reply, _WORKS, _RUNS, _COMES, slot="town"):
        return retold
    if leaves_open(reply, TOWNS):
        return Grade(0.0, (f"expected {origin!r}, leaves open which town: {shorten(reply)}",))
    # Where they work is no answer, and no slip for one.
    reply = re.sub(rf"\b{re.escape(seat)}\b", "there", reply, flags=re.IGNORECASE)
    about = _OF_OTHERS.sub("", reply)
    return weigh_claim(about if about.strip() else reply, origin, [town for town in TOWNS if town != seat])


# A sentence about another chain.
_OF_OTHERS = lazy_pattern(
    r"[^.!?;\n]{1,80}\bthe other (?:one|boss|head|director|person|chain|place)\b[^.!?;\n]{0,80}[.!?;]?"
)


class _MultiHopReader(Reader):
    def __init__(self) -> None:
        self._work: dict[str, tuple[str, str]] = {}
        self._heads: dict[tuple[str, str], str] = {}
        self._origins: dict[str, str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _WORKS.read_all(message):
            self._work[told["who"]] = told["place"], told["town"]
        for told in _RUNS.read_all(message):
            self._heads[told["place"], told["town"]] = told["head"]
        for told in _COMES.read_all(message):
            self._origins[told["head"]] = told["town"]
        asked = _ASK.read(message)
        if asked is None:
            return None
        head = self._heads.get(self._work.get(asked["who"], ("", "")), "")
        return self._origins.get(head, "I do not know.")
