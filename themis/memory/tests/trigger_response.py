"""A phrase must be said whenever the user says a certain thing, and only then."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.memory.actions import Action, Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.triggers import TRIGGERS, Trigger
from themis.memory.scoring import recites, shortened, similarity
from themis.memory.tests.arguments import require_number
from themis.memory.tests.judging import ask_yes_or_no

__all__ = ["TriggerResponse", "said"]

# Below this share of common words a sentence is not an attempt at the phrase.
_UNLIKE = 0.5


@dataclass(kw_only=True)
class TriggerResponse(DatasetInterface):
    """Following a standing request.

    Scores: perfect 1, memoryless 0; always saying the phrase scores 0. The score is the share of triggers that were
    answered with the phrase, minus 1 if a message of the same kind that is no trigger was answered with it too. The phrase
    counts word for word, or in a sentence that agrees with it in more than `rouge_score_threshold` of the words; only what
    is less alike, yet half the same, goes to the judge. About 30 tokens per message. Interferes with prospective_memory.
    """

    name: ClassVar[str] = "Trigger Response"
    description: ClassVar[str] = "The agent must answer a certain kind of message with a set phrase."
    reset_message: ClassVar[str] = "You no longer have to answer with that phrase; please forget about it."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"prospective_memory"})

    trigger_activations: int = 3
    rouge_score_threshold: float = 0.75

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("trigger_response", "trigger_activations", self.trigger_activations, least=1)
        chance = self.random("order")
        order: list[Trigger] = []
        while len(order) < num_examples:
            order += chance.sample(TRIGGERS, len(TRIGGERS))
        return [self._example(number, order[number]) for number in range(num_examples)]

    def _example(self, number: int, trigger: Trigger) -> TestExample:
        chance = self.random(number)
        messages = [chance.choice(trigger.messages) for _ in range(self.trigger_activations)]
        expected: list[str | None] = [trigger.phrase] * self.trigger_activations
        foil = chance.randint(0, self.trigger_activations)
        messages.insert(foil, trigger.foil)
        expected.insert(foil, None)
        request = f'Whenever I {trigger.occasion}, answer with the sentence "{trigger.phrase}". At no other time.'
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[request, *messages],
            is_question=[False, *(True for _ in messages)],
            expected_responses=expected,
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [f"{phrase}." if phrase else "I am glad to hear that." for phrase in example.expected_responses]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [[0] for _ in example.expected_responses]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Any
    ) -> Generator[Action, Any, Grade]:
        phrase = next(phrase for phrase in expected if phrase)
        hits, false_alarms, reasons = 0, 0, []
        for reply, wanted in zip(responses, expected, strict=False):
            uttered = said(reply, phrase, self.rouge_score_threshold)
            if uttered is None:
                ruling = yield from _ask_judge(reply, phrase)
                if ruling.failed:
                    return ruling
                uttered = ruling.score == 1
            hits += bool(uttered and wanted)
            false_alarms += bool(uttered and not wanted)
            reasons.append(f"{'says' if uttered else 'does not say'} {phrase!r}: {shortened(reply, 60)}")
        triggers = sum(1 for wanted in expected if wanted)
        if false_alarms:
            reasons.append("says it where it was not asked for")
        return Grade.share(hits / triggers - (1 if false_alarms else 0), 1, *reasons)


def said(reply: str, phrase: str, threshold: float) -> bool | None:
    """Whether the phrase was said; None where a sentence resembles it too much for a no and too little for a yes."""
    if recites(reply, phrase):
        return True
    alike = max((similarity(sentence, phrase) for sentence in re.split(r"[.!?\n]+", reply[:20_000])), default=0.0)
    return True if alike > threshold else None if alike > _UNLIKE else False


def _ask_judge(reply: str, phrase: str) -> Generator[Action, Any, Grade]:
    return ask_yes_or_no(
        f"Somebody was to say: {phrase}\n\nThey said:\n{reply}\n\n"
        "Does this contain that sentence, if perhaps in slightly other words?",
        purpose="was the phrase said?",
        undecided=f"only a judge (--judge) can tell if it says {phrase!r}",
        reason=f"the judge was asked whether it says {phrase!r}",
    )
