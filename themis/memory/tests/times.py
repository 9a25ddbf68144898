"""Things told hours, days and weeks apart: when, in which order and how long ago must be known."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import ClassVar

from themis.memory.actions import AgentReply, Ask, Grade, Grading, Say, Script, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.scoring.lists import grade_order, measure_recall
from themis.memory.scoring.numbers import grade_number, to_figures
from themis.memory.scoring.words import shorten, split_words
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, whole_number

# --- deeds of the user ------------------------------------------------------------------------------------------------

# The word that stands for a deed, and the deed.
DEEDS = {
    "hedge": "planted the hedge", "piano": "sold the piano", "fence": "painted the fence", "canoe": "built the canoe",
    "kitchen": "tiled the kitchen", "novel": "finished the novel", "clarinet": "bought the clarinet",
    "cellar": "cleared out the cellar", "will": "signed the will", "beehive": "set up the beehive",
}  # fmt: skip


@dataclass(kw_only=True)
class TemporalOrder(BuiltinTest):
    """A sense of time.

    Scores: perfect 1, memoryless 0. A third each for the order of all deeds, for the days between two of them, and for the
    days since one of them. The order scores pairs in the right order minus pairs in the wrong one; days may be off by one
    or a tenth. The deeds are told in the present, and when each was told is known from the virtual clock. A random order
    of four scores a fifth of its third. About 20 tokens per deed. Interferes with no other test.
    """

    kind: ClassVar[str] = "temporal_order"
    name: ClassVar[str] = "Temporal Order"
    description: ClassVar[str] = "Events lie days and weeks apart; the agent must know their order and distance."
    answers: ClassVar[Sequence[str]] = (*DEEDS, *map(str, range(100)))

    events: int = whole_number(4, least=2, most=len(DEEDS))
    days_low: int = whole_number(2, least=1)
    days_high: int = whole_number(21, least=lambda test: test.days_low)

    def make_example(self, number: int, rng: Random) -> TestExample:
        deeds = rng.sample(tuple(DEEDS), self.events)
        days = [rng.randint(self.days_low, self.days_high) for _ in deeds]
        earlier, later = sorted(rng.sample(range(self.events), 2))
        return TestExample(
            dataset=self,
            example_id=str(number),
            expected_responses=[deeds],
            material={"days": days, "between": [earlier, later], "since": rng.randrange(self.events)},
        )

    def play(self, example: TestExample) -> Script:
        deeds, asked = example.expected_responses[0], example.material
        told = []
        for place, (deed, days) in enumerate(zip(deeds, asked["days"], strict=True), start=1):
            told.append((yield Say(f"A little news: an hour ago I {DEEDS[deed]}.")).now)
            yield Wait(time=timedelta(days=days), until_share=place * LAST_SHARE / len(deeds))
        now = (yield Wait()).now
        earlier, later = asked["between"]
        between, since = _count_days(told[later] - told[earlier]), _count_days(now - told[asked["since"]])

        order = yield Ask(
            f"I have told you when I did something about each of these: {', '.join(sorted(deeds))}. In which order did I "
            "do it? Answer with a JSON list of these words, the earliest first.",
            ideal=json.dumps(deeds),
        )
        distance = yield Ask(
            f"How many days after I {DEEDS[deeds[earlier]]} was it that I {DEEDS[deeds[later]]}? Answer in days.",
            ideal=f"{between} days",
            needs=(earlier, later),
        )
        age = yield Ask(
            f"How many days ago is it that I {DEEDS[deeds[asked['since']]]}? Answer in days.",
            ideal=f"{since} days",
            needs=(asked["since"],),
        )
        yield Grade.mean([grade_order(order, deeds), grade_days(distance, between), grade_days(age, since)])


def grade_days(reply: str, days: int) -> Grade:
    """1 if the reply settles on this many days, give or take one or a tenth; weeks count as seven."""
    return grade_number(_SPAN.sub(_to_days, to_figures(reply)), days, tolerance=max(1, days // 10), unit="days")


_SPAN = re.compile(
    r"\b(\d{1,4}|an?|one) (minute|hour|week|fortnight|month|year)s?\b(?:,? and (\d{1,2}|an?|one) days?\b)?"
)
_DAYS = {"minute": 1 / 1440, "hour": 1 / 24, "week": 7, "fortnight": 14, "month": 30, "year": 365}


def _to_days(span: re.Match[str]) -> str:
    count, more = (int(figures) if figures.isdigit() else 1 for figures in (span[1], span[3] or "0"))
    return f"{count * _DAYS[span[2]] + more:.0f} days"


def _count_days(elapsed: timedelta) -> int:
    return round(elapsed / timedelta(days=1))


# --- jokes ------------------------------------------------------------------------------------------------------------

# One-liners, written for these tests. No two share more than a few words.
JOKES = (
    "My calendar resigned this morning; it said its days were numbered.",
    "I lent my ladder to a mathematician, and he returned it with an extra rung for infinity.",
    "The ghost failed the job interview because everyone could see right through him.",
    "I bought a boomerang second-hand, but the former owner keeps coming back.",
    "Our village baker quit after thirty years since he no longer kneaded the dough.",
    "A snail was robbed by two tortoises and told the police that it all happened too fast.",
    "My tailor dislikes gossip, yet he is always ready to hem and haw.",
    "The clockmaker's party was dull at the beginning, then everybody got wound up.",
    "I told my suitcase that there would be no holiday this year, and it has been full of emotional baggage.",
    "Fishermen make poor comedians because their best lines are always under water.",
    "The orchestra's triangle player left suddenly after one ting led to another.",
    "A librarian slipped on the ice and landed in the non-friction section.",
    "Gardeners never lose an argument; they simply plant a doubt and let it grow.",
    "My bicycle fell asleep in the hallway, for it was two tired.",
    "The astronomer moved to a smaller house as he needed no more space.",
    "Whoever invented the knock on doors deserves a prize with no bell on it.",
)
# Of a joke's words: so many mean that it was told again, so few that it was not.
_TOLD, _NOT_TOLD = 0.8, 0.4
# So many long words of a joke point at it.
_ALLUDED, _LONG = 2, 5


@dataclass(kw_only=True)
class Jokes(BuiltinTest):
    """Episodic memory: when something was said.

    Scores: perfect 1, memoryless 0; reciting several jokes scores 0. Which joke is meant follows from the virtual times
    at which they were told, at least `minutes_low` apart. A reply with most of the joke's words is right, one with few of
    them wrong; only a paraphrase in between goes to the judge. About 30 tokens per joke. Interferes with no other test.
    """

    kind: ClassVar[str] = "jokes"
    name: ClassVar[str] = "Jokes"
    description: ClassVar[str] = "The agent must recall which joke was told how long ago."
    answers: ClassVar[Sequence[str]] = JOKES

    jokes_told: int = whole_number(3, least=1, most=len(JOKES))
    minutes_low: int = whole_number(30, least=1)
    minutes_high: int = whole_number(240, least=lambda test: test.minutes_low)
    joke_prefix: bool = False

    def make_example(self, number: int, rng: Random) -> TestExample:
        told = rng.sample(JOKES, self.jokes_told)
        waits = [
            Wait(
                time=timedelta(minutes=rng.randint(self.minutes_low, self.minutes_high)),
                until_share=place * LAST_SHARE / self.jokes_told,
            )
            for place in range(1, self.jokes_told + 1)
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[f"Here is a joke: {joke}" if self.joke_prefix else joke for joke in told],
            is_question=[False] * self.jokes_told + [True],
            waits=waits,
            expected_responses=[rng.choice(told)],
            is_temporal=True,
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(example.expected_responses[0])]

    def temporal_question(self, example: TestExample, said: Sequence[AgentReply], now: datetime) -> str:
        joke = example.expected_responses[0]
        told = next(heard for heard, line in zip(said, example.script, strict=False) if joke in line)
        return f"Which joke did I tell you about {_format_elapsed(now - told.now)} ago?"

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grading:
        return grade_joke(responses[-1], expected[0]) or ask_yes_or_no(
            f"Somebody was to repeat this joke:\n{expected[0]}\n\nThey said:\n{responses[-1]}\n\n"
            "Did they tell or clearly paraphrase this joke, and no other one?",
            purpose="is this the joke?",
            undecided="a paraphrase that only a judge (--judge) can settle",
            reason=f"the judge was asked whether the reply paraphrases {shorten(expected[0], 60)!r}",
        )


def grade_joke(reply: str, expected: str) -> Grade | None:
    """The verdict where words decide; None for a paraphrase or an allusion."""
    shares = {joke: measure_recall(reply, joke) for joke in (*JOKES, expected)}
    others = [joke for joke, share in shares.items() if joke != expected and share >= _TOLD]
    if others:
        return Grade(0.0, (f"expected only {shorten(expected, 60)!r}, tells also {shorten(others[0], 60)!r}",))
    if shares[expected] >= _TOLD:
        return Grade(1.0, (f"tells {shorten(expected, 60)!r}",))
    if shares[expected] <= _NOT_TOLD and len(_long_words(expected) & _long_words(reply)) < _ALLUDED:
        return Grade(0.0, (f"expected {shorten(expected, 60)!r}, got: {shorten(reply)}",))
    return None


def _long_words(text: str) -> set[str]:
    """The words of a text that are long enough to tell it from others."""
    return {word for word in split_words(text) if len(word) >= _LONG}


def _format_elapsed(elapsed: timedelta) -> str:
    minutes = max(1, round(elapsed.total_seconds() / 60))
    parts = [(minutes // 1440, "day"), (minutes % 1440 // 60, "hour"), (minutes % 60, "minute")]
    return " ".join(f"{count} {unit}{'s' * (count != 1)}" for count, unit in parts if count)
