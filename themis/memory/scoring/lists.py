"""Compares lists in JSON, and texts that should have been repeated: what is missing costs, what is added costs too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade
from themis.memory.scoring.claims import abstains
from themis.memory.scoring.languages import is_foreign
from themis.memory.scoring.listing import order_mentions, parse_counted, parse_json_list, parse_listing
from themis.memory.scoring.numbers import parse_count
from themis.memory.scoring.spelling import spell_like
from themis.memory.scoring.words import find_phrases, fold, join_words, mentions, remove_quotation, shorten, split_words


def grade_members(reply: str, expected: Sequence[str], among: Sequence[str] | None = None) -> Grade:
    """Right names divided by the longer of what was expected and what was answered, so that listing more costs.

    A name counts once. Order does not matter.

    Args:
        reply: What was answered.
        expected: The names that it should list.
        among: All names that there are, where a list in another form than JSON counts as well, and no verdict is given on a
            reply that names some without listing them.
    """
    reply = remove_quotation(reply)
    if among is not None:
        reply = spell_like(reply, among, *expected)
    if among is not None and parse_json_list(reply) is None:
        reply = _find_result(_CONSISTENT.sub("", reply), (*among, *expected))
    answered = parse_json_list(reply) if among is None else parse_listing(reply)
    if among is not None and (answered is None or not _lists_names(reply, answered, (*among, *expected))):
        return _weigh_names(reply, expected, among)
    if answered is None:
        return Grade(0.0, (f"no JSON list in: {shorten(reply)}",))
    if among is not None and _adds_more(reply, among, answered):
        return Grade.failure(f"it is not clear who is on this list: {shorten(reply)}")
    names = [_read_name(element) for element in answered]
    if among is not None and parse_json_list(reply) is None:
        # `It is Ann` names Ann.
        found = [find_phrases(name, (*among, *expected)) for name in names]
        names = [one.pop() if len(one) == 1 else name for name, one in zip(names, found, strict=True)]
    return _grade_names(names, expected)


def _find_result(reply: str, among: Sequence[str]) -> str:
    """The last line of a reply if it says what follows from a table or list of all, else the reply."""
    *before, last = reply.strip().splitlines() or [""]
    return last if before and _FOLLOWS.match(fold(last)) and find_phrases(last, among) else reply


_FOLLOWS = lazy_pattern(r"[\W_]{0,4}(?:so|therefore|thus|hence|result|answer|conclusion|that (?:leaves|means))\b")


def _lists_names(reply: str, answered: Sequence[object], among: Sequence[str]) -> bool:
    """Whether what is listed are names, each of them in a place of its own."""
    if not answered or parse_json_list(reply) is not None:
        return not answered or any(find_phrases(_read_name(element), among) for element in answered)
    found = [find_phrases(_read_name(element), among) for element in answered]
    plain = not any(_VERB.search(fold(_read_name(element))) for element in answered)
    return plain and all(len(names) == 1 for names in found)


def _grade_names(names: Sequence[str], expected: Sequence[str]) -> Grade:
    open_names = {_to_key(name): name for name in expected}
    # `Ann from Leeds` is Ann.
    keys = [key if (key := _to_key(name)) in open_names else _to_key(_ORIGIN.sub("", name)) for name in names]
    # So is Ann Holt, where she is known by her first name.
    wanted = set(open_names)
    keys = [_to_first_name(key, wanted) for key in keys]
    unexpected = [name for name, key in zip(names, keys, strict=True) if open_names.pop(key, None) is None]
    hits = len(names) - len(unexpected)
    reasons = [f"{hits} of {len(expected)} are in the answer"]
    if open_names:
        reasons.append(f"missing: {_format_names(list(open_names.values()))}")
    if unexpected:
        reasons.append(f"not expected: {_format_names(unexpected)}")
    return Grade.share(hits, max(len(expected), len(names)), *reasons)


def _to_first_name(key: str, wanted: set[str]) -> str:
    first, _, surname = key.partition(" ")
    return first if first in wanted and surname not in wanted and " " not in surname else key


def _weigh_names(reply: str, expected: Sequence[str], among: Sequence[str]) -> Grade:
    """The verdict on names in prose, where it says nothing else of them."""
    named = find_phrases(reply, {*among, *expected})
    if not named & set(expected):
        return Grade(0.0, (f"names none of {_format_names(expected)}: {shorten(reply)}",))
    if named <= set(expected) and not _HEDGED.search(fold(reply)):
        return _grade_names(sorted(named), expected)
    return Grade.failure(f"it is not clear whom this names: {shorten(reply)}")


def _adds_more(reply: str, among: Sequence[str], answered: Sequence[object]) -> bool:
    """Whether somebody who is not on the list is named beside it as a possible one."""
    beside = _BRACKETED.sub(" ", reply)
    listed = {_to_key(_read_name(element)) for element in answered}
    return any(
        _HEDGED.search(fold(sentence)) and any(_to_key(name) not in listed for name in find_phrases(sentence, among))
        for sentence in _SENTENCE.split(beside)
    )


def _to_key(name: str) -> str:
    return " ".join(split_words(name))


_ARTICLE = lazy_pattern(r"\A(?:the|an?|my|your) ", re.IGNORECASE)
# Whoever is all right is not on the list.
_CONSISTENT = lazy_pattern(
    r"(?:[.;,–—(]|\bwhile\b|\bbut\b)[^.;\n]{0,120}\b(?:consistent|agree|match(?:es)?|fits?|fine|all right|same (?:month|both)"
    r"|no contradiction)\b[^.;\n]{0,40}(?=[.;\n]|\Z)",
    re.IGNORECASE,
)
_VERB = lazy_pattern(r"\b(?:is|are|was|were|has|have)\b")
_ORIGIN = lazy_pattern(r"(?:\s(?:in|of|from|at)\s|,|:|\s[–—-]\s).*\Z")
_BACKWARDS = lazy_pattern(r"\b(?:before|earlier than|preceded|latest first|last first|reverse)\b")
_BRACKETED = lazy_pattern(r"\[[^\[\]]{0,2000}\]")
_SENTENCE = lazy_pattern(r"(?<=[.!?])\s|\n")
_HEDGED = lazy_pattern(
    r"\b(?:possibly|perhaps|maybe|might|could|or|not|never|except|but|though|although|unsure|uncertain|either|neither)\b|n't\b"
)


def grade_order(reply: str, expected: Sequence[str]) -> Grade:
    """Pairs in the right order minus pairs in the wrong one, as a share of all pairs: 0 for chance and below.

    An element that is missing or occurs twice, and any that is not expected, is in no right pair.
    """
    plain = [_ARTICLE.sub("", name) for name in expected]
    reply = _name_in_full(spell_like(reply, plain, *plain), plain)
    if (
        _BACKWARDS.search(fold(reply))
        and parse_json_list(reply) is None
        and find_phrases(reply, plain)
        and "?" not in reply
    ):
        return Grade.failure(f"it is not clear in which order this puts them: {shorten(reply)}")
    answered = parse_listing(reply)
    if parse_json_list(reply) is None and not any(
        _find_name(_read_name(element), plain) in map(_to_key, plain) for element in answered or ()
    ):
        in_prose = order_mentions(reply, plain)
        answered = None if in_prose is None else list(in_prose)
    if answered is None:
        if find_phrases(reply, plain) and "?" not in reply and not abstains(reply):
            return Grade.failure(f"it is not clear in which order this puts them: {shorten(reply)}")
        return Grade(0.0, (f"no list in: {shorten(reply)}",))
    keys = [_find_name(_read_name(element), plain) for element in answered[:201]]
    ranks = {key: keys.index(key) for key in keys if keys.count(key) == 1} if len(keys) <= 200 else {}
    wanted = [_to_key(name) for name in plain]
    pairs = list(combinations(wanted, 2))
    signs = [_sign(ranks.get(first), ranks.get(second)) for first, second in pairs]
    surplus = len([key for key in keys if key not in wanted])
    right = signs.count(1)
    reason = f"{right} of {len(pairs)} pairs are in the right order" + (f", {surplus} not expected" if surplus else "")
    return Grade.share(right - signs.count(-1) - surplus, len(pairs), reason)


def _name_in_full(reply: str, names: Sequence[str]) -> str:
    """The reply with a name in place of its last word, where that can be no other's: `the bench` for the battered bench."""
    lasts = [name.split()[-1] for name in names]
    for name, last in zip(names, lasts, strict=True):
        if " " in name and lasts.count(last) == 1 and not mentions(reply, name):
            reply = re.sub(rf"(?i)\b{re.escape(last)}\b", name, reply)
    return reply


