"""Places are told one by one; the way from the last straight back to the first must be worked out."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Action, Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.town import build_town, position_after
from themis.memory.material.words import PLACES
from themis.memory.scoring import read_ways, shortened
from themis.memory.tests.arguments import require_number
from themis.memory.tests.judging import ask_yes_or_no

__all__ = ["Locations", "settle_way"]

_CONCLUSION = re.compile(r"\b(?:answer|net|result|total|overall|therefore|thus|so)\b", re.IGNORECASE)


@dataclass(kw_only=True)
class Locations(DatasetInterface):
    """Putting together statements that only make sense together.

    Scores: perfect 1, memoryless 0. The answer is computed from the places' coordinates; the last place never coincides
    with another and lies straight north, east, south or west of the first. A reply that ends as asked, or gives one single
    way, is settled without a judge. About 25 tokens per place. Interferes with locations_directions, which is set in
    another town.
    """

    name: ClassVar[str] = "Locations"
    description: ClassVar[str] = "The agent is told where places lie and must find the way from the last to the first."
    reset_message: ClassVar[str] = "We are leaving this town: please forget where its places are."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"locations_directions"})

    known_locations: int = 5

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("locations", "known_locations", self.known_locations, least=2, most=len(PLACES))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        town = build_town(self.known_locations, self.random(number), in_line=True)
        east, north = position_after(town.legs)
        if north:
            expected = f"{abs(north)} km {'South' if north > 0 else 'North'}"
        else:
            expected = f"{abs(east)} km {'West' if east > 0 else 'East'}"
        question = (
            f"I am at the {town.places[-1]}. In which direction and how far, as the crow flies, is the {town.places[0]}? "
            "Think step by step and end with one line of the form `Answer: <number> km <direction>`."
        )
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*town.statements, question],
            expected_responses=[expected],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [f"Answer: {example.expected_responses[0]}"]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Any
    ) -> Grade | Generator[Action, Any, Grade]:
        return settle_way(responses[0], expected[0]) or _ask_judge(questions[0], responses[0], expected[0])


def settle_way(reply: str, expected: str) -> Grade | None:
    """The verdict where the reply concludes as asked or names one way or none; None where it must be understood."""
    wanted = read_ways(expected)[0]
    ways = read_ways(_CONCLUSION.split(reply)[-1][:200]) or read_ways(reply)
    if len(set(ways)) == 1:
        return Grade.when(ways[0] == wanted, f"expected {expected}, got {ways[0][0]:g} km {ways[0][1]}")
    if wanted not in ways:
        return Grade(0.0, (f"expected {expected}, which is not in: {shortened(reply)}",))
    return None


def _ask_judge(question: str, reply: str, expected: str) -> Generator[Action, Any, Grade]:
    return ask_yes_or_no(
        f"Question:\n{question}\n\nRight answer: {expected}\n\nGiven answer:\n{reply}\n\n"
        "Does the given answer conclude with the right distance and direction?",
        purpose="is this the way?",
        undecided="names several ways; only a judge (--judge) can tell what it concludes",
        reason=f"names several ways; the judge was asked whether it concludes with {expected}",
    )
