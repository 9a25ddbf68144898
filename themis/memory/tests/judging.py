"""Reads a judge's yes or no."""

from __future__ import annotations

import re

__all__ = ["judged_yes"]

_WORD = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


def judged_yes(text: str) -> bool:
    """Whether the judge's last word is yes; raises ValueError where it says neither."""
    words: list[str] = _WORD.findall(text)
    if not words:
        raise ValueError(f"expected yes or no, got {text[:80]!r}")
    return words[-1].lower() == "yes"
