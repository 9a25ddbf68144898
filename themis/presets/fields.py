"""From a source's raw row to the row that a benchmark's prompt and metric read.

A catalogue entry says with these how its rows are made: `mapped` names fields one by one, `lettered` makes a question
with lettered options, `conversation_turns` one row from each turn of a conversation.
"""

from __future__ import annotations

import hashlib
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

Row = dict[str, Any]
Raw = Mapping[str, Any]
# Where a value comes from: a field of the raw row, or something computed from the row.
Value = str | Callable[[Raw], Any]
RowMap = Callable[[Raw], Iterator[Row]]


def mapped(**fields: Value) -> RowMap:
    """Our fields, each by where it comes from."""

    def rows(raw: Raw) -> Iterator[Row]:
        yield _values(raw, fields)

    return rows


def lettered(*, options: Value, correct: Value, shuffled: bool = False, **fields: Value) -> RowMap:
    """A question with options A, B, ...: `choices` are their texts, `options` the printed block, `answer` the letter.

    `correct` is a position from 0. A source that always puts the right option first is shuffled, by the content of the
    question alone, so that a row looks the same in every run and whatever rows stand around it.
    """

    def rows(raw: Raw) -> Iterator[Row]:
        row = _values(raw, fields)
        texts = [str(text).strip() for text in _value(raw, options)]
        right = _value(raw, correct)
        if not 0 <= right < len(texts) <= len(string.ascii_uppercase):
            raise ValueError(
                f"the right option is number {right + 1} of {len(texts)}; a split whose labels are hidden cannot be scored"
            )
        order = list(range(len(texts)))
        if shuffled:
            order = Draw("options", row.get("question"), *sorted(texts)).shuffled(order)
        choices = [texts[index] for index in order]
        letters = string.ascii_uppercase[: len(choices)]
        yield {
            **row,
            "choices": choices,
            "options": "\n".join(f"{letter}. {text}" for letter, text in zip(letters, choices, strict=True)),
            "answer": letters[order.index(right)],
        }

    return rows


def conversation_turns(*, story: str, questions: str, answers: str) -> RowMap:
    """One row for each question, with the questions and answers before it."""

    def rows(raw: Raw) -> Iterator[Row]:
        given = raw[answers]["input_text"] if isinstance(raw[answers], Mapping) else raw[answers]
        history = ""
        for turn, (question, answer) in enumerate(zip(raw[questions], given, strict=True), start=1):
            yield {"turn": turn, "story": raw[story], "history": history, "question": question, "answer": answer}
            history += f"Question: {question}\nAnswer: {answer}\n\n"

    return rows


def position(field: str, *, first: int = 0) -> Value:
    """A number that counts from `first`."""
    return lambda raw: int(raw[field]) - first


def position_of(field: str, among: Value) -> Value:
    """Where a value stands in a list; a list of one value counts as that value."""

    def place(raw: Raw) -> int:
        wanted = raw[field][0] if isinstance(raw[field], list) and raw[field] else raw[field]
        listed = list(_value(raw, among))
        if wanted not in listed:
            raise ValueError(f"{field} is {wanted!r}, which is none of {', '.join(map(repr, listed))}")
        return listed.index(wanted)

    return place


def option_texts(*fields: str) -> Value:
    """Options that stand in a field each."""
    return lambda raw: [raw[field] for field in fields]


def after_hashes(field: str) -> Value:
    """The final answer of a worked solution that ends in `#### 18`; a bare answer is itself."""
    return lambda raw: str(raw[field]).rpartition("####")[2].strip().replace(",", "")


def before_hashes(field: str) -> Value:
    """The worked solution before `#### 18`, without the notes of a calculator between angle brackets."""
    return lambda raw: re.sub(r"<<[^<>]*>>", "", str(raw[field]).rpartition("####")[0]).strip()


def boxed(field: str) -> Value:
    r"""The inside of a `\boxed{...}` without braces of its own; a bare answer is itself."""

    def inside(raw: Raw) -> str:
        found = re.findall(r"\\boxed\s*\{([^{}]*)\}", str(raw[field]))
        return (found[-1] if found else str(raw[field])).strip()

    return inside


def joined(field: str) -> Value:
    """A list of partial answers as one answer."""
    return lambda raw: ", ".join(map(str, raw[field])) if isinstance(raw[field], list) else str(raw[field])


def _values(raw: Raw, fields: Mapping[str, Value]) -> Row:
    return {name: _value(raw, value) for name, value in fields.items()}


def _value(raw: Raw, value: Value) -> Any:
    return raw[value] if isinstance(value, str) else value(raw)


# --- random choices that are the same on every machine and every Python -------------------------------------------------

T = TypeVar("T")


class Draw:
    """Draws from a key; only `random()` is used, the one method whose sequence Python promises never to change."""

    def __init__(self, *key: object) -> None:
        text = "\x1f".join(str(part) for part in key)
        self._random = random.Random(
            int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
        )

    def below(self, bound: int) -> int:
        return int(self._random.random() * bound)

    def take(self, items: list[T]) -> T:
        """Removes one item."""
        return items.pop(self.below(len(items)))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left = list(items)
        return [self.take(left) for _ in items]
