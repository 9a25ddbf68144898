"""Reads answers that come near a candidate without naming it: a part of its name, another spelling, another language.

`Mustard` can only be the mustard seed where nothing else is of mustard; `casserole` may be one of three.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from themis.core.patterns import lazy_pattern
from themis.memory.scoring.languages import translate
from themis.memory.scoring.numbers import to_figures
from themis.memory.scoring.words import fold, split_words

# A longer reply that names nothing known is not a short name for something.
_BRIEF_WORDS, _MOST_WORDS = 12, 60
# In more words than these no spelling is doubted.
_FEW_WORDS = 5


class Near(Enum):
    """How an answer that names no candidate stands to the expected one."""

    MEANT = "can mean nothing else"
    PERHAPS = "may mean it"
    FAR = "does not mean it"


def compare_with(reply: str, expected: str, among: Iterable[str]) -> Near:
    """Whether a reply that names none of the candidates can mean the expected one.

    Args:
        reply: What was answered.
        expected: What should have been named.
        among: Everything that could have been.

    >>> compare_with("Mustard.", "mustard seed", ["linseed", "barley"]).name
    'MEANT'
    >>> compare_with("A casserole.", "leek casserole", ["turnip casserole"]).name
    'PERHAPS'
    """
    if len(split_words(reply)) > _MOST_WORDS:
        return Near.FAR
    said = _list_content(reply)
    if not said or "?" in reply or set(split_words(reply)) <= _EMPTY | _SMALL:
        return Near.FAR
    brief = len(split_words(reply)) <= _BRIEF_WORDS
    if (named := _find_by_name(reply, expected, every := tuple(sorted({*among, expected})))) is not None:
        return named
    alike = _find_alike(said, every)
    fits = {candidate: _measure_fit(said, _list_content(candidate)) for candidate in alike}
    best = max((fit.matched for fit in fits.values()), default=0.0)
    if not best:
        described = _DESCRIBED.search(fold(reply)) is not None and len(split_words(reply)) <= 2 * _BRIEF_WORDS
        return (
            Near.PERHAPS
            if (brief or described)
            and not _REFUSED.search(fold(reply))
            and (expected.islower() or described or _LOOSE.search(fold(reply)))
            else Near.FAR
        )
    nearest = [candidate for candidate, fit in fits.items() if fit.matched == best]
    if expected not in nearest:
        # Half of another name, and more that is unknown.
        half = brief and expected.islower() and all(fits[one].missing and fits[one].unmatched > 1 for one in nearest)
        return Near.PERHAPS if half and not _REFUSED.search(fold(reply)) else Near.FAR
    own = fits[expected]
    if not brief and own.missing:
        return Near.FAR
    certain = nearest == [expected] and own.exact and (not own.unmatched or (brief and not own.missing))
    return Near.MEANT if certain and not _is_other_thing(reply, said, expected) else Near.PERHAPS


def _is_other_thing(reply: str, said: Sequence[str], expected: str) -> bool:
    """Whether it may be something else after all: a lemon is no lemon cake, Osselle perhaps not Ossel."""
    if expected.islower():
        own, words = split_words(expected)[-1], split_words(reply)
        # Copper is no cooper, but a centre is a center.
        alike = [
            word for word in words if word != own and len(word) == len(own) and reduce_word(word) == reduce_word(own)
        ]
        if any(sorted(word) != sorted(own) and word[:-2] != own[:-2] for word in alike):
            return True
        return _list_content(expected)[-1] not in said and _ONE_OF.match(fold(reply)) is not None
    names = [word for word in split_words(reply) if word not in _SMALL]
    return len(names) == 1 and all(_count_edits(names[0][:40], word) > 1 for word in split_words(expected))


@lru_cache(maxsize=64)
def _index_names(among: tuple[str, ...]) -> dict[str, str]:
    return {fold(one): one for one in among if one[:1].isupper() and " " not in one}


def _find_by_name(reply: str, expected: str, among: tuple[str, ...]) -> Near | None:
    """Whether a reply spells the name of one candidate in another way, or gives the short form of it; None if it does not.

    `Max` is Maximilian where nobody else begins like that.
    """
    words = [word for word in split_words(reply) if word not in _SMALL and word not in _EMPTY]
    singles = _index_names(among)
    if expected not in singles.values():
        return None
    spelt = {name for word in words for name in _list_spelt_like(word, tuple(singles))}
    if not spelt and len(words) <= _BRIEF_WORDS:
        capital = {fold(word) for word in re.findall(r"\b[A-Z][a-z]{2,}", reply)} & set(words)
        spelt = {name for word in capital for name in singles if name.startswith(word) and len(name) > len(word) + 1}
    if not spelt:
        return None
    if any(word.startswith(fold(expected)) for word in words):
        return None
    if fold(expected) not in spelt:
        return Near.FAR
    return Near.PERHAPS if len(spelt) > 1 or _REFUSED.search(fold(reply)) else Near.MEANT


@lru_cache(maxsize=4096)
def _list_spelt_like(word: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The longer names from which a word differs by one letter."""
    near = [name for name in names if len(name) >= _LONG_NAME and abs(len(name) - len(word)) <= 1]
    return tuple(name for name in near if len(set(name) ^ set(word)) <= 2 and _count_edits(word[:40], name) == 1)