def _find_name(element: str, expected: Sequence[str]) -> str:
    """The expected name that an element means, be it with an article or as part of a sentence; else its own words."""
    named = find_phrases(element, expected) if len(element) < 200 else set()
    words = {word for word in split_words(element) if word not in ("a", "an", "my", "the", "your")}
    if not named and words:
        # `The hedge` is the rusty hedge where there is no other.
        named = {name for name in expected if words <= set(split_words(name))}
    return _to_key(named.pop() if len(named) == 1 else element)


def _sign(first: int | None, second: int | None) -> int:
    if first is None or second is None:
        return 0
    return 1 if first < second else -1


def grade_quantities(reply: str, expected: Sequence[tuple[str, int]]) -> Grade:
    """A shopping list: a third for the items found, a third for their quantities, a third for nothing else on it.

    An item listed twice is something else the second time. Where more than half of the answer is something else, only
    the share that is not counts: listing the whole shop is no answer.
    """
    goods = [str(item) for item, _ in expected]
    reply = spell_like(reply, goods, *goods)
    answered = parse_counted(reply)
    if parse_json_list(reply) is None and is_foreign(reply) and not abstains(reply):
        return Grade.failure(f"it is not clear what is on this list: {shorten(reply)}")
    if answered is None:
        if (
            find_phrases(reply, [_name_goods(item) for item, _ in expected])
            and "?" not in reply
            and not abstains(reply)
        ):
            return Grade.failure(f"it is not clear what is on this list: {shorten(reply)}")
        return Grade(0.0, (f"no list in: {shorten(reply)}",))
    if (
        _ASKS_BACK.search(reply)
        and parse_json_list(reply) is not None
        and find_phrases(reply, _list_others(expected, answered))
    ):
        return Grade.failure(f"it is not clear what is on this list: {shorten(reply)}")
    open_items = {str(item): quantity for item, quantity in expected}
    found, counted, surplus = [], [], []
    for element in answered:
        name, quantity = _read_entry(element)
        if parse_count(quantity) == 0:
            continue
        name = _AMERICAN.sub(lambda found: _BRITISH[found[0]], fold(name))
        item = next((item for item in open_items if name and mentions(name, _name_goods(item))), None)
        # A roll is the bread roll where there is no other.
        item = item or next((item for item in open_items if _is_last_word(name, item, goods)), None)
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
    return Grade.share(points * (precision if precision < 0.5 else 1.0), 3, *reasons)


