"""Answers that their place or a colon sets apart: `Capital: Rabat`, "One is left: the otter", a last line of its own."""

from __future__ import annotations

import re

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.announcements import NEGATED, trim_answer
from themis.evaluation.extractors.predicates import CONCLUDES, find_predicate, take_result
from themis.evaluation.extractors.remarks import FLUFF, split_sentences
from themis.evaluation.extractors.text import last_of

_MOST_WORDS = 12  # of an answer after a colon
_LINE_WORDS = 6  # of one on a line of its own
_LINE = 1_000


def find_set_off(text: str) -> str | None:
    """The answer after the last colon, in the block that a line introduces, or on a last line of its own; else None.

    >>> find_set_off("Only two rivers flow north: the Nile and the Yenisei.")
    'the Nile and the Yenisei'
    """
    return _find_introduced(text) or _find_after_colon(text) or _find_last_line(text)


# --- blocks -----------------------------------------------------------------------------------------------------------

_INTRODUCED = lazy_pattern(
    r"^(?P<intro>[^\n]{0,300}[:：]|(?:#{1,6}[ \t]|\*\*)[^*\n]{0,40}\b"
    r"(?:final|answer|response|result|conclusion|output|verdict|reply|solution|decision|prediction)\b[^*\n]{0,20})[*_ \t]*\n+"
    r"(?:(?P<fence>```|~~~)[a-z]*\n(?P<inside>(?:(?!```|~~~)[^\n]*\n){1,6}?)[ \t]*(?P=fence)"
    r"|[ \t]*>[ \t]*(?P<quoted>[^\n]+)|[ \t]*(?P<line>[^\s#|>`\\$\-*•\d][^\n]*|\*\*[^*\n]+\*\*|\d[^\n]*))(?P<rest>[^\0]*)\Z",
    re.MULTILINE | re.IGNORECASE,
)


def find_words(text: str) -> str | None:
    """A sentence or phrase as it stands, where a line says that it follows: a translation, a correction; else None.

    >>> find_words("In French, you would say:\\n\\n**Où est la gare ?**")
    'Où est la gare ?'
    """
    introduced = (_INTRODUCED.match(text, intro.start()) for intro in _INTRODUCES_WORDS.finditer(text))
    found = last_of(one for one in introduced if one and one["line"])
    if not found or len(found["line"].split()) > 3 * _MOST_WORDS:
        return None
    said = found["line"].strip()
    return said.strip('*_"“” ') if not found["rest"].strip() or _WHOLLY_BOLD.fullmatch(said) else None


def _find_introduced(text: str) -> str | None:
    """What stands alone under the last line that ends in a colon; an explanation may follow where that line says "is"."""
    found = None
    for place in re.finditer(r"^(?:[^\n]{0,300}[:：][*_ \t]*|(?:#{1,6}[ \t]|\*\*)[^\n]{2,60})$", text, re.MULTILINE):
        found = _INTRODUCED.match(text, place.start()) or found
    if not found or (FLUFF.match(found["intro"]) and not _HERE_IS.match(found["intro"]) and not found["inside"]):
        return None
    said = (found["inside"] or found["quoted"] or found["line"]).strip()
    if found["quoted"] and not found["rest"].strip():
        return said.strip("*_ ").removesuffix(".")
    explained = found["rest"].strip() and not (found["inside"] and text.count(found["fence"]) == 2)
    if explained or NEGATED.search(found["intro"]) or (not found["inside"] and not _is_answer(said)):
        return None
    if found["inside"]:
        return "\n".join(line.rstrip() for line in said.split("\n")) if len(said.split()) <= 3 * _MOST_WORDS else None
    return _trim(said)


