"""Two people are easily confused; what was told of the one must not be said of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.life import ATTRIBUTES
from themis.memory.material.names import STORY_NAMES, SURNAMES
from themis.memory.scoring import grade_claim_about, grade_recital_of
from themis.memory.tests.arguments import require_number

__all__ = ["Interference"]

KINDS = tuple(values for _, _, values in ATTRIBUTES.values())


@dataclass(kw_only=True)
class Interference(DatasetInterface):
    """Keeping similar memories apart.

    Scores: perfect 1, memoryless 0; the share of right answers. People share their first name and are told of in turns;
    an answer is right if it names what was told of the person asked about and nothing else of its kind. About 15 tokens
    per statement and per question. Interferes with no other test.
    """

    name: ClassVar[str] = "Interference"
    description: ClassVar[str] = "The agent must keep apart people who share a first name."

    people: int = 2
    attributes: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("interference", "people", self.people, least=2, most=6)
        require_number("interference", "attributes", self.attributes, least=1, most=len(ATTRIBUTES))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        first_name = chance.choice(STORY_NAMES)
        people = [f"{first_name} {surname}" for surname in chance.sample(SURNAMES, self.people)]
        told, asked = [], []
        for attribute in chance.sample(tuple(ATTRIBUTES), self.attributes):
            statement, question, values = ATTRIBUTES[attribute]
            pairs = list(zip(people, chance.sample(values, self.people), strict=True))
            told += [statement.format(who=who, value=value) for who, value in chance.sample(pairs, len(pairs))]
            who, value = chance.choice(pairs)
            asked.append((question.format(who=who), value))
        chance.shuffle(asked)
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*told, *(question for question, _ in asked)],
            is_question=[False] * len(told) + [True] * len(asked),
            expected_responses=[value for _, value in asked],
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        questions = [line for line, asked in zip(example.script, example.is_question, strict=True) if asked]
        told = zip(questions, example.expected_responses, strict=True)
        return [example.lines_with(_asked_about(question), value) for question, value in told]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        grades = []
        for question, reply, value in zip(questions, responses, expected, strict=True):
            who = _asked_about(question)
            values = next((kind for kind in KINDS if value in kind), ())
            recital = grade_recital_of(reply, value, expected)
            grades.append(recital or grade_claim_about(who, SURNAMES, reply, value, values))
        return Grade.mean(grades)


def _asked_about(question: str) -> str:
    """The surname in a question."""
    return next((surname for surname in SURNAMES if surname in question), "")
