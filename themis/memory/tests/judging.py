"""Puts a question to the judge that is answered by yes or no."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from themis.memory.actions import Action, Consult, Grade

__all__ = ["ask_yes_or_no"]

_WORD = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


def ask_yes_or_no(question: str, *, purpose: str, undecided: str, reason: str) -> Generator[Action, Any, Grade]:
    """1 for yes and 0 for no, with a `reason`; without a ruling a failure that says what is `undecided`."""
    ruling = yield Consult(f"{question} Answer yes or no.", parse=_judged_yes, purpose=purpose)
    if ruling.failed:
        return Grade.failure(f"{undecided}: {ruling.failure}")
    return Grade.when(ruling.value, reason)


def _judged_yes(text: str) -> bool:
    """Whether the judge's last word is yes; raises ValueError where it says neither."""
    words: list[str] = _WORD.findall(text)
    if not words:
        raise ValueError(f"expected yes or no, got {text[:80]!r}")
    return words[-1].lower() == "yes"
