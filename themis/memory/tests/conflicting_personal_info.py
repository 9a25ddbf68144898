"""The user says two things that cannot both be true; the agent must not hide one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import TestExample
from themis.memory.material.life import CITIES, RELATIVES
from themis.memory.scoring import folded, mentioned, plain_words, said_of, shortened
from themis.memory.tests.arguments import require_number
from themis.memory.tests.inventing import BUILTIN, InventedDataset

__all__ = ["ConflictingPersonalInfo", "grade_conflict"]

_BRIEF_WORDS = 40
_DENIED = re.compile(r"\b(?:not|never|no longer|isn't|rather than|instead of) (?:in )?(?!left|sure)[a-z]{1,20}")


@dataclass(kw_only=True)
class ConflictingPersonalInfo(InventedDataset):
    """Keeping both sides of a conflict.

    Scores: perfect 1, memoryless 0. Both cities and no other is right; only the later one is half right; anything else,
    and any city of somebody else, is wrong, so repeating all statements scores 0. About 30 tokens per statement.
    Interferes with no other test: no other one says where relatives live.
    With `generator: model` the model `generation_model` invents the material.
    """

    name: ClassVar[str] = "Conflicting Personal Information"
    description: ClassVar[str] = "The user contradicts an earlier statement; the agent must know both versions."
    invention: ClassVar[str] = (
        "Invent two statements that a person makes about themselves and that cannot both be true, with two unrelated statements "
        "between them. Then ask one question on the matter that asks for everything that was said; the answer names both."
    )

    other_relatives: int = 2

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        most = len(RELATIVES) - 1
        require_number("conflicting_personal_info", "other_relatives", self.other_relatives, least=1, most=most)
        return super().generate_examples(num_examples)

    def builtin_example(self, number: int) -> TestExample:
        chance = self.random(number)
        relative, *others = chance.sample(RELATIVES, self.other_relatives + 1)
        earlier, later, *elsewhere = chance.sample(CITIES, self.other_relatives + 2)
        between = [f"My {other} has a flat in {city}." for other, city in zip(others, elsewhere, strict=True)]
        script = [
            f"I have only one {relative}, who has lived in {earlier} from birth and has never left.",
            *between,
            f"I have only one {relative}, who has lived in {later} from birth and has never left.",
            f"Where does my {relative} live? If I have told you several things that do not fit together, name them all.",
        ]
        return TestExample(
            dataset=self, example_id=str(number), script=script, expected_responses=[[earlier, later]]
        )  # fmt: skip

    def ideal_answers(self, example: TestExample) -> list[str]:
        if self.generator != BUILTIN:
            return super().ideal_answers(example)
        earlier, later = example.expected_responses[0]
        return [f"You have told me two things that do not fit together: {earlier}, and later {later}."]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        if self.generator != BUILTIN:
            return super().needed_lines(example)
        return [[0, len(example.script) - 2]]

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        relative = next((one for one in RELATIVES if one in questions[0]), "")
        return grade_conflict(responses[0], *expected[0], relative=relative)


def grade_conflict(reply: str, earlier: str, later: str, *, relative: str) -> Grade:
    """1 for both, 0.5 for the later alone, 0 otherwise; a short reply may also say where one other relative lives."""
    cities = {*CITIES, earlier, later}
    one_more = len(mentioned(reply, cities) - {earlier, later}) == 1 and len(plain_words(reply)) <= _BRIEF_WORDS
    answer = said_of(reply, relative, RELATIVES) if one_more and relative else folded(reply)
    named = mentioned(_DENIED.sub("", answer), cities)
    if named == {earlier, later}:
        return Grade(1.0, (f"names both {earlier} and {later}",))
    if named == {later}:
        return Grade(0.5, (f"names only the later {later}, not {earlier}",))
    if not named:
        return Grade(0.0, (f"expected {earlier} and {later}, got: {shortened(reply)}",))
    return Grade(0.0, (f"expected {earlier} and {later}, got {', '.join(sorted(named))}",))
