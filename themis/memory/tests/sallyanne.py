"""A story in which people see different things; what one of them believes must be told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.exceptions import DatasetError
from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.beliefs import CONTAINERS, QUESTION_TYPES, Story, read_stories, tell_story
from themis.memory.scoring import grade_claim, json_field, shortened
from themis.memory.tests.arguments import require_choice

__all__ = ["SallyAnne", "grade_place"]

INTRODUCTION = (
    "A film is on television. I will tell you what happens, each time beginning with (On TV). Nobody in it sees what "
    "happens in a room that they are not in, and all containers are closed."
)


@dataclass(kw_only=True)
class SallyAnne(DatasetInterface):
    """Theory of mind over a distance.

    Scores: perfect 1, memoryless 0, a guess among the story's containers at most 1/3. The answer comes from a simulation
    of who was present at which event, for beliefs and for beliefs about beliefs. `data_location` names a file in the
    layout of ToMi to take stories from instead. A reply without a JSON object with `answer` scores 0. About 200 tokens.
    Interferes with no other test: its people live on television.
    """

    name: ClassVar[str] = "SallyAnne"
    description: ClassVar[str] = "The agent follows a story and must tell where somebody believes a thing to be."

    question_type: str = "any"
    data_location: str | None = None

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_choice("sallyanne", "question_type", self.question_type, QUESTION_TYPES)
        if self.data_location is None:
            stories = [tell_story(self.random(number), self.question_type) for number in range(num_examples)]
        else:
            stories = self._from_file(self.data_location, num_examples)
        return [self._example(number, story) for number, story in enumerate(stories)]

    def _from_file(self, path: str, wanted: int) -> list[Story]:
        stories = read_stories(path, self.question_type)
        if len(stories) < wanted:
            raise DatasetError(
                f"sallyanne: {path!r} has {len(stories)} stories of type {self.question_type}, {wanted} wanted"
            )
        return self.random("file").sample(stories, wanted)

    def _example(self, number: int, story: Story) -> TestExample:
        question = f'{story.question} Answer with JSON of the form {{"answer": "<container>"}}.'
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[INTRODUCTION, *(f"(On TV) {line}" for line in story.lines), question],
            expected_responses=[story.answer],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [json.dumps({"answer": example.expected_responses[0]})]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_place(responses[0], expected[0])


def grade_place(reply: str, expected: str) -> Grade:
    """1 if the field `answer` of the JSON object names the expected container and no other."""
    answer = json_field(reply, "answer")
    if not isinstance(answer, str):
        return Grade(0.0, (f"no JSON object with a text as `answer` in: {shortened(reply)}",))
    return grade_claim(answer.replace("_", " "), expected.replace("_", " "), CONTAINERS)
