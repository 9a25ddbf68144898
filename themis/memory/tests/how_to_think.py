"""A rule for choosing is given once; choices must follow it long afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import TestExample
from themis.memory.material.inns import INNS, make_rule, pose_dilemma
from themis.memory.scoring import grade_claim
from themis.memory.tests.arguments import require_number
from themis.memory.tests.inventing import InventedDataset

__all__ = ["HowToThink"]


@dataclass(kw_only=True)
class HowToThink(InventedDataset):
    """Applying a rule that was given long ago.

    Scores: perfect 1, memoryless 0, a guess 1/3 with three options; the share of right choices. A choice is right if the
    reply claims one inn and the rule chooses it; the rule is arbitrary and always decides, half of the time only by its
    second part. About 60 tokens for the rule and 80 per choice. Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    name: ClassVar[str] = "How to Think"
    description: ClassVar[str] = "The agent is given a rule for choosing and must follow it in later choices."
    invention: ClassVar[str] = (
        "Invent an arbitrary rule by which somebody wants choices to be made, told in the first person. Then pose five choices "
        "between named options that the rule decides and common sense does not; the answer is the name of the option."
    )

    dilemmas: int = 5
    options: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("how_to_think", "dilemmas", self.dilemmas, least=1)
        require_number("how_to_think", "options", self.options, least=3, most=9)
        return super().generate_examples(num_examples)

    def builtin_example(self, number: int) -> TestExample:
        chance = self.random(number)
        rule = make_rule(chance)
        dilemmas = [pose_dilemma(rule, self.options, chance) for _ in range(self.dilemmas)]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[rule.text, *(dilemma.question for dilemma in dilemmas)],
            is_question=[False, *(True for _ in dilemmas)],
            expected_responses=[dilemma.answer for dilemma in dilemmas],
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return Grade.mean(grade_claim(reply, answer, INNS) for reply, answer in zip(responses, expected, strict=False))
