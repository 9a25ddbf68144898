"""Answers that nobody announces: the end of a conclusion, or a reply that is nothing but its answer."""

from __future__ import annotations

import re

from themis.evaluation.extractors.announcements import DECLINES, NOUNS, SUPPOSED, trim_answer

# An answer has few words; what has more is a sentence about something.
_ANSWER_WORDS = 8
_BARE_WORDS = 6
_LOOKED_AT = 20_000
_LINE = 1_000

_OPENS = re.compile(
    r"(?:[^\w$\\]*(?:so|therefore|thus|hence|consequently|finally|overall|in total|in conclusion|in summary|in short|to sum up|to summari[sz]e|in this case|altogether"
    r"|as a result"
    r"|and|then|this means(?: that)?|we (?:conclude|find|see)(?: that)?|which means(?: that)?|it follows that"
    r"|also|daher|also|somit"
    r"|donc|ainsi|por lo tanto|así que|portanto|logo|quindi|следовательно|значит|因此|所以)\b[\s,:]*){0,3}",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:the|a|an|our|my|his|her|their|its|your|there|it|this|that|these|those|we|he|she|they|you|each|every|one"
    r"|both|all|in|after|at"
    r"|der|die|das|es|ein|eine|le|la|les|l'|il|elle|el|los|las|o|a|os|as|i|gli|lo|il|[A-Z][a-z]+(?:'s)?)(?![\w-])",
)
_VERB = re.compile(
    r"\s(?:(?:is|are|was|were|will be|would be|must be|should be|equals?|has|have|had|makes?|made|gets?|got"
    r"|needs?|costs?|earns?|pays?"
    r"|takes?|weighs?|contains?|becomes?|gives?|comes? (?:out )?to|amounts? to|totals?|works? out (?:to|at)"
    r"|turns? out to be|ends? up with|ist|sind|beträgt|lautet|est|sont|vaut|es|son|é|são|è|sono|равно"
    r"|равна|равен)"
    r"(?:\s+(?:therefore|thus|then|exactly|now|also|equal to|given by|called|known as|named))?)[\s:]+(?=\S)"
    r"|\s*(?:=|≈)\s*|\s*(?:是|为|は)\s*",
    re.IGNORECASE,
)


def find_predicate(sentence: str) -> str | None:
    """What a sentence says of its subject: "The capital of France is Paris" says Paris; None where it is no sentence."""
    start = _OPENS.match(sentence)
    sentence = sentence[start.end() if start else 0 :]
    if not _SUBJECT.match(sentence) or len(sentence) > 500:
        return None
    verbs = list(_VERB.finditer(sentence))
    for verb in reversed(verbs):
        subject, said = sentence[: verb.start()].strip(), sentence[verb.end() :].strip()
        if not said or len(subject.split()) < 1 or _is_inside(sentence, verb.start()):
            continue
        if re.match(r"(?:the|a|an|not|no longer|that|also|often|known|called|very|so|too)\b", said) and _is_name(
            subject
        ):
            return subject  # Paris is the capital of France
        if len(said.split()) <= _ANSWER_WORDS and not re.match(r"(?:not|n't|to|in|at|that|because)\b", said):
            return said
    return None


def _is_name(subject: str) -> bool:
    return (
        len(subject.split()) <= 4
        and subject[:1].isupper()
        and not re.match(r"(?:The|A|An|It|This|That|There|So)\b", subject)
    )


def _is_inside(sentence: str, at: int) -> bool:
    """Whether a place lies inside a formula or a bracket."""
    before = sentence[:at]
    return (
        before.count("$") % 2 == 1 or before.count("\\(") > before.count("\\)") or before.count("(") > before.count(")")
    )


_FLUFF = re.compile(
    r"[^\w]*(?:let me|let us|let's|i hope|hope (?:this|that)|please|feel free|note|sure|great|good question|okay"
    r"|ok|hi|hello|thanks|thank"
    r"|certainly|of course|here|i will|i'll|i would|i need|we need|we will|to (?:find|solve|answer|determine"
    r"|get)|first|next|step|check"
    r"|candidates|could|would you|are you|do you|is there|what|why|how|which|if you|as an ai|i can|i am|i'm"
    r"|explanation|because|since"
    r"|reasoning|verification|both|now|there are|there is not|people|many|some|this (?:follows|is because)"
    r"|solution|given|consider"
    r"|suppose|assume|looking|thinking)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])[*_\"')\]$]{0,4}\s+(?=[^\s])|\n+|(?<=[。！？])")
_CONCLUDES = re.compile(
    r"[^\w]*(?:so|therefore|thus|hence|consequently|finally|overall|in total|in conclusion|in summary|in short"
    r"|to sum up|to summari[sz]e|altogether"
    r"|as a result|this means"
    r"|conclusion|result|daher|also|somit|donc|ainsi|por lo tanto|portanto|quindi|следовательно|因此|所以)\b",
    re.IGNORECASE,
)
_EMPHASISED = re.compile(r"\*\*([^*\n]{1,80})\*\*|\$\$([^$]{1,200})\$\$")


