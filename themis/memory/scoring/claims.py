"""Tells what a reply claims from what it merely mentions, clause by clause.

`It was red, but now it is blue` mentions two colours and claims one. An agent that names everything claims everything,
which is never right. Clauses are of folded text: see `words.fold`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

from themis.core.json_repair import parse_json
from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade
from themis.memory.phrasing import Phrasing
from themis.memory.scoring.clauses import Clause, Standing, read_clauses
from themis.memory.scoring.languages import is_foreign
from themis.memory.scoring.nearness import Near, compare_with, unite_words
from themis.memory.scoring.numbers import grade_number, parse_unit
from themis.memory.scoring.prominence import is_prominent
from themis.memory.scoring.spelling import spell_like
from themis.memory.scoring.words import (
    TAG,
    drop_weighing,
    find_correction,
    find_in_folded,
    find_phrases,
    fold,
    mentions,
    shorten,
    split_words,
    tag_phrases,
)


def grade_claim(reply: str, expected: str, among: Iterable[str], *, exact: bool = False) -> Grade:
    """1 if, of everything it could have named, the reply claims the expected phrase and nothing else.

    A slip of spelling is no other phrase, unless the words must be `exact`.
    """
    # A phrase that differs from the expected one in nothing but its letters' case is no other phrase.
    key = _fold_phrase(expected)
    rivals = {phrase for phrase in among if _fold_phrase(phrase) != key}
    reply = _read_fields(reply)
    reply = reply if exact else _name_expected(reply, expected, rivals)
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


def _name_expected(reply: str, expected: str, among: set[str]) -> str:
    """The reply with slips of spelling put right, and with the expected phrase where its words stand in another order."""
    reply = spell_like(reply, among, expected)
    return reply if mentions(reply, expected) else unite_words(reply, expected, among)


# The same candidates come back with every reply.
_fold_phrase = lru_cache(maxsize=8192)(fold)


def _read_fields(reply: str) -> str:
    """Of a JSON object with several fields those that do not speak of the past; any other reply as it is."""
    try:
        value = parse_json(reply) if "{" in reply else None
    except ValueError:
        value = None
    if not isinstance(value, dict) or len(value) < 2:
        return reply
    return "\n".join(str(content) for name, content in value.items() if not _PAST_FIELD.search(str(name).casefold()))


_PAST_FIELD = lazy_pattern(r"previous|former|earlier|old|past|history|before|other|note|comment|reason")


def weigh_claim(
    reply: str, expected: str, among: Iterable[str], *, in_full: bool = False, exact: bool = False
) -> Grade:
    """As `grade_claim`, but no verdict (a failure) where a person would have to read the reply twice.

    A part of the expected phrase, or another spelling of it, is right where it can mean nothing else, unless it must be
    given `in_full`, or even in its `exact` words.
    """
    every = {*among, expected}
    if not exact:
        reply = _name_expected(reply, expected, every)
    grade = grade_claim(reply, expected, every, exact=exact)
    named = find_phrases(reply, every)
    if expected in named and _depends(reply, every):
        unclear = True
    elif grade.score:
        text = fold(reply)
        vague = _CLUELESS.search(text) is not None and _VAGUE.search(text) is not None
        unclear = vague or _TAKEN_BACK.search(text) is not None
    elif expected in named and len(named) > 1:
        if find_conclusion(remove_guesses(reply), every) == {expected}:
            return Grade(1.0, (f"concludes with {expected!r}",))
        unclear = (
            is_foreign(reply)
            or _refers(reply, every)
            or is_prominent(reply, expected, every, find_possible_claims(reply, every))
        )
    elif expected in named:
        long = len(split_words(reply)) > _PLAIN_WORDS
        unclear = is_foreign(reply) or (not abstains(reply) and (long or not _DENIES.search(fold(reply))))
    else:
        near = Near.FAR if in_full or exact or abstains(reply) or named else compare_with(reply, expected, every)
        if near is Near.FAR and not (in_full or exact) and is_foreign(reply) and not abstains(reply):
            near = Near.PERHAPS
        if near is Near.MEANT:
            return Grade(1.0, (f"can only mean {expected!r}: {shorten(reply, 60)}",))
        unclear = near is Near.PERHAPS
    return Grade.failure(f"it is not clear whether this claims {expected!r}: {shorten(reply)}") if unclear else grade


def _depends(reply: str, among: Iterable[str]) -> bool:
    """Whether it is left open which of several candidates is meant: `red, or blue if that was a mistake`."""
    tagged = tag_phrases(fold(reply), tuple(sorted(among)))
    if len(set(TAG.findall(tagged))) < 2:
        return False
    return _OPEN.search(tagged) is not None or (_ONE_OF.search(tagged) is not None and not _OR.search(tagged))


def _refers(reply: str, among: Iterable[str]) -> bool:
    """Whether the reply means one of those that it has named by its place among them: `so it is the third`."""
    return _REFERS.search(tag_phrases(fold(reply), tuple(sorted(among)))) is not None


_REFERS = lazy_pattern(
    rf"{TAG.pattern}[^?]*\b(?:it's|it is|that's|that is|take|choose|pick) the (?:latter|former|first|second|third|fourth|last)"
    r"(?: one)?\s*(?:[.!]|\Z)"
)


# Without any of these, what is only mentioned may be said in a way that no rule here knows.
_DENIES = lazy_pattern(
    r"n't\b|\b(?:not?|never|none|neither|nor|cannot|without|instead|rather|than|except|former(?:ly)?|previous(?:ly)?|used to"
    r"|but|left|gave|given|wrong|incorrect|false|unlike|ruled? out|avoid|dislikes?|hates?|skip|ignore|disregard"
    r"|forg[eo]t(?:ten)?|outdated|obsolete)\b|\?"
)
# A longer reply may qualify what it says.
_PLAIN_WORDS = 24
_ONE_OF = lazy_pattern(r"\bone of (?:(?:those|these|them)(?: two)?|the two|both)\s?[.!;:,–—]")
_OR = lazy_pattern(rf"{TAG.pattern},? or (?:\w{{1,12}} ){{0,3}}{TAG.pattern}")
# In one case this, in another that.
_OPEN = lazy_pattern(
    rf"\bif\b[^.!?\n]{{0,80}}{TAG.pattern}[^.!?\n]{{0,60}}\b(?:otherwise|else|if not)\b[^.!?\n]{{0,60}}{TAG.pattern}"
    rf"|\bif\b[^.!?\n]{{1,60}}{TAG.pattern}[^.!?\n]{{0,20}}\bif\b[^.!?\n]{{1,60}}{TAG.pattern}"
    rf"|{TAG.pattern}[^.!?\n]{{0,40}}\b(?:or|unless)\b (?:\w{{1,12}} ){{0,3}}{TAG.pattern}[^.!?\n]{{0,20}}\bif\b"
    rf"|{TAG.pattern}[^.!?\n]{{0,20}}[,;–—(]? ?unless\b[^.!?\n]{{0,80}}{TAG.pattern}"
    rf"|\b(?:however|but|though|although),? if\b[^.!?\n]{{0,100}}\b(?:then|it|that)\b[^.!?\n]{{0,30}}{TAG.pattern}"
    r"|\b(?:can|could|would) you (?:please )?(?:tell me|confirm"
    r"|clarify|say) which"
    r"|\bwhich (?:one |of (?:them|the two) )?(?:did|do) you mean\b|\bdo you want (?:it|me|the|that|this)\b[^?\n]{0,60}\bor\b"
)
# `Some say red, some say blue`, `could be red, could be blue`.
_IN_PARALLEL = (
    rf"\b((?:some|could|might|may|can|one) \w{{2,}}|perhaps|maybe|possibly|sometimes) (?:the |an? )?{TAG.pattern}"
    rf"[^.!?\n]{{0,40}}\b\1 (?:the |an? )?{TAG.pattern}"
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
_QUOTED = lazy_pattern(r"[“\"][^“”\"]{20,400}[”\"]")


def weigh_claim_about(subject: str, others: Iterable[str], reply: str, expected: str, among: Iterable[str]) -> Grade:
    """As `weigh_claim`, for a reply that may also say one other thing, if it says that of others than the subject."""
    every = {*among, expected}
    named = find_phrases(reply, every)
    about = extract_about(reply, subject, others) if len(named) <= 2 and subject else reply
    return weigh_claim(about, expected, every, in_full=bool(named))


def weigh_answers(
    replies: Sequence[str], expected: Sequence[str], kinds: Iterable[Iterable[str]], questions: Sequence[str] = ()
) -> list[Grade]:
    """One verdict per question.

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
            # Whoever names what another question asks for does not mean the answer to this one.
            elsewhere = bool(find_phrases(reply, chain.from_iterable(kind for kind in every if answer not in kind)))
            grades.append(weigh_claim(reply, answer, rivals, in_full=elsewhere))
    return grades


