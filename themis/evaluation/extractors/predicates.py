"""What a sentence says of its subject, and what a calculation comes to."""

from __future__ import annotations

import re

from themis.core.patterns import lazy_pattern

# An answer has few words; what has more is a sentence about something.
_ANSWER_WORDS = 8


def find_predicate(sentence: str) -> str | None:
    """What a sentence says of its subject: "The capital of France is Paris" says Paris; None where it is no sentence."""
    sentence = sentence[end_of_opening(sentence) :]
    if cleft := _CLEFT.match(sentence) or _CONCERNS.fullmatch(sentence):
        return cleft["said"]
    if left := _LEFT.fullmatch(sentence):
        return left["said"]
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
        if _DESCRIBES.match(said) and _is_name(subject) and _COPULA.match(verb.group()):
            return subject  # Paris is the capital of France
        if _TERMED.search(verb.group()):
            said = _ARTICLE.sub("", said)
        said = strip_participle(_LIKELY.sub("", said))
        said = _CALLED.sub("", _AT_A_NAME.sub("", said))
        if len(said.split()) <= _ANSWER_WORDS and not re.match(r"(?:not|n't|to|in|at|that|because)\b", said):
            return said
    return _find_doer_or_thing(sentence)


_LIKELY = lazy_pattern(
    r"\A(?:most likely|very likely|most probably|probably|likely|possibly|originally|usually) (?=[a-z]+(?:ed|en|wn) )"
)
# "is called a metaphor": the word that was asked for.
_TERMED = lazy_pattern(r"\b(?:called|known as|named|termed)\s*\Z")
_ARTICLE = lazy_pattern(r"\Aan? (?=[a-z])")


def strip_participle(said: str) -> str:
    """Without what was done: "signed in 1848" is 1848, "written by Jane Austen and published in 1813" Jane Austen."""
    if dated := _DATED.match(said):
        return dated["said"]
    done = _DONE_BY.match(said)
    if not done:
        return said
    said = _AND_DONE.sub("", said[done.end() :])
    return _WHEN.sub("", said) if done.group().rstrip().endswith((" by", " par", " por", " door")) else said


_AND_DONE = lazy_pattern(r"\s+and (?:(?:later|then|first|was|is) )?(?:[a-z]+(?:ed|en|wn)|was|is)\b.*\Z")
# "am 3. März 1954 geboren", "née en 1934 à Rome"
_DATED = lazy_pattern(
    r"\A(?:(?:born|née?|nacid[oa]|nat[oa]|geboren) )?(?:am|on|le|el|em|il|en|in|im Jahr) (?P<said>(?:\d{1,2}(?:\."
    r"|er)? (?:de )?[^\W\d]+ (?:de )?)?\d{4})\b.*\Z"
)


def _find_doer_or_thing(sentence: str) -> str | None:
    """Of "Franz Kafka wrote The Trial" who did it, as his name is given; of "The thief stole a necklace" what."""
    found = _DID.match(sentence)
    if not found:
        return None
    if _is_name(found["doer"]):
        return found["doer"]
    thing = _WHEN.sub("", found["thing"]).rstrip(".!")
    return thing if 0 < len(thing.split()) <= _ANSWER_WORDS else None


_DID = lazy_pattern(
    r"(?P<doer>(?:[\w'’.-]+ ){0,3}?[\w'’.-]+) (?:(?:first|originally|also|then|finally) )?(?:wrote|won|stole"
    r"|painted|invented|discovered|founded|composed"
    r"|directed|designed|built|created|wore|carried|drank|plays|played|likes|prefers|chose|brought|caught|lost|owns|scored|sang|studied|teaches"
    r"|taught|uses|used|visited|hid|sent|saw|found|developed|introduced|proposed|proved|led|ruled|conquered|killed|hit|broke|speak|speaks)"
    r" (?P<thing>[^,;\n]{2,80})"
)


def is_sentence(text: str) -> bool:
    """Whether a text has a subject and a verb."""
    return _SUBJECT.match(text) is not None and _VERB.search(text) is not None


