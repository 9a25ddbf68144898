"""Answers that emphasis gives away: what alone is set in bold, or as code."""

from __future__ import annotations

import re

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.announcements import NEGATED, trim_answer
from themis.evaluation.extractors.labels import read_label
from themis.evaluation.extractors.predicates import CONCLUDES, cut_after_quantity, find_predicate, take_result
from themis.evaluation.extractors.remarks import FLUFF, split_sentences

_MOST_WORDS = 8
_LOOKED_AT = 20_000

EMPHASISED = lazy_pattern(r"\*\*([^*\n]{1,80})\*\*|\$\$([^$]{1,200})\$\$")


def find_emphasised(clause: str) -> str | None:
    """What alone is set in bold in a sentence, with the unit that follows a figure: **3.5** litres."""
    found = list(EMPHASISED.finditer(clause))
    if len(found) != 1:
        return None
    said = take_result(trim_answer(found[0][1] or found[0][2]))
    unit = _UNIT_AFTER.match(clause, found[0].end()) if re.fullmatch(r"\d[\d.,]*", said) else None
    return (said + " " + unit[1] if unit else said) or None


# Of measures; what is counted was asked for: **50** states.
_UNIT_AFTER = lazy_pattern(
    r"\s((?:(?:square|cubic) )?(?:(?:kilo|centi|milli|deci)?(?:met(?:er|re)|gram(?:me)?|lit(?:er|re)|watt|joule)"
    r"|mile|yard|inch|foot|feet|ton(?:ne)?"
    r"|pound|ounce|gallon|cup|second|minute|hour|day|week|month|year|decade|dollar|cent|euro|percent|degree|point|unit|volt|amp|byte"
    r"|apple|coin|euro|stunde|tag|minute|jahr|meter|liter|heure|jour|mètre|litre|hora|día|metro|litro|euros?)(?:e?[sn])?"
    r"|km|cm|mm|m|kg|g|mg|ml|l|km/h|mph|°[CF]|kWh|USD|EUR)(?:[²³]|/\w+)?(?!\w)",
    re.IGNORECASE,
)


def find_bold(text: str) -> str | None:
    """The only words that a text sets in bold within a sentence, apart from headings, labels and the heads of paragraphs.

    >>> find_bold("The fastest one is **the cheetah**, at 120 km/h. A pronghorn reaches 88 km/h.")
    'the cheetah'
    """
    sentences = [one for one in split_sentences(text[-_LOOKED_AT:]) if "**" in one and not _IN_A_LIST.match(one)]
    inside = [one for one in sentences if not _HEADING.fullmatch(one)]
    leading = [one for one in inside if one.startswith("**") and not _WHOLE.fullmatch(one)]
    if len(leading) > 1:
        inside = [one for one in inside if one not in leading]
    candidates = [
        one
        for one in inside
        if not NEGATED.search(_NOT_TO.sub("", one.partition("**")[0])) and not one.endswith(("?", ":"))
    ]
    bold = {_spelled(span) for one in candidates for span in _BOLD.findall(one)}
    if len(bold) != 1 or not candidates or _is_label(candidates[0]):
        return None
    if whole := _WHOLE.fullmatch(candidates[-1]):
        return _of_whole(whole[1])
    said = find_emphasised(candidates[-1])
    return said if said and len(said.split()) <= _MOST_WORDS else None


def _of_whole(sentence: str) -> str | None:
    """Of a sentence that is bold from end to end: what it says of its subject."""
    if sentence.endswith(":") or FLUFF.match(sentence):
        return None
    if labelled := read_label(sentence, alone=False):
        return labelled
    said = find_predicate(trim_answer(sentence))
    return (cut_after_quantity(trim_answer(said)) or None) if said else None


# "The right not to testify is guaranteed by **the Fifth Amendment**"
_NOT_TO = lazy_pattern(r"\bnot (?:to|only|even)\b", re.IGNORECASE)
_BOLD = lazy_pattern(r"\*\*([^*\n]{1,120})\*\*")
_WHOLE = lazy_pattern(r"[*_>\s]{0,4}\*\*([^*\n]{1,160})\*\*[.!]?")
# A line in bold that heads what follows it, or a label.
_HEADING = lazy_pattern(r"[#>\s]*\*\*[^*\n.!?]{1,80}\*\*:?\s*|#.*|.*\*\*[^*\n]{1,60}(?::\*\*|\*\*\s?:).*", re.DOTALL)
_IN_A_LIST = lazy_pattern(r"\s*(?:[-•+]|\*(?!\*)|\d{1,2}[.)]|\|)\s")


def _spelled(bold: str) -> str:
    return trim_answer(bold).casefold()


def _is_label(sentence: str) -> bool:
    """Whether the bold words only head a sentence: "**Note** that", "**Step 1** is"."""
    return (
        re.match(
            r"\*\*(?:note|step|part|case|important|tip|warning|the answer|solution|example)\b", sentence, re.IGNORECASE
        )
        is not None
    )


# --- code -------------------------------------------------------------------------------------------------------------

_USES = lazy_pattern(
    r"(?:you (?:can|could|should|may|need to|have to|would|might)|to [^.\n`]{3,80}, (?:you can )?|just|simply|try|please)?\s*"
    r"(?:(?:it|this|that|the \w+) (?:prints|outputs|returns|yields|shows|evaluates to)|use|run|type|enter|call"
    r"|execute|write|press|try|set|add|pass)\b[^`\n]{0,60}`(?P<said>[^`\n]{1,200})`(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)


_CODE_LAST = lazy_pattern(
    r"[^`\n]{3,120}\b(?:with|via|using|by|is|are|be|called|named|run|use|command|function|method|operator|raises?|throws?|returns?|prints?"
    r"|outputs?|displays?|yields?)\s(?:an? |the )?`(?P<said>[^`\n]{1,200})`(?P<rest>[.!]?)",
    re.IGNORECASE,
)


def find_code(text: str) -> str | None:
    """The command or expression that a text tells to use, as it stands.

    >>> find_code("You can use `^[0-9]+$` to match digits.")
    '^[0-9]+$'
    """
    sentences = split_sentences(text)
    first = next((one for one in sentences if not FLUFF.match(one) or one.lower().startswith("to ")), "")
    found = _USES.match(first) or _CODE_LAST.fullmatch(first)
    if not found or "`" in found["rest"] or any(CONCLUDES.match(one) for one in sentences):
        return None
    return found["said"].strip()
