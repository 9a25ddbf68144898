"""Reads slips of spelling: words of a reply are written as the candidates have them, where they can be nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain, pairwise

from themis.core.patterns import lazy_pattern
from themis.memory.scoring.nearness import is_other_spelling
from themis.memory.scoring.words import fold, split_words

# Shorter words have too many neighbours.
_LEAST = 6
# In a word as long as this any one letter may be a slip.
_LONG = 8
_WORD = lazy_pattern(r"[^\W\d_]{5,40}")
# Two words of a compound, and not the last of one and the first of the next.
_PAIR = lazy_pattern(r"(?<![\w-])([^\W\d_]{2,20})[ -](?=([^\W\d_]{2,20})(?![\w-]))")
# Letters that are hardly heard, and those that are heard alike.
_ADDED = frozenset("aeiouyh")
_VOWELS = frozenset("aeiouy")
_CONSONANTS = tuple(map(frozenset, ("ckqsxz", "dt", "bp", "fvw", "gj", "mn", "lr")))


def spell_like(text: str, among: Iterable[str], *expected: str) -> str:
    """The text with words as the phrases spell them: together or apart, and slips for words of the expected ones put right.

    A word that one of the phrases has is left as it is, and so is one that may be a slip for several: a look-alike is no
    slip.

    Args:
        text: What was said.
        among: Every phrase that could be meant.
        expected: Those that should be.

    >>> spell_like("In the hay-loft, with barleywater and marmelade.", ["hayloft", "barley water"], "marmalade")
    'In the hayloft, with barley water and marmalade.'
    """
    phrases = tuple(sorted({*among, *expected}))
    written = _index_compounds(phrases)
    if written:
        text = _PAIR.sub(lambda pair: _join(pair, written), text)
        text = _WORD.sub(lambda word: written.get(fold(word[0]), word[0]), text)
    return _WORD.sub(lambda word: _find_meant(word[0], phrases, expected) or word[0], text)


def _join(pair: re.Match[str], written: dict[str, str]) -> str:
    """The first word of two, and what is to stand between them."""
    compound = written.get(fold(pair[1] + pair[2]))
    if compound is None:
        return pair[0]
    return pair[1] + (" " if " " in compound else "")


def resembles(text: str, secret: str, among: Iterable[str] = ()) -> bool:
    """Whether a word or two of a text, which none of the phrases has, are spelled much like a secret.

    >>> resembles("It is a hurdy-gurdie.", "hurdy-gurdy")
    True
    """
    known = {"".join(split_words(phrase)) for phrase in among if phrase != secret}
    letters, words = "".join(split_words(secret)), split_words(text)[:_MOST_WORDS]
    return any(
        word[0] == letters[0] and word not in known and SequenceMatcher(None, word, letters).ratio() >= _MUCH_ALIKE
        for word in (*words, *map("".join, pairwise(words)))
        if len(word) >= _LEAST - 1
    )


_MUCH_ALIKE, _MOST_WORDS = 0.82, 500


def _find_meant(word: str, phrases: tuple[str, ...], expected: tuple[str, ...]) -> str | None:
    """The word of the expected phrases that a word is a slip for, be it in another number."""
    key = fold(word)
    for meant, own, name in _index_expected(expected).get(key[:1], ()):
        pairs = ((key, own), (key.removesuffix("s"), own.removesuffix("s")))
        if any(is_slip(*pair, name=name) for pair in pairs) and not _is_known(key, own, phrases):
            return meant
    return None


def _is_known(key: str, meant: str, phrases: tuple[str, ...]) -> bool:
    """Whether one of the phrases has the word, or another one that it may be a slip for."""
    known = _index_words(phrases)
    if key in known or f"{key}s" in known or key.removesuffix("s") in known:
        return True
    # `Stripes` is another form of striped.
    if meant.endswith(("ed", "ing")) and not key.endswith(meant[-2:]) and is_other_spelling(key, meant):
        return True
    return any(is_slip(key, other) for other in known if other != meant and abs(len(other) - len(key)) < 2)


def is_slip(word: str, meant: str, *, name: bool = False) -> bool:
    """Whether a word is another one with a letter left out, doubled, added, or exchanged for the next or one that sounds alike.

    Of a `name` another vowel makes another name, unless it is a y.
    """
    if (
        max(len(word), len(meant)) < _LEAST - 1
        or abs(len(word) - len(meant)) > 1
        or word[:1] != meant[:1]
        or word == meant
    ):
        return False
    start = next(
        (at for at, pair in enumerate(zip(word, meant, strict=False)) if pair[0] != pair[1]), min(len(word), len(meant))
    )
    rest, own = word[start:], meant[start:]
    if rest[2:] == own[2:] and rest[:2] == own[1::-1]:
        return True
    if max(len(word), len(meant)) < _LEAST:
        return False
    if rest == own[1:]:
        return True
    if rest[1:] == own:
        return rest[0] == word[start - 1] or (bool(own) and rest[0] in _ADDED)
    vowels = not name or "y" in (rest[0], own[0])
    alike = any({rest[0], own[0]} <= letters for letters in ((*_CONSONANTS, _VOWELS) if vowels else _CONSONANTS))
    return rest[1:] == own[1:] and (alike or (len(meant) >= _LONG and not name))


@lru_cache(maxsize=4096)
def _list_words(phrase: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W\d_]+", phrase))


@lru_cache(maxsize=256)
def _index_expected(expected: tuple[str, ...]) -> dict[str, list[tuple[str, str, bool]]]:
    """The words of phrases by their first letter: as they are written, folded, and whether they are names."""
    words: dict[str, list[tuple[str, str, bool]]] = {}
    for meant in chain.from_iterable(map(_list_words, expected)):
        own = fold(meant)
        words.setdefault(own[:1], []).append((meant, own, meant[:1].isupper()))
    return words


@lru_cache(maxsize=64)
def _index_words(phrases: tuple[str, ...]) -> frozenset[str]:
    return frozenset(fold(word) for phrase in phrases for word in _list_words(phrase))


@lru_cache(maxsize=64)
def _index_compounds(phrases: tuple[str, ...]) -> dict[str, str]:
    """The phrases that are one word or two, and the words of longer ones, by their letters."""
    compounds = {fold(word): word for phrase in phrases for word in _list_words(phrase)}
    compounds.update(
        {fold(word.replace("-", "")): word for phrase in phrases for word in phrase.split() if "-" in word}
    )
    for phrase in phrases:
        words = phrase.split()
        compounds.update({fold(one + other): f"{one} {other}" for one, other in pairwise(words) if len(words) > 2})
    compounds.update({fold(re.sub(r"[ -]", "", phrase)): phrase for phrase in phrases if len(split_words(phrase)) == 2})
    return {letters: phrase for letters, phrase in compounds.items() if len(letters) >= _LEAST and letters.isalpha()}