_LONG_NAME = 7


def unite_words(reply: str, expected: str, among: Iterable[str]) -> str:
    """The reply with the expected phrase in place of its words, where they stand together in another order or form.

    Args:
        reply: What was answered.
        expected: What should have been named, in several words.
        among: Everything that could have been; where the words are as well those of another one, the reply is left as it is.

    >>> unite_words("Dumplings, the chestnut ones.", "chestnut dumplings", ["chestnut soup"])
    'chestnut dumplings ones.'
    """
    wanted = _list_own(expected)
    index = _index_words(tuple(sorted({*among, expected})))
    words = list(_WORDS.finditer(reply)) if len(wanted) > 1 and len(reply) < _MOST_LETTERS else []
    said = [_reduce_noun(fold(word[0])) for word in words]
    for at, first in enumerate(said):
        if first not in wanted:
            continue
        for end in range(at + len(wanted), min(at + len(wanted) + _BETWEEN, len(words)) + 1):
            window = set(said[at:end])
            if wanted <= window:
                between = reply[words[at].start() : words[end - 1].end()]
                others = {
                    one for word in map(reduce_word, window) for one in index.get(word, ()) if _list_own(one) <= window
                }
                if others == {expected} and not _APART.search(fold(between)):
                    return reply[: words[at].start()] + expected + reply[words[end - 1].end() :]
                break
    return reply


@lru_cache(maxsize=4096)
def _list_own(phrase: str) -> frozenset[str]:
    return frozenset(_reduce_noun(word) for word in split_words(phrase) if word not in ("a", "an", "of", "the"))


def _reduce_noun(word: str) -> str:
    """A word without its ending, short ones in the plural included: `wells`."""
    return reduce_word(to_figures(re.sub(r"(?<=\w{3}[^s])s\Z", "", word)))


_WORDS = lazy_pattern(r"[^\W_]+(?:['’][^\W_]+)*")
_APART = lazy_pattern(r"[.!?;:\n()]|n't\b|\b(?:not?|nor|or|but|without|than|is|are|was)\b")
_MOST_LETTERS = 4_000


# As many words may stand between those of a phrase.
_BETWEEN = 4


def _find_alike(said: Sequence[str], candidates: tuple[str, ...]) -> list[str]:
    """The candidates that have a word of the reply, or one that is spelled like it."""
    index = _index_words(candidates)
    words = {word for word in said if word in index}
    if len(said) <= _FEW_WORDS:
        words.update(word for word in index if any(_is_misspelt(other, word) for other in said))
    return sorted({candidate for word in words for candidate in index[word]})


