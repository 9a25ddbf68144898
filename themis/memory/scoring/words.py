"""Finds words and phrases in a reply: whole words, whatever their case, accents or punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

__all__ = [
    "first_mentioned",
    "folded",
    "mentioned",
    "mentioned_in_folded",
    "mentions",
    "plain_words",
    "shortened",
    "worded",
]

_MARKS = re.compile("[\u0300-\u036f]+")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"', "\u00a0": " "})
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def folded(text: str) -> str:
    """The text without differences of case, accents and kinds of quotation marks."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", text).casefold()).translate(_QUOTES)


# One reply is looked at from many sides in a row.
@lru_cache(maxsize=16)
def plain_words(text: str) -> tuple[str, ...]:
    """The words of a text, folded, without punctuation."""
    return tuple(word.replace("'", "") for word in _WORD.findall(folded(text)))


@lru_cache(maxsize=16)
def worded(text: str) -> str:
    """The words of a text between single spaces, so that a phrase is found as whole words."""
    return f" {' '.join(plain_words(text))} "


def mentions(text: str, phrase: str) -> bool:
    """Whether the phrase occurs as whole words; a plural or a possessive of its last word counts."""
    return phrase in mentioned(text, (phrase,))


def mentioned(text: str, among: Iterable[str]) -> set[str]:
    """Which of the phrases occur. Of two that overlap only the longer counts: `dark blue` is not `blue`."""
    return mentioned_in_folded(folded(text), tuple(among))


def first_mentioned(text: str, among: Iterable[str]) -> str | None:
    """Which of the phrases occurs first."""
    pattern, originals = _pattern(tuple(among))
    match = pattern.search(folded(text))
    return originals[_key(match.group(1))] if match else None


def mentioned_in_folded(text: str, among: tuple[str, ...]) -> set[str]:
    """The same in a text that is folded already."""
    pattern, originals = _pattern(among)
    return {originals[_key(found)] for found in set(pattern.findall(text))}


def shortened(text: str, limit: int = 120) -> str:
    """The text on one line, cut to a length that fits into a reason."""
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


@lru_cache(maxsize=512)
def _pattern(phrases: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    originals = {_key(folded(phrase)): phrase for phrase in phrases}
    originals.pop("", None)
    if not originals:
        return re.compile(r"(?!)()"), {}
    longest_first = sorted(originals, key=lambda key: (-len(key), key))
    spelled = "|".join(r"[\W_]{1,3}".join(map(re.escape, key.split())) for key in longest_first)
    # An underscore is no letter here: _red_ is Markdown for an emphasised red.
    return re.compile(rf"(?<![^\W_])({spelled})(?:e?s|'s|s')?(?![^\W_])"), originals


def _key(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text))
