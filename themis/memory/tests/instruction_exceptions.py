"""A standing instruction has exceptions, and the exceptions have one; each case must be treated rightly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.life import CITIES
from themis.memory.scoring import grade_claim
from themis.memory.tests.arguments import require_number

__all__ = ["InstructionExceptions"]

STORES = ("barn", "chapel", "gatehouse", "icehouse", "loft", "stable", "vestry", "washhouse")


@dataclass(kw_only=True)
class InstructionExceptions(DatasetInterface):
    """Following an instruction with exceptions over a long time.

    Scores: perfect 1, memoryless 0, a guess one in as many as there are stores; the share of parcels sent to the right
    one. The generator applies the rule it tells: fragile goes before origin, origin before the rest. Among the parcels
    every case occurs. About 100 tokens for the rule and 30 per parcel. Interferes with prospective_memory, which would
    have something appended to the replies.
    """

    name: ClassVar[str] = "Instruction with Exceptions"
    description: ClassVar[str] = "The agent must sort parcels by a rule with exceptions that was given once."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"prospective_memory"})

    exceptions: int = 2
    requests: int = 5

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("instruction_exceptions", "exceptions", self.exceptions, least=1, most=len(STORES) - 2)
        require_number("instruction_exceptions", "requests", self.requests, least=self.exceptions + 2)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        usual, fragile, *others = chance.sample(STORES, self.exceptions + 2)
        cities = chance.sample(CITIES, len(CITIES))
        special = dict(zip(cities, others, strict=False))
        ordinary = cities[self.exceptions :]
        rules = " ".join(f"Parcels from {city} go to the {store} instead." for city, store in special.items())
        rule = (
            f"Whenever I announce a parcel, tell me in one word where it goes. Parcels go to the {usual}. {rules} But "
            f"whatever is marked fragile goes to the {fragile}, wherever it comes from."
        )
        cases = [(chance.choice(ordinary), False), (chance.choice(list(special)), True), *((c, False) for c in special)]
        while len(cases) < self.requests:
            cases.append((chance.choice(cities), chance.random() < 0.3))
        chance.shuffle(cases)
        announced = [
            f"A parcel from {city} has arrived, {chance.randint(2, 30)} kg{', marked fragile' if breaks else ''}."
            for city, breaks in cases
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[rule, *announced],
            is_question=[False, *(True for _ in announced)],
            expected_responses=[fragile if breaks else special.get(city, usual) for city, breaks in cases],
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [[0] for _ in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return Grade.mean(
            grade_claim(reply, store, STORES) for reply, store in zip(responses, expected, strict=False)
        )  # fmt: skip
