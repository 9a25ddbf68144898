"""Filler from pairs of questions and answers: TriviaQA's file, or any other.

The agent is asked for the answers as a JSON list; that list is the expected reply.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from themis.core.codec import digest
from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.exceptions import DatasetError
from themis.memory.actions import FillerMessage

_REQUEST = (
    "Here are some trivia questions with their answers. Reply with a JSON list of all the answers, in order, "
    "and nothing else."
)
# From so many pairs the last ones of a message are chosen to meet its size exactly.
_CLOSING_PAIRS = 512
# They make up the last part of a message, of so many times the largest pair.
_CLOSING_STEPS = 3


class Trivia:
    """Filler from pairs of questions and answers."""

    def __init__(
        self, pairs: Sequence[tuple[str, str]], *, seed: int = 0, tokenizer_name: str = DEFAULT_TOKENIZER
    ) -> None:
        if not pairs:
            raise DatasetError("filler needs at least one question with its answer, got none")
        self.fingerprint = digest(str(seed), *(part for pair in pairs for part in pair))
        self._pairs = pairs
        self._seed = seed
        self._count = tokenizer(tokenizer_name)
        # Both lines of every pair used so far, and their tokens.
        self._lines: list[tuple[str, str, int] | None] = [None] * len(pairs)
        self._frame = self._count(f"{_REQUEST}\n") + self._count("[\n") + self._count("]")
        closing = random.Random(seed).sample(range(len(pairs)), min(_CLOSING_PAIRS, len(pairs)))
        self._by_size: dict[int, list[int]] = {}
        for index in closing:
            self._by_size.setdefault(self._format_pair(index)[2], []).append(index)
        self._smallest, self._largest = min(self._by_size), max(self._by_size)
        # For every amount that pairs can make up exactly: the sizes that the first of them may have.
        self._first: dict[int, list[int]] = {0: []}
        for amount in range(1, _CLOSING_STEPS * self._largest + 1):
            sizes = [size for size in sorted(self._by_size) if amount - size in self._first]
            if sizes:
                self._first[amount] = sizes

    def make(self, number: int, tokens: int) -> FillerMessage:
        rng = random.Random(f"{self._seed}:{number}")
        draw, pairs, closing_tokens = rng.random, len(self._pairs), _CLOSING_STEPS * self._largest
        questions, answers = [f"{_REQUEST}\n"], ["[\n"]
        left = tokens - self._frame
        while left > closing_tokens:
            question, answer, size = self._format_pair(int(draw() * pairs))
            questions.append(question)
            answers.append(answer)
            left -= size
        for index in self._draw_closing(left, rng) or [rng.choice(self._by_size[self._smallest])]:
            question, answer, _ = self._format_pair(index)
            questions.append(question)
            answers.append(answer)
        # The last answer has no comma.
        answers[-1] = f"{answers[-1][:-2]}\n]"
        return FillerMessage("".join(questions), "".join(answers))

    def _draw_closing(self, left: int, rng: random.Random) -> list[int]:
        """Pairs whose sizes add up to what is left, or to as much of it as can be made up."""
        amount = next((amount for amount in range(left, 0, -1) if amount in self._first), 0)
        chosen: list[int] = []
        while amount:
            size = rng.choice(self._first[amount])
            chosen.append(rng.choice(self._by_size[size]))
            amount -= size
        return chosen

    def _format_pair(self, index: int) -> tuple[str, str, int]:
        """A pair as a line of the message and one of the reply; counted one by one, since no token spans a line's end."""
        lines = self._lines[index]
        if lines is None:
            question, answer = self._pairs[index]
            asked, answered = f"Q: {question}, A: {answer}\n", f"{json.dumps(answer, ensure_ascii=False)},\n"
            lines = self._lines[index] = (asked, answered, self._count(asked) + self._count(answered))
        return lines


# --- files --------------------------------------------------------------------------------------------------------------


def read_pairs(path: Path) -> list[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"filler file {str(path)!r} cannot be read: {error}") from error
    pairs = list(_parse_pairs(path, text))
    if not pairs:
        raise DatasetError(
            f"filler file {str(path)!r} has no pairs; expected TriviaQA's JSON (Data[].Question and Answer.Value) or "
            'JSONL with {"question": ..., "answer": ...}'
        )
    return pairs


def _parse_pairs(path: Path, text: str) -> Iterator[tuple[str, str]]:
    try:
        whole = json.loads(text)
    except ValueError:
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                yield _parse_pair(path, number, _parse_line(path, number, line))
        return
    entries = whole.get("Data", [whole]) if isinstance(whole, dict) else whole
    for number, entry in enumerate(entries, start=1):
        yield _parse_pair(path, number, entry)


def _parse_line(path: Path, number: int, line: str) -> object:
    try:
        return json.loads(line)
    except ValueError as error:
        raise DatasetError(f"{path}:{number} is not JSON: {error}") from error


def _parse_pair(path: Path, number: int, entry: object) -> tuple[str, str]:
    if isinstance(entry, dict):
        question = entry.get("Question", entry.get("question"))
        answer = entry.get("AnswerValue", entry.get("Answer", entry.get("answer")))
        if isinstance(answer, dict):
            answer = answer.get("Value")
        if isinstance(question, str) and isinstance(answer, str | int | float):
            # A line break inside would make one pair two lines.
            return " ".join(question.split()), " ".join(str(answer).split())
    raise DatasetError(f"{path}: entry {number} has no question with an answer: {str(entry)[:120]}")
