"""Cuts a reply into clauses and tells how much each of them counts: what is denied, past, a reason, or the conclusion.

Clauses are of folded text: see `words.fold`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from themis.core.patterns import lazy_pattern
from themis.memory.scoring.words import TAG, drop_weighing, find_tags, tag_phrases


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
    tagged = _TINGE.sub(" ", _STILL_THERE.sub(r"still in \1", drop_weighing(tag_phrases(text, candidates)))).replace(
        "not yet ", "not "
    )
    tagged = _NO_LONGER.sub(r"no longer \1", tagged)
    tagged = _AND_THEN.sub(", then ", _CAME_AFTER.sub(r", then \1", tagged))
    tagged = _UNTIL.sub(r", then \1", _TO_FROM.sub(r"to \1", tagged))
    tagged = _MARKED_CURRENT.sub(r"now \1", _BECAME.sub(r"\1, then ", tagged))
    tagged = _FORMER.sub(lambda pair: pair[0] + f"; so {pair[1] if pair[3] == 'former' else pair[2]} ", tagged)
    tagged = tagged if "either" in tagged else _BOTH.sub("since ", tagged)
    tagged = _SWAPPED.sub(r"\1, then \2", _CHAINED.sub(r"\1, then ", tagged))
    tagged = _SINCE_THEN.sub("; now ", tagged)
    tagged = _PREFERRED.sub(r"\1\2 rather than ", _REPLACED_BY.sub("; now ", _WITHDREW.sub("; ", tagged)))
    tagged = _WOULD_BUT.sub(r"previously \1", _ARROW_AT_LAST.sub(". so ", tagged))
    tagged = _DESCRIBED.sub(lambda described: described[1] or described[2], tagged)
    tagged = _RESULT.sub(_conclude, _BY_PLACE.sub("; so ", _REMAINING.sub(r"\1. so ", tagged)))
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


def _conclude(last: re.Match[str]) -> str:
    """What stands alone after a colon at the end of a reasoning is its result, unless the label says otherwise."""
    return last[0] if _NO_RESULT.search(last[1]) else f"{last[1]}. so "


def _lower_alone(clause: Clause) -> Clause:
    return replace(clause, standing=Standing.SAID) if clause.standing is Standing.ALONE else clause


def _split_clauses(text: str) -> Iterator[tuple[str, str, str]]:
    """Each clause that names a candidate, the words that lead up to it without naming one, and the mark after it."""
    lead = ""
    breaks = iter(
        _BREAK.split(_remove_refuted(_EXCEPT.sub(" except ", _NOTHING_BUT.sub(" only ", _ISNT_IT.sub("", text)))))
    )
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
    if _CONCEDED.match(whole) or _CHOSEN_FROM.match(whole):
        return Standing.REASON
    if _PRESENT.search(whole) or _FOREMOST.search(whole):
        return Standing.CURRENT
    if _REASON.match(whole) or _CASE.match(whole) or _GIVEN.match(whole):
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
    "but although though however whereas while yet previously formerly originally earlier before after until "
    "instead rather from to than which because since replacing superseding by with not previous prior past old maybe perhaps "
    "possibly probably finally lastly afterwards eventually then later so therefore thus hence unlike "
    "followed ahead compared against versus"
)
# Several phrases side by side.
_SERIES = rf"[^{_TAGS}.!?;]{{0,30}}{TAG.pattern}(?:,? (?:(?:and|or) )?(?:(?:the|an?) )?{TAG.pattern})+"
_BREAK = lazy_pattern(
    r"([.!?;](?=\s|$|[\"')*_])|:(?=\s|$)|[\n()\[\]{}|]|\s-+\s|[–—]"
    r"|,\s*(?=(?:and )?(?:it|its|it's|that|this|you|your|you're|you've|i|i'm|they|she|he|so|as|at|in|on)\b)"
    r"|,\s*(?=who\b)|,\s*(?=and (?:be|bring|come|go|meet|wait)\b)"
    # `Since red and green are warm, blue is best`: a phrase with its verb begins a clause.
    rf"|,\s*(?=(?:and |but )?(?:(?:the|a|your) )?{TAG.pattern} (?:is|was|has|had|having|it|would|will|wins|remains|seems"
    r"|plays|being|came|fell|lost|went|belongs|goes|lives|comes)\b)"
    # `It is red, and you must not tell` denies no red.
    r"|,\s*(?=and (?:\w{1,20} )?(?:\w{2,7}n't|cannot|never"
    r"|(?:must|may|can|could|do|does|did|is|was|has|will|would|should) not)\b))"
    rf"|(?<=[\s,])(?=(?:out of|among)\b{_SERIES})"
    rf"|(?<=[\s,])(?<!used )(?<!ever )(?=(?:{'|'.join(_OPENERS.split())}|i think|i believe|i guess|going by"
    r"|based on|judging (?:by|from)|by analogy (?:with|to)|also known|and ha(?:s|ve)"
    r"|no longer|(?:and )?last of all|and (?:took|keeps?|plays?|moved|went|switched|chose|picked|started|use|call|take"
    r"|choose|pick|book)|over(?! time)"
    r"|(?:these days|by now|most recently|at present|nowadays|currently|now)(?!\s*(?:[.!?;,)]|$)))\b)"
    r"|(?<!was )(?<!were )(?<!been )(?<!got )(?<!is )(?<!be )(?<=\s)(?=(?:has |have )?(?:replac(?:es|ed)|took the place of)\b)"
)
# `It is the first one, red` concludes with red, which is neither past nor current.
_BY_PLACE = lazy_pattern(
    rf",?\s(?:and |so |therefore )?(?:it|that)(?:'s| is) the (?:first|second|third|last|latter|former)(?: one)?, "
    rf"(?=(?:the )?{TAG.pattern})"
)
# `Teal, a blend of blue and green` names one colour and describes it.
_DESCRIBED = lazy_pattern(
    rf"({TAG.pattern})(?:[\s\"'*_]{{0,3}}[,;:(–—!.-]|\s-)[\s\"'*_(]{{0,4}}"
    r"(?:(?:which|that|it|this)(?:'s| is| was| sits| lies| falls)? )?(?:basically |essentially |really |simply |just |i\.e\. )?"
    r"(?:(?:a|an|the|some|one of the) )?(?:[a-z-]{1,20} ){0,4}?"
    r"(?:shades?|blend|mix|mixture|tone|hue|tint|cross|kind|sort|type|variety|combination|member|colou?r)(?: of| between"
    r"| that| which|,| close to| similar to| near| akin to| like| not unlike)"
    rf"[^.!?;\n{_TAGS}]{{0,40}}{TAG.pattern}(?:[^.!?;\n{_TAGS}]{{0,20}}{TAG.pattern}){{0,3}}[^.!?;,\n{_TAGS}]{{0,40}}"
    rf"|({TAG.pattern})[^.!?;\n{_TAGS}]{{0,60}}?\b(?:sits|lies|falls|halfway|somewhere|midway|is) (?:right |roughly )?between "
    rf"(?:\w{{1,10}} )?{TAG.pattern} and (?:\w{{1,10}} )?{TAG.pattern}"
)
# `Red and blue are left, and the latter is cheaper`.
_FORMER = lazy_pattern(
    rf"({TAG.pattern})[^{_TAGS}\n]{{1,40}}({TAG.pattern})[^{_TAGS}\n]{{1,120}}?\bthe (former"
    rf"|latter)\b(?![^{_TAGS}]{{0,200}}{TAG.pattern})"
)
# `Both red and blue have two` says nothing of one of them alone.
_BOTH = lazy_pattern(
    rf"(?=\bboth (?:the )?{TAG.pattern} and (?:the )?{TAG.pattern} (?:have|has|are|tie|share|offer|cost)\b)"
)
# `Red → blue` on one line, and `swapped red for blue`.
_CHAINED = lazy_pattern(
    rf"({TAG.pattern}[^\n{_TAGS}|]{{0,30}}?)\s?(?:→|⇒|->|=>|➔|➜)\s?(?=[^\n{_TAGS}|]{{0,20}}{TAG.pattern})"
)
_SWAPPED = lazy_pattern(
    rf"\b(?:swap(?:s|ped)?|exchang(?:es|ed)|trad(?:es|ed)|chang(?:es|ed)|replac(?:es|ed)) (?:the |a |an |her "
    rf"|his )?({TAG.pattern})"
    rf"(?: \w{{1,12}}){{0,2}} (?:for|to|with|by|against) (?:the |a |an )?({TAG.pattern})"
)
_NEXT = rf"(?:(?:the|an?|her|his|your|their) )?[\"'*`“]{{0,3}}{TAG.pattern}"
# `They picked it over red`, `blue was preferred to red`.
_PREFERRED = lazy_pattern(
    rf"\b((?:pick(?:s|ed)?|choos(?:es|e)|chosen?|select(?:s|ed)?|prefer(?:s|red)?|favou?r(?:s|ed)?|opted for|went for|took"
    rf"|settled on|decided on)(?: (?:{_NEXT}[\"'*`”]{{0,3}}|it|that|this|them)(?: (?!or\b|and\b)\w{{1,12}})?)?)"
    rf" (?:over|above) (?={_NEXT})"
    rf"|\b(prefer(?:s|red)?(?: (?:{_NEXT}[\"'*`”]{{0,3}}|it|that|this))?) to (?={_NEXT})"
)
# `It was red, but you replaced it with blue`.
_REPLACED_BY = lazy_pattern(
    r"(?<!\bnever )(?<!\bnot )(?<!n't )(?<!\bnearly )(?<!\balmost )(?:\breplaced "
    r"(?:it|that|this|(?:that|this) one|the (?:old|original|first|former) \w{1,12})"
    r"|\bwhich (?:you|they|we|i|he|she) (?:then |later )?replaced)(?: later| then)? (?:with|by) "
    rf"(?={_NEXT})"
)
_TAKEN_BACK = (
    r"(?:withdrew|withdrawn|called off|cancell?ed|revoked|retracted|took back|taken back|rescinded|struck out)"
)
_WITHDREW = lazy_pattern(rf",\s(?=(?:(?:and|as|since|for|but) )?(?:\w{{1,20}} ){{1,3}}{_TAKEN_BACK} {_NEXT})")
# `It would be red, but today is Monday: blue`.
_WOULD_BUT = lazy_pattern(
    rf"(\b(?:would|might|could)(?: (?:normally|usually|ordinarily|otherwise))?"
    rf" (?:be|have been|go|have gone|belong|mean|point to|suggest)\b"
    rf"[^.!?\n{_TAGS}]{{0,40}}{TAG.pattern}(?=[^.!?\n{_TAGS}]{{0,80}}\b(?:but|except|only)\b[^.!?\n]{{0,120}}{TAG.pattern}))"
)
# What an arrow leads to on a line of its own.
_ARROW_AT_LAST = lazy_pattern(rf"\n\s{{0,5}}(?:→|⇒|->|=>|➔|➜)(?=[^{_TAGS}\n]{{0,40}}{TAG.pattern}[^{_TAGS}]{{0,40}}\Z)")
_BECAME = lazy_pattern(rf"({TAG.pattern}) (?:then )?(?:became|gave way to|turned into|made way for|was followed by) ")
_NO_LONGER = lazy_pattern(rf"({TAG.pattern}(?: \w{{1,12}}){{0,5}}) (?:is |are |does |do )?no longer\b")
_AND_THEN = lazy_pattern(r",? (?:and )?from there (?:on )?to (?:the )?")
_CAME_AFTER = lazy_pattern(rf"\bafter (?:the )?{TAG.pattern}(?: \w{{1,12}})? came (?:the )?({TAG.pattern})")
_UNTIL = lazy_pattern(
    rf"\buntil (?:you|they|she|he|it|we) (?:\w{{1,12}} ){{1,4}}?(?:to|into|for) (?:the )?({TAG.pattern})"
)
_TO_FROM = lazy_pattern(rf"\bto (?:the )?({TAG.pattern})(?: \w{{1,12}}){{0,2}} from (?:the )?{TAG.pattern}")
_MARKED_CURRENT = lazy_pattern(
    rf"({TAG.pattern})[*_]{{0,3}} ?\([^()\n]{{0,30}}\b(?:current|now|latest|most recent|last)\b[^()\n]{{0,30}}\)"
)
# `It was red, but since the fire it is blue`.
_SINCE_THEN = lazy_pattern(
    rf"\bsince (?:the|that|your|my|then|his|her|their)\b[^.,;:\n{_TAGS}]{{0,40}} "
    rf"(?=(?:it's|it is|they're|they are) [^.,;{_TAGS}]{{0,12}}{TAG.pattern})"
)
_STILL_THERE = lazy_pattern(rf"(?:\bnot|n't)(?: yet)? left (?:the )?({TAG.pattern})")
_TINGE = lazy_pattern(
    rf"\bwith (?:a |some )(?:[a-z]{{1,12}} )?(?:touch|hint|dash|bit|tinge|note|drop) of {TAG.pattern}"
)
# A phrase that is only referred to when the reply concludes: `red has four, so that is your colour`.
_REFERRED = lazy_pattern(
    rf"({TAG.pattern})([^{_TAGS}\n]{{0,80}}?)\b(?:so (?:that|this|it)(?: one)?(?:'s| is) (?:the|your|my|what)"
    r"|(?:that|this|it)(?: one)?(?:'s| is) (?:the|your|my) (?:answer|choice|one|pick|winner)|(?:that|this) one wins"
    r"|(?:choose|pick|take|go (?:for|with)) (?:it|that|this)(?: one)?)\b"
    rf"(?![^.!?\n]{{0,40}}{TAG.pattern})"
)
_LABELLED = lazy_pattern(
    rf"\n\s{{0,5}}\n([^\n:{_TAGS}]{{1,60}}):(?=[\s*_\"'`]{{0,6}}(?:the )?{TAG.pattern}[\s*_\"'`.!]{{0,6}}\Z)"
)
# `That rules out red and blue, and leaves the green`.
_REMAINING = lazy_pattern(
    r"(\b(?:rul(?:es?|ed|ing)|cross(?:es|ed|ing)?|drop(?:s|ped|ping)?) out "
    rf"[^.!?;\n]{{0,80}}?{TAG.pattern}[^.!?;\n{_TAGS}]{{0,20}}?),? (?:(?:and|so|which|that) )?"
    rf"(?:leav(?:es?|ing)|remain(?:s|ing)|there (?:is|remains))(?: (?:us|me|you))?(?: with)?(?: only| just)? (?={_NEXT})"
)
# `That would be red, but stones come before all else: blue.`
_RESULT = lazy_pattern(
    rf"(?<={TAG.pattern})([^{_TAGS}\n]{{3,120}}):(?=[\s*_\"'`]{{0,4}}(?:the )?{TAG.pattern}[\s*_\"'`.!]{{0,4}}\Z)"
)
_NO_RESULT = lazy_pattern(
    r"(?:n't|\b(?:not|never|no longer|previous(?:ly)?|former(?:ly)?|earlier|at first|old|original(?:ly)?|or|also))\b"
    r"[^.!?;:]{0,30}\Z"
)
_UNDECIDED = lazy_pattern(
    r"(?:n't|\bnot|\bcannot|\bno idea|\bunsure)\b[^.!?\n]{0,40}\bwhich(?: (?:one|of \w{1,5}(?: two)?|it (?:is|was)))?\s*[.!?\n]"
    r"|(?:can't|\bcannot|couldn't) (?:say|tell|decide)\s*[.!?\n]"
)
# An only candidate, beside something that is none.
_ALTERNATIVE = lazy_pattern(
    rf"\beither (?:\w{{1,20}} ){{0,3}}(?:{TAG.pattern} or\b|or (?:\w{{1,20}} ){{0,2}}{TAG.pattern})"
    rf"|(?:\?\s{{1,3}}or|\bor (?:was|is) it) (?:\w{{1,10}} ){{0,3}}{TAG.pattern}[^.!?\n]{{0,30}}\?"
)
_ISNT_IT = lazy_pattern(r",?\s{0,3}\b(?:is|was|are|were|do|did|does|have|has)n't (?:it|that|you|i|they|she|he)\s?\?")
_REFUTED = lazy_pattern(r"\?\s{0,3}(?:no|nope|never|(?:(?:definitely|certainly|surely) )?not)\b")
# `It never held anything but red` says red.
_NOTHING_BUT = lazy_pattern(
    r"(?:\b(?:not|never|no longer)|n't)\b(?:[^.!?;:,\n]{0,40})\b(?:any(?:thing|one|body|where)(?: else)?|other)"
    r" (?:but|except|besides|than|other than)\b|\bno \w{1,12} (?:passes|goes by|ends|begins) without\b"
    r"|\bnever \w{1,12} (?:\w{1,12} )?without\b"
    r"|\bn(?:othing|obody|o one|owhere)(?: else)? (?:but|except|other than)\b"
)
_EXCEPT = lazy_pattern(r"\b(?:anything|everything|all|any|every \w{1,20}) but\b")
# `Not a spoon, a thimble`: the denial ends at the comma.
_NOT_THIS = lazy_pattern(r"(?<=\bnot)([^,]{1,80}),\s+(?=(?:a|an|the|it|to|in)\b)")
_DENIAL = lazy_pattern(
    r"\bnot\b(?! (?:sure|certain|entirely|completely|quite|mistaken|wrong|100|only|just|forgotten))"
    r"|n't\b(?! (?:worry|forg[eo]t|sure|get enough))|\bcannot\b(?! forget)|\bnever\b|\bno longer\b|\brather than\b"
    r"|\binstead of\b|\bthan\b|(?<!\bis )(?<!\bare )(?<!'s )\bused to\b"
    r"|\bneither\b|\bnor\b|\bexcept\b|\bapart from\b|\bavoid\b|\bdislike[sd]?\b"
    r"|\bhated?s?\b|\b(?:skip(?:ped)?|(?:leave|left|set|put) (?:out|aside)(?! for)|pass(?:ed)? (?:on|over)"
    r"|cross(?:ed)? (?:off|out)|ignor(?:e[sd]?|ing)|disregard(?:ed|ing)?|lost out|turned down)\b"
    rf"|{TAG.pattern} (?:is|are|was|were|drops?|falls?) (?:out|behind (?:you|me|us|them))\b"
    rf"|\b(?:a|just a|only a) (?:trick|trap|decoy|lie|red herring|fake|false lead)\b"
    rf"|\A\W*forget (?:about )?(?:the |a )?{TAG.pattern}"
    r"|(?<!not )(?<!n't )\bforgot(?:ten)?\b|(?<!not )\b(?:wrong|incorrect|false)\b|\bunlike\b|\b(?:rules?|ruling|ruled) out\b"
    r"|\b(?:was|were|been|got|is|be) (?:replaced|superseded|discarded|dropped|removed)\b|\b(?:replac|supersed)(?:es|ed|ing)\b"
    rf"|\b(?:you'd|you would|one (?:would|might)) think\b|\btook the place of\b|\A\s*over (?:the |a |an )?{TAG.pattern}"
    rf"|\b(?:no(?: more)?|without|to forget|forget about) (?:the )?{TAG.pattern}|\b(?:is|are|was|were|be) too\b"
    r"|\b(?:no|any) (?:memory|record|recollection|information)\b|\bby mistake\b|\bmistakenly\b|\bout of date\b|\boutdated\b"
    r"|\bobsolete\b"
    r"|(?<!not )(?<!yet )(?<!never )\b(?:left|sold|dropped|scrapped|abandoned|gave up|given up|giving up|gone off"
    rf"|went off|got rid of|parted with)"
    rf" (?:the |a |an |her |his |on )?{TAG.pattern}|\b(?:gave|given) (?:the |a |an |her |his )?{TAG.pattern} (?:away|up)\b"
    rf"|\b{_TAKEN_BACK} {_NEXT}"
    rf"|\b(?:wanted|consider(?:ed|ing)|thought of|toyed with|meant to \w{{1,12}}|nearly bought|almost bought) (?:the |a "
    rf"|an )?{TAG.pattern}"
)
_PRESENT = lazy_pattern(
    r"\bnow\b(?! on\b)|\bcurrent(?:ly)?\b|\blatest\b|\bmost recent(?:ly)?\b"
    r"|(?<!came up )(?<!mentioned )(?<!told me )(?<!come )(?<!comes )(?<!came )(?<!named )\blast\b(?! with \d)"
    r"|\bat present\b|\bpresently\b"
    r"|\bthese days\b|\bnowadays\b|\btoday\b|\bfinally\b|\blastly\b|\blater\b|\bnewest\b|\bas of\b|\bin the end\b|\bended up\b"
    r"|\bever since\b|\bsince then\b|\bright after all\b|\b(?:updated|(?:was|you|been) changed(?: (?:it|that"
    r"|this))?|corrected|put right|amended|switched) to\b"
)
_FOREMOST = lazy_pattern(
    r"\bha(?:s|ve) the (?:most|highest|fewest|lowest|least|largest|smallest)\b|\bmost (?:often|frequently|of all)\b"
)
# `The hayloft, the barn being full`.
_GIVEN = lazy_pattern(rf"\W*(?:(?:with|the) )*{TAG.pattern} being\b")
_REASON = lazy_pattern(
    r"\W*(?:with \d+ )?(?:because|since|as|while|whereas|although|though|compared|against|versus|followed|ahead|second"
    r"|than|like|going by|based on|judging (?:by|from)|by analogy (?:with|to))\b"
)
# `Even though you named red last`.
_CONCEDED = lazy_pattern(
    r"\W*(?:(?:even )?though|although|despite|in spite of) [^.!?]{0,40}?\b(?:mention|told|said|say|spoke|heard|named?|tell|talk)"
)
# `I went with red, out of red, blue and green` lists what there was to choose from.
_CHOSEN_FROM = lazy_pattern(rf"\W*(?:out of|(?:from )?among)\b{_SERIES}\W*\Z")
# `If the shop has only red, come home` speaks of a case; `if I remember, red` of memory.
_CASE = lazy_pattern(
    rf"\W*(?:but |and )?(?:even )?if (?!i\b|memory|my memory|you ask)[^,{_TAGS}]{{0,60}}{TAG.pattern}[^{_TAGS}]*\Z"
)
_GONE = lazy_pattern(
    r"\b(?:was|were|(?<!must have )been|had|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?|earlier|before|first"
    r"|once"
    rf"|until|prior|past|old|history|trained as)\b|\bleft (?:the )?{TAG.pattern}"
)
_BESIDES = lazy_pattern(
    r"\b(?:(?<!come )(?<!comes )from|also|several|various|other|different|throughout|over time|began|started|at one point"
    r"|at some point"
    r"|c[ao]mes? (?:very |quite )?close|close behind|next in line|breaks? the tie with|tie[sd]?(?: [a-z]{1,10})? with|as well as"
    r"|besides|also known|after|normally|usually|ordinarily|second|runner-up|tempt(?:ing|ed)|(?:only|just|reserved"
    r"|meant) for)\b"
    r"|\b(?:cousin|neighbou?r|colleague|sister|brother|aunt|uncle|niece|nephew|flatmate|postman|conductor|caretaker|dog|baby)\b"
    rf"|{TAG.pattern}[\"”']? (?:would (?:be|mean)|means?|is) [\"“]"
    rf"|{TAG.pattern} (?:is|was) (?:meant )?for (?!you\b|me\b|us\b|certain\b|sure\b)\w"
    r"|(?:'d|\bwould) have (?:liked|loved|ordered|preferred|taken)\b"
    # What would be so is not so; the rest of the sentence is another clause.
    rf"|{TAG.pattern} would (?:be ahead|come first|win|lead|have won)\b"
)
_CONCLUSION = lazy_pattern(
    r"\b(?:so(?! (?:do|does|did|has|have)\b)|therefore|thus|hence|answer|(?<!second )choice|(?:has|have|is|it's) to be"
    r"|must (?:be|have been)|recommend|suggest|go (?:for|with)|that leaves|(?<!would )wins?|winner|decides|better|best)\b"
    r"|\A\W*but (?:\w{1,20} ){0,4}(?:it's|it is|that's|the answer is) "
    rf"|{TAG.pattern} (?:it is\b|is the one(?=\W*\Z))|\bi(?:'d| would) say\b|\btakes it\b"
    rf"|\b(?:gives|leaves) (?:us|me)\b|\bmakes it (?:the )?{TAG.pattern}|\bget (?:the|a|an)\b|\bbook the\b"
    # `I must choose` is the question, not its answer.
    r"|(?<!must )(?<!to )(?<!shall i )(?<!the )(?<!chronological )\b(?:choose|pick|take|order)\b"
)
# What was said up to here has no bearing on what follows.
_TURN = lazy_pattern(
    r"\W*(?:but|yet|however|so|therefore|thus|hence|because|since|while|whereas|compared|followed|ahead)\b"
)
_FOLLOWS = lazy_pattern(
    r"\W*(?:and )?(?:(?<!back )then|later|afterwards|finally|lastly|last of all|eventually|now|these days|most recently"
    r"|since then)\b"
)
_JOINED = lazy_pattern(
    r"\W*(?:or|and(?! (?:took|keeps?|plays?|moved|went|switched|chose|picked|started|use|call|take|choose|pick"
    r"|book)\b)|also|maybe"
    r"|perhaps|possibly|alternatively)\b"
)
_WORD = lazy_pattern(r"\w+")
# Around a phrase that stands alone.
_SMALL = frozenset({
    "a", "an", "at", "by", "certainly", "clearly", "definitely", "dr", "for", "in", "its", "mr", "mrs", "ms", "my",
    "obviously", "of", "on", "one", "please", "queen", "river", "room", "sure", "surely", "the", "to", "with", "yes", "your",
})  # fmt: skip
