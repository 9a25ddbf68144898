"""Reads distances with directions out of a reply: `3 km north`, `northwards for three kilometres`."""

from __future__ import annotations

import re

from themis.memory.scoring.numbers import in_figures

__all__ = ["directions_named", "read_ways"]

_KM = r"(?<![-\d.])(?P<{0}>\d{{1,4}}(?:\.\d{{1,3}})?)\s?(?:km|kms|kilomet(?:re|er)s?)\b"
_TO = r"\b(?:due\s)?(?P<{0}>north|south|east|west)(?:wards?|erly|ern)?\b(?![-\s]?(?:north|south|east|west)\b)"
_GAP = r"[\s,*:(]{1,4}"
_BETWEEN_KM_AND_TO = rf"(?:(?:to|towards?|in|due|straight|the|a|direction|heading|of){_GAP}){{0,4}}"
_BETWEEN_TO_AND_KM = (
    r"(?:(?:for|by|about|exactly|direction|a|distance|of|and|go|walk|travel|continue|drive|head|from(?: the)? \w{1,20})"
    rf"{_GAP}){{0,4}}"
)
_WAY = re.compile(
    rf"(?P<denied>\bnot\s)?(?:{_KM.format('km1')}[\s,*]{{0,4}}"
    rf"(?:{_BETWEEN_KM_AND_TO}{_TO.format('to1')}|(?P<letter>[nesw])\b)"
    rf"|{_TO.format('to2')}[\s,:*(]{{0,4}}{_BETWEEN_TO_AND_KM}{_KM.format('km2')})"
)
_ONE = re.compile(r"\bone (?=km|kilomet)")
_DISTANCE, _DIRECTION = re.compile(_KM.format("km")), re.compile(_TO.format("to"))
_SIDE = re.compile(r"\b(?:left|right|straight|ahead)\b")
_LETTERS = {"n": "north", "e": "east", "s": "south", "w": "west"}


def read_ways(text: str) -> list[tuple[float, str]]:
    """Kilometres and direction of every leg, in the order of the text.

    A text with one distance and one direction gives one way, however far apart they stand.
    """
    text = _ONE.sub("1 ", in_figures(text))
    ways = [
        (float(way["km1"] or way["km2"]), way["to1"] or way["to2"] or _LETTERS[way["letter"]])
        for way in _WAY.finditer(text)
        if not way["denied"]
    ]
    if ways or _WAY.search(text):
        return ways
    distances, directions = _DISTANCE.findall(text), _DIRECTION.findall(text)
    return [(float(distances[0]), directions[0])] if len(distances) == len(directions) == 1 else []


def directions_named(text: str) -> int:
    """How many times a text names a direction, be it by turning to a side."""
    text = in_figures(text)
    return len(_DIRECTION.findall(text)) + len(_SIDE.findall(text))
