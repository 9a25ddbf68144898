"""The user's name changes; all names ever given must be listed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.names import FIRST_NAMES
from themis.memory.scoring import grade_members
from themis.memory.tests.arguments import require_number
from themis.memory.tests.names import STATEMENTS

__all__ = ["NameList"]


@dataclass(kw_only=True)
class NameList(DatasetInterface):
    """Keeping every value of one attribute.

    Scores: perfect 1, memoryless 0. A reply scores its right names divided by the longer of the expected and the given
    list, so listing all names that exist scores next to nothing; a reply without a JSON list scores 0. The answer is the
    names of the statements. About 20 tokens per name. Interferes with names.
    """

    name: ClassVar[str] = "NameList"
    description: ClassVar[str] = "The user gives a new name several times; the agent must list all of them."
    reset_message: ClassVar[str] = "Please forget every name that I have told you I go by."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"names"})

    name_changes: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("name_list", "name_changes", self.name_changes, least=1, most=len(FIRST_NAMES))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        names = chance.sample(FIRST_NAMES, self.name_changes)
        script = [chance.choice(STATEMENTS).format(name=name) for name in names]
        question = "Which names have I told you I go by, all of them? Answer with a JSON list of strings."
        return TestExample(
            dataset=self, example_id=str(number), script=[*script, question], expected_responses=names
        )  # fmt: skip

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps(example.expected_responses)]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_members(responses[0], expected)
