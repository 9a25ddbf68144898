"""Tests whose material may also be invented by a model, instead of the built-in generator.

A model is asked until it keeps to the form; what it said is cached under a hash of all that could change it, so that whoever
asks for the same again, in another run or after a kill, gets what was paid for already.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from themis.core.codec import digest
from themis.core.json_repair import parse_json
from themis.core.registry import Registry
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.actions import Grade, Grading, Judgement
from themis.memory.agents.agent import Reply
from themis.memory.examples import TestExample
from themis.memory.models import ChatModel
from themis.memory.scoring.claims import abstains, find_claims, grade_recital_of
from themis.memory.scoring.words import find_phrases, shorten
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no

BUILTIN = "builtin"
# Around an answer that is given as it was expected.
_FEW_WORDS = 8


@dataclass(kw_only=True)
class InventedTest(BuiltinTest):
    """A kind with `generator: builtin` or `generator: model`.

    Answers to what a model invented are graded by their words where they repeat the expected one or decline to answer;
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
    def make_example(self, number: int, rng: Random) -> TestExample:
        """A test whose material and answers are ours."""

    @abstractmethod
    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grading:
        """The verdict on a test whose material is ours."""

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        if self.generator == BUILTIN:
            return super().generate_examples(num_examples)
        self.check_arguments()
        if not self.generation_model:
            raise ConfigurationError(
                f"memory test {self.name}: generator {self.generator!r} needs generation_model, the model to be asked; "
                f"generator: {BUILTIN} needs none"
            )
        return [self._invent_example(number) for number in range(num_examples)]

    def _invent_example(self, number: int) -> TestExample:
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
        example = self.tell_and_ask(number, ["\n".join(invented.content)], invented.questions, invented.answers)
        example.material = {"invented": invented.record}
        return example

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        # All of what a model invented is told in one message.
        return list(example.material.get("needed") or [[0] for _ in example.expected_responses])

    def is_readable(self, example: TestExample) -> bool:
        return self.generator == BUILTIN and super().is_readable(example)

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grading:
        if self.generator == BUILTIN:
            return self.grade_builtin(questions, responses, expected)
        return _judge_answers(questions, responses, expected)


def _judge_answers(questions: Sequence[str], replies: Sequence[str], expected: Sequence[str]) -> Judgement:
    grades = []
    for question, reply, answer in zip(questions, replies, expected, strict=False):
        grade = grade_invented(reply, answer, expected)
        if grade is None:
            grade = yield from ask_yes_or_no(
                f"Question:\n{question}\n\nRight answer:\n{answer}\n\nGiven answer:\n{reply}\n\n"
                "Does the given answer say the same as the right one, and nothing that contradicts it?",
                purpose="is this the answer?",
                undecided=f"only a judge (--judge) can compare {shorten(reply, 60)!r}",
                reason=f"the judge was asked whether {shorten(reply, 60)!r} means {answer!r}",
            )
            if grade.failed:
                return grade
        grades.append(grade)
    return Grade.mean(grades)


def grade_invented(reply: str, answer: str, every_answer: Sequence[str]) -> Grade | None:
    """Right if the reply is little more than the answer; wrong if it declines or recites; None for all the rest."""
    if (recital := grade_recital_of(reply, answer, every_answer)) is not None:
        return recital
    others = [other for other in every_answer if other != answer]
    brief = len(reply.split()) <= len(answer.split()) + _FEW_WORDS
    if brief and find_claims(reply, (answer,)) and not find_phrases(reply, ("or", "either", "and", *others)):
        return Grade(1.0, (f"says {answer!r}",))
    if not reply.strip() or abstains(reply):
        return Grade(0.0, (f"expected {answer!r}, declines: {shorten(reply, 60)}",))
    return None


# --- asking a model for material --------------------------------------------------------------------------------------

# From a prompt, a model's name and a temperature to what it says.
Inventor = Callable[[str, str, float], str | Reply]
INVENTORS: Registry[Inventor] = Registry("generator", {"model": "themis.memory.tests.invented:ask_model"})
FORM = (
    'Answer with a JSON object and nothing else: {"content": [sentences to be told], "questions": [questions about them], '
    '"answers": [the short answer to each question, one to five words of the content]}.'
)
_MAX_TOKENS = 2_048


def ask_model(prompt: str, model: str, temperature: float) -> Reply:
    """The inventor that is a model of any provider."""
    asked = ChatModel(model, temperature=temperature, max_tokens=_MAX_TOKENS)
    try:
        return asked.answer(prompt)
    finally:
        asked.close()


@dataclass(frozen=True, kw_only=True)
class Wish:
    """All that could change what is invented. The seed is not sent: it tells one series of tests from another."""

    generator: str
    model: str
    temperature: float
    seed: int
    prompt: str


@dataclass(frozen=True, kw_only=True)
class Invention:
    """Sentences to be told, questions about them with their answers, and how they came about."""

    content: list[str]
    questions: list[str]
    answers: list[str]
    record: dict[str, object]


def invent(wish: Wish, *, max_attempts: int, file: str | None) -> Invention:
    """From the file, if it holds this one; else from the model, tried until it keeps to the form."""
    inventor = INVENTORS.get(wish.generator)
    path = _default_path() if file is None else Path(file)
    key = digest(*(f"{name}={value}" for name, value in asdict(wish).items()))
    kept = _read_cache(path).get(key)
    if kept is not None:
        return _check_form(kept, kept.get("record", {}))
    mistake, cost_usd = "it was never asked", 0.0
    for attempt in range(1, max_attempts + 1):
        said = inventor(wish.prompt, wish.model, wish.temperature)
        text, cost = (said, None) if isinstance(said, str) else (said.text, said.cost_usd)
        cost_usd += cost or 0.0
        try:
            made = _check_form(parse_json(text), {**asdict(wish), "attempts": attempt, "cost_usd": cost_usd})
        except ValueError as error:
            mistake = str(error)
            continue
        _write_cache(path, {**_read_cache(path), key: asdict(made)})
        return made
    raise DatasetError(f"{wish.model} did not keep to the form in {max_attempts} attempts, the last time: {mistake}")


def _check_form(value: object, record: dict[str, object]) -> Invention:
    fields = ("content", "questions", "answers")
    lists = {field: _clean_texts(value.get(field)) for field in fields} if isinstance(value, dict) else {}
    if not lists or not all(lists.values()):
        raise ValueError("content, questions and answers must be lists of texts")
    if len(lists["questions"]) != len(lists["answers"]):
        raise ValueError(f"{len(lists['questions'])} questions but {len(lists['answers'])} answers")
    return Invention(**lists, record=record)


def _clean_texts(texts: object) -> list[str]:
    """A list of texts without the blanks around them; empty where it is anything else."""
    cleaned = [text.strip() for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
    return cleaned if isinstance(texts, list) and len(cleaned) == len(texts) and all(cleaned) else []


# --- the cache of inventions ------------------------------------------------------------------------------------------


def _default_path() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "themis" / "inventions.json"


def _read_cache(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(f"generation_file {str(file)!r} cannot be read: {error}") from error
    if not isinstance(kept, dict):
        raise DatasetError(f"generation_file {str(file)!r} holds no inventions, but a {type(kept).__name__}")
    return kept


def _write_cache(file: Path, kept: dict[str, Any]) -> None:
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.unfinished")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(unfinished, file)
    except OSError as error:
        raise DatasetError(f"generation_file {str(file)!r} cannot be written: {error}") from error
