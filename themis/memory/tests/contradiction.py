"""Among many statements some contradict each other; the agent must tell which."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.life import MONTHS
from themis.memory.material.names import STORY_NAMES
from themis.memory.scoring import grade_members
from themis.memory.tests.arguments import require_number

__all__ = ["ContradictionDetection"]

QUESTION = (
    "I have told you birthdays of several people. About which of them have I contradicted myself? Answer with a JSON list of "
    "their names."
)


@dataclass(kw_only=True)
class ContradictionDetection(DatasetInterface):
    """Noticing what does not fit together.

    Scores: perfect 1, memoryless 0. Everybody's birthday is told twice, for some in another month the second time. A reply
    scores its right names divided by the longer of the expected and the given list, so naming everybody scores the share
    that is contradictory, at most a third. About 15 tokens per statement. Interferes with no other test.
    """

    name: ClassVar[str] = "Contradiction Detection"
    description: ClassVar[str] = "The agent must tell about whom the user has contradicted themselves."

    people: int = 6
    contradictions: int = 2

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("contradiction", "people", self.people, least=3, most=len(STORY_NAMES))
        require_number("contradiction", "contradictions", self.contradictions, least=1, most=self.people // 3)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        people = chance.sample(STORY_NAMES, self.people)
        contradicted = set(chance.sample(people, self.contradictions))
        first = {person: chance.choice(MONTHS) for person in people}
        second = {
            person: chance.choice([month for month in MONTHS if month != first[person]])
            if person in contradicted
            else first[person]
            for person in people
        }
        script = [f"{person}'s birthday is in {first[person]}." for person in people]
        script += [f"{person} was born in {second[person]}." for person in chance.sample(people, len(people))]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*script, QUESTION],
            expected_responses=[person for person in people if person in contradicted],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps(example.expected_responses)]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_members(responses[0], expected)
