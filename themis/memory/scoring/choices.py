"""Grades a choice between named things for which the reply may give its reasons, and so name the others too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade
from themis.memory.scoring.claims import find_claims, find_possible_claims, find_standing, weigh_claim
from themis.memory.scoring.clauses import Standing
from themis.memory.scoring.prominence import is_prominent
from themis.memory.scoring.spelling import spell_like
from themis.memory.scoring.words import find_correction, find_phrases, fold, remove_echo, shorten, split_words


def grade_choice(question: str, reply: str, expected: str, among: Iterable[str]) -> Grade:
    """1 if the reply chooses the expected thing; a failure where a person would have to ask back.

    Whoever begins with a name and a full stop has chosen, whatever is said after it. What the question says again does not
    count, nor do remarks in brackets that name nothing.

    Args:
        question: What was asked.
        reply: What was answered.
        expected: What should be chosen.
        among: All that could be.

    >>> grade_choice("?", "The Falcon. The Mermaid has as many cats, but more beds.", "Falcon", ["Mermaid"]).score
    1.0
    """
    every = tuple(sorted({*among, expected}))
    if _AT_RANDOM.search(fold(reply)):
        return Grade(0.0, (f"expected {expected!r}, got a guess: {shorten(reply)}",))
    answer = spell_like(remove_echo(reply, question), every, expected)
    said = _clean(answer, every)
    if not find_claims(said, every):
        said = _clean(_name_in_full(answer, question, every), every)
    said = _name_last(said, question, every)
    if (marked := _find_marked(said, every)) is not None:
        return Grade.when(marked == expected, f"expected {expected!r}, marks {marked!r}")
    opening = _OPENING.match(said)
    # `Take the first. I recommend the second` has not chosen.
    chosen = opening is not None and find_standing(_BRACKETS.sub(" ", said[opening.end() :]), every) not in _CHOOSING
    if opening is not None and chosen and not find_correction(fold(said)):
        named = find_claims(opening[1], every)
        if len(named) == 1 and len(opening[1].split()) <= len(next(iter(named)).split()) + _FEW_WORDS:
            return weigh_claim(opening[1], expected, every)
    # Half of a name may be enough among those that there are to choose from.
    known = find_phrases(said, every)
    offered = () if known else tuple(sorted(find_phrases(question, every)))
    echoes = not known and not offered and set(split_words(said)) <= {*split_words(question), *_COURTESIES}
    grade = weigh_claim(said, expected, offered if expected in offered else every, in_full=echoes)
    if not grade.failed and not grade.score and _leaves_only(said, question, expected, every):
        return Grade.failure(f"names all but {expected!r}, which it may mean: {shorten(reply)}")
    claimed = find_claims(said, every)
    several = find_standing(said, every) is Standing.CONCLUDED or len(claimed) > 2 or _ALSO.search(fold(said))
    if expected in claimed and len(claimed) > 1 and _ranks_first(said, expected, every):
        return Grade.failure(f"a ranking, of which this may choose the first: {shorten(reply)}")
    in_full = _name_in_full(said, question, every)
    if grade.score != 1.0 and is_prominent(in_full, expected, every, find_possible_claims(in_full, every)):
        return Grade.failure(f"it is not clear whether this chooses {expected!r}: {shorten(reply)}")
    if grade.failed and len(claimed) > 1 and several:
        return Grade(0.0, (f"expected only {expected!r}, chooses {', '.join(sorted(claimed))}",))
    if len(find_phrases(said, every)) > 1 and find_standing(said, every) in (Standing.REASON, Standing.PAST):
        return Grade.failure(f"it is not clear what this chooses: {shorten(reply)}")
    return grade


def _name_in_full(reply: str, question: str, every: tuple[str, ...]) -> str:
    """The reply with the full name where a word of it can mean only one of what is offered: `the harvest one`."""
    offered = sorted(find_phrases(question, every))
    in_full = find_phrases(reply, every)
    asked = Counter(split_words(question))
    text = reply
    for option in (one for one in offered if one not in in_full):
        for word in split_words(option):
            if asked[word] == 1 and len(word) > _SHORT and word not in _COMMON:
                capital = word.capitalize() in option
                pattern = (
                    rf"\b{word.capitalize()}\b|(?<=\b[Tt]he ){word}\b"
                    if capital
                    else rf"(?i:\b{word}\b)(?! (?:is|are|was|were)\b)"
                )
                text = re.sub(pattern, option, text)
    return text


def _name_last(said: str, question: str, every: tuple[str, ...]) -> str:
    """The reply with the full name in its last sentence, where that has only a word of it: `That gives us the Goat.`"""
    *_, last = _SENTENCE_STARTS.finditer(said)
    tail = said[last.end() :]
    proper = tuple(option for option in every if option.istitle())
    if find_phrases(tail, every) or not proper:
        return said
    return said[: last.end()] + _name_in_full(tail, question, proper)


_SENTENCE_STARTS = lazy_pattern(r"\A|(?<=[.!?\n])\s+(?=\S)")
_SHORT = 2
_COMMON = frozenset(
    {"old", "new", "late", "great", "long", "high", "first", "last", "one", "two", "three", "over", "with", "the"}
)


def _find_marked(said: str, every: tuple[str, ...]) -> str | None:
    """The one candidate that a table or list marks as chosen, by a tick or in bold letters of which it says so."""
    lines = [line for line in said.splitlines() if find_phrases(line, every)]
    ticked = [line for line in lines if _TICK.search(line)]
    if len(lines) > 1 and len(ticked) == 1:
        named = find_phrases(ticked[0], every)
        return named.pop() if len(named) == 1 else None
    if _IN_BOLD.search(fold(said)):
        bold = find_phrases(" . ".join(re.findall(r"\*\*([^*\n]{1,80})\*\*", said)), every)
        return bold.pop() if len(bold) == 1 else None
    return None


def _ranks_first(said: str, expected: str, every: tuple[str, ...]) -> bool:
    """Whether the expected thing is the first of numbered lines."""
    lines = re.findall(r"^\W{0,4}(\d)[.)] (.{1,200})$", said, re.MULTILINE)
    return len(lines) > 1 and lines[0][0] == "1" and find_phrases(lines[0][1], every) == {expected}


def _leaves_only(said: str, question: str, expected: str, every: tuple[str, ...]) -> bool:
    """Whether all that is offered is ruled out but the expected thing."""
    offered = find_phrases(question, every)
    return len(offered) > 1 and offered - find_phrases(said, every) == {expected} and not find_claims(said, every)


_TICK = lazy_pattern("✅|✓|✔|☑|🏆|⭐|←|<--?")
_IN_BOLD = lazy_pattern(r"\b(?:in bold|bold(?:ed)?(?: one| row)|printed bold|set in bold|the bold)\b")


def _clean(reply: str, every: tuple[str, ...]) -> str:
    said = _BRACKETS.sub(lambda aside: aside[0] if find_phrases(aside[0], every) else " ", reply)
    said = _RANKED.sub(" ahead of ", _THEREFORE.sub("wins", said))
    # `Neither of both → red` concludes with red.
    return _ARROW.sub(". So ", said) if len(_ARROW.findall(said)) == 1 else said


_COURTESIES = frozenset({
    "a", "an", "arrived", "for", "has", "is", "it", "noted", "ok", "okay", "parcel", "thank", "thanks", "the",
    "understood", "you",
})  # fmt: skip
_CHOOSING = (Standing.CONCLUDED, Standing.ALONE)
# Beside a name that stands alone: `I take the`, `off to the`.
_FEW_WORDS = 4
_OPENING = lazy_pattern(
    r"\s*(?![-*•] |\d)([^.!?:;\n–—(),]{1,60})(?:[.!\n–—(]|\Z|,\s(?:because|since|as it|as the|for|which|it)\b)"
)
_ALSO = lazy_pattern(r"\bas well\b|\balso\b|\bif you(?:'d| would)? (?:like|prefer|want)\b|\bas a backup\b|\bboth\b")
_AT_RANDOM = lazy_pattern(
    r"\bat random\b|\brandom(?:ly)? (?:guess|pick|choice|choos)|\b(?:toss|flip) (?:a|of a) coin\b"
)
_THEREFORE = lazy_pattern(
    r"\band is (?:therefore|thus|hence|so) (?:the|your|my|our|their) (?:\w{1,10} )?(?:choice|one|winner|pick|answer)\b",
    re.IGNORECASE,
)
_BRACKETS = lazy_pattern(r"\([^()]{1,60}\)")
_RANKED = lazy_pattern(r"(?<=\w)\s?(?<![-=])[>≻]\s?(?=\w)|(?<=\w) = (?=[A-Za-z])")
_ARROW = lazy_pattern(r"→|⇒|->|=>")
