"""Facts about a place that does not exist are given all at once and asked for much later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import TestExample
from themis.memory.material.island import KINDS, describe_island
from themis.memory.scoring import grade_answers
from themis.memory.tests.arguments import require_number
from themis.memory.tests.inventing import InventedDataset

__all__ = ["DelayedRecall"]

LEAD_INS = (
    "Back to the island I told you about.",
    "A question about that island.",
    "Do you remember the island?",
    "Let us return to the island for a moment.",
)


@dataclass(kw_only=True)
class DelayedRecall(InventedDataset):
    """Recall of many facts given once.

    Scores: perfect 1, memoryless 0; the share of right answers. An answer is right if it names what was told and nothing
    else of its kind; reciting all facts each time scores 0. The island and its facts are made up, so no model knows them
    beforehand. About 20 tokens per fact, once told and once asked. Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    name: ClassVar[str] = "Delayed Recall"
    description: ClassVar[str] = "The agent is told facts about an invented island and asked for them later."
    invention: ClassVar[str] = (
        "Invent a fictional place and ten facts about it that nobody could guess, one sentence each. Then ask one question per "
        "fact."
    )
    reset_message: ClassVar[str] = "Please forget everything about that island."

    facts: int = 10

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("delayed_recall", "facts", self.facts, least=2, most=len(KINDS))
        return super().generate_examples(num_examples)

    def builtin_example(self, number: int) -> TestExample:
        chance = self.random(number)
        facts = describe_island(self.facts, chance)
        told = "Let me tell you about an island.\n" + "\n".join(fact.statement for fact in facts)
        asked = chance.sample(facts, len(facts))
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[told, *(f"{chance.choice(LEAD_INS)} {fact.question}" for fact in asked)],
            is_question=[False, *(True for _ in asked)],
            expected_responses=[fact.answer for fact in asked],
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_answers(responses, expected, KINDS, questions)