def _is_last_word(name: str, item: str, goods: Sequence[str]) -> bool:
    last = item.split()[-1]
    return len(name.split()) == 1 and mentions(name, last) and sum(mentions(one, last) for one in goods) == 1


def _name_goods(item: str) -> str:
    """Honey is the jar of honey."""
    return item.split(" of ")[-1]


def _list_others(expected: Sequence[tuple[str, int]], answered: Sequence[object]) -> list[str]:
    """The goods that should be on the list and are not."""
    names = [_read_entry(element)[0] for element in answered]
    return [goods for item, _ in expected if not any(mentions(name, goods := _name_goods(item)) for name in names)]


_ASKS_BACK = lazy_pattern(r"\b(?:should|shall|do|would|did) (?:i|you) [^.!\n]{1,100}\?", re.IGNORECASE)
_BRITISH = {
    "eggplant": "aubergine", "zucchini": "courgette", "rutabaga": "turnip", "flashlight": "torch", "dish towel": "tea towel",
    "lightbulb": "light bulb", "lamp bulb": "light bulb", "tooth brush": "toothbrush", "note book": "notebook",
    "matchbox": "box of matches", "scallion": "leek",
}  # fmt: skip
_AMERICAN = lazy_pattern(rf"\b(?:{'|'.join(_BRITISH)})(?=s?\b)")


