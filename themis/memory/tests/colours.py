"""The user's favourite colour changes; only the last one counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.words import COLOURS
from themis.memory.scoring import grade_claim
from themis.memory.tests.arguments import require_number

__all__ = ["Colours"]

STATEMENTS = (
    "My favourite colour is {colour}.",
    "I have taken a liking to {colour}: it is the colour I love most.",
    "There is no colour like {colour} for me.",
    "If you ask for my favourite colour, it is {colour}.",
)


@dataclass(kw_only=True)
class Colours(DatasetInterface):
    """Overwriting one attribute whose values are common words.

    Scores: perfect 1, memoryless 0; naming every colour scores 0. The answer is the colour of the last statement, which
    differs from the one before. A colour may come back after another. About 20 tokens per colour. Interferes with no
    other test: no other one speaks of the user's favourite colour.
    """

    name: ClassVar[str] = "Colours"
    description: ClassVar[str] = "The user's favourite colour changes several times; the agent must know the last one."

    colour_changes: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("colours", "colour_changes", self.colour_changes, least=1)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        colours: list[str] = []
        for _ in range(self.colour_changes):
            colours.append(chance.choice([colour for colour in COLOURS if colours[-1:] != [colour]]))
        script = [chance.choice(STATEMENTS).format(colour=colour) for colour in colours]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*script, "What is my favourite colour?"],
            expected_responses=[colours[-1]],
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [[len(example.script) - 2]]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_claim(responses[-1], expected[0], COLOURS)
