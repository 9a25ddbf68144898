"""Names of files made from names of things: what a row or a run is called never decides where a file goes."""

from __future__ import annotations

import re

from themis.core.fingerprint import digest

__all__ = ["file_word"]

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def file_word(text: str) -> str:
    """The text itself if it is one plain word, else its legible part with a hash that keeps two of them apart."""
    if _SAFE.fullmatch(text) and ".." not in text and not text.endswith("."):
        return text
    legible = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]
    return f"{legible or 'item'}-{digest(text)[:12]}"
