"""Goods are put on a shopping list and struck off again; the list at the end must be right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.words import GOODS
from themis.memory.scoring import grade_quantities
from themis.memory.tests.arguments import require_number

__all__ = ["Shopping"]

ADDITIONS = (
    "Put {more}{quantity} × {item} on my shopping list.",
    "I need {more}{quantity} × {item}; please add that to the shopping list.",
    "For the shopping list: {more}{quantity} × {item}.",
)
REMOVALS = (
    "Take {quantity} × {item} off my shopping list.",
    "I found {quantity} × {item} at home, so strike that from the shopping list.",
)
QUESTION = (
    "What is on my shopping list? Answer with a JSON list of objects with the fields `item` and `quantity` (a number)."
)


@dataclass(kw_only=True)
class Shopping(DatasetInterface):
    """Keeping count while a list changes.

    Scores: perfect 1, memoryless 0. A third for the items found, a third for their quantities, a third for nothing else;
    see `grade_quantities`. The answer is kept by the generator as it writes the statements; the list is never empty at
    the end. About 25 tokens per change. Interferes with no other test.
    """

    name: ClassVar[str] = "Shopping"
    description: ClassVar[str] = "A shopping list changes step by step; the agent must know what is on it."
    reset_message: ClassVar[str] = "I have done my shopping: please forget the whole shopping list."

    item_changes: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("shopping", "item_changes", self.item_changes, least=1)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        listed: dict[str, int] = {}
        script = [_change(listed, chance) for _ in range(self.item_changes)]
        expected = [[item, quantity] for item, quantity in listed.items()]
        return TestExample(
            dataset=self, example_id=str(number), script=[*script, QUESTION], expected_responses=expected
        )  # fmt: skip

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps([{"item": item, "quantity": quantity} for item, quantity in example.expected_responses])]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_quantities(responses[0], expected)


def _change(listed: dict[str, int], chance: Random) -> str:
    """One change of the list and the sentence that tells of it; the last thing on the list is never struck off."""
    if sum(listed.values()) > 1 and chance.random() < 1 / 4:
        item = chance.choice(list(listed))
        quantity = chance.randint(1, min(listed[item], sum(listed.values()) - 1))
        listed[item] -= quantity
        if not listed[item]:
            del listed[item]
        return chance.choice(REMOVALS).format(quantity=quantity, item=item)
    item, quantity = chance.choice(GOODS), chance.randint(1, 3)
    sentence = chance.choice(ADDITIONS).format(more="another " if item in listed else "", quantity=quantity, item=item)
    listed[item] = listed.get(item, 0) + quantity
    return sentence
