"""Reads what a reply lists, whether or not it keeps to the form that was asked for: JSON, bullets, a table, arrows, prose."""

from __future__ import annotations

import re
from collections.abc import Iterable

from themis.core.json_repair import parse_json
from themis.core.patterns import lazy_pattern
from themis.memory.scoring.numbers import to_figures
from themis.memory.scoring.words import fold


def parse_json_list(reply: str) -> list[object] | None:
    """The JSON list of a reply, also as the only list among the fields of an object; None where there is none.

    Of several lists the last counts if the reply corrects itself before it.

    >>> parse_json_list('["Ann", "Bo"]. Correction: Bo is wrong, so it is ["Ann"].')
    ['Ann']
    """
    value = _parse(_LISTS_BEFORE_CORRECTION.sub("", reply))
    if not isinstance(value, list | dict):
        value = _parse(reply)
    if not isinstance(value, list | dict) and "\\" in reply:
        # Written for a renderer of Markdown or LaTeX.
        value = _parse(_ESCAPED.sub(r"\1", reply))
    if isinstance(value, dict):
        lists = [content for content in value.values() if isinstance(content, list)]
        value = lists[0] if len(lists) == 1 else None
    return value if isinstance(value, list) else None


def parse_json_field(reply: str, field: str) -> object:
    """A field of the JSON object of a reply, whatever the case of its name; None where there is none."""
    value = _parse(reply)
    if not isinstance(value, dict):
        return None
    return next((content for name, content in value.items() if str(name).casefold() == field), None)


def parse_listing(reply: str) -> list[object] | None:
    """What a reply lists in any form in which each thing has a place of its own; None where it only speaks of things.

    >>> parse_listing("Here they are:\\n1. Ann (May)\\n2. Bo")
    ['Ann', 'Bo']
    """
    listed = parse_json_list(reply)
    if listed is not None:
        return listed
    if pairs := _parse_pairs(reply):
        return [name for pair in pairs for name in pair]
    text = reply[:_MOST_LETTERS]
    rows = [[cell.strip(" *_`") for cell in row.strip().strip("|").split("|")] for row in _ROW.findall(text)]
    if len(rows) > 1:
        return [
            row[0] if not row[0].isdigit() or len(row) == 1 else row[1] for row in rows[1:] if not _RULE.match(row[0])
        ]
    points = _POINT.findall(text)
    if len(points) > 1 or (points and len(text.split()) <= _FEW_WORDS):
        return [_strip_point(point) for point in points]
    text = _LABEL.sub("", text)
    for separator in (_ARROW, _COMMA):
        parts = [part.strip(" \t\n.\"'*`") for part in separator.split(text)]
        if len(parts) > 1 and all(0 < len(part.split()) <= _FEW_WORDS for part in parts):
            return [_ARTICLE.sub("", part) for part in parts]
    return None


def parse_counted(reply: str) -> list[object] | None:
    """What a reply lists with a number for each thing, as objects with `item` and `quantity`; None where it does not.

    >>> parse_counted("You need 2 lemons and a jar of honey.")
    [{'item': 'lemons', 'quantity': 2}, {'item': 'jar of honey', 'quantity': 1}]
    """
    listed = parse_json_list(reply)
    if listed is not None:
        return [_read_counted(one) or one if isinstance(one, str) else _unfold(one) for one in listed]
    if pairs := _parse_pairs(reply):
        return [_unfold(pair) for pair in pairs]
    if len(reply.split()) > _MOST_WORDS or "?" in reply:
        return None
    counted = [_read_counted(part) for part in _COUNTED_PARTS.split(reply[:_MOST_LETTERS])]
    found: list[object] = [one for one in counted if one]
    return found or None


def _parse_pairs(reply: str) -> list[dict[str, object]]:
    """The fields of a JSON object as objects of one field each, where they are things and no names of fields."""
    value = _parse(reply) if "{" in reply else None
    if not isinstance(value, dict) or len(value) < 2 or any(isinstance(content, list) for content in value.values()):
        return []
    return [] if _FIELD_NAMES & {str(name).casefold() for name in value} else [{str(k): v} for k, v in value.items()]


def _unfold(pair: object) -> object:
    """`{"lemon": 2}` and `{"lemon": {"quantity": 2}}` with their fields named."""
    if not isinstance(pair, dict) or len(pair) != 1 or _FIELD_NAMES & {str(name).casefold() for name in pair}:
        return pair
    item, content = next(iter(pair.items()))
    return {"item": item, "quantity": next(iter(content.values()), None) if isinstance(content, dict) else content}


