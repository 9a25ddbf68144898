"""Answers that nobody announces: the end of a conclusion, or a reply that is nothing but its answer."""

from __future__ import annotations

import re

from themis.evaluation.extractors.announcements import DECLINES, NEGATED, NOUNS, SUPPOSED, trim_answer

# An answer has few words; what has more is a sentence about something.
_ANSWER_WORDS = 8
_BARE_WORDS = 6
# Conclusions stand at the end, and no sentence that holds an answer is longer.
_LOOKED_AT = 20_000
_LINE = 1_000


def find_stated(text: str) -> str | None:
    """The answer of a reply that announces none: yes or no, what it concludes, or what it begins with; else None.

    >>> find_stated("4 boxes of 6 are 24. So she needs 24 eggs.")
    '24 eggs'
    """
    text = text.strip()
    if labelled := _LETTER_A.match(text):
        text = text[labelled.end() :]
    if "\n" not in text:
        text = _CONTRACTED.sub(r"\1 is", _LIST_MARK.sub("", text))
    if not text or _is_other(text) or DECLINES.search(text[:_LOOKED_AT]):
        return None
    if verdict := _VERDICT.match(text[:_LINE]):
        return verdict[1]
    if (listed := _LISTED.fullmatch(text[:_LINE])) and not _FLUFF.match(text):
        items = [trim_answer(_LIST_ITEM.sub("", item)) for item in listed["items"].strip().split("\n") if item.strip()]
        if all(0 < len(item.split()) <= _BARE_WORDS for item in items):
            return ", ".join(items)
    if unspaced := _UNSPACED_IS.fullmatch(text[:_LINE]):
        return trim_answer(next(filter(None, unspaced.groups())))
    if (dashed := _DASHED.fullmatch(text[:_LINE])) and not NEGATED.search(text):
        return trim_answer(dashed["said"] or dashed["name"]) or None
    head = text.partition("\n\n")[0][:_LINE]
    if (
        (named := _NAMED.fullmatch(head))
        and (named["noun"] or head == text)
        and len(named["said"].split()) <= 2 * _BARE_WORDS
    ):
        return take_result(trim_answer(named["said"])) or None
    return _find_set_apart(text) or find_conclusion(text) or find_bare(text)


# A list that one line announces, and nothing else.
_LISTED = re.compile(r"[^\n]{1,200}[:：]\W{0,4}\n+(?P<items>(?:[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+[^\n]{1,80}\n*){2,8})")
_LIST_ITEM = re.compile(r"\A[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+")
# A line that names what it gives: "Sentiment: positive", "Sorted alphabetically: apple, banana".
_NAMED = re.compile(
    r"[*_]{0,3}(?:(?i:(?P<noun>(?:(?:overall|predicted|final|full|main|primary) )?(?:sentiment|label|category|class"
    r"|classification|topic"
    r"|emotion|language|translation|name|title|date|year|city|country|person|author|location|place|word|entity|type|genre"
    r"|intent|relation|order|sorted\b[\w ]{0,30})|here(?: is|['’]s| are) (?:the|your) [\w ]{3,40}))"
    r"|[A-Z][a-z]+(?: [a-z]+){0,3}(?=[*_]{0,3}: [*_]{0,3}[a-z]))"
    r"[*_]{0,3}:[*_]{0,3} (?P<said>[^\n:?]+)",
)


# Russian says "is" with a dash: what is named stands after it with a capital, else before it.
_DASHED = re.compile(
    r"(?P<name>[А-ЯЁ][^—–\n.!?]{1,80}) [—–] (?:(?:это )?\**(?P<said>[А-ЯЁ\d«][^—–\n]{0,80})|(?:это )?[а-яё][^—–\n]{3,120})"
)


# One sentence that says what something is, in languages that need no blanks or no article for it.
_UNSPACED_IS = re.compile(
    r"[\u4e00-\u9fff]{2,40}是([^\s是，,。不]{1,30})。?|[\u3040-\u30ff\u4e00-\u9fff]{2,40}は([^\s、。は]{1,30}?)(?:です|である|だ|でした)。?"
    r"|[\uac00-\ud7af ]{2,40}[은는] ([^,.\n]{1,30}?)(?:입니다|이다|이에요|예요)\.?|[\u0600-\u06ff ]{2,60} (?:هي"
    r"|هو) ([^.،\n]{1,40})\.?"
)


