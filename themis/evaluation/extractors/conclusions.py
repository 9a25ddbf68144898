"""Answers that nobody announces: the end of a conclusion, or a reply that is nothing but its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.announcements import DECLINES, NEGATED, NOUNS, SUPPOSED, trim_answer
from themis.evaluation.extractors.emphasis import EMPHASISED, find_bold, find_code, find_emphasised
from themis.evaluation.extractors.labels import find_set_off, find_words, read_label
from themis.evaluation.extractors.plain_sentences import main_clause, read_plain
from themis.evaluation.extractors.predicates import (
    CONCLUDES,
    cut_after_quantity,
    end_of_opening,
    find_predicate,
    is_sentence,
    strip_participle,
    take_result,
)
from themis.evaluation.extractors.remarks import FLUFF, drop_remarks, split_sentences

# What has more words is no bare answer.
_BARE_WORDS = 6
# Conclusions stand at the end, and no sentence that holds an answer is longer.
_LOOKED_AT = 20_000
_LINE = 1_000
_FEW_SENTENCES = 4


def find_stated(text: str) -> str | None:
    """The answer of a reply that announces none: yes or no, what it concludes, or what it begins with; else None.

    >>> find_stated("4 boxes of 6 are 24. So she needs 24 eggs.")
    '24 eggs'
    """
    text = _TOOL.sub("", text).strip()
    if words := find_words(text):
        return words
    told = drop_remarks(text)
    if any(one.endswith("?") and _ASKS_BACK.search(one) for one in split_sentences(text)) or _NOTHING.fullmatch(
        text.strip()
    ):
        return None
    text = _PRAISE.sub("", told)
    if labelled := _LETTER_A.match(text):
        text = text[labelled.end() :]
    alone = False
    if "\n" not in text:
        text = _CONTRACTED.sub(r"\1 is", _LIST_MARK.sub("", text))
        alone = len(split_sentences(text)) == 1
        text = main_clause(text) if alone else text
    if not text or _is_other(text) or DECLINES.search(_QUOTED.sub("", text[:_LOOKED_AT])):
        return None
    if verdict := _VERDICT.match(text[:_LINE]):
        return verdict[1]
    if judged := _JUDGED.match(text[:_LINE]):
        return judged[1]
    if (
        alone
        and "**" not in text
        and not _BROKEN_OFF.search(text[-80:])
        and (plain := read_plain(text[end_of_opening(text) :]))
    ):
        is_quoted = re.search(rf"[\"“]{re.escape(plain)}[.,]?[\"”]", text) is not None
        return plain if is_quoted else cut_after_quantity(trim_answer(plain)) or None
    if rather := _NOT_BUT.fullmatch(text[:_LINE]):
        return trim_answer(rather["said"]) or None
    if (listed := _LISTED.fullmatch(text[:_LINE])) and not FLUFF.match(text):
        items = [trim_answer(_LIST_ITEM.sub("", item)) for item in listed["items"].strip().split("\n") if item.strip()]
        if all(0 < len(item.split()) <= _BARE_WORDS for item in items):
            return ", ".join(items)
    if unspaced := _UNSPACED_IS.fullmatch(re.sub(r"[（(][^（()）]*[)）](?=。?\Z)", "", _first_unspaced(text[:_LINE]))):
        return trim_answer(next(filter(None, unspaced.groups())))
    if (dashed := _DASHED.fullmatch(text[:_LINE])) and not NEGATED.search(text):
        return trim_answer(dashed["said"] or dashed["name"]) or None
    if changed := _ARROW.fullmatch(text[:_LINE]):
        return take_result(trim_answer(changed["said"])) or None
    return (
        _find_set_apart(text)
        or find_bold(text)
        or find_code(text)
        or find_set_off(text)
        or find_conclusion(text)
        or find_bare(text)
    )


# What is said to a tool, and what it answers.
_TOOL = lazy_pattern(
    r"<(?P<tool>tool_calls?|tool_response|tool_result|function_calls?|function_results?|invoke)\b[^<>\n]{0,80}>(?:(?!</(?P=tool)>)[^\0])*(?:</(?P=tool)>|\Z)"
)
# "mouse → mice"
_ARROW = lazy_pattern(r"[^\n→⇒]{1,60}(?:→|⇒|=>|->)\s*(?P<said>[^\n→⇒]{1,80})")
_PRAISE = lazy_pattern(
    r"\A(?:(?:good|great|nice|excellent|interesting|fantastic|awesome|right|happy)\b[^.!?\n]{0,40}[!.]|lol\b,?|haha\b,?|(?:well|oh|ah),)\s+(?=\S)",
    re.IGNORECASE,
)
_NOTHING = lazy_pattern(
    r"\W*(?:n\s?/\s?a|not (?:mentioned|applicable|available|specified|stated|given|provided|enough)\b[^\n]{0,60}"
    r"|it depends\b[^\n]{0,80})\W*",
    re.IGNORECASE,
)
# What has to be known first is asked for: nothing is answered.
_ASKS_BACK = lazy_pattern(
    r"\b(?:could|can|would|will) you (?:please )?(?:clarify|specify|provide|share|tell|give|check|confirm|upload"
    r"|paste|send|describe|indicate|say)"
    r"|\bwhich\b[^.?\n]{0,60}\b(?:do you|are you|you mean|did you|you['’]re)|\bwhat do you mean|please (?:clarify"
    r"|provide|specify|share|paste)"
    r"|podrías|puedes (?:indicar|decir|aclarar)|könntest du|können sie|pourriez-vous|peux-tu|poderia|potresti|уточните|请提供",
    re.IGNORECASE,
)


_NOT_BUT = lazy_pattern(r"not [^.,;:\n]{1,60},? but (?:rather )?(?P<said>[^.,;:\n]{1,80}\.?)", re.IGNORECASE)
# A list that one line announces, and nothing else.
_LISTED = lazy_pattern(
    r"[^\n]{1,200}[:：]\W{0,4}\n+(?P<items>(?:[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+[^\n]{1,80}\n*){2,8})"
)
_LIST_ITEM = lazy_pattern(r"\A[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+")
# Russian says "is" with a dash: what is named stands after it with a capital, else before it.
_DASHED = lazy_pattern(
    r"(?P<name>[А-ЯЁ][^—–\n.!?]{1,80}) [—–] (?:(?:это )?\**(?P<said>[А-ЯЁ\d«][^—–\n]{0,80})|(?:это )?[а-яё][^—–\n]{3,120})"
)


# One sentence that says what something is, in languages that need no blanks or no article for it.
_UNSPACED_IS = lazy_pattern(
    r"[《》「」“”\d\u4e00-\u9fff]{2,40}是([^\s是，,。不]{1,30})。?|[《》「」『』\d\u3040-\u30ff\u4e00-\u9fff]{2,40}は([^\s、。は]{1,30}?)(?:です|である|だ|でした)。?"
    r"|[\uac00-\ud7af ]{2,40}[은는] ([^,.\n]{1,30}?)(?:입니다|이다|이에요|예요)\.?|[\u0600-\u06ff ]{2,60} (?:هي"
    r"|هو) ([^.،\n]{1,40})\.?"
)


def _first_unspaced(text: str) -> str:
    """The first sentence of a text that parts its few sentences with 。, unless the others conclude."""
    sentences = split_sentences(text)
    few = 1 < len(sentences) <= _FEW_SENTENCES and "\n" not in text and sentences[0].endswith("。")
    return sentences[0] if few and not any(CONCLUDES.match(one) for one in sentences) else text


def _is_other(text: str) -> bool:
    """Whether a text is no prose: JSON that has no answer, or a formula that is cut off."""
    last = text[-_LINE:].rpartition("\n")[2]
    return (text[0] in "{[" and text[-1] in "}]" and '"' in text) or last.count("{") > last.count("}")


_LIST_MARK = lazy_pattern(r"\A(?:[>•*-]|\d[.)](?=(?:\s+\S+){1,4}\Z))\s+(?=\S)")
# The A of questions and answers; before a B it would be the first of several options.
_LETTER_A = lazy_pattern(r"A:\s+(?=\S)(?![^\0]*\nB[:.)])")
_VERDICT = lazy_pattern(
    r"\W*(yes|no|true|false|ja|nein|oui|non|sí|sim|não|sì|да|нет)\b(?!\.\s*\d)(?=\W*(?:$|\n|[,.;:!–—-]|because"
    r"|since|it|the|this))",
    re.IGNORECASE,
)
# "That's false: goldfish remember for months"
_JUDGED = lazy_pattern(
    r"(?:that|this|it|the (?:\w+ )?(?:statement|claim|sentence|assertion|proposition))(?: is"
    r"|['’]s)\s(?:\w+ly )?\**(true|false)\b\**(?=\s*(?:\Z|[.:;,!–—]|\n|because|since))",
    re.IGNORECASE,
)
_BOLD_LAST = lazy_pattern(r"[.!?]\s+\*\*(?P<said>[^*\n:?]{1,60})\*\*[.!]?\Z")
_WHOLLY_BOLD = lazy_pattern(r"\*\*(?P<said>[^*\n]{1,80})\*\*[.!]?")


def _find_set_apart(text: str) -> str | None:
    """The last line where it alone is bold, or the last of several equations."""
    lines = [line.strip() for line in text[-_LOOKED_AT:].split("\n") if line.strip()]
    if not lines or (
        len(lines) < 2 and not _TOTAL.fullmatch(lines[-1][:200]) and not _BOLD_LAST.search(lines[-1][-200:])
    ):
        return None
    bold = _WHOLLY_BOLD.fullmatch(lines[-1][:_LINE])
    if bold and not bold["said"].rstrip().endswith((":", "?")) and not CONCLUDES.match(bold["said"]):
        said = read_label(bold["said"], alone=False) or find_predicate(bold["said"]) or read_plain(bold["said"])
        return trim_answer(said or bold["said"]) or None
    if lone := _BOLD_LAST.search(lines[-1][-200:]):
        return trim_answer(lone["said"]) or None
    total = _TOTAL.fullmatch(lines[-1][:200])
    if total and _QUANTITY.fullmatch(trim_answer(total["said"])):
        return trim_answer(total["said"])
    while len(lines) > 1 and FLUFF.match(lines[-1]):
        lines.pop()
    if all(_EQUATION.fullmatch(line[:200]) for line in lines):
        return take_result(trim_answer(_LABELLED.sub("", lines[-1])))
    return None


_TOTAL = lazy_pattern(
    r"\W*(?:total|sum|average|mean|cost|price|difference|product|summe|gesamt|somme|suma"
    r"|totale?)\b[^:\n]{0,30}:(?P<said>.+)",
    re.IGNORECASE,
)
_LABELLED = lazy_pattern(r"\A[^\W\d][^:=\n]{0,40}:\s*")


# --- conclusions ------------------------------------------------------------------------------------------------------------

_CLAUSE = lazy_pattern(
    r"[,;]\s+(?:and\s+)?(?=(?:so|thus|therefore|hence|which means|which leaves|meaning)\b(?![^\"“”\n]*[\"”]))"
    r"|,\s+and\s+(?=the [^,.]{1,60} (?:is|was|are|equals) [^,.]{1,60}[.]?\Z)",
    re.IGNORECASE,
)
# A figure with its unit, last in a sentence: "so she earned $10", "thus they walk 12 km a day".
_QUANTITY = lazy_pattern(
    r"(?<![\w.^])(?:(?:January|February|March|April|May|June|July|August|September|October|November|December) (?=\d))?"
    r"(?:[-−$€£¥]\s?)?(?:\d[\d,.]* ?[×x] ?){0,2}\d[\d,.:/]*(?:\s?[%€$£]|\s?°[CF]?|(?:\s+[^\W\d]+){1,3})?$"
)
_THERE_ARE = lazy_pattern(
    r"there (?:are|is|were|will be|would be)\s+(?P<said>(?:exactly |only )?\d[\d,.]*(?:\s+(?!(?:of|in|for|on|at"
    r"|to|with|left)\b)[^\W\d]+)?)",
    re.IGNORECASE,
)


def find_conclusion(text: str) -> str | None:
    """What the last conclusion of a text says, else its last sentence that says anything; None where none does."""
    if _BROKEN_OFF.search(text.rstrip("*_ \n")[-80:]):
        return None
    sentences = [_before_breakdown(_CORRECTS.sub("", one[:_LINE])) for one in split_sentences(text)]
    if sentences and not _is_finished(text):
        sentences = [] if _GOES_FURTHER.match(sentences.pop()) else sentences
    concluding = [
        clause
        for sentence in sentences
        for place, clause in enumerate(_CLAUSE.split(sentence))
        if CONCLUDES.match(clause) or (place and CONCLUDES.match(sentence))
    ]
    # A working may go on after "so": what its last step comes to.
    concluding += [
        one for one in sentences[-1:] if _RESULT_LAST.search(one.rstrip(".")) and _may_state(one, alone=False)
    ]
    while 1 < len(sentences) <= 3 and _ABOUT_WHOM.fullmatch(sentences[-1]):
        sentences.pop()
    if named := _named_first(sentences):
        return named
    plain = [] if _begins_bare(text) else [one for one in sentences if _may_state(one, alone=len(sentences) == 1)]
    emphatic = [one for one in plain if len(EMPHASISED.findall(one)) == 1 and not one.startswith(("**", "$$"))]
    # Of a short reply the first sentence may be the answer, and the others what there is to say about it.
    first = sentences[:1] if plain[:1] == sentences[:1] and len(sentences) <= _FEW_SENTENCES else []
    for clause in [*reversed(concluding), *emphatic[-1:], *plain[-1:], *first]:
        if answer := _read_clause(clause):
            return answer
    if first and (name := _LAST_NAME.fullmatch(first[0])):
        return trim_answer(name["said"]) or None
    if (
        len(sentences) > 1
        and sentences[-2].endswith("?")
        and not sentences[-1].endswith("?")
        and 0 < len(sentences[-1].split()) <= _BARE_WORDS
    ):
        return trim_answer(find_predicate(sentences[-1]) or sentences[-1]) or None
    return None


def _named_first(sentences: Sequence[str]) -> str | None:
    """The name that a first sentence gives, where all others only tell more about it: "The capital is Rabat. It lies ..."."""
    if not 2 <= len(sentences) <= 2 * _FEW_SENTENCES or not all(_TELLS_MORE.match(one) for one in sentences[1:]):
        return None
    if any(CONCLUDES.match(one) or "**" in one or "=" in one for one in sentences):
        return None
    named = _NAMED_FIRST.fullmatch(sentences[0])
    return trim_answer(named["said"] or named["subject"]) or None if named else None


_TELLS_MORE = lazy_pattern(
    r"(?:He|She|It|They|His|Her|Its|Their|This|These|The (?:book|novel|film|city|country|river|mountain|painting|song"
    r"|name|word|term|play"
    r"|company|event|game|building|island|lake|element|planet|species|work|album|series|story))\b(?!['’ ]s? ?(?:is"
    r"|was)? ?(?:why|means|makes|gives|leaves))"
)
_NAMED_FIRST = lazy_pattern(
    r"(?:The|Its|Their|Our) [^\d;:!?\n]{3,120} (?:is|was|are|were|is called"
    r"|was called) (?P<said>(?:the )?[A-ZÀ-Þ][\w'’.-]*(?: (?:of |the |de |van |von |la |du )*[A-ZÀ-Þ\d][\w'’.-]*)*)"
    r"(?:, [^\n]*)?\.|(?P<subject>(?:The )?[A-ZÀ-Þ][\w'’.-]*(?: (?:of |the |de |van "
    r"|von )*[A-ZÀ-Þ\d][\w'’.-]*){0,4}) (?:is|was) the [^\n]*\."
)


# What a sentence ends with, where nothing else tells what it says: a name, a figure and what it counts, how often.
_LAST_NAME = lazy_pattern(
    r"(?:[\w'’\"“”()-]+,? ){2,14}?(?:(?P<said>(?:(?:the|an?) )?[A-ZÀ-Þ][\w'’.-]*(?: (?:(?:of|the|de|van|von|la|le"
    r"|du|del|and|&) )*[A-ZÀ-Þ\d][\w'’.-]*)*"
    r"|once|twice|never|always|weekly|daily|monthly|yearly))[.!]?"
)
# More about somebody who was just named; a figure may be the answer all the same.
_ABOUT_WHOM = lazy_pattern(
    r"(?:He|She|His|Her|They|Their|At the time|Since then|Today|Before that|Later|Previously|Afterwards"
    r"|Even today|To this day|Its"
    r"|[A-Z]\w+ also|It (?:has|rises|lies|flows|covers|became|remains|also|can|contains|belongs))\b[^\d*=]+"
)
# A working that is cut off in its next step has not concluded.
_GOES_FURTHER = lazy_pattern(r"\W*(?:next|now|then|step|case|clue|from|similarly|also|second|third)\b", re.IGNORECASE)
# Words and signs that no text ends with, unless it is cut off.
_BROKEN_OFF = lazy_pattern(
    r"(?:\b(?:is|are|was|the|an?|of|to|that|which|and|or|then|with|by|in|for|we|so|if|as|at|from|be|this|these"
    r"|another|each)"
    r"|[,(+*/=<>-]|\\[a-z]+\{?)\s*\Z",
)


# What is denied beside what is stated: "is Canberra, not Sydney", "is **false**: it cannot be seen".
_INSTEAD = lazy_pattern(
    r",\s+(?:and |und |et |y |e |а )?(?:not|nicht|pas|no|non|não|не)\s.*\Z|(?<=\*\*):\s.*\Z|\s[–—]\s.*\Z", re.IGNORECASE
)


_QUOTED = lazy_pattern(r"[\"“«][^\"“”«»\n]{1,120}[\"”»]")


# What is denied in a bracket, or of what is only described: "regions from which no light can escape are called ...".
_BESIDES = lazy_pattern(
    r"\([^()\n]*\)|\b(?:which|that|who|whom|whose|where|from which|in which) (?:[\w'’]+ ){0,4}?(?:not|never|cannot"
    r"|can['’]t|don['’]t|doesn['’]t"
    r"|didn['’]t|isn['’]t|wasn['’]t)\b(?=[^,.\n]*\b(?:is|are|was|were)\b)|\bnot (?:to be|only)\b",
    re.IGNORECASE,
)


_CORRECTS = lazy_pattern(
    r"\A(?:(?:actually|wait|no|sorry|correction|oops|or rather)\b[\s,.:!—–-]*){1,3}(?:let me (?:correct"
    r"|rephrase)[^:.\n]{0,40}[:.]\s*)?(?=\S)"
    r"|\A(?:to answer (?:your|the|this) question|simply put|in a nutshell|put simply|to be precise"
    r"|as of my last (?:update|knowledge)|you asked [^.:]{3,80})[:,]\s*"
    r"|\AI(?:['’]m| am) not (?:\S+ ){0,2}(?:sure|certain|positive)(?: about this)?,? but (?:I (?:think|believe|guess) )?"
    r"|(?<= )not (?:in |on |at |by )?(?:the )?[^,.;:\n]{1,40}?,? but (?:rather )?(?=\S)",
    re.IGNORECASE,
)


def _before_breakdown(sentence: str) -> str:
    """A sentence without what its figure is made of: "You'd pay 1,200 in total: 100 a month for 12 months"."""
    before, colon, _ = sentence.partition(": ")
    said = find_predicate(before) if colon and before[-1:].strip() and "**" not in before else None
    return before if said and re.search(r"\d", said) and "following" not in before else sentence


def _may_state(sentence: str, *, alone: bool) -> bool:
    return not (
        FLUFF.match(sentence)
        or NEGATED.search(_BESIDES.sub("", _QUOTED.sub("", _INSTEAD.sub("", sentence))))
        or (SUPPOSED.search(sentence) and not alone)
        or sentence.endswith(("?", ":", "："))
    )


def _is_finished(text: str) -> bool:
    """Whether a text ends as sentences do; one that does not was cut off."""
    text = text.rstrip()
    if len(text.split()) <= _BARE_WORDS or not text[-1:].isalpha() or not text[-1:].islower():
        return True
    return re.search(r"=\s*[^\s=]+ [^\s=]{1,9}\Z", text[-80:]) is not None  # ... = 60 km/h


def _read_clause(clause: str) -> str | None:
    """What a clause says: what is set in bold, what it says of its subject, else the figure it ends with."""
    clause = re.sub(r"\A\*\*([^*]+)\*\*\Z", r"\1", clause.strip())
    if share := _SHARE_FIRST.match(clause):
        return share["said"]
    if leaves := _LEAVES.match(clause):
        return cut_after_quantity(trim_answer(leaves["said"])) or None
    if quoted := _QUOTE_LAST.fullmatch(clause):
        return quoted["said"].strip().removesuffix(".")
    emphasised = EMPHASISED.findall(clause)
    if len(emphasised) == 1 and not clause.startswith("**"):
        return find_emphasised(clause)
    clause = _CONTRACTED.sub(r"\1 is", clause.lstrip("#>-*• "))
    if unspaced := _UNSPACED_QUANTITY.search(clause):
        return unspaced[1]
    trimmed = trim_answer(clause[end_of_opening(clause) :])
    if _VARIABLE.fullmatch(trimmed):
        return trimmed
    if there_are := _THERE_ARE.match(trimmed):
        return trim_answer(there_are["said"])
    said = find_predicate(trimmed)
    if said is None and _IT_IS.match(clause, end_of_opening(clause)) and 0 < len(trimmed.split()) <= _BARE_WORDS:
        return take_result(strip_participle(trimmed))
    if said is None and (said := find_predicate("The " + trimmed)) and said not in trimmed:
        said = None
    if (said is None or _TURNED.match(said)) and "=" not in trimmed and (quantity := _QUANTITY.search(trimmed)):
        said = quantity.group()
    if said is None and (result := _RESULT_LAST.search(trimmed)):
        said = result[1]
    if not find_predicate(trimmed) and (span := _RANGE.search(trimmed)):
        said = span.group()
    if said is None:
        whole = clause[end_of_opening(clause) :].rstrip(".! ")
        said = read_plain(whole) or find_predicate(whole)
    if said is None and (last := _ENDS_WITH.fullmatch(trimmed)):
        said = last["quoted"] or last["placed"]
    if said is None and CONCLUDES.match(clause) and 0 < len(trimmed.split()) <= _BARE_WORDS and _NAMES.match(trimmed):
        return None if is_sentence(trimmed) else trimmed
    return (take_result(cut_after_quantity(trim_answer(said))) or None) if said else None


# "Roughly 40% of the votes went to the incumbent"
_SHARE_FIRST = lazy_pattern(
    r"(?:roughly |about |around |approximately |some |nearly |exactly |only )?(?P<said>\d[\d.,]*\s?%"
    r"|\d+/\d+) of (?:the|all|its|their|his|her)\b[^=]*\Z",
    re.IGNORECASE,
)
_QUOTE_LAST = lazy_pattern(
    r"[^\"“”\n]* (?:is|are|was|were|as|says?|said|reads?|called|means|translated|spells?"
    r"|be)[^\"“”\w\n]{1,4}[\"“](?P<said>[^\"“”\n]{1,200})[\"”][.!]?"
)
# "Thus x = 7": what x is.
_VARIABLE = lazy_pattern(r"\$?[A-Za-z](?:_\w)?\s?=\s?[^=\n]{1,40}")
# "Hence, photosynthesis."
_NAMES = lazy_pattern(r"(?:the |an? )?[A-Z\d]|(?:the |an? )?[^\W\d_]+\Z")


_RESULT_LAST = lazy_pattern(r"\s=\s([$€£]?\d[\d.,]*(?:\s?[^\s=]{1,12})?)\Z")
_RANGE = lazy_pattern(r"\b(?:from|between) [$€£]?\d[\w.,:%]*(?: \w+)? (?:to|until|and) [$€£]?\d[\w.,:%]*(?: \w+)?\Z")
_UNSPACED_QUANTITY = lazy_pattern(
    r"(?<=[\u3040-\u30ff\u4e00-\u9fff])\s?(\d[\d.,]*\s?[\u3040-\u30ff\u4e00-\u9fff]{1,5})[。.]?\Z"
)
_LEAVES = lazy_pattern(
    r"(?:which|that|this) leaves (?:us |me |her |him |them |you |it )?(?:with )?(?:only |just )?(?P<said>\S.*)",
    re.IGNORECASE,
)
_IT_IS = lazy_pattern(r"(?:it|that|this)(?: is|['’]s) ", re.IGNORECASE)
# "the train arrives at 5:45 p.m.", 'the king "fled to France" after the battle'
_ENDS_WITH = lazy_pattern(
    r"[^\"“”„\n]+ (?:[\"“„](?P<quoted>[^\"“”„\n]{2,80})[\"”“](?: [\w ]{1,60})?"
    r"|(?:in|on|at|by|for|to|from|as|into|against|with|near) (?:an? )?(?P<placed>(?:the )?[A-Z\d][^,;\"“”\n]{0,60}?"
    r"|\([^()\n]{1,60}\)))[.!]?"
)
_CONTRACTED = lazy_pattern(r"\b(that|it|there|he|she|here|what)['’]s\b", re.IGNORECASE)


# Somebody between verb and figure: "also kostet das Ticket 15 Euro", "it took them 4 hours".
_TURNED = lazy_pattern(r"(?:der|die|das|den|er|sie|es|man|wir|them|him|her|us|me|you|it)\b", re.IGNORECASE)


_EQUATION = lazy_pattern(r"[^=\n]{1,60}=[^=\n]{1,60}(?:=[^=\n]{1,60}){0,3}")


# --- bare answers -------------------------------------------------------------------------------------------------------------


def ends_open(text: str) -> bool:
    """Whether a text breaks off where its answer should follow: "Answer:", "so the answer is"."""
    return _OPEN_END.search(text[-200:]) is not None


_OPEN_END = lazy_pattern(
    rf"(?:{NOUNS})[^\n.]{{0,40}}(?:[:：=]|\bis|\bist|\best|\bes|是|は)[\s*_]*\Z|(?:{NOUNS})\s*\Z"
    rf"|\\boxed\s*\{{[^{{}}]{{0,40}}\Z|\\boxed\s*\{{\s*\}}\W*\Z"
    rf"|(?:{NOUNS})\W{{0,4}}[:：]\W*(?:<[^<>\n]{{1,30}}>|\[(?:your|the|insert)[^\[\]\n]{{1,30}}\])\W*\Z",
    re.IGNORECASE,
)
_WHOLE_FENCE = lazy_pattern(r"\A(?:```|~~~)\w*\n(.*?)\n?(?:```|~~~)\Z", re.DOTALL)


def find_bare(text: str) -> str | None:
    """The answer of a reply that is nothing else, or that begins with it and explains it afterwards; else None."""
    text = text.strip()
    if fenced := _WHOLE_FENCE.match(text):
        text = fenced[1].strip()
    if verdict := _VERDICT.match(text[:_LINE]):
        return verdict[1]
    if not _begins_bare(text):
        return None
    line = _first_line(text)
    if labelled := read_label(next(iter(split_sentences(line)), ""), alone=True):
        return labelled
    bold = _BOLD_FIRST.match(line.strip())
    return take_result(strip_participle(trim_answer(bold[1] if bold else line))) or None


def _first_line(text: str) -> str:
    text = text.strip()
    for opens, closes in (("$$", "$$"), ("\\[", "\\]")):
        if text.startswith(opens) and closes in text[2:]:
            return text[2 : text.index(closes, 2)][:_LINE]
    return text.partition("\n")[0][:_LINE]


_GIVES_REASON = lazy_pattern(r"(?:because|since)\b", re.IGNORECASE)
_PLACED = lazy_pattern(r"(?:in|on|at|by|from|during|since|until|after|before|about)\b", re.IGNORECASE)
_BOLD_FIRST = lazy_pattern(
    r"\*\*([^*\n]{1,60})\*\*\s*(?:[–—,-]|$|is\b|because\b|(?:was|are|were|became) (?:the|an?|one|who)\b)"
)


# A sentence that ends with the words it is about.
_QUOTES_LAST = lazy_pattern(r"(?:[^\W\d_]+ ){3,}[\"“„][^\"“”„\n]{1,80}[\"”“][.!]?")


_CLAUSE_FIRST = lazy_pattern(
    r"(?:it|this|that|there|we|i|you|he|she|they|if|when|as|since|while|although|officially|ich|wir|je|il|elle|on"
    r"|yo|creo|eu|io)\b(?! is| was)",
    re.IGNORECASE,
)
_GUESSES = lazy_pattern(r"(?:maybe|perhaps|possibly|probably|um+|uh+)\b[\s,.]*(?!\w+ you)\S", re.IGNORECASE)


def _begins_bare(text: str) -> bool:
    """Whether a reply begins with its answer: a few words that are no sentence, no heading and no greeting."""
    text = text.strip()
    line = _first_line(text).strip()
    rest = text[len(line) :].strip()
    if (
        not re.search(r"[\w∞∅]", line)
        or (FLUFF.match(line) and not (not rest and _GIVES_REASON.match(line)))
        or (line.endswith((":", "?", "：")) and not _GUESSES.match(line))
    ):
        return False
    if rest and re.match(r"#|[-*•]\s|\d+[.)]\s|\||>|```", line):
        return False
    if _BOLD_FIRST.match(line):
        return True
    if find_emphasised(line) and not line.startswith("**") and find_predicate(line):
        return False
    answer = trim_answer(line)
    words = len(answer.split())
    if not answer or (words > _BARE_WORDS and "=" not in answer) or find_predicate(answer) or CONCLUDES.match(line):
        return False
    if is_sentence(answer) and re.search(r" (?:in|on|at|by|from|to) [A-Z\d]", answer):
        return False  # that ends with a place or a time
    if words > 1 and words < len(line.split()) and _CLAUSE_FIRST.match(answer):
        return False  # only the beginning of a sentence
    before = answer[: quantity.start()].split() if (quantity := _QUANTITY.search(answer)) else []
    if (
        len([word for word in before if word.isalpha()]) > 1
        and not _PLACED.match(answer)
        and any(word.islower() for word in before)
    ):
        return False  # a sentence that ends with a figure
    if _QUOTES_LAST.fullmatch(line) or re.match(r"[A-Z][a-z]+ing\b[^,\n]{1,80}, (?:we|you|I)\b", line):
        return False
    if "=" in answer and (rest or words < len(line.split())):
        return False  # a working that goes on
    # What goes on without a sentence's end was cut off, and what goes on in the same line was no bare answer.
    return words < len(line.split()) - 1 or len(line.split()) <= _BARE_WORDS + 2