@lru_cache(maxsize=64)
def _index_words(candidates: tuple[str, ...]) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for candidate in candidates:
        for word in _list_content(candidate):
            index.setdefault(word, []).append(candidate)
    return index


@dataclass(frozen=True, slots=True)
class _Fit:
    # How many words of the candidate are in the reply, those spelled in another way included.
    matched: float
    # How many of them are not.
    missing: int
    # How many words of the reply the candidate does not have.
    unmatched: int
    exact: bool


def _measure_fit(said: Sequence[str], wanted: Sequence[str]) -> _Fit:
    matched, exact, used = 0.0, True, set[int]()
    for word in wanted:
        place = next((at for at, other in enumerate(said) if at not in used and other == word), None)
        if place is None and len(said) <= _FEW_WORDS:
            place = next((at for at, other in enumerate(said) if at not in used and _is_misspelt(other, word)), None)
            if place is not None:
                matched, exact = matched - 0.25, False
        if place is not None:
            matched += 1
            used.add(place)
    return _Fit(matched, len(wanted) - len(used), len(said) - len(used), exact)


@lru_cache(maxsize=4096)
def _list_content(text: str) -> tuple[str, ...]:
    """The words that carry meaning, each in a form that its spellings and its numbers share."""
    words = split_words(to_figures(translate(text)))
    kept = tuple(reduce_word(word) for word in words if word not in _SMALL)
    return kept or tuple(map(reduce_word, words))


@lru_cache(maxsize=4096)
def reduce_word(word: str) -> str:
    """A word without its ending, and without what spellings differ in: saltpeter and saltpetre, colour and color."""
    if word.isdigit():
        return word
    word = _DOUBLED.sub(r"\1", _FUL.sub("", word))
    word = re.sub(r"our(?=s?\Z|e)", "or", re.sub(r"re\Z", "er", word))
    word = _PARTICIPLE.sub(r"\1", word)
    if len(word) > 4:
        word = re.sub(r"(?:ies|y|ie)\Z", "i", word)
        word = re.sub(r"(?<=[^s])(?:es|s|e)\Z", "", word)
        word = re.sub(r"v\Z", "f", word)
    elif len(word) > 2:
        word = word.removesuffix("e")
    return word.replace("ph", "f").replace("z", "s")


# A spoonful is a spoon.
_FUL = lazy_pattern(r"(?<=\w{3})fuls?\Z")
# `Iced`, `making` and `striped`, but not `seed`, `ring` or `shed`.
_PARTICIPLE = lazy_pattern(r"\A(\w*[aeiou]\w*[^aeiou\W]|[aeiou][^aeiou\W])(?:ed|ing)\Z")


def is_other_spelling(word: str, meant: str) -> bool:
    """Whether two words are one in two spellings or forms: `spoilt` and `spoiled`, `colour` and `color`."""
    ends = (_PAST_T.sub("", word), _PAST_T.sub("", meant))
    return reduce_word(word) == reduce_word(meant) or (ends[0] == ends[1] and len(ends[0]) > 2)


_PAST_T = lazy_pattern(r"(?:ed|t)\Z")


@lru_cache(maxsize=65536)
def _is_misspelt(word: str, meant: str) -> bool:
    """Whether a word of some length differs by one letter, one of eight letters by two."""
    least = min(len(word), len(meant))
    allowed = 2 if least >= 8 else 1
    if least < 5 or abs(len(word) - len(meant)) > allowed or len(set(word) ^ set(meant)) > 2 * allowed:
        return False
    return _count_edits(word[:40], meant[:40]) <= allowed


