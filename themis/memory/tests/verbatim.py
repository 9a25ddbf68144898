"""Several notices are read out; one of them must be repeated word for word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.notices import TITLES, write_notice
from themis.memory.scoring import grade_passage
from themis.memory.tests.arguments import require_number

__all__ = ["Verbatim"]


@dataclass(kw_only=True)
class Verbatim(DatasetInterface):
    """Remembering the words, not only the sense.

    Scores: perfect 1, memoryless 0. Word for word scores 1; from there the score falls to 0 where only half of the words
    agree, counting what is added too, so reciting all notices scores 0. The sentences are put together at random, so they
    cannot be guessed. About 20 tokens per sentence. Interferes with prospective_memory, which would have something
    appended to the reply.
    """

    name: ClassVar[str] = "Verbatim Recall"
    description: ClassVar[str] = "The agent must repeat one of several notices word for word."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"prospective_memory"})

    passages: int = 3
    sentences: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("verbatim", "passages", self.passages, least=3, most=len(TITLES))
        require_number("verbatim", "sentences", self.sentences, least=2, most=8)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        titles = chance.sample(TITLES, self.passages)
        notices = [write_notice(self.sentences, chance) for _ in titles]
        asked = chance.randrange(self.passages)
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[
                *(f"A notice of {title} reads: “{notice}”" for title, notice in zip(titles, notices, strict=True)),
                f"Repeat the notice of {titles[asked]} word for word, and nothing else.",
            ],
            expected_responses=[notices[asked]],
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(example.expected_responses[0])]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_passage(responses[0], expected[0])
