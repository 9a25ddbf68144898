"""Three coded messages tell when and where to meet and what to bring; all three must be put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.names import STORY_NAMES, SURNAMES
from themis.memory.material.spies import HINTS
from themis.memory.scoring import claims, mentioned

__all__ = ["SpyMeeting", "grade_keywords"]

LEADS = {
    "time": "The meeting takes place {hint}.",
    "place": "Be {hint}.",
    "thing": "Do not come without {hint}.",
}
NAMES_OF_PARTS = {"time": "when the meeting is", "place": "where it is", "thing": "what to bring"}


@dataclass(kw_only=True)
class SpyMeeting(DatasetInterface):
    """Understanding hints and putting them together.

    Scores: perfect 1, memoryless 0; repeating the hints scores 0, naming every time, place and thing too. A third for
    each part that is named by one of its keywords, whatever the case, while no keyword of another time, place or thing is
    named for it. About 40 tokens per message. Interferes with no other test.
    """

    name: ClassVar[str] = "Spy Meeting"
    description: ClassVar[str] = "The agent must understand three coded messages and tell the meeting they arrange."

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        first_names, surnames = chance.sample(STORY_NAMES, 3), chance.sample(SURNAMES, 3)
        spies = [f"{first} {last}" for first, last in zip(first_names, surnames, strict=True)]
        parts = chance.sample(tuple(HINTS), 3)
        hints = {part: chance.choice(HINTS[part]) for part in parts}
        messages = [
            f"A message from {spy}: “{LEADS[part].format(hint=hints[part][0])}”"
            for spy, part in zip(spies, parts, strict=True)
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[
                f"You will be contacted in secret by {spies[0]}, {spies[1]} and {spies[2]}. Their messages are coded.",
                *messages,
                "When and where is the secret meeting, and what should I bring? Do not quote the messages: decode them.",
            ],
            expected_responses=[list(hints[part][1]) for part in parts],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return ["; ".join(keywords[0] for keywords in example.expected_responses)]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_keywords(responses[0], expected, _rivals)


def _rivals(keywords: Sequence[str]) -> Iterable[str]:
    """The keywords of the other variants of the same part."""
    for variants in HINTS.values():
        if any(set(keywords) & set(own) for _, own in variants):
            return [word for _, own in variants if not set(keywords) & set(own) for word in own]
    return ()


def grade_keywords(
    reply: str, expected: Sequence[Sequence[str]], rivals: Callable[[Sequence[str]], Iterable[str]]
) -> Grade:
    """The share of parts of which a keyword is claimed, and no keyword of its rivals."""
    points, reasons = 0, []
    for keywords in expected:
        claimed = claims(reply, {*keywords, *rivals(keywords)})
        wrong = claimed - set(keywords)
        if claimed and not wrong:
            points += 1
            reasons.append(f"understood: {', '.join(sorted(claimed))}")
        elif mentioned(reply, keywords):
            reasons.append(f"names {keywords[0]!r}, but also {', '.join(sorted(wrong)[:5])}")
        else:
            reasons.append(f"none of {', '.join(keywords)} in the answer")
    return Grade.share(points, len(expected), *reasons)
