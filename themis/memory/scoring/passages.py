"""Compares a reply with a text that should have been repeated word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from themis.memory.actions import Grade
from themis.memory.scoring.words import plain_words, shortened, worded

__all__ = ["grade_passage", "recited_share", "recites", "similarity"]

# A courteous lead-in around a passage is not part of it; more than this is.
_SURROUNDING_WORDS = 25
# Beyond this many times its length a reply is not a repetition; comparing it would only cost time.
_TOO_LONG = 6


def grade_passage(reply: str, passage: str) -> Grade:
    """1 for the passage word for word, falling to 0 where half of the words are wrong, missing or added."""
    brief = len(plain_words(reply)) <= len(plain_words(passage)) + _SURROUNDING_WORDS
    if brief and recites(reply, passage):
        return Grade(1.0, ("repeats the passage word for word",))
    alike = max(similarity(part, passage) for part in (_parts(reply) if brief else [reply]))
    return Grade.share(2 * alike - 1, 1, f"{alike:.0%} of the words agree with {shortened(passage, 60)!r}")


def recites(reply: str, passage: str) -> bool:
    """Whether the reply contains the passage: the same words in the same order, nothing between them."""
    return worded(passage) in worded(reply)


def recited_share(reply: str, passage: str) -> float:
    """Which share of the passage's words occurs in the reply in the passage's order."""
    words, wanted = plain_words(reply), plain_words(passage)
    if not wanted:
        return 0.0
    return 1.0 if recites(reply, passage) else _common(words[: 100 * len(wanted)], wanted) / len(wanted)


def similarity(text: str, passage: str) -> float:
    """Words in common, in order, divided by the words of the longer of the two."""
    words, wanted = plain_words(text), plain_words(passage)
    longer = max(len(words), len(wanted))
    if not words or not wanted or len(words) > _TOO_LONG * len(wanted):
        return 0.0
    return _common(words, wanted) / longer


def _parts(reply: str) -> list[str]:
    """The reply, what it quotes, and what follows its first colon."""
    quoted = re.findall(r'["“]([^"“”]{20,20000})["”]', reply[:200_000])
    lead, colon, rest = reply.partition(":")
    return [reply, *quoted[:5], *([rest] if colon and len(lead) <= 200 else [])]


def _common(words: Sequence[str], wanted: Sequence[str]) -> int:
    """The length of the longest common subsequence, by Hyyrö's bit-parallel rule: one integer operation per word."""
    places: dict[str, int] = {}
    for place, word in enumerate(wanted):
        places[word] = places.get(word, 0) | 1 << place
    everywhere = (1 << len(wanted)) - 1
    open_places = everywhere
    for word in words:
        matched = open_places & places.get(word, 0)
        open_places = ((open_places + matched) | (open_places - matched)) & everywhere
    return len(wanted) - open_places.bit_count()
