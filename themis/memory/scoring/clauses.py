"""Breaks a reply into clauses and tells how each is meant: denied, in passing, or as the answer.

All texts here are folded: see `words.folded`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from themis.memory.scoring.words import TAG, tagged, tags_in

__all__ = ["Clause", "Standing", "after_correction", "read_clauses"]


class Standing(IntEnum):
    """How much a clause counts: of two that name something, only the higher one gives the answer."""

    DENIED = 0
    REASON = 1  # or a comparison
    PAST = 2  # or of other cases
    SAID = 3
    ALONE = 4  # nothing but the phrase, so that the rest is explanation
    CURRENT = 5
    CONCLUDED = 6


@dataclass(frozen=True, slots=True)
class Clause:
    """What a clause names; `follows` if it continues a story, so that it overtakes what was named before it."""

    standing: Standing
    phrases: frozenset[str]
    follows: bool = False


def read_clauses(text: str, candidates: tuple[str, ...]) -> list[Clause]:
    """The clauses that name one of the candidates, in order; none where the reply says that it cannot decide."""
    clauses: list[Clause] = []
    joined = False
    marked = _LABELLED.sub(_as_answer, _REFERRED.sub(r"\1\2; so \1", tagged(text, candidates)))
    *before, tail = TAG.split(marked)
    if _UNDECIDED.search(f"{tail}\n") or (len(before) == 1 and _ALTERNATIVE.search(marked)):
        return []
    for piece, lead, mark in _pieces(marked):
        phrases = frozenset(tags_in(piece, candidates))
        standing = _standing(piece, lead)
        follows = _FOLLOWS.match(f"{lead} {piece}") is not None
        if standing is Standing.SAID:
            # `Red: warm` is the first line of a table.
            bare = len(phrases) == 1 and mark != ":" and not lead
            if bare and set(_WORD.findall(piece)) <= _SMALL:
                standing = Standing.ALONE
            if clauses and follows:
                standing = clauses[-1].standing
        if clauses and standing in (Standing.SAID, Standing.ALONE) and _JOINED.match(piece):
            standing = min(clauses[-1].standing, Standing.SAID)
            joined = True
        clauses.append(Clause(standing, phrases, follows))
    # `Red. Or perhaps blue.` is one answer of two parts.
    return [_together(clause) for clause in clauses] if joined else clauses


def after_correction(text: str) -> str:
    """What follows the last `no, wait` or `I mean`; nothing where the reply does not correct itself."""
    end = 0
    for marker in _CORRECTION.finditer(text):
        end = marker.end()
    return text[end:] if end else ""


def _as_answer(labelled: re.Match[str]) -> str:
    """A last line such as `Most often: red` is the answer, unless its label says otherwise."""
    return "\n\nanswer:" if _standing(labelled[1], "") is Standing.SAID else labelled[0]


def _together(clause: Clause) -> Clause:
    return replace(clause, standing=Standing.SAID) if clause.standing is Standing.ALONE else clause


def _pieces(text: str) -> Iterator[tuple[str, str, str]]:
    """Each clause that names a candidate, the words that lead up to it without naming one, and the mark after it."""
    lead = ""
    breaks = iter(_BREAK.split(_unrefuted(_EXCEPT.sub(" except ", _ISNT_IT.sub("", text)))))
    for piece in breaks:
        mark = next(breaks, "") or ""
        for place, part in enumerate(_NOT_THIS.split(piece, maxsplit=1)):
            if place == 2 or _TURN.match(part) or lead.endswith(","):
                lead = ""
            if TAG.search(part):
                yield part, lead, mark
                lead = ""
            else:
                lead = f"{lead} {part}".strip()[-_LEAD:]
        if mark == ":":
            # Denials and reasons before a colon do not reach beyond it.
            lead = "" if _REASON.match(lead) else _DENIAL.sub("", lead)
        elif mark:
            lead = ""


def _unrefuted(text: str) -> str:
    """The text without questions that are answered in the negative: `Red? No` and `Red? Certainly not` deny the red."""
    kept, end = [], 0
    for refuted in _REFUTED.finditer(text):
        question = text[max(end, refuted.start() - _LEAD) : refuted.start()]
        start = refuted.start() - len(re.split(r"[.!?;\n]", question)[-1])
        kept.append(text[end:start])
        end = refuted.end()
    return " ".join([*kept, text[end:]])


def _standing(piece: str, lead: str) -> Standing:
    whole = f"{lead} {piece}"
    if _DENIAL.search(whole):
        return Standing.DENIED
    if _PRESENT.search(whole) or _FOREMOST.search(whole):
        return Standing.CURRENT
    if _REASON.match(whole):
        return Standing.REASON
    if _GONE.search(whole):
        return Standing.PAST
    if _CONCLUSION.search(whole):
        return Standing.CONCLUDED
    return Standing.PAST if _BESIDES.search(whole) else Standing.SAID


_TAGS = TAG.pattern.strip("[]")
# No lead-in of a clause is longer; more would only cost time.
_LEAD = 200
_OPENERS = (
    "but although though however whereas while yet currently previously formerly originally earlier before after until "
    "instead rather from to than which because since replacing superseding by with not previous prior past old maybe perhaps "
    "possibly probably finally lastly afterwards eventually then later so therefore thus hence unlike nowadays "
    "followed ahead compared"
)
_BREAK = re.compile(
    r"([.!?;](?=\s|$|[\"')*_])|:(?=\s|$)|[\n()\[\]{}|]|\s-+\s|[–—]"
    r"|,\s*(?=(?:and )?(?:it|its|it's|that|this|you|your|you're|you've|i|i'm|they|she|he|so|as|at|in|on)\b)"
    # `Since red and green are warm, blue is best`: a phrase with its verb begins a clause.
    rf"|,\s*(?=(?:and |but )?(?:(?:the|a|your) )?{TAG.pattern} (?:is|was|has|it|would|will|wins|remains|seems|plays)\b))"
    rf"|(?<=[\s,])(?<!used )(?<!ever )(?=(?:{'|'.join(_OPENERS.split())}|i think|i believe|i guess|also known|and ha(?:s|ve)"
    r"|no longer|these days|by now|most recently|at present|over(?! time)|now(?!\s*(?:[.!?]|$)))\b)"
    r"|(?<!was )(?<!were )(?<!been )(?<!got )(?<!is )(?<!be )(?<=\s)(?=(?:has |have )?(?:replac(?:es|ed)|took the place of)\b)"
)
# A phrase that is only referred to when the reply concludes: `red has four, so that is your colour`.
_REFERRED = re.compile(
    rf"({TAG.pattern})([^{_TAGS}\n]{{0,80}}?)\b(?:so (?:that|this|it)(?: one)?(?:'s| is) (?:the|your|my|what)"
    r"|(?:that|this|it)(?: one)?(?:'s| is) (?:the|your|my) (?:answer|choice|one|pick|winner)|(?:that|this) one wins"
    r"|(?:choose|pick|take|go (?:for|with)) (?:it|that|this)(?: one)?)\b"
    rf"(?![^.!?\n]{{0,40}}{TAG.pattern})"
)
_LABELLED = re.compile(
    rf"\n\s{{0,5}}\n([^\n:{_TAGS}]{{1,60}}):(?=[\s*_\"'`]{{0,6}}(?:the )?{TAG.pattern}[\s*_\"'`.!]{{0,6}}\Z)"
)
_UNDECIDED = re.compile(
    r"(?:n't|\bnot|\bcannot|\bno idea|\bunsure)\b[^.!?\n]{0,40}\bwhich(?: (?:one|of \w{1,5}(?: two)?|it (?:is|was)))?\s*[.!?\n]"
    r"|(?:can't|\bcannot|couldn't) (?:say|tell|decide)\s*[.!?\n]"
)
# An only candidate, beside something that is none.
_ALTERNATIVE = re.compile(
    rf"\beither (?:\w{{1,20}} ){{0,3}}(?:{TAG.pattern} or\b|or (?:\w{{1,20}} ){{0,2}}{TAG.pattern})"
    rf"|(?:\?\s{{1,3}}or|\bor (?:was|is) it) (?:\w{{1,10}} ){{0,3}}{TAG.pattern}[^.!?\n]{{0,30}}\?"
)
_CORRECTION = re.compile(
    r"(?<![^\s.,;:!?…–—-])(?:no|nope)(?:[,:.!]+| wait\b| sorry\b)(?:\s*(?:wait|sorry|actually)\b)?"
    r"|\b(?:scratch that|correction|i mean|i meant|or rather|make that)\b|\b(?:wait|sorry)[,:]"
)
_ISNT_IT = re.compile(r",?\s{0,3}\b(?:is|was|are|were|do|did|does)n't (?:it|that|you|i|they)\s?\?")
_REFUTED = re.compile(r"\?\s{0,3}(?:no|nope|never|(?:(?:definitely|certainly|surely) )?not)\b")
_EXCEPT = re.compile(r"\b(?:anything|everything|all|any|every \w{1,20}) but\b")
# `Not a spoon, a thimble`: the denial ends at the comma.
_NOT_THIS = re.compile(r"(?<=\bnot)([^,]{1,80}),\s+(?=(?:a|an|the|it|to|in)\b)")
_DENIAL = re.compile(
    r"\bnot\b(?! (?:sure|certain|entirely|completely|quite|mistaken|wrong|100|only|just|forgotten))"
    r"|n't\b(?! (?:worry|forg[eo]t|sure|get enough))|\bcannot\b(?! forget)|\bnever\b|\bno longer\b|\brather than\b"
    r"|\binstead of\b|\bthan\b|\bused to\b|\bneither\b|\bnor\b|\bexcept\b|\bapart from\b|\bavoid\b|\bdislikes?\b|\bhates?\b"
    r"|(?<!not )(?<!n't )\bforgot(?:ten)?\b|(?<!not )\b(?:wrong|incorrect|false)\b|\bunlike\b"
    r"|\b(?:was|were|been|got|is|be) (?:replaced|superseded|discarded|dropped|removed)\b|\b(?:replac|supersed)(?:es|ed|ing)\b"
    rf"|\btook the place of\b|\A\s*over\b|\b(?:no|without|to forget) (?:the )?{TAG.pattern}|\b(?:is|are|was|were|be) too\b"
    r"|\b(?:no|any) (?:memory|record|recollection|information)\b"
)
_PRESENT = re.compile(
    r"\bnow\b(?! on\b)|\bcurrent(?:ly)?\b|\blatest\b|\bmost recent(?:ly)?\b|\blast\b|\bat present\b|\bpresently\b"
    r"|\bthese days\b|\bnowadays\b|\btoday\b|\bfinally\b|\blastly\b|\blater\b|\bnewest\b|\bas of\b|\bin the end\b|\bended up\b"
    r"|\bever since\b|\bupdated to\b"
)
_FOREMOST = re.compile(
    r"\bha(?:s|ve) the (?:most|highest|fewest|lowest|least|largest|smallest)\b|\bmost (?:often|frequently)\b"
)
_REASON = re.compile(
    r"\W*(?:because|since|as|while|whereas|although|though|compared|followed|ahead|second|than|like)\b"
)  # fmt: skip
_GONE = re.compile(
    r"\b(?:was|were|been|had|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?|earlier|before|first|once"
    rf"|until|prior|past|old)\b|\bleft (?:the )?{TAG.pattern}"
)
_BESIDES = re.compile(
    r"\b(?:from|also|several|various|other|different|throughout|over time|began|started|at one point|at some point"
    r"|besides|also known|after|normally|usually|ordinarily|second|runner-up|tempt(?:ing|ed))\b"
    r"|(?:'d|\bwould) have (?:liked|loved|ordered|preferred|taken)\b"
)
_CONCLUSION = re.compile(
    r"\b(?:so|therefore|thus|hence|answer|(?<!second )choice|(?:has|have) to be|must be"
    r"|recommend|suggest|go (?:for|with)|that leaves|wins|winner|decides|better|best)\b"
    rf"|{TAG.pattern} it is\b|\bi(?:'d| would) say\b"
    # `I must choose` is the question, not its answer.
    r"|(?<!must )(?<!to )(?<!shall i )\b(?:choose|pick|take|order)\b"
)
# What was said up to here has no bearing on what follows.
_TURN = re.compile(
    r"\W*(?:but|yet|however|so|therefore|thus|hence|because|since|while|whereas|compared|followed|ahead)\b"
)
_FOLLOWS = re.compile(
    r"\W*(?:and )?(?:(?<!back )then|later|afterwards|finally|lastly|eventually|now|these days|most recently)\b"
)
_JOINED = re.compile(r"\W*(?:or|and|also|maybe|perhaps|possibly|alternatively)\b")
_WORD = re.compile(r"\w+")
# Around a phrase that stands alone.
_SMALL = frozenset({
    "a", "an", "at", "by", "certainly", "clearly", "definitely", "dr", "for", "in", "its", "mr", "mrs", "ms", "my",
    "obviously", "of", "on", "please", "queen", "river", "room", "sure", "surely", "the", "to", "with", "yes", "your",
})  # fmt: skip
