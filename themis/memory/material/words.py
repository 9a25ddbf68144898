"""Things that tests speak of: colours, goods, places and the directions between them."""

from __future__ import annotations

__all__ = ["COLOURS", "DIRECTIONS", "GOODS", "OPPOSITE", "PLACES"]

COLOURS = (
    "amber", "beige", "black", "blue", "crimson", "green", "indigo", "lilac", "maroon", "orange", "pink", "purple",
    "scarlet", "silver", "tan", "teal", "turquoise", "violet", "white", "yellow",
)  # fmt: skip

# No item is part of another's name.
GOODS = (
    "apple", "bar of chocolate", "battery", "bottle of olive oil", "box of matches", "bread roll", "candle",
    "carton of eggs", "cucumber", "bag of flour", "jar of honey", "lemon", "light bulb", "mango", "notebook", "onion",
    "packet of rice", "pear", "pineapple", "pumpkin", "sponge", "tea towel", "tin of beans", "toothbrush",
)  # fmt: skip

PLACES = (
    "aquarium", "bakery", "brewery", "cathedral", "cinema", "dairy", "foundry", "greenhouse", "lighthouse", "monastery",
    "observatory", "orchard", "pharmacy", "quarry", "sawmill", "stadium", "theatre", "windmill",
)  # fmt: skip

# Unit steps: east is positive x, north is positive y.
DIRECTIONS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
