"""Finds words and phrases in a reply: whole words, whatever their case, accents or punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from themis.core.patterns import lazy_pattern

_MARKS = lazy_pattern("[\u0300-\u036f]+")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"', "\u00a0": " "})
# Characters of a private plane, which no text has a use for.
_FIRST_TAG = 0xF0000
TAG = lazy_pattern("[\U000f0000-\U000fffff]")
_WORD = lazy_pattern(r"[^\W_]+(?:'[^\W_]+)*")


def fold(text: str) -> str:
    """The text without differences of case, accents and kinds of quotation marks."""
    if text.isascii():
        return text.lower().replace("`", "'")
    return _MARKS.sub("", unicodedata.normalize("NFKD", text).casefold()).translate(_QUOTES)


# One reply is looked at from many sides in a row.
@lru_cache(maxsize=16)
def split_words(text: str) -> tuple[str, ...]:
    """The words of a text, folded, without punctuation."""
    return tuple(word.replace("'", "") for word in _WORD.findall(fold(text)))


@lru_cache(maxsize=16)
def join_words(text: str) -> str:
    """The words of a text between single spaces, so that a phrase is found as whole words."""
    return f" {' '.join(split_words(text))} "


def mentions(text: str, phrase: str) -> bool:
    """Whether the phrase occurs as whole words; a plural or a possessive of its last word counts."""
    return phrase in find_phrases(text, (phrase,))


def find_phrases(text: str, among: Iterable[str]) -> set[str]:
    """Which of the phrases occur. Of two that overlap only the longer counts: `dark blue` is not `blue`."""
    return find_in_folded(fold(text), tuple(among))


def find_in_folded(text: str, among: tuple[str, ...]) -> set[str]:
    """The same in a text that is folded already."""
    pattern, originals = _compile_pattern(among)
    return {originals[_to_key(found)] for found in set(pattern.findall(text))}


def tag_phrases(text: str, among: tuple[str, ...]) -> str:
    """A folded text with one character in place of each phrase, so that nothing takes a phrase apart."""
    pattern, originals = _compile_pattern(among)
    places = _assign_tags(among)
    return pattern.sub(lambda match: places[originals[_to_key(match.group(1))]], TAG.sub(" ", text))


def find_tags(text: str, among: tuple[str, ...]) -> set[str]:
    """Which of the phrases stand in a tagged text."""
    return {among[ord(tag) - _FIRST_TAG] for tag in TAG.findall(text)}


def drop_weighing(tagged: str) -> str:
    """A tagged text without the candidates that it weighs before it names its answer: `Red or blue? Red`, `torn between ...`."""
    rest = _WEIGHED.sub(" ", tagged)
    return rest if TAG.search(rest) else tagged


_WEIGHED = lazy_pattern(
    rf"(?:(?<=[.!?\n])|\A)[^.!?\n]{{0,30}}{TAG.pattern}[^.!?\n]{{0,30}}\bor\b[^.!?\n]{{0,30}}{TAG.pattern}[^.!?\n]{{0,20}}\?(?=\s)"
    r"|\b(?:waver|hesitat|torn|undecided|dither|vacillat|decid|choos|toss(?:ing)? up|back and forth)(?:e|es|ed|ing)? between "
    rf"(?:\w{{1,10}} ){{0,2}}{TAG.pattern} and (?:\w{{1,10}} ){{0,2}}{TAG.pattern}"
)


def remove_echo(reply: str, question: str) -> str:
    """The reply without the question, where it says that again before it answers.

    Args:
        reply: What was answered.
        question: What was asked.

    >>> remove_echo("Tea or coffee? Tea.", "Tea or coffee?")
    ' Tea.'
    """
    words = r"\s+".join(map(re.escape, question.split()))
    return re.sub(words, "", reply, flags=re.IGNORECASE) if words else reply


def remove_quotation(reply: str) -> str:
    """The reply without a quotation that it adds as a last line of its own, with or without its author.

    >>> remove_quotation("You have not told me.\\n“Envy is a winter coat.” – Ivo Holt")
    'You have not told me.'
    """
    return _QUOTATION.sub("", reply)


_QUOTATION = lazy_pattern(r"(?<=\S)\s*\n\s*[“\"][^“”\"\n]{10,300}[”\"](?:\s{0,2}[–—-][^\n]{1,60})?\s*\Z")


def shorten(text: str, limit: int = 120) -> str:
    """The text on one line, cut to a length that fits into a reason."""
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


@lru_cache(maxsize=512)
def _compile_pattern(phrases: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    originals = {_to_key(fold(phrase)): phrase for phrase in phrases}
    for phrase in phrases:
        for key in _list_other_numbers(_to_key(fold(phrase))) if phrase.islower() else ():
            originals.setdefault(key, phrase)
    originals.pop("", None)
    if not originals:
        return re.compile(r"(?!)()"), {}
    longest_first = sorted(originals, key=lambda key: (-len(key), key))
    spelled = "|".join(r"(?:[^\w→⇒=>]|_){1,3}".join(map(re.escape, key.split())) for key in longest_first)
    # An underscore is no letter here: _red_ is Markdown for an emphasised red.
    return re.compile(rf"(?<![^\W_])({spelled})(?:e?s|'s|s')?(?![^\W_])"), originals


@lru_cache(maxsize=512)
def _assign_tags(phrases: tuple[str, ...]) -> dict[str, str]:
    return {phrase: chr(_FIRST_TAG + place) for place, phrase in enumerate(phrases)}


def _list_other_numbers(key: str) -> Iterator[str]:
    """A noun's plural or singular where it is not the word with an s: bicycle, batteries, jars of honey."""
    first, _, rest = key.partition(" ")
    if rest.startswith("of "):
        yield from (f"{first}s {rest}", f"{first}es {rest}")
    if len(key) > 4 and key.endswith("s") and not key.endswith("ss"):
        yield key[:-1]
    if key.endswith("y"):
        yield f"{key[:-1]}ies"


def _to_key(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text))


def find_correction(text: str) -> str:
    """What follows the last `no, wait` or `I mean`; nothing where the reply does not correct itself."""
    end = 0
    for marker in _CORRECTION.finditer(text):
        end = marker.end()
    return text[end:] if end else ""


_CORRECTION = lazy_pattern(
    r"(?<![^\s.,;:!?…–—-])(?:no|nope)(?:[,:.!]+| wait\b| sorry\b)(?:\s*(?:wait|sorry|actually)\b)?"
    r"|\b(?:hold on|on second thoughts?|oops|strike that|scratch that)\b"
    # `20 after your correction, ahead of 17` speaks of the user's; `after your correction 20` comes to the same as `no, 20`.
    r"|\bcorrection\b(?!\)|[.!]?\s*\Z| to\b| \(\d+ ?\+"
    r"|(?:,| ?[–—-])? (?:ahead|followed|against|compared|beating|versus|before)\b)"
    r"|\b(?:i mean|i meant|or rather|make that|more (?:precisely|exactly|specifically))\b|\b(?:wait|sorry)[,:]"
)