# What is introduced is a sentence or a phrase, which keeps its marks.
_INTRODUCES_WORDS = lazy_pattern(
    r"^(?=[^\n]*\b(?:sentence|translation|paraphrase|rewrite|rewritten|translates?|translated|(?:corrected"
    r"|improved) version|you(?:['’]d| would| can)? say"
    r"|proverb|slogan|motto|correction)\b)[^\n]{0,200}[:：][*_ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_WHOLLY_BOLD = lazy_pattern(r"\*\*[^*\n]+\*\*")
_HERE_IS = lazy_pattern(r"\W*here(?: is|['’]s| are) (?:the|your|what|an?|one)\b", re.IGNORECASE)

# --- colons -----------------------------------------------------------------------------------------------------------

_COLON = lazy_pattern(
    r"[>\s\U0001f000-\U0001faff✅✔\ufe0f]*(?:[-*•][ \t]+)?(?P<mark>[*_]{0,3})"
    r"(?P<label>[\"“(]?[^\W\d_][^:：\n]{0,200}?|\d{1,2}[a-z]{2} [^:：\n]{1,60}?)"
    r"[ \u00a0]?(?P<closed>[*_]{0,3})[:：](?P<end>[*_]{0,3})(?:[ \u00a0\t]+|(?<=：))(?P<said>\S[^\n]*)"
)
# What has a verb is a clause; what has none may be the name of what is given.
_FINITE = lazy_pattern(
    r"\b(?:is|are|was|were|has|have|had|do|does|did|can|could|will|would|should|must|may|might|isn['’]t|wasn['’]t|it['’]s|that['’]s"
    r"|ist|sind|war|wird|hat|est|sont|était|a été|es|son|era|fue|é|são|foi|è|sono|hay|il y a)\b",
    re.IGNORECASE,
)
_PRONOUN = lazy_pattern(
    r"(?:it|he|she|they|we|you|i|this|that|these|those|there|because|since|if|when|as|so|but|first|let|not|no)\b(?!\W*\Z)",
    re.IGNORECASE,
)
_NO_LABEL = lazy_pattern(
    r"\W*(?:step|case|clue|option|part|method|approach|reason|reasoning|explanation|note|hint|example|check|question|q|given|proof|think"
    r"|thought|analysis|context|passage|premise|input|assumption|warning|source|confidence|https?|scene|chapter"
    r"|schritt|étape|paso|erklärung|begründung|frage)\b",
    re.IGNORECASE,
)


def _find_after_colon(text: str) -> str | None:
    sentences = split_sentences(text)
    return read_label(sentences[-1], alone=len(sentences) == 1) if sentences and len(sentences[-1]) <= _LINE else None


def read_label(sentence: str, *, alone: bool) -> str | None:
    """What stands after the colon of a sentence, where it is an answer and not a clause; else None.

    Args:
        sentence: One sentence or line.
        alone: Whether the reply says nothing else, and so may be a name with a colon in it.

    >>> read_label("Category: Billing", alone=True)
    'Billing'
    """
    found = _COLON.fullmatch(sentence)
    if not found or _NO_LABEL.match(found["label"]) or _is_title(found, alone=alone):
        return None
    label, said = found["label"].strip(), found["said"]
    if (FLUFF.match(label) and not _HERE_IS.match(label)) or NEGATED.search(label) or "**" in label:
        return None
    if found["mark"] and not (found["closed"] or found["end"]):
        said = said.removesuffix(".").removesuffix(found["mark"])
    if quoted := _QUOTED.fullmatch(said):
        return quoted[1]
    if _OF_A_SENTENCE.search(label) and len(said.split()) <= 3 * _MOST_WORDS:
        return said.strip("*_ ").removesuffix(".")
    if (before := find_predicate(label)) and re.search(r"\d", before) and "following" not in label:
        return None  # "The shipping took 2 days: sent on Monday, delivered on Wednesday"
    if not _is_answer(said) or (CONCLUDES.match(label) and len(label.split()) > 3):
        return None
    return _trim(said)


_OF_A_SENTENCE = lazy_pattern(
    r"\b(?:sentence|translation|paraphrase|rewrite|rewritten|quote|message|motto|slogan)\s*\Z", re.IGNORECASE
)
_QUOTED = lazy_pattern(r"[*_]{0,3}[\"“«„]([^\"“”«»„\n]{1,200}?)\.?[\"”»“][.!]?[*_]{0,3}[.!]?")


def _is_title(found: re.Match[str], *, alone: bool) -> bool:
    """Whether the colon is part of a name: "Rogue One: A Star Wars Story"; a label in bold is none."""
    if found["mark"] or not alone:
        return False
    words = [word for word in found["label"].split() if len(word) > 3 or word[0].isupper()]
    return len(words) > 1 and all(word[0].isupper() for word in words) and found["said"][:1].isupper()


def _is_answer(said: str) -> bool:
    """Whether words are a name, a figure or a list, and no clause."""
    trimmed = trim_answer(said)
    if not trimmed or len(trimmed.split()) > _MOST_WORDS or said.rstrip().endswith(("?", ":")):
        return False
    if trimmed.count("(") != trimmed.count(")") or re.search(r"[.!?]\s+[A-Z]", _INITIALS.sub("", said)):
        return False
    return not (_PRONOUN.match(trimmed) or (_FINITE.search(trimmed) and not _is_capitalised(trimmed)))


_INITIALS = lazy_pattern(r"\b(?:[A-Z]|Dr|Mrs?|Ms|St|Prof|Jr|Sr|Mt)\.\s")


def _is_capitalised(said: str) -> bool:
    words = [word for word in said.split() if len(word) > 2]
    return len(words) > 1 and all(word[0].isupper() for word in words)


def _trim(said: str) -> str | None:
    trimmed = trim_answer(said)
    result = take_result(trimmed)
    return result or None


# --- the last line ----------------------------------------------------------------------------------------------------


def _find_last_line(text: str) -> str | None:
    """A few words as a paragraph of their own at the end, which are no sentence."""
    before, _, last = text.rstrip().rpartition("\n\n")
    last = re.sub(r"\A[ \t]*(?:>|→|➡️?|=>)[ \t]*", "", last.strip())
    if not before.strip() or "\n" in last or not last or re.match(r"[#|\-•`]|\d{1,2}[.)]\s|\*\s", last):
        return None
    if last.endswith(("!", "?", ":", ",", ";", "…", "...")) or FLUFF.match(last) or _NO_LABEL.match(last):
        return None
    if dashed := re.fullmatch(r"[^\n–—:]{3,80} [–—] (\S[^\n–—]{0,60})", last):
        last = dashed[1]
    words = len(last.split())
    if words > _LINE_WORDS or CONCLUDES.match(last) or find_predicate(last) or not _is_answer(last) or ":" in last:
        return None
    # A sentence of few words goes on with small letters; so does a text that was cut off.
    if words > 3 and not last.startswith("**") and not re.search(r"\d|[A-Z]\S* [A-Z]", last):
        return None
    return _trim(last)
