# ruff: noqa: I001, TID252 -- as users write
import re
from .settings import WEIGHTS

PUNCTUATION = re.compile(r"[.,]")
_SUFFIXES = ["kg", "cm"]


def normalise(text):
    return strip_suffix(PUNCTUATION.sub("", text))


def strip_suffix(text):
    for suffix in _SUFFIXES:
        text = text.removesuffix(suffix)
    return text.strip()


def weigh(name):
    return WEIGHTS[name]


def unrelated(text):
    return text.upper()
