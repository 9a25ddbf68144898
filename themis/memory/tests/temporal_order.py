"""Things are done days and weeks apart; their order and the time between them must be known."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from themis.memory.actions import Ask, Grade, Say, Script, Wait
from themis.memory.examples import LAST_SHARE, DatasetInterface, TestExample
from themis.memory.material.life import DEEDS
from themis.memory.scoring import grade_number, grade_order, in_figures
from themis.memory.tests.arguments import require_number

__all__ = ["TemporalOrder", "grade_days"]

_SPAN = re.compile(
    r"\b(\d{1,4}|an?|one) (minute|hour|week|fortnight|month|year)s?\b(?:,? and (\d{1,2}|an?|one) days?\b)?"
)
_DAYS = {"minute": 1 / 1440, "hour": 1 / 24, "week": 7, "fortnight": 14, "month": 30, "year": 365}


@dataclass(kw_only=True)
class TemporalOrder(DatasetInterface):
    """A sense of time.

    Scores: perfect 1, memoryless 0. A third each for the order of all deeds, for the days between two of them, and for the
    days since one of them. The order scores pairs in the right order minus pairs in the wrong one; days may be off by one
    or a tenth. The deeds are told in the present, and when each was told is known from the virtual clock. A random order
    of four scores a fifth of its third. About 20 tokens per deed. Interferes with no other test.
    """

    name: ClassVar[str] = "Temporal Order"
    description: ClassVar[str] = "Events lie days and weeks apart; the agent must know their order and distance."

    events: int = 4
    days_low: int = 2
    days_high: int = 21

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("temporal_order", "events", self.events, least=2, most=len(DEEDS))
        require_number("temporal_order", "days_low", self.days_low, least=1)
        require_number("temporal_order", "days_high", self.days_high, least=self.days_low)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        deeds = chance.sample(tuple(DEEDS), self.events)
        days = [chance.randint(self.days_low, self.days_high) for _ in deeds]
        earlier, later = sorted(chance.sample(range(self.events), 2))
        return TestExample(
            dataset=self,
            example_id=str(number),
            expected_responses=[deeds],
            material={"days": days, "between": [earlier, later], "since": chance.randrange(self.events)},
        )

    def play(self, example: TestExample) -> Script:
        deeds, asked = example.expected_responses[0], example.material
        told = []
        for place, (deed, days) in enumerate(zip(deeds, asked["days"], strict=True), start=1):
            told.append((yield Say(f"A little news: an hour ago I {DEEDS[deed]}.")).now)
            yield Wait(time=timedelta(days=days), until_share=place * LAST_SHARE / len(deeds))
        now = (yield Wait()).now
        earlier, later = asked["between"]
        between, since = _days(told[later] - told[earlier]), _days(now - told[asked["since"]])

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
    return grade_number(_SPAN.sub(_in_days, in_figures(reply)), days, tolerance=max(1, days // 10), unit="days")


def _in_days(span: re.Match[str]) -> str:
    count, more = (int(figures) if figures.isdigit() else 1 for figures in (span[1], span[3] or "0"))
    return f"{count * _DAYS[span[2]] + more:.0f} days"


def _days(elapsed: timedelta) -> int:
    return round(elapsed / timedelta(days=1))