def _count_edits(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for at, letter in enumerate(first, 1):
        above, row[0] = row[0], at
        for place, other in enumerate(second, 1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (letter != other))
    return row[-1]


# In another language, or a time that is not named.
_LOOSE = lazy_pattern(
    r"\b(?:beginning|start|middle|end) of (?:the|that|last|this) (?:week|month|year)\b|\bmid-?week\b|\A\W*(?:l'|(?:el"
    r"|la|le|les|los|las|il|lo|der|die|das|den|dem|une?|una|uno|eine?n?|em|na|no|auf|nach|c'est|es|ist|son|sua|su"
    r"|e)\s)|\A\W*\w{3,}(?:isch|ois|ais)\W*\Z"
    # By its place among those that were offered.
    r"|\bthe (?:first|second|third|last|middle|latter|former) (?:one|of (?:the|them|those|these|all))\b"
)
# `The colour of your front door`.
_DESCRIBED = lazy_pattern(
    r"\bthe (?:one|same|colour|color|name|place|town|day|thing|room|word|dish|person) (?:of|with|who|that|which|as"
    r"|from|in|where)\b"
)
_ONE_OF = lazy_pattern(r"\W*(?:an?|one|another) ")
# Speaks of the conversation, not of what was asked.
_REFUSED = lazy_pattern(
    r"\b(?:forg[eo]t(?:ten)?|erased?|wiped|deleted|asked|told me|you told|to myself|to mind|letting me know"
    r"|happy to|anything else|noted|got it|thank|thanks"
    r"|you prefer|your taste|taste|help you|would you|do you|do they|where should|where would|no (?:password|answer"
    r"|name)|whichever"
    r"|whatever|several|null|all (?:three|two|four|five|of)|both|not|never|nothing|cannot|unable|refuse|decline"
    r"|private|secret|confiden\w*|between (?:us|\w{1,20} and (?:me|myself)|the two of us)|my lips|sealed|mum|tell tales"
    r"|keep (?:it|that|this))\b|n't\b"
)
_DOUBLED = lazy_pattern(r"([^\W\d])\1")
# Says that something is so, and nothing of what.
_SMALL = frozenset({
    "a", "an", "and", "answer", "are", "as", "at", "be", "been", "being", "believe", "book", "by", "called", "can", "certainly",
    "choose",
    "correct", "could", "course", "definitely", "did", "do", "does", "for", "from", "get", "go", "guess", "had",
    "has", "have", "he",
    "her", "here", "hers", "hes", "him", "his", "i", "i'd", "id", "if", "im", "in", "indeed", "is", "it", "it's", "its",
    "ive", "just", "made", "makes", "me", "mine", "my", "name", "named", "of", "oh", "ok", "okay", "on", "one", "or",
    "our", "ours", "out", "pick", "please", "probably", "recall", "remember", "right", "said", "say", "says", "she", "shes",
    "should", "so", "some", "suppose", "sure", "surely", "take", "thank", "thanks", "that", "thats", "the", "their", "theirs",
    "them", "then", "there", "these", "they", "theyre", "thing", "things", "think", "this", "those", "to", "told", "too",
    "us", "was", "we", "well", "were", "what", "which", "who", "will", "with", "would", "yes", "you", "your", "youre",
    "yours",
})  # fmt: skip
_EMPTY = frozenset({
    "a", "all", "answer", "any", "anything", "cannot", "cant", "color", "colour", "day", "depends", "don't", "dont",
    "everything", "false", "favorite", "favourite", "fine", "good", "hello", "hi", "hm", "hmm", "idea", "it", "item",
    "key", "know", "list", "maybe", "month", "n/a", "na", "name", "names", "nan", "never", "nil", "no", "nobody", "none",
    "noone", "nope", "not", "noted", "nothing", "null", "number", "ok", "okay", "perhaps", "person", "place", "several",
    "somehow", "someone", "something", "somewhere", "sorry", "sure", "thank", "thanks", "that", "the", "this", "time",
    "true", "undefined", "understood", "unknown", "value", "well", "word", "yep", "yes",
})  # fmt: skip