_QUANTITIES = ("quantity", "qty", "count", "amount", "number")


def _read_entry(element: object) -> tuple[str, object]:
    """Item and quantity of one line; anything else than an object is an item in no quantity."""
    if not isinstance(element, dict):
        return _read_name(element), None
    fields = {str(name).casefold(): content for name, content in element.items()}
    item = fields.get("item", fields.get("name"))
    return item if isinstance(item, str) else "", next((fields[name] for name in _QUANTITIES if name in fields), None)


def _read_name(element: object) -> str:
    if isinstance(element, dict):
        element = element.get("name", next((one for one in element.values() if isinstance(one, str)), None))
    # `Elena (May, then June)` names Elena.
    return re.sub(r"\s\([^()]{1,60}\)$", "", element) if isinstance(element, str) else ""


def _format_names(names: Sequence[str]) -> str:
    return ", ".join(repr(shorten(name, 40)) for name in names[:8]) + (" and more" if len(names) > 8 else "")


# --- texts to be repeated word for word -------------------------------------------------------------------------------

# A courteous lead-in around a passage is not part of it; more than this is.
_SURROUNDING_WORDS = 40
# Beyond this many times its length a reply is not a repetition; comparing it would only cost time.
_TOO_LONG = 6


def grade_passage(reply: str, passage: str, others: Sequence[str] = ()) -> Grade:
    """1 for the passage word for word, falling to 0 where half of the words are wrong, missing or added.

    Args:
        reply: What was answered.
        passage: What should have been repeated.
        others: What was told as well: a reply that repeats one of these is wrong, however alike they are, and there is no
            verdict on one that gives it beside the passage and says which is which.
    """
    reply = _NUMBERED.sub("", reply)
    brief = len(split_words(reply)) <= len(split_words(passage)) + _SURROUNDING_WORDS
    recited = [other for other in others if recites(reply, other)]
    if brief and not recited and recites(reply, passage):
        return Grade(1.0, ("repeats the passage word for word",))
    if len(recited) == 1 and recites(reply, passage) and _OLD_AND_NEW.search(fold(reply)):
        return Grade.failure(f"repeats the passage and another one: {shorten(reply)}")
    parts = _parts(reply) if brief else [reply]
    alike, other = (
        max((similarity(part, text) for part in parts for text in texts), default=0.0) for texts in ([passage], others)
    )
    if other > alike:
        return Grade(0.0, (f"{other:.0%} of the words agree with another passage than {shorten(passage, 60)!r}",))
    return Grade.share(2 * alike - 1, 1, f"{alike:.0%} of the words agree with {shorten(passage, 60)!r}")


# Numbers and strokes before lines are of the list, not of what is listed.
_NUMBERED = lazy_pattern(r"(?m)(?:^\s{0,8}(?:\(?\d{1,2}[.)]|[-*•>])|(?<=[.!?:]\s)\(?\d{1,2}[.)])\s+")
_OLD_AND_NEW = lazy_pattern(r"\b(?:old|former|previous|earlier|first|now|new|current|replaced|instead)\b")


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