def _read_counted(part: str) -> dict[str, object] | None:
    folded = to_figures(_ASIDE.sub("", part.strip()))
    if len(folded) > _LONGEST_PART:
        return None
    text = _ONE.sub(r"\1 1 ", folded)
    found = _COUNT_FIRST.search(text) or _COUNT_LAST.search(text)
    return {"item": found["item"].strip(), "quantity": int(found["count"])} if found else None


def _strip_point(point: str) -> str:
    """`**Ann** (May)`, `Ann: May` and `Ann – in May` name Ann."""
    return _ARTICLE.sub("", _REMARK.sub("", point.replace("**", "").replace("`", ""))).strip(" \"'_*.,")


def order_mentions(reply: str, phrases: Iterable[str]) -> list[str] | None:
    """The phrases in the order in which a reply in prose names them; None if one is missing or the order is told otherwise.

    >>> order_mentions("First the piano, then the hedge.", ["hedge", "piano"])
    ['piano', 'hedge']
    """
    text = fold(reply)
    places = {phrase: text.find(fold(phrase)) for phrase in phrases}
    if min(places.values(), default=-1) < 0 or "?" in text or _BACKWARDS.search(text):
        return None
    return sorted(places, key=places.__getitem__)


def _parse(reply: str) -> object:
    try:
        return parse_json(reply)
    except ValueError:
        return None


# Longer prose says more than what is listed.
_MOST_LETTERS, _MOST_WORDS, _FEW_WORDS = 4_000, 80, 6
# What is listed is named in fewer letters.
_LONGEST_PART = 300
_ESCAPED = lazy_pattern(r"\\([\[\]{}_\"])")
_LISTS_BEFORE_CORRECTION = lazy_pattern(
    r"\A[^\[\]]{0,2000}(?:\[[^\[\]]{0,2000}\][^\[\]]{0,1000}?){1,5}"
    r"\b(?:[Cc]orrect(?:ion|ed|ing)|[Aa]ctually|[Ss]orry|[Ww]ait|[Ss]cratch that|[Oo]r rather|[Ss]hould be"
    r"|the answer is|[Ff]inal)\b"
    r"(?=[^\[\]]{0,1000}\[)"
)
_ROW = lazy_pattern(r"^[ \t]*(\|.{1,300}\|)[ \t]*$", re.MULTILINE)
_RULE = lazy_pattern(r":?-+:?\Z")
_POINT = lazy_pattern(r"^[ \t]{0,10}(?:[-*•·–+]|\(?\d{1,3}[.):])[ \t]+(\S.{0,200})$", re.MULTILINE)
_LABEL = lazy_pattern(r"\A[A-Z][^:\n,]{0,40}:\s+")
_ARROW = lazy_pattern(r"\s*(?:→|->|=>|⇒|>|➔)\s*")
_COMMA = lazy_pattern(r"\s*(?:[,;\n]+(?:\s*and\b)?|\band\b|&)\s*")
_ARTICLE = lazy_pattern(r"\A(?:the|an?|my|your) ", re.IGNORECASE)
_REMARK = lazy_pattern(r"\s*(?:[(\[:;–—]|\s-\s|,\s).*\Z")
_COUNTED_PARTS = lazy_pattern(r"[,;\n]|(?<!\d)\.|\band\b|&|(?<=\|)\s*\n|•")
_ONE = lazy_pattern(r"(\A|.*[\s:(])(?:an?|one)\s(?=\w)")
_ASIDE = lazy_pattern(r"\s?\([^()\d]{1,40}\)")
_COUNT_FIRST = lazy_pattern(r"(?<![\w.-])(?P<count>\d{1,4})\s?(?:[x×]\s?)?\s?(?P<item>[^\W\d][\w' -]{2,60})\W*\Z")
_COUNT_LAST = lazy_pattern(
    r"(?P<item>[^\W\d][\w' -]{2,60}?)\W{0,4}(?:[:|=(–-]|\b[x×])\W{0,4}(?:[x×]\s?)?(?P<count>\d{1,4})\W*\Z"
)
_FIELD_NAMES = frozenset({
    "answer", "item", "items", "list", "name", "names", "order", "people", "quantity", "response", "result",
})  # fmt: skip
_BACKWARDS = lazy_pattern(
    r"\b(?:before|after(?! (?:that|this|which|it|them))|earlier than|later than|preceded|previous|followed|not|n't"
    r"|latest first|reverse|or|unsure"
    r"|either|between)\b|n't\b"
)
