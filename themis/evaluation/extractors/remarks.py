"""What a reply says around its answer: openings, offers, questions, checks, hints, sources; where its sentences end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from themis.core.patterns import lazy_pattern

# Remarks stand at the end, and few of them.
_LOOKED_AT = 20_000
_MOST_REMARKS = 12


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each line at least one; the dot of an abbreviation or an initial ends none.

    >>> split_sentences("It was Dr. J. R. Novak. She left at 5 p.m. on Monday.")
    ['It was Dr. J. R. Novak.', 'She left at 5 p.m. on Monday.']
    """
    return [text[start:end].strip() for start, end in _spans(text) if text[start:end].strip()]


def drop_remarks(text: str) -> str:
    """The text without the offers, questions, checks, hints and sources that it ends with, if anything is left.

    >>> drop_remarks("Lake Superior. Do you want to know how deep it is?")
    'Lake Superior.'
    """
    kept = len(text)
    spans = [span for span in _spans(text) if text[span[0] : span[1]].strip()]
    for start, _ in reversed(spans[1:][-_MOST_REMARKS:]):
        if not _is_remark(text[start:kept].strip()):
            break
        kept = start
    if paragraph := _BRACKETED_PARAGRAPH.search(text[:kept]):
        kept = paragraph.start()
    headings = [found for found in _REMARK_HEADING.finditer(text[:kept]) if text[: found.start()].strip()]
    kept = headings[0].start() if headings else kept
    return text[:kept].rstrip()


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = max(0, len(text) - _LOOKED_AT)
    for end in _SENTENCE_END.finditer(text, start):
        before = text[max(start, end.start() - 14) : end.start()]
        if before.endswith(".") and "\n" not in end.group() and _is_abbreviated(before[:-1], text[end.end() :][:12]):
            continue
        yield start, end.end()
        start = end.end()
    yield start, len(text)


_SENTENCE_END = lazy_pattern(r"(?<=[.!?])[*_\"'”)\]$]{0,4}\s+(?=\S)|\n+|(?<=[。！？।])(?=.)")
_ALWAYS_ABBREVIATED = lazy_pattern(
    r"(?:^|[\s(*_\"'“])(?:St|Mt|Mr|Mrs|Ms|Mx|Dr|Prof|vs|Ft|Lt|Col|Gen|Sen|Rep|Rev|Gov|Capt|Sgt|Maj|Hon|Pres|approx|ca|cf"
    r"|Fig|Eq|Sec|Vol|Dept|e\.g|i\.e|z\.B|d\.h|Nr|Sra?|Mme|Mlle|[A-Z]|(?:[A-Z]\.\s?)+[A-Z])$"
)
# These may stand last in a sentence as well: a capital after them begins the next.
_PERHAPS_ABBREVIATED = lazy_pattern(r"(?:^|[\s(*_\"'“\d])(?:No|Jr|Sr|Inc|Ltd|Co|etc|Ave|Op|[ap]\.m)$", re.IGNORECASE)
_NEXT_BEGINS = lazy_pattern(
    r"[*_\"'“(]{0,3}(?:The|It|This|That|He|She|They|We|You|I|There|So|In|At|Would|Do|Let|If|A|An|And|But|Is|Are)\b"
)
# "vitamin C. It", "plan B. So": a letter that ends a sentence.
_ONE_LETTER = lazy_pattern(r"(?<![.\w])[A-Z]$")
# "am 9. November 1989"
_ORDINAL = lazy_pattern(
    r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|Platz|Klasse|Stock|Runde)"
)


def _is_abbreviated(before: str, after: str) -> bool:
    if _ALWAYS_ABBREVIATED.search(before):
        return not (_ONE_LETTER.search(before) and (_NEXT_BEGINS.match(after) or not after[:1].isupper()))
    if before[-1:].isdecimal() and _ORDINAL.match(after):
        return re.search(r"(?<![\d.,])\d{1,2}$", before) is not None
    return _PERHAPS_ABBREVIATED.search(before) is not None and not after[:1].isupper()


def _is_remark(sentence: str) -> bool:
    if sentence.endswith(("?", "？", "?)", "?*", "?_")) or _BRACKETED.fullmatch(sentence):
        return not _QUOTED_LAST.search(sentence)
    return _REMARK.match(sentence) is not None or _FOOTNOTE.match(sentence) is not None


