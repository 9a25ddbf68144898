"""Makes text that cannot act: what would be invisible, steer a terminal, reorder its surroundings or break an encoding is
spelled out.

Markup is the templates' to escape; this is for the characters that HTML, Markdown and terminals let through.
"""

from __future__ import annotations

import functools
import re

# Controls, half characters, directional overrides, zero-width characters and tags.
_ACTIVE = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SYMBOLS = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}


def escape_control(text: str, *, keep: str = "\t\n", replacement: str | None = None) -> str:
    """Text whose control characters are shown instead of obeyed.

    Args:
        text: Anything, such as what a model has said.
        keep: Control characters that the surface takes as they are meant.
        replacement: What stands for each of the others, where the surface has no letters for them; by default each is
            spelled out.

    >>> escape_control("\\x1b[31mred \\u202etxt.exe")
    '␛[31mred ⟨U+202E⟩txt.exe'
    """

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return replacement if replacement is not None else _SYMBOLS.get(code) or f"⟨U+{code:04X}⟩"

    return _pattern(keep).sub(escape, text.replace("\r\n", "\n"))


@functools.cache
def _pattern(keep: str) -> re.Pattern[str]:
    return re.compile(f"(?![{re.escape(keep)}]){_ACTIVE}" if keep else _ACTIVE)