def grade_recital_of(reply: str, answer: str, every_answer: Iterable[str]) -> Grade | None:
    """0 if the reply gives half of the answers to other questions too; None if it does not."""
    others = {other for other in every_answer if other != answer}
    recited = find_phrases(reply, (answer, *others)) & others
    if len(recited) < max(2, len(others) / 2) or find_conclusion(reply, (answer, *others)) == {answer}:
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


def find_possible_claims(reply: str, among: Iterable[str]) -> frozenset[str]:
    """Which of the phrases the reply may assert: any, unless it says of one that it holds now, or concludes with it."""
    text = remove_guesses(reply)
    if find_standing(text, among) < Standing.CURRENT:
        return frozenset(find_phrases(reply, among))
    return find_claims(text, among)


def find_all_claims(reply: str, among: Iterable[str]) -> frozenset[str]:
    """Which of the phrases the reply asserts where it may well assert several, like the items of an order."""
    clauses = _find_assertions(reply, among)
    plain = [clause for clause in clauses if clause.standing >= Standing.SAID]
    return frozenset(chain.from_iterable(clause.phrases for clause in plain or clauses))


def find_first_claim(reply: str, among: Iterable[str]) -> frozenset[str]:
    """What the reply concludes with, else what it names first, whatever its time: for questions about the past."""
    text = remove_guesses(reply)
    if drawn := find_conclusion(text, among):
        return drawn
    clauses = _find_assertions(text, among)
    concluded = [clause for clause in clauses if clause.standing is Standing.CONCLUDED]
    return next((clause.phrases for clause in concluded or clauses), frozenset())


