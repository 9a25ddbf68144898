"""Coded messages: a time, a place and a thing to bring, each hinted at, with the words that show it was understood.

No keyword occurs in any hint, so repeating the hints is not enough.
"""

from __future__ import annotations

__all__ = ["HINTS"]

# Part of the meeting -> (hint, words of which one must be in the answer).
HINTS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "time": (
        ("when both hands point to heaven and the soup is served", ("noon", "midday", "12 pm", "twelve o'clock")),
        ("when the cock clears his throat", ("dawn", "sunrise", "daybreak", "early morning")),
        ("when the owl reads its letters and the date changes", ("midnight", "12 am")),
        ("when the west catches fire", ("sunset", "dusk", "sundown", "twilight")),
        ("when the English put the kettle on", ("teatime", "tea time", "tea-time", "afternoon")),
    ),
    "place": (
        ("where the dead lie in rows under stone", ("cemetery", "graveyard", "churchyard", "burial ground")),
        ("where paper sleeps on shelves and nobody may raise his voice", ("library", "reading room")),
        ("where iron horses rest between two journeys", ("railway station", "train station", "station", "railway")),
        ("where the bears and the lions look at you through bars", ("zoo", "zoological garden", "menagerie")),
        ("where the sick wait in white beds", ("hospital", "clinic", "infirmary")),
    ),
    "thing": (
        ("something that keeps the sky off your head", ("umbrella", "parasol")),
        ("something that makes a small sun at the press of a thumb", ("torch", "flashlight", "lighter", "lamp")),
        ("something that shows the way north and never speaks", ("compass",)),
        ("something with which one crosses a river and stays dry", ("boat", "canoe", "raft", "dinghy", "kayak")),
    ),
}