def find_conclusion(text: str) -> str | None:
    """What the last conclusion of a text says, or its only sentence; None where it concludes nothing."""
    if DECLINES.search(text[:_LOOKED_AT]):
        return None
    sentences = [one.strip()[:_LINE] for one in _SENTENCES.split(text[-_LOOKED_AT:]) if one and one.strip()]
    if sentences and not _is_finished(text):
        sentences.pop()
    concluding = [one for one in sentences if _CONCLUDES.match(one)]
    plain = [
        one for one in sentences if not _FLUFF.match(one) and not SUPPOSED.search(one) and not one.endswith(("?", ":"))
    ]
    if _begins_bare(text):
        plain = []
    for sentence in [*reversed(concluding), *(plain if len(plain) == 1 else plain[-1:])]:
        if answer := _concluded(sentence):
            return answer
    return None


def ends_open(text: str) -> bool:
    """Whether a text breaks off where its answer should follow: "Answer:", "so the answer is"."""
    return bool(
        re.search(
            rf"(?:{NOUNS})[^\n.]{{0,40}}(?:[:：=]|\bis|\bist|\best|\bes|是|は)[\s*_]*\Z", text[-200:], re.IGNORECASE
        )
    )


def _is_finished(text: str) -> bool:
    """Whether a text ends as sentences do; one that does not was cut off."""
    text = text.rstrip()
    return len(text.split()) <= _BARE_WORDS or not text[-1:].isalpha() or not text[-1:].islower()


def _concluded(sentence: str) -> str | None:
    sentence = re.sub(r"\A\*\*([^*]+)\*\*\Z", r"\1", sentence.strip())
    emphasised = _EMPHASISED.findall(sentence)
    if len(emphasised) == 1 and not sentence.startswith("**"):
        return trim_answer(emphasised[0][0] or emphasised[0][1]) or None
    trimmed = trim_answer(sentence.lstrip("#>-*• "))
    start = _OPENS.match(trimmed)
    said = find_predicate(trimmed) or find_predicate("The " + trimmed[start.end() if start else 0 :])
    if said is None and _CONCLUDES.match(trimmed) and (quantity := _QUANTITY.search(trimmed)):
        said = quantity.group()
    return (trim_answer(said) or None) if said else None


# At the end of a conclusion, a figure with its unit: "so she earned $10", "thus they walk 12 km a day".
_QUANTITY = re.compile(r"(?:[-−$€£¥]\s?)?\d[\d,.:/]*(?:\s?%|\s?°[CF]?|(?:\s+[^\W\d]+){1,3})?$")


_WHOLE_FENCE = re.compile(r"\A(?:```|~~~)\w*\n(.*?)\n?(?:```|~~~)\Z", re.DOTALL)
_VERDICT = re.compile(
    r"\W*(yes|no|true|false|ja|nein|oui|non|sí|sim|não|sì|да|нет)\b(?=\W*(?:$|\n|[,.;:!–—-]|because|since|it|the|this))",
    re.I,
)


def find_stated(text: str) -> str | None:
    """The answer of a reply that announces none: yes or no, what it concludes, or what it begins with; else None."""
    if labelled := _LETTER_A.match(text.strip()):
        text = text.strip()[labelled.end() :]
    verdict = _VERDICT.match(text.strip()[:_LINE])
    return verdict[1] if verdict else find_conclusion(text) or find_bare(text)


# The A of questions and answers; before a B it would be the first of several options.
_LETTER_A = re.compile(r"A:\s+(?=\S)(?![^\0]*\nB[:.)])")


def find_bare(text: str) -> str | None:
    """The answer of a reply that is nothing else, or that begins with it and explains it afterwards; else None."""
    text = text.strip()
    if fenced := _WHOLE_FENCE.match(text):
        text = fenced[1].strip()
    if verdict := _VERDICT.match(text[:_LINE]):
        return verdict[1]
    return trim_answer(_first_line(text)[:_LINE]) or None if _begins_bare(text) else None


def _first_line(text: str) -> str:
    text = text.strip()
    for opens, closes in (("$$", "$$"), ("\\[", "\\]")):
        if text.startswith(opens) and closes in text[2:]:
            return text[2 : text.index(closes, 2)]
    return text.partition("\n")[0]


def _begins_bare(text: str) -> bool:
    """Whether a reply begins with its answer: a few words that are no sentence, no heading and no greeting."""
    text = text.strip()
    line = _first_line(text)[:_LINE].strip()
    rest = text[len(line) :].strip()
    if not line or _FLUFF.match(line) or line.endswith((":", "?", "：")) or DECLINES.search(text[:_LOOKED_AT]):
        return False
    if rest and re.match(r"#|[-*•]\s|\d+[.)]\s|\||>|```", line):
        return False
    if re.match(r"\*\*[^*\n]{1,60}\*\*\s*(?:[–—,-]|$|is\b|because\b)", line):
        return True
    answer = trim_answer(line)
    words = len(answer.split())
    if not answer or words > _BARE_WORDS or find_predicate(answer):
        return False
    # What goes on without a sentence's end was cut off, and what goes on in the same line was no bare answer.
    return words < len(line.split()) - 1 or len(line.split()) <= _BARE_WORDS + 2
