"""Tests whose material may also be invented by a model, instead of the built-in generator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.actions import Action, Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.inventions import FORM, Wish, invent
from themis.memory.scoring import abstains, claims, grade_recital_of, mentioned, shortened
from themis.memory.tests.judging import ask_yes_or_no

__all__ = ["BUILTIN", "InventedDataset", "settle_answer"]

BUILTIN = "builtin"
# Around an answer that is given as it was expected.
_FEW_WORDS = 8


@dataclass(kw_only=True)
class InventedDataset(DatasetInterface):
    """A dataset with `generator: builtin` or `generator: model`.

    Answers to what a model invented are settled by their words where they repeat the expected one or decline to answer;
    everything else goes to the judge.
    """

    # What the model is asked to invent; the form of its answer is added.
    invention: ClassVar[str]

    generator: str = BUILTIN
    generation_model: str = ""
    temperature: float = 1.0
    max_attempts: int = 10
    generation_file: str | None = None

    @abstractmethod
    def builtin_example(self, number: int) -> TestExample:
        """A test whose material and answers are ours."""

    @abstractmethod
    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade: ...

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        if self.generator == BUILTIN:
            return [self.builtin_example(number) for number in range(num_examples)]
        if not self.generation_model:
            raise ConfigurationError(
                f"memory test {self.name}: generator {self.generator!r} needs generation_model, the model to be asked; "
                f"generator: {BUILTIN} needs none"
            )
        return [self._invented_example(number) for number in range(num_examples)]

    def _invented_example(self, number: int) -> TestExample:
        wish = Wish(
            generator=self.generator,
            model=self.generation_model,
            temperature=self.temperature,
            seed=self.seed,
            prompt=f"{self.invention}\n\n{FORM}\n\nThis is number {number + 1} of a series; make it unlike the others.",
        )
        try:
            invented = invent(wish, max_attempts=self.max_attempts, file=self.generation_file)
        except DatasetError as error:
            raise DatasetError(f"memory test {self.name}: {error}") from error
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=["\n".join(invented.content), *invented.questions],
            is_question=[False, *(True for _ in invented.questions)],
            expected_responses=invented.answers,
            material={"invented": invented.record},
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        # All of the material is told in one message.
        return [[0] for _ in example.expected_responses]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Any
    ) -> Grade | Generator[Action, Any, Grade]:
        if self.generator == BUILTIN:
            return self.grade_builtin(questions, responses, expected)
        return _judged(questions, responses, expected)


def _judged(questions: Sequence[str], replies: Sequence[str], expected: Sequence[str]) -> Generator[Action, Any, Grade]:
    grades = []
    for question, reply, answer in zip(questions, replies, expected, strict=False):
        grade = settle_answer(reply, answer, expected)
        if grade is None:
            grade = yield from ask_yes_or_no(
                f"Question:\n{question}\n\nRight answer:\n{answer}\n\nGiven answer:\n{reply}\n\n"
                "Does the given answer say the same as the right one, and nothing that contradicts it?",
                purpose="is this the answer?",
                undecided=f"only a judge (--judge) can compare {shortened(reply, 60)!r}",
                reason=f"the judge was asked whether {shortened(reply, 60)!r} means {answer!r}",
            )
            if grade.failed:
                return grade
        grades.append(grade)
    return Grade.mean(grades)


def settle_answer(reply: str, answer: str, every_answer: Sequence[str]) -> Grade | None:
    """Right if the reply is little more than the answer; wrong if it declines or recites; None for all the rest."""
    if (recital := grade_recital_of(reply, answer, every_answer)) is not None:
        return recital
    others = [other for other in every_answer if other != answer]
    brief = len(reply.split()) <= len(answer.split()) + _FEW_WORDS
    if brief and claims(reply, (answer,)) and not mentioned(reply, ("or", "either", "and", *others)):
        return Grade(1.0, (f"says {answer!r}",))
    if not reply.strip() or abstains(reply):
        return Grade(0.0, (f"expected {answer!r}, declines: {shortened(reply, 60)}",))
    return None