# "It was in 1991 that ...", "C'est Victor Hugo qui ..."
_CLEFT = lazy_pattern(
    r"(?:it (?:was|is)|c['’](?:est|était)|es (?:war|ist)|fue|foi|è stat[oa])\s+(?:(?:in|on|at|en|im) )?"
    r"(?P<said>[^,\n]{1,60}?),?\s+(?:who|that|qui|der|die|das|quien|que|quem|che)\s+\S",
    re.IGNORECASE,
)
# "Il s'agit probablement d'Albert Camus"
_CONCERNS = lazy_pattern(
    r"(?:il s['’]agit (?:\w+ ){0,2}?d(?:e |['’]|u |es )|se trata (?:\w+ ){0,2}?(?:de |del )"
    r"|es handelt sich (?:\w+ ){0,2}?um )(?P<said>[^,.\n]{1,60})[.]?",
    re.IGNORECASE,
)
# "22 eggs are left"
_LEFT = lazy_pattern(
    r"(?P<said>[$€£]?\d[\d,.]*(?: [^\W\d_]+){0,3}?) (?:are|is|were|was|will be|remain) (?:still )?(?:left"
    r"|remaining|missing|needed|required|left over)?[.!]?(?<=[a-z.!])",
)
# "the red box is the heaviest": who is the most of something is asked for.
_MOST = lazy_pattern(
    r"(?P<said>(?:[Tt]he )?[\w' -]{1,40}?) (?:is|was|has|are|must be|came|finished) "
    r"(?:the (?![a-z]*(?:forest|nest|guest|chest|west|vest|rest|test|quest|priest|pest)\b)[a-z]{2,}est"
    r"|(?:the )?(?:(?:most|least)(?! (?:likely|probably|commonly|often)\b)|fewest|first|last|second|third|fourth|fifth"
    r"|only one|winner|odd one out))(?: [\w ]{1,40})?[.!]?"
    r"|(?P<more>(?:[Tt]he )?[\w' -]{1,40}?) (?:is|was) (?:the )?(?:old|young|tall|short|heavi|light|fast|slow|larg"
    r"|small|bigg|long"
    r"|high|low|cheap|clos|earli|lat|great|warm|cold|hott|deep|wid|strong)e?r(?: one)?[.!]?"
    r"|[\"“*]{0,2}(?P<who>(?:[Tt]he )?[\w' -]{1,40}?)[\"”*]{0,2} (?:won|wins|lost|did it|wrote it|was first"
    r"|came (?:out )?first)[.!]?"
)
_NAMED_TERM = lazy_pattern(r"\s(?:is|are|be|lautet|est|es|é|è|gives?|gets?)\s+(?:[a-z]|[a-z]\([a-z]\))\Z")
# "was signed in 1848", "was written by Jane Austen"
_DONE_BY = lazy_pattern(
    r"\A[a-z]{2,}(?:ed|en|wn|rn|un|lt|ld|de|id|ght|ng|nd|nt|pt|ut|et|kt|ft|cht) (?:in|by|on|at|to"
    r"|from(?! [A-Z\d]\S* to)|after|near|as|with|door|von)\s+(?=\S)"
    r"|\A[a-z]+(?:ed|en) under (?:the )?(?=[A-Z])|\A(?:(?:stat[oa]|été|sido) )?[a-zéèà]+(?:[tsdh][oae]s?|ée?s?"
    r"|ite?s?) (?:da|par|por|pela|pelo) (?=\S)"
    r"|\A(?:hidden|kept|stored|placed|buried|parked|hanging|lying|sitting|standing) (?=(?:in|on|under|behind"
    r"|beside|next|near|between|inside|above|below)\b)"
    r"|\Aset in (?=[A-Z])|\Adue (?:on|by|at)\s+(?=\S)|\A(?:available|located|situated|found) (?:at|in|on|from|under)\s+(?=\S)"
    r"|\A(?:(?:stat[oa]|été|sido) )?[a-zéèà]{2,}(?:[tsd][oa]|ée?|ite?) (?:da|par|por)\s+(?=\S)"
)
_COPULA = lazy_pattern(
    r"(?:is|are|was|were|(?:will|would|must|should) be|becomes?|turns? out to be|ist|sind|est|sont|es|son|é|são|è"
    r"|sono)\b(?! left)",
    re.IGNORECASE,
)
# "has the formula H2SO4"
_CALLED = lazy_pattern(
    r"\A(?:the|an?) (?:[a-z]+ )?(?:formula|symbol|number|name|code|word|letter|term|title|abbreviation|password"
    r"|year) (?=[\"“$A-Z\d][^\s]*\Z)"
)
# "the meeting is on Wednesday", "the painting is by Artemisia Gentileschi"
_AT_A_NAME = lazy_pattern(r"\A(?:in|on|at|by|from(?! \S+(?: \S+)? to\b)) (?=[*\"“]?[A-Z\d])")
_WHEN = lazy_pattern(r"(?<=\w)\s+(?:in|on|during|after|before|around|between|for|at)\s.*\Z")
_DESCRIBES = lazy_pattern(r"(?:the|an?|not|no longer|that|also|often|known|called|very|so|too|correct|right)\b")


