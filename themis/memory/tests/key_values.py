"""One value must be found again among many pairs of meaningless keys and values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.scoring import after_correction, shortened
from themis.memory.tests.arguments import require_number

__all__ = ["KeyValuePairs", "grade_code"]

_CODE = re.compile(r"(?<![^\W_])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![^\W_])")
_DENIED = re.compile(r"\bnot\s[\"'`]?[0-9a-f]{8}-")
# Two codes with their quotes: about fifty tokens in the tokenizers of today.
_TOKENS_PER_PAIR = 56


@dataclass(kw_only=True)
class KeyValuePairs(DatasetInterface):
    """Looking up what cannot be guessed.

    Scores: perfect 1, memoryless 0. With `nested_levels` a value is itself a key, so many times over. The reply must end
    on the value asked for, and may name no other code but those on the way. The codes are random 128-bit numbers, so the
    answer is unique. About 50 tokens per pair, 7,000 with the default, over as many messages as their size demands.
    Interferes with no other test.
    """

    name: ClassVar[str] = "Key-Value Pairs"
    description: ClassVar[str] = "The agent must look up one value in a table of random keys and values."

    nested_levels: int = 0
    num_kv_pairs: int = 140

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("kv", "nested_levels", self.nested_levels, least=0)
        require_number("kv", "num_kv_pairs", self.num_kv_pairs, least=2 * (self.nested_levels + 1))
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        codes = _codes(chance)
        chains = [
            [next(codes) for _ in range(self.nested_levels + 2)]
            for _ in range(self.num_kv_pairs // (self.nested_levels + 1))
        ]
        pairs = [pair for chain in chains for pair in pairwise(chain)]
        chance.shuffle(pairs)
        size = max(1, self.max_message_size // _TOKENS_PER_PAIR)
        pages = [dict(pairs[start : start + size]) for start in range(0, len(pairs), size)]
        asked = chance.choice(chains)
        through = " Where a value is itself a key, follow it to the end." if self.nested_levels else ""
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[
                *(f"Here are keys and their values, as JSON:\n{json.dumps(page, indent=0)}" for page in pages),
                f"Which value belongs to the key {asked[0]}?{through} Answer with the value only.",
            ],
            expected_responses=[asked[-1]],
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(f'"{example.expected_responses[0]}"')] if not self.nested_levels else [None]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Any) -> Grade:
        return grade_code(responses[0], expected[0], given=questions[0], on_the_way=self.nested_levels)


def grade_code(reply: str, expected: str, *, given: str, on_the_way: int = 0) -> Grade:
    """1 if the last code is the expected one and no more others are named than the way to it has."""
    text = _DENIED.sub(" ", after_correction(reply.lower()) or reply.lower())
    named = [code for code in _CODE.findall(text) if code not in given]
    others = set(named) - {expected}
    if named[-1:] == [expected] and len(others) <= on_the_way:
        return Grade(1.0, (f"ends on {expected}",))
    if expected in named:
        return Grade(0.0, (f"names {expected}, but also {len(others)} other codes or not in the end",))
    return Grade(0.0, (f"{expected} is not in: {shortened(reply)}",))


def _codes(chance: Random) -> Iterator[str]:
    while True:
        digits = f"{chance.getrandbits(128):032x}"
        yield f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
