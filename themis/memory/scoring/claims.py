"""Tells what a reply claims from what it merely mentions.

`It was red, but now it is blue` mentions two colours and claims one. An agent that names everything claims everything,
which is never right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from themis.memory.actions import Grade
from themis.memory.scoring.numbers import grade_number
from themis.memory.scoring.words import folded, mentioned, mentioned_in_folded, shortened

__all__ = ["abstains", "claims", "grade_answers", "grade_claim"]


def grade_claim(reply: str, expected: str, among: Iterable[str]) -> Grade:
    """1 if, of everything it could have named, the reply claims the expected phrase and nothing else."""
    # A phrase that differs from the expected one in nothing but its letters' case is no other phrase.
    rivals = {phrase for phrase in among if folded(phrase) != folded(expected)}
    claimed = claims(reply, {*rivals, expected})
    if claimed == {expected}:
        return Grade(1.0, (f"says {expected!r}",))
    if not claimed:
        return Grade(0.0, (f"expected {expected!r}, which is not in: {shortened(reply)}",))
    shown = ", ".join(map(repr, sorted(claimed)[:5])) + (" and more" if len(claimed) > 5 else "")
    return Grade(0.0, (f"expected only {expected!r}, got {shown}",))


def grade_answers(replies: Sequence[str], expected: Sequence[str], kinds: Iterable[Iterable[str]]) -> Grade:
    """The mean of one claim per question.

    `kinds` are lists of phrases of one kind (all rivers, all festivals); an answer is compared with its own kind, a number
    with the number that the reply settles on. A reply that recites half of the other answers as well is no answer.
    """
    every = [frozenset(kind) for kind in kinds]
    grades = []
    for number, answer in enumerate(expected):
        reply = replies[number] if number < len(replies) else ""
        others = {other for other in expected if other != answer}
        recited = mentioned(reply, (answer, *others)) & others
        if len(recited) >= max(2, len(others) / 2):
            grades.append(Grade(0.0, (f"asked for {answer!r}, recites {len(recited)} other answers as well",)))
        elif answer.isdigit():
            grades.append(grade_number(reply, int(answer)))
        else:
            rivals = chain.from_iterable(kind for kind in every if answer in kind)
            grades.append(grade_claim(reply, answer, rivals))
    return Grade.mean(grades)


def claims(reply: str, among: Iterable[str]) -> frozenset[str]:
    """Which of the phrases the reply asserts.

    A clause that denies asserts nothing. What is said to hold now goes before what is simply said, and that before what
    is said of the past.
    """
    candidates = tuple(sorted(among))
    text = folded(reply)
    if not mentioned_in_folded(text, candidates):
        return frozenset()
    current: set[str] = set()
    simple: set[str] = set()
    past: set[str] = set()
    for clause in _BREAK.split(text):
        found = mentioned_in_folded(clause, candidates)
        if found and not _DENIAL.search(clause):
            (current if _PRESENT.search(clause) else past if _PAST.search(clause) else simple).update(found)
    return frozenset(current or simple or past)


def abstains(reply: str) -> bool:
    """Whether the reply says that the speaker does not know or was not told."""
    return _IGNORANCE.search(folded(reply)) is not None


_OPENERS = (
    "but although though however whereas while yet now currently previously formerly originally earlier before after "
    "until instead rather from to than which because since replacing by with not previous prior past old maybe perhaps "
    "possibly probably finally"
)
_BREAK = re.compile(
    r"[.!?;](?=\s|$|[\"')*_])|[\n()\[\]{}|]|\s-+\s|[–—]"
    rf"|(?<=[\s,])(?<!used )(?=(?:{'|'.join(_OPENERS.split())}|i think|i believe|i guess)\b)"
    r"|,\s*(?=(?:and )?(?:it|its|it's|that|this|you|your|you're|you've|i|i'm|they|she|he|so|at|in|on)\b)"
)
_DENIAL = re.compile(
    r"\bnot\b(?! (?:sure|certain|entirely|completely|quite|mistaken|wrong|100))|n't\b(?! (?:worry|forget|sure))"
    r"|\bcannot\b|\bnever\b|\bno longer\b|\brather than\b|\binstead of\b|\bthan\b|\bused to\b|\bneither\b|\bnor\b"
    r"|\b(?:was|were|been|got|is|be) (?:replaced|superseded|discarded|dropped|removed)\b|\breplac(?:es|ed|ing)\b"
)
_PRESENT = re.compile(
    r"\bnow\b(?! on\b)|\bcurrent(?:ly)?\b|\blatest\b|\bmost recent(?:ly)?\b|\blast\b|\bat present\b|\bpresently\b"
    r"|\bthese days\b|\btoday\b|\bfinally\b|\bnewest\b|\bas of\b|\bin the end\b|\bended up\b|\bupdated to\b"
)
_PAST = re.compile(
    r"\b(?:was|were|been|had|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?|earlier|before|first|once"
    r"|until|prior|past|old|from|also|several|various|other|different|throughout|over time|began|started|at one point"
    r"|at some point|besides|after)\b"
)
_IGNORANCE = re.compile(
    r"(?:n't|\bnot|\bcannot|\bnever)\b[^.!?\n]{0,60}\b(?:know|recall|remember|told|tell|mention(?:ed)?|shared?|sa(?:y|id)"
    r"|sure|find|found|have|aware|provided?|gave|given|informed|specified|access|certain|seen?|come up|record(?:ed)?"
    r"|available|stated?)\b"
    r"|\b(?:no|any|without) (?:information|record|memory|memories|idea|mention|details?|knowledge|way of knowing|clue)\b"
    r"|\bunknown\b|\bunsure\b|\bno one told\b|\bnobody told\b|\bn/a\b|\bunable to\b|\bunaware\b|\bunclear\b"
)
