"""The menu of a restaurant, and what a guest's words mean on it.

Every item has one word that no other item has; whoever says that word means that item.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from themis.memory.scoring import everything_claimed, folded, mentioned, plain_words

__all__ = ["DISHES", "DRINKS", "MENU", "Order", "menu_text", "read_order", "section_of"]

MENU: dict[str, tuple[tuple[str, float], ...]] = {
    "Starters": (
        ("Beetroot carpaccio", 7.5), ("Stuffed vine leaves", 6.8), ("Smoked trout mousse", 8.9),
        ("Marinated artichokes", 7.2),
    ),
    "Soups": (("Pumpkin soup", 6.2), ("Fish broth", 7.9), ("Gazpacho", 5.9)),
    "From the pan": (
        ("Veal schnitzel", 18.5), ("Lamb cutlets", 22.0), ("Duck breast", 21.4), ("Tofu skewers", 14.2),
    ),
    "From the sea": (("Grilled sardines", 15.8), ("Mussels in cider", 17.3), ("Halibut with fennel", 23.6)),
    "Pasta": (("Spinach ravioli", 13.9), ("Tagliatelle with truffle", 19.5), ("Gnocchi with gorgonzola", 14.8)),
    "Side dishes": (("Roast potatoes", 4.5), ("Braised cabbage", 4.2), ("Couscous", 4.8)),
    "Desserts": (("Apricot dumplings", 8.2), ("Pistachio parfait", 7.8), ("Rhubarb crumble", 7.4)),
    "Drinks": (
        ("Sparkling water", 3.2), ("Elderflower lemonade", 4.1), ("Wheat beer", 4.6), ("Riesling", 6.4),
        ("Ginger ale", 3.9), ("Hibiscus tea", 3.5), ("Espresso", 2.8),
    ),
}  # fmt: skip

DRINKS = tuple(name for name, _ in MENU["Drinks"])
DISHES = tuple(name for section, items in MENU.items() if section != "Drinks" for name, _ in items)


def menu_text() -> str:
    lines, number = [], 0
    for section, items in MENU.items():
        lines.append(section)
        for name, price in items:
            number += 1
            lines.append(f"  {number}. {name} – {price:.2f} €")
    return "\n".join(lines)


def section_of(dish: str) -> tuple[str, ...]:
    """The items of the section in which a dish stands."""
    return next(names for items in MENU.values() if dish in (names := tuple(name for name, _ in items)))


@dataclass(frozen=True)
class Order:
    """What a reply asks for; `unclear` if it seems to speak of the menu in words that fit several items or none."""

    items: tuple[str, ...]
    unclear: bool = False


def read_order(reply: str) -> Order:
    ordered = {_MEANING[phrase] for phrase in everything_claimed(reply, _MEANING)}
    numbers = {int(number) for number in _NUMBER.findall(folded(reply))}
    items = tuple(
        name for place, name in enumerate((*DISHES, *DRINKS), start=1) if name in ordered or place in numbers
    )  # fmt: skip
    return Order(items, unclear=not items and bool(mentioned(reply, _AMBIGUOUS)))


def _meanings() -> dict[str, str]:
    names = (*DISHES, *DRINKS)
    counts = Counter(word for name in names for word in set(plain_words(name)))
    meaning = {name: name for name in names}
    for name in names:
        meaning.update({word: name for word in plain_words(name) if counts[word] == 1 and word not in _TOO_COMMON})
    return meaning


_NUMBER = re.compile(r"(?:\bnumber|\bno\.|\bnr\.?|#)\s*(\d{1,2})\b")
# Words of the menu that a guest may use without meaning the item, or for several of them.
_TOO_COMMON = frozenset({"with", "in", "fish", "water", "tea", "beer", "soup", "vine", "leaves", "ale", "ginger", "apricot",
                         "apple", "roast", "grilled", "smoked", "stuffed", "breast", "wheat"})  # fmt: skip
_AMBIGUOUS = (
    "fish",
    "water",
    "tea",
    "beer",
    "soup",
    "pasta",
    "wine",
    "coffee",
    "meat",
    "dessert",
    "cake",
    "potato",
    "lamb",
)
_MEANING = _meanings()
