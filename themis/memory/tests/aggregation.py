"""Numbers are told in reports far apart; sums and counts over all of them must be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.life import REPAIRS
from themis.memory.scoring import grade_claim, grade_number
from themis.memory.tests.arguments import require_number

__all__ = ["Aggregation"]


@dataclass(kw_only=True)
class Aggregation(DatasetInterface):
    """Putting together what was never said together.

    Scores: perfect 1, memoryless 0. A third each for a sum over all reports, for the number of reports that speak of a
    thing, and for what was repaired most often. All are computed from the reports; the last one is unique. One wrong or
    forgotten report makes an answer wrong. About 30 tokens per report. Interferes with no other test.
    """

    name: ClassVar[str] = "Aggregation"
    description: ClassVar[str] = "The agent must add up and count over reports that lie far apart."

    sessions: int = 5

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("aggregation", "sessions", self.sessions, least=3)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        while True:
            reports, kinds = _reports(self.sessions, chance)
            totals = {kind: sum(report.get(kind, 0) for report in reports) for kind in kinds}
            seen = {kind: sum(1 for report in reports if kind in report) for kind in kinds}
            ranking = sorted(totals.values())
            # A count of one is often written as the pronoun, and a tie has no answer.
            if min(seen.values()) > 1 and ranking[-1] > ranking[-2]:
                break
        summed, counted = chance.sample(kinds, 2)
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[
                *(f"Report from my workshop: repaired {_listed(report)}." for report in reports),
                f"How many {summed} have been repaired, all my workshop reports taken together? Answer with a number.",
                f"In how many of my workshop reports were there any {counted}? Answer with a number.",
                "What has my workshop repaired most often, all reports taken together? Answer with one word.",
            ],
            is_question=[False] * self.sessions + [True] * 3,
            expected_responses=[str(totals[summed]), str(seen[counted]), max(kinds, key=lambda kind: totals[kind])],
        )

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return Grade.mean(
            [
                grade_number(responses[0], int(expected[0])),
                grade_number(responses[1], int(expected[1])),
                grade_claim(responses[2], expected[2], REPAIRS),
            ]
        )


def _reports(sessions: int, chance: Random) -> tuple[list[dict[str, int]], list[str]]:
    kinds = chance.sample(REPAIRS, 3)
    return [
        {kind: chance.randint(2, 9) for kind in chance.sample(kinds, chance.randint(1, 3))} for _ in range(sessions)
    ], kinds


def _listed(report: dict[str, int]) -> str:
    return " and ".join(f"{count} {kind}" for kind, count in report.items())