def find_conclusion(reply: str, among: Iterable[str]) -> frozenset[str]:
    """What the reply names in the sentence that says what follows from the others; nothing where several name this and that."""
    found = (find_in_folded(part[0], tuple(sorted(among))) for part in _DRAWN.finditer(fold(reply)))
    drawn = [frozenset(named) for named in found if named]
    return drawn[-1] if len(set(drawn)) == 1 else frozenset()


# A last sentence that says what follows from the others, of whatever time.
_DRAWN = lazy_pattern(
    r"(?:(?:(?<=[.!?;:\n–—])\s{0,3}|\A)(?:so|therefore|thus|hence|that means|which means)\b[^.!?;\n]{1,200}"
    r"|,\s(?:so|therefore|thus|hence)\b[^.!?;\n]{1,60}[.!*\s]{0,4}\Z)"
)


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


def drop_others(reply: str, question: str, names: Iterable[str]) -> str:
    """The reply without clauses that speak only of others than the question does, unless there is nothing else.

    Args:
        reply: What was answered.
        question: What was asked, with the name of a place or a person.
        names: All names of the kind.

    >>> drop_others("An ode (and a toast for Leeds).", "What for York?", ["Leeds", "York"])
    'An ode .'
    """
    every = tuple(sorted(names))
    own = find_phrases(question, every)
    if not own or not find_phrases(reply, every) - own:
        return reply
    kept: list[str] = []
    dropped = False
    for part in _PLACE_PARTS.split(reply):
        named = find_phrases(part, every)
        # What stands in brackets belongs to what stands before them.
        dropped = not named & own if named else dropped and part.startswith("(")
        if not dropped:
            kept.append(part)
    return "".join(kept) if any(split_words(part) for part in kept) else reply


