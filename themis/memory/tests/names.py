"""The user's name changes; only the last one counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.names import FIRST_NAMES
from themis.memory.scoring import grade_claim
from themis.memory.tests.arguments import require_number

__all__ = ["STATEMENTS", "Names"]

STATEMENTS = (
    "Please call me {name}.",
    "My name is {name}.",
    "I have taken a new name: {name}.",
    "I go by the name of {name}.",
    "You may address me as {name}.",
    "At the registry office they put me down as {name}.",
)


@dataclass(kw_only=True)
class Names(DatasetInterface):
    """Overwriting one attribute.

    Scores: perfect 1, memoryless 0. The answer is the name in the last statement. It must be the only one that the reply
    claims, among all names that tests give to users. About 20 tokens per name. Interferes with name_list, which gives the
    user other names.
    """

    name: ClassVar[str] = "Names"
    description: ClassVar[str] = "The user gives a new name several times; the agent must know the last one."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"name_list"})

    name_changes: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("names", "name_changes", self.name_changes, least=1, most=len(FIRST_NAMES))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        names = chance.sample(FIRST_NAMES, self.name_changes)
        script = [chance.choice(STATEMENTS).format(name=name) for name in names]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*script, "What is my name?"],
            expected_responses=[names[-1]],
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [[len(example.script) - 2]]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_claim(responses[0], expected[0], FIRST_NAMES)
