"""A preference is mentioned once; later advice must respect it without being reminded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.preferences import PREFERENCES
from themis.memory.scoring import grade_claim
from themis.memory.tests.arguments import require_number

__all__ = ["PreferenceFollowing"]

_OPTIONS = tuple(option for preference in PREFERENCES for option in (*preference.fitting, *preference.violating))


@dataclass(kw_only=True)
class PreferenceFollowing(DatasetInterface):
    """Using what is known without being asked for it.

    Scores: perfect 1, memoryless 0, a guess 1/3; the share of requests that were advised well. Exactly one of three
    options fits what the user said of themselves; naming several is wrong. About 15 tokens per preference and 40 per
    request. Interferes with restaurant, where dishes are chosen too.
    """

    name: ClassVar[str] = "Preference Following"
    description: ClassVar[str] = "The agent must give advice that fits preferences mentioned long before."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"restaurant"})

    preferences: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("preference", "preferences", self.preferences, least=1, most=len(PREFERENCES))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        chosen = chance.sample(PREFERENCES, self.preferences)
        requests, expected = [], []
        for preference in chance.sample(chosen, len(chosen)):
            fitting = chance.choice(preference.fitting)
            options = chance.sample((fitting, *chance.sample(preference.violating, 2)), 3)
            requests.append(f"{preference.request}: {options[0]}, {options[1]} or {options[2]}? Name one of them.")
            expected.append(fitting)
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*(preference.statement for preference in chosen), *requests],
            is_question=[False] * len(chosen) + [True] * len(requests),
            expected_responses=expected,
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        told = {option: one.statement for one in PREFERENCES for option in one.fitting}
        return [example.lines_with(told.get(fitting, fitting)) for fitting in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        options = [_named(option) for option in _OPTIONS]
        return Grade.mean(
            grade_claim(reply, _named(fitting), options) for reply, fitting in zip(responses, expected, strict=False)
        )


def _named(option: str) -> str:
    """The option without its article, which nobody must repeat."""
    return option.removeprefix("the ").removeprefix("The ").removeprefix("A ")
