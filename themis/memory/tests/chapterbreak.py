"""A long text is read; its true continuation must be chosen among six."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.exceptions import DatasetError
from themis.memory.actions import Grade, Wait
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.chapters import pages, read_samples
from themis.memory.material.tale import OPTIONS, tell_tale
from themis.memory.scoring import answering, folded, settled_number, shortened
from themis.memory.tests.arguments import require_choice, require_number

__all__ = ["ChapterBreak", "grade_option"]

SPLITS = ("tale", "goodai", "pg19", "ao3", "all")
# English prose has about four characters to a token; three leave room for other tokenizers.
_CHARACTERS_PER_TOKEN = 3
_OPTION = re.compile(
    r"\b(?:option|answer|number|choice|it's|it is)\b\W*(?:is\W+)?(?:option\W+|number\W+)?(\d+)\b", re.IGNORECASE
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_ORDINAL = re.compile(rf"\b({'|'.join(_ORDINALS)})(?= (?:option|one|opening|beginning)\b|\W{{0,5}}\Z)")
QUESTION = "Which of the options is the true beginning of the next chapter? Answer with the number of the option only."


@dataclass(kw_only=True)
class ChapterBreak(DatasetInterface):
    """Understanding a long text as a whole.

    Scores: perfect 1, memoryless 0, a guess 1/6. By default a tale of so many `chapters` is made, in which each wrong
    continuation contradicts one circumstance that was told. `split` pg19, ao3, all or goodai takes samples from the public
    ChapterBreak file at `data_location` (JSON, decompressed). Runs without interruption. About 150 tokens per chapter and
    500 for the options; public samples about 9,000. Interferes with no other test.
    """

    name: ClassVar[str] = "ChapterBreak"
    description: ClassVar[str] = "The agent reads a long text and must recognise how it goes on."
    reset_message: ClassVar[str] = "We have put the book away: please forget its text and the options."

    split: str = "tale"
    chapters: int = 5
    data_location: str | None = None

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_choice("chapterbreak", "split", self.split, SPLITS)
        require_number("chapterbreak", "chapters", self.chapters, least=2)
        if self.split != "tale":
            return self._from_file(num_examples)
        examples = []
        for number in range(num_examples):
            tale = tell_tale(self.chapters, self.random(number))
            examples.append(self._example(str(number), "\n\n".join(tale.chapters), tale.openings, tale.answer))
        return examples

    def _from_file(self, wanted: int) -> list[TestExample]:
        samples = read_samples(self.data_location, self.split)
        if len(samples) < wanted:
            raise DatasetError(f"chapterbreak: {len(samples)} samples in split {self.split}, {wanted} wanted")
        chance = self.random("file")
        examples = []
        for sample_id in chance.sample(sorted(samples), wanted):
            sample = samples[sample_id]
            openings, answer = list(sample["negs"])[: OPTIONS - 1], chance.randrange(OPTIONS)
            openings.insert(answer, sample["pos"])
            examples.append(self._example(sample_id, sample["ctx"], openings, answer + 1))
        return examples

    def _example(self, example_id: str, text: str, openings: Sequence[str], answer: int) -> TestExample:
        size = max(1, self.max_message_size - 20) * _CHARACTERS_PER_TOKEN
        script = [
            "I am going to read you a book, page by page. Later you will have to tell how it goes on.",
            *pages(text, size),
            "That is how far we have read. Now come the options for the beginning of the next chapter.",
            *(page for number, text in enumerate(openings, 1) for page in pages(f"Option {number}:\n{text}", size)),
            QUESTION,
        ]
        waits = [Wait() for _ in script]
        return TestExample(
            dataset=self, example_id=example_id, script=script, waits=waits, expected_responses=[str(answer)]
        )  # fmt: skip

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_option(responses[-1], expected[0])


def grade_option(reply: str, expected: str) -> Grade:
    """1 if the number that the reply settles on, or the only one that it calls an option, is the expected one."""
    text = _ORDINAL.sub(lambda ordinal: str(_ORDINALS.index(ordinal[1]) + 1), folded(reply))
    chosen = settled_number(text)
    if chosen is None:
        called = {float(number) for number in _OPTION.findall(answering(text)) if len(number) < 10}
        chosen = called.pop() if len(called) == 1 else None
    if chosen is None:
        return Grade(0.0, (f"expected option {expected}; no single number in: {shortened(reply)}",))
    return Grade.when(chosen == float(expected), f"expected option {expected}, got {chosen:g}")