def _is_other(text: str) -> bool:
    """Whether a text is no prose: JSON that has no answer, or a formula that is cut off."""
    last = text[-_LINE:].rpartition("\n")[2]
    return (text[0] in "{[" and text[-1] in "}]" and '"' in text) or last.count("{") > last.count("}")


_LIST_MARK = re.compile(r"\A(?:[>•*-]|\d[.)](?=(?:\s+\S+){1,4}\Z))\s+(?=\S)")
# The A of questions and answers; before a B it would be the first of several options.
_LETTER_A = re.compile(r"A:\s+(?=\S)(?![^\0]*\nB[:.)])")
_VERDICT = re.compile(
    r"\W*(yes|no|true|false|ja|nein|oui|non|sí|sim|não|sì|да|нет)\b(?!\.\s*\d)(?=\W*(?:$|\n|[,.;:!–—-]|because"
    r"|since|it|the|this))",
    re.IGNORECASE,
)
_BOLD_LAST = re.compile(r"[.!?]\s+\*\*(?P<said>[^*\n:?]{1,60})\*\*[.!]?\Z")
_WHOLLY_BOLD = re.compile(r"\*\*(?P<said>[^*\n]{1,80})\*\*[.!]?")


def _find_set_apart(text: str) -> str | None:
    """The last line where it alone is bold, or the last of several equations."""
    lines = [line.strip() for line in text[-_LOOKED_AT:].split("\n") if line.strip()]
    if not lines or (
        len(lines) < 2 and not _TOTAL.fullmatch(lines[-1][:200]) and not _BOLD_LAST.search(lines[-1][-200:])
    ):
        return None
    bold = _WHOLLY_BOLD.fullmatch(lines[-1][:_LINE])
    if bold and not bold["said"].rstrip().endswith((":", "?")) and not _CONCLUDES.match(bold["said"]):
        return trim_answer(find_predicate(bold["said"]) or bold["said"]) or None
    if lone := _BOLD_LAST.search(lines[-1][-200:]):
        return trim_answer(lone["said"]) or None
    total = _TOTAL.fullmatch(lines[-1][:200])
    if total and _QUANTITY.fullmatch(trim_answer(total["said"])):
        return trim_answer(total["said"])
    while len(lines) > 1 and _FLUFF.match(lines[-1]):
        lines.pop()
    if all(_EQUATION.fullmatch(line[:200]) for line in lines):
        return take_result(trim_answer(_LABELLED.sub("", lines[-1])))
    return None


_TOTAL = re.compile(
    r"\W*(?:total|sum|average|mean|cost|price|difference|product|summe|gesamt|somme|suma"
    r"|totale?)\b[^:\n]{0,30}:(?P<said>.+)",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"\A[^\W\d][^:=\n]{0,40}:\s*")


# --- conclusions ------------------------------------------------------------------------------------------------------------