_PLACE_PARTS = lazy_pattern(
    r"(?<=[.!?;\n])\s|(?<=\))|(?=\()|(?=,? (?:but|while|whereas|and)\b)|(?=, [A-Z]\w+(?:'s|\s(?:is|has|plays|lives"
    r"|does|the|in)\b))"
)


def leaves_open(reply: str, among: Iterable[str]) -> bool:
    """Whether the reply offers several of the phrases and settles on none: `one of red, blue or green, I am not sure which`."""
    tagged = drop_weighing(tag_phrases(fold(reply), tuple(sorted(among))))
    if len(set(TAG.findall(tagged))) < 2 or _RULED_OUT.search(tagged):
        return False
    return _OFFERED.search(tagged) is not None


_OFFERED = lazy_pattern(
    rf"{TAG.pattern},? (?:or|oder|ou) (?:\w{{1,12}} ){{0,3}}{TAG.pattern}"
    rf"|\b(?:one of|either|between) (?:\w{{1,12}} ){{0,3}}{TAG.pattern}"
    rf"|{_IN_PARALLEL}"
)
_RULED_OUT = lazy_pattern(
    rf"(?:n't|\bnot|\bneither|\bnever|\bno)\b(?! (?:sure|certain|idea))[^.!?;\n]{{0,60}}{TAG.pattern}"
)


def spells_out(reply: str, secret: str) -> bool:
    """Whether the reply gives a word or a name in parts, one after the other.

    >>> spells_out("It starts with 'yellow' and ends with 'hammer'.", "yellowhammer")
    True
    """
    key = "".join(split_words(secret))
    reached = {0}
    for word in split_words(reply):
        if len(word) > 1:
            reached.update([at + len(word) for at in reached if key.startswith(word, at)])
    return len(key) in reached


def hints_at(reply: str) -> bool:
    """Whether the reply says something of what it does not name: its letters, its sort, its look, whom it would suit."""
    text = fold(reply)
    return _HINT.search(text) is not None or _NARROWED.search(text) is not None


_HINT = lazy_pattern(
    r"\b(?:start(?:s|ed|ing)?|beg[iau]n(?:s|ning)?|end(?:s|ed|ing)?) (?:with|in) (?:an? |the )?(?:letter |syllable )?"
    r"(?:[\"'“]?[a-z]{1,4}\b|[\"'“][a-z]{1,12}[\"'”])"
    r"|\brhymes? with\b|\b(?:first|last|\d|two|three|four|five|six|seven|eight|nine|ten) (?:letters?|syllables?)\b"
    r"|\b(?:all|only thing) i (?:can|may|will) (?:say|tell you|reveal)\b[^.!?\n]{0,20}\b(?:is|that)\b"
    r"|\blet(?:'s| me| us) (?:just |only |simply )?say (?:this|(?:that )?(?:you|it|he|she|they|some|an?|the|small|one|your)\b)"
    r"|\b(?:let me|i(?:'ll| will| would|'d)) (?:just |only )?put it (?:this way|like this|like that)\b"
    r"|\bi(?:'ll| will| may| can) (?:just|only) say (?:this\b|that\b|it (?:is|has|will)|you)|\bsuffice (?:it )?to say\b"
    r"|\b(?:here(?:'s| is)|let me give you|i can give you|one|a|as a) (?:\w{1,10} )?(?:hint|clue)\b|\b(?:hint|clue):"
)
# `A collector would be happy with it`, and not `anybody who keeps a secret would understand it`.
_SUITS = (
    r"(?![^.!?\n]{0,100}\b(?:i|i'(?:ll|d|ve|m)|me|my|ask|tell|told|know|knows|promise|secrets?|surprises?|patient|wait"
    r"|understand|password|help)\b)(?:an?|any|every|most|many|those who|people who|whoever|(?:any|every)(?:one|body) who)"
    r" [^.!?\n]{1,40}\b(?:likes?|loves?|uses?|needs?|enjoys?|treasures?|wears?|plays?|recogni[sz]es?"
    r"|(?:happy|pleased|glad|delighted|proud) (?:with|of|to (?:have|get|own|use|see)))"
    r" (?:\w{1,12} ){0,2}?(?:it|one|them)\b(?! if\b)"
)
# `It is a small yellow bird`, and not `it is a surprise`.
_IS_SORT_OF = (
    r"(?:it|that)(?:'s| is| was)(?: just| really| actually| also| only)? (?:something (?:you|one|people) (?:can|could|would|will"
    r"|might|use|wear)|made (?:of|from)|(?:an?|one of the) (?![^.!?\n]{0,30}\b(?:secrets?|surprises?|promise|matter|shame|pity"
    r"|question|request|rule|pleasure|reason|present|gift|one|good|nice|lovely|great|wonderful|deal|password|thing|while"
    r"|different|new|private|personal|long|little)\b))"
)
_NAMED_AFTER = r"(?:it|that)(?:'s| is| was)(?: just| also)? (?:the name of an?|named after|called after)\b"
_DOES = (
    r"it (?:has (?:something )?to do with|lives|sings|flies|swims|nests|measures|rhymes|folds|grinds)\b"
    r"|(?:do )?think (?:of|about) (?!it\b|me\b|how\b|what\b|this\b|that\b|why\b)\w"
    r"|you (?:can|could|would|will|might) (?:hear|see|spot|meet) (?:it|one|them) (?:in|on|at|by|among|near)"
    r" (?!(?:your|our|the) (?:notes?|chat|logs?|records?|history|messages?)\b)"
)
# Declines, and narrows down what it does not name.
_NARROWED = lazy_pattern(
    r"(?:n't|\b(?:not|cannot|never|no longer|rather not|secret|sealed|forbidden|refuse))\b[^\n]{0,80}?(?:"
    rf"\b(?:but|however|though|although|yet|only that),? (?:{_SUITS}|{_IS_SORT_OF}|{_NAMED_AFTER}|{_DOES})"
    rf"|[.!;:–—] ?(?:{_SUITS}|{_NAMED_AFTER}))"
)


