"""Some things were told and some never were; where nothing was told, the right answer is to say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.life import ACQUAINTANCES
from themis.memory.material.names import SURNAMES
from themis.memory.scoring import abstains, claims, grade_claim, said_of, shortened
from themis.memory.tests.arguments import require_number

__all__ = ["Abstention", "grade_abstention"]

IGNORANCE = "You have not told me."


@dataclass(kw_only=True)
class Abstention(DatasetInterface):
    """Knowing what one does not know.

    Scores: perfect 1, memoryless 0, and 0 for whoever always abstains or never does. The score is the share of told names
    that were given plus the share of untold ones that were declined, minus 1, not below 0. A reply that declines and
    guesses nevertheless is wrong. About 15 tokens per fact and 20 per question. Interferes with no other test: no other
    one names these people.
    """

    name: ClassVar[str] = "Abstention"
    description: ClassVar[str] = "The agent must give what it was told and admit what it was not told."

    facts: int = 4
    unknowns: int = 4

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("abstention", "facts", self.facts, least=1, most=len(ACQUAINTANCES) - 1)
        require_number("abstention", "unknowns", self.unknowns, least=1, most=len(ACQUAINTANCES) - self.facts)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        people = chance.sample(ACQUAINTANCES, self.facts + self.unknowns)
        names = chance.sample(SURNAMES, self.facts)
        told = dict(zip(people, names, strict=False))
        asked = chance.sample(people, len(people))
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[
                *(f"The surname of my {person} is {name}." for person, name in told.items()),
                *(f"What is the surname of my {person}? If I have not told you, say so." for person in asked),
            ],
            is_question=[False] * self.facts + [True] * len(asked),
            expected_responses=[told.get(person) for person in asked],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [name or IGNORANCE for name in example.expected_responses]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        # That nothing was told is known only to those who remember everything.
        return [example.lines_with(f" {name}.") if name else None for name in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        people = [next((one for one in ACQUAINTANCES if one in question), "") for question in questions]
        return grade_abstention(responses, expected, people)


def grade_abstention(replies: Sequence[str], expected: Sequence[str | None], people: Sequence[str]) -> Grade:
    """Share of told names given, plus share of untold ones declined, minus 1; None is expected where nothing was told.

    What a reply says of others than the one of `people` who was asked about does not count.
    """
    known: list[float] = []
    unknown: list[float] = []
    reasons: list[str] = []
    for reply, name, person in zip(replies, expected, people, strict=False):
        answer = said_of(reply, person, ACQUAINTANCES)
        if name is not None:
            grade = grade_claim(answer, name, SURNAMES)
            known.append(grade.score)
            reasons += grade.reasons
        else:
            declined = abstains(reply) and not claims(answer, SURNAMES)
            unknown.append(float(declined))
            reasons.append(f"{'declines' if declined else 'should decline'}: {shortened(reply, 60)}")
    given = sum(known) / len(known) if known else 1.0
    declined_share = sum(unknown) / len(unknown) if unknown else 1.0
    return Grade.share(given + declined_share - 1, 1, *reasons)
