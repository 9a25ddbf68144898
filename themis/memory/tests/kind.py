"""A built-in kind of memory test: its arguments with their limits, its examples, its questions to the judge."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, TypeVar

from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.memory.actions import Action, Consult, Grade, Judgement
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.small_talk import wrap

T = TypeVar("T")
# A number, or a function of the test where it depends on other arguments.
Limit = int | Callable[[Any], int]
# From these spans on there is room for a sentence, and for two, of small talk before and after what matters.
_TALKATIVE_FROM = (4_000, 16_000)


def whole_number(default: int, *, least: Limit, most: Limit | None = None) -> int:
    """An argument that is a whole number, within what the test's material can give.

    Args:
        default: Its value where a configuration does not set it.
        least: The smallest value that is accepted.
        most: The largest one; None for any.
    """
    return field(default=default, metadata={"least": least, "most": most})


def one_of(default: str, choices: Sequence[str]) -> str:
    """An argument that is one of several words.

    Args:
        default: Its value where a configuration does not set it.
        choices: All values that it may have.
    """
    return field(default=default, metadata={"choices": choices})


@dataclass(kw_only=True)
class BuiltinTest(DatasetInterface):
    """What built-in kinds have in common: a name in configurations, checked arguments, one example at a time.

    A kind writes `make_example` and `evaluate`, or `play` where its script depends on the replies.
    """

    # The name in configurations.
    kind: ClassVar[str]
    # Every answer that this kind of test can have: whoever names them all must not score.
    answers: ClassVar[Sequence[object]] = ()

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        self.check_arguments()
        return [self.make_example(number, self.random(number)) for number in range(num_examples)]

    def make_example(self, number: int, rng: Random) -> TestExample:
        """Test `number`, drawn from a random number generator of its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a make_example method")

    def every_answer(self, example: TestExample) -> list[object]:
        """All answers that this test could have; for calibration only."""
        return list(self.answers)

    def check_arguments(self) -> None:
        """Raises a ConfigurationError for the first argument that is out of its limits."""
        for name, argument in self.arguments().items():
            if "least" in argument.metadata:
                limits = (argument.metadata["least"], argument.metadata["most"])
                least, most = (limit(self) if callable(limit) else limit for limit in limits)
                _require_number(self.kind, name, getattr(self, name), least, most)
            elif "choices" in argument.metadata:
                _require_choice(self.kind, name, getattr(self, name), argument.metadata["choices"])

    def tell_and_ask(
        self,
        number: int,
        statements: Sequence[str],
        questions: Sequence[str],
        expected: object,
        *,
        needed: Sequence[Sequence[int] | None] | None = None,
    ) -> TestExample:
        """A fixed script: all statements, spread over the span, then all questions.

        Args:
            number: Number of the test, which becomes its id.
            statements: What is told.
            questions: What is asked after all of it.
            expected: What `evaluate` compares the answers with; plain JSON.
            needed: For each question the statements that its answer rests on; None for all of them.
        """
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*statements, *questions],
            is_question=[False] * len(statements) + [True] * len(questions),
            expected_responses=expected,
            material={} if needed is None else {"needed": [lines and sorted(set(lines)) for lines in needed]},
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        stored: list[Sequence[int] | None] | None = example.material.get("needed")
        return super().needed_lines(example) if stored is None else stored

    def chat(self, rng: Random, sentence: str) -> str:
        """A sentence in the middle of small talk, of which there is more the longer the span.

        Args:
            rng: Decides what is said around it.
            sentence: What matters.
        """
        most = sum(self.memory_span >= span_tokens for span_tokens in _TALKATIVE_FROM)
        return wrap(rng, sentence, before=most, after=max(1, most))

    def deal(self, cards: Sequence[T], number: int) -> T:
        """Card `number` of a pack that is shuffled anew whenever it is used up, so that none comes back too early."""
        rng = self.random("order")
        for _ in range(number // len(cards)):
            rng.sample(cards, len(cards))
        return rng.sample(cards, len(cards))[number % len(cards)]


def _require_number(test: str, argument: str, value: object, least: int, most: int | None) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least and (most is None or value <= most):
        return
    allowed = f"at least {least}" if most is None else f"between {least} and {most}"
    raise ConfigurationError(f"memory test {test}: {argument} must be a whole number {allowed}, got {value!r}")


def _require_choice(test: str, argument: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        hint = nearest(str(value), choices)
        raise ConfigurationError(f"memory test {test}: {argument} is one of {', '.join(choices)}, got {value!r}{hint}")


def ask_yes_or_no(question: str, *, purpose: str, undecided: str, reason: str) -> Judgement:
    """1 for yes and 0 for no, with a `reason`; without a ruling a failure that says what is `undecided`."""
    ruling = yield Consult(f"{question} Answer yes or no.", parse=_parse_yes, purpose=purpose)
    if ruling.failed:
        return Grade.failure(f"{undecided}: {ruling.failure}")
    return Grade.when(ruling.value, reason)


def settle(
    questions: Sequence[str], replies: Sequence[str], expected: Sequence[object], grades: Sequence[Grade]
) -> Generator[Action, Any, list[Grade]]:
    """The grades, those without a verdict replaced by what the judge says of the reply."""
    settled = []
    for question, reply, answer, grade in zip(questions, replies, expected, grades, strict=False):
        if grade.failed:
            grade = yield from ask_yes_or_no(
                f"Question:\n{question}\n\nRight answer:\n{answer}\n\nGiven answer:\n{reply}\n\n"
                "Does the given answer give the right one as its answer, and no other beside it?",
                purpose="is this the answer?",
                undecided=f"{grade.reasons[0]}; only a judge (--judge) can tell",
                reason=f"the judge was asked whether this gives {answer!r}: {reply[:80]!r}",
            )
        settled.append(grade)
    return settled


def _parse_yes(text: str) -> bool:
    """Whether the judge's last word is yes; raises ValueError where it says neither."""
    words: list[str] = re.findall(r"\b(yes|no)\b", text, re.IGNORECASE)
    if not words:
        raise ValueError(f"expected yes or no, got {text[:80]!r}")
    return words[-1].lower() == "yes"