def _is_name(subject: str) -> bool:
    return subject.startswith(("$", "\\(", '"', "“", "*")) or (
        len(subject.split()) <= 4
        and subject[:1].isupper()
        and not re.match(r"(?:The(?! [A-Z])|A|An|It|This|That|There|So|He|She|We|They|You|I)\b", subject)
    )


def _is_inside(sentence: str, at: int) -> bool:
    """Whether a place lies inside a formula or a bracket."""
    before = sentence[:at]
    return (
        before.count("$") % 2 == 1
        or before.count('"') % 2 == 1
        or any(before.count(opens) > before.count(closes) for opens, closes in (("\\(", "\\)"), "()", "“”", "«»"))
    )


def end_of_opening(sentence: str) -> int:
    """Where a sentence begins in earnest: after "so", "in total", "according to the passage"."""
    opening = _OPENS.match(sentence)
    end = opening.end() if opening else 0
    setting = _SETTING.match(sentence, end)
    return setting.end() if setting else end


_SETTING = lazy_pattern(
    r"(?:[a-z]+ing\b(?=[^,.\n]{1,80},\s+we)|according to|based on|of|among|out of|since|because|when|in|after|from"
    r"|for|at|on|by|with|given|as|during"
    r"|if)\s[^,.\n]{1,80},\s+(?=(?:the"
    r"|an?|it|he|she|they|there|we"
    r"|you|this|that|[A-Z])\b)",
    re.IGNORECASE,
)
_CONCLUDING = (
    r"so|therefore|thus|hence|consequently|finally|overall|in total|in conclusion|in summary|in short|to sum up|altogether"
    r"|as a result|this means(?: that)?|which means(?: that)?|it follows that|which leaves|that leaves|this leaves"
    r"|conclusion|result"
    r"|daher|also|somit|folglich|insgesamt|donc|ainsi|au total|por lo tanto|así que|en total|portanto|logo|no total|quindi"
    r"|dunque|in totale|следовательно|значит|итак|таким образом|因此|所以|よって|したがって|따라서|إذن|अतः|इसलिए"
)
CONCLUDES = lazy_pattern(rf"[^\w$\\]*(?:{_CONCLUDING})(?!\w)", re.IGNORECASE)
_OPENS = lazy_pattern(
    rf"(?:[^\w$\\]*(?:{_CONCLUDING}|and|then|we (?:conclude|find|see)(?: that)?"
    r"|(?:if I (?:remember|recall)(?: \w+)?|I (?:think|believe|guess|suppose)|as far as I (?:know|remember"
    r"|recall)|to my knowledge"
    r"|ich (?:glaube|denke|meine)|je (?:crois|pense)|creo|acho|credo|penso)(?=,| that| que| che| dass"
    r"| it\b)(?: that| que| che|, dass)?"
    rf"|in this case)(?!\w)[\s,:，]*){{0,3}}",
    re.IGNORECASE,
)
_SUBJECT = lazy_pattern(
    r"(?:the|an?|our|my|his|her|their|its|your|there|it|this|that|these|those|we|he|she|they|you|each|every|one"
    r"|both|all|in|after|at"
    r"|der|die|das|es|eine?|les?|la|l'|il|elle|el|los|las|os?|as|i|gli|lo|[A-ZÀ-ÞА-ЯЁ][\w'-]*|[a-z](?= equals ))(?![\w-])|\$"
    r"|\\\(|[\"“](?=[^\"“”]{1,60}[\"”] \w)",
)
_VERB = lazy_pattern(
    r"(?<=\s)(?:(?:takes|took) place(?: in| on| at)?|(?:is|are|was|were) left with|is|are|was|were|will be|would be"
    r"|must be|should be|(?:has|have|had) to be|equals?|has|have"
    r"|had|makes?|made|gets?|got|needs?|costs?"
    r"|earn(?:s|ed)?|pays?|paid|takes?|took|weighs?|measures?|contains?|becomes?|gives?|gave|leaves?|comes? (?:out )?to"
    r"|amounts? to|totals"
    r"|works? out (?:to|at)|turns? out to be|(?:ends?|ended|winds?) up (?:with|in|at|on|being)|I count|sold"
    r"|bought|spent|ate|ran|walked|read|received|remain|lives? in"
    r"|stands? for|sounds? like|belongs? to(?: the (?:category|class|genre|topic))?|refers? to|comes? from|arrives? (?:at|in|on)"
    r"|(?:starts?|begins?|ends?|opens?|closes?)(?: (?:at|in|on))?"
    r"|falls? on(?: an?)?|lasts?|died (?:in|of|on)|means|express(?:es|ed)|lies (?:in|on|at)|happened (?:in|on)"
    r"|translates? (?:to|as)|corresponds? to|calls? for|requires?|speaks?"
    r"|heißt(?! das)|hieß|heißen|si chiama|s['’]appelle|se llama|se chama|ist|sind"
    r"|(?<!the )(?<!world )(?<!civil )(?<!cold )war|waren|wurde|beträgt|lautet|kostet|est|sont|était|fut"
    r"|vaut|coûte|es|son|(?<!the )(?<!ian )era|fue|cuesta|é|são|foi|custa|è|sono|fu"
    r"|costa|равн[оаы]|равен|был[аои]?|является|says?|reads|shows|displays|aired|fell on|fiel am)"
    r"(?:\s+(?:therefore|thus|then|exactly|now|also|equal to|given by|called|known as|named(?: after)?|donc|also|actually"
    r"|indeed))?[\s:]+(?=\S)"
    r"|\s*(?:=|≈)\s*|\s*(?:是|为|は)\s*",
    re.IGNORECASE,
)


