"""Something changes at given dates; both how it is and how it was at a date must be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.life import MONTHS, ROOMS
from themis.memory.scoring import first_claimed, grade_claim, mentioned
from themis.memory.tests.arguments import require_number

__all__ = ["KnowledgeUpdate", "grade_as_of"]


@dataclass(kw_only=True)
class KnowledgeUpdate(DatasetInterface):
    """Updating without overwriting.

    Scores: perfect 1, memoryless 0; half for the latest value, half for the one that held at a date in the past. Each
    statement carries its date, so both follow from the statements alone. Naming several rooms is wrong. About 25 tokens
    per update. Interferes with no other test.
    """

    name: ClassVar[str] = "Knowledge Update"
    description: ClassVar[str] = "A fact changes several times; the agent must know it now and as of an earlier date."

    updates: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("knowledge_update", "updates", self.updates, least=2, most=len(MONTHS))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        months = sorted(chance.sample(range(len(MONTHS)), self.updates))
        rooms = chance.sample(ROOMS, self.updates)
        days = [chance.randint(2, 12) for _ in months]
        script = [
            f"On {day} {MONTHS[month]} our choir moved to the {room} room and has rehearsed there ever since."
            for day, month, room in zip(days, months, rooms, strict=True)
        ]
        then = chance.randrange(self.updates - 1)
        date = f"{days[then] + chance.randint(3, 15)} {MONTHS[months[then]]}"
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[
                *script,
                "In which room does our choir rehearse, after all these changes?",
                f"And in which room did our choir rehearse on {date} of the same year? Name the room only.",
            ],
            is_question=[False] * self.updates + [True, True],
            expected_responses=[rooms[-1], rooms[then]],
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(f"the {room} room") for room in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return Grade.mean(
            [grade_claim(responses[0], expected[0], ROOMS), grade_as_of(responses[1], expected[1])]
        )  # fmt: skip


def grade_as_of(reply: str, expected: str) -> Grade:
    """1 if the room that the reply names first, apart from what it denies, is that of the time, with at most one more."""
    named = mentioned(reply, ROOMS)
    right = first_claimed(reply, ROOMS) == {expected} and len(named) <= 2
    return Grade.when(right, f"expected {expected!r}, got {', '.join(sorted(named)[:5]) or 'no room'}")
