"""Reads answers in JSON and compares lists: what is missing costs, and so does what should not be there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from themis.core.json_repair import parse_json
from themis.memory.actions import Grade
from themis.memory.scoring.numbers import whole_number
from themis.memory.scoring.words import mentions, plain_words, shortened

__all__ = ["grade_members", "grade_order", "grade_quantities", "json_field", "json_list"]


def json_list(reply: str) -> list[Any] | None:
    """The JSON list of a reply, also as the only field of an object; None where there is none."""
    value = _parsed(reply)
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return value if isinstance(value, list) else None


def json_field(reply: str, field: str) -> Any:
    """A field of the JSON object of a reply, whatever the case of its name; None where there is none."""
    value = _parsed(reply)
    if not isinstance(value, dict):
        return None
    return next((content for name, content in value.items() if str(name).casefold() == field), None)


def grade_members(reply: str, expected: Sequence[str]) -> Grade:
    """Right names divided by the longer of what was expected and what was answered, so that listing more costs.

    A name counts once. Order does not matter.
    """
    answered = json_list(reply)
    if answered is None:
        return Grade(0.0, (f"no JSON list in: {shortened(reply)}",))
    names = [_name(element) for element in answered]
    open_names = {" ".join(plain_words(name)): name for name in expected}
    unexpected = [name for name in names if open_names.pop(" ".join(plain_words(name)), None) is None]
    hits = len(names) - len(unexpected)
    reasons = [f"{hits} of {len(expected)} are in the answer"]
    if open_names:
        reasons.append(f"missing: {_shown(list(open_names.values()))}")
    if unexpected:
        reasons.append(f"not expected: {_shown(unexpected)}")
    return Grade.share(hits, max(len(expected), len(names)), *reasons)


def grade_order(reply: str, expected: Sequence[str]) -> Grade:
    """Pairs in the right order minus pairs in the wrong one, as a share of all pairs: 0 for chance and below.

    An element that is missing or occurs twice, and any that is not expected, is in no right pair.
    """
    answered = json_list(reply)
    if answered is None:
        return Grade(0.0, (f"no JSON list in: {shortened(reply)}",))
    keys = [" ".join(plain_words(_name(element))) for element in answered]
    ranks = {key: keys.index(key) for key in keys if keys.count(key) == 1} if len(keys) <= 200 else {}
    wanted = [" ".join(plain_words(name)) for name in expected]
    pairs = list(combinations(wanted, 2))
    signs = [_sign(ranks.get(first), ranks.get(second)) for first, second in pairs]
    surplus = len([key for key in keys if key not in wanted])
    right = signs.count(1)
    reason = f"{right} of {len(pairs)} pairs are in the right order" + (f", {surplus} not expected" if surplus else "")
    return Grade.share(right - signs.count(-1) - surplus, len(pairs), reason)


def _sign(first: int | None, second: int | None) -> int:
    if first is None or second is None:
        return 0
    return 1 if first < second else -1


def grade_quantities(reply: str, expected: Sequence[Sequence[Any]]) -> Grade:
    """A shopping list: a third for the items found, a third for their quantities, a third for nothing else on it.

    An item listed twice is something else the second time. Where more than half of the answer is something else, only
    the share that is not counts: listing the whole shop is no answer.
    """
    answered = json_list(reply)
    if answered is None:
        return Grade(0.0, (f"no JSON list in: {shortened(reply)}",))
    open_items = {str(item): quantity for item, quantity in expected}
    found, counted, surplus = [], [], []
    for element in answered:
        name, quantity = _entry(element)
        # Honey is the jar of honey.
        item = next((item for item in open_items if name and mentions(name, item.split(" of ")[-1])), None)
        if item is None:
            surplus.append(name)
            continue
        found.append(item)
        if whole_number(quantity) == open_items.pop(item):
            counted.append(item)
    reasons = [f"{len(found)} of {len(expected)} items found, {len(counted)} in the right quantity"]
    if open_items:
        reasons.append(f"missing: {_shown(list(open_items))}")
    if surplus:
        reasons.append(f"not expected: {_shown(surplus)}")
    if not expected:
        return Grade.when(not surplus, *reasons)
    points = len(found) / len(expected) + len(counted) / len(expected) + (not surplus and bool(found))
    precision = len(found) / len(answered) if answered else 0.0
    return Grade.share(points * (precision if precision <= 0.5 else 1.0), 3, *reasons)


def _entry(element: Any) -> tuple[str, Any]:
    """Item and quantity of one line; anything else than an object is an item in no quantity."""
    if not isinstance(element, dict):
        return _name(element), None
    fields = {str(name).casefold(): content for name, content in element.items()}
    item = fields.get("item", fields.get("name"))
    return item if isinstance(item, str) else "", fields.get("quantity")


def _name(element: Any) -> str:
    if isinstance(element, dict) and len(element) == 1:
        element = next(iter(element.values()))
    return element if isinstance(element, str) else ""


def _shown(names: Sequence[str]) -> str:
    return ", ".join(repr(shortened(name, 40)) for name in names[:8]) + (" and more" if len(names) > 8 else "")


def _parsed(reply: str) -> Any:
    try:
        return parse_json(reply)
    except ValueError:
        return None
