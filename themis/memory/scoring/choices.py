"""Grades a choice between named things for which the reply may give its reasons, and so name the others too."""

from __future__ import annotations

import re
from collections.abc import Iterable

from themis.memory.actions import Grade
from themis.memory.scoring.claims import Standing, find_claims, find_standing, weigh_claim
from themis.memory.scoring.words import find_correction, find_phrases, fold, remove_echo, shorten


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
    said = _clean(remove_echo(reply, question), every)
    opening = _OPENING.match(said)
    # `Take the first. I recommend the second` has not chosen.
    chosen = opening is not None and find_standing(_BRACKETS.sub(" ", said[opening.end() :]), every) not in _CHOOSING
    if opening is not None and chosen and not find_correction(fold(said)):
        named = find_claims(opening[1], every)
        if len(named) == 1 and len(opening[1].split()) <= len(next(iter(named)).split()) + _FEW_WORDS:
            return weigh_claim(opening[1], expected, every)
    grade = weigh_claim(said, expected, every)
    claimed = find_claims(said, every)
    several = find_standing(said, every) is Standing.CONCLUDED or len(claimed) > 2 or _ALSO.search(fold(said))
    if grade.failed and len(claimed) > 1 and several:
        return Grade(0.0, (f"expected only {expected!r}, chooses {', '.join(sorted(claimed))}",))
    if len(find_phrases(said, every)) > 1 and find_standing(said, every) in (Standing.REASON, Standing.PAST):
        return Grade.failure(f"it is not clear what this chooses: {shorten(reply)}")
    return grade


def _clean(reply: str, every: tuple[str, ...]) -> str:
    said = _BRACKETS.sub(lambda aside: aside[0] if find_phrases(aside[0], every) else " ", reply)
    said = _THEREFORE.sub("wins", said)
    # `Neither of both → red` concludes with red.
    return _ARROW.sub(". So ", said) if len(_ARROW.findall(said)) == 1 else said


_CHOOSING = (Standing.CONCLUDED, Standing.ALONE)
# Beside a name that stands alone: `I take the`, `off to the`.
_FEW_WORDS = 4
_OPENING = re.compile(
    r"\s*(?![-*•] |\d)([^.!?:;\n–—(),]{1,60})(?:[.!\n–—(]|\Z|,\s(?:because|since|as it|as the|for|which|it)\b)"
)
_ALSO = re.compile(r"\bas well\b|\balso\b|\bif you(?:'d| would)? (?:like|prefer|want)\b|\bas a backup\b|\bboth\b")
_AT_RANDOM = re.compile(r"\bat random\b|\brandom(?:ly)? (?:guess|pick|choice|choos)|\b(?:toss|flip) (?:a|of a) coin\b")
_THEREFORE = re.compile(
    r"\band is (?:therefore|thus|hence|so) (?:the|your|my|our|their) (?:\w{1,10} )?(?:choice|one|winner|pick|answer)\b",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\([^()]{1,60}\)")
_ARROW = re.compile(r"→|⇒|->|=>")