_BRACKETED = lazy_pattern(r"[*_]{0,2}[(\[（](?![\[(])[^()\[\]\n]{12,}[)\]）][*_]{0,2}[.!]?")
_FOOTNOTE = lazy_pattern(r"\[\d{1,2}\]:?\s+\w|[¹²³†‡]\s?\w|\*\s?As of\b|\\\*\s?\w")
_BRACKETED_PARAGRAPH = lazy_pattern(
    r"(?<=\S)\s*\n\s*\n[*_]{0,2}\((?=[A-Z])[^()\n]{12,}(?:\([^()\n]*\)[^()\n]*)*\)[*_]{0,2}\s*\Z"
)
# A title, or words that are quoted, may end in a question mark.
_QUOTED_LAST = lazy_pattern(r"[\"“«][^\"“”«»\n]{1,80}\?[\"”»]|\*[A-Z][^*\n]{1,80}\?\*\Z")
_OPENS = r"[^\w$\\]*"
_REMARK = lazy_pattern(
    _OPENS + r"(?:(?:just )?let me know|feel free|(?:i )?hope (?:this|that|it)"
    r"|happy to (?:help|explain|show)|i(?:'d| would|['’]ll| will)? be happy"
    r"|i can (?:also|show|explain|give|walk|split|list|provide)|if you(?:['’]d| would|['’]re| are)? (?:like|want"
    r"|need|have|prefer|wish|interested|curious|think)"
    r"|(?:now )?try (?:it )?(?:yourself|with)|should you|in case you|don['’]t hesitate|good luck|enjoy|cheers"
    r"|you['’]re welcome|have a (?:nice|great|good)"
    r"|thanks|thank you|best(?: regards)?,|see you"
    r"|(?:please )?(?:note|remember|be aware|keep in mind|bear in mind|mind)\b(?! the answer)|(?:a "
    r"|one )?(?:quick |small |side )?(?:note|remark|hint|tip|trick|reminder)\b"
    r"|fun fact|did you know|by the way|btw\b|incidentally|interestingly|as (?:a|an) (?:side note|aside|bonus)|bonus"
    r"|(?:for|by) comparison|in comparison|some (?:more )?background|a few (?:practical |more )?(?:hints|tips"
    r"|notes)|don['’]t (?:forget|confuse|fall)|be careful|careful\b|watch out|beware"
    r"|i(?:['’]m| am) not a (?:doctor|lawyer)|as a (?:general|safety|side|practical) (?:rule|recommendation|note|tip)"
    r"|(?:yes|great|perfect|correct|right|good)\b[,!.]?(?: (?:that|it|this|everything|the))?[^.\n]{0,40}(?:works"
    r"|match\w*|right|correct|checks?|holds|fits|agrees?)\b"
    r"|c['’]est bien|stimmt|es stimmt|das passt|todo correcto"
    r"|p\.?s\.?\b|disclaimer|warning|caution|important\W{0,3}:|caveat"
    r"|(?:sources?|references?|citations?|evidence|confidence|certainty|difficulty|further reading|see also"
    r"|related)\b[^\w\n]{0,4}[:：(]"
    r"|(?:quick |sanity |double[- ])?check(?:ing)?\b[^\w\n]{0,4}[:：]|verif(?:ication|ying|y)\b[^\n]{0,30}[:：]|double[- ]check"
    r"|for (?:reference|context|comparison|example|instance)\b|the same (?:approach|method|formula|idea) "
    r"|übrigens|hinweis|probe\b|quelle|anmerkung|remarque|vérif|source\s?[:：]|nota\s?[:：]|fuente|comprob|avísame"
    r"|espero que|j['’]espère"
    r"|n['’]hésite|ich hoffe|falls du|si (?:tienes|necesitas|quieres)|se (?:quiser|precisar)|verifica\s?[:：]"
    r"|проверка|кстати|источник|примечание"
    r"|注[:：意]|来源|验证|希望|如果你|ちなみに)",
    re.IGNORECASE,
)
# What a heading or a label sets apart to the end of the reply.
_REMARK_HEADING = lazy_pattern(
    r"^[ \t]*(?:#{1,6}[ \t]+|[*_]{2})(?:why(?: this works)?|notes?|sources?|references?|remarks?|verification"
    r"|check|fun fact|see also"
    r"|further reading|additional (?:notes|information|context))\W{0,6}$",
    re.IGNORECASE | re.MULTILINE,
)
# A sentence that begins like this says nothing of the answer.
FLUFF = lazy_pattern(
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
