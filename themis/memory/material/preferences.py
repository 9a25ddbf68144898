"""Preferences that people mention once, and choices that they decide without being mentioned again."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PREFERENCES", "Preference"]


@dataclass(frozen=True)
class Preference:
    statement: str
    request: str
    fitting: tuple[str, ...]
    violating: tuple[str, ...]


PREFERENCES = (
    Preference(
        "I must not eat nuts of any kind.", "Which cake shall I order for Sunday",
        ("the lemon sponge", "the cherry strudel", "the poppy seed cake"),
        ("the hazelnut torte", "the walnut roll", "the pecan pie"),
    ),
    Preference(
        "I am afraid of heights.", "Where shall we go on our outing",
        ("the botanical garden", "the tram museum", "the duck pond"),
        ("the rope bridge", "the cable car", "the bell tower"),
    ),
    Preference(
        "I refuse to fly, whatever the distance.", "How shall I travel to the congress",
        ("the night train", "the coach", "the ferry"),
        ("the seaplane", "the charter flight", "the helicopter"),
    ),
    Preference(
        "I am of no use to anyone before ten in the morning.", "Which course shall I sign up for",
        ("evening pottery", "the afternoon choir", "life drawing at eight in the evening"),
        ("sunrise yoga", "the breakfast debate", "the early birds' swimming"),
    ),
    Preference(
        "Wool makes my skin itch terribly.", "What shall I wear to the wedding",
        ("the linen suit", "the silk blouse", "the cotton velvet jacket"),
        ("the merino cardigan", "the tweed jacket", "the cashmere pullover"),
    ),
    Preference(
        "I cannot bear stories with ghosts in them.", "Which play shall I book",
        ("The Gardener's Wedding", "A Quarrel over Cheese", "The Miser of Lyon"),
        ("The Phantom Lodger", "Séance at Seven", "The Haunted Spinet"),
    ),
    Preference(
        "I cannot swim.", "Which trip shall I give my nephew and myself for his birthday",
        ("the steam railway", "the deer park", "the planetarium"),
        ("the kayak tour", "the snorkelling day", "the white-water rafting"),
    ),
    Preference(
        "I am allergic to cats.", "Which holiday flat shall I take",
        ("the bookshop flat", "the canal flat", "the terrace flat"),
        ("the cat breeder's flat", "the kitten rescue house", "the flat over the cat hotel"),
    ),
)  # fmt: skip