_CONCLUDING = (
    r"so|therefore|thus|hence|consequently|finally|overall|in total|in conclusion|in summary|in short|to sum up|altogether"
    r"|as a result|this means(?: that)?|which means(?: that)?|it follows that|which leaves|that leaves|this leaves"
    r"|conclusion|result"
    r"|daher|also|somit|folglich|insgesamt|donc|ainsi|au total|por lo tanto|así que|en total|portanto|logo|no total|quindi"
    r"|dunque|in totale|следовательно|значит|итак|таким образом|因此|所以|よって|したがって|따라서|إذن|अतः|इसलिए"
)
_CONCLUDES = re.compile(rf"[^\w$\\]*(?:{_CONCLUDING})(?!\w)", re.IGNORECASE)
_OPENS = re.compile(
    rf"(?:[^\w$\\]*(?:{_CONCLUDING}|and|then|we (?:conclude|find|see)(?: that)?|in this case)(?!\w)[\s,:，]*){{0,3}}",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;]\s+(?:and\s+)?(?=(?:so|thus|therefore|hence|which means|which leaves|meaning)\b)", re.IGNORECASE
)
_SUBJECT = re.compile(
    r"(?:the|an?|our|my|his|her|their|its|your|there|it|this|that|these|those|we|he|she|they|you|each|every|one"
    r"|both|all|in|after|at"
    r"|der|die|das|es|eine?|les?|la|l'|il|elle|el|los|las|os?|as|i|gli|lo|[A-Z][\w'-]*|[a-z](?= equals ))(?![\w-])|\$"
    r"|\\\(|[\"“](?=[^\"“”]{1,60}[\"”] \w)",
)
_VERB = re.compile(
    r"(?<=\s)(?:(?:takes|took) place (?:in|on|at)|(?:is|are|was|were) left with|is|are|was|were|will be|would be"
    r"|must be|should be|equals?|has|have"
    r"|had|makes?|made|gets?|got|needs?|costs?"
    r"|earn(?:s|ed)?|pays?|paid|takes?|took|weighs?|contains?|becomes?|gives?|gave|leaves?|comes? (?:out )?to"
    r"|amounts? to|totals"
    r"|works? out (?:to|at)|turns? out to be|ends? up with|sold|bought|spent|ate|ran|walked|read|received|remain|lives? in"
    r"|stands? for|belongs? to(?: the (?:category|class|genre|topic))?|refers? to|comes? from|arrives? (?:at|in|on)"
    r"|(?:starts?|begins?|ends?|opens?|closes?)(?: (?:at|in|on))?"
    r"|falls? on(?: an?)?|lasts?|died (?:in|of|on)|means|express(?:es|ed)|lies (?:in|on|at)|happened (?:in|on)"
    r"|translates? (?:to|as)|speaks?"
    r"|ist|sind|beträgt|lautet|kostet|est|sont|vaut|coûte|es|son|cuesta|é|são|custa|è|sono|costa|равн[оаы]|равен)"
    r"(?:\s+(?:therefore|thus|then|exactly|now|also|equal to|given by|called|known as|named(?: after)?|donc|also|actually"
    r"|indeed))?[\s:]+(?=\S)"
    r"|\s*(?:=|≈)\s*|\s*(?:是|为|は)\s*",
    re.IGNORECASE,
)
# A figure with its unit, last in a sentence: "so she earned $10", "thus they walk 12 km a day".
_QUANTITY = re.compile(
    r"(?<![\w.^])(?:(?:January|February|March|April|May|June|July|August|September|October|November|December) (?=\d))?"
    r"(?:[-−$€£¥]\s?)?\d[\d,.:/]*(?:\s?[%€$£]|\s?°[CF]?|(?:\s+[^\W\d]+){1,3})?$"
)
_THERE_ARE = re.compile(
    r"there (?:are|is|were|will be|would be)\s+(?P<said>(?:exactly |only )?\d[\d,.]*(?:\s+(?!(?:of|in|for|on|at"
    r"|to|with|left)\b)[^\W\d]+)?)",
    re.IGNORECASE,
)
_EMPHASISED = re.compile(r"\*\*([^*\n]{1,80})\*\*|\$\$([^$]{1,200})\$\$")
_FLUFF = re.compile(
    r"[^\w]*(?:let me|let us|let's|i hope|hope (?:this|that)|please|feel free|note|sure|great|good question|hmm+"
    r"|well|alright|ah|oh|interesting|okay"
    r"|ok|hi|hey|hello"
    r"|thanks|thank|certainly|of course|here|i will|i'll|i would|i need|we need|we will|to (?:find|solve|answer"
    r"|determine|get)"
    r"|first|next|step|check|candidates|could|would you|are you|do you|is there|what|why|how|which (?:of|one)"
    r"|if you|i can|i am|i'm"
    r"|explanation|(?:because|since)(?![^.\n]{1,120},\s(?:the|an?|it|he|she|they|there|we|you|this|that)\b)|reasoning"
    r"|verification|both(?!.*\bby )|now|there is not|people|many|some|this (?:follows|is because)"
    r"|fun fact|did you know|by the way|interestingly|remember|keep in mind|additionally|for (?:reference"
    r"|context|comparison|example)|p\.?s\.?|disclaimer|as a side note|tip"
    r"|(?:the|this|your) (?:question|problem|task|user|prompt|puzzle|riddle) (?:asks|is asking|wants|states|says|is about|gives)"
    r"|that(?: is|['’]s) an? (?:\w+ )?question|we are (?:given|told|asked)"
    r"|solution|given|consider|suppose|assume|looking|thinking|before|after that)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])[*_\"')\]$]{0,4}\s+(?=[^\s])|\n+|(?<=[。！？।])")


