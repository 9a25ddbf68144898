"""The questions of an ended test: what was asked, how far back each thing lies that the answer needs, and what it scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from themis.memory.actions import Message


class Needle(NamedTuple):
    """Something that an answer needs: which of the test's messages told it, and how long before the question that was."""

    message: int
    distance_tokens: int
    distance_time: timedelta | None


class QuestionScore(NamedTuple):
    """The verdict on one question; the score is None where there is none."""

    score: float | None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """One question of a test. Of a test that listened the last one has no text: it is whatever was said when it ended."""

    turn: int
    text: str
    reply: str
    needles: tuple[Needle, ...]
    score: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def distance_tokens(self) -> int:
        """How far back the oldest thing lies that the answer needs; 0 where it needs none."""
        return max((needle.distance_tokens for needle in self.needles), default=0)

    @property
    def distance_time(self) -> timedelta | None:
        """The same in virtual time, where it is known."""
        return max((needle.distance_time for needle in self.needles if needle.distance_time is not None), default=None)


def find_questions(
    messages: Sequence[Message],
    verdicts: Sequence[QuestionScore],
    *,
    score: float | None,
    listened_until: tuple[int, datetime | None] | None = None,
) -> list[Question]:
    """The questions of a test with their distances and scores.

    A test with a single question scores what that question does. Where a test with several gives no verdict on each, none of
    them has a score.

    Args:
        messages: All of the test's messages, in order.
        verdicts: On each question, in order; empty where the test gave only one on the whole.
        score: Of the whole test.
        listened_until: Of a test whose verdict rests on replies to others: where and when it had heard enough.
    """
    asked: list[tuple[int, Message]] = [(place, said) for place, said in enumerate(messages) if said.question]
    found = [
        Question(
            said.turn,
            said.text,
            said.reply,
            _measure(messages, _needed(messages, place), said.tokens_before, said.now),
        )
        for place, said in asked
    ]
    if listened_until is not None and messages:
        # What it was to do rests on everything that it said.
        told = [place for place, said in enumerate(messages) if not said.question]
        found.append(Question(0, "", "", _measure(messages, told, *listened_until)))
    if not verdicts and len(found) == 1:
        verdicts = [QuestionScore(score)]
    if len(verdicts) != len(found):
        return found
    return [
        Question(one.turn, one.text, one.reply, one.needles, verdict.score, tuple(verdict.reasons))
        for one, verdict in zip(found, verdicts, strict=True)
    ]


def _needed(messages: Sequence[Message], place: int) -> Sequence[int]:
    """The messages that the answer to a question needs; all that was told before where the test does not say."""
    needs = messages[place].needs
    return [told for told in range(place) if not messages[told].question] if needs is None else needs


def _measure(
    messages: Sequence[Message], needed: Sequence[int], tokens: int, now: datetime | None
) -> tuple[Needle, ...]:
    needles = []
    for place in needed:
        if place < len(messages):
            told = messages[place]
            elapsed = now - told.now if now is not None and told.now is not None else None
            needles.append(Needle(place, tokens - told.tokens_before, elapsed))
    return tuple(needles)
