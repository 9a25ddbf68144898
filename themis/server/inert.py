"""Makes text that cannot act: what would be invisible, reorder its surroundings or break an encoding is spelled out.

Markup is taken care of by the templates, which escape everything; this is for the characters that HTML lets through.
"""

from __future__ import annotations

import re

__all__ = ["inert"]

# Controls but tab and newline, half characters, directional overrides, zero-width characters and tags.
_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SYMBOLS = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}


def inert(text: str) -> str:
    """`\\x1b[31m` becomes `␛[31m`, a right-to-left override `⟨U+202E⟩`."""
    return _ACTIVE.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _SYMBOLS.get(code) or f"⟨U+{code:04X}⟩"