def find_conclusion(text: str) -> str | None:
    """What the last conclusion of a text says, else its last sentence that says anything; None where none does."""
    if _BROKEN_OFF.search(text.rstrip("*_ \n")[-80:]):
        return None
    sentences = [one.strip()[:_LINE] for one in _SENTENCES.split(text[-_LOOKED_AT:]) if one and one.strip()]
    if sentences and not _is_finished(text):
        sentences = [] if _GOES_FURTHER.match(sentences.pop()) else sentences
    clauses = [clause for sentence in sentences for clause in _CLAUSE.split(sentence)]
    concluding = [one for one in clauses if _CONCLUDES.match(one)]
    # A working may go on after "so": what its last step comes to.
    concluding += [
        one for one in sentences[-1:] if _RESULT_LAST.search(one.rstrip(".")) and _may_state(one, alone=False)
    ]
    while 1 < len(sentences) <= 3 and _ABOUT_WHOM.fullmatch(sentences[-1]):
        sentences.pop()
    plain = [] if _begins_bare(text) else [one for one in sentences if _may_state(one, alone=len(sentences) == 1)]
    emphatic = [one for one in plain if len(_EMPHASISED.findall(one)) == 1 and not one.startswith(("**", "$$"))]
    for clause in [*reversed(concluding), *emphatic[-1:], *plain[-1:]]:
        if answer := _read_clause(clause):
            return answer
    if (
        len(sentences) > 1
        and sentences[-2].endswith("?")
        and not sentences[-1].endswith("?")
        and 0 < len(sentences[-1].split()) <= _BARE_WORDS
    ):
        return trim_answer(sentences[-1]) or None
    return None


# More about somebody who was just named; a figure may be the answer all the same.
_ABOUT_WHOM = re.compile(r"(?:He|She|His|Her|They|Their) [^\d*=]+")
# A working that is cut off in its next step has not concluded.
_GOES_FURTHER = re.compile(r"\W*(?:next|now|then|step|case|clue|from|similarly|also|second|third)\b", re.IGNORECASE)
# Words and signs that no text ends with, unless it is cut off.
_BROKEN_OFF = re.compile(
    r"(?:\b(?:is|are|was|the|an?|of|to|that|which|and|or|then|with|by|in|for|we|so|if|as|at|from|be|this|these"
    r"|another|each)"
    r"|[,(+*/=<>-]|\\[a-z]+\{?)\s*\Z",
)


# What is denied beside what is stated: "is Canberra, not Sydney", "is **false**: it cannot be seen".
_INSTEAD = re.compile(r",\s+(?:and )?(?:not|nicht|pas|no|non|não|не)\s.*\Z|(?<=\*\*):\s.*\Z", re.IGNORECASE)