# --- figures ---------------------------------------------------------------------------------------------------------


def take_result(answer: str) -> str:
    """What a calculation comes to: 7 * 8 = 56 is 56; x = 5 says what x is, and stays."""
    working, equals, _ = answer.partition("=")
    return answer.rpartition("=")[2].strip() if equals and _WORKING.fullmatch(working.strip()) else answer


_WORKING = lazy_pattern(
    r"[\d\s+\-−*/×÷·^().,%$€£]*[+\-−*/×÷·^][\d\s+\-−*/×÷·^().,%$€£]*|[^\W\d_]{3,}(?: [^\W\d_]+){0,4}"
    r"|(?:\\[a-zA-Z]+|[\d\s+\-−*/×÷·^().,%${}!])*\\[a-zA-Z]+(?:\\[a-zA-Z]+|[\d\s+\-−*/×÷·^().,%${}!])*"
)


def cut_after_quantity(said: str) -> str:
    """A figure and its unit without where, when and than what: 14 sheep at the market, 18 stickers left."""
    found = _QUANTITY_FIRST.match(said)
    return found.group() if found else said


_QUANTITY_FIRST = lazy_pattern(
    r"\d{1,2}(?::\d\d)?\s?[ap]\.?m\.?(?=\s(?:in|on|at)\s)|\d{1,2}:\d\d(?=\s(?:in(?! the (?:morning|afternoon"
    r"|evening)\b)|on|at)\s)"
    r"|[$€£]?\d[\d,.]*(?:\s(?!(?:and|or|to|out|am|pm)\b)(?:°[CF]|[^\W\d_]+[²³]?)){1,3}?(?=\s(?:at|in|on|for|than|after|before|from|left|remaining"
    r"|altogether|to|with|when|if|by|during|over|each|high|tall|wide|deep|long|away)\b)"
    r"|[$€£]?\d[\d,.]*(?=\s(?:left|remaining|altogether|in total|in all)\b)|\d+/\d+(?= of (?:the|a|an|all|his|her|their|its)\b)"
    r"|[$€£]\d[\d,.]*(?=\s(?:after|in|for|at|on|by|left)\b)"
    r"|\d{1,4} (?:BCE?|AD|CE)(?=,? (?:on|in|at|by) )"
)
