"""Tests whose material may also be invented by a model, instead of the built-in generator.

What a model invents becomes part of the stored definitions, so it is asked once for a run name, and all agents get the same
tests. `generation_file` keeps it beyond that, for other run names.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from themis.core.fingerprint import digest
from themis.core.json_repair import parse_json
from themis.core.registry import Registry
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.actions import Action, Consult, Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.scoring import abstains, claims, grade_recital_of, mentioned, shortened
from themis.memory.tests.judging import judged_yes

__all__ = ["BUILTIN", "INVENTORS", "InventedDataset", "Inventor", "settle_answer"]

# From a prompt, a model's name and a temperature to what it says.
Inventor = Callable[[str, str, float], str]
INVENTORS: Registry[Inventor] = Registry("generator", {"model": "themis.memory.material.inventor:ask_model"})
BUILTIN = "builtin"


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
    def grade_builtin(self, responses: Sequence[str], expected: Any) -> Grade: ...

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        if self.generator == BUILTIN:
            return [self.builtin_example(number) for number in range(num_examples)]
        if not self.generation_model:
            raise ConfigurationError(
                f"memory test {self.name}: generator {self.generator!r} needs generation_model, the model to be asked; "
                f"generator: {BUILTIN} needs none"
            )
        inventor = INVENTORS.get(self.generator)
        return [self._invented_example(number, inventor) for number in range(num_examples)]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        # All of the material is told in one message.
        return [[0] for _ in example.expected_responses]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Any
    ) -> Grade | Generator[Action, Any, Grade]:
        if self.generator == BUILTIN:
            return self.grade_builtin(responses, expected)
        return _judged(questions, responses, expected)

    def _invented_example(self, number: int, inventor: Inventor) -> TestExample:
        invented = self._kept_or_asked(number, inventor)
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=["\n".join(invented["content"]), *invented["questions"]],
            is_question=[False, *(True for _ in invented["questions"])],
            expected_responses=list(invented["answers"]),
        )

    def _kept_or_asked(self, number: int, inventor: Inventor) -> dict[str, list[str]]:
        """From the file, if it holds this one; else from the model, tried until it keeps to the form."""
        prompt = f"{self.invention}\n\n{_FORM}\n\nThis is number {number + 1} of a series; make it unlike the others."
        key = digest(prompt, self.generation_model, str(self.seed))
        file = None if self.generation_file is None else Path(self.generation_file)
        kept = _read(file)
        if key in kept:
            return _checked(kept[key])
        mistakes = []
        for _ in range(self.max_attempts):
            text = inventor(prompt, self.generation_model, self.temperature)
            try:
                invented = _checked(parse_json(text))
            except ValueError as mistake:
                mistakes.append(str(mistake))
                continue
            _write(file, {**kept, key: invented})
            return invented
        raise DatasetError(
            f"memory test {self.name}: {self.generation_model} did not keep to the form in {self.max_attempts} attempts, "
            f"the last time: {mistakes[-1] if mistakes else 'it was never asked'}"
        )


# Around an answer that is given as it was expected.
_FEW_WORDS = 8
_FORM = (
    'Answer with a JSON object and nothing else: {"content": [sentences to be told], "questions": [questions about them], '
    '"answers": [the short answer to each question, one to five words of the content]}.'
)


def _checked(value: Any) -> dict[str, list[str]]:
    fields = ("content", "questions", "answers")
    lists = [value.get(field) for field in fields] if isinstance(value, dict) else [None]
    if not all(
        isinstance(one, list) and one and all(isinstance(text, str) and text.strip() for text in one) for one in lists
    ):
        raise ValueError("content, questions and answers must be lists of texts")
    if len(value["questions"]) != len(value["answers"]):
        raise ValueError(f"{len(value['questions'])} questions but {len(value['answers'])} answers")
    return {field: [text.strip() for text in value[field]] for field in fields}


def _read(file: Path | None) -> dict[str, Any]:
    if file is None or not file.exists():
        return {}
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return kept if isinstance(kept, dict) else {}
    except (OSError, ValueError) as error:
        raise DatasetError(f"generation_file {str(file)!r} cannot be read: {error}") from error


def _write(file: Path | None, kept: dict[str, Any]) -> None:
    if file is not None:
        unfinished = file.with_name(f"{file.name}.unfinished")
        unfinished.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(unfinished, file)


# --- judging answers whose alternatives nobody has listed ---------------------------------------------------------------


def _judged(questions: Sequence[str], replies: Sequence[str], expected: Sequence[str]) -> Generator[Action, Any, Grade]:
    grades = []
    for question, reply, answer in zip(questions, replies, expected, strict=False):
        grade = settle_answer(reply, answer, expected)
        if grade is None:
            ruling = yield Consult(
                f"Question:\n{question}\n\nRight answer:\n{answer}\n\nGiven answer:\n{reply}\n\n"
                "Does the given answer say the same as the right one, and nothing that contradicts it? Answer yes or no.",
                parse=judged_yes,
                purpose="is this the answer?",
            )
            if ruling.failed:
                return Grade.failure(f"only a judge (--judge) can compare {shortened(reply, 60)!r}: {ruling.failure}")
            grade = Grade.when(ruling.value, f"the judge was asked whether {shortened(reply, 60)!r} means {answer!r}")
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