def _may_state(sentence: str, *, alone: bool) -> bool:
    return not (
        _FLUFF.match(sentence)
        or NEGATED.search(_INSTEAD.sub("", sentence))
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
    if leaves := _LEAVES.match(clause):
        return cut_after_quantity(trim_answer(leaves["said"])) or None
    emphasised = _EMPHASISED.findall(clause)
    if len(emphasised) == 1 and not clause.startswith("**"):
        return find_emphasised(clause)
    clause = _CONTRACTED.sub(r"\1 is", clause.lstrip("#>-*• "))
    if unspaced := _UNSPACED_QUANTITY.search(clause):
        return unspaced[1]
    trimmed = trim_answer(clause[_end_of_opening(clause) :])
    if there_are := _THERE_ARE.match(trimmed):
        return trim_answer(there_are["said"])
    said = find_predicate(trimmed)
    if said is None and _IT_IS.match(clause, _end_of_opening(clause)) and 0 < len(trimmed.split()) <= _BARE_WORDS:
        return take_result(trimmed)
    if said is None and (said := find_predicate("The " + trimmed)) and said not in trimmed:
        said = None
    if (said is None or _TURNED.match(said)) and "=" not in trimmed and (quantity := _QUANTITY.search(trimmed)):
        said = quantity.group()
    if said is None and (result := _RESULT_LAST.search(trimmed)):
        said = result[1]
    if not find_predicate(trimmed) and (span := _RANGE.search(trimmed)):
        said = span.group()
    if said is None and (last := _ENDS_WITH.fullmatch(trimmed)):
        said = last["quoted"] or last["placed"]
    return (take_result(cut_after_quantity(trim_answer(said))) or None) if said else None


def cut_after_quantity(said: str) -> str:
    """A figure and its unit without where, when and than what: 14 sheep at the market, 18 stickers left."""
    found = _QUANTITY_FIRST.match(said)
    return found.group() if found else said


_QUANTITY_FIRST = re.compile(
    r"[$€£]?\d[\d,.]*(?:\s(?!(?:and|or|to|out|am|pm)\b)(?:°[CF]|[^\W\d_]+[²³]?)){1,3}?(?=\s(?:at|in|on|for|than|after|before|from|left|remaining"
    r"|altogether|to|with|when|if|by|during|over|each|high|tall|wide|deep|long|away)\b)"
)


def find_emphasised(clause: str) -> str | None:
    """What alone is set in bold in a sentence, with the unit that follows a figure: **3.5** litres."""
    found = list(_EMPHASISED.finditer(clause))
    if len(found) != 1:
        return None
    said = take_result(trim_answer(found[0][1] or found[0][2]))
    unit = _UNIT_AFTER.match(clause, found[0].end()) if re.fullmatch(r"\d[\d.,]*", said) else None
    return (said + " " + unit[1] if unit else said) or None


_UNIT_AFTER = re.compile(
    r"\s(?!(?:of|in|for|on|at|to|with|left|and|or|is|are|was|were|as|by|from|per|than|because|since|if|when|so|but|more|less|after|before"
    r"|und|et|y|e|i|o|in|en|de|da)\b)([^\W\d_]+(?:/\w+|[²³])?)"
)
_RESULT_LAST = re.compile(r"\s=\s([$€£]?\d[\d.,]*(?:\s?[^\s=]{1,12})?)\Z")
_RANGE = re.compile(r"\b(?:from|between) [$€£]?\d[\w.,:%]*(?: \w+)? (?:to|until|and) [$€£]?\d[\w.,:%]*(?: \w+)?\Z")
_UNSPACED_QUANTITY = re.compile(
    r"(?<=[\u3040-\u30ff\u4e00-\u9fff])\s?(\d[\d.,]*\s?[\u3040-\u30ff\u4e00-\u9fff]{1,5})[。.]?\Z"
)
_LEAVES = re.compile(r"(?:which|that|this) leaves (?:us |me )?(?:with )?(?:only |just )?(?P<said>\S.*)", re.IGNORECASE)
_IT_IS = re.compile(r"(?:it|that|this)(?: is|['’]s) ", re.IGNORECASE)
# "the train arrives at 5:45 p.m.", 'the king "fled to France" after the battle'
_ENDS_WITH = re.compile(
    r"[^\"“”„\n]+ (?:[\"“„](?P<quoted>[^\"“”„\n]{2,80})[\"”“](?: [\w ]{1,60})?"
    r"|(?:in|on|at|by|for|to|from|as|into|against|with|near) (?:an? )?(?P<placed>(?:the )?[A-Z\d][^,;\"“”\n]{0,60}?"
    r"|\([^()\n]{1,60}\)))[.!]?"
)
_CONTRACTED = re.compile(r"\b(that|it|there|he|she|here|what)['’]s\b", re.IGNORECASE)


def _end_of_opening(sentence: str) -> int:
    """Where a sentence begins in earnest: after "so", "in total", "according to the passage"."""
    opening = _OPENS.match(sentence)
    end = opening.end() if opening else 0
    setting = _SETTING.match(sentence, end)
    return setting.end() if setting else end


_SETTING = re.compile(
    r"(?:[a-z]+ing\b(?=[^,.\n]{1,80},\s+we)|according to|based on|of|among|out of|since|because|when|in|after|from"
    r"|for|at|on|by|with|given|as|during"
    r"|if)\s[^,.\n]{1,80},\s+(?=(?:the"
    r"|an?|it|he|she|they|there|we"
    r"|you|this|that|[A-Z])\b)",
    re.IGNORECASE,
)


def find_predicate(sentence: str) -> str | None:
    """What a sentence says of its subject: "The capital of France is Paris" says Paris; None where it is no sentence."""
    sentence = sentence[_end_of_opening(sentence) :]
    if cleft := _CLEFT.match(sentence):
        return cleft["said"]
    if most := _MOST.fullmatch(sentence):
        return most["said"] or most["more"] or most["who"]
    if not _SUBJECT.match(sentence) or len(sentence) > 500:
        return None
    verbs = list(_VERB.finditer(sentence))
    if sum("=" in verb.group() for verb in verbs) > 1 and re.search(r"\s(?:or|and)\s", sentence):
        return None  # x = 3 or x = 5
    for verb in reversed(verbs):
        subject, said = sentence[: verb.start()].strip(), sentence[verb.end() :].strip()
        if not said or not subject or _is_inside(sentence, verb.start()):
            continue
        if "=" in verb.group() and _NAMED_TERM.search(subject):
            continue  # the line is y = 2x + 1
        if _DESCRIBES.match(said) and _is_name(subject) and not _PLACES.search(verb.group()):
            return subject  # Paris is the capital of France
        if done := _DONE_BY.match(said):
            said = said[done.end() :]
            said = _WHEN.sub("", said) if done.group().rstrip().endswith(" by") else said
        if len(said.split()) <= _ANSWER_WORDS and not re.match(r"(?:not|n't|to|in|at|that|because)\b", said):
            return said
    return None


# "It was in 1991 that ...", "C'est Victor Hugo qui ..."
_CLEFT = re.compile(
    r"(?:it (?:was|is)|c['’](?:est|était)|es (?:war|ist)|fue|foi|è stat[oa])\s+(?:(?:in|on|at|en|im) )?"
    r"(?P<said>[^,\n]{1,60}?),?\s+(?:who|that|qui|der|die|das|quien|que|quem|che)\s+\S",
    re.IGNORECASE,
)
# "the red box is the heaviest": who is the most of something is asked for.
_MOST = re.compile(
    r"(?P<said>(?:[Tt]he )?[\w' -]{1,40}?) (?:is|was|has|are|must be|came|finished) "
    r"(?:the (?![a-z]*(?:forest|nest|guest|chest|west|vest|rest|test|quest|priest|pest)\b)[a-z]{2,}est"
    r"|(?:the )?(?:most|least|fewest|first|last|second|third|fourth|fifth|only one|winner|odd one out))(?: [\w ]{1,40})?[.!]?"
    r"|(?P<more>(?:[Tt]he )?[\w' -]{1,40}?) (?:is|was) (?:the )?(?:old|young|tall|short|heavi|light|fast|slow|larg"
    r"|small|bigg|long"
    r"|high|low|cheap|clos|earli|lat|great|warm|cold|hott|deep|wid|strong)e?r(?: one)?[.!]?"
    r"|[\"“*]{0,2}(?P<who>(?:[Tt]he )?[\w' -]{1,40}?)[\"”*]{0,2} (?:won|wins|lost|did it|wrote it|was first"
    r"|came (?:out )?first)[.!]?"
)
# Somebody between verb and figure: "also kostet das Ticket 15 Euro", "it took them 4 hours".
_TURNED = re.compile(r"(?:der|die|das|den|er|sie|es|man|wir|them|him|her|us|me|you|it)\b", re.IGNORECASE)
_NAMED_TERM = re.compile(r"\s(?:is|are|be|lautet|est|es|é|è|gives?|gets?)\s+(?:[a-z]|[a-z]\([a-z]\))\Z")
# "was signed in 1848", "was written by Jane Austen"
_DONE_BY = re.compile(
    r"\A[a-z]{2,}(?:ed|en|wn|rn|un|lt|ld|de|id|ght|ng|nd|nt|pt|ut|et) (?:in|by|on|at|to|from|after|near|as)\s+(?=\S)"
    r"|\A(?:(?:stat[oa]|été|sido) )?[a-zéèà]{2,}(?:[tsd][oa]|ée?|ite?) (?:da|par|por)\s+(?=\S)"
)
_PLACES = re.compile(r"\b(?:in|on|of|at|from|to|for|means|lasts?)\s*\Z", re.IGNORECASE)
_WHEN = re.compile(r"(?<=\w)\s+(?:in|on|during|after|before|around|between|for|at)\s.*\Z")
_DESCRIBES = re.compile(r"(?:the|an?|not|no longer|that|also|often|known|called|very|so|too|correct|right)\b")


def _is_name(subject: str) -> bool:
    return subject.startswith(("$", "\\(")) or (
        len(subject.split()) <= 4
        and subject[:1].isupper()
        and not re.match(r"(?:The(?! [A-Z])|A|An|It|This|That|There|So|He|She|We|They|You|I)\b", subject)
    )


def _is_inside(sentence: str, at: int) -> bool:
    """Whether a place lies inside a formula or a bracket."""
    before = sentence[:at]
    return (
        before.count("$") % 2 == 1 or before.count("\\(") > before.count("\\)") or before.count("(") > before.count(")")
    )


_EQUATION = re.compile(r"[^=\n]{1,60}=[^=\n]{1,60}(?:=[^=\n]{1,60}){0,3}")
_WORKING = re.compile(
    r"[\d\s+\-−*/×÷·^().,%$€£]*[+\-−*/×÷·^][\d\s+\-−*/×÷·^().,%$€£]*|[^\W\d_]{3,}(?: [^\W\d_]+){0,4}"
    r"|(?:\\[a-zA-Z]+|[\d\s+\-−*/×÷·^().,%${}!])*\\[a-zA-Z]+(?:\\[a-zA-Z]+|[\d\s+\-−*/×÷·^().,%${}!])*"
)


def take_result(answer: str) -> str:
    """What a calculation comes to: 7 * 8 = 56 is 56; x = 5 says what x is, and stays."""
    working, equals, _ = answer.partition("=")
    return answer.rpartition("=")[2].strip() if equals and _WORKING.fullmatch(working.strip()) else answer


# --- bare answers -------------------------------------------------------------------------------------------------------------


def ends_open(text: str) -> bool:
    """Whether a text breaks off where its answer should follow: "Answer:", "so the answer is"."""
    return _OPEN_END.search(text[-200:]) is not None


_OPEN_END = re.compile(
    rf"(?:{NOUNS})[^\n.]{{0,40}}(?:[:：=]|\bis|\bist|\best|\bes|是|は)[\s*_]*\Z|(?:{NOUNS})\s*\Z"
    rf"|\\boxed\s*\{{[^{{}}]{{0,40}}\Z",
    re.IGNORECASE,
)
_WHOLE_FENCE = re.compile(r"\A(?:```|~~~)\w*\n(.*?)\n?(?:```|~~~)\Z", re.DOTALL)


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
    bold = _BOLD_FIRST.match(line.strip())
    return take_result(trim_answer(bold[1] if bold else line)) or None


def _first_line(text: str) -> str:
    text = text.strip()
    for opens, closes in (("$$", "$$"), ("\\[", "\\]")):
        if text.startswith(opens) and closes in text[2:]:
            return text[2 : text.index(closes, 2)][:_LINE]
    return text.partition("\n")[0][:_LINE]


_GIVES_REASON = re.compile(r"(?:because|since)\b", re.IGNORECASE)
_PLACED = re.compile(r"(?:in|on|at|by|from|during|since|until|after|before|about)\b", re.IGNORECASE)
_BOLD_FIRST = re.compile(r"\*\*([^*\n]{1,60})\*\*\s*(?:[–—,-]|$|is\b|because\b)")


# A sentence that ends with the words it is about.
_QUOTES_LAST = re.compile(r"(?:[^\W\d_]+ ){3,}[\"“„][^\"“”„\n]{1,80}[\"”“][.!]?")


_GUESSES = re.compile(r"(?:maybe|perhaps|possibly|probably|um+|uh+)\b[\s,.]*(?!\w+ you)\S", re.IGNORECASE)


def _begins_bare(text: str) -> bool:
    """Whether a reply begins with its answer: a few words that are no sentence, no heading and no greeting."""
    text = text.strip()
    line = _first_line(text).strip()
    rest = text[len(line) :].strip()
    if (
        not re.search(r"[\w∞∅]", line)
        or (_FLUFF.match(line) and not (not rest and _GIVES_REASON.match(line)))
        or (line.endswith((":", "?", "：")) and not _GUESSES.match(line))
    ):
        return False
    if rest and re.match(r"#|[-*•]\s|\d+[.)]\s|\||>|```", line):
        return False
    if _BOLD_FIRST.match(line):
        return True
    answer = trim_answer(line)
    words = len(answer.split())
    if not answer or (words > _BARE_WORDS and "=" not in answer) or find_predicate(answer) or _CONCLUDES.match(line):
        return False
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
