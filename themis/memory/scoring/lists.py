"""Compares lists in JSON, and texts that should have been repeated: what is missing costs, what is added costs too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from themis.core.json_repair import parse_json
from themis.memory.actions import Grade
from themis.memory.scoring.numbers import parse_count
from themis.memory.scoring.words import find_phrases, join_words, mentions, shorten, split_words


def parse_json_list(reply: str) -> list[object] | None:
    """The JSON list of a reply, also as the only list among the fields of an object; None where there is none."""
    value = _parse(reply)
    if not isinstance(value, list | dict) and "\\" in reply:
        # Written for a renderer of Markdown or LaTeX.
        value = _parse(_ESCAPED.sub(r"\1", reply))
    if isinstance(value, dict):
        lists = [content for content in value.values() if isinstance(content, list)]
        value = lists[0] if len(lists) == 1 else None
    return value if isinstance(value, list) else None


_ESCAPED = re.compile(r"\\([\[\]{}_\"])")


def parse_json_field(reply: str, field: str) -> object:
    """A field of the JSON object of a reply, whatever the case of its name; None where there is none."""
    value = _parse(reply)
    if not isinstance(value, dict):
        return None
    return next((content for name, content in value.items() if str(name).casefold() == field), None)


def grade_members(reply: str, expected: Sequence[str]) -> Grade:
    """Right names divided by the longer of what was expected and what was answered, so that listing more costs.

    A name counts once. Order does not matter.
    """
    answered = parse_json_list(reply)
    if answered is None:
        return Grade(0.0, (f"no JSON list in: {shorten(reply)}",))
    names = [_read_name(element) for element in answered]
    open_names = {" ".join(split_words(name)): name for name in expected}
    unexpected = [name for name in names if open_names.pop(" ".join(split_words(name)), None) is None]
    hits = len(names) - len(unexpected)
    reasons = [f"{hits} of {len(expected)} are in the answer"]
    if open_names:
        reasons.append(f"missing: {_format_names(list(open_names.values()))}")
    if unexpected:
        reasons.append(f"not expected: {_format_names(unexpected)}")
    return Grade.share(hits, max(len(expected), len(names)), *reasons)


def grade_order(reply: str, expected: Sequence[str]) -> Grade:
    """Pairs in the right order minus pairs in the wrong one, as a share of all pairs: 0 for chance and below.

    An element that is missing or occurs twice, and any that is not expected, is in no right pair.
    """
    answered = parse_json_list(reply)
    if answered is None:
        return Grade(0.0, (f"no JSON list in: {shorten(reply)}",))
    keys = [_find_name(_read_name(element), expected) for element in answered[:201]]
    ranks = {key: keys.index(key) for key in keys if keys.count(key) == 1} if len(keys) <= 200 else {}
    wanted = [" ".join(split_words(name)) for name in expected]
    pairs = list(combinations(wanted, 2))
    signs = [_sign(ranks.get(first), ranks.get(second)) for first, second in pairs]
    surplus = len([key for key in keys if key not in wanted])
    right = signs.count(1)
    reason = f"{right} of {len(pairs)} pairs are in the right order" + (f", {surplus} not expected" if surplus else "")
    return Grade.share(right - signs.count(-1) - surplus, len(pairs), reason)


def _find_name(element: str, expected: Sequence[str]) -> str:
    """The expected name that an element means, be it with an article or as part of a sentence; else its own words."""
    named = find_phrases(element, expected) if len(element) < 200 else set()
    return " ".join(split_words(named.pop() if len(named) == 1 else element))


def _sign(first: int | None, second: int | None) -> int:
    if first is None or second is None:
        return 0
    return 1 if first < second else -1


def grade_quantities(reply: str, expected: Sequence[tuple[str, int]]) -> Grade:
    """A shopping list: a third for the items found, a third for their quantities, a third for nothing else on it.

    An item listed twice is something else the second time. Where more than half of the answer is something else, only
    the share that is not counts: listing the whole shop is no answer.
    """
    answered = parse_json_list(reply)
    if answered is None:
        return Grade(0.0, (f"no JSON list in: {shorten(reply)}",))
    open_items = {str(item): quantity for item, quantity in expected}
    found, counted, surplus = [], [], []
    for element in answered:
        name, quantity = _read_entry(element)
        if parse_count(quantity) == 0:
            continue
        # Honey is the jar of honey.
        item = next((item for item in open_items if name and mentions(name, item.split(" of ")[-1])), None)
        if item is None:
            surplus.append(name)
            continue
        found.append(item)
        if parse_count(quantity) == open_items.pop(item):
            counted.append(item)
    reasons = [f"{len(found)} of {len(expected)} items found, {len(counted)} in the right quantity"]
    if open_items:
        reasons.append(f"missing: {_format_names(list(open_items))}")
    if surplus:
        reasons.append(f"not expected: {_format_names(surplus)}")
    if not expected:
        return Grade.when(not surplus, *reasons)
    points = len(found) / len(expected) + len(counted) / len(expected) + (not surplus and bool(found))
    precision = len(found) / len(answered) if answered else 0.0
    return Grade.share(points * (precision if precision <= 0.5 else 1.0), 3, *reasons)


def _read_entry(element: object) -> tuple[str, object]:
    """Item and quantity of one line; anything else than an object is an item in no quantity."""
    if not isinstance(element, dict):
        return _read_name(element), None
    fields = {str(name).casefold(): content for name, content in element.items()}
    item = fields.get("item", fields.get("name"))
    return item if isinstance(item, str) else "", fields.get("quantity")


def _read_name(element: object) -> str:
    if isinstance(element, dict):
        element = next(iter(element.values())) if len(element) == 1 else element.get("name")
    # `Elena (May, then June)` names Elena.
    return re.sub(r"\s\([^()]{1,60}\)$", "", element) if isinstance(element, str) else ""


def _format_names(names: Sequence[str]) -> str:
    return ", ".join(repr(shorten(name, 40)) for name in names[:8]) + (" and more" if len(names) > 8 else "")


def _parse(reply: str) -> object:
    try:
        return parse_json(reply)
    except ValueError:
        return None


# --- texts to be repeated word for word -------------------------------------------------------------------------------

# A courteous lead-in around a passage is not part of it; more than this is.
_SURROUNDING_WORDS = 25
# Beyond this many times its length a reply is not a repetition; comparing it would only cost time.
_TOO_LONG = 6


def grade_passage(reply: str, passage: str) -> Grade:
    """1 for the passage word for word, falling to 0 where half of the words are wrong, missing or added."""
    brief = len(split_words(reply)) <= len(split_words(passage)) + _SURROUNDING_WORDS
    if brief and recites(reply, passage):
        return Grade(1.0, ("repeats the passage word for word",))
    alike = max(similarity(part, passage) for part in (_parts(reply) if brief else [reply]))
    return Grade.share(2 * alike - 1, 1, f"{alike:.0%} of the words agree with {shorten(passage, 60)!r}")


def recites(reply: str, passage: str) -> bool:
    """Whether the reply contains the passage: the same words in the same order, nothing between them."""
    return join_words(passage) in join_words(reply)


def measure_recall(reply: str, passage: str) -> float:
    """Which share of the passage's words occurs in the reply in the passage's order."""
    words, wanted = split_words(reply), split_words(passage)
    if not wanted:
        return 0.0
    return 1.0 if recites(reply, passage) else _count_common(words[: 100 * len(wanted)], wanted) / len(wanted)


def similarity(text: str, passage: str) -> float:
    """Words in common, in order, divided by the words of the longer of the two."""
    words, wanted = split_words(text), split_words(passage)
    longer = max(len(words), len(wanted))
    if not words or not wanted or len(words) > _TOO_LONG * len(wanted):
        return 0.0
    return _count_common(words, wanted) / longer


def _parts(reply: str) -> list[str]:
    """The reply, what it quotes, and what follows its first colon; each of the texts also without a last line of its own."""
    quoted = re.findall(r'["“]([^"“”]{20,20000})["”]', reply[:200_000])
    texts = [text for text in (reply, reply.rstrip().rpartition("\n")[0]) if text]
    rests = [rest for lead, _, rest in (text.partition(":") for text in texts) if rest and len(lead) <= 200]
    return [reply, *texts[1:], *quoted[:5], *rests]


def _count_common(words: Sequence[str], wanted: Sequence[str]) -> int:
    """The length of the longest common subsequence, by Hyyrö's bit-parallel rule: one integer operation per word."""
    places: dict[str, int] = {}
    for place, word in enumerate(wanted):
        places[word] = places.get(word, 0) | 1 << place
    everywhere = (1 << len(wanted)) - 1
    open_places = everywhere
    for word in words:
        matched = open_places & places.get(word, 0)
        open_places = ((open_places + matched) | (open_places - matched)) & everywhere
    return len(wanted) - open_places.bit_count()
