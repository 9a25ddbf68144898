"""Tells what a reply claims from what it merely mentions, clause by clause.

`It was red, but now it is blue` mentions two colours and claims one. An agent that names everything claims everything,
which is never right. Clauses are of folded text: see `words.fold`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import chain

from themis.core.json_repair import parse_json
from themis.memory.actions import Grade
from themis.memory.phrasing import Phrasing
from themis.memory.scoring.numbers import grade_number, parse_unit
from themis.memory.scoring.words import (
    TAG,
    find_correction,
    find_in_folded,
    find_phrases,
    find_tags,
    fold,
    mentions,
    shorten,
    split_words,
    tag_phrases,
)


def grade_claim(reply: str, expected: str, among: Iterable[str]) -> Grade:
    """1 if, of everything it could have named, the reply claims the expected phrase and nothing else."""
    # A phrase that differs from the expected one in nothing but its letters' case is no other phrase.
    rivals = {phrase for phrase in among if fold(phrase) != fold(expected)}
    reply = _read_fields(reply)
    # Who does not know, and asks whether it is red, has not said so.
    stated = _QUESTION.sub(" ", reply) if "?" in reply and abstains(reply) else reply
    claimed = find_claims(remove_guesses(stated), {*rivals, expected})
    if claimed == {expected}:
        return Grade(1.0, (f"says {expected!r}",))
    if not claimed:
        seen = "only mentioned" if mentions(reply, expected) else "not"
        return Grade(0.0, (f"expected {expected!r}, which is {seen} in: {shorten(reply)}",))
    shown = ", ".join(map(repr, sorted(claimed)[:5])) + (" and more" if len(claimed) > 5 else "")
    return Grade(0.0, (f"expected only {expected!r}, got {shown}",))


def _read_fields(reply: str) -> str:
    """Of a JSON object with several fields those that do not speak of the past; any other reply as it is."""
    try:
        value = parse_json(reply) if "{" in reply else None
    except ValueError:
        value = None
    if not isinstance(value, dict) or len(value) < 2:
        return reply
    return "\n".join(str(content) for name, content in value.items() if not _PAST_FIELD.search(str(name).casefold()))


_PAST_FIELD = re.compile(r"previous|former|earlier|old|past|history|before|other|note|comment|reason")


def weigh_claim(reply: str, expected: str, among: Iterable[str]) -> Grade:
    """As `grade_claim`, but no verdict (a failure) where a person would have to read the reply twice."""
    every = {*among, expected}
    grade = grade_claim(reply, expected, every)
    claimed = find_claims(remove_guesses(reply), every)
    words = len(split_words(reply))
    if grade.score:
        text = fold(reply)
        vague = _CLUELESS.search(text) is not None and _VAGUE.search(text) is not None
        unclear = vague or _TAKEN_BACK.search(text) is not None
    elif claimed:
        # Of several, each with a verb of its own, the reply may well prefer one in a way that no rule here knows.
        unclear = expected in claimed and 1 < len(claimed) <= _FEW < words and not _lists_some(reply, every)
    else:
        unclear = words > _PLAIN_WORDS and mentions(reply, expected) and not abstains(reply)
    return Grade.failure(f"it is not clear whether this claims {expected!r}: {shorten(reply)}") if unclear else grade


def _lists_some(reply: str, among: Iterable[str]) -> bool:
    """Whether candidates stand side by side, none of them preferred: `red and blue`, `red, blue`, `one is red`."""
    return reply.count("?") > 1 or _SIDE_BY_SIDE.search(tag_phrases(fold(reply), tuple(sorted(among)))) is not None


# A longer reply may qualify what it says.
_PLAIN_WORDS, _FEW = 24, 4
_SIDE_BY_SIDE = re.compile(
    rf"{TAG.pattern}(?:[\s,/&+*\"'-]|\b(?:and|or|the|a|an|then|in|both|nor)\b){{1,12}}{TAG.pattern}"
    r"|\b(?:either|equally|or|hard to say|depends|one of|the other|in passing)\b"
)


def grade_retelling(reply: str, *told: Phrasing, slot: str = "value") -> Grade | None:
    """0 if the reply says again, in the user's own words, sentences that give one slot several values; else None.

    Whoever repeats all that was said has answered nothing, even if a careful reader could tell the answer from it. What
    stands in quotation marks is evidence for an answer and does not count.
    """
    own = _QUOTED.sub(" ", reply)
    values = {found[slot].casefold() for phrasing in told for found in phrasing.read_all(own)}
    if len(values) < 2:
        return None
    return Grade(0.0, (f"repeats what was said of {', '.join(sorted(values)[:5])}, without an answer",))


# A sentence between quotation marks; a single word may well be what was told.
_QUOTED = re.compile(r"[“\"][^“”\"]{20,400}[”\"]")


def weigh_claim_about(subject: str, others: Iterable[str], reply: str, expected: str, among: Iterable[str]) -> Grade:
    """As `weigh_claim`, for a reply that may also say one other thing, if it says that of others than the subject."""
    brief = len(find_phrases(reply, {*among, expected})) <= 2
    return weigh_claim(extract_about(reply, subject, others) if brief and subject else reply, expected, among)


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
            unit = parse_unit(questions[number]) if number < len(questions) else ""
            grades.append(grade_number(reply, int(answer), unit=unit))
        else:
            rivals = chain.from_iterable(kind for kind in every if answer in kind)
            grades.append(grade_claim(reply, answer, rivals))
    return Grade.mean(grades)


def grade_recital_of(reply: str, answer: str, every_answer: Iterable[str]) -> Grade | None:
    """0 if the reply gives half of the answers to other questions too; None if it does not."""
    others = {other for other in every_answer if other != answer}
    recited = find_phrases(reply, (answer, *others)) & others
    if len(recited) < max(2, len(others) / 2):
        return None
    return Grade(0.0, (f"asked for {answer!r}, recites {len(recited)} other answers as well",))


def find_claims(reply: str, among: Iterable[str]) -> frozenset[str]:
    """Which of the phrases the reply asserts.

    What follows a correction (`no, wait`) goes before all the rest. Then a conclusion goes before what is said to hold now,
    that before what stands alone, that before what is simply said, and that before reasons, comparisons and the past. Of a
    story (`first red, then blue`) the end counts. A clause that denies asserts nothing.
    """
    clauses = _find_assertions(reply, among)
    highest = max((clause.standing for clause in clauses), default=Standing.DENIED)
    best = [clause for clause in clauses if clause.standing is highest]
    if best and best[-1].follows:
        return best[-1].phrases
    return frozenset(chain.from_iterable(clause.phrases for clause in best))


def find_standing(reply: str, among: Iterable[str]) -> Standing:
    """How much the clause counts that gives the answer."""
    return max((clause.standing for clause in _find_assertions(reply, among)), default=Standing.DENIED)


def find_all_claims(reply: str, among: Iterable[str]) -> frozenset[str]:
    """Which of the phrases the reply asserts where it may well assert several, like the items of an order."""
    clauses = _find_assertions(reply, among)
    plain = [clause for clause in clauses if clause.standing >= Standing.SAID]
    return frozenset(chain.from_iterable(clause.phrases for clause in plain or clauses))


def find_first_claim(reply: str, among: Iterable[str]) -> frozenset[str]:
    """What the reply concludes with, else what it names first, whatever its time: for questions about the past."""
    clauses = _find_assertions(remove_guesses(reply), among)
    concluded = [clause for clause in clauses if clause.standing is Standing.CONCLUDED]
    return next((clause.phrases for clause in concluded or clauses), frozenset())


def _find_assertions(reply: str, among: Iterable[str]) -> list[Clause]:
    """The clauses that assert something, those after a correction if there are any."""
    candidates = tuple(sorted(among))
    text = fold(reply)
    if not find_in_folded(text, candidates):
        return []
    for part in (find_correction(text), text):
        clauses = [clause for clause in read_clauses(part, candidates) if clause.standing is not Standing.DENIED]
        if clauses:
            return clauses
    return []


def remove_guesses(reply: str) -> str:
    """The folded reply without what is only guessed after saying that one does not know: `You never said. Perhaps red?`"""
    text = fold(reply)
    unknown = _CLUELESS.search(text)
    if unknown is None:
        return text
    known, rest = text[: unknown.end()], text[unknown.end() :]
    return known + "".join(part for part in _SENTENCES.split(rest) if not _GUESSED.search(part))


def extract_about(reply: str, subject: str, others: Iterable[str]) -> str:
    """The reply without what it says of others than the subject: `Ann likes tea, Bob coffee` says tea of Ann."""
    every = tuple(sorted({*others, subject}))
    kept: list[str] = []
    of_others = subject_named = False
    text = fold(reply)
    parts = _PARTS.split(find_correction(text) or text)
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        named = find_in_folded(part, every)
        # `(your aunt)`, and nothing else about her.
        alone = len(part.split()) - sum(len(name.split()) for name in named) <= 1
        in_brackets = alone and part.startswith("(") and following.startswith(")")
        if kept and named and subject not in named and (in_brackets or _WHOSE.match(part)):
            kept.pop()
        if named and not _CONTRAST.match(part):
            of_others = subject not in named
        elif subject_named and _OTHER_ONE.search(part):
            of_others = True
        elif _SENTENCE.match(part):
            of_others = False
        subject_named = subject_named or subject in named
        if not of_others and not (named and subject not in named):
            kept.append(part)
    return "".join(kept)


def abstains(reply: str) -> bool:
    """Whether the reply says that the speaker does not know or was not told."""
    return _IGNORANCE.search(_CONDITION.sub("", fold(reply))) is not None


# Says that nothing is known, rather than that it is not certain.
_CLUELESS = re.compile(
    r"(?:n't|\bnot|\bcannot|\bnever)\b[^.!?;:\n]{0,40}\b(?:know|recall|remember|told|mentioned|said|shared|have (?:any|that"
    r"|this|access)"
    r"|find|aware)\b(?! (?:exactly|precisely|for (?:sure|certain)|why|how))"
    r"|\bno (?:information|record|memory|recollection|idea|way of knowing)\b|\bwithout (?:any |more )?(?:information|details"
    r"|knowledge)\b"
)
_SENTENCES = re.compile(r"(?<=[.!?\n])\s+(?=\w)")
_GUESSED = re.compile(
    r"\bguess|\bi(?:'d| would) (?:go|pick|choose)\b|\b(?:most|many|some|other) people\b|\bpopular\b|\bcommon(?:ly)?\b"
    r"|\bmy own\b|\bmine\b|\bpersonally\b"
    r"|\b(?:perhaps|maybe|possibly|might|could (?:it )?be|for (?:example|instance)|such as|e\.g|something like|suppose|random)\b"
    r"|\bmy (?:favou?rite|choice|pick|bet)\b|\bassum|\bimagine\b|\bspeculat|\bsounds? like\b|\bhow about\b|\bwas it\b|\bis it\b"
)
_TAKEN_BACK = re.compile(r"\bbut (?:that|it|this) (?:may|might|could)(?: well| also)? be\b")
_VAGUE = re.compile(r"\b(?:i think|i believe|probably|presumably|likely|should be|must be|i'd say)\b")
# `Red? That is your aunt's` says red of the aunt.
_WHOSE = re.compile(r"\W*(?:but )?(?:that|this|which)(?:'s| is| was| belongs)\b")
_QUESTION = re.compile(r"[^.!?\n]{1,200}\?")
_PARTS = re.compile(r"(?=[.!?;:]\s|[,()\n–—]|\s-+\s|(?<!, )\b(?:and|while|whereas|but)\b)")
_SENTENCE = re.compile(r"[.!?;\n]|,?\s?\b(?:while|whereas|but)\b")
_CONTRAST = re.compile(r"\W*(?:unlike|not|as opposed to)\b")
_OTHER_ONE = re.compile(r"\bthe other\b")
_CONDITION = re.compile(r"\bif (?:i|you) [^.!?,\n]{0,100}")
_IGNORANCE = re.compile(
    r"(?:n't|\bnot|\bcannot|\bnever|\bno longer)\b[^.!?\n]{0,60}\b(?:know|recall|remember|told|tell|mention(?:ed)?"
    r"|shared?|sa(?:y|id)|heard|sure|find|found|have|aware|provided?|gave|given|informed|specified|access|certain|seen?|come up"
    r"|record(?:ed)?|available|stated?)\b"
    r"|\b(?:told|mentioned|said|know)\b[^.!?\n]{0,80}\bbut not\b|\byet to (?:tell|be told|mention|say)\b|\black\b"
    r"|\b(?:no|any|without) (?:information|record|memory|memories|idea|mention|details?|knowledge|way of knowing|clue"
    r"|entry|entries|notes?|data|trace)\b|\bnot in my\b"
    r"|\bno (?:\w{1,20} ){1,2}(?:given|told|mentioned|provided|recorded|shared)\b"
    r"|\bnothing (?:about|on|in|noted|recorded|stored)\b|\bonly (?:told|know|heard)\b|\bno (?:sur|last )?name\b|\bmissing\b"
    r"|\bnot (?:the|his|her"
    r"|their) (?:sur|last )?name\b"
    r"|\bunknown\b|\bunsure\b|\bno one told\b|\bnobody told\b|\bn/a\b|\bunable to\b|\bunaware\b|\bunclear\b"
)


# --- clauses ----------------------------------------------------------------------------------------------------------


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
    joined = foremost = False
    tagged = _TINGE.sub(" ", _STILL_THERE.sub(r"still in \1", tag_phrases(text, candidates))).replace(
        "not yet ", "not "
    )
    tagged = _AND_THEN.sub(", then ", _CAME_AFTER.sub(r", then \1", tagged))
    tagged = _UNTIL.sub(r", then \1", _TO_FROM.sub(r"to \1", tagged))
    tagged = _MARKED_CURRENT.sub(r"now \1", _BECAME.sub(r"\1, then ", tagged))
    tagged = _DESCRIBED.sub(lambda described: described[1] or described[2], tagged)
    marked = _LABELLED.sub(_label_answer, _REFERRED.sub(r"\1\2; so \1", tagged))
    *before, tail = TAG.split(marked)
    if _UNDECIDED.search(f"{tail}\n") or (len(before) == 1 and _ALTERNATIVE.search(marked)):
        return []
    for piece, lead, mark in _split_clauses(marked):
        phrases = frozenset(find_tags(piece, candidates))
        standing = _rank_clause(piece, lead)
        follows = _FOLLOWS.match(f"{lead} {piece}") is not None
        if standing is Standing.SAID:
            # `Red: warm` is the first line of a table.
            bare = len(phrases) == 1 and mark != ":" and not lead
            if bare and set(_WORD.findall(piece)) <= _SMALL:
                standing = Standing.ALONE
            if clauses and follows:
                # Of a ranking the first counts, of a story the last.
                ranked = foremost and clauses[-1].standing is Standing.CURRENT
                standing, follows = (Standing.PAST, False) if ranked else (clauses[-1].standing, True)
        if clauses and standing in (Standing.SAID, Standing.ALONE) and _JOINED.match(piece):
            standing = min(clauses[-1].standing, Standing.SAID)
            joined = True
        foremost = foremost or _FOREMOST.search(f"{lead} {piece}") is not None
        clauses.append(Clause(standing, phrases, follows))
    # `Red. Or perhaps blue.` is one answer of two parts.
    return [_lower_alone(clause) for clause in clauses] if joined else clauses


def _label_answer(labelled: re.Match[str]) -> str:
    """A last line such as `Most often: red` is the answer, unless its label says otherwise."""
    return "\n\nanswer:" if _rank_clause(labelled[1], "") is Standing.SAID else labelled[0]


def _lower_alone(clause: Clause) -> Clause:
    return replace(clause, standing=Standing.SAID) if clause.standing is Standing.ALONE else clause


def _split_clauses(text: str) -> Iterator[tuple[str, str, str]]:
    """Each clause that names a candidate, the words that lead up to it without naming one, and the mark after it."""
    lead = ""
    breaks = iter(_BREAK.split(_remove_refuted(_EXCEPT.sub(" except ", _ISNT_IT.sub("", text)))))
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


def _remove_refuted(text: str) -> str:
    """The text without questions that are answered in the negative: `Red? No` and `Red? Certainly not` deny the red."""
    kept, end = [], 0
    for refuted in _REFUTED.finditer(text):
        question = text[max(end, refuted.start() - _LEAD) : refuted.start()]
        start = refuted.start() - len(re.split(r"[.!?;\n]", question)[-1])
        kept.append(text[end:start])
        end = refuted.end()
    return " ".join([*kept, text[end:]])


def _rank_clause(piece: str, lead: str) -> Standing:
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
    rf"|,\s*(?=(?:and |but )?(?:(?:the|a|your) )?{TAG.pattern} (?:is|was|has|it|would|will|wins|remains|seems|plays|being)\b))"
    rf"|(?<=[\s,])(?<!used )(?<!ever )(?=(?:{'|'.join(_OPENERS.split())}|i think|i believe|i guess|also known|and ha(?:s|ve)"
    r"|no longer|and last of all|and (?:took|keeps?|plays?|moved|went|switched|chose|picked|started|use|call)|these days"
    r"|by now|most recently|at present|over(?! time)|now(?!\s*(?:[.!?]|$)))\b)"
    r"|(?<!was )(?<!were )(?<!been )(?<!got )(?<!is )(?<!be )(?<=\s)(?=(?:has |have )?(?:replac(?:es|ed)|took the place of)\b)"
)
# `Teal, a blend of blue and green` names one colour and describes it.
_DESCRIBED = re.compile(
    rf"({TAG.pattern})(?:[\s\"'*_]{{0,3}}[,;:(–—!.-]|\s-)[\s\"'*_(]{{0,4}}"
    r"(?:(?:which|that|it|this)(?:'s| is| was| sits| lies| falls)? )?(?:basically |essentially |really |simply |just |i\.e\. )?"
    r"(?:(?:a|an|the|some|one of the) )?(?:[a-z-]{1,20} ){0,4}?"
    r"(?:shades?|blend|mix|mixture|tone|hue|tint|cross|kind|sort|type|variety|combination|member|colou?r)(?: of| between"
    r"| that| which|,| close to| similar to| near| akin to| like| not unlike)"
    rf"[^.!?;\n{_TAGS}]{{0,40}}{TAG.pattern}(?:[^.!?;\n{_TAGS}]{{0,20}}{TAG.pattern}){{0,3}}[^.!?;,\n{_TAGS}]{{0,40}}"
    rf"|({TAG.pattern})[^.!?;\n{_TAGS}]{{0,60}}?\b(?:sits|lies|falls|halfway|somewhere|midway|is) (?:right |roughly )?between "
    rf"(?:\w{{1,10}} )?{TAG.pattern} and (?:\w{{1,10}} )?{TAG.pattern}"
)
_BECAME = re.compile(rf"({TAG.pattern}) (?:then )?(?:became|gave way to|turned into|made way for|was followed by) ")
_AND_THEN = re.compile(r",? (?:and )?from there (?:on )?to (?:the )?")
_CAME_AFTER = re.compile(rf"\bafter (?:the )?{TAG.pattern}(?: \w{{1,12}})? came (?:the )?({TAG.pattern})")
_UNTIL = re.compile(
    rf"\buntil (?:you|they|she|he|it|we) (?:\w{{1,12}} ){{1,4}}?(?:to|into|for) (?:the )?({TAG.pattern})"
)
_TO_FROM = re.compile(rf"\bto (?:the )?({TAG.pattern})(?: \w{{1,12}}){{0,2}} from (?:the )?{TAG.pattern}")
_MARKED_CURRENT = re.compile(
    rf"({TAG.pattern}) ?\([^()\n]{{0,30}}\b(?:current|now|latest|most recent|last)\b[^()\n]{{0,30}}\)"
)
_STILL_THERE = re.compile(rf"(?:\bnot|n't)(?: yet)? left (?:the )?({TAG.pattern})")
_TINGE = re.compile(rf"\bwith (?:a |some )(?:[a-z]{{1,12}} )?(?:touch|hint|dash|bit|tinge|note|drop) of {TAG.pattern}")
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
_ISNT_IT = re.compile(r",?\s{0,3}\b(?:is|was|are|were|do|did|does|have|has)n't (?:it|that|you|i|they|she|he)\s?\?")
_REFUTED = re.compile(r"\?\s{0,3}(?:no|nope|never|(?:(?:definitely|certainly|surely) )?not)\b")
_EXCEPT = re.compile(r"\b(?:anything|everything|all|any|every \w{1,20}) but\b")
# `Not a spoon, a thimble`: the denial ends at the comma.
_NOT_THIS = re.compile(r"(?<=\bnot)([^,]{1,80}),\s+(?=(?:a|an|the|it|to|in)\b)")
_DENIAL = re.compile(
    r"\bnot\b(?! (?:sure|certain|entirely|completely|quite|mistaken|wrong|100|only|just|forgotten))"
    r"|n't\b(?! (?:worry|forg[eo]t|sure|get enough))|\bcannot\b(?! forget)|\bnever\b|\bno longer\b|\brather than\b"
    r"|\binstead of\b|\bthan\b|\bused to\b|\bneither\b|\bnor\b|\bexcept\b|\bapart from\b|\bavoid\b|\bdislike[sd]?\b|\bhated?s?\b"
    r"|(?<!not )(?<!n't )\bforgot(?:ten)?\b|(?<!not )\b(?:wrong|incorrect|false)\b|\bunlike\b|\b(?:rules?|ruling|ruled) out\b"
    r"|\b(?:was|were|been|got|is|be) (?:replaced|superseded|discarded|dropped|removed)\b|\b(?:replac|supersed)(?:es|ed|ing)\b"
    rf"|\btook the place of\b|\A\s*over\b|\b(?:no|without|to forget|forget about) (?:the )?{TAG.pattern}|\b(?:is|are|was|were"
    rf"|be) too\b"
    r"|\b(?:no|any) (?:memory|record|recollection|information)\b|\bby mistake\b|\bmistakenly\b|\bout of date\b|\boutdated\b"
    r"|\bobsolete\b"
    r"|(?<!not )(?<!yet )(?<!never )\b(?:left|sold|gave up|given up|giving up|gone off|went off|got rid of|parted with)"
    rf" (?:the |a |an |her |his |on )?{TAG.pattern}|\b(?:gave|given) (?:the |a |an |her |his )?{TAG.pattern} (?:away|up)\b"
    rf"|\b(?:wanted|consider(?:ed|ing)|toyed with|meant to \w{{1,12}}|nearly bought|almost bought) (?:the |a |an )?{TAG.pattern}"
)
_PRESENT = re.compile(
    r"\bnow\b(?! on\b)|\bcurrent(?:ly)?\b|\blatest\b|\bmost recent(?:ly)?\b|\blast\b|\bat present\b|\bpresently\b"
    r"|\bthese days\b|\bnowadays\b|\btoday\b|\bfinally\b|\blastly\b|\blater\b|\bnewest\b|\bas of\b|\bin the end\b|\bended up\b"
    r"|\bever since\b|\bsince then\b|\b(?:updated|was changed|corrected|switched) to\b"
)
_FOREMOST = re.compile(
    r"\bha(?:s|ve) the (?:most|highest|fewest|lowest|least|largest|smallest)\b|\bmost (?:often|frequently|of all)\b"
)
_REASON = re.compile(
    r"\W*(?:because|since|as|while|whereas|although|though|compared|followed|ahead|second|than|like)\b"
)  # fmt: skip
_GONE = re.compile(
    r"\b(?:was|were|(?<!must have )been|had|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?|earlier|before|first"
    r"|once"
    rf"|until|prior|past|old)\b|\bleft (?:the )?{TAG.pattern}"
)
_BESIDES = re.compile(
    r"\b(?:from|also|several|various|other|different|throughout|over time|began|started|at one point|at some point"
    r"|besides|also known|after|normally|usually|ordinarily|second|runner-up|tempt(?:ing|ed)|(?:only|just|reserved|meant) for)\b"
    r"|\b(?:cousin|neighbou?r|colleague|sister|brother|aunt|uncle|niece|nephew|flatmate|postman|conductor|caretaker|dog|baby)\b"
    rf"|{TAG.pattern} is for (?:the|your)\b"
    r"|(?:'d|\bwould) have (?:liked|loved|ordered|preferred|taken)\b"
)
_CONCLUSION = re.compile(
    r"\b(?:so|therefore|thus|hence|answer|(?<!second )choice|(?:has|have) to be|must (?:be|have been)"
    r"|recommend|suggest|go (?:for|with)|that leaves|(?<!would )wins?|winner|decides|better|best)\b"
    r"|\A\W*but (?:\w{1,20} ){0,4}(?:it's|it is|that's|the answer is) "
    rf"|{TAG.pattern} (?:it is\b|is the one(?=\W*\Z))|\bi(?:'d| would) say\b|\btakes it\b|\bget (?:the|a|an)\b|\bbook the\b"
    # `I must choose` is the question, not its answer.
    r"|(?<!must )(?<!to )(?<!shall i )(?<!the )(?<!chronological )\b(?:choose|pick|take|order)\b"
)
# What was said up to here has no bearing on what follows.
_TURN = re.compile(
    r"\W*(?:but|yet|however|so|therefore|thus|hence|because|since|while|whereas|compared|followed|ahead)\b"
)
_FOLLOWS = re.compile(
    r"\W*(?:and )?(?:(?<!back )then|later|afterwards|finally|lastly|last of all|eventually|now|these days|most recently"
    r"|since then)\b"
)
_JOINED = re.compile(
    r"\W*(?:or|and(?! (?:took|keeps?|plays?|moved|went|switched|chose|picked|started|use|call)\b)|also|maybe"
    r"|perhaps|possibly|alternatively)\b"
)
_WORD = re.compile(r"\w+")
# Around a phrase that stands alone.
_SMALL = frozenset({
    "a", "an", "at", "by", "certainly", "clearly", "definitely", "dr", "for", "in", "its", "mr", "mrs", "ms", "my",
    "obviously", "of", "on", "please", "queen", "river", "room", "sure", "surely", "the", "to", "with", "yes", "your",
})  # fmt: skip
