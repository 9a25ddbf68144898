"""Tells what a reply claims from what it merely mentions.

`It was red, but now it is blue` mentions two colours and claims one. An agent that names everything claims everything,
which is never right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from themis.memory.actions import Grade
from themis.memory.scoring.clauses import Clause, Standing, after_correction, read_clauses
from themis.memory.scoring.numbers import grade_number, unit_asked
from themis.memory.scoring.words import folded, mentioned, mentioned_in_folded, mentions, shortened

__all__ = [
    "abstains",
    "claims",
    "everything_claimed",
    "first_claimed",
    "grade_answers",
    "grade_claim",
    "grade_claim_about",
    "grade_recital_of",
    "said_of",
]


def grade_claim(reply: str, expected: str, among: Iterable[str]) -> Grade:
    """1 if, of everything it could have named, the reply claims the expected phrase and nothing else."""
    # A phrase that differs from the expected one in nothing but its letters' case is no other phrase.
    rivals = {phrase for phrase in among if folded(phrase) != folded(expected)}
    # Who does not know, and asks whether it is red, has not said so.
    stated = _QUESTION.sub(" ", reply) if "?" in reply and abstains(reply) else reply
    claimed = claims(stated, {*rivals, expected})
    if claimed == {expected}:
        return Grade(1.0, (f"says {expected!r}",))
    if not claimed:
        seen = "only mentioned" if mentions(reply, expected) else "not"
        return Grade(0.0, (f"expected {expected!r}, which is {seen} in: {shortened(reply)}",))
    shown = ", ".join(map(repr, sorted(claimed)[:5])) + (" and more" if len(claimed) > 5 else "")
    return Grade(0.0, (f"expected only {expected!r}, got {shown}",))


def grade_claim_about(subject: str, others: Iterable[str], reply: str, expected: str, among: Iterable[str]) -> Grade:
    """The same for a reply that may also say one other thing, if it says that of others than the subject."""
    brief = len(mentioned(reply, {*among, expected})) <= 2
    return grade_claim(said_of(reply, subject, others) if brief and subject else reply, expected, among)


def grade_answers(
    replies: Sequence[str], expected: Sequence[str], kinds: Iterable[Iterable[str]], questions: Sequence[str] = ()
) -> Grade:
    """The mean of one claim per question.

    `kinds` are lists of phrases of one kind (all rivers, all festivals); an answer is compared with its own kind, a number
    with the number that the reply settles on, of what its question counts. A reply that recites half of the other answers as
    well is no answer.
    """
    every = [frozenset(kind) for kind in kinds]
    grades = []
    for number, answer in enumerate(expected):
        reply = replies[number] if number < len(replies) else ""
        if (recital := grade_recital_of(reply, answer, expected)) is not None:
            grades.append(recital)
        elif answer.isdigit():
            unit = unit_asked(questions[number]) if number < len(questions) else ""
            grades.append(grade_number(reply, int(answer), unit=unit))
        else:
            rivals = chain.from_iterable(kind for kind in every if answer in kind)
            grades.append(grade_claim(reply, answer, rivals))
    return Grade.mean(grades)


def grade_recital_of(reply: str, answer: str, every_answer: Iterable[str]) -> Grade | None:
    """0 if the reply gives half of the answers to other questions too; None if it does not."""
    others = {other for other in every_answer if other != answer}
    recited = mentioned(reply, (answer, *others)) & others
    if len(recited) < max(2, len(others) / 2):
        return None
    return Grade(0.0, (f"asked for {answer!r}, recites {len(recited)} other answers as well",))


def claims(reply: str, among: Iterable[str]) -> frozenset[str]:
    """Which of the phrases the reply asserts.

    What follows a correction (`no, wait`) goes before all the rest. Then a conclusion goes before what is said to hold now,
    that before what stands alone, that before what is simply said, and that before reasons, comparisons and the past. Of a
    story (`first red, then blue`) the end counts. A clause that denies asserts nothing.
    """
    clauses = _asserting(reply, among)
    highest = max((clause.standing for clause in clauses), default=Standing.DENIED)
    best = [clause for clause in clauses if clause.standing is highest]
    if best and best[-1].follows:
        return best[-1].phrases
    return frozenset(chain.from_iterable(clause.phrases for clause in best))


def everything_claimed(reply: str, among: Iterable[str]) -> frozenset[str]:
    """Which of the phrases the reply asserts where it may well assert several, like the items of an order."""
    clauses = _asserting(reply, among)
    plain = [clause for clause in clauses if clause.standing >= Standing.SAID]
    return frozenset(chain.from_iterable(clause.phrases for clause in plain or clauses))


def first_claimed(reply: str, among: Iterable[str]) -> frozenset[str]:
    """What the reply concludes with, else what it names first, whatever its time: for questions about the past."""
    clauses = _asserting(reply, among)
    concluded = [clause for clause in clauses if clause.standing is Standing.CONCLUDED]
    return next((clause.phrases for clause in concluded or clauses), frozenset())


def _asserting(reply: str, among: Iterable[str]) -> list[Clause]:
    """The clauses that assert something, those after a correction if there are any."""
    candidates = tuple(sorted(among))
    text = folded(reply)
    if not mentioned_in_folded(text, candidates):
        return []
    for part in (after_correction(text), text):
        clauses = [clause for clause in read_clauses(part, candidates) if clause.standing is not Standing.DENIED]
        if clauses:
            return clauses
    return []


def said_of(reply: str, subject: str, others: Iterable[str]) -> str:
    """The reply without what it says of others than the subject: `Ann likes tea, Bob coffee` says tea of Ann."""
    every = tuple(sorted({*others, subject}))
    kept: list[str] = []
    of_others = False
    text = folded(reply)
    parts = _PARTS.split(after_correction(text) or text)
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        named = mentioned_in_folded(part, every)
        # `(your aunt)`, and nothing else about her.
        alone = len(part.split()) - sum(len(name.split()) for name in named) <= 1
        in_brackets = alone and part.startswith("(") and following.startswith(")")
        if kept and named and subject not in named and (in_brackets or _WHOSE.match(part)):
            kept.pop()
        if named and not _CONTRAST.match(part):
            of_others = subject not in named
        elif _SENTENCE.match(part):
            of_others = False
        if not of_others and not (named and subject not in named):
            kept.append(part)
    return "".join(kept)


def abstains(reply: str) -> bool:
    """Whether the reply says that the speaker does not know or was not told."""
    return _IGNORANCE.search(_CONDITION.sub("", folded(reply))) is not None


# `Red? That is your aunt's` says red of the aunt.
_WHOSE = re.compile(r"\W*(?:but )?(?:that|this|which)(?:'s| is| was| belongs)\b")
_QUESTION = re.compile(r"[^.!?\n]{1,200}\?")
_PARTS = re.compile(r"(?=[.!?;:]\s|[,()\n–—]|\s-+\s|(?<!, )\b(?:and|while|whereas|but)\b)")
_SENTENCE = re.compile(r"[.!?;\n]|,?\s?\b(?:while|whereas|but)\b")
_CONTRAST = re.compile(r"\W*(?:unlike|not|as opposed to)\b")
_CONDITION = re.compile(r"\bif (?:i|you) [^.!?,\n]{0,100}")
_IGNORANCE = re.compile(
    r"(?:n't|\bnot|\bcannot|\bnever|\bno longer)\b[^.!?\n]{0,60}\b(?:know|recall|remember|told|tell|mention(?:ed)?"
    r"|shared?|sa(?:y|id)|heard|sure|find|found|have|aware|provided?|gave|given|informed|specified|access|certain|seen?|come up"
    r"|record(?:ed)?|available|stated?)\b"
    r"|\b(?:told|mentioned|said|know)\b[^.!?\n]{0,80}\bbut not\b|\byet to (?:tell|be told|mention|say)\b|\black\b"
    r"|\b(?:no|any|without) (?:information|record|memory|memories|idea|mention|details?|knowledge|way of knowing|clue"
    r"|entry|entries|notes?|data|trace)\b|\bnot in my\b"
    r"|\bno (?:\w{1,20} ){1,2}(?:given|told|mentioned|provided|recorded|shared)\b"
    r"|\bunknown\b|\bunsure\b|\bno one told\b|\bnobody told\b|\bn/a\b|\bunable to\b|\bunaware\b|\bunclear\b"
)
