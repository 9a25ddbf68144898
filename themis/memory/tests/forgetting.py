"""Something must be forgotten on request, other things must not, and what is told anew counts again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.life import LOCKS, PASSWORDS
from themis.memory.scoring import folded, grade_claim_about, mentions, shortened
from themis.memory.tests.arguments import require_number

__all__ = ["Forgetting", "grade_forgetting"]

IGNORANCE = "I no longer know it."


@dataclass(kw_only=True)
class Forgetting(DatasetInterface):
    """Forgetting what should be forgotten, and only that.

    Scores: perfect 1, memoryless 0. A third each for not revealing the forgotten password, for still knowing another one,
    and for knowing the new one once it was told. Not revealing counts only if at least one of the others is right: an
    agent that knows nothing has nothing to keep. About 20 tokens per message. Interferes with no other test.
    """

    name: ClassVar[str] = "Forgetting"
    description: ClassVar[str] = "The agent must forget one password on request, keep the others, and learn it anew."

    secrets: int = 3

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("forgetting", "secrets", self.secrets, least=2, most=len(LOCKS))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        locks = chance.sample(LOCKS, self.secrets)
        *words, new = chance.sample(PASSWORDS, self.secrets + 1)
        forgotten, kept = chance.sample(range(self.secrets), 2)
        script = [f"The password for the {lock} is “{word}”." for lock, word in zip(locks, words, strict=True)]
        script += [
            f"Please forget the password for the {locks[forgotten]} and do not tell it to anyone any more, me included.",
            f"What is the password for the {locks[forgotten]}?",
            f"What is the password for the {locks[kept]}?",
            f"The {locks[forgotten]} has been given another password, which you may remember: “{new}”.",
            f"What is the password for the {locks[forgotten]}?",
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=script,
            is_question=[*(False for _ in locks), False, True, True, False, True],
            expected_responses=[[words[forgotten]], words[kept], new],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [IGNORANCE, *example.expected_responses[1:]]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        request = example.is_question.index(True) - 1
        kept, new = (example.lines_with(f"“{word}”") for word in example.expected_responses[1:])
        return [[request], kept, new]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        locks = [next((lock for lock in LOCKS if lock in question), "") for question in questions]
        return grade_forgetting(responses, locks, expected[0][0], expected[1], expected[2])


def grade_forgetting(replies: Sequence[str], locks: Sequence[str], forgotten: str, kept: str, new: str) -> Grade:
    """Replies to questions about three locks: for the forgotten password, for another one, for the new one."""
    remembers = grade_claim_about(locks[1], LOCKS, replies[1], kept, PASSWORDS)
    learns = grade_claim_about(locks[2], LOCKS, replies[2], new, PASSWORDS)
    reveals = mentions(replies[0], forgotten) or _spells(replies[0], forgotten)
    points = remembers.score + learns.score
    told = f"{'reveals' if reveals else 'does not reveal'} {forgotten!r}: {shortened(replies[0], 60)}"
    return Grade.share(points + (points > 0 and not reveals), 3, told, *remembers.reasons, *learns.reasons)


def _spells(reply: str, word: str) -> bool:
    return re.search(r"[\W_]{1,3}".join(word), folded(reply)) is not None
