"""Reads distances with directions out of a reply: `3 km north`, `northwards for three kilometres`."""

from __future__ import annotations

import re

from themis.memory.scoring.numbers import in_figures

__all__ = ["read_ways"]

_NUMBER = r"(?P<{0}>\d{{1,4}}(?:\.\d{{1,3}})?)\s*(?:km|kms|kilomet(?:re|er)s?)\b"
_DIRECTION = r"\b(?:due\s+)?(?P<{0}>north|south|east|west)(?:wards?|erly|ern)?\b"
_WAY = re.compile(
    rf"{_NUMBER.format('km1')}[\s,*]*(?:(?:to|towards?|in|due|straight|the|a|direction|heading|of)[\s,*]+){{0,4}}{_DIRECTION.format('to1')}"
    rf"|{_DIRECTION.format('to2')}[\s,:*(]*(?:(?:for|by|about|exactly|direction|a|distance|of)[\s,*]+){{0,4}}{_NUMBER.format('km2')}"
)


def read_ways(text: str) -> list[tuple[float, str]]:
    """Kilometres and direction of every leg, in the order of the text."""
    return [
        (float(way["km1"] or way["km2"]), way["to1"] or way["to2"]) for way in _WAY.finditer(in_figures(text))
    ]  # fmt: skip
