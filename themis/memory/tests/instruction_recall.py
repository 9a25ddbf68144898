"""A procedure is explained once; its details are needed when it is carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import TestExample
from themis.memory.material.machine import KINDS, STEPS_AVAILABLE, write_instructions
from themis.memory.scoring import grade_answers
from themis.memory.tests.arguments import require_number
from themis.memory.tests.inventing import InventedDataset

__all__ = ["InstructionRecall"]


@dataclass(kw_only=True)
class InstructionRecall(InventedDataset):
    """Recall of a procedure.

    Scores: perfect 1, memoryless 0; the share of right answers. An answer is right if it gives the detail of the step and
    no other one; reciting the instructions each time scores 0. Machine and steps are made up. About 15 tokens per step and
    25 per question. Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    name: ClassVar[str] = "Instruction Recall"
    description: ClassVar[str] = "The agent is told how to start an invented machine and asked for the steps later."
    invention: ClassVar[str] = (
        "Invent a fictional machine or craft and the ten steps of using it, one sentence each, with odd details. Then ask five "
        "questions about details of single steps."
    )
    reset_message: ClassVar[str] = "Please forget how that machine is started."

    steps: int = 10
    questions: int = 5

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("instruction_recall", "steps", self.steps, least=2, most=STEPS_AVAILABLE)
        require_number("instruction_recall", "questions", self.questions, least=1, most=self.steps)
        return super().generate_examples(num_examples)

    def builtin_example(self, number: int) -> TestExample:
        instructions = write_instructions(self.steps, self.questions, self.random(number))
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[instructions.text, *instructions.questions],
            is_question=[False, *(True for _ in instructions.questions)],
            expected_responses=list(instructions.answers),
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_answers(responses, expected, KINDS, questions)