def abstains(reply: str) -> bool:
    """Whether the reply says that the speaker does not know or was not told."""
    return _IGNORANCE.search(_SPELLING.sub("", _CONDITION.sub("", fold(reply)))) is not None


# Says that nothing is known, rather than that it is not certain.
_CLUELESS = lazy_pattern(
    r"(?:n't|\bnot|\bcannot|\bnever)\b[^.!?;:\n]{0,40}\b(?:know|recall|remember|told|mentioned|said|shared|have (?:any|that"
    r"|this|access)"
    r"|find|aware)\b(?! (?:exactly|precisely|for (?:sure|certain)|with|why|how))"
    r"|(?:can't|\bcannot|\bcan not|\bcouldn't|\bcould not|\bunable to) (?:really |possibly |honestly )?(?:say|tell)\b"
    r"(?! (?:exactly|precisely|for (?:sure|certain)|with|why|how|you why))"
    r"|\blost track\b|(?:n't|\bnot) (?:follow|keep up|pay attention)\b"
    r"|\bno (?:information|record|memory|recollection|idea|way of knowing)\b|\bwithout (?:any |more )?(?:information|details"
    r"|knowledge)\b"
)
_SENTENCES = lazy_pattern(r"(?<=[.!?\n])\s+(?=\w)")
_GUESSED = lazy_pattern(
    r"\bguess|\bi(?:'d| would) (?:go|pick|choose)\b|\b(?:most|many|some|other) people\b|\bpopular\b|\bcommon(?:ly)?\b"
    r"|\bmy own\b|\bmine\b|\bpersonally\b"
    r"|\b(?:perhaps|maybe|possibly|might|could (?:it )?be|for (?:example|instance)|such as|e\.g|something like"
    r"|suppose|random)\b"
    r"|\bmy (?:favou?rite|choice|pick|bet)\b|\bassum|\bimagine\b|\bspeculat|\bsounds? like\b|\bhow about\b|\bwas it\b|\bis it\b"
)
_TAKEN_BACK = lazy_pattern(r"\bbut (?:that|it|this) (?:may|might|could)(?: well| also)? be\b")
_VAGUE = lazy_pattern(
    r"\b(?:i think|i believe|probably|presumably|likely|should be|must be|i'd say|happy to|glad to|i can offer|i could offer)\b"
)
# `Red? That is your aunt's` says red of the aunt.
_WHOSE = lazy_pattern(r"\W*(?:but )?(?:that|this|which)(?:'s| is| was| belongs)\b")
_QUESTION = lazy_pattern(r"[^.!?\n]{1,200}\?")
_PARTS = lazy_pattern(r"(?=[.!?;:]\s|[,()\n–—]|\s-+\s|(?<!, )\b(?:and|while|whereas|but)\b)")
_SENTENCE = lazy_pattern(r"[.!?;\n]|,?\s?\b(?:while|whereas|but)\b")
_CONTRAST = lazy_pattern(r"\W*(?:unlike|not|as opposed to)\b")
_OTHER_ONE = lazy_pattern(r"\bthe other\b")
# Who is not sure how it is written knows what it is.
_SPELLING = lazy_pattern(
    r"(?:n't|\bnot) (?:\w{1,12} )?(?:sure|know|certain|remember)\b[^.!?\n]{0,30}\b(?:spel\w+|written)\b"
)
_CONDITION = lazy_pattern(r"\bif (?:i|you) [^.!?,\n]{0,100}")
_IGNORANCE = lazy_pattern(
    r"(?:n't|\bnot|\bcannot|\bnever|\bno longer)\b(?! forget| worry)[^.!?\n]{0,60}\b(?:know|recall"
    r"|remember|told|tell|mention(?:ed)?|named|shared?|passed on"
    r"|sa(?:y|id)|heard|sure|find|found|have|aware|provided?|gave|given|informed|specified|access|certain|seen?|come up"
    r"|record(?:ed)?|available|stated?)\b"
    r"|\b(?:told|mentioned|said|know)\b[^.!?\n]{0,80}\bbut not\b|\byet to (?:tell|be told|mention|say)\b|\black\b"
    r"|\b(?:no|any|without) (?:information|record|memory|memories|idea|mention|details?|knowledge|way of knowing|clue"
    r"|entry|entries|notes?|data|trace)\b|\bnot in my\b"
    r"|\bno (?:\w{1,20} ){1,2}(?:given|told|mentioned|provided|recorded|shared)\b"
    r"|\bnothing (?:about|on|in|noted|recorded|stored|(?:that )?you(?:'ve| have)? (?:told|said|wrote|written))\b"
    r"|\b(?:nobody|no one) (?:has )?(?:ever )?(?:says?|said|tells?|told|mentions?|mentioned)\b"
    r"|\bonly (?:told|know|heard)\b|\bno (?:sur|last )?name\b|\bmissing\b"
    r"|\bnot (?:the|his|her"
    r"|their) (?:sur|last )?name\b"
    r"|\bno (?:lo |me lo |me la |se |lo se |recuerdo)|\bweiss (?:es |das |ich |ich es )?nicht\b|\bnicht (?:gesagt"
    r"|erwahnt|genannt"
    r"|erzahlt|bekannt)\b|\bnichts (?:gesagt|bekannt|erzahlt)\b|\bne (?:sais|m'as|m'avez|me souviens|connais)\b|\bnon (?:lo so"
    r"|so|me l'hai|mi hai|ricordo)\b|\bnao (?:sei|me disse|lembro)\b"
    r"|\bfirst (?:i|i've|time i|time i've) (?:ever )?hear|\bnews to me\b|\bblank\b|\bno clue\b|\bbeats me\b|\bcan't help\b"
    r"|\bnone that i\b|\bcame up empty\b|\bunknown\b|\bunsure\b|\bno one told\b|\bnobody told\b|\bn/a\b|\bunable to\b"
    r"|\bunaware\b|\bunclear\b|\b(?:escapes|is beyond|is lost on) me\b|\bslipped my mind\b|\bnever (?:what|who|how)\b"
    r"|\ball (?:that )?(?:i know|you(?:'ve| have)? (?:told|said))\b"
)
