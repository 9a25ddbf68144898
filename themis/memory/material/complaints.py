"""Tells whether a guest complains of what was served."""

from __future__ import annotations

import re

from themis.memory.material.menu import read_order
from themis.memory.scoring import folded, mentioned

__all__ = ["notices"]


def notices(reply: str, wrong: str, right: str) -> bool | None:
    """Whether the reply objects to the wrong dish; None where it neither clearly objects nor clearly accepts."""
    text = _CONTENT.sub(" ", folded(reply))
    objects = _OBJECTION.search(text) is not None
    order = read_order(reply).items
    named = bool(mentioned(reply, (wrong, right))) or wrong in order or right in order
    if objects and named:
        return True
    if not objects and right not in order and not mentioned(reply, (right,)):
        return False
    return None


# What sounds like an objection and is none: exactly what I ordered, nothing is wrong.
_CONTENT = re.compile(
    r"\b(?:as|is what|just what|exactly what|everything) (?:i )?(?:had |have )?ordered\b|\bno (?:mistakes?|errors?|mix[ -]?up)\b"
    r"|\bnothing (?:is |was |seems )?(?:wrong|missing|incorrect)\b"
)
_OBJECTION = re.compile(
    r"n't (?:order|ask|what|have|right|mine|my|remember|the)|\bnot (?:order|ask|what|mine|my|right|correct|the|quite)|\bordered\b"
    r"|\bwrong\b|\bmistake\b|\bmix(?:ed)?[ -]?up\b|\binstead\b|\bshould (?:be|have)\b|\bsupposed\b|\bmissing\b"
    r"|\basked for\b|\bnever (?:order|ask)|\bswap|\bexchange|\bincorrect\b|\berror\b|\bexpect|\bwanted\b"
    r"|\b(?:somebody|someone|anyone) else|\banother table\b"
)
